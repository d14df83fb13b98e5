"""The heads of `for` loops by syntax alone: what is run over, and which names stand for what of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from brickwork.frontend.environment import LOOPS, helper, intrinsic, resolve
from brickwork.frontend.syntax import all_nodes

PARTS = frozenset({"builtins.enumerate", "builtins.zip", "builtins.reversed", "builtins.tuple", "builtins.list"})
"""Functions of what is run over."""


def head_name(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> str | None:
    """Return the function of the language or of Python that the head of a loop calls, or None."""
    return intrinsic(resolve(node.func, captured, local)) if isinstance(node, ast.Call) else None


_HAVE_ITEMS = ast.Name | ast.Attribute | ast.Subscript | ast.Tuple | ast.List | ast.ListComp | ast.IfExp | ast.BinOp
"""What a loop may run over by its form."""


def is_iterable(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether a loop may run over an expression, as far as its form tells."""
    if isinstance(node, ast.Call):
        name = head_name(node, captured, local)
        if name == "builtins.sorted" or helper(resolve(node.func, captured, local)) is not None:
            return True
        parts = node.args[:1] if name == "builtins.enumerate" else node.args
        return name in LOOPS or (name in PARTS and all(is_iterable(item, captured, local) for item in parts))
    return isinstance(node, _HAVE_ITEMS)


def sources(
    target: ast.expr, node: ast.expr, captured: Mapping[str, object], local: frozenset[str]
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (name or names, what its items come from) for the head of a loop; nothing for numbers."""
    name = head_name(node, captured, local)
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    match node, name:
        case ast.Call(args=[inner, *_]), "builtins.enumerate":
            if len(parts) == 2:
                yield from sources(parts[1], inner, captured, local)
        case ast.Call(args=[inner]), "builtins.reversed" | "builtins.tuple" | "builtins.list":
            yield from sources(target, inner, captured, local)
        case ast.Call(args=items), "builtins.zip":
            for part, item in zip(parts, items, strict=False):
                yield from sources(part, item, captured, local)
        case ast.Call(), _:
            pass
        case ast.Tuple() | ast.List(), _:
            for item in node.elts:
                yield target, item
        case _:
            yield target, node


def jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the jumps of this loop: those under `if`, in the `else` of inner loops, and the `return`s of a helper."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Break | ast.Continue):
            found.append(statement)
        elif isinstance(statement, ast.If):
            found += [*jumps(statement.body), *jumps(statement.orelse)]
        elif isinstance(statement, ast.For | ast.While):
            found += [*jumps(statement.orelse), *returns(statement)]
        elif isinstance(statement, ast.Return):
            found.append(statement)
    return found


def returns(node: ast.AST) -> list[ast.Return]:
    """Return the `return`s in a statement."""
    return [item for item in all_nodes(node) if isinstance(item, ast.Return)]
