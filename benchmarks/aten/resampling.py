"""Sampling, resizing and pooling of images, as plain loops."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

import brickwork as bw
from benchmarks.aten.pair import Pair


@bw.op("aten_loops::grid_sample")
def grid_sample(x: Tensor, g: Tensor) -> Tensor:
    """Return x at fractional places, between its four neighbours; 0 outside."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, g.shape[1], g.shape[2])
    for b in range(n):
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                px = ((g[b, i, j, 0] + 1) * w - 1) / 2
                py = ((g[b, i, j, 1] + 1) * h - 1) / 2
                x0, y0 = math.floor(px), math.floor(py)
                fx, fy = px - x0, py - y0
                for k in range(c):
                    v = 0.0
                    if 0 <= y0 < h and 0 <= x0 < w:
                        v += (1 - fy) * (1 - fx) * x[b, k, y0, x0]
                    if 0 <= y0 < h and 0 <= x0 + 1 < w:
                        v += (1 - fy) * fx * x[b, k, y0, x0 + 1]
                    if 0 <= y0 + 1 < h and 0 <= x0 < w:
                        v += fy * (1 - fx) * x[b, k, y0 + 1, x0]
                    if 0 <= y0 + 1 < h and 0 <= x0 + 1 < w:
                        v += fy * fx * x[b, k, y0 + 1, x0 + 1]
                    out[b, k, i, j] = v
    return out


def _cubic(t: float, k: int) -> float:
    """Return the weight of a neighbour at k for a place at t."""
    a = -0.75
    d = abs(t - k)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


@bw.op("aten_loops::bicubic")
def bicubic(x: Tensor, s: int) -> Tensor:
    """Return x enlarged by s, by cubic polynomials."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, h * s, w * s)
    for b in range(n):
        for k in range(c):
            for i in range(h * s):
                for j in range(w * s):
                    py = (i + 0.5) / s - 0.5
                    px = (j + 0.5) / s - 0.5
                    y0, x0 = math.floor(py), math.floor(px)
                    v = 0.0
                    for dy in range(-1, 3):
                        for dx in range(-1, 3):
                            yy = min(max(y0 + dy, 0), h - 1)
                            xx = min(max(x0 + dx, 0), w - 1)
                            v += _cubic(py - y0, dy) * _cubic(px - x0, dx) * x[b, k, yy, xx]
                    out[b, k, i, j] = v
    return out


@bw.op("aten_loops::nearest3d")
def nearest3d(x: Tensor, s: int) -> Tensor:
    """Return x enlarged by s, each element by itself."""
    n, c, d, h, w = x.shape
    out = x.new_empty(n, c, d * s, h * s, w * s)
    for b in range(n):
        for k in range(c):
            for z in range(d * s):
                for i in range(h * s):
                    for j in range(w * s):
                        out[b, k, z, i, j] = x[b, k, z // s, i // s, j // s]
    return out


@bw.op("aten_loops::bilinear_up")
def bilinear_up(x: Tensor, s: int) -> Tensor:
    """Return x enlarged by s, between four neighbours, corner on corner."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, h * s, w * s)
    for b in range(n):
        for k in range(c):
            for i in range(h * s):
                for j in range(w * s):
                    py = i * (h - 1) / (h * s - 1)
                    px = j * (w - 1) / (w * s - 1)
                    y0, x0 = int(py), int(px)
                    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
                    fy, fx = py - y0, px - x0
                    above = (1 - fx) * x[b, k, y0, x0] + fx * x[b, k, y0, x1]
                    below = (1 - fx) * x[b, k, y1, x0] + fx * x[b, k, y1, x1]
                    out[b, k, i, j] = (1 - fy) * above + fy * below
    return out


@bw.op("aten_loops::affine_grid")
def affine_grid(theta: Tensor, h: int, w: int) -> Tensor:
    """Return the places that affine maps take the pixels of an image to."""
    n = theta.shape[0]
    grid = theta.new_empty(n, h, w, 2)
    for b in range(n):
        for i in range(h):
            for j in range(w):
                x = (2 * j + 1) / w - 1
                y = (2 * i + 1) / h - 1
                for a in range(2):
                    grid[b, i, j, a] = theta[b, a, 0] * x + theta[b, a, 1] * y + theta[b, a, 2]
    return grid


@bw.op("aten_loops::trilinear_sample")
def trilinear_sample(x: Tensor, g: Tensor) -> Tensor:
    """Return x at fractional places, between its eight neighbours."""
    n, c, d, h, w = x.shape
    out = x.new_zeros(n, c, g.shape[1], g.shape[2], g.shape[3])
    for b in range(n):
        for ch in range(c):
            for i in range(g.shape[1]):
                for j in range(g.shape[2]):
                    for k in range(g.shape[3]):
                        px = min(max((g[b, i, j, k, 0] + 1) / 2 * (w - 1), 0.0), w - 1.0)
                        py = min(max((g[b, i, j, k, 1] + 1) / 2 * (h - 1), 0.0), h - 1.0)
                        pz = min(max((g[b, i, j, k, 2] + 1) / 2 * (d - 1), 0.0), d - 1.0)
                        x0, y0, z0 = int(px), int(py), int(pz)
                        v = 0.0
                        for a in range(2):
                            for e in range(2):
                                for f in range(2):
                                    zz, yy, xx = min(z0 + a, d - 1), min(y0 + e, h - 1), min(x0 + f, w - 1)
                                    wz = pz - z0 if a == 1 else 1 - (pz - z0)
                                    wy = py - y0 if e == 1 else 1 - (py - y0)
                                    wx = px - x0 if f == 1 else 1 - (px - x0)
                                    v += wz * wy * wx * x[b, ch, zz, yy, xx]
                        out[b, ch, i, j, k] = v
    return out


