"""The causal depthwise convolution of RWKV's time mixing."""

import torch

import brickwork as bw


@bw.op("brickwork::timex")
def timex(w: torch.Tensor, k: torch.Tensor, eps: float) -> torch.Tensor:
    """Convolve each channel with its own weights, looking back only.

    out[b, c, t] = eps + sum over u = 0 .. t of w[c, T - 1 - t + u] * k[b, c, u]

    Shapes: w (C, T), k (B, C, T) -> (B, C, T), of any floating-point types; the result has that of k.
    Sizes that do not fit one another, and other types, raise AssertionError.

    Source: the time mixing of RWKV (version 4), whose weights for the present stand last.
    """
    assert w.is_floating_point(), "w must be of a floating-point type"
    assert k.is_floating_point(), "k must be of a floating-point type"
    B, C, T = k.shape
    assert w.shape[0] == C, "w and k must have the same channels"
    assert w.shape[1] == T, "w and k must have the same length"
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = eps
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                out[b, c, t] = s
    return out


@bw.op("brickwork::timex_padded")
def timex_padded(w: torch.Tensor, k: torch.Tensor, eps: float) -> torch.Tensor:
    """Convolve as `timex` does, with the past that stands before the first step given in k (zeros for `timex` itself).

    out[b, c, t] = eps + sum over u = 0 .. T - 1 of w[c, 0, u] * k[b, c, t + u]

    Shapes: w (C, 1, T), k (B, C, 2 T - 1) -> (B, C, T): those of `torch.nn.functional.conv1d` with `groups=C`.
    Types and errors as in `timex`.

    Source: as `timex`.
    """
    assert w.is_floating_point(), "w must be of a floating-point type"
    assert k.is_floating_point(), "k must be of a floating-point type"
    B, C, P = k.shape
    T = w.shape[2]
    assert w.shape[0] == C, "w and k must have the same channels"
    assert w.shape[1] == 1, "w must have the shape (C, 1, T)"
    assert P == 2 * T - 1, "k must be padded to the length 2 T - 1"
    out = k.new_empty((B, C, T))
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = eps
                for u in range(T):
                    s += w[c, 0, u] * k[b, c, t + u]
                out[b, c, t] = s
    return out
