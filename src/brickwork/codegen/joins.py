"""Partial results of reductions, joined: by an operator; in a search by the better value, and the place of equal ones.

Partial results are lists of values, one for each reduction of a group that goes together (`ir.nodes.joined_together`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import scalar_type, vector_type
from brickwork.codegen.operators import apply, constant
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Reduction

Group: TypeAlias = Sequence[Reduction]


def identity(reduction: Reduction) -> str:
    """Return the literal that a reduction starts from in a lane or a chunk."""
    return constant(build.identity(reduction).value, reduction.symbol.dtype)


def joined(state: State, group: Group, one: Sequence[str], other: Sequence[str], width: int = 1) -> list[str]:
    """Return two partial results, in lanes or not, as one. In a search they may be of any iterations."""
    first = group[0]
    if len(group) == 1:
        return [apply(state, first.operator.name, first.symbol.dtype, (one[0], other[0]), width)]
    emit, mask = state.writer.emit, vector_type("i1", width)
    nearer = "lt" if group[1].operator.name == "minimum" else "gt"
    better = apply(state, _better(first), first.symbol.dtype, (other[0], one[0]), width)
    equal = apply(state, "eq", first.symbol.dtype, (other[0], one[0]), width)
    before = apply(state, nearer, INT64, (other[1], one[1]), width)
    wins = emit(f"or {mask} {better}, {emit(f'and {mask} {equal}, {before}')}")
    return _chosen(state, group, wins, (other, one), width)


def accumulated(state: State, group: Group, old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the values of variables, joined with a partial result of later iterations."""
    if len(group) == 1:
        return joined(state, group, old, new)
    first, place = group[0], group[1]
    if place.operator.name == "minimum":
        wins = apply(state, _better(first), first.symbol.dtype, (new[0], old[0]), 1)
    else:  # What is as good as nothing found is not found for that.
        good = apply(state, "le" if _better(first) == "lt" else "ge", first.symbol.dtype, (new[0], old[0]), 1)
        found = apply(state, "ne", INT64, (new[1], identity(place)), 1)
        wins = state.writer.emit(f"and i1 {good}, {found}")
    return _chosen(state, group, wins, (new, old), 1)


def _better(first: Reduction) -> str:
    return "lt" if first.operator.name == "minimum" else "gt"


def _chosen(state: State, group: Group, wins: str, both: Sequence[Sequence[str]], width: int) -> list[str]:
    result: list[str] = []
    for item, then, otherwise in zip(group, *both, strict=True):
        kind = vector_type(scalar_type(item.symbol.dtype), width)
        select = f"select {vector_type('i1', width)} {wins}, {kind} {then}, {kind} {otherwise}"
        result.append(state.writer.emit(select))
    return result
