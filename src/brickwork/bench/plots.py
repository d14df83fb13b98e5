"""Pictures of results and of samples; matplotlib enters here, when first needed."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from brickwork.bench.record import Case
from brickwork.bench.report import duration


def timings(cases: list[Case], path: Path) -> None:
    """Draw the cases as bars, one panel each, in the order of the cases."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    figure = Figure(figsize=(11, 2.6 * ((len(cases) + 1) // 2)), layout="constrained")
    panels = figure.subplots((len(cases) + 1) // 2, 2, squeeze=False).ravel()
    for panel in panels[len(cases) :]:
        panel.set_axis_off()
    for panel, case in zip(panels, cases, strict=False):
        names = list(case.timings)[::-1]
        values = [case.timings[name].median for name in names]
        colours = ["#b3472e" if name.startswith("brickwork") else "#9aa5ad" for name in names]
        bars = panel.barh(names, values, color=colours)
        panel.bar_label(bars, [duration(value) for value in values], padding=4, fontsize=8)
        if max(values) > 30 * min(values):
            panel.set_xscale("log")
            panel.set_xlim(min(values) / 3, max(values) * 6)
        else:
            panel.set_xlim(0, max(values) * 1.25)
            panel.xaxis.set_major_locator(MaxNLocator(6))
        panel.tick_params(which="minor", labelbottom=False)
        panel.set_title(case.title, fontsize=9, loc="left")
        panel.xaxis.set_major_formatter(EngFormatter(unit="s"))
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def rates(cases: list[Case], sizes: list[int], path: Path, title: str) -> None:
    """Draw how fast each contender moves its bytes, over the sizes of the cases."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    names = dict.fromkeys(name for case in cases for name in case.timings)
    for name in names:
        points = [(size, case) for size, case in zip(sizes, cases, strict=True) if name in case.timings]
        values = [case.moved / case.timings[name].median / 1e9 for _, case in points]
        ours = name == "brickwork"
        (line,) = panel.plot([size for size, _ in points], values, marker="o", markersize=3, label=name)
        if ours:
            line.set(linewidth=2.5, color="#b3472e", zorder=3)
    panel.set_xscale("log", base=2)
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.set_ylabel("GB/s, read and written")
    panel.set_title(title, fontsize=10, loc="left")
    panel.legend(frameon=False, fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def histogram(samples: torch.Tensor, path: Path, title: str) -> None:
    """Draw the histogram of standardised samples over the density of N(0, 1)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    panel.hist(samples.flatten().numpy(), bins=200, range=(-5, 5), density=True, color="#d9b8a8", label="samples")
    x = np.linspace(-5, 5, 400)
    panel.plot(x, np.exp(-x * x / 2) / np.sqrt(2 * np.pi), color="#b3472e", label="density of N(0, 1)")
    panel.set_title(title, fontsize=10, loc="left")
    panel.legend(frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def curves(lines: Mapping[str, Sequence[float]], path: Path, across: str, along: str) -> None:
    """Draw series of numbers by name; the axes are labelled `across` and `along`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    for width, (name, values) in zip((3, 1), lines.items(), strict=False):
        panel.plot(values, label=name, linewidth=width, color="#d9b8a8" if width > 1 else "#b3472e")
    panel.set_xlabel(across)
    panel.set_ylabel(along)
    panel.legend(frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def picture(image: torch.Tensor, path: Path) -> None:
    """Write a picture, (height, width) or (height, width, 3), with values of 0 to 1 or bytes."""
    from matplotlib import image as writer

    writer.imsave(path, image.contiguous().numpy(), cmap="gray", vmin=0, vmax=1)
