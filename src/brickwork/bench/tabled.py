"""`tabled`: a table of times that were not taken by `compare`, in processes of their own for example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from brickwork.bench import environment
from brickwork.bench.formulas import Formula, evaluated, listed
from brickwork.bench.record import Case, record
from brickwork.bench.table import Metric, Table, refuse
from brickwork.bench.timers import Timing, summary

_X = TypeVar("_X", int, float, str)


def tabled(
    rows: Mapping[_X, Mapping[str, Timing | Sequence[float] | str]],
    metric: Metric = "ms",
    *,
    title: str,
    x_name: str = "N",
    device: Literal["cpu", "cuda"] = "cpu",
    moved: Formula | None = None,
    flops: Formula | None = None,
    baseline: str = "",
    x_log: bool = False,
    y_log: bool = False,
    protocol: Mapping[str, str] | None = None,
    peaks: Mapping[str, float] | None = None,
) -> Table:
    """Return a table of times that were taken elsewhere.

    Args:
        rows: For each value of x what each contender took: a timing, the seconds of its samples, or in words why it
            was not timed.
        metric: What the table shows.
        title: What is compared.
        x_name: What x is called, also in formulas.
        device: Whose time it is.
        moved: Bytes that a call reads and writes, as a formula of x.
        flops: Floating-point operations of a call, likewise.
        baseline: The contender that speed-ups refer to; the first one of each row if nothing is said.
        x_log: Whether x is drawn on a logarithmic axis.
        y_log: Whether values are.
        protocol: How it was measured, in words; clocks are noted besides.
        peaks: What the machine can do, as `peaks` measures it, for the roof.
    """
    refuse(metric, listed(moved, flops))
    cases = [
        Case(
            title=f"{title}, {x_name} = {x}",
            timings={name: _timing(found) for name, found in row.items() if not isinstance(found, str)},
            notes={name: found for name, found in row.items() if isinstance(found, str)},
            reference=baseline or next(iter(row), ""),
            device=device,
            moved=evaluated(moved, {x_name: x}, (x,)),
            flops=evaluated(flops, {x_name: x}, (x,)),
        )
        for x, row in rows.items()
    ]
    return Table(
        record=record(title, cases),
        x_name=x_name,
        x_values=tuple(rows),
        lines=tuple(dict.fromkeys(name for row in rows.values() for name in row)),
        metric=metric,
        x_log=x_log,
        y_log=y_log,
        formulas=listed(moved, flops),
        protocol={**(protocol or {}), "clocks": environment.clocks(device)},
        peaks=dict(peaks or {}),
        warnings=environment.warnings_for(device),
    )


def _timing(found: Timing | Sequence[float]) -> Timing:
    return found if isinstance(found, Timing) else summary([*found], 1)
