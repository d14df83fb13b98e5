"""Kernels of dense linear algebra: products of matrices and vectors, updates of matrices."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, loops


def gemm(alpha: float, beta: float, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor):
    """C = alpha A B + beta C."""
    n, m = C.shape
    p = A.shape[1]
    for i in range(n):
        for j in range(m):
            C[i, j] *= beta
        for k in range(p):
            for j in range(m):
                C[i, j] += alpha * A[i, k] * B[k, j]


def gemm_flat(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, n: int, m: int, p: int):
    """C = A B, each matrix stored flat, row by row."""
    for i in range(n):
        for j in range(m):
            acc = 0.0
            for k in range(p):
                acc += A[i * p + k] * B[k * m + j]
            C[i * m + j] = acc


def gemver(
    alpha: float,
    beta: float,
    A: torch.Tensor,
    u1: torch.Tensor,
    v1: torch.Tensor,
    u2: torch.Tensor,
    v2: torch.Tensor,
    y: torch.Tensor,
    z: torch.Tensor,
):
    """A two-rank update of A, a product with its transpose, and one with itself."""
    n = A.shape[0]
    x = torch.zeros(n, dtype=torch.float64)
    w = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[i] = x[i] + beta * A[j, i] * y[j]
    for i in range(n):
        x[i] = x[i] + z[i]
    for i in range(n):
        for j in range(n):
            w[i] = w[i] + alpha * A[i, j] * x[j]
    return x, w


def gesummv(alpha: float, beta: float, A: torch.Tensor, B: torch.Tensor, x: torch.Tensor):
    """Y = alpha A x + beta B x."""
    n = A.shape[0]
    y = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        left = 0.0
        right = 0.0
        for j in range(n):
            left += A[i, j] * x[j]
            right += B[i, j] * x[j]
        y[i] = alpha * left + beta * right
    return y


def symm(alpha: float, beta: float, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor):
    """C = alpha A B + beta C with A symmetric, of which only the lower half is read."""
    m, n = C.shape
    for i in range(m):
        for j in range(n):
            s = 0.0
            for k in range(m):
                if k <= i:
                    s += A[i, k] * B[k, j]
                else:
                    s += A[k, i] * B[k, j]
            C[i, j] = alpha * s + beta * C[i, j]


def syrk(alpha: float, beta: float, A: torch.Tensor, C: torch.Tensor):
    """C = alpha A A' + beta C, the lower half."""
    n = C.shape[0]
    m = A.shape[1]
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
            for k in range(m):
                C[i, j] += alpha * A[i, k] * A[j, k]


def syr2k(alpha: float, beta: float, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor):
    """C = alpha (A B' + B A') + beta C, the lower half."""
    n = C.shape[0]
    m = A.shape[1]
    for i in range(n):
        for j in range(i + 1):
            C[i, j] *= beta
            for k in range(m):
                C[i, j] += alpha * (A[j, k] * B[i, k] + B[j, k] * A[i, k])


def trmm(alpha: float, A: torch.Tensor, B: torch.Tensor):
    """B = alpha A' B in place, with A lower triangular and ones on its diagonal."""
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            for k in range(i + 1, m):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = alpha * B[i, j]


def two_mm(alpha: float, beta: float, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, D: torch.Tensor):
    """D = alpha A B C + beta D."""
    n, p = A.shape
    q = B.shape[1]
    r = C.shape[1]
    tmp = torch.zeros(n, q, dtype=torch.float64)
    for i in range(n):
        for j in range(q):
            for k in range(p):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(n):
        for j in range(r):
            D[i, j] *= beta
            for k in range(q):
                D[i, j] += tmp[i, k] * C[k, j]


def three_mm(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, D: torch.Tensor):
    """(A B) (C D)."""
    n, p = A.shape
    q = B.shape[1]
    r, s = D.shape
    E = torch.zeros(n, q, dtype=torch.float64)
    F = torch.zeros(q, s, dtype=torch.float64)
    G = torch.zeros(n, s, dtype=torch.float64)
    for i in range(n):
        for k in range(p):
            for j in range(q):
                E[i, j] += A[i, k] * B[k, j]
    for i in range(q):
        for k in range(r):
            for j in range(s):
                F[i, j] += C[i, k] * D[k, j]
    for i in range(n):
        for k in range(q):
            for j in range(s):
                G[i, j] += E[i, k] * F[k, j]
    return G


def atax(A: torch.Tensor, x: torch.Tensor):
    """Y = A' (A x)."""
    m, n = A.shape
    y = torch.zeros(n, dtype=torch.float64)
    tmp = torch.zeros(m, dtype=torch.float64)
    for i in range(m):
        for j in range(n):
            tmp[i] += A[i, j] * x[j]
    for i in range(m):
        for j in range(n):
            y[j] += A[i, j] * tmp[i]
    return y


def bicg(A: torch.Tensor, p: torch.Tensor, r: torch.Tensor):
    """Q = A p and s = A' r, in one pass over A."""
    n, m = A.shape
    s = torch.zeros(m, dtype=torch.float64)
    q = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        for j in range(m):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]
    return s, q


