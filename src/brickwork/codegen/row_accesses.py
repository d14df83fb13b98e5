"""Which elements a thread of a grid goes along in rows of its own, so that what its neighbours access lies apart.

    for i in parallel: out[i, 0] = a; out[i, 1] = b; out[i, 2] = c     a *record*: a box of elements for each thread
    for r in parallel: for t in order: y[r, t] = f(x[r, t])            *steps*: an element further in each iteration
    for c in parallel: for t in range(c * n, c * n + n): y[t] = f(x[t])     the same

Both are found only where every access of a tensor is made in any case and in one row, so that what a warp reads and
stores for its threads is what they would. `staged_rows.py` has the code. Invariant: what is read lies between elements
which the row's thread accesses, and nothing is stored that it does not store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import TypeAlias

from brickwork.analysis.slope import slope
from brickwork.codegen.variables import Names, may_vary
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Size,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, assigned_symbols, children, substitute, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.register_lists import MOST
from brickwork.transform.schedule.lengths import lengths_in, sum_of_products

WHOLE = -1
"""The place of all elements along an axis."""


@dataclass(frozen=True, slots=True)
class Record:
    """A box of elements for each thread: from `low` on, `sizes` along the axes after those of `row`, `most` in all.

    The first of these sizes may be WHOLE. Along the other axes the box has to be whole, so that it lies together.
    """

    tensor: Tensor
    row: tuple[Expression, ...]
    low: tuple[int, ...]
    sizes: tuple[int, ...]
    most: int
    loaded: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class Steps:
    """Elements that a thread goes along in a loop, by `step` (1 or -1) from one iteration to the next.

    `last` is the last index of the least of them, and others are up to `beyond` further. The newest one, which no
    iteration before comes to, is `stored`, `loaded`, or both.
    """

    tensor: Tensor
    row: tuple[Expression, ...]
    last: Expression
    step: int
    beyond: int
    loaded: bool
    stored: bool


# ---------------------------------------------------------------- accesses

_Place: TypeAlias = tuple[int, int]
"""The first element along an axis and how many there are, or WHOLE."""
_Loops: TypeAlias = Mapping[Symbol, _Place | Size | None]
"""What loops run through: elements, a whole axis, which may have none, or something else."""


@dataclass(frozen=True, slots=True)
class _Access:
    """An element that is loaded or stored, in some loops; `certain` if it is in any case.

    `indices` are in terms of what the body does not assign, as far as that is known.
    """

    node: Load | Store
    indices: tuple[Expression, ...]
    loops: _Loops
    certain: bool


@hazard
def _may_end(body: Block) -> bool:
    """Whether a thread may end before others."""
    found = effects(body)
    return bool(found.fails) or found.leaves


def _accesses(body: Block, bound: frozenset[Symbol]) -> Iterable[list[_Access]]:
    """Return the accesses of each tensor; each read of a `bound` variable sees one assignment, which is before it."""
    known = lengths_in(body)
    known = replace(known, values={symbol: value for symbol, value in known.values.items() if symbol in bound})
    found: dict[Tensor, list[_Access]] = {}
    for node, loops, certain in _in_block(body, {}, certain=True):
        if not node.tensor.is_local:
            access = _Access(node, tuple(map(known.resolved, node.indices)), loops, certain)
            found.setdefault(node.tensor, []).append(access)
    return found.values()


_Found: TypeAlias = Iterator[tuple[Load | Store, _Loops, bool]]


@legality
def _in_block(body: Block, loops: _Loops, *, certain: bool) -> _Found:
    """Yield the accesses in a block, which stands in these loops, and whether they are made in any case."""
    for statement in body:
        match statement:
            case For(index=index, start=start, stop=stop, body=inside):
                yield from _in_nodes(_expressions(statement), loops, certain=certain)
                span = _span(start, stop)
                yield from _in_block(inside, {**loops, index: span}, certain=certain and span is not None)
            case If(then=then, otherwise=otherwise):
                yield from _in_nodes(_expressions(statement), loops, certain=certain)
                yield from _in_block((*then, *otherwise), loops, certain=False)
            case While():
                yield from _in_nodes((statement,), loops, certain=False)
            case _:
                yield from _in_nodes((statement,), loops, certain=certain)


def _expressions(statement: Node) -> Iterable[Node]:
    """Return the bounds of a loop, or the condition of a branch."""
    return (each for each in children(statement) if isinstance(each, EXPRESSIONS))


def _in_nodes(roots: Iterable[Node], loops: _Loops, *, certain: bool) -> _Found:
    return ((node, loops, certain) for node in walk(roots) if isinstance(node, Load | Store))


@legality
def _span(start: Expression, stop: Expression) -> _Place | Size | None:
    """Return what a loop runs through: at least one iteration, or a whole axis."""
    match start, stop:
        case Constant(value=first), Constant(value=end) if first < end:
            return int(first), int(end - first)
        case Constant(value=0), Size():
            return stop
        case _:
            return None


@legality
def _are_certain(accesses: Sequence[_Access]) -> bool:
    """Whether accesses of a tensor are made in any case, and store what nobody else updates."""
    return all(access.certain and not _is_update(access.node) for access in accesses)


@hazard
def _is_update(node: Load | Store) -> bool:
    return isinstance(node, Store) and node.combine is not None


@legality
def _are_given(indices: Iterable[Expression], changing: frozenset[Symbol]) -> bool:
    """Whether indices are the same wherever they are computed: of variables that do not change, and nothing else."""
    found = effects(tuple(indices))
    return found.plain and not found.reads & changing


# ---------------------------------------------------------------- records


def records(body: Block, neighbours: Names, bound: frozenset[Symbol], facts: Sequence[Expression]) -> list[Record]:
    """Return the records of a thread's iteration; `neighbours` may differ between threads beside one another."""
    if _may_end(body):
        return []
    found = (_record(accesses, assigned_symbols(body), neighbours, facts) for accesses in _accesses(body, bound))
    return [record for record in found if record is not None]


