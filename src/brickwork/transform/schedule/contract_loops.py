"""The loops of a contraction in tiles: what `contract.py` chooses, written into a nest.

    for n, i, j: ...    rows n_i_j: j = n_i_j % J; i = n_i_j // J % I; n = n_i_j // J // I

Several loops of rows are run as one, and so are several of columns. Their indices are computed by dividing by one
loop's length after the other: lengths are mostly parameters of kernels, of which threads know the reciprocals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import accumulated, computed_from, is_monotone, may_sum
from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Expression, For, If, Role, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, substitute
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.matrix import RASTER
from brickwork.transform.schedule.schedule import Contract
from brickwork.transform.schedule.segments import Segments, headed, segments_of, sunk

_LOW_FIRST = {"lt": True, "le": True, "gt": False, "ge": False}
"""Whether a comparison is likeliest to hold where its first operand is the least, by its name."""


@legality
def opened(body: Block, live: frozenset[Symbol] = NONE) -> Block:
    """Return the body of a nest whose sum stands in a branch with the branch around the sum alone, and around the rest.

        if j <= i:                                s = 0.0
            s = 0.0                               if j <= i:
            for k ...: s += f * g          ->         for k ...: s += f * g
            y[i, j] = s                           if j <= i: y[i, j] = s
        else: y[i, j] = 0.0                       else: y[i, j] = 0.0

    What stands before the sum runs in any case then: it reads nothing, and nothing else reads what it assigns, neither
    what is `live` after the body nor another iteration. What the sum begins with may be read: it is added behind it,
    in the branch. The condition is asked twice: nothing changes it in between.
    """
    place = next((place for place, item in enumerate(body) if effects(item).loops), len(body))
    match body[place:]:
        case (If(condition=condition, then=then, otherwise=otherwise) as found, *rest) if (
            len(body) == 1 or not may_sum(found)
        ) and all(isinstance(item, Assign) for item in body[:place]):
            if effects(otherwise).loops and not effects(then).loops:
                condition, then, otherwise = build.logical_not(condition), otherwise, then
            heads, inner = body[:place], opened(then)
        case _:
            return body
    place = next((place for place, item in enumerate(inner) if may_sum(item)), None)
    if place is None or effects(otherwise).loops:
        return body
    before, total, after = _begun_late(inner[:place], inner[place], inner[place + 1 :])
    asked, first = effects(condition), effects((*before, total))
    if asked.reads & first.assigns or asked.loads & first.changes:
        return body
    values = [item.value for item in before if isinstance(item, Assign)]
    always = live_before((*otherwise, *rest), live | live_before(body, NONE)) & assigned_symbols(before)
    if len(values) < len(before) or effects(values).loads or always:
        return body
    either = If(condition=condition, then=after, otherwise=otherwise, loc=found.loc)
    if not after:
        either = replace(either, condition=build.logical_not(condition), then=otherwise, otherwise=())
    behind = (either,) if after or otherwise else ()
    return (*heads, *before, *_where(condition, (total,)), *behind, *rest)


@legality
def _begun_late(before: Block, total: Statement, after: Block) -> tuple[Block, Statement, Block]:
    """Return a sum that begins with -0.0, if it began with what is read, and adds that behind it."""
    found = accumulated(total)
    begun = [item for item in before if found is not None and found.symbol in assigned_symbols(item)]
    if found is None or len(begun) != 1 or not isinstance(begun[0], Assign) or not effects(begun[0].value).loads:
        return before, total, after
    late = computed_from(before, (found.symbol,))
    rest = tuple(item for item in before if not any(item is each for each in late))
    if live_before((*rest, total), NONE) & (assigned_symbols(late) - {found.symbol}):
        return before, total, after
    zero = replace(begun[0], value=build.constant(-0.0, found.symbol.dtype))
    added = replace(begun[0], value=build.add(begun[0].value, build.read(found.symbol)))
    return (*rest, zero), total, (*late[:-1], added, *after)


@legality
def asked_around(body: Block, band: Sequence[For]) -> tuple[Expression | None, Block]:
    """Return the condition around a nest's body that is the same in all of its iterations, and what it is around."""
    match body:
        case (If(condition=condition, then=then, otherwise=()),) if not read_symbols(condition) & (
            assigned_symbols(then) | {loop.index for loop in band}
        ):
            return condition, then
        case _:
            return None, body


