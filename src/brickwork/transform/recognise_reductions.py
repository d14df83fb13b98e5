"""Reduction recognition: searches that note no place, and loops that raise a flag.

    for i in range(n):                       i_place = 0
        if x[i] > best:             ->       for i in range(n):
            best = x[i]                          if x[i] > best: best = x[i]; name = names[i]; i_place = i
            name = names[i]

    for i in range(n):                       raised = 0
        if x[i] != y[i]:            ->       for i in range(n):
            changed = True                       if x[i] != y[i]: raised = max(raised, 1)
                                             if raised > 0: changed = True

Flags are rewritten only in loops that stand in no parallel one: inside of those, one pass in order is less work. On a
grid a block of threads may run what is in order in a parallel one, and shares out what is in that.
Invariant: every variable has the same value after the loop, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from brickwork.analysis.scalars import NONE, live_after_loops
from brickwork.analysis.searches import PLACE_NUMBERS, with_place
from brickwork.analysis.verdicts import Analysis, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    For,
    If,
    Kernel,
    Node,
    Statement,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass

RECOGNISED_NUMBERS = 3_500_000
"""Numbers of the variables made in here start from this."""


def note_places(kernel: Kernel) -> Kernel:
    """Return the kernel with a variable for the place of each search that notes none."""
    live, numbers = live_after_loops(kernel.body), count(PLACE_NUMBERS)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        return with_place(statement, live[statement.index] & assigned_symbols(statement.body), numbers)

    return replace(kernel, body=rewrite_statements(kernel.body, visit))


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
    finder = _Finder(
        frozenset(loop.index for loop in blocked),
        live_after_loops(kernel.body),
        count(RECOGNISED_NUMBERS),
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
class _Finder:
    """Rewrites the loops of one kernel whose indices are `blocked`."""

    blocked: frozenset[Symbol]
    live: dict[Symbol, frozenset[Symbol]]
    numbers: Iterator[int]

    def statement(self, statement: Statement) -> Block:
        """Return a loop, or what does the same with reductions."""
        if not isinstance(statement, For) or statement.index not in self.blocked:
            return (statement,)
        flags = self.flags(statement)
        return self.raised(statement, flags) if flags else (statement,)

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
