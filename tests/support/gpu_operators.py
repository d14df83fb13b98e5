"""Operators for the hard cases of GPUs: indices from tensors, asserts in loops, and steps that follow one another."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import torch

import brickwork as bw


@bw.op("bwgpu::gather")
def gather(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Elements by index."""
    out = x.new_empty(index.shape[0])
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


@bw.op("bwgpu::scatter")
def scatter(out: torch.Tensor, index: torch.Tensor, x: torch.Tensor) -> None:
    """Store elements by index; the indices differ."""
    for i in bw.prange(x.shape[0]):
        out[index[i]] = x[i]


@bw.op("bwgpu::scatter_add")
def scatter_add(out: torch.Tensor, index: torch.Tensor, x: torch.Tensor) -> None:
    """Add elements by index."""
    for i in range(x.shape[0]):
        out[index[i]] += x[i]


@bw.op("bwgpu::root")
def root(x: torch.Tensor) -> torch.Tensor:
    """Square roots of what must not be negative."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        assert x[i] >= 0, "a negative element has no root"
        out[i] = x[i] ** 0.5
    return out


@bw.op("bwgpu::shifted")
def shifted(x: torch.Tensor) -> torch.Tensor:
    """One more than each element, of any integer or floating-point type."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + 1
    return out


@bw.op("bwgpu::heat")
def heat(u: torch.Tensor, steps: int) -> torch.Tensor:
    """Steps of diffusion, each reading what the one before stored."""
    n = u.shape[0]
    a = torch.empty_like(u)
    b = torch.empty_like(u)
    for i in range(n):
        a[i] = u[i]
        b[i] = u[i]
    for _ in range(steps):
        for i in range(1, n - 1):
            b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1]
        for i in range(1, n - 1):
            a[i] = b[i]
    return a


@bw.op("bwgpu::every")
def every(x: torch.Tensor, step: int) -> torch.Tensor:
    """Three elements, a step apart."""
    out = x.new_empty(3)
    for i in range(3):
        out[i] = x[i * step]
    return out
