"""The loops that most tests look at: a causal depthwise convolution and a product that assert nothing about shapes."""

import torch


def timex(w: torch.Tensor, k: torch.Tensor, eps: float) -> torch.Tensor:
    """Causal depthwise convolution."""
    B, C, T = k.shape
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = eps
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                out[b, c, t] = s
    return out


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Matrix product, each element of which is summed in a variable."""
    out = a.new_empty(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out
