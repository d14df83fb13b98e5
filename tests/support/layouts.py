"""Nests that read along memory in one loop and in another what they store: transposes, permutes, products of rows.

Tests of schedules take them, for processors and for grids.
"""

import torch


def transpose(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], x.shape[0]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[j, i]
    return out


def transpose_and_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(y)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j] + y[j, i]
    return out


def last_axis_first(x: torch.Tensor) -> torch.Tensor:
    b, n, m = x.shape
    out = x.new_empty((m, b, n))
    for k in range(b):
        for i in range(n):
            for j in range(m):
                out[j, k, i] = x[k, i, j]
    return out


def columns(x: torch.Tensor, at: int) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        out[i] = x[i, at]
    return out


def product_of_rows_by_columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """`x @ w.T`, column by column."""
    out = x.new_empty(x.shape[0], w.shape[0])
    for j in range(w.shape[0]):
        for i in range(x.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += x[i, k] * w[j, k]
            out[i, j] = s
    return out


def products_of_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """`x @ w.T`, of several matrices."""
    out = x.new_empty(x.shape[0], x.shape[1], w.shape[1])
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(w.shape[1]):
                s = 0.0
                for k in range(x.shape[2]):
                    s += x[b, i, k] * w[b, j, k]
                out[b, i, j] = s
    return out
