"""Contractions as users write them, for tests of tiles: products, gathers, masks, windows, triangles and batches."""

import math

import torch

Tensor = torch.Tensor


def product(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def widened(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    out = torch.empty(a.shape[0], b.shape[1], dtype=torch.float32, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def added(a: Tensor, b: Tensor, y: Tensor) -> None:
    assert a.shape[1] == b.shape[0]
    assert y.shape[0] == a.shape[0]
    assert y.shape[1] == b.shape[1]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = y[i, j]
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def scaled(a: Tensor, b: Tensor, d: Tensor, y: Tensor) -> None:
    assert a.shape[1] == b.shape[0]
    assert y.shape[0] == a.shape[0]
    assert y.shape[1] == b.shape[1]
    assert d.shape[0] == a.shape[0]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = y[i, j]
            for k in range(a.shape[1]):
                s += d[i] * a[i, k] * b[k, j]
            y[i, j] = s


def halved(a: Tensor, b: Tensor, y: Tensor) -> None:
    assert a.shape[1] == b.shape[0]
    assert y.shape[0] == a.shape[0]
    assert y.shape[1] == b.shape[1]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += 0.125 * a[i, k] * b[k, j]
            y[i, j] = s


def transposed(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[1]
    out = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            out[i, j] = s
    return out


def activated(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    assert bias.shape[0] == b.shape[1]
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            v = s + bias[j]
            out[i, j] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))
    return out


def dequantised(a: Tensor, q: Tensor, scale: Tensor) -> Tensor:
    assert a.shape[1] == q.shape[1]
    assert scale.shape[0] == q.shape[0]
    out = torch.empty(a.shape[0], q.shape[0], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * (q[j, k] * scale[j])
            out[i, j] = s
    return out


def masked(a: Tensor, b: Tensor, m: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    assert m.shape[0] == a.shape[0]
    assert m.shape[1] == a.shape[1]
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                if m[i, k] > 0:
                    s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def chosen(a: Tensor, b: Tensor, m: Tensor) -> Tensor:
    """Return a product at the elements that m chooses, with zeros elsewhere."""
    assert a.shape[1] == b.shape[0]
    assert m.shape[0] == a.shape[0]
    assert m.shape[1] == b.shape[1]
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                if m[i, j] > 0:
                    s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def batch_last(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    assert a.shape[2] == b.shape[2]
    out = torch.empty(a.shape[0], b.shape[1], a.shape[2], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for h in range(out.shape[2]):
                s = 0.0
                for k in range(a.shape[1]):
                    s += a[i, k, h] * b[k, j, h]
                out[i, j, h] = s
    return out


def looked_up(x: Tensor, rows: Tensor, w: Tensor) -> Tensor:
    assert x.shape[1] == w.shape[0]
    out = torch.empty(rows.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    for i in range(rows.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[rows[i], k] * w[k, j]
            out[i, j] = s
    return out


def convolution(x: Tensor, w: Tensor) -> Tensor:
    N, C, H, W = x.shape
    F, _, R, S = w.shape
    assert w.shape[1] == C
    out = torch.empty(N, F, H, W, dtype=x.dtype, device=x.device)
    for n in range(N):
        for f in range(F):
            for i in range(H):
                for j in range(W):
                    s = 0.0
                    for c in range(C):
                        for p in range(R):
                            for q in range(S):
                                y = i + p - R // 2
                                z = j + q - S // 2
                                if 0 <= y < H and 0 <= z < W:
                                    s += x[n, c, y, z] * w[f, c, p, q]
                    out[n, f, i, j] = s
    return out


def below_diagonal(p: Tensor, v: Tensor) -> Tensor:
    assert p.shape[0] == v.shape[0]
    assert p.shape[1] == v.shape[1]
    assert p.shape[2] == v.shape[1]
    out = torch.empty(v.shape[0], v.shape[1], v.shape[2], dtype=v.dtype, device=v.device)
    for h in range(v.shape[0]):
        for t in range(v.shape[1]):
            for d in range(v.shape[2]):
                s = 0.0
                for u in range(t + 1):
                    s += p[h, t, u] * v[h, u, d]
                out[h, t, d] = s
    return out


def causal_filter(w: Tensor, k: Tensor) -> Tensor:
    """Return for each channel sums of a row of w, whose last number is for the present, with the past of k."""
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


def filter_bank(x: Tensor, w: Tensor) -> Tensor:
    """Return the sums of each row of w with each part of x that is as long."""
    F, Q = w.shape
    out = torch.empty(F, x.shape[0] - Q + 1, dtype=x.dtype, device=x.device)
    for f in range(F):
        for i in range(x.shape[0] - Q + 1):
            s = 0.0
            for q in range(Q):
                s += x[i + q] * w[f, q]
            out[f, i] = s
    return out


def group_scaled(a: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
    """Two codes of four bits a byte, each 32 of which have a scale."""
    assert a.shape[1] == 2 * codes.shape[0]
    assert scale.shape[0] * 32 == a.shape[1]
    assert scale.shape[1] == codes.shape[1]
    out = torch.empty(a.shape[0], codes.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * (((codes[k // 2, j] >> (4 * (k % 2))) & 15) - 8) * scale[k // 32, j]
            out[i, j] = s
    return out


def shared_heads(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Multiply queries by keys that several heads share. q: (B, H, S, D), k: (B, heads of keys, T, D)."""
    B, H, S, D = q.shape
    shared = H // k.shape[1]
    out = q.new_empty((B, H, S, k.shape[2]))
    for b in range(B):
        for h in range(H):
            for i in range(S):
                for j in range(k.shape[2]):
                    s = 0.0
                    for d in range(D):
                        s += q[b, h, i, d] * k[b, h // shared, j, d]
                    out[b, h, i, j] = s
    return out
