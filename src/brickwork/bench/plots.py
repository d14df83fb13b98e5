"""Pictures of results and of samples; matplotlib enters here, when first needed."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import html as markup
import io
import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from brickwork.bench.record import Case
from brickwork.bench.report import duration
from brickwork.records import dataclass

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Panel
    from matplotlib.figure import Figure

_OURS = ("#b3472e", "#de8f75", "#7a2c1a", "#e9b9a6")
_LIMITS = ("#5b666e", "#9aa5ad", "#c2c9ce")
_SYSTEMS = {
    "torch": "#4c78a8",
    "torch.sin": "#4c78a8",
    "torch.compile": "#59a14f",
    "CUDA": "#e0a030",
    "triton": "#8c6bb1",
    "numba": "#3fa6a0",
    "taichi": "#3a444c",
    "quadrants": "#d37295",
    "warp": "#8f7347",
    "helion": "#6f7f2f",
}
"""The colours of known systems, by the first word of a contender's label."""
_OTHERS = ("#4c78a8", "#59a14f", "#e0a030", "#8c6bb1", "#76b7b2", "#9aa5ad", "#d37295", "#8f7347")
_KINDS = ("-", "--", "-.", ":")
"""The kinds of line of the variants of one system."""
_BESIDE = 6
"""From more curves than these on, their names stand beside the plot."""
_WIDEST = (0.01, 1000.0)
"""The multiples of brickwork's time between which marks are drawn at their place."""
_LETTERS = 100
"""As many letters have room below an axis."""
_NARROW = 8.0
"""A logarithmic axis whose ends are less than that apart is labelled in small steps."""
_STEPS, _SMALL_STEPS = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_TUNED = "tuned"
"""What the label of a variant says that was tuned by hand."""
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
    return _text(_drawn(curves, axes))


def _text(figure: Figure) -> str:
    """Return a picture as the text of an SVG file."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
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


@dataclass(frozen=True, slots=True)
class _Look:
    """How a curve is drawn."""

    colour: str
    kind: str
    width: float
    mark: float
    order: int


def _looks(curves: Sequence[Curve]) -> list[_Look]:
    """Return how each curve is drawn: those of one system in its colour, in every plot the same one."""
    systems = [_system(curve) for curve in curves]
    colours = {system: _SYSTEMS[system] for system in systems if system in _SYSTEMS}
    free = iter([*(colour for colour in _OTHERS if colour not in colours.values()), *_OTHERS * len(curves)])
    seen: Counter[str] = Counter()
    found: list[_Look] = []
    for curve in curves:
        system = _system(curve)
        variant = seen[system]
        seen[system] += 1
        if curve.bound:
            found.append(_Look(curve.colour or _LIMITS[variant % len(_LIMITS)], curve.kind, 1.3, 0, 1))
        elif curve.name.startswith("brickwork"):
            colour = curve.colour or _OURS[variant % len(_OURS)]
            found.append(_Look(colour, curve.kind, 1.8 if variant else 2.6, 4, 4 if variant else 5))
        else:
            colours[system] = colours.get(system) or next(free)
            kind = curve.kind if curve.kind != "-" else _KINDS[variant % len(_KINDS)]
            found.append(_Look(curve.colour or colours[system], kind, 1.5, 3, 2))
    return found


def _system(curve: Curve) -> str:
    """Return what a contender is a variant of: the first word of its label; nothing for bounds."""
    return "" if curve.bound else curve.name.partition(",")[0].partition(" ")[0]


def _drawn(curves: Sequence[Curve], axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    words = {x for curve in curves for x in curve.x if isinstance(x, str)}
    figure = Figure(figsize=(max(7.6, len(words) / 4), 4.2), layout="constrained")
    lines_in(figure.subplots(), curves, axes)
    return figure


def lines_in(panel: Panel, curves: Sequence[Curve], axes: Axes) -> None:
    """Draw curves over a common x into a panel of matplotlib's."""
    xs = list(dict.fromkeys(x for curve in curves for x in curve.x))
    words = any(isinstance(x, str) for x in xs)
    if words:
        _bars(panel, curves, xs)
    else:
        _lines(panel, curves)
    _scaled(panel, axes, xs, words=words)
    if axes.title:
        panel.set_title(axes.title, fontsize=10, loc="left")
    if len(curves) > _BESIDE:
        panel.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif curves:
        panel.legend(frameon=False, fontsize=8)


