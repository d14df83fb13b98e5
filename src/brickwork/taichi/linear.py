"""Decompositions of small matrices, written as kernels are: by rotations of Jacobi, and elimination with pivots."""

from __future__ import annotations

from typing import Any

from brickwork.taichi import operations
from brickwork.taichi.algebra import refuse_size
from brickwork.taichi.compound import matrix
from brickwork.taichi.loops import static
from brickwork.taichi.matrix import Matrix, Vector

SWEEPS = 12
"""Rounds of rotations: matrices of float64 take 5 (3 x 3) to 11 (12 x 12), measured with random and singular ones."""


def sym_eig(A: Any, dt: Any = None) -> Any:
    """Return the eigenvalues of a symmetric matrix, and the matrix whose columns are its eigenvectors."""
    n = static(A.n)
    S = A * 1
    V = A * 0 + Matrix.identity(int, n)
    for _ in range(SWEEPS):
        for p in static(range(n)):
            for q in static(range(p + 1, n)):
                if S[p, q] != 0.0:
                    c, s = _rotation((S[q, q] - S[p, p]) / (2.0 * S[p, q]))
                    for k in static(range(n)):
                        left, right = S[k, p], S[k, q]
                        S[k, p], S[k, q] = c * left - s * right, s * left + c * right
                    for k in static(range(n)):
                        upper, lower = S[p, k], S[q, k]
                        S[p, k], S[q, k] = c * upper - s * lower, s * upper + c * lower
                        first, second = V[k, p], V[k, q]
                        V[k, p], V[k, q] = c * first - s * second, s * first + c * second
                    S[p, q] = 0.0
                    S[q, p] = 0.0
    values = Matrix([S[k, k] for k in static(range(n))])
    return values, V


def _rotation(ratio: Any) -> Any:
    """Return cosine and sine of the angle whose double has this cotangent."""
    size = operations.abs(ratio) + operations.sqrt(ratio * ratio + 1.0)
    t = operations.select(ratio >= 0.0, 1.0 / size, -1.0 / size)
    c = 1.0 / operations.sqrt(t * t + 1.0)
    return c, t * c


def svd(A: Any, dt: Any = None) -> Any:
    """Return U, a diagonal matrix and V with A = U @ S @ V.transpose(); singular values go down.

    U and V of a 3 x 3 matrix are rotations, as in Taichi: the last singular value has the sign of the determinant.
    """
    n = static(A.n)
    B = A * 1
    V = A * 0 + Matrix.identity(int, n)
    for _ in range(SWEEPS):
        for p in static(range(n)):
            for q in static(range(p + 1, n)):
                alpha, beta, gamma = A[0, 0] * 0, A[0, 0] * 0, A[0, 0] * 0
                for k in static(range(n)):
                    alpha += B[k, p] * B[k, p]
                    beta += B[k, q] * B[k, q]
                    gamma += B[k, p] * B[k, q]
                if gamma != 0.0:
                    c, s = _rotation((beta - alpha) / (2.0 * gamma))
                    for k in static(range(n)):
                        left, right = B[k, p], B[k, q]
                        B[k, p], B[k, q] = c * left - s * right, s * left + c * right
                        first, second = V[k, p], V[k, q]
                        V[k, p], V[k, q] = c * first - s * second, s * first + c * second
    for p in static(range(n)):
        for q in static(range(p + 1, n)):
            one, two = A[0, 0] * 0, A[0, 0] * 0
            for k in static(range(n)):
                one += B[k, p] * B[k, p]
                two += B[k, q] * B[k, q]
            if two > one:
                for k in static(range(n)):
                    B[k, p], B[k, q] = B[k, q], B[k, p]
                    V[k, p], V[k, q] = V[k, q], V[k, p]
    U, S = _sides(B)
    if static(n == 3):
        side = operations.select(V.determinant() < 0.0, -1.0, 1.0)
        turn = operations.select(U.determinant() * side < 0.0, -1.0, 1.0)
        S[2, 2] *= turn
        for k in static(range(n)):
            V[k, 2] *= side
            U[k, 2] *= side * turn
    return U, S, V


