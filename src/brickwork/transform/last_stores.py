"""Stores at places that elements say: the iteration that stores last into an element is found first.

    for t in range(n):                       last = filled(len(x), -1)
        x[at[t]] = y[t]           ->         for t in range(n): last[at[t]] = max(last[at[t]], t)
                                             for t in range(n):
                                                 if last[at[t]] == t: x[at[t]] = y[t]

For grids: both loops are parallel then. Where elements say how long loops are, the last iterations of the loops around
them are found first, then which of theirs is the last: there is no number for all of them. Loops whose index is an
index of the store, and changes nothing else about where it is made, stay out of the first. Where all iterations store
the same value, and read the element just before, as gradients do, the first of them reads and stores, and the others
have that value.
Invariant: each element has its value from the iteration that gave it in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from brickwork.analysis.analyse import analyse
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.polynomial import UnknownAtom
from brickwork.analysis.races import Facts
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
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
    assigned_symbols,
    read_symbols,
    rewrite,
    rewrite_blocks,
    rewrite_statements,
    statements,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.ascending import tensor_of
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.free_variables import with_body
from brickwork.transform.nests_apart import Changed, beside, each_launch
from brickwork.transform.privatise import OwnerFinder
from brickwork.transform.scratch import Names, copied

LAST = "_last_stores"
"""Ends the name of a kernel that finds which iterations store last."""
REMARK = "where there is room for a number for each element, which says what iteration stores last into it"
"""What `explain` says of it."""


@dataclass(frozen=True, slots=True)
class _Scatter:
    """A store in a nest of loops, in which it may meet itself alone, and what reads the element just before it.

    `around` are the loops around it.
    """

    nest: For
    store: Store
    around: tuple[For, ...]
    before: Assign | None = None

    @property
    def accesses(self) -> frozenset[int]:
        """The accesses of the tensor in the nest."""
        nodes = (self.store,) if self.before is None else (self.store, self.before.value)
        return frozenset(node.access for node in nodes if isinstance(node, Load | Store))


def scattered_nests(kernel: Kernel) -> frozenset[Symbol]:
    """Return the indices of the nests of a kernel in which nothing but such stores is in the way."""
    return frozenset(item.nest.index for item in _scatters(kernel))


# ---------------------------------------------------------------- which stores


def _scatters(kernel: Kernel) -> tuple[_Scatter, ...]:
    """Return the stores that stand in the way of independent iterations, and of nothing else."""
    nests = [statement for statement in kernel.body if isinstance(statement, For) and _may_scatter(statement)]
    if kernel.may_alias or not nests:
        return ()
    analysis = analyse(kernel)
    finder = OwnerFinder(
        Facts(analysis.model, Solver(), analysis.bounds), live_after_loops(kernel.body), frozenset(), updates=True
    )
    return tuple(item for nest in nests for item in _of_nest(nest, analysis, finder))


@legality
def _may_scatter(nest: For) -> bool:
    """Whether a nest does nothing that must stay in order, or may not be done twice, but store elements."""
    return not effects(nest).draws


def _of_nest(nest: For, analysis: Analysis, finder: OwnerFinder) -> Iterator[_Scatter]:
    accesses = {access.number: access for access in analysis.accesses}
    stores = (item for item in _stores(nest, (nest,), ()) if _is_scattered(accesses[item.store.access], analysis))
    found = [item for item in stores if _is_scatter(item) and _is_found_alone(item)]
    tensors = frozenset(item.store.tensor for item in found)
    for item in found:
        in_order = [loop for loop in item.around if not analysis.loops[loop.index].independent]
        if in_order and finder.is_apart(in_order[0], tensors):
            yield item


def _stores(nest: For, block: Block, around: tuple[For, ...]) -> Iterator[_Scatter]:
    before: Statement | None = None
    for statement in block:
        match statement:
            case Store(tensor=tensor, indices=indices):
                match before:
                    case Assign(value=Load(tensor=read, indices=same)) if (read, same) == (tensor, indices):
                        yield _Scatter(nest, statement, around, before)
                    case _:
                        yield _Scatter(nest, statement, around)
            case For(body=body):
                yield from _stores(nest, body, (*around, statement))
            case If(then=then, otherwise=otherwise):
                yield from _stores(nest, then, around)
                yield from _stores(nest, otherwise, around)
            case _:
                pass
        before = statement


@legality
def _is_scatter(item: _Scatter) -> bool:
    """Whether a store and what reads before it are all accesses of a tensor in a nest, and nobody claimed anything."""
    tensor = item.store.tensor
    nodes = (node for node in walk(item.nest) if isinstance(node, Load | Store) and node.tensor == tensor)
    claimed = any(loop.claimed for loop in item.around)
    if {*item.accesses} != {node.access for node in nodes} or claimed:
        return False
    return item.before is None or isinstance(item.store.value, Constant)


@legality
def _is_found_alone(item: _Scatter) -> bool:
    """Whether a nest that stores into locals alone comes to the same places, and surely to its end."""
    needed = effects(without_dead(_place(item, item.store.indices), {item.store.tensor}))
    stored = {tensor for tensor in effects(item.nest).stores if not tensor.is_local}
    return not needed.whiles and stored.isdisjoint(needed.loads)


def _is_scattered(access: Access, analysis: Analysis) -> bool:
    """Whether elements say at which place an access is made: else it is for the order of loops to keep stores apart.

    They say it, too, where the index is that of a loop which elements begin or end, if they need not ascend.
    """
    atoms = {atom for axis in access.axes for atom in axis.value.atoms()}
    rows = (loop for loop in access.loops if loop.atom in atoms and tensor_of(loop, analysis) is None)
    ends = (end.atoms() for loop in rows for end in (loop.start, loop.stop))
    return any(isinstance(atom, UnknownAtom) for atom in chain(atoms, *ends))


# ---------------------------------------------------------------- the change


@each_launch("grid")
def with_last_stores(launch: Launch, names: Names, target: Target) -> Changed | None:
    """Return the launch of the kernel with loops that find the last stores, where there is memory for that."""
    kernel = launch.kernel
    made: list[Allocate] = []
    total: Expression = build.integer(0)
    for item in _scatters(kernel):
        free = _free_loops(item)
        orders = _orders([loop for loop in item.around if loop not in free], item)
        axes = [axis for axis, index in enumerate(item.store.indices) if not _is_index_of(index, free)]
        sizes = tuple(build.size(item.store.tensor, axis) for axis in axes)
        notes: list[tuple[Tensor, Expression]] = []
        for order in orders:
            last, allocate = names.tensor(item.store.tensor.name, INT64, *sizes)
            notes.append((last, order))
            made.append(replace(allocate, fill=build.integer(-1)))
            total = build.add(total, build.mul(build.product(sizes), build.integer(INT64.size)))
        kernel = _with_last(kernel, item, free, axes, notes, names) if notes else kernel
    if kernel is launch.kernel:
        return None
    kernel = replace(kernel, name=f"{kernel.name}{LAST}")
    fits = build.apply("le", total, build.integer(target.scratch_bytes))
    return beside(launch, fits, tuple(made), kernel, REMARK)


@legality
def _free_loops(item: _Scatter) -> tuple[For, ...]:
    """Return the loops around a store whose indices are indices of it, and change nothing else about its place."""
    fixed = _fixed_loops(item)
    free = tuple(loop for loop in fixed if sum(_is_index_of(index, (loop,)) for index in item.store.indices) == 1)
    while True:
        kept = tuple(index for index in item.store.indices if not _is_index_of(index, free))
        place = without_dead(_place(item, kept), {item.store.tensor})
        read = {symbol for statement in place for symbol in read_symbols(_inside(statement))}
        read |= {loop.index for loop in statements(place) if isinstance(loop, For) and _carries(loop, item)}
        left = tuple(loop for loop in free if loop.index not in read)
        if left == free:
            return free
        free = left


@legality
def _carries(loop: For, item: _Scatter) -> bool:
    """Whether an iteration of a loop may read a variable, or a local's element, that the one before it stored."""
    found = effects(loop.body)
    stored = found.stores - found.declares - {item.store.tensor}
    return bool(stored or live_before(loop.body, NONE) & assigned_symbols(loop.body))


