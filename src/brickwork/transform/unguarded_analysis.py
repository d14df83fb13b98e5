"""Which loops are independent for all arguments: those whose proofs rest on no guard and no assumption.

On a grid the body for arguments that break a guard would take hours in one thread, so that loops which are independent
even so are shared out there too, with all their checks.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates, is_updated
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.races import Facts, find_race
from brickwork.analysis.verdicts import Analysis, Bound, BoundVerdict, LoopVerdict
from brickwork.ir.nodes import For, Kernel, Symbol
from brickwork.ir.walk import statements
from brickwork.legality import legality


def unguarded_analysis(kernel: Kernel, *, updated: bool = False) -> Analysis:
    """Return what holds of a kernel on the assumptions of the analysis alone; accesses are not guarded.

    If `updated`, loops that only updates are in the way of are independent. What is wrong with a claim is best told by
    an analysis with guards.
    """
    claimed = any(isinstance(node, For) and node.claimed for node in statements(kernel.body))
    analysis = analyse(kernel, unguarded=not claimed)
    analysis = find_updates(kernel, analysis) if updated else analysis
    return careful_analysis(analysis, assumed=True) if claimed else analysis


def careful_analysis(analysis: Analysis, *, assumed: bool = False) -> Analysis:
    """Return what holds of a kernel's loops for any arguments; accesses are in range only where that is proved.

    If `assumed`, the assumptions of the analysis are known to hold.
    """
    bounds = {
        place: BoundVerdict(Bound.CHECKED, plain=False) if verdict.bound is Bound.GUARDED else verdict
        for place, verdict in analysis.bounds.items()
    }
    facts = Facts(analysis.model, Solver(), bounds)
    loops: dict[Symbol, LoopVerdict] = {}
    for loop in analysis.model.loops:
        index = loop.node.index
        verdict = loops.get(index, analysis.loops[index])
        trusted = verdict.conflict is not None and not verdict.updates
        holds = (assumed or not analysis.assumptions) and (trusted or _is_apart(facts, loop, verdict))
        loops[index] = replace(verdict, independent=verdict.independent and holds)
    return replace(analysis, loops=loops, bounds=bounds)


@legality
def _is_apart(facts: Facts, loop: Loop, verdict: LoopVerdict) -> bool:
    """Whether no two iterations of a loop meet on an element, but for those that they update indivisibly."""
    updated = {tensor for tensor in verdict.updates if is_updated(loop, facts, tensor)}
    accesses = [access for access in facts.model.accesses if access.tensor not in updated]
    return find_race(facts, loop, may_alias=False, accesses=accesses) is None
