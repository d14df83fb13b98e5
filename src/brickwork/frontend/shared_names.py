"""Which functions let two names stand for one row that a loop makes, and see a store through the one in the other.

    prev = cur                    both stand for one row
    cur = torch.zeros(n)          `cur` stands for another one from here on
    cur[0] = 1.0                  and `prev` does not change

Rows that names get from one another are copied, so that a program in which a name is read after the row was stored
into by the other name stays with Python. `copied_rows.py` asks the same of what was lowered, and refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from brickwork.frontend.syntax import all_nodes
from brickwork.legality import hazard
from brickwork.records import dataclass

Known: TypeAlias = frozenset[tuple[str, str, bool]]
"""Pairs of names that may stand for one row; whether it has been stored into by the second name since."""


@hazard
def shares_stored_rows(function: ast.FunctionDef, makes: Callable[[ast.Call], bool]) -> bool:
    """Return whether a name is read that stands for a row which a loop makes, after another name has changed it."""
    loops = (node for node in all_nodes(function) if isinstance(node, ast.For | ast.While))
    assigns = [node for loop in loops for node in all_nodes(loop) if isinstance(node, ast.Assign)]
    pairs = [each for node in assigns for target in node.targets for each in side_by_side(target, node.value)]
    linked = {
        one.id for one, value in pairs if isinstance(one, ast.Name) and isinstance(value, ast.Call) and makes(value)
    }
    names = [(one.id, other.id) for one, other in pairs if isinstance(one, ast.Name) and isinstance(other, ast.Name)]
    for _ in names:
        linked |= {name for pair in names if linked & {*pair} for name in pair}
    walk = _Walk(frozenset(linked))
    walk.block(function.body, frozenset())
    return walk.found


def side_by_side(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with what it is given: of tuples the items."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


@dataclass(slots=True)
class _Walk:
    """Follows the statements; `found`: a name was read whose row another name has changed."""

    names: frozenset[str]
    found: bool = False

    def block(self, statements: Sequence[ast.stmt], known: Known) -> Known:
        """Return what is known after some statements. What leaves a loop early is taken to go on, too."""
        for node in statements:
            known = self.statement(node, known)
        return known

    def statement(self, node: ast.stmt, known: Known) -> Known:
        """Return what is known after a statement."""
        match node:
            case ast.Assign():
                self.reads(
                    (node.value, *(target for target in node.targets if not isinstance(target, ast.Name))), known
                )
                given = [pair for target in node.targets for pair in side_by_side(target, node.value)]
                return self.stored(node.targets, self.bound(given, known, chained=len(node.targets) > 1))
            case ast.AugAssign():
                self.reads((node.value, node.target), known)
                return self.stored([node.target], known, whole=True)
            case ast.For() | ast.While():
                self.reads((node.iter if isinstance(node, ast.For) else node.test,), known)
                while (after := known | self.block(node.body, known)) != known:
                    known = after
                return known | self.block(node.orelse, known)
            case ast.If():
                self.reads((node.test,), known)
                return self.block(node.body, known) | self.block(node.orelse, known)
            case _:
                self.reads((node,), known)
                return known

    @hazard
    def bound(self, pairs: Sequence[tuple[ast.expr, ast.expr]], known: Known, *, chained: bool) -> Known:
        """Return what is known after names are given rows, all at once."""
        targets = [target.id for target, _ in pairs if isinstance(target, ast.Name)]
        left = {(one, other, stale) for one, other, stale in known if one not in targets and other not in targets}
        made: set[tuple[str, str, bool]] = {each for each in known if each[0] not in targets and each[2]}
        sources = {
            target.id: found.id
            for target, found in pairs
            if isinstance(target, ast.Name) and isinstance(found, ast.Name) and {target.id, found.id} <= self.names
        }
        for target, source in sources.items():
            same = {source} | {other for one, other, _ in known if one == source}
            holders = {name for name in same if name not in targets} | {
                name for name, given in sources.items() if given in same and name != target
            }
            made |= {pair for name in holders for pair in ((target, name, False), (name, target, False))}
        if chained:
            together = [name for name in targets if name in self.names]
            made |= {(one, other, False) for one in together for other in together if one != other}
        return frozenset(left | made)

    @hazard
    def stored(self, targets: Sequence[ast.expr], known: Known, *, whole: bool = False) -> Known:
        """Return what is known after stores into items of rows; `whole`: a name alone is a row that changes, too."""
        places = [item for target in targets for item in all_nodes(target) if isinstance(item, ast.Subscript)]
        stored = {_owner(item) for item in places if isinstance(item.ctx, ast.Store)}
        if whole:
            stored |= {target.id for target in targets if isinstance(target, ast.Name)}
        return frozenset((one, other, stale or other in stored) for one, other, stale in known)

    @hazard
    def reads(self, nodes: Sequence[ast.AST], known: Known) -> None:
        """Note whether something reads a name whose row another name has changed."""
        stale = {one for one, _, changed in known if changed}
        self.found |= any(isinstance(item, ast.Name) and item.id in stale for node in nodes for item in all_nodes(node))


def _owner(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
