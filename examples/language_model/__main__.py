"""Trains the model twice, with `timex` and with torch's convolution, compares, and lets it write."""

from __future__ import annotations

import argparse
import itertools
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress, TaskID

from brickwork import ops
from brickwork.bench import plots
from brickwork.bench.report import duration, ratio
from examples.language_model.model import mix_by_convolution
from examples.language_model.text import standard_library, written
from examples.language_model.training import Run, Settings, train

OUTPUT = Path("demo-output")
CHARACTERS = 2_000_000
MIXES = {"brickwork timex": ops.timex, "torch conv1d": mix_by_convolution}


def main() -> None:
    """Train, compare, draw the losses, and print what the model writes."""
    chosen = arguments()
    console = Console(highlight=False, soft_wrap=True)
    text = standard_library(CHARACTERS).to(chosen.device)
    settings = Settings(channels=chosen.channels, steps=chosen.steps, batch=chosen.batch, updates=chosen.updates)
    console.print(f"{len(text):,} characters of the standard library; {settings}")
    runs: dict[str, Run] = {}
    with Progress(console=console, transient=True) as shown:
        for name, mix in MIXES.items():
            told = partial(tell, shown, shown.add_task(name, total=settings.updates), name)
            runs[name] = train(text, mix, settings, told)
    report(console, runs, settings.batch * settings.steps)
    OUTPUT.mkdir(exist_ok=True)
    plots.curves(
        {name: run.losses for name, run in runs.items()},
        OUTPUT / "language-model.png",
        "updates",
        "loss, nats a character",
    )
    console.print(f"{OUTPUT / 'language-model.png'}: both losses")
    first = next(iter(runs.values()))
    beginning = torch.tensor(list(b"def "), device=text.device)
    said = written(first.model.write(beginning, chosen.written, torch.Generator().manual_seed(settings.seed)))
    console.print(f"\nThe model with timex writes:\n\n{said}", markup=False)


def tell(shown: Progress, task: TaskID, name: str, number: int, loss: float) -> None:
    """Show how far a run is."""
    shown.update(task, completed=number + 1, description=f"{name}: loss {loss:.3f}")


def report(console: Console, runs: dict[str, Run], characters: int) -> None:
    """Print the loss of each run and the time of an update of so many characters, and how far the losses are apart."""
    for name, run in runs.items():
        beside = ratio(run.update / next(iter(runs.values())).update)
        speed = f"{duration(run.update)} an update ({beside}), {characters / run.update:,.0f} characters a second"
        console.print(f"{name:16} loss {run.losses[0]:.3f} -> {run.loss():.3f}, {speed}")
    for (one, first), (other, second) in itertools.combinations(runs.items(), 2):
        apart = max(abs(a - b) for a, b in zip(first.losses, second.losses, strict=True))
        console.print(f"largest difference of the losses of {one} and {other}: {apart:.4f}")


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.language_model", description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, value in {"channels": 64, "steps": 128, "batch": 8, "updates": 300, "written": 400}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


if __name__ == "__main__":
    main()
