"""Taichi's scalar types: what elements they stand for, how two of them join, and how numbers of Python fit them."""

from __future__ import annotations

import math
from typing import Any

from brickwork.ir.build import round_float32
from brickwork.ir.dtypes import (
    BOOL,
    DTYPES,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
    Kind,
    value_dtype,
)
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A scalar type: its name in Taichi, and the element type of tensors that hold it."""

    name: str
    element: DType

    def __hash__(self) -> int:
        """Return that of the name."""
        return hash(self.name)

    def __deepcopy__(self, memo: Any) -> ScalarType:
        """Return the type itself: types are told apart by identity."""
        return self

    def __repr__(self) -> str:
        """Return Taichi's name."""
        return self.name

    def to_string(self) -> str:
        """Return Taichi's name."""
        return self.name

    @property
    def value(self) -> DType:
        """The type of the IR in which such a value is computed."""
        return value_dtype(self.element)

    @property
    def bits(self) -> int:
        """The width in bits."""
        return 1 if self.element is BOOL else self.element.bits

    @property
    def is_real(self) -> bool:
        """Whether it is a float."""
        return self.element.is_float

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.element.kind is Kind.INT

    @property
    def is_bool(self) -> bool:
        """Whether it is u1."""
        return self.element is BOOL

    @property
    def wraps(self) -> bool:
        """Whether its values are a part of those that the IR computes with, so that results have to be wrapped."""
        return self.element.is_integer and self.bits < 64

    @property
    def holds_indices(self) -> bool:
        """Whether sums and products of indices are taken for what they would be without a limit."""
        return self.is_signed and self.bits >= 32

    def holds(self, value: float) -> bool:
        """Return whether a number of Python is a value of the type without being wrapped."""
        if self.is_real:
            return True
        low = -(1 << (self.bits - 1)) if self.is_signed else 0
        return low <= value < low + (1 << self.bits)

    def number(self, value: Any) -> Any:
        """Return a number of Python as a value of the type: wrapped, truncated or rounded."""
        if self.is_real:
            return round_float32(float(value)) if self.value is FLOAT32 else float(value)
        if self.is_bool:
            return bool(value)
        if isinstance(value, float) and not math.isfinite(value):
            return 0
        low = -(1 << (self.bits - 1)) if self.is_signed else 0
        return (int(value) - low) % (1 << self.bits) + low

    def __call__(self, value: Any) -> Any:
        """Return a number of Python as a value of the type; in kernels a call is a cast."""
        return self.number(value)


class uint:  # Taichi's name, as `int` and `float` are
    """The default type of unsigned integers: as wide as that of integers."""


i8, i16, i32, i64 = (
    ScalarType(name, kind) for name, kind in zip(("i8", "i16", "i32", "i64"), (INT8, INT16, INT32, INT64), strict=True)
)
u1 = ScalarType("u1", BOOL)
u8, u16, u32, u64 = (
    ScalarType(name, kind)
    for name, kind in zip(("u8", "u16", "u32", "u64"), (UINT8, UINT16, UINT32, UINT64), strict=True)
)
f16, f32, f64 = (
    ScalarType(name, kind) for name, kind in zip(("f16", "f32", "f64"), (FLOAT16, FLOAT32, FLOAT64), strict=True)
)
ALL = (i8, i16, i32, i64, u1, u8, u16, u32, u64, f16, f32, f64)
INTEGERS = (i8, i16, i32, i64, u1, u8, u16, u32, u64)
REALS = (f16, f32, f64)
_BY_ELEMENT = {each.element: each for each in ALL}
ALIASES = {each.element.name: each for each in ALL if each is not u1}
"""The names `int32`, `uint8`, `float16` and so on."""


def plain(value: Any) -> Any:
    """Return a number of NumPy or torch as one of Python; other things as they are."""
    return value.item() if hasattr(value, "item") else value


def of_element(element: DType) -> ScalarType | None:
    """Return the type of elements of a tensor; None where Taichi has none."""
    return _BY_ELEMENT.get(element)


def named(kind: object) -> ScalarType | None:
    """Return the type that torch's or NumPy's name of it stands for, or the type itself; None for other things."""
    if isinstance(kind, ScalarType):
        return kind
    name = getattr(kind, "__name__", None) if isinstance(kind, type) else str(kind).removeprefix("torch.")
    element = DTYPES.get((name or "").removesuffix("_"))
    return None if element is None else of_element(element)


def join(left: ScalarType, right: ScalarType) -> ScalarType:
    """Return the type that an operator computes two operands in."""
    if left == right:
        return left
    if left.is_real != right.is_real:
        return left if left.is_real else right
    if left.is_real or left.bits != right.bits:
        return left if left.bits > right.bits else right
    return right if left.is_signed else left
