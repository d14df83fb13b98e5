"""Runs plain Python functions through the frontend and the interpreter, on nested lists of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias, cast

from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Program, TensorType
from brickwork.ir.signature import ArgumentType, ListType, ScalarType, Signature
from support.shared import define, lower

Number: TypeAlias = bool | int | float
Nested: TypeAlias = "Number | Sequence[Nested]"


def memory(values: Nested, dtype: DType = FLOAT32) -> Memory:
    """Return a dense tensor of the nested lists."""
    sizes: list[int] = []
    level = values
    while isinstance(level, Sequence):
        sizes.append(len(level))
        level = level[0] if level else 0
    flat: list[Number] = [values] if not isinstance(values, Sequence) else _flatten(values)
    return Memory(flat, tuple(sizes), strides(sizes), dtype)


def numbers(*sizes: int) -> Memory:
    """Return a dense tensor of eighths that ascend."""
    return Memory([place / 8 for place in range(prod(sizes))], sizes, strides(sizes), FLOAT32)


def _flatten(values: Nested) -> list[Number]:
    if not isinstance(values, Sequence):
        return [values]
    return list(itertools.chain.from_iterable(_flatten(item) for item in values))


def strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor."""
    result = [1] * len(sizes)
    for axis in range(len(sizes) - 2, -1, -1):
        result[axis] = result[axis + 1] * sizes[axis + 1]
    return tuple(result)


def nested(tensor: Memory) -> Nested:
    """Return a tensor as nested lists."""

    def level(prefix: tuple[int, ...]) -> Nested:
        if len(prefix) == len(tensor.sizes):
            return tensor.data[tensor.position(prefix)]
        return [level((*prefix, place)) for place in range(tensor.sizes[len(prefix)])]

    return level(())


def argument_type(value: object) -> ArgumentType:
    """Return the type of an argument."""
    match value:
        case Memory():
            rank = len(value.sizes)
            return TensorType(value.dtype, rank, contiguous=True, unit_axis=rank - 1 if rank else None)
        case bool():
            return ScalarType(BOOL)
        case int():
            return ScalarType(INT64)
        case float():
            return ScalarType(FLOAT64)
        case list() | tuple():
            items = cast("Sequence[object]", value)
            return ListType(FLOAT64 if any(isinstance(item, float) for item in items) else INT64, len(items))
        case _:
            raise TypeError(type(value).__name__)


def program_of(function: Callable[..., object], *arguments: object) -> Program:
    """Return the program of a function for the types of these arguments."""
    return lower(define(function), Signature(tuple(argument_type(item) for item in arguments)))


def run(function: Callable[..., object], *arguments: object, key: int = 0) -> tuple[Nested, ...]:
    """Define, lower and interpret a function; return its results."""
    program = program_of(function, *arguments)
    results = run_program(program, cast("Sequence[Memory]", arguments), key=key)
    return tuple(nested(item) for item in results)
