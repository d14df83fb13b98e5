"""Short names for writing IR by hand in tests."""

from __future__ import annotations

from itertools import count

from brickwork.ir.build import apply, integer, read
from brickwork.ir.dtypes import INT64, DType, value_dtype
from brickwork.ir.nodes import (
    Assign,
    Block,
    Check,
    Expression,
    Failure,
    FailureKind,
    For,
    If,
    Kernel,
    Load,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)

_numbers = count(1000)


def symbol(name: str, dtype: DType = INT64) -> Symbol:
    """Return a new variable."""
    return Symbol(name, next(_numbers), dtype)


def whole(value: int | Symbol | Expression) -> Expression:
    """Return an expression for an int, a variable or an expression."""
    if isinstance(value, int):
        return integer(value)
    return read(value) if isinstance(value, Symbol) else value


def op(name: str, *operands: int | Symbol | Expression) -> Expression:
    """Return an operator applied."""
    return apply(name, *(whole(operand) for operand in operands))


def load(tensor: Tensor, *indices: int | Symbol | Expression) -> Load:
    """Return an element."""
    dtype = value_dtype(tensor.type.dtype)
    return Load(tensor=tensor, indices=tuple(whole(item) for item in indices), access=next(_numbers), dtype=dtype)


def store(tensor: Tensor, indices: tuple[int | Symbol | Expression, ...], value: Symbol | Expression) -> Store:
    """Return a store."""
    places = tuple(whole(item) for item in indices)
    return Store(tensor=tensor, indices=places, value=whole(value), access=next(_numbers))


def let(variable: Symbol, value: int | Symbol | Expression) -> Assign:
    """Return an assignment."""
    return Assign(symbol=variable, value=whole(value))


def loop(index: Symbol, start: int | Symbol | Expression, stop: int | Symbol | Expression, *body: Statement) -> For:
    """Return a loop."""
    return For(index=index, start=whole(start), stop=whole(stop), body=body)


def when(condition: Expression, then: Block, otherwise: Block = ()) -> If:
    """Return a branch."""
    return If(condition=condition, then=then, otherwise=otherwise)


def repeat(condition: Expression, *body: Statement, prelude: Block = ()) -> While:
    """Return a while loop."""
    return While(prelude=prelude, condition=condition, body=body)


def check(condition: Expression, message: str = "failed", *values: Expression) -> Check:
    """Return a check."""
    return Check(condition=condition, failure=Failure(FailureKind.ASSERTION, message), values=values)


def extent(tensor: Tensor, axis: int = 0) -> Size:
    """Return a size."""
    return Size(tensor=tensor, axis=axis)


def kernel(tensors: tuple[Tensor, ...], *body: Statement, scalars: tuple[Symbol, ...] = ()) -> Kernel:
    """Return a kernel."""
    return Kernel(name="kernel", tensors=tensors, scalars=scalars, facts=(), body=body)
