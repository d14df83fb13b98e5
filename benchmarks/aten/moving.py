"""Copies, gathers and scatters, as plain loops."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

import brickwork as bw
from benchmarks.aten.pair import Pair


@bw.op("aten_loops::unfold")
def unfold(x: Tensor, k: int) -> Tensor:
    """Return windows of k x k as columns."""
    n, c, h, w = x.shape
    out = x.new_zeros(n, c * k * k, h * w)
    for b in range(n):
        for ch in range(c):
            for dy in range(k):
                for dx in range(k):
                    for y in range(h):
                        for z in range(w):
                            sy, sx = y + dy - 1, z + dx - 1
                            if sy >= 0 and sy < h and sx >= 0 and sx < w:
                                out[b, (ch * k + dy) * k + dx, y * w + z] = x[b, ch, sy, sx]
    return out


@bw.op("aten_loops::fold")
def fold(x: Tensor, h: int) -> Tensor:
    """Return the sum of windows of 3 x 3 that stand in columns."""
    n, c = x.shape[0], x.shape[1] // 9
    out = x.new_zeros(n, c, h, h)
    for b in range(n):
        for ch in range(c):
            for dy in range(3):
                for dx in range(3):
                    for y in range(h):
                        for z in range(h):
                            sy, sx = y + dy - 1, z + dx - 1
                            if 0 <= sy < h and 0 <= sx < h:
                                out[b, ch, sy, sx] += x[b, (ch * 3 + dy) * 3 + dx, y * h + z]
    return out


@bw.op("aten_loops::reflect_pad")
def reflect_pad(x: Tensor, p: int) -> Tensor:
    """Return x with p more on each side, as in a mirror."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c, h + 2 * p, w + 2 * p)
    for b in range(n):
        for k in range(c):
            for i in range(h + 2 * p):
                for j in range(w + 2 * p):
                    y = abs(i - p)
                    z = abs(j - p)
                    if y >= h:
                        y = 2 * (h - 1) - y
                    if z >= w:
                        z = 2 * (w - 1) - z
                    out[b, k, i, j] = x[b, k, y, z]
    return out


@bw.op("aten_loops::roll")
def roll(x: Tensor, s: int) -> Tensor:
    """Return matrices moved by s along both axes, round their ends."""
    out = torch.empty_like(x)
    b, n, m = x.shape
    for q in range(b):
        for i in range(n):
            for j in range(m):
                out[q, (i + s) % n, (j + s) % m] = x[q, i, j]
    return out


