"""Loop skewing: runs a nest along its diagonals, where an iteration needs those before it in both loops.

    for i in range(1, n):                            for d in range(2, n + m - 1):
        for j in range(1, m):                ->          for i in range(max(1, d - m + 1), min(n, d)):
            a[i, j] = a[i - 1, j] + a[i, j - 1]              a[i, d - i] = a[i - 1, d - i] + a[i, d - i - 1]

Legal where each dependence between two iterations leads to a later diagonal `slope * i + j`: the iterations of one
diagonal are independent then. Of a triangle the rectangle around it is run so, with a condition for what belongs to the
triangle. Variables may keep the least or greatest value, or sums of integers, which are the same in any order. Only
for grids, where threads share a diagonal out: on a processor a diagonal walks through memory across the rows, and
threads would meet after each. The numbers of diagonals must not wrap: so the bounds are known to be small, or made so
where they are variables, and where that rests on a guard (for scalar arguments) others are run as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.polynomial import Polynomial, interval_of
from brickwork.analysis.races import Facts, may_precede
from brickwork.analysis.verdicts import Analysis, Bound, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Read,
    Reduction,
    Statement,
    Symbol,
)
from brickwork.ir.walk import (
    assigned_symbols,
    read_symbols,
    rewrite_statements,
    statements,
    substitute,
    substitute_block,
)
from brickwork.legality import legality
from brickwork.transform.guard import conjunction
from brickwork.transform.rectangle import rectangle_of
from brickwork.transform.sums import Sum, sum_of

WAVEFRONT_NUMBERS = 3_800_000
"""Numbers of the indices made in here start from this."""
ROOM = 8
"""Bounds of loops are small if this many times as much fits: then the numbers of diagonals do."""
LIMITED_NUMBERS = 3_850_000
"""Numbers of the variables made in here start from this."""
FOREVER = 2**58
"""More iterations than a loop ever gets done, so that a bound from data which is greater may be taken for this."""
SLOPES = (1, 2)
"""What a step of the outer loop adds to the number of a diagonal: 2 where an iteration needs the one right above it."""


def wavefront(kernel: Kernel, analysis: Analysis) -> tuple[Kernel, Analysis]:
    """Return the kernel with nests along their diagonals, and its analysis; `analysis` is of this kernel.

    What the analysis of the result does not prove to be better stays as it was.
    """
    boxes = dict(_boxes(kernel, analysis, count(LIMITED_NUMBERS)))
    source = _with_loops(kernel, boxes)
    slopes = diagonals(source, analyse(source) if boxes else analysis)
    while slopes:
        changed = _along(kernel, boxes, slopes)
        found = analyse(changed)
        proved = {index: slope for index, slope in slopes.items() if found.loops[index].independent}
        if len(proved) == len(slopes):
            return (changed, found) if _checks(found) <= _checks(analysis) else (kernel, analysis)
        slopes = proved
    return kernel, analysis


def _boxes(kernel: Kernel, analysis: Analysis, numbers: Iterator[int]) -> Iterator[tuple[Symbol, Block]]:
    """Yield rectangles with small bounds in place of nests that run in order, with their outer loop's index."""
    for outer, inner in _nests(kernel):
        if any(analysis.loops[loop.index].independent for loop in (outer, inner)):
            continue
        slanted = outer.index in read_symbols((inner.start, inner.stop))
        box = rectangle_of(outer, inner) if slanted else outer
        ends = [loop.stop for loop in (outer, inner) if not _is_small(_loop(loop, analysis).stop, analysis)]
        large = [ending_variable(end, outer) for end in ends]
        if box is not None and None not in large and (slanted or large):
            yield (
                outer.index,
                (*_limited(box, dict.fromkeys(symbol for symbol in large if symbol is not None), numbers),),
            )


@legality
def ending_variable(end: Expression, outer: For) -> Symbol | None:
    """Return the variable that the end of a loop in a nest is, or that and a literal, where it may be limited.

    Were there another term, or did a loop begin with it, few iterations could lie between two great numbers.
    """
    match sum_of(end):
        case Sum(terms=((Read(symbol=symbol), 1),), constant=more) if 0 <= more <= ROOM:
            around = read_symbols([loop.start for loop in statements(outer) if isinstance(loop, For)])
            return None if symbol in around | assigned_symbols(outer) else symbol
        case _:
            return None


