"""The wave equation on a membrane: time steps around parallel loops, three fields that take turns."""

import math

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::wave")
def wave(start: torch.Tensor, courant: float, steps: int) -> torch.Tensor:
    """Return a membrane that is let go at rest, some steps later; start (height, width), held at the edges."""
    height, width = start.shape
    c = courant * courant
    before, now, after = torch.empty_like(start), torch.empty_like(start), torch.zeros_like(start)
    for i in range(height):
        for j in range(width):
            before[i, j] = start[i, j]
            now[i, j] = start[i, j]
    for _ in range(steps):
        for i in range(1, height - 1):
            for j in range(1, width - 1):
                around = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4 * now[i, j]
                after[i, j] = 2 * now[i, j] - before[i, j] + c * around
        before, now, after = now, after, before
    return now


def main(size: int = 200, steps: int = 150) -> str:
    """Let a standing wave swing, and draw the rings of a drop; return how well the first keeps time."""
    n = 64
    place = torch.linspace(0, math.pi, n + 1, dtype=torch.float64)
    mode = torch.sin(place)[:, None] * torch.sin(place)
    turn = 2 * math.asin(0.5 * math.sqrt(2) * math.sin(math.pi / (2 * n))) * 2
    swung = wave(mode, 0.5, 100)
    expected = mode * (math.cos(100.5 * turn / 2) / math.cos(turn / 4))
    assert torch.allclose(swung, expected, atol=1e-3), (swung - expected).abs().max()
    across = torch.arange(size, dtype=torch.float64) - size / 2
    drop = torch.exp(-(across[:, None] ** 2 + across**2) / 20)
    drop[0] = drop[-1] = drop[:, 0] = drop[:, -1] = 0
    rings = wave(drop, 0.5, steps)
    plots.picture((0.5 + 4 * rings).clamp(0, 1), picture_of("wave"), "RdBu")
    return "a standing wave swings as the formula says"


if __name__ == "__main__":
    print(main())
