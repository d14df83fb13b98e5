"""Which variables need memory, and which differ between lanes (divergence): facts that emission asks for.

Not in here: emission. Both facts err towards the general case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import count, permutations
from typing import Any

from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Continue,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Read,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, children, statements, walk
from brickwork.legality import hazard
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Uses:
    """Where variables are assigned and read: the block, as the way down to it, and the turn in source order."""

    assigned: dict[Symbol, list[tuple[tuple[int, ...], int]]] = field(default_factory=dict[Symbol, Any])
    read: dict[Symbol, list[tuple[tuple[int, ...], int]]] = field(default_factory=dict[Symbol, Any])
    turns: Iterator[int] = field(default_factory=count)

    def note(self, nodes: Iterable[Node], place: tuple[int, ...]) -> None:
        """Note the reads in `nodes`."""
        for node in walk(nodes):
            if isinstance(node, Read):
                self.read.setdefault(node.symbol, []).append((place, next(self.turns)))

    def assign(self, symbol: Symbol, place: tuple[int, ...]) -> None:
        """Note an assignment."""
        self.assigned.setdefault(symbol, []).append((place, next(self.turns)))


def bound_symbols(block: Block) -> frozenset[Symbol]:
    """Return the variables of which each read sees one assignment, which is before it in its block or one around it.

    Several assignments may be in blocks of which none is in another (copies of one loop, say).
    """
    uses = _Uses()
    _collect(block, (), uses)
    return frozenset(
        symbol
        for symbol, places in uses.assigned.items()
        if not any(_holds(one, other) for one, other in permutations([place for place, _ in places], 2))
        and all(
            any(_holds(place, where) and turn < when for place, turn in places)
            for where, when in uses.read.get(symbol, ())
        )
    )


def _holds(outer: tuple[int, ...], inner: tuple[int, ...]) -> bool:
    return inner[: len(outer)] == outer


def _collect(block: Block, place: tuple[int, ...], uses: _Uses) -> None:
    """Note where variables are assigned and read in a block."""
    for number, statement in enumerate(block):
        match statement:
            case If():
                uses.note((statement.condition,), place)
                _collect(statement.then, (*place, number, 0), uses)
                _collect(statement.otherwise, (*place, number, 1), uses)
            case For():
                uses.note((statement.start, statement.stop), place)
                for reduction in statement.reductions:
                    uses.assign(reduction.symbol, (*place, number, 2))
                _collect(statement.body, (*place, number, 0), uses)
            case While():
                _collect(statement.prelude, (*place, number), uses)
                uses.note((statement.condition,), (*place, number))
                _collect(statement.body, (*place, number, 0), uses)
            case Assign():
                uses.note((statement.value,), place)
                uses.assign(statement.symbol, place)
            case _:
                uses.note((statement,), place)


Names = frozenset[Symbol | Tensor]
"""Variables and locals."""


@hazard
def may_vary(expression: Expression, varying: Names) -> bool:
    """Return whether lanes may disagree on an expression, given the variables and locals that may differ."""
    return any(
        (isinstance(node, Read) and node.symbol in varying) or (isinstance(node, Load) and node.tensor in varying)
        for node in walk(expression)
    )


def moves_by_itself(index: Expression, symbol: Symbol) -> bool:
    """Whether an index is another one wherever a loop's is, as far as one sees without what elements say."""
    match index:
        case Read():
            return index.symbol == symbol
        case Apply(operator=operator, operands=operands) if operator.name in {"add", "sub", "mul", "neg"}:
            return any(moves_by_itself(each, symbol) for each in operands)
        case Apply(operator=operator, operands=(_, *ways)) if operator.name == "select":
            return all(moves_by_itself(each, symbol) for each in ways)
        case _:
            return False


def varying_symbols(loop: For) -> Names:
    """Return what may differ between lanes, each of which runs an iteration of `loop`."""
    locals_ = {node.tensor for node in statements(loop.body) if isinstance(node, Local) and not node.values}
    found: Names = frozenset({loop.index, *(reduction.symbol for reduction in loop.reductions), *locals_})
    while (more := found | _assigned_varying(loop.body, found, divergent=False)) != found:
        found = more
    return found


def _assigned_varying(block: Block, varying: Names, *, divergent: bool) -> frozenset[Symbol]:
    found: set[Symbol] = set()
    for statement in block:
        match statement:
            case Assign():
                if divergent or may_vary(statement.value, varying):
                    found.add(statement.symbol)
            case If():
                inner = divergent or may_vary(statement.condition, varying)
                found |= _assigned_varying(statement.then, varying, divergent=inner)
                found |= _assigned_varying(statement.otherwise, varying, divergent=inner)
            case For():
                inner = divergent or diverges(statement, varying)
                if may_vary(statement.start, varying):
                    found.add(statement.index)
                found |= _assigned_varying(statement.body, varying, divergent=inner)
            case While():
                inner = divergent or diverges(statement, varying)
                found |= _assigned_varying((*statement.prelude, *statement.body), varying, divergent=inner)
            case _:
                pass
    return frozenset(found)


@hazard
def diverges(loop: For | While, varying: Names) -> bool:
    """Return whether lanes may leave `loop`, or skip the rest of an iteration, at different times."""
    bounds = (loop.start, loop.stop) if isinstance(loop, For) else (loop.condition,)
    body = loop.body if isinstance(loop, For) else (*loop.prelude, *loop.body)
    return any(may_vary(bound, varying) for bound in bounds) or leaves_divergently(body, varying)


@hazard
def leaves_divergently(block: Block, varying: Names, *, divergent: bool = False) -> bool:
    """Return whether `block` has a `break` or `continue` of the loop around it that only some lanes may take."""
    for statement in block:
        match statement:
            case Break() | Continue():
                if divergent:
                    return True
            case If():
                inner = divergent or may_vary(statement.condition, varying)
                if any(
                    leaves_divergently(arm, varying, divergent=inner) for arm in (statement.then, statement.otherwise)
                ):
                    return True
            case _:
                pass
    return False


@hazard
def leaves(statement: Statement) -> bool:
    """Return whether `statement` may hold a `break` or `continue` of the loop around it."""
    if isinstance(statement, If):
        return any(leaves(inner) for inner in (*statement.then, *statement.otherwise))
    return isinstance(statement, Break | Continue)


def private_symbols(loop: For) -> frozenset[Symbol]:
    """Return the variables that each iteration of a parallel or vector loop has for itself."""
    return assigned_symbols(loop.body) - {reduction.symbol for reduction in loop.reductions}


def statement_count(block: Block) -> int:
    """Return the number of nodes in a block: a measure of its code."""
    return sum(1 + sum(1 for _ in children(node)) for node in walk(block))
