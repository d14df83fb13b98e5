"""Scratch tensors for variables that nests in gather form need from other iterations (`slices.py`).

    for t in order:                                for t in order:
        for k:                                         for k: z = f(g[t, k]); z_kept[k] = z
            z = f(g[t, k])                 ->          for j:
            for j: g[t - 1, j] += z * w[j, k]              total = 0
                                                           for k: total += z_kept[k] * w[j, k]
                                                           g[t - 1, j] += total

Each has an element for each iteration of the loops of its nest, and of those around that are independent.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.ir import build
from brickwork.ir.nodes import Allocate, Expression, Store, Symbol, Tensor
from brickwork.transform.autodiff.slices import Kept
from brickwork.transform.autodiff.trip_counts import Range, TripCounts
from brickwork.transform.scratch import Names


class KeptValues:
    """The tensors for the variables that are kept in one kernel; `allocated` makes them."""

    def __init__(self, names: Names, trip_counts: TripCounts) -> None:
        """Begin with none."""
        self.names, self.trip_counts = names, trip_counts
        self.allocated: list[Allocate] = []
        self.buffers: dict[tuple[Symbol, int, tuple[Symbol, ...]], tuple[Tensor, tuple[Range, ...]]] = {}

    def buffer(self, kept: Kept) -> tuple[Tensor, tuple[Range, ...]] | None:
        """Return where a variable is kept, and the ranges of the loops; None if the host does not know these."""
        loops = (*kept.around, *kept.loops)
        key = (kept.symbol, id(kept.ahead), tuple(loop.index for loop in loops))
        if key not in self.buffers:
            if kept.around and not all(self.trip_counts.begins(loop.index) for loop in kept.loops):
                return None  # rows of a ragged tensor: each would have room for all of them
            ranges = [self.trip_counts.of_loop(loop.index) for loop in loops]
            known = [item for item in ranges if item is not None]
            if len(known) < len(ranges):
                return None
            lengths = [build.add(build.sub(item.high, item.low), build.integer(1)) for item in known]
            sizes = [build.apply("maximum", length, build.integer(0)) for length in lengths]
            tensor, allocation = self.names.tensor(f"{kept.symbol.name}_kept", kept.symbol.dtype, *sizes)
            self.allocated.append(allocation)
            self.buffers[key] = tensor, tuple(known)
        return self.buffers[key]

    def keep(self, kept: Kept) -> Store:
        """Return the store of a variable that is kept."""
        tensor, at = self._element(kept, [build.read(loop.index) for loop in kept.loops])
        return self.names.store(tensor, *at, build.read(kept.symbol))

    def read(self, kept: Kept, indices: Sequence[Expression]) -> Expression:
        """Return the read of a variable that is kept, in the iteration with these indices."""
        tensor, at = self._element(kept, indices)
        return self.names.load(tensor, *at)

    def _element(self, kept: Kept, indices: Sequence[Expression]) -> tuple[Tensor, list[Expression]]:
        found = self.buffer(kept)
        if found is None:
            raise TypeError("what is kept has a place")
        tensor, ranges = found
        around = [build.read(loop.index) for loop in kept.around]
        return tensor, [build.sub(at, item.low) for at, item in zip((*around, *indices), ranges, strict=True)]
