"""What verbs are carried out with: the whole schedule, what was proved of the loops, and numbers for new indices."""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.analysis.verdicts import Analysis, LoopVerdict
from brickwork.ir.nodes import Symbol
from brickwork.records import dataclass
from brickwork.transform.schedule.schedule import Schedule, chunk_of


@dataclass(frozen=True, slots=True)
class Context:
    """`analysis` is that of the kernel before any verb; `numbers` yields symbol numbers that are not in use."""

    schedule: Schedule
    analysis: Analysis
    numbers: Iterator[int]

    def verdict(self, loop: Symbol) -> LoopVerdict:
        """Return what was proved of a loop, or of the one that it is a loop over the chunks of."""
        loops = self.analysis.loops
        return (
            loops[next((item for item in loops if chunk_of(item) == loop), loop)] if loop not in loops else loops[loop]
        )
