"""How far integers move with an index, wherever the index stands in them."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.analysis.slope import slope
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Symbol

I, J = Symbol("i", 1, INT64), Symbol("j", 2, INT64)
READ, OTHER, TWO = build.read(I), build.read(J), build.integer(2)


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (READ, 1),
        (OTHER, 0),
        (build.add(READ, OTHER), 1),
        (build.sub(OTHER, READ), -1),
        (build.add(READ, READ), 2),
        (build.mul(TWO, READ), 2),
        (build.mul(READ, TWO), 2),
        (build.sub(build.mul(TWO, READ), READ), 1),
        (build.mul(OTHER, OTHER), 0),
        (build.mul(READ, OTHER), None),
        (build.apply("floordiv", READ, TWO), None),
        (build.apply("minimum", READ, TWO), None),
        (build.add(READ, build.mul(READ, READ)), None),
        (build.sub(build.mul(READ, READ), READ), None),
    ],
    ids=str,
)
def test_steps_of_integers(value, step):
    assert slope(value, I) == step