@bw.op("aten_loops::max_pool2d")
def max_pool2d(x: Tensor, k: int, s: int) -> Tensor:
    """Return the largest element of each window of k x k, s apart."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, (h - k) // s + 1, (w - k) // s + 1)
    for b in range(n):
        for ch in range(c):
            for i in range(out.shape[2]):
                for j in range(out.shape[3]):
                    best = -math.inf
                    for dy in range(k):
                        for dx in range(k):
                            best = max(best, x[b, ch, i * s + dy, j * s + dx])
                    out[b, ch, i, j] = best
    return out


@bw.op("aten_loops::adaptive_avg_pool")
def adaptive_avg_pool(x: Tensor, o: int) -> Tensor:
    """Return the means of o x o windows that cover x."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, o, o)
    for b in range(n):
        for k in range(c):
            for i in range(o):
                for j in range(o):
                    y0, y1 = i * h // o, ((i + 1) * h + o - 1) // o
                    x0, x1 = j * w // o, ((j + 1) * w + o - 1) // o
                    s = 0.0
                    for y in range(y0, y1):
                        for z in range(x0, x1):
                            s += x[b, k, y, z]
                    out[b, k, i, j] = s / ((y1 - y0) * (x1 - x0))
    return out


@bw.op("aten_loops::avg_pool3d")
def avg_pool3d(x: Tensor, k: int) -> Tensor:
    """Return the means of cubes of k."""
    n, c, d, h, w = x.shape
    out = torch.zeros((n, c, d // k, h // k, w // k), dtype=x.dtype, device=x.device)
    for b in range(n):
        for ch in range(c):
            for z in range(d // k):
                for y in range(h // k):
                    for q in range(w // k):
                        total = 0.0
                        for dz in range(k):
                            for dy in range(k):
                                for dx in range(k):
                                    total += x[b, ch, z * k + dz, y * k + dy, q * k + dx]
                        out[b, ch, z, y, q] = total / k**3
    return out


@bw.op("aten_loops::max_unpool")
def max_unpool(x: Tensor, idx: Tensor, h: int) -> Tensor:
    """Return x at the places that a pooling took its elements from, 0 elsewhere."""
    n, c, a, b = x.shape
    out = torch.zeros(n, c, h, h, device=x.device)
    for q in range(n):
        for k in range(c):
            for i in range(a):
                for j in range(b):
                    at = idx[q, k, i, j]
                    out[q, k, at // h, at % h] = x[q, k, i, j]
    return out


PAIRS = (
    Pair(
        grid_sample,
        lambda x, g: functional.grid_sample(x, g, align_corners=False),
        lambda s, n: (s.normal(n, 64, 128, 128), s.uniform(n, 128, 128, 2, low=-1.1, high=1.1)),
        (1, 2, 16),
        gradient=(0, 1),
    ),
    Pair(
        bicubic,
        lambda x, k: functional.interpolate(x, scale_factor=k, mode="bicubic"),
        lambda s, n: (s.normal(n, 8, 128, 128), 2),
        (1, 2, 32),
        gradient=(0,),
    ),
    Pair(
        nearest3d,
        lambda x, k: functional.interpolate(x, scale_factor=k),
        lambda s, n: (s.normal(1, n, 32, 64, 64), 2),
        (1, 4, 64),
        gradient=(0,),
    ),
    Pair(
        bilinear_up,
        lambda x, k: functional.interpolate(x, scale_factor=k, mode="bilinear", align_corners=True),
        lambda s, n: (s.normal(n, 64, 96, 96), 2),
        (1, 1, 16),
        gradient=(0,),
    ),
    Pair(
        affine_grid,
        lambda t, h, w: functional.affine_grid(t, [t.shape[0], 1, h, w], align_corners=False),
        lambda s, n: (s.normal(n, 2, 3), 256, 256),
        (1, 8, 64),
        gradient=(0,),
    ),
    Pair(
        trilinear_sample,
        lambda x, g: functional.grid_sample(x, g, align_corners=True, padding_mode="border"),
        lambda s, n: (s.normal(2, 2 * n, 32, 64, 64), s.uniform(2, 32, 64, 64, 3, low=-1, high=1)),
        (1, 2, 32),
        gradient=(0,),
    ),
    Pair(
        max_pool2d,
        functional.max_pool2d,
        lambda s, n: (s.normal(n, 64, 112, 112), 3, 2),
        (1, 2, 32),
        gradient=(0,),
    ),
    Pair(
        adaptive_avg_pool,
        functional.adaptive_avg_pool2d,
        lambda s, n: (s.normal(n, 256, 56, 56), 7),
        (1, 2, 32),
        gradient=(0,),
    ),
    Pair(
        avg_pool3d,
        functional.avg_pool3d,
        lambda s, n: (s.normal(n, 32, 32, 128, 128), 2),
        (1, 1, 4),
        gradient=(0,),
    ),
    Pair(
        max_unpool,
        lambda x, at, h: functional.max_unpool2d(x, at, [2, 2], output_size=(h, h)),
        lambda s, n: (*functional.max_pool2d(s.normal(n, 64, 128, 128), 2, return_indices=True), 128),
        (1, 1, 16),
        gradient=(0,),
    ),
)
"""Operators of torch that read images at other places."""
