"""Scalars at run time: values, variables and elements, and when an integer has to be wrapped.

The IR computes integers in 64 bits. What Taichi computes in 32 (or 8, or 16) is kept as it comes, since sums, products
and bits of it are right in the bits that count, and is wrapped where other bits would show: compared, divided, made a
float. `fits` says that it is in range as it is. An `index` is made of loop indices, sizes, scalar arguments and
literals by sums and products of signed numbers of 32 bits or more: it is taken for what it would be without a limit,
so that its comparisons stay provable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, Symbol, Tensor
from brickwork.taichi import state
from brickwork.taichi.errors import TaichiCompilationError, TaichiTypeError
from brickwork.taichi.scalars import ScalarType


def current() -> Any:
    """Return the builder of the kernel that is compiled."""
    found = state.builder()
    if found is None:
        raise TaichiCompilationError("this is for kernels: it has no meaning in Python's scope")
    return found


class Scalar(ABC):
    """A number that is known when the kernel runs."""

    __slots__ = ("type",)
    type: ScalarType
    fits = True
    index = False

    @property
    @abstractmethod
    def ir(self) -> Expression:
        """The expression, which may have to be wrapped."""

    @property
    def value(self) -> Expression:
        """The expression, in range."""
        return self.ir if self.fits or not self.type.wraps else wrapped(self.ir, self.type)

    @property
    def compared(self) -> Expression:
        """The expression as comparisons and divisions take it."""
        return self.ir if self.index and self.type.holds_indices else self.value

    def __bool__(self) -> bool:
        """Refuse to be asked while the kernel is compiled."""
        raise TaichiTypeError("the truth of a value that is known only at run time is needed to compile")

    def __float__(self) -> float:
        """Refuse to be a number of Python, as `math.sin` asks for."""
        raise TaichiTypeError("a value that is known only at run time is no number of Python: use the function of `ti`")

    __int__ = __float__
    __index__ = __float__

    def __iter__(self) -> Iterator[Any]:
        """Refuse to be taken apart."""
        raise TaichiTypeError("a scalar cannot be iterated over")

    @property
    def dtype(self) -> ScalarType:
        """The type."""
        return self.type


def wrapped(value: Expression, kind: ScalarType) -> Expression:
    """Return the low bits of an integer as a value of the type."""
    if isinstance(value, build.Constant):
        return build.constant(kind.number(value.value), INT64, value.loc)
    if not kind.is_signed:
        return build.apply("bit_and", value, build.integer((1 << kind.bits) - 1), loc=value.loc)
    shift = build.integer(64 - kind.bits)
    moved = build.apply("shift_left", value, shift, loc=value.loc)
    return build.apply("shift_right", moved, shift, loc=value.loc)


class Value(Scalar):
    """The result of an operation."""

    __slots__ = ("_ir", "fits", "index")

    def __init__(self, ir: Expression, kind: ScalarType, *, fits: bool = True, index: bool = False) -> None:
        """Be an expression of a type."""
        self._ir, self.type, self.fits, self.index = ir, kind, fits, index

    @property
    def ir(self) -> Expression:
        """The expression."""
        return self._ir


class Variable(Scalar):
    """A variable of the kernel; it can be assigned."""

    __slots__ = ("fits", "index", "symbol")

    def __init__(self, symbol: Symbol, kind: ScalarType, *, fits: bool = False, index: bool = False) -> None:
        """Be a variable of a type."""
        self.symbol, self.type, self.fits, self.index = symbol, kind, fits, index

    @property
    def ir(self) -> Expression:
        """The value now."""
        return build.read(self.symbol, current().loc)


class Element(Scalar):
    """An element of a tensor; it can be stored into."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expression, ...], kind: ScalarType) -> None:
        """Be the element at a place."""
        self.tensor, self.indices, self.type = tensor, indices, kind

    @property
    def ir(self) -> Expression:
        """The value now."""
        return current().load(self.tensor, self.indices, self.type.value)


class LoopIndex(Value):
    """The index of a loop, which cannot be assigned."""

    __slots__ = ()


def kept(scalar: Scalar, name: str = "t") -> Variable:
    """Return a scalar as it is now, in a variable of its own."""
    read = current().keep(scalar.ir, name)
    return Variable(read.symbol, scalar.type, fits=scalar.fits, index=scalar.index)