def _place(item: _Scatter, kept: Sequence[Expression]) -> Block:
    """Return a nest that stores, of what a nest does, where its store is made, and into locals."""
    value = build.integer(0)
    for index in kept:
        value = build.add(value, index)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, Store):
            return (statement,)
        if statement.access != item.store.access:
            return (statement,) if statement.tensor.is_local else ()
        indices = tuple(build.integer(0) for _ in statement.indices)
        return (replace(statement, indices=indices, value=value),)

    return rewrite_statements((item.nest,), visit)


def _inside(statement: Statement) -> Block:
    return statement.body if isinstance(statement, For) else (statement,)


@legality
def _fixed_loops(item: _Scatter) -> tuple[For, ...]:
    """Return the loops around a store that have the same iterations wherever they run."""
    changing = assigned_symbols(item.nest)
    return tuple(loop for loop in item.around if not read_symbols((loop.start, loop.stop)) & changing)


@legality
def _is_index_of(index: Expression, loops: Sequence[For]) -> bool:
    return isinstance(index, Read) and any(index.symbol == loop.index for loop in loops)


@legality
def _orders(loops: Sequence[For], item: _Scatter) -> tuple[Expression, ...]:
    """Return numbers that are greatest for the iteration of these loops which leaves its value in an element.

    The first of them counts most; the element says the iteration of loops whose index is one of its own. Nothing where
    a loop changes what it begins and ends by.
    """
    fixed = {loop.index for loop in _fixed_loops(item)}
    orders: list[Expression] = []
    for loop in loops:
        if any(_is_index_of(index, (loop,)) for index in item.store.indices):
            continue
        ends = effects((loop.start, loop.stop))
        if ends.loads or ends.reads & assigned_symbols(loop.body):
            return ()
        place = build.sub(build.read(loop.index), loop.start)
        if item.before is not None:
            place = build.sub(build.sub(loop.stop, build.integer(1)), build.read(loop.index))
        if orders and loop.index in fixed:
            place = build.add(build.mul(orders.pop(), build.iterations(loop.start, loop.stop)), place)
        orders.append(place)
    return tuple(orders)


