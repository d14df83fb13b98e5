"""`ti.types`: the types that parameters and results of kernels are annotated with."""

from __future__ import annotations

from typing import Any

from brickwork.taichi import scalars
from brickwork.taichi.annotations import NdarrayType, ndarray, ref, template
from brickwork.taichi.compound import MatrixType, StructType, matrix, struct, vector
from brickwork.taichi.errors import unsupported
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.scalars import f16, f32, f64, i8, i16, i32, i64, u1, u8, u16, u32, u64

NDArray = NdarrayType
_ABSENT = frozenset("quant texture rw_texture sparse_matrix_builder argpack ArgPack bit_struct pixel_array".split())


def is_integral(dtype: Any) -> bool:
    """Return whether a type is one of integers."""
    return not scalar_type(dtype).is_real


def is_real(dtype: Any) -> bool:
    """Return whether a type is one of floats."""
    return scalar_type(dtype).is_real


def is_signed(dtype: Any) -> bool:
    """Return whether a type is one of signed integers."""
    return scalar_type(dtype).is_signed


class primitive_types:
    """The scalar types."""

    i8, i16, i32, i64 = scalars.i8, scalars.i16, scalars.i32, scalars.i64
    u1, u8, u16, u32, u64 = scalars.u1, scalars.u8, scalars.u16, scalars.u32, scalars.u64
    f16, f32, f64 = scalars.f16, scalars.f32, scalars.f64
    all_types = scalars.ALL
    integer_types = scalars.INTEGERS
    real_types = scalars.REALS


def __getattr__(name: str) -> Any:
    """Refuse what is not supported by its name."""
    if name in _ABSENT:
        raise AttributeError(str(unsupported(f"ti.types.{name}")))
    raise AttributeError(name)


__all__ = [
    "MatrixType", "NDArray", "NdarrayType", "StructType", "f16", "f32", "f64", "i8", "i16", "i32", "i64",
    "is_integral", "is_real", "is_signed", "matrix", "ndarray", "primitive_types", "ref", "struct", "template", "u1",
    "u8", "u16", "u32", "u64", "vector",
]  # fmt: skip
