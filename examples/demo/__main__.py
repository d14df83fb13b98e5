"""Runs the four ready operators from their plain source: checks, draws pictures, and times them beside torch."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.peers import torch_formulations
from brickwork import bench, ops
from brickwork.bench import plots
from brickwork.bench.plan import Progress as Told
from brickwork.bench.report import duration, ratio
from brickwork.bench.timers import Call
from examples.brick_wall import tiles
from examples.demo import checks, gpu

OUTPUT = Path("demo-output")
LATTICE = ([4096, 2048], [32, 0], [10, 48])


def main() -> None:
    """Run the demonstration; its pictures go to `demo-output/`."""
    start = time.perf_counter()
    console = Console(highlight=False, soft_wrap=True)
    OUTPUT.mkdir(exist_ok=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("starting")

        def progress(text: str) -> None:
            shown.update(task, description=text)

        console.print("[bold]1. Each operator against its torch formulation[/bold]")
        for check in checks.ALL:
            progress(check.__name__)
            console.print(f"   {check()}")
        console.print("\n[bold]2. Pictures[/bold]")
        draw(console, progress)
        console.print("\n[bold]3. The same source on an NVIDIA GPU[/bold]")
        on_a_gpu(console, progress)
        console.print("\n[bold]4. Times beside torch, on the CPU[/bold]")
        found = measured(progress)
    found.show()
    plots.timings([*found.record.cases], OUTPUT / "timings.png")
    console.print(f"{OUTPUT / 'timings.png'}: these times as a plot")
    console.print(f"\nDone in {duration(time.perf_counter() - start)}. The pictures are in {OUTPUT}/.")


def measured(progress: Told) -> bench.Table:
    """Time each operator beside its formulation in torch's operations."""
    return bench.compare(
        contenders,
        ("brick_pad", "timex", "sin", "sample_normal"),
        "ms",
        x_name="operator",
        title="the ready operators beside torch",
        check=False,
        seconds=0.2,
        progress=progress,
    )


def contenders(name: str) -> dict[str, Call]:
    """Return the calls of one operator; their answers have been compared before."""
    tile, x = torch.rand(48, 32), torch.randn(1 << 22)
    w, k = torch.randn(64, 512), torch.randn(8, 64, 512)
    mu, sigma = torch.randn(2500), torch.rand(2500) + 0.5
    image = (1036, 2056, *LATTICE)
    ours: dict[str, Call] = {
        "brick_pad": lambda: ops.brick_pad(tile, *image),
        "timex": lambda: ops.timex(w, k, 0.1),
        "sin": lambda: ops.sin(x),
        "sample_normal": lambda: ops.sample_normal(mu, sigma, 1024),
    }
    theirs: dict[str, Call] = {
        "brick_pad": lambda: torch_formulations.brick_pad(tile, *image),
        "timex": lambda: torch_formulations.timex_fourier(w, k, 0.1),
        "sin": lambda: torch.sin(x),
        "sample_normal": lambda: torch_formulations.sample_normal(mu, sigma, 1024),
    }
    return {"brickwork": ours[name], "torch": theirs[name]}


def on_a_gpu(console: Console, progress: Told) -> None:
    """Run the operators on the GPU beside the CPU, or say why not."""
    missing = gpu.why_not()
    if missing:
        console.print(f"   No GPU is used: {missing}.")
        return
    progress("the GPU beside the CPU")
    console.print(f"   {gpu.named()}, on the arguments and the source that the CPU has; device time of one call:")
    for row in gpu.rows():
        equal = "all equal" if row.apart == 0 else f"largest difference {row.apart:.1e}"
        times = f"CPU {duration(row.cpu):>8}, GPU {duration(row.gpu):>8}, {ratio(row.cpu / row.gpu):>7} as fast"
        console.print(f"   {row.name:14} {row.elements:>11,} elements: {times}; {equal}")


def draw(console: Console, progress: Told) -> None:
    """Write the walls, and the histogram of the samples."""
    progress("drawing a brick wall")
    brick = tiles.brick()
    height, width = brick.shape[:2]
    wall = ops.brick_pad(brick, 480, 720, [13, 7], [width, 0], [width // 2, height])
    plots.picture(wall, OUTPUT / "wall.png")
    console.print(f"   {OUTPUT / 'wall.png'}: a brick of {width}x{height} pixels, laid in courses")
    progress("repeating a photograph")
    photograph = tiles.photograph()
    height, width = photograph.shape[:2]
    lattice = ([40, 30], [width, 0], [width // 3, height])
    repeated = ops.brick_pad(photograph, 480, 720, *lattice)
    assert torch.equal(repeated, torch_formulations.brick_pad(photograph, 480, 720, *lattice))
    plots.picture(repeated, OUTPUT / "photograph.png")
    console.print(f"   {OUTPUT / 'photograph.png'}: a photograph of {width}x{height} pixels on a skewed lattice")
    progress("drawing samples")
    mu, sigma = torch.linspace(-3, 3, 1000), torch.linspace(0.5, 2, 1000)
    samples = ops.sample_normal(mu, sigma, 1024)
    standard = (samples - mu[:, None]) / sigma[:, None]
    plots.histogram(standard, OUTPUT / "samples.png", "1000 normal distributions, 1024 samples of each, standardised")
    console.print(f"   {OUTPUT / 'samples.png'}: the samples' histogram over the density")


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__).parse_args()
    main()
