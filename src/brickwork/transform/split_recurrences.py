"""Splits linear recurrences in nests of few iterations into chunks of time, so that a grid has threads enough.

    for c: h = h0                            for k in chunks: for c: h, g = 0, 1
           for t:                                            for t in chunk k: g = a[c, t] * g
               h = a[c, t] * h + x[c, t]                                       h = a[c, t] * h + x[c, t]
               y[c, t] = f(h)         ->                     slope[k, c], end[k, c] = g, h
                                             for c: h = h0
                                                    for k in chunks: begin[k, c], h = h, slope[k, c] * h + end[k, c]
                                             for k in chunks: for c: h = begin[k, c]
                                                             for t in chunk k: ...

Of variables that grow with each other the slopes are a matrix. What a loop accumulates beside its state is joined as
partial results are. Where a chunk seems to end at a float that is not finite, what they begin with is computed as the
source has it: a slope of 0 times infinity is none, whether the state began anew in the chunk or faded away. Invariant:
chunks depend on sizes alone, and are joined in a fixed order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, DType
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Role,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import rewrite, rewrite_statements, statements, substitute, walk
from brickwork.legality import hazard
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.promote import reads
from brickwork.transform.recurrences import (
    Carrying,
    Recurrence,
    goes_over,
    reads_as_before,
    recurrence_in,
    without_stores,
)
from brickwork.transform.schedule.grid import UNROLLED, UNROLLED_TOGETHER
from brickwork.transform.scratch import Names, joins
from brickwork.transform.slopes import Item, Slopes, dtype_of, with_slopes
from brickwork.transform.split_reductions import nested
from brickwork.transform.verbs.split import count_of


@dataclass(frozen=True, slots=True)
class Chunks:
    """Nests that do as one where `condition` holds, with the tensors between them.

    `begins` are those, somewhere in the `nests`, that find where the chunks begin, each by a recurrence over the index
    `chunk`. `rest` is what follows the loop.
    """

    condition: Expression
    made: tuple[Allocate, ...]
    nests: tuple[For, ...]
    begins: tuple[For, ...]
    rest: For | None
    version: str
    chunk: Symbol


def chunk_version(index: Symbol) -> str:
    """Return the name of the version in which the recurrence over an index is in chunks."""
    return f"chunks {index.name} {index.number}"


def split_recurrences(
    levels: Sequence[For],
    places: Partition,
    carrying: Carrying,
    names: Names,
    facts: Sequence[Expression],
    target: Target,
    *,
    again: bool,
) -> Chunks | None:
    """Return nests that do as one launch of these levels; None if it is of another kind.

    Nests are cut that have an eighth of the threads that the machine keeps at once. They have half of them then, as a
    thread with a list as its state takes 128 registers. A chunk has as many short iterations at least as are written
    out elsewhere: fewer would take no longer than what a chunk begins and ends with. `again`: where chunks begin may be
    found in chunks.
    """
    found = recurrence_in(levels, places, carrying, facts)
    if found is None:
        return None
    least = UNROLLED if found.is_short else 1
    counts = [count_of(each) for each in (found.loop, *found.rows)]
    plain = tuple(replace(level, width=1, across=0) for level in levels)
    cutter, made = _cutter(plain, found, names)
    ends = cutter.ends()
    if ends is None:
        return None
    sloped, same = cutter.sloped(*ends)
    rest = cutter.rest()
    begins = tuple(cutter.begins(ends[1], same, ending=rest is not None))
    chunks = tuple(cutter.chunks())
    if cutter.reads_late((*chunks, *(() if rest is None else (rest,)))):
        return None
    nests = (*cutter.ahead(), *sloped, *begins, *chunks)
    total, length = build.product([count_of(level) for level in plain]), build.product(counts)
    shortest, worth = build.integer(least), 2 * least
    if found.is_short and all(isinstance(item, Symbol) for item in found.states):
        shortest = balanced(length, least, passes=3 if again and not same else 2)
        worth = max(worth, worth_chunks(target))
    count = _chunks(total, length, target.threads // 2, shortest)
    if found.rows:
        count = build.mul(build.apply("minimum", count, counts[0]), _parts(count, counts[0]))
    some = build.apply("ge", total, build.integer(1))
    few = build.apply("le", total, build.integer(target.threads // 8))
    enough = build.apply("ge", length, build.integer(worth))
    condition = build.apply("logical_and", build.apply("logical_and", some, few), enough)
    if any(build.apply("lt", length, build.integer(short)) in facts for short in range(worth + 1)):
        return None  # It is shorter here.
    once = {cutter.states[item].slopes[item]: at for item, at in same.items()}
    stored = effects(nests).stores
    begun = {state.begin: build.add(count, build.integer(1)) for state in cutter.states.values()}
    kept = tuple(
        _made(each, begun.get(each.tensor, count), plain, once.get(each.tensor, frozenset()))
        for each in made
        if each.tensor in stored
    )
    version = chunk_version(found.loop.index)
    return Chunks(condition, kept, nests, begins, rest, version, cutter.chunk)


def worth_chunks(target: Target) -> int:
    """Return how many iterations one thread runs in the time of two launches, as it waits for several reads at once."""
    return 2 * target.launch_ns * UNROLLED_TOGETHER // target.block_step_ns


def _chunks(total: Expression, length: Expression, threads: int, least: Expression) -> Expression:
    """Return the number of chunks of each iteration, of `least` iterations or more, at least 1."""
    each = build.apply("maximum", total, build.integer(1))
    wanted = build.apply("floordiv", build.integer(threads), each)
    most = build.apply("floordiv", length, least)
    return build.apply("maximum", build.apply("minimum", wanted, most), build.integer(1))


def _parts(count: Expression, rows: Expression) -> Expression:
    """Return into how many parts each of several rows is cut, where there are so many chunks of all rows together."""
    each = build.apply("floordiv", count, build.apply("maximum", rows, build.integer(1)))
    return build.apply("maximum", each, build.integer(1))


def balanced(length: Expression, least: int, *, passes: int) -> Expression:
    """Return the length of chunks, `least` times a power of 4, that takes about as long as finding where they begin.

    That is one step for each chunk, in two `passes`; or chunks of chunks are made, whose beginnings take as long again.
    More than 2^40 iterations are not told apart.
    """
    result: Expression = build.integer(least)
    for power in range(1, 6):
        each = least * 4**power
        long = build.apply("ge", length, build.integer(each**passes // (4 - passes)))
        result = build.select(long, build.integer(each), result)
    return result


@dataclass(frozen=True, slots=True)
class _State:
    """The tensors of a state: where it ends, and where it begins, in each chunk, and slopes if some are not 1.

    There is one more beginning than there are chunks, which is the end of all. There is a slope for each state that it
    comes from.
    """

    slopes: Mapping[Item, Tensor]
    end: Tensor
    begin: Tensor


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Writes the nests in place of one; `chunk` is the index of a chunk, `items` those of lists."""

    levels: tuple[For, ...]
    found: Recurrence
    names: Names
    chunk: Symbol
    items: Mapping[Tensor, Symbol]
    states: Mapping[Item, _State]
    partials: Mapping[Item, Tensor]

    def over(self, item: Item, *each: Statement) -> Block:
        """Return what does something with a variable, or with each item of a list."""
        if isinstance(item, Symbol):
            return each
        start, stop = build.integer(0), self.found.extents[item]
        return (For(index=self.items[item], start=start, stop=stop, body=each, loc=self.found.loop.loc),)

    def give(self, item: Item, value: Expression) -> Block:
        """Return what gives a variable, or each item of a list, a value."""
        if isinstance(item, Symbol):
            return (Assign(symbol=item, value=value, loc=self.found.loop.loc),)
        return self.over(item, self.names.store(item, build.read(self.items[item]), value))

    def value(self, item: Item) -> Expression:
        """Return the value of a variable, or of an item of a list."""
        return build.read(item) if isinstance(item, Symbol) else self.names.load(item, build.read(self.items[item]))

    def places(self, item: Item, chunk: Expression, same: Collection[Symbol] = ()) -> tuple[Expression, ...]:
        """Return the indices of what a chunk leaves of an item; it is at 0 in levels where it is the `same`."""
        at = [] if isinstance(item, Symbol) else [build.read(self.items[item])]
        along = (build.sub(build.read(level.index), level.start) for level in self.levels)
        zero = build.integer(0)
        here = (zero if level.index in same else each for level, each in zip(self.levels, along, strict=True))
        return chunk, *at, *here

    def count(self) -> Expression:
        """Return the number of chunks."""
        return Size(tensor=next(iter(self.states.values())).end, axis=0)

    def over_chunks(self, body: Block, role: Role) -> For:
        """Return a loop over the chunks."""
        start = build.integer(0)
        return For(index=self.chunk, start=start, stop=self.count(), body=body, role=role, loc=self.found.loop.loc)

    def cut(self, body: Block | None = None) -> For:
        """Return the loop for the iterations of a chunk, with another body: some rows if it has such, or a part of one.

        Along memory a chunk is a multiple of `UNROLLED`, so that it begins where reads do.
        """
        loop, chunk, count = self.found.loop, build.read(self.chunk), self.count()
        body = loop.body if body is None else body
        if not self.found.rows:
            return _piece(replace(loop, body=body), chunk, count, UNROLLED)
        parts = _parts(count, count_of(loop))
        row = replace(self.found.rows[0], body=cast("For", body[0]).body)
        rows = replace(loop, body=(_piece(row, build.apply("mod", chunk, parts), parts, UNROLLED),))
        return _piece(rows, build.apply("floordiv", chunk, parts), build.apply("floordiv", count, parts), 1)

    def in_chunks(self, body: Block) -> For:
        """Return the nest over chunks, and the levels inside."""
        return nested((self.over_chunks((), Role.PARALLEL), *self.levels), body)

    def ahead(self) -> tuple[For, ...]:
        """Return the nest that stores what is stored before the loop."""
        stored = {tensor for tensor in effects(self.found.ahead).stores if not tensor.is_local}
        body = without_dead(self.found.ahead, stored)
        return (nested(self.levels, body),) if stored else ()

    def ends(self) -> tuple[Block, Slopes] | None:
        """Return what runs a chunk from 0 on, and what computes slopes; None where states are not linear."""
        here, zeros, stores = build.read(self.chunk), list[Statement](), list[Statement]()
        for item, state in self.states.items():
            zeros += self.give(item, build.empty_sum(dtype_of(item)))
            stores += self.over(item, self.names.store(state.end, *self.places(item, here), self.value(item)))
        ends = {state.end for state in self.states.values()}
        body = without_dead((*self.found.before, *zeros, *without_stores((self.cut(),)), *stores), ends)
        if not reads_as_before(body, self.found.loop):
            return None
        loop = next(node for node in body if isinstance(node, For) and node.index == self.found.loop.index)
        slopes = with_slopes(loop, frozenset(self.states), self.names)
        return None if slopes is None else (body, slopes)

    def sloped(self, end: Block, slopes: Slopes) -> tuple[tuple[For, ...], dict[Item, frozenset[Symbol]]]:
        """Return the nests for ends of chunks and for slopes, and the levels in which those of a state are the same.

        Slopes are computed with the states, or once for all iterations of levels in which they are the same.
        """
        coupled = any(len(found) > 1 for found in slopes.variables.values())
        if coupled:
            return (self.together(end, slopes),), dict.fromkeys(self.states, frozenset())
        alone = {item: found for item in self.states if (found := self.alone(item, slopes)) is not None}
        same = {item: found[1] for item, found in alone.items()}
        if not alone or not all(same.values()):
            return (self.together(end, slopes),), dict.fromkeys(same, frozenset())
        return (self.in_chunks(end), *(nest for nest, _ in alone.values())), same

    def together(self, body: Block, slopes: Slopes) -> For:
        """Return the nest that runs chunks from 0 on, with slopes."""
        index = self.found.loop.index
        place = next(at for at, node in enumerate(body) if isinstance(node, For) and node.index == index)
        ahead, after = list[Statement](), list[Statement]()
        for item, state in self.states.items():
            places = self.places(item, build.read(self.chunk))
            if isinstance(item, Symbol):
                for root, symbol in slopes.of(item).items():
                    ahead.append(Assign(symbol=symbol, value=build.constant(int(root == item), symbol.dtype)))
                    after.append(self.names.store(state.slopes[root], *places, build.read(symbol)))
            elif item in slopes.lists:
                tensor, index = slopes.lists[item], build.read(self.items[item])
                first = build.constant(1, tensor.type.dtype)
                ahead += (Local(tensor=tensor), *self.over(item, self.names.store(tensor, index, first)))
                value = self.names.load(tensor, index)
                after += self.over(item, self.names.store(state.slopes[item], *places, value))
        return self.in_chunks((*body[:place], *ahead, self.cut(slopes.body), *body[place + 1 :], *after))

    def alone(self, item: Item, slopes: Slopes) -> tuple[For, frozenset[Symbol]] | None:
        """Return the nest that computes slopes of a state, of a list an item in each iteration, if it has some.

        Levels in whose iterations they are the same are left out.
        """
        if item not in slopes.variables and item not in slopes.lists:
            return None
        around = list[For]()
        if isinstance(item, Symbol):
            symbol, body = slopes.variables[item][item], slopes.body
        else:
            symbol = self.names.symbol(item.name, slopes.lists[item].type.dtype)
            body = _of_an_item(slopes.body, slopes.lists[item], symbol, self.items[item])
            around += (node for node in self.over(item) if isinstance(node, For))
        tensor, first = self.states[item].slopes[item], Assign(symbol=symbol, value=build.constant(1, symbol.dtype))
        last = self.names.store(tensor, build.integer(0), build.read(symbol))
        kept = without_dead((*self.found.before, first, self.cut(body), last), {tensor})
        same = frozenset(level.index for level in self.levels) - effects(kept[:-1]).reads
        if effects(kept).declares & frozenset(slopes.lists.values()):
            same = frozenset[Symbol]()
        place = self.places(item, build.read(self.chunk), same)
        body = (*kept[:-1], self.names.store(tensor, *place, build.read(symbol)))
        levels = (self.over_chunks((), Role.PARALLEL), *(replace(each, role=Role.PARALLEL) for each in around))
        return nested((*levels, *(level for level in self.levels if level.index not in same)), body), same

    def begins(self, slopes: Slopes, same: Mapping[Item, frozenset[Symbol]], *, ending: bool) -> Iterator[For]:
        """Yield the nests that find where the states of chunks begin, chunk after chunk; if `ending`, where all end.

        Those of variables that grow with each other are found together.
        """
        coupled = (item for item in self.states if len(slopes.of(item)) > 1)
        together: set[Item] = {root for item in coupled for root in (item, *slopes.of(item))}
        groups: list[tuple[Item, ...]] = [(item,) for item in self.states if item not in together]
        if together:
            groups.append(tuple(item for item in self.states if item in together))
        for group in groups:
            yield self.begun(group, slopes, same, ending=ending)

    def begun(
        self, group: Sequence[Item], slopes: Slopes, same: Mapping[Item, frozenset[Symbol]], *, ending: bool
    ) -> For:
        """Return the nest that finds where states of chunks begin: several variables, or one, or a list."""
        here = build.read(self.chunk)
        symbols = {item: self.names.symbol(item.name, dtype_of(item)) for item in group}
        strays, beyond = self.names.symbol("strays", BOOL), list[Expression]()
        found, moved, last = list[Statement](), dict[Symbol, Expression](), list[Statement]()
        for item in group:
            state, old = self.states[item], build.read(symbols[item])
            end, terms = self.names.load(state.end, *self.places(item, here)), dict[Expression, Expression]()
            for root in (slopes.of(item) or (item,)) if item in same else ():
                terms[build.read(symbols[root])] = self.names.load(
                    state.slopes[root], *self.places(item, here, same[item])
                )
            moved[symbols[item]] = _next(terms, old, end)
            if terms and old.dtype.is_float:
                beyond.append(build.apply("logical_not", build.apply("isfinite", old)))
            found.append(self.names.store(state.begin, *self.places(item, here), old))
            last.append(self.names.store(state.begin, *self.places(item, self.count()), old))
        step, asked, again = [*_at_once(moved, self.names)], list[Statement](), list[Statement]()
        if beyond:
            value = build.read(strays)
            for each in beyond:
                value = build.apply("logical_or", value, each)
            step.append(Assign(symbol=strays, value=value))
            asked.append(Assign(symbol=strays, value=build.constant(False, BOOL)))
            again.append(If(condition=build.read(strays), then=self.in_order(group, ending=ending)))
        firsts = (Assign(symbol=symbols[item], value=self.first(item)) for item in group)
        turn = replace(self.over_chunks((*found, *step), Role.SEQUENTIAL), unrolled=UNROLLED_TOGETHER)
        levels = self.levels
        if isinstance(group[0], Tensor):
            (around,) = self.over(group[0])
            levels = (replace(around, role=Role.PARALLEL), *levels) if isinstance(around, For) else levels
        body = (*self.found.before, *asked, *firsts, turn, *(last if ending else ()), *again)
        return nested(levels, without_dead(body, {self.states[item].begin for item in group}))

    def first(self, item: Item) -> Expression:
        """Return what a variable, or an item of a list, is before the loop."""
        if isinstance(item, Symbol):
            return build.read(item)
        index, value = self.found.starts[item]
        return substitute(value, {index: build.read(self.items[item])})

    def in_order(self, group: Sequence[Item], *, ending: bool) -> Block:
        """Return what finds where states of chunks begin by running one chunk after the other."""
        other = replace(self, chunk=self.names.symbol("chunk", INT64))
        loop, start = replace(cut := other.cut(), body=without_stores(cut.body)), list[Statement]()
        begin, last = list[Statement](), list[Statement]()
        for item in group:
            symbol = item if isinstance(item, Symbol) else self.names.symbol(item.name, dtype_of(item))
            if isinstance(item, Tensor):
                start.append(Assign(symbol=symbol, value=self.first(item)))
                loop = replace(loop, body=_of_an_item(loop.body, item, symbol, self.items[item]))
            tensor, value = self.states[item].begin, build.read(symbol)
            begin.append(self.names.store(tensor, *self.places(item, build.read(other.chunk)), value))
            last.append(self.names.store(tensor, *self.places(item, self.count()), value))
        return (*start, other.over_chunks((*begin, loop), Role.SEQUENTIAL), *(last if ending else ()))

    def given(self, chunk: Expression) -> Iterator[Statement]:
        """Yield what gives the states what they are where a chunk begins."""
        for item, state in self.states.items():
            yield from self.give(item, self.names.load(state.begin, *self.places(item, chunk)))

    def chunks(self) -> Iterator[For]:
        """Yield the nest that runs the chunks, if it does something besides finding where they end."""
        here = build.read(self.chunk)
        starts, stores = list(self.given(here)), list[Statement]()
        for each in self.found.sums:
            starts += self.give(each.item, build.identity(each.reduction))
            partial = self.partials[each.item]
            stores += self.over(
                each.item, self.names.store(partial, *self.places(each.item, here), self.value(each.item))
            )
        results = {tensor for tensor in effects(self.found.loop).stores if not tensor.is_local}
        body = (*self.found.before, *starts, self.cut(), *stores)
        body = without_dead(body, results | {*self.partials.values()})
        if effects(body).stores & (results | {*self.partials.values()}):
            yield self.in_chunks(body)

    @hazard
    def reads_late(self, nests: Block) -> bool:
        """Whether nests for and after the loop compute again what reads an element that it may have stored into."""
        stored = {tensor for level in self.levels for tensor in effects(level).stores if not tensor.is_local}
        early = (node for node in walk(self.found.before) if isinstance(node, Load) and node.tensor in stored)
        return reads(nests, frozenset(node.access for node in early))

    def rest(self) -> For | None:
        """Return the nest that does what follows the loop, if anything is left of it."""
        joined = list[Statement]()
        for each in self.found.sums:
            item, partial = each.item, self.partials[each.item]
            load = self.names.load(partial, *self.places(item, build.read(self.chunk)))
            if isinstance(item, Symbol):
                step: Block = joins(replace(self.found.loop, reductions=(each.reduction,)), [load])
            else:
                step = self.give(item, build.apply(each.reduction.operator.name, self.value(item), load))
            joined.append(self.over_chunks(step, Role.SEQUENTIAL))
        body = (*self.found.before, *joined, *self.given(self.count()), *self.found.after)
        results = {tensor for tensor in effects(self.found.after).stores if not tensor.is_local}
        body = without_dead(body, results)
        return nested(self.levels, body) if effects(body).stores & results else None


