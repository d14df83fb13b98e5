"""Samples of many normal distributions at once."""

import torch

import brickwork as bw


def _at(column: torch.Tensor, i: int) -> torch.Tensor:
    return column[i] if column.dim() == 1 else column[i, 0]


@bw.op("brickwork::sample_normal")
def sample_normal(mu: torch.Tensor, sigma: torch.Tensor, n: int) -> torch.Tensor:
    """Draw n samples from each of d normal distributions, every element its own draw.

    out[i, j] = mu[i] + sigma[i] * z[i, j] with independent z[i, j] of N(0, 1)

    Shapes: mu (d,) or (d, 1), sigma (d,) or (d, 1) -> (d, n), of floating-point types; the result has that of mu, and
    draws are float32. `generator=` takes a `torch.Generator` in place of torch's own. Other types and shapes raise
    AssertionError.

    Source: the reparametrised normal distribution, with normal deviates by Box and Muller (1958) from the
    counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
    """
    assert mu.is_floating_point(), "mu must be of a floating-point type"
    assert sigma.is_floating_point(), "sigma must be of a floating-point type"
    assert mu.dim() == 1 or (mu.dim() == 2 and mu.shape[1] == 1), "mu must have the shape (d,) or (d, 1)"
    assert sigma.dim() == 1 or (sigma.dim() == 2 and sigma.shape[1] == 1), "sigma must have the shape (d,) or (d, 1)"
    d = mu.shape[0]
    assert sigma.shape[0] == d, "mu and sigma must have the same length"
    out = mu.new_empty((d, n))
    for i in range(d):
        for j in range(n):
            out[i, j] = _at(mu, i) + _at(sigma, i) * bw.randn()
    return out
