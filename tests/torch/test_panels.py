"""Contractions in packed panels give what float64 gives: types, strides, shared memory, gradients, and large sizes."""

import pytest
import torch

import brickwork as bw

Tensor = torch.Tensor
OPTIMISED = True


@bw.op
def product(a: Tensor, b: Tensor) -> Tensor:
    n, p = a.shape
    q, m = b.shape
    assert p == q
    out = torch.empty(n, m, dtype=a.dtype)
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


@bw.op
def added(a: Tensor, b: Tensor, out: Tensor) -> None:
    n, p = a.shape
    q, m = b.shape
    assert p == q
    assert out.shape[0] == n
    assert out.shape[1] == m
    for k in range(p):
        for i in range(n):
            for j in range(m):
                out[i, j] += a[i, k] * b[k, j]


@bw.op
def convolved(x: Tensor, w: Tensor) -> Tensor:
    n, c, h, v = x.shape
    o, d, r, t = w.shape
    assert c == d
    out = torch.empty(n, o, h, v, dtype=x.dtype)
    for g in range(n):
        for f in range(o):
            for i in range(h):
                for j in range(v):
                    s = 0.0
                    for e in range(c):
                        for a in range(r):
                            for b in range(t):
                                y = i + a - 1
                                z = j + b - 1
                                if 0 <= y < h and 0 <= z < v:
                                    s += x[g, e, y, z] * w[f, e, a, b]
                    out[g, f, i, j] = s
    return out


def whole(*sizes, dtype=torch.float32):
    return torch.randint(-4, 5, sizes).to(dtype)


SIZES = [(64, 64, 64), (65, 97, 67), (168, 512, 256), (169, 513, 257), (337, 70, 300), (71, 1100, 64)]


@pytest.mark.parametrize(("n", "m", "p"), SIZES)
def test_sizes_around_tiles(n, m, p):
    a, b = whole(n, p), whole(p, m)
    assert torch.equal(product(a, b), a @ b)
    out = whole(n, m)
    expected = out + a @ b
    added(a, b, out)
    assert torch.equal(out, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int32])
def test_types(dtype):
    a, b = whole(66, 70, dtype=dtype), whole(70, 129, dtype=dtype)
    assert torch.equal(product(a, b).double(), (a.double() @ b.double()).to(dtype).double())


def test_strides():
    a, b = whole(70, 90), whole(90, 130)
    rows = a, a.t().contiguous().t(), whole(70, 180)[:, ::2], whole(1, 90).expand(70, 90), whole(90, 70).t()
    columns = b, b.t().contiguous().t(), whole(90, 260)[:, 1::2], whole(90, 1).expand(90, 130)
    for one, other in (
        *((one, b) for one in rows),
        *((a, other) for other in columns[1:]),
        *zip(rows[1:], columns[1:]),
    ):
        assert torch.equal(product(one, other), one @ other)


def test_a_result_that_is_an_operand_too():
    a, b = whole(64, 64), (whole(64, 64) == 4).float()
    rows, factors = a.tolist(), b.tolist()
    for k in range(64):
        for row in rows:
            for j in range(64):
                row[j] += row[k] * factors[k][j]
    added(a, b, a)
    assert torch.equal(a, torch.tensor(rows))


def test_sums_are_as_exact_as_in_the_order_of_the_source():
    a, b = torch.randn(70, 1000), torch.randn(1000, 80)
    sums = torch.zeros(70, 80)
    for k in range(1000):
        sums = torch.addcmul(sums.double(), a[:, k : k + 1].double(), b[k : k + 1].double()).float()
    assert torch.equal(product(a, b), sums)


def test_gradients():
    a, b = whole(70, 80).requires_grad_(), whole(80, 90).requires_grad_()
    g = whole(70, 90)
    found = torch.autograd.grad(product(a, b), (a, b), g)
    assert torch.equal(found[0], g @ b.detach().t())
    assert torch.equal(found[1], a.detach().t() @ g)


def test_convolutions_and_their_gradients():
    x, w = whole(2, 7, 11, 9).requires_grad_(), whole(65, 7, 3, 3).requires_grad_()
    expected = torch.nn.functional.conv2d(x, w, padding=1)
    found = convolved(x, w)
    assert torch.equal(found, expected)
    g = whole(*found.shape)
    for one, other in zip(torch.autograd.grad(found, (x, w), g), torch.autograd.grad(expected, (x, w), g), strict=True):
        assert torch.equal(one, other)
