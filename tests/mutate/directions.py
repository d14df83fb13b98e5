"""Which way a condition of a marked function leads: to more changes of programs, or to fewer.

A mutant that lets a function refuse more often makes programs slower, never wrong. Where the syntax shows that it is
one of these, it is left out: what is asked is whether a condition that makes a change legal can be dropped unnoticed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Place = tuple[str | int, ...]


def directions(function: ast.FunctionDef, *, hazard: bool) -> dict[Place, int]:
    """Return the places of expressions with 1 if more is allowed where they hold more often, -1 if less is.

    A function of legality allows what it answers True or a value; one of hazards allows what it answers False or None.
    """
    found: dict[Place, int] = {}
    truth = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
    given = {argument.arg for argument in function.args.args}
    for place, node in _places(function, ()):
        match node:
            case ast.Return(value=ast.expr() as value) if truth:
                _note(value, (*place, "value"), -1 if hazard else 1, found)
            case ast.If(test=test, body=[ast.Return(value=ast.Constant(value=bool() as answer))]) if truth:
                _note(test, (*place, "test"), 1 if answer is not hazard else -1, found)
            case ast.If(test=test, body=[ast.Return(value=value)]) if not (truth or hazard) and _refuses(value, given):
                _note(test, (*place, "test"), -1, found)
            case ast.Return(value=ast.IfExp(test=test, body=body, orelse=otherwise)) if not (truth or hazard):
                refused = _refuses(body, given), _refuses(otherwise, given)
                if refused[0] is not refused[1]:
                    _note(test, (*place, "value", "test"), -1 if refused[0] else 1, found)
            case _:
                pass
    return found


def _places(node: ast.AST, place: Place) -> Iterator[tuple[Place, ast.AST]]:
    """Yield the statements inside a node, with their places."""
    for name in ("body", "orelse", "cases"):
        items = getattr(node, name, ())
        for at, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, ast.FunctionDef):
                yield (*place, name, at), item
                yield from _places(item, (*place, name, at))


def _refuses(value: ast.expr | None, given: set[str]) -> bool:
    """Whether an answer is nothing, or what was given, unchanged."""
    match value:
        case None | ast.Constant(value=None) | ast.Tuple(elts=[]):
            return True
        case ast.Name(id=name):
            return name in given
        case _:
            return False


def _note(node: ast.expr, place: Place, direction: int, found: dict[Place, int]) -> None:
    """Note the direction of an expression and of the conditions inside it."""
    found[place] = direction
    match node:
        case ast.BoolOp(values=values):
            for at, value in enumerate(values):
                _note(value, (*place, "values", at), direction, found)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _note(operand, (*place, "operand"), -direction, found)
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp(elt=element, generators=loops)]):
            _note(element, (*place, "args", 0, "elt"), direction, found)
            for at, loop in enumerate(loops):
                for number, test in enumerate(loop.ifs):
                    where = (*place, "args", 0, "generators", at, "ifs", number)
                    _note(test, where, direction if name == "any" else -direction, found)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            _note_kinds(kinds, (*place, "args", 1), direction, found)
        case ast.Compare(ops=[ast.In() | ast.NotIn() as op]):
            found[*place, "comparators", 0] = direction if isinstance(op, ast.In) else -direction
        case ast.NamedExpr(value=value):
            _note(value, (*place, "value"), direction, found)
        case _:
            pass


def _note_kinds(kinds: ast.expr, place: Place, direction: int, found: dict[Place, int]) -> None:
    found[place] = direction
    if isinstance(kinds, ast.BinOp):
        _note_kinds(kinds.left, (*place, "left"), direction, found)
        _note_kinds(kinds.right, (*place, "right"), direction, found)
