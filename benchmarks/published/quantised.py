"""Quantised weights and the quantisation of blocks."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source


@bw.op("published::awq_gemv")
def awq_gemv(
    x: torch.Tensor, weight: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor, group: int
) -> torch.Tensor:
    """Multiply a vector with a matrix of 4-bit weights, eight in an integer, with a scale and a zero for each group.

    x: (inputs,), weight: (outputs, inputs / 8), zeros: (outputs, groups / 8), scales: (outputs, groups) -> (outputs,).
    """
    outputs, packs = weight.shape
    out = x.new_empty(outputs)
    for o in range(outputs):
        s = 0.0
        for p in range(packs):
            g = p * 8 // group
            zero = (zeros[o, g // 8] >> (g % 8 * 4)) & 0xF
            packed = weight[o, p]
            for n in range(8):
                s += scales[o, g] * ((packed & 0xF) - zero) * x[p * 8 + n]
                packed = packed >> 4
        out[o] = s
    return out


def awq_gemv_inputs(make: Source, outputs: int, inputs: int) -> tuple[Any, ...]:
    """Return a vector and random weights in groups of 128; the groups are padded to whole integers."""
    padded = (inputs // 128 + 7) // 8 * 8
    weight = make.integers(-(2**31), 2**31, outputs, inputs // 8, dtype=torch.int32)
    zeros = make.integers(-(2**31), 2**31, outputs, padded // 8, dtype=torch.int32)
    scales = make.uniform(outputs, padded, low=0.5, dtype=torch.float16)
    return make.normal(inputs, dtype=torch.float16), weight, zeros, scales / 64, 128


def awq_gemv_reference(
    x: torch.Tensor, weight: torch.Tensor, zeros: torch.Tensor, scales: torch.Tensor, group: int
) -> torch.Tensor:
    """Compute `awq_gemv` with the unpacked matrix."""
    shifts = torch.arange(0, 32, 4, device=x.device)
    numbers = (weight[..., None] >> shifts & 0xF).flatten(1)
    zero = (zeros[..., None] >> shifts & 0xF).flatten(1)
    wide = (each[:, : len(x) // group].repeat_interleave(group, 1) for each in (zero, scales))
    lowest, scale = wide
    return ((numbers - lowest) * scale).to(x.dtype) @ x


@bw.op("published::quantize_blockwise")
def quantize_blockwise(x: torch.Tensor, code: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise blocks to the nearest of 256 values that ascend, in terms of the block's greatest absolute value.

    x: (n,), code: (256,) -> uint8 (n,), and (blocks,).
    """
    n = x.shape[0]
    blocks = (n + block - 1) // block
    out = torch.empty(n, dtype=torch.uint8)
    absmax = torch.empty(blocks, dtype=torch.float32)
    for b in range(blocks):
        end = min((b + 1) * block, n)
        most = 0.0
        for i in range(b * block, end):
            most = max(most, abs(x[i]))
        absmax[b] = most
        for i in range(b * block, end):
            value = x[i] * (1.0 / most)
            low, high = 0, 255
            while high - low > 1:
                middle = (low + high) // 2
                if value > code[middle]:
                    low = middle
                else:
                    high = middle
            if value > (code[low] + code[high]) * 0.5:
                low = high
            out[i] = low
    return out, absmax


def quantize_blockwise_inputs(make: Source, n: int, block: int) -> tuple[Any, ...]:
    """Return normal numbers, and values that lie closer to one another near zero."""
    half = torch.linspace(0.0, 1.0, 128, device=make.device) ** 3
    return make.normal(n), torch.cat([-half.flip(0), half[:-1], half[-1:]]), block


def quantize_blockwise_reference(x: torch.Tensor, code: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `quantize_blockwise` from the distances to all values."""
    parts = [x[start : start + block] for start in range(0, len(x), block)]
    absmax = torch.stack([part.abs().max() for part in parts])
    value = torch.cat([part * (1.0 / most) for part, most in zip(parts, absmax, strict=True)])
    return (value[:, None] - code).abs().argmin(1).to(torch.uint8), absmax


OPERATORS = (
    Published(
        op=awq_gemv,
        repository="mit-han-lab/llm-awq",
        file="awq/kernels/csrc/quantization/gemv_cuda.cu",
        commit="a095b3e",
        inputs=awq_gemv_inputs,
        reference=awq_gemv_reference,
        tiny=(3, 256),
        small=(512, 512),
        large=(11008, 4096),
    ),
    Published(
        op=quantize_blockwise,
        repository="bitsandbytes-foundation/bitsandbytes",
        file="csrc/kernels.cu",
        commit="c037a30",
        inputs=quantize_blockwise_inputs,
        reference=quantize_blockwise_reference,
        tiny=(50, 16),
        small=(4096, 4096),
        large=(1 << 27, 4096),
    ),
)
