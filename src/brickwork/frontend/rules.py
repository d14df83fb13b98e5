"""What Python may be written in an operator: one message, and one alternative, for each construct that is refused.

Here are the words and the node classes; where a rule applies is decided in `check.py` and in the lowering.
"""

from __future__ import annotations

import ast
from functools import cache

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import FailureKind

_MATCH = "write `if` and `elif`, also where what a case with `if` binds is read after it"
REFUSED_STATEMENTS: dict[type[ast.stmt], tuple[str, str]] = {
    ast.FunctionDef: (
        "a function inside an operator is defined once, with plain parameters, without a decorator and not in a branch",
        "define it so, or outside, and call it here",
    ),
    ast.AsyncFunctionDef: ("an operator cannot be asynchronous", "define a plain function outside and call it here"),
    ast.ClassDef: ("a class cannot be defined inside an operator", "define it outside, at the top of the file"),
    ast.AsyncFor: ("`async for` is not part of the language", "write a plain `for`"),
    ast.With: ("`with` is not part of the language", "do that outside the operator"),
    ast.AsyncWith: ("`async with` is not part of the language", "do that outside the operator"),
    ast.Match: ("`match` takes numbers, texts, None, and tuples of them, no True and False", _MATCH),
    ast.Try: ("`try` is not part of the language", "test for the condition with `if`"),
    ast.TryStar: ("`try` is not part of the language", "test for the condition with `if`"),
    ast.Import: ("`import` is not part of the language", "import at the top of the file"),
    ast.ImportFrom: ("`import` is not part of the language", "import at the top of the file"),
    ast.Global: ("`global` is not part of the language", "pass the value as an argument and return the result"),
    ast.Nonlocal: ("`nonlocal` is not part of the language", "pass the value as an argument and return the result"),
}
"""Statements that are refused everywhere: message and help."""

REFUSED_EXPRESSIONS: dict[type[ast.expr], tuple[str, str]] = {
    ast.Lambda: (
        "a `lambda` stands only behind `name =`, once for each name, and where a Python function takes one",
        "define it so, and call it",
    ),
    ast.Dict: (
        "a dictionary is written whole, with literals as keys, under one name, and is not changed or returned",
        "use a local variable for each key, or a tensor that is indexed by the key; return a tuple of tensors",
    ),
    ast.Set: ("a set is not part of the language", "use separate local variables"),
    ast.SetComp: ("a comprehension is not part of the language", "write a `for` loop"),
    ast.DictComp: ("a comprehension is not part of the language", "write a `for` loop"),
    ast.Await: ("`await` is not part of the language", "call a plain function"),
    ast.Yield: ("`yield` is not part of the language", "store into a tensor"),
    ast.YieldFrom: ("`yield` is not part of the language", "store into a tensor"),
}
"""Expressions that are refused everywhere: message and help."""


class FailedAssertError(CompileError, AssertionError):
    """An assert of the host part that fails for every call with arguments of these types."""


@cache
def certain_failure(kind: FailureKind) -> type[CompileError]:
    """Return the class of what tells that the host part raises in every call with arguments of these types."""
    if kind is FailureKind.ASSERTION:
        return FailedAssertError
    return type("CertainFailureError", (CompileError, kind.exception), {})


class WrongRankError(CompileError, TypeError):
    """A tensor argument has a number of dimensions with which the function cannot be compiled, and others work."""


class SharedRowError(CompileError):
    """Python would see a row change under another name: the ranks of tensors are not at fault."""


BUILTINS = frozenset(
    "range len min max abs int float bool complex round pow divmod tuple list sum any all enumerate zip reversed "
    "isinstance iter sorted ord".split()
)
"""The builtin functions that may be called on elements."""
REDUCTIONS = {
    "builtins.sum": "sum",
    "builtins.min": "min",
    "builtins.max": "max",
    "builtins.any": "any",
    "builtins.all": "all",
    "math.prod": "prod",
}
"""The functions of a generator expression."""
GENERATOR = (
    "a generator stands only in tuple, list, sum, min, max, any, all and math.prod",
    "write a `for` loop, or `sum` for `math.fsum`",
)
"""The refusal of another generator."""
SUPPORTED = (
    "supported are arithmetic, min, max, sum, abs, round, int, float, bool, complex, pow, divmod, len, math.*, cmath.*"
    " and helpers"
)
"""Advice where another function is called."""
INSTEAD = {
    "builtins.print": "leave it out, and step through `.python(...)` of the operator in a debugger; or print in the"
    " function before it is decorated",
    "builtins.str": "write an f-string as the message of the `assert`",
    "builtins.type": "leave it out: annotations say the types; `x.dtype` and `x.ndim` can be asked for",
    "builtins.next": "give it a generator and what holds without an item: `next((k for k in range(n) if x[k] > 0), n)`",
    "builtins.set": "mark in a tensor of bool what is in the set",
    "builtins.dict": "use local variables, or a tensor that is indexed by the key",
    "builtins.open": "do that outside of the operator, and pass what it gives",
    "builtins.input": "do that outside of the operator, and pass what it gives",
    "builtins.breakpoint": "leave it out, and step through `.python(...)` of the operator in a debugger",
}
"""Advice where one of these builtins is called."""


def error(code: str, message: str, loc: Location, advice: str) -> CompileError:
    """Return the exception with one diagnostic, to be raised."""
    return CompileError(Diagnostic(code=code, message=message, loc=loc, help=advice))


def other_device(named: str, device: str, loc: Location) -> CompileError:
    """Return the refusal of a tensor that is made elsewhere than the arguments are."""
    message = f"a tensor is made on {named!r} here, and the arguments are on {device!r}"
    return error("BW301", message, loc, "write `device=x.device` of an argument, or leave it out")


def unassigned(target: ast.expr, loc: Location) -> CompileError:
    """Return the refusal of an assignment to something that is no name and no element."""
    if isinstance(target, ast.Attribute):
        message = f"`{ast.unparse(target)}` is an attribute, and a loop does not store into objects"
        advice = "assign to a local variable; what is to be kept goes into a tensor, or is returned"
        return error("BW002", message, loc, advice)
    return error("BW002", "this cannot be assigned to", loc, "assign to a name or an element")


def unsupported(message: str, loc: Location, advice: str) -> CompileError:
    """Return the refusal of something that the language has, but not in this place."""
    return error("BW901", message, loc, advice)
