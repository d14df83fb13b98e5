"""Factorisations of matrices, linear systems and eigenvalues."""

# pyright: basic
from __future__ import annotations

import math

import torch

from benchmarks.programs.program import LoopProgram, definite, floats, loops


def cholesky(A: torch.Tensor):
    """A = L L', the lower half in place, row by row."""
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


def cholesky_right(A: torch.Tensor):
    """A = L L', the lower half in place, column by column."""
    n = A.shape[0]
    for k in range(n):
        A[k, k] = math.sqrt(A[k, k])
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                A[i, j] -= A[i, k] * A[j, k]


def lu(A: torch.Tensor):
    """A = L U in place, without pivoting."""
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] = A[i, j] - A[i, k] * A[k, j]


def ludcmp(A: torch.Tensor, b: torch.Tensor):
    """Solve A x = b: factorise with row exchanges, then substitute forwards and backwards."""
    n = A.shape[0]
    x = torch.zeros(n, dtype=torch.float64)
    y = torch.zeros(n, dtype=torch.float64)
    for k in range(n):
        pivot = k
        biggest = abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > biggest:
                biggest = abs(A[i, k])
                pivot = i
        if pivot != k:
            for j in range(n):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            b[k], b[pivot] = b[pivot], b[k]
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]
    for i in range(n):
        w = b[i]
        for j in range(i):
            w -= A[i, j] * y[j]
        y[i] = w
    for i in range(n - 1, -1, -1):
        w = y[i]
        for j in range(i + 1, n):
            w -= A[i, j] * x[j]
        x[i] = w / A[i, i]
    return x


def durbin(r: torch.Tensor):
    """Solve the Yule-Walker equations of a Toeplitz matrix by Levinson and Durbin's recursion."""
    n = r.shape[0]
    y = torch.zeros(n, dtype=torch.float64)
    z = torch.zeros(n, dtype=torch.float64)
    y[0] = -r[0]
    beta = 1.0
    alpha = -r[0]
    for k in range(1, n):
        beta = (1 - alpha * alpha) * beta
        total = 0.0
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def gram_schmidt(A: torch.Tensor):
    """A = Q R by the modified method of Gram and Schmidt."""
    m, n = A.shape
    Q = torch.zeros(m, n, dtype=torch.float64)
    R = torch.zeros(n, n, dtype=torch.float64)
    for k in range(n):
        nrm = 0.0
        for i in range(m):
            nrm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(nrm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0.0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]
    return Q, R


def trisolv(L: torch.Tensor, b: torch.Tensor):
    """Solve L x = b, L lower triangular."""
    n = L.shape[0]
    x = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]
    return x


def thomas(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor):
    """Solve many tridiagonal systems, one a row, by Thomas's algorithm."""
    m, n = d.shape
    x = torch.zeros(m, n, dtype=torch.float64)
    cp = torch.zeros(m, n, dtype=torch.float64)
    dp = torch.zeros(m, n, dtype=torch.float64)
    for s in range(m):
        cp[s, 0] = c[s, 0] / b[s, 0]
        dp[s, 0] = d[s, 0] / b[s, 0]
        for i in range(1, n):
            w = b[s, i] - a[s, i] * cp[s, i - 1]
            cp[s, i] = c[s, i] / w
            dp[s, i] = (d[s, i] - a[s, i] * dp[s, i - 1]) / w
        x[s, n - 1] = dp[s, n - 1]
        for i in range(n - 2, -1, -1):
            x[s, i] = dp[s, i] - cp[s, i] * x[s, i + 1]
    return x


def conjugate_gradient(A: torch.Tensor, b: torch.Tensor, tol: float, max_iter: int):
    """Solve A x = b, A symmetric and positive definite."""
    n = A.shape[0]
    x = torch.zeros(n, dtype=torch.float64)
    r = torch.zeros(n, dtype=torch.float64)
    p = torch.zeros(n, dtype=torch.float64)
    Ap = torch.zeros(n, dtype=torch.float64)
    rs = 0.0
    for i in range(n):
        r[i] = b[i]
        p[i] = b[i]
        rs += b[i] * b[i]
    for it in range(max_iter):
        if math.sqrt(rs) < tol:
            break
        pAp = 0.0
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += A[i, j] * p[j]
            Ap[i] = s
        for i in range(n):
            pAp += p[i] * Ap[i]
        alpha = rs / pAp
        rs_new = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * Ap[i]
            rs_new += r[i] * r[i]
        beta = rs_new / rs
        for i in range(n):
            p[i] = r[i] + beta * p[i]
        rs = rs_new
    return x


