"""Samples of many normal distributions at once."""

import torch

import brickwork as bw


@bw.op("brickwork::sample_normal")
def sample_normal(mu: torch.Tensor, sigma: torch.Tensor, n: int) -> torch.Tensor:
    """Draw n samples from each of d normal distributions, every element its own draw.

    out[i, j] = mu[i] + sigma[i] * z[i, j] with independent z[i, j] of N(0, 1)

    Shapes: mu (d,), sigma (d,) -> (d, n), of floating-point types; the result has that of mu, and draws are float32.
    `generator=` takes a `torch.Generator` in place of torch's own. Other types, and different lengths, raise
    AssertionError.

    Source: the reparametrised normal distribution, with normal deviates by Box and Muller (1958) from the
    counter-based generator Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
    """
    assert mu.is_floating_point(), "mu must be of a floating-point type"
    assert sigma.is_floating_point(), "sigma must be of a floating-point type"
    d = mu.shape[0]
    assert sigma.shape[0] == d, "mu and sigma must have the same length"
    out = mu.new_empty((d, n))
    for i in range(d):
        for j in range(n):
            out[i, j] = mu[i] + sigma[i] * bw.randn()
    return out
