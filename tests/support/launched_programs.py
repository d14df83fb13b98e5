"""Programs of which `explain` and what is launched are compared: one for each way that a grid runs loops."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnusedVariable=false

from __future__ import annotations

import math

import torch
from torch import Tensor


def scaled(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * y[j]
    return out


def product(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    out = a.new_empty(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def normalised(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    for i in range(x.shape[0]):
        out[i] = x[i] / total
    return out


def histogram(x: Tensor, like: Tensor) -> Tensor:
    out = torch.zeros(like.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


def embedding(table: Tensor, ids: Tensor) -> Tensor:
    out = torch.empty(ids.shape[0], table.shape[1])
    for i in range(ids.shape[0]):
        for j in range(table.shape[1]):
            out[i, j] = table[ids[i], j]
    return out


def recurrence(x: Tensor, a: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = torch.tanh(h * a[b] + x[b, t])
            out[b, t] = h
    return out


def smoothed(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    level = 0.0
    for i in range(x.shape[0]):
        level = 0.9 * level + 0.1 * x[i]
        out[i] = level
    return out


def causal(w: Tensor, k: Tensor) -> Tensor:
    B, C, T = k.shape
    assert w.shape[0] == C
    assert w.shape[1] == T
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = 0.0
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                out[b, c, t] = s
    return out


def softmax(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - m) / s
    return out


def convolved(x: Tensor, w: Tensor) -> Tensor:
    out = x.new_empty(x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1)
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                s = 0.0
                for p in range(w.shape[0]):
                    for q in range(w.shape[1]):
                        s += x[n, i + p, j + q] * w[p, q]
                out[n, i, j] = s
    return out


def columns(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


def diffused(x: Tensor) -> Tensor:
    a, b = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.shape[0]):
        a[i] = x[i]
        b[i] = x[i]
    for t in range(5):
        for i in range(1, x.shape[0] - 1):
            b[i] = (a[i - 1] + a[i + 1]) / 2
        for i in range(1, x.shape[0] - 1):
            a[i] = b[i]
    return a


def farthest(x: Tensor, near: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], 16, dtype=torch.int64)
    for b in range(x.shape[0]):
        last = 0
        for s in range(16):
            out[b, s] = last
            best, at = -1.0, 0
            for n in range(x.shape[1]):
                near[b, n] = min(near[b, n], abs(x[b, n] - x[b, last]))
                if near[b, n] > best:
                    best, at = near[b, n], n
            last = at
    return out


def windows(x: Tensor, w: Tensor) -> Tensor:
    out = x.new_empty(x.shape[0], x.shape[1] - w.shape[0] + 1)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[i, j + k] * w[k]
            out[i, j] = s
    return out


def shifted(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


def balanced(x: Tensor, c: Tensor, n: Tensor) -> Tensor:
    f = torch.zeros(x.shape[0], x.shape[1])
    g = torch.zeros(x.shape[0], c.shape[1])
    for b in range(x.shape[0]):
        for s in range(n.shape[0]):
            for i in range(f.shape[1]):
                top = -9.0
                for j in range(g.shape[1]):
                    top = max(top, g[b, j] - c[i, j])
                f[b, i] = top + x[b, i]
            for j in range(g.shape[1]):
                top = -9.0
                for i in range(f.shape[1]):
                    top = max(top, f[b, i] - c[i, j])
                g[b, j] = top * 0.5
    return g


def sinkhorn(c: Tensor, n: Tensor) -> Tensor:
    f = torch.zeros(c.shape[0], c.shape[1])
    g = torch.zeros(c.shape[0], c.shape[2])
    for b in range(c.shape[0]):
        for s in range(n.shape[0]):
            for i in range(f.shape[1]):
                top = 0.0
                for j in range(g.shape[1]):
                    top += math.exp(g[b, j] - c[b, i, j])
                f[b, i] = -math.log(top)
            for j in range(g.shape[1]):
                top = 0.0
                for i in range(f.shape[1]):
                    top += math.exp(f[b, i] - c[b, i, j])
                g[b, j] = -math.log(top)
    return g


def steps_of_cells(x: Tensor, r: Tensor) -> Tensor:
    h = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2])
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for i in range(x.shape[2]):
                s = x[b, t, i]
                for j in range(x.shape[2]):
                    s += h[b, t, j] * r[j, i]
                h[b, t + 1, i] = torch.tanh(s)
    return h


def row_sums(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        out[i] = s
    return out


def neighbours(q: Tensor, k: Tensor) -> Tensor:
    """Neighbourhood attention in 1-D: rows of few."""
    out = torch.empty(q.shape[0], q.shape[1], 7)
    for b in range(q.shape[0]):
        for i in range(3, q.shape[1] - 3):
            for w in range(7):
                s = 0.0
                for d in range(q.shape[2]):
                    s += q[b, i, d] * k[b, i + w - 3, d]
                out[b, i, w] = s
    return out


def energy(x: Tensor) -> Tensor:
    out = torch.empty(1)
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
    out[0] = s
    return out


def nll(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty(())
    total = 0.0
    count = 0
    for i in range(x.shape[0]):
        if y[i] >= 0:
            total -= x[i, y[i]]
            count += 1
    out[()] = total / count
    return out


def covariance(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[1], x.shape[1])
    for i in range(x.shape[1]):
        a = 0.0
        for t in range(x.shape[0]):
            a += x[t, i]
        for j in range(x.shape[1]):
            b = 0.0
            for t in range(x.shape[0]):
                b += x[t, j]
            s = 0.0
            for t in range(x.shape[0]):
                s += (x[t, i] - a / x.shape[0]) * (x[t, j] - b / x.shape[0])
            out[i, j] = s
    return out


def moments(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[1], 2)
    for c in range(x.shape[1]):
        s = 0.0
        q = 0.0
        for n in range(x.shape[0]):
            for i in range(x.shape[2]):
                s += x[n, c, i]
                q += x[n, c, i] * x[n, c, i]
        out[c, 0] = s
        out[c, 1] = q
    return out


def mlp(x: Tensor, v: Tensor, w: Tensor) -> Tensor:
    assert x.shape[1] == v.shape[0]
    h = torch.empty(x.shape[0], v.shape[1])
    out = torch.empty(x.shape[0], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(v.shape[1]):
            s = 0.0
            for k in range(v.shape[0]):
                s += x[i, k] * v[k, j]
            h[i, j] = max(s, 0.0)
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(v.shape[1]):
                s += h[i, k] * w[k, j]
            out[i, j] = s
    return out


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    out = torch.empty_like(q)
    for b in range(q.shape[0]):
        for i in range(q.shape[1]):
            p = torch.empty(k.shape[1])
            m = -1e30
            for j in range(k.shape[1]):
                s = 0.0
                for d in range(q.shape[2]):
                    s += q[b, i, d] * k[b, j, d]
                p[j] = s
                m = max(m, s)
            z = 0.0
            for j in range(k.shape[1]):
                z += math.exp(p[j] - m)
            for d in range(q.shape[2]):
                s = 0.0
                for j in range(k.shape[1]):
                    s += math.exp(p[j] - m) * v[b, j, d]
                out[b, i, d] = s / z
    return out


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    state = q.new_zeros(q.shape[0], 16, 16)
    out = torch.empty_like(q)
    for h in range(q.shape[0]):
        for t in range(q.shape[1]):
            for j in range(16):
                s = 0.0
                for i in range(16):
                    state[h, i, j] = 0.9 * state[h, i, j] + k[h, t, i] * v[h, t, j]
                    s += q[h, t, i] * state[h, i, j]
                out[h, t, j] = s
    return out


def written(cache: Tensor, x: Tensor, slot: Tensor) -> Tensor:
    out = torch.zeros(cache.shape[0], cache.shape[1])
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            out[slot[i], d] = x[i, d]
    return out


def segments(x: Tensor, ptr: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(ptr.shape[0] - 1):
        s = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            s += x[e]
        for e in range(ptr[i], ptr[i + 1]):
            out[e] = x[e] / s
    return out


def nearest(x: Tensor, c: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, at = 1e30, 0
        for j in range(c.shape[0]):
            d = 0.0
            for k in range(x.shape[1]):
                d += (x[i, k] - c[j, k]) ** 2
            if d < best:
                best, at = d, j
        out[i] = at
    return out


def edit(a: Tensor, b: Tensor) -> Tensor:
    out = torch.empty(a.shape[0])
    for n in range(a.shape[0]):
        d = torch.zeros(a.shape[1] + 1, b.shape[1] + 1)
        for i in range(a.shape[1]):
            d[i + 1, 0] = i + 1
        for j in range(b.shape[1]):
            d[0, j + 1] = j + 1
        for i in range(a.shape[1]):
            for j in range(b.shape[1]):
                d[i + 1, j + 1] = min(d[i, j] + (1 if a[n, i] != b[n, j] else 0), d[i, j + 1] + 1, d[i + 1, j] + 1)
        out[n] = d[a.shape[1], b.shape[1]]
    return out


def two_sums(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    out = torch.zeros(x.shape[1])
    bins = torch.zeros(y.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            bins[j] += y[i, j] * x[i, 0]
    return out, bins


def batch_norm(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for c in range(x.shape[1]):
        s = 0.0
        q = 0.0
        for n in range(x.shape[0]):
            for i in range(x.shape[2]):
                s += x[n, c, i]
                q += x[n, c, i] * x[n, c, i]
        m = s / (x.shape[0] * x.shape[2])
        v = q / (x.shape[0] * x.shape[2]) - m * m
        for n in range(x.shape[0]):
            for i in range(x.shape[2]):
                out[n, c, i] = (x[n, c, i] - m) * w[c] / math.sqrt(v + 1e-5)
    return out
