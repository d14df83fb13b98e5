"""`benchmark`: a function that prepares one point, its contender and its size, becomes a benchmark of them all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from brickwork.bench.formulas import Formula, evaluated, listed
from brickwork.bench.plan import Contest, Options, Plan, carry_out, protocol_of, seeded, why
from brickwork.bench.table import Metric, Table, X
from brickwork.bench.timers import Call

Prepare = Callable[..., Call | None]


def benchmark(
    *,
    x_name: str,
    x_values: Sequence[X],
    line: str,
    lines: Sequence[str] | Mapping[str, str],
    metric: Metric = "ms",
    styles: Sequence[tuple[str, str]] = (),
    x_log: bool = False,
    y_log: bool = False,
    title: str = "",
    arguments: Mapping[str, Any] | None = None,
    moved: Formula | None = None,
    flops: Formula | None = None,
    baseline: str = "",
) -> Callable[[Prepare], Benchmarked]:
    """Make a benchmark of a function that prepares one point of it.

    It gets x and the line by these names, and `arguments`; it returns the call that is timed, or None if there is none.
    All contenders of one x find the random generators in the same state.

    Args:
        x_name: The parameter that runs along x.
        x_values: Its values.
        line: The parameter that tells the contenders apart.
        lines: Its values, or a mapping of them to labels.
        metric: What the table shows.
        styles: Colour and kind of line for each contender, as matplotlib names them: `("red", "--")`.
        x_log: Whether x is drawn on a logarithmic axis.
        y_log: Whether values are.
        title: What is compared; the function's name if nothing is said.
        arguments: The function's other arguments, which stay the same.
        moved: Bytes that a call reads and writes: a formula of x and `arguments` (`"8 * M * N"`) or a function of them.
        flops: Floating-point operations of a call, likewise.
        baseline: The value of the line that speed-ups refer to; the first one if nothing is said.
    """
    labels, fixed = dict(lines if isinstance(lines, Mapping) else zip(lines, lines, strict=True)), dict(arguments or {})

    def made(function: Prepare) -> Benchmarked:
        def contest(x: X) -> Contest:
            names = {x_name: x, **fixed}
            work = (evaluated(formula, names, tuple(names.values())) for formula in (moved, flops))
            return Contest(*_prepared(function, names, line, labels), *work)

        plan = Plan(
            title=title or getattr(function, "__name__", "benchmark"),
            x_name=x_name,
            x_values=tuple(x_values),
            lines=tuple(labels.values()),
            baseline=labels.get(baseline, baseline) or next(iter(labels.values()), ""),
            metric=metric,
            make=contest,
            styles=dict(zip(labels.values(), styles, strict=False)),
            x_log=x_log,
            y_log=y_log,
            formulas=listed(moved, flops),
        )
        return Benchmarked(function, plan)

    return made


class Benchmarked:
    """A decorated function: called, it prepares one point; `run` measures them all."""

    def __init__(self, function: Prepare, plan: Plan) -> None:
        """Keep the function and what is to be compared."""
        functools.update_wrapper(self, function)
        self._function = function
        self.plan = plan

    def __call__(self, *arguments: Any, **named: Any) -> Call | None:
        """Prepare one point, as the function does."""
        return self._function(*arguments, **named)

    def run(self, **how: Unpack[Options]) -> Table:
        """Measure, and return the table; `Protocol` says what `how` may be."""
        return carry_out(self.plan, protocol_of(how))


def _prepared(
    function: Prepare, arguments: Mapping[str, object], line: str, labels: Mapping[str, str]
) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the calls of one x by label, and why others could not be prepared."""
    calls: dict[str, Call] = {}
    failures: dict[str, str] = {}
    for key, label in labels.items():
        try:
            with seeded():
                call = function(**arguments, **{line: key})
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            failures[label] = why(error)
            continue
        if call is not None:
            calls[label] = call
    return calls, failures
