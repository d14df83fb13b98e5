"""Running sums, reductions and norms, as plain loops."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

import brickwork as bw
from benchmarks.aten.pair import Pair


@bw.op("aten_loops::cumsum_rows")
def cumsum_rows(x: Tensor) -> Tensor:
    """Return running sums along rows."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
            out[i, j] = s
    return out


@bw.op("aten_loops::cumsum_flat")
def cumsum_flat(x: Tensor) -> Tensor:
    """Return the running sum of a vector."""
    out = torch.empty_like(x)
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s
    return out


@bw.op("aten_loops::cumsum_cols")
def cumsum_cols(x: Tensor) -> Tensor:
    """Return running sums along columns."""
    out = torch.empty_like(x)
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
            out[i, j] = s
    return out


@bw.op("aten_loops::logcumsumexp")
def logcumsumexp(x: Tensor) -> Tensor:
    """Return logarithms of running sums of exponentials."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        top, s = -math.inf, 0.0
        for j in range(x.shape[1]):
            v = x[i, j]
            if v > top:
                s = s * math.exp(top - v) + 1.0
                top = v
            else:
                s += math.exp(v - top)
            out[i, j] = top + math.log(s)
    return out


@bw.op("aten_loops::cummax")
def cummax(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return running maxima, and where they stand."""
    out = torch.empty_like(x)
    at = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    for i in range(x.shape[0]):
        best, where = x[i, 0], 0
        for j in range(x.shape[1]):
            if x[i, j] >= best:
                best, where = x[i, j], j
            out[i, j] = best
            at[i, j] = where
    return out, at


@bw.op("aten_loops::log_softmax")
def log_softmax(x: Tensor) -> Tensor:
    """Return the logarithm of the softmax of rows."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        top = -math.inf
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - top)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - top - math.log(s)
    return out


@bw.op("aten_loops::softmax_mid")
def softmax_mid(x: Tensor) -> Tensor:
    """Return the softmax along the middle axis."""
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for j in range(x.shape[2]):
            m = x[b, 0, j]
            for c in range(1, x.shape[1]):
                m = max(m, x[b, c, j])
            s = 0.0
            for c in range(x.shape[1]):
                out[b, c, j] = math.exp(x[b, c, j] - m)
                s += out[b, c, j]
            for c in range(x.shape[1]):
                out[b, c, j] /= s
    return out


@bw.op("aten_loops::var_mean")
def var_mean(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean of each row."""
    n, d = x.shape
    var, mean = x.new_empty(n), x.new_empty(n)
    for i in range(n):
        m = 0.0
        for j in range(d):
            m += x[i, j]
        m /= d
        v = 0.0
        for j in range(d):
            v += (x[i, j] - m) ** 2
        mean[i] = m
        var[i] = v / (d - 1)
    return var, mean


