"""Two runs of the same comparison: which cells became faster or slower, by more than chance explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from brickwork.bench import views
from brickwork.bench.record import Case, Record
from brickwork.bench.timers import Timing
from brickwork.records import dataclass

Verdict: TypeAlias = Literal["faster", "slower", "same"]
_DRIFT = 0.03
"""By how much two runs differ when nothing has changed: clocks, placement of memory. No less is called a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A cell in two runs: `ratio` is its time now over its time then, which may be off by `spread` of itself."""

    x: int | float | str
    line: str
    now: Timing
    then: Timing

    @property
    def ratio(self) -> float:
        """How many times as long as in the earlier run it takes."""
        return self.now.median / self.then.median

    @property
    def spread(self) -> float:
        """How far the ratio may be off, as a part of it: the uncertainties of both medians, and the usual drift."""
        return math.hypot(self.now.uncertainty, self.then.uncertainty, _DRIFT)

    @property
    def verdict(self) -> Verdict:
        """Whether it became faster or slower by more than the spread."""
        if abs(math.log(self.ratio)) <= math.log1p(self.spread):
            return "same"
        return "faster" if self.ratio < 1 else "slower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All cells that two runs have in common, what only one of them has, and what should be alike and is not."""

    title: str
    x_name: str
    cells: tuple[Change, ...]
    missing: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def cell(self, x: float | str, line: str) -> Change:
        """Return one cell."""
        return next(each for each in self.cells if (each.x, each.line) == (x, line))

    def summary(self) -> str:
        """Return in words how many cells became what."""
        verdicts: tuple[Verdict, ...] = ("faster", "slower", "same")
        return ", ".join(f"{sum(each.verdict == verdict for each in self.cells)} {verdict}" for verdict in verdicts)

    def show(self) -> None:
        """Print the changes in the terminal."""
        views.show(self.sheet())

    def markdown(self) -> str:
        """Return the changes as a Markdown table."""
        return views.markdown(self.sheet())

    def __str__(self) -> str:
        """Return the changes as they are printed, without colours."""
        return views.plain(self.sheet())

    def __rich__(self) -> object:
        """Return what rich prints."""
        return views.renderable(self.sheet())

    def _repr_html_(self) -> str:
        """Return the changes for a notebook."""
        return views.html(self.sheet())

    def sheet(self) -> views.Sheet:
        """Return what stands in the printed form."""
        lines = tuple(dict.fromkeys(each.line for each in self.cells))
        cells = {(each.x, each.line): each for each in self.cells}
        rows = tuple(
            (views.Cell(views.named(x)), *(_cell(cells.get((x, line))) for line in lines))
            for x in dict.fromkeys(each.x for each in self.cells)
        )
        return views.Sheet(
            title=f"{self.title}: time now / time then",
            headings=(self.x_name, *lines),
            rows=rows,
            remarks=(f"{self.summary()}.", *self.missing),
            warnings=self.remarks,
        )


def _cell(change: Change | None) -> views.Cell:
    if change is None:
        return views.Cell("")
    manner: dict[Verdict, views.Manner] = {"faster": "good", "slower": "bad", "same": "plain"}
    text = f"{change.ratio:.2f} ± {change.spread * change.ratio:.2f} {change.verdict}"
    return views.Cell(text, manner[change.verdict])


def changes(
    now: Record, then: Record, x_name: str, xs: Sequence[float | str], xs_then: Sequence[float | str]
) -> Changes:
    """Compare two records whose cases belong to these values of x."""
    before, after = dict(zip(xs_then, then.cases, strict=True)), dict(zip(xs, now.cases, strict=True))
    cells = tuple(
        Change(x=x, line=line, now=timing, then=before[x].timings[line])
        for x, case in after.items()
        for line, timing in case.timings.items()
        if x in before and line in before[x].timings
    )
    missing = (*_missing(x_name, after, before, "this run"), *_missing(x_name, before, after, "the earlier run"))
    return Changes(title=now.name, x_name=x_name, cells=cells, missing=missing, remarks=_unlike(now, then))


def _missing(
    x_name: str, here: Mapping[float | str, Case], there: Mapping[float | str, Case], run: str
) -> tuple[str, ...]:
    """Say which values of x, and which contenders of the others, are only in one of two runs."""
    alone = [views.named(x) for x in here if x not in there]
    found = [f"{x_name} = {', '.join(alone)}: only in {run}"] if alone else []
    lacking: dict[str, list[str]] = {}
    for x, case in here.items():
        for line in case.timings:
            if x in there and line not in there[x].timings:
                lacking.setdefault(line, []).append(views.named(x))
    return (*found, *(f"{line}: only in {run}, {x_name} = {', '.join(where)}" for line, where in lacking.items()))


def _unlike(now: Record, then: Record) -> tuple[str, ...]:
    """Return what of the two runs should be alike and is not."""
    differing = [
        f"{key} {then.machine.get(key, 'none')} -> {value}"
        for key, value in now.machine.items()
        if then.machine.get(key) != value
    ]
    found = [f"another machine: {', '.join(differing)}"] if differing else []
    devices, devices_then = ({case.device for case in run.cases} for run in (now, then))
    if devices != devices_then:
        found.append(f"another device: {', '.join(sorted(devices_then))} -> {', '.join(sorted(devices))}")
    if now.threads != then.threads:
        found.append(f"another number of threads: {then.threads} -> {now.threads}")
    changed = [
        f"{name} {version} -> {now.versions[name]}"
        for name, version in then.versions.items()
        if now.versions.get(name, version) != version
    ]
    found += [f"other versions: {', '.join(changed)}"] if changed else []
    return tuple(found)
