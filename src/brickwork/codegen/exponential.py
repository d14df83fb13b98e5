"""The exponential of float32 as plain arithmetic, which LLVM keeps in registers and overlaps between vectors.

    exp(x) = 2**n * exp(r)   with n the integer nearest to x / log(2), and r = x - n log(2)

A minimax polynomial gives exp(r). The power is multiplied in two steps, so that results beyond the normal numbers come
out right: subnormal, 0 or infinite. The error is about one unit in the last place at most; NaN stays NaN. Each lane's
result depends on that lane alone.
"""

from __future__ import annotations

import math

from brickwork.codegen.builder import float_lanes, integer_lanes
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import type_suffix, vector_type

LOWEST, HIGHEST = -104.0, 89.0
"""Beyond these arguments the result is 0 or infinite."""
ROUNDER = 12582912.0
"""1.5 * 2**23: in a sum with it the last bits of a float32 count integers."""
ROUNDER_BITS = 0x4B400000
ONE_BITS = 0x3F800000
LOG_2 = (0.693145751953125, 1.428606765330187e-06)
"""The logarithm of 2 in two parts, each a float32; multiples of the first are exact."""
SCALED_LANES = 16
"""From so many lanes on AVX-512 has an instruction that multiplies by powers of 2, and rounds once, too."""
SERIES = (0.0013814539415761828, 0.00836874544620514, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552)
"""(exp(r) - 1 - r) / r**2 as a polynomial in r, highest power first."""


def exponential(state: State, text: str, width: int) -> str:
    """Return the exponential of lanes."""
    emit, kind, word = state.writer.emit, vector_type("float", width), vector_type("i32", width)
    suffix, flags = type_suffix("float", width), vector_type("i1", width)

    def literal(value: float) -> str:
        return float_lanes(value, width)

    def number(value: int) -> str:
        return integer_lanes(value, width)

    def fused(left: str, right: str, addend: str) -> str:
        return emit(f"call {kind} @llvm.fma.{suffix}({kind} {left}, {kind} {right}, {kind} {addend})")

    def limited(value: str, test: str, limit: float) -> str:
        beyond = emit(f"fcmp {test} {kind} {value}, {literal(limit)}")
        return emit(f"select {flags} {beyond}, {kind} {literal(limit)}, {kind} {value}")

    def scaled(bits: str, power: str) -> str:
        return emit(f"add {word} {bits}, {emit(f'shl {word} {power}, {number(23)}')}")

    near = limited(limited(text, "ogt", HIGHEST), "olt", LOWEST)
    turned = fused(near, literal(1.0 / math.log(2.0)), literal(ROUNDER))
    back = emit(f"fneg {kind} {emit(f'fsub {kind} {turned}, {literal(ROUNDER)}')}")
    rest = fused(back, literal(LOG_2[1]), fused(back, literal(LOG_2[0]), near))
    series = literal(SERIES[0])
    for coefficient in SERIES[1:]:
        series = fused(series, rest, literal(coefficient))
    series = fused(emit(f"fmul {kind} {rest}, {rest}"), series, rest)
    series = emit(f"fadd {kind} {series}, {literal(1.0)}")
    power = emit(f"sub {word} {emit(f'bitcast {kind} {turned} to {word}')}, {number(ROUNDER_BITS)}")
    if state.target.mask_registers and width >= SCALED_LANES:
        return emit(f"call {kind} @llvm.ldexp.{suffix}.{type_suffix('i32', width)}({kind} {series}, {word} {power})")
    half = emit(f"ashr {word} {power}, {number(1)}")
    first = scaled(emit(f"bitcast {kind} {series} to {word}"), half)
    second = scaled(number(ONE_BITS), emit(f"sub {word} {power}, {half}"))
    parts = [emit(f"bitcast {word} {bits} to {kind}") for bits in (first, second)]
    return emit(f"fmul {kind} {parts[0]}, {parts[1]}")
