"""Short rows: nests whose iterations go along few elements each, as windows do, on a grid.

    for i in range(n):                        a thread takes an i, and goes along k alone: a block of them for three
        for k in range(w.shape[0]):           products would be idle but for three threads, and wait for these
            y[i] += x[i + k] * w[k]

Where the loops inside an iteration are as long as rows, a block of threads shares them out (`grid.py`). Sizes tell at
run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.schedule.grid import SHORT, GridPlanner
from brickwork.transform.schedule.planner import access_cost, varies_with
from brickwork.transform.schedule.schedule import Directive, Schedule, Split

SHORT_APART = 16
"""The same where each thread reads a row of its own: of 8, it is 4 x as fast as a block, of 31 a quarter as fast."""


@dataclass(frozen=True, slots=True)
class ShortPlanner(GridPlanner):
    """Schedules as a `GridPlanner` does, but that some loops are known to be `short`."""

    short: frozenset[Symbol] = frozenset()

    def fills_blocks(self, last: For, chosen: Sequence[For]) -> bool:
        """Whether loops inside of a band can be shared out among the threads of a block, and are long enough."""
        long = any(node.index not in self.short for node in chosen)
        return long and GridPlanner.fills_blocks(self, last, chosen)

    def limit(self, row: For) -> int:
        """Return how many iterations are too many for a thread: fewer where neighbouring threads read far apart."""
        reads = [item for item in self.inside(row) if not item.store and varies_with(item, row.index)]
        return SHORT if all(map(_is_near, reads)) else SHORT_APART

    def split(self, last: For) -> Iterator[Directive]:
        """Name the loop in a band that accumulates, if it is one that pieces can be made of."""
        found = GridPlanner.split(self, last)
        return (item for item in found if not (isinstance(item, Split) and item.loop in self.short))


def _is_near(access: Access) -> bool:
    """Whether neighbouring iterations of some loop read neighbours."""
    return any(access_cost(access, {around.node.index}) < 1 for around in access.loops[:-1])


def short_schedule(
    block: Block, analysis: Analysis, target: Target, plain: Schedule
) -> tuple[Schedule, tuple[Expression, ...]] | None:
    """Return the schedule for short rows, and what must hold so that they are; None if nothing would be another."""
    changing = assigned_symbols(block)
    nests = [node for node in statements(block) if isinstance(node, For) and plain.blocks(node.index)]
    inside = {node.index: node for nest in nests for node in statements(nest.body) if isinstance(node, For)}
    shared = [node for node in inside.values() if plain.threads(node.index)]
    rows = [node for node in shared if not read_symbols((node.start, node.stop)) & changing]
    planner = ShortPlanner(analysis, target, flat=True, wide=True, short=frozenset(node.index for node in rows))
    schedule = Schedule(tuple(planner.block(block)))
    if not rows or schedule == plain:
        return None
    limits = ((build.sub(node.stop, node.start), planner.limit(node)) for node in rows)
    return schedule, tuple(dict.fromkeys(build.apply("lt", length, build.integer(most)) for length, most in limits))
