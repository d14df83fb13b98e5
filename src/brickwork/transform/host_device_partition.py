"""Partitions a scheduled kernel: statements that run on the host, nests of the grid, code in order in one thread.

The host runs control flow that has nests inside, and the arithmetic that it needs, as long as all of it is known
without asking the device. Invariant: a variable is the host's everywhere or the device's everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import cast

from brickwork.ir.answers import Answers
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Continue,
    For,
    If,
    Node,
    Rebind,
    Role,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import blocks_in, rewrite, statements
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

Symbols = frozenset[Symbol]
GRID = frozenset({Role.PARALLEL, Role.BLOCK})
"""The roles of loops that a launch runs."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Answers for the statements of one kernel; `device` are the variables whose values only the device knows.

    `hosted` has what `is_host` answered: the answer about a statement needs those about all that is in it.
    """

    device: Symbols
    hosted: Answers[Statement, bool] = field(
        init=False, default_factory=Answers[Statement, bool], compare=False, repr=False
    )

    @legality
    def is_known(self, *roots: Node) -> bool:
        """Whether the host can evaluate expressions."""
        asks = effects(roots)
        return asks.plain and not asks.functions and asks.reads.isdisjoint(self.device)

    @legality
    def is_nest(self, statement: Node) -> bool:
        """Whether a statement is a loop that a launch runs."""
        return (
            isinstance(statement, For)
            and statement.role in GRID
            and self.is_known(statement.start)
            and self.is_known(statement.stop)
        )

    def nest(self, loop: For) -> tuple[For, ...]:
        """Return the perfectly nested loops of one launch, outermost first."""
        levels = [loop]
        while self._is_level(levels):
            (inner,) = levels[-1].body
            levels.append(cast("For", inner))
        return tuple(levels)

    @legality
    def _is_level(self, levels: list[For]) -> bool:
        """Whether what stands in the last of some levels is a level, too: all of them begin where the host says."""
        body, indices = levels[-1].body, {level.index for level in levels}
        if levels[-1].width > 1 or len(body) != 1 or not isinstance(inner := body[0], For):
            return False
        if inner.role is not levels[-1].role or inner.reductions:
            return False
        return Partition(self.device | indices).is_known(inner.start, inner.stop)

    def has_nests(self, statement: Node) -> bool:
        """Whether there is a nest in a statement."""
        return any(self.is_nest(node) for node in statements(statement))

    def is_host(self, statement: Statement) -> bool:
        """Whether the host runs a statement; nests and serial pieces may be in it."""
        return self.hosted.of(statement, lambda item: self._may_be_host(item) and self._is_worth(item))

    @legality
    def _may_be_host(self, statement: Statement) -> bool:
        """Whether the host knows what a statement itself asks and computes, and nothing on the device leaves it."""
        match statement:
            case Assign(symbol=symbol, value=value):
                return symbol not in self.device and self.is_known(value)
            case Check(condition=condition, values=values):
                return self.is_known(condition, *values)
            case If(condition=condition):
                return self.is_known(condition)
            case For(start=start, stop=stop, body=body, role=role):
                return role is Role.SEQUENTIAL and self.is_known(start, stop) and not self._leaves(body)
            case While(prelude=prelude, condition=condition, body=body):
                return self.is_known(condition) and all(map(self.is_host, prelude)) and not self._leaves(body)
            case Break() | Continue() | Rebind():
                return True
            case _:
                return False

    def _is_worth(self, statement: Statement) -> bool:
        """Whether there is more for the host in a statement than to ask whether one thread runs it."""
        match statement:
            case If(then=then, otherwise=otherwise):
                inner = (*then, *otherwise)
            case For(body=body) | While(body=body):
                inner = body
            case _:
                return True
        if effects(statement).rebinds:
            return True
        return self.has_nests(statement) or all(map(self.is_host, inner))

    @hazard
    def _leaves(self, block: Block) -> bool:
        """Whether what the device runs may leave the loop that a block is the body of."""
        for statement in block:
            if not self.is_host(statement):
                if effects(statement).leaves:
                    return True
            elif isinstance(statement, If) and self._leaves((*statement.then, *statement.otherwise)):
                return True
        return False


def partition(block: Block, device: Iterable[Symbol] = ()) -> Partition:
    """Return where the statements of a kernel's body run; `device` are variables known to be the device's."""
    places = Partition(frozenset(device))
    while (found := places.device | _assigned(block, places)) != places.device:
        places = Partition(found)
    return places


@legality
def _assigned(block: Block, places: Partition) -> Symbols:
    """Return the variables that the device gives a value which is used outside of an iteration of a nest."""
    found: set[Symbol] = set()
    for statement in block:
        if places.is_host(statement):
            found.update(*(_assigned(inner, places) for inner in blocks_in(statement)))
        elif places.is_nest(statement):
            found |= _accumulated(statement)
        else:
            # Not the indices of loops: the host may run another copy of such a loop, and knows its index.
            found |= {node.symbol for node in statements(statement) if isinstance(node, Assign)}
    return frozenset(found)


def _accumulated(nest: Statement) -> Symbols:
    """Return what a nest accumulates into."""
    return frozenset(item.symbol for item in nest.reductions) if isinstance(nest, For) else frozenset()


def launched(block: Block, places: Partition) -> Symbols:
    """Return the indices of the loops that launches run: of nests that the host reaches, and of loops in them."""
    found: set[Symbol] = set()
    for statement in block:
        if places.is_nest(statement):
            found |= {node.index for node in statements(statement) if isinstance(node, For)}
        elif places.is_host(statement):
            found.update(*(launched(inner, places) for inner in blocks_in(statement)))
    return frozenset(found)


@hazard
def outlives_check(block: Block, places: Partition) -> bool:
    """Whether a launch follows one in which one thread checks: it must do nothing where a check has failed."""
    return _after_check(block, places, False)[0]


@legality
def _after_check(block: Block, places: Partition, checked: bool) -> tuple[bool, bool]:
    """Return whether a launch follows a check, and whether there is one by the end, given whether one came before.

    What one thread runs is one launch up to the next nest, and to what the host does.
    """
    followed = own = False
    for statement in block:
        if not places.is_nest(statement) and not places.is_host(statement):
            followed = checked
            own = own or bool(effects(statement).fails)
            continue
        checked = checked or own
        if places.is_nest(statement):
            followed = checked
            continue
        ends: list[tuple[bool, bool]] = []
        match statement:
            case If(then=then, otherwise=otherwise):
                ends = [_after_check(part, places, checked) for part in (then, otherwise)]
            case For(body=body) | While(body=body):
                _, again = _after_check(body, places, checked)
                ends = [_after_check(body, places, again)]
            case _:
                pass
        followed = followed or any(end[0] for end in ends)
        checked = checked or any(end[1] for end in ends)
    return followed, checked or own


def in_order(block: Block) -> Block:
    """Return the block with its loops run in order by one thread."""
    return tuple(rewrite(statement, _plain) for statement in block)


def _plain(node: Node) -> Node:
    return replace(node, role=Role.SEQUENTIAL, width=1, across=0, reductions=()) if isinstance(node, For) else node
