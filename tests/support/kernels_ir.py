"""Kernels in IR, built by hand, so that analyses and transforms are tested without a frontend."""

from __future__ import annotations

from itertools import count

from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64, DType, value_dtype
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Read,
    Select,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)

Index = int | Symbol | Expression


class KernelBuilder:
    """Numbers symbols, tensors and accesses, and gives each statement a line of its own."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._numbers = count()
        self._accesses = count()
        self._lines = count(10)
        self.tensors: list[Tensor] = []
        self.scalars: list[Symbol] = []

    def tensor(self, name: str, rank: int, dtype: DType = FLOAT32, *, contiguous: bool = True) -> Tensor:
        """Make a tensor argument."""
        unit = rank - 1 if rank else None
        tensor = Tensor(name, next(self._numbers), TensorType(dtype, rank, contiguous, unit))
        self.tensors.append(tensor)
        return tensor

    def symbol(self, name: str, dtype: DType = INT64) -> Symbol:
        """Make a local variable."""
        return Symbol(name, next(self._numbers), dtype)

    def scalar(self, name: str, dtype: DType = INT64) -> Symbol:
        """Make a scalar argument."""
        symbol = self.symbol(name, dtype)
        self.scalars.append(symbol)
        return symbol

    def loc(self) -> Location:
        """Return the next line of a user's file."""
        line = next(self._lines)
        return Location(file="kernel.py", line=line, column=4, end_line=line, end_column=20, function="kernel")

    def load(self, tensor: Tensor, *indices: Index) -> Expression:
        """Read an element."""
        return Load(
            tensor=tensor,
            indices=tuple(map(value, indices)),
            access=next(self._accesses),
            dtype=value_dtype(tensor.type.dtype),
            loc=self.loc(),
        )

    def store(self, tensor: Tensor, indices: tuple[Index, ...], stored: Expression) -> Statement:
        """Write an element."""
        places = tuple(map(value, indices))
        return Store(tensor=tensor, indices=places, value=stored, access=next(self._accesses), loc=self.loc())

    def loop(self, index: Symbol, stop: Index, *body: Statement, start: Index = 0, claimed: bool = False) -> Statement:
        """Write a loop by one."""
        return For(index=index, start=value(start), stop=value(stop), body=body, claimed=claimed, loc=self.loc())

    def assign(self, symbol: Symbol, assigned: Expression) -> Statement:
        """Set a variable."""
        return Assign(symbol=symbol, value=assigned, loc=self.loc())

    def branch(self, condition: Expression, then: Block, otherwise: Block = ()) -> Statement:
        """Write a branch."""
        return If(condition=condition, then=then, otherwise=otherwise, loc=self.loc())

    def kernel(self, *body: Statement, facts: tuple[Expression, ...] = (), may_alias: bool = False) -> Kernel:
        """Close the kernel."""
        return Kernel(
            name="kernel",
            tensors=tuple(self.tensors),
            scalars=tuple(self.scalars),
            facts=facts,
            body=body,
            may_alias=may_alias,
        )


def value(index: Index) -> Expression:
    """Return an expression for a number, a variable or an expression."""
    if isinstance(index, int):
        return build.integer(index)
    return Read(symbol=index) if isinstance(index, Symbol) else index


def size(tensor: Tensor, axis: int) -> Expression:
    """Return the extent of an axis."""
    return Size(tensor=tensor, axis=axis)


def apply(name: str, *operands: Index) -> Expression:
    """Apply an operator."""
    return build.apply(name, *map(value, operands))


def wrapped(index: Index, tensor: Tensor, axis: int) -> Expression:
    """Return an index that counts from the end where it is negative."""
    inner = value(index)
    return Select(condition=apply("lt", inner, 0), then=apply("add", inner, size(tensor, axis)), otherwise=inner)


def timex() -> Kernel:
    """Return the causal depthwise convolution."""
    make = KernelBuilder()
    w, k, out = make.tensor("w", 2), make.tensor("k", 3), make.tensor("out", 3)
    eps = make.scalar("eps", FLOAT64)
    b, c, t, u = (make.symbol(name) for name in "bctu")
    s = make.symbol("s", FLOAT32)
    sizes = tuple(size(k, axis) for axis in range(3))
    place = apply("add", apply("sub", apply("sub", sizes[2], 1), t), u)
    product = build.apply("mul", make.load(w, c, wrapped(place, w, 1)), make.load(k, b, c, u))
    inner = make.loop(u, apply("add", t, 1), make.assign(s, build.apply("add", Read(symbol=s), product)))
    body = (
        make.assign(s, build.cast(Read(symbol=eps), FLOAT32)),
        inner,
        make.store(out, (b, c, t), Read(symbol=s)),
    )
    nest = make.loop(b, sizes[0], make.loop(c, sizes[1], make.loop(t, sizes[2], *body)))
    facts = tuple(apply("eq", size(out, axis), sizes[axis]) for axis in range(3))
    return make.kernel(nest, facts=facts)
