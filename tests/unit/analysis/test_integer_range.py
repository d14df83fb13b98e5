"""Which integers expressions can be: no value is beyond the bounds, and codes of few bits have the least that do."""

from __future__ import annotations

import itertools

import pytest

from brickwork.analysis.integer_range import Range, integer_range
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT8, INT32, INT64, UINT8, UINT64, DType, value_dtype
from brickwork.ir.nodes import Apply, Cast, Constant, Expression, Load, Read, Select, Symbol, Tensor, TensorType
from brickwork.ir.scalar_semantics import Number, cast, evaluate


def element(name: str, dtype: DType) -> Load:
    tensor = Tensor(name, len(name), TensorType(dtype, 1))
    return Load(tensor=tensor, indices=(build.integer(0),), access=0, dtype=value_dtype(dtype))


BYTE, CODE, PLACE = element("byte", UINT8), element("codes", INT8), Read(symbol=Symbol("k", 0, INT64))
SAMPLES: dict[Expression, tuple[int, ...]] = {
    BYTE: (0, 1, 127, 128, 255),
    CODE: (-128, -1, 0, 5, 127),
    PLACE: (0, 1, 7),
}


def of(name: str, *operands: Expression | int) -> Expression:
    return build.apply(name, *(build.integer(item) if isinstance(item, int) else item for item in operands))


def value(expression: Expression, numbers: dict[Expression, int]) -> Number:
    match expression:
        case Constant(value=number):
            return number
        case Apply(operator=operator, operands=operands):
            return evaluate(operator, [value(operand, numbers) for operand in operands], expression.dtype)
        case Cast(operand=operand, dtype=dtype):
            return cast(value(operand, numbers), dtype)
        case Select(condition=condition, then=then, otherwise=otherwise):
            return value(then if value(condition, numbers) else otherwise, numbers)
        case _:
            return numbers[expression]


KNOWN: list[tuple[Expression, Range]] = [
    (build.integer(-3), (-3, -3)),
    (BYTE, (0, 255)),
    (CODE, (-128, 127)),
    (element("flag", BOOL), (0, 1)),
    (of("lt", BYTE, CODE), (0, 1)),
    (of("sub", of("bit_and", of("shift_right", BYTE, of("mul", of("mod", PLACE, 2), 4)), 15), 8), (-8, 7)),
    (of("add", BYTE, CODE), (-128, 382)),
    (of("sub", BYTE, CODE), (-127, 383)),
    (of("mul", CODE, CODE), (-16256, 16384)),
    (of("mul", BYTE, BYTE), (0, 65025)),
    (of("neg", CODE), (-127, 128)),
    (of("minimum", BYTE, 9), (0, 9)),
    (of("maximum", CODE, -5), (-5, 127)),
    (of("bit_and", PLACE, 6), (0, 6)),
    (of("bit_and", BYTE, CODE), (0, 255)),
    (of("mod", CODE, 16), (0, 15)),
    (of("shift_right", CODE, 3), (-128, 127)),
    (of("floordiv", BYTE, 16), (0, 255)),
    (Cast(operand=of("lt", BYTE, CODE), dtype=INT64), (0, 1)),
    (Cast(operand=BYTE, dtype=UINT64), (0, 255)),
    (Select(condition=of("lt", BYTE, CODE), then=BYTE, otherwise=CODE), (-128, 255)),
]
UNKNOWN = [
    PLACE,
    of("add", BYTE, PLACE),
    of("bit_and", CODE, -2),
    of("mod", BYTE, CODE),
    of("mod", CODE, BYTE),
    of("minimum", PLACE, BYTE),
    of("maximum", BYTE, PLACE),
    of("mul", PLACE, BYTE),
    of("sub", PLACE, BYTE),
    of("neg", PLACE),
    of("shift_right", PLACE, 3),
    of("bit_or", BYTE, CODE),
    of("floordiv", CODE, BYTE),
    of("floordiv", PLACE, 2),
    Constant(value=1.0, dtype=FLOAT32),
    element("reals", FLOAT32),
    Cast(operand=BYTE, dtype=FLOAT32),
    Select(condition=of("lt", BYTE, CODE), then=PLACE, otherwise=BYTE),
    Select(condition=of("lt", BYTE, CODE), then=BYTE, otherwise=PLACE),
    of("floordiv", BYTE, CODE),
    of("shift_left", BYTE, 60),
    of("sub", Cast(operand=BYTE, dtype=UINT64), Cast(operand=of("add", BYTE, 1), dtype=UINT64)),
    Cast(operand=CODE, dtype=UINT64),
    Cast(operand=Cast(operand=BYTE, dtype=FLOAT32), dtype=INT64),
    of("mul", element("words", INT32), element("others", INT32)),
]


@pytest.mark.parametrize(("expression", "bounds"), KNOWN)
def test_bounds_are_known_and_hold(expression: Expression, bounds: Range) -> None:
    assert integer_range(expression) == bounds
    for numbers in itertools.product(*SAMPLES.values()):
        found = dict(zip(SAMPLES, numbers, strict=True)) | {element("flag", BOOL): 1}
        assert bounds[0] <= int(value(expression, found)) <= bounds[1]


@pytest.mark.parametrize("expression", UNKNOWN)
def test_what_may_be_any_integer_has_no_bounds(expression: Expression) -> None:
    assert integer_range(expression) is None
