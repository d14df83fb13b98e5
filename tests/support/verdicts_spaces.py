"""Programs of the verdict table: shapes of nests, indices with `//` and `%`, guards, steps and directions."""

from __future__ import annotations

from support.verdict_table import Tensor, verdict

# ---------------------------------------------------------------- triangular and skewed nests


@verdict("pp", a=2)
def lower_triangle(a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = 0.0


@verdict("pp", a=2)
def mirror_triangle(a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[j, i] = a[i, j]


@verdict("ppr", c=2, a=2)
def symmetric_update(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


@verdict("sr", a=2)
def solve_lower(x: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]


@verdict("spp", a=2)
def eliminate(a: Tensor) -> None:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@verdict("sppp", a=2)
def decompose(a: Tensor) -> None:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@verdict("pp", a=2)
def skewed(a: Tensor) -> None:
    n = a.shape[0]
    for t in range(2 * n - 1):
        for i in range(max(0, t - n + 1), min(n, t + 1)):
            a[i, t - i] = a[i, t - i] + 1.0


@verdict("sp", a=2)
def diagonals(a: Tensor) -> None:
    n, m = a.shape
    for d in range(2, n + m - 1):
        for i in range(max(1, d - m + 1), min(n, d)):
            a[i, d - i] = max(a[i - 1, d - i], a[i, d - i - 1])


@verdict("spr", cost=2)
def matrix_chain(cost: Tensor, p: Tensor) -> None:
    n = cost.shape[0]
    for length in range(1, n):
        for i in range(n - length):
            best = 1e30
            for k in range(i, i + length):
                best = min(best, cost[i, k] + cost[k + 1, i + length] + p[i] * p[k + 1] * p[i + length + 1])
            cost[i, i + length] = best


# ---------------------------------------------------------------- floor and modulo


@verdict("p", a=2)
def unravel(a: Tensor) -> None:
    for i in range(a.shape[0] * 8):
        a[i // 8, i % 8] = i


@verdict("p", a=2)
def unravel_by_size(a: Tensor) -> None:
    n, m = a.shape
    for i in range(n * m):
        a[i // m, i % m] = i


@verdict("s")
def fold(a: Tensor) -> None:
    for i in range(a.shape[0] * 2):
        a[i // 2] = i


@verdict("p")
def swap_pairs(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[i] = x[i + 1 - 2 * (i % 2)]


@verdict("p")
def pairs_in_place(x: Tensor) -> None:
    for i in range(x.shape[0] // 2):
        a = x[2 * i]
        x[2 * i] = x[2 * i + 1]
        x[2 * i + 1] = a


@verdict("s")
def rotate_in_place(x: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        x[(i + 1) % n] = x[i]


@verdict("p")
def rotate(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        y[(i + 1) % n] = x[i]


@verdict("sp")
def butterflies(x: Tensor) -> None:
    for _ in range(10):
        for i in range(512):
            j = i
            x[2 * j] = x[2 * j] + x[2 * j + 1]


@verdict("s")
def rotate_twice(x: Tensor, y: Tensor) -> None:
    n = y.shape[0]
    for i in range(x.shape[0]):
        y[(i + 1) % n] = x[i]


@verdict("s", a=2)
def quotients_only(a: Tensor) -> None:
    n, m = a.shape
    for i in range(n * m):
        a[i // m, 0] = i


# ---------------------------------------------------------------- guards


@verdict("pp", a=2)
def guarded_triangle(a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            if j < i:
                a[j, i] = a[i, j]


@verdict("sp")
def all_but_one(a: Tensor) -> None:
    n = a.shape[0]
    for k in range(n):
        for i in range(n):
            if i != k:
                a[i] = a[i] - a[k]


@verdict("spp", a=2)
def gauss_jordan(a: Tensor) -> None:
    n = a.shape[0]
    for k in range(n):
        for i in range(n):
            if i != k:
                for j in range(k + 1, a.shape[1]):
                    a[i, j] = a[i, j] - a[i, k] * a[k, j]


@verdict("spp", d=2)
def floyd_warshall_guarded(d: Tensor) -> None:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if i != k and j != k:
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])


@verdict("pp", a=2, b=2)
def border(a: Tensor, b: Tensor) -> None:
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            if 0 < i < n - 1 and 0 < j < m - 1:
                b[i, j] = a[i - 1, j] + a[i + 1, j]


@verdict("p")
def clamp(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        left = max(i - 1, 0)
        right = min(i + 1, n - 1)
        y[i] = x[left] + x[right]


# ---------------------------------------------------------------- strides and directions


@verdict("p")
def even(x: Tensor) -> None:
    for i in range(0, x.shape[0] - 1, 2):
        x[i] = x[i + 1]


@verdict("p")
def backwards(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0] - 1, -1, -1):
        y[i] = x[x.shape[0] - 1 - i]


@verdict("p")
def reverse_in_place(x: Tensor) -> None:
    n = x.shape[0]
    for i in range(n // 2):
        a = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = a


@verdict("p")
def blocks_of_four(x: Tensor) -> None:
    for i in range(0, x.shape[0] - 3, 4):
        x[i] = x[i + 1] + x[i + 2] + x[i + 3]


@verdict("spp")
def red_black(x: Tensor, steps: int) -> None:
    n = x.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1, 2):
            x[i] = (x[i - 1] + x[i + 1]) / 2
        for i in range(2, n - 1, 2):
            x[i] = (x[i - 1] + x[i + 1]) / 2


@verdict("spp", x=2)
def red_black_plane(x: Tensor, steps: int) -> None:
    n, m = x.shape
    for colour in range(2 * steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if (i + j + colour) % 2 == 0:
                    x[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4


@verdict("sp")
def odd_even_sort(x: Tensor) -> None:
    n = x.shape[0]
    for phase in range(n):
        for i in range(phase % 2, n - 1, 2):
            if x[i] > x[i + 1]:
                a = x[i]
                x[i] = x[i + 1]
                x[i + 1] = a


@verdict("sp")
def odd_even_sort_by_halves(x: Tensor) -> None:
    n = x.shape[0]
    for phase in range(n):
        for i in range(n // 2):
            j = 2 * i + phase % 2
            if j + 1 < n and x[j] > x[j + 1]:
                a = x[j]
                x[j] = x[j + 1]
                x[j + 1] = a


@verdict("pppp", x=2, out=4)
def padded_windows_in_rows(x: Tensor, out: Tensor, k: int, pad: int) -> None:
    h = x.shape[0] + 2 * pad - k + 1
    w = x.shape[1] + 2 * pad - k + 1
    assert out.shape[2] == h * w
    for p in range(k):
        for q in range(k):
            for i in range(h):
                for j in range(w):
                    y = i + p - pad
                    z = j + q - pad
                    if 0 <= y < x.shape[0] and 0 <= z < x.shape[1]:
                        out[p, q, i * w + j, 0] = x[y, z]
