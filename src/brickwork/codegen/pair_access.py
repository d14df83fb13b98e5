"""Lanes at neighbouring complex elements: one access for the parts of all of them, taken apart or put together.

    z[i, 0], z[i, 1] for eight i        sixteen adjacent floats, and a permutation for each part

A whole element is accessed where the program asks for one part of it, as both parts belong to the same element: what a
lane touches is its own. Two stores of the parts of one element, one right after the other, become one.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import Strided, Uniform, Value
from brickwork.ir import build
from brickwork.ir.nodes import Load, Statement, Store, Tensor
from brickwork.ir.walk import walk
from brickwork.legality import legality


@legality
def part_at(tensor: Tensor, indices: Sequence[Value]) -> int | None:
    """Return which part of complex elements the lanes access; None where it is not one part of elements."""
    last = indices[-1] if tensor.type.pairs else None
    return int(last.text) if isinstance(last, Uniform) and last.text in {"0", "1"} else None


@legality
def are_neighbours(offset: Value) -> bool:
    """Whether the lanes' elements are next to one another, in order."""
    return isinstance(offset, Strided) and offset.stride == 2


def taken(state: State, kind: str, both: str, part: int) -> str:
    """Return one part of elements."""
    width, whole = state.width, f"<{2 * state.width} x {kind}>"
    picks = ", ".join(f"i32 {2 * lane + part}" for lane in range(width))
    return state.writer.emit(f"shufflevector {whole} {both}, {whole} poison, <{width} x i32> <{picks}>")


def together(state: State, kind: str, real: str, imag: str) -> str:
    """Return the parts of elements in the order of memory."""
    width, whole = state.width, f"<{state.width} x {kind}>"
    picks = ", ".join(f"i32 {lane}, i32 {width + lane}" for lane in range(width))
    return state.writer.emit(f"shufflevector {whole} {real}, {whole} {imag}, <{2 * width} x i32> <{picks}>")


def doubled(state: State, mask: str) -> str:
    """Return the mask of lanes for both parts of their elements."""
    return together(state, "i1", mask, mask)


@legality
def is_pair(state: State, first: Statement, second: Statement) -> bool:
    """Whether two statements store the parts of one element, so that both can be stored at once."""
    if not isinstance(first, Store) or not isinstance(second, Store) or state.target.grid:
        return False
    tensor, at = first.tensor, first.indices[:-1]
    parts = [(tensor, (*at, build.integer(part)), None) for part in (0, 1)]
    if not tensor.type.pairs or [(item.tensor, item.indices, item.combine) for item in (first, second)] != parts:
        return False
    loads = [node for node in walk(second.value) if isinstance(node, Load)]
    stay = all(node.tensor != tensor or build.is_constant(node.indices[-1], 1) for node in loads)
    return not loads or (stay and not state.kernel.may_alias)
