"""Tables of the harness whose times are given and not measured."""

from collections.abc import Mapping
from typing import Any

from brickwork import bench
from brickwork.bench.record import Case, Record
from brickwork.bench.timers import Timing


def timed(median: float, spread: float = 0.01, samples: int = 20) -> Timing:
    """A timing with this median, and this half of what lies between the quartiles."""
    quarter = median * spread
    return Timing(
        median=median,
        lower=median - quarter,
        upper=median + quarter,
        least=median / 2,
        samples=samples,
        calls_per_sample=1,
    )


def table_of(rows: Mapping[Any, Mapping[str, float]], **changed: Any) -> bench.Table:
    """A table whose times are given: {x: {line: seconds}}."""
    cases = tuple(
        Case(
            title=f"N = {x}",
            timings={line: timed(seconds) for line, seconds in timings.items()},
            reference="torch",
            moved=8 * x,
            flops=2 * x,
        )
        for x, timings in rows.items()
    )
    record = Record(
        name="sine",
        cases=cases,
        date="2026-01-01",
        versions={"torch": "2"},
        machine={"cores": "2"},
        commit="abc",
        threads=2,
    )
    given: dict[str, Any] = {
        "x_name": "N",
        "x_values": tuple(rows),
        "lines": ("torch", "brickwork"),
        "metric": "ms",
        **changed,
    }
    return bench.Table(record=record, **given)


ROWS = {1000: {"torch": 2e-3, "brickwork": 1e-3}, 4000: {"torch": 8e-3, "brickwork": 2e-3}}
