"""Tapes: scratch tensors that keep values of a recomputation for the sweep back, one element an iteration.

A tape has an axis for each loop that it is told of. The host allocates it for the most iterations that each loop can
have (`trip_counts.py`); where the host cannot tell, there is no tape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brickwork.ir import build
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Allocate, Expression, Load, Store, Symbol, Tensor
from brickwork.records import dataclass
from brickwork.transform.autodiff.trip_counts import Range, TripCounts
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class Tape:
    """A tape; `loops` are the indices of the source's loops that it has an axis for, `ranges` what they run through.

    `name` is the user's name of what is kept.
    """

    tensor: Tensor
    loops: tuple[Symbol, ...]
    ranges: tuple[Range, ...]
    allocation: Allocate
    name: str

    def place(self, values: Mapping[Symbol, Symbol], inner: Sequence[Expression] = ()) -> tuple[Expression, ...]:
        """Return the indices of an iteration whose loops have the given variables, and further ones."""
        indices = (build.read(values[index]) for index in self.loops)
        return (*(build.sub(at, held.low) for at, held in zip(indices, self.ranges, strict=True)), *inner)


class Tapes:
    """All tapes of a derivation, in the order in which they were asked for."""

    def __init__(self, trip_counts: TripCounts, names: Names, lengths: TripCounts | None = None) -> None:
        """Begin without a tape; `lengths` are less than `trip_counts` knows, and close."""
        self.trip_counts = trip_counts
        self.lengths = lengths or trip_counts
        self.names = names
        self.made: list[Tape] = []

    def tape(
        self,
        name: str,
        dtype: DType,
        loops: Sequence[Symbol],
        sizes: Sequence[int | Expression] = (),
        *,
        close: bool = False,
    ) -> Tape | None:
        """Return a new tape with an axis for each loop, then axes of the given sizes; None if the host cannot tell.

        A `close` one is as long as the bounds of loops say: what can be run again needs none of a tensor's length.
        """
        ranges = [(self.lengths if close else self.trip_counts).of_loop(index) for index in loops]
        known = [each for each in ranges if each is not None]
        if len(known) < len(ranges):
            return None
        extents = [length(each) for each in known]
        tensor, allocation = self.names.tensor(f"{name}_tape", dtype, *extents, *sizes)
        tape = Tape(tensor, tuple(loops), tuple(known), allocation, name)
        self.made.append(tape)
        return tape

    def load(self, tape: Tape, indices: Sequence[Expression]) -> Load:
        """Return the read of an element of a tape."""
        return self.names.load(tape.tensor, *indices)

    def store(self, tape: Tape, indices: Sequence[Expression], value: Expression) -> Store:
        """Return the store of an element of a tape."""
        return self.names.store(tape.tensor, *indices, value)


def length(held: Range) -> Expression:
    """Return how many values a range holds; 0 where it has none."""
    return build.apply("maximum", build.add(build.sub(held.high, held.low), build.integer(1)), build.integer(0))