@bw.op("aten_loops::sum_cols")
def sum_cols(x: Tensor) -> Tensor:
    """Return the sum of each column."""
    out = x.new_zeros(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


@bw.op("aten_loops::norm_all")
def norm_all(x: Tensor) -> Tensor:
    """Return the Euclidean norm of a matrix."""
    out = x.new_zeros(())
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
    out[()] = math.sqrt(s)
    return out


@bw.op("aten_loops::argmin_rows")
def argmin_rows(x: Tensor) -> Tensor:
    """Return where the smallest element of each row stands."""
    out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
    for i in range(x.shape[0]):
        at = 0
        for j in range(x.shape[1]):
            if x[i, j] < x[i, at]:
                at = j
        out[i] = at
    return out


@bw.op("aten_loops::renorm")
def renorm(x: Tensor, limit: float) -> Tensor:
    """Return rows, scaled to a norm of at most the limit."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] ** 2
        s = math.sqrt(s)
        f = limit / (s + 1e-7) if s > limit else 1.0
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * f
    return out


@bw.op("aten_loops::group_norm")
def group_norm(x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
    """Return groups of channels with mean 0 and variance 1, scaled and shifted."""
    n, c, h, w = x.shape
    d = c // groups
    out = torch.empty_like(x)
    for b in range(n):
        for g in range(groups):
            s = 0.0
            q = 0.0
            for k in range(g * d, (g + 1) * d):
                for y in range(h):
                    for z in range(w):
                        s += x[b, k, y, z]
                        q += x[b, k, y, z] * x[b, k, y, z]
            m = s / (d * h * w)
            inv = 1.0 / math.sqrt(q / (d * h * w) - m * m + 1e-5)
            for k in range(g * d, (g + 1) * d):
                for y in range(h):
                    for z in range(w):
                        out[b, k, y, z] = (x[b, k, y, z] - m) * inv * weight[k] + bias[k]
    return out


@bw.op("aten_loops::batch_norm")
def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return channels with mean 0 and variance 1 over the batch, scaled and shifted."""
    n, c, h, w = x.shape
    count = n * h * w
    out = torch.empty_like(x)
    for k in range(c):
        mean = 0.0
        for b in range(n):
            for y in range(h):
                for z in range(w):
                    mean += x[b, k, y, z] / count
        var = 0.0
        for b in range(n):
            for y in range(h):
                for z in range(w):
                    var += (x[b, k, y, z] - mean) ** 2 / count
        for b in range(n):
            for y in range(h):
                for z in range(w):
                    out[b, k, y, z] = (x[b, k, y, z] - mean) / math.sqrt(var + 1e-5) * weight[k] + bias[k]
    return out


@bw.op("aten_loops::rms_norm")
def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    """Return rows divided by their root mean square, scaled."""
    out = torch.empty_like(x)
    b, t, d = x.shape
    for i in range(b):
        for j in range(t):
            ms = 0.0
            for k in range(d):
                ms += x[i, j, k] ** 2
            ms = (ms / d + 1e-6) ** -0.5
            for k in range(d):
                out[i, j, k] = x[i, j, k] * ms * w[k]
    return out


@bw.op("aten_loops::lrn")
def lrn(x: Tensor, n: int) -> Tensor:
    """Return x, divided by what its neighbours in channels say."""
    b, c, h, w = x.shape
    out = torch.empty_like(x)
    for i in range(b):
        for k in range(c):
            for y in range(h):
                for z in range(w):
                    s = 0.0
                    for j in range(max(0, k - n // 2), min(c, k + (n + 1) // 2)):
                        s += x[i, j, y, z] ** 2
                    out[i, k, y, z] = x[i, k, y, z] / (1.0 + 1e-4 * s / n) ** 0.75
    return out


PAIRS = (
    Pair(cumsum_rows, lambda x: x.cumsum(1), lambda s, n: (s.normal(n, 4096),), (4, 1024, 8192), gradient=(0,)),
    Pair(cumsum_flat, lambda x: x.cumsum(0), lambda s, n: (s.normal(n),), (1000, 1_000_000, 10_000_000), gradient=(0,)),
    Pair(cumsum_cols, lambda x: x.cumsum(0), lambda s, n: (s.normal(4096, n),), (4, 1024, 8192), gradient=(0,)),
    Pair(logcumsumexp, lambda x: x.logcumsumexp(1), lambda s, n: (s.normal(n, 2048),), (4, 512, 8192), gradient=(0,)),
    Pair(cummax, lambda x: torch.cummax(x, 1), lambda s, n: (s.normal(n, 2048),), (4, 512, 8192)),
    Pair(
        log_softmax,
        lambda x: functional.log_softmax(x, -1),
        lambda s, n: (s.normal(n, 8192),),
        (4, 512, 8192),
        gradient=(0,),
    ),
    Pair(
        softmax_mid,
        lambda x: functional.softmax(x, 1),
        lambda s, n: (s.normal(n, 256, 4096),),
        (1, 4, 64),
        gradient=(0,),
    ),
    Pair(var_mean, lambda x: torch.var_mean(x, 1), lambda s, n: (s.normal(n, 8192),), (4, 1024, 8192), gradient=(0,)),
    Pair(sum_cols, lambda x: x.sum(0), lambda s, n: (s.normal(n, 1024),), (4, 8192, 65536)),
    Pair(norm_all, lambda x: x.norm(), lambda s, n: (s.normal(n, 8192),), (4, 1024, 8192), gradient=(0,)),
    Pair(argmin_rows, lambda x: x.argmin(1), lambda s, n: (s.normal(n, 8192),), (4, 1024, 8192)),
    Pair(
        renorm,
        lambda x, limit: torch.renorm(x, 2, 0, limit),
        lambda s, n: (s.normal(n, 4096), 60.0),
        (4, 1024, 8192),
    ),
    Pair(
        group_norm,
        lambda x, weight, bias, groups: functional.group_norm(x, groups, weight, bias),
        lambda s, n: (s.normal(n, 256, 56, 56), s.normal(256), s.normal(256), 32),
        (1, 2, 32),
        gradient=(0, 1, 2),
    ),
    Pair(
        batch_norm,
        lambda x, weight, bias: functional.batch_norm(x, None, None, weight, bias, training=True),
        lambda s, n: (s.normal(n, 256, 56, 56), s.normal(256), s.normal(256)),
        (2, 2, 32),
        gradient=(0, 1, 2),
    ),
    Pair(
        rms_norm,
        lambda x, w: functional.rms_norm(x, [x.shape[-1]], w, 1e-6),
        lambda s, n: (s.normal(n, 1024, 4096), s.normal(4096)),
        (1, 1, 16),
        gradient=(0, 1),
    ),
    Pair(
        lrn,
        functional.local_response_norm,
        lambda s, n: (s.normal(n, 96, 55, 55), 5),
        (1, 4, 32),
        gradient=(0,),
    ),
)
"""Operators of torch that sum, compare or scale along an axis."""
