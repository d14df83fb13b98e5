"""Programs as users write them: compiled, run as Python and formulated in torch, all three agree."""

# torch's stubs do not know that tensors have `divmod`:
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

import brickwork as bw


def same(op: bw.Op, expected: torch.Tensor, *arguments: object) -> None:
    """Compare an operator, its Python and what torch says."""
    compiled = op(*arguments)
    torch.testing.assert_close(compiled, op.python(*arguments))
    torch.testing.assert_close(compiled, expected)


@bw.op("programs::softmax")
def softmax(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.empty_like(x)
    for i in range(n):
        top = -math.inf
        for j in range(m):
            top = max(top, x[i, j])
        total = 0.0
        for j in range(m):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(m):
            out[i, j] /= total
    return out


def test_softmax() -> None:
    x = torch.randn(6, 37)
    same(softmax, torch.softmax(x, 1), x)
    rows, *columns = (line for line in softmax.explain(x).splitlines() if line.strip().startswith("for "))
    assert "in parallel" in rows
    assert all("vectorised" in line for line in columns)
    same(softmax, torch.softmax(x.T, 1), x.T)


@bw.op("programs::matmul_rows")
def matmul_rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, p = a.shape
    m = b.shape[1]
    out = torch.zeros((n, m), dtype=a.dtype)
    for i in range(n):
        for k in range(p):
            for j in range(m):
                out[i, j] += a[i, k] * b[k, j]
    return out


def test_a_matrix_product_by_rows_runs_in_lanes_along_its_rows() -> None:
    a, b = torch.randn(19, 7), torch.randn(7, 37)
    same(matmul_rows, a @ b, a, b)
    told = matmul_rows.explain(a, b)
    heads = [line for line in told.splitlines() if line.strip().startswith("for ")]
    assert [line.partition(": ")[2].partition(" tiles")[0] for line in heads[:2]] == ["in parallel by"] * 2
    assert "terms whose factors are packed" in heads[2]
    rows, columns, depth = heads[3:]
    assert "in parallel, 4 together, then 2" in rows
    assert "vectorised" in columns
    assert "in order" in depth
    assert "since it accumulates, and a loop around it runs in parallel" in told


@bw.op("programs::blur")
def blur(x: torch.Tensor) -> torch.Tensor:
    h, w = x.shape
    out = torch.empty_like(x)
    for i in range(h):
        for j in range(w):
            total = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    total += x[min(max(i + di, 0), h - 1), min(max(j + dj, 0), w - 1)]
            out[i, j] = total / 9
    return out


def test_blur_with_clamped_edges() -> None:
    x = torch.randn(9, 21)
    same(blur, F.avg_pool2d(F.pad(x[None, None], (1, 1, 1, 1), mode="replicate"), 3, 1)[0, 0], x)


@bw.op("programs::life")
def life(x: torch.Tensor) -> torch.Tensor:
    h, w = x.shape
    out = torch.empty_like(x)
    for i in range(h):
        for j in range(w):
            n = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    if di != 0 or dj != 0:
                        n += x[(i + di) % h, (j + dj) % w]
            out[i, j] = n == 3 or (n == 2 and x[i, j])
    return out


def test_game_of_life() -> None:
    x = torch.rand(12, 19) < 0.4
    offsets = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    n = torch.stack([x.int().roll(offset, (0, 1)) for offset in offsets]).sum(0)
    same(life, (n == 3) | ((n == 2) & x), x)


@bw.op("programs::floyd")
def floyd(start: torch.Tensor) -> torch.Tensor:
    n = start.shape[0]
    assert start.shape[1] == n
    d = torch.empty_like(start)
    for i in range(n):
        for j in range(n):
            d[i, j] = start[i, j]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def test_shortest_paths() -> None:
    d = torch.rand(13, 13)
    expected = d
    for k in range(len(d)):
        expected = torch.minimum(expected, expected[:, k : k + 1] + expected[k : k + 1])
    same(floyd, expected, d)


@bw.op("programs::sparse")
def sparse(start: torch.Tensor, column: torch.Tensor, value: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    n = len(start) - 1
    y = torch.empty(n, dtype=value.dtype)
    for i in range(n):
        total = 0.0
        for e in range(start[i], start[i + 1]):
            total += value[e] * x[column[e]]
        y[i] = total
    return y


def test_sparse_matrix_times_vector() -> None:
    dense = (torch.rand(21, 21) < 0.2) * torch.randn(21, 21)
    where = dense.nonzero()
    start = torch.cat((torch.zeros(1, dtype=torch.int64), (dense != 0).sum(1).cumsum(0)))
    x = torch.randn(21)
    same(sparse, dense @ x, start, where[:, 1].contiguous(), dense[dense != 0], x)


@bw.op("programs::divide")
def divide(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    quotient = torch.empty_like(a)
    rest = torch.empty_like(a)
    for i in range(len(a)):
        quotient[i], rest[i] = divmod(a[i], b[i])
    return quotient, rest


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.float32, torch.float64])
def test_division_floors(dtype: torch.dtype) -> None:
    a = torch.randint(-50, 50, (40,)).to(dtype)
    b = (torch.randint(1, 9, (40,)) * (torch.randint(0, 2, (40,)) * 2 - 1)).to(dtype)
    for found, expected in zip(divide(a, b), (a // b, a % b), strict=True):
        torch.testing.assert_close(found, expected)


@bw.op("programs::search")
def search(table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(x), dtype=torch.int64)
    for i in range(len(x)):
        low = 0
        high = len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < x[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


def test_binary_search() -> None:
    table, x = torch.arange(40.0).sqrt(), torch.rand(37) * 7
    same(search, torch.searchsorted(table, x), table, x)


@bw.op("programs::attention")
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads, length, width = q.shape
    out = torch.zeros_like(q)
    for b in range(heads):
        for i in range(length):
            top = -math.inf
            total = 0.0
            for j in range(i + 1):
                s = 0.0
                for d in range(width):
                    s += q[b, i, d] * k[b, j, d]
                s /= math.sqrt(width)
                new = max(top, s)
                scale = math.exp(top - new)
                p = math.exp(s - new)
                total = total * scale + p
                for d in range(width):
                    out[b, i, d] = out[b, i, d] * scale + p * v[b, j, d]
                top = new
            for d in range(width):
                out[b, i, d] /= total
    return out


def test_causal_attention() -> None:
    q, k, v = torch.randn(3, 2, 9, 20)
    same(attention, F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    assert attention.explain(q, k, v).count("vectorised") == 3


@bw.op("programs::mandelbrot")
def mandelbrot(h: int, w: int, limit: int) -> torch.Tensor:
    out = torch.empty((h, w), dtype=torch.int32)
    for i in range(h):
        for j in range(w):
            a, b, n = 0.0, 0.0, 0
            while n < limit and a * a + b * b <= 4:
                a, b = a * a - b * b + j / w * 3 - 2, 2 * a * b + i / h * 2 - 1
                n += 1
            out[i, j] = n
    return out


def test_mandelbrot() -> None:
    assert torch.equal(mandelbrot(9, 21, 20), mandelbrot.python(9, 21, 20))


@bw.op("programs::sort_rows")
def sort_rows(x: torch.Tensor) -> None:
    for row in range(x.shape[0]):
        for i in range(1, x.shape[1]):
            value = x[row, i]
            j = i - 1
            while j >= 0 and x[row, j] > value:
                x[row, j + 1] = x[row, j]
                j -= 1
            x[row, j + 1] = value


@pytest.mark.parametrize("strided", [False, True])
def test_insertion_sort_in_place(*, strided: bool) -> None:
    x = torch.randn(18, 24)[::2, ::3] if strided else torch.randn(18, 8)
    expected = x.sort(1).values
    sort_rows(x)
    assert torch.equal(x, expected)


@bw.op("programs::edit_distance")
def edit_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, m = len(a), len(b)
    d = torch.empty((n + 1, m + 1), dtype=torch.int32)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(n):
        for j in range(m):
            cost = 0 if a[i] == b[j] else 1
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + cost)
    return d


def test_edit_distance() -> None:
    kitten, sitting = (torch.tensor([ord(letter) for letter in word]) for word in ("kitten", "sitting"))
    found = edit_distance(kitten, sitting)
    assert torch.equal(found, edit_distance.python(kitten, sitting))
    assert found[-1, -1] == 3


@bw.op("programs::walk")
def walk(n: int, steps: int) -> torch.Tensor:
    out = torch.empty((n, steps))
    for i in range(n):
        place = 0.0
        for t in range(steps):
            place += bw.randn()
            out[i, t] = place
    return out


def test_random_walk() -> None:
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(3)
    first, second = walk(19, 7), walk(19, 7)
    torch.default_generator.manual_seed(3)
    assert torch.equal(first, walk(19, 7))
    torch.default_generator.set_state(before)
    assert not torch.equal(first, second)


@bw.op("programs::pool")
def pool(x: torch.Tensor, k: int, step: int) -> torch.Tensor:
    assert k > 0
    assert step > 0
    h, w = x.shape
    assert h >= k
    assert w >= k
    out = torch.empty(((h - k) // step + 1, (w - k) // step + 1), dtype=x.dtype)
    for i, j in bw.ndrange(out.shape[0], out.shape[1]):
        total = 0.0
        for di, dj in bw.ndrange(k, k):
            total += x[i * step + di, j * step + dj]
        out[i, j] = total / (k * k)
    return out


def test_a_guard_that_cannot_hold_is_not_asked_for() -> None:
    x = torch.randn(9, 21)
    same(pool, F.avg_pool2d(x[None], 3, 2)[0], x, 3, 2)
    assert "k >= (1 + x.shape" not in pool.explain(x, 3, 2)
