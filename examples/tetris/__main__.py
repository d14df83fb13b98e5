"""Learns to play Tetris, prints each generation, and films a game of what was learned."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console

from brickwork.bench import plots
from examples.tetris.drawing import animation, filmed
from examples.tetris.learning import Generation, Settings, generations
from examples.tetris.rules import FEATURES

OUTPUT = Path("demo-output")


def main() -> None:
    """Learn for as long as was asked; pictures go to `demo-output/`."""
    chosen = arguments()
    console = Console(highlight=False, soft_wrap=True)
    torch.manual_seed(chosen.seed)
    settings = Settings(chosen.controllers, chosen.games, max(chosen.controllers // 10, 2), chosen.most)
    console.print(f"{settings} on {chosen.device}")
    start = time.perf_counter()
    found: list[Generation] = []
    for each in generations(settings, chosen.device):
        found.append(each)
        passed = time.perf_counter() - start
        lines = f"{each.mean_lines:10,.1f} lines a game, {each.best_lines:10,.1f} by the best"
        console.print(f"{passed:6.1f} s  generation {each.number:3}: {lines}; {each.moves:,} moves")
        if passed > chosen.seconds or each.mean_lines >= chosen.lines:
            break
    for name, weight in zip(FEATURES, found[-1].mean.tolist(), strict=True):
        console.print(f"   {name:20} {weight:8.2f}")
    OUTPUT.mkdir(exist_ok=True)
    scores = {"mean": [each.mean_lines for each in found], "best": [each.best_lines for each in found]}
    plots.curves(scores, OUTPUT / "tetris-learning.png", "generations", "cleared lines a game")
    animation(filmed(found[-1].mean, 300), OUTPUT / "tetris.gif")
    console.print(f"{OUTPUT}/tetris-learning.png, {OUTPUT}/tetris.gif: the scores, and a game of the last mean")


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.tetris", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=60, help="how long to learn")
    parser.add_argument("--lines", type=float, default=float("inf"), help="the mean at which to stop")
    parser.add_argument("--controllers", type=int, default=64, help="in a generation")
    parser.add_argument("--games", type=int, default=2, help="of each controller")
    parser.add_argument("--most", type=int, default=4000, help="moves after which a game ends")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