@legality
def levelled(
    body: Block, band: Sequence[For], sides: Sequence[frozenset[Symbol]], own: Segments | None = None
) -> Block:
    """Return the body of a nest whose sums go over one range for all rows and columns that are several loops.

    A tile knows the ends of such rows and columns only for one loop that begins at 0, or for its `own` segments. Bounds
    that go with others become conditions, and the range has all that any iteration has, if bounds only rise, or only
    fall.
    """
    several = frozenset[Symbol]().union(*(side for side in sides if not _is_plain(band, side, own)))
    names = frozenset(node.index for node in band)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        start, stop, place = statement.start, statement.stop, build.read(statement.index)
        inner = statement.body
        if read_symbols(start) & several and is_monotone(start, names):
            inner, start = _where(build.apply("ge", place, start), inner), _extreme(start, band, "minimum")
        if read_symbols(stop) & several and is_monotone(stop, names):
            inner, stop = _where(build.apply("lt", place, stop), inner), _extreme(stop, band, "maximum")
        return (replace(statement, start=start, stop=stop, body=inner),)

    return rewrite_statements(body, visit)


def windows(
    body: Block, band: Sequence[For], sides: Sequence[frozenset[Symbol]], own: Segments | None = None
) -> Iterator[Expression]:
    """Yield what must hold so that one range for all rows, or columns, that are several loops has few terms in vain.

    Where a window slides along them, that range has up to twice the terms of the window in the middle.
    """
    several = frozenset[Symbol]().union(*(side for side in sides if not _is_plain(band, side, own)))
    for node in statements(body):
        if isinstance(node, For) and read_symbols(node.start) & read_symbols(node.stop) & several:
            middles = {
                each.index: build.apply("floordiv", build.add(each.start, each.stop), build.integer(2)) for each in band
            }
            ends = (substitute(bound, middles) for bound in (node.start, node.stop))
            yield build.apply("le", longest(node, band), build.mul(build.iterations(*ends), build.integer(2)))


def _is_plain(band: Sequence[For], side: frozenset[Symbol], own: Segments | None) -> bool:
    found = [node for node in band if node.index in side]
    return len(found) == 1 and (build.is_constant(found[0].start, 0) or (own is not None and own.row in found))


def _where(condition: Expression, body: Block) -> Block:
    return (If(condition=condition, then=body),)


def longest(loop: For, band: Sequence[For]) -> Expression:
    """Return the most iterations of a loop: from the least start to the greatest stop that it has."""
    return build.iterations(_extreme(loop.start, band, "minimum"), _extreme(loop.stop, band, "maximum"))


def _extreme(bound: Expression, band: Sequence[For], choice: str) -> Expression:
    for node in reversed(band):
        if node.index in read_symbols(bound):
            last = build.sub(node.stop, build.integer(1))
            bound = build.apply(choice, *(substitute(bound, {node.index: place}) for place in (node.start, last)))
    return bound


def contract(loop: For, directive: Contract, analysis: Analysis, numbers: Iterator[int]) -> Block:
    """Return a nest in tiles, each for a block of threads."""
    sides = frozenset(directive.rows), frozenset(directive.columns)
    names = sides[0] | sides[1]
    around: list[For] = []
    band, heads = [loop], ()
    while True:
        match band[-1].body, headed(band[-1].body):
            case (For() as inner,), _:
                band.append(inner)
            case _, (found, inner) if not names <= {node.index for node in band}:
                around, heads = [*band], found
                band.append(inner)
            case _:
                break
    if not names <= {node.index for node in band}:
        raise TypeError("the loops of a contraction stand directly in one another")
    body = band[-1].body
    if not around:
        count, heads, body = sunk(band)
        around = band[:count]
    segments = [segments_of(around, heads, node, analysis) for node in band if around and node.index in names]
    own = next((each for each in segments if each is not None), None)
    condition, body = asked_around(body, band[len(around) :])
    asked = _asked_of_elements(body)
    body = _marked(levelled(opened(body), band, sides, own), directive, analysis)
    rows, columns = ([node for node in band if node.index in group] for group in (directive.rows, directive.columns))
    roles = [Role.CHUNKED_TILE if chunked else Role.TILE for chunked in directive.chunked]
    inner, across = _tiled(columns, directive.width, roles[1], body, numbers, own)
    outer, down = _tiled(rows, directive.height, roles[0], (inner,), numbers, own)
    tile: Block = (outer,)
    if own is not None:
        # A tile beyond the last rows of a segment is none.
        begin, end = next((node.start, own.row.stop) for node in (outer, inner) if node.index == own.row.index)
        tile = _where(build.apply("lt", begin, end), tile)
    varying = names | assigned_symbols(body)
    for each in (*_in_some_elements(asked, (outer, inner), varying), condition):
        tile = tile if each is None else _where(each, tile)
    place = Symbol("tile", next(numbers), INT64)
    result = For(
        index=place,
        start=build.integer(0),
        stop=build.mul(down.count, across.count),
        body=(*_raster(build.read(place), down, across), *across.before, *down.before, *heads, *tile),
        role=Role.BLOCK,
        across=directive.blocks,
        loc=loop.loc,
    )
    apart = names if own is None else names | {own.around.index}
    return (_nested([node for node in band if node.index not in apart], result),)


