"""Normalised rows, rotations and gates."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source


@bw.op("published::layer_norm")
def layer_norm(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise each row. x: (rows, D), gamma, beta: (D,) -> (rows, D), and the rows' means and inverse deviations."""
    rows, D = x.shape
    out = torch.empty_like(x)
    means = torch.empty(rows, dtype=torch.float32)
    inverses = torch.empty(rows, dtype=torch.float32)
    for i in range(rows):
        mean = 0.0
        for j in range(D):
            mean += x[i, j]
        mean /= D
        variance = 0.0
        for j in range(D):
            variance += (x[i, j] - mean) * (x[i, j] - mean)
        variance /= D
        inverse = 1.0 / math.sqrt(variance + eps)
        means[i] = mean
        inverses[i] = inverse
        for j in range(D):
            out[i, j] = (x[i, j] - mean) * inverse * gamma[j] + beta[j]
    return out, means, inverses


def layer_norm_inputs(make: Source, rows: int, D: int) -> tuple[Any, ...]:
    """Return normal rows, weights and shifts, in float16."""
    half = torch.float16
    return make.normal(rows, D, dtype=half), make.normal(D, dtype=half), make.normal(D, dtype=half), 1e-5


def layer_norm_reference(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute `layer_norm` with torch's functions of rows."""
    inverse = (x.var(1, correction=0) + eps).rsqrt()
    out = (x - x.mean(1, keepdim=True)) * inverse[:, None] * gamma + beta
    return out, x.mean(1), inverse


@bw.op("published::rotary")
def rotary(x: torch.Tensor, freqs: torch.Tensor) -> torch.Tensor:
    """Rotate the first channels of each head by the angles of its place. x: (S, B, H, D), freqs: (S, R) -> as x."""
    S, B, H, D = x.shape
    R = freqs.shape[1]
    out = torch.empty_like(x)
    for s in range(S):
        for b in range(B):
            for h in range(H):
                for d in range(D):
                    if d < R:
                        if d + R // 2 < R:
                            turned = -x[s, b, h, d + R // 2]
                        else:
                            turned = x[s, b, h, d - R // 2]
                        out[s, b, h, d] = x[s, b, h, d] * math.cos(freqs[s, d]) + turned * math.sin(freqs[s, d])
                    else:
                        out[s, b, h, d] = x[s, b, h, d]
    return out


def rotary_inputs(make: Source, S: int, B: int, H: int, D: int) -> tuple[Any, ...]:
    """Return normal heads in float16, and the angles for all of their channels."""
    angles = torch.arange(S, device=make.device)[:, None] / 10000 ** (torch.arange(0, D, 2, device=make.device) / D)
    return make.normal(S, B, H, D, dtype=torch.float16), torch.cat([angles, angles], 1)


def rotary_reference(x: torch.Tensor, freqs: torch.Tensor) -> torch.Tensor:
    """Compute `rotary` with halves that change places."""
    R = freqs.shape[1]
    first, second = x[..., : R // 2], x[..., R // 2 : R]
    angles = freqs[:, None, None]
    turned = x[..., :R] * angles.cos() + torch.cat([-second, first], -1) * angles.sin()
    return torch.cat([turned, x[..., R:]], -1)


@bw.op("published::causal_softmax")
def causal_softmax(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Softmax of each row's elements up to the diagonal, zeros beyond. x: (B, S, S) -> (B, S, S)."""
    B, S, _ = x.shape
    out = torch.empty_like(x)
    for b in range(B):
        for i in range(S):
            most = -math.inf
            for j in range(i + 1):
                most = max(most, x[b, i, j] * scale)
            total = 0.0
            for j in range(i + 1):
                total += math.exp(x[b, i, j] * scale - most)
            for j in range(i + 1):
                out[b, i, j] = math.exp(x[b, i, j] * scale - most) / total
            for j in range(i + 1, S):
                out[b, i, j] = 0.0
    return out


def causal_softmax_inputs(make: Source, B: int, S: int) -> tuple[Any, ...]:
    """Return normal scores in float16, and a scale."""
    return make.normal(B, S, S, dtype=torch.float16), 0.5


def causal_softmax_reference(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Compute `causal_softmax` with torch's softmax."""
    hidden = torch.ones(x.shape[1:], dtype=torch.bool, device=x.device).triu(1)
    return torch.softmax((x * scale).masked_fill(hidden, -math.inf), -1)


@bw.op("published::silu_and_mul")
def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """Multiply the second half of each row by the SiLU of the first. x: (tokens, 2 D) -> (tokens, D)."""
    tokens, width = x.shape
    D = width // 2
    out = x.new_empty((tokens, D))
    for t in range(tokens):
        for d in range(D):
            gate = x[t, d]
            out[t, d] = gate / (1.0 + math.exp(-gate)) * x[t, D + d]
    return out


def silu_and_mul_inputs(make: Source, tokens: int, width: int) -> tuple[Any, ...]:
    """Return normal rows in float16."""
    return (make.normal(tokens, width, dtype=torch.float16),)


def silu_and_mul_reference(x: torch.Tensor) -> torch.Tensor:
    """Compute `silu_and_mul` with torch's SiLU."""
    gate, other = x.chunk(2, 1)
    return torch.nn.functional.silu(gate) * other


OPERATORS = (
    Published(
        op=layer_norm,
        repository="NVIDIA/apex",
        file="csrc/layer_norm_cuda_kernel.cu",
        commit="4b0ee25",
        inputs=layer_norm_inputs,
        reference=layer_norm_reference,
        tiny=(3, 8),
        small=(64, 256),
        large=(16384, 4096),
        gradient=("x", "gamma", "beta"),
    ),
    Published(
        op=rotary,
        repository="NVIDIA/apex",
        file="csrc/megatron/fused_rotary_positional_embedding_cuda.cu",
        commit="7cd3447",
        inputs=rotary_inputs,
        reference=rotary_reference,
        tiny=(3, 2, 2, 8),
        small=(64, 1, 4, 64),
        large=(4096, 8, 32, 128),
        gradient=("x",),
    ),
    Published(
        op=causal_softmax,
        repository="NVIDIA/apex",
        file="csrc/megatron/scaled_upper_triang_masked_softmax_cuda.cu",
        commit="61aa246",
        inputs=causal_softmax_inputs,
        reference=causal_softmax_reference,
        tiny=(2, 6),
        small=(8, 64),
        large=(64, 2048),
        gradient=("x",),
    ),
    Published(
        op=silu_and_mul,
        repository="vllm-project/vllm",
        file="csrc/activation_kernels.cu",
        commit="5500c76",
        inputs=silu_and_mul_inputs,
        reference=silu_and_mul_reference,
        tiny=(3, 8),
        small=(16, 512),
        large=(8192, 28672),
    ),
)
