"""Layers, cells and steps of an optimiser, as plain loops."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

import brickwork as bw
from benchmarks.aten.pair import Pair


@bw.op("aten_loops::depthwise")
def depthwise(x: Tensor, w: Tensor) -> Tensor:
    """Return a convolution of each channel with its own 3 x 3 weights."""
    n, c, h, wd = x.shape
    out = torch.empty_like(x)
    for b in range(n):
        for k in range(c):
            for i in range(h):
                for j in range(wd):
                    s = 0.0
                    for p in range(3):
                        for q in range(3):
                            y, z = i + p - 1, j + q - 1
                            if 0 <= y < h and 0 <= z < wd:
                                s += x[b, k, y, z] * w[k, p, q]
                    out[b, k, i, j] = s
    return out


@bw.op("aten_loops::conv1d_t")
def conv1d_t(x: Tensor, w: Tensor) -> Tensor:
    """Return a transposed convolution with a stride of 2."""
    n, c, t = x.shape
    o, k = w.shape[1], w.shape[2]
    out = x.new_zeros(n, o, (t - 1) * 2 + k)
    for b in range(n):
        for i in range(c):
            for p in range(t):
                for q in range(o):
                    for d in range(k):
                        out[b, q, 2 * p + d] += x[b, i, p] * w[i, q, d]
    return out


@bw.op("aten_loops::bmm_tn")
def bmm_tn(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of transposed matrices with matrices."""
    n, k, m = a.shape
    p = b.shape[2]
    out = a.new_zeros(n, m, p)
    for q in range(n):
        for i in range(m):
            for t in range(k):
                for j in range(p):
                    out[q, i, j] += a[q, t, i] * b[q, t, j]
    return out


@bw.op("aten_loops::addmv")
def addmv(c: Tensor, a: Tensor, x: Tensor) -> Tensor:
    """Return c plus a matrix times a vector."""
    y = torch.empty_like(c)
    for i in range(a.shape[0]):
        y[i] = c[i]
        for j in range(a.shape[1]):
            y[i] += a[i, j] * x[j]
    return y


@bw.op("aten_loops::prelu")
def prelu(x: Tensor, a: Tensor) -> Tensor:
    """Return x where it is positive, else its multiple by channel."""
    out = torch.empty_like(x)
    n, c, h, w = x.shape
    for b in range(n):
        for k in range(c):
            for i in range(h):
                for j in range(w):
                    v = x[b, k, i, j]
                    out[b, k, i, j] = v if v > 0 else a[k] * v
    return out


@bw.op("aten_loops::glu")
def glu(x: Tensor) -> Tensor:
    """Return the first half of rows, gated by the second."""
    d = x.shape[1] // 2
    out = x.new_empty(x.shape[0], d)
    for i in range(x.shape[0]):
        for j in range(d):
            out[i, j] = x[i, j] / (1.0 + math.exp(-x[i, d + j]))
    return out


@bw.op("aten_loops::gelu_tanh")
def gelu_tanh(x: Tensor) -> Tensor:
    """Return the tanh approximation of x times its normal distribution."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v = x[i]
        out[i] = 0.5 * v * (1 + math.tanh(0.7978845608028654 * (v + 0.044715 * v**3)))
    return out


@bw.op("aten_loops::cross")
def cross(a: Tensor, b: Tensor) -> Tensor:
    """Return cross products."""
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        out[i, 0] = a[i, 1] * b[i, 2] - a[i, 2] * b[i, 1]
        out[i, 1] = a[i, 2] * b[i, 0] - a[i, 0] * b[i, 2]
        out[i, 2] = a[i, 0] * b[i, 1] - a[i, 1] * b[i, 0]
    return out


@bw.op("aten_loops::addcdiv_lerp")
def addcdiv_lerp(a: Tensor, b: Tensor, c: Tensor, t: float) -> Tensor:
    """Return a + b / 2c, then between that and a."""
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s = a[i, j] + 0.5 * b[i, j] / c[i, j]
            out[i, j] = s + t * (a[i, j] - s)
    return out


@bw.op("aten_loops::dropout_mask")
def dropout_mask(x: Tensor, keep: Tensor, p: float) -> Tensor:
    """Return what is kept, scaled; 0 elsewhere."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if keep[i, j]:
                out[i, j] = x[i, j] / (1 - p)
    return out


