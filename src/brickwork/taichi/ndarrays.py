"""`ti.ndarray`: cells that are passed to kernels as arguments."""

from __future__ import annotations

import copy
from typing import Any

from brickwork.taichi.cells import Cells, normal_shape
from brickwork.taichi.errors import TaichiRuntimeError
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import items_of


class Ndarray(Cells):
    """An array of scalars, vectors or matrices."""

    def __init__(
        self, dtype: Any, shape: Any, element_shape: tuple[int, ...] = (), *, needs_grad: bool = False
    ) -> None:
        """Make the cells, all zero."""
        super().__init__(scalar_type(dtype), element_shape)
        sizes = normal_shape(shape) if _is_shape(shape) else ()
        if not _is_shape(shape) or any(not 0 < size < 1 << 31 for size in sizes):
            raise TaichiRuntimeError(f"{shape} is not a valid shape for ndarray")
        self.allocate(sizes)
        self.grad: Any = Ndarray(dtype, shape, element_shape) if needs_grad else None

    def __deepcopy__(self, memo: Any) -> Any:
        """Return a copy with cells of its own, and gradients of its own."""
        made = super().__deepcopy__(memo)
        made.grad = copy.deepcopy(self.grad, memo)
        return made

    @property
    def element_type(self) -> ScalarType:
        """The type of the numbers in a cell."""
        return self.dtype

    @property
    def total_shape(self) -> tuple[int, ...]:
        """The axes of cells, then those of a cell."""
        return (*self.shape, *self.element_shape)

    def __repr__(self) -> str:
        """Return what the array is."""
        return f"<ti.Ndarray {self.dtype} {self.shape}>"

    def _reset_grad(self) -> None:
        if self.grad is not None:
            self.grad.fill(0)


class ScalarNdarray(Ndarray):
    """An array of scalars."""


class VectorNdarray(Ndarray):
    """An array of vectors."""

    def __init__(self, n: int, dtype: Any, shape: Any, **more: Any) -> None:
        """Make the cells, all zero."""
        super().__init__(dtype, shape, (n,), **more)


class MatrixNdarray(Ndarray):
    """An array of matrices."""

    def __init__(self, n: int, m: int, dtype: Any, shape: Any, **more: Any) -> None:
        """Make the cells, all zero."""
        super().__init__(dtype, shape, (n, m), **more)


def _is_shape(shape: Any) -> bool:
    given: list[Any] = items_of(shape) if isinstance(shape, tuple | list) else [shape]
    return all(isinstance(each, int) or "int" in str(getattr(each, "dtype", "")) for each in given)


def ndarray(dtype: Any, shape: Any, needs_grad: bool = False) -> Ndarray:
    """Make an array: `ti.ndarray(ti.f32, shape=(n, m))`."""
    if hasattr(dtype, "make_ndarray"):
        return dtype.make_ndarray(shape, needs_grad=needs_grad)
    return ScalarNdarray(dtype, shape, needs_grad=needs_grad)


def vector_ndarray(n: int, dtype: Any, shape: Any, needs_grad: bool = False) -> Ndarray:
    """Make an array of vectors: `ti.Vector.ndarray(n, ti.f32, shape=...)`."""
    return VectorNdarray(n, dtype, shape, needs_grad=needs_grad)


def matrix_ndarray(n: int, m: int, dtype: Any, shape: Any, needs_grad: bool = False) -> Ndarray:
    """Make an array of matrices: `ti.Matrix.ndarray(n, m, ti.f32, shape=...)`."""
    return MatrixNdarray(n, m, dtype, shape, needs_grad=needs_grad)
