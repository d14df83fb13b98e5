"""Sums over windows whose places or weights depend on the pixel, and resampling."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source


@bw.op("published::correlation")
def correlation(
    x1: torch.Tensor, x2: torch.Tensor, kernel: int, patch: int, pad: int, stride: int, dilation: int
) -> torch.Tensor:
    """Multiply windows of an image with those of another one at all shifts in a patch.

    x1, x2: (B, C, H, W) -> (B, patch, patch, oH, oW).
    """
    B, C, H, W = x1.shape
    out_h, out_w = (H + 2 * pad - kernel) // stride + 1, (W + 2 * pad - kernel) // stride + 1
    radius = dilation * (patch - 1) // 2
    out = x1.new_empty((B, patch, patch, out_h, out_w))
    for b in range(B):
        for ph in range(patch):
            for pw in range(patch):
                for h in range(out_h):
                    for w in range(out_w):
                        s = 0.0
                        for i in range(kernel):
                            y1 = h * stride - pad + i
                            y2 = y1 + ph * dilation - radius
                            if y1 >= 0 and y1 < H and y2 >= 0 and y2 < H:
                                for j in range(kernel):
                                    u1 = w * stride - pad + j
                                    u2 = u1 + pw * dilation - radius
                                    if u1 >= 0 and u1 < W and u2 >= 0 and u2 < W:
                                        for c in range(C):
                                            s += x1[b, c, y1, u1] * x2[b, c, y2, u2]
                        out[b, ph, pw, h, w] = s
    return out


def correlation_inputs(make: Source, B: int, C: int, side: int, patch: int) -> tuple[Any, ...]:
    """Return two images; the windows are single pixels."""
    return make.normal(B, C, side, side), make.normal(B, C, side, side), 1, patch, 0, 1, 1


def correlation_reference(
    x1: torch.Tensor, x2: torch.Tensor, kernel: int, patch: int, pad: int, stride: int, dilation: int
) -> torch.Tensor:
    """Compute `correlation` of single pixels, shift by shift."""
    assert (kernel, pad, stride) == (1, 0, 1), "the reference is for single pixels"
    radius, (H, W) = dilation * (patch - 1) // 2, x1.shape[2:]
    wide = torch.nn.functional.pad(x2, [radius] * 4)
    shifts = [
        (x1 * wide[:, :, ph * dilation :, pw * dilation :][:, :, :H, :W]).sum(1)
        for ph in range(patch)
        for pw in range(patch)
    ]
    return torch.stack(shifts, 1).reshape(len(x1), patch, patch, H, W)


@bw.op("published::carafe_naive")
def carafe_naive(x: torch.Tensor, masks: torch.Tensor, kernel: int, groups: int, scale: int) -> torch.Tensor:
    """Enlarge an image by sums over windows, with weights of each new pixel's own.

    x: (B, C, H, W), masks: (B, groups * kernel**2, scale * H, scale * W) -> (B, C, scale * H, scale * W).
    """
    B, C, H, W = x.shape
    out = x.new_empty((B, C, scale * H, scale * W))
    half = (kernel - 1) // 2
    for b in range(B):
        for c in range(C):
            for ph in range(scale * H):
                for pw in range(scale * W):
                    group = c // (C // groups)
                    h, w = ph // scale, pw // scale
                    s = 0.0
                    for iy in range(h - half, h + half + 1):
                        for ix in range(w - half, w + half + 1):
                            if iy < 0 or iy > H - 1 or ix < 0 or ix > W - 1:
                                continue
                            tap = (group * kernel + iy - h + half) * kernel + ix - w + half
                            s += x[b, c, iy, ix] * masks[b, tap, ph, pw]
                    out[b, c, ph, pw] = s
    return out


def carafe_naive_inputs(make: Source, B: int, C: int, side: int, kernel: int) -> tuple[Any, ...]:
    """Return an image and the weights for one that is twice as wide."""
    return make.normal(B, C, side, side), make.uniform(B, kernel * kernel, 2 * side, 2 * side), kernel, 1, 2


def carafe_naive_reference(x: torch.Tensor, masks: torch.Tensor, kernel: int, groups: int, scale: int) -> torch.Tensor:
    """Compute `carafe_naive` with unfolded windows."""
    B, C, H, W = x.shape
    taps = torch.nn.functional.unfold(x, kernel, padding=(kernel - 1) // 2).reshape(B, C * kernel * kernel, H, W)
    taps = taps.repeat_interleave(scale, 2).repeat_interleave(scale, 3)
    taps = taps.reshape(B, groups, C // groups, kernel * kernel, scale * H, scale * W)
    return (taps * masks.reshape(B, groups, 1, kernel * kernel, scale * H, scale * W)).sum(3).flatten(1, 2)


@bw.op("published::upfirdn2d")
def upfirdn2d(
    x: torch.Tensor, f: torch.Tensor, up: int, down: int, before: int, after: int, gain: float
) -> torch.Tensor:
    """Insert zeros, pad, filter and keep every `down`-th pixel. x: (N, C, H, W), f: (fH, fW) -> (N, C, oH, oW)."""
    N, C, H, W = x.shape
    filter_h, filter_w = f.shape
    out_h = (H * up + before + after - filter_h + down) // down
    out_w = (W * up + before + after - filter_w + down) // down
    out = x.new_empty((N, C, out_h, out_w))
    for n in range(N):
        for c in range(C):
            for oy in range(out_h):
                for ox in range(out_w):
                    mid_y = oy * down + up - 1 - before
                    in_y = min(max(mid_y // up, 0), H)
                    rows = min(max((mid_y + filter_h) // up, 0), H) - in_y
                    first_y = mid_y + filter_h - (in_y + 1) * up
                    mid_x = ox * down + up - 1 - before
                    in_x = min(max(mid_x // up, 0), W)
                    columns = min(max((mid_x + filter_w) // up, 0), W) - in_x
                    first_x = mid_x + filter_w - (in_x + 1) * up
                    s = 0.0
                    for i in range(rows):
                        for j in range(columns):
                            s += x[n, c, in_y + i, in_x + j] * f[first_y - i * up, first_x - j * up]
                    out[n, c, oy, ox] = s * gain
    return out


def upfirdn2d_inputs(make: Source, N: int, C: int, side: int) -> tuple[Any, ...]:
    """Return an image, and the filter that doubles its sides."""
    taps = make.listed([1.0, 3.0, 3.0, 1.0], torch.float32) / 8
    return make.normal(N, C, side, side), taps[:, None] * taps, 2, 1, 2, 1, 4.0


def upfirdn2d_reference(
    x: torch.Tensor, f: torch.Tensor, up: int, down: int, before: int, after: int, gain: float
) -> torch.Tensor:
    """Compute `upfirdn2d` with zeros that are stored, and torch's convolution."""
    N, C, H, W = x.shape
    wide = x.new_zeros((N, C, H, up, W, up))
    wide[:, :, :, 0, :, 0] = x
    padded = torch.nn.functional.pad(wide.reshape(N * C, 1, H * up, W * up), [before, after] * 2)
    found = torch.nn.functional.conv2d(padded, f.flip([0, 1])[None, None] * gain, stride=down)
    return found.reshape(N, C, *found.shape[2:])