@bw.op("aten_loops::lstm_cell")
def lstm_cell(g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the output and the state of an LSTM cell."""
    n, d = c.shape
    h, cn = torch.empty_like(c), torch.empty_like(c)
    for i in range(n):
        for j in range(d):
            gi = 1 / (1 + math.exp(-g[i, j]))
            gf = 1 / (1 + math.exp(-g[i, d + j]))
            gg = math.tanh(g[i, 2 * d + j])
            go = 1 / (1 + math.exp(-g[i, 3 * d + j]))
            v = gf * c[i, j] + gi * gg
            cn[i, j] = v
            h[i, j] = go * math.tanh(v)
    return h, cn


@bw.op("aten_loops::gru_cell")
def gru_cell(gi: Tensor, gh: Tensor, h: Tensor) -> Tensor:
    """Return the state of a gated recurrent unit."""
    b, d = h.shape
    out = torch.empty_like(h)
    for i in range(b):
        for j in range(d):
            rr = 1 / (1 + math.exp(-(gi[i, j] + gh[i, j])))
            z = 1 / (1 + math.exp(-(gi[i, d + j] + gh[i, d + j])))
            n = math.tanh(gi[i, 2 * d + j] + rr * gh[i, 2 * d + j])
            out[i, j] = (1 - z) * n + z * h[i, j]
    return out


@bw.op("aten_loops::adam")
def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return parameters and both moments after a step of Adam."""
    pn, mn, vn = torch.empty_like(p), torch.empty_like(p), torch.empty_like(p)
    for i in range(p.shape[0]):
        a = 0.9 * m[i] + 0.1 * g[i]
        b = 0.999 * v[i] + 0.001 * g[i] ** 2
        mn[i], vn[i] = a, b
        pn[i] = p[i] * (1 - 1e-5) - 1e-3 * a / (math.sqrt(b) + 1e-8)
    return pn, mn, vn


def _lstm_cell(gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    i, f, z, o = gates.chunk(4, 1)
    new = f.sigmoid() * state + i.sigmoid() * z.tanh()
    return o.sigmoid() * new.tanh(), new


def _gru_cell(of_input: Tensor, of_state: Tensor, state: Tensor) -> Tensor:
    input_reset, input_update, input_new = of_input.chunk(3, 1)
    state_reset, state_update, state_new = of_state.chunk(3, 1)
    reset, update = (input_reset + state_reset).sigmoid(), (input_update + state_update).sigmoid()
    new = (input_new + reset * state_new).tanh()
    return (1 - update) * new + update * state


def _adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = torch.lerp(m, g, 0.1), 0.999 * v + 0.001 * g * g
    return p * (1 - 1e-5) - 1e-3 * a / (b.sqrt() + 1e-8), a, b


PAIRS = (
    Pair(
        depthwise,
        lambda x, w: functional.conv2d(x, w[:, None], padding=1, groups=x.shape[1]),
        lambda s, n: (s.normal(n, 256, 56, 56), s.normal(256, 3, 3)),
        (1, 2, 32),
        gradient=(0, 1),
    ),
    Pair(
        conv1d_t,
        lambda x, w: functional.conv_transpose1d(x, w, stride=2),
        lambda s, n: (s.normal(n, 128, 2048), s.normal(128, 64, 4)),
        (1, 2, 16),
        gradient=(0, 1),
    ),
    Pair(
        bmm_tn,
        lambda a, b: torch.bmm(a.transpose(1, 2), b),
        lambda s, n: (s.normal(n, 512, 256), s.normal(n, 512, 256)),
        (1, 4, 64),
        gradient=(0, 1),
    ),
    Pair(
        addmv,
        torch.addmv,
        lambda s, n: (s.normal(n), s.normal(n, 8192), s.normal(8192)),
        (4, 1024, 8192),
        gradient=(0, 1, 2),
    ),
    Pair(
        prelu,
        functional.prelu,
        lambda s, n: (s.normal(n, 256, 56, 56), s.uniform(256)),
        (1, 4, 32),
        gradient=(0, 1),
    ),
    Pair(glu, lambda x: functional.glu(x, 1), lambda s, n: (s.normal(n, 4096),), (4, 1024, 16384), gradient=(0,)),
    Pair(
        gelu_tanh,
        lambda x: functional.gelu(x, approximate="tanh"),
        lambda s, n: (s.normal(n, dtype=torch.bfloat16),),
        (1000, 4_000_000, 50_000_000),
        gradient=(0,),
    ),
    Pair(
        cross,
        lambda a, b: torch.cross(a, b, dim=1),
        lambda s, n: (s.normal(n, 3), s.normal(n, 3)),
        (100, 400_000, 4_000_000),
        gradient=(0, 1),
    ),
    Pair(
        addcdiv_lerp,
        lambda a, b, c, t: torch.lerp(torch.addcdiv(a, b, c, value=0.5), a, t),
        lambda s, n: (s.normal(n, 4096), s.normal(n, 4096), s.uniform(n, 4096, low=1, high=2), 0.3),
        (4, 512, 4000),
        gradient=(0, 1, 2),
    ),
    Pair(
        dropout_mask,
        lambda x, keep, p: torch.where(keep, x / (1 - p), torch.zeros((), device=x.device)),
        lambda s, n: (s.normal(n, 4096), s.uniform(n, 4096) > 0.5, 0.5),
        (4, 1024, 8192),
        gradient=(0,),
    ),
    Pair(
        lstm_cell,
        _lstm_cell,
        lambda s, n: (s.normal(n, 4096), s.normal(n, 1024)),
        (4, 1024, 8192),
        gradient=(0, 1),
    ),
    Pair(
        gru_cell,
        _gru_cell,
        lambda s, n: (s.normal(n, 3072), s.normal(n, 3072), s.normal(n, 1024)),
        (4, 1024, 8192),
        gradient=(0, 1, 2),
    ),
    Pair(
        adam,
        _adam,
        lambda s, n: (s.normal(n), s.normal(n), s.normal(n), s.uniform(n)),
        (1000, 2_000_000, 20_000_000),
    ),
)
"""Layers of torch, and what is done with their parameters."""
