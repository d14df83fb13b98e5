"""Snapshots: what loops read of a tensor that they do not store into, kept once before the outermost of them.

    for t in range(n):                         for t in range(n):
        for i in range(m):                         for j in range(m):
            for j in range(m):                         tape[t, j] = g[j]
                y[i] += f(g[j], x[i, j])   ->      for i in range(m):
        for j in range(m):                             for j in range(m): ...
            g[j] = ...                             ...

A tape of the load itself has an axis for each loop around it, and `g[j]` is the same in every iteration of the loop
over i. A snapshot has one for each loop that stores into the tensor, and one for each axis of the tensor that the loops
inside go along. It is made where it has fewer than the tape of the load. All loads of one part at one place share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from brickwork.analysis.found_places import divides
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, walk
from brickwork.records import dataclass
from brickwork.transform.autodiff.reaching_stores import ReachingStores
from brickwork.transform.autodiff.tapes import Tape, Tapes, length
from brickwork.transform.autodiff.trip_counts import Range, natural
from brickwork.transform.autodiff.varying_loads import Around
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A part of a tensor as it is before a loop: on each axis at one index, or all that a range holds.

    `unsure` are the axes whose index may be out of range where nothing in the loop reads.
    """

    tensor: Tensor
    loop: For | While
    axes: tuple[Expression | Range, ...]
    unsure: tuple[int, ...]
    tape: Tape

    def holds(self, tensor: Tensor, axes: Sequence[Expression | Range]) -> bool:
        """Whether a part of a tensor is in this one."""
        pairs = enumerate(zip(axes, self.axes, strict=False))
        return tensor == self.tensor and all(
            own == wanted or (isinstance(wanted, Range) and own == _whole(tensor, axis))
            for axis, (wanted, own) in pairs
        )


class Snapshots:
    """The snapshots of one derivation."""

    def __init__(self, states: ReachingStores, tapes: Tapes, names: Names) -> None:
        """Begin without a snapshot."""
        self.states = states
        self.tapes = tapes
        self.names = names
        self.made: list[Snapshot] = []

    def of(self, node: Load, around: Around) -> Snapshot | None:
        """Return the snapshot that a load reads from, or None if a tape of its own has as few axes."""
        changing, still = around.loops[: around.changing], around.loops[around.changing :]
        outer = [loop.index for loop in changing if isinstance(loop, For)]
        if not still or len(outer) < len(changing):
            return None
        axes = self.axes(node, changing, still)
        if axes is None or sum(isinstance(axis, Range) for axis in axes) >= len(still):
            return None
        for snapshot in self.made:
            if snapshot.loop is still[0] and snapshot.holds(node.tensor, axes):
                return snapshot
        lengths = [length(axis) for axis in axes if isinstance(axis, Range)]
        tape = self.tapes.tape(node.tensor.name, node.tensor.type.dtype, outer, lengths)
        if tape is None:
            return None
        single = (axis for axis, held in enumerate(axes) if not isinstance(held, Range))
        unsure = tuple(axis for axis in single if not self.states.always_in_range(node, axis))
        self.made.append(Snapshot(node.tensor, still[0], axes, unsure, tape))
        return self.made[-1]

    def axes(
        self, node: Load, changing: Sequence[For | While], still: Sequence[For | While]
    ) -> tuple[Expression | Range, ...] | None:
        """Return what a load reads of each axis in all iterations of the loops that do not change the tensor.

        None where that is not known before them, or moves with the loops around: then the parts would overlap.
        """
        inside = assigned_symbols(still[0])
        outside = frozenset(symbol for loop in changing for symbol in assigned_symbols(loop)) - inside
        result: list[Expression | Range] = []
        for axis, index in enumerate(node.indices):
            read = read_symbols(index)
            if any(isinstance(part, Load) or divides(part) for part in walk(index)):
                return None
            if not read & inside:
                result.append(index)
                continue
            bounds = self.tapes.trip_counts.of(natural(index))
            if read & outside or bounds.low is None or bounds.high is None:
                return None
            plain = isinstance(bounds.low, Constant) and bounds.low.value >= 0
            result.append(Range(bounds.low, bounds.high) if plain else _whole(node.tensor, axis))
        return tuple(result)

    def load(self, snapshot: Snapshot, indices: Sequence[Expression], values: Mapping[Symbol, Symbol]) -> Expression:
        """Return the element at some indices, in an iteration whose loops have the given variables."""
        pairs = zip(indices, snapshot.axes, strict=True)
        inner = [build.sub(index, axis.low) for index, axis in pairs if isinstance(axis, Range)]
        return self.tapes.load(snapshot.tape, snapshot.tape.place(values, inner))

    def before(self, loop: For | While, tensor_of: Callable[[Tensor], Tensor]) -> Iterator[Statement]:
        """Yield what makes the snapshots before a loop, from the tensors that stand for those of the source."""
        for snapshot in self.made:
            if snapshot.loop is loop:
                yield from self.copied(snapshot, tensor_of(snapshot.tensor))

    def copied(self, snapshot: Snapshot, source: Tensor) -> Block:
        """Return the loops that keep what the tensor has of the part."""
        loops: list[tuple[Symbol, Range, Expression]] = []
        indices: list[Expression] = []
        inner: list[Expression] = []
        for axis, held in enumerate(snapshot.axes):
            if isinstance(held, Range):
                item = self.names.symbol("item", INT64)
                loops.append((item, held, build.size(source, axis)))
                inner.append(build.sub(build.read(item), held.low))
            indices.append(build.read(loops[-1][0]) if isinstance(held, Range) else held)
        place = snapshot.tape.place({index: index for index in snapshot.tape.loops}, inner)
        body: Block = (self.tapes.store(snapshot.tape, place, self.names.load(source, *indices)),)
        for item, held, size in reversed(loops):
            end = build.add(held.high, build.integer(1))
            stop = end if end == size else build.apply("minimum", end, size)
            body = (For(index=item, start=held.low, stop=stop, body=body),)
        for axis in snapshot.unsure:
            body = (If(condition=_is_within(indices[axis], build.size(source, axis)), then=body, otherwise=()),)
        return body


def _whole(tensor: Tensor, axis: int) -> Range:
    return Range(build.integer(0), build.sub(build.size(tensor, axis), build.integer(1)))


def _is_within(index: Expression, size: Expression) -> Expression:
    """Return whether an index is one of an axis."""
    return build.apply("logical_and", build.apply("ge", index, build.integer(0)), build.apply("lt", index, size))
