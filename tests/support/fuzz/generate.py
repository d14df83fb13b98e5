"""Writes random programs: well-typed, with nests of every shape, index maps, reductions, casts and aliasing.

A program has one to three nests: of any statements (`writer.py`), as people write them (`patterns.py`, `lengths.py`),
or with integers that are carried from iteration to iteration (`carried.py`). One in three is made so that indices,
divisors and asserts may fail; one in four computes with integers alone, which may be any, as they wrap.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from support.fuzz.carried import carried_nest
from support.fuzz.case import Argument, Case, Data, Layout, NumberArgument, TensorArgument
from support.fuzz.complex_programs import complex_case
from support.fuzz.kept_values import keep_values
from support.fuzz.lengths import of_lengths
from support.fuzz.objects import Objects, use_objects
from support.fuzz.passes import use_passes
from support.fuzz.patterns import pattern
from support.fuzz.phrases import HELPERS, Phrases
from support.fuzz.row_functions import use_row_functions
from support.fuzz.scope import Array, Scope, Whole, extent, joined
from support.fuzz.spaces import use_spaces
from support.fuzz.windows import use_windows
from support.fuzz.writer import Writer

FLOATS = ("float32", "float32", "float64", "float64", "float16", "bfloat16")
WHOLES = ("int8", "int16", "int32", "int64", "int64", "uint8", "uint16", "uint32", "bool")
SIZES = (0, 1, 2, 3, 4, 5, 7, 9, 13, 21, 40, 70)
OUTSIDE = (-1, -2, 90, 1000, 1000, 1001, -1000, 5_000_000, -5_000_000, -(2**40), 2**62, 2**63 - 1, -(2**63))
SMALL = (1, 2, 3, 4, 5, 7)
COMPLEX = 0.05
"""How many of the programs are on complex elements."""
LENGTHS = 0.15
"""How many of the others begin with a nest of `lengths.py`."""


def case_of_seed(seed: int) -> Case:
    """Return the case of a seed."""
    if random.Random(f"kind {seed}").random() < COMPLEX:
        return complex_case(seed)
    source = random.Random(f"case {seed}")
    failing, claims, draws = source.random() < 0.35, source.random() < 0.15, source.random() < 0.15
    sizes = [source.choice(SIZES if source.random() < 0.6 else SMALL) for _ in range(2)]
    wholes = [Whole(name, (size, size)) for name, size in zip("np", sizes, strict=True)]
    scope = Scope(source, wholes=wholes, stray=0.5 if failing else 0.0)
    whole = source.random() < 0.25
    arguments = _tensors(scope, failing=failing, whole=whole)
    number = source.choice((0, 1, 2, 3, -2, 7, sizes[0], sizes[0] + 1, *((2**31 + 5, -(2**63)) if whole else (4, 5))))
    if source.random() < 0.6:
        number = source.choice((1, 2, 3, sizes[0]))
    scope.wholes.append(Whole("m", (number, number)))
    half = NumberArgument("h", source.choice((0.5, 1.0, -2.0, 3.0, 0.25)))
    flag = NumberArgument("flag", source.random() < 0.5)
    starts = [NumberArgument(name, _start(source, sizes, failing=failing)) for name in "bg"]
    scope.starts = [Whole(item.name, (item.value, item.value)) for item in starts]
    numbers = (NumberArgument("m", number), half, flag, *starts)
    exact = not any(isinstance(item, TensorArgument) and item.data == "special" for item in arguments)
    result = _result(scope, whole=whole) if source.random() < 0.3 else None
    given = _optional(scope, whole=whole) if source.random() < 0.25 else None
    phrases = Phrases(scope, draws=draws, exact=exact, whole=whole)
    writer = Writer(scope, phrases, claims=claims)
    if random.Random(f"rows {seed}").random() < LENGTHS:
        of_lengths(writer)
    for _ in range(source.choice((1, 1, 1, 2, 2, 3))):
        kind = source.random()
        if kind < 0.35:
            carried_nest(writer)
        elif kind < 0.6:
            pattern(writer)
        else:
            writer.nest()
    if not any(isinstance(item, TensorArgument) and item.base for item in arguments):
        arguments = _shared(scope, arguments, result)
    last = () if given is None else (given,)
    both = result is not None and scope.chance(0.3)
    keep_values(writer, seed)
    use_row_functions(writer, seed)
    rows = use_passes(writer, seed)
    spaces = use_spaces(writer, seed)
    use_windows(writer, seed)
    objects = use_objects(writer, seed)
    source_text = (
        spaces + rows + _with_pairs(_source(scope, writer.lines, objects, result, both=both, whole=whole), seed)
    )
    return Case(source_text, (*arguments, *numbers, *objects.arguments, *last), seed)


def _with_pairs(text: str, seed: int) -> str:
    """Let some helpers compute with values with parts, be given functions, or look values up in dictionaries.

    The seed's other choices stay as they are.
    """
    own, given = random.Random(f"pairs {seed}"), random.Random(f"given {seed}")
    text = re.sub(r"(?<!def )\bmix\(", lambda _: "mix_pairs(" if own.random() < 0.5 else "mix(", text)
    ways = (
        "applied(mix, ",
        "applied(lambda p, q: mix(p, q) + k - k, ",
        "applied(lambda p, q: mix(p, q), ",
        *["mix("] * 3,
    )
    body = text.index("def generated(")
    changed = re.sub(r"\bmix\(", lambda _: given.choice(ways), text[body:])
    changed = re.sub(r"\bparity\(", lambda _: given.choice(("looked_up(", "parity(")), changed)
    return text[:body] + changed


def _start(source: random.Random, sizes: list[int], *, failing: bool) -> int:
    """Return what a carried integer begins with: within the tensors, at their ends, or far outside."""
    long = source.choice(sizes)
    if source.random() < (0.6 if failing else 0.15):
        return source.choice((*OUTSIDE, long, long + 1, -long - 1))
    return source.choice((0, 1, 2, max(long - 1, 0), source.randint(0, max(long - 1, 0)), long))


def _source(scope: Scope, lines: list[str], objects: Objects, result: str | None, *, both: bool, whole: bool) -> str:
    """Return a module with the program."""
    tensors = [array for array in scope.arrays if array.name != "result"]
    parameters = ", ".join(f"{array.name}: torch.Tensor" for array in tensors)
    optional = f", {objects.parameter}" if objects.parameter else ""
    optional += ", o: Optional[torch.Tensor]" if scope.optional else ""
    returns = "tuple[torch.Tensor, torch.Tensor]" if both else "torch.Tensor" if result else "None"
    head = f"def generated({parameters}, m: int, h: float, flag: bool, b: int, g: int{optional}) -> {returns}:"
    begin = [
        "    n, p = a.shape",
        *([f"    {result}"] if result else []),
        f"    s, t, k = {'0' if whole else '0.0'}, 0, 1",
    ]
    end = [f"    return {'result, torch.zeros_like(result)' if both else 'result'}"] if result else []
    imports = (
        f"{objects.before}import math\nfrom dataclasses import dataclass\nfrom typing import NamedTuple, Optional\n"
    )
    imports += "\nimport torch\n\nimport brickwork as bw\n"
    return "\n".join((imports, "", HELPERS, objects.classes, "", head, *begin, *lines, *end, ""))


def _tensors(scope: Scope, *, failing: bool, whole: bool) -> tuple[Argument, ...]:
    """Make the tensors: `a` of shape (n, p), which says how large the others are, and up to four more."""
    source = scope.random
    n, p = scope.wholes[:2]
    shapes = ((n,), (n,), (p,), (n, p), (p, n), (n.shifted(1),), (n, n), (), (Whole("3", (3, 3)), n))
    shapes += ((Whole("2", (2, 2)), p, n), (_times(n, p),), (n.shifted(2), p.shifted(1)))
    arguments: list[TensorArgument] = []
    special, halves = source.random() < 0.06, source.random() < 0.1
    for name in ("a", *("x", "y", "z", "w")[: source.randint(1, 4)]):
        sizes = (n, p) if name == "a" else source.choice(shapes)
        written = name == "x" or source.random() < 0.3
        table = not written and name in "yz" and source.random() < 0.4
        dtype = source.choice(WHOLES if whole or source.random() < 0.25 else FLOATS)
        data: Data = (
            "special" if special else "halves" if halves else "wide" if whole and source.random() < 0.5 else "small"
        )
        limit, strays = 0, False
        if table:
            limit, strays = extent(source.choice(scope.wholes[:2])), failing and source.random() < 0.4
            dtype, data = source.choice(("int64", "int32")), "index"
        layout: Layout = source.choice(("dense",) * 5 + ("transposed", "sliced", "beside", "odd", "expanded"))
        if written and layout == "expanded":
            layout = "dense"
        array = Array(name, dtype, sizes, written, indices=table, limit=limit, strays=strays)
        scope.arrays.append(array)
        shape = tuple(map(extent, sizes))
        arguments.append(TensorArgument(name, dtype, shape, layout, data, limit, strays, source.randrange(1000)))
    return tuple(arguments)


def _optional(scope: Scope, *, whole: bool) -> Argument:
    """Make the argument `o`, which is None in half of the cases."""
    source = scope.random
    n, p = scope.wholes[:2]
    sizes = source.choice(((n,), (p,), (n, p), (p, n)))
    dtype = source.choice(("int32", "int64") if whole else ("float32", "float64", "int32"))
    scope.optional = Array("o", dtype, sizes)
    if source.random() < 0.5:
        return NumberArgument("o", None)
    return TensorArgument("o", dtype, tuple(map(extent, sizes)), seed=source.randrange(1000))


def _times(one: Whole, other: Whole) -> Whole:
    return Whole(f"{one.text} * {other.text}", joined(one.range, other.range, "*"))


def _shared(scope: Scope, arguments: tuple[Argument, ...], result: str | None) -> tuple[Argument, ...]:
    """Let a tensor be a view of an earlier one's memory, now and then."""
    source = scope.random
    if source.random() > 0.2:
        return arguments
    tensors = [item for item in arguments if isinstance(item, TensorArgument)]
    one, other = source.sample(range(len(tensors)), 2) if len(tensors) > 1 else (0, 0)
    first, second = min(one, other), max(one, other)
    if first == second or tensors[second].data == "index" or tensors[first].data == "index":
        return arguments
    changed = replace(
        tensors[second], dtype=tensors[first].dtype, base=tensors[first].name, shift=source.choice((0, 0, 1, 2, -1))
    )
    tensors[second] = changed
    return tuple(tensors)


def _result(scope: Scope, *, whole: bool) -> str:
    """Add a tensor that the program makes, and return the statement for it."""
    source = scope.random
    n, p = scope.wholes[:2]
    sizes = source.choice(((n,), (n, p), (p, n), (n.shifted(1),)))
    dtype = source.choice(("int64", "int32") if whole else ("float32", "float64", "int64", "int32"))
    scope.arrays.append(Array("result", dtype, sizes, written=True))
    shape = ", ".join(size.text for size in sizes)
    made = source.choice(
        (f"torch.zeros({shape}, dtype=torch.{dtype})", f"torch.full(({shape},), 2, dtype=torch.{dtype})")
    )
    return f"result = {made}"
