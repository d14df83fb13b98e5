"""Operators as a newcomer writes them: recurrences, dynamic programs, solvers, losses, updates in place."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math

import torch

import brickwork as bw


@bw.op("strangers::wkv4")
def wkv4(w: torch.Tensor, u: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """RWKV-4 with its running maximum."""
    B, T, C = k.shape
    out = torch.empty_like(v)
    for b in range(B):
        for c in range(C):
            p = 0.0
            q = 0.0
            o = -1e38
            for t in range(T):
                kk = k[b, t, c]
                vv = v[b, t, c]
                no = max(o, u[c] + kk)
                decay = math.exp(o - no)
                fresh = math.exp(u[c] + kk - no)
                out[b, t, c] = (decay * p + fresh * vv) / (decay * q + fresh)
                no = max(w[c] + o, kk)
                decay = math.exp(w[c] + o - no)
                fresh = math.exp(kk - no)
                p = decay * p + fresh * vv
                q = decay * q + fresh
                o = no
    return out


@bw.op("strangers::cross_entropy")
def cross_entropy(x: torch.Tensor, y: torch.Tensor, smoothing: float) -> torch.Tensor:
    n, C = x.shape
    out = torch.zeros((), dtype=x.dtype)
    count = 0
    total = 0.0
    for i in range(n):
        if y[i] == -100:
            continue
        m = max(x[i, c] for c in range(C))
        z = 0.0
        s = 0.0
        for c in range(C):
            z += math.exp(x[i, c] - m)
            s += x[i, c]
        lse = m + math.log(z)
        total += (1 - smoothing) * (lse - x[i, y[i]]) + smoothing * (lse - s / C)
        count += 1
    out[()] = total / count
    return out


@bw.op("strangers::focal")
def focal(x: torch.Tensor, y: torch.Tensor, gamma: float, alpha: float) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        p = torch.sigmoid(x[i])
        pt = p if y[i] > 0.5 else 1 - p
        a = alpha if y[i] > 0.5 else 1 - alpha
        out[i] = -a * (1 - pt) ** gamma * math.log(max(pt, 1e-12))
    return out


def log_add(a: float, b: float) -> float:
    m = max(a, b)
    if m == -math.inf:
        return m
    return m + math.log(math.exp(a - m) + math.exp(b - m))


@bw.op("strangers::soft_dtw")
def soft_dtw(d: torch.Tensor, gamma: float) -> torch.Tensor:
    n, m = d.shape
    r = torch.full((n + 1, m + 1), math.inf, dtype=d.dtype)
    out = torch.empty((1,), dtype=d.dtype)
    r[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = -r[i - 1, j - 1] / gamma, -r[i - 1, j] / gamma, -r[i, j - 1] / gamma
            top = max(a, b, c)
            z = math.exp(a - top) + math.exp(b - top) + math.exp(c - top)
            r[i, j] = d[i - 1, j - 1] - gamma * (math.log(z) + top)
    for k in range(1):
        out[k] = r[n, m]
    return out


@bw.op("strangers::csr")
def csr(ptr: torch.Tensor, col: torch.Tensor, val: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(ptr.shape[0] - 1, dtype=val.dtype)
    for i in range(ptr.shape[0] - 1):
        s = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            s += val[e] * x[col[e]]
        out[i] = s
    return out


@bw.op("strangers::segment_softmax")
def segment_softmax(x: torch.Tensor, seg: torch.Tensor, n: int) -> torch.Tensor:
    """Graph attention's softmax over edges of a node."""
    top = torch.full((n,), -math.inf, dtype=x.dtype)
    z = torch.zeros(n, dtype=x.dtype)
    out = torch.empty_like(x)
    for e in range(x.shape[0]):
        if x[e] > top[seg[e]]:
            top[seg[e]] = x[e]
    for e in range(x.shape[0]):
        z[seg[e]] += math.exp(x[e] - top[seg[e]])
    for e in range(x.shape[0]):
        out[e] = math.exp(x[e] - top[seg[e]]) / z[seg[e]]
    return out


