"""Losses and distances, as plain loops."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

import brickwork as bw
from benchmarks.aten.pair import Pair


@bw.op("aten_loops::nll2d")
def nll2d(x: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy of pixels."""
    n, c, h, w = x.shape
    loss = x.new_zeros(())
    for b in range(n):
        for y in range(h):
            for z in range(w):
                top = -math.inf
                for k in range(c):
                    top = max(top, x[b, k, y, z])
                s = 0.0
                for k in range(c):
                    s += math.exp(x[b, k, y, z] - top)
                loss[()] += (math.log(s) + top - x[b, target[b, y, z], y, z]) / (n * h * w)
    return loss


@bw.op("aten_loops::cross_entropy")
def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of rows, its labels smoothed."""
    n, v = x.shape
    loss = x.new_empty(n)
    for i in range(n):
        top = x[i, 0]
        for j in range(v):
            top = max(top, x[i, j])
        s = 0.0
        total = 0.0
        for j in range(v):
            s += math.exp(x[i, j] - top)
            total += x[i, j]
        lse = top + math.log(s)
        loss[i] = 0.9 * (lse - x[i, target[i]]) + 0.1 * (lse - total / v)
    return loss


@bw.op("aten_loops::smooth_l1")
def smooth_l1(x: Tensor, y: Tensor) -> Tensor:
    """Return the mean of a loss that is quadratic below 1 and linear above."""
    out = x.new_zeros(1)
    for i in range(x.shape[0]):
        d = abs(x[i] - y[i])
        out[0] += 0.5 * d * d if d < 1 else d - 0.5
    return out[0] / x.shape[0]


@bw.op("aten_loops::multi_margin")
def multi_margin(x: Tensor, t: Tensor) -> Tensor:
    """Return how far other classes come within a margin of the true one."""
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            if j != t[i]:
                s += max(0.0, 1 - x[i, t[i]] + x[i, j])
        out[i] = s / x.shape[1]
    return out


@bw.op("aten_loops::cosine_sim")
def cosine_sim(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine between rows."""
    out = a.new_empty(a.shape[0])
    for i in range(a.shape[0]):
        ab, aa, bb = 0.0, 0.0, 0.0
        for j in range(a.shape[1]):
            ab += a[i, j] * b[i, j]
            aa += a[i, j] ** 2
            bb += b[i, j] ** 2
        out[i] = ab / (max(math.sqrt(aa), 1e-8) * max(math.sqrt(bb), 1e-8))
    return out


@bw.op("aten_loops::triplet")
def triplet(a: Tensor, p: Tensor, n: Tensor) -> Tensor:
    """Return how much nearer p should be than n."""
    loss = a.new_empty(a.shape[0])
    for i in range(a.shape[0]):
        dp = 0.0
        dn = 0.0
        for j in range(a.shape[1]):
            dp += (a[i, j] - p[i, j]) ** 2
            dn += (a[i, j] - n[i, j]) ** 2
        loss[i] = max(math.sqrt(dp) - math.sqrt(dn) + 1.0, 0.0)
    return loss


