"""`perf_report` and `Benchmark`: a function that returns a number is run over cases, as by Triton's.

The function measures itself, with `do_bench` for example; what is done here is the loop over cases, the table and the
plot. `bench.benchmark` takes a function that returns the call to be timed, and measures it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, cast

from brickwork.bench import plots
from brickwork.records import dataclass

Row: TypeAlias = tuple[Any, ...]
"""The values of x, then of each line its value, the least and the greatest."""


@dataclass(slots=True)
class Benchmark:
    """Sizes and kinds to run a function for, and what the plot of its numbers looks like."""

    x_names: Sequence[str]
    """The arguments along x. With several, each gets the same value, unless `x_vals` has tuples."""
    x_vals: Sequence[Any]
    """Their values."""
    line_arg: str
    """The argument that tells the lines apart."""
    line_vals: Sequence[Any]
    """Its values."""
    line_names: Sequence[str]
    """What the lines are called."""
    plot_name: str
    """The name of the plot, and of its files."""
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The function's other arguments."""
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None
    """Colour and kind of each line, as matplotlib names them: `("blue", "-")`."""

    def points(self) -> list[dict[str, Any]]:
        """Return the arguments of each case along x."""
        found: list[dict[str, Any]] = []
        for value in self.x_vals:
            several = isinstance(value, tuple | list)
            values = list(cast("Sequence[Any]", value)) if several else [value] * len(self.x_names)
            if len(values) != len(self.x_names):
                raise ValueError(f"`x_vals` has {value!r} for the {len(self.x_names)} names {', '.join(self.x_names)}")
            found.append(dict(zip(self.x_names, values, strict=True)))
        return found

    @property
    def columns(self) -> list[str]:
        """The headings of a table: the names along x, then the lines."""
        unit = f" ({self.ylabel})" if self.ylabel else ""
        return [*self.x_names, *(f"{name}{unit}" for name in self.line_names)]


class PerfReport:
    """A function with benchmarks of it: `run` runs it for all their cases."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        """Keep the function, and what it is run for."""
        self.fn = fn
        self.benchmarks = benchmarks

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.fn(*arguments, **named)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | Path = "",
        return_df: bool = False,
        *,
        diff_col: bool = False,
        save_precision: int = 6,
        **named: Any,
    ) -> Any:
        """Run the function for each case; it returns a number, or the number, the least and the greatest.

        Args:
            show_plots: Show the plots by matplotlib.
            print_data: Print the tables.
            save_path: A folder for a plot and a CSV file of each benchmark, and `results.html`.
            return_df: Return a data frame of pandas for each benchmark.
            diff_col: Add a column with the difference of two lines.
            save_precision: Digits behind the point in CSV files.
            named: Further arguments of the function.
        """
        alone = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else [*self.benchmarks]
        pandas = _pandas() if return_df else None
        folder = Path(save_path) if save_path else None
        frames: list[Any] = []
        for benchmark in benchmarks:
            rows = self._measured(benchmark, named)
            columns, shown = _table(benchmark, rows, differences=diff_col)
            if print_data:
                sys.stdout.write(f"{benchmark.plot_name}:\n{_text(columns, shown)}\n")
            if folder is not None:
                _save(folder, benchmark, rows, (columns, shown), save_precision)
            if show_plots:
                _show(benchmark, rows)
            if pandas is not None:
                frames.append(pandas.DataFrame(shown, columns=columns))
        if folder is not None:
            images = "".join(f'<image src="{benchmark.plot_name}.png"/>\n' for benchmark in benchmarks)
            (folder / "results.html").write_text(f"<html><body>\n{images}</body></html>\n", encoding="utf-8")
        return None if pandas is None else frames[0] if alone else frames

    def _measured(self, benchmark: Benchmark, named: Mapping[str, Any]) -> list[Row]:
        rows: list[Row] = []
        for point in benchmark.points():
            row: list[Any] = [*point.values()]
            for kind in benchmark.line_vals:
                found = self.fn(**point, **{benchmark.line_arg: kind}, **benchmark.args, **named)
                row += found if isinstance(found, tuple | list) else [found, None, None]
            rows.append(tuple(row))
        return rows


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], PerfReport]:
    """Make a report of a function that measures one case: `@perf_report(Benchmark(...))`, then `.run(...)`."""
    return lambda fn: PerfReport(fn, benchmarks)


# ---------------------------------------------------------------- tables and plots


def _table(benchmark: Benchmark, rows: list[Row], *, differences: bool) -> tuple[list[str], list[Row]]:
    """Return the headings and the rows of a table: the values of x, and of each line."""
    first, count = len(benchmark.x_names), len(benchmark.line_names)
    shown = [(*row[:first], *row[first : first + 3 * count : 3]) for row in rows]
    if not (differences and count == 2):
        return benchmark.columns, shown
    return [*benchmark.columns, "Diff"], [(*row, row[-1] - row[-2]) for row in shown]


def _text(columns: list[str], rows: list[Row]) -> str:
    """Return a table with a number for each row."""
    cells = [["", *columns]] + [[str(at), *map(_cell, row)] for at, row in enumerate(rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _cell(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _save(folder: Path, benchmark: Benchmark, rows: list[Row], table: tuple[list[str], list[Row]], digits: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{benchmark.plot_name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table[0])
        for row in table[1]:
            writer.writerow([f"{value:.{digits}f}" if isinstance(value, float) else value for value in row])
    plots.lines(_curves(benchmark, rows), folder / f"{benchmark.plot_name}.png", _axes(benchmark))


def _show(benchmark: Benchmark, rows: list[Row]) -> None:
    pyplot = import_module("matplotlib.pyplot")
    figure = pyplot.figure(benchmark.plot_name)
    panel = figure.subplots()
    plots.lines_in(panel, _curves(benchmark, rows), _axes(benchmark))
    pyplot.show()


def _axes(benchmark: Benchmark) -> plots.Axes:
    along = benchmark.xlabel or benchmark.x_names[0]
    return plots.Axes(title="", x=along, y=benchmark.ylabel, x_log=benchmark.x_log, y_log=benchmark.y_log)


def _curves(benchmark: Benchmark, rows: list[Row]) -> list[plots.Curve]:
    """Return the lines over the first name along x, each with the band between its least and greatest."""
    first = len(benchmark.x_names)
    styles = benchmark.styles or [("", "-")] * len(benchmark.line_names)
    found: list[plots.Curve] = []
    for at, (name, (colour, kind)) in enumerate(zip(benchmark.line_names, styles, strict=False)):
        known = [row for row in rows if row[first + 3 * at] is not None]
        values, least, greatest = (tuple(row[first + 3 * at + part] for row in known) for part in range(3))
        banded = None not in (*least, *greatest)
        xs = tuple(row[0] for row in known)
        bands = (least, greatest) if banded else ((), ())
        found.append(plots.Curve(name, xs, values, bands[0], bands[1], colour=colour, kind=kind))
    return found


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise ModuleNotFoundError("return_df=True needs pandas: pip install pandas") from None
