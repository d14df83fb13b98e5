"""The types of the arguments that one compilation is for."""

from __future__ import annotations

from typing import TypeAlias

from brickwork.ir.dtypes import FLOAT32, DType
from brickwork.ir.nodes import TensorType
from brickwork.records import dataclass

NARROW_SIZE = 1 << 28
"""Sums of a few such numbers fit 32 bits."""
NARROW_EXTENT = (1 << 31) - (1 << 24)
"""Places of elements below this fit 32 bits, and so do those a few lanes further."""
ALIGNMENT = 16
"""Bytes of the widest access of one thread."""


MOST_RATE = 8
"""A GPU has code of its own for each rate from 1 to this: windows are mostly up to 7 wide, images scaled by 2 to 8."""


@dataclass(frozen=True, slots=True)
class ScalarType:
    """An int, float or bool argument: INT64, FLOAT64 (a weak Python float) or BOOL.

    `value` is what code is made for alone, of an int that is a rate of the operator (`Definition.rates`).
    """

    dtype: DType
    value: int | None = None


@dataclass(frozen=True, slots=True)
class ListType:
    """A list argument of known length."""

    dtype: DType
    length: int


@dataclass(frozen=True, slots=True)
class TensorListType:
    """A list of tensors."""

    items: tuple[TensorType, ...]


@dataclass(frozen=True, slots=True)
class AbsentType:
    """An optional argument that is None."""


@dataclass(frozen=True, slots=True)
class TextType:
    """A text, which code is made for alone."""

    value: str


ArgumentType: TypeAlias = TensorType | ScalarType | ListType | TensorListType | AbsentType | TextType


@dataclass(frozen=True, slots=True)
class Signature:
    """What a specialisation depends on.

    `arguments` follow the function's parameters. `out` holds the types of the caller's result tensors, in the order in
    which they are returned, or is empty when the operator allocates them. `may_alias` asks for code that is right when
    a written tensor shares memory with another one. `device` is the kind of device that the tensors are on, `cpu` or
    `cuda`. Only for `cuda`: `narrow` says that every size of a tensor argument is below NARROW_SIZE, that its strides,
    the places of its elements, counted from the first, and the product of its sizes (but for zeros) are below
    NARROW_EXTENT, so that a dense tensor of its shape is narrow too, and that every int argument (items of lists too)
    is nearer to 0 than NARROW_SIZE, as it may be the size of a new tensor; `aligned` that every tensor argument begins
    at a multiple of ALIGNMENT bytes. `default_dtype` is torch's, for operators that make float tensors without naming a
    dtype; for all others it is FLOAT32.
    """

    arguments: tuple[ArgumentType, ...]
    out: tuple[TensorType, ...] = ()
    may_alias: bool = False
    device: str = "cpu"
    narrow: bool = False
    aligned: bool = False
    default_dtype: DType = FLOAT32
