"""`Rebind` on the CPU: names of tensors that get other tensors inside a kernel.

The function that exchanges them keeps their addresses and strides in slots of its own, which an optimiser turns into
registers, and writes them into the context too: for functions that threads run, and for the caller, who finds there
what every place holds in the end.
"""

from __future__ import annotations

from brickwork.codegen.emitter_state import State
from brickwork.ir.nodes import Rebind, Tensor


def keep_slots(state: State) -> dict[int, str]:
    """Return where the function keeps the slots of the context that an exchange changes."""
    found: dict[int, str] = {}
    for index in sorted(state.layout.moving()):
        found[index] = state.writer.alloca("i64")
        state.writer.store("i64", state.writer.load("i64", state.slot_address(index)), found[index])
    return found


def emit_rebind(state: State, node: Rebind) -> None:
    """Exchange tensors: all slots are read before one is written."""
    writer = state.writer
    words = [[writer.load("i64", state.moving[slot]) for slot in _slots(state, source)] for source in node.sources]
    for target, texts in zip(node.targets, words, strict=True):
        for slot, text in zip(_slots(state, target), texts, strict=True):
            writer.store("i64", text, state.moving[slot])
            writer.store("i64", text, state.slot_address(slot))


def _slots(state: State, tensor: Tensor) -> tuple[int, ...]:
    slots = state.layout.tensors[tensor]
    return slots.data, *slots.strides, state.layout.handles[tensor]