def _piece(loop: For, number: Expression, count: Expression, unit: int) -> For:
    """Return a piece of a loop cut into `count`: all have the same multiple of `unit` iterations, but the last."""
    many = build.mul(count, build.integer(unit))
    step = build.apply("floordiv", build.add(count_of(loop), build.sub(many, build.integer(1))), many)
    step = build.mul(step, build.integer(unit))
    first = build.add(loop.start, build.mul(number, step))
    return replace(loop, start=first, stop=build.apply("minimum", build.add(first, step), loop.stop))


def _made(allocate: Allocate, count: Expression, levels: Sequence[For], same: Collection[Symbol]) -> Allocate:
    """Return the allocation for a number of chunks, with one element along levels in which all are the same."""
    first = len(allocate.sizes) - len(levels)
    one = build.integer(1)
    sizes = (one if level.index in same else size for level, size in zip(levels, allocate.sizes[first:], strict=True))
    return replace(allocate, sizes=(count, *allocate.sizes[1:first], *sizes))


def _of_an_item(block: Block, tensor: Tensor, symbol: Symbol, item: Symbol) -> Block:
    """Return the block with one item of a list, in a variable, and no loops over the others."""

    def visit(node: Node) -> Node:
        return build.read(symbol) if isinstance(node, Load) and node.tensor == tensor else node

    def change(statement: Statement) -> Block:
        match statement:
            case Store(tensor=stored, value=value) if stored == tensor:
                return (Assign(symbol=symbol, value=value, loc=statement.loc),)
            case For(index=index, body=body) if index in indices:
                return tuple(substitute(inner, {index: build.read(item)}) for inner in body)
            case _:
                return (statement,)

    indices = {node.index for node in statements(block) if isinstance(node, For) and goes_over(node, tensor)}
    return rewrite_statements(tuple(rewrite(statement, visit) for statement in block), change)


