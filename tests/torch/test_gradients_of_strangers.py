"""Gradients of operators as a newcomer writes them, second ones and tangents, beside formulas of torch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional

from support.kernels_strangers import (
    batchnorm,
    cross_entropy,
    csr,
    cumprod,
    edit,
    elman,
    euler,
    focal,
    guarded,
    hmm,
    horner,
    interp,
    kalman,
    log_add_rows,
    mandel,
    momentum_,
    newton,
    overwrite,
    prange_scatter,
    ray_march,
    ring,
    roots,
    segment_softmax,
    seidel_,
    sinkhorn,
    soft_dtw,
    stack_lists,
    thomas,
    top1gather,
    triplet,
    trisolve_,
    viterbi,
    wkv4,
)
from support.sweep import sampled

pytestmark = pytest.mark.filterwarnings("ignore")


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def positive(*shape):
    return torch.rand(*shape, dtype=torch.float64) + 0.1


def integers(*items):
    return torch.tensor(items)


def torch_wkv4(w, u, k, v):
    rows = []
    for t in range(k.shape[1]):
        weights = [torch.exp((t - 1 - i) * w + k[:, i]) for i in range(t)] + [torch.exp(u + k[:, t])]
        rows.append(sum(e * v[:, i] for i, e in enumerate(weights)) / sum(weights))
    return torch.stack(rows, 1)


def torch_focal(x, y, gamma, alpha):
    p = torch.where(y > 0.5, x.sigmoid(), 1 - x.sigmoid())
    return -torch.where(y > 0.5, alpha, 1 - alpha) * (1 - p) ** gamma * p.log()


def torch_soft_dtw(d, gamma):
    best = {(0, 0): d.new_zeros(())}
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            before = [best[at] for at in ((i, j), (i, j + 1), (i + 1, j)) if at in best]
            best[i + 1, j + 1] = d[i, j] - gamma * torch.logsumexp(-torch.stack(before) / gamma, 0)
    return best[d.shape][None]


def torch_csr(ptr, col, val, x):
    rows = torch.repeat_interleave(torch.arange(ptr.shape[0] - 1), ptr.diff())
    return val.new_zeros(ptr.shape[0] - 1).index_add(0, rows, val * x[col])


def torch_segment_softmax(x, seg, n):
    e = x.exp()
    return e / x.new_zeros(n).index_add(0, seg, e)[seg]


def torch_kalman(z, q, r):
    x, p, loss, xs = 0.0, 1.0, 0.0, []
    for t in range(z.shape[0]):
        p = p + q[0]
        s = p + r[0]
        e = z[t] - x
        x = x + p / s * e
        p = p * (1 - p / s)
        xs.append(x)
        loss = loss + 0.5 * (e * e / s + s.log())
    return torch.stack(xs), loss[None]


def torch_mandel(c, most):
    rows = []
    for a, b in c:
        x, y, k = 0 * a, 0 * b, 0
        while k < most and x * x + y * y <= 4:
            x, y, k = x * x - y * y + a, 2 * x * y + b, k + 1
        rows.append(k - torch.log2((x * x + y * y).clamp(min=1e-9)))
    return torch.stack(rows)


def torch_trisolve(L, b):
    return torch.linalg.solve_triangular(L, b[:, None], upper=False)[:, 0]


def torch_thomas(a, b, c, d):
    return torch.linalg.solve(torch.diag(b) + torch.diag(a[1:], -1) + torch.diag(c[:-1], 1), d)


def torch_triplet(x, y, margin):
    s = ((x[:, None] - x) ** 2).sum(-1).add(1e-9).sqrt()
    same = y[:, None] == y
    far = torch.where(same & ~torch.eye(len(y), dtype=torch.bool), s, 0.0).amax(1)
    return functional.relu(far - torch.where(same, math.inf, s).amin(1) + margin).mean()[None]


def torch_guarded(x, y):
    left = torch.where(y != 0, x / torch.where(y != 0, y, 1.0), 0.0)
    inside = torch.where(x > 0, x, 1.0)
    return left + torch.where(x > 0, inside.sqrt() + inside.log(), x)


def torch_roots(a, b, c):
    rows = []
    for x, y, z in zip(a, b, c, strict=True):
        d = y * y - 4 * x * z
        if d < 0:
            rows.append(0 * x)
        elif x > 0:
            rows.append((d.sqrt() - y) / (2 * x))
        else:
            rows.append(next((k * y for k in range(3) if k * x < -1), z + 0))
    return torch.stack(rows)


def torch_hmm(pi, A, e):
    state = pi * e[0]
    for row in e[1:]:
        state = (state @ A) * row
    return state.sum().log()[None]


def torch_elman(x, U, h0):
    rows, h = [], h0
    for t in range(x.shape[1]):
        h = (x[:, t] + h @ U.t()).tanh()
        rows.append(h)
    return torch.stack(rows, 1)


def torch_euler(x, A, h, steps):
    rows = [x]
    for _ in range(steps):
        rows.append(rows[-1] + h * (A @ rows[-1]).tanh())
    return torch.stack(rows)


def torch_sinkhorn(C, eps, its):
    g = C.new_zeros(C.shape[1])
    for _ in range(its):
        f = -eps * ((g - C) / eps).logsumexp(1)
        g = -eps * ((f[:, None] - C) / eps).logsumexp(0)
    return ((f[:, None] + g - C) / eps).exp()


def torch_overwrite(x, w):
    t = x * w
    return t[:, -1] + (t * t.roll(-1, 1)).sum(1)


def torch_ring(x, a):
    rows = []
    for t in range(x.shape[1]):
        rows.append(x[:, t] + (a * rows[t - 3] ** 2 if t >= 3 else 0))
    return torch.stack(rows, 1)


def torch_ray_march(x, limit):
    rows = []
    for row in x:
        left, total = 1.0, 0.0
        for t, v in enumerate(row):
            total = total + left * (1 - torch.exp(-v)) * (t + 1)
            left = left * torch.exp(-v)
            if left < limit:
                break
        else:
            total = total + left * 100
        rows.append(total)
    return torch.stack(rows)


def torch_viterbi(e, A):
    best = e[0]
    for row in e[1:]:
        best = (best[:, None] + A).amax(0) + row
    return best.max()[None]


def torch_edit(c, gap):
    n, m = c.shape
    best = {(i, j): (i + j) * gap[0] for i in range(n + 1) for j in range(m + 1) if i == 0 or j == 0}
    for i in range(n):
        for j in range(m):
            step = torch.stack([best[i, j] + c[i, j], best[i, j + 1] + gap[0], best[i + 1, j] + gap[0]])
            best[i + 1, j + 1] = step.amin()
    return best[n, m][None]


def torch_interp(x, xp, fp):
    k = (torch.searchsorted(xp.detach(), x.detach(), right=True) - 1).clamp(0, len(xp) - 2)
    return fp[k] + (x - xp[k]) / (xp[k + 1] - xp[k]) * (fp[k + 1] - fp[k])


def torch_seidel(u, f, its):
    items = list(u.unbind())
    for _ in range(its):
        for i in range(1, len(items) - 1):
            items[i] = 0.5 * (items[i - 1] * items[i + 1] + f[i])
    return torch.stack(items)


def torch_momentum(p, v, g, lr, mu):
    v = mu * v + g
    return v.square().sum(), p - lr * v, v


def torch_batchnorm(x, w, b, rm, mom):
    return functional.batch_norm(x, None, None, w, b, training=True), (1 - mom) * rm + mom * x.mean(0)


def torch_log_add_rows(x):
    return x.logsumexp(1)


def in_place(op, *places):
    """The results of an operator, and then copies of the arguments at these places as it leaves them."""

    def function(*arguments):
        values = [value * 1 if place in places else value for place, value in enumerate(arguments)]
        results = op(*values)
        return tuple(result for result in (results, *(values[place] for place in places)) if result is not None)

    return function


class Written(NamedTuple):
    """An operator, a formula of torch's, arguments, and whether second derivatives are compared."""

    op: Callable[..., Any]
    formula: Callable[..., Any]
    arguments: Callable[[], list[Any]]
    second: bool = False
    tolerance: float = 1e-7