@bw.op("aten_loops::pixel_shuffle")
def pixel_shuffle(x: Tensor, k: int) -> Tensor:
    """Return channels as pixels, k x k of them for one."""
    n, c, h, w = x.shape
    out = x.new_empty(n, c // (k * k), h * k, w * k)
    for b in range(n):
        for ch in range(c // (k * k)):
            for y in range(h * k):
                for z in range(w * k):
                    out[b, ch, y, z] = x[b, ch * k * k + (y % k) * k + z % k, y // k, z // k]
    return out


@bw.op("aten_loops::tril")
def tril(x: Tensor) -> Tensor:
    """Return the lower triangles."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(i + 1):
                out[b, i, j] = x[b, i, j]
    return out


@bw.op("aten_loops::cat3")
def cat3(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return three matrices beside each other."""
    n, p = a.shape
    q, s = b.shape[1], c.shape[1]
    out = a.new_empty(n, p + q + s)
    for i in range(n):
        for j in range(p + q + s):
            if j < p:
                out[i, j] = a[i, j]
            elif j < p + q:
                out[i, j] = b[i, j - p]
            else:
                out[i, j] = c[i, j - p - q]
    return out


@bw.op("aten_loops::embedding")
def embedding(w: Tensor, idx: Tensor) -> Tensor:
    """Return rows of w by index."""
    out = w.new_empty(idx.shape[0], w.shape[1])
    for i in range(idx.shape[0]):
        for j in range(w.shape[1]):
            out[i, j] = w[idx[i], j]
    return out


@bw.op("aten_loops::embedding_bag")
def embedding_bag(w: Tensor, idx: Tensor, offsets: Tensor) -> Tensor:
    """Return the mean of the rows of w that each bag names."""
    out = w.new_empty(offsets.shape[0] - 1, w.shape[1])
    for b in range(offsets.shape[0] - 1):
        lo, hi = offsets[b], offsets[b + 1]
        for d in range(w.shape[1]):
            s = 0.0
            for p in range(lo, hi):
                s += w[idx[p], d]
            out[b, d] = s / max(hi - lo, 1)
    return out


@bw.op("aten_loops::gather1")
def gather1(x: Tensor, idx: Tensor) -> Tensor:
    """Return elements of each row by index."""
    out = x.new_empty(idx.shape)
    for i in range(idx.shape[0]):
        for j in range(idx.shape[1]):
            out[i, j] = x[i, idx[i, j]]
    return out


@bw.op("aten_loops::index_add")
def index_add(x: Tensor, idx: Tensor, y: Tensor) -> Tensor:
    """Return x with rows of y added by index."""
    out = x.clone()
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            out[idx[i], j] += y[i, j]
    return out


@bw.op("aten_loops::scatter_amax")
def scatter_amax(x: Tensor, idx: Tensor, y: Tensor) -> Tensor:
    """Return the largest of x and the elements of y that go there."""
    out = x.clone()
    for i in range(y.shape[0]):
        out[idx[i]] = max(out[idx[i]], y[i])
    return out


@bw.op("aten_loops::bincount")
def bincount(idx: Tensor, n: int) -> Tensor:
    """Return how often each number is there."""
    out = torch.zeros(n, dtype=torch.int64, device=idx.device)
    for i in range(idx.shape[0]):
        out[idx[i]] += 1
    return out


@bw.op("aten_loops::searchsorted")
def searchsorted(edges: Tensor, v: Tensor) -> Tensor:
    """Return where each value stands among sorted edges."""
    out = torch.empty(v.shape, dtype=torch.int64, device=v.device)
    for i in range(v.shape[0]):
        lo, hi = 0, edges.shape[0]
        while lo < hi:
            mid = (lo + hi) // 2
            if edges[mid] < v[i]:
                lo = mid + 1
            else:
                hi = mid
        out[i] = lo
    return out


@bw.op("aten_loops::histc")
def histc(x: Tensor, n: int) -> Tensor:
    """Return how many elements are in each of n bins between 0 and 1."""
    out = torch.zeros(n, device=x.device)
    for i in range(x.shape[0]):
        if 0.0 <= x[i] <= 1.0:
            at = int(x[i] * n)
            if at == n:
                at = n - 1
            out[at] += 1
    return out


PAIRS = (
    Pair(
        unfold,
        lambda x, k: functional.unfold(x, k, padding=1),
        lambda s, n: (s.normal(n, 64, 64, 64), 3),
        (1, 1, 8),
        gradient=(0,),
    ),
    Pair(
        fold,
        lambda x, h: functional.fold(x, (h, h), 3, padding=1),
        lambda s, n: (s.normal(n, 576, 4096), 64),
        (1, 1, 8),
        gradient=(0,),
    ),
    Pair(
        reflect_pad,
        lambda x, p: functional.pad(x, (p, p, p, p), mode="reflect"),
        lambda s, n: (s.normal(n, 64, 128, 128), 3),
        (1, 2, 16),
        gradient=(0,),
    ),
    Pair(
        roll,
        lambda x, k: torch.roll(x, (k, k), (1, 2)),
        lambda s, n: (s.normal(n, 1024, 1024), 100),
        (1, 4, 64),
        gradient=(0,),
    ),
    Pair(
        pixel_shuffle,
        functional.pixel_shuffle,
        lambda s, n: (s.normal(n, 64, 128, 128), 2),
        (1, 2, 16),
        gradient=(0,),
    ),
    Pair(tril, torch.tril, lambda s, n: (s.normal(n, 1024, 1024),), (1, 4, 64), gradient=(0,)),
    Pair(
        cat3,
        lambda a, b, c: torch.cat([a, b, c], 1),
        lambda s, n: (s.normal(n, 1024), s.normal(n, 2048), s.normal(n, 512)),
        (4, 1024, 8192),
    ),
    Pair(
        embedding,
        lambda w, at: functional.embedding(at, w),
        lambda s, n: (s.normal(50 * n, 512), s.integers(0, 50 * n, 32 * n)),
        (1, 100, 1000),
        gradient=(0,),
    ),
    Pair(
        embedding_bag,
        lambda w, at, ends: functional.embedding_bag(at, w, ends[:-1], mode="mean"),
        lambda s, n: (s.normal(6 * n, 128), s.integers(0, 6 * n, 20 * n), s.listed([*range(0, 20 * n + 1, 20)])),
        (8, 2048, 16384),
        gradient=(0,),
    ),
    Pair(
        gather1,
        lambda x, at: torch.gather(x, 1, at),
        lambda s, n: (s.normal(n, 4096), s.integers(0, 4096, n, 1024)),
        (4, 1024, 8192),
        gradient=(0,),
    ),
    Pair(
        index_add,
        lambda x, at, y: x.index_add(0, at, y),
        lambda s, n: (s.normal(n, 256), s.integers(0, n, 5 * n), s.normal(5 * n, 256)),
        (8, 2500, 20000),
        gradient=(0, 2),
    ),
    Pair(
        scatter_amax,
        lambda x, at, y: x.scatter_reduce(0, at, y, "amax"),
        lambda s, n: (s.normal(n), s.integers(0, n, 8 * n), s.normal(8 * n)),
        (32, 100_000, 1_000_000),
    ),
    Pair(
        bincount,
        lambda at, count: torch.bincount(at, minlength=count),
        lambda s, n: (s.integers(0, 1000, n), 1000),
        (1000, 2_000_000, 20_000_000),
    ),
    Pair(
        searchsorted,
        torch.searchsorted,
        lambda s, n: (s.listed([*range(n)], torch.float32), s.uniform(100 * n, high=n)),
        (16, 10_000, 100_000),
    ),
    Pair(
        histc,
        lambda x, bins: torch.histc(x, bins, 0.0, 1.0),
        lambda s, n: (s.uniform(n), 256),
        (1000, 2_000_000, 20_000_000),
    ),
)
"""Operators of torch that move elements, or count them."""
