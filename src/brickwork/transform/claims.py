"""The user's word that iterations are independent: taken where the analysis cannot decide, refused where it is refuted.

Invariant: a loop with a conflict that is certain never runs in parallel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.analysis.verdicts import Analysis, ConflictKind, LoopVerdict
from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import RaceError
from brickwork.ir.nodes import For, Kernel
from brickwork.ir.walk import walk
from brickwork.legality import legality


@legality
def take_claims(kernel: Kernel, analysis: Analysis) -> Analysis:
    """Return the analysis with undecided claims believed; raises RaceError for refuted ones."""
    refused: list[Diagnostic] = []
    for node in walk(kernel.body):
        if not isinstance(node, For) or not node.claimed:
            continue
        verdict = analysis.loops[node.index]
        if verdict.conflict is not None and verdict.conflict.refuted:
            refused.append(_refusal(node, verdict))
    if refused:
        raise RaceError(refused)
    return believe_claims(kernel, analysis)


@legality
def believe_claims(kernel: Kernel, analysis: Analysis) -> Analysis:
    """Return the analysis with undecided claims believed."""
    loops = dict(analysis.loops)
    for node in walk(kernel.body):
        if not isinstance(node, For) or not node.claimed:
            continue
        verdict = loops[node.index]
        conflict = verdict.conflict
        if conflict is not None and not conflict.refuted and conflict.kind is ConflictKind.ELEMENTS:
            loops[node.index] = replace(verdict, independent=True)
    return replace(analysis, loops=loops)


def _refusal(loop: For, verdict: LoopVerdict) -> Diagnostic:
    conflict = verdict.conflict
    if conflict is None:
        raise ValueError("a refusal needs a conflict")
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
