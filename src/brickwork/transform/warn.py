"""Warnings about scheduled kernels: what is right, but so much slower than expected that it can hardly be meant.

Few and certain: everything else is for `explain.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.analysis.polyhedral_model import Loop
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.ir.nodes import Constant, For
from brickwork.ir.walk import statements
from brickwork.transform.pipeline import ScheduledKernel

FEW = 1024
"""Iterations in order that a GPU may run without a word."""


def warnings_of(scheduled: ScheduledKernel) -> Iterator[Diagnostic]:
    """Yield a warning for each nest of loops that a single thread of a GPU runs."""
    shared = {item.loop for item in scheduled.schedule.directives}
    for loop in scheduled.analysis.model.loops:
        nest = {loop.node.index, *(node.index for node in statements(loop.node.body) if isinstance(node, For))}
        if scheduled.grid and loop.depth == 0 and not nest & shared and not _is_short(loop):
            yield Diagnostic(
                code="BW402",
                message=f"one thread of the GPU runs the loop over '{loop.node.index.name}' {_reason(loop, scheduled)}",
                loc=loop.node.loc,
                help="make its iterations independent, or call the operator with tensors on the CPU",
            )


def _is_short(loop: Loop) -> bool:
    start, stop = loop.node.start, loop.node.stop
    return isinstance(start, Constant) and isinstance(stop, Constant) and stop.value - start.value <= FEW


def _reason(loop: Loop, scheduled: ScheduledKernel) -> str:
    if scheduled.kernel.may_alias:
        return "in order, as arguments may share memory"
    conflict = scheduled.analysis.loops[loop.node.index].conflict
    return "in order" if conflict is None else f"in order, because {conflict.sentence}"
