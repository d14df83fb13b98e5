"""A recurrence runs in chunks where each condition on its slopes holds, and in order where one does not."""

import math
from dataclasses import replace
from functools import reduce

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from brickwork.ir.nodes import Assign, Symbol, Tensor, TensorType
from brickwork.transform.scratch import names_of
from brickwork.transform.slopes import _is_itemwise, _roots, _Writer, with_slopes
from support.lowering import memory
from support.scheduling import kernel_of, loops_of
from support.written import let, load, loop, op, store, symbol
from unit.transform.test_split_recurrences import is_cut, low_limits, pieces_of, results_of

__all__ = ["low_limits"]


def behind(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = x[c, t] + h * a[c, t]
            out[c, t] = h


def taken_away(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * a[c, t] - x[c, t]
            out[c, t] = h


def from_itself(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * 2.0 - h * a[c, t]
            out[c, t] = h


def in_parts(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 64.0
        for t in range(x.shape[1]):
            h = h / (1.0 + a[c, t] * a[c, t])
            out[c, t] = h


def begun_again(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = x[c, t] if a[c, t] > 0.0 else h * 2.0
            out[c, t] = h


def kept_or_begun(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * 2.0 if a[c, t] > 0.0 else x[c, t]
            out[c, t] = h


def by_way_of_a_loop(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            later, now = 0.0, 0.0
            for _ in range(2):
                later = now
                now = h * a[c, t]
            h = later + x[c, t]
            out[c, t] = h


CUT = [behind, taken_away, from_itself, in_parts, begun_again, kept_or_begun, by_way_of_a_loop]


def given(rows, long):
    generator = torch.Generator().manual_seed(rows * long)
    x = torch.randint(-3, 4, (rows, long), generator=generator).float()
    return x, torch.randint(-1, 2, (rows, long), generator=generator).float()


@pytest.mark.parametrize("function", CUT)
def test_linear_recurrences_mean_what_the_source_says(function):
    x, a = given(3, 13)
    assert torch.equal(*results_of(function, x, a, torch.zeros(3, 13)))
    assert is_cut(pieces_of(function, x, a, x))


def leaks_or_begins(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h + (x[c, t] - h) * 0.5
            if a[c, t] > 0.0:
                h = 2.0
            out[c, t] = h


def leaks_from_what_may_be_nothing(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            part = 3.0
            if a[c, t] <= 0.0:
                part = h * 0.5
            h = part - h * 0.25 + x[c, t]
            out[c, t] = h


def items_begun_again(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y = 0.0
            for n in range(3):
                if a[c, t] > 0.0:
                    state[n] = n
                state[n] = state[n] * 0.5 + x[c, t] * n
                y += state[n]
            out[c, t] = y


@pytest.mark.parametrize("function", [*CUT, leaks_or_begins, leaks_from_what_may_be_nothing, items_begun_again])
def test_what_is_not_finite_goes_as_far_as_in_the_source(function):
    rows = [math.inf, -math.inf, math.nan, 4.0]
    x, a = given(len(rows), 24)
    for row, value in enumerate(rows):
        x[row, 2 + row] = value
    found, expected = results_of(function, x, a, torch.zeros(len(rows), 24))
    torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0, equal_nan=True)
    assert is_cut(pieces_of(function, x, a, x))


def stays(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * 1e30 - 1e30 * x[c, t] + 1.0
            out[c, t] = h


def fades(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * 1e-30 + x[c, t]
            out[c, t] = h


def test_slopes_beyond_all_numbers_and_those_that_fade_away():
    x = torch.ones(1, 40)
    assert torch.equal(*results_of(stays, x, x, torch.zeros(1, 40)))
    x[0, 3] = math.inf
    found, expected = results_of(fades, x, x, torch.zeros(1, 40))
    assert torch.equal(found, expected)
    assert bool(found[0, 3:].isinf().all())


def by_a_middle_item(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y, parts = 0.0, [0.0] * 3
            for n in range(3):
                parts[n] = state[n] * a[c, t] + n
            for n in range(3):
                state[n] = parts[1] + parts[n]
                y += state[n]
            out[c, t] = y


def into_a_middle_item(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y, parts = 0.0, [0.0] * 3
            for n in range(3):
                parts[n] = state[n]
                parts[1] = state[n] * a[c, t] + n
            for n in range(3):
                state[n] = parts[n]
                y += state[n]
            out[c, t] = y


@pytest.mark.parametrize("function", [by_a_middle_item, into_a_middle_item])
def test_items_that_come_to_one_another_run_in_order(function):
    x, a = given(3, 12)
    assert torch.equal(*results_of(function, x, a, torch.ones(3, 12)))
    assert not is_cut(pieces_of(function, x, a, x))


def slopes_of(*states: Symbol, body):
    """Return the slopes of a loop that gives states new values."""
    loop = loops_of(kernel_of(plain, memory([1.0, 2.0])))["t"]
    return with_slopes(replace(loop, body=body), frozenset(states), names_of((loop,), 90))


def plain(x: torch.Tensor) -> None:
    for t in range(x.shape[0]):
        x[t] = 1.0


def test_a_float_grows_with_itself_in_another_precision():
    single, double = Symbol("h", 50, FLOAT32), Symbol("z", 51, FLOAT64)
    one = build.constant(1.0, FLOAT64)
    there = Assign(symbol=double, value=build.add(build.cast(build.read(single), FLOAT64), one))
    back = Assign(symbol=single, value=build.cast(build.read(double), FLOAT32))
    found = slopes_of(single, body=(there, back))
    assert found is not None
    assert not found.variables


def test_what_is_rounded_to_an_integer_or_counted_has_no_slope():
    number, count = Symbol("h", 50, FLOAT32), Symbol("n", 51, INT64)
    whole = Assign(symbol=count, value=build.cast(build.read(number), INT64))
    assert slopes_of(number, body=(whole,)) is None
    counted = Assign(symbol=number, value=build.cast(build.read(count), FLOAT32))
    assert slopes_of(count, body=(counted,)) is None


def test_the_slope_of_a_choice_is_that_of_what_is_chosen():
    number, asked = Symbol("h", 50, FLOAT32), Symbol("p", 51, BOOL)
    grown, other = build.mul(build.read(number), build.constant(2.0, FLOAT32)), build.constant(1.0, FLOAT32)
    for pair in ((grown, other), (other, grown), (grown, grown)):
        chosen = build.select(build.read(asked), *pair)
        found = slopes_of(number, body=(Assign(symbol=number, value=chosen),))
        assert found is not None
        before, after = found.body
        (slope,) = found.of(number).values()
        assert isinstance(before, Assign)
        assert before.symbol == slope
        doubled = build.mul(build.read(slope), build.constant(2.0, FLOAT64))
        expected = [doubled if each is grown else build.constant(0.0, FLOAT64) for each in pair]
        assert before.value == build.select(build.read(asked), *expected)
        assert after == Assign(symbol=number, value=chosen)


# ---------------------------------------------------------------- what depends on states


LIST, OTHER = (Tensor(name, 60 + at, TensorType(FLOAT32, 1, True, 0), (4,)) for at, name in enumerate(("l", "m")))
STATES = [symbol(f"s{number}", FLOAT32) for number in range(7)]
S, T, *_ = STATES
U, V, K, I = symbol("u", FLOAT32), symbol("v", FLOAT32), symbol("k"), symbol("i")
HALF = build.constant(0.5, FLOAT32)


def test_what_depends_on_a_state_by_way_of_a_later_iteration():
    body = (loop(K, 0, 3, let(U, V), let(V, S), let(T, HALF)),)
    assert _roots(body, frozenset((S,))) == dict.fromkeys((S, U, V), frozenset((S,)))


def test_few_variables_depend_on_one_another_and_no_lists():
    def roots(*states, into=U):
        total = reduce(build.add, (load(each, K) if isinstance(each, Tensor) else build.read(each) for each in states))
        give = store(into, (K,), total) if isinstance(into, Tensor) else let(into, total)
        return _roots((give,), frozenset(states))

    assert roots(*STATES[:5])[U] == {*STATES[:5]}
    assert roots(*STATES[:6]) is None
    assert roots(S, into=OTHER)[OTHER] == {S}
    assert roots(LIST)[U] == {LIST}
    for states in ((S, LIST), (LIST, OTHER)):
        assert roots(*states) is None
    assert roots(S, T, into=LIST) is None


def item(tensor, index, value=HALF):
    return store(tensor, (index,), build.mul(load(tensor, index), value))


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ((loop(K, 0, 4, item(LIST, K)),), True),
        ((loop(I, 0, 2, loop(K, 0, 4, item(LIST, K))),), True),
        ((loop(K, 0, 4, item(LIST, K), let(S, op("mul", S, HALF))),), True),
        ((loop(K, 0, 4, item(LIST, K)), item(OTHER, 0)), True),
        ((item(LIST, 0),), False),
        ((loop(K, 0, 4, item(LIST, K)), item(LIST, 0)), False),
        ((loop(K, 0, 4, item(LIST, K), item(LIST, op("sub", 3, K))),), False),
        ((loop(K, 0, 4, let(U, op("add", U, load(LIST, K)))),), False),
    ],
)
def test_items_of_lists_come_to_no_others(body, fits):
    roots = {LIST: frozenset((LIST,)), S: frozenset((S,)), U: frozenset((LIST, S))}
    assert _is_itemwise(body, roots) is fits


def test_a_variable_has_no_slope_by_what_it_does_not_depend_on():
    writer = _Writer({S: frozenset((S,)), T: frozenset((S, T))}, names_of((let(S, T),), 90))
    assert writer.of(build.read(S), T) == build.constant(0.0, FLOAT64)
    assert writer.of(build.read(T), S) == build.read(writer.variable(T, S))
