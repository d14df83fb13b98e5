"""Which axes may be shared out: one small program for each reason for or against."""

import pytest
import torch

import brickwork as bw
from brickwork.analysis.sharding import PARTIAL, Sharding, find_shardings
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import ScalarType, Signature
from support.shared import define, lower

EXPECTED = []
"""Functions with the ranks of their tensors (0 for a number) and what is found."""


def expect(ranks, *found):
    """Enter a function in the table."""

    def enter(function):
        EXPECTED.append((function, ranks, tuple(Sharding(*each) for each in found)))
        return function

    return enter


@expect((2,), ((0,), (1,)), ((1,), (0,)))
def transposed(x: torch.Tensor):
    m, n = x.shape
    out = x.new_empty((n, m))
    for i, j in bw.ndrange(m, n):
        out[j, i] = x[i, j]
    return out


@expect((1,), ((0,), (PARTIAL,)))
def total(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@expect((1,), ((0,), (PARTIAL,)))
def scaled_difference(x: torch.Tensor):
    s, t = 0.0, 0.0
    for i in range(x.shape[0]):
        s += x[i]
        t -= x[i] * x[i]
    return 2.0 * (s - t) / 3.0


@expect((1,))
def total_squared(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s * s


@expect((1,))
def total_and_one(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s + 1.0


@expect((1,))
def total_if_positive(x: torch.Tensor):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    out = x.new_zeros(())
    if s > 0.0:
        out[()] = s
    return out


@expect((1,))
def greatest(x: torch.Tensor):
    s = x[0]
    for i in range(x.shape[0]):
        s = max(s, x[i])
    return s


@expect((1,))
def running(x: torch.Tensor):
    out = torch.empty_like(x)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s
    return out


@expect((1,))
def until_negative(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            break
        out[i] = x[i]
    return out


@expect((2,), ((0,), (0,)))
def rows_until_negative(x: torch.Tensor):
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] < 0.0:
                break
            out[i] += x[i, j]
    return out


@expect((1,))
def all_pairs(x: torch.Tensor):
    n = x.shape[0]
    out = x.new_empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = x[i] - x[j]
    return out


@expect((2,))
def asserted_square(x: torch.Tensor):
    assert x.shape[0] == x.shape[1], "not square"
    out = torch.empty_like(x)
    for i, j in bw.ndrange(x.shape[0], x.shape[1]):
        out[i, j] = x[i, j]
    return out


@expect((1,))
def with_place(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + i
    return out


@expect((2,), ((1,), (1,)))
def with_row(x: torch.Tensor):
    out = torch.empty_like(x)
    for i, j in bw.ndrange(x.shape[0], x.shape[1]):
        out[i, j] = x[i, j] + i
    return out


@expect((1, 0))
def up_to(x: torch.Tensor, n: int):
    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = x[i]
    return out


@expect((1,))
def from_one(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in range(1, x.shape[0]):
        out[i] = x[i]
    return out


@expect((2,), ((0,), (0,)), ((1,), (1,)))
def counted_down(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0] - 1, -1, -1):
        for j in reversed(range(x.shape[1])):
            out[i, j] = x[i, j]
    return out


@expect((1,))
def turned_round(x: torch.Tensor):
    n = x.shape[0]
    out = torch.empty_like(x)
    for i in range(n):
        out[i] = x[n - 1 - i]
    return out


@expect((2, 1), ((1, 0), (PARTIAL,)), ((0, None), (0,)))
def product(a: torch.Tensor, x: torch.Tensor):
    m, n = x.shape[0], a.shape[0]
    assert a.shape[1] == m, "sizes differ"
    out = a.new_zeros((n,))
    for i in range(n):
        for j in range(m):
            out[i] += a[i, j] * x[j]
    return out


@expect((1, 1), ((None, 0), (PARTIAL,)))
def histogram(bins: torch.Tensor, x: torch.Tensor):
    out = torch.zeros_like(bins)
    for i in range(x.shape[0]):
        out[int(x[i])] += 1.0
    return out


@expect((1, 1), ((None, 0), ()))
def table_of(table: torch.Tensor, x: torch.Tensor):
    for i in range(x.shape[0]):
        x[i] = table[int(x[i])]


@expect((1, 1))
def added_in_place(s: torch.Tensor, x: torch.Tensor):
    for i in range(x.shape[0]):
        s[0] += x[i]


@expect((2,), ((0,), (0,)))
def sorted_rows(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        row = [0.0, 0.0]
        for j in range(x.shape[1]):
            row[j % 2] = row[j % 2] + x[i, j]
        for j in range(x.shape[1]):
            out[i, j] = row[j % 2]
    return out


@expect((2,), ((0,), (0,)))
def steps(x: torch.Tensor):
    m, n = x.shape
    u = torch.empty_like(x)
    v = torch.empty_like(x)
    for i, j in bw.ndrange(m, n):
        u[i, j] = x[i, j]
    for _ in range(3):
        for i in range(m):
            for j in range(n):
                v[i, j] = u[i, (j + 1) % n]
        u, v = v, u
    return u


@expect((1,))
def noisy(x: torch.Tensor):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + bw.rand()
    return out


@expect((2,), ((1,), (PARTIAL,)))
def last_row(x: torch.Tensor):
    s = 0.0
    for j in range(x.shape[1]):
        s += x[2, j]
    return s


@expect((1, 1), ((0, None), (0,)), ((None, 0), (PARTIAL,)))
def other_in_order(x: torch.Tensor, y: torch.Tensor):
    """What one loop sums is used in another one, over the rest."""
    out = torch.empty_like(x)
    s = 0.0
    for j in range(y.shape[0]):
        s += y[j]
    for i in range(x.shape[0]):
        out[i] = x[i] * s
    return out


@pytest.mark.parametrize(("function", "ranks", "expected"), EXPECTED, ids=lambda item: getattr(item, "__name__", ""))
def test_what_may_be_shared_out(function, ranks, expected):
    types = [TensorType(FLOAT64, rank, True, rank - 1) if rank else ScalarType(INT64) for rank in ranks]
    program = lower(define(function), Signature(tuple(types)))
    assert set(find_shardings(program)) == set(expected)