def mvt(x1: torch.Tensor, x2: torch.Tensor, y1: torch.Tensor, y2: torch.Tensor, A: torch.Tensor):
    """x1 += A y1 and x2 += A' y2."""
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            x1[i] += A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[i] += A[j, i] * y2[j]


def doitgen(A: torch.Tensor, C4: torch.Tensor):
    """Multiply the last axis of A by a matrix, in place, through a row of scratch."""
    nr, nq, np_ = A.shape
    row = torch.zeros(np_, dtype=torch.float64)
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                row[p] = 0.0
                for s in range(np_):
                    row[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = row[p]


def _square(n: int, count: int) -> tuple[torch.Tensor, ...]:
    return tuple(floats(n, n) + number for number in range(count))


FAMILY = "linear algebra"
SMALL = ((1,), (5,))
PROGRAMS = (
    LoopProgram(
        function=gemm,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n + 1), floats(n + 1, n + 2), floats(n, n + 2)),
        small=((0,), *SMALL),
        large=(1300,),
        loops=loops("i* parallel, j parallel, k accumulates, j parallel"),
        bound="compute",
        reference=lambda alpha, beta, A, B, C: alpha * A @ B + beta * C,
    ),
    LoopProgram(
        function=gemm_flat,
        family=FAMILY,
        arguments=lambda n: (floats(n * (n + 2)), floats((n + 2) * (n + 1)), floats(n * (n + 1)), n, n + 1, n + 2),
        small=((0,), *SMALL),
        large=(600,),
        loops=loops("i* parallel, j parallel, k reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=gemver,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n), *(floats(n) + number for number in range(6))),
        small=SMALL,
        large=(8000,),
        loops=loops("i* parallel, j parallel, i* parallel, j reduction, i* parallel, i* parallel, j reduction"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=gesummv,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n), floats(n, n) - 0.5, floats(n)),
        small=((0,), *SMALL),
        large=(10000,),
        loops=loops("i* parallel, j reduction"),
        bound="bandwidth",
        reference=lambda alpha, beta, A, B, x: alpha * A @ x + beta * B @ x,
    ),
    LoopProgram(
        function=symm,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n), floats(n, n + 2), floats(n, n + 2)),
        small=SMALL,
        large=(700,),
        loops=loops("i* parallel, j parallel, k reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=syrk,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n + 1), floats(n, n)),
        small=SMALL,
        large=(1400,),
        loops=loops("i* parallel, j parallel, k reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=syr2k,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n + 1), floats(n, n + 1) - 0.5, floats(n, n)),
        small=SMALL,
        large=(1200,),
        loops=loops("i* parallel, j parallel, k reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=trmm,
        family=FAMILY,
        arguments=lambda n: (1.5, floats(n, n), floats(n, n + 2)),
        small=SMALL,
        large=(900,),
        loops=loops("i in order, j* parallel, k accumulates"),
        bound="compute",
    ),
    LoopProgram(
        function=two_mm,
        family=FAMILY,
        arguments=lambda n: (1.5, 0.5, floats(n, n + 1), floats(n + 1, n + 2), floats(n + 2, n), floats(n, n)),
        small=SMALL,
        large=(700,),
        loops=loops("i* parallel, j parallel, k reduction, i* parallel, j parallel, k reduction"),
        bound="compute",
        reference=lambda alpha, beta, A, B, C, D: alpha * A @ B @ C + beta * D,
    ),
    LoopProgram(
        function=three_mm,
        family=FAMILY,
        arguments=lambda n: _square(n, 4),
        small=((0,), *SMALL),
        large=(900,),
        loops=loops(
            "i* parallel, k accumulates, j parallel, i* parallel, k accumulates, j parallel,"
            " i* parallel, k accumulates, j parallel"
        ),
        bound="compute",
        reference=lambda A, B, C, D: A @ B @ (C @ D),
    ),
    LoopProgram(
        function=atax,
        family=FAMILY,
        arguments=lambda n: (floats(n, n + 2), floats(n + 2)),
        small=((0,), *SMALL),
        large=(10000,),
        loops=loops("i* parallel, j reduction, i accumulates, j* parallel"),
        bound="bandwidth",
        reference=lambda A, x: A.T @ (A @ x),
    ),
    LoopProgram(
        function=bicg,
        family=FAMILY,
        arguments=lambda n: (floats(n, n + 2), floats(n + 2), floats(n)),
        small=SMALL,
        large=(10000,),
        loops=loops("i distributed, j distributed"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=mvt,
        family=FAMILY,
        arguments=lambda n: (*(floats(n) + number for number in range(4)), floats(n, n)),
        small=SMALL,
        large=(8000,),
        loops=loops("i* parallel, j reduction, i* parallel, j reduction"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=doitgen,
        family=FAMILY,
        arguments=lambda n: (floats(n, n + 1, n), floats(n, n)),
        small=((1,), (4,)),
        large=(150,),
        loops=loops("r distributed, q distributed, p* parallel, s reduction, p parallel"),
        bound="compute",
    ),
)
