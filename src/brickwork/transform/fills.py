"""Kernels that fill new tensors on a grid: one for each, or one for several small ones.

    for i in range(n): a[i] = 0                    for i in range(max(n, m)):
    for i in range(m): b[i] = 1            ->          if i < n: a[i] = 0
                                                       if i < m: b[i] = 1

A launch takes longer than to fill what is small: as many elements at most as the machine has threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce

from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.nodes import (
    FLAT_ACCESS,
    Allocate,
    Block,
    Expression,
    For,
    If,
    Launch,
    Role,
    Size,
    Statement,
    Store,
    Symbol,
)
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.argument_facts import ArgumentFacts
from brickwork.transform.device_kernel import make_kernel
from brickwork.transform.needless_fills import LateFill
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class Fill:
    """A new tensor, and what its elements are to be."""

    made: Allocate
    value: Expression

    @property
    def is_flat(self) -> bool:
        """Whether the elements lie next to one another."""
        return self.made.tensor.type.contiguous

    @property
    def total(self) -> Expression:
        """How many elements there are."""
        tensor = self.made.tensor
        sizes: list[Expression] = [Size(tensor=tensor, axis=axis) for axis in range(tensor.type.rank)]
        return build.product(sizes or [build.integer(1)])

    @property
    def name(self) -> str:
        """The name of the tensor in that of a kernel: an item of a list is named `xs[1]`."""
        return re.sub(r"\W", "_", self.made.tensor.name)


@dataclass(frozen=True, slots=True)
class Filler:
    """Writes the launches that fill tensors of a program."""

    names: Names
    known: ArgumentFacts
    target: Target

    def together(self, fills: Sequence[Fill]) -> Iterator[Statement]:
        """Yield what fills tensors: one launch where there are several, and all are small."""
        flat = [item for item in fills if item.is_flat]
        yield from (self.one(item) for item in fills if not item.is_flat)
        if len(flat) < 2:
            yield from map(self.one, flat)
            return
        most = build.integer(self.target.threads)
        small = reduce(_both, (build.apply("le", item.total, most) for item in flat))
        yield If(condition=small, then=(self.several(flat),), otherwise=tuple(map(self.one, flat)))

    def unless(self, fills: Sequence[LateFill]) -> Iterator[Statement]:
        """Yield what fills tensors where it is needed."""
        for item in fills:
            needed = build.logical_not(item.needless)
            if not build.is_constant(needed, 0):
                yield If(condition=needed, then=(self.one(Fill(item.made, item.fill)),), loc=item.made.loc)

    def one(self, item: Fill) -> Launch:
        """Return the launch that fills a tensor."""
        kind = item.made.tensor.type
        indices = [self.names.symbol(f"i{axis}", INT64) for axis in range(kind.rank)]
        sizes: list[Expression] = [Size(tensor=item.made.tensor, axis=axis) for axis in range(kind.rank)]
        body: Block
        if kind.contiguous and kind.rank > 1:
            body = (self.flat(item, indices[-1]),)
            indices, sizes = indices[-1:], [item.total]
        else:
            body = (_store(item, tuple(map(build.read, indices)), next(self.names.accesses)),)
        width = min(16 // kind.dtype.size, 8) if kind.contiguous else 1
        for index, size in zip(reversed(indices), reversed(sizes), strict=True):
            body = (For(index=index, start=build.integer(0), stop=size, body=body, role=Role.PARALLEL, width=width),)
            width = 1
        return self.launch(f"{item.name}_fill_{item.made.tensor.number}", body)

    def several(self, items: Sequence[Fill]) -> Launch:
        """Return the launch in which each thread fills an element of each tensor."""
        index = self.names.symbol("i", INT64)
        inside = tuple(
            If(condition=build.apply("lt", build.read(index), item.total), then=(self.flat(item, index),))
            for item in items
        )
        stop = reduce(lambda one, two: build.apply("maximum", one, two), (item.total for item in items))
        body = (For(index=index, start=build.integer(0), stop=stop, body=inside, role=Role.PARALLEL),)
        return self.launch(f"{items[0].name}_fills_{items[0].made.tensor.number}", body)

    def flat(self, item: Fill, index: Symbol) -> Store:
        """Return the store into an element, counted in the order of memory."""
        rank = item.made.tensor.type.rank
        if not rank:
            return _store(item, (), next(self.names.accesses))
        return _store(item, (*(build.integer(0) for _ in range(rank - 1)), build.read(index)), FLAT_ACCESS)

    def launch(self, name: str, body: Block) -> Launch:
        """Return the launch of a kernel."""
        return Launch(kernel=make_kernel(name, body, (), self.known, None))


def _store(item: Fill, place: tuple[Expression, ...], access: int) -> Store:
    tensor = item.made.tensor
    value = build.cast(item.value, value_dtype(tensor.type.dtype))
    return Store(tensor=tensor, indices=place, value=value, access=access, loc=item.made.loc)


def _both(one: Expression, two: Expression) -> Expression:
    return build.apply("logical_and", one, two)