def _asked_of_elements(body: Block) -> Iterator[Expression]:
    """Yield the conditions around all of a nest's body."""
    match body:
        case (If(condition=condition, then=then, otherwise=()),):
            yield condition
            yield from _asked_of_elements(then)
        case _:
            pass


@legality
def _in_some_elements(
    conditions: Iterator[Expression], tile: Sequence[For], varying: frozenset[Symbol]
) -> Iterator[Expression]:
    """Yield what must hold of a tile so that conditions may hold for some of its elements: else it is not computed.

    `varying` is what differs from element to element.
    """
    names = frozenset(loop.index for loop in tile)
    for condition in conditions:
        match condition:
            case Apply(operator=operator, operands=(left, right)) if (
                operator.name in _LOW_FIRST
                and all(is_monotone(side, names) for side in (left, right) if read_symbols(side) & names)
                and not read_symbols(condition) & (varying - names)
            ):
                low, high = ("minimum", "maximum") if _LOW_FIRST[operator.name] else ("maximum", "minimum")
                yield build.apply(operator.name, _extreme(left, tile, low), _extreme(right, tile, high))
            case _:
                pass


def _nested(heads: Sequence[For], inner: For) -> For:
    """Return a loop inside of others, whose iterations are for blocks, too."""
    for head in reversed(heads):
        inner = replace(head, role=Role.BLOCK, body=(inner,))
    return inner


def _raster(place: Expression, down: _Tiles, across: _Tiles) -> Block:
    """Return what gives the tile of a number: some rows of tiles together, whose factors are in the cache then."""
    each = build.mul(build.integer(RASTER), across.count)
    first = build.mul(build.apply("floordiv", place, each), build.integer(RASTER))
    left = build.apply("maximum", build.sub(down.count, first), build.integer(1))
    high = build.apply("minimum", left, build.integer(RASTER))
    inside = build.apply("mod", place, each)
    row = build.add(first, build.apply("mod", inside, high))
    column = build.apply("floordiv", inside, high)
    return Assign(symbol=down.index, value=row), Assign(symbol=across.index, value=column)


def _marked(body: Block, directive: Contract, analysis: Analysis) -> Block:
    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.index != directive.depth:
            return (statement,)
        role = Role.CONTRACT_GROUPS if directive.groups else Role.CONTRACT
        sizes, found = (directive.staged, directive.stages), analysis.loops[statement.index].reductions
        return (replace(statement, role=role, width=sizes[0], across=sizes[1], reductions=found),)

    return rewrite_statements(body, visit)


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles along rows or columns: the variable that numbers them, how many there are, what is asked before one."""

    index: Symbol
    count: Expression
    before: Block = ()


def _tiled(
    loops: Sequence[For], size: int, role: Role, body: Block, numbers: Iterator[int], segments: Segments | None
) -> tuple[For, _Tiles]:
    """Return the loop over a tile of some loops, run as one, and the tiles that there are."""
    names = "_".join(node.index.name for node in loops)
    number = Symbol(f"{names}_tile", next(numbers), INT64)
    if segments is not None and segments.row in loops:
        index, total, heads = segments.row.index, segments.row.stop, ()
        first = Symbol(f"{names}_first", next(numbers), INT64)
        search, begin = segments.found(build.read(number), size, numbers)
        found = _Tiles(number, segments.tiles(size), (*search, Assign(symbol=first, value=begin)))
        start = build.read(first)
    else:
        if len(loops) == 1 and build.is_constant(loops[0].start, 0):
            index, total, heads = loops[0].index, loops[0].stop, ()
        else:
            index = Symbol(names, next(numbers), INT64)
            total, heads = _unravelled(loops, build.read(index))
        found = _Tiles(number, tiles(total, size))
        start = build.mul(build.read(found.index), build.integer(size))
    stop = build.apply("minimum", build.add(start, build.integer(size)), total)
    inner = For(index=index, start=start, stop=stop, body=(*heads, *body), role=role, width=size, loc=loops[0].loc)
    return inner, found


def _unravelled(loops: Sequence[For], place: Expression) -> tuple[Expression, Block]:
    """Return how many iterations loops have together, and what gives their indices at one of these."""
    counts = [build.iterations(node.start, node.stop) for node in loops]
    heads: list[Assign] = []
    for node, count in zip(reversed(loops), reversed(counts), strict=True):
        here = place if node is loops[0] else build.apply("mod", place, count)
        heads.append(Assign(symbol=node.index, value=build.add(node.start, here), loc=node.loc))
        place = build.apply("floordiv", place, count)
    return build.product(counts), tuple(reversed(heads))


def tiles(total: Expression, size: int) -> Expression:
    """Return how many tiles of a size cover rows or columns."""
    return build.apply("floordiv", build.add(total, build.integer(size - 1)), build.integer(size))
