"""Nests that add products to elements are perfect where conditions, partial sums and hoisted factors stood in them."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.dtypes import BFLOAT16
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, If, Kernel, Launch, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.product_nests import APART, with_product_nests
from support.lowering import argument_type, memory, nested, numbers
from support.scheduling import GPU, same, way
from support.shared import define, lower

Tensor = torch.Tensor
X, W, Y = numbers(5, 4), numbers(3, 4, 6), numbers(5, 6)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=2):
        yield


def perfect(function: Callable[..., object], *arguments: object) -> list[Kernel]:
    """Return the kernels of a function for a GPU that have perfect nests of products."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program, _ = with_product_nests(canonical(lower(define(function), signature), sizes=True), GPU)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return [kernel for kernel in kernels if kernel.name.endswith(APART)]


def taps(x: Tensor, w: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        for t in range(3):
            at = i + t - 1
            if at >= 0 and at < n:
                for j in range(w.shape[2]):
                    s = 0.0
                    for k in range(x.shape[1]):
                        s += x[at, k] * w[t, k, j]
                    y[i, j] += s


def conditions_in_all_places(x: Tensor, w: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        if i != 2:
            for t in range(3):
                last = i + t
                if last < n:
                    for j in range(w.shape[2]):
                        if j + t != 4:
                            for k in range(x.shape[1]):
                                if k > t:
                                    y[i, j] += x[last, k] * w[t, k, j]


def a_factor_is_read_before(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t != 1:
                for k in range(x.shape[1]):
                    v = x[i, k] * 2.0
                    for j in range(w.shape[2]):
                        y[i, j] = v * w[t, k, j] + y[i, j]


def sums_of_blocks(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 0.0
                for k in range(x.shape[1]):
                    if k >= t:
                        v = x[i, k]
                        s += v * w[t, k, j]
                y[i, j] += s


def some_rows(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        if i != 2:
            for j in range(w.shape[2]):
                for k in range(x.shape[1]):
                    y[i, j] += x[i, k] * w[0, k, j]


OF_PARTIAL_SUMS = [taps, sums_of_blocks]
PERFECT = [some_rows, taps, conditions_in_all_places, a_factor_is_read_before, sums_of_blocks]


@pytest.mark.parametrize("function", PERFECT, ids=lambda item: item.__name__)
def test_nothing_stands_between_loops(function: Callable[..., object]) -> None:
    (kernel,) = perfect(function, X, W, Y)
    *before, nest = kernel.body
    assert len(before) == (function in OF_PARTIAL_SUMS)
    (store,) = (node for node in statements(nest) if isinstance(node, Store))
    while isinstance(nest, For):
        (nest,) = nest.body
    assert store in {nest, *(nest.then if isinstance(nest, If) else ())}
    same(function, X, W, Y)


def nothing_is_in_the_way(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            s = 0.0
            for k in range(x.shape[1]):
                s += x[i, k] * w[0, k, j]
            y[i, j] += s


def elements_are_asked(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if x[i, t] > 1.0:
                for j in range(w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[i, k] * w[t, k, j]


def a_factor_may_not_be_there(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            for k in range(x.shape[1]):
                v = x[i, k]
                if t != 1:
                    for j in range(w.shape[2]):
                        y[i, j] += v * w[t, k, j]


def a_factor_may_be_read_for_nothing(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            for k in range(x.shape[1]):
                v = x[i, k]
                for j in range(i, w.shape[2]):
                    y[i, j] += v * w[t, k, j]


def a_partial_factor_may_be_read_for_nothing(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 0.0
                for k in range(x.shape[1]):
                    v = x[i, k]
                    if k != t:
                        s += v * w[t, k, j]
                y[i, j] += s


def another_start(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 1.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j]
                y[i, j] += s


def terms_go_with_the_sum(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j] * (s + 1.0)
                y[i, j] += s


def another_sum(x: Tensor, w: Tensor, y: Tensor) -> None:
    u = 0.5
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j]
                y[i, j] += u
                u = s


def the_element_is_read(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for t in range(3):
                s = 0.0
                for k in range(x.shape[1]):
                    s += y[i, k] * w[t, k, j]
                y[i, j] += s


def the_result_is_a_factor(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t != 1:
                for k in range(x.shape[1]):
                    v = y[i, k]
                    for j in range(w.shape[2]):
                        y[i, j] += v * w[t, k, j]


def a_place_is_counted(x: Tensor, w: Tensor, y: Tensor) -> None:
    at = 0
    for i in range(x.shape[0]):
        for t in range(3):
            at = (at + t) % 4
            for j in range(w.shape[2]):
                for k in range(x.shape[1]):
                    y[i, j] += x[at, k] * w[t, k, j]


def a_place_is_counted_in_a_loop(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        at = i
        for t in range(3):
            at = (at * at + t) % 4
            for j in range(w.shape[2]):
                for k in range(x.shape[1]):
                    y[i, j] += x[at, k] * w[t, k, j]


def a_condition_is_counted(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        at = i
        for t in range(3):
            at = (at * at + 1) % 8
            if at < 5:
                for j in range(w.shape[2]):
                    s = 0.0
                    for k in range(x.shape[1]):
                        s += x[i, k] * w[t, k, j]
                    y[i, j] += s


def a_factor_passes_from_term_to_term(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            for j in range(w.shape[2]):
                v = 1.0
                s = 0.0
                for k in range(x.shape[1]):
                    v = v * 0.5
                    s += v * x[i, k] * w[t, k, j]
                y[i, j] += s


def a_place_is_read_later(x: Tensor, w: Tensor, y: Tensor) -> None:
    at = 0
    if x.shape[0] > 2:
        for i in range(x.shape[0]):
            for t in range(3):
                at = (i + t) % 4
                for j in range(w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[at, k] * w[t, k, j]
        y[at, 0] = 1.0


def another_branch(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t > i:
                for j in range(w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[i, k] * w[t, k, j]
            else:
                y[i, 0] = 2.0


def something_follows(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t > i:
                for j in range(w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[i, k] * w[t, k, j]
            y[i, 0] = 2.0


def a_loop_is_followed(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            last = i + t
            for j in range(w.shape[2]):
                for k in range(x.shape[1]):
                    y[i, j] += x[i, k] * w[t, k, j] * last
            y[i, 0] = 2.0


def a_store_is_followed(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t != i:
                for j in range(w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[i, k] * w[t, k, j]
                        y[i, 0] = 2.0


def plain(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for j in range(w.shape[2]):
                y[i, j] += x[i, k] * w[0, k, j]


def plain_with_terms_inside(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(w.shape[2]):
            for k in range(x.shape[1]):
                y[i, j] += x[i, k] * w[0, k, j]


def elements_say_where_a_loop_begins(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t != i:
                for j in range(int(w[t, 0, 0]), w.shape[2]):
                    for k in range(x.shape[1]):
                        y[i, j] += x[i, k] * w[t, k, j]


def elements_say_where_a_loop_ends(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if t != i:
                for j in range(w.shape[2]):
                    for k in range(int(w[t, 0, 0]) % 4):
                        y[i, j] += x[i, k] * w[t, k, j]


STAY = [
    *(a_loop_is_followed, a_store_is_followed, plain, plain_with_terms_inside),
    *(elements_say_where_a_loop_begins, elements_say_where_a_loop_ends),
    *(nothing_is_in_the_way, elements_are_asked, a_factor_may_not_be_there, a_factor_may_be_read_for_nothing),
    *(a_partial_factor_may_be_read_for_nothing, another_start, another_sum, the_element_is_read),
    *(the_result_is_a_factor, a_place_is_counted, a_place_is_read_later, another_branch, something_follows),
    *(a_place_is_counted_in_a_loop, a_condition_is_counted, a_factor_passes_from_term_to_term),
    terms_go_with_the_sum,
]


@pytest.mark.parametrize("function", STAY, ids=lambda item: item.__name__)
def test_other_nests_stay(function: Callable[..., object]) -> None:
    assert not perfect(function, X, W, Y)
    same(function, X, W, Y)


def test_elements_of_sixteen_bits_are_rounded_as_partial_sums_say() -> None:
    y = memory(nested(Y), BFLOAT16)
    assert not perfect(sums_of_blocks, X, W, y)


def into_new_ones(x: Tensor, w: Tensor) -> Tensor:
    y = torch.zeros(x.shape[0], w.shape[2])
    for i in range(x.shape[0]):
        for t in range(3):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    if k >= t:
                        s += x[i, k] * w[t, k, j]
                y[i, j] += s
    return y


def into_new_ones_that_change(x: Tensor, w: Tensor) -> Tensor:
    y = torch.zeros(x.shape[0], w.shape[2])
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
    for i in range(x.shape[0]):
        for t in range(3):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j]
                y[i, j] += s
    return y


def into_negative_ones(x: Tensor, w: Tensor) -> Tensor:
    y = torch.full((x.shape[0], w.shape[2]), -0.0)
    for i in range(x.shape[0]):
        for t in range(3):
            for j in range(w.shape[2]):
                s = 0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j]
                y[i, j] += s
    return y


def test_only_zeros_that_are_added_to_need_no_loop_ahead() -> None:
    nests = {
        each: perfect(each, X, W)[0].body for each in (into_new_ones, into_new_ones_that_change, into_negative_ones)
    }
    assert [len(body) for body in nests.values()] == [1, 2, 2]


def no_terms(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            if i > 1:
                for j in range(w.shape[2]):
                    s = 0.0
                    for k in range(x.shape[1]):
                        if k >= 9:
                            s += x[i, k] * w[t, k, j]
                    y[i, j] += s


def from_a_negative_zero(x: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for t in range(3):
            for j in range(w.shape[2]):
                s = -0.0
                for k in range(x.shape[1]):
                    s += x[i, k] * w[t, k, j]
                y[i, j] += s


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("function", [no_terms, from_a_negative_zero, *PERFECT, into_new_ones, into_negative_ones])
def test_zeros_keep_their_sign(function: Callable[..., object], zero: float) -> None:
    x, w = memory([[zero] * 4] * 5), memory([[[1.0] * 6] * 4] * 3)
    given = (x, w) if function in {into_new_ones, into_negative_ones} else (x, w, memory([[-0.0] * 6] * 5))
    types = tuple(map(argument_type, given))
    written = way(function, Signature(types))
    scheduled = way(function, Signature(types, device="cuda", narrow=True, aligned=True), GPU)
    signs: list[str] = []
    for program in (written, scheduled):
        mine = [Memory([*item.data], item.sizes, item.strides, item.dtype) for item in given]
        results = run_program(program, mine)
        signs.append(repr([[*item.data] for item in (*results, *mine)]))
    assert signs[0] == signs[1]
