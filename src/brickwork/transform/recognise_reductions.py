"""Reduction recognition: loops that note the place of a least or greatest value (argmin), or that raise a flag.

    for i in range(n):                       before = best
        if x[i] > best:                      for i in range(n):
            best = x[i]             ->           if x[i] > best: best = x[i]
            where = i                        place = n
                                             for i in range(n):
                                                 if best > before and x[i] == best: place = min(place, i)
                                             if place < n: best = x[place]; where = place

    for i in range(n):                       raised = 0
        if x[i] != y[i]:            ->       for i in range(n):
            changed = True                       if x[i] != y[i]: raised = max(raised, 1)
                                             if raised > 0: changed = True

`>=` and `<=` keep the last place, as Python does. NaN is never greater, and never equal, so that it is never the place.
Only loops that stand in no parallel one are rewritten: inside of those, one pass in order is less work. On a grid a
block of threads may run what is in order in a parallel one, and shares out what is in that.
Invariant: every variable has the same value after the loop, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from brickwork.analysis.scalars import MIRRORED, NONE, live_after_loops, live_before, without_numbers
from brickwork.analysis.verdicts import Analysis, Bound, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_statements, statements, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

RECOGNISED_NUMBERS = 3_500_000
"""Numbers of the variables made in here start from this."""


def recognise_reductions(kernel: Kernel, analysis: Analysis, *, grid: bool = False) -> Kernel:
    """Return the kernel with its disguised reductions as plain ones, for a `grid` or not; `analysis` is of it."""
    blocked = [
        loop.node
        for loop in analysis.model.loops
        if (conflict := analysis.loops[loop.node.index].conflict) is not None
        and conflict.kind is ConflictKind.VARIABLE
        and _is_shared_out(loop.node, analysis, grid=grid)
    ]
    if not blocked:
        return kernel
    accesses = max((node.access for node in walk(kernel.body) if isinstance(node, Load | Store)), default=-1)
    finder = _Finder(
        frozenset(loop.index for loop in blocked),
        live_after_loops(kernel.body),
        frozenset(number for (number, _), verdict in analysis.bounds.items() if verdict.bound is not Bound.PROVED),
        count(RECOGNISED_NUMBERS),
        count(accesses + 1),
    )
    body = rewrite_statements(kernel.body, finder.statement)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _is_shared_out(loop: For, analysis: Analysis, *, grid: bool) -> bool:
    """Whether threads could share a loop out, were it independent: none around it is, or a block runs the last one."""
    independent = [analysis.loops[around.index].independent for around in _around(loop, analysis)]
    return not any(independent) or (grid and not independent[-1])


def _around(loop: For, analysis: Analysis) -> list[For]:
    """Return the loops that a loop stands in."""
    return [item.node for item in analysis.model.loops if any(node is loop for node in walk(item.node.body))]


@dataclass(frozen=True, slots=True)
class _Arm:
    """`if value <compare> best: best = value; ...`, the last statement of a loop's body."""

    compare: str
    value: Expression
    best: Symbol
    others: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Rewrites the loops of one kernel whose indices are `blocked`; accesses by number in `unproved` may fail."""

    blocked: frozenset[Symbol]
    live: dict[Symbol, frozenset[Symbol]]
    unproved: frozenset[int]
    numbers: Iterator[int]
    accesses: Iterator[int]

    def statement(self, statement: Statement) -> Block:
        """Return a loop, or what does the same with reductions."""
        if not isinstance(statement, For) or statement.index not in self.blocked:
            return (statement,)
        if (arm := self.arm(statement)) is not None and self.is_of_use(statement, arm):
            return self.place(statement, arm)
        flags = self.flags(statement)
        return self.raised(statement, flags) if flags else (statement,)

    # ------------------------------------------------------------ places

    def is_of_use(self, loop: For, arm: _Arm) -> bool:
        """Whether nothing but the places is in the way of a loop that finds them."""
        left = assigned_symbols(loop.body[:-1]) & self.live.get(loop.index, NONE)
        return bool(arm.others) and not left

    @legality
    def arm(self, loop: For) -> _Arm | None:
        """Return the comparison at the end of a loop that does nothing else but compute what is compared."""
        *ahead, last = loop.body
        arm = _arm(last)
        if arm is None or not all(isinstance(item, Assign) for item in ahead):
            return None
        private, kept = assigned_symbols(ahead), assigned_symbols(last)
        if private & kept or live_before(tuple(ahead), NONE) & private:
            return None
        read = read_symbols((*ahead, arm.value, *(item.value for item in arm.others)))
        return None if read & kept or self.may_fail(arm, ahead) else arm

    @hazard
    def may_fail(self, arm: _Arm, ahead: list[Statement]) -> bool:
        """Whether what is noted beside the best value reads what could be out of range, and is not read anyway.

        Only the last of these reads would remain.
        """
        anyway = {without_numbers(node) for node in _loads((*ahead, arm.value))}
        noted = _loads(arm.others)
        return any(node.access in self.unproved and without_numbers(node) not in anyway for node in noted)

    def place(self, loop: For, arm: _Arm) -> Block:
        """Return the loop that finds the best value, the one that finds its place, and what follows from that."""
        first = arm.compare in {"lt", "gt"}
        before = self.variable(arm.best)
        place = Symbol(f"{loop.index.name}_place", next(self.numbers), INT64)
        outside = loop.stop if first else build.sub(loop.start, build.integer(1))
        second = self.copy(loop, build.read(index := self.variable(loop.index)))
        *ahead, last = second
        found = _arm(last)
        if found is None:
            raise TypeError("a copy of a comparison is one")
        hit = build.apply("eq", found.value, build.read(arm.best))
        if first:
            hit = build.apply("logical_and", build.apply(arm.compare, build.read(arm.best), build.read(before)), hit)
        joined = build.apply("minimum" if first else "maximum", build.read(place), build.read(index))
        *again, final = self.copy(loop, build.read(place))
        if not isinstance(final, If):
            raise TypeError("a copy of a comparison is one")
        inside = build.apply("lt" if first else "ge", build.read(place), loop.stop if first else loop.start)
        *head, tail = loop.body
        if not isinstance(tail, If):
            raise TypeError("a comparison stands last")
        best = tuple(item for item in tail.then if isinstance(item, Assign) and item.symbol == arm.best)
        return (
            Assign(symbol=before, value=build.read(arm.best), loc=loop.loc),
            replace(loop, body=(*head, replace(tail, then=best))),
            Assign(symbol=place, value=outside, loc=loop.loc),
            replace(
                loop,
                index=index,
                body=(
                    *ahead,
                    If(condition=hit, then=(Assign(symbol=place, value=joined, loc=last.loc),), loc=last.loc),
                ),
            ),
            If(condition=inside, then=(*again, *final.then), loc=loop.loc),
        )

    def copy(self, loop: For, index: Expression) -> Block:
        """Return a loop's body for an iteration, with accesses of its own, and variables but for what is found."""
        private = {symbol: self.variable(symbol) for symbol in assigned_symbols(loop.body[:-1])}

        def visit(node: Node) -> Node:
            match node:
                case Read(symbol=symbol) if symbol == loop.index:
                    return index
                case Read(symbol=symbol) if symbol in private:
                    return replace(node, symbol=private[symbol])
                case Assign(symbol=symbol) if symbol in private:
                    return replace(node, symbol=private[symbol])
                case Load():
                    return replace(node, access=next(self.accesses))
                case _:
                    return node

        return tuple(rewrite(statement, visit) for statement in loop.body)

    # ------------------------------------------------------------ flags

    @legality
    def flags(self, loop: For) -> dict[Symbol, Assign]:
        """Return the variables that a loop does nothing with but give them one fixed value, each with an assignment."""
        changing = assigned_symbols(loop.body) | {loop.index}
        found: dict[Symbol, Assign] = {}
        for symbol in self.live.get(loop.index, NONE) - read_symbols(loop.body):
            assigns = [node for node in statements(loop.body) if isinstance(node, Assign) and node.symbol == symbol]
            values = {item.value for item in assigns}
            fixed = not effects(values).loads
            if len(values) == 1 and fixed and not read_symbols(values) & changing:
                found[symbol] = assigns[0]
        return found

    def raised(self, loop: For, flags: dict[Symbol, Assign]) -> Block:
        """Return the loop with its flags as reductions, and the flags as they are after it."""
        counters = {symbol: Symbol(f"{symbol.name}_raised", next(self.numbers), INT64) for symbol in flags}

        def visit(node: Node) -> Node:
            if not isinstance(node, Assign) or node.symbol not in counters:
                return node
            counter = counters[node.symbol]
            return replace(
                node, symbol=counter, value=build.apply("maximum", build.read(counter), build.integer(1), loc=node.loc)
            )

        starts = [Assign(symbol=counter, value=build.integer(0), loc=loop.loc) for counter in counters.values()]
        ends = [
            If(condition=build.apply("gt", build.read(counters[symbol]), build.integer(0)), then=(item,), loc=loop.loc)
            for symbol, item in flags.items()
        ]
        return (*starts, rewrite(loop, visit), *ends)

    def variable(self, symbol: Symbol) -> Symbol:
        """Return a new variable called and typed as another."""
        return replace(symbol, number=next(self.numbers))


def _loads(roots: Iterable[Node]) -> Iterator[Load]:
    return (node for node in walk(roots) if isinstance(node, Load))


@legality
def _arm(statement: Statement) -> _Arm | None:
    if not isinstance(statement, If) or statement.otherwise or not isinstance(statement.condition, Apply):
        return None
    compare, operands = statement.condition.operator.name, statement.condition.operands
    assigns = [item for item in statement.then if isinstance(item, Assign)]
    if compare not in MIRRORED or len(assigns) < len(statement.then):
        return None
    targets = [item.symbol for item in assigns]
    for name, value, best in ((compare, *operands), (MIRRORED[compare], *operands[::-1])):
        if not isinstance(best, Read) or targets.count(best.symbol) != 1:
            continue
        place = targets.index(best.symbol)
        if without_numbers(assigns[place].value) == without_numbers(value):
            return _Arm(name, value, best.symbol, (*assigns[:place], *assigns[place + 1 :]))
    return None
