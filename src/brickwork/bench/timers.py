"""The timing protocol on the CPU.

All contenders of one comparison are timed in one process, turn by turn in each round, so that whatever slows the
machine for a while slows all of them: ratios within one run can be trusted, absolute times drift. Each is called until
it is warm, and once before each sample, so that none is timed with the caches and thread pools as the one before left
them; short calls are repeated within a sample until a sample lasts long enough for the clock. Where a budget is given,
rounds go on until every median is known as well as was asked, or the budget is spent; and a contender that has spent
several times its part of it, three samples at least, takes no further turns.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping

from brickwork.records import dataclass

Call = Callable[[], object]
_LONG = 0.3
"""Seconds of a call that needs no other call before it to be as it is."""
_LEAST = 3
_PATIENCE = 4
"""How many times its part of the budget a contender may take for its samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of one call: the median of the samples, the quarter and three-quarter quantiles, and the least."""

    median: float
    lower: float
    upper: float
    least: float
    samples: int
    calls_per_sample: int

    @property
    def spread(self) -> float:
        """Half of what lies between the quartiles, as a part of the median."""
        return (self.upper - self.lower) / 2 / self.median if self.median else 0.0

    @property
    def uncertainty(self) -> float:
        """How far the true median may be, as a part of the median: the notch of a box plot, 1.57 IQR / sqrt(n)."""
        return 3.14 * self.spread / math.sqrt(self.samples)


def measure(
    contenders: Mapping[str, Call],
    *,
    rounds: int = 15,
    warm_up: float = 0.2,
    sample: float = 0.005,
    budget: float = 0.0,
    precision: float = 0.01,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Timing]:
    """Time the contenders turn by turn. `warm_up` and `sample` are seconds; `progress` is told what happens.

    After `rounds` rounds, more follow until each median is known within `precision`, or `budget` seconds have passed.
    """
    counts: dict[str, int] = {}
    for name, call in contenders.items():
        if progress is not None:
            progress(f"warming up {name}")
        counts[name] = max(1, round(sample / warm(call, warm_up)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    patience = _PATIENCE * budget / max(1, len(contenders))
    running = dict(contenders)
    begun = time.perf_counter()
    number = 0
    while running and (number < rounds or (time.perf_counter() - begun < budget and not known(seconds, precision))):
        number += 1
        if progress is not None:
            progress(f"round {number} of {max(rounds, number)}")
        for name, call in running.items():
            if not seconds[name] or seconds[name][-1] < _LONG:
                call()
            seconds[name].append(once(call, counts[name]))
        if patience:
            done = [name for name in running if _spent(seconds[name], counts[name], patience)]
            running = {name: call for name, call in running.items() if name not in done}
    return {name: summary(values, counts[name]) for name, values in seconds.items()}


def _spent(values: list[float], count: int, patience: float) -> bool:
    """Whether a contender's samples have taken more seconds than there is patience for."""
    return len(values) >= _LEAST and sum(values) * count > patience


def known(seconds: Mapping[str, list[float]], precision: float) -> bool:
    """Whether the median of every contender's samples is known within `precision`, as a part of it."""
    return all(summary(values, 1).uncertainty <= precision for values in seconds.values())


def warm(call: Call, seconds: float) -> float:
    """Call until `seconds` have passed, three times at least unless that takes long; return the fastest call's time."""
    start = time.perf_counter()
    fastest = float("inf")
    calls = 0
    while not calls or (passed := time.perf_counter() - start) < seconds or (calls < 3 and passed < _LONG):
        fastest = min(fastest, once(call, 1))
        calls += 1
    return max(fastest, 1e-9)


def once(call: Call, count: int) -> float:
    """Return the seconds of one call, as the mean over `count` calls."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def summary(seconds: list[float], calls_per_sample: int) -> Timing:
    """Return the median, quartiles and least of samples."""
    lower, median, upper = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    return Timing(
        median=median,
        lower=lower,
        upper=upper,
        least=min(seconds),
        samples=len(seconds),
        calls_per_sample=calls_per_sample,
    )


def of_each(timing: Timing, count: int) -> Timing:
    """Return the timing of one of `count` calls that each sample made together."""
    return Timing(
        median=timing.median / count,
        lower=timing.lower / count,
        upper=timing.upper / count,
        least=timing.least / count,
        samples=timing.samples,
        calls_per_sample=count,
    )
