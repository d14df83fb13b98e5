"""Pictures of results and of samples; matplotlib enters here, when first needed."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import html as markup
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from brickwork.bench.record import Case
from brickwork.bench.report import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

_OURS, _LIMIT = "#b3472e", "#5b666e"
_OTHERS = ("#4c78a8", "#59a14f", "#e0a030", "#8c6bb1", "#76b7b2", "#9aa5ad", "#d37295", "#8f7347")
_FEW = 10
"""As many values of x are written at the axis."""


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
    curves: list[Curve] = []
    for name in dict.fromkeys(name for case in cases for name in case.timings):
        points = [(size, case) for size, case in zip(sizes, cases, strict=True) if name in case.timings]
        values = tuple(case.moved / case.timings[name].median / 1e9 for _, case in points)
        curves.append(Curve(name, tuple(size for size, _ in points), values))
    lines(curves, path, Axes(title=title, x="", y="GB/s, read and written", x_log=True))


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a plot, with the band between its quartiles, in the colour and kind that were asked for."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    colour: str = ""
    kind: str = "-"
    bound: bool = False
    """Whether it is a limit and not a contender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What is written at a plot's axes, and whether they are logarithmic."""

    title: str
    x: str
    y: str
    x_log: bool = False
    y_log: bool = False


def lines(curves: Sequence[Curve], path: Path, axes: Axes) -> None:
    """Draw curves over a common x, which may be words, as a PNG or SVG file."""
    _drawn(curves, axes).savefig(path, dpi=110)


def drawing(curves: Sequence[Curve], axes: Axes) -> str:
    """Return the picture that `lines` draws as the text of an SVG file."""
    text = io.StringIO()
    _drawn(curves, axes).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def inline(curves: Sequence[Curve], axes: Axes) -> str:
    """Return the picture that `lines` draws as HTML, or nothing where matplotlib is not installed."""
    try:
        figure = _drawn(curves, axes)
    except ImportError:
        return ""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    text = base64.b64encode(data.getvalue()).decode("ascii")
    return (
        f"<img alt='{markup.escape(axes.title, quote=True)}' style='max-width:100%' src='data:image/png;base64,{text}'>"
    )


def _drawn(curves: Sequence[Curve], axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    xs = list(dict.fromkeys(x for curve in curves for x in curve.x))
    words = any(isinstance(x, str) for x in xs)
    places: dict[float | str, float] = {x: xs.index(x) if isinstance(x, str) or words else x for x in xs}
    colours = iter(_OTHERS * (1 + len(curves) // len(_OTHERS)))
    for curve in curves:
        at = [places[x] for x in curve.x]
        ours = curve.name.startswith("brickwork")
        colour = curve.colour or (_LIMIT if curve.bound else _OURS if ours else next(colours))
        order, width, mark = (3, 2.5, 4) if ours else (1, 1.2, 0) if curve.bound else (2, 1.5, 3)
        panel.plot(
            at,
            curve.y,
            curve.kind,
            marker="o",
            markersize=mark,
            label=curve.name,
            color=colour,
            linewidth=width,
            zorder=order,
        )
        if curve.lower:
            panel.fill_between(at, curve.lower, curve.upper, color=colour, alpha=0.15, linewidth=0, zorder=order)
    _scaled(panel, axes, list(places.values()) if words else [], xs)
    panel.set_title(axes.title, fontsize=10, loc="left")
    panel.legend(frameon=False, fontsize=8)
    return figure


def _scaled(panel: Panel, axes: Axes, places: list[float], xs: Sequence[float | str]) -> None:
    """Label and scale the axes; `places` are those of the x that are words."""
    if axes.x_log and not places:
        panel.set_xscale("log", base=2)
    if places or len(xs) <= _FEW:
        panel.set_xticks(places or list(xs), [f"{x:g}" if isinstance(x, float) else str(x) for x in xs])
        panel.tick_params(axis="x", which="minor", bottom=False)
    if axes.y_log:
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)
    panel.set_xlabel(axes.x)
    panel.set_ylabel(axes.y)
    panel.tick_params(labelsize=8)
    panel.grid(axis="y", color="#e4e7e9", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def histogram(samples: torch.Tensor, path: Path, title: str) -> None:
    """Draw the histogram of standardised samples over the density of N(0, 1)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    panel = figure.subplots()
    panel.hist(samples.flatten().numpy(), bins=200, range=(-5, 5), density=True, color="#d9b8a8", label="samples")
    x = [number / 40 - 5 for number in range(401)]
    density = [math.exp(-at * at / 2) / math.sqrt(2 * math.pi) for at in x]
    panel.plot(x, density, color="#b3472e", label="density of N(0, 1)")
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