def _next(terms: Mapping[Expression, Expression], old: Expression, end: Expression) -> Expression:
    """Return a state after a chunk, of the states before it and their slopes; without these it has grown by `end`.

    What is 0 before it stays so, however great the slope is; its sign is of account where nothing comes to it.
    """
    if not terms:
        return build.add(old, end)
    moved = [build.mul(slope, build.cast(state, slope.dtype)) for state, slope in terms.items()]
    zeros = [build.apply("eq", state, build.constant(0, state.dtype)) for state in terms]
    if len(terms) == 1:
        total = build.add(moved[0], build.cast(end, moved[0].dtype))
        kept = build.add(build.cast(next(iter(terms)), end.dtype), end)
        return build.select(zeros[0], kept, build.cast(total, old.dtype))
    total = build.cast(end, moved[0].dtype)
    for none, state, term in zip(zeros, terms, moved, strict=True):
        total = build.add(total, build.select(none, build.cast(state, term.dtype), term))
    return build.cast(total, old.dtype)


def _at_once(values: Mapping[Symbol, Expression], names: Names) -> Iterator[Assign]:
    """Yield what gives variables values that are computed of all of them."""
    if len(values) == 1:
        yield from (Assign(symbol=symbol, value=value) for symbol, value in values.items())
        return
    new = {symbol: names.symbol(symbol.name, symbol.dtype) for symbol in values}
    yield from (Assign(symbol=new[symbol], value=value) for symbol, value in values.items())
    yield from (Assign(symbol=symbol, value=build.read(new[symbol])) for symbol in values)


def _cutter(levels: tuple[For, ...], found: Recurrence, names: Names) -> tuple[_Cutter, list[Allocate]]:
    """Return what writes the nests, and what allocates the tensors between them, for one chunk as yet."""
    counts, made = [count_of(level) for level in levels], list[Allocate]()

    def tensor(name: str, dtype: DType, item: Item) -> Tensor:
        extent = () if isinstance(item, Symbol) else (found.extents[item],)
        tensor, allocate = names.tensor(f"{item.name}_{name}", dtype, 1, *extent, *counts)
        made.append(allocate)
        return tensor

    states = {
        item: _State(
            {
                root: tensor("slope", FLOAT64 if dtype_of(item).is_float else INT64, item)
                for root in found.states
                if root == item or (isinstance(item, Symbol) and isinstance(root, Symbol))
            },
            tensor("end", dtype_of(item), item),
            tensor("begin", dtype_of(item), item),
        )
        for item in found.states
    }
    partials = {each.item: tensor("partial", dtype_of(each.item), each.item) for each in found.sums}
    items = {item: names.symbol("item", INT64) for item in found.extents}
    return _Cutter(levels, found, names, names.symbol("chunk", INT64), items, states, partials), made
