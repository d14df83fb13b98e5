"""Rows of a triangle that lie one after the other in an axis: `out[i * (i + 1) // 2 + j]`."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw


@bw.op("packed::lower")
def lower(x: torch.Tensor) -> torch.Tensor:
    """The lower triangle of a matrix, row by row, with the diagonal."""
    n = x.shape[0]
    out = x.new_zeros(n * (n + 1) // 2)
    for i in range(n):
        for j in range(i + 1):
            out[i * (i + 1) // 2 + j] = x[i, j]
    return out


@bw.op("packed::upper")
def upper(x: torch.Tensor) -> torch.Tensor:
    """The upper triangle, row by row, without the diagonal."""
    n = x.shape[0]
    out = x.new_zeros(n * (n - 1) // 2)
    for i in range(n):
        for j in range(i + 1, n):
            out[i * (2 * n - i - 1) // 2 + j - i - 1] = x[i, j]
    return out


@bw.op("packed::squares")
def squares(x: torch.Tensor) -> torch.Tensor:
    """Rows of 2 * i + 1 elements: row i begins at i * i."""
    n = x.shape[0]
    out = x.new_zeros(n * n)
    for i in range(n):
        for j in range(-i, i + 1):
            out[i * i + i + j] += x[i, abs(j)]
    return out


@bw.op("packed::given")
def given(x: torch.Tensor, out: torch.Tensor) -> None:
    """The lower triangle into a tensor that is there."""
    for i in range(x.shape[0]):
        begin = i * (i + 1) // 2
        for j in range(i + 1):
            out[begin + j] = x[i, j]


@pytest.mark.parametrize("function", [lower, upper, squares])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 65])
def test_rows_are_stored_in_parallel(function: bw.Operator, n: int) -> None:
    x = torch.rand(n, n)
    assert torch.equal(function(x), function.python(x))
    said = str(function.explain(x))
    assert "for i at" in said
    assert "maybe at the same element" not in said
    assert "index 0 of 'out' stored into is" not in said


def test_gradients_come_from_the_elements_of_the_triangle() -> None:
    x = torch.rand(7, 7, dtype=torch.float64, requires_grad=True)
    for function in (lower, upper, squares):
        assert torch.autograd.gradcheck(function, (x,))


def test_a_tensor_that_is_too_short_is_found_before() -> None:
    x = torch.rand(9, 9)
    out = torch.zeros(45)
    given(x, out)
    assert torch.equal(out, lower(x))
    with pytest.raises(IndexError, match="index 44 is out of bounds for dimension 0 of tensor 'out' with size 44"):
        given(x, torch.zeros(44))


@bw.op("packed::overlapping")
def overlapping(x: torch.Tensor) -> torch.Tensor:
    """Rows that begin in the rows before them, that go back, or whose distance leaves a rest, each in order."""
    n = x.shape[0]
    out = x.new_zeros(5, n * n + n + 1)
    for i in range(n):
        for j in range(i + 2):
            out[0, i * (i + 1) // 2 + j] = out[0, i * (i + 1) // 2 + j] * 0.5 + x[i, j % n]
    for i in range(n):
        for j in range(i + 1):
            out[1, i * (n - i) + j] = out[1, i * (n - i) + j] * 0.5 + x[i, j]
    for i in range(n):
        for j in range(i + 1):
            out[2, i * (i + 2) // 3 + j] = out[2, i * (i + 2) // 3 + j] * 0.5 + x[i, j]
    for i in range(n):
        for j in range(i + 1):
            out[3, i * i // 4 + j // 2] = out[3, i * i // 4 + j // 2] * 0.5 + x[i, j]
    for i in range(n):
        for j in range(i + 1):
            out[4, i * (i + 1) // 2 - j] = out[4, i * (i + 1) // 2 - j] * 0.5 + x[i, j]
    return out


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_rows_that_have_elements_in_common_are_not(n: int) -> None:
    x = torch.rand(n, n)
    assert torch.equal(overlapping(x), overlapping.python(x))
