"""Contractions in tiles: a block of threads stages the factors of a tile and multiplies them by matrix instructions.

    for i in range(n): for j in range(m):      block for r in range(tiles of n): block for c in range(tiles of m):
        s = 0.0                                    tile for i in (128 of n): tile for j in (128 of m):
        for k in range(p): s += a[i, k] * b[k, j]      s = 0.0
        y[i, j] = s                                    contract for k in range(p): s += a[i, k] * b[k, j]
                                                       y[i, j] = s

Several loops of rows, or of columns, are run as one. Sums are taken in blocks of the depth, in an order that the tile
fixes. Such a nest is worth tiles where it has enough rows, columns and terms: sizes tell, in conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from brickwork.analysis.contractions import (
    TILED,
    Along,
    Contraction,
    computed_from,
    find_contraction,
    grouped,
    reached,
)
from brickwork.analysis.meeting import meeting
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import BFLOAT16, FLOAT32, FLOAT64
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Continue,
    Expression,
    For,
    Load,
    Local,
    Random,
    Rebind,
    Size,
    Store,
    Symbol,
    While,
)
from brickwork.ir.signature import NARROW_EXTENT
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.target.matrix import (
    CHUNK_BYTES,
    FORMS,
    FULL,
    GROUP_ROWS,
    LEAST_AREA,
    LEAST_SIDE,
    LEAST_TERMS,
    MET,
    PADDED,
    PADDED_TRIANGLES,
    PADDING,
    ROW_BYTES,
    SAVED,
    Form,
)
from brickwork.target.target import PROCESSOR_THREADS, Target
from brickwork.transform.schedule.contract_loops import asked_around, levelled, longest, opened, tiles, windows
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.register_tile import TilePlanner, tile_conditions
from brickwork.transform.schedule.schedule import Contract, Schedule, Verb, planned
from brickwork.transform.schedule.segments import Segments, headed, segments_of, sunk
from brickwork.transform.sums import linear


@dataclass(frozen=True, slots=True)
class Nest:
    """A contraction in a nest: its loops, and which of them are rows, columns and depth."""

    band: tuple[For, ...]
    rows: tuple[Symbol, ...]
    columns: tuple[Symbol, ...]
    depth: For
    contraction: Contraction
    terms: Expression
    """How many terms a sum has at most."""
    deepest: Expression
    """How many iterations the loop that is staged has at most."""
    wide: tuple[Expression, ...]
    """What must hold so that ranges for all rows or columns are no longer than those of each."""
    heads: Block
    """What is assigned for an iteration of the loops around rows and columns."""
    segments: Segments | None
    """The segments that rows, columns or the terms of a loop of the sum are."""

    @property
    def met(self) -> int | None:
        """The side whose factor's distinct numbers are staged: rows (0) or columns (1) and terms meet in it."""
        return next((side for side in (0, 1) if self._meets(side)), None)

    def _meets(self, side: int) -> int:
        factor, names = self.contraction.factors[side], (self.rows, self.columns)[side]
        (own, *others) = (node for node in self.band if node.index in names)
        sides = reached(self.contraction.before, frozenset(names))
        whole = self.contraction.parts(side) == 1 and self.contraction.dtype.size == BFLOAT16.size
        plain = not others and build.is_constant(own.start, 0) and whole
        return meeting(factor, own.index, sides, self.depth.index) if plain else 0

    def sizes(self, form: Form) -> tuple[int, int]:
        """Return how many rows and columns a tile of a form has."""
        return (form.width, form.height) if self.met == 1 else (form.height, form.width)

    def laid_out(self, side: int) -> list[Load]:
        """Return what a factor reads along memory, as chunks are staged."""
        if side == self.met:
            return []
        factor, names = self.contraction.factors[side], (self.rows, self.columns)[side]
        sides = reached(self.contraction.before, frozenset(names))
        if factor.along(sides, frozenset(names), self.depth.index) is Along.DEPTH:
            known = not read_symbols(self.depth.start) & assigned_symbols(self.heads)
            return [*factor.laid_out(self.depth.index)] if known else []
        (own, *others) = (node for node in self.band if node.index in names)
        return [] if others or not build.is_constant(own.start, 0) else [*factor.laid_out(own.index)]

    def is_copied(self, side: int) -> bool:
        """Whether a factor is copied in chunks, as it is laid out in memory."""
        element = self.contraction.factors[side].element
        return element in self.laid_out(side) and element.tensor.type.dtype is self.contraction.dtype

    def chunks(self) -> Iterator[Expression]:
        """Yield what must hold so that rows begin at chunks: of what factors read along memory, and of results."""
        chunk = build.integer(CHUNK_BYTES // self.contraction.dtype.size)
        for node in statements(self.contraction.after):
            if isinstance(node, Store) and node.tensor.type.contiguous and node.tensor.type.rank > 1:
                size = Size(tensor=node.tensor, axis=node.tensor.type.rank - 1)
                each = build.integer(max(CHUNK_BYTES // node.tensor.type.dtype.size, 1))
                yield build.apply("eq", build.apply("mod", size, each), build.integer(0))
        own = read_symbols(self.depth.start) & {node.index for node in self.band}
        for element in (*self.laid_out(0), *self.laid_out(1)):
            # A tile begins with the least start of its rows, which may be any.
            deep = self.depth.index in read_symbols(element.indices[-1])
            numbers = [build.integer(1) if own else self.depth.start] if deep else []
            if element.tensor.type.rank > 1:
                numbers.append(Size(tensor=element.tensor, axis=element.tensor.type.rank - 1))
            for number in numbers:
                yield build.apply("eq", build.apply("mod", number, chunk), build.integer(0))

    @property
    def longest(self) -> Expression:
        """How many terms a sum has at most, from the ends of its loops alone."""
        return build.product([longest(loop, self.band) for loop in self.contraction.sums])

    @property
    def leans(self) -> bool:
        """Whether a range of the sum depends on rows or columns."""
        bounds = [bound for loop in self.contraction.sums for bound in (loop.start, loop.stop)]
        return bool(read_symbols(bounds) & {*self.rows, *self.columns})

    def total(self, loops: Sequence[Symbol]) -> Expression:
        """Return how many iterations some loops of the nest have together."""
        counts = (
            self.segments.average
            if self.segments is not None and self.segments.row.index == node.index
            else build.iterations(node.start, node.stop)
            for node in self.band
            if node.index in loops
        )
        return build.product([build.integer(1), *counts])


@dataclass(frozen=True, slots=True)
class ContractionPlanner(TilePlanner):
    """Runs contractions in tiles of a form, and the rest in register tiles, if it is `tiled`, or as a `GridPlanner`.

    It stages the `second` best loop of sums, or the best one.
    """

    form: Form = FORMS[0]
    tiled: bool = False
    second: bool = False

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: contractions in tiles."""
        found = self.contracted(loop)
        if found is None:
            yield from GridPlanner.independent(self, loop, inside=inside)
            return
        size, form = found.contraction.dtype.size, self.form
        chunked = (form.chunked and bool(found.laid_out(0)), form.chunked and bool(found.laid_out(1)))
        grouped = not form.low and found.contraction.dtype is not FLOAT64
        groups = self.target.matrix == "wgmma" and (any(chunked) or found.met is not None) and grouped
        height, width, stages = self.sizes(found, groups=groups)
        sides = found.rows, found.columns, found.depth.index
        staged = ROW_BYTES // size
        blocks = self.target.threads // PROCESSOR_THREADS if self.target.cluster > 1 else 0
        yield Contract(
            loop.index,
            *sides,
            height,
            width,
            staged,
            chunked=chunked,
            groups=groups,
            stages=stages,
            blocks=blocks,
        )

    def spread(self, band: list[For]) -> Iterator[Verb]:
        """Give iterations of a band that is no contraction to threads."""
        yield from (TilePlanner if self.tiled else GridPlanner).spread(self, band)

    def sizes(self, nest: Nest, *, groups: bool) -> tuple[int, ...]:
        """Return the rows and columns of a tile, and how many stages it has, all as there is room for two or more."""
        form, found, (height, width) = self.form, nest.contraction, nest.sizes(self.form)
        many = groups and not found.promotes
        if nest.met is None and not form.low and not many:
            # What float64 is computed from needs registers of more threads, or of smaller tiles.
            copied = found.dtype is not FLOAT64 or (form.chunked and all(map(nest.is_copied, (0, 1))))
            width = min(width, 2 * GROUP_ROWS if copied else GROUP_ROWS)

        sizes, staged = [height, width], [found.parts(side) for side in (0, 1)]

        def lines() -> list[int]:
            return [size * count for size, count in zip(sizes, staged, strict=True)]

        room, wide = self.target.shared_bytes // ROW_BYTES, found.dtype is FLOAT64
        # Sums of float64, too, go through shared memory.
        while 2 * sum(lines()) > room or (wide and sizes[0] * (sizes[1] + PADDING) * FLOAT64.size > room * ROW_BYTES):
            sizes[lines().index(max(lines()))] //= 2
        return *sizes, min(form.grouped if many else form.stages, room // sum(lines()))

    @legality
    def contracted(self, loop: For) -> Nest | None:
        """Return the contraction of a nest, if there is one."""
        around, heads, inner, body = self.segmented(loop)
        band = (*around, *inner)
        body = opened(asked_around(body, inner)[1])
        if self.keeps_order(band):
            return None
        groups = grouped(body, [node.index for node in inner])
        if groups is None:
            return None
        columns = self.along(body, groups)
        alone = self.lengths_of_their_own(body, band)
        sides = groups[1 - columns] - alone, groups[columns] - alone
        sides = sides if all(sides) else (groups[1 - columns], groups[columns])
        rows, columns = (tuple(node.index for node in inner if node.index in side) for side in sides)
        segments = [segments_of(around, heads, node, self.analysis) for node in inner if heads]
        own = next((each for each in segments if each is not None), None)
        if own is not None and (own.row.index,) not in (rows, columns):
            return None
        wide = tuple(windows(body, band, sides, own))
        body = levelled(body, band, sides, own)
        found = find_contraction(body, *sides, band, TILED)
        if found is None or not all(self.accumulates(each, {found.symbol}) for each in found.sums):
            return None
        if self.reads_for_rows(found, frozenset((*rows, *columns))):
            return None
        deep = [segments_of(around, heads, node, self.analysis) for node in found.sums if heads]
        own = next((each for each in deep if each is not None), own)
        terms = {
            each.index: (own.average if own is not None and own.row is each else None)
            or self.lengths.most(each)
            or longest(each, band)
            for each in found.sums
        }
        depth = self.deepest_of(found, band)
        total = build.product([*terms.values()])
        return Nest(band, rows, columns, depth, found, total, terms[depth.index], wide, heads, own)

    def segmented(self, loop: For) -> tuple[tuple[For, ...], Block, tuple[For, ...], Block]:
        """Return the loops around what a nest assigns first, that, the other loops, and their body."""
        band = (*self.rectangle(loop),)
        match headed(band[-1].body):
            case (heads, inner) if self.accumulates(inner, set()):
                others = (*self.rectangle(inner),)
                return band, heads, others, others[-1].body
            case _:
                count, heads, body = sunk(band)
                return band[:count], heads, band[count:], body

    def lengths_of_their_own(self, body: Block, band: Sequence[For]) -> frozenset[Symbol]:
        """Return short outermost loops of which each iteration has sums of another length: a tile has one for all."""
        bounds = read_symbols(
            [bound for node in statements(body) if isinstance(node, For) for bound in (node.start, node.stop)]
        )
        found: list[Symbol] = []
        for node in band:
            count = self.count(node)
            if node.index not in bounds or count is None or count >= LEAST_SIDE:
                break
            found.append(node.index)
        return frozenset(found)

    @hazard
    def reads_for_rows(self, found: Contraction, sides: frozenset[Symbol]) -> bool:
        """Whether factors are computed from elements that are read before the sum, at places that go with the `sides`.

        Threads find out what the rows of a tile say of a factor, rows that are not there included.
        """
        parts = [part for factor in found.factors for part in (factor.value, *factor.masks)]
        values = [item.value for item in computed_from(found.before, read_symbols(parts))]
        own = reached(found.before, sides)
        return any(isinstance(node, Load) and read_symbols(node) & own for node in walk(values))

    @hazard
    def keeps_order(self, band: Sequence[For]) -> bool:
        """Whether something in a nest must happen in the order of the source, or once for each iteration."""
        never = Check | Random | While | Break | Continue | Local | Rebind
        if any(isinstance(node, never) for node in walk(band[0].body)) or self.may_fail(band[0]):
            return True
        return any(self.analysis.loops[node.index].updates for node in statements(band[0]) if isinstance(node, For))

    @hazard
    def may_fail(self, loop: For) -> bool:
        """Whether an access in a loop is checked at each execution."""
        inside = {access.number for access in self.inside(loop)}
        bounds = self.analysis.bounds.items()
        return any(verdict.bound is Bound.CHECKED for (number, _), verdict in bounds if number in inside)

    def along(self, body: Block, groups: Sequence[frozenset[Symbol]]) -> int:
        """Return which group of loops runs along memory in what is stored."""
        for node in statements(body):
            if isinstance(node, Store) and node.tensor.type.unit_axis is not None:
                read = read_symbols(node.indices[node.tensor.type.unit_axis])
                return int(bool(read & groups[1])) if read & (groups[0] | groups[1]) else 1
        return 1

    def deepest_of(self, found: Contraction, band: Sequence[For]) -> For:
        """Return the loop that is staged: a long one, as far as that can be told, and one that runs along memory.

        Of a window's place and of an index in it, which are added, one goes over the whole axis. The other one is
        short. Where that cannot be told, the host chooses between the best loop and the `second` one.
        """
        names = frozenset(node.index for node in (*band, *found.sums)) - _batch(found, band)

        def worth(loop: For) -> tuple[int, bool, bool, bool]:
            count = self.count(loop)
            own, along = self.is_read(found, loop.index, names)
            least = LEAST_TERMS if count is None else min(count, LEAST_TERMS)
            return (least, _goes_over_windows(found, loop), own, along)

        best, *others = sorted(found.sums, key=worth, reverse=True)
        long = (loop for loop in others if (self.count(loop) or LEAST_TERMS) >= LEAST_TERMS)
        second = self.second and self.count(best) is None
        return next((loop for loop in long if second and not _is_in_window(found, loop, band)), best)

    def is_read(self, found: Contraction, index: Symbol, names: frozenset[Symbol]) -> tuple[bool, bool]:
        """Return whether all factors have the index of a loop in an axis without others, and whether one goes along it.

        That is in memory, element by element. `names` are the loops that move in a tile, or in its sum. It is asked of
        the reads that go with most loops of the sum: not of scales of blocks of terms.
        """
        own, along, sums = True, False, {loop.index for loop in found.sums}
        for factor in found.factors:
            loads = [node for node in walk(factor.value) if isinstance(node, Load)]
            most = max((len(read_symbols(node) & sums) for node in loads), default=0)
            loads = [node for node in loads if len(read_symbols(node) & sums) == most]
            own = own and any(
                read_symbols(place) & names == frozenset({index}) for node in loads for place in node.indices
            )
            for node in loads:
                unit = node.tensor.type.unit_axis
                steps = () if unit is None else linear(node.indices[unit]).terms
                along = along or any(index in read_symbols(item) and abs(step) == 1 for item, step in steps)
        return own, along


def _goes_over_windows(found: Contraction, loop: For) -> bool:
    """Whether the places of windows along memory are those of a loop: it goes over the axis, or nearly so.

    Long blocks that follow on one another are no windows.
    """
    for node in walk([factor.value for factor in found.factors]):
        if isinstance(node, Load) and (axis := node.tensor.type.unit_axis) is not None:
            index, size = node.indices[axis], Size(tensor=node.tensor, axis=axis)
            read = read_symbols(index)
            blocks = any(
                item == build.read(loop.index) and abs(step) >= LEAST_TERMS for item, step in linear(index).terms
            )
            if loop.index in read and len(read) > 1 and size in {*walk(loop.stop)} and not blocks:
                return True
    return False


def _is_in_window(found: Contraction, loop: For, band: Sequence[For]) -> bool:
    """Whether an index is added to the place of a window, which goes over the axis, or nearly so: then it is short."""
    for node in walk([factor.value for factor in found.factors]):
        if isinstance(node, Load):
            for axis, index in enumerate(node.indices):
                others = [each for each in band if each.index in read_symbols(index)]
                size = Size(tensor=node.tensor, axis=axis)
                if loop.index in read_symbols(index) and any(size in {*walk(each.stop)} for each in others):
                    return True
    return False


def _batch(found: Contraction, band: Sequence[For]) -> frozenset[Symbol]:
    """Return the loops of a nest that both factors go with."""
    names = frozenset(node.index for node in band)
    origins = {item.symbol: read_symbols(item.value) for item in found.before if isinstance(item, Assign)}
    one, other = (
        read_symbols(factor.value).union(*(origins.get(symbol, ()) for symbol in read_symbols(factor.value)))
        for factor in found.factors
    )
    return names & one & other


def contraction_versions(
    block: Block, analysis: Analysis, target: Target, *, flat: bool = True
) -> Iterator[tuple[str, Schedule, tuple[Expression, ...]]]:
    """Yield schedules of a kernel's body that run its contractions in tiles, with what must hold for each.

    Other nests run as one loop, and in lanes, if that may be asked for (`flat`).
    """
    before: list[Schedule] = []
    for second in (True, False):
        for form in _forms(block, analysis, target, second=second):
            planner = ContractionPlanner(
                analysis, target, lengths_in(block), flat=flat, wide=flat, form=form, second=second
            )
            schedule = planned(planner.block(block))
            heads = [node for node in statements(block) if isinstance(node, For) and schedule.contraction(node.index)]
            nests = [nest for node in heads if (nest := planner.contracted(node)) is not None]
            if not nests or any(map(_is_unknown(block), nests)):
                return
            if form.low and not all(nest.is_copied(side) for nest in nests for side in (0, 1)):
                continue
            if schedule not in before:
                name, conditions = f"contraction {form.height} x {form.width}{' second' * second}", list[Expression]()
                for nest in nests:
                    conditions += _worth(nest, form, target)
                yield name, schedule, tuple(dict.fromkeys(conditions))
                other = replace(planner, tiled=True)
                tiled = planned(other.block(block))
                if tiled != schedule and (more := tile_conditions(block, tiled, target)) is not None:
                    yield name, tiled, tuple(dict.fromkeys((*conditions, *more)))
            before.append(schedule)


def has_contraction(block: Block, analysis: Analysis, target: Target) -> bool:
    """Whether some nest of a kernel's body is a contraction that may run in tiles."""
    planner = ContractionPlanner(analysis, target, lengths_in(block))
    nests = (node for node in statements(block) if isinstance(node, For))
    return bool(target.matrix) and any(planner.contracted(node) is not None for node in nests)


def _forms(block: Block, analysis: Analysis, target: Target, *, second: bool) -> tuple[Form, ...]:
    """Return the forms for the contractions of a kernel's body, the best last; `second` as in its planner."""
    if not target.matrix:
        return ()
    planner = ContractionPlanner(analysis, target, lengths_in(block), second=second)
    nests = (planner.contracted(node) for node in statements(block) if isinstance(node, For))
    return MET if any(nest is not None and nest.met is not None for nest in nests) else FORMS


def _is_unknown(block: Block) -> Callable[[Nest], bool]:
    inner = assigned_symbols(block)

    def visit(nest: Nest) -> bool:
        own = None if nest.segments is None else nest.segments.row.index
        bounds = [bound for node in nest.band if node.index != own for bound in (node.start, node.stop)]
        longest = [nest.longest] if nest.contraction.is_whole else []
        return bool(read_symbols([nest.terms, *longest, *nest.wide, *bounds]) & inner)

    return visit


def _worth(nest: Nest, form: Form, target: Target) -> Iterator[Expression]:
    """Yield what must hold so that a nest is worth tiles of a form."""
    rows, columns = nest.total(nest.rows), nest.total(nest.columns)
    yield from nest.wide
    if form.chunked:
        yield from nest.chunks()
    if nest.contraction.is_whole:
        yield build.apply("le", nest.longest, build.integer(nest.contraction.most_terms))
    for node in walk(nest.contraction.scale):
        if isinstance(node, Load):  # it is read where nothing is summed up, too
            yield from (
                build.apply("ge", build.size(node.tensor, axis), build.integer(1)) for axis in range(len(node.indices))
            )
    if form.low:
        yield build.apply("le", rows, build.integer(form.height))
    if not form.low or nest.contraction.dtype is FLOAT32:
        yield build.apply("ge", rows, build.integer(LEAST_SIDE))
    yield build.apply("ge", columns, build.integer(LEAST_SIDE))
    yield build.apply("ge", build.mul(rows, columns), build.integer(LEAST_AREA))
    yield build.apply("ge", nest.terms, build.integer(form.terms))
    for total in (rows, columns):
        yield build.apply("lt", total, build.integer(NARROW_EXTENT))
    if len(nest.contraction.sums) > 1:
        yield build.apply("ge", nest.deepest, build.integer(ROW_BYTES // nest.contraction.dtype.size // 2))
    least, size = (nest.sizes(each) for each in (FORMS[0] if nest.met is None else MET[0], form))
    fewest = _computed(rows, columns, least)
    if nest.contraction.dtype is FLOAT32 and nest.leans and nest.met is None:
        most = build.mul(build.mul(rows, columns), build.integer(int(2 * PADDED_TRIANGLES)))
        yield build.apply("le", build.mul(fewest, build.integer(2)), most)
    if form.low or size == least:
        return
    batch = nest.total([node.index for node in nest.band if node.index not in {*nest.rows, *nest.columns}])
    count = build.product([batch, tiles(rows, size[0]), tiles(columns, size[1])])
    yield _are_enough(count, nest.terms, form, target)
    most = build.integer(int(4 * (PADDED if prod(size) >= prod(least) else SAVED)))
    yield build.apply("le", build.mul(_computed(rows, columns, size), build.integer(4)), build.mul(fewest, most))


def _are_enough(tiles: Expression, terms: Expression, form: Form, target: Target) -> Expression:
    """Return whether multiprocessors have enough tiles, or two have enough terms of one."""
    most = target.threads // PROCESSOR_THREADS
    least = build.integer(int(FULL * most))
    enough = build.apply("ge", tiles, least)
    if not form.divided or target.cluster == 1:
        return enough
    both = build.mul(tiles, build.integer(2))
    parts = (build.apply("ge", both, least), build.apply("le", both, build.integer(most)))
    halved = build.apply("logical_and", *parts)
    long = build.apply("ge", terms, build.integer(form.divided))
    return build.apply("logical_or", enough, build.apply("logical_and", halved, long))


def _computed(rows: Expression, columns: Expression, size: tuple[int, int]) -> Expression:
    """Return how many sums tiles of a size have, with those beyond the last rows and columns."""
    height, width = size
    return build.product([tiles(rows, height), tiles(columns, width), build.integer(height * width)])
