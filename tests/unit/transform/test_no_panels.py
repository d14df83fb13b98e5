"""What is no contraction is not packed, and runs as before."""

from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.contractions import Contraction, Factor
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import For, Load, Symbol
from brickwork.ir.walk import walk
from brickwork.transform.schedule.panels import _may_be_read_alone, find_nest, keeps_order
from support.lowering import memory
from support.scheduling import agree, kernel_of, loops_of

Tensor = torch.Tensor


def grid(n, m, seed):
    values = [float((7 * i + 5 * j + 3 * seed + i * j) % 9 - 4) for i in range(n) for j in range(m)]
    return Memory(values, (n, m), (m, 1), FLOAT32)


def nest_in(function, *arguments):
    kernel = kernel_of(function, *arguments)
    (first, *_) = [node for node in kernel.body if isinstance(node, For)]
    return find_nest(first, analyse(kernel))


def squares(n):
    return grid(n, n, 0), grid(n, n, 1), grid(n, n, 2)


def with_a_check(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            assert a[i, j] > -9.0
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def with_a_break(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if a[i, k] > 3.0:
                    break
                s += a[i, k] * b[k, j]
            y[i, j] = s


def one_after_the_other(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(1, n):
        for j in range(n):
            s = y[i - 1, j]
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def of_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += (a[i, k] - b[k, j]) * (a[i, k] - b[k, j])
            y[i, j] = s


def up_and_down(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(min(i, n - i)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def by_a_product(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(min(n, i * i)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def greatest(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s = max(s, a[i, k] * b[k, j])
            y[i, j] = s


def of_rows_alone(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[0, k]
            y[i, j] = s


def a_total(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    t = 0.0
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            t += s
    y[0, 0] = t


def with_another_branch(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if n > 3:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            else:
                y[i, j] = 1.0


def with_more_behind_a_branch(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if n > 3:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s
            y[i, j] += 1.0


def of_some_rows(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            if i > 2:
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[i, j] = s


def with_a_last_value(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            last = 1.0
            for k in range(n):
                last = a[i, k]
                s += last * b[k, j]
            y[i, j] = s + last


def by_places_under_a_condition(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j + k < 4:
                    s += a[i, int(a[i, k]) % 2] * b[k, j]
            y[i, j] = s


def with_a_check_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            assert s > -99999.0
            y[i, j] = s


def with_a_loop_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            while s > 3.0:
                s -= 2.0
            y[i, j] = s


def with_one_side_in_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                for m in range(n):
                    s += a[i, (k + m) % n] * b[k, (i + j) % n]
            y[i, j] = s


def below_the_diagonal(a: Tensor, b: Tensor, y: Tensor) -> None:
    """What is added everywhere, or nowhere, is no question of a factor."""
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                if j <= i:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


OTHERS = [with_one_side_in_both, with_a_check_behind, with_a_loop_behind]
OTHERS += [a_total, with_another_branch, with_more_behind_a_branch, of_some_rows, with_a_last_value]
OTHERS += [by_places_under_a_condition, with_a_check, with_a_break, one_after_the_other, of_both, up_and_down]
OTHERS += [by_a_product, greatest, of_rows_alone, below_the_diagonal]


@pytest.mark.parametrize("function", OTHERS)
def test_what_is_no_contraction_runs_as_before(function):
    assert nest_in(function, *squares(5)) is None
    agree(function, *squares(5))


def test_loops_that_add_to_elements_that_data_choose_are_not_packed():
    def scattered(a: Tensor, b: Tensor, y: Tensor, place: Tensor) -> None:
        n = a.shape[0]
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += a[i, k] * b[k, j]
                y[place[0, i], j] += s

    kernel = kernel_of(scattered, *squares(4), memory([[1, 0, 1, 2]], INT64))
    assert find_nest(loops_of(kernel)["i"], analyse(kernel)) is None


def test_a_factor_is_not_read_alone_where_another_decides_and_it_is_gathered():
    def with_masks(value, place):
        return Factor(value, (place,))

    places = memory([[1, 0, 1, 2]], INT64)
    kernel = kernel_of(gathers, *squares(4), places)
    loads = {node.tensor.name: node for node in walk(kernel) if isinstance(node, Load)}
    dense, gathered = loads["b"], replace(loads["a"], indices=(loads["place"], loads["a"].indices[1]))
    asks = build.apply("gt", dense, build.constant(0.0, FLOAT32))
    asks_there = build.apply("gt", gathered, build.constant(0.0, FLOAT32))
    plain = Factor(dense, ())
    assert reads_alone(plain, with_masks(dense, asks))
    assert reads_alone(Factor(gathered, ()), plain)
    assert not reads_alone(Factor(gathered, ()), with_masks(dense, asks))
    assert not reads_alone(with_masks(gathered, asks), with_masks(dense, asks))
    assert not reads_alone(with_masks(dense, asks_there), plain)


def reads_alone(one, other):
    return _may_be_read_alone(Contraction(Symbol("s", 0, FLOAT32), (), (), (one, other), (), ()))


def gathers(a: Tensor, b: Tensor, y: Tensor, place: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[place[0, i], k] * b[k, j]
            y[i, j] = s


def draws(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s + bw.rand()


def goes_on(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            if s > 3.0:
                continue
            y[i, j] = s


def breaks_behind(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            for _ in range(2):
                if s > 3.0:
                    break
                s += 1.0
            y[i, j] = s


def has_a_list(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            both = [0.0] * 2
            both[int(s) % 2] = s
            y[i, j] = both[0]


def exchanges(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            a, b = b, a
            y[i, j] = s


def plain(a: Tensor, b: Tensor, y: Tensor) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            y[i, j] = s


@pytest.mark.parametrize("function", [draws, goes_on, breaks_behind, has_a_list, exchanges])
def test_what_happens_once_in_an_iteration_keeps_the_order(function):
    for other in (function, plain):
        kernel = kernel_of(other, *squares(4))
        assert keeps_order(loops_of(kernel)["i"], analyse(kernel)) == (other is function)


def test_checked_accesses_of_a_nest_itself_keep_its_order():
    def checks(y: Tensor, a: Tensor, place: Tensor) -> None:
        for i in range(y.shape[0]):
            y[i] = 1.0
        for k in range(place.shape[0]):
            for j in range(a.shape[0]):
                a[j] = y[place[k]]

    arguments = memory([1.0, 2.0]), memory([1.0, 2.0, 3.0]), memory([1, 0], INT64)
    kernel = kernel_of(checks, *arguments)
    assert not keeps_order(loops_of(kernel)["i"], analyse(kernel))
    assert keeps_order(loops_of(kernel)["k"], analyse(kernel))
