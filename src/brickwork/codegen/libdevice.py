"""Mathematical functions on GPUs: those of NVIDIA's bitcode library libdevice, which a module links as it needs them.

Invariant: a module declares `__nv_` names only; `compile_device` finds their definitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.codegen import device_trigonometry
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import vector_type

PREFIX = "__nv_"
_NAMES = {"gamma": "tgamma"}
_FAST = frozenset({"sin", "cos", "tan", "exp", "log", "log2", "log10", "pow"})
"""Functions of float32 with a variant of few instructions and a larger error."""


def call_function(state: State, name: str, scalar: str, operands: Sequence[str], width: int) -> str:
    """Return a function of operands of `width` lanes of `scalar` (`float` or `double`), one lane at a time."""
    if scalar == "float" and name in device_trigonometry.FUNCTIONS and not state.module.rounding.fast_math:
        return device_trigonometry.call_function(state, name, operands[0], width)
    emit, symbol = state.writer.emit, _symbol(name, scalar, fast=state.module.rounding.fast_math)
    function = state.module.declare(symbol, scalar, [scalar] * len(operands), "nounwind willreturn memory(none)")
    if width == 1:
        return state.writer.call(scalar, function, [f"{scalar} {item}" for item in operands])
    result, kind = "poison", vector_type(scalar, width)
    for lane in range(width):
        picked = [emit(f"extractelement {kind} {item}, i64 {lane}") for item in operands]
        value = state.writer.call(scalar, function, [f"{scalar} {item}" for item in picked])
        result = emit(f"insertelement {kind} {result}, {scalar} {value}, i64 {lane}")
    return result


def _symbol(name: str, scalar: str, *, fast: bool) -> str:
    stem = _NAMES.get(name, name)
    if scalar == "double":
        return PREFIX + stem
    return f"{PREFIX}fast_{stem}f" if fast and stem in _FAST else f"{PREFIX}{stem}f"
