"""Gradients of sums of products that functions are applied to: on a grid both are sums of products themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch

import brickwork as bw

Tensor = torch.Tensor


def activated(x: Tensor, w: Tensor) -> Tensor:
    y = x.new_empty((x.shape[0], w.shape[0]))
    for n in range(x.shape[0]):
        for o in range(w.shape[0]):
            s = 0.0
            for i in range(x.shape[1]):
                s += x[n, i] * w[o, i]
            y[n, o] = math.sin(s)
    return y


def scaled_rows(x: Tensor, w: Tensor) -> Tensor:
    y = torch.empty_like(x)
    for n in range(x.shape[0]):
        s = 0.0
        for i in range(x.shape[1]):
            s += x[n, i] * x[n, i]
        r = 1.0 / math.sqrt(s)
        for i in range(x.shape[1]):
            y[n, i] = x[n, i] * r * w[0, i]
    return y


def nests(function: Callable[..., Tensor], *sizes: tuple[int, int], device: str) -> list[set[str]]:
    """Return which tensors each nest of the gradient stores into."""
    given = [torch.empty(size, device="meta", requires_grad=True) for size in sizes]
    text = bw.op(f"bwproducts::{function.__name__}_{device}")(function).inspect("backward ir", *given, device=device)
    (kernel,) = re.findall(r"^with kernel.*\n((?:    .*\n)+)", text, re.MULTILINE)
    parts = re.split(r"^    (?=for|if)", kernel, flags=re.MULTILINE)
    return [set(re.findall(r"^ +(\w+)_t\d+\[.*\] = ", part, re.MULTILINE)) for part in parts[1:]]


def test_both_factors_have_nests_of_their_own_on_a_grid() -> None:
    found = nests(activated, (3, 4), (2, 4), device="sm_90")
    assert found[0] == {"s_adjoint_kept"}
    assert {"x_gradient"} in found
    assert {"w_gradient"} in found


def test_rows_that_share_no_product_stay_in_their_nest() -> None:
    assert {"x_gradient"} not in nests(scaled_rows, (3, 4), (1, 4), device="sm_90")
