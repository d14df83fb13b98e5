"""Loops in order that pass on nothing but counters: what each iteration finds in them is computed first, in parallel.

    for i in range(n):                      for i in range(n): rank[i] = count[key[i]]; count[key[i]] += 1
        place = count[key[i]]
        count[key[i]] += 1           ->     for i in range(n): out[first[key[i]] + rank[i]] = x[i]
        out[first[key[i]] + place] = x[i]

A counter is a variable, or the elements of a tensor, that integers are added to, whatever was counted before. For
grids: the iterations of the second loop are independent then, or store at places that elements say (`last_stores.py`).
Of the first loop chunks count into copies, the copies of each element are summed up to where a chunk begins, and the
chunks count again from there. That of a variable is a recurrence (`lone_recurrences.py`). Invariant: each iteration
finds in the counters what it found in the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates, updates_in
from brickwork.analysis.definitions import definitions_in
from brickwork.analysis.scalars import NONE, live_before, reduction_of
from brickwork.analysis.symbolic import as_written, of_other
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64, DType, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    EXPRESSIONS,
    assigned_symbols,
    children,
    read_symbols,
    rewrite,
    rewrite_statements,
    statements,
    substitute,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.argument_checks import without_argument_checks
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.free_variables import with_body
from brickwork.transform.last_stores import scattered_nests
from brickwork.transform.lone_recurrences import may_be_cut, recurrences_alone
from brickwork.transform.nests_apart import Changed, beside, each_launch
from brickwork.transform.schedule.grid import UNROLLED
from brickwork.transform.scratch import Names, copied, names_of, with_variables
from brickwork.transform.split_recurrences import balanced, worth_chunks
from brickwork.transform.split_reductions import nested

RANKS = "_ranks"
"""Ends the name of a kernel that first finds what iterations find in counters."""
REMARK = "where what iterations find in counters is found first, in parallel"
"""What `explain` says of it."""


@each_launch("grid")
def with_ranks(launch: Launch, names: Names, target: Target) -> Changed | None:
    """Return the launch of the kernel with counters of the first loops apart, where these are long and memory does."""
    if not _may_count(launch.kernel):
        return None
    kernel, asked = without_argument_checks(launch.kernel)
    analysis = find_updates(kernel, analyse(kernel))
    made, cut = _Made(names, target), recurrences_alone(kernel)
    made.conditions += asked
    body: list[Statement] = []
    changed = set[Symbol]()
    for place, statement in enumerate(kernel.body):
        found: Block | None = None
        if isinstance(statement, For) and statement.index not in cut and _is_plain(statement, kernel):
            tried = made.copied()
            in_order = not analysis.loops[statement.index].independent
            found = _ranked(statement, kernel, place, tried) if in_order else None
            if found is not None:
                made = tried
                changed.add(statement.index)
        body += (statement,) if found is None else found
    if not changed:
        return None
    other = with_body(kernel, tuple(body), (*kernel.facts, *made.facts))
    other = replace(other, name=f"{kernel.name}{RANKS}", alone=kernel.alone | made.alone)
    free = find_updates(other, analyse(other)).loops
    late = scattered_nests(other)
    if not all(free[index].independent or index in late for index in changed):
        return None
    made.conditions.append(build.apply("le", made.bytes, build.integer(target.scratch_bytes)))
    condition: Expression = build.constant(True, BOOL)
    for each in made.conditions:
        condition = build.apply("logical_and", condition, each)
    block, remarks = beside(launch, condition, tuple(made.host), other, REMARK)
    return (*made.numbers, *block), remarks


# ---------------------------------------------------------------- which loops


def _may_count(kernel: Kernel) -> bool:
    """Whether a kernel has a loop that passes counters on, so that an analysis is worth making."""
    loops = (node for node in kernel.body if isinstance(node, For))
    return any(_variables(node) or _tensors(_updating(node)) for node in loops)


@legality
def _is_plain(loop: For, kernel: Kernel) -> bool:
    """Whether a loop does nothing but assign and store, as often as the host knows."""
    return effects(loop).simple and _is_fixed(loop, kernel)


def _is_fixed(loop: For, kernel: Kernel) -> bool:
    """Whether the host knows which iterations a loop has."""
    return read_symbols((loop.start, loop.stop)) <= frozenset(kernel.scalars) - assigned_symbols(kernel.body)


def _variables(loop: For) -> tuple[Symbol, ...]:
    """Return the variables that a loop passes on, but for those that it only accumulates into."""
    carried = live_before(loop.body, NONE) & assigned_symbols(loop.body)
    found = [symbol for symbol in carried if reduction_of(loop.body, symbol) is None]
    return tuple(sorted(found, key=lambda symbol: symbol.number))


def _tensors(loop: For) -> tuple[Tensor, ...]:
    """Return the tensors that a loop counts in, and reads."""
    updates, body = [*updates_in(loop.body)], loop.body
    found: list[Tensor] = []
    for tensor in sorted(effects(body).stores & effects(body).loads, key=lambda tensor: tensor.number):
        mine = [update for store, update in updates if store.tensor == tensor]
        loads = sum(isinstance(node, Load) and node.tensor == tensor for node in walk(body))
        if loads > len(mine) and _counts_in(tensor, mine):
            found.append(tensor)
    return tuple(found)


@legality
def _counts_in(tensor: Tensor, updates: Sequence[tuple[str, Expression] | None]) -> bool:
    """Whether all that is stored into a tensor of integers, which all iterations have, is added to an element."""
    added = all(update is not None and update[0] == "add" for update in updates)
    return added and tensor.type.dtype.is_integer and not tensor.is_local


def _updating(loop: For, names: Names | None = None) -> For:
    """Return a loop with `p = n[k]; n[k] = p + 1` as `p = n[k]; n[k] = n[k] + 1`: an update, and a read."""
    return replace(loop, body=_with_own_reads(loop.body, names or names_of(loop)))


def _with_own_reads(block: Block, names: Names, read: Mapping[Symbol, Load] | None = None) -> Block:
    """Return the block with variables in stores that were `read` from the same tensor before, read once more."""
    known, result = dict(read or {}), list[Statement]()
    for statement in block:
        match statement:
            case Store(tensor=tensor, value=value):
                mine = {symbol: copied(load, names) for symbol, load in known.items() if load.tensor == tensor}
                changed = replace(statement, value=substitute(value, mine))
            case If(then=then, otherwise=otherwise):
                first, second = (_with_own_reads(part, names, known) for part in (then, otherwise))
                changed = replace(statement, then=first, otherwise=second)
            case For(body=body):
                changed = replace(statement, body=_with_own_reads(body, names))
            case _:
                changed = statement
        result.append(changed)
        done = effects(statement)
        known = {
            symbol: load
            for symbol, load in known.items()
            if not effects(load).loads & done.changes and not ({symbol} | read_symbols(load)) & done.assigns
        }
        match statement:
            case Assign(symbol=symbol, value=Load() as load) if symbol not in read_symbols(load) and not any(
                effects(index).loads for index in load.indices
            ):
                known[symbol] = load
            case _:
                pass
    return tuple(result)


# ---------------------------------------------------------------- the change


@dataclass(slots=True)
class _Made:
    """The numbers by which the host decides, what it does before the changed kernel, and what that may rely on."""

    names: Names
    target: Target
    numbers: list[Statement] = field(default_factory=list[Statement])
    host: list[Statement] = field(default_factory=list[Statement])
    facts: list[Expression] = field(default_factory=list[Expression])
    conditions: list[Expression] = field(default_factory=list[Expression])
    alone: frozenset[int] = frozenset()
    bytes: Expression = field(default_factory=lambda: build.integer(0))

    def copied(self) -> _Made:
        """Return what was made so far; what a counter that is given up adds to it is of no use."""
        lists = (self.numbers, self.host, self.facts, self.conditions)
        numbers, host, facts, conditions = ([*each] for each in lists)
        return replace(self, numbers=numbers, host=host, facts=facts, conditions=conditions)

    def tensor(self, name: str, dtype: DType, *sizes: Expression, fill: Expression | None = None) -> Tensor:
        """Return a tensor that the host allocates."""
        tensor, allocate = self.names.tensor(name, dtype, *sizes)
        self.host.append(replace(allocate, fill=fill))
        self.facts += (build.apply("eq", build.size(tensor, axis), size) for axis, size in enumerate(sizes))
        self.bytes = build.add(self.bytes, build.mul(build.product(sizes), build.integer(dtype.size)))
        return tensor

    def number(self, name: str, value: Expression) -> Expression:
        """Return a number that the host computes."""
        symbol = self.names.symbol(name, INT64)
        self.numbers.append(Assign(symbol=symbol, value=value))
        return build.read(symbol)


def _ranked(loop: For, kernel: Kernel, place: int, made: _Made) -> Block | None:
    """Return what finds what iterations find in the counters of a loop, and the loop that reads that; else None."""
    loop = _updating(loop, made.names)
    variables, tensors = _variables(loop), _tensors(loop)
    after = live_before(kernel.body[place + 1 :], NONE) & assigned_symbols(loop.body)
    if after - live_before(loop.body, NONE) or not (variables or tensors):
        return None
    if any(not tensor.type.rank for tensor in tensors):
        return None  # no bins: one element, whose iterations have an order
    ranker = _Ranker(loop, kernel, made)
    # What is counted in variables may depend on what was found in tensors.
    found = [ranker.of_tensor(tensor) for tensor in tensors] + [ranker.of_variable(symbol) for symbol in variables]
    nests = [nest for each in found if each is not None for nest in each]
    if None in found:
        return None
    made.conditions.append(build.apply("ge", ranker.length, build.integer(worth_chunks(made.target))))
    return (*nests, ranker.rest(kernel.body[:place]))


@dataclass(slots=True)
class _Ranker:
    """Takes the counters of a loop apart.

    `body` is that of the loop that is left, `own` are its variables in place of counters, which get values at `starts`.
    """

    loop: For
    kernel: Kernel
    made: _Made
    body: Block = ()
    own: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])
    starts: list[Statement] = field(default_factory=list[Statement])

    def __post_init__(self) -> None:
        """Begin with the loop as it is."""
        self.body = self.loop.body

    @property
    def length(self) -> Expression:
        """The number of iterations."""
        return build.iterations(self.loop.start, self.loop.stop)

    @property
    def here(self) -> Expression:
        """The number of an iteration."""
        return build.sub(build.read(self.loop.index), self.loop.start)

    def of_variable(self, symbol: Symbol) -> Block | None:
        """Return what finds the values of a variable in which iterations begin."""
        names = self.made.names
        found = self.made.tensor(symbol.name, symbol.dtype, self.length)
        nest = replace(self.loop, body=(names.store(found, self.here, build.read(symbol)), *self.body))
        kept = self._alone(nest, {found}, {found})
        if kept is None or not may_be_cut(kept, frozenset((symbol,))):
            return None
        own = names.symbol(symbol.name, symbol.dtype)
        self.own[symbol] = own
        self.starts.append(Assign(symbol=own, value=names.load(found, self.here), loc=self.loop.loc))
        return (copied(kept, names),)

    @legality
    def _alone(self, nest: For, results: Collection[Tensor], own: Collection[Tensor]) -> For | None:
        """Return what of a nest leaves `results`, if it reads nothing that the loop stores but its `own`."""
        match without_dead((nest,), results):
            case (For() as kept,):
                return None if effects(kept).loads & effects(self.loop).stores - {*own} else kept
            case _:
                return None

    def of_tensor(self, tensor: Tensor) -> Block | None:
        """Return what finds what iterations read of a tensor, and leaves there what all have counted."""
        made, names, loop = self.made, self.made.names, self.loop
        reading = _Reading(self, tensor, _own_reads(loop.body, tensor))
        block = reading.block(loop.body, ())
        if not reading.known:
            return None
        kept = self._alone(replace(loop, body=block), {tensor, *reading.found}, {tensor})
        loads = 0 if kept is None else sum(isinstance(node, Load) and node.tensor == tensor for node in walk(kept))
        if kept is None or loads != len(reading.own) + len(reading.found) or _passes_on(kept):
            return None
        self.body = reading.rest(self.body)
        # Copies have no more elements in all than a few times the iterations.
        extents = [build.size(tensor, axis) for axis in range(tensor.type.rank)]
        bins = build.apply("floordiv", build.product(extents), build.integer(UNROLLED))
        each = made.number("each", build.apply("maximum", balanced(self.length, UNROLLED, passes=3), bins))
        past = build.add(self.length, build.sub(each, build.integer(1)))
        count = made.number("chunks", build.apply("floordiv", past, each))
        made.conditions.append(build.apply("ge", self.length, build.mul(each, build.integer(UNROLLED))))
        dtype = tensor.type.dtype
        copies = made.tensor(tensor.name, dtype, *extents, count, fill=build.integer(0))
        begins = made.tensor(tensor.name, dtype, *extents, build.add(count, build.integer(1)))
        chunks = _Chunks(kept, tensor, each, count, names)
        counted, found = chunks.nest(copies, {tensor}), chunks.nest(begins, {tensor, *reading.found})
        return counted, chunks.summed(copies, begins), found, chunks.given(begins)

    def rest(self, before: Block) -> For:
        """Return the loop that reads what was found."""
        left = with_variables(replace(self.loop, body=self.body), self.own)
        self.made.alone |= _alone(self.body, self.own.keys(), before)
        return replace(left, body=(*self.starts, *left.body))


def _own_reads(block: Block, tensor: Tensor) -> frozenset[int]:
    """Return the accesses by which updates of a tensor read what they add to."""
    found = set[int]()
    for store, update in updates_in(block):
        if store.tensor == tensor and update is not None:
            added = {node.access for node in walk(update[1]) if isinstance(node, Load)}
            found |= {node.access for node in walk(store.value) if isinstance(node, Load)} - added
    return frozenset(found)


def _passes_on(loop: For) -> bool:
    """Whether iterations give one another variables."""
    return bool(live_before(loop.body, NONE) & assigned_symbols(loop.body))


@dataclass(slots=True)
class _Reading:
    """Has what a loop reads of a tensor, but for its `own` reads in updates, in other tensors, the `found`.

    The host has `known` the iterations of all loops in which such a read stands.
    """

    ranker: _Ranker
    tensor: Tensor
    own: frozenset[int]
    found: list[Tensor] = field(default_factory=list[Tensor])
    reads: dict[int, Load] = field(default_factory=dict[int, Load])
    known: bool = True

    def block(self, block: Block, loops: tuple[For, ...]) -> Block:
        """Return a block that stands in these loops inside and stores each read of the tensor where it is made."""
        result: list[Statement] = []
        for statement in block:
            for node in self._read(statement):
                self.known &= all(_is_fixed(loop, self.ranker.kernel) for loop in loops)
                result.append(self._stored(node, loops))
            match statement:
                case For(body=body):
                    result.append(replace(statement, body=self.block(body, (*loops, statement))))
                case If(then=then, otherwise=otherwise):
                    first, second = (self.block(part, loops) for part in (then, otherwise))
                    result.append(replace(statement, then=first, otherwise=second))
                case _:
                    result.append(statement)
        return tuple(result)

    def _read(self, statement: Statement) -> Iterator[Load]:
        """Yield what a statement itself reads."""
        for node in walk(part for part in children(statement) if isinstance(part, EXPRESSIONS)):
            if isinstance(node, Load) and node.tensor == self.tensor and node.access not in self.own:
                yield node

    def _stored(self, node: Load, loops: tuple[For, ...]) -> Store:
        """Return the store of what is read there, into a tensor that is made for it."""
        names = self.ranker.made.names
        sizes = [self.ranker.length, *(build.iterations(loop.start, loop.stop) for loop in loops)]
        places = [self.ranker.here, *(build.sub(build.read(loop.index), loop.start) for loop in loops)]
        rank = self.ranker.made.tensor(f"{self.tensor.name}_rank", self.tensor.type.dtype, *sizes)
        self.found.append(rank)
        self.reads[node.access] = replace(names.load(rank, *places), loc=node.loc)
        return replace(names.store(rank, *places, node), loc=node.loc)

    def rest(self, block: Block) -> Block:
        """Return a block that reads what was found, and does not count."""

        def change(statement: Statement) -> Block:
            counts = isinstance(statement, Store) and statement.tensor == self.tensor
            return () if counts else (statement,)

        def visit(node: Node) -> Node:
            return self.reads.get(node.access, node) if isinstance(node, Load) else node

        return tuple(rewrite(statement, visit) for statement in rewrite_statements(block, change))


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Writes nests over chunks of a loop that counts into a tensor: `count` chunks of `each` iterations."""

    loop: For
    tensor: Tensor
    each: Expression
    count: Expression
    names: Names

    def nest(self, part: Tensor, stored: Collection[Tensor]) -> For:
        """Return the chunks, of which each counts into a copy of its own; stores into others leave what they read.

        `stored` are the tensors whose stores read the copies.
        """
        chunk, loop = self.names.symbol("chunk", INT64), self.loop

        def visit(node: Node) -> Node:
            match node:
                case Load(tensor=tensor, indices=indices) | Store(tensor=tensor, indices=indices) if (
                    tensor == self.tensor
                ):
                    own = of_other(indices, tensor, part)
                    return replace(node, tensor=part, indices=(*own, build.read(chunk)))
                case _:
                    return node

        def change(statement: Statement) -> Block:
            mine = isinstance(statement, Store) and statement.tensor in stored
            return (rewrite(statement, visit) if mine else statement,)

        first = build.add(loop.start, build.mul(build.read(chunk), self.each))
        stop = build.apply("minimum", build.add(first, self.each), loop.stop)
        inner = replace(loop, start=first, stop=stop, body=rewrite_statements(loop.body, change), claimed=False)
        return copied(
            replace(inner, index=chunk, start=build.integer(0), stop=self.count, body=(inner,)),
            self.names,
        )

    def summed(self, copies: Tensor, begins: Tensor) -> Statement:
        """Return what sums the copies up to where each chunk begins, from what the tensor holds."""
        total, chunk = (
            self.names.symbol(self.tensor.name, value_dtype(self.tensor.type.dtype)),
            self.names.symbol("chunk", INT64),
        )

        def write(at: tuple[Expression, ...]) -> Block:
            here, so_far = build.read(chunk), build.read(total)
            body = (
                self.names.store(begins, *at, here, so_far),
                Assign(symbol=total, value=build.add(so_far, self.names.load(copies, *at, here))),
            )
            loop = For(index=chunk, start=build.integer(0), stop=self.count, body=body, loc=self.loop.loc)
            first = Assign(symbol=total, value=self.names.load(self.tensor, *at))
            return first, loop, self.names.store(begins, *at, self.count, so_far)

        return self._for_each(write)

    def given(self, begins: Tensor) -> Statement:
        """Return what leaves in the tensor what all chunks have counted."""
        return self._for_each(
            lambda at: (self.names.store(self.tensor, *at, self.names.load(begins, *at, self.count)),)
        )

    def _for_each(self, write: Callable[[tuple[Expression, ...]], Block]) -> For:
        """Return a nest over the elements of the tensor."""
        axes = range(self.tensor.type.rank)
        places = [self.names.symbol(f"{self.tensor.name}_{axis}", INT64) for axis in axes]
        levels = [
            For(index=place, start=build.integer(0), stop=build.size(self.tensor, axis), body=(), loc=self.loop.loc)
            for axis, place in zip(axes, places, strict=True)
        ]
        return nested(levels, write(tuple(build.read(place) for place in places)))


