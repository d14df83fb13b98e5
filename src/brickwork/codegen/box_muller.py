"""Normal numbers on GPUs: the functions in Box and Muller's transform, on the ranges that occur.

The numbers are those of `random.py` to rounding: the square of the radius errs by two units of its last place, the
root by one more, sine and cosine by 2e-7, which is less than what rounding the angle costs there. With `fast_math` the
machine's own approximations serve: absolute errors are below 1e-5, and below 1e-3 where the radius is below 1e-2.
"""

from __future__ import annotations

import math

from brickwork.codegen.builder import float_constant
from brickwork.codegen.device_trigonometry import fused, series
from brickwork.codegen.emitter_state import State
from brickwork.ir.philox import TWO_PI

_UNIT = 2.0**-24
_LOGARITHM = (
    *(-0.2805272766874849, 0.30777089913373296, -0.27991612173302666, 0.32831919848038704),
    *(-0.40022337424104604, 0.5001563786312739, -0.666663962735641, 0.9999987215677464, -2.0),
)
"""-2 * log(1 + f) / f for |f| <= 1/3, highest power first."""
_SINE = (2.6057805191191926e-06, -0.00019809602850379693, 0.008333066245409254, -0.16666659550402685)
"""(sin(r) - r) / r**3 for |r| <= pi / 2 as a polynomial in r**2, highest power first."""
_COSINE = (-2.61938142594322e-07, 2.4769304194801604e-05, -0.0013888569161146008, 0.04166665577312992, -0.5, 1.0)
"""cos(r) for |r| <= pi / 2 as a polynomial in r**2, highest power first."""
_TWO_THIRDS = 0x3F2AAAAB
_EXPONENT = -0x800000
_SCALE = 24 << 23
"""The exponent of 2**24 as it stands in a float."""
_HALF_TURN = -0x200
"""The bits of a word, shifted left by one, that are the fraction of half a turn."""
_SIGN = -(1 << 31)


def polar(state: State, first: str, second: str) -> tuple[str, str]:
    """Return the odd and the even normal number that two words (i32) make."""
    if state.module.rounding.fast_math:
        radius, sine, cosine = _fast_radius(state, first), *_fast_sine_and_cosine(state, second)
    else:
        radius, sine, cosine = _signed_radius(state, first, second), *_half_turn(state, second)
    return state.writer.emit(f"fmul float {radius}, {sine}"), state.writer.emit(f"fmul float {radius}, {cosine}")


def _float(value: float) -> str:
    return float_constant(value, "float")


def _approximate(state: State, name: str, operand: str) -> str:
    """Return one of the machine's approximations, with subnormal numbers as zero."""
    function = state.module.declare(f"llvm.nvvm.{name}.ftz.f", "float", ("float",), "memory(none)")
    return state.writer.call("float", function, (f"float {operand}",))


def _fraction(state: State, word: str) -> str:
    """Return 2**24 times the fraction of a word, from 1 to 2**24, as a float."""
    bits = state.writer.emit(f"add nuw nsw i32 {state.writer.emit(f'lshr i32 {word}, 8')}, 1")
    return state.writer.emit(f"uitofp i32 {bits} to float")


def _logarithm(state: State, word: str) -> str:
    """Return -2 times the logarithm of a word's fraction; it is not negative, but may be -0."""
    emit = state.writer.emit
    bits = emit(f"bitcast float {_fraction(state, word)} to i32")
    power = emit(f"and i32 {emit(f'sub i32 {bits}, {_TWO_THIRDS + _SCALE}')}, {_EXPONENT}")
    mantissa = emit(f"sub i32 {emit(f'sub i32 {bits}, {power}')}, {_SCALE}")
    rest = emit(f"fadd float {emit(f'bitcast i32 {mantissa} to float')}, {_float(-1.0)}")
    count = emit(f"fmul float {emit(f'sitofp i32 {power} to float')}, {_float(-2.0 * math.log(2.0) * 2.0**-23)}")
    return fused(state, series(state, _LOGARITHM, rest), rest, count)


def _signed_radius(state: State, first: str, second: str) -> str:
    """Return the radius, negative where the angle of the second word is beyond a quarter of a turn to either side."""
    emit = state.writer.emit
    radius = emit(f"bitcast float {_approximate(state, 'sqrt.approx', _logarithm(state, first))} to i32")
    turned = emit(f"xor i32 {second}, {emit(f'shl i32 {second}, 1')}")
    bits = emit(f"xor i32 {radius}, {emit(f'and i32 {turned}, {_SIGN}')}")
    return emit(f"bitcast i32 {bits} to float")


def _half_turn(state: State, second: str) -> tuple[str, str]:
    """Return sine and cosine of the angle of a word less the nearest multiple of half a turn."""
    emit = state.writer.emit
    part = emit(f"and i32 {emit(f'shl i32 {second}, 1')}, {_HALF_TURN}")
    angle = emit(f"fmul float {emit(f'sitofp i32 {part} to float')}, {_float(math.pi * 2.0**-32)}")
    square = emit(f"fmul float {angle}, {angle}")
    cubic = emit(f"fmul float {angle}, {square}")
    return fused(state, cubic, series(state, _SINE, square), angle), series(state, _COSINE, square)


def _fast_radius(state: State, word: str) -> str:
    emit = state.writer.emit
    logarithm = _approximate(state, "lg2.approx", emit(f"fmul float {_fraction(state, word)}, {_float(_UNIT)}"))
    square = emit(f"fmul float {logarithm}, {_float(-2.0 * math.log(2.0))}")
    return _approximate(state, "sqrt.approx", emit(f"call float @llvm.fabs.f32(float {square})"))


def _fast_sine_and_cosine(state: State, second: str) -> tuple[str, str]:
    emit = state.writer.emit
    turn = emit(f"uitofp i32 {emit(f'lshr i32 {second}, 8')} to float")
    angle = emit(f"fmul float {turn}, {_float(TWO_PI * _UNIT)}")
    return _approximate(state, "sin.approx", angle), _approximate(state, "cos.approx", angle)
