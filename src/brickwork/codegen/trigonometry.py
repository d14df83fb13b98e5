"""Sine and cosine of float32 as plain arithmetic, which LLVM keeps in registers and overlaps between vectors.

The argument is reduced by the nearest multiple of pi / 2, in three parts and with the rounding error carried along;
minimax polynomials of sine and cosine follow. The sine of -x is computed as that of x, so that -0 stays -0. The error
is below one unit in the last place. Beyond `LIMIT` and for NaN the library answers. Each lane's result depends on that
lane alone.
"""

from __future__ import annotations

import math

from brickwork.codegen.builder import float_lanes, integer_lanes
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import type_suffix, vector_type

LIMIT = 20000.0
"""Largest argument for which the reduction is exact enough."""
SIGN = -(1 << 31)
"""The sign bit of a float32."""
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""Half of pi in three parts, each a float32."""
SINE = (-0.0001951398007804528, 0.008332150988280773, -0.16666653752326965)
"""(sin(r) - r) / r**3 as a polynomial in r**2, highest power first."""
COSINE = (2.44316688622348e-05, -0.0013887303648516536, 0.04166664555668831)
"""(cos(r) - 1 + r**2 / 2) / r**4 as a polynomial in r**2, highest power first."""


def sine_and_cosine(state: State, text: str, width: int) -> tuple[str, str]:
    """Return sine and cosine of lanes within `LIMIT`; what is not used costs nothing."""
    emit, kind, word = state.writer.emit, vector_type("float", width), vector_type("i32", width)
    flags = vector_type("i1", width)
    size = emit(f"call {kind} @llvm.fabs.{type_suffix('float', width)}({kind} {text})")
    odd, even, quarter = _quadrant(state, size, width)
    negative = emit(f"and {word} {emit(f'bitcast {kind} {text} to {word}')}, {integer_lanes(SIGN, width)}")
    results: list[str] = []
    none, one = (integer_lanes(value, width) for value in (0, 1))
    for turned, flipped in ((quarter, negative), (emit(f"add {word} {quarter}, {one}"), none)):
        swapped = emit(f"icmp ne {word} {emit(f'and {word} {turned}, {one}')}, {none}")
        result = emit(f"select {flags} {swapped}, {kind} {even}, {kind} {odd}")
        sign = emit(f"shl {word} {emit(f'and {word} {turned}, {integer_lanes(2, width)}')}, {integer_lanes(30, width)}")
        sign = emit(f"xor {word} {sign}, {flipped}")
        bits = emit(f"xor {word} {emit(f'bitcast {kind} {result} to {word}')}, {sign}")
        results.append(emit(f"bitcast {word} {bits} to {kind}"))
    return results[0], results[1]


def _quadrant(state: State, text: str, width: int) -> tuple[str, str, str]:
    """Return sine and cosine of what is left of the argument, and the number of quarter turns taken off it."""
    emit, kind, word = state.writer.emit, vector_type("float", width), vector_type("i32", width)
    suffix = type_suffix("float", width)

    def literal(value: float) -> str:
        return float_lanes(value, width)

    def fused(left: str, right: str, addend: str) -> str:
        return emit(f"call {kind} @llvm.fma.{suffix}({kind} {left}, {kind} {right}, {kind} {addend})")

    def series(square: str, coefficients: tuple[float, float, float]) -> str:
        first = fused(literal(coefficients[0]), square, literal(coefficients[1]))
        return fused(first, square, literal(coefficients[2]))

    turns = fused(text, literal(2.0 / math.pi), literal(0.0))
    count = emit(f"call {kind} @llvm.rint.{suffix}({kind} {turns})")
    quarter = emit(f"fptosi {kind} {count} to {word}")
    rest, error = _reduced(state, text, count, width)
    square = emit(f"fmul {kind} {rest}, {rest}")
    cubic = emit(f"fmul {kind} {square}, {rest}")
    odd = emit(f"fadd {kind} {rest}, {fused(cubic, series(square, SINE), error)}")
    high = fused(square, literal(-0.5), literal(1.0))
    lost = fused(square, literal(-0.5), emit(f"fsub {kind} {literal(1.0)}, {high}"))
    low = fused(emit(f"fmul {kind} {square}, {square}"), series(square, COSINE), lost)
    low = fused(emit(f"fneg {kind} {rest}"), error, low)
    even = emit(f"fadd {kind} {high}, {low}")
    return odd, even, quarter


def _reduced(state: State, text: str, count: str, width: int) -> tuple[str, str]:
    """Return x - count * pi / 2 as a rounded number and what the rounding lost."""
    emit, kind, suffix = state.writer.emit, vector_type("float", width), type_suffix("float", width)

    def fused(left: str, right: str, addend: str) -> str:
        return emit(f"call {kind} @llvm.fma.{suffix}({kind} {left}, {kind} {right}, {kind} {addend})")

    first, second, third = (float_lanes(part, width) for part in HALF_PI)
    back = emit(f"fneg {kind} {count}")
    near = fused(back, first, text)
    step = emit(f"fmul {kind} {back}, {second}")
    rest = emit(f"fadd {kind} {near}, {step}")
    error = emit(f"fadd {kind} {emit(f'fsub {kind} {near}, {rest}')}, {step}")
    error = emit(f"fadd {kind} {error}, {fused(back, second, emit(f'fneg {kind} {step}'))}")
    return rest, fused(back, third, error)


def out_of_reach(state: State, text: str, width: int) -> tuple[str, str]:
    """Return the lanes (i1) for which the library is needed, and whether there is one."""
    emit, kind, flags = state.writer.emit, vector_type("float", width), vector_type("i1", width)
    size = emit(f"call {kind} @llvm.fabs.{type_suffix('float', width)}({kind} {text})")
    far = emit(f"fcmp ugt {kind} {size}, {float_lanes(LIMIT, width)}")
    if width == 1:
        return far, far
    return far, emit(f"icmp ne i{width} {emit(f'bitcast {flags} {far} to i{width}')}, 0")
