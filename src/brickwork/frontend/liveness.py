"""Which local names are still wanted at each statement: a backward walk over a body, by syntax alone.

A name is wanted after a statement if some path from there reads it before it is assigned. The body of a loop may run
no time, but for that of `while True`, which is left by `break` alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from brickwork.frontend.syntax import all_nodes
from brickwork.records import dataclass

Names: TypeAlias = frozenset[str]

NONE: Names = frozenset()


@dataclass(frozen=True, slots=True)
class _Exits:
    """What is wanted where a `break` and a `continue` lead."""

    leave: Names = NONE
    again: Names = NONE


class Liveness:
    """The names wanted after each statement of a body, by the statement's identity."""

    def __init__(self, statements: Sequence[ast.stmt]) -> None:
        """Walk over a function's body; `entry` is what it wants from before."""
        self.after: dict[int, Names] = {}
        self.before: dict[int, Names] = {}
        self._known: dict[int, tuple[Names, Names]] = {}
        self.entry = self._before(statements, NONE, _Exits())

    def wanted_after(self, node: ast.stmt) -> Names:
        """Return what is read later."""
        return self.after.get(id(node), NONE)

    def wanted_before(self, node: ast.stmt) -> Names:
        """Return what is read from there on, with what the statement reads itself."""
        return self.before.get(id(node), NONE)

    def _before(self, statements: Sequence[ast.stmt], after: Names, exits: _Exits) -> Names:
        for node in reversed(statements):
            self.after[id(node)] = self.after.get(id(node), NONE) | after
            after = self._before_statement(node, after, exits)
            self.before[id(node)] = self.before.get(id(node), NONE) | after
        return after

    def _before_statement(self, node: ast.stmt, after: Names, exits: _Exits) -> Names:
        match node:
            case ast.Return():
                return self._effects(node)[0]
            case ast.Break():
                return exits.leave
            case ast.Continue():
                return exits.again
            case ast.If():
                return (
                    self._effects(node.test)[0]
                    | self._before(node.body, after, exits)
                    | self._before(node.orelse, after, exits)
                )
            case ast.For():
                targets = self._effects(node.target)[1]
                done = self._before(node.orelse, after, exits)
                return self._effects(node.iter)[0] | self._turns(node.body, done, after, targets)
            case ast.While():
                done = NONE if _is_endless(node) else self._before(node.orelse, after, exits)
                return self._turns(node.body, done | self._effects(node.test)[0], after, NONE)
            case ast.Delete():
                return after - frozenset(item.id for item in node.targets if isinstance(item, ast.Name))
            case ast.AugAssign(target=ast.Name(id=name)):
                return after | self._effects(node)[0] | {name}
            case _:
                read, written = self._effects(node)
                return (after - written) | read

    def _effects(self, node: ast.AST) -> tuple[Names, Names]:
        """Return what a tree reads and surely assigns, found once: bodies of loops are walked over several times."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = loads(node), frozenset(surely_stored(node))
        return known

    def _turns(self, body: Sequence[ast.stmt], done: Names, leave: Names, targets: Names) -> Names:
        """Return what a loop wants at its head; `done` is wanted when it ends by itself, `leave` after a `break`."""
        head = done
        while True:
            before = self._before(body, head, _Exits(leave, head)) - targets
            if before <= head:
                return head
            head |= before


def _is_endless(node: ast.While) -> bool:
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def loads(node: ast.AST) -> Names:
    """Return the names that a tree reads; those of comprehensions are of no one else."""
    nodes = all_nodes(node)
    names = [item for item in nodes if isinstance(item, ast.Name)]
    targets = [item.target for item in nodes if isinstance(item, ast.comprehension)]
    bound = {item.id for target in targets for item in all_nodes(target) if isinstance(item, ast.Name)}
    return frozenset(item.id for item in names if isinstance(item.ctx, ast.Load)) - bound


def stored(node: ast.AST) -> Iterator[str]:
    """Yield the names that a tree assigns."""
    for item in all_nodes(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            yield item.id


def surely_stored(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement assigns whenever it runs: not in `a and (k := b)`, nor as a comprehension's."""
    passing = (ast.NamedExpr, ast.comprehension)
    nodes = all_nodes(node)
    within = {id(name) for item in nodes if isinstance(item, passing) for name in all_nodes(item.target)}
    for item in nodes:
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and id(item) not in within:
            yield item.id


def inputs(statements: Sequence[ast.stmt], wanted: Names) -> Names:
    """Return the names that statements need, if `wanted` is read after them."""
    walk = Liveness((*statements, *(ast.Expr(ast.Name(name, ast.Load())) for name in sorted(wanted))))
    return walk.entry
