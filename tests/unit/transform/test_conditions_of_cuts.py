"""What cuts loops and puts elements into variables, by itself.

Each program is like one that the pass is for, but for one thing that makes that illegal: the pass leaves it alone in
this respect, and what the kernel does, and how it fails, stays the same.
"""

from dataclasses import replace

import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import Assign, For, Kernel, Local, Node
from brickwork.ir.walk import rewrite, substitute
from brickwork.transform.distribute import distribute
from brickwork.transform.promote import apart_in, promote
from support.changes import changed

Tensor = torch.Tensor


# ---------------------------------------------------------------- cuts


def cut(kernel: Kernel) -> Kernel:
    return distribute(kernel, analyse(kernel))


def two_parts(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        n[i] = n[i - 1] + 1


def tensors_are_exchanged(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        n[i] = n[i - 1] + 1
        x, y = y, x


def both_parts_note(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    t = 0.0
    for i in range(1, x.shape[0]):
        if x[i] > 0.0:
            t = 1.0
        y[i] = x[i] * 2.0
        for k in range(m.shape[0]):
            for j in range(m.shape[1]):
                m[k, j] += i
        if x[i] < 0.0:
            t = 2.0
    y[0] = t


def it_may_fail(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, x.shape[0]):
        y[i] = x[i] * 2.0
        n[i] = n[i - 1] + 7 // (n[i] - 1)


def a_list_is_read(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, 6):
        w = [2.0] * 9
        w[0] = 2.0
        for k in range(m.shape[0]):
            for j in range(m.shape[1]):
                m[k, j] += w[i]
        y[i] = x[i] * 2.0


def a_list_is_filled(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for i in range(1, 6):
        w = [2.0] * 9
        for k in range(m.shape[0]):
            for j in range(m.shape[1]):
                w[k] = m[k, j]
        y[i] = x[i] * 2.0


def as_a_table(node: Node) -> Node:
    """Return a loop whose list is a table, for the loop and the store that fill it."""
    if not isinstance(node, For) or not isinstance(local := node.body[0], Local):
        return node
    return replace(node, body=(replace(local, values=(2.0,) * 9), *node.body[3:]))


def unfilled(node: Node) -> Node:
    """Return a loop whose list is not filled where it is declared."""
    if not isinstance(node, For) or not isinstance(node.body[0], Local):
        return node
    return replace(node, body=(node.body[0], *node.body[2:]))


def test_loops_are_cut_where_nothing_leads_from_one_part_to_the_other():
    assert changed(two_parts, cut)
    assert not changed(two_parts, lambda kernel: cut(replace(kernel, may_alias=True)))
    assert not changed(tensors_are_exchanged, cut)
    assert not changed(it_may_fail, cut)
    changed(both_parts_note, cut)
    for function, change in ((a_list_is_read, as_a_table), (a_list_is_filled, unfilled)):
        changed(function, lambda kernel, change=change: cut(rewrite(kernel, change)))


# ---------------------------------------------------------------- elements in variables


def promoted(kernel: Kernel) -> Kernel:
    return promote(kernel, apart_in(lambda: analyse(kernel)))


def others_are_apart(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for j in range(3, x.shape[0]):
        y[2] = y[0] + y[2] + x[j]
        y[j] = x[j]


def another_is_read_first(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for j in range(3, x.shape[0]):
        x[j] = y[0] + x[j]
        y[2] += x[j]


def the_index_is_an_element(x: Tensor, y: Tensor, n: Tensor, m: Tensor) -> None:
    for j in range(3):
        y[n[0]] += x[j]
        n[0] = j


def a_check_stands_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        n[j] = 7 // (n[j] - 3)
        y[k] += x[j]


def a_check_stands_in_a_branch_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        if x[j] > 0.0:
            n[j] = 7 // (n[j] - 3)
        y[k] += x[j]


def a_check_stands_in_a_loop_before(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        for i in range(j + 1):
            n[j] = 7 // (n[i] - 3)
        y[k] += x[j]


def nothing_is_reached(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        if x[j] > -9.0:
            continue
        y[k] += x[j]


def nothing_is_reached_after_the_end(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        if x[j] > -9.0:
            break
        y[k] += x[j]


def a_branch_reaches_it(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        if x[j] > 9.0:
            y[k] += x[j]


def a_while_reaches_it(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(x.shape[0]):
        t = j
        while t > 9:
            y[k] += x[j]
            t -= 1


def a_loop_inside_ends(x: Tensor, y: Tensor, n: Tensor, m: Tensor, k: int) -> None:
    for j in range(3):
        for i in range(x.shape[0]):
            if x[i] < 0.0:
                break
        y[k] += x[j]


def with_index(node: Node) -> Node:
    """Return a loop with the value of what its first statement assigns in place of the variable."""
    if not isinstance(node, For) or not isinstance(first := node.body[0], Assign):
        return node
    return replace(node, body=tuple(substitute(item, {first.symbol: first.value}) for item in node.body[1:]))


def test_elements_become_variables_where_they_are_surely_reached():
    assert changed(others_are_apart, promoted)
    assert changed(another_is_read_first, promoted)
    changed(the_index_is_an_element, lambda kernel: promoted(rewrite(kernel, with_index)))
    for function in (
        a_check_stands_before,
        a_check_stands_in_a_branch_before,
        a_check_stands_in_a_loop_before,
        nothing_is_reached,
        nothing_is_reached_after_the_end,
        a_branch_reaches_it,
        a_while_reaches_it,
    ):
        assert not changed(function, promoted, 9)
    assert changed(a_loop_inside_ends, promoted, 1)
