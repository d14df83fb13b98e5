"""Rows of tensors in `op.python`: their items as numbers, all evaluated before any is stored."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, cast

from brickwork.frontend.environment import is_tensor
from brickwork.frontend.reference_complex import is_number, read
from brickwork.frontend.reference_scalar import convert, dtype_of, result, scalar
from brickwork.frontend.row_forms import AXES, REDUCED
from brickwork.language.math import FUNCTIONS
from brickwork.records import dataclass


@dataclass(slots=True, eq=False)
class RowValue:
    """The items of a part of a tensor, or what was computed of them, in row-major order."""

    sizes: tuple[int, ...]
    items: tuple[Any, ...]

    def __len__(self) -> int:
        """Return how many items or rows there are."""
        return self.sizes[0]

    def __getitem__(self, place: Any) -> Any:
        """Return an item, or the part that indices and slices leave."""
        given = plain_indices(place)
        if ... in given:
            dots = given.index(...)
            rest = (slice(None) for _ in self.sizes[len(given) - 1 :])
            given = (*given[:dots], *rest, *given[dots + 1 :])
        given = (*given, *(slice(None) for _ in self.sizes[len(given) :]))
        axes = [_along(axis, size, part) for axis, (size, part) in enumerate(zip(self.sizes, given, strict=True))]
        strides = [prod(self.sizes[axis + 1 :]) for axis in range(len(axes))]
        places = itertools.product(*axes)
        part = tuple(self.items[sum(map(operator.mul, each, strides))] for each in places)
        sizes = tuple(len(axis) for axis in axes if isinstance(axis, range))
        return RowValue(sizes, part) if sizes else part[0]

    def __setitem__(self, place: Any, value: Any) -> None:
        """Store a number, or a row, in the type that the items have."""
        numbers = RowValue(self.sizes, tuple(range(len(self.items))))[place]
        row = None if is_number(value) else as_row(value)
        where = numbers if isinstance(numbers, RowValue) else RowValue((), (numbers,))
        found = itertools.repeat(value) if row is None else _spread(row, where.sizes)
        items = [*self.items]
        for number, item in zip(where.items, found, strict=False):
            kind = scalar(items[number])
            items[number] = result(convert(scalar(item), kind.dtype), kind.dtype, weak=kind.weak)
        self.items = tuple(items)

    @property
    def single(self) -> Any:
        """The item of a row that has one, which torch takes for a number."""
        if len(self.items) != 1:
            raise AttributeError("single")
        return self.items[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.sizes

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.sizes)

    def size(self, axis: int | None = None) -> Any:
        """Return the sizes, or one of them."""
        return self.sizes if axis is None else self.sizes[axis]

    def dim(self) -> int:
        """Return how many axes it has."""
        return len(self.sizes)

    def numel(self) -> int:
        """Return how many items there are."""
        return prod(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        """Run over the items or rows."""
        return map(self.__getitem__, range(len(self)))

    def __getattr__(self, name: str) -> Reduction:
        """Return what reduces the row, or computes with each item."""
        if name not in REDUCED and f"torch.{name}" not in FUNCTIONS:
            raise AttributeError(name)
        return Reduction(self, name)

    def map_along(self, axis: int, function: Callable[[RowValue], Any]) -> Any:
        """Return what a function makes of each row along an axis: numbers, rows, or pairs of them."""
        axis %= self.ndim
        first, last = self.sizes[:axis], self.sizes[axis + 1 :]
        places = [*itertools.product(*map(range, first), *map(range, last))]
        found = [function(self[(*each[:axis], slice(None), *each[axis:])]) for each in places]
        if found and isinstance(found[0], tuple):
            pairs = zip(*cast("list[tuple[Any, ...]]", found), strict=True)
            return tuple(_put_together(each, axis, first, last) for each in pairs)
        return _put_together(found, axis, first, last)

    @property
    def flat(self) -> RowValue:
        """Return the items along one axis."""
        return RowValue((len(self.items),), self.items)


def _put_together(found: Sequence[Any], axis: int, first: tuple[int, ...], last: tuple[int, ...]) -> Any:
    """Return numbers, or rows, of places before and behind an axis as one row."""
    if not first and not last:
        return found[0]
    if not found or not isinstance(found[0], RowValue):
        return RowValue((*first, *last), tuple(found))
    count = len(found[0])
    sizes = (*first, count, *last)
    places = itertools.product(*map(range, sizes))
    inner = (*first, *last)

    def number(place: tuple[int, ...]) -> int:
        rest = (*place[:axis], *place[axis + 1 :])
        return sum(at * prod(inner[level + 1 :]) for level, at in enumerate(rest))

    return RowValue(sizes, tuple(found[number(place)].items[place[axis]] for place in places))


def product(multiply: Callable[..., Any], add_up: Callable[[Iterator[Any]], Any], left: Any, right: Any) -> Any:
    """Return `a @ b` of rows and matrices."""
    one, other = as_row(left), as_row(right)
    if one is None or other is None or one.ndim > 2 or other.ndim > 2:
        return None
    if one.sizes[-1] != other.sizes[0]:
        raise RuntimeError(f"size mismatch of a product: {one.sizes[-1]} and {other.sizes[0]}")
    rows = [one] if one.ndim == 1 else [*one]
    columns = [other] if other.ndim == 1 else [other[:, number] for number in range(other.sizes[1])]
    items = tuple(add_up(map(multiply, row.items, column.items)) for row in rows for column in columns)
    sizes = (*one.sizes[:-1], *other.sizes[1:])
    return RowValue(sizes, items) if sizes else items[0]


def _along(axis: int, size: int, part: Any) -> Sequence[int]:
    """Return the places along an axis: a range for a slice, one for an index."""
    if isinstance(part, slice):
        return range(size)[part]
    if part is ... or not -size <= part < size:
        raise IndexError(f"index {part} is out of bounds for dimension {axis} with size {size}")
    return (part % size,)


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The method of a row that reduces it, or one of its items, not called yet."""

    row: RowValue
    name: str

    def along(self, reduce: Callable[[RowValue], Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return what `reduce` makes of all items, or of those along the axis that is given."""
        words = {**dict(zip(AXES, arguments, strict=False)), **named}
        axis = words.get("dim")
        if axis is None:
            return reduce(self.row.flat)
        found = self.row.map_along(int(axis), reduce)
        if words.get("keepdim"):
            axis = int(axis) % self.row.ndim
            sizes = found.sizes if isinstance(found, RowValue) else ()
            items = found.items if isinstance(found, RowValue) else (found,)
            return RowValue((*sizes[:axis], 1, *sizes[axis:]), items)
        return found

    def __call__(self) -> Any:
        """Stand for the call, which is that of the execution."""
        raise TypeError(f"`{self.name}` of a row is not called here")


def as_row(found: Any) -> RowValue | None:
    """Return a row, or a tensor that has dimensions as one; None of anything else."""
    if isinstance(found, RowValue):
        return found
    if not is_tensor(found) or not found.ndim:
        return None
    items = tuple(read(item, dtype_of(found)) for item in found.flatten().tolist())
    return RowValue(tuple(map(int, found.shape)), items)


def combined(combine: Callable[..., Any], *operands: Any) -> RowValue | None:
    """Return what an operator makes of rows, and of numbers, which count for each item; None if there are no rows."""
    found = [item if is_number(item) else as_row(item) for item in operands]
    rows = [item for item in found if isinstance(item, RowValue)]
    if not rows or any(item is None for item in found):
        return None
    rank = max(len(row.sizes) for row in rows)
    whole = [(1,) * (rank - len(row.sizes)) + row.sizes for row in rows]
    sizes = tuple(next((size for size in axis if size != 1), 1) for axis in zip(*whole, strict=True))
    spread = [_spread(item, sizes) if isinstance(item, RowValue) else itertools.repeat(item) for item in found]
    columns = zip(range(prod(sizes)), *spread, strict=False)
    return RowValue(sizes, tuple(combine(*column[1:]) for column in columns))


def unary_of_row(compute: Callable[[str, Any], Any], name: str, found: Any) -> RowValue | None:
    """Return what a unary operator makes of a row, `~` of truth values as torch has it; None of anything else."""
    row = as_row(found)
    if row is not None and name == "bit_not" and all(isinstance(item, bool) for item in row.items):
        return RowValue(row.sizes, tuple(not item for item in row.items))
    return None if row is None else combined(partial(compute, name), row)


def _spread(row: RowValue, sizes: Sequence[int]) -> Iterator[Any]:
    """Return the items of a row for each place of larger sizes."""
    for axis, (size, other) in enumerate(zip(sizes[len(sizes) - len(row.sizes) :], row.sizes, strict=True)):
        if other not in {size, 1}:
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({other}) at non-singleton"
                f" dimension {axis}; index a size of 1, `s[0]`, where only the call shows that it is 1"
            )
    if row.sizes == tuple(sizes[len(sizes) - len(row.sizes) :]):
        return itertools.cycle(row.items) if row.items else iter(())
    steps = [0 if size == 1 else prod(row.sizes[axis + 1 :]) for axis, size in enumerate(row.sizes)]
    places = itertools.product(*map(range, sizes))
    return (row.items[sum(map(operator.mul, place[len(sizes) - len(steps) :], steps))] for place in places)


def slices_in(indices: Any) -> bool:
    """Return whether indices hold a slice, or `...`."""
    found = cast("tuple[Any, ...]", indices) if isinstance(indices, tuple) else (indices,)
    return any(isinstance(item, slice) or item is ... for item in found)


def plain_indices(indices: Any) -> tuple[Any, ...]:
    """Return indices and slices of Python's own numbers."""
    found = cast("tuple[Any, ...]", indices) if isinstance(indices, tuple) else (indices,)
    return tuple(map(_plain, found))


def _plain(found: Any) -> Any:
    if isinstance(found, slice):
        bounds = cast("Any", found)
        return slice(_int(bounds.start), _int(bounds.stop), _int(bounds.step))
    return found if found is ... else _int(found)


def _int(value: Any) -> int | None:
    return None if value is None else scalar(value).__index__()


class RowPlace:
    """A part of a tensor that is stored into."""

    def __init__(
        self, part: Any, store: Callable[[Any, tuple[int, ...], Any], None], binary: Callable[..., Any]
    ) -> None:
        """Take the part, what stores one item, and what computes."""
        self._part = part
        self._store = store
        self._binary = binary

    def __setitem__(self, zero: int, value: Any) -> None:
        """Store a row, or a number into each item."""
        del zero
        sizes = tuple(map(int, self._part.shape))
        row = None if is_number(value) else as_row(value)
        items = itertools.repeat(value) if row is None else _spread(row, sizes)
        for place, item in zip(itertools.product(*map(range, sizes)), items, strict=False):
            self._store(self._part, place, item)

    def update(self, operator: str, value: Any) -> None:
        """Store what `operator` makes of the part and a value."""
        before = as_row(self._part) if self._part.ndim else read(self._part.item(), dtype_of(self._part))
        self[0] = self._binary(operator, before, value)
