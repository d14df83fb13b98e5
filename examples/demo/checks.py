"""Each ready operator against its torch formulation on real sizes; each check returns a line of what it found."""

from __future__ import annotations

import torch

from benchmarks.peers import torch_formulations
from brickwork import ops


def brick_pad() -> str:
    """Compare every pixel of the headline case."""
    arguments = (torch.rand(48, 32), 4144, 8224, [4096, 2048], [32, 0], [10, 48])
    found, expected = ops.brick_pad(*arguments), torch_formulations.brick_pad(*arguments)
    assert torch.equal(found, expected), "brick_pad differs from its torch formulation"
    return f"brick_pad      {found.numel():,} pixels, all equal"


def timex() -> str:
    """Compare the convolution with double precision."""
    w, k = torch.randn(64, 512), torch.randn(8, 64, 512)
    found, expected = ops.timex(w, k, 0.1), torch_formulations.timex(w.double(), k.double(), 0.1)
    error = (found - expected).abs().max().item()
    torchs = (torch_formulations.timex(w, k, 0.1) - expected).abs().max().item()
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-3)
    return f"timex          {found.numel():,} sums, largest error {error:.1e} (torch conv1d: {torchs:.1e})"


def sine() -> str:
    """Compare the sine with double precision."""
    x = 100 * torch.randn(1 << 20)
    found, expected = ops.sin(x), torch.sin(x.double())
    error = (found - expected).abs().max().item()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    return f"sin            {found.numel():,} values, largest error {error:.1e}"


def sample_normal() -> str:
    """Compare mean, variance and the correlation of rows with those of the distribution."""
    d, n = 1000, 4096
    mu, sigma = torch.linspace(-3, 3, d), torch.linspace(0.5, 2, d)
    torch.manual_seed(1)
    z = (ops.sample_normal(mu, sigma, n) - mu[:, None]) / sigma[:, None]
    mean, deviation = z.mean().item(), z.std().item()
    between = (z[0::2] * z[1::2]).mean(1).abs().max().item()
    assert abs(mean) < 5 / (d * n) ** 0.5, "the samples' mean is not that of the distribution"
    assert abs(deviation - 1) < 5 / (2 * d * n) ** 0.5, "the samples' deviation is not that of the distribution"
    assert between < 6 / n**0.5, "rows are correlated"
    torch.manual_seed(1)
    again = (ops.sample_normal(mu, sigma, n) - mu[:, None]) / sigma[:, None]
    assert torch.equal(z, again), "the same seed gives other samples"
    return f"sample_normal  {d * n:,} samples: mean {mean:+.5f}, deviation {deviation:.5f}, rows independent"


ALL = (brick_pad, timex, sine, sample_normal)
