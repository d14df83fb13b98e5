"""The timing protocol on the CPU.

All contenders of one comparison are timed in one process, turn by turn in each round, so that whatever slows the
machine for a while slows all of them: ratios within one run can be trusted, absolute times drift. Each is called until
it is warm, and once before each sample, so that none is timed with the caches and thread pools as the one before left
them; short calls are repeated within a sample until a sample lasts long enough for the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of one call: the median of the samples, the quarter and three-quarter quantiles, and the least."""

    median: float
    lower: float
    upper: float
    least: float
    samples: int
    calls_per_sample: int


def measure(
    contenders: Mapping[str, Call],
    *,
    rounds: int = 15,
    warm_up: float = 0.2,
    sample: float = 0.005,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Timing]:
    """Time the contenders turn by turn. `warm_up` and `sample` are seconds; `progress` is told what happens."""
    counts: dict[str, int] = {}
    for name, call in contenders.items():
        if progress is not None:
            progress(f"warming up {name}")
        counts[name] = max(1, round(sample / warm(call, warm_up)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        if progress is not None:
            progress(f"round {number + 1} of {rounds}")
        for name, call in contenders.items():
            call()
            seconds[name].append(once(call, counts[name]))
    return {name: summary(values, counts[name]) for name, values in seconds.items()}


def warm(call: Call, seconds: float) -> float:
    """Call until `seconds` have passed, three times at least; return the time of the fastest call."""
    start = time.perf_counter()
    fastest = float("inf")
    calls = 0
    while calls < 3 or time.perf_counter() - start < seconds:
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
