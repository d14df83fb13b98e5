"""Segments: loops that neighbouring elements of a tensor begin and end, of which none is greater than the next.

    for b in range(B):                                 for t in range(N // 128 + B):      N: no element is greater
        for i in range(p[b], p[b + 1]):     ->             b = the last one of which t is the first tile, or behind it
            for j ...: ...                                 first = p[b] + (t - first tile of b) * 128
                                                           for i in (128 from first on, before p[b + 1]): for j ...: ...

A tile of rows is of one segment, for which is searched. So tiles are a few more than rows without segments have.
Invariant: from p[b] // 128 + b, the first tile of b, to that of b + 1 are as many tiles as b needs, or more: these have
no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile

from brickwork.analysis.ascending_rows import begin_of
from brickwork.analysis.polynomial import cofactor, number
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Block, Expression, For, Load, Read, Statement, Symbol, While
from brickwork.ir.walk import assigned_symbols, read_symbols, substitute
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Segments:
    """The loop over segments, the loop over a segment's rows, the element that begins one, and the most there are."""

    around: For
    row: For
    first: Load
    most: Expression

    @property
    def average(self) -> Expression:
        """How many rows a segment has on average, at most."""
        count = build.iterations(self.around.start, self.around.stop)
        return build.apply("floordiv", self.most, build.apply("maximum", count, build.integer(1)))

    def tiles(self, size: int) -> Expression:
        """Return how many tiles of so many rows all segments have at most."""
        count = build.iterations(self.around.start, self.around.stop)
        total = build.add(build.apply("floordiv", self.most, build.integer(size)), count)
        return build.select(build.apply("gt", count, build.integer(0)), total, build.integer(0))

    def found(self, tile: Expression, size: int, numbers: Iterator[int]) -> tuple[Block, Expression]:
        """Return the search for the segment that a tile is of, and the first of its rows."""
        name, begin, one = self.around.index, self.around.start, build.integer(1)
        high, middle = (Symbol(f"{name.name}_{stem}", next(numbers), INT64) for stem in ("high", "middle"))

        def element(at: Expression) -> Load:
            return replace(substitute(self.first, {name: at}), access=next(numbers))

        def tiles_before(at: Expression) -> Expression:
            first, own = (build.apply("floordiv", element(each), build.integer(size)) for each in (begin, at))
            return build.add(build.sub(own, first), build.sub(at, begin))

        low, place = build.read(name), build.read(middle)
        inside = Symbol(f"{name.name}_inside", next(numbers), INT64)
        within = build.apply("ne", build.read(inside), build.integer(0))
        asked = build.select(build.apply("le", tiles_before(place), tile), one, build.integer(0))
        body = (
            Assign(symbol=middle, value=build.apply("floordiv", build.add(low, build.read(high)), build.integer(2))),
            Assign(symbol=inside, value=asked),
            Assign(symbol=name, value=build.select(within, place, low)),
            Assign(symbol=high, value=build.select(within, build.read(high), place)),
        )
        search = (
            Assign(symbol=name, value=begin),
            Assign(symbol=high, value=self.around.stop),
            While(prelude=(), condition=build.apply("gt", build.sub(build.read(high), low), one), body=body),
        )
        skipped = build.mul(build.sub(tile, tiles_before(low)), build.integer(size))
        return search, build.add(element(low), skipped)


@legality
def headed(body: Block) -> tuple[Block, For] | None:
    """Return what a body assigns first, and the one loop that it has behind that."""
    match body:
        case (*heads, For() as inner) if heads and all(isinstance(item, Assign) for item in heads):
            return tuple(heads), inner
        case _:
            return None


@legality
def sunk(band: Sequence[For]) -> tuple[int, Block, Block]:
    """Return how many loops of a nest elements go with that its body reads first, what reads them, and the rest.

    What the outermost loops alone say, as where a segment begins, may be asked once for all of the others.
    """
    body = band[-1].body
    heads = tuple(takewhile(_reads_number, body))
    read, own = read_symbols(heads), assigned_symbols(heads)
    count = max((place for place, loop in enumerate(band, 1) if loop.index in read), default=0)
    if not 0 < count < len(band) or read & own or assigned_symbols(body[len(heads) :]) & own:
        return 0, (), body
    return count, heads, body[len(heads) :]


def _reads_number(statement: Statement) -> bool:
    return isinstance(statement, Assign) and statement.symbol.dtype is INT64 and isinstance(statement.value, Load)


@legality
def segments_of(band: Sequence[For], heads: Block, row: For, analysis: Analysis) -> Segments | None:
    """Return the segments that a loop is one of, for the last loop of a band; `heads` stand in that."""
    models = {item.node.index: item for item in analysis.model.loops}
    loop, outer, first = models.get(row.index), models.get(band[-1].index), _element(row.start, heads)
    begin = None if loop is None else begin_of(analysis.model, loop)
    if outer is None or begin is None or not begin.most:
        return None
    *others, place = begin.indices
    if cofactor(place, outer.atom) != number(1) or any(outer.atom in index.atoms() for index in others):
        return None
    if first is None or read_symbols(first) & assigned_symbols(heads):
        return None
    return Segments(band[-1], row, first, reduce(lambda one, other: build.apply("minimum", one, other), begin.most))


def _element(bound: Expression, heads: Block) -> Load | None:
    """Return the element that a bound is, or that is assigned to it first."""
    values = {item.symbol: item.value for item in heads if isinstance(item, Assign)}
    found = values.get(bound.symbol) if isinstance(bound, Read) else bound
    return found if isinstance(found, Load) else None
