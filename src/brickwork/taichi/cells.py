"""What fields and arrays have in common: cells of one type along some axes, kept in a tensor of torch's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

import torch

from brickwork.pytorch.dtypes import to_torch
from brickwork.taichi import state
from brickwork.taichi.errors import TaichiOutOfBoundsError, TaichiRuntimeError
from brickwork.taichi.matrix import Matrix, made
from brickwork.taichi.scalars import ScalarType, plain
from brickwork.taichi.sequences import items_of
from brickwork.taichi.swizzles import swizzle


def normal_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape that may be given as one number."""
    if shape is None or shape == ():
        return ()
    if isinstance(shape, int) or hasattr(shape, "item"):
        return (int(shape),)
    return tuple(int(each) for each in shape)


class Cells:
    """Cells of a scalar type, or of vectors or matrices of one."""

    data: torch.Tensor | None
    shape: tuple[int, ...]
    offset: tuple[int, ...] = ()

    def __init__(self, dtype: ScalarType, element_shape: tuple[int, ...]) -> None:
        """Have no cells yet."""
        self.dtype = dtype
        self.element_shape = element_shape
        self.data = None
        self.shape = ()

    def allocate(self, shape: tuple[int, ...]) -> None:
        """Make the cells, all zero."""
        self.shape = shape
        kind = to_torch(self.dtype.element)
        self.data = torch.zeros((*shape, *self.element_shape), dtype=kind, device=state.settings().device)

    @property
    def storage(self) -> torch.Tensor:
        """The tensor that has the cells."""
        if self.data is None:
            raise TaichiRuntimeError("This field has not been placed: lay it out with `shape=`, or `ti.root`")
        return self.data

    @property
    def n(self) -> int:
        """The number of rows of a cell."""
        return self.element_shape[0] if self.element_shape else 1

    @property
    def m(self) -> int:
        """The number of columns of a cell."""
        return self.element_shape[1] if len(self.element_shape) == 2 else 1

    @property
    def ndim(self) -> int:
        """The number of axes of cells."""
        return len(self.shape)

    # ------------------------------------------------------------ cells in Python's scope

    def _place(self, key: Any) -> tuple[int, ...]:
        if key is None:
            key = ()
        given = items_of(key) if isinstance(key, tuple | list | Matrix) else [key]
        indices = [one for each in given for one in (each.entries if isinstance(each, Matrix) else [each])]
        for each in indices:
            if isinstance(each, slice | float):
                said = f"Detected illegal element of type: {type(cast('object', each))}."
                raise TypeError(f"{said} Please be aware that slicing a ti.field is not supported so far.")
        if len(indices) != self.ndim:
            said = "Slicing is not supported on ti.field"
            raise AssertionError(f"{said}: {self.ndim} indices are needed, not {len(indices)}")
        offset = self.offset or (0,) * len(indices)
        place = tuple(int(index) - start for index, start in zip(indices, offset, strict=True))
        if not all(0 <= index < size for index, size in zip(place, self.shape, strict=True)):
            raise TaichiOutOfBoundsError(f"Out of bound access: indices {tuple(indices)} of {self.shape} cells")
        return place

    def __getitem__(self, key: Any) -> Any:
        """Return a cell: a number, or a vector or matrix that writes through."""
        place = self._place(key)
        cell = self.storage[place]
        return CellMatrix(self, cell) if self.element_shape else _number(cell)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a cell."""
        cell = self.storage[self._place(key)]
        if not self.element_shape:
            cell.fill_(self.dtype.number(plain(value)))
            return
        given = Matrix(value) if _has_entries(value) else None
        entries: list[Any] = given.entries if given is not None else [value] * max(1, self.n * self.m)
        flat = [self.dtype.number(plain(each)) for each in entries]
        cell.copy_(torch.tensor(flat, dtype=cell.dtype).reshape(self.element_shape))

    def __iter__(self) -> Iterator[Any]:
        """Refuse: kernels iterate over indices."""
        raise NotImplementedError("Struct for is only available in Taichi scope.")

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Yield the indices of all cells."""
        offset = self.offset or (0,) * self.ndim
        ranges = [range(start, start + size) for start, size in zip(offset, self.shape, strict=True)]
        return itertools.product(*ranges)

    # ------------------------------------------------------------ all cells

    def fill(self, value: Any) -> None:
        """Set all cells to one value."""
        if _has_entries(value):
            given = Matrix(value)
            flat = [self.dtype.number(each) for each in given.entries]
            self.storage.copy_(torch.tensor(flat, dtype=self.storage.dtype).reshape(self.element_shape))
        else:
            self.storage.fill_(self.dtype.number(plain(value)))

    def to_numpy(self, keep_dims: bool = False, dtype: Any = None, copy: bool = True) -> Any:
        """Return a NumPy array of the cells."""
        del copy
        found = self._kept_dims(keep_dims).detach().cpu().clone().numpy()
        return found if dtype is None else found.astype(dtype)

    def to_torch(self, device: Any = None, keep_dims: bool = False) -> torch.Tensor:
        """Return a tensor of the cells, a copy."""
        return self._kept_dims(keep_dims).detach().clone().to(device or self.storage.device)

    def _kept_dims(self, keep: bool) -> torch.Tensor:
        return self.storage.unsqueeze(-1) if keep and len(self.element_shape) == 1 else self.storage

    def from_numpy(self, arr: Any) -> None:
        """Set all cells from a NumPy array."""
        self._take(torch.as_tensor(arr if arr.flags.writeable else arr.copy()))

    def from_torch(self, arr: torch.Tensor) -> None:
        """Set all cells from a tensor."""
        self._take(arr.detach())

    def _take(self, given: torch.Tensor) -> None:
        wanted = tuple(self.storage.shape)
        if tuple(given.shape) != wanted and not (self.element_shape and self._one_column(given)):
            raise ValueError(f"ti.field shape {wanted} does not match the array's shape {tuple(given.shape)}")
        self.storage.copy_(given.reshape(wanted))

    def _one_column(self, given: torch.Tensor) -> bool:
        return given.numel() == self.storage.numel() and tuple(given.shape[: self.ndim]) == self.shape

    def copy_from(self, other: Any) -> None:
        """Set all cells from another object of this kind."""
        if not isinstance(other, Cells):
            raise TypeError("Cannot copy from a non-field object")
        if self.shape != other.shape:
            raise ValueError(f"ti.field shape {self.shape} does not match the source field shape {other.shape}")
        self.storage.copy_(other.storage)

    def __deepcopy__(self, memo: Any) -> Any:
        """Return a copy with cells of its own."""
        made_ = object.__new__(type(self))
        made_.__dict__.update(self.__dict__)
        made_.data = self.storage.clone()
        return made_