# ---------------------------------------------------------------- places of their own


@legality
def _alone(body: Block, variables: Collection[Symbol], before: Block) -> frozenset[int]:
    """Return the stores of which no two iterations make one into the same element: each is at a variable that counts.

    The variable begins at no negative number, as those count from the end.
    """
    stores = [node for node in statements(body) if isinstance(node, Store)]
    known = definitions_in(before)
    for statement in before:
        known = known.after(statement)
    counters = [symbol for symbol in variables if _is_natural(known.values.get(symbol))]
    found = {store.access for store in stores if any(_is_counted_on(body, store, symbol) for symbol in counters)}
    often = Counter(store.tensor for store in stores)
    return frozenset(store.access for store in stores if store.access in found and often[store.tensor] == 1)


@legality
def _is_natural(value: Expression | None) -> bool:
    """Whether a value is known, and not negative."""
    return isinstance(value, Constant) and value.value >= 0


@legality
def _is_counted_on(body: Block, store: Store, symbol: Symbol) -> bool:
    """Whether a store is at a variable, by itself along an axis, that the block around the store alone counts on."""
    assigned = [node.symbol for node in statements(body) if isinstance(node, Assign)]
    if build.read(symbol) not in as_written(store) or assigned.count(symbol) != 1:
        return False
    return any(
        any(_counts(statement, symbol) for statement in block)
        for block in _blocks_of_turns(body)
        if any(statement is store for statement in block)
    )


def _counts(statement: Statement, symbol: Symbol) -> bool:
    """Whether a statement adds a positive number to a variable."""
    match statement:
        case Assign(symbol=counted, value=Apply(operator=operator, operands=(Read(symbol=read), Constant(value=more)))):
            return counted == read == symbol and operator.name == "add" and more > 0
        case _:
            return False


def _blocks_of_turns(block: Block) -> Iterator[Block]:
    """Yield a block, and those in branches of it: what an iteration runs once at most."""
    yield block
    for statement in block:
        if isinstance(statement, If):
            yield from _blocks_of_turns(statement.then)
            yield from _blocks_of_turns(statement.otherwise)
