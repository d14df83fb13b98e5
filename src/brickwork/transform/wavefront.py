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
from brickwork.analysis.verdicts import Analysis, Bound, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Expression,
    For,
    Kernel,
    Node,
    Read,
    Statement,
    Symbol,
)
from brickwork.ir.walk import read_symbols, rewrite, rewrite_statements, statements
from brickwork.legality import legality

WAVEFRONT_NUMBERS = 3_800_000
"""Numbers of the indices made in here start from this."""
ROOM = 8
"""Bounds of loops are small if this many times as much fits: then the numbers of diagonals do."""
SLOPES = (1, 2)
"""What a step of the outer loop adds to the number of a diagonal: 2 where an iteration needs the one right above it."""


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


def diagonals(kernel: Kernel, analysis: Analysis) -> dict[Symbol, int]:
    """Return the nests, by their outer loop's index, whose diagonals are independent, and the slope of these."""
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    found: dict[Symbol, int] = {}
    for outer, inner in _nests(kernel):
        nest = _loop(outer, analysis), _loop(inner, analysis)
        if _may_be_skewed(kernel, nest, analysis) and (slope := _slope(facts, nest, analysis)):
            found[outer.index] = slope
    return found


def _nests(kernel: Kernel) -> Iterator[tuple[For, For]]:
    """Yield the nests of two loops that a thread should do an iteration of: with none inside, and none claimed."""
    for node in statements(kernel.body):
        match node:
            case For(body=(For() as inner,), claimed=False) if not inner.claimed:
                if not effects(inner.body).loops:
                    yield node, inner
            case _:
                pass


def _loop(node: For, analysis: Analysis) -> Loop:
    return next(loop for loop in analysis.model.loops if loop.node.index == node.index)


@legality
def _may_be_skewed(kernel: Kernel, nest: tuple[Loop, Loop], analysis: Analysis) -> bool:
    """Whether nothing but elements passes between iterations of a nest of two, whose bounds are small.

    Loops that a `break` ends, that exchange tensors or pass variables on have another conflict.
    """
    conflicts = [analysis.loops[loop.node.index].conflict for loop in nest]
    if kernel.may_alias or [item.kind for item in conflicts if item is not None] != [ConflictKind.ELEMENTS] * 2:
        return False
    outer, inner = (loop.node for loop in nest)
    if outer.index in read_symbols((inner.start, inner.stop)) or analysis.loops[inner.index].reductions:
        return False
    if effects(inner.body).fails:
        return False
    return all(_is_small(bound, analysis) for loop in nest for bound in (loop.start, loop.stop))


@legality
def _is_small(bound: Polynomial, analysis: Analysis) -> bool:
    """Whether sums of a bound and multiples of another cannot wrap."""
    return interval_of(bound.scale(ROOM), analysis.model.intervals).fits


@legality
def _slope(facts: Facts, nest: tuple[Loop, Loop], analysis: Analysis) -> int:
    """Return the slope of the diagonals of a nest, or 0 where there are none."""
    accesses = [item for item in analysis.accesses if nest[1] in item.loops]
    pairs = [
        (one, other)
        for one in accesses
        for other in accesses
        if (one.store or other.store) and one.tensor == other.tensor
    ]
    return next(
        (slope for slope in SLOPES if not any(may_precede(facts, nest, slope, one, other) for one, other in pairs)), 0
    )


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
