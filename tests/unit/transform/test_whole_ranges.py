"""Products of which ranges are cut into blocks by hand are products over whole ranges."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Assign, For, Kernel, Launch, Select, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.product_nests import APART, with_product_nests, with_whole_nests
from brickwork.transform.scratch import names_of
from brickwork.transform.whole_ranges import (
    directly,
    follows,
    in_any_order,
    keeps_sums,
    with_whole_ranges,
    without_ends,
)
from support.lowering import argument_type, memory, nested, numbers
from support.scheduling import GPU, same
from support.shared import define, lower

Tensor = torch.Tensor
A, B, C = numbers(6, 8), numbers(8, 12), numbers(6, 12)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=2):
        yield


def products(function: Callable[..., object], *arguments: object) -> list[Kernel]:
    """Return the kernels of a function for a GPU that have products of their own."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program, _ = with_product_nests(canonical(lower(define(function), signature), sizes=True), GPU)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return [kernel for kernel in kernels if kernel.name.endswith(APART)]


def kernel_of(function: Callable[..., object], *arguments: object) -> Kernel:
    """Return the kernel of a function, as it is written."""
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, arguments)))))
    (kernel,) = (node.kernel for node in walk(program.body) if isinstance(node, Launch))
    return kernel


def nest_of(function: Callable[..., object]) -> For:
    """Return the nest of a function, not in canonical form."""
    program = lower(define(function), Signature(tuple(map(argument_type, (A, B, C)))))
    return next(node for node in walk(program.body) if isinstance(node, For))


def depth(kernel: Kernel) -> int:
    """Return how many loops the last nest of a kernel has."""
    return sum(isinstance(node, For) for node in statements(kernel.body[-1]))


def all_three(a: Tensor, b: Tensor, c: Tensor) -> None:
    n, m, p = a.shape[0], b.shape[1], a.shape[1]
    for i0 in range(0, n, 4):
        for j0 in range(0, m, 4):
            for k0 in range(0, p, 4):
                for i in range(i0, min(i0 + 4, n)):
                    for j in range(j0, min(j0 + 4, m)):
                        s = 0.0
                        for k in range(k0, min(p, 4 + k0)):
                            s += a[i, k] * b[k, j]
                        c[i, j] += s


def full_blocks(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, a.shape[0], 3):
        for j0 in range(0, b.shape[1], 4):
            for k0 in range(0, a.shape[1], 4):
                for i in range(i0, i0 + 3):
                    for k in range(k0, k0 + 4):
                        for j in range(j0, j0 + 4):
                            c[i, j] += a[i, k] * b[k, j]


def stored(a: Tensor, b: Tensor, c: Tensor) -> None:
    n, m, p = a.shape[0], b.shape[1], a.shape[1]
    for i0 in range(0, n, 4):
        for j0 in range(0, m, 5):
            for i in range(i0, min(i0 + 4, n)):
                for j in range(j0, min(j0 + 5, m)):
                    s = 0.0
                    for k0 in range(0, p, 3):
                        for k in range(k0, min(k0 + 3, p)):
                            s += a[i, k] * b[k, j]
                    c[i, j] = s