def _lines(panel: Panel, curves: Sequence[Curve]) -> None:
    """Draw curves over numbers, each with the band between its quartiles."""
    for curve, look in zip(curves, _looks(curves), strict=True):
        panel.plot(
            curve.x,
            curve.y,
            look.kind,
            marker="o",
            markersize=look.mark if len(curve.x) > 1 else max(look.mark, 3),
            label=curve.name,
            color=look.colour,
            linewidth=look.width,
            zorder=look.order,
        )
        if curve.lower:
            lower, upper = curve.lower, curve.upper
            panel.fill_between(curve.x, lower, upper, color=look.colour, alpha=0.15, linewidth=0, zorder=look.order)


def _bars(panel: Panel, curves: Sequence[Curve], xs: Sequence[float | str]) -> None:
    """Draw curves over words as bars side by side; what is a bound, as a mark across them."""
    shown = [curve for curve in curves if not curve.bound]
    width = 0.8 / max(1, len(shown))
    for curve, look in zip(curves, _looks(curves), strict=True):
        if curve.bound:
            places = [xs.index(x) for x in curve.x]
            left, right = [place - 0.42 for place in places], [place + 0.42 for place in places]
            panel.hlines(curve.y, left, right, label=curve.name, colors=look.colour, linewidth=1.6, zorder=6)
            continue
        aside = (shown.index(curve) + 0.5) * width - 0.4
        below = [max(0.0, y - low) for y, low in zip(curve.y, curve.lower, strict=False)]
        above = [max(0.0, high - y) for y, high in zip(curve.y, curve.upper, strict=False)]
        panel.bar(
            [xs.index(x) + aside for x in curve.x],
            curve.y,
            width * 0.92,
            yerr=(below, above) if below else None,
            error_kw={"elinewidth": 0.8, "ecolor": _LIMITS[0]},
            label=curve.name,
            color=look.colour,
        )


def _scaled(panel: Panel, axes: Axes, xs: Sequence[float | str], *, words: bool) -> None:
    """Label and scale the axes."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if axes.x_log and not words:
        panel.set_xscale("log", base=2)
    if words:
        room = _LETTERS // len(xs)
        if room < max(map(len, map(str, xs))) / 3:  # they stand upright where they would cover each other
            panel.set_xticks(range(len(xs)), [str(x) for x in xs], rotation="vertical")
        else:
            panel.set_xticks(range(len(xs)), [textwrap.fill(str(x), room, break_long_words=False) for x in xs])
        panel.set_xlim(-0.55, len(xs) - 0.45)
    elif len(xs) <= _FEW:
        panel.set_xticks(list(xs), [f"{x:g}" if isinstance(x, float) else str(x) for x in xs])
        panel.tick_params(axis="x", which="minor", bottom=False)
    if axes.y_log:
        panel.set_yscale("log")
        low, high = panel.get_ylim()
        panel.yaxis.set_major_locator(LogLocator(subs=_STEPS if high > _NARROW * low else _SMALL_STEPS))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.set_ylim(bottom=0)
    panel.set_xlabel(axes.x)
    panel.set_ylabel(axes.y)
    panel.tick_params(labelsize=8)
    panel.grid(axis="y", color="#e4e7e9", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True, slots=True)
class Mark:
    """How many times as long as brickwork a variant of a system takes; or a measure, which is no system."""

    system: str
    variant: str
    times: float
    measure: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """A row of `standings`: what is timed, and the others beside brickwork."""

    words: str
    marks: tuple[Mark, ...]


def standings(rows: Sequence[Standing], path: Path, title: str) -> None:
    """Draw rows of times as multiples of brickwork's: to the right of its line the others take longer."""
    _stood(rows, title).savefig(path, dpi=110)


def standings_drawing(rows: Sequence[Standing], title: str) -> str:
    """Return the picture that `standings` draws as the text of an SVG file."""
    return _text(_stood(rows, title))


