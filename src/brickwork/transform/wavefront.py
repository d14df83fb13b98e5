"""Loop skewing: runs a nest along its diagonals, where an iteration needs those before it in both loops.

    for i in range(1, n):                            for d in range(2, n + m - 1):
        for j in range(1, m):                ->          for i in range(max(1, d - m + 1), min(n, d)):
            a[i, j] = a[i - 1, j] + a[i, j - 1]              a[i, d - i] = a[i - 1, d - i] + a[i, d - i - 1]

Legal where each dependence between two iterations leads to a later diagonal `slope * i + j`: the iterations of one
diagonal are independent then. Only for grids, whose host launches a diagonal at a time: on a processor a diagonal walks
through memory across the rows, and threads would meet after each. The numbers of diagonals must not wrap: so the bounds
are known to be small, and where that rests on a guard (for scalar arguments) the nest is not skewed for the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from brickwork.analysis.analyse import analyse
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.polynomial import Polynomial, interval_of
from brickwork.analysis.races import Facts, may_precede
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis, Bound, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Check,
    Expression,
    For,
    Kernel,
    Node,
    Random,
    Read,
    Rebind,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import jumps_out

WAVEFRONT_NUMBERS = 3_800_000
"""Numbers of the indices made in here start from this."""
BOUND_LIMIT = 2**60
"""Bounds of loops beyond plus or minus this could make the numbers of diagonals wrap."""
DEPTH = 2
"""Loops of a nest that has diagonals: with loops inside, an iteration is more than a thread should do."""
SLOPES = (1, 2)
"""What a step of the outer loop adds to the number of a diagonal: 2 where an iteration needs the one right above it."""


@legality
def wavefront(kernel: Kernel, analysis: Analysis) -> tuple[Kernel, Analysis]:
    """Return the kernel with nests along their diagonals, and its analysis; `analysis` is of this kernel.

    What the analysis of the result does not prove to be better stays as it was.
    """
    slopes = diagonals(kernel, analysis)
    if not slopes:
        return kernel, analysis
    numbers = count(WAVEFRONT_NUMBERS)

    def visit(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, For) or statement.index not in slopes:
            return (statement,)
        return (_skewed(statement, slopes[statement.index], numbers),)

    changed = replace(kernel, body=rewrite_statements(kernel.body, visit))
    found = analyse(changed)
    proved = all(found.loops[index].independent for index in slopes)
    return (changed, found) if proved and _checks(found) <= _checks(analysis) else (kernel, analysis)


def _checks(analysis: Analysis) -> int:
    return sum(verdict.bound is Bound.CHECKED for verdict in analysis.bounds.values())


@legality
def diagonals(kernel: Kernel, analysis: Analysis) -> dict[Symbol, int]:
    """Return the nests, by their outer loop's index, whose diagonals are independent, and the slope of these."""
    if kernel.may_alias:
        return {}
    finder = _Finder(Facts(analysis.model, Solver(), analysis.bounds), analysis, live_after_loops(kernel.body))
    found: dict[Symbol, int] = {}
    for node in walk(kernel.body):
        inside = [inner for inner in statements(node) if isinstance(inner, For)]
        if isinstance(node, For) and len(inside) == DEPTH and (slope := finder.slope(node)):
            found[node.index] = slope
    return found


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds nests of a kernel that can run along diagonals."""

    facts: Facts
    analysis: Analysis
    live: dict[Symbol, frozenset[Symbol]]

    @legality
    def slope(self, outer: For) -> int:
        """Return the slope of the diagonals of a nest, or 0 where there are none."""
        if len(outer.body) != 1 or not isinstance(inner := outer.body[0], For) or not self.is_pure(outer, inner):
            return 0
        loops = [self.loop(outer), self.loop(inner)]
        accesses = [item for item in self.analysis.accesses if loops[1] in item.loops]
        pairs = [
            (one, other)
            for one in accesses
            for other in accesses
            if (one.store or other.store) and one.tensor == other.tensor
        ]
        return next(
            (
                slope
                for slope in SLOPES
                if not any(may_precede(self.facts, (loops[0], loops[1]), slope, one, other) for one, other in pairs)
            ),
            0,
        )

    @legality
    def is_pure(self, outer: For, inner: For) -> bool:
        """Whether both loops are in the way of one another, and nothing but elements passes between iterations."""
        verdicts = [self.analysis.loops[loop.index] for loop in (outer, inner)]
        kinds = [None if item.conflict is None or item.independent else item.conflict.kind for item in verdicts]
        if kinds != [ConflictKind.ELEMENTS] * 2 or outer.claimed or inner.claimed:
            return False
        if outer.index in read_symbols((inner.start, inner.stop)):
            return False
        if not all(self.is_small(bound) for loop in (outer, inner) for bound in self.bounds(loop)):
            return False
        if any(map(jumps_out, inner.body)) or any(
            isinstance(node, Check | Random | Rebind | While) for node in walk(inner.body)
        ):
            return False
        return not (live_before(inner.body, NONE) | self.live.get(outer.index, NONE)) & assigned_symbols(inner.body)

    def bounds(self, node: For) -> tuple[Polynomial, Polynomial]:
        loop = self.loop(node)
        return loop.start, loop.stop

    @legality
    def is_small(self, bound: Polynomial) -> bool:
        """Whether sums of a bound and multiples of another cannot wrap."""
        interval = interval_of(bound, self.analysis.model.intervals)
        low, high = interval.low, interval.high
        return low is not None and high is not None and low >= -BOUND_LIMIT and high <= BOUND_LIMIT

    def loop(self, node: For) -> Loop:
        return next(loop for loop in self.analysis.model.loops if loop.node.index == node.index)


def _skewed(outer: For, slope: int, numbers: Iterator[int]) -> For:
    """Return the nest over its diagonals `slope * i + j`."""
    inner = outer.body[0]
    if not isinstance(inner, For):
        raise TypeError("the loops of a nest stand directly in one another")
    diagonal = Symbol(f"{inner.index.name}_diagonal", next(numbers), INT64)
    one, steep, here = build.integer(1), build.integer(slope), build.read(diagonal)

    def times(value: Expression) -> Expression:
        return build.mul(value, steep) if slope > 1 else value

    def rows(value: Expression) -> Expression:
        return build.apply("floordiv", value, steep) if slope > 1 else value

    # slope * i + j = d with j < stop: i > (d - stop) / slope; with j >= start: i <= (d - start) / slope.
    first = build.add(rows(build.sub(here, inner.stop)), one)
    last = build.add(rows(build.sub(here, inner.start)), one)
    moved = build.sub(here, times(build.read(outer.index)))

    def visit(node: Node) -> Node:
        return moved if isinstance(node, Read) and node.symbol == inner.index else node

    along = replace(
        inner,
        index=outer.index,
        start=build.apply("maximum", outer.start, first),
        stop=build.apply("minimum", outer.stop, last),
        body=tuple(rewrite(statement, visit) for statement in inner.body),
    )
    lowest = build.add(times(outer.start), inner.start)
    highest = build.sub(build.add(times(build.sub(outer.stop, one)), inner.stop), one)
    # Where one of the loops is empty so are all diagonals.
    return replace(outer, index=diagonal, start=lowest, stop=build.add(highest, one), body=(along,))
