"""The arithmetic of values: every operator is there, and the corners are the product's rulings."""

from __future__ import annotations

import math
import struct

import pytest

from brickwork.ir.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    UINT8,
    UINT64,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.scalar_semantics import cast, evaluate, narrow, round_float32
from support.drawn import floats, integers

LOW, HIGH = -(1 << 63), (1 << 63) - 1
SAMPLES = {BOOL: True, INT64: 3, UINT64: 3, FLOAT32: 1.5, FLOAT64: 1.5}


def apply(name, *operands, dtype=INT64):
    return evaluate(OPERATORS[name], operands, dtype)


def same(left, right):
    return struct.pack("<d", left) == struct.pack("<d", right) or (math.isnan(left) and math.isnan(right))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_defined_for_every_operand_type(name):
    operator = OPERATORS[name]
    for dtype in operator.operands:
        result = evaluate(operator, [SAMPLES[dtype]] * operator.arity, dtype)
        kind = bool if operator.result.name == "BOOL" or dtype is BOOL else float if dtype.is_float else int
        assert type(result) is kind


def test_integers_wrap_at_64_bits():
    for a, b in integers(LOW, HIGH, 2):
        for name, exact in (("add", a + b), ("sub", a - b), ("mul", a * b), ("neg", -a)):
            result = apply(name, *((a, b) if name != "neg" else (a,)))
            assert LOW <= result <= HIGH, (name, a, b)
            assert (result - exact) % (1 << 64) == 0, (name, a, b)


def test_unsigned_integers_wrap_too():
    for a, b in integers(0, 2**64 - 1, 2):
        assert apply("sub", a, b, dtype=UINT64) == (a - b) % 2**64
        assert apply("bit_not", a, dtype=UINT64) == 2**64 - 1 - a


def test_integer_corners():
    assert apply("floordiv", LOW, -1) == LOW
    assert apply("mod", LOW, -1) == 0
    assert apply("abs", LOW) == LOW
    assert apply("floordiv", -7, 2) == -4
    assert apply("mod", -7, 2) == 1
    assert apply("mod", 7, -2) == -1
    assert apply("pow", 3, 50) == 3**50 - (1 << 64) * ((3**50 + (1 << 63)) >> 64)
    assert [apply("bit_length", n) for n in (0, 1, -1, 255, -256, HIGH, LOW)] == [0, 1, 1, 8, 9, 63, 64]
    assert apply("bit_length", 2**64 - 1, dtype=UINT64) == 64
    assert apply("shift_left", 1, 63) == LOW
    assert apply("shift_left", 1, 64) == 0
    assert apply("shift_right", -5, 1000) == -1
    assert apply("shift_right", 5, HIGH) == 0


def test_what_a_check_must_exclude_raises():
    with pytest.raises(ZeroDivisionError):
        apply("floordiv", 1, 0)
    with pytest.raises(ValueError, match="exponent"):
        apply("pow", 2, -1)


