"""Reads at fractional places: attention over sampled places, regions, deformed windows, and grids of features."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source, values

FEATURES = 2
"""Features of a place in `grid_encode`; the published kernel is compiled for one number, too."""
PRIMES = (1, 2654435761, 805459861)


@bw.op("published::ms_deform_attn")
def ms_deform_attn(
    value: torch.Tensor,
    shapes: torch.Tensor,
    starts: torch.Tensor,
    places: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """Sum values at sampled places of several levels.

    value: (B, S, H, D), the levels one after the other; shapes: (L, 2), starts: (L,), places: (B, Q, H, L, P, 2) as x
    and y between 0 and 1, weights: (B, Q, H, L, P) -> (B, Q, H, D).
    """
    B, _, H, D = value.shape
    Q, L, P = places.shape[1], places.shape[3], places.shape[4]
    out = value.new_empty((B, Q, H, D))
    for b in range(B):
        for q in range(Q):
            for h in range(H):
                for d in range(D):
                    s = 0.0
                    for level in range(L):
                        height, width = shapes[level, 0], shapes[level, 1]
                        start = starts[level]
                        for p in range(P):
                            y = places[b, q, h, level, p, 1] * height - 0.5
                            x = places[b, q, h, level, p, 0] * width - 0.5
                            if y > -1 and x > -1 and y < height and x < width:
                                y0, x0 = math.floor(y), math.floor(x)
                                ly, lx = y - y0, x - x0
                                v = 0.0
                                if y0 >= 0 and x0 >= 0:
                                    v += (1 - ly) * (1 - lx) * value[b, start + y0 * width + x0, h, d]
                                if y0 >= 0 and x0 + 1 <= width - 1:
                                    v += (1 - ly) * lx * value[b, start + y0 * width + x0 + 1, h, d]
                                if y0 + 1 <= height - 1 and x0 >= 0:
                                    v += ly * (1 - lx) * value[b, start + (y0 + 1) * width + x0, h, d]
                                if y0 + 1 <= height - 1 and x0 + 1 <= width - 1:
                                    v += ly * lx * value[b, start + (y0 + 1) * width + x0 + 1, h, d]
                                s += v * weights[b, q, h, level, p]
                    out[b, q, h, d] = s
    return out


def ms_deform_attn_inputs(
    make: Source, B: int, levels: int, side: int, Q: int, H: int, D: int, P: int
) -> tuple[Any, ...]:
    """Return levels of which each is half as wide as the one before, and places in and around them."""
    sides = [max(side >> level, 1) for level in range(levels)]
    starts = [sum(each * each for each in sides[:level]) for level in range(levels)]
    value = make.normal(B, sum(each * each for each in sides), H, D)
    places = make.uniform(B, Q, H, levels, P, 2, low=-0.1, high=1.1)
    shapes = make.listed([[each, each] for each in sides])
    return value, shapes, make.listed(starts), places, make.uniform(B, Q, H, levels, P)


def ms_deform_attn_reference(
    value: torch.Tensor,
    shapes: torch.Tensor,
    starts: torch.Tensor,
    places: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    """Compute `ms_deform_attn` with torch's sampling of a grid, level by level."""
    B, _, H, D = value.shape
    Q = places.shape[1]
    total = value.new_zeros((B * H, D, Q))
    for level, (height, width) in enumerate(values(shapes)):
        start = int(starts[level])
        image = value[:, start : start + height * width].permute(0, 2, 3, 1).reshape(B * H, D, height, width)
        grid = (2 * places[:, :, :, level] - 1).transpose(1, 2).reshape(B * H, Q, -1, 2)
        sampled = torch.nn.functional.grid_sample(image, grid, align_corners=False)
        total = total + (sampled * weights[:, :, :, level].transpose(1, 2).reshape(B * H, 1, Q, -1)).sum(-1)
    return total.reshape(B, H, D, Q).permute(0, 3, 1, 2)


