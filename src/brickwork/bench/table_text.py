"""What stands in the printed form of a table: a row for each case, a column for each contender, how it was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from brickwork.bench.record import Case, Record
from brickwork.bench.report import duration
from brickwork.bench.timers import Timing
from brickwork.bench.views import Cell, Manner, Rows, Sheet, amount, digits, named
from brickwork.records import dataclass

_OURS = "brickwork"
"""The contender that targets are set for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A table as far as its printed form needs it: values by x and line, already in the metric that is shown."""

    x_name: str
    xs: tuple[float | str, ...]
    lines: tuple[str, ...]
    measures: tuple[str, ...]
    """The lines that are no rivals, so that none of them is the best."""
    metric: str
    value: Callable[[float | str, str], float | None]
    timing: Callable[[float | str, str], Timing | None]
    roof: Callable[[float | str], float | None]


def sheet(
    record: Record,
    columns: Columns,
    *,
    formulas: Mapping[str, str],
    protocol: Mapping[str, str],
    peaks: Mapping[str, float],
    warnings: tuple[str, ...],
) -> Sheet:
    """Return a table's printed form."""
    roofs = _roofs(columns)
    limits = _limits(record.cases, columns)
    rows = [
        (Cell(named(x)), *_row(x, case, columns), *roofs.get(x, ()), *limits.get(x, ()))
        for x, case in zip(columns.xs, record.cases, strict=True)
    ]
    return Sheet(
        title=f"{record.name} [{columns.metric}]",
        subtitle=described(record),
        headings=(
            columns.x_name,
            *columns.lines,
            *(("roof",) if roofs else ()),
            *((f"{_OURS}'s goal",) if limits else ()),
        ),
        rows=tuple(rows),
        details=_details(record.cases, columns.lines),
        remarks=(*_notes(record, columns), *_targets(record.cases)),
        facts=tuple((key, value) for key, value in (*formulas.items(), *protocol.items(), *_peaks(peaks)) if value),
        warnings=warnings,
    )


def described(record: Record) -> str:
    """Return the machine, the versions, the commit and the date on one line."""
    commit = f"commit {record.commit}; " if record.commit else ""
    return f"{machine_of(record)}; {versions_of(record)}; {commit}{record.date}"


def machine_of(record: Record) -> str:
    """Return the device that was measured, without the name of the host."""
    machine = record.machine
    processor = f"{machine.get('processor', 'CPU')}, {machine['cores']} cores"
    on_gpu = any(case.device == "cuda" for case in record.cases)
    vectors = f", {machine['vectors']}" if machine.get("vectors") else ""
    if on_gpu:
        return f"{machine.get('gpu', 'GPU')} ({machine.get('compute', '')}), beside {processor}"
    return f"{processor}{vectors}"


def versions_of(record: Record) -> str:
    """Return the versions of what was measured with."""
    return ", ".join(f"{package} {version}" for package, version in record.versions.items())


def _roofs(columns: Columns) -> dict[float | str, tuple[Cell]]:
    """Return what no contender can be better than, for each x; nothing where none is known."""
    roofs = {x: columns.roof(x) for x in columns.xs} if columns.metric != "speed-up" else {}
    if not any(value is not None for value in roofs.values()):
        return {}
    return {x: (Cell("" if value is None else digits(value), "faint"),) for x, value in roofs.items()}


def _limits(cases: Sequence[Case], columns: Columns) -> dict[float | str, tuple[Cell]]:
    """Return what brickwork was to reach, for each x, and whether it did; nothing where nothing was set."""
    if not any(case.at_most for case in cases):
        return {}
    found: dict[float | str, tuple[Cell]] = {}
    for x, case in zip(columns.xs, cases, strict=True):
        timing = columns.timing(x, _OURS)
        missed = timing is None or timing.median > case.at_most
        said = f"{duration(case.at_most)} ({'missed' if missed else 'met'})" if case.at_most else ""
        found[x] = (Cell(said, "bad" if missed else "plain"),)
    return found


def _targets(cases: Sequence[Case]) -> list[str]:
    """Return in words what was to be reached."""
    return [f"goal: {target}" for target in dict.fromkeys(case.target for case in cases if case.target)]


def _row(x: float | str, case: Case, columns: Columns) -> list[Cell]:
    least = columns.metric in {"ms", "us", "host us", "kernels", "MiB"}
    values = {line: columns.value(x, line) for line in columns.lines}
    known = [value for line, value in values.items() if value is not None and line not in columns.measures]
    best = (min(known) if least else max(known)) if len(known) > 1 else None
    counted = columns.metric in {"kernels", "MiB"}
    cells: list[Cell] = []
    for line, value in values.items():
        timing = None if counted else columns.timing(x, line)
        spread = "" if timing is None else f" ±{100 * timing.spread:.0f}%"
        shown = "" if value is None else f"{digits(value)}{spread}"
        refused = "" if line in case.timings else case.notes.get(line, "").partition(":")[0]
        leads = value is not None and value == best and line not in columns.measures
        manner: Manner = "bad" if refused else "good" if leads else "plain"
        cells.append(Cell(refused or shown, manner))
    return cells


def _notes(record: Record, columns: Columns) -> list[str]:
    """Return why cells are empty, and what else was noted of them; what holds of several cases is said once."""
    found: dict[str, list[str]] = {}
    for x, case in zip(columns.xs, record.cases, strict=True):
        for line, note in case.notes.items():
            found.setdefault(f"{line}: {note}", []).append(named(x))
    return [
        text if len(xs) == len(columns.xs) else f"{text} ({columns.x_name} = {', '.join(xs)})"
        for text, xs in found.items()
    ]


def _details(cases: Sequence[Case], lines: tuple[str, ...]) -> tuple[tuple[str, ...], Rows] | None:
    """Return a row for each contender with what was measured besides its time, from the least case to the most."""
    found = {
        "host time of a call": {
            line: [case.host[line].median for case in cases if line in case.host] for line in lines
        },
        "kernels a call": {line: [case.launches[line] for case in cases if line in case.launches] for line in lines},
        "peak memory of a call": {line: [case.memory[line] for case in cases if line in case.memory] for line in lines},
    }
    written: dict[str, Callable[[float], str]] = {"host time of a call": duration, "kernels a call": str}
    shown = [heading for heading, by_line in found.items() if any(by_line.values())]
    if not shown:
        return None
    rows = tuple(
        (Cell(line), *(Cell(_range(found[heading][line], written.get(heading, amount))) for heading in shown))
        for line in lines
    )
    return ("", *shown), rows


def _range(values: Sequence[float], write: Callable[[float], str]) -> str:
    if not values:
        return ""
    low, high = write(min(values)), write(max(values))
    return low if low == high else f"{low} to {high}"


def _peaks(peaks: Mapping[str, float]) -> list[tuple[str, str]]:
    if not peaks:
        return []
    bandwidths = ", ".join(f"{name} {peaks[name] / 1e9:.0f} GB/s" for name in ("copy", "fill") if name in peaks)
    operations = f", FMA {peaks['fma'] / 1e12:.3g} TFLOP/s in float32" if "fma" in peaks else ""
    return [("roof", f"what bytes and operations take at least by the peaks of this run, {bandwidths}{operations}")]
