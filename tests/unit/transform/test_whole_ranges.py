"""Products of which ranges are cut into blocks by hand are products over whole ranges."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.nodes import For, Kernel, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.product_nests import APART, with_product_nests
from support.lowering import argument_type, numbers
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


def without_ends(a: Tensor, b: Tensor, c: Tensor) -> None:
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
    *(all_three, without_ends, stored, counted_blocks, counted_blocks_added, asked_ends),
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
    assert all(depth(kernel) > 3 for kernel in products(function, A, B, C))
    same(function, A, B, C)
