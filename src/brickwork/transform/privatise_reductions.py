"""Privatises array reductions on processors: parts of a loop that only updates a tensor get copies of their own.

    for i in range(n):       ->    parallel for p in range(PIECES):
        h[x[i]] += 1                   for j in range(m): copy[p, j] = 0
                                       for i in piece p of range(n): copy[p, x[i]] += 1
                                   for p in range(PIECES):
                                       for j in range(m): h[j] += copy[p, j]

Done where the loop is long beside the tensor, which is tested once, before it. Invariant: the pieces depend on sizes
alone and are joined in order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce

from brickwork.ir import build
from brickwork.ir.dtypes import INT64, VALUE_DTYPES, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Program,
    Reduction,
    Role,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.operators import Operator
from brickwork.ir.walk import NodeType, assigned_symbols, rewrite, statements, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.schedule.planner import FEW, PIECES, SHARE
from brickwork.transform.schedule.schedule import LANES_LIMIT, Schedule
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.split_reductions import nested
from brickwork.transform.strips import computes_ahead
from brickwork.transform.verbs.split import count_of

PER_ELEMENT = 4
"""Fewest updates for each element of the copies, which have to be begun and joined."""


@legality
def may_privatise(tensor: Tensor, operator: Operator | None) -> bool:
    """Whether copies of a tensor that are updated by an operator make up what one would have been."""
    dtype = tensor.type.dtype
    if operator is None or tensor.is_local:
        return False
    if dtype.is_float:
        return operator.name == "add" and dtype in VALUE_DTYPES
    return dtype.is_integer and (operator.name == "add" or dtype in VALUE_DTYPES)


def copied_version(index: Symbol) -> str:
    """Return the name of the version in which the loop over an index runs in pieces."""
    return f"copied {index.name} {index.number}"


def privatise_reductions(program: Program, schedules: Mapping[str, Schedule]) -> Program:
    """Return the program with copies for the loops that the schedules of its kernels give some."""
    if not any(isinstance(node, Store) and node.combine is not None for node in statements(program)):
        return program
    names = names_of(program)
    body: list[Statement] = []
    for statement in program.body:
        if isinstance(statement, Launch):
            copier = Copier(statement.kernel, schedules[statement.kernel.name], names)
            kernel = copier.kernel_with_copies()
            body += [*copier.made, replace(statement, kernel=kernel)]
        else:
            body.append(rewrite(statement, lambda node: _in_order(node, schedules, names)))
    return replace(program, body=tuple(body))


def _in_order(node: Node, schedules: Mapping[str, Schedule], names: Names) -> Node:
    """Return a kernel that runs again and again with its loops in order."""
    if not isinstance(node, Kernel):
        return node
    schedule = schedules[node.name]
    return rewrite(node, lambda item: _plain_loop(item, names) if _is_copied(item, schedule) else item)


def _is_copied(node: Node, schedule: Schedule) -> bool:
    """Whether a loop is to have copies; one that is for arguments without proofs has no updates, and runs in order."""
    chosen = schedule.copies(node.index) if isinstance(node, For) else frozenset[Tensor]()
    return bool(chosen) and any(isinstance(item, Store) and item.combine is not None for item in statements(node))


def _plain_loop(loop: NodeType, names: Names) -> NodeType:
    """Return a loop with its updates as reads and stores."""
    return rewrite(loop, lambda node: _plain(node, names) if isinstance(node, Store) else node)


def _plain(store: Store, names: Names, tensor: Tensor | None = None, before: tuple[Expression, ...] = ()) -> Store:
    """Return an update as a read and a store: of its tensor, or of a copy, whose first indices are `before`."""
    if store.combine is None:
        return store
    tensor, indices = tensor or store.tensor, (*before, *store.indices)
    dtype = value_dtype(tensor.type.dtype)
    element = Load(tensor=tensor, indices=indices, access=next(names.accesses), dtype=dtype, loc=store.loc)
    value = build.apply(store.combine.name, element, build.cast(store.value, dtype), loc=store.loc)
    access = next(names.accesses) if before else store.access
    return replace(store, tensor=tensor, indices=indices, value=value, access=access, combine=None)


@dataclass(slots=True)
class Copier:
    """Rewrites the loops of one kernel; `made` are the copies."""

    kernel: Kernel
    schedule: Schedule
    names: Names
    made: list[Allocate] = field(default_factory=list[Allocate])
    copies: dict[Symbol, dict[Tensor, Tensor]] = field(default_factory=dict[Symbol, "dict[Tensor, Tensor]"])

    def kernel_with_copies(self) -> Kernel:
        """Return the kernel; the copies are among its tensors."""
        body = self.block(self.kernel.body)
        return replace(self.kernel, body=body, tensors=(*self.kernel.tensors, *(item.tensor for item in self.made)))

    def block(self, block: Block, *, copied: bool = False) -> Block:
        """Return a block with its loops rewritten; `copied` where it stands in one that was to be."""
        result: list[Statement] = []
        for statement in block:
            match statement:
                case For(role=Role.SEQUENTIAL, body=body):
                    inside = copied or _is_copied(statement, self.schedule)
                    if _is_copied(statement, self.schedule) and self.is_fit(statement):
                        result.append(self.choice(statement))
                    else:
                        result.append(replace(statement, body=self.block(body, copied=inside)))
                case If() | While():
                    result.append(with_blocks(statement, lambda part: self.block(part, copied=copied)))
                case Store() if copied:
                    result.append(_plain(statement, self.names))
                case For() if copied:
                    result.append(_plain_loop(statement, self.names))
                case _:
                    result.append(statement)
        return tuple(result)

    @legality
    def is_fit(self, loop: For) -> bool:
        """Whether the host knows how long a loop is, and pieces of it may run at once."""
        shared = any(
            isinstance(node, For) and node.role is Role.PARALLEL and node.reductions for node in statements(loop)
        )
        return self.places().is_known(loop.start, loop.stop) and not shared and not effects(loop.body).leaves

    # ------------------------------------------------------------ the loops that do as one

    def choice(self, loop: For) -> If:
        """Return the loop in pieces where it is long enough, else as it was."""
        own = self.copies.get(loop.index) or self.make(loop)
        first = next(iter(own.values()))
        piece = self.names.symbol("piece", INT64)
        parts = For(
            index=piece,
            start=build.integer(0),
            stop=Size(tensor=first, axis=0),
            body=(
                *(self.begun(tensor, copy, piece, loop) for tensor, copy in own.items()),
                self.part(loop, own, piece),
            ),
            role=Role.PARALLEL,
            loc=loop.loc,
        )
        joined = (self.joined(tensor, copy, loop) for tensor, copy in own.items())
        condition = build.apply("gt", Size(tensor=first, axis=0), build.integer(0))
        plain = replace(loop, body=self.block(loop.body, copied=True))
        version = copied_version(loop.index)
        return If(condition=condition, then=(parts, *joined), otherwise=(plain,), version=version, loc=loop.loc)

    def make(self, loop: For) -> dict[Tensor, Tensor]:
        """Return the copies of what a loop updates, which have no elements where it is short."""
        tensors = dict.fromkeys(node.tensor for node in statements(loop) if isinstance(node, Store) and node.combine)
        chosen = self.schedule.copies(loop.index)
        updated = [tensor for tensor in tensors if tensor in chosen]
        counts = [_elements(tensor) for tensor in updated]
        least = build.mul(reduce(build.add, counts), build.integer(PER_ELEMENT * PIECES))
        least = build.apply("maximum", least, build.integer(SHARE))
        is_long = build.apply("ge", _turns(loop, self.places()), least)
        pieces = build.select(is_long, build.integer(PIECES), build.integer(0))
        own: dict[Tensor, Tensor] = {}
        for tensor in updated:
            extents = (build.size(tensor, axis) for axis in range(tensor.type.rank))
            own[tensor], made = self.names.tensor(f"{tensor.name}_copies", tensor.type.dtype, pieces, *extents)
            self.made.append(made)
        self.copies[loop.index] = own
        return own

    def part(self, loop: For, own: Mapping[Tensor, Tensor], piece: Symbol) -> For:
        """Return a piece of the loop, in order, on copies."""

        def visit(node: Node) -> Node:
            match node:
                case For(role=Role.PARALLEL):
                    return replace(node, role=Role.SEQUENTIAL)
                case Store(tensor=tensor) if tensor in own:
                    return _plain(node, self.names, own[tensor], (build.read(piece),))
                case Store():
                    return _plain(node, self.names)
                case _:
                    return node

        length = build.add(count_of(loop), build.integer(PIECES - 1))
        step = build.apply("floordiv", length, build.integer(PIECES))
        start = build.add(loop.start, build.mul(build.read(piece), step))
        stop = build.apply("minimum", build.add(start, step), loop.stop)
        return replace(loop, start=start, stop=stop, body=tuple(rewrite(item, visit) for item in loop.body))

    def begun(self, tensor: Tensor, copy: Tensor, piece: Symbol, loop: For) -> Statement:
        """Return the nest that begins a copy."""
        indices = self.indices(tensor)
        start = build.identity(
            Reduction(self.names.symbol(tensor.name, value_dtype(tensor.type.dtype)), self.operator(tensor, loop))
        )
        return _over(tensor, indices, self.names.store(copy, build.read(piece), *map(build.read, indices), start))

    def joined(self, tensor: Tensor, copy: Tensor, loop: For) -> For:
        """Return the nest that joins the copies of a tensor with it, one after the other."""
        piece, indices = self.names.symbol("piece", INT64), self.indices(tensor)
        places = tuple(map(build.read, indices))
        one, other = self.names.load(tensor, *places), self.names.load(copy, build.read(piece), *places)
        both = build.apply(self.operator(tensor, loop).name, one, other)
        inner = _over(tensor, indices, self.names.store(tensor, *places, both))
        return For(index=piece, start=build.integer(0), stop=Size(tensor=copy, axis=0), body=(inner,))

    def places(self) -> Partition:
        """Return what is the same in all of the kernel, which is what the host knows."""
        return Partition(assigned_symbols(self.kernel.body))

    def operator(self, tensor: Tensor, loop: For) -> Operator:
        """Return the operator that updates a tensor in a loop."""
        stores = (node for node in statements(loop) if isinstance(node, Store) and node.tensor == tensor)
        return next(store.combine for store in stores if store.combine is not None)

    def indices(self, tensor: Tensor) -> list[Symbol]:
        """Return new indices, one for each axis of a tensor."""
        return [self.names.symbol(f"place{axis}", INT64) for axis in range(tensor.type.rank)]


def _over(tensor: Tensor, indices: Sequence[Symbol], store: Store) -> Statement:
    """Return a store as a nest over all elements of a tensor."""
    levels = [
        For(index=index, start=build.integer(0), stop=build.size(tensor, axis), body=())
        for axis, index in enumerate(indices)
    ]
    if not levels:
        return store
    levels[-1] = replace(levels[-1], role=Role.VECTOR, width=FEW)
    return nested(levels, (store,))


def _elements(tensor: Tensor) -> Expression:
    return reduce(build.mul, (build.size(tensor, axis) for axis in range(tensor.type.rank)), build.integer(1))


def _turns(loop: For, places: Partition) -> Expression:
    """Return about how many updates a loop makes: its iterations times those of a loop in it that the host knows."""
    if any(isinstance(node, For) and computes_ahead(node) for node in loop.body):
        return build.mul(count_of(loop), build.integer(LANES_LIMIT))
    for node in loop.body:
        if isinstance(node, For) and places.is_known(node.start, node.stop):
            return build.mul(count_of(loop), _turns(node, places))
    return count_of(loop)
