"""Rows that share items in torch: parts, `[:, None]`, `.T`, `.float()` of float32, chosen rows."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from support.fourfold import agree


def part_of_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        part = x[i, 1:]
        last = part[1:]
        x[i, 2] = 9.0
        out[i, 2:] = last
        last[0] = 4.0
    return out


def row_of_transposed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        column = x[:2].T[0]
        x[0, 0] += 1
        out[i, :2] = column
    return out


def kept_transposed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(2):
        m, wide = x.T, x[i][:, None]
        x[i, 0] = 7.0
        out[i] = m[0, 1] + wide[0] + m[0]
    return out


def same_type(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        same, other = x[i].float(), x[i].double()
        x[i, 0] = 3.0
        same[1] = 2.0
        out[i] = same + x[i] + other
    return out


@pytest.mark.parametrize(
    "function", [part_of_part, row_of_transposed, kept_transposed, same_type], ids=lambda each: each.__name__
)
def test_parts_of_arguments_are_views(function):
    agree(function, torch.arange(16.0).view(4, 4))


def store_into_widened_zeros(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        m = torch.zeros(4)
        n = m[:, None]
        n[0, 0] = x[i, 0]
        out[i] = m
    return out


def store_into_widened_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        n = x[i][:, None]
        n[1, 0] = 5.0
        out[i] = x[i]
    return out


def add_to_widened_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        n = x[i][:, None]
        n += 5.0
        out[i] = x[i]
    return out


def store_into_transposed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.outer(x[i], x[i])
        g = h.T
        g[0] = 2.0
        out[i] = h[:, 0]
    return out


def store_into_converted(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = x[i].clone()
        g = h.float()
        g[0] = 2.0
        out[i] = h
    return out


def store_by_another_name(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = x[i] * 2
        g = h
        for _ in range(2):
            g[0] = 2.0
            g = g + 1
        out[i] = h + g
    return out


def add_to_converted(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.zeros(4)
        g = h.float()
        g += x[i]
        out[i] = h
    return out


def part_of_joined(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.cat([x[i, :2], x[i, 2:]])
        a = h[1:]
        h[1] = 2.0
        out[i, 1:] = a
    return out


def part_of_product(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = x @ x[i]
        a = h[1:]
        h[1] = 2.0
        out[i, 1:] = a
    return out


def row_of_stacked(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.stack([x[i], x[i]])
        g = h[0]
        h[0, 0] = 2.0
        out[i] = g
    return out


def chosen_of_made(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        a, b = torch.zeros(4), torch.ones(4)
        h = a if x[i, 0] > 0 else b
        a[0] = 7.0
        out[i] = h
    return out


def chosen_of_computed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        a = x[i] * 2
        h = a if x[i, 0] > 0 else -a
        a[0] = 7.0
        out[i] = h
    return out


def chosen_of_joined(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.cat([x[i, :2], x[i, 2:]])
        g = h if x[i, 0] > 0 else -h
        h[1] = 4.0
        out[i] = g
    return out


REFUSED = (
    *(store_into_widened_zeros, store_into_widened_part, add_to_widened_part, store_into_transposed),
    *(store_into_converted, store_by_another_name, add_to_converted, part_of_joined, part_of_product, row_of_stacked),
    *(chosen_of_made, chosen_of_computed, chosen_of_joined),
)


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_items_that_another_row_shares_are_not_changed(function):
    with pytest.raises(bw.CompileError, match=r"BW901: .* is changed in place") as found:
        bw.op(f"row_views::{function.__name__}")(function)(torch.ones(4, 4))
    assert str(found.value).count("test_row_views.py:") == 1


def of_three_axes(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x.T[i]
    return out


def last_two_axes(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x.mT[i]
    return out


def test_three_axes_are_not_transposed_without_saying_which():
    agree(last_two_axes, torch.randn(3, 3, 3))
    with pytest.raises(bw.CompileError, match=r"`\.T` of 3 dimensions in a loop"):
        bw.op("row_views::of_three_axes")(of_three_axes)(torch.randn(3, 3, 3))
