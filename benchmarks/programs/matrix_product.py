"""The product of two matrices in three plain loops, in each of their orders."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, loops


def matmul_ijk(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a dot product an element."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for i in range(n):
        for j in range(m):
            for k in range(p):
                C[i, j] += A[i, k] * B[k, j]
    return C


def matmul_ikj(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a row at a time."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for i in range(n):
        for k in range(p):
            for j in range(m):
                C[i, j] += A[i, k] * B[k, j]
    return C


def matmul_jik(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a column of dot products at a time."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for j in range(m):
        for i in range(n):
            for k in range(p):
                C[i, j] += A[i, k] * B[k, j]
    return C


def matmul_jki(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a column at a time."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for j in range(m):
        for k in range(p):
            for i in range(n):
                C[i, j] += A[i, k] * B[k, j]
    return C


def matmul_kij(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a sum of outer products by rows."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for k in range(p):
        for i in range(n):
            for j in range(m):
                C[i, j] += A[i, k] * B[k, j]
    return C


def matmul_kji(A: torch.Tensor, B: torch.Tensor):
    """C = A B, a sum of outer products by columns."""
    n, p = A.shape
    m = B.shape[1]
    C = torch.zeros(n, m, dtype=A.dtype)
    for k in range(p):
        for j in range(m):
            for i in range(n):
                C[i, j] += A[i, k] * B[k, j]
    return C


_VERDICTS = {
    matmul_ijk: "i* parallel, j parallel, k reduction",
    matmul_ikj: "i* parallel, k accumulates, j parallel",
    matmul_jik: "j* parallel, i parallel, k reduction",
    matmul_jki: "j* parallel, k accumulates, i parallel",
    matmul_kij: "k accumulates, i* parallel, j parallel",
    matmul_kji: "k accumulates, j* parallel, i parallel",
}

PROGRAMS = tuple(
    LoopProgram(
        function=function,
        family="matrix product",
        arguments=lambda n: (floats(n, n + 1), floats(n + 1, n + 2)),
        small=((0,), (1,), (5,)),
        large=(1000 if function.__name__ in {"matmul_ikj", "matmul_kij"} else 600,),
        loops=loops(text),
        bound="compute",
        reference=lambda A, B: A @ B,
    )
    for function, text in _VERDICTS.items()
)
