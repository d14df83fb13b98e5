"""Expressions are spelled as a user writes them, with the parentheses that they need."""

import pytest

from brickwork.ir import build
from brickwork.ir.build import apply
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Symbol, Tensor, TensorType
from brickwork.transform.spelling import spelled

A, B, C = (build.read(Symbol(name, number, INT64)) for number, name in enumerate("abc"))
X = Tensor("x", 0, TensorType(FLOAT32, 1))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (apply("add", apply("add", A, B), C), "a + b + c"),
        (apply("sub", A, apply("sub", B, C)), "a - (b - c)"),
        (apply("sub", apply("sub", A, B), C), "a - b - c"),
        (apply("mul", apply("add", A, B), C), "(a + b) * c"),
        (apply("floordiv", apply("mul", A, B), C), "(a * b) // c"),
        (apply("mod", A, apply("floordiv", B, C)), "a % (b // c)"),
        (apply("mul", A, apply("floordiv", B, C)), "a * (b // c)"),
        (
            apply(
                "floordiv",
                A,
                build.select(apply("eq", apply("add", B, C), build.integer(0)), build.integer(1), apply("add", B, C)),
            ),
            "a // (b + c)",
        ),
        (apply("minimum", A, apply("add", B, C)), "min(a, b + c)"),
        (
            apply("logical_and", apply("ge", build.size(X, 0), apply("add", A, B)), apply("lt", A, B)),
            "x.shape[0] >= a + b and a < b",
        ),
        (
            apply("logical_and", apply("logical_or", apply("eq", A, B), apply("eq", B, C)), apply("lt", A, B)),
            "(a == b or b == c) and a < b",
        ),
        (apply("eq", apply("floordiv", build.cast(A, INT64), B), C), "a // b == c"),
        (build.select(apply("lt", A, B), A, C), "..."),
    ],
)
def test_an_expression_is_spelled(expression, text):
    assert spelled(expression) == text
