"""What parameters of kernels are annotated with: `ti.types.ndarray`, `ti.template`, `ti.ref`."""

from __future__ import annotations

from typing import Any

from brickwork.taichi.compound import MatrixType
from brickwork.taichi.errors import TaichiCompilationError
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import items_of


class NdarrayType:
    """An array, a tensor of torch's or a NumPy array as an argument."""

    def __init__(
        self, dtype: Any = None, ndim: int | None = None, element_dim: int | None = None, element_shape: Any = None,
        field_dim: int | None = None, needs_grad: bool | None = None, boundary: str = "unsafe",
    ) -> None:  # fmt: skip
        """Say what is known of the array; `field_dim` is an older name of `ndim`."""
        if field_dim is not None:
            if ndim is not None and ndim != field_dim:
                raise ValueError("`ndim` and `field_dim` are one thing: give `ndim` alone")
            ndim = field_dim
        if element_dim is not None and not 0 <= element_dim <= 2:
            raise ValueError("Only scalars, vectors, and matrices are allowed as elements of ti.types.ndarray()")
        if element_dim and element_shape is not None and len(element_shape) != element_dim:
            raise ValueError(
                f"Both element_shape and element_dim are specified, but shape doesn't match specified dim: "
                f"{len(element_shape)}!={element_dim}"
            )
        self.ndim, self.needs_grad, self.boundary = ndim, needs_grad, boundary
        self.element_shape: tuple[int, ...] | None = None if element_shape is None else tuple(element_shape)
        self.element_dim = element_dim if self.element_shape is None else len(self.element_shape)
        self.dtype: ScalarType | None = None
        if isinstance(dtype, MatrixType):
            self.element_shape, self.dtype = dtype.shape, dtype.dtype
            self.element_dim = dtype.ndim
        elif dtype is not None and dtype is not MatrixType:
            self.dtype = scalar_type(dtype)

    @classmethod
    def __class_getitem__(cls, items: Any) -> NdarrayType:
        """Return the annotation: `ti.types.NDArray[ti.f32, 2]`."""
        return cls(*items_of(items)) if isinstance(items, tuple) else cls(items)

    def __repr__(self) -> str:
        """Return the annotation as it is written."""
        return f"NdarrayType(dtype={self.dtype}, ndim={self.ndim})"


class Template:
    """A value that is known while the kernel is compiled; a kernel is compiled for each."""

    def __init__(self, element_shape: Any = None, layout: Any = None, dtype: Any = None, dim: Any = None) -> None:
        """Say nothing."""
        del element_shape, layout
        self.dtype, self.dim = dtype, dim


class Ref:
    """A variable of the caller's that a function stores into."""

    def __init__(self, tp: Any) -> None:
        """Name the type."""
        self.type = tp


template, ref, ndarray = Template, Ref, NdarrayType


def is_template(annotation: Any) -> bool:
    """Return whether a parameter takes what is passed as it is."""
    return annotation is Template or isinstance(annotation, Template)


def kind_of(annotation: Any, name: str) -> Any:
    """Return the type that an annotation of a scalar stands for."""
    try:
        return scalar_type(annotation)
    except TaichiCompilationError:
        raise TaichiCompilationError(f"Invalid type annotation of `{name}`: {annotation!r}") from None
