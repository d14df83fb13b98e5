"""The user's word that iterations are independent: taken where the analysis cannot decide, refused where it is refuted.

Invariant: a loop with a conflict that is certain never runs in parallel. The user's word is not about scratch tensors
that nothing outside of the loop uses: to whoever makes them in it they are new in each iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, find_race
from brickwork.analysis.verdicts import Analysis, Conflict, ConflictKind
from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import RaceError
from brickwork.ir.nodes import For, Kernel, Tensor
from brickwork.ir.walk import accesses_in, walk
from brickwork.legality import hazard, legality


@legality
def take_claims(kernel: Kernel, analysis: Analysis, scratch: frozenset[Tensor] = frozenset()) -> Analysis:
    """Return the analysis with undecided claims believed; raises RaceError for refuted ones.

    Loops whose iterations meet in `scratch` tensors of their own stay in order.
    """
    refused: list[Diagnostic] = []
    for node in walk(kernel.body):
        if not isinstance(node, For) or not node.claimed:
            continue
        conflict = analysis.loops[node.index].conflict
        if own := _own(node, kernel, scratch):
            race = _race(node, analysis, frozenset(kernel.tensors) - own)
            conflict = conflict if conflict is None or conflict.kind is not ConflictKind.ELEMENTS else race
        if conflict is not None and conflict.refuted:
            refused.append(_refusal(node, conflict))
    if refused:
        raise RaceError(refused)
    return believe_claims(kernel, analysis, scratch)


@legality
def believe_claims(kernel: Kernel, analysis: Analysis, scratch: frozenset[Tensor] = frozenset()) -> Analysis:
    """Return the analysis with undecided claims believed, but for loops that meet in `scratch` tensors of their own."""
    loops = dict(analysis.loops)
    for node in walk(kernel.body):
        if not isinstance(node, For) or not node.claimed or _meets_in_scratch(node, kernel, analysis, scratch):
            continue
        verdict = loops[node.index]
        conflict = verdict.conflict
        if conflict is not None and not conflict.refuted and conflict.kind is ConflictKind.ELEMENTS:
            loops[node.index] = replace(verdict, independent=True)
    return replace(analysis, loops=loops)


@hazard
def _meets_in_scratch(node: For, kernel: Kernel, analysis: Analysis, scratch: frozenset[Tensor]) -> bool:
    """Whether iterations meet in a `scratch` tensor of the loop's own."""
    own = _own(node, kernel, scratch)
    return bool(own) and _race(node, analysis, own) is not None


@hazard
def _own(node: For, kernel: Kernel, scratch: frozenset[Tensor]) -> frozenset[Tensor]:
    """Return the `scratch` tensors that nothing but a loop uses."""
    inside = Counter(item.tensor for item in accesses_in(node))
    all_of_it = Counter(item.tensor for item in accesses_in(kernel.body))
    return frozenset(tensor for tensor in scratch if inside[tensor] == all_of_it[tensor])


def _race(node: For, analysis: Analysis, tensors: frozenset[Tensor]) -> Conflict | None:
    """Return two accesses to some tensors in which iterations of a loop meet, or None."""
    accesses = [item for item in analysis.model.accesses if item.tensor in tensors]
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    loop = next(item for item in analysis.model.loops if item.node.index == node.index)
    return find_race(facts, loop, may_alias=False, accesses=accesses)


def _refusal(loop: For, conflict: Conflict) -> Diagnostic:
    notes = tuple(Note(party.loc, f"{party.action}{_spell(party.indices)}") for party in conflict.parties)
    return Diagnostic(
        code="BW201",
        message=f"the iterations of '{loop.index.name}' are not independent: {conflict.sentence}",
        loc=loop.loc,
        notes=notes,
        help="write a plain range: the loop then runs in order, or in parallel where that is proved",
    )


def _spell(indices: Mapping[str, int]) -> str:
    return "".join(
        f"{' with ' if place == 0 else ', '}{name}={value}" for place, (name, value) in enumerate(indices.items())
    )
