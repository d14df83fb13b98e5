"""Programs with their contractions in tiles, for tests in the interpreter."""

from dataclasses import replace

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Kernel, Node, Program
from brickwork.ir.walk import rewrite
from brickwork.transform.schedule.contract import ContractionPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.schedule import Contract, Schedule, planned
from brickwork.transform.verbs.apply import apply_schedule
from support.lowering import memory, nested
from support.scheduling import GPU


def planned_for(kernel: Kernel) -> ContractionPlanner:
    """Return what schedules the contractions of a kernel."""
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    return ContractionPlanner(analysis, GPU, lengths_in(kernel.body))


def in_tiles(program: Program) -> Program:
    """Return a program with all of its contractions in tiles."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Kernel):
            return node
        planner = planned_for(node)
        verbs = [verb for verb in planned(planner.block(node.body)).verbs if isinstance(verb, Contract)]
        return replace(node, body=apply_schedule(node.body, Schedule(tuple(verbs)), planner.analysis))

    return rewrite(program, visit)


def result(program: Program, given: list[Memory]) -> list[object]:
    """Return what a program leaves in its arguments, and returns."""
    copies = [memory(nested(item), item.dtype) for item in given]
    results = run_program(program, copies, check=True)
    return [nested(item) for item in (*copies, *results)]