def counted_blocks(a: Tensor, b: Tensor, c: Tensor) -> None:
    for ib in range(a.shape[0] // 2):
        for jb in range(b.shape[1] // 4):
            for ii in range(2):
                i = ib * 2 + ii
                for jj in range(4):
                    j = jj + jb * 4
                    s = 0.0
                    for kb in range(a.shape[1] // 4):
                        for kk in range(4):
                            k = kb * 4 + kk
                            s += a[i, k] * b[k, j]
                    c[i, j] = s


def counted_blocks_added(a: Tensor, b: Tensor, c: Tensor) -> None:
    for ib in range(a.shape[0] // 2):
        for kb in range(a.shape[1] // 4):
            for ii in range(2):
                for kk in range(4):
                    for j in range(b.shape[1]):
                        c[ib * 2 + ii, j] += a[ib * 2 + ii, kb * 4 + kk] * b[kb * 4 + kk, j]


def asked_ends(a: Tensor, b: Tensor, c: Tensor) -> None:
    for ib in range((a.shape[0] + 3) // 4):
        for jb in range((b.shape[1] + 4) // 5):
            for ii in range(4):
                for jj in range(5):
                    i = ib * 4 + ii
                    j = jb * 5 + jj
                    if i < a.shape[0] and j < b.shape[1]:
                        s = 0.0
                        for k in range(a.shape[1]):
                            s += a[i, k] * b[k, j]
                        c[i, j] = s


def a_range_that_begins_later(a: Tensor, b: Tensor, c: Tensor) -> None:
    n = a.shape[1]
    for k0 in range(1, n, 3):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(k0, min(k0 + 3, n)):
                    c[i, j] += a[i, k] * b[k, j]


WHOLE = [
    *(all_three, full_blocks, stored, counted_blocks, counted_blocks_added, asked_ends),
    a_range_that_begins_later,
]


@pytest.mark.parametrize("function", WHOLE, ids=lambda item: item.__name__)
def test_blocks_are_one_range(function: Callable[..., object]) -> None:
    (kernel,) = products(function, A, B, C)
    assert depth(kernel) == 3
    same(function, A, B, C)


@pytest.mark.parametrize("function", [all_three, stored, asked_ends], ids=lambda item: item.__name__)
def test_ranges_end_with_the_tensor(function: Callable[..., object]) -> None:
    same(function, numbers(5, 7), numbers(7, 9), numbers(5, 9))


def gaps(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, a.shape[0], 4):
        for j in range(b.shape[1]):
            for i in range(i0, min(i0 + 3, a.shape[0])):
                for k in range(a.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]


def overlaps(a: Tensor, b: Tensor, c: Tensor) -> None:
    for k0 in range(0, a.shape[1], 4):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(k0, min(k0 + 5, a.shape[1])):
                    c[i, j] += a[i, k] * b[k, j]


def blocks_are_a_factor(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(a.shape[0]):
        for k0 in range(0, a.shape[1], 4):
            for j in range(b.shape[1]):
                for k in range(k0, min(k0 + 4, a.shape[1])):
                    c[i, j] += a[i, k0] * b[k, j]


def blocks_are_asked(a: Tensor, b: Tensor, c: Tensor) -> None:
    for k0 in range(0, a.shape[1], 4):
        for i in range(a.shape[0]):
            for j in range(k0, b.shape[1]):
                for k in range(k0, min(k0 + 4, a.shape[1])):
                    c[i, j] += a[i, k] * b[k, j]


def ends_move(a: Tensor, b: Tensor, c: Tensor) -> None:
    for k0 in range(0, a.shape[1], 4):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(k0, min(k0 + 4, 7 - k0)):
                    c[i, j] += a[i, k] * b[k, j]


def backwards(a: Tensor, b: Tensor, c: Tensor) -> None:
    for k0 in range(4, -1, -4):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for k in range(k0, min(k0 + 4, a.shape[1])):
                    c[i, j] += a[i, k] * b[k, j]


def digits_have_other_places(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for kb in range(2):
                for kk in range(4):
                    c[i, j] += a[i, kb * 4 + kk] * b[kb + 2 * kk, j]


def another_sum_between(a: Tensor, b: Tensor, c: Tensor) -> None:
    for k0 in range(0, a.shape[1], 4):
        for t in range(3):
            for i in range(a.shape[0]):
                for j in range(b.shape[1]):
                    for k in range(k0, min(k0 + 4, a.shape[1])):
                        c[i, j] += a[i, k] * b[k, j] * (t + 1)


def two_rows_an_element(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, a.shape[0], 3):
        for k in range(a.shape[1]):
            for i in range(i0, min(i0 + 3, a.shape[0])):
                for j in range(b.shape[1]):
                    c[i // 2, j] += a[i, k] * b[k, j]


def rows_before_are_read(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, a.shape[0], 3):
        for j0 in range(0, b.shape[1] - 4, 4):
            for i in range(i0, min(i0 + 3, a.shape[0])):
                for j in range(j0, min(j0 + 4, b.shape[1] - 4)):
                    s = 0.0
                    for k in range(a.shape[1]):
                        s += a[i, k] * b[k, j]
                    c[i, j] = s + c[i - 1, j + 4]


def counted_rows(a: Tensor, b: Tensor, c: Tensor) -> None:
    for ib in range(3):
        for ii in range(2):
            i = ib * 2 + ii
            i = i * i % 6
            for j in range(b.shape[1]):
                s = 0.0
                for k in range(a.shape[1]):
                    s += a[i, k] * b[k, j]
                c[ib * 2 + ii, j] = s


ORDERED = [another_sum_between, two_rows_an_element, rows_before_are_read]
STAY = [gaps, overlaps, blocks_are_a_factor, blocks_are_asked, ends_move, backwards, digits_have_other_places, *ORDERED]


@pytest.mark.parametrize("function", [*STAY, counted_rows], ids=lambda item: item.__name__)
def test_other_loops_stay(function: Callable[..., object]) -> None:
    own = depth(kernel_of(function, A, B, C))
    assert all(depth(kernel) == own for kernel in products(function, A, B, C))
    same(function, A, B, C)


def made(a: Tensor, b: Tensor) -> Tensor:
    c = torch.zeros(a.shape[0], b.shape[1])
    for i0 in range(0, a.shape[0], 4):
        for k0 in range(0, a.shape[1], 3):
            for i in range(i0, min(i0 + 4, a.shape[0])):
                for j in range(b.shape[1]):
                    s = 0.0
                    for k in range(k0, min(k0 + 3, a.shape[1])):
                        s += a[i, k] * b[k, j]
                    c[i, j] += s
    return c


def derived(function: Callable[..., object], *arguments: object) -> tuple[int, int]:
    """Return how many loops a program has, and how many where it is derived, which computes the same."""
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, arguments)))))
    whole = with_whole_nests(program)
    results: list[str] = []
    for each in (program, whole):
        mine = [memory(nested(item)) for item in arguments]
        results.append(repr([[*item.data] for item in (*run_program(each, mine), *mine)]))
    assert results[0] == results[1]
    counts = [sum(isinstance(node, For) for node in walk(each.body)) for each in (program, whole)]
    return counts[0], counts[1]


def test_what_is_derived_has_whole_ranges() -> None:
    assert derived(made, A, B) == (5, 3)
    assert derived(stored, A, B, C) == (6, 3)
    assert derived(asked_ends, A, B, C) == (5, 3)
    assert derived(all_three, A, B, C) == (6, 6), "an element of -0.0 stays what it is"
    assert derived(full_blocks, A, B, C) == (6, 6), "the host would have to be asked"
    assert derived(rows_before_are_read, A, B, C) == (5, 5)
    assert derived(two_rows_an_element, A, B, C) == (4, 4)


def places(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(2):
        at = i * 2
        for j in range(4):
            c[at, j] = at


def place_that_moves(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(2):
        at = i * 2
        for j in range(4):
            at = at + 1
            c[at, j] = 1.0


def place_of_one_that_moves(a: Tensor, b: Tensor, c: Tensor) -> None:
    last = 0
    for _ in range(2):
        at = last
        for j in range(4):
            c[at, j] = 1.0
            last = j % 3


def place_that_elements_say(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(2):
        at = int(a[i, 0]) % 3
        for j in range(4):
            c[at, j] = 1.0


def place_that_is_counted(a: Tensor, b: Tensor, c: Tensor) -> None:
    at = 0
    for _ in range(2):
        at = at + 1
        for j in range(4):
            c[at, j] = 1.0


def place_in_two_steps(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(2):
        at = i
        at = at + 1
        for j in range(4):
            c[at, j] = 1.0


STAYING_PLACES = [
    *(place_that_moves, place_that_elements_say, place_in_two_steps),
    *(place_of_one_that_moves, place_that_is_counted),
]


def test_places_between_loops_are_put_in() -> None:
    whole = directly(nest_of(places))
    assert [type(item) for item in whole.body] == [For]
    assert not any(isinstance(node, Assign) and node.symbol.name == "at" for node in statements(whole))
    for function in STAYING_PLACES:
        nest = nest_of(function)
        assert directly(nest) is nest, function.__name__


def from_the_end(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i in range(-2, 2):
        for j in range(4):
            at = j
            other = i
            c[at, other] = 1.0


def test_only_indices_that_may_be_negative_are_counted_from_the_end() -> None:
    nest = kernel_of(from_the_end, A, B, C).body[0]
    (store,) = (node for node in statements(without_ends(nest)) if isinstance(node, Store))
    assert [isinstance(index, Select) for index in store.indices] == [False, True]


def two_stores(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, 6, 3):
        for j in range(4):
            for i in range(i0, i0 + 3):
                c[i, j] += 1.0
                c[j, i] += 1.0


def block_between(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, 6, 3):
        for j in range(i0, 8):
            for i in range(i0, i0 + 3):
                c[i, j] += 1.0


def block_ends_between(a: Tensor, b: Tensor, c: Tensor) -> None:
    for i0 in range(0, 6, 3):
        for j in range(i0):
            for i in range(i0, i0 + 3):
                c[i, j] += 1.0


def test_blocks_that_something_between_asks_for_stay() -> None:
    for function in (two_stores, block_between, block_ends_between):
        (nest,) = kernel_of(function, A, B, C).body
        assert isinstance(nest, For)
        assert with_whole_ranges(nest, names_of(nest), [], keeps_sums) is nest, function.__name__
    (nest,) = kernel_of(two_stores, A, B, C).body
    assert isinstance(nest, For)
    assert with_whole_ranges(nest, names_of(nest), [], in_any_order) is not nest
    assert with_whole_ranges(nest, names_of(nest), [], follows) is nest