def _sides(B: Any) -> Any:
    """Return U and a diagonal matrix with B = U @ S, of a matrix whose columns are orthogonal and get shorter."""
    n = static(B.n)
    U = B * 0
    S = B * 0
    for p in static(range(n)):
        total = B[0, 0] * 0
        for k in static(range(n)):
            total += B[k, p] * B[k, p]
        S[p, p] = operations.sqrt(total)
        scale = total
        if total > 0.0:
            scale = 1.0 / S[p, p]
        column = _apart(Vector([B[k, p] * scale for k in static(range(n))]), U, p)
        if column.norm_sqr() < 0.5:  # A singular matrix: what is left is rounding.
            for j in static(range(n)):
                axis = column * 0
                axis[j] = 1.0
                axis = _apart(axis, U, p)
                if axis.norm_sqr() > column.norm_sqr():
                    column = axis
        column = column.normalized()
        for k in static(range(n)):
            U[k, p] = column[k]
    return U, S


def _apart(vector: Any, U: Any, count: Any) -> Any:
    """Return what is left of a vector without its parts along the first columns of U."""
    rest = vector * 1
    for q in static(range(count)):
        column = Vector([U[k, q] for k in static(range(U.n))])
        rest -= rest.dot(column) * column
    return rest


def polar_decompose(A: Any, dt: Any = None) -> Any:
    """Return an orthogonal and a symmetric matrix whose product is A."""
    if static(A.n not in (2, 3)):
        refuse_size("Polar decomposition")
    U, S, V = svd(A, dt)
    return U @ V.transpose(), V @ S @ V.transpose()


def eig(A: Any, dt: Any = None) -> Any:
    """Return the eigenvalues of a 2 x 2 matrix as rows (real, imaginary), and its eigenvectors.

    Column j of the 4 x 2 matrix of eigenvectors holds the real and the imaginary part of each entry in turn.
    """
    half = (A[0, 0] + A[1, 1]) * 0.5
    gap = half * half - (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
    root = operations.sqrt(operations.abs(gap))
    values = A * 0
    vectors = matrix(4, 2)(A[0, 0] * 0)
    for j in static(range(2)):
        side = 1.0 - 2.0 * j
        values[j, 0] = half + operations.select(gap >= 0.0, side * root, 0.0 * root)
        values[j, 1] = operations.select(gap >= 0.0, 0.0 * root, side * root)
        if A[0, 1] != 0.0:
            vectors[0, j] = A[0, 1]
            vectors[2, j] = values[j, 0] - A[0, 0]
            vectors[3, j] = values[j, 1]
        elif A[1, 0] != 0.0:
            vectors[0, j] = values[j, 0] - A[1, 1]
            vectors[1, j] = values[j, 1]
            vectors[2, j] = A[1, 0]
        else:
            vectors[2 * j, j] = 1.0
            values[j, 0] = A[j, j]
    return values, vectors


def solve(A: Any, b: Any, dt: Any = None) -> Any:
    """Return x with A @ x = b, for 2 x 2 and 3 x 3 matrices."""
    if static(A.n not in (2, 3)):
        refuse_size("Solver")
    n = static(A.n)
    M = A * 1
    x = b * 1
    for p in static(range(n)):
        for q in static(range(p + 1, n)):
            if operations.abs(M[q, p]) > operations.abs(M[p, p]):
                for k in static(range(n)):
                    M[p, k], M[q, k] = M[q, k], M[p, k]
                x[p], x[q] = x[q], x[p]
        for q in static(range(p + 1, n)):
            factor = M[q, p] / M[p, p]
            for k in static(range(p, n)):
                M[q, k] -= factor * M[p, k]
            x[q] -= factor * x[p]
    for p in static(range(n - 1, -1, -1)):
        for k in static(range(p + 1, n)):
            x[p] -= M[p, k] * x[k]
        x[p] /= M[p, p]
    return x