@legality
def _record(
    accesses: Sequence[_Access], assigned: frozenset[Symbol], neighbours: Names, facts: Sequence[Expression]
) -> Record | None:
    """Return the record that the accesses of a tensor are, if they are one."""
    if not _are_certain(accesses):
        return None
    tensor = accesses[0].node.tensor
    row = _row([access.indices for access in accesses], assigned)
    kind, rest = tensor.type, tensor.type.rank - len(row)
    dense = kind.contiguous or (rest == 1 and kind.unit_axis == kind.rank - 1)
    if not dense or not any(may_vary(index, neighbours) for index in row):
        return None
    loads, stores = set[tuple[int, ...]](), set[tuple[int, ...]]()
    for access in accesses:
        places = _places(access, len(row), facts)
        if places is None:
            return None
        (stores if isinstance(access.node, Store) else loads).update(places)
    box = _box(stores or loads, exact=bool(stores))
    if box is None or (stores and not loads <= stores):
        return None
    low, sizes = box
    if WHOLE in sizes[1:] or any(low[1:]):
        return None
    most = abs(prod(sizes)) * (_most(Size(tensor=tensor, axis=len(row)), facts) if WHOLE in sizes else 1)
    return Record(tensor, row, low, sizes, most, bool(loads), bool(stores)) if 1 < most <= MOST else None


@legality
def _row(indices: Sequence[tuple[Expression, ...]], assigned: frozenset[Symbol]) -> tuple[Expression, ...]:
    """Return the first indices that accesses have in common, and that are known before the iteration."""
    first = indices[0]
    for place, index in enumerate(first):
        if any(each[place] != index for each in indices) or not _are_given((index,), assigned):
            return first[:place]
    return first


@legality
def _places(access: _Access, rows: int, facts: Sequence[Expression]) -> Iterable[tuple[int, ...]] | None:
    """Return the places along the axes after those of the row that an access comes to, if they are few and known."""
    found: list[Sequence[int]] = []
    for axis, index in enumerate(access.indices[rows:], rows):
        match index:
            case Constant(value=int(place)):
                found.append((place,))
            case Read(symbol=symbol) if (span := access.loops.get(symbol)) is not None:
                if not isinstance(span, Size):
                    found.append(range(span[0], sum(span)))
                elif _is_same(span, Size(tensor=access.node.tensor, axis=axis), facts):
                    found.append((WHOLE,))
                else:
                    return None
            case _:
                return None
    return _product(found)


def _product(axes: Sequence[Sequence[int]]) -> Iterable[tuple[int, ...]] | None:
    return product(*axes) if prod(map(len, axes)) <= MOST else None


