"""What is computed ahead of a loop in order, strip by strip: what programs do stays the same.

Each program is like one that the pass is for, but for one thing. Strips have four iterations here, and always pay.
"""

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import For, If, Kernel, Load, Store
from brickwork.ir.walk import statements, walk
from brickwork.target.target import Target
from brickwork.transform import strips
from brickwork.transform.strips import computes_ahead, with_strips
from support.changes import changed

Tensor = torch.Tensor
TARGET = Target(name="cpu", identity="test", vector_bytes=64, vector_registers=32, vector_library="none")


@pytest.fixture(autouse=True)
def short_strips(monkeypatch):
    monkeypatch.setattr(strips, "LANES_LIMIT", 4)
    monkeypatch.setattr(strips, "STRIP", 4)
    monkeypatch.setattr(strips, "SHORT_STRIP", 4)
    monkeypatch.setattr(strips, "_pays", lambda *_: True)
    monkeypatch.setattr(strips, "_lanes_pay", lambda *_: True)


def cut(kernel: Kernel) -> Kernel:
    return with_strips(kernel, analyse(kernel), TARGET)


def loads_ahead(function, *numbers: int) -> set[str]:
    """The tensors that are read ahead, in all strips of a function."""
    found: set[str] = set()

    def change(kernel: Kernel) -> Kernel:
        result = cut(kernel)
        for node in statements(result.body):
            if isinstance(node, For) and computes_ahead(node):
                found.update(item.tensor.name for item in walk(node) if isinstance(item, Load))
        return result

    changed(function, change, *numbers)
    return found


