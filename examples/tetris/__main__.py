"""Learns to play Tetris, prints each generation, and films a game of what was learned.

`torchrun --nproc-per-node 2 -m examples.tetris` shares the games out among processes, each with a GPU of its own where
there are GPUs; what is learned is the same. `--speeds` times the rules beside NumPy, Numba and plain Python instead.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from torch import distributed

from brickwork.bench import plots
from examples.tetris import speeds
from examples.tetris.drawing import animation, filmed
from examples.tetris.games import dealt
from examples.tetris.learning import Generation, Settings, agreed, generations
from examples.tetris.rules import FEATURES

OUTPUT = Path("demo-output")
DEFAULTS = {
    "cpu": Settings(controllers=64, games=2, trials=16, most=30_000),
    "cuda": Settings(controllers=1024, games=2, trials=256, most=50_000),
}
"""A GPU plays thousands of games in about the time of one, so that its games may be long."""
FILMED = 150
"""Pieces of the animation."""


def main() -> None:
    """Learn for as long as was asked; pictures go to `demo-output/`."""
    chosen = arguments()
    if chosen.speeds:
        speeds.main(chosen.device)
        return
    device = torch.device(chosen.device)
    together = "WORLD_SIZE" in os.environ
    if together and device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if together:
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = not together or distributed.get_rank() == 0
    found = learned(chosen, device, Console(highlight=False, soft_wrap=True, quiet=not first))
    if first:
        pictures(found)
    if together:
        distributed.destroy_process_group()


def learned(chosen: argparse.Namespace, device: torch.device, console: Console) -> list[Generation]:
    """Return the generations, each printed as it comes."""
    asked = {name: getattr(chosen, name) for name in ("controllers", "games", "most", "trials", "seed")}
    settings = replace(DEFAULTS[device.type], **{name: value for name, value in asked.items() if value is not None})
    settings = replace(settings, elite=max(settings.controllers // 10, 2))
    console.print(f"{settings} on {device}")
    console.print(" seconds  generation  lines a game: learnt mean  population       best        moves")
    start = time.perf_counter()
    found: list[Generation] = []
    for each in generations(settings, device):
        found.append(each)
        passed = time.perf_counter() - start
        scores = f"{each.learnt_lines:12,.1f}{each.mean_lines:12,.1f}{each.best_lines:11,.1f}"
        console.print(f"{passed:8.1f}{each.number:12}{'':13}{scores}{each.moves:13,}")
        enough = (
            passed > chosen.seconds
            or min(each.learnt_lines, each.mean_lines) >= chosen.lines
            or len(found) == chosen.generations
        )
        if agreed(enough, device):
            break
    console.print(
        f"learnt mean: {settings.trials} games of the mean that a generation is drawn from, with other pieces"
    )
    for name, weight in zip(FEATURES, found[-1].mean.tolist(), strict=True):
        console.print(f"   {name:20} {weight:8.2f}")
    return found


def pictures(found: list[Generation]) -> None:
    """Draw the scores of the generations, and film a game of the last mean."""
    OUTPUT.mkdir(exist_ok=True)
    numbers = tuple(each.number for each in found)
    scores = {
        "the learnt mean": [each.learnt_lines for each in found],
        "the population": [each.mean_lines for each in found],
        "the best of it": [each.best_lines for each in found],
    }
    colours = ("#b3472e", "#4c78a8", "#9aa5ad")
    curves = [
        plots.Curve(name, numbers, tuple(lines), colour=colour)
        for (name, lines), colour in zip(scores.items(), colours, strict=True)
    ]
    axes = plots.Axes(title="Tetris by the cross-entropy method", x="generation", y="cleared lines a game")
    plots.lines(curves, OUTPUT / "tetris-learning.png", axes)
    frames = filmed(found[-1].mean.tolist(), dealt(FILMED, 1, key=1)[:, 0].tolist())
    animation([*frames], OUTPUT / "tetris.gif")
    print(f"{OUTPUT}/tetris-learning.png, {OUTPUT}/tetris.gif: the scores, and a game of the last mean")


def arguments() -> argparse.Namespace:
    """Return what the command line says; None where the device decides."""
    parser = argparse.ArgumentParser(prog="python -m examples.tetris", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=60, help="how long to learn")
    parser.add_argument(
        "--lines", type=float, default=float("inf"), help="what the learnt mean and the population shall score"
    )
    parser.add_argument("--generations", type=int, help="as many at most")
    parser.add_argument("--controllers", type=int, help="in a generation")
    parser.add_argument("--games", type=int, help="of each controller")
    parser.add_argument("--trials", type=int, help="games of the learnt mean in each generation")
    parser.add_argument("--most", type=int, help="moves after which a game ends")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--speeds", action="store_true", help="time the rules beside NumPy, Numba and plain Python")
    return parser.parse_args()


if __name__ == "__main__":
    main()
