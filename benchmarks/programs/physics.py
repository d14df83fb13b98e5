"""Particles, fractals, transforms and integrals."""

# pyright: basic
from __future__ import annotations

import math

import torch

from benchmarks.programs.program import LoopProgram, floats, loops


def nbody(pos: torch.Tensor, vel: torch.Tensor, mass: torch.Tensor, dt: float, steps: int):
    """Bodies that attract one another, with softened forces."""
    n = len(mass)
    for step in range(steps):
        for i in range(n):
            ax = 0.0
            ay = 0.0
            az = 0.0
            for j in range(n):
                dx = pos[j, 0] - pos[i, 0]
                dy = pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                inv = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + 1e-3)
                f = mass[j] * inv * inv * inv
                ax += f * dx
                ay += f * dy
                az += f * dz
            vel[i, 0] += dt * ax
            vel[i, 1] += dt * ay
            vel[i, 2] += dt * az
        for i in range(n):
            for d in range(3):
                pos[i, d] += dt * vel[i, d]


def lennard_jones(pos: torch.Tensor, cutoff: float):
    """The energy of a gas, each pair once."""
    n = pos.shape[0]
    energy = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            r2 = 0.0
            for d in range(3):
                diff = pos[i, d] - pos[j, d]
                r2 += diff * diff
            if r2 < cutoff * cutoff and r2 > 0:
                s6 = 1.0 / r2**3
                energy += 4.0 * (s6 * s6 - s6)
    out = torch.zeros(1, dtype=torch.float64)
    out[0] = energy
    return out


def mandelbrot(height: int, width: int, limit: int):
    """How many steps each point of the plane takes to escape."""
    image = torch.zeros(height, width, dtype=torch.int64)
    for row in range(height):
        for col in range(width):
            cx = -2.0 + 3.0 * col / width
            cy = -1.5 + 3.0 * row / height
            x = 0.0
            y = 0.0
            n = 0
            while x * x + y * y <= 4.0 and n < limit:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                n += 1
            image[row, col] = n
    return image


def fft_radix2(re: torch.Tensor, im: torch.Tensor):
    """The Fourier transform in place, by Cooley and Tukey's butterflies; the length is a power of two."""
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        angle = -2.0 * math.pi / length
        half = length // 2
        for start in range(0, n, length):
            for k in range(half):
                wr = math.cos(angle * k)
                wi = math.sin(angle * k)
                a = start + k
                b = start + k + half
                tr = re[b] * wr - im[b] * wi
                ti = re[b] * wi + im[b] * wr
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] += tr
                im[a] += ti
        length *= 2


def logistic_map(start: torch.Tensor, r: float, steps: int):
    """Where each point is after many steps of x -> r x (1 - x)."""
    n = len(start)
    out = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        x = start[i]
        for s in range(steps):
            x = r * x * (1.0 - x)
        out[i] = x
    return out


def simpson(n: int, intervals: int):
    """The integrals of sin(k x) exp(-x) from 0 to 1 for k below n, by Simpson's rule."""

    def f(k, x):
        return math.sin(k * x) * math.exp(-x)

    out = torch.zeros(n, dtype=torch.float64)
    h = 1.0 / intervals
    for k in range(n):
        total = f(k, 0.0) + f(k, 1.0)
        for i in range(1, intervals):
            if i % 2 == 0:
                total += 2.0 * f(k, i * h)
            else:
                total += 4.0 * f(k, i * h)
        out[k] = total * h / 3.0
    return out


def ising_energy(spins: torch.Tensor, coupling: float):
    """The energy of a lattice of spins on a torus, stored flat."""
    n = int(math.sqrt(len(spins)))
    energy = torch.zeros(n * n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            up = spins[((i + n - 1) % n) * n + j]
            down = spins[((i + 1) % n) * n + j]
            left = spins[i * n + (j + n - 1) % n]
            right = spins[i * n + (j + 1) % n]
            energy[i * n + j] = -coupling * spins[i * n + j] * (up + down + left + right)
    return energy


FAMILY = "physics"
PROGRAMS = (
    LoopProgram(
        function=nbody,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n, 3), floats(n, 3) - 0.5, floats(n) + 1, 0.01, steps),
        small=((1, 1), (5, 2)),
        large=(4000, 8),
        loops=loops("step in order, i* parallel, j reduction, i parallel, d parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=lennard_jones,
        family=FAMILY,
        arguments=lambda n: (floats(n, 3) * 5, 2.5),
        small=((0,), (1,), (7,)),
        large=(20_000,),
        loops=loops("i* reduction, j reduction, d reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=mandelbrot,
        family=FAMILY,
        arguments=lambda n: (n, n + 1, 200),
        small=((1,), (6,)),
        large=(1500,),
        loops=loops("row* parallel, col parallel"),
        bound="compute",
        conserved=lambda image: image.sum().double(),
    ),
    LoopProgram(
        function=fft_radix2,
        family=FAMILY,
        arguments=lambda log: (floats(2**log), floats(2**log) - 0.5),
        small=((0,), (1,), (4,)),
        large=(22,),
        loops=loops("i in order, start* parallel, k parallel"),
        bound="compute",
        device=(10,),
        reference=lambda re, im: torch.fft.fft(torch.complex(re, im)).imag,
    ),
    LoopProgram(
        function=logistic_map,
        family=FAMILY,
        arguments=lambda n, steps: (floats(n), 3.7, steps),
        small=((0, 3), (1, 0), (5, 6)),
        large=(100_000, 5000),
        loops=loops("i* parallel, s in order"),
        bound="compute",
    ),
    LoopProgram(
        function=simpson,
        family=FAMILY,
        arguments=lambda n, intervals: (n, intervals),
        small=((1, 2), (4, 6)),
        large=(1000, 100_000),
        loops=loops("k* parallel, i reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=ising_energy,
        family=FAMILY,
        arguments=lambda n: ((floats(n * n) > 0.5).double() * 2.0 - 1.0, 0.5),
        small=((1,), (2,), (5,)),
        large=(5000,),
        loops=loops("i* parallel, j parallel"),
        bound="bandwidth",
        device=(300,),
    ),
)