@bw.op("strangers::cumprod")
def cumprod(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = 1.0
        for j in range(x.shape[1]):
            s *= x[i, j]
            out[i, j] = s
    return out


@bw.op("strangers::top1gather")
def top1gather(score: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mixture of experts, top 1: index without gradient, its value with."""
    n, E = score.shape
    out = torch.empty_like(v)
    which = torch.empty(n, dtype=torch.int32)
    for i in range(n):
        k = 0
        for e in range(1, E):
            if score[i, e] > score[i, k]:
                k = e
        which[i] = k
        for d in range(v.shape[1]):
            out[i, d] = torch.sigmoid(score[i, k]) * v[i, d]
    return out, which


@bw.op("strangers::kalman")
def kalman(z: torch.Tensor, q: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n = z.shape[0]
    xs = torch.empty_like(z)
    loss = torch.zeros(1, dtype=z.dtype)
    x = 0.0
    p = 1.0
    for t in range(n):
        p += q[0]
        s = p + r[0]
        k = p / s
        e = z[t] - x
        x += k * e
        p *= 1 - k
        xs[t] = x
        loss[0] += 0.5 * (e * e / s + math.log(s))
    return xs, loss


@bw.op("strangers::newton")
def newton(a: torch.Tensor) -> torch.Tensor:
    """Cube root by Newton until converged."""
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        x = 1.0 + a[i]
        while abs(x * x * x - a[i]) > 1e-13 * a[i]:
            x = x - (x * x * x - a[i]) / (3 * x * x)
        out[i] = x
    return out


@bw.op("strangers::mandel")
def mandel(c: torch.Tensor, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Smooth escape value and number of steps."""
    n = c.shape[0]
    out = torch.empty(n, dtype=c.dtype)
    its = torch.empty(n, dtype=torch.int64)
    for i in range(n):
        x = 0.0
        y = 0.0
        k = 0
        for _ in range(most):
            if x * x + y * y > 4.0:
                break
            x, y = x * x - y * y + c[i, 0], 2 * x * y + c[i, 1]
            k += 1
        out[i] = k - math.log2(max(x * x + y * y, 1e-9))
        its[i] = k
    return out, its


@bw.op("strangers::trisolve_")
def trisolve_(L: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(b.shape[0]):
        for j in range(i):
            b[i] -= L[i, j] * b[j]
        b[i] /= L[i, i]


@bw.op("strangers::thomas")
def thomas(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    n = b.shape[0]
    cp = torch.empty_like(b)
    x = torch.empty_like(b)
    cp[0] = c[0] / b[0]
    x[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        x[i] = (d[i] - a[i] * x[i - 1]) / m
    for i in range(n - 2, -1, -1):
        x[i] -= cp[i] * x[i + 1]
    return x


@bw.op("strangers::triplet")
def triplet(x: torch.Tensor, y: torch.Tensor, margin: float) -> torch.Tensor:
    """Batch hard triplet loss."""
    n, d = x.shape
    out = torch.zeros(1, dtype=x.dtype)
    for i in range(n):
        pos = 0.0
        neg = math.inf
        for j in range(n):
            s = math.sqrt(sum((x[i, k] - x[j, k]) ** 2 for k in range(d)) + 1e-9)
            if y[i] == y[j]:
                if j != i:
                    pos = max(pos, s)
            else:
                neg = min(neg, s)
        out[0] += max(pos - neg + margin, 0.0) / n
    return out


@bw.op("strangers::guarded")
def guarded(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        if y[i] != 0:
            r = x[i] / y[i]
        else:
            r = 0.0
        n = math.sqrt(x[i]) if x[i] > 0 else 0.0
        out[i] = r + n + (math.log(x[i]) if x[i] > 0 else x[i])
    return out


@bw.op("strangers::stack_lists")
def stack_lists(xs: list[torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    n = xs[0].shape[0]
    out = torch.zeros(n, dtype=w.dtype)
    for k, x in enumerate(xs):
        for i in range(n):
            out[i] += w[k] * x[i] * x[i]
    return out


def first_root(a: float, b: float, c: float) -> float:
    d = b * b - 4 * a * c
    if d < 0:
        return 0.0
    if a > 0:
        return (-b + math.sqrt(d)) / (2 * a)
    for k in range(3):
        if k * a < -1.0:
            return k * b
    return c


@bw.op("strangers::roots")
def roots(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        out[i] = first_root(a[i], b[i], c[i])
    return out


@bw.op("strangers::momentum_")
def momentum_(p: torch.Tensor, v: torch.Tensor, g: torch.Tensor, lr: float, mu: float) -> torch.Tensor:
    """In-place SGD with momentum; returns the norm of the step."""
    norm = torch.zeros((), dtype=p.dtype)
    for i in range(p.shape[0]):
        v[i] = mu * v[i] + g[i]
        p[i] -= lr * v[i]
        norm[()] += v[i] * v[i]
    return norm


@bw.op("strangers::hmm")
def hmm(pi: torch.Tensor, A: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
    """Forward algorithm with lists exchanged."""
    T = e.shape[0]
    out = torch.empty(1, dtype=e.dtype)
    for _ in range(1):
        cur = [0.0] * 3
        nxt = [0.0] * 3
        for s in range(3):
            cur[s] = pi[s] * e[0, s]
        for t in range(1, T):
            for s in range(3):
                v = 0.0
                for p in range(3):
                    v += cur[p] * A[p, s]
                nxt[s] = v * e[t, s]
            cur, nxt = nxt, cur
        out[0] = math.log(sum(cur))
    return out


@bw.op("strangers::horner")
def horner(c: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        p = 0.0
        for k in range(c.shape[0] - 1, -1, -1):
            p = p * x[i] + c[k]
        out[i] = p
    return out


@bw.op("strangers::batchnorm")
def batchnorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, rm: torch.Tensor, mom: float) -> torch.Tensor:
    """Statistics over the batch; running mean updated in place (no gradient wanted there)."""
    N, C = x.shape
    out = torch.empty_like(x)
    for c in range(C):
        m = 0.0
        for n in range(N):
            m += x[n, c]
        m /= N
        v = 0.0
        for n in range(N):
            v += (x[n, c] - m) ** 2
        v /= N
        rm[c] = (1 - mom) * rm[c] + mom * m
        for n in range(N):
            out[n, c] = (x[n, c] - m) / math.sqrt(v + 1e-5) * w[c] + b[c]
    return out


@bw.op("strangers::elman")
def elman(x: torch.Tensor, U: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
    """Elman network with its state in a list, new list each step."""
    B, T, _ = x.shape
    out = torch.empty_like(x)
    for b in range(B):
        h = [h0[b, 0], h0[b, 1], h0[b, 2]]
        for t in range(T):
            n = [math.tanh(x[b, t, i] + sum(U[i, j] * h[j] for j in range(3))) for i in range(3)]
            for i in range(3):
                h[i] = n[i]
                out[b, t, i] = n[i]
    return out


@bw.op("strangers::euler")
def euler(x0: torch.Tensor, A: torch.Tensor, h: float, steps: int) -> torch.Tensor:
    """x' = tanh(A x), whole state, all steps stored."""
    n = x0.shape[0]
    xs = torch.empty((steps + 1, n), dtype=x0.dtype)
    for i in range(n):
        xs[0, i] = x0[i]
    for s in range(steps):
        for i in range(n):
            v = 0.0
            for j in range(n):
                v += A[i, j] * xs[s, j]
            xs[s + 1, i] = xs[s, i] + h * math.tanh(v)
    return xs


@bw.op("strangers::sinkhorn")
def sinkhorn(C: torch.Tensor, eps: float, its: int) -> torch.Tensor:
    n, m = C.shape
    f = torch.zeros(n, dtype=C.dtype)
    g = torch.zeros(m, dtype=C.dtype)
    P = torch.empty_like(C)
    for _ in range(its):
        for i in range(n):
            s = 0.0
            for j in range(m):
                s += math.exp((g[j] - C[i, j]) / eps)
            f[i] = -eps * math.log(s)
        for j in range(m):
            s = 0.0
            for i in range(n):
                s += math.exp((f[i] - C[i, j]) / eps)
            g[j] = -eps * math.log(s)
    for i in range(n):
        for j in range(m):
            P[i, j] = math.exp((f[i] + g[j] - C[i, j]) / eps)
    return P


@bw.op("strangers::overwrite")
def overwrite(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """An output written several times (only the last counts), and a scratch tensor reused each row."""
    n, m = x.shape
    out = torch.zeros(n, dtype=x.dtype)
    tmp = torch.empty(m, dtype=x.dtype)
    for i in range(n):
        for j in range(m):
            tmp[j] = x[i, j] * w[j]
            out[i] = tmp[j]
        for j in range(m):
            out[i] += tmp[j] * tmp[(j + 1) % m]
    return out


@bw.op("strangers::ring")
def ring(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """Echo with a ring buffer (list indexed modulo)."""
    out = torch.empty_like(x)
    for c in range(x.shape[0]):
        buf = [0.0] * 3
        for t in range(x.shape[1]):
            v = x[c, t] + a[c] * buf[t % 3]
            buf[t % 3] = v * v
            out[c, t] = v
    return out


@bw.op("strangers::ray_march")
def ray_march(x: torch.Tensor, limit: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Ray marching: transmittance, early stop."""
    n, T = x.shape
    out = torch.zeros(n, dtype=x.dtype)
    cnt = torch.zeros(n, dtype=torch.int32)
    for i in range(n):
        tr = 1.0
        for t in range(T):
            a = 1 - math.exp(-x[i, t])
            out[i] += tr * a * (t + 1)
            tr *= 1 - a
            cnt[i] += 1
            if tr < limit:
                break
        else:
            out[i] += tr * 100
    return out, cnt


@bw.op("strangers::viterbi")
def viterbi(e: torch.Tensor, A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Best score and path: back pointers are integers."""
    T, S = e.shape
    d = torch.empty((T, S), dtype=e.dtype)
    bp = torch.zeros((T, S), dtype=torch.int64)
    path = torch.zeros(T, dtype=torch.int64)
    score = torch.empty(1, dtype=e.dtype)
    for s in range(S):
        d[0, s] = e[0, s]
    for t in range(1, T):
        for s in range(S):
            best = -math.inf
            for p in range(S):
                v = d[t - 1, p] + A[p, s]
                if v > best:
                    best = v
                    bp[t, s] = p
            d[t, s] = best + e[t, s]
    for _ in range(1):
        k = 0
        for s in range(S):
            if d[T - 1, s] > d[T - 1, k]:
                k = s
        score[0] = d[T - 1, k]
        for t in range(T - 1, -1, -1):
            path[t] = k
            k = bp[t, k]
    return score, path


@bw.op("strangers::edit")
def edit(c: torch.Tensor, gap: torch.Tensor) -> torch.Tensor:
    """Needleman-Wunsch score in two rows that change places."""
    n, m = c.shape
    prev = torch.empty(m + 1, dtype=c.dtype)
    cur = torch.empty(m + 1, dtype=c.dtype)
    for j in range(m + 1):
        prev[j] = j * gap[0]
        cur[j] = 0.0
    for i in range(n):
        cur[0] = (i + 1) * gap[0]
        for j in range(m):
            cur[j + 1] = min(prev[j] + c[i, j], prev[j + 1] + gap[0], cur[j] + gap[0])
        prev, cur = cur, prev
    out = torch.empty(1, dtype=c.dtype)
    for _ in range(1):
        out[0] = prev[m]
    return out


@bw.op("strangers::interp")
def interp(x: torch.Tensor, xp: torch.Tensor, fp: torch.Tensor) -> torch.Tensor:
    """Piecewise linear interpolation by binary search."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        lo = 0
        hi = xp.shape[0] - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            if xp[mid] <= x[i]:
                lo = mid
            else:
                hi = mid
        t = (x[i] - xp[lo]) / (xp[hi] - xp[lo])
        out[i] = fp[lo] + t * (fp[hi] - fp[lo])
    return out


@bw.op("strangers::prange_scatter")
def prange_scatter(x: torch.Tensor, idx: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        out[idx[i]] += x[i] * x[i]


@bw.op("strangers::seidel_")
def seidel_(u: torch.Tensor, f: torch.Tensor, its: int) -> None:
    n = u.shape[0]
    for _ in range(its):
        for i in range(1, n - 1):
            u[i] = 0.5 * (u[i - 1] * u[i + 1] + f[i])


@bw.op("strangers::log_add_rows")
def log_add_rows(x: torch.Tensor) -> torch.Tensor:
    """Logarithms of the sums of rows, begun at the logarithm of zero."""
    out = torch.empty(x.shape[0], dtype=x.dtype)
    for i in range(x.shape[0]):
        a = -math.inf
        for j in range(x.shape[1]):
            a = log_add(a, x[i, j])
        out[i] = a
    return out
