"""A table in one line, of text or of a picture: how brickwork stands beside the others."""

from __future__ import annotations

import math
from collections import Counter

from brickwork.bench.plots import Mark, Standing
from brickwork.bench.report import duration, ratio
from brickwork.bench.table import Table, X
from brickwork.bench.views import digits
from brickwork.records import dataclass

_OURS = "brickwork"
SYSTEMS = ("torch.compile", "torch", "numba", "taichi", "quadrants", "warp", "triton", "helion", "CUDA C++")
"""By what labels of contenders begin; a longer one stands before a shorter one that it begins with."""
SCALE = "scale"
"""Stands in the place of a system where a contender is no rival but a measure, copying for example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """How many times as fast as the best rival brickwork is, over the values of x."""

    mean: float
    """The geometric mean."""
    least: float
    most: float
    rival: str
    """The rival that is most often the best."""

    def __str__(self) -> str:
        """Return it in words."""
        if self.least == self.most:
            return f"{ratio(self.mean)} as fast as {self.rival}"
        span = f"{ratio(self.least)} to {ratio(self.most)}"
        return f"{ratio(self.mean)} ({span}) as fast as the best other, mostly {self.rival}"


def glance(table: Table) -> Glance | None:
    """Return how brickwork stands in a table; None where it or a rival is missing. Measures are no rivals."""
    found: list[float] = []
    best: Counter[str] = Counter()
    for x in table.x_values:
        ours = table.timing(x, _OURS)
        rivals = {
            line: timing.median
            for line in table.lines
            if not line.startswith(_OURS) and line not in table.measures and (timing := table.timing(x, line))
        }
        if ours is None or not rivals:
            continue
        name = min(rivals, key=lambda line: rivals[line])
        best[name] += 1
        found.append(rivals[name] / ours.median)
    if not found:
        return None
    mean = math.exp(sum(map(math.log, found)) / len(found))
    return Glance(mean=mean, least=min(found), most=max(found), rival=best.most_common(1)[0][0])


@dataclass(frozen=True, slots=True)
class Beside:
    """What brickwork takes at one x, in words, and how many times as long each other contender takes."""

    ours: str
    others: tuple[tuple[str, float], ...]


def beside(table: Table, x: X) -> Beside | None:
    """Return how brickwork stands at one x; None where it was not timed."""
    ours = table.timing(x, _OURS)
    if ours is None:
        return None
    value = table.value(x, _OURS)
    rate = f", {digits(value)} {table.metric}" if value is not None and table.metric.endswith("/s") else ""
    others = tuple(
        (line, timing.median / ours.median)
        for line in table.lines
        if line != _OURS and (timing := table.timing(x, line)) is not None
    )
    return Beside(f"{duration(ours.median)}{rate}", others)


def system(line: str, measures: frozenset[str]) -> tuple[str, str]:
    """Return the system that a contender is of, and what else its label says.

    >>> system("CUDA C++, tuned", frozenset()), system("torch FFT", frozenset()), system("fill_", frozenset({"fill_"}))
    (('CUDA C++', 'tuned'), ('torch', 'FFT'), ('scale', 'fill_'))
    """
    if line in measures:
        return SCALE, line
    for name in SYSTEMS:
        if line.startswith(name):
            return name, line.removeprefix(name).lstrip(" ,.")
    return line, ""


def standing(words: str, table: Table) -> Standing | None:
    """Return how many times as long as brickwork the others take, on average over x; None where there are none."""
    marks: list[Mark] = []
    for line in table.lines:
        found = [math.log(times) for x in table.x_values if (times := _times(table, x, line)) is not None]
        if found and not line.startswith(_OURS):
            name, variant = system(line, frozenset(table.measures))
            marks.append(Mark(name, variant, math.exp(sum(found) / len(found)), measure=name == SCALE))
    return Standing(words, tuple(marks)) if marks else None


def _times(table: Table, x: X, line: str) -> float | None:
    """Return how many times as long as brickwork a contender takes at one x, where both were timed."""
    ours, timing = table.timing(x, _OURS), table.timing(x, line)
    return timing.median / ours.median if ours is not None and timing is not None else None
