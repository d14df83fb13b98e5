"""Arrays and fields as kernels see them: their sizes, their cells, and loops over their indices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, Local, Tensor
from brickwork.taichi.arithmetic import convert, is_number, lift
from brickwork.taichi.cells import Cells
from brickwork.taichi.compound import Struct
from brickwork.taichi.errors import TaichiCompilationError, TaichiIndexError, TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.fields import StructField
from brickwork.taichi.matrix import Matrix
from brickwork.taichi.scalars import ScalarType, i32
from brickwork.taichi.sequences import is_sequence
from brickwork.taichi.values import Element, Scalar, Value, current
from brickwork.transform.tensors import dense_type


class View:
    """A tensor as cells: `ndim` axes of cells, then those of a cell."""

    def __init__(
        self, tensor: Tensor, kind: ScalarType, ndim: int, element_shape: tuple[int, ...], *,
        offset: tuple[int, ...] = (), sizes: tuple[int, ...] | None = None, boundary: str = "unsafe", grad: Any = None,
    ) -> None:  # fmt: skip
        """See a tensor; `sizes` are known of fields, whose indices begin at `offset`."""
        self.tensor, self.dtype, self.ndim, self.element_shape = tensor, kind, ndim, element_shape
        self.offset, self.sizes, self.boundary = offset or (0,) * ndim, sizes, boundary
        self._grad = grad

    @property
    def shape(self) -> list[Any]:
        """The number of cells along each axis."""
        return [self.size(axis) for axis in range(self.ndim)]

    @property
    def grad(self) -> Any:
        """The array of the gradients."""
        if self._grad is None:
            raise TaichiCompilationError("this array has no gradients: make it with `needs_grad=True`")
        return self._grad()

    @property
    def n(self) -> int:
        """The number of rows of a cell."""
        return self.element_shape[0]

    @property
    def m(self) -> int:
        """The number of columns of a cell."""
        return self.element_shape[1] if len(self.element_shape) > 1 else 1

    def size(self, axis: int) -> Any:
        """Return the number of cells along an axis."""
        if self.sizes is not None:
            return self.sizes[axis]
        return Value(build.size(self.tensor, axis, current().loc), i32, index=True)

    def extents(self) -> list[tuple[Expression, Expression]]:
        """Return where the indices of each axis begin and end."""
        found: list[tuple[Expression, Expression]] = []
        for axis, start in enumerate(self.offset):
            stop = build.add(build.size(self.tensor, axis), build.integer(start))
            found.append((build.integer(start), stop))
        return found

    def cell(self, indices: Sequence[Any]) -> Any:
        """Return the cell at a place."""
        given = flat_indices(indices)
        extra: list[Any] = []
        if len(given) != self.ndim:
            if len(given) == self.ndim + len(self.element_shape) and self.element_shape:
                given, extra = given[: self.ndim], given[self.ndim :]
            else:
                raise TaichiIndexError(f"{self.ndim}d ndarray indexed with {len(given)}d indices")
        place = tuple(self._index(axis, index) for axis, index in enumerate(given))
        if not self.element_shape:
            return Element(self.tensor, place, self.dtype)
        cell = TensorMatrix(self.tensor, place, self.dtype, self.element_shape)
        return cell[tuple(extra)] if extra else cell

    def _index(self, axis: int, index: Any) -> Expression:
        place = index_of(index)
        if isinstance(place, build.Constant) and self.offset[axis] == 0 and place.value < 0:
            raise TaichiSyntaxError("Negative indices are not supported in Taichi kernels.")
        place = build.sub(place, build.integer(self.offset[axis]))
        if self.boundary == "clamp":
            last = build.sub(build.size(self.tensor, axis), build.integer(1))
            place = build.apply("maximum", build.apply("minimum", place, last), build.integer(0))
        return place


class TensorMatrix(Matrix):
    """A cell that is a vector or a matrix: its entries are elements."""

    def __init__(
        self, tensor: Tensor, place: tuple[Expression, ...], kind: ScalarType, element_shape: tuple[int, ...]
    ) -> None:
        """Be the cell at a place."""
        places = itertools.product(*map(range, element_shape))
        entries = [Element(tensor, (*place, *map(build.integer, each)), kind) for each in places]
        self.set_all(list(entries), element_shape, kind)
        object.__setattr__(self, "at", (tensor, place))

    def element(self, places: Sequence[Expression]) -> Element:
        """Return an entry at a place that is known at run time."""
        assert self.at is not None
        tensor, place = self.at
        return Element(tensor, (*place, *places), self.scalar_type)


MOST_VARIABLES = 64
"""Entries of a matrix that are variables each: 8 x 8 tiles stay in registers. More are an array, of which an entry at a
place known at run time is one load, not a choice among all."""


def local(name: str, value: Any) -> Any:
    """Return a large matrix as one whose entries lie in an array of the kernel's own; other values as they are."""
    if not isinstance(value, Matrix) or len(value.entries) <= MOST_VARIABLES:
        return value
    builder, kind = current(), value.scalar_type
    shape = value.shape
    tensor = Tensor(name, builder.symbol(name, INT64).number, dense_type(kind.value, len(shape)), shape)
    builder.emit(Local(tensor=tensor, loc=builder.loc))
    for place, entry in zip(itertools.product(*map(range, shape)), value.entries, strict=True):
        builder.store(tensor, tuple(map(build.integer, place)), convert(entry, kind).value)
    return TensorMatrix(tensor, (), kind, shape)