@bw.op("published::roi_align")
def roi_align(
    x: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> torch.Tensor:
    """Average sampled places of each bin of each region.

    x: (N, C, H, W), rois: (K, 5), the image and x and y of two corners -> (K, C, height, width). `ratio` samples are
    taken along each side of a bin; with 0, as many as it has pixels.
    """
    K, C = rois.shape[0], x.shape[1]
    H, W = x.shape[2], x.shape[3]
    out = x.new_empty((K, C, height, width))
    offset = 0.5 if aligned else 0.0
    for n in range(K):
        for c in range(C):
            for ph in range(height):
                for pw in range(width):
                    image = int(rois[n, 0])
                    left, top = rois[n, 1] * scale - offset, rois[n, 2] * scale - offset
                    wide = rois[n, 3] * scale - offset - left
                    high = rois[n, 4] * scale - offset - top
                    if not aligned:
                        wide, high = max(wide, 1.0), max(high, 1.0)
                    bin_h, bin_w = high / height, wide / width
                    rows = ratio if ratio > 0 else math.ceil(bin_h)
                    columns = ratio if ratio > 0 else math.ceil(bin_w)
                    s = 0.0
                    for iy in range(rows):
                        for ix in range(columns):
                            y = top + ph * bin_h + (iy + 0.5) * bin_h / rows
                            u = left + pw * bin_w + (ix + 0.5) * bin_w / columns
                            if y < -1.0 or y > H or u < -1.0 or u > W:
                                continue
                            y, u = max(y, 0.0), max(u, 0.0)
                            y0, x0 = int(y), int(u)
                            if y0 >= H - 1:
                                y0 = H - 1
                                y1 = H - 1
                                y = float(y0)
                            else:
                                y1 = y0 + 1
                            if x0 >= W - 1:
                                x0 = W - 1
                                x1 = W - 1
                                u = float(x0)
                            else:
                                x1 = x0 + 1
                            ly, lx = y - y0, u - x0
                            s += (1 - ly) * (1 - lx) * x[image, c, y0, x0] + (1 - ly) * lx * x[image, c, y0, x1]
                            s += ly * (1 - lx) * x[image, c, y1, x0] + ly * lx * x[image, c, y1, x1]
                    out[n, c, ph, pw] = s / max(rows * columns, 1)
    return out


def roi_align_inputs(make: Source, images: int, C: int, side: int, regions: int, bins: int) -> tuple[Any, ...]:
    """Return images and regions in them, some beyond their edges; the samples are as many as pixels are in a bin."""
    corner = make.uniform(regions, 2, low=-2.0, high=3.0 * side)
    size = make.uniform(regions, 2, low=4.0, high=2.0 * side)
    image = make.integers(0, images, regions, 1).float()
    return make.normal(images, C, side, side), torch.cat([image, corner, corner + size], 1), 0.25, bins, bins, 0, True


def roi_align_reference(
    x: torch.Tensor, rois: torch.Tensor, scale: float, height: int, width: int, ratio: int, aligned: bool
) -> torch.Tensor:
    """Compute `roi_align` region by region, with the weights of each row and column as matrices."""
    offset = 0.5 if aligned else 0.0
    found: list[torch.Tensor] = []
    for image, left, top, right, bottom in values(rois):
        sides: list[torch.Tensor] = []
        for low, high, bins, length in ((top, bottom, height, x.shape[2]), (left, right, width, x.shape[3])):
            extent = (high - low) * scale if aligned else max((high - low) * scale, 1.0)
            samples = ratio if ratio > 0 else math.ceil(extent / bins)
            steps = torch.arange(bins)[:, None] + (torch.arange(samples) + 0.5) / samples
            sides.append(_weights(low * scale - offset + steps * extent / bins, length).to(x) / max(samples, 1))
        found.append(torch.einsum("ph,qw,chw->cpq", *sides, x[int(image)]))
    return torch.stack(found)


def _weights(places: torch.Tensor, length: int) -> torch.Tensor:
    """Return for each bin what each pixel of a row counts. places: (bins, samples) -> (bins, length)."""
    inside = (places >= -1.0) & (places <= length)
    near = places.clamp(0, length - 1)
    return (inside[..., None] * (1 - (near[..., None] - torch.arange(length)).abs()).clamp(min=0)).sum(1)


@bw.op("published::deformable_im2col")
def deformable_im2col(
    x: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor, kernel: int, pad: int, stride: int, dilation: int
) -> torch.Tensor:
    """Read the deformed window of each pixel into a column.

    x: (B, C, H, W), offset: (B, 2 * groups * kernel**2, oH, oW), mask: (B, groups * kernel**2, oH, oW)
    -> (C * kernel**2, B, oH, oW).
    """
    B, C, H, W = x.shape
    out_h, out_w = offset.shape[2], offset.shape[3]
    groups = mask.shape[1] // (kernel * kernel)
    columns = x.new_empty((C * kernel * kernel, B, out_h, out_w))
    for c in range(C):
        for b in range(B):
            for oy in range(out_h):
                for ox in range(out_w):
                    group = c // (C // groups)
                    for i in range(kernel):
                        for j in range(kernel):
                            tap = (group * kernel + i) * kernel + j
                            y = oy * stride - pad + i * dilation + offset[b, 2 * tap, oy, ox]
                            u = ox * stride - pad + j * dilation + offset[b, 2 * tap + 1, oy, ox]
                            v = 0.0
                            if y > -1 and y < H and u > -1 and u < W:
                                y0, x0 = math.floor(y), math.floor(u)
                                ly, lx = y - y0, u - x0
                                if y0 >= 0 and x0 >= 0:
                                    v += (1 - ly) * (1 - lx) * x[b, c, y0, x0]
                                if y0 >= 0 and x0 + 1 <= W - 1:
                                    v += (1 - ly) * lx * x[b, c, y0, x0 + 1]
                                if y0 + 1 <= H - 1 and x0 >= 0:
                                    v += ly * (1 - lx) * x[b, c, y0 + 1, x0]
                                if y0 + 1 <= H - 1 and x0 + 1 <= W - 1:
                                    v += ly * lx * x[b, c, y0 + 1, x0 + 1]
                            columns[(c * kernel + i) * kernel + j, b, oy, ox] = mask[b, tap, oy, ox] * v
    return columns


def deformable_im2col_inputs(make: Source, B: int, C: int, side: int) -> tuple[Any, ...]:
    """Return an image, and offsets and masks of windows of 3 by 3."""
    offset = make.normal(B, 18, side, side)
    return make.normal(B, C, side, side), offset, make.uniform(B, 9, side, side), 3, 1, 1, 1


def deformable_im2col_reference(
    x: torch.Tensor, offset: torch.Tensor, mask: torch.Tensor, kernel: int, pad: int, stride: int, dilation: int
) -> torch.Tensor:
    """Compute `deformable_im2col` of one group with torch's sampling of a grid, tap by tap."""
    H, W = x.shape[2:]
    rows = (torch.arange(offset.shape[2]) * stride - pad)[:, None]
    columns = torch.arange(offset.shape[3]) * stride - pad
    taps: list[torch.Tensor] = []
    for tap in range(kernel * kernel):
        y = rows + tap // kernel * dilation + offset[:, 2 * tap]
        u = columns + tap % kernel * dilation + offset[:, 2 * tap + 1]
        grid = torch.stack([(2 * u + 1) / W - 1, (2 * y + 1) / H - 1], -1)
        taps.append(torch.nn.functional.grid_sample(x, grid, align_corners=False) * mask[:, tap, None])
    return torch.stack(taps, 2).permute(1, 2, 0, 3, 4).flatten(0, 1)


@bw.op("published::grid_encode")
def grid_encode(x: torch.Tensor, table: torch.Tensor, offsets: torch.Tensor, growth: float, base: int) -> torch.Tensor:
    """Interpolate features of hashed grids of growing resolution at points of a cube.

    x: (B, 3), table: (entries, 2), offsets: (levels + 1,), the levels' places in the table -> (levels, B, 2).
    """
    B = x.shape[0]
    levels = offsets.shape[0] - 1
    out = table.new_empty((levels, B, FEATURES))
    for level in range(levels):
        for b in range(B):
            entries = offsets[level + 1] - offsets[level]
            scale = 2.0 ** (level * growth) * base - 1.0
            resolution = math.ceil(scale) + 1
            inside = True
            for d in range(3):
                if x[b, d] < 0 or x[b, d] > 1:
                    inside = False
            result = [0.0] * FEATURES
            if inside:
                place = [0.0] * 3
                corner = [0] * 3
                for d in range(3):
                    place[d] = x[b, d] * scale + 0.5
                    corner[d] = math.floor(place[d])
                    place[d] -= corner[d]
                for k in range(8):
                    weight = 1.0
                    stride = 1
                    index = 0
                    hashed = 0
                    for d in range(3):
                        at = corner[d]
                        if k & (1 << d):
                            weight *= place[d]
                            at += 1
                        else:
                            weight *= 1 - place[d]
                        if stride <= entries:
                            index += at * stride
                            stride *= resolution + 1
                        hashed = hashed ^ (at * PRIMES[d] & 0xFFFFFFFF)
                    if stride > entries:
                        index = hashed
                    index = index % entries
                    for f in range(FEATURES):
                        result[f] += weight * table[offsets[level] + index, f]
            for f in range(FEATURES):
                out[level, b, f] = result[f]
    return out


def grid_encode_inputs(make: Source, B: int, levels: int, most: int) -> tuple[Any, ...]:
    """Return points in and around a cube, and a table of levels from 16 cells along a side, of at most `most` each."""
    growth, base, offsets = 0.5, 16, [0]
    for level in range(levels):
        resolution = math.ceil(2.0 ** (level * growth) * base - 1.0) + 1
        offsets.append(offsets[-1] + min(most, ((resolution + 1) ** 3 + 7) // 8 * 8))
    x = make.uniform(B, 3, low=-0.01, high=1.01)
    return x, make.normal(offsets[-1], FEATURES), make.listed(offsets, torch.int32), growth, base


def grid_encode_reference(
    x: torch.Tensor, table: torch.Tensor, offsets: torch.Tensor, growth: float, base: int
) -> torch.Tensor:
    """Compute `grid_encode` level by level, for all points together."""
    inside = ((x >= 0) & (x <= 1)).all(1)
    found: list[torch.Tensor] = []
    for level in range(len(offsets) - 1):
        first, entries = int(offsets[level]), int(offsets[level + 1] - offsets[level])
        scale = 2.0 ** (level * growth) * base - 1.0
        side = math.ceil(scale) + 2
        place = x * scale + 0.5
        corner = place.floor().long()
        total = table.new_zeros((len(x), table.shape[1]))
        for k in range(8):
            step = torch.tensor([k & 1, k >> 1 & 1, k >> 2])
            weight = (1 - (place - corner - step).abs()).prod(1)
            at = corner + step
            if side**3 <= entries:
                index = (at * torch.tensor([1, side, side * side])).sum(1)
            else:
                parts = at * torch.tensor(PRIMES) & 0xFFFFFFFF
                index = parts[:, 0] ^ parts[:, 1] ^ parts[:, 2]
            total = total + weight[:, None] * table[first + index % entries]
        found.append(torch.where(inside[:, None], total, 0.0))
    return torch.stack(found)


OPERATORS = (
    Published(
        op=ms_deform_attn,
        repository="open-mmlab/mmcv",
        file="mmcv/ops/csrc/common/cuda/ms_deform_attn_cuda_kernel.cuh",
        commit="9390f7d",
        inputs=ms_deform_attn_inputs,
        reference=ms_deform_attn_reference,
        tiny=(1, 2, 4, 3, 2, 2, 2),
        small=(1, 4, 8, 64, 8, 32, 4),
        large=(4, 4, 64, 8500, 8, 32, 4),
        gradient=("value", "places", "weights"),
    ),
    Published(
        op=roi_align,
        repository="pytorch/vision",
        file="torchvision/csrc/ops/cuda/roi_align_kernel.cu",
        commit="e337654",
        inputs=roi_align_inputs,
        reference=roi_align_reference,
        tiny=(2, 2, 8, 3, 2),
        small=(1, 16, 32, 8, 7),
        large=(2, 256, 200, 1000, 7),
        gradient=("x",),
    ),
    Published(
        op=deformable_im2col,
        repository="open-mmlab/mmcv",
        file="mmcv/ops/csrc/common/cuda/modulated_deform_conv_cuda_kernel.cuh",
        commit="dfb48c8",
        inputs=deformable_im2col_inputs,
        reference=deformable_im2col_reference,
        tiny=(2, 2, 4),
        small=(1, 16, 16),
        large=(8, 128, 64),
        gradient=("x", "offset", "mask"),
    ),
    Published(
        op=grid_encode,
        repository="ashawkey/torch-ngp",
        file="gridencoder/src/gridencoder.cu",
        commit="c3fab17",
        inputs=grid_encode_inputs,
        reference=grid_encode_reference,
        tiny=(8, 3, 6000),
        small=(1024, 4, 1 << 19),
        large=(1 << 20, 16, 1 << 19),
        gradient=("table",),
    ),
)
