"""Softmax and layer norm as they are written down, with the backward that follows from them."""

import math

import torch
from torch.nn import functional

import brickwork as bw


@bw.op("tour::softmax")
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return exp(x) / sum(exp(x)) along each row of x (rows, n)."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        largest = -math.inf
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - largest) / total
    return out


@bw.op("tour::layer_norm")
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Give each row of x (rows, n) mean 0 and variance 1, then scale and shift by weight and bias (n,)."""
    rows, n = x.shape
    out = torch.empty_like(x)
    for i in range(rows):
        mean = 0.0
        for j in range(n):
            mean += x[i, j]
        mean /= n
        variance = 0.0
        for j in range(n):
            variance += (x[i, j] - mean) * (x[i, j] - mean)
        scale = 1 / math.sqrt(variance / n + eps)
        for j in range(n):
            out[i, j] = (x[i, j] - mean) * scale * weight[j] + bias[j]
    return out


def main(rows: int = 64, n: int = 200) -> str:
    """Compare both, and their gradients, with torch's own."""
    generator = torch.Generator().manual_seed(1)
    x, upstream = (torch.randn(rows, n, generator=generator, dtype=torch.float64) for _ in range(2))
    weight, bias = (torch.randn(n, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    x.requires_grad_()
    pairs = [
        (softmax(x), functional.softmax(x, 1), (x,)),
        (layer_norm(x, weight, bias), functional.layer_norm(x, (n,), weight, bias), (x, weight, bias)),
    ]
    apart = 0.0
    for ours, theirs, inputs in pairs:
        assert torch.allclose(ours, theirs)
        for a, b in zip(*(torch.autograd.grad(y, inputs, upstream) for y in (ours, theirs)), strict=True):
            apart = max(apart, (a - b).abs().max().item())
    assert apart < 1e-10, apart
    return f"gradients differ from torch's by {apart:.1e} at most"


if __name__ == "__main__":
    print(main())
