"""The result of a comparison: a value for each case and contender, with everything that is needed to believe it.

A table keeps the cases as they were timed (`record.py`); values in milliseconds, GB/s and so on are worked out when
they are asked for. What is printed is in `table_text.py`, what is drawn in `plots.py`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from brickwork.bench import plots, table_text, views
from brickwork.bench.compare_runs import Changes, changes
from brickwork.bench.record import Case, Record, of_data, read
from brickwork.bench.roofline import roof
from brickwork.bench.timers import Timing
from brickwork.records import dataclass

X: TypeAlias = int | float | str
Metric: TypeAlias = Literal["ms", "us", "GB/s", "TFLOP/s", "speed-up", "host us", "kernels", "MiB"]
"""Of a call its time, its rates, how many times as fast it is as the baseline, the host's part of its time, the kernels
that it launches, the memory that it takes at most."""
METRICS: tuple[Metric, ...] = get_args(Metric)
COUNTS: frozenset[Metric] = frozenset({"kernels", "MiB"})
"""Metrics that are no times and vary from call to call by nothing."""
_NEEDED = {"GB/s": ("bytes", "moved"), "TFLOP/s": ("operations", "flops")}
"""The formula that a metric is worked out from, and the argument that gives it."""
_FORMAT = 1
_BESIDES = ("host", "launches", "memory", "bytes", "flops")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A comparison as it was measured: a case for each value of x, a line for each contender."""

    record: Record
    """The cases in the order of x, with date, versions, machine and commit."""
    x_name: str
    x_values: tuple[X, ...]
    lines: tuple[str, ...]
    """The contenders' labels; the first one's answers are the others' measure."""
    metric: Metric
    styles: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Colour and kind of line of a label, as matplotlib names them, where they were chosen."""
    x_log: bool = False
    y_log: bool = False
    formulas: dict[str, str] = field(default_factory=dict[str, str])
    """Bytes and operations of a call, as formulas."""
    protocol: dict[str, str] = field(default_factory=dict[str, str])
    """How it was measured, in words: what was timed, threads, caches, clocks."""
    measures: tuple[str, ...] = ()
    """Labels of what is no rival but a measure, `copy_` for example."""
    peaks: dict[str, float] = field(default_factory=dict[str, float])
    """Bytes a second of copy and fill, and operations a second of FMA, measured in the same run."""
    warnings: tuple[str, ...] = ()
    """What makes the figures unfit to be kept."""

    @property
    def title(self) -> str:
        """What was compared."""
        return self.record.name

    def case(self, x: X) -> Case:
        """Return the timings and notes of one value of x."""
        if x not in self.x_values:
            raise KeyError(f"the table has no {self.x_name} = {x!r}; it has {', '.join(map(repr, self.x_values))}")
        return self.record.cases[self.x_values.index(x)]

    def value(self, x: X, line: str) -> float | None:
        """Return the median of a cell in the table's metric, or None where it was not measured."""
        case = self.case(x)
        if self.metric == "kernels":
            return case.launches.get(line)
        if self.metric == "MiB":
            return case.memory[line] / (1 << 20) if line in case.memory else None
        timing = self.timing(x, line)
        return None if timing is None else self._rated(case, timing.median)

    def timing(self, x: X, line: str) -> Timing | None:
        """Return the times of a cell, the host's where the table shows those; None where it was not timed."""
        case = self.case(x)
        return (case.host if self.metric == "host us" and case.device == "cuda" else case.timings).get(line)

    def quartiles(self, x: X, line: str) -> tuple[float, float] | None:
        """Return the quartiles of a cell in the table's metric, the smaller first."""
        case, timing = self.case(x), self.timing(x, line)
        if timing is None or self.metric in COUNTS:
            return None
        found = [self._rated(case, seconds) for seconds in (timing.lower, timing.upper)]
        known = [value for value in found if value is not None]
        return (min(known), max(known)) if known else None

    def roof(self, x: X) -> float | None:
        """Return what no contender can be better than, in the table's metric, by the peaks of the same run."""
        case = self.case(x)
        seconds = roof(case.moved, case.flops, self.peaks)
        bounded = self.metric != "host us" and self.metric not in COUNTS
        return self._rated(case, seconds) if seconds and bounded else None

    def _rated(self, case: Case, seconds: float) -> float | None:
        """Return a time of a case in the table's metric."""
        match self.metric:
            case "ms":
                return seconds * 1e3
            case "us" | "host us":
                return seconds * 1e6
            case "GB/s":
                return case.moved / seconds / 1e9 if case.moved else None
            case "TFLOP/s":
                return case.flops / seconds / 1e12 if case.flops else None
            case "speed-up":
                reference = case.timings.get(case.reference)
                return reference.median / seconds if reference else None
            case "kernels" | "MiB":
                return None

    def measured_in(self, metric: Metric) -> Table:
        """Return the same measurements in another metric."""
        refuse(metric, self.formulas)
        return replace(self, metric=metric)

    def against(self, earlier: Table) -> Changes:
        """Compare with an earlier run: cell by cell the ratio of the times, what it may be off by, and a verdict."""
        return changes(self.record, earlier.record, self.x_name, self.x_values, earlier.x_values)

    def show(self) -> None:
        """Print the table in the terminal."""
        views.show(self.sheet())

    def plot(self, path: Path | str) -> Path:
        """Draw the table as a PNG or SVG file."""
        place = _prepared(path)
        plots.lines(self._curves(), place, self._axes())
        return place

    def save(self, path: Path | str) -> Path:
        """Write the table; the suffix says as what: .json (which `load` reads), .csv, .md, .html, .png or .svg."""
        place = _prepared(path)
        match place.suffix:
            case ".json":
                text = json.dumps(self.data(), indent=1) + "\n"
            case ".csv":
                text = self._tidy()
            case ".md":
                text = views.markdown(self.sheet())
            case ".html":
                text = f"<!doctype html>\n<meta charset='utf-8'>\n<title>{self.title}</title>\n{self._repr_html_()}\n"
            case ".png" | ".svg":
                return self.plot(place)
            case _:
                raise ValueError(f"a table is saved as .json, .csv, .md, .html, .png or .svg, not {place.suffix!r}")
        place.write_text(text, encoding="utf-8")
        return place

    @staticmethod
    def load(path: Path | str) -> Table:
        """Read a table that `save` wrote as JSON."""
        return read(Path(path), _FORMAT, Table.of_data, "a table")

    def data(self) -> dict[str, Any]:
        """Return the table as JSON has it."""
        return {"format": _FORMAT, **asdict(self)}

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> Table:
        """Return the table that `data` turned into this."""
        rest = {key: value for key, value in data.items() if key != "format"}
        styles: Mapping[str, tuple[str, str]] = rest.pop("styles")
        return Table(
            record=of_data(rest.pop("record")),
            x_values=tuple(rest.pop("x_values")),
            lines=tuple(rest.pop("lines")),
            warnings=tuple(rest.pop("warnings")),
            measures=tuple(rest.pop("measures", ())),
            styles={name: (colour, kind) for name, (colour, kind) in styles.items()},
            **rest,
        )

    def __str__(self) -> str:
        """Return the table as it is printed, without colours."""
        return views.plain(self.sheet())

    def __rich__(self) -> object:
        """Return what rich prints."""
        return views.renderable(self.sheet())

    def _repr_html_(self) -> str:
        """Return the table, with its plot, for a notebook."""
        return views.html(self.sheet(), plots.inline(self._curves(), self._axes()))

    def drawing(self) -> str:
        """Return the plot, without its title, as the text of an SVG file."""
        return plots.drawing(self._curves(), replace(self._axes(), title=""))

    def sheet(self) -> views.Sheet:
        """Return what stands in the printed form."""
        columns = table_text.Columns(
            x_name=self.x_name,
            xs=self.x_values,
            lines=self.lines,
            measures=self.measures,
            metric=self.metric,
            value=self.value,
            timing=self.timing,
            roof=self.roof,
        )
        return table_text.sheet(
            self.record,
            columns,
            formulas=self.formulas,
            protocol=self.protocol,
            peaks=self.peaks,
            warnings=self.warnings,
        )

    def _tidy(self) -> str:
        """Return a line for each cell, as comma-separated values; times are in seconds."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        measured = ("median", "lower", "upper", "least", "samples")
        writer.writerow((self.x_name, "line", self.metric, *measured, *_BESIDES, "note"))
        for x in self.x_values:
            case = self.case(x)
            for line in self.lines:
                timing, host = case.timings.get(line), case.host.get(line)
                besides = (host.median if host else "", case.launches.get(line, ""), case.memory.get(line, ""))
                seconds = [getattr(timing, name) if timing else "" for name in measured]
                value = self.value(x, line)
                shown = "" if value is None else value
                writer.writerow((x, line, shown, *seconds, *besides, case.moved, case.flops, case.notes.get(line, "")))
        return text.getvalue()

    def _axes(self) -> plots.Axes:
        label = {
            "ms": "milliseconds",
            "us": "microseconds",
            "speed-up": f"speed-up over {self._reference()}",
            "host us": "microseconds of the host",
            "kernels": "kernels a call",
            "MiB": "MiB at most",
        }
        return plots.Axes(
            title=self.title, x=self.x_name, y=label.get(self.metric, self.metric), x_log=self.x_log, y_log=self.y_log
        )

    def _reference(self) -> str:
        return self.record.cases[0].reference if self.record.cases else ""

    def _curves(self) -> list[plots.Curve]:
        """Return the lines, and the roof where it is known."""
        found = [self._curve(line) for line in self.lines]
        roofs = [(x, value) for x in self.x_values if (value := self.roof(x)) is not None]
        if roofs and self.metric != "speed-up":
            named = "what the machine can do"
            found.append(
                plots.Curve(named, tuple(x for x, _ in roofs), tuple(y for _, y in roofs), kind="--", bound=True)
            )
        return [curve for curve in found if curve.x]

    def _curve(self, line: str) -> plots.Curve:
        xs = tuple(x for x in self.x_values if self.value(x, line) is not None)
        measure = line in self.measures
        colour, kind = self.styles.get(line, ("", ":" if measure else "-"))
        bands = [self.quartiles(x, line) or (0.0, 0.0) for x in xs]
        return plots.Curve(
            line,
            xs,
            tuple(self.value(x, line) or 0.0 for x in xs),
            lower=tuple(low for low, _ in bands),
            upper=tuple(high for _, high in bands),
            colour=colour,
            kind=kind,
            bound=measure,
        )


def refuse(metric: str, formulas: Mapping[str, str]) -> None:
    """Refuse a metric that there is not, or that needs a formula that was not given."""
    if metric not in METRICS:
        raise ValueError(f"there is no metric {metric!r}; there are: {', '.join(METRICS)}")
    needed = _NEEDED.get(metric)
    if needed is not None and needed[0] not in formulas:
        raise ValueError(f"{metric} needs `{needed[1]}=`, a formula such as '8 * N'")


def _prepared(path: Path | str) -> Path:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