def test_float64_division_and_modulo_are_pythons_where_python_has_them():
    for a, b in floats(2):
        if b != 0.0 and not (math.isinf(a) or math.isnan(a)):
            assert same(apply("floordiv", a, b, dtype=FLOAT64), a // b), (a, b)
            assert same(apply("mod", a, b, dtype=FLOAT64), a % b), (a, b)
            assert same(apply("truediv", a, b, dtype=FLOAT64), a / b), (a, b)


def test_float_division_by_zero_is_ieee():
    assert apply("truediv", 1.0, 0.0, dtype=FLOAT64) == math.inf
    assert apply("truediv", 1.0, -0.0, dtype=FLOAT64) == -math.inf
    assert apply("floordiv", -1.0, 0.0, dtype=FLOAT32) == -math.inf
    assert math.isnan(apply("truediv", 0.0, 0.0, dtype=FLOAT64))
    assert math.isnan(apply("mod", 1.0, 0.0, dtype=FLOAT64))


@pytest.mark.parametrize("name", [name for name, each in OPERATORS.items() if FLOAT64 in each.operands])
def test_no_float_operator_raises(name):
    operator = OPERATORS[name]
    for dtype, width in ((FLOAT64, 64), (FLOAT32, 32)):
        for operands in floats(operator.arity, width=width):
            result = evaluate(operator, operands, dtype)
            assert isinstance(result, bool) or dtype is FLOAT64 or same(round_float32(result), result), operands


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("sqrt", (-1.0,), math.nan),
        ("log", (0.0,), -math.inf),
        ("log", (-1.0,), math.nan),
        ("log1p", (-1.0,), -math.inf),
        ("exp", (1e4,), math.inf),
        ("sinh", (-1e4,), -math.inf),
        ("cosh", (-1e4,), math.inf),
        ("atanh", (-1.0,), -math.inf),
        ("acos", (2.0,), math.nan),
        ("sin", (math.inf,), math.nan),
        ("gamma", (0.0,), math.inf),
        ("gamma", (-0.0,), -math.inf),
        ("gamma", (-1.0,), math.nan),
        ("lgamma", (-1.0,), math.inf),
        ("pow", (0.0, -1.0), math.inf),
        ("pow", (-0.0, -3.0), -math.inf),
        ("pow", (-8.0, 0.5), math.nan),
        ("pow", (-10.0, 309.0), -math.inf),
        ("pow", (1.0, math.nan), 1.0),
        ("round", (2.5,), 2.0),
        ("round", (-0.3,), -0.0),
        ("ceil", (-0.5,), -0.0),
        ("floor", (math.inf,), math.inf),
        ("fmod", (-7.0, 3.0), -1.0),
        ("fmod", (1.0, 0.0), math.nan),
        ("minimum", (1.0, math.nan), 1.0),
        ("minimum", (math.nan, 1.0), math.nan),
        ("maximum", (0.0, -0.0), 0.0),
        ("maximum", (-0.0, 0.0), -0.0),
    ],
)
def test_values_where_python_raises_or_order_matters(name, operands, expected):
    assert same(apply(name, *operands, dtype=FLOAT64), expected)


def test_float32_arithmetic_rounds_each_result():
    tenth = round_float32(0.1)
    assert apply("add", tenth, round_float32(0.2), dtype=FLOAT32) == round_float32(0.1 + 0.2)
    assert apply("mul", 2.0**127, 4.0, dtype=FLOAT32) == math.inf
    assert apply("add", 2.0**24, 1.0, dtype=FLOAT32) == 2.0**24


def test_integers_round_once_to_float32():
    for (value,) in integers(LOW, HIGH, 1):
        result = cast(value, FLOAT32)
        step = 2.0 ** max(abs(value).bit_length() - 24, 0)
        assert abs(int(result) - value) * 2 <= step
        assert struct.unpack("<f", struct.pack("<f", result))[0] == result


def test_integers_that_would_round_twice():
    assert cast((1 << 60) + (1 << 36) + 1, FLOAT32) == 2.0**60 + 2.0**37
    assert cast(-(1 << 60) - (1 << 36) - 1, FLOAT32) == -(2.0**60) - 2.0**37


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (math.nan, INT64, 0),
        (math.inf, INT64, HIGH),
        (-math.inf, INT64, LOW),
        (1e30, UINT64, 2**64 - 1),
        (-3.5, UINT64, 0),
        (-3.7, INT64, -3),
        (-1, UINT64, 2**64 - 1),
        (2**63, INT64, LOW),
        (math.nan, BOOL, True),
        (-0.0, BOOL, False),
        (True, INT64, 1),
        (True, FLOAT32, 1.0),
        (0.1, FLOAT32, 0.10000000149011612),
        (1e39, FLOAT32, math.inf),
    ],
)
def test_casts(value, dtype, expected):
    result = cast(value, dtype)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (200, INT8, -56),
        (-1, UINT8, 255),
        (1.0 + 2.0**-11, FLOAT16, 1.0),
        (1.0 + 3 * 2.0**-11, FLOAT16, 1.0 + 2.0**-9),
        (65520.0, FLOAT16, math.inf),
        (1.0 + 2.0**-8, BFLOAT16, 1.0),
        (1.0 + 3 * 2.0**-8, BFLOAT16, 1.0 + 2.0**-6),
        (3.4e38, BFLOAT16, math.inf),
        (-1.0, BFLOAT16, -1.0),
    ],
)
def test_narrowing(value, dtype, expected):
    assert narrow(value, dtype) == expected


def test_narrowing_keeps_nan():
    assert math.isnan(narrow(math.nan, BFLOAT16))
    assert math.isnan(narrow(math.nan, FLOAT16))
