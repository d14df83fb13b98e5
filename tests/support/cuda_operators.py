"""Operators made of CUDA C++, for the tests: element types as templates, pointers that may be null, shared memory."""

# Functions beside a schema get what it says.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import torch

import brickwork as bw

SOURCE = r"""
#include <stdint.h>

template <class T> __global__ void scale(const T* x, T* out, double factor, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}

extern "C" __global__ void timex(const float* __restrict__ w, const float* __restrict__ k, float* out, float eps, int C, int T) {
    extern __shared__ float row[];
    int at = blockIdx.x;
    for (int t = threadIdx.x; t < T; t += blockDim.x) row[t] = k[(size_t)at * T + t];
    __syncthreads();
    for (int t = threadIdx.x; t < T; t += blockDim.x) {
        float s = eps;
        for (int u = 0; u <= t; ++u) s += w[(at % C) * T + T - 1 - t + u] * row[u];
        out[(size_t)at * T + t] = s;
    }
}

struct Pair { int32_t a; double b; };

__global__ void add(float* x, const float* bias, bool twice, Pair pair, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += (bias ? bias[i] : 0.f) * (twice ? 2 : 1) + pair.a + pair.b;
}
"""  # noqa: E501  # C++


def blocks(count: int) -> int:
    """Return how many blocks of 256 threads there are for so many."""
    return -(-count // 256)


scale = bw.cuda_op(
    "bwcuda::scale(Tensor x, float factor) -> Tensor",
    source=SOURCE,
    entry="scale<{x}>",
    launch=lambda x, factor, out: bw.Launch(blocks(x.numel()), 256, args=(x, out, factor, x.numel())),
    out=lambda x: torch.empty_like(x),
)

timex = bw.cuda_op(
    "bwcuda::timex(Tensor w, Tensor k, float eps) -> Tensor",
    source=SOURCE,
    entry="timex",
    launch=lambda w, k, eps, out: bw.Launch(
        k.shape[0] * k.shape[1], 256, shared=4 * k.shape[2], args=(w, k, out, eps, k.shape[1], k.shape[2])
    ),
    out=lambda k: torch.empty_like(k),
)

add_ = bw.cuda_op(
    "bwcuda::add_(Tensor(a!) x, Tensor? bias=None, bool twice=False) -> ()",
    source=SOURCE,
    entry="add",
    launch=lambda x, bias, twice: bw.Launch(blocks(x.numel()), 256, args=(x, bias, twice, bytes(16), x.numel())),
)

differentiable = bw.cuda_op(
    "bwcuda::differentiable(Tensor x, float factor) -> Tensor",
    source=SOURCE,
    entry="scale<{x}>",
    launch=lambda x, factor, out: bw.Launch(blocks(x.numel()), 256, args=(x, out, factor, x.numel())),
    out=torch.empty_like,
)


@differentiable.backward
def _(x: torch.Tensor, factor: float, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    """Return the gradients."""
    return differentiable(grad.contiguous(), factor), None


written = bw.cuda_op(
    "bwcuda::written(Tensor(a!) x, Tensor bias) -> ()",
    source=SOURCE,
    entry="add",
    launch=lambda x, bias: bw.Launch(blocks(x.numel()), 256, args=(x, bias, False, bytes(16), x.numel())),
)


@written.register_backward
def _(x: torch.Tensor, bias: torch.Tensor, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients."""
    return grad, grad
