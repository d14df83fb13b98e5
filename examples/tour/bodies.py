"""Gravity among many bodies, every pair, with leapfrog steps."""

import math

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::accelerations")
def accelerations(x: torch.Tensor, mass: torch.Tensor, softening: float) -> torch.Tensor:
    """Sum the pull of all bodies on each: x (n, 3), mass (n,) -> (n, 3)."""
    n = x.shape[0]
    out = torch.empty_like(x)
    for i in range(n):
        ax, ay, az = 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening * softening
            pull = mass[j] / (square * math.sqrt(square))
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        out[i, 0], out[i, 1], out[i, 2] = ax, ay, az
    return out


def energy(x: torch.Tensor, v: torch.Tensor, mass: torch.Tensor, softening: float) -> float:
    """Return the kinetic and the potential energy together."""
    apart = (torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square() + softening**2).sqrt()
    pairs = torch.triu(mass[:, None] * mass / apart, diagonal=1).sum()
    return (0.5 * mass @ v.square().sum(dim=1) - pairs).item()


def seen(x: torch.Tensor, pixels: int = 240, reach: float = 2.0) -> torch.Tensor:
    """Return how many bodies stand in each pixel of a square: (pixels, pixels)."""
    places = ((x[:, :2] / reach + 1) / 2 * pixels).long().clamp(0, pixels - 1)
    return torch.zeros(pixels, pixels).index_put((places[:, 1], places[:, 0]), torch.ones(len(x)), accumulate=True)


def main(size: int = 400, steps: int = 200) -> str:
    """Let a cloud fall together, and draw its trails; return how well its energy is kept."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(size, 3, generator=generator, dtype=torch.float64)
    v = torch.zeros_like(x)
    mass = torch.full((size,), 1 / size, dtype=torch.float64)
    softening, dt = 0.1, 0.01
    before = energy(x, v, mass, softening)
    a = accelerations(x, mass, softening)
    trails = seen(x)
    for _ in range(steps):
        v += 0.5 * dt * a
        x += dt * v
        a = accelerations(x, mass, softening)
        v += 0.5 * dt * a
        trails += seen(x)
    plots.picture((trails / trails[1:-1, 1:-1].max()).sqrt().clamp(0, 1), picture_of("bodies"), "inferno")
    drift = abs(energy(x, v, mass, softening) / before - 1)
    assert drift < 1e-2, drift
    return f"{steps} steps of {size} bodies keep the energy to {drift:.1e}"


if __name__ == "__main__":
    print(main())
