"""Every diagnostic code: its title, which is the sentence without the user's names in it, and what the rule is and why.

Hundreds tell the kind: BW0xx what may be written, BW1xx types and ranks, BW2xx parallelism, BW3xx the operator and its
arguments, BW4xx warnings, BW5xx derivatives. A code keeps its meaning for ever; one that is no longer used is left out,
and not given again. Each has a page in `docs/errors`, made of what stands here and of the cases in
`tests/errors/cases`.
"""

from __future__ import annotations

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, which messages name by its code (`BW003`): its title, and what the documentation says of it."""

    title: str
    explanation: str


CATALOGUE: dict[str, Rule] = {
    "BW001": Rule(
        "the source of the function cannot be found",
        "An operator is compiled from the source of a function, which is read from the file that defines it. A function"
        " made by `lambda` or by other code, or one typed at a prompt, has no such source: write it in a file with"
        " `def`. Cells of notebooks and files in zip archives are read, too.",
    ),
    "BW002": Rule(
        "a statement that is not part of the language",
        "Loops over tensor elements are made of assignments, `if`, `for`, `while`, `break`, `continue` and `assert`."
        " Other statements manage Python's objects, which do not exist in machine code; what they do belongs"
        " outside the operator.",
    ),
    "BW003": Rule(
        "an expression that is not part of the language",
        "Expressions are made of numbers, elements, arithmetic, comparisons, `and`, `or`, `not`, conditional"
        " expressions and calls. Dictionaries and sets are not in it: use locals or tensors.",
    ),
    "BW004": Rule(
        "a call that cannot be compiled",
        "A loop may call the functions that the language knows (arithmetic builtins, `math`, `bw.rand`) and plain"
        " Python functions, which are compiled inline. A function that calls itself, that has no source, or that acts"
        " on Python's world, such as `print`, cannot be called there.",
    ),
    "BW005": Rule(
        "a name that is not defined on every path",
        "A name must have a value whenever it is read: whichever branches were taken, and even if a loop before it ran"
        " no iteration. Python would raise a NameError while it runs; here it is told beforehand. Give the name a"
        " value first.",
    ),
    "BW006": Rule(
        "a captured value that cannot be compiled in",
        "Numbers, strings, tuples of numbers and functions from outside are taken into the operator as they are when it"
        " is decorated. Tensors and other objects are not: an operator must say in its signature what it works on.",
    ),
    "BW007": Rule(
        "a parameter or annotation that is not understood",
        "PyTorch's schema of the operator is made of the annotations: `torch.Tensor`, `int`, `float`, `bool`, and lists"
        " of numbers. The first call tells the kind of a parameter that has neither an annotation nor a number as"
        " default. `*args` and `**kwargs` cannot be in a schema.",
    ),
    "BW008": Rule(
        "a loop over something that is not a range",
        "A `for` runs over integers: `range`, `bw.prange`, `bw.ndrange`, or `bw.indices` of a tensor. Only these tell"
        " beforehand which iterations there are.",
    ),
    "BW009": Rule(
        "a result that an operator cannot return",
        "An operator returns tensors that it allocates, the same number of them on every path. A result that is an"
        " argument, or shares its memory, would have to be declared to PyTorch as an alias: store into the argument"
        " instead, and return nothing.",
    ),
    "BW010": Rule(
        "a store into something that may be a copy",
        "`.contiguous()`, `.reshape()` and `.to()` give the tensor itself at one time and a copy at another. A store"
        " into the result would reach the argument only sometimes. Store into the argument, or into a `.clone()`.",
    ),
    "BW011": Rule(
        "a list that cannot be changed so",
        "Lists that an operator makes grow by `append`, `insert`, `extend` and `+=`, and shrink by `pop` and `clear`."
        " Lists that are arguments stay as they are, and other methods are loops to be written out.",
    ),
    "BW012": Rule(
        "a `return` inside a loop",
        "A loop may be left by a `return` of numbers, or of a tensor that all returns give. One tensor or another, or"
        " one that is made behind the loop, is not returned so: set a variable and `break`, and return after the loop.",
    ),
    "BW013": Rule(
        "a message with too many values",
        "The values in the message of an `assert` are kept beside the failure until Python tells it; there is room for"
        " eight.",
    ),
    "BW014": Rule(
        "a source that is nested too deeply",
        "Expressions and blocks are taken apart recursively, as Python's own compiler does. A sum of 1000 terms in"
        " one expression goes beyond what Python's stack allows (`sys.setrecursionlimit`); in steps it compiles. A"
        " stack that overflows without such a source is a fault of brickwork, and reported as an `InternalError`.",
    ),
    "BW101": Rule(
        "types that do not go together",
        "Operands, and all that a variable is assigned, must have a common type: integers and floats mix as they do in"
        " PyTorch, but uint64 does not mix with signed integers, and a bit operation takes no float. Convert one side"
        " with `int(...)` or `float(...)`.",
    ),
    "BW102": Rule(
        "a wrong number of indices",
        "Loops compute with elements: an expression needs as many indices as the tensor has dimensions. With fewer it"
        " is a row or a smaller tensor, over which a further loop is written.",
    ),
    "BW103": Rule(
        "an index that is not an integer",
        "Elements are numbered by integers. A float index is refused even where its value is whole: write `int(...)`,"
        " which also says how to round.",
    ),
    "BW104": Rule(
        "a literal that the elements cannot hold",
        "A literal that is stored is converted as torch converts a Python number: what the element type cannot hold is"
        " an error, which is a RuntimeError, too. Arguments and numbers of the host part are tested so when the"
        " operator is called. What is computed in the loops wraps instead: write `int(...)` around a literal to have"
        " that.",
    ),
    "BW201": Rule(
        "iterations called parallel that collide",
        "`bw.prange` promises that no iteration reads or writes what another one writes. The message names two"
        " iterations that do, and the element. A plain `range` is always right: it runs in parallel where independence"
        " is proved, and in order elsewhere.",
    ),
    "BW202": Rule(
        "a schedule that is illegal",
        "`schedule=` says how processors run loops, a verb a line. Each verb must be legal where it stands: loops that"
        " are bound to threads or lanes have independent iterations, a nest keeps the order of iterations that meet on"
        " an element, and what is accumulated has partial results by `rfactor` alone. The message names the verb and"
        " what is in its way. Loops are called as in the source, and `i:2` is the second loop over an `i`.",
    ),
    "BW301": Rule(
        "an argument of the wrong type",
        "The operator was called with something that it cannot be compiled for: an element type or layout that"
        " brickwork does not compute with, a tensor with more or fewer dimensions than the function has indices for, or"
        " results of other shapes than the operator gives. A wrong number of dimensions is also a `TypeError`.",
    ),
    "BW302": Rule(
        "CUDA C++ that does not compile",
        "NVRTC compiles the text that `bw.cuda_op` was given. These are its messages, at the lines of the file that the"
        " text stands in. NVRTC compiles device code alone: functions of the host, `main` and PyTorch's headers are"
        " skipped, and kernels cannot use them.",
    ),
    "BW303": Rule(
        "a kernel that does not take what it is launched with",
        "A kernel's parameters are what `Launch(args=...)` gives it, or the operator's arguments in the order of the"
        " schema and then its results. There must be as many of them, a tensor for each pointer and a number for each"
        " number. The compiler tells what the kernel takes, behind names, macros and templates.",
    ),
    "BW304": Rule(
        "a launch function that asks for what the operator does not have",
        "The functions beside a schema (`launch`, `out`, the launcher of `bw.triton_op`) get the arguments that their"
        " parameters name. They may name each argument of the schema and, but for `out`, each result: as the"
        " schema calls it, or else `out`, or `out0`, `out1` of several.",
    ),
    "BW401": Rule(
        "a captured value that means something else by now",
        "An operator keeps the numbers, lists and helpers that its source names, and the attributes of objects, as they"
        " were when it was decorated. One of them has another value now, or was changed in place, which the operator"
        " does not see: decorate the function again. It is told once for an operator, at a call through its Python"
        " object; of a long list, at one of the next calls.",
    ),
    "BW402": Rule(
        "a loop that a single thread of a GPU runs",
        "The iterations of the loop depend on one another, so that they run in order: on a GPU by one thread, which is"
        " far slower than a core of a processor. The result is right.",
    ),
    "BW403": Rule(
        "operators of two definitions with one name",
        "A name that is defined again means the last definition. An operator of the one before that you still hold"
        " keeps its code, and goes by the name with a hash of its source and captured values behind it, in graphs,"
        " pickles and profiles. Operators of both are called here: a function makes several of them, or a reference was"
        " kept when a cell was run again. It is told once for a name.",
    ),
    "BW404": Rule(
        "a fraction that a store drops",
        "A float is stored into a tensor of integers, which cuts its fraction off, as torch does. Write `int(...)`"
        " around it if that is meant, which also says how to round; else make the tensor of a floating-point type.",
    ),
    "BW405": Rule(
        "a loop over elements that runs in Python",
        "Loops are compiled where all that they call is. A call of another function, such as `torch.nanmedian(x[i])`,"
        " leaves the loop around it to Python, which takes some microseconds for each iteration where compiled code"
        " takes nanoseconds. Write the function with loops and `math`, or call it on whole tensors beside the loop."
        " Where each iteration has much to do, as a product of matrices, Python does not matter:"
        " `bw.config.warn = 0` turns warnings off.",
    ),
    "BW501": Rule(
        "a gradient that needs elements which are gone",
        "A gradient goes back through the loops, and needs there what the elements were when they were read. What is"
        " stored over meanwhile is kept aside, one element an iteration; for that the number of iterations has to be"
        " known before they run, from sizes and integer arguments. A `while`, and a range whose end is read from a"
        " tensor, do not tell it. Variables are computed anew there, whatever the loop.",
    ),
    "BW901": Rule(
        "a construct that stands where it cannot be compiled",
        "The language has the construct, but not in this place or combination. The help says what does the same.",
    ),
}
"""Rules by code."""
