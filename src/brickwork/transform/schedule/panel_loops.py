"""Writes a contraction for a processor as loops over tiles, packed panels and register tiles (see `panels.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from brickwork.analysis.contractions import Factor
from brickwork.analysis.late_scales import is_negative_zero, may_begin_with_negative_zero
from brickwork.analysis.verdicts import Analysis
from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, DType
from brickwork.ir.nodes import (
    FLAT_ACCESS,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Read,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import read_symbols, rewrite, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction
from brickwork.transform.schedule.panels import PanelNest, extreme, find_nest, total
from brickwork.transform.schedule.planner import PIECES
from brickwork.transform.schedule.schedule import Contract

PADDING = 16
"""Elements between rows of a panel: rows do not lie at multiples of a page, which share few places of a cache."""
ZERO = build.integer(0)


def pack(loop: For, shape: Contract, analysis: Analysis, numbers: Iterator[int]) -> Block:
    """Return a nest as tiles of register tiles over packed panels; `numbers` yields numbers that are not in use."""
    ways = [find_nest(loop, analysis, other=other) for other in (False, True)]
    nest = next((way for way in ways if way and tuple(node.index for node in way.columns) == shape.columns), None)
    if nest is None:
        raise TypeError("a nest that is packed is a contraction")
    names = _Names(numbers, loop.loc)
    heads: list[Statement] = []
    rows, columns = (
        names.let(heads, text, total(loops)) for text, loops in (("rows", nest.rows), ("columns", nest.columns))
    )
    down = names.let(heads, "down", _at_least_one(_pieces(rows, build.integer(shape.height))))
    height = names.let(heads, "height", _whole(_at_least_one(_pieces(rows, down)), shape.down))
    others = _at_least_one(build.mul(down, total(nest.batch)))
    wanted = build.apply(
        "maximum", _pieces(columns, build.integer(shape.width)), _pieces(build.integer(PIECES), others)
    )
    wanted = build.apply("minimum", wanted, _pieces(columns, build.integer(shape.across)))
    width = names.let(heads, "width", _whole(_at_least_one(_pieces(columns, _at_least_one(wanted))), shape.across))

    def row_tile(row: Expression) -> Block:
        top = build.mul(row, height)
        stop = build.apply("minimum", height, build.sub(rows, top))

        def column_tile(column: Expression) -> Block:
            left = build.mul(column, width)
            own: list[Statement] = []
            bounds = (top, stop, left, build.apply("minimum", width, build.sub(columns, left)))
            kept = [
                names.let(own, text, each) for text, each in zip(("top", "tall", "left", "wide"), bounds, strict=True)
            ]
            body = (*own, *_Tile(nest, shape, names, *kept).block())
            return (If(condition=conjunction(nest.asked), then=body),) if nest.asked else body

        return (names.loop("column_tile", ZERO, _pieces(columns, width), column_tile, role=Role.PARALLEL),)

    body: Block = (names.loop("row_tile", ZERO, _pieces(rows, height), row_tile, role=Role.PARALLEL),)
    for around in reversed(nest.batch):
        body = (replace(around, role=Role.PARALLEL, body=body),)
    return (*heads, *body)


@dataclass(frozen=True, slots=True)
class _Names:
    """Makes variables, loops and panels; stores stand where the nest does, also when a later transform copies them."""

    numbers: Iterator[int]
    loc: Location

    def symbol(self, name: str, dtype: DType = INT64) -> Symbol:
        return Symbol(name, next(self.numbers), dtype)

    def let(self, block: list[Statement], name: str, value: Expression) -> Expression:
        """Return a value, kept in a variable that the block sets."""
        if isinstance(value, Constant):
            return value
        symbol = self.symbol(name, value.dtype)
        block.append(Assign(symbol=symbol, value=value))
        return build.read(symbol)

    def loop(
        self,
        name: str,
        start: Expression,
        stop: Expression,
        body: Callable[[Expression], Block],
        *,
        role: Role = Role.SEQUENTIAL,
        width: int = 1,
    ) -> For:
        """Return a loop; `body` makes its statements from the index."""
        index = self.symbol(name)
        return For(index=index, start=start, stop=stop, body=body(build.read(index)), role=role, width=width)

    def load(self, tensor: Tensor, *indices: Expression) -> Load:
        return Load(tensor=tensor, indices=indices, access=next(self.numbers), dtype=tensor.type.dtype)

    def store(self, tensor: Tensor, indices: tuple[Expression, ...], value: Expression) -> Store:
        return Store(tensor=tensor, indices=indices, value=value, access=next(self.numbers), loc=self.loc)

    def panel(self, name: str, dtype: DType, *sizes: int) -> Tensor:
        kind = TensorType(dtype, len(sizes), contiguous=True, unit_axis=len(sizes) - 1)
        return Tensor(name, next(self.numbers), kind, sizes)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile: its first row and column among all of the nest's, and how many it has of each."""

    nest: PanelNest
    shape: Contract
    names: _Names
    top: Expression
    tall: Expression
    left: Expression
    wide: Expression

    @property
    def dtype(self) -> DType:
        return self.nest.contraction.symbol.dtype

    def block(self) -> Block:
        """Return what computes the tile."""
        shape, names = self.shape, self.names
        sums = names.panel("sums", self.dtype, shape.height, shape.width + PADDING)
        sizes = (shape.height, shape.staged) if self.is_deep() else (shape.staged, shape.height)
        lefts = names.panel("lefts", self.dtype, sizes[0], sizes[1] + PADDING)
        rights = names.panel("rights", self.dtype, shape.staged, shape.across)
        declared = tuple(Local(tensor=each) for each in (sums, lefts, rights))
        return (*declared, *self.begin(sums), *self.multiply(sums, lefts, rights), self.finish(sums))

    def is_deep(self) -> bool:
        """Whether the packed factor of the rows has the terms of a row side by side, and not the rows of a term."""
        row = self.nest.rows[-1].index
        return not any(
            row in read_symbols(node.indices[node.tensor.type.unit_axis])
            for node in walk(self.nest.contraction.factors[0].value)
            if isinstance(node, Load) and node.tensor.type.unit_axis is not None
        )

    def lanes(self, name: str, stop: Expression, body: Callable[[Expression], Block], start: Expression = ZERO) -> For:
        """Return a loop in lanes."""
        return self.names.loop(name, start, stop, body, role=Role.VECTOR, width=self.shape.across)

    # ------------------------------------------------------------ before and after the sum

    def begin(self, sums: Tensor) -> Block:
        """Return what sets the sums to what they begin with; rows and columns that fill strips up begin with zero."""
        before = self.nest.contraction.before
        kept = self.nest.contraction.symbol
        values = [item.value for item in before if isinstance(item, Assign) and item.symbol == kept]
        first = values[-1]
        zero = first if isinstance(first, Constant) else build.constant(0.0, self.dtype)
        whole = [_whole(bound, size) for bound, size in ((self.tall, self.shape.down), (self.wide, self.shape.across))]
        clear = self.names.loop(
            "row",
            ZERO,
            whole[0],
            lambda i: (self.lanes("column", whole[1], lambda j: (self.names.store(sums, (i, j), zero),)),),
        )
        if isinstance(first, Constant):
            return (clear,)
        return clear, self.elements(
            lambda i, j: (*before, self.names.store(sums, (i, j), build.read(self.nest.contraction.symbol)))
        )

    def finish(self, sums: Tensor) -> Statement:
        """Return what comes after the sum.

        Where zeros stand for terms that are left out, a sum that is not finite is computed as the source has it, and
        one of zeros that begins with -0.0.
        """
        found = self.nest.contraction
        begun, again = list[Statement](), list[Statement]()
        if any(each.masks for each in found.factors):
            total = build.read(found.symbol)
            odd = build.apply("ne", build.sub(total, total), build.constant(0.0, self.dtype))
            if self.dtype.is_float and may_begin_with_negative_zero(found):
                negative = self.names.let(begun, "negative", is_negative_zero(total))
                none = build.apply("eq", total, build.constant(0.0, self.dtype))
                odd = build.apply("logical_or", odd, build.apply("logical_and", negative, none))
            again = [If(condition=odd, then=(*found.before, found.sums[0]))]
        return self.elements(
            lambda i, j: (
                *found.before,
                *begun,
                Assign(symbol=found.symbol, value=self.names.load(sums, i, j)),
                *again,
                *found.after,
            )
        )

    def elements(self, body: Callable[[Expression, Expression], Block]) -> For:
        """Return a loop over all rows and columns; `body` makes its statements of their numbers in the tile."""

        def row(i: Expression) -> Block:
            head = _indices(self.nest.rows, build.add(self.top, i))
            return (
                *head,
                self.lanes(
                    "column", self.wide, lambda j: (*_indices(self.nest.columns, build.add(self.left, j)), *body(i, j))
                ),
            )

        return self.names.loop("row", ZERO, self.tall, row)

    # ------------------------------------------------------------ the sum

    def multiply(self, sums: Tensor, lefts: Tensor, rights: Tensor) -> Block:
        """Return what adds the products, block by block of the terms."""
        heads: list[Statement] = []
        staged = build.integer(self.shape.staged)
        start, stop = self.span(self.ranges(self.top, self.tall, self.left, self.wide))
        start, stop = (self.names.let(heads, name, each) for name, each in (("start", start), ("stop", stop)))

        def block(number: Expression) -> Block:
            own: list[Statement] = []
            first = self.names.let(own, "first", build.add(start, build.mul(number, staged)))
            depth = self.names.let(own, "depth", build.apply("minimum", staged, build.sub(stop, first)))
            tables, terms = self.terms(first, depth)
            left = self.pack_left(lefts, first, depth, terms)

            def strip(number: Expression) -> Block:
                inside: list[Statement] = []
                column = self.names.let(inside, "strip_left", build.mul(number, build.integer(self.shape.across)))
                count = build.apply("minimum", build.integer(self.shape.across), build.sub(self.wide, column))
                count = self.names.let(inside, "strip_wide", count)
                span = self.span(self.ranges(self.top, self.tall, build.add(self.left, column), count))
                low = self.names.let(inside, "low", build.apply("maximum", ZERO, build.sub(span[0], first)))
                high = self.names.let(inside, "high", build.apply("minimum", depth, build.sub(span[1], first)))
                right = self.pack_right(rights, (column, count), (low, high), terms)
                return (*inside, *right, *self.register_tiles(sums, lefts, rights, column, (low, high)))

            strips = self.names.loop("strip", ZERO, _pieces(self.wide, build.integer(self.shape.across)), strip)
            return (*own, *tables, *left, strips)

        return (*heads, self.names.loop("block", ZERO, _pieces(build.sub(stop, start), staged), block))

    def register_tiles(
        self, sums: Tensor, lefts: Tensor, rights: Tensor, column: Expression, bounds: tuple[Expression, Expression]
    ) -> Block:
        """Return what adds the products of packed rows, strip by strip, and a strip of columns; last a short strip."""
        down = self.shape.down

        def strips(number: Expression) -> Block:
            return self.register_tile(
                sums, lefts, rights, (build.mul(number, build.integer(down)), column), bounds, down
            )

        few = build.integer(down // 2)
        whole = build.apply(
            "floordiv", build.add(self.tall, build.sub(build.integer(down - 1), few)), build.integer(down)
        )
        row = build.mul(whole, build.integer(down))
        short = self.register_tile(sums, lefts, rights, (row, column), bounds, down // 2)
        rest = If(condition=build.apply("lt", row, self.tall), then=short)
        return self.names.loop("row_strip", ZERO, whole, strips), rest

    def register_tile(
        self,
        sums: Tensor,
        lefts: Tensor,
        rights: Tensor,
        place: tuple[Expression, Expression],
        bounds: tuple[Expression, Expression],
        down: int,
    ) -> Block:
        """Return what adds the products of so many rows and a strip of columns, while their sums are in registers."""
        own, names = list[Statement](), self.names
        row = names.let(own, "strip_top", place[0])
        rows = [build.add(row, build.integer(each)) for each in range(down)]

        def lane(number: Expression) -> Block:
            kept = [names.symbol(f"sum_{each}", self.dtype) for each in range(down)]
            at = build.add(place[1], number)

            def term(k: Expression) -> Block:
                other = names.symbol("right", self.dtype)
                pairs = [(row, k) if self.is_deep() else (k, row) for row in rows]
                products = [build.mul(self.names.load(lefts, *pair), build.read(other)) for pair in pairs]
                added = (
                    Assign(symbol=each, value=build.add(build.read(each), product))
                    for each, product in zip(kept, products, strict=True)
                )
                return (Assign(symbol=other, value=self.names.load(rights, k, number)), *added)

            begun = (
                Assign(symbol=each, value=self.names.load(sums, row, at)) for each, row in zip(kept, rows, strict=True)
            )
            ended = (self.names.store(sums, (row, at), build.read(each)) for each, row in zip(kept, rows, strict=True))
            return (*begun, names.loop("term", *bounds, term), *ended)

        return (*own, self.lanes("lane", build.integer(self.shape.across), lane))

    # ------------------------------------------------------------ panels

    def pack_left(
        self, panel: Tensor, first: Expression, depth: Expression, terms: Callable[[Expression], Block]
    ) -> Block:
        """Return what packs the factor of the rows, and zeros for the rows that fill the last strip up."""
        nest, factor, whole = self.nest, self.nest.contraction.factors[0], _whole(self.tall, self.shape.down)
        zero = build.constant(0.0, self.dtype)
        if not self.is_deep():

            def term(k: Expression) -> Block:
                head = terms(k)
                fill = self.lanes("row", whole, lambda i: (self.names.store(panel, (k, i), zero),), self.tall)
                rows = self.lanes(
                    "row",
                    self.tall,
                    lambda i: (
                        *_indices(nest.rows, build.add(self.top, i)),
                        *self.keep(panel, (k, i), factor, (nest.rows, build.add(self.top, i))),
                    ),
                )
                return (*head, rows, fill)

            return (self.names.loop("term", ZERO, depth, term),)

        def row(i: Expression) -> Block:
            head = _indices(nest.rows, build.add(self.top, i))
            return (
                *head,
                self.lanes(
                    "term",
                    depth,
                    lambda k: (
                        *terms(k),
                        *self.keep(panel, (i, k), factor, (nest.contraction.sums, build.add(first, k))),
                    ),
                ),
            )

        fill = self.names.loop(
            "row",
            self.tall,
            whole,
            lambda i: (self.lanes("term", depth, lambda k: (self.names.store(panel, (i, k), zero),)),),
        )
        return self.names.loop("row", ZERO, self.tall, row), fill

    def pack_right(
        self,
        panel: Tensor,
        strip: tuple[Expression, Expression],
        bounds: tuple[Expression, Expression],
        terms: Callable[[Expression], Block],
    ) -> Block:
        """Return what packs the factor of a strip of columns, and zeros for the columns that fill the last one up."""
        factor, whole = self.nest.contraction.factors[1], build.integer(self.shape.across)
        first = build.add(self.left, strip[0])

        def column(j: Expression) -> Block:
            each = self.names.loop(
                "term",
                *bounds,
                lambda k: (*terms(k), *self.keep(panel, (k, j), factor, (self.nest.columns, build.add(first, j)))),
            )
            return (*_indices(self.nest.columns, build.add(first, j)), each)

        zero = build.constant(0.0, self.dtype)
        fill = self.names.loop(
            "term",
            *bounds,
            lambda k: (self.lanes("column", whole, lambda j: (self.names.store(panel, (k, j), zero),)),),
        )
        clear = If(condition=build.apply("lt", strip[1], whole), then=(fill,))
        return clear, self.lanes("column", strip[1], column)

    def keep(
        self,
        panel: Tensor,
        place: tuple[Expression, Expression],
        factor: Factor,
        *runs: tuple[Sequence[For], Expression],
    ) -> Block:
        """Return what puts a factor into a panel, or zero where it is masked; indices of loops are set before.

        `runs` are loops that are run as one, each with the number of its iteration.
        """
        needed = list[Assign]()
        wanted = set(read_symbols((factor.value, *factor.masks)))
        for item in reversed(self.nest.contraction.before):
            if isinstance(item, Assign) and item.symbol in wanted:
                needed.insert(0, item)
                wanted |= read_symbols(item.value)
        value = factor.value
        for run in runs:
            value = rewrite(value, partial(_in_a_row, run=run))
        conditions = [*self.conditions(factor)]
        if not conditions:
            return (*needed, self.names.store(panel, place, value))
        kept = self.names.symbol("kept", self.dtype)
        chosen: Block = (Assign(symbol=kept, value=value),)
        for condition in reversed(conditions):
            chosen = (If(condition=condition, then=chosen),)
        zero = Assign(symbol=kept, value=build.constant(0.0, self.dtype))
        return (*needed, zero, *chosen, self.names.store(panel, place, build.read(kept)))

    @legality
    def conditions(self, factor: Factor) -> Iterator[Expression]:
        """Yield what must hold, one after the other, so that a factor is read.

        Where the other factor has conditions, no term with an element may run at all, and so it may not be there.
        """
        (other,) = (each for each in self.nest.contraction.factors if each is not factor)
        for part in (*factor.masks, factor.value):
            loads = [node for node in walk(part) if isinstance(node, Load)] if other.masks else []
            tests = [test for node in loads for test in self.within(node)]
            if tests:
                yield conjunction(tests)
            if part is not factor.value:
                yield part

    def within(self, load: Load) -> Iterator[Expression]:
        """Yield conditions under which an element is there, but for indices that go over an axis."""
        whole = {loop.index: loop.stop for loop in self.nest.contraction.sums if build.is_constant(loop.start, 0)}
        for axis, index in enumerate(load.indices):
            size = build.size(load.tensor, axis)
            if not isinstance(index, Read) or whole.get(index.symbol) != size:
                yield build.apply("ge", index, ZERO)
                yield build.apply("lt", index, size)

    # ------------------------------------------------------------ terms

    def terms(self, first: Expression, depth: Expression) -> tuple[Block, Callable[[Expression], Block]]:
        """Return what is computed for a block of terms, and what sets the indices of the sum's loops for one of them.

        Several loops are run as one, whose indices are kept in tables.
        """
        sums = self.nest.contraction.sums
        if len(sums) == 1:
            return (), lambda k: (Assign(symbol=sums[0].index, value=build.add(first, k)),)
        tables = [self.names.panel(f"{loop.index.name}s", INT64, self.shape.staged) for loop in sums]

        def fill(k: Expression) -> Block:
            pairs = zip(tables, sums, strict=True)
            return (
                *_indices(sums, build.add(first, k)),
                *(self.names.store(table, (k,), build.read(loop.index)) for table, loop in pairs),
            )

        def term(k: Expression) -> Block:
            return tuple(
                Assign(symbol=loop.index, value=self.names.load(table, k))
                for table, loop in zip(tables, sums, strict=True)
            )

        declared = tuple(Local(tensor=table) for table in tables)
        return (*declared, self.names.loop("term", ZERO, depth, fill)), term

    def ranges(
        self, top: Expression, tall: Expression, left: Expression, wide: Expression
    ) -> Mapping[Symbol, tuple[Expression, Expression]]:
        """Return the first and the last index of rows and columns, of which the numbers are given."""
        found: dict[Symbol, tuple[Expression, Expression]] = {}
        for loops, first, count in ((self.nest.rows, top, tall), (self.nest.columns, left, wide)):
            for loop in loops:
                found[loop.index] = loop.start, build.sub(loop.stop, build.integer(1))
                if not loops[1:]:
                    start = build.add(loop.start, first)
                    found[loop.index] = start, build.add(start, build.sub(count, build.integer(1)))
        return found

    def span(self, ranges: Mapping[Symbol, tuple[Expression, Expression]]) -> tuple[Expression, Expression]:
        """Return where the terms of some rows and columns begin and end; of several loops run as one, those of all."""
        sums = self.nest.contraction.sums
        if sums[1:]:
            return ZERO, total(sums)
        ((start, stop),) = self.nest.spans
        bounds = extreme(start, ranges, greatest=False), extreme(stop, ranges, greatest=True)
        return bounds[0] or sums[0].start, bounds[1] or sums[0].stop


# ---------------------------------------------------------------- expressions


@legality
def _in_a_row(node: Node, run: tuple[Sequence[For], Expression]) -> Node:
    """Return an element at an iteration of loops run as one: one of a row, where the loops go over all of its axes."""
    loops, number = run
    if len(loops) < 2 or not isinstance(node, Load) or not node.tensor.type.contiguous:
        return node
    axes = range(node.tensor.type.rank - len(loops), node.tensor.type.rank)
    if node.indices[axes[0] :] != tuple(build.read(loop.index) for loop in loops):
        return node
    if not all(build.is_constant(loop.start, 0) for loop in loops):
        return node
    if any(loop.stop != build.size(node.tensor, axis) for loop, axis in zip(loops[1:], axes[1:], strict=True)):
        return node
    indices = (*node.indices[: axes[0]], *(ZERO for _ in loops[1:]), number)
    return replace(node, indices=indices, access=FLAT_ACCESS)


def _indices(loops: Sequence[For], place: Expression) -> Block:
    """Return what sets the indices of loops, run as one, at one of their iterations."""
    counts = [build.iterations(node.start, node.stop) for node in loops]
    heads: list[Statement] = []
    for number, node in enumerate(loops):
        rest = build.product([build.integer(1), *counts[number + 1 :]])
        here = build.apply("floordiv", place, rest) if number + 1 < len(loops) else place
        if number:
            here = build.apply("mod", here, counts[number])
        heads.append(Assign(symbol=node.index, value=build.add(node.start, here), loc=node.loc))
    return tuple(heads)


def _at_least_one(value: Expression) -> Expression:
    return build.apply("maximum", value, build.integer(1))


def _pieces(count: Expression, size: Expression) -> Expression:
    """Return how many pieces of a size cover so many."""
    return build.apply("floordiv", build.add(count, build.sub(size, build.integer(1))), size)


def _whole(count: Expression, size: int) -> Expression:
    """Return a number rounded up to a multiple."""
    return build.mul(_pieces(count, build.integer(size)), build.integer(size))
