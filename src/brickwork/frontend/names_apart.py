"""A name that is used for several things, one after the other, becomes a name for each of them.

    for h in range(H):                      for h in range(H):
        v = logits[b, h]                        v = logits[b, h]
        work[b, h] = v / 2             ->       work[b, h] = v / 2
    for v in range(V):                      for v_2 in range(V):
        total += work[b, v]                     total += work[b, v_2]

A variable has one type, and Python's names have not. Statements have a name of their own where it is not wanted before
nor after them. Uses that begin alike, as indices or with the same kind of value, keep one name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import cast

from brickwork.frontend.comprehensions import FreshNames, names_in
from brickwork.frontend.liveness import Liveness
from brickwork.frontend.syntax import all_nodes

_FOREIGN = (
    ast.Try,
    ast.With,
    ast.Match,
    ast.ClassDef,
    ast.Global,
    ast.Nonlocal,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
)
"""What assigns or ends names in ways that a walk for wanted names does not follow."""
_COUNTERS = frozenset({"range", "prange"})


def tell_names_apart(node: ast.FunctionDef) -> None:
    """Rename in a function what shares its name with something else."""
    nodes = all_nodes(node)
    if any(isinstance(item, _FOREIGN) for item in nodes):
        return
    closed = [item for item in nodes if isinstance(item, ast.FunctionDef | ast.Lambda) and item is not node]
    shared = {name for item in closed for name in names_in(item)} | {
        item.target.id
        for item in nodes
        if isinstance(item, ast.AnnAssign) and item.value is None and isinstance(item.target, ast.Name)
    }
    names = [item for item in nodes if isinstance(item, ast.Name) and item.id not in shared]
    webs = _Webs(node)
    kinds = {id(name): kind for item in nodes for name, kind in _stores(item)}
    fresh = FreshNames(names_in(node))
    for name in dict.fromkeys(item.id for item in names if isinstance(item.ctx, ast.Store)):
        uses = [item for item in names if item.id == name]
        runs: dict[int, list[ast.Name]] = {}
        for item in uses:
            runs.setdefault(webs.of(item), []).append(item)
        chosen: dict[object, str] = {}
        for _, run in sorted(runs.items(), key=lambda item: (item[0] > 0, min(map(_place, item[1])))):
            kind = next((kinds[id(item)] for item in sorted(run, key=_place) if id(item) in kinds), None)
            if kind not in chosen:
                chosen[kind] = fresh.fresh(name) if chosen else name
            for item in run:
                item.id = chosen[kind]


def _place(name: ast.Name) -> tuple[int, int]:
    return name.lineno, name.col_offset


class _Webs:
    """Numbers the statements that share the uses of a name with no others; 0 is what is shared with all."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self._walk = Liveness(node.body)
        self._webs: dict[int, int] = {}
        self._count = 0
        self._block(node.body)

    def of(self, use: ast.Name) -> int:
        """Return the number of the statements that a use belongs to."""
        return self._webs.get(id(use), 0)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            for block in _blocks(statement):
                self._block(block)
        uses = [[item for item in all_nodes(each) if isinstance(item, ast.Name)] for each in statements]
        for name in dict.fromkeys(item.id for own in uses for item in own if isinstance(item.ctx, ast.Store)):
            self._runs(name, statements, uses)

    def _runs(self, name: str, statements: Sequence[ast.stmt], uses: Sequence[list[ast.Name]]) -> None:
        starts = [place for place, item in enumerate(statements) if name not in self._walk.wanted_before(item)]
        ends = [*starts, len(statements)][1:]
        for start, end in zip(starts, ends, strict=True):
            if name in self._walk.wanted_after(statements[end - 1]):
                continue
            run = statements[start:end]
            if any(name in self._walk.wanted_before(item) for each in run for item in _exits(each)):
                continue
            self._count += 1
            for item in (item for own in uses[start:end] for item in own if item.id == name):
                self._webs.setdefault(id(item), self._count)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse"):
        block = getattr(statement, field, None)
        if block and not isinstance(statement, ast.FunctionDef):
            yield cast("list[ast.stmt]", block)


def _exits(statement: ast.stmt, *, inside: bool = False) -> Iterator[ast.stmt]:
    """Yield the `break`s and `continue`s of loops around a statement."""
    if isinstance(statement, ast.Break | ast.Continue) and not inside:
        yield statement
    loop = isinstance(statement, ast.For | ast.While)
    for number, block in enumerate(_blocks(statement)):
        for item in block:
            yield from _exits(item, inside=inside or (loop and number == 0))


def _stores(node: ast.AST) -> Iterator[tuple[ast.Name, object]]:
    """Yield the names that a node gives a value of its own, and what kind of value that is."""
    match node:
        case ast.For(target=ast.Name() as name, iter=ast.Call(func=called)) if _last(called) in _COUNTERS:
            yield name, "index"
        case ast.For(target=target, iter=value):
            yield from _targets(target, value)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _targets(target, value)
        case _:
            pass


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, object]]:
    match target, value:
        case ast.Name(), ast.Constant(value=constant):
            yield target, type(constant)
        case ast.Name(), _:
            yield target, frozenset(item.id for item in all_nodes(value) if isinstance(item, ast.Name))
        case (ast.Tuple(elts=left), ast.Tuple(elts=right)) if len(left) == len(right):
            for name, each in zip(left, right, strict=True):
                yield from _targets(name, each)
        case (ast.Tuple(elts=left), _):
            for name in left:
                yield from _targets(name, value)
        case _:
            pass


def _last(called: ast.expr) -> str | None:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None