@bw.op("aten_loops::ctc")
def ctc(lp: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of connectionist temporal classification."""
    steps, batch, _ = lp.shape
    count = targets.shape[1]
    states = 2 * count + 1
    alpha = lp.new_empty(batch, steps, states)
    loss = lp.new_empty(batch)
    for b in range(batch):
        for s in range(states):
            alpha[b, 0, s] = -1e30
        alpha[b, 0, 0] = lp[0, b, 0]
        alpha[b, 0, 1] = lp[0, b, targets[b, 0]]
        for t in range(1, steps):
            for s in range(states):
                lab = 0 if s % 2 == 0 else targets[b, s // 2]
                m = alpha[b, t - 1, s]
                a1 = alpha[b, t - 1, s - 1] if s > 0 else -1e30
                a2 = -1e30
                if s > 1 and s % 2 == 1 and targets[b, s // 2] != targets[b, s // 2 - 1]:
                    a2 = alpha[b, t - 1, s - 2]
                top = max(m, a1, a2)
                alpha[b, t, s] = (
                    top + math.log(math.exp(m - top) + math.exp(a1 - top) + math.exp(a2 - top)) + lp[t, b, lab]
                )
        x, y = alpha[b, steps - 1, states - 1], alpha[b, steps - 1, states - 2]
        top = max(x, y)
        loss[b] = -(top + math.log(math.exp(x - top) + math.exp(y - top)))
    return loss


@bw.op("aten_loops::pdist")
def pdist(x: Tensor) -> Tensor:
    """Return the distances between all pairs of rows."""
    n, d = x.shape
    out = x.new_empty(n * (n - 1) // 2)
    for i in range(n):
        for j in range(i + 1, n):
            s = 0.0
            for k in range(d):
                s += (x[i, k] - x[j, k]) ** 2
            out[i * (2 * n - i - 1) // 2 + j - i - 1] = math.sqrt(s)
    return out


@bw.op("aten_loops::cdist1")
def cdist1(x: Tensor, y: Tensor) -> Tensor:
    """Return the sums of absolute differences between rows of x and of y."""
    out = x.new_empty(x.shape[0], y.shape[0])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += abs(x[i, k] - y[j, k])
            out[i, j] = s
    return out


def ctc_of_scores(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the loss for scores that are no logarithms yet: what torch's gradient of its loss takes for granted."""
    return ctc(functional.log_softmax(scores, -1), targets)


def _torch_ctc(scores: Tensor, targets: Tensor) -> Tensor:
    steps = torch.full((scores.shape[1],), scores.shape[0])
    lengths = torch.full((scores.shape[1],), targets.shape[1])
    return functional.ctc_loss(functional.log_softmax(scores, -1), targets, steps, lengths, reduction="none")


PAIRS = (
    Pair(
        nll2d,
        functional.cross_entropy,
        lambda s, n: (s.normal(n, 32, 512, 512), s.integers(0, 32, n, 512, 512)),
        (1, 1, 8),
        gradient=(0,),
    ),
    Pair(
        cross_entropy,
        lambda x, at: functional.cross_entropy(x, at, reduction="none", label_smoothing=0.1),
        lambda s, n: (s.normal(n, 50304), s.integers(0, 50304, n)),
        (2, 256, 4096),
        gradient=(0,),
    ),
    Pair(
        smooth_l1,
        functional.smooth_l1_loss,
        lambda s, n: (s.normal(n), s.normal(n)),
        (1000, 3_000_000, 30_000_000),
        gradient=(0, 1),
    ),
    Pair(
        multi_margin,
        lambda x, at: functional.multi_margin_loss(x, at, reduction="none"),
        lambda s, n: (s.normal(n, 1000), s.integers(0, 1000, n)),
        (4, 2048, 16384),
        gradient=(0,),
    ),
    Pair(
        cosine_sim,
        functional.cosine_similarity,
        lambda s, n: (s.normal(n, 512), s.normal(n, 512)),
        (4, 4096, 32768),
        gradient=(0, 1),
    ),
    Pair(
        triplet,
        lambda a, p, n: functional.triplet_margin_loss(a, p, n, reduction="none", eps=0.0),
        lambda s, n: (s.normal(n, 512), s.normal(n, 512), s.normal(n, 512)),
        (4, 4096, 32768),
        gradient=(0, 1, 2),
    ),
    Pair(
        ctc_of_scores,
        _torch_ctc,
        lambda s, n: (s.normal(512, n, 64), s.integers(1, 64, n, 100)),
        (1, 8, 64),
        gradient=(0,),
    ),
    Pair(pdist, functional.pdist, lambda s, n: (s.normal(n, 64),), (32, 1024, 2048), gradient=(0,)),
    Pair(
        cdist1,
        lambda x, y: torch.cdist(x, y, 1.0),
        lambda s, n: (s.normal(n, 64), s.normal(2 * n, 64)),
        (32, 1024, 2048),
        gradient=(0, 1),
    ),
)
"""Losses and distances of torch."""
