"""Normal numbers on GPUs: the functions in Box and Muller's transform, on the ranges that occur.

The numbers are those of `random.py` to rounding: the logarithm of a 24-bit fraction errs by 1.2 units of its last
place, the root is rounded correctly but for rare ties, sine and cosine err by one unit. With `fast_math` the machine's
own approximations serve: absolute errors are below 1e-5, and below 1e-3 where the radius is below 1e-2.
"""

from __future__ import annotations

import math

from brickwork.codegen.builder import float_constant
from brickwork.codegen.state import State
from brickwork.codegen.trigonometry import COSINE, HALF_PI, SINE
from brickwork.ir.philox import TWO_PI

_UNIT = 2.0**-24
_LOGARITHM = (
    *(-0.2763991355895996, 0.302444189786911, -0.2808472514152527, 0.3294464349746704),
    *(-0.4001583456993103, 0.5000847578048706, -0.6666653156280518),
)
"""-2 * (log(1 + f) - f + f**2 / 2) / f**3 for |f| <= 1/3, highest power first."""
_TWO_THIRDS = 0x3F2AAAAB
_EXPONENT = -0x800000
_LEAST = 2.0**-126
_MAGIC = 12582912.0
"""1.5 * 2**23: a float to which a small number is added is that number rounded, in its last bits."""


def polar(state: State, first: str, second: str) -> tuple[str, str]:
    """Return the odd and the even normal number that two words (i32) make."""
    turn = state.writer.emit(f"uitofp i32 {state.writer.emit(f'lshr i32 {second}, 8')} to float")
    angle = state.writer.emit(f"fmul float {turn}, {_float(TWO_PI * _UNIT)}")
    if state.module.fast_math:
        radius = _fast_radius(state, first)
        sine, cosine = (_approximate(state, name, angle) for name in ("sin.approx", "cos.approx"))
    else:
        radius = _root(state, _logarithm(state, first))
        sine, cosine = _sine_and_cosine(state, turn, angle)
    return state.writer.emit(f"fmul float {radius}, {sine}"), state.writer.emit(f"fmul float {radius}, {cosine}")


def _float(value: float) -> str:
    return float_constant(value, "float")


def _approximate(state: State, name: str, operand: str) -> str:
    """Return one of the machine's approximations, with subnormal numbers as zero."""
    function = state.module.declare(f"llvm.nvvm.{name}.ftz.f", "float", ("float",), "memory(none)")
    return state.writer.call("float", function, (f"float {operand}",))


def _fused(state: State, left: str, right: str, addend: str) -> str:
    return state.writer.emit(f"call float @llvm.fma.f32(float {left}, float {right}, float {addend})")


def _fraction(state: State, word: str) -> str:
    """Return 2**24 times the fraction of a word, from 1 to 2**24, as a float."""
    bits = state.writer.emit(f"add nuw nsw i32 {state.writer.emit(f'lshr i32 {word}, 8')}, 1")
    return state.writer.emit(f"uitofp i32 {bits} to float")


def _logarithm(state: State, word: str) -> str:
    """Return -2 times the logarithm of a word's fraction."""
    emit = state.writer.emit
    bits = emit(f"bitcast float {_fraction(state, word)} to i32")
    power = emit(f"and i32 {emit(f'sub i32 {bits}, {_TWO_THIRDS}')}, {_EXPONENT}")
    mantissa = emit(f"bitcast i32 {emit(f'sub i32 {bits}, {power}')} to float")
    count = _fused(state, emit(f"sitofp i32 {power} to float"), _float(2.0**-23), _float(-24.0))
    rest = emit(f"fadd float {mantissa}, {_float(-1.0)}")
    series = _float(_LOGARITHM[0])
    for coefficient in (*_LOGARITHM[1:], 1.0):
        series = _fused(state, series, rest, _float(coefficient))
    linear = _fused(state, mantissa, _float(-2.0), _float(2.0))
    series = _fused(state, series, emit(f"fmul float {rest}, {rest}"), linear)
    return _fused(state, count, _float(-2.0 * math.log(2.0)), series)


def _root(state: State, square: str) -> str:
    """Return the square root of a number that is 0 or not small: an approximation and one step by Newton."""
    emit = state.writer.emit
    positive = emit(f"call float @llvm.maxnum.f32(float {square}, float {_float(_LEAST)})")
    inverse = _approximate(state, "rsqrt.approx", positive)
    root = emit(f"fmul float {square}, {inverse}")
    error = _fused(state, emit(f"fneg float {root}"), root, square)
    return _fused(state, error, emit(f"fmul float {inverse}, {_float(0.5)}"), root)


def _fast_radius(state: State, word: str) -> str:
    emit = state.writer.emit
    logarithm = _approximate(state, "lg2.approx", emit(f"fmul float {_fraction(state, word)}, {_float(_UNIT)}"))
    square = emit(f"fmul float {logarithm}, {_float(-2.0 * math.log(2.0))}")
    positive = emit(f"call float @llvm.maxnum.f32(float {square}, float {_float(0.0)})")
    return _approximate(state, "sqrt.approx", positive)


def _sine_and_cosine(state: State, turn: str, angle: str) -> tuple[str, str]:
    """Return sine and cosine of `angle`, which is `turn` in units of 2**-24 turns, rounded."""
    emit = state.writer.emit
    shifted = _fused(state, turn, _float(4.0 * _UNIT), _float(_MAGIC))
    quarter = emit(f"bitcast float {shifted} to i32")
    back = emit(f"fsub float {_float(_MAGIC)}, {shifted}")
    rest = _fused(state, back, _float(HALF_PI[1]), _fused(state, back, _float(HALF_PI[0]), angle))
    square = emit(f"fmul float {rest}, {rest}")
    odd = _series(state, SINE, square)
    odd = _fused(state, emit(f"fmul float {rest}, {square}"), odd, rest)
    even = _fused(state, _series(state, COSINE, square), square, _float(-0.5))
    even = _fused(state, even, square, _float(1.0))
    swapped = emit(f"trunc i32 {quarter} to i1")
    sine = _signed(state, emit(f"select i1 {swapped}, float {even}, float {odd}"), quarter)
    turned = emit(f"add i32 {quarter}, 1")
    return sine, _signed(state, emit(f"select i1 {swapped}, float {odd}, float {even}"), turned)


def _series(state: State, coefficients: tuple[float, float, float], square: str) -> str:
    first = _fused(state, _float(coefficients[0]), square, _float(coefficients[1]))
    return _fused(state, first, square, _float(coefficients[2]))


def _signed(state: State, text: str, quarter: str) -> str:
    """Return a number with its sign changed in the third and fourth quarter of a turn."""
    emit = state.writer.emit
    sign = emit(f"shl i32 {emit(f'and i32 {quarter}, 2')}, 30")
    bits = emit(f"xor i32 {emit(f'bitcast float {text} to i32')}, {sign}")
    return emit(f"bitcast i32 {bits} to float")