def flat_indices(indices: Sequence[Any]) -> list[Any]:
    """Return indices with those of vectors one after the other; `None` stands for no index."""
    found: list[Any] = []
    for each in indices:
        if each is None:
            continue
        if isinstance(each, Matrix):
            found += each.entries
        elif is_sequence(each):
            found += flat_indices(each)
        elif isinstance(each, slice):
            raise TaichiSyntaxError("a field or an array cannot be sliced: write a loop")
        else:
            found.append(each)
    return found


def index_of(index: Any) -> Expression:
    """Return an index as the IR takes it."""
    if not isinstance(index, Scalar) and not is_number(index):
        raise TaichiTypeError(f"indices must be integers, not {type(index).__name__}")
    scalar = lift(index)
    if scalar.type.is_real:
        raise TaichiTypeError(f"The type of indices must be integers: indices must be integers, not '{scalar.type}'")
    return build.cast(scalar.ir if scalar.type.holds_indices else scalar.value, INT64)


def view_of(cells: Cells) -> View:
    """Return a field, or an array that was captured, as a kernel sees it."""
    name = getattr(cells, "name", "") or "field"
    if cells.data is None and name.endswith(".grad"):
        raise TaichiCompilationError(f"Gradient {name} has not been placed, check whether `needs_grad=True`")
    if cells.data is None:
        raise TaichiCompilationError("This field has not been placed: lay it out with `shape=`, or `ti.root`")
    rank = len(cells.shape) + len(cells.element_shape)
    tensor = current().tensor(name, cells.dtype.element, rank, cells, "data")
    return View(tensor, cells.dtype, len(cells.shape), cells.element_shape, offset=cells.offset, sizes=cells.shape)


def struct_cell(field: StructField, indices: Sequence[Any]) -> Struct:
    """Return a cell of a field of structs."""
    made = Struct({name: subscript(each, indices) for name, each in field.members.items()})
    made.__dict__.update(methods=field.methods)
    return made


def subscript(target: Any, indices: Sequence[Any]) -> Any:
    """Return a cell of a field or of an array."""
    if isinstance(target, StructField):
        return struct_cell(target, indices)
    return (target if isinstance(target, View) else view_of(target)).cell(indices)


def over(target: Any) -> View:
    """Return what a loop over the indices of a field or an array runs over."""
    if isinstance(target, StructField):
        return over(next(iter(target.members.values())))
    if isinstance(target, View):
        return target
    if isinstance(target, Cells):
        return view_of(target)
    raise TaichiSyntaxError(
        f"a kernel cannot loop over {type(target).__name__}: use range, ndrange, a field or an array"
    )
