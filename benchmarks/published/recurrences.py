"""Recurrences with a vector or a matrix as state: time mixing of RWKV, and the selective scan of Mamba."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source

HEAD = 64
"""Channels of a head; the published kernels are compiled for one number, too."""


@bw.op("published::wkv4")
def wkv4(w: torch.Tensor, u: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Average past values with weights that decay, in RWKV's version 4. w, u: (C,), k, v: (B, T, C) -> (B, T, C)."""
    B, T, C = k.shape
    y = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            p, q, o = 0.0, 0.0, -65500.0  # p and q are sums that are divided by exp(o)
            for t in range(T):
                no = max(o, u[c] + k[b, t, c])
                e1 = math.exp(o - no)
                e2 = math.exp(u[c] + k[b, t, c] - no)
                y[b, t, c] = (e1 * p + e2 * v[b, t, c]) / (e1 * q + e2)
                no = max(w[c] + o, k[b, t, c])
                e1 = math.exp(w[c] + o - no)
                e2 = math.exp(k[b, t, c] - no)
                p = e1 * p + e2 * v[b, t, c]
                q = e1 * q + e2
                o = no
    return y


def wkv4_inputs(make: Source, B: int, T: int, C: int) -> tuple[Any, ...]:
    """Return decays below zero, and normal keys and values."""
    return -make.uniform(C, low=0.1), make.normal(C), make.normal(B, T, C), make.normal(B, T, C)


