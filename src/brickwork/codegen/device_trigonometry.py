"""Sine and cosine of float32 on GPUs: plain arithmetic for arguments that occur, and a call of libdevice for others.

The argument is reduced by the nearest multiple of pi / 2, in three parts; minimax polynomials of sine and cosine
follow. The error is below two units in the last place, and -0 stays -0. Lanes share one branch to where those beyond
`_LIMIT` and infinities are computed, by a function, so that the code that nearly always runs is short and straight: of
a kernel that runs for microseconds a good part is the time in which its code is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from brickwork.codegen.builder import FunctionWriter, float_constant
from brickwork.codegen.emitter_state import State, unlikely
from brickwork.codegen.lane_values import vector_type
from brickwork.codegen.trigonometry import COSINE, SINE

_LIMIT = 65536.0
"""Largest argument for which the reduction is exact enough."""
_HALF_PI = (1.5707962512969971, 7.549789415861596e-08, 5.390302953474238e-15)
"""Half of pi in three parts, each a float32 above zero: so a rest of -0 stays -0."""
_MAGIC = 12582912.0
"""1.5 * 2**23: a float to which a small number is added is that number rounded, in its last bits."""
_LIBRARY = {"sin": "__nv_sinf", "cos": "__nv_cosf"}

FUNCTIONS = frozenset(_LIBRARY)
"""The functions that are written here."""


def call_function(state: State, name: str, text: str, width: int) -> str:
    """Return the sine or cosine of lanes of float."""
    writer, kind = state.writer, vector_type("float", width)
    lanes = _lanes(state, kind, text, width)
    near = [_near(state, name, lane) for lane in lanes]
    far = [writer.emit(f"fcmp ogt float {_absolute(state, lane)}, {_float(_LIMIT)}") for lane in lanes]
    some = far[0]
    for condition in far[1:]:
        some = writer.emit(f"or i1 {some}, {condition}")
    joined = _joined(state, kind, near)
    start, library, after = writer.block, writer.label("far"), writer.label("near")
    writer.branch_if(some, library, after, unlikely(state.module))
    writer.place(library)
    results = [_far(state, name, *lane) for lane in zip(lanes, far, _lanes(state, kind, joined, width), strict=True)]
    answer, end = _joined(state, kind, results), writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{joined}, %{start}], [{answer}, %{end}]")


def _lanes(state: State, kind: str, text: str, width: int) -> list[str]:
    if width == 1:
        return [text]
    return [state.writer.emit(f"extractelement {kind} {text}, i64 {lane}") for lane in range(width)]


def _joined(state: State, kind: str, lanes: Sequence[str]) -> str:
    if len(lanes) == 1:
        return lanes[0]
    result = "poison"
    for lane, text in enumerate(lanes):
        result = state.writer.emit(f"insertelement {kind} {result}, float {text}, i64 {lane}")
    return result


def _far(state: State, name: str, operand: str, far: str, near: str) -> str:
    """Return a lane by the library where it is `far`."""
    writer, before = state.writer, state.writer.block
    library, after = writer.label("library"), writer.label("lane")
    writer.branch_if(far, library, after)
    writer.place(library)
    found = writer.call("float", _library(state, name), (f"float {operand}",))
    writer.place(after)
    return writer.emit(f"phi float [{near}, %{before}], [{found}, %{library}]")


def _library(state: State, name: str) -> str:
    """Return a function of the module that calls libdevice's, so that it is there once."""
    symbol = f"bw_far_{name}"
    if not any(f" @{symbol}(" in text.partition("{")[0] for text in state.module.functions):
        function = state.module.declare(_LIBRARY[name], "float", ("float",), "nounwind willreturn memory(none)")
        header = "noinline nounwind willreturn memory(none)"
        writer = FunctionWriter(state.module, symbol, "internal float", (("float", "operand"),), header)
        writer.terminate(f"ret float {writer.call('float', function, ('float %operand',))}")
        writer.close()
    return f"@{symbol}"


def _near(state: State, name: str, operand: str) -> str:
    """Return the function of an argument within the limit."""
    emit = state.writer.emit
    shifted = fused(state, operand, _float(2.0 / math.pi), _float(_MAGIC))
    count = emit(f"fsub float {shifted}, {_float(_MAGIC)}")
    rest = operand
    for part in _HALF_PI:
        rest = fused(state, count, _float(-part), rest)
    square = emit(f"fmul float {rest}, {rest}")
    # A sum, so that the cube of -0 is 0 and the sine -0.
    cubic = fused(state, square, rest, _float(0.0))
    odd = fused(state, cubic, series(state, SINE, square), rest)
    even = series(state, (*COSINE, -0.5, 1.0), square)
    quarter = emit(f"bitcast float {shifted} to i32")
    if name == "cos":
        quarter = emit(f"add i32 {quarter}, 1")
    swapped = emit(f"trunc i32 {quarter} to i1")
    result = emit(f"bitcast float {emit(f'select i1 {swapped}, float {even}, float {odd}')} to i32")
    sign = emit(f"shl i32 {emit(f'and i32 {quarter}, 2')}, 30")
    return emit(f"bitcast i32 {emit(f'xor i32 {result}, {sign}')} to float")


def series(state: State, coefficients: Sequence[float], operand: str) -> str:
    """Return a polynomial by Horner's rule, from the highest power."""
    result = _float(coefficients[0])
    for coefficient in coefficients[1:]:
        result = fused(state, result, operand, _float(coefficient))
    return result


def _absolute(state: State, text: str) -> str:
    return state.writer.emit(f"call float @llvm.fabs.f32(float {text})")


def fused(state: State, left: str, right: str, addend: str) -> str:
    """Return left * right + addend, rounded once."""
    return state.writer.emit(f"call float @llvm.fma.f32(float {left}, float {right}, float {addend})")


def _float(value: float) -> str:
    return float_constant(value, "float")
