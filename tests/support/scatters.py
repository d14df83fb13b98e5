"""Nests that add to elements in every way that gradients do: the loops of backward passes, written by hand."""

import torch


def causal(w: torch.Tensor, k: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    B, C, T = k.shape
    wb = torch.zeros((C, T))
    kb = torch.zeros((B, C, T))
    assert w.shape[0] == C
    assert w.shape[1] == T
    for b in range(B):
        for c in range(C):
            for t in range(T):
                a = g[b, c, t]
                for u in range(t + 1):
                    wb[c, T - 1 - t + u] += a * k[b, c, u]
                    kb[b, c, u] += a * w[c, T - 1 - t + u]
    return wb, kb


def stencil(g: torch.Tensor) -> torch.Tensor:
    n, m = g.shape
    xb = torch.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            a = g[i, j]
            xb[i, j] += a * 4
            xb[i - 1, j] += a
            xb[i + 1, j] += a * 2
            xb[i, j - 1] += a * 3
            xb[i, j + 1] += a * 5
    return xb


def brick(tile: torch.Tensor, g: torch.Tensor, o: list[int], s: int) -> torch.Tensor:
    th, tw = tile.shape
    h, w = g.shape
    tb = torch.zeros((th, tw))
    for i in range(h):
        y = h - 1 - i - o[1]
        v = y // th
        for j in range(w):
            x = j - o[0] - v * s
            u = x // tw
            tb[th - 1 - (y - v * th), x - u * tw] += g[i, j]
    return tb


def transpose(g: torch.Tensor) -> torch.Tensor:
    n, m = g.shape
    xb = torch.zeros((m, n))
    for i in range(n):
        for j in range(m):
            xb[j, i] += g[i, j]
    return xb


def matmul(a: torch.Tensor, b: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n, l = a.shape
    m = b.shape[1]
    assert b.shape[0] == l
    assert g.shape[0] == n
    assert g.shape[1] == m
    ab = torch.zeros((n, l))
    bb = torch.zeros((l, m))
    for i in range(n):
        for j in range(m):
            s = g[i, j]
            for k in range(l):
                ab[i, k] += s * b[k, j]
                bb[k, j] += s * a[i, k]
    return ab, bb


def conv1(
    x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, stride: int, pad: int, dil: int
) -> tuple[torch.Tensor, torch.Tensor]:
    n = x.shape[0]
    k = w.shape[0]
    o = g.shape[0]
    xb = torch.zeros((n,))
    wb = torch.zeros((k,))
    for i in range(o):
        for q in range(k):
            p = i * stride + q * dil - pad
            if 0 <= p < n:
                xb[p] += g[i] * w[q]
                wb[q] += g[i] * x[p]
    return xb, wb


def conv2(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    B, C, H, W = x.shape
    O, C2, K, L = w.shape
    xb = torch.zeros((B, C, H, W))
    wb = torch.zeros((O, C, K, L))
    assert C2 == C
    assert g.shape[0] == B
    assert g.shape[1] == O
    assert g.shape[2] == H - K + 1
    assert g.shape[3] == W - L + 1
    for b in range(B):
        for o in range(O):
            for h in range(H - K + 1):
                for v in range(W - L + 1):
                    a = g[b, o, h, v]
                    for c in range(C):
                        for p in range(K):
                            for q in range(L):
                                xb[b, c, h + p, v + q] += a * w[o, c, p, q]
                                wb[o, c, p, q] += a * x[b, c, h + p, v + q]
    return xb, wb


def conv2s(g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    H, W = g.shape
    xb = torch.zeros((2 * H + 1, 3 * W + 4))
    for h in range(H):
        for v in range(W):
            a = g[h, v]
            for p in range(3):
                for q in range(2):
                    xb[h * 2 + p, v * 3 + q * 2] += a * w[p, q]
    return xb


def up(g: torch.Tensor) -> torch.Tensor:
    n = g.shape[0]
    xb = torch.zeros(((n + 1) // 2,))
    for i in range(n):
        xb[i // 2] += g[i]
    return xb


def layernorm(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    n, m = x.shape
    assert w.shape[0] == m
    xb = torch.zeros((n, m))
    wb = torch.zeros((m,))
    bb = torch.zeros((m,))
    for i in range(n):
        mean = 0.0
        for j in range(m):
            mean += x[i, j]
        mean = mean / 4
        var = 0.0
        for j in range(m):
            var += (x[i, j] - mean) * (x[i, j] - mean)
        r = 1.0 / (var + 1.0)
        s1 = 0.0
        for j in range(m):
            a = g[i, j]
            wb[j] += a * (x[i, j] - mean) * r
            bb[j] += a
            s1 += a * w[j]
        for j in range(m):
            xb[i, j] += g[i, j] * w[j] * r - s1
    return xb, wb, bb


def replicate(g: torch.Tensor, p: int) -> torch.Tensor:
    n = g.shape[0]
    xb = torch.zeros((n - 2 * p,))
    for i in range(n):
        q = min(max(i - p, 0), n - 2 * p - 1)
        xb[q] += g[i]
    return xb


def reflect(g: torch.Tensor, p: int) -> torch.Tensor:
    n = g.shape[0]
    m = n - 2 * p
    xb = torch.zeros((m,))
    for i in range(n):
        q = abs(i - p)
        if q >= m:
            q = 2 * m - 2 - q
        xb[q] += g[i]
    return xb


def diagonal(g: torch.Tensor) -> torch.Tensor:
    n = g.shape[0]
    xb = torch.zeros((n, n))
    for i in range(n):
        xb[i, i] += g[i]
        xb[i, 0] += 2 * g[i]
    return xb


def embedding(idx: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    n, d = g.shape
    wb = torch.zeros((5, d))
    for i in range(n):
        for j in range(d):
            wb[idx[i], j] += g[i, j]
    return wb


def pad(g: torch.Tensor, p: int) -> torch.Tensor:
    n = g.shape[0]
    m = n - 2 * p
    xb = torch.zeros((m,))
    for i in range(n):
        if p <= i and i < m + p:
            xb[i - p] += g[i]
    return xb


def bias(g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n, m = g.shape
    t = torch.zeros((1,))
    b = torch.zeros((m,))
    for i in range(n):
        for j in range(m):
            t[0] += g[i, j]
            b[j] += g[i, j]
    return t, b


def strided(g: torch.Tensor) -> torch.Tensor:
    n = g.shape[0]
    xb = torch.zeros((2 * n + 1,))
    for i in range(n):
        xb[2 * i + 1] += g[i]
    return xb


def scan(a: torch.Tensor, x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n, c, T = x.shape
    ab = torch.zeros((c,))
    xb = torch.zeros((n, c, T))
    for i in range(n):
        for j in range(c):
            s = 0.0
            for q in range(T):
                t = T - 1 - q
                s = s * a[j] + g[i, j, t]
                xb[i, j, t] += s
                ab[j] += s * x[i, j, t]
    return ab, xb


def relu(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    n, m = g.shape
    wb = torch.zeros((m,))
    for i in range(n):
        for j in range(m):
            if x[i, j] > 0:
                wb[j] += g[i, j]
    return wb


def even(g: torch.Tensor) -> torch.Tensor:
    n = g.shape[0]
    xb = torch.zeros(((n + 1) // 2,))
    for i in range(n):
        if i % 2 == 0:
            xb[i // 2] += g[i]
    return xb


def spread(g: torch.Tensor, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    n = g.shape[0]
    xb = torch.zeros((2 * n + 3,))
    yb = torch.zeros((n,))
    for i in range(n):
        yb[i] += 2 * g[i]
        for q in range(3):
            p = i * stride + q
            if 0 <= p < 2 * n + 3:
                xb[p] += g[i]
    return xb, yb


def halves_and_total(g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n = g.shape[0]
    xb = torch.zeros(((n + 1) // 2,))
    total = torch.zeros((1,))
    s = 0.0
    for i in range(n):
        s += g[i]
        xb[i // 2] += g[i]
    for i in range(1):
        total[i] = s
    return xb, total


def swapped(x: torch.Tensor, k: torch.Tensor, steps: int) -> torch.Tensor:
    """The way back of a stencil between two tensors that change places."""
    n = x.shape[0]
    u = torch.zeros((n,))
    v = torch.zeros((n,))
    for i in range(n):
        u[i] = x[i]
    for _ in range(steps):
        for i in range(1, n - 1):
            a = u[i] * k[i]
            u[i] = 0
            v[i - 1] += a
            v[i] -= 2 * a
            v[i + 1] += a
        u, v = v, u
    return u


def windows(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """A mean of each window before its elements are added to: neighbours in memory belong to many of them."""
    n = x.shape[0]
    xb = torch.zeros((n,))
    for i in range(n):
        mean = 0.0
        for d in range(-1, 2):
            mean += x[min(max(i + d, 0), n - 1)]
        for d in range(-1, 2):
            xb[min(max(i + d, 0), n - 1)] += g[i] * mean
            xb[i] -= g[i] * mean * d
    return xb


def triangle(g: torch.Tensor) -> torch.Tensor:
    """Sums over windows that grow with an outer loop that is left early."""
    n = g.shape[0]
    xb = torch.zeros((n,))
    for t in range(n):
        if g[t] > 3:
            break
        for i in range(t + 1):
            for k in range(i + 1):
                xb[i - k] += g[i]
    return xb


def displaced(g: torch.Tensor, b: torch.Tensor, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Displacements by a few, outside of loops whose both ends they move."""
    n, m = b.shape
    d = 2 * r + 1
    ab, bb = torch.zeros((n, m)), torch.zeros((n, m))
    assert g.shape[1] == n
    assert g.shape[2] == m
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            for i in range(max(0, -dy), min(n, n - dy)):
                for j in range(max(0, -dx), min(m, m - dx)):
                    a = g[(dy + r) * d + dx + r, i, j]
                    ab[i, j] += a * b[i + dy, j + dx]
                    bb[i + dy, j + dx] += a
    return ab, bb


def flat(g: torch.Tensor, k: int) -> torch.Tensor:
    """Flat indices of windows, by a length that is an argument."""
    channels, n, m = g.shape
    h, w = n - k + 1, m - k + 1
    xb = torch.zeros((channels * k * k, h * w))
    for c in range(channels):
        for a in range(k):
            for b in range(k):
                for i in range(h):
                    for j in range(w):
                        xb[(c * k + a) * k + b, i * w + j] += g[c, i + a, j + b]
    return xb


def grouped(
    x: torch.Tensor, w: torch.Tensor, g: torch.Tensor, stride: int, pad: int, dilation: int, groups: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """A convolution's gradients, with as many places as a division by the stride says."""
    C, L = x.shape
    O, I, K = w.shape
    T = (L + 2 * pad - dilation * (K - 1) - 1) // stride + 1
    assert g.shape[1] == T
    xb, wb = torch.zeros((C, L)), torch.zeros((O, I, K))
    for o in range(O):
        for t in range(T):
            for c in range(I):
                for k in range(K):
                    u = t * stride - pad + k * dilation
                    if u >= 0 and u < L:
                        wb[o, c, k] += g[o, t] * x[o // (O // groups) * I + c, u]
                        xb[o // (O // groups) * I + c, u] += g[o, t] * w[o, c, k]
    return xb, wb


def window(g: torch.Tensor, m: int, k: int, stride: int) -> torch.Tensor:
    """Windows of an argument's length, at steps of another."""
    xb = torch.zeros((m,))
    for i in range((m - k) // stride + 1):
        for a in range(k):
            xb[i * stride + a] += g[i]
    return xb


def solved(L: torch.Tensor, x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A solution's gradients, one place after the other: what is added is read from what the loops change."""
    n, m = x.shape
    Lb, xb = torch.zeros((n, n)), torch.zeros((n, m))
    for c in range(m):
        for i in range(n):
            a = g[i, c] + xb[i, c]
            Lb[i, i] += a
            for j in range(i, n):
                xb[j, c] += a * L[i, j]
                Lb[i, j] += a * x[j, c]
    return Lb, xb


def quantised(x: torch.Tensor, packed: torch.Tensor, g: torch.Tensor, group: int) -> torch.Tensor:
    """The gradient of scales of groups: the sums begin at a place of each group, and others are read at half of it."""
    scale = torch.zeros((2, (x.shape[0] + group - 1) // group))
    for r in range(2):
        for c in range(x.shape[0]):
            scale[r, c // group] += g[r] * x[c] * packed[r, c // 2] * packed[r, min(c + c % 3, x.shape[0] - 1) // 2]
    return scale


CODES = tuple(k * 7 % 16 - 8.0 for k in range(16))


def decoded(code: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights of a matrix product are numbers in a table, which stands where it is read."""
    n, o = g.shape
    k = code.shape[1]
    xb = torch.zeros((n, k))
    wb = torch.zeros(o)
    for i in range(n):
        for j in range(o):
            for c in range(k):
                xb[i, c] += g[i, j] * w[j] * CODES[code[j, c]]
                wb[j] += g[i, j] * CODES[code[j, c]]
    return xb, wb


def gated(g: torch.Tensor, n: int, h: int, at: int) -> torch.Tensor:
    """Two places of an iteration: others if `h` is at least `n`, and `at` is 0."""
    xb = torch.zeros((g.shape[0], 12))
    for b in range(g.shape[0]):
        for j in range(n):
            xb[b, j + at] += g[b, j]
            xb[b, h + j] += g[b, j] * 2
    return xb


def packed(g: torch.Tensor, h: int) -> torch.Tensor:
    """Two halves of a row, the second as far behind the first as that is long."""
    xb = torch.zeros((g.shape[0], g.shape[1]))
    for b in range(g.shape[0]):
        for j in range(h):
            xb[b, j] += g[b, h + j]
            xb[b, h + j] += g[b, j] * 2
    return xb


def heads(g: torch.Tensor, x: torch.Tensor, h: int) -> torch.Tensor:
    """Rows of `x.shape[1] // h` items each, which are summed up before they are added to."""
    n, m = x.shape
    d = m // h
    xb = torch.zeros((n, m))
    for i in range(n):
        for k in range(h):
            s = 0.0
            for c in range(d):
                s += x[i, k * d + c]
            for c in range(d):
                xb[i, k * d + c] += g[i, k * d + c] * s
            for c in range(d):
                xb[i, k * d + c] += x[i, k * d + c]
    return xb


def twice(g: torch.Tensor) -> torch.Tensor:
    """Two loops over the same elements, one after the other."""
    n, m = g.shape
    xb = torch.zeros((n, m))
    for i in range(n):
        s = 0.0
        for j in range(m):
            xb[i, j] += g[i, j]
            s += g[i, j]
        for j in range(m):
            xb[i, j] += s
    return xb


def passed_on(g: torch.Tensor) -> torch.Tensor:
    """What an iteration reads is set by the one before."""
    xb = torch.zeros((g.shape[0],))
    for i in range(g.shape[0] - 1):
        xb[i] += g[i]
        g[i + 1] = 0.0
    return xb


def read_again(g: torch.Tensor, m: int) -> torch.Tensor:
    """What an iteration reads is set by that of another loop."""
    xb = torch.zeros((g.shape[0], m))
    for i in range(g.shape[0]):
        for j in range(m):
            xb[i, j] += g[i]
            g[i] = 0.0
    return xb


def picked(g: torch.Tensor, at: torch.Tensor, n: int) -> torch.Tensor:
    """All columns of a row add to an element that another tensor tells, and each to its own."""
    rows, columns = g.shape
    xb = torch.zeros((rows, 4))
    for i in range(rows):
        for j in range(min(n, columns)):
            p = at[i]
            if j != p:
                xb[i, p] += g[i, j]
                xb[i, j] += g[i, j] * 2
    return xb


def picked_twice(g: torch.Tensor, at: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """The element is told by an element of an element."""
    xb = torch.zeros((4,))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            xb[at[by[i]]] += g[i, j]
    return xb


def picked_in_turn(g: torch.Tensor, at: torch.Tensor, k: int) -> torch.Tensor:
    """The element is another after each iteration, and one by a quotient."""
    xb = torch.zeros((9,))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            xb[at[i]] += g[i, j]
            xb[at[i] // k + 4] += g[i, j]
            at[i] = (at[i] + 1) % 4
    return xb


def picked_by_quotient(g: torch.Tensor, at: torch.Tensor, k: int) -> torch.Tensor:
    """Nothing is divided where there are no columns."""
    xb = torch.zeros((9,))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            xb[at[i] // k] += g[i, j]
            xb[at[i] % k] += g[i, j] * 2
    return xb


def picked_by_halves(g: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    xb = torch.zeros((9,))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            xb[at[i] // 2] += g[i, j]
    return xb


def picked_along(g: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Elements that lead to one another."""
    xb = torch.zeros((4,))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            p = 0
            for _ in range(3):
                xb[p] += g[i, j]
                p = at[p]
    return xb


def columns(g: torch.Tensor, a: torch.Tensor, m: int, at: int) -> torch.Tensor:
    """Columns of another tensor from one on, which may be fewer."""
    bb = torch.zeros((g.shape[1], m))
    for i in range(g.shape[0]):
        for j in range(g.shape[1]):
            for k in range(a.shape[1]):
                bb[j, k + at] += g[i, j] * a[i, k]
    return bb


def backwards(g: torch.Tensor, m: int) -> torch.Tensor:
    bb = torch.zeros((m,))
    for i in range(g.shape[0]):
        for k in range(g.shape[1]):
            bb[g.shape[1] - 1 - k] += g[i, k]
    return bb


def centred(g: torch.Tensor, r: int) -> torch.Tensor:
    """A window's centre, and its places, which the ends hold back."""
    n, m = g.shape
    xb = torch.zeros((n, m))
    for i in range(n):
        for j in range(m):
            s = 0.0
            for d in range(-r, r + 1):
                s += g[min(max(i + d, 0), n - 1), j]
            for d in range(-r, r + 1):
                p = min(max(i + d, 0), n - 1)
                xb[p, j] += g[i, j] * d
                xb[i, j] += g[p, j] * s
    return xb
