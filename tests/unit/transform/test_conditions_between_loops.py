"""What sinks and hoists statements between loops, and asks conditions further out, by itself.

Each program is like one that the pass is for, but for one thing that makes that illegal: the pass leaves it alone in
this respect, and what the kernel does, and how it fails, stays the same.
"""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import Check, For, If, Kernel, Launch
from brickwork.ir.walk import statements, walk
from brickwork.transform.sink import sink
from brickwork.transform.unswitch import unswitch, unswitch_nests
from support.changes import GIVEN, changed
from support.lowering import program_of
from support.scheduling import kernel_of

Tensor = torch.Tensor


# ---------------------------------------------------------------- statements between loops


def sunk(kernel: Kernel) -> Kernel:
    return replace(kernel, body=sink(kernel.body, analyse(kernel)))


def checks_come_first(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            m[i, j] = 7 // h


def checks_of_a_branch_come_first(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        v = 0
        if h < 5:
            v = 7 // h
        n[i] = v


def a_branch_checks(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        if h < 5:
            assert h > 0
        n[i] = i


def the_index_is_checked(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        n[i] = 7 // (i - h)


def what_was_computed_is_checked(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        k = i * 2 - h
        n[i] = 7 // k


def a_store_comes_first(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        y[i] = 3.0
        k = i * 2
        n[i] = k + 7 // h


def an_element_comes_first(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(9):
        t = n[7]
        y[i] = t + 7 // h


def an_element_is_checked(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        y[i] = 7 // n[0]
        n[0] -= h


def a_branch_does_more_than_check(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(n.shape[0]):
        if h < 5:
            y[0] += 7 // h
        n[i] = i


def hoisted_checks(function):
    """How many checks stand right in front of loops, or in branches there."""
    (launch,) = [node for node in walk(program_of(function, *GIVEN, 1)) if isinstance(node, Launch)]
    body = sunk(launch.kernel).body
    return sum(isinstance(node, Check) for item in body if isinstance(item, If) for node in statements(item))


def test_checks_that_are_the_same_in_all_iterations_come_first():
    assert hoisted_checks(checks_come_first) == 1
    assert hoisted_checks(checks_of_a_branch_come_first) == 0
    assert hoisted_checks(a_branch_checks) == 1


@pytest.mark.parametrize(
    ("function", "h"),
    [
        (checks_come_first, 0),
        (the_index_is_checked, 2),
        (what_was_computed_is_checked, 2),
        (a_store_comes_first, 0),
        (an_element_comes_first, 0),
        (an_element_is_checked, 1),
        (a_branch_does_more_than_check, 0),
    ],
)
def test_failures_come_when_they_came(function, h):
    changed(function, sunk, h)


def rows(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        v = x[i] * 2.0
        for j in range(m.shape[1]):
            m[i, j] = v


def a_start_is_computed(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        k = h + 1
        for j in range(k, m.shape[1]):
            m[i, j] = k


def a_stop_is_computed(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        k = h + 1
        for j in range(k):
            m[i, j] = k


def a_row_is_changed(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        v = m[i, 0]
        for j in range(m.shape[1]):
            m[i, j] = m[i, j] - v


def a_store_stands_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        t = y[i] * 2.0
        y[i] = t + 1.0
        for j in range(m.shape[1]):
            m[i, j] = 3.0


def it_is_read_after(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    v = 1.0
    for i in range(m.shape[0]):
        v = x[i] * 2.0
        for j in range(h, 1):
            m[i, j] = v
    y[0] = v


def it_is_summed(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 1.0
    for i in range(m.shape[0]):
        s += x[i] * 2.0
        for j in range(m.shape[1]):
            m[i, j] = 2.0
    y[0] = s


def it_goes_along_inside(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(m.shape[0]):
        v = x[i] * 2.0
        for j in range(m.shape[1]):
            v = v * 0.5
            m[i, j] = v


def test_statements_go_into_loops_that_may_do_them_again():
    assert changed(rows, sunk, 1)
    for function in (
        a_start_is_computed,
        a_stop_is_computed,
        a_row_is_changed,
        a_store_stands_before,
        it_is_read_after,
        it_is_summed,
        it_goes_along_inside,
    ):
        assert not changed(function, sunk, 1)


# ---------------------------------------------------------------- conditions


def asked_around(kernel: Kernel) -> Kernel:
    return replace(kernel, body=unswitch_nests(kernel.body, analyse(kernel)))


def asked_out(kernel: Kernel) -> Kernel:
    return unswitch(kernel, analyse(kernel))


def asks_a_number(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        if h > 2:
            y[i] = x[i]


def asks_an_element(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(h, 1):
        if x[7] > 2.0:
            y[i] = x[i]


def asks_its_index(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        if i > h:
            y[i] = x[i]


def test_conditions_of_all_iterations_are_asked_once():
    assert changed(asks_a_number, asked_around, 1)
    assert not changed(asks_an_element, asked_around, 1)
    assert not changed(asks_its_index, asked_around, 1)


def asks_two_numbers(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        if h > 0:
            if h < 4:
                y[i] = x[i]


def asks_an_element_then(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    for i in range(x.shape[0]):
        if h > 0:
            if x[i] > 2.0:
                y[i] = x[i]


def test_conditions_in_one_another_are_asked_once():
    """So are those of an element that several loops add to: each may have no iteration."""
    for function, inside in ((asks_two_numbers, For), (asks_an_element_then, If)):
        (outer,) = asked_around(kernel_of(function, *GIVEN, 2)).body
        assert isinstance(outer, If)
        innermost = [node for node in statements((outer,)) if isinstance(node, For | If)][-1]
        assert isinstance(innermost, inside)


def sums_in_a_window(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        k = i + h
        k = k - 1
        if h > 0:
            t = k
        else:
            t = 2
        if 0 <= k < 6 and h > 0:
            s += x[k] * t
    y[0] = s


def an_element_is_read_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        t = x[i + h]
        if h < 1:
            s += t
    y[0] = s


def an_element_decides_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        if x[i + h] > 0.0:
            t = 1
        else:
            t = 2
        if h < 1:
            s += t
    y[0] = s


def one_way_stores(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        t = 1
        if h < 2:
            y[i] = 3.0
        else:
            t = 2
        if h < 1:
            s += t
    y[0] = s


def the_other_way_stores(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        t = 1
        if h < 2:
            t = 2
        else:
            y[i] = 3.0
        if h < 1:
            s += t
    y[0] = s


def it_only_sums(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    y[0] = s


def it_sums_otherwise(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        if h < 2:
            s += x[i]
        else:
            s -= x[i]
    y[0] = s


def a_row_decides(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(h, 1):
        if n[7] > 2:
            s += x[i]
    y[0] = s


def a_float_decides(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    f = x[0]
    for i in range(x.shape[0]):
        if int(f) > h:
            s += x[i]
    y[0] = s


def a_quotient_decides(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(h):
        if 7 // h > 3:
            s += x[i]
    y[0] = s


def what_is_computed_before_is_computed_again(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s = 0.0
    for i in range(4):
        k = i + h
        if h < 2:
            k = k + 1
            s += x[k - 1]
    y[0] = s


def what_is_computed_of_changes(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s, k = 0.0, 0
    for i in range(4):
        t = i + k
        if h < 2:
            k = 1
            s += t
    y[0] = s


def the_condition_goes_along(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s, k = 0.0, 0
    for i in range(4):
        k = k + 1
        if k < 3:
            s += x[i]
    y[0] = s


def the_branch_reads_what_goes_along(x: Tensor, y: Tensor, n: Tensor, m: Tensor, h: int) -> None:
    s, k = 0.0, 0
    for i in range(4):
        k = k + 1
        if h < 2:
            s += k
    y[0] = s


LEFT = [an_element_is_read_before, an_element_decides_before, one_way_stores, the_other_way_stores, it_only_sums]
LEFT += [it_sums_otherwise, a_row_decides, a_float_decides, what_is_computed_before_is_computed_again]
LEFT += [what_is_computed_of_changes, the_condition_goes_along, the_branch_reads_what_goes_along]


def test_conditions_of_sums_are_asked_further_out():
    for h in (0, 1, 2):
        assert changed(sums_in_a_window, asked_out, h)
        for function in LEFT:
            assert not changed(function, asked_out, h), function.__name__
        changed(a_quotient_decides, lambda kernel: asked_out(sunk(kernel)), h)
