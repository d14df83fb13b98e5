"""Finds the lowest point of a bumpy surface by the cross-entropy method, and draws the samples of its generations."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

import brickwork as bw
from brickwork import ops

OUTPUT = Path("demo-output")
LOWEST = (1.0, -0.5)
DRAWN = (0, 1, 3, 5)
"""The generations that are drawn."""


@bw.op("examples::bumps")
def bumps(points: Tensor, x: float, y: float) -> Tensor:
    """Return the height of a bowl with bumps, lowest at (x, y); points (2, n) -> (n,)."""
    n = points.shape[1]
    out = points.new_empty(n)
    for i in range(n):
        height = 8.0
        for axis in range(2):
            away = points[axis, i] - (x if axis == 0 else y)
            height += away * away - 4.0 * math.cos(2.0 * math.pi * away)
        out[i] = height
    return out


@dataclass(frozen=True, slots=True)
class Generation:
    """Samples, those of them that the next generation is drawn around, and what they were drawn from."""

    samples: Tensor
    best: Tensor
    mean: Tensor
    deviation: Tensor


def generations(count: int, elite: int, seed: int = 0, device: str = "cpu") -> Iterator[Generation]:
    """Yield generations of `count` samples without end; mean and deviation are columns, (2, 1)."""
    mean = torch.tensor([[-2.5], [2.5]], device=device)
    deviation = torch.full((2, 1), 2.0, device=device)
    generator = torch.Generator(device).manual_seed(seed)
    while True:
        samples = ops.sample_normal(mean, deviation, count, generator=generator)
        best = samples[:, bumps(samples, *LOWEST).topk(elite, largest=False).indices]
        yield Generation(samples, best, mean, deviation)
        mean, deviation = best.mean(1, keepdim=True), best.std(1, keepdim=True)


def draw(found: list[Generation], path: Path) -> None:
    """Draw the generations side by side over the surface."""
    axis = torch.linspace(-5, 5, 240)
    grid = torch.stack([part.flatten() for part in torch.meshgrid(axis, axis, indexing="xy")])
    height = bumps(grid, *LOWEST).view(240, 240)
    shown = [number for number in DRAWN if number < len(found)]
    figure = Figure(figsize=(3 * len(shown), 3.2), layout="constrained")
    for panel, number in zip(figure.subplots(1, len(shown), squeeze=False).ravel(), shown, strict=True):
        each = found[number]
        panel.contourf(axis.numpy(), axis.numpy(), height.numpy(), levels=24, cmap="Greys", alpha=0.6)
        panel.scatter(*each.samples.cpu().numpy(), s=3, color="#4c78a8", linewidths=0)
        panel.scatter(*each.best.cpu().numpy(), s=6, color="#b3472e", linewidths=0)
        panel.scatter(*LOWEST, marker="+", s=70, color="black", linewidths=1)
        panel.set(xlim=(-5, 5), ylim=(-5, 5), xticks=[], yticks=[])
        panel.set_title(f"generation {number}", fontsize=9, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main(count: int = 1024, elite: int = 64, last: int = 8, device: str = "cpu") -> bool:
    """Search, print and draw; return whether the lowest point was found."""
    found: list[Generation] = []
    for number, each in enumerate(generations(count, elite, device=device)):
        found.append(each)
        x, y = (float(value) for value in each.mean)
        print(f"generation {number:2d}: mean ({x:6.3f}, {y:6.3f}), deviation {each.deviation.max().item():.3f}")
        if number == last:
            break
    draw(found, OUTPUT / "cross-entropy.png")
    away = (found[-1].mean.flatten().cpu() - torch.tensor(LOWEST)).abs().max().item()
    print(f"{OUTPUT}/cross-entropy.png: the mean is {away:.4f} from the lowest point")
    return away < 0.02


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m examples.cross_entropy", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, default=1024, help="in a generation")
    given = parser.parse_args()
    raise SystemExit(not main(given.samples, max(2, given.samples // 16), device=given.device))
