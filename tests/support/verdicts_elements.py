"""Programs of the verdict table: flat indices, parts of one tensor, reductions and local variables."""

from __future__ import annotations

from support.verdict_table import INDICES, Tensor, verdict

# ---------------------------------------------------------------- flattened indices


@verdict("pp")
def flat_matrix(x: Tensor, n: int, m: int) -> None:
    for i in range(n):
        for j in range(m):
            x[i * m + j] = i + j


@verdict("sp")
def flat_rows_that_overlap(x: Tensor, n: int, m: int) -> None:
    for i in range(n):
        for j in range(m + 1):
            x[i * m + j] = i + j


@verdict("sp")
def flat_rows_of_another_length(x: Tensor, n: int, m: int, l: int) -> None:
    for i in range(n):
        for j in range(m):
            x[i * l + j] = x[i * l + j] + 1.0


@verdict("pp")
def flat_and_padded(x: Tensor, n: int, m: int) -> None:
    for i in range(n):
        for j in range(m):
            x[i * (m + 2) + j + 1] = x[i * (m + 2) + j + 1] + 1.0


@verdict("pp")
def flat_rows_backwards(x: Tensor, n: int, m: int) -> None:
    for i in range(n):
        for j in range(m):
            x[(n - 1 - i) * m + m - 1 - j] = 1.0


@verdict("ppp")
def flat_cube(x: Tensor, n: int, m: int, l: int) -> None:
    for i in range(n):
        for j in range(m):
            for k in range(l):
                x[(i * m + j) * l + k] = 1.0


@verdict("pp")
def flat_with_offset(x: Tensor, n: int, m: int, offset: int) -> None:
    for i in range(n):
        for j in range(m):
            x[offset + i * m + j] = 1.0


@verdict("ppr")
def flat_product(c: Tensor, a: Tensor, b: Tensor, n: int) -> None:
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i * n + k] * b[k * n + j]
            c[i * n + j] = s


@verdict("pp")
def flat_triangle(x: Tensor, n: int) -> None:
    for i in range(n):
        for j in range(i, n):
            x[i * n + j] = 1.0


@verdict("pp")
def flat_transpose_in_place(x: Tensor, n: int) -> None:
    for i in range(n):
        for j in range(i):
            a = x[i * n + j]
            x[i * n + j] = x[j * n + i]
            x[j * n + i] = a


@verdict("spp")
def flat_heat(x: Tensor, n: int, steps: int) -> None:
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                x[(t % 2) * n * n + i * n + j] = x[(1 - t % 2) * n * n + i * n + j + 1]


@verdict("spp")
def flat_eliminate(a: Tensor, n: int) -> None:
    for k in range(n):
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                a[i * n + j] -= a[i * n + k] * a[k * n + j]


@verdict("ps")
def flat_prefix(x: Tensor, n: int, m: int) -> None:
    for i in range(n):
        for j in range(1, m):
            x[i * m + j] += x[i * m + j - 1]


@verdict("pp")
def blocks(x: Tensor, block: int) -> None:
    n = x.shape[0]
    for b in range((n + block - 1) // block):
        for i in range(b * block, min((b + 1) * block, n)):
            x[i] = x[i] * 2.0


@verdict("sp")
def blocks_that_overlap(x: Tensor, block: int) -> None:
    n = x.shape[0]
    for b in range(n // block):
        for i in range(b * block, min((b + 1) * block + 1, n)):
            x[i] = x[i] * 2.0


# ---------------------------------------------------------------- parts of one tensor


@verdict("p")
def halves(x: Tensor) -> None:
    n = x.shape[0] // 2
    for i in range(n):
        x[i] = x[i + n]


@verdict("p")
def halves_by_argument(x: Tensor, n: int) -> None:
    for i in range(n):
        x[i] = x[i + n]


@verdict("p")
def upper_half(x: Tensor) -> None:
    n = x.shape[0]
    for i in range(n // 2):
        x[n // 2 + i] = x[i]


@verdict("pp", a=2)
def columns_apart(a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, 0]


@verdict("spp", u=3)
def two_planes(u: Tensor, steps: int) -> None:
    for t in range(steps):
        for i in range(1, u.shape[1] - 1):
            for j in range(1, u.shape[2] - 1):
                u[(t + 1) % 2, i, j] = u[t % 2, i - 1, j] + u[t % 2, i + 1, j]


@verdict("sp", a=2)
def row_by_row(a: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = max(a[i - 1, j - 1], a[i - 1, j], a[i - 1, j + 1])


@verdict("sp", best=2, weight=INDICES)
def knapsack(best: Tensor, weight: Tensor, value: Tensor) -> None:
    for i in range(1, best.shape[0]):
        for w in range(best.shape[1]):
            best[i, w] = best[i - 1, w]
            if weight[i] >= 0 and w >= weight[i]:
                best[i, w] = max(best[i, w], best[i - 1, w - weight[i]] + value[i])


# ---------------------------------------------------------------- reductions


@verdict("r")
def total(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    y[0] = s


@verdict("r")
def element_total(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[0] += x[i]


@verdict("rr", a=2)
def whole_total(a: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]


@verdict("pr", a=2)
def row_totals(a: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]


@verdict("sp", a=2)
def column_totals(a: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[j] += a[i, j]


@verdict("r")
def several_totals(x: Tensor, y: Tensor) -> None:
    s = 0.0
    q = 0.0
    low = 1e30
    count = 0
    for i in range(x.shape[0]):
        s += x[i]
        q += x[i] * x[i]
        low = min(low, x[i])
        if x[i] > 0:
            count += 1
    y[0] = s + q + low + count


@verdict("r")
def maximum_by_if(x: Tensor, y: Tensor) -> None:
    best = x[0]
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
    y[0] = best


@verdict("r")
def argument_of_maximum(x: Tensor, y: Tensor) -> None:
    best = x[0]
    where = 0
    for i in range(1, x.shape[0]):
        if x[i] > best:
            best = x[i]
            where = i
    y[0] = where


@verdict("pr", a=2)
def argument_of_row_minimum(a: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        best = a[i, 0]
        where = 0
        for j in range(1, a.shape[1]):
            v = a[i, j]
            if v < best:
                best = v
                where = j
        y[i] = where


@verdict("s")
def not_a_reduction(x: Tensor, y: Tensor) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
        y[i] = s


# ---------------------------------------------------------------- locals


@verdict("p")
def local(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        t = x[i] * 2
        t = t + 1
        y[i] = t


@verdict("s")
def carried(x: Tensor, y: Tensor) -> None:
    t = 0.0
    for i in range(x.shape[0]):
        y[i] = t
        t = x[i]


@verdict("sp", a=2)
def recurrence_by_rows(a: Tensor, c: Tensor) -> None:
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i - 1, j] * c[i] + a[i, j]


@verdict("ps", a=2)
def recurrence_by_columns(a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j - 1] + a[i, j]


@verdict("ss", a=2)
def seidel(a: Tensor) -> None:
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j]) / 4


@verdict("s", where=INDICES)
def scatter(x: Tensor, where: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[where[i]] = x[i]


@verdict("pr", column=INDICES, start=INDICES)
def sparse_product(y: Tensor, value: Tensor, column: Tensor, start: Tensor, x: Tensor) -> None:
    for i in range(y.shape[0]):
        s = 0.0
        for p in range(start[i], start[i + 1]):
            s += value[p] * x[column[p]]
        y[i] = s