WRITTEN = {
    "wkv4": Written(wkv4, torch_wkv4, lambda: [-positive(3), numbers(3), numbers(2, 5, 3), numbers(2, 5, 3)]),
    "cross_entropy": Written(
        cross_entropy,
        lambda x, y, s: functional.cross_entropy(x, y, label_smoothing=s),
        lambda: [numbers(5, 4), integers(0, 3, -100, 1, 1), 0.1],
    ),
    "focal": Written(focal, torch_focal, lambda: [numbers(7), (torch.rand(7) > 0.5).double(), 2.0, 0.25]),
    "soft_dtw": Written(soft_dtw, torch_soft_dtw, lambda: [positive(4, 5), 0.5]),
    "csr": Written(
        csr, torch_csr, lambda: [integers(0, 2, 2, 5), integers(1, 3, 0, 1, 1), numbers(5), numbers(4)], second=True
    ),
    "segment_softmax": Written(
        segment_softmax, torch_segment_softmax, lambda: [numbers(7), integers(0, 2, 0, 2, 2, 0, 3), 4]
    ),
    "cumprod": Written(
        cumprod,
        lambda x: torch.stack([x[:, : j + 1].prod(1) for j in range(x.shape[1])], 1),
        lambda: [torch.tensor([[1.5, 0, 2], [0, 0, 3], [-1, 2, 0]], dtype=torch.float64)],
        second=True,
    ),
    "top1gather": Written(
        top1gather, lambda s, v: s.amax(1).sigmoid()[:, None] * v, lambda: [numbers(4, 3), numbers(4, 2)]
    ),
    "kalman": Written(kalman, torch_kalman, lambda: [numbers(6), positive(1), positive(1)]),
    "newton": Written(newton, lambda a: a ** (1 / 3), lambda: [4 * positive(5)], second=True, tolerance=1e-6),
    "mandel": Written(mandel, torch_mandel, lambda: [numbers(6, 2), 8]),
    "trisolve": Written(
        in_place(trisolve_, 1), torch_trisolve, lambda: [numbers(4, 4).tril() + 3 * torch.eye(4), numbers(4)]
    ),
    "thomas": Written(thomas, torch_thomas, lambda: [numbers(5), numbers(5) + 5, numbers(5), numbers(5)]),
    "triplet": Written(triplet, torch_triplet, lambda: [numbers(6, 2), integers(0, 1, 0, 1, 2, 2), 0.3]),
    "guarded": Written(
        guarded,
        torch_guarded,
        lambda: [
            torch.tensor([1, -1, 0, 2, 0], dtype=torch.float64),
            torch.tensor([2, 0, 0, 0, 3], dtype=torch.float64),
        ],
        second=True,
    ),
    "stack_lists": Written(
        lambda a, b, w: stack_lists([a, b], w),
        lambda a, b, w: w[0] * a * a + w[1] * b * b,
        lambda: [numbers(4), numbers(4), numbers(2)],
    ),
    "roots": Written(roots, torch_roots, lambda: [numbers(20), numbers(20), numbers(20)]),
    "momentum": Written(
        in_place(momentum_, 0, 1), torch_momentum, lambda: [numbers(5), numbers(5), numbers(5), 0.1, 0.9], second=True
    ),
    "hmm": Written(hmm, torch_hmm, lambda: [positive(3), positive(3, 3), positive(4, 3)]),
    "horner": Written(
        horner, lambda c, x: sum(c[k] * x**k for k in range(c.shape[0])), lambda: [numbers(4), numbers(5)]
    ),
    "batchnorm": Written(
        in_place(batchnorm, 3), torch_batchnorm, lambda: [numbers(5, 3), numbers(3), numbers(3), numbers(3), 0.1]
    ),
    "elman": Written(elman, torch_elman, lambda: [numbers(2, 4, 3), numbers(3, 3), numbers(2, 3)]),
    "ring": Written(ring, torch_ring, lambda: [0.5 * numbers(2, 9), numbers(2)]),
    "ray_march": Written(ray_march, torch_ray_march, lambda: [positive(5, 6), 0.05]),
    "viterbi": Written(viterbi, torch_viterbi, lambda: [numbers(4, 3), numbers(3, 3)]),
    "edit": Written(edit, torch_edit, lambda: [2 * positive(4, 3), positive(1)]),
    "interp": Written(interp, torch_interp, lambda: [4 * positive(5) / 1.1, torch.arange(5.0).double(), numbers(5)]),
    "prange_scatter": Written(
        in_place(prange_scatter, 2),
        lambda x, index, out: out.index_add(0, index, x * x),
        lambda: [numbers(6), integers(0, 1, 1, 3, 0, 0), numbers(4)],
    ),
    "seidel": Written(in_place(seidel_, 0), torch_seidel, lambda: [numbers(5), numbers(5), 3]),
    "euler": Written(euler, torch_euler, lambda: [numbers(3), numbers(3, 3), 0.2, 4], second=True),
    "sinkhorn": Written(sinkhorn, torch_sinkhorn, lambda: [numbers(2, 3), 0.7, 1], second=True),
    "log_add_rows": Written(
        log_add_rows,
        torch_log_add_rows,
        lambda: [torch.tensor([[1, -math.inf, 2], [-math.inf, -math.inf, 3]], dtype=torch.float64)],
        second=True,
    ),
    "overwrite": Written(overwrite, torch_overwrite, lambda: [numbers(3, 4), numbers(4)], second=True),
}


