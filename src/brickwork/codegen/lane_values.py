"""The value of an expression in all lanes: one scalar for all, a scalar with a rule (a stride), or a vector.

A `Strided`, `Ramp` or `Wrapped` value costs scalar arithmetic only, and tells a load or a store where its lanes lie. In
scalar code every value is `Uniform`. Lane-wise rules hold as long as the lanes do not step over the ends of int64.

Not in here: the instructions that turn one form into another (`lanes.py`).
"""

from __future__ import annotations

from typing import TypeAlias

from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, DType
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Uniform:
    """The same scalar in every lane."""

    text: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Strided:
    """An int64: lane l has base + stride * l."""

    base: str
    stride: int

    @property
    def dtype(self) -> DType:
        """int64."""
        return INT64


@dataclass(frozen=True, slots=True)
class Ramp:
    """An int64: lane l has base + step * l; `step` is a scalar that is known at run time alone."""

    base: str
    step: str

    @property
    def dtype(self) -> DType:
        """int64."""
        return INT64


@dataclass(frozen=True, slots=True)
class Wraps:
    """How often lanes have passed a multiple of a period: 0 before lane `distance`, then 1, and one more each `period`.

    Both are i32 clamped to the number of lanes, and at least 1.
    """

    distance: str
    period: str


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An int64: lane l has base + stride * l + jump * (how often the lane has wrapped); `jump` is a scalar."""

    base: str
    stride: int
    jump: str
    wraps: Wraps

    @property
    def dtype(self) -> DType:
        """int64."""
        return INT64


@dataclass(frozen=True, slots=True)
class Varying:
    """A vector with one element a lane."""

    text: str
    dtype: DType


Value: TypeAlias = Uniform | Strided | Ramp | Wrapped | Varying

_ELEMENTS = {BOOL: "i8", FLOAT16: "half", BFLOAT16: "i16", FLOAT32: "float", FLOAT64: "double"}
_SCALARS = {BOOL: "i1", FLOAT32: "float", FLOAT64: "double"}


def scalar_type(dtype: DType) -> str:
    """Return the LLVM type in which a value of `dtype` is computed."""
    return _SCALARS.get(dtype, "i64")


def memory_type(dtype: DType) -> str:
    """Return the LLVM type of an element in memory; bfloat16 travels as its bits."""
    return _ELEMENTS.get(dtype, f"i{dtype.bits}")


def vector_type(scalar: str, width: int) -> str:
    """Return the LLVM type of `width` lanes; one lane is the scalar itself."""
    return scalar if width == 1 else f"<{width} x {scalar}>"


def type_suffix(scalar: str, width: int) -> str:
    """Return how an intrinsic's name spells a type: `v16f32`, `i64`."""
    stem = {"float": "f32", "double": "f64", "half": "f16"}.get(scalar, scalar)
    return stem if width == 1 else f"v{width}{stem}"
