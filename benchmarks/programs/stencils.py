"""Stencils: each element of a grid is made of its neighbours, step after step."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, integers, loops


def jacobi_1d(A: torch.Tensor, B: torch.Tensor, steps: int):
    """Averages of three neighbours, to and fro between two arrays."""
    n = A.shape[0]
    for t in range(steps):
        for i in range(1, n - 1):
            B[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0
        for i in range(1, n - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) / 3.0


def jacobi_2d(A: torch.Tensor, B: torch.Tensor, steps: int):
    """Averages of five neighbours, to and fro between two grids."""
    n, m = A.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def heat_3d(A: torch.Tensor, B: torch.Tensor, steps: int):
    """The heat equation in a cube, with two grids."""
    n = A.shape[0]
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


def fdtd_2d(ex: torch.Tensor, ey: torch.Tensor, hz: torch.Tensor, pulse: torch.Tensor):
    """Maxwell's equations in the plane: two electric fields and a magnetic one, a time step for each pulse."""
    nx, ny = hz.shape
    for t in range(len(pulse)):
        for j in range(ny):
            ey[0, j] = pulse[t]
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def seidel_2d(A: torch.Tensor, steps: int):
    """Gauss and Seidel's averages of nine neighbours, in place."""
    n = A.shape[0]
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


def adi(u: torch.Tensor, steps: int):
    """Heat in the plane by alternating directions: an implicit sweep along each axis a step."""
    n = u.shape[0]
    v = torch.zeros(n, n, dtype=torch.float64)
    p = torch.zeros(n, n, dtype=torch.float64)
    q = torch.zeros(n, n, dtype=torch.float64)
    a = -0.5 * n / 10
    b = 1.0 + 2.0 * (0.5 * n / 10)
    for t in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = v[0, i]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (-a * u[j, i - 1] + (1.0 + 2.0 * a) * u[j, i] - a * u[j, i + 1] - a * q[i, j - 1]) / (
                    a * p[i, j - 1] + b
                )
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = u[i, 0]
            for j in range(1, n - 1):
                p[i, j] = -a / (a * p[i, j - 1] + b)
                q[i, j] = (-a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - a * v[i + 1, j] - a * q[i, j - 1]) / (
                    a * p[i, j - 1] + b
                )
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def wave_2d(u: torch.Tensor, u_prev: torch.Tensor, c: float, steps: int):
    """The wave equation on a square, three time levels in turn."""
    n, m = u.shape
    u_next = torch.zeros(n, m, dtype=torch.float64)
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                laplacian = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                u_next[i, j] = 2.0 * u[i, j] - u_prev[i, j] + c * laplacian
        for i in range(n):
            for j in range(m):
                u_prev[i, j] = u[i, j]
                u[i, j] = u_next[i, j]
    return u_next


def heat_swap(u0: torch.Tensor, alpha: float, steps: int):
    """Heat on a rod, with two arrays that change places after each step."""
    n = u0.shape[0]
    u = torch.zeros(n, dtype=torch.float64)
    v = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        u[i] = u0[i]
        v[i] = u0[i]
    for t in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] + alpha * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return u


def game_of_life(board: torch.Tensor, steps: int):
    """Life on a torus."""
    n, m = board.shape
    new = torch.zeros(n, m, dtype=torch.int64)
    for t in range(steps):
        for i in range(n):
            for j in range(m):
                alive = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            alive += board[(i + di) % n, (j + dj) % m]
                if alive == 3 or (alive == 2 and board[i, j] == 1):
                    new[i, j] = 1
                else:
                    new[i, j] = 0
        for i in range(n):
            for j in range(m):
                board[i, j] = new[i, j]


def conv2d(image: torch.Tensor, kernel: torch.Tensor):
    """Correlate an image with a small kernel, without padding."""
    h, w = image.shape
    kh, kw = kernel.shape
    out = torch.zeros(h - kh + 1, w - kw + 1, dtype=torch.float64)
    for y in range(h - kh + 1):
        for x in range(w - kw + 1):
            acc = 0.0
            for dy in range(kh):
                for dx in range(kw):
                    acc += image[y + dy, x + dx] * kernel[dy, dx]
            out[y, x] = acc
    return out


FAMILY = "stencils"
PROGRAMS = (
    LoopProgram(
        function=jacobi_1d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n), floats(n + 1)[:n] * 1.0, steps),
        small=((0, 2), (1, 2), (3, 1), (9, 3)),
        large=(200_000, 2000),
        loops=loops("t in order, i* parallel, i* parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=jacobi_2d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n + 2), floats(n, n + 2), steps),
        small=((1, 2), (3, 1), (7, 3)),
        large=(2000, 60),
        loops=loops("t in order, i* parallel, j parallel, i* parallel, j parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=heat_3d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n, n), floats(n, n, n), steps),
        small=((1, 2), (3, 1), (5, 2)),
        large=(160, 50),
        loops=loops("t in order, i* parallel, j parallel, k parallel, i* parallel, j parallel, k parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=fdtd_2d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n), floats(n, n) - 0.5, floats(n, n) + 0.5, floats(steps)),
        small=((1, 2), (3, 1), (6, 3)),
        large=(1500, 60),
        loops=loops(
            "t in order, j parallel, i* parallel, j parallel, i* parallel, j parallel, i* parallel, j parallel"
        ),
        bound="bandwidth",
    ),
    LoopProgram(
        function=seidel_2d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n), steps),
        small=((1, 2), (3, 1), (8, 3)),
        large=(1200, 60),
        loops=loops("t in order, i wavefront, j wavefront"),
        bound="order",
        device=(300, 10),
    ),
    LoopProgram(
        function=adi,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n), steps),
        small=((3, 1), (6, 2)),
        large=(1000, 30),
        loops=loops("t in order, i* parallel, j in order, j in order, i* parallel, j in order, j in order"),
        bound="compute",
    ),
    LoopProgram(
        function=wave_2d,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, n + 2), floats(n, n + 2), 0.1, steps),
        small=((1, 2), (3, 1), (7, 3)),
        large=(1500, 80),
        loops=loops("t in order, i* parallel, j parallel, i* parallel, j parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=heat_swap,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n), 0.2, steps),
        small=((1, 2), (3, 1), (9, 4)),
        large=(200_000, 4000),
        loops=loops("i* parallel, t in order, i* parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=game_of_life,
        family=FAMILY,
        arguments=lambda n, steps: (integers(2, n, n + 1), steps),
        small=((1, 2), (4, 2), (7, 3)),
        large=(1000, 15),
        loops=loops("t in order, i* parallel, j parallel, di reduction, dj reduction, i* parallel, j parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=conv2d,
        family=FAMILY,
        arguments=lambda n, k: (floats(n, n + 2), floats(k, k)),
        small=((3, 3), (8, 3), (7, 2)),
        large=(2500, 9),
        loops=loops("y* parallel, x parallel, dy reduction, dx reduction"),
        bound="compute",
        reference=lambda image, kernel: torch.nn.functional.conv2d(image[None, None], kernel[None, None])[0, 0],
    ),
)
