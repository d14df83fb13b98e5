"""Element types of tensors, and the five types in which values are computed.

An element is widened when it is read and narrowed when it is stored: every signed integer computes as int64, every
unsigned one below 64 bits too, float16 and bfloat16 compute as float32. So an expression has one of the types in
`VALUE_DTYPES`, and only loads and stores see the others.

A complex element is two floats: a tensor of them is one of floats with an axis more (`nodes.TensorType.pairs`), and no
expression has a complex type. Their types are here for front ends and for torch.
"""

from __future__ import annotations

from enum import Enum

from brickwork.records import dataclass


class Kind(Enum):
    """The family of a DType; the order is that of promotion."""

    BOOL = 0
    UINT = 1
    INT = 2
    FLOAT = 3
    COMPLEX = 4


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: `name` as torch spells it, its family, and its width in bits."""

    name: str
    kind: Kind
    bits: int

    def __hash__(self) -> int:
        """Return that of the name."""
        return hash(self.name)

    def __str__(self) -> str:
        """Return torch's name without the module."""
        return self.name

    @property
    def size(self) -> int:
        """Bytes of one element in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        """Whether this is a floating-point type."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type (bool is not)."""
        return self.kind is Kind.INT or self.kind is Kind.UINT


BOOL = DType("bool", Kind.BOOL, 8)
UINT8 = DType("uint8", Kind.UINT, 8)
UINT16 = DType("uint16", Kind.UINT, 16)
UINT32 = DType("uint32", Kind.UINT, 32)
UINT64 = DType("uint64", Kind.UINT, 64)
INT8 = DType("int8", Kind.INT, 8)
INT16 = DType("int16", Kind.INT, 16)
INT32 = DType("int32", Kind.INT, 32)
INT64 = DType("int64", Kind.INT, 64)
FLOAT16 = DType("float16", Kind.FLOAT, 16)
BFLOAT16 = DType("bfloat16", Kind.FLOAT, 16)
FLOAT32 = DType("float32", Kind.FLOAT, 32)
FLOAT64 = DType("float64", Kind.FLOAT, 64)

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        BOOL,
        UINT8,
        UINT16,
        UINT32,
        UINT64,
        INT8,
        INT16,
        INT32,
        INT64,
        FLOAT16,
        BFLOAT16,
        FLOAT32,
        FLOAT64,
    )
}
"""Every element type by torch's name, but for complex ones."""

COMPLEX64 = DType("complex64", Kind.COMPLEX, 64)
COMPLEX128 = DType("complex128", Kind.COMPLEX, 128)
PARTS: dict[DType, DType] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
"""The type of the real and of the imaginary part, by the complex type."""
COMPLEX: dict[DType, DType] = {part: dtype for dtype, part in PARTS.items()}
"""The complex type by that of its parts."""
ELEMENTS: dict[str, DType] = DTYPES | {dtype.name: dtype for dtype in PARTS}
"""Every type that the elements of a tensor of torch's may have, by torch's name."""

VALUE_DTYPES = (BOOL, UINT64, INT64, FLOAT32, FLOAT64)
"""The types of expressions, in order of promotion."""


def value_dtype(dtype: DType) -> DType:
    """Return the type in which an element of `dtype` is computed."""
    if dtype is BOOL or dtype.bits == 64:
        return dtype
    if dtype.is_float:
        return FLOAT32
    return INT64


def join(left: DType, right: DType) -> DType | None:
    """Return torch's promotion of two value types, or None where it is refused (uint64 with int64).

    >>> join(INT64, FLOAT32).name
    'float32'
    """
    if {left, right} == {UINT64, INT64}:
        return None
    return max(left, right, key=VALUE_DTYPES.index)