@legality
def _box(places: set[tuple[int, ...]], *, exact: bool) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the least box around places, its corner and sizes; None if it has others, too, and must not."""
    low, sizes = list[int](), list[int]()
    for axis in zip(*places, strict=True):
        if WHOLE in axis and min(axis) != max(axis):
            return None
        low.append(max(min(axis), 0))
        sizes.append(WHOLE if WHOLE in axis else max(axis) + 1 - min(axis))
    full = abs(prod(sizes)) == len(places)
    return None if exact and not full else ((*low,), (*sizes,))


@legality
def _is_same(one: Size, other: Size, facts: Sequence[Expression]) -> bool:
    """Whether two sizes are known to be equal."""
    both = {(one.tensor, one.axis), (other.tensor, other.axis)}
    return len(both) == 1 or any(
        {(left.tensor, left.axis), (right.tensor, right.axis)} == both
        for operator, left, right in _comparisons(facts)
        if operator == "eq" and isinstance(right, Size)
    )


@legality
def _most(size: Size, facts: Sequence[Expression]) -> int:
    """Return what a size is at most, if it is known to be no more than a record has; else more."""
    found = [MOST + 1]
    for operator, known, limit in _comparisons(facts):
        if operator in {"lt", "le", "eq"} and isinstance(limit, Constant) and _is_same(known, size, facts):
            found.append(int(limit.value) - (operator == "lt"))
    return min(found)


def most_iterations(loop: For, facts: Sequence[Expression]) -> int:
    """Return how many iterations a loop has at most, if it is known to be short; else more."""
    match loop.start, loop.stop:
        case Constant(value=first), Constant(value=end):
            return int(end - first)
        case Constant(value=0), Size() as size:
            return _most(size, facts)
        case _:
            return MOST + 1


def _comparisons(facts: Sequence[Expression]) -> Iterator[tuple[str, Size, Expression]]:
    """Yield what is known of sizes: a comparison with what."""
    for fact in facts:
        if isinstance(fact, Apply) and len(fact.operands) == 2 and isinstance(left := fact.operands[0], Size):
            yield fact.operator.name, left, fact.operands[1]


# ---------------------------------------------------------------- steps


def steps(loop: For, neighbours: Names, bound: frozenset[Symbol], around: Sequence[Symbol]) -> list[Steps]:
    """Return what a thread goes along in a loop; `neighbours` may differ between threads beside one another.

    `around` are the indices that say which iteration a thread runs.
    """
    if _may_end(loop.body) or not _are_as_long(loop, neighbours):
        return []
    found = (_steps(accesses, loop, neighbours, around) for accesses in _accesses(loop.body, bound))
    return [item for item in found if item is not None]


@legality
def _steps(accesses: Sequence[_Access], loop: For, neighbours: Names, around: Sequence[Symbol]) -> Steps | None:
    """Return the steps that the accesses of a tensor in a loop are, if they are such."""
    tensor, kind = accesses[0].node.tensor, accesses[0].node.tensor.type
    spans = (span for access in accesses for span in access.loops.values())
    if not _are_certain(accesses) or kind.unit_axis != kind.rank - 1:
        return None
    if any(isinstance(span, Size) for span in spans):
        return None
    *row, last = accesses[0].indices
    changing, ends = assigned_symbols(loop), [access.indices[-1] for access in accesses]
    if not _are_given(row, changing) or not _are_given(ends, changing - {loop.index}):
        return None
    if any([*access.indices[:-1]] != row for access in accesses):
        return None
    first = substitute(last, {loop.index: loop.start}) if may_vary(loop.start, neighbours) else last
    if not _lie_apart(row, first, neighbours, around):
        return None
    sums, step = [*map(sum_of_products, ends)], slope(last, loop.index)
    if any(_without_constant(total) != _without_constant(sums[0]) for total in sums):
        return None
    if step not in {1, -1}:
        return None
    places = [total.get((), 0) for total in sums]
    by_place = [*zip(accesses, places, strict=True)]
    loads = {place for access, place in by_place if isinstance(access.node, Load)}
    stores = {place for access, place in by_place if isinstance(access.node, Store)}
    newest, beyond = max(places) if step == 1 else min(places), max(places) - min(places)
    if not stores <= {newest}:
        return None
    return Steps(tensor, (*row,), ends[places.index(min(places))], step, beyond, newest in loads, bool(stores))


def _are_as_long(loop: For, neighbours: Names) -> bool:
    """Whether loops of neighbouring threads have as many iterations: in chunks of rows, for the most part."""
    if not may_vary(loop.start, neighbours):
        return not may_vary(loop.stop, neighbours)
    ends: Sequence[Expression] = (loop.stop,)
    if isinstance(loop.stop, Apply) and loop.stop.operator.name == "minimum":
        ends = loop.stop.operands
    lengths = (sum_of_products(build.sub(end, loop.start)) for end in ends)
    return any(not any(may_vary(factor, neighbours) for factors in length for factor in factors) for length in lengths)


def _lie_apart(row: Sequence[Expression], last: Expression, neighbours: Names, around: Sequence[Symbol]) -> bool:
    """Whether neighbouring threads have other rows: of those that begin few elements further, caches have most."""
    if row and may_vary(last, neighbours):
        return False
    varies = any(may_vary(index, neighbours) for index in row or [last])
    return varies and all(slope(last, index) in {0, None} for index in around)


def _without_constant(total: Mapping[tuple[Expression, ...], int]) -> dict[tuple[Expression, ...], int]:
    return {factors: count for factors, count in total.items() if factors}