def _has_entries(value: Any) -> bool:
    return isinstance(value, Matrix | list | tuple) or (hasattr(value, "tolist") and value.shape != ())


def _number(cell: torch.Tensor) -> Any:
    value = cell.item()
    return int(value) if isinstance(value, bool) else value


class CellMatrix(Matrix):
    """A cell that is a vector or a matrix, in Python's scope; what is set in it is set in the cell."""

    def __init__(self, cells: Cells, cell: torch.Tensor) -> None:
        """Read the cell."""
        flat = [_number(each) for each in cell.reshape(-1)]
        self.set_all(flat, cells.element_shape, cells.dtype)
        object.__setattr__(self, "cell", cell)

    def _write(self) -> None:
        cell = cast("Any", self).cell
        cell.copy_(torch.tensor(self.entries, dtype=cell.dtype).reshape(cell.shape))

    def __setitem__(self, index: Any, value: Any) -> None:
        """Set an entry."""
        super().__setitem__(index, value)
        self._write()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set entries by their letters."""
        super().__setattr__(name, value)
        if swizzle(name, self.shape) is not None:
            self._write()

    def fill(self, value: Any) -> None:
        """Set all entries."""
        super().fill(value)
        self._write()

    def copy(self) -> Matrix:
        """Return a matrix of its own with these entries."""
        return made(self.entries, self.shape, self.dtype)
