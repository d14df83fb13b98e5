"""Finds loops that pass nothing from one iteration to the next but variables and local arrays: recurrences.

    for t in range(T):
        h = a[c, t] * h + x[c, t]        h is passed on
        y[c, t] = h                      no two iterations meet on an element

What the variables do is not asked here. Updates of elements in one indivisible step may meet; their tensors are told.
"""

from __future__ import annotations

from brickwork.analysis.atomic_updates import apart, update_operator
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Kernel, Store, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, statements
from brickwork.legality import legality


def carrying_loops(kernel: Kernel, analysis: Analysis) -> dict[Symbol, frozenset[Tensor]]:
    """Return the recurrences of a kernel by their indices, each with the tensors on whose elements updates may meet.

    Of several loops with one index all have to be recurrences.
    """
    found: dict[Symbol, frozenset[Tensor]] = {}
    solver = Solver()
    others: set[Symbol] = set()
    for loop in analysis.model.loops:
        index = loop.node.index
        met = None if kernel.may_alias or not _carries(loop, analysis) else _meeting(loop, analysis, solver)
        if met is None:
            others.add(index)
        else:
            found[index] = found.get(index, frozenset()) | met
    return {index: tensors for index, tensors in found.items() if index not in others}


def _carries(loop: Loop, analysis: Analysis) -> bool:
    """Whether a loop inside of others passes variables or local arrays on."""
    if not loop.depth or analysis.loops[loop.node.index].independent:
        return False
    done = effects(loop.node.body)
    lists = any(tensor.is_local for tensor in done.stores - done.declares)
    return lists or bool(live_before(loop.node.body, NONE) & assigned_symbols(loop.node.body))


@legality
def _meeting(loop: Loop, analysis: Analysis, solver: Solver) -> frozenset[Tensor] | None:
    """Return the tensors on whose elements iterations may meet, if they do so in updates alone."""
    if loop.leaves or effects(loop.node.body).rebinds:
        return None
    stored = {node.tensor for node in statements(loop.node.body) if isinstance(node, Store)}
    stored = {tensor for tensor in stored if not tensor.is_local}
    updated = {tensor for tensor in stored if update_operator(loop.node, tensor) is not None}
    met = frozenset(tensor for tensor in updated if not apart(loop, analysis, solver, {tensor}))
    return met if apart(loop, analysis, solver, stored - met) else None