def of_floats(function, arguments):
    """Return an operator as a function of its float tensors, and these."""
    places = [place for place, value in enumerate(arguments) if torch.is_tensor(value) and value.is_floating_point()]

    def call(*tensors):
        values = [*arguments]
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        results = function(*values)
        return [
            result for result in (results if isinstance(results, tuple) else (results,)) if result.is_floating_point()
        ]

    return call, [arguments[place].clone().requires_grad_() for place in places]


def across(tensor):
    """Return a tensor that is not contiguous, if it has two dimensions or more."""
    return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor


def derivatives(function, arguments, *, second):
    """Return results, gradients and tangents, and what the gradients' gradients are."""
    call, tensors = of_floats(function, arguments)
    torch.manual_seed(2)
    results = [result for result in call(*tensors) if result.requires_grad]
    grads = [
        torch.randn_like(result).mT.contiguous().mT if result.ndim > 1 else torch.randn_like(result)
        for result in results
    ]
    first = torch.autograd.grad(results, tensors, grads, create_graph=second, materialize_grads=True)
    found = [*results, *first]
    directions = tuple(torch.randn_like(tensor) for tensor in tensors)
    if second:
        total = sum((gradient * v).sum() for gradient, v in zip(first, directions, strict=True))
        found += torch.autograd.grad(total, tensors, materialize_grads=True)
    plain = tuple(tensor.detach() for tensor in tensors)
    found += torch.func.jvp(lambda *values: tuple(call(*values)), plain, directions)[1]
    return found


@pytest.mark.parametrize("name", sampled(WRITTEN, 3))
def test_derivatives(name):
    case = WRITTEN[name]
    torch.manual_seed(1)
    arguments = case.arguments()
    ours = derivatives(case.op, arguments, second=case.second)
    theirs = derivatives(case.formula, arguments, second=case.second)
    torch.testing.assert_close(ours, theirs, rtol=case.tolerance, atol=case.tolerance)