def values_are_added(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = x[i] * x[i] + 0.5
        y[n[i]] += v * 2.0


def places_are_searched(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(m.shape[0]):
        best = -9.0
        at = 0
        for j in range(m.shape[1]):
            if m[i, j] > best:
                best = m[i, j]
                at = j
        y[at] += best


def branches_hold_updates(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = x[i] * 3.0
        if v * v > 2.0:
            w = v + 1.0
            y[n[i]] += w * w
        else:
            y[n[i] - 1] -= v / 3.0


def short_loops_hold_updates(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = x[i] * 3.0
        for d in range(-1, 3):
            w = v * d
            y[min(max(n[i] + d, 0), 5)] += w * w


def the_last_value_is_stored(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        w = 0.0
        for d in range(3):
            w = x[i] * d
            y[n[i]] += w + 1.0
        y[n[i]] *= w + 0.5


def it_starts_later(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(2, x.shape[0]):
        y[n[i]] += x[i] * x[i - 1]


def what_is_stored_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = y[i] * 2.0 + x[i] * x[i]
        y[n[i]] += v


def an_earlier_iteration_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    v = 1.0
    for i in range(x.shape[0]):
        y[n[i]] += v * 2.0 + x[i] * 3.0
        v = x[i] * x[i]


def a_variable_lives_on(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    v = 0.0
    for i in range(x.shape[0]):
        v = x[i] * x[i]
        y[n[i]] += v * 3.0
    y[0] += v


def a_variable_is_used_again(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = x[i] * 2.0
        y[n[i]] += v
        v = x[i] * x[i]
        y[n[i] - 1] += v


def a_place_is_used_again(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        p = int(x[i] * x[i]) % 4
        q = p + 1
        y[q] += x[i] * x[i]
        p = int(x[i] * 3.0) % 3 + 2
        y[p] += x[i] * 2.0
        y[q] -= x[i] * 5.0


def a_branch_assigns_what_an_element_says(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        v = x[i] * x[i]
        if y[i] > 1.0:
            v = x[i] * 3.0
        y[n[i]] += v * v


def a_short_loop_leaves(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        for d in range(4):
            if n[i] + d > 4:
                break
            y[n[i] + d] += x[n[i] + d + 1] * x[i]


def it_may_fail_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        n[i] = 7 // (n[i] - 5)
        y[i // 2] += x[i] * x[i]


def it_may_fail_by_an_argument(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for i in range(x.shape[0]):
        y[n[i] // k] += x[i] * x[i]


def it_may_fail_by_an_argument_after_a_store(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for i in range(x.shape[0]):
        y[n[i] % 6] += x[i] * x[i]
        y[n[i] % 3] += x[i] * (7 // k)


def it_may_fail_by_an_argument_in_a_branch(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for i in range(x.shape[0]):
        if x[i] * x[i] > 5.0:
            y[7 // k] += x[i] * 3.0
        y[n[i] % 6] += x[i] * x[i]


def an_element_may_be_missing(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for i in range(x.shape[0]):
        y[n[i] % 6] += x[i] * x[i]
        y[n[i] % 3] += x[n[i] + k] * x[i]


def an_element_may_be_missing_before_an_argument_fails(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for i in range(x.shape[0]):
        v = x[n[i] + 5 - k]
        y[n[i] % 6] += x[i] * x[i] * (7 // k) * v


def a_list_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        w = [0.0] * 3
        for d in range(3):
            w[d] = x[i] * d
        y[n[i]] += w[n[i] % 3] * w[2]


def tensors_are_exchanged(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(x.shape[0]):
        y[n[i]] += x[i] * x[i]
        x, y = y, x


def lanes_around_read_neighbours(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for j in range(m.shape[1]):
        for i in range(1, m.shape[0]):
            m[n[i], j] += x[i] * x[i] * m[0, j]


def what_comes_later_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for r in range(2):
        for i in range(y.shape[0] - 1):
            y[i] = y[i] * 0.5 + y[i + 1] * r


def what_came_before_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, y.shape[0]):
        y[i] = y[i - 1] * 0.5 + x[i] * 2.0


def what_came_before_may_be_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(y.shape[0] - 1):
        y[i] = y[n[i]] * 0.5 + x[i] * 2.0


def the_iteration_has_stored_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(y.shape[0] - 1):
        y[i] = x[i] * 2.0 + y[i + 1]
        m[0, i] = y[i] * y[i] + m[0, i + 1]


def a_branch_has_stored_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(y.shape[0] - 1):
        if x[i] * x[i] > 2.0:
            y[i] = x[i] * 3.0 + x[i + 1]
        m[0, i] = y[i] * 2.0 + m[0, i + 1] * m[0, i]


def a_turn_of_a_short_loop_has_stored_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(y.shape[0] - 1):
        for d in range(3):
            y[i] = y[i] * 0.5 + x[i] * d
            y[i + 1] += 1.0


def a_variable_has_what_comes_later(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(y.shape[0] - 2):
        a = y[i + 1]
        b = y[i + 2]
        y[i] = a + 1.0
        if a > b:
            y[i] = (b + y[i]) * 0.5


@pytest.mark.parametrize(
    ("function", "ahead"),
    [
        (what_comes_later_is_read, {"y"}),
        (what_came_before_is_read, {"x"}),
        (what_came_before_may_be_read, {"n", "x"}),
        (the_iteration_has_stored_before, {"x", "y"}),
        (a_branch_has_stored_before, {"x", "m"}),
        (a_turn_of_a_short_loop_has_stored_before, {"x"}),
        (a_variable_has_what_comes_later, {"y"}),
        (values_are_added, {"n", "x"}),
        (places_are_searched, {"m"}),
        (branches_hold_updates, {"n", "x"}),
        (short_loops_hold_updates, {"x"}),
        (the_last_value_is_stored, {"n", "x"}),
        (it_starts_later, {"n", "x"}),
        (what_is_stored_is_read, {"n", "x"}),
        (an_earlier_iteration_is_read, set()),
        (a_variable_is_used_again, {"n", "x"}),
        (a_place_is_used_again, {"x"}),
        (a_branch_assigns_what_an_element_says, {"n", "x"}),
        (a_short_loop_leaves, set()),
        (it_may_fail_before, set()),
        (a_list_is_read, {"n", "x"}),
        (tensors_are_exchanged, set()),
        (lanes_around_read_neighbours, set()),
        (a_variable_lives_on, set()),
    ],
)
def test_what_reads_no_element_that_is_stored_runs_ahead(function, ahead):
    assert loads_ahead(function) == ahead


def test_what_fails_for_all_iterations_is_no_hindrance():
    assert loads_ahead(it_may_fail_by_an_argument, 2) == {"x", "n"}
    assert loads_ahead(it_may_fail_by_an_argument, 0) == {"x", "n"}


def test_what_fails_in_one_iteration_fails_after_the_stores_of_those_before():
    for k in (0, 2):
        assert loads_ahead(it_may_fail_by_an_argument_after_a_store, k) == {"x"}
        assert loads_ahead(it_may_fail_by_an_argument_in_a_branch, k) == {"x"}
        assert loads_ahead(an_element_may_be_missing, k) == {"x", "n"}
        assert loads_ahead(an_element_may_be_missing_before_an_argument_fails, k) == {"n"}


def test_a_loop_that_data_begin_is_left():
    def rows(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
        for r in range(5):
            for i in range(n[r], n[r + 1]):
                y[n[i]] += x[i] * x[i]

    assert loads_ahead(rows) == set()


def test_places_that_integers_say_are_computed_again():
    def change(kernel: Kernel) -> Kernel:
        result = cut(kernel)
        behind = [node for node in statements(result.body) if isinstance(node, For) and not computes_ahead(node)]
        assert any(isinstance(node, Store | If) for loop in behind for node in statements(loop.body))
        return result

    assert changed(short_loops_hold_updates, change)
