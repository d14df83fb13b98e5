"""Recurrences over rows run in chunks of rows, or of parts of a row where rows are few."""

import pytest
import torch

from unit.transform.test_split_recurrences import is_cut, low_limits, pieces_of, results_of

__all__ = ["low_limits"]


def over_rows(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        h, n, total = 1.0, 0, 0.0
        for r in range(x.shape[0]):
            for t in range(x.shape[2]):
                n += 1
                h = a[r, c, t] * h + x[r, c, t]
                total += h
                out[r, c, t] = h + n
        for r in range(x.shape[0]):
            for t in range(x.shape[2]):
                out[r, c, t] += total - h


def over_a_triangle(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        h = 1.0
        for r in range(x.shape[0]):
            for t in range(min(r, x.shape[2])):
                h = a[r, c, t] * h + x[r, c, t]
                out[r, c, t] = h


def lists_over_rows(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        h, state = 1.0, [2.0] * a.shape[2]
        for r in range(x.shape[0]):
            for n in range(a.shape[2]):
                h = h * a[r, c, n] + x[r, c, n]
                state[n] = state[n] * 2.0 + x[r, c, 0]
                out[r, c, n] = h
        for n in range(a.shape[2]):
            out[0, c, n] += state[n]


@pytest.mark.parametrize("function", [over_rows, over_a_triangle, lists_over_rows])
@pytest.mark.parametrize("shape", [(2, 1, 29), (3, 2, 17), (31, 1, 5), (1, 3, 40), (7, 4, 3), (4, 2, 0)])
def test_chunks_of_rows_mean_what_the_source_says(function, shape):
    shape = (*shape[:2], max(shape[2], 1)) if function is lists_over_rows else shape
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randint(-3, 4, shape, generator=generator).float()
    a = torch.randint(-1, 2, shape, generator=generator).float()
    assert torch.equal(*results_of(function, x, a, torch.zeros(shape)))
    assert is_cut(pieces_of(function, x, a, x))