def _limited(box: For, large: Iterable[Symbol], numbers: Iterator[int]) -> Iterator[Statement]:
    """Yield a nest with less than `FOREVER` in place of variables that may be greater, and what gives them that."""
    values: dict[Symbol, Expression] = {}
    for symbol in large:
        small = replace(symbol, number=next(numbers))
        least = build.apply("maximum", build.read(symbol), build.integer(-FOREVER))
        yield Assign(symbol=small, value=build.apply("minimum", least, build.integer(FOREVER)), loc=box.loc)
        values[symbol] = build.read(small)
    yield substitute(box, values) if values else box


def _along(kernel: Kernel, boxes: Mapping[Symbol, Block], slopes: Mapping[Symbol, int]) -> Kernel:
    """Return the kernel with some nests, or the rectangles in place of them, along their diagonals."""
    numbers = count(WAVEFRONT_NUMBERS)
    nests: dict[Symbol, Block] = {}
    assigned = assigned_symbols(kernel.body)
    for outer, inner in _nests(kernel):
        if outer.index in slopes:
            *ahead, nest = boxes.get(outer.index, (outer,))
            if isinstance(nest, For):
                skewed: Statement = _skewed(nest, slopes[outer.index], numbers)
                if read_symbols((outer.stop, inner.stop)) & assigned:
                    # An empty loop beside an endless one, or an end that wraps: the diagonals would be endless.
                    slanted = outer.index in read_symbols((inner.start, inner.stop))
                    loops = (outer, nest.body[0] if slanted else inner)
                    runs = (build.apply("lt", loop.start, loop.stop) for loop in loops if isinstance(loop, For))
                    skewed = If(condition=conjunction(runs), then=(skewed,), loc=nest.loc)
                nests[outer.index] = (*ahead, skewed)
    return _with_loops(kernel, nests)


def _with_loops(kernel: Kernel, loops: Mapping[Symbol, Block]) -> Kernel:
    """Return the kernel with other statements in place of the loops with some indices."""

    def visit(statement: Statement) -> Block:
        return loops.get(statement.index, (statement,)) if isinstance(statement, For) else (statement,)

    return replace(kernel, body=rewrite_statements(kernel.body, visit)) if loops else kernel


def _checks(analysis: Analysis) -> int:
    return sum(verdict.bound is Bound.CHECKED for verdict in analysis.bounds.values())


def diagonals(kernel: Kernel, analysis: Analysis) -> dict[Symbol, int]:
    """Return the nests, by their outer loop's index, whose diagonals are independent, and the slope of these.

    Where nothing but updates is in the way all iterations run at once.
    """
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    found: dict[Symbol, int] = {}
    for outer, inner in _nests(kernel):
        nest = _loop(outer, analysis), _loop(inner, analysis)
        if _may_be_skewed(kernel, nest, analysis) and (slope := _slope(facts, nest, analysis)):
            found[outer.index] = slope
    if not found:
        return found
    updated = find_updates(kernel, analysis).loops
    return {index: slope for index, slope in found.items() if not updated[index].independent}


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
    if outer.index in read_symbols((inner.start, inner.stop)):
        return False
    if any(not is_in_any_order(item) for item in analysis.loops[inner.index].reductions):
        return False
    if effects(inner.body).fails:
        return False
    return all(_is_small(bound, analysis) for loop in nest for bound in (loop.start, loop.stop))


@legality
def is_in_any_order(item: Reduction) -> bool:
    """Whether the same comes of a reduction in whatever order: no place is noted, and nothing rounded."""
    return item.along is None and (item.operator.name in {"minimum", "maximum"} or not item.symbol.dtype.is_float)


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
    along = replace(
        inner,
        index=outer.index,
        start=build.apply("maximum", outer.start, first),
        stop=build.apply("minimum", outer.stop, last),
        body=substitute_block(inner.body, {inner.index: moved}),
    )
    lowest = build.add(times(outer.start), inner.start)
    highest = build.sub(build.add(times(build.sub(outer.stop, one)), inner.stop), one)
    # Where one of the loops is empty so are all diagonals.
    return replace(outer, index=diagonal, start=lowest, stop=build.add(highest, one), body=(along,))
