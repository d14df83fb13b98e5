"""Sums that a running maximum scales are taken behind the maximum, on grids: with powers of two all sums are exact."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.running_extremes import APART, with_running_extremes
from support.lowering import argument_type, memory, nested
from support.scheduling import GPU, same, way
from support.tensors import to_memory

Tensor = torch.Tensor


def whole(*sizes: int, step: int = 7) -> Memory:
    """Return small whole numbers, which float32 has all sums of."""
    count = math.prod(sizes)
    return to_memory(torch.tensor([float((step * n + 3) % 11 - 5) for n in range(count)]).reshape(sizes))


def attention(q: Tensor, k: Tensor, v: Tensor, y: Tensor) -> None:
    for i in range(q.shape[0]):
        m = -100.0
        z = 0.0
        for d in range(v.shape[1]):
            y[i, d] = 0.0
        for j in range(i + 1):
            s = 0.0
            for d in range(q.shape[1]):
                s += q[i, d] * k[j, d]
            s = s * 0.125
            s = math.floor(s)
            new = max(m, s)
            c = math.exp2(m - new)
            p = math.exp2(s - new)
            z = z * c + p
            for d in range(v.shape[1]):
                y[i, d] = y[i, d] * c + p * v[j, d]
            m = new
        for d in range(v.shape[1]):
            y[i, d] = y[i, d] + z


def cross_entropy(x: Tensor, at: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = x[i, 0]
        z = 1.0
        right = 0.0
        for j in range(1, x.shape[1]):
            old = m
            m = max(m, x[i, j])
            z = z * math.exp2(old - m) + math.exp2(x[i, j] - m)
            if j == at[i]:
                right = x[i, j]
        y[i] = z + right * m


def masked(x: Tensor, w: Tensor, y: Tensor) -> None:
    """Of some elements alone, in elements that did not begin with zeros."""
    for i in range(x.shape[0]):
        m = 1.0
        for j in range(x.shape[1]):
            if x[i, j] != 3.0:
                new = max(m, x[i, j])
                for d in range(y.shape[1]):
                    y[i, d] *= math.exp2(m - new)
                for d in range(y.shape[1]):
                    t = w[j, d]
                    y[i, d] += t * math.exp2(x[i, j] - new)
                m = new


def counted(x: Tensor, y: Tensor) -> None:
    """Beside what has nothing to do with the maximum."""
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        n = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = (
                math.exp2((m - new) * 2.0) * z
                + math.exp2(2.0 * (x[i, j] - new))
                + math.exp2(2.0 * (x[i, j] - new)) * x[i, j]
            )
            m = new
            if x[i, j] > 0.0:
                n += 1.0
        y[i] = z + n


def nothing_to_do(x: Tensor, y: Tensor) -> None:
    """A loop without iterations leaves sums as they were, whatever the maximum was."""
    for i in range(y.shape[0]):
        m = -math.inf
        z = 3.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def no_maximum_follows(x: Tensor, y: Tensor) -> None:
    """What a loop without iterations leaves is no NaN, though the maximum is."""
    for i in range(x.shape[0]):
        m = x[i, 0]
        z = 1.0
        for j in range(1, x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def some_have_a_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    """Elements are read only where a condition says so."""
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        right = 0.0
        for j in range(x.shape[1]):
            if x[i, j] > 10.0 * i - 20.0 and i < at.shape[0]:
                new = max(m, x[i, j])
                z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
                m = new
                if j == at[i]:
                    right = x[i, j]
        y[i] = z + right


def fewer_have_a_place(x: Tensor, at: Tensor, y: Tensor) -> None:
    """Elements are read only where a loop has iterations."""
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        right = 0.0
        for j in range(max(0, 9 - 4 * i)):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
            if j == at[i]:
                right = x[i, j]
        y[i] = z + right


X, W, Y = whole(4, 9), whole(9, 3, step=5), whole(4)
CHANGED = [
    (attention, (whole(5, 6), whole(5, 6, step=4), whole(5, 3, step=5), whole(5, 3))),
    (cross_entropy, (X, memory([3, 0, 8, 20], INT64), Y)),
    (masked, (X, W, whole(4, 3))),
    (counted, (X, Y)),
    (no_maximum_follows, (memory([[math.nan], [1.0], [-math.inf], [2.0]]), Y)),
    (some_have_a_place, (X, memory([2, 3], INT64), Y)),
    (fewer_have_a_place, (X, memory([2, 3, 0], INT64), Y)),
    (nothing_to_do, (memory([[], [], [], []]), Y)),
]


def _changed(function: Callable[..., None], arguments: tuple[Memory, ...]) -> tuple[Program, Program]:
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(way(function, signature), sizes=True)
    found, _ = with_running_extremes(program, GPU)
    verify_program(found)
    return program, found


def _is_changed(function: Callable[..., None], arguments: tuple[Memory, ...]) -> bool:
    program, found = _changed(function, arguments)
    return found != program


def _left(program: Program, arguments: tuple[Memory, ...]) -> list[object]:
    copies = [memory(nested(item), item.dtype) for item in arguments]
    run_program(program, copies, check=True)
    return [nested(item) for item in copies]


@pytest.mark.parametrize(("function", "arguments"), CHANGED, ids=lambda item: getattr(item, "__name__", ""))
def test_sums_are_taken_behind_the_maximum(function: Callable[..., None], arguments: tuple[Memory, ...]) -> None:
    program, found = _changed(function, arguments)
    assert found != program
    assert _left(found, arguments) == _left(program, arguments)
    same(function, *arguments)


def test_scores_are_kept_where_loops_compute_them() -> None:
    function, arguments = CHANGED[0]
    _, found = _changed(function, arguments)
    assert any(node.kernel.name.endswith(APART) for node in walk(found) if isinstance(node, Launch))


def terms_of_another_maximum(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - m)
            m = new
        y[i] = z


def scaled_by_another_power(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2((m - new) * 2.0) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def scaled_in_some_iterations(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            if x[i, j] > 0.0:
                z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def scaled_after_it_is_added(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i] = y[i] + math.exp2(x[i, j] - new)
            y[i] = y[i] * math.exp2(m - new)
            m = new


def elements_that_move(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[j] = y[j] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new


def one_element_in_a_loop(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(w.shape[1]):
                y[i] = y[i] * math.exp2(m - new) + math.exp2(x[i, j] - new) * w[j, d]
            m = new


def terms_with_the_sum(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            y[i] = y[i] * math.exp2(m - new) + math.exp2(x[i, j] - new) * z
            m = new


def the_maximum_is_told(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            if new > m:
                y[i] = 1.0
            m = new
        y[i] += z


def scores_of_what_is_summed(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            s = x[i, j] + z
            new = max(m, s)
            z = z * math.exp2(m - new) + math.exp2(s - new)
            m = new
        y[i] = z


def scores_that_are_stored(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(1, x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
            if z > 2.0:
                x[i, j - 1] = 1.0
        y[i] = z


def the_last_power_is_read(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        p = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            p = math.exp2(x[i, j] - new)
            z = z * math.exp2(m - new) + p
            m = new
        y[i] = z + p


def no_power(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * (m - new) + (x[i, j] - new)
            m = new
        y[i] = z


def the_maximum_alone(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        y[i] = m


def left_early(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            if x[i, j] > 4.0:
                break
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def checked(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            assert x[i, j] < 4.0
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def terms_of_what_is_stored(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(1, x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new) * y[j]
            m = new
            if x[i, j] > 0.0:
                y[j - 1] = 2.0
        y[i] = z


def scores_that_others_store(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1] - 1):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
            if y[j] > 0.0:
                x[i, j + 1] = 1.0
        y[i] = z


def the_sum_is_told(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        r = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i] = y[i] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
            if x[i, j] > 2.0:
                r = y[i]
        y[i] += r


def elements_that_are_computed(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            t = j % 2
            new = max(m, x[i, j])
            y[t] = y[t] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new


def read_twice(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i] = y[i] * math.exp2(m - new) + math.exp2(x[i, j] - new) * y[i]
            m = new


def of_a_quotient(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(1.0 / (m - new - 1.0)) + math.exp2(1.0 / (x[i, j] - new - 1.0))
            m = new
        y[i] = z


def running_minimum(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = 100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = min(m, x[i, j])
            z = z * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def with_what_scores_are_made_of(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            s = 0.0
            t = 0.0
            for k in range(j):
                s += x[i, k]
                t += y[k]
            new = max(m, s)
            z = z * math.exp2(m - new) + math.exp2(s - new) * t
            m = new
        y[i] = z


def divided_in_each_step(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2(m - new) / 3.0 + math.exp2(x[i, j] - new)
            m = new
        y[i] = z


def powers_that_change(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        z = 0.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            z = z * math.exp2((m - new) * y[j]) + math.exp2((x[i, j] - new) * y[j])
            m = new
        y[i] = z


def a_factor_that_changes(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i] = y[i] * math.exp2((m - new) * j) + math.exp2((x[i, j] - new) * j)
            m = new


OTHERS = [
    divided_in_each_step,
    powers_that_change,
    a_factor_that_changes,
    left_early,
    checked,
    terms_of_what_is_stored,
    scores_that_others_store,
    the_sum_is_told,
    elements_that_are_computed,
    read_twice,
    of_a_quotient,
    running_minimum,
    with_what_scores_are_made_of,
    terms_of_another_maximum,
    scaled_by_another_power,
    scaled_in_some_iterations,
    scaled_after_it_is_added,
    elements_that_move,
    terms_with_the_sum,
    the_maximum_is_told,
    scores_of_what_is_summed,
    scores_that_are_stored,
    the_last_power_is_read,
    no_power,
    the_maximum_alone,
]


@pytest.mark.parametrize("function", OTHERS, ids=lambda item: item.__name__)
def test_other_loops_stay(function: Callable[..., None]) -> None:
    assert not _is_changed(function, (X, whole(9)))


def test_an_element_that_is_scaled_for_each_of_others_stays() -> None:
    assert not _is_changed(one_element_in_a_loop, (X, W, whole(9)))


def test_elements_that_round_stay() -> None:
    half = to_memory(torch.zeros(9, dtype=torch.bfloat16))
    assert not _is_changed(elements_of_rows, (X, half))
    assert _is_changed(elements_of_rows, (X, whole(9)))


def elements_of_rows(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        m = -100.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            y[i] = y[i] * math.exp2(m - new) + math.exp2(x[i, j] - new)
            m = new


def filled_in_part(x: Tensor, w: Tensor, y: Tensor) -> None:
    """Sums begin with what elements had, but for some of them."""
    for i in range(x.shape[0]):
        for d in range(1, y.shape[1]):
            y[i, d] = 0.0
        m = 1.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(y.shape[1]):
                y[i, d] = y[i, d] * math.exp2(m - new) + math.exp2(x[i, j] - new) * w[j, d]
            m = new


def filled_with_ones(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for d in range(y.shape[1]):
            y[i, d] = 1.0
        m = 1.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(y.shape[1]):
                y[i, d] = y[i, d] * math.exp2(m - new) + math.exp2(x[i, j] - new) * w[j, d]
            m = new


def filled_across(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for d in range(y.shape[1]):
            y[0, d] = 0.0
        m = 1.0
        for j in range(x.shape[1]):
            new = max(m, x[i, j])
            for d in range(y.shape[1]):
                y[i, d] = y[i, d] * math.exp2(m - new) + math.exp2(x[i, j] - new) * w[j, d]
            m = new


@pytest.mark.parametrize("function", [filled_in_part, filled_with_ones, filled_across], ids=lambda item: item.__name__)
def test_sums_that_do_not_begin_with_zeros_are_scaled(function: Callable[..., None]) -> None:
    arguments = (X, W, whole(4, 3))
    program, found = _changed(function, arguments)
    assert found != program
    assert _left(found, arguments) == _left(program, arguments)
