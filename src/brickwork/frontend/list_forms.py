"""Which expressions make lists, and which names are lists that are stored into or indexed by variables; by syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.syntax import all_nodes

CHANGING = frozenset("append appendleft clear extend insert pop popleft remove reverse sort".split())
"""The methods of lists that change them as a whole."""


def grown_names(function: ast.AST) -> frozenset[str]:
    """Return the names on which such a method is called, or that get more items by `+=`, as the source shows it."""
    found: set[str] = set()
    for node in all_nodes(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in CHANGING:
                found.add(name)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List() | ast.ListComp()):
                found.add(name)
            case _:
                pass
    pairs = [(one, other.id) for one, other in _assignments(function) if isinstance(other, ast.Name)] if found else []
    while more := {name for pair in pairs if found & {*pair} for name in pair} - found:
        found |= more
    return frozenset(found)


def is_filtered(node: ast.expr) -> bool:
    """Return whether a list has as many items as pass a test, or as several loops give."""
    return isinstance(node, ast.ListComp) and (
        len(node.generators) > 1 or any(clause.ifs for clause in node.generators)
    )


def is_bounded(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression is `bw.bounded(n)`."""
    return isinstance(node, ast.Call) and intrinsic(resolve(node.func, captured, local)) == "brickwork.bounded"


def is_sorted(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression is `sorted(...)`."""
    return isinstance(node, ast.Call) and intrinsic(resolve(node.func, captured, local)) == "builtins.sorted"


def is_deque(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression is `deque(...)`."""
    return isinstance(node, ast.Call) and intrinsic(resolve(node.func, captured, local)) == "collections.deque"


def is_made_to_grow(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression is a call that gives a list of a length of its own."""
    return any(is_made(node, captured, local) for is_made in (is_bounded, is_sorted, is_deque))


def is_list(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression makes a new list."""
    if isinstance(node, ast.List | ast.ListComp) or repeated(node) is not None:
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return is_list(node.left, captured, local) or is_list(node.right, captured, local)
    if wrapped(node, captured, local) is not None or is_made_to_grow(node, captured, local):
        return True
    return copied(node, captured, local) is not None


def made_lists(node: ast.AST, captured: Mapping[str, object], local: frozenset[str]) -> frozenset[str]:
    """Return the names that get new lists in a tree."""
    return frozenset(target for target, found in _assignments(node) if is_list(found, captured, local))


def repeated(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the list and the count of `[0] * n`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for made, count in ((node.left, node.right), (node.right, node.left)):
        if isinstance(made, ast.List | ast.ListComp):
            return made, count
    return None


def wrapped(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> ast.expr | None:
    """Return the list in `tuple([...])` and `list([...])`; what a generator makes is written so."""
    match node:
        case ast.Call(args=[ast.List() | ast.ListComp() as inner], keywords=[]):
            made = intrinsic(resolve(node.func, captured, local))
            return inner if made in {"builtins.tuple", "builtins.list"} else None
        case _:
            return None


def copied(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> ast.expr | None:
    """Return what `a[:]`, `list(a)` or `a.copy()` copies."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Slice(lower=None, upper=None, step=None)):
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="copy"), args=[], keywords=[]):
            return inner
        case ast.Call(args=[ast.Name() | ast.Subscript() as inner], keywords=[]):
            return inner if intrinsic(resolve(node.func, captured, local)) == "builtins.list" else None
        case _:
            return None


def list_names(
    function: ast.FunctionDef, captured: Mapping[str, object], local: frozenset[str], stored: frozenset[str]
) -> frozenset[str]:
    """Return the names that are lists of the compiled part: made by a list's form and stored into, or of any length.

    `stored` are the names whose items are stored into, directly or through another name.
    """
    made: set[str] = set()
    sized: set[str] = set()
    flows: list[tuple[str, str]] = []
    for target, given in _assignments(function):
        source = given
        while isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
            source = source.value
        if is_list(source, captured, local):
            made.add(target)
            if source is not given or _has_run_time_length(source) or is_made_to_grow(source, captured, local):
                sized.add(target)
            inner = copied(source, captured, local)
            if isinstance(inner, ast.Name):
                flows.append((target, inner.id))
        elif isinstance(source, ast.Name):
            flows.append((target, source.id))
    found = made & (stored | sized)
    while True:
        more = {target for target, source in flows if source in found} | {
            source for target, source in flows if target in found and source in made
        }
        if more <= found:
            return frozenset(found)
        found |= more


def _assignments(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, source: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(source, ast.Tuple):
        for part, item in zip(target.elts, source.elts, strict=False):
            yield from _pairs(part, item)
    elif isinstance(target, ast.Name):
        yield target.id, source


def _has_run_time_length(node: ast.expr) -> bool:
    """Return whether a list is a comprehension, or repeated other than a literal number of times."""
    match node:
        case ast.ListComp() | ast.Call(args=[ast.ListComp()]):
            return True
        case ast.BinOp(op=ast.Add()):
            return _has_run_time_length(node.left) or _has_run_time_length(node.right)
        case _:
            parts = repeated(node)
            return parts is not None and not isinstance(parts[1], ast.Constant)
