"""What lanes may disagree on, which checks are tested at once, which lanes draw together, and what fits 32 bits."""

from types import SimpleNamespace

import pytest

from brickwork.codegen import division, narrowing
from brickwork.codegen.builder import Known
from brickwork.codegen.contraction import _may_differ, _may_overflow
from brickwork.codegen.failures import may_be_tested_together
from brickwork.codegen.lane_values import Strided, Uniform, Varying
from brickwork.codegen.random import _shareable
from brickwork.codegen.variables import diverges, leaves, leaves_divergently, may_vary
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT32, INT64, UINT64
from brickwork.ir.nodes import Break, Continue, Draw, Tensor, TensorType
from support.written import check, load, loop, op, repeat, symbol, when

I, N = symbol("i"), symbol("n")
LIST, GIVEN = (Tensor(name, number, TensorType(INT64, 1, True, 0), (4,)) for number, name in enumerate(("w", "g")))
VARYING = frozenset({I, LIST})


# ---------------------------------------------------------------- lanes


def test_lanes_disagree_on_what_is_made_of_variables_and_lists_that_differ():
    for expression, varies in (
        (op("add", N, I), True),
        (load(LIST, 0), True),
        (load(GIVEN, N), False),
        (op("add", N, 1), False),
    ):
        assert may_vary(expression, VARYING) is varies


@pytest.mark.parametrize("jump", [Break(), Continue()])
def test_lanes_jump_apart_under_a_condition_that_differs(jump):
    mine, ours, other = op("lt", I, 3), op("lt", N, 3), op("lt", N, 5)
    for block, apart in (
        ((jump,), False),
        ((when(ours, (jump,)),), False),
        ((when(mine, (jump,)),), True),
        ((when(mine, (), (jump,)),), True),
        ((when(mine, (when(ours, (jump,)),)),), True),
        ((when(ours, (when(mine, (jump,)), when(other, (jump,)))),), True),
        ((loop(N, 0, 9, when(mine, (jump,))),), False),
    ):
        assert leaves_divergently(block, VARYING) is apart, block
        assert diverges(loop(N, 0, 9, *block), VARYING) is apart, block
        assert diverges(repeat(ours, *block), VARYING) is apart, block
        assert diverges(repeat(ours, prelude=block), VARYING) is apart, block
        assert leaves(when(ours, block)) is leaves(when(ours, (), block)) is ("For" not in str(block)), block
    assert not leaves(when(ours, (loop(N, 0, 9, jump),)))
    assert leaves(when(ours, (check(ours), jump)))


def test_lanes_disagree_on_how_often_a_loop_runs():
    for start, stop in ((I, 9), (0, I)):
        assert diverges(loop(symbol("j"), start, stop), VARYING)
    assert diverges(repeat(op("lt", I, 3)), VARYING)
    assert not diverges(loop(symbol("j"), 0, N), VARYING)


# ---------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("condition", "together"),
    [
        (op("lt", I, N), True),
        (op("lt", op("mul", I, 3), N), True),
        (op("eq", op("floordiv", I, N), 3), False),
        (op("eq", op("mod", I, N), 3), False),
        (op("lt", load(GIVEN, I), N), False),
    ],
)
def test_checks_are_tested_together_where_conditions_have_a_value_in_any_case(condition, together):
    assert may_be_tested_together(check(condition)) is together


# ---------------------------------------------------------------- draws


def draws(draw=Draw.UNIFORM, width=8, counter=None, key=None, extra=None):
    one = Uniform("1", INT64)
    node = SimpleNamespace(draw=draw)
    return _shareable(SimpleNamespace(width=width), node, (key or one, counter or Strided("i", 1), extra or one))


def test_neighbours_draw_from_one_block():
    assert draws()
    assert draws(Draw.NORMAL)
    assert not draws(Draw.INTEGER)
    assert not draws(width=6)
    assert not draws(counter=Strided("i", 2))
    lanes = Varying("v", UINT64)
    assert not draws(counter=lanes)
    assert not draws(key=lanes)
    assert not draws(extra=lanes)


# ---------------------------------------------------------------- numbers of 32 bits


LEAST, MOST = -(2**31), 2**31 - 1


@pytest.mark.parametrize("fits", [division._fits, narrowing._fits])
def test_integers_fit_within_both_limits(fits):
    assert fits(Known(LEAST, MOST))
    assert not fits(Known(LEAST - 1, MOST))
    assert not fits(Known(LEAST, MOST + 1))


def test_all_integers_of_an_operation_fit():
    assert not narrowing._fits(Known(0, 1), Known(0, MOST + 1))


def test_a_mask_is_one_natural_number():
    masks = [Known(0, 0), Known(7, 7), Known(MOST, MOST), Known(-1, -1), Known(0, 7), Known(MOST + 1, MOST + 1)]
    assert [narrowing._is_mask(item) for item in masks] == [True, True, True, False, False, False]


# ---------------------------------------------------------------- sums of products


def differs(dtype=FLOAT16, *, masks=(), meets=(), parts=1, second=False, whole=False):
    plain = SimpleNamespace(factor=SimpleNamespace(masks=()), meets=(), parts=1)
    other = SimpleNamespace(factor=SimpleNamespace(masks=masks), meets=meets, parts=parts)
    sides = (plain, other) if second else (other, plain)
    return _may_differ(SimpleNamespace(dtype=dtype, sides=sides, contraction=SimpleNamespace(is_whole=whole)))


@pytest.mark.parametrize("second", [False, True])
def test_what_is_not_finite_may_differ_where_factors_are_changed(second):
    assert not differs(second=second)
    assert differs(FLOAT32, second=second)
    for changed in ({"masks": (True,)}, {"meets": (True,)}, {"parts": 2}):
        assert differs(second=second, **changed)
        assert not differs(second=second, whole=True, **changed)


@pytest.mark.parametrize(
    ("scale", "masks", "overflows"),
    [((0.5,), (), True), ((2.0, -0.5), (), True), ((2.0, -1.0), (), False), ((), (), False), ((0.5,), (True,), False)],
)
def test_a_sum_may_overflow_before_a_number_makes_it_smaller(scale, masks, overflows):
    side = SimpleNamespace(factor=SimpleNamespace(masks=masks), meets=(), parts=1)
    found = SimpleNamespace(is_whole=False, scale=[build.read(N), *(build.constant(each, FLOAT32) for each in scale)])
    assert _may_overflow(SimpleNamespace(dtype=FLOAT16, sides=(side, side), contraction=found)) is overflows
