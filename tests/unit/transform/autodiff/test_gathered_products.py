"""Gradients of sums of products that functions are applied to: on a grid both are sums of products themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.ir.signature import Signature
from brickwork.transform.derive import Backward
from support.derivatives import interpreted
from support.shared import define, derive, lower
from support.tensors import argument_type

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


def filtered(x: Tensor, w: Tensor) -> Tensor:
    """Return a convolution with a bias, the first of the weights."""
    y = x.new_empty((x.shape[0], w.shape[0], x.shape[1] - w.shape[1] + 2))
    for n in range(x.shape[0]):
        for f in range(w.shape[0]):
            for t in range(y.shape[2]):
                s = w[f, 0]
                for k in range(1, w.shape[1]):
                    s += x[n, t + k - 1] * w[f, k]
                y[n, f, t] = math.sin(s)
    return y


def carried(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = x.new_empty((x.shape[0], w.shape[0], x.shape[1]))
    for n in range(x.shape[0]):
        for f in range(w.shape[0]):
            s = 0.0
            for t in range(x.shape[1]):
                s = math.sin(s) + b[f]
                for k in range(w.shape[1]):
                    s += x[n, t] * w[f, k]
                y[n, f, t] = s
    return y


def windows(x: Tensor, ends: Tensor) -> Tensor:
    """Sum windows whose ends are floats: what is read is a scatter, and each row's ends are summed over its windows."""
    y = x.new_empty((ends.shape[0], x.shape[0]))
    for r in range(ends.shape[0]):
        for c in range(x.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (ends[r, 0] - k) * x[c, min(max(int(ends[r, 1] + k), 0), x.shape[1] - 1)]
            y[r, c] = s * ends[r, 1]
    return y


def sampled(x: Tensor, mask: Tensor, at: Tensor) -> Tensor:
    """Weight three elements at places that floats say, for each channel of a group, by numbers side by side."""
    y = torch.empty_like(x)
    for n in range(x.shape[0]):
        for g in range(2):
            for c in range(x.shape[2] // 2):
                s = 0.0
                for k in range(3):
                    p = min(max(int(at[n, g * 3 + k] + k), 0), x.shape[1] - 1)
                    s += x[n, p, g * (x.shape[2] // 2) + c] * mask[n, g * 3 + k]
                y[n, 0, g * (x.shape[2] // 2) + c] = s
    return y


def nests(function: Callable[..., Tensor], *sizes: tuple[int, ...], device: str) -> list[set[str]]:
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


def test_a_bias_is_gathered_from_what_is_kept_for_the_weights() -> None:
    """The nest that computes it again has no sum of its own over places, so that these are independent."""
    assert nests(filtered, (3, 9), (2, 4), device="sm_90")[0] == {"s_adjoint_kept"}


def test_a_sum_stays_in_a_loop_that_carries_a_state() -> None:
    assert "b_gradient_kept" in nests(carried, (3, 9), (2, 4), (2,), device="sm_90")[0]


def test_rows_beside_a_scatter_are_gathered_from_what_is_kept() -> None:
    """The nest of the scatter has no sum of its own over places then, and may be for as many threads."""
    found = nests(windows, (3, 4), (2, 2), device="sm_90")
    assert "x_gradient" in found[0]
    assert "ends_gradient" not in found[0]
    assert any("ends_gradient" in nest for nest in found[1:])


def test_sums_at_flat_places_stay_beside_a_scatter() -> None:
    """To look for their iterations, all that the scatter does would be done again, by neighbours at other times."""
    stored = nests(sampled, (3, 4, 6), (3, 6), (3, 6), device="sm_90")
    found = [nest & {"x_gradient", "mask_gradient"} for nest in stored]
    assert {"x_gradient", "mask_gradient"} in found
    assert {"mask_gradient"} not in found


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (activated, ((3, 4), (2, 4))),
        (filtered, ((3, 9), (2, 4))),
        (carried, ((3, 5), (2, 4), (2,))),
        (windows, ((3, 4), (2, 2))),
        (sampled, ((3, 4, 6), (3, 6), (3, 6))),
    ],
    ids=["activated", "filtered", "carried", "windows", "sampled"],
)
def test_gradients_are_those_of_the_loops(function: Callable[..., Tensor], sizes: tuple[tuple[int, ...], ...]) -> None:
    """A program for a grid gives what one for a processor gives, whose nests keep the scatter's order."""
    torch.manual_seed(0)
    given = [torch.randn(size) for size in sizes]
    grown = torch.randn_like(bw.op(f"bwproducts::{function.__name__}_plain")(function)(*given))
    signature = Signature(tuple(map(argument_type, given)))
    program = lower(define(function), signature)
    added = replace(signature, arguments=(*signature.arguments, argument_type(grown)))
    wanted = Backward((True,) * len(given))
    one, other = (
        interpreted(derive(replace(program, device=device), wanted, added), [*given, grown])
        for device in ("cpu", "cuda")
    )
    torch.testing.assert_close(one, other)
