"""What brickwork has to reach: seconds, or so many times what another contender of the same case takes.

Targets were set before anything was measured. A table keeps them with its cases, in words and as the seconds that the
line `brickwork` may take; a target whose contender was not timed is in words alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from brickwork.bench import Table
from brickwork.bench.record import Case
from brickwork.bench.report import duration
from brickwork.bench.table import X

OURS = "brickwork"
"""The line that targets are for."""


@dataclass(frozen=True, slots=True)
class Target:
    """At most `times` what the contender `of` takes, or that many seconds if none is named."""

    times: float
    of: str = ""

    def seconds(self, table: Table, x: X) -> float:
        """Return the seconds that brickwork may take at one x, or infinity where the contender was not timed."""
        if not self.of:
            return self.times
        timing = table.timing(x, self.of)
        return self.times * timing.median if timing else float("inf")

    def __str__(self) -> str:
        """Return the target in words."""
        if not self.of:
            return duration(self.times)
        return self.of if self.times == 1 else f"{self.times:g} x {self.of}"


def reaching(table: Table, *targets: Target, at: Collection[X] | None = None) -> Table:
    """Return a table with what brickwork has to reach, at some values of x or at all; of several targets, each."""
    cases = tuple(
        _aimed(table, x, case, targets) if at is None or x in at else case
        for x, case in zip(table.x_values, table.record.cases, strict=True)
    )
    return replace(table, record=replace(table.record, cases=cases))


def _aimed(table: Table, x: X, case: Case, targets: tuple[Target, ...]) -> Case:
    least = min(target.seconds(table, x) for target in targets)
    words = " and ".join(str(target) for target in targets)
    return replace(case, target=words, at_most=0.0 if least == float("inf") else least)