def _stood(rows: Sequence[Standing], title: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 1.3 + 0.36 * len(rows)), layout="constrained")
    panel = figure.subplots()
    times = [mark.times for row in rows for mark in row.marks]
    low, high = max(min((0.5, *times)) / 1.5, _WIDEST[0]), min(max((2.0, *times)) * 1.5, _WIDEST[1])
    panel.axvspan(low, 1, color=_LIMITS[0], alpha=0.09, linewidth=0)
    panel.axvline(1, color=_OURS[0], linewidth=2.6)
    for height, row in enumerate(rows):
        said = [mark for mark in row.marks if mark.variant and not mark.measure and mark.variant != _TUNED]
        for mark in row.marks:
            _placed(panel, mark, height, (low, high))
        for number, mark in enumerate(sorted(said, key=lambda mark: mark.times)):
            _named(panel, mark, height, above=number % 2 == 0)
    _multiples(panel, (low, high))
    panel.set_yticks(range(len(rows)), [row.words for row in rows])
    panel.set_ylim(len(rows) - 0.4, -0.9)
    for apart, words, side in ((-5, "faster", "right"), (5, "slower than brickwork", "left")):
        panel.annotate(
            words,
            (1, -0.5),
            xytext=(apart, 0),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
            color=_OURS[0],
        )
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    _keyed(figure, [mark for row in rows for mark in row.marks])
    return figure


def _placed(panel: Panel, mark: Mark, height: int, limits: tuple[float, float]) -> None:
    """Draw a mark of a row: a dot, a hollow diamond for a tuned source, a stroke for a measure; an arrow off limits."""
    low, high = limits
    shape, size, colour, inside = _ink(mark)
    shape = "<" if mark.times < low else ">" if mark.times > high else shape
    panel.plot(
        min(max(mark.times, low), high),
        height,
        shape,
        color=colour,
        markerfacecolor=inside,
        markersize=size,
        zorder=2 if mark.measure else 3,
        clip_on=False,
    )


def _named(panel: Panel, mark: Mark, height: int, *, above: bool) -> None:
    """Write the name of a variant above or below its mark."""
    place = (mark.times, height - 0.2 if above else height + 0.2)
    panel.annotate(
        mark.variant, place, fontsize=6, ha="center", va="bottom" if above else "top", color=_LIMITS[0], zorder=4
    )


def _ink(mark: Mark) -> tuple[str, float, str, str]:
    """Return the shape, the size, the colour and the colour inside of a mark."""
    if mark.measure:
        return "|", 11, _LIMITS[0], _LIMITS[0]
    colour = _SYSTEMS.get(mark.system.partition(" ")[0], _LIMITS[0])
    return ("D", 5, colour, "white") if mark.variant == _TUNED else ("o", 6.5, colour, colour)


def _multiples(panel: Panel, limits: tuple[float, float]) -> None:
    """Scale the axis of multiples of brickwork's time."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    panel.set_xscale("log")
    panel.set_xlim(*limits)
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if limits[1] < 3000 * limits[0] else (1.0,)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g} x"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("time, as a multiple of brickwork's", fontsize=8)
    panel.tick_params(labelsize=8)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="both", color="#e4e7e9", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)


def _keyed(figure: Figure, marks: Sequence[Mark]) -> None:
    """Say below the rows what the marks mean."""
    from matplotlib.lines import Line2D

    shown = {mark.system: Mark(mark.system, "", 1) for mark in marks if not mark.measure}
    if any(mark.variant == _TUNED for mark in marks):
        shown["tuned by hand"] = Mark("", _TUNED, 1)
    if measures := dict.fromkeys(mark.variant for mark in marks if mark.measure):
        shown[f"for scale: {', '.join(measures)}"] = Mark("", "", 1, measure=True)
    keys: list[Line2D] = []
    for words, mark in shown.items():
        shape, size, colour, inside = _ink(mark)
        keys.append(
            Line2D(
                [], [], linestyle="", label=words, marker=shape, markersize=size, color=colour, markerfacecolor=inside
            )
        )
    figure.legend(handles=keys, frameon=False, fontsize=8, ncols=min(6, len(keys)), loc="outside lower center")


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


def picture(image: torch.Tensor, path: Path, colours: str = "gray") -> None:
    """Write a picture, (height, width) or (height, width, 3), with values of 0 to 1 or bytes.

    Where it has no colours of its own, it takes those of a map of matplotlib's.
    """
    from matplotlib import image as writer

    writer.imsave(path, image.contiguous().numpy(), cmap=colours, vmin=0, vmax=1)