def _with_last(
    kernel: Kernel,
    item: _Scatter,
    free: Sequence[For],
    axes: Sequence[int],
    notes: Sequence[tuple[Tensor, Expression]],
    names: Names,
) -> Kernel:
    """Return a kernel that notes which iteration stores last into an element, and then lets that one store.

    `notes` are tensors with these `axes` of the element's, for the numbers of iterations.
    """
    pairs = [
        (build.size(item.store.tensor, axis), build.size(last, place))
        for last, _ in notes
        for place, axis in enumerate(axes)
    ]
    sizes: dict[Node, Expression] = dict(reversed(pairs))
    indices = tuple(rewrite(item.store.indices[axis], lambda node: sizes.get(node, node)) for axis in axes)
    writer = _Writer(item, free, indices, names)
    body: list[Statement] = []
    for statement in kernel.body:
        if isinstance(statement, For) and statement.index == item.nest.index:
            for place, (last, _) in enumerate(notes):
                found = writer.noting(notes[: place + 1])
                body += (copied(each, names) for each in without_dead(found, {last}))
            body += rewrite_blocks((statement,), lambda block: writer.storing(block, notes))
        else:
            body.append(statement)
    facts = [build.apply("eq", mine, theirs) for theirs, mine in pairs]
    made = with_body(kernel, tuple(body), (*kernel.facts, *facts))
    return replace(made, alone=kernel.alone | item.accesses)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes a nest anew in which a store is made. Numbers of iterations are noted at `indices`."""

    item: _Scatter
    free: Sequence[For]
    indices: tuple[Expression, ...]
    names: Names

    def noting(self, notes: Sequence[tuple[Tensor, Expression]]) -> Block:
        """Return the nest, noting the last of these notes alone, where all before it are an iteration's own."""
        *known, (last, order) = notes

        def visit(statement: Statement) -> Block:
            match statement:
                case Store(access=access) if access == self.item.store.access:
                    value = build.apply("maximum", self.noted(last), order)
                    note = replace(self.names.store(last, *self.indices, value), loc=statement.loc)
                    return self.wanted(self.asked((note,), known))
                case Store(tensor=tensor):
                    return (statement,) if tensor.is_local else ()
                case For(index=index, body=body) if any(index == loop.index for loop in self.free):
                    return body
                case _:
                    return (statement,)

        return rewrite_statements((self.item.nest,), visit)

    def wanted(self, block: Block) -> Block:
        """Return what runs a block only where each free loop has an iteration: no place is looked at for none."""
        for loop in self.free:
            block = (If(condition=build.apply("lt", loop.start, loop.stop), then=block),)
        return block

    def storing(self, block: Block, notes: Sequence[tuple[Tensor, Expression]]) -> Block:
        """Return a block that stores only where all notes are an iteration's own."""
        found: list[Statement] = []
        for statement in block:
            if not isinstance(statement, Store) or statement.access != self.item.store.access:
                found.append(statement)
                continue
            chosen: Block = (statement,)
            if self.item.before is not None:
                chosen = (found.pop(), statement)
                found.append(replace(self.item.before, value=statement.value))
            found += self.asked(chosen, notes)
        return tuple(found)

    def asked(self, block: Block, notes: Sequence[tuple[Tensor, Expression]]) -> Block:
        """Return what runs a block only where notes are an iteration's own."""
        for last, order in reversed(notes):
            is_last = self.names.symbol("is_last", BOOL)
            asks = Assign(symbol=is_last, value=build.apply("eq", self.noted(last), order))
            block = (asks, If(condition=build.read(is_last), then=block))
        return block

    def noted(self, last: Tensor) -> Load:
        """Return what a tensor says of the element."""
        return replace(self.names.load(last, *self.indices), loc=self.item.store.loc)
