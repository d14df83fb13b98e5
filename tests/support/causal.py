"""The loops that most tests look at: a causal depthwise convolution that asserts nothing about its shapes."""

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
