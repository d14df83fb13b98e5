"""Learns a picture with PyTorch's sine and with others in its place, compares, times, and draws what was learned."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress, TaskID

import brickwork as bw
from brickwork.bench.report import duration
from examples.brick_wall import tiles
from examples.override_sin.fitting import Fit, Settings, fit
from examples.override_sin.sines import sines
from examples.override_sin.timing import timed
from examples.sheet import sheet

OUTPUT = Path("demo-output")


def main() -> None:
    """Learn, compare, time; the picture goes to `demo-output/`."""
    chosen = arguments()
    console = Console(highlight=False, soft_wrap=True)
    settings = Settings(width=chosen.width, updates=chosen.updates)
    picture = tiles.photograph(chosen.size).to(chosen.device)
    others = sines(chosen.device)
    runs: dict[str, Fit] = {}
    with Progress(console=console, transient=True) as shown:

        def learned(name: str) -> Fit:
            return fit(picture, settings, partial(tell, shown, shown.add_task(name, total=settings.updates), name))

        runs["torch.sin"] = learned("torch.sin")
        for name, sine in others.items():
            with bw.override("aten::sin", sine):
                runs[name] = learned(name)
        again = learned("torch.sin again")
    report(console, runs)
    assert again.losses == runs["torch.sin"].losses
    console.print("after the override every loss is what it was before it, bit for bit")
    timed(others, settings, picture, backend=chosen.backend, seconds=chosen.seconds).show()
    shown_as = {f"learned with {name}": run.picture(*picture.shape[:2]) for name, run in runs.items()}
    losses = {name: run.losses for name, run in runs.items()}
    console.print(f"{sheet({'the picture': picture, **shown_as}, OUTPUT / 'override-sin.png', 4, losses)}")


def tell(shown: Progress, task: TaskID, name: str, number: int, loss: float) -> None:
    """Show how far a run is."""
    shown.update(task, completed=number + 1, description=f"{name}: loss {loss:.5f}")


def report(console: Console, runs: dict[str, Fit]) -> None:
    """Print the loss and the time of an update of each run, and how far its losses are from those of the first."""
    first = next(iter(runs.values()))
    for name, run in runs.items():
        apart = max(abs(a - b) for a, b in zip(first.losses, run.losses, strict=True))
        loss = f"loss {run.losses[0]:.4f} -> {run.losses[-1]:.5f}"
        console.print(f"{name:10} {loss}, {duration(run.update)} an update; losses differ by up to {apart:.1e}")


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.override_sin", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--backend", default="inductor", help="of torch.compile, in the table")
    parser.add_argument("--seconds", type=float, default=1.0, help="to time each contender of the table")
    for name, value in {"size": 64, "width": 64, "updates": 300}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


if __name__ == "__main__":
    main()
