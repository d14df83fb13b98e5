"""`return` inside loops of an operator, and numbers that are returned as `torch.tensor(v)`."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")


def first_above(x: torch.Tensor, v: float) -> torch.Tensor:
    for i in range(len(x)):
        if x[i] > v:
            return i
    return -1


def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """From an inner loop, with a variable that is counted before."""
    n = 1
    if len(x) == 0:
        return -2, -2, n
    for i in range(len(x)):
        n += 1
        for j in range(i):
            n += 10
            if x[i] > x[j] + 1:
                return i, torch.tensor(j), n
    return -1, -1, n


def jacobi(a: torch.Tensor, b: torch.Tensor, tolerance: float, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor that each return gives, and how many steps it took."""
    x = torch.zeros_like(b)
    for step in range(most):
        error = 0.0
        for i in range(len(b)):
            new = (b[i] - sum(a[i, j] * x[j] for j in range(len(b)) if j != i)) / a[i, i]
            error = max(error, abs(new - x[i]))
            x[i] = new
        if error < tolerance:
            return x, step
    return x, most


def until(x: torch.Tensor, limit: float) -> torch.Tensor:
    i, total = 0, 0.0
    while True:
        if i == len(x):
            return total
        total += x[i]
        if total > limit:
            return total * 2
        i += 1


def determinant(x: torch.Tensor) -> torch.Tensor:
    """Of lists alone, once they are filled."""
    n = len(x)
    a = [[x[i, j] for j in range(n)] for i in range(n)]
    det = 1.0
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(a[r][c]))
        if a[p][c] == 0:
            return torch.tensor(0.0)
        if p != c:
            a[c], a[p] = a[p], a[c]
            det = -det
        det *= a[c][c]
        for r in range(c + 1, n):
            f = a[r][c] / a[c][c]
            for k in range(c, n):
                a[r][k] -= f * a[c][k]
    return torch.tensor(det)


def raising(x: torch.Tensor) -> torch.Tensor:
    for i in range(len(x)):
        if x[i] > 0:
            return x[i]
    raise ValueError(f"none of {len(x)} is positive")


def stopped(x: torch.Tensor, out: torch.Tensor) -> None:
    """Nothing is returned."""
    for i in range(len(x)):
        if x[i] < 0:
            return
        out[i] = x[i] * 2
    out[0] += 100


def by_rank(x: torch.Tensor) -> torch.Tensor:
    if x.dim() > 1:
        return torch.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 1:
            return i
    return -1


def ways(n: int) -> torch.Tensor:
    counts = [0] * (n + 1)
    counts[0] = 1
    for coin in (1, 2, 5):
        for k in range(coin, n + 1):
            counts[k] += counts[k - coin]
    return torch.tensor(counts[n])


def ratio(n: int) -> torch.Tensor:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return torch.tensor(a / b)


def summary(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    total, best, positive = 0.0, 0, True
    for i, v in enumerate(x):
        total += v
        if v > x[best]:
            best = i
        positive = positive and v > 0
    return torch.tensor(total / len(x), dtype=torch.float64), torch.tensor(best), torch.tensor(positive)


X = torch.tensor([0.5, -1.0, 0.25, 2.0, 1.5])


@pytest.mark.parametrize("value", [-3.0, 0.5, 9.0])
def test_numbers(value):
    agree(first_above, X, value)
    agree(until, X, value)
    agree(first_above, X[:0], value)


@pytest.mark.parametrize("x", [X, X.flip(0), X[:1], X[:0], X.double(), X[::2]])
def test_from_inner_loops(x):
    agree(pair, x)


@pytest.mark.parametrize("most", [0, 3, 100])
def test_with_tensors(most):
    torch.manual_seed(0)
    a = torch.rand(4, 4, dtype=torch.float64) + 4 * torch.eye(4)
    agree(jacobi, a, torch.rand(4, dtype=torch.float64), 1e-6, most)


def test_of_lists():
    torch.manual_seed(0)
    agree(determinant, torch.rand(4, 4, dtype=torch.float64), plain=False)
    agree(determinant, torch.zeros(2, 2, dtype=torch.float64), plain=False)


def test_what_follows_raises():
    agree(raising, X)
    operator = bw.op("early::raising")(raising)
    with pytest.raises(ValueError, match="none of 2 is positive"):
        operator(X[1:2].repeat(2))


def test_of_nothing():
    agree(stopped, X, torch.zeros(5))
    agree(stopped, X.abs(), torch.zeros(5))


def test_behind_a_return_of_a_tensor():
    agree(by_rank, X)


def test_numbers_as_tensors():
    agree(ways, 12)
    agree(ratio, 10)
    agree(summary, X)
    for function, arguments in ((ways, (12,)), (ratio, (10,)), (summary, (X,)), (first_above, (X, 1.0))):
        operator = bw.op(f"early::{function.__name__}")(function)
        assert "host part: native" in operator.explain(*arguments)


def test_gradients():
    x = X.double().requires_grad_()
    assert torch.autograd.gradcheck(bw.op("early::raising_gradient")(raising), (x,))
    a = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(bw.op("early::determinant_gradient")(determinant), (a,))


def test_tensors_that_differ_are_refused_as_before():
    def chosen(x: torch.Tensor) -> torch.Tensor:
        u, v = torch.zeros_like(x), torch.ones_like(x)
        for i in range(len(x)):
            if x[i] > 0:
                return u
        return v

    with pytest.raises(CompileError, match="`return` inside a loop"):
        bw.op("early::chosen")(chosen)