def power_iteration(A: torch.Tensor, iterations: int):
    """The largest eigenvalue and its vector."""
    n = A.shape[0]
    v = torch.ones(n, dtype=torch.float64)
    w = torch.zeros(n, dtype=torch.float64)
    eigenvalue = 0.0
    for it in range(iterations):
        for i in range(n):
            w[i] = 0.0
            for j in range(n):
                w[i] += A[i, j] * v[j]
        norm = 0.0
        for i in range(n):
            norm += w[i] ** 2
        norm = norm**0.5
        for i in range(n):
            v[i] = w[i] / norm
        eigenvalue = norm
    return v, eigenvalue


def jacobi_eigenvalues(A: torch.Tensor, sweeps: int):
    """The eigenvalues of a symmetric matrix, which ends up diagonal, by Jacobi's rotations."""
    n = A.shape[0]
    for sweep in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) > 1e-15:
                    theta = (A[q, q] - A[p, p]) / (2.0 * A[p, q])
                    sign = 1.0 if theta >= 0 else -1.0
                    t = sign / (abs(theta) + math.sqrt(theta * theta + 1.0))
                    c = 1.0 / math.sqrt(t * t + 1.0)
                    s = t * c
                    for k in range(n):
                        akp = A[k, p]
                        akq = A[k, q]
                        A[k, p] = c * akp - s * akq
                        A[k, q] = s * akp + c * akq
                    for k in range(n):
                        apk = A[p, k]
                        aqk = A[q, k]
                        A[p, k] = c * apk - s * aqk
                        A[q, k] = s * apk + c * aqk


FAMILY = "solvers"
SMALL = ((1,), (2,), (7,))
PROGRAMS = (
    LoopProgram(
        function=cholesky,
        family=FAMILY,
        arguments=lambda n: (definite(n),),
        small=((0,), *SMALL),
        large=(1800,),
        loops=loops("i in order, j in order, k reduction, k reduction"),
        bound="compute",
        device=(300,),
    ),
    LoopProgram(
        function=cholesky_right,
        family=FAMILY,
        arguments=lambda n: (definite(n),),
        small=SMALL,
        large=(1500,),
        loops=loops("k in order, i* parallel, i* parallel, j parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=lu,
        family=FAMILY,
        arguments=lambda n: (definite(n),),
        small=((0,), *SMALL),
        large=(1500,),
        loops=loops("k in order, i* parallel, j parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=ludcmp,
        family=FAMILY,
        arguments=lambda n: (floats(n, n), floats(n)),
        small=((1,), (2,), (6,)),
        large=(1300,),
        loops=loops(
            "k in order, i reduction, j parallel, i* parallel, j parallel,"
            " i in order, j reduction, i in order, j reduction"
        ),
        bound="compute",
        reference=lambda A, b: torch.linalg.solve(A, b),
    ),
    LoopProgram(
        function=durbin,
        family=FAMILY,
        arguments=lambda n: (0.3 * floats(n) / torch.arange(1, n + 1, dtype=torch.float64, device="cpu") ** 2,),
        small=SMALL,
        large=(20_000,),
        loops=loops("k in order, i reduction, i parallel, i parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=gram_schmidt,
        family=FAMILY,
        arguments=lambda n: (floats(n + 2, n),),
        small=SMALL,
        large=(600,),
        loops=loops("k in order, i reduction, i parallel, j* parallel, i reduction, i parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=trisolv,
        family=FAMILY,
        arguments=lambda n: (definite(n), floats(n)),
        small=((0,), *SMALL),
        large=(12_000,),
        loops=loops("i in order, j reduction"),
        bound="order",
        reference=lambda L, b: torch.linalg.solve_triangular(L, b[:, None], upper=False)[:, 0],
    ),
    LoopProgram(
        function=thomas,
        family=FAMILY,
        arguments=lambda m, n: (floats(m, n), floats(m, n) + 3, floats(m, n) - 0.5, floats(m, n)),
        small=((0, 3), (1, 1), (3, 5)),
        large=(20_000, 1000),
        loops=loops("s* parallel, i in order, i in order"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=conjugate_gradient,
        family=FAMILY,
        arguments=lambda n, most: (definite(n), floats(n), 1e-30, most),
        small=((1, 3), (6, 20)),
        large=(4000, 15),
        loops=loops("i reduction, it in order, i* parallel, j reduction, i reduction, i reduction, i* parallel"),
        bound="bandwidth",
        reference=lambda A, b, *_: torch.linalg.solve(A, b),
    ),
    LoopProgram(
        function=power_iteration,
        family=FAMILY,
        arguments=lambda n, iterations: (definite(n), iterations),
        small=((1, 2), (6, 0), (6, 5)),
        large=(4000, 20),
        loops=loops("it in order, i* parallel, j reduction, i reduction, i* parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=jacobi_eigenvalues,
        family=FAMILY,
        arguments=lambda n, sweeps: (definite(n), sweeps),
        small=((1, 1), (5, 3)),
        large=(350, 4),
        loops=loops("sweep in order, p in order, q in order, k parallel, k parallel"),
        bound="compute",
        device=(150, 2),
        conserved=lambda A: torch.stack([A.trace(), A.norm()]),
    ),
)