def wkv4_reference(w: torch.Tensor, u: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute `wkv4` as a softmax over all past steps."""
    T = k.shape[1]
    steps = torch.arange(T, device=k.device)
    back = steps[:, None] - steps[None, :] - 1
    scores = back[..., None] * w + k[:, None]
    scores = torch.where((back == -1)[..., None], u + k[:, None], scores)
    weights = torch.softmax(scores.masked_fill((back < -1)[..., None], -math.inf), 2)
    return torch.einsum("btsc,bsc->btc", weights, v)


@bw.op("published::wkv5")
def wkv5(r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Linear attention with a decay for each channel. r, k, v: (B, T, H, N), w, u: (H, N) -> (B, T, H, N)."""
    B, T, H, _ = r.shape
    y = torch.empty_like(r)
    for b in range(B):
        for h in range(H):
            for i in range(HEAD):
                state = [0.0] * HEAD
                for t in range(T):
                    s = 0.0
                    for j in range(HEAD):
                        x = k[b, t, h, j] * v[b, t, h, i]
                        s += r[b, t, h, j] * (u[h, j] * x + state[j])
                        state[j] = state[j] * w[h, j] + x
                    y[b, t, h, i] = s
    return y


def wkv5_inputs(make: Source, B: int, T: int, H: int, N: int) -> tuple[Any, ...]:
    """Return normal receptances, keys and values, and decays between 0 and 1."""
    assert N == HEAD, "the head has as many channels as the operator was written for"
    rkv = (make.normal(B, T, H, N) for _ in range(3))
    return (*rkv, make.uniform(H, N, low=0.5), make.normal(H, N))


def wkv5_reference(r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Compute `wkv5` step by step."""
    return _mixed(r, k, v, w.expand(r.shape), u)


@bw.op("published::wkv6")
def wkv6(r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Linear attention with a decay for each step, exp(w). r, k, v, w: (B, T, H, N), u: (H, N) -> (B, T, H, N)."""
    B, T, H, _ = r.shape
    y = torch.empty_like(r)
    for b in range(B):
        for h in range(H):
            for i in range(HEAD):
                state = [0.0] * HEAD
                for t in range(T):
                    s = 0.0
                    for j in range(HEAD):
                        x = k[b, t, h, j] * v[b, t, h, i]
                        s += r[b, t, h, j] * (u[h, j] * x + state[j])
                        state[j] = state[j] * math.exp(w[b, t, h, j]) + x
                    y[b, t, h, i] = s
    return y


def wkv6_inputs(make: Source, B: int, T: int, H: int, N: int) -> tuple[Any, ...]:
    """Return bfloat16 receptances, keys, values and bonuses, and the float32 logarithms of decays."""
    assert N == HEAD, "the head has as many channels as the operator was written for"
    rkv = (make.normal(B, T, H, N, dtype=torch.bfloat16) for _ in range(3))
    return (*rkv, make.uniform(B, T, H, N, low=-1.0, high=0.0), make.normal(H, N, dtype=torch.bfloat16))


def wkv6_reference(r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Compute `wkv6` step by step."""
    return _mixed(r, k, v, w.exp(), u)


def _mixed(r: torch.Tensor, k: torch.Tensor, v: torch.Tensor, w: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Return linear attention whose state decays by w at each step."""
    state = torch.zeros_like(r[:, 0, :, :, None] * v[:, 0, :, None])
    steps: list[torch.Tensor] = []
    for t in range(r.shape[1]):
        x = k[:, t, :, :, None] * v[:, t, :, None]
        steps.append((r[:, t, :, :, None] * (u[..., None] * x + state)).sum(2))
        state = state * w[:, t, :, :, None] + x
    return torch.stack(steps, 1)


@bw.op("published::selective_scan")
def selective_scan(
    u: torch.Tensor,
    delta: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    z: torch.Tensor,
    delta_bias: torch.Tensor,
) -> torch.Tensor:
    """Run Mamba's recurrence. u, delta, z: (batch, D, L), A: (D, N), B, C: (batch, N, L), D, delta_bias: (D,)."""
    batch, channels, L = u.shape
    N = A.shape[1]
    out = torch.empty_like(u)
    for b in range(batch):
        for d in range(channels):
            state = [0.0] * N
            for t in range(L):
                dt = delta[b, d, t] + delta_bias[d]
                if dt <= 20.0:
                    dt = math.log1p(math.exp(dt))
                y = D[d] * u[b, d, t]
                for n in range(N):
                    state[n] = math.exp(dt * A[d, n]) * state[n] + dt * B[b, n, t] * u[b, d, t]
                    y += state[n] * C[b, n, t]
                out[b, d, t] = y * z[b, d, t] / (1.0 + math.exp(-z[b, d, t]))
    return out


def selective_scan_inputs(make: Source, B: int, D: int, L: int, N: int) -> tuple[Any, ...]:
    """Return normal tensors, A below zero and small steps."""
    u, delta, z = make.normal(B, D, L), make.uniform(B, D, L, high=0.5), make.normal(B, D, L)
    A, D_skip, bias = -make.uniform(D, N, low=0.5, high=2.0), make.normal(D), make.uniform(D, low=-4.0, high=-2.0)
    return u, delta, A, make.normal(B, N, L), make.normal(B, N, L), D_skip, z, bias


def selective_scan_reference(
    u: torch.Tensor,
    delta: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor,
    z: torch.Tensor,
    delta_bias: torch.Tensor,
) -> torch.Tensor:
    """Compute `selective_scan` step by step."""
    dt = torch.nn.functional.softplus(delta + delta_bias[:, None])
    state = torch.zeros_like(u[:, :, :1] * A)
    steps: list[torch.Tensor] = []
    for t in range(u.shape[2]):
        step, given = dt[:, :, t, None], u[:, :, t, None]
        state = torch.exp(step * A) * state + step * B[:, None, :, t] * given
        steps.append((state * C[:, None, :, t]).sum(-1))
    return (torch.stack(steps, -1) + D[:, None] * u) * torch.nn.functional.silu(z)


OPERATORS = (
    Published(
        op=wkv4,
        repository="BlinkDL/RWKV-CUDA",
        file="wkv/cuda/wkv_cuda_v2.cu",
        commit="7ff38b5",
        inputs=wkv4_inputs,
        reference=wkv4_reference,
        tiny=(2, 5, 3),
        small=(2, 64, 256),
        large=(32, 768, 768),
        gradient=("w", "u", "k", "v"),
    ),
    Published(
        op=wkv5,
        repository="BlinkDL/RWKV-CUDA",
        file="wkv5/cuda/wkv5_cuda_v2.cu",
        commit="6d26832",
        inputs=wkv5_inputs,
        reference=wkv5_reference,
        tiny=(1, 4, 2, HEAD),
        small=(1, 64, 4, HEAD),
        large=(8, 4096, 32, HEAD),
        gradient=("r", "k", "v", "w", "u"),
    ),
    Published(
        op=wkv6,
        repository="BlinkDL/RWKV-CUDA",
        file="wkv6/cuda/wkv6_cuda_v1a.cu",
        commit="defcd7b",
        inputs=wkv6_inputs,
        reference=wkv6_reference,
        tiny=(1, 4, 2, HEAD),
        small=(1, 64, 4, HEAD),
        large=(8, 4096, 32, HEAD),
        gradient=("r", "k", "v", "w", "u"),
    ),
    Published(
        op=selective_scan,
        repository="state-spaces/mamba",
        file="csrc/selective_scan/selective_scan_fwd_kernel.cuh",
        commit="22c0c87",
        inputs=selective_scan_inputs,
        reference=selective_scan_reference,
        tiny=(2, 3, 5, 4),
        small=(1, 64, 128, 16),
        large=(8, 2048, 2048, 16),
        gradient=("u", "delta", "A", "B", "C", "D", "z", "delta_bias"),
    ),
)