OPERATORS = (
    Published(
        op=correlation,
        repository="ClementPinard/Pytorch-Correlation-extension",
        file="Correlation_Module/correlation_cuda_kernel.cu",
        commit="a2344fd",
        inputs=correlation_inputs,
        reference=correlation_reference,
        tiny=(2, 3, 4, 3),
        small=(1, 16, 16, 5),
        large=(8, 128, 64, 21),
        gradient=("x1", "x2"),
    ),
    Published(
        op=carafe_naive,
        repository="open-mmlab/mmcv",
        file="mmcv/ops/csrc/common/cuda/carafe_naive_cuda_kernel.cuh",
        commit="86d50f1",
        inputs=carafe_naive_inputs,
        reference=carafe_naive_reference,
        tiny=(2, 2, 3, 3),
        small=(1, 16, 16, 3),
        large=(4, 128, 128, 5),
        gradient=("x", "masks"),
    ),
    Published(
        op=upfirdn2d,
        repository="NVlabs/stylegan3",
        file="torch_utils/ops/upfirdn2d.cu",
        commit="8fb5177",
        inputs=upfirdn2d_inputs,
        reference=upfirdn2d_reference,
        tiny=(1, 2, 4),
        small=(1, 8, 16),
        large=(8, 128, 256),
        gradient=("x",),
    ),
)
