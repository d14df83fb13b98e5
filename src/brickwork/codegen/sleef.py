"""Calls of mathematical functions: SLEEF's vectors as libtorch exports them, else the C library lane by lane.

Invariant: a function gives the same bits for an operand in whatever lane and at whatever width it stands; so a scalar
is put into a vector of its own. Variants are those of eager torch (errors of about one unit in the last place). Of more
lanes than a vector of the library has, those are left out of which none takes part: short loops have few that do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from brickwork.codegen import libdevice, trigonometry
from brickwork.codegen.builder import float_lanes
from brickwork.codegen.emitter_state import State, unlikely
from brickwork.codegen.exponential import exponential
from brickwork.codegen.lane_values import type_suffix, vector_type

_SLEEF = {
    "u10": "cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
    "tgamma lgamma atan2 pow",
    "u15": "erfc",
    "u05": "hypot",
}
_NAMES = {"gamma": "tgamma"}
_VARIANTS = {name: variant for variant, names in _SLEEF.items() for name in names.split()}

FUNCTIONS = frozenset(_VARIANTS) - {"tgamma"} | frozenset(_NAMES)
"""Operators on floats that are functions of the library."""

LARGE = {"float": 1e12, "double": 1e100}
"""From here on 1 is nothing beside the square of a number, which the library can still compute."""


def call_function(state: State, name: str, scalar: str, operands: Sequence[str], width: int) -> str:
    """Return a library function of operands of `width` lanes of `scalar` (`float` or `double`)."""
    if state.target.vector_library == "libdevice":
        return libdevice.call_function(state, name, scalar, operands, width)
    stem = _NAMES.get(name, name)
    if stem in {"sin", "cos"} and scalar == "float" and state.target.fused:
        return _trigonometric(state, stem, operands[0], width)
    if stem == "exp" and scalar == "float" and state.target.fused:
        return exponential(state, operands[0], width)
    if stem in {"asinh", "acosh"} and state.target.vector_library == "sleef":
        return _inverse_hyperbolic(state, stem, scalar, operands[0], width)
    return _call_library(state, stem, scalar, operands, width)


def _trigonometric(state: State, stem: str, text: str, width: int) -> str:
    """Return sine or cosine by arithmetic, and by the library in lanes where that is not good enough."""
    writer, kind = state.writer, vector_type("float", width)
    near = trigonometry.sine_and_cosine(state, text, width)[stem == "cos"]
    far, some = trigonometry.out_of_reach(state, text, width)
    start, library, after = writer.block, writer.label("far"), writer.label("near")
    writer.branch_if(some, library, after, unlikely(state.module))
    writer.place(library)
    answer = _call_library(state, stem, "float", (text,), width)
    answer = writer.emit(f"select {vector_type('i1', width)} {far}, {kind} {answer}, {kind} {near}")
    end = writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{near}, %{start}], [{answer}, %{end}]")


def _inverse_hyperbolic(state: State, stem: str, scalar: str, text: str, width: int) -> str:
    """Return asinh or acosh; of a large number, whose square is beyond the library, it is log(2 x)."""
    writer, kind, flags = state.writer, vector_type(scalar, width), vector_type("i1", width)
    limit, shift = (float_lanes(value, width, scalar) for value in (LARGE[scalar], math.log(2)))
    suffix = type_suffix(scalar, width)
    near = _call_library(state, stem, scalar, (text,), width)
    size = writer.emit(f"call {kind} @llvm.fabs.{suffix}({kind} {text})") if stem == "asinh" else text
    large = writer.emit(f"fcmp ogt {kind} {size}, {limit}")
    some = large
    if width > 1:
        some = writer.emit(f"icmp ne i{width} {writer.emit(f'bitcast {flags} {large} to i{width}')}, 0")
    start, far, after = writer.block, writer.label("far"), writer.label("near")
    writer.branch_if(some, far, after, unlikely(state.module))
    writer.place(far)
    answer = writer.emit(f"fadd {kind} {_call_library(state, 'log', scalar, (size,), width)}, {shift}")
    if stem == "asinh":
        answer = writer.emit(f"call {kind} @llvm.copysign.{suffix}({kind} {answer}, {kind} {text})")
    answer = writer.emit(f"select {flags} {large}, {kind} {answer}, {kind} {near}")
    end = writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [{near}, %{start}], [{answer}, %{end}]")


def _call_library(state: State, stem: str, scalar: str, operands: Sequence[str], width: int) -> str:
    if state.target.vector_library != "sleef":
        return _lane_by_lane(state, stem, scalar, operands, width)
    lanes = state.target.library_bytes // (4 if scalar == "float" else 8)
    extension = "avx512f" if state.target.library_bytes == 64 else "avx2"
    symbol = f"Sleef_{stem}{'f' if scalar == 'float' else 'd'}{lanes}_{_VARIANTS[stem]}{extension}"
    kind = f"<{lanes} x {scalar}>"
    state.module.declare(symbol, kind, [kind] * len(operands), "nounwind willreturn memory(none)")

    def call(start: int) -> str:
        pieces = [piece(state, operand, scalar, width, start=start, lanes=lanes) for operand in operands]
        return state.writer.call(kind, f"@{symbol}", [f"{kind} {item}" for item in pieces])

    # The first lane takes part more often than not.
    masked = state.mask is not None and width == state.width
    starts = range(0, width, lanes)
    parts = [_if_any(state, kind, call, start, lanes) if masked and start else call(start) for start in starts]
    return join_pieces(state, parts, scalar, width, lanes)


def _if_any(state: State, kind: str, call: Callable[[int], str], start: int, lanes: int) -> str:
    """Return what a call gives for the lanes from `start` on; zeros, and no call, where none of them is active."""
    writer = state.writer
    if state.tail is not None:
        some = writer.emit(f"icmp sgt i64 {state.tail}, {start}")
    else:
        bits = writer.emit(f"bitcast <{state.width} x i1> {state.mask} to i{state.width}")
        own = writer.emit(f"and i{state.width} {bits}, {((1 << lanes) - 1) << start}")
        some = writer.emit(f"icmp ne i{state.width} {own}, 0")
    before, taking, after = writer.block, writer.label("taking"), writer.label("called")
    writer.branch_if(some, taking, after)
    writer.place(taking)
    answer = call(start)
    end = writer.block
    writer.place(after)
    return writer.emit(f"phi {kind} [zeroinitializer, %{before}], [{answer}, %{end}]")


def piece(state: State, text: str, scalar: str, width: int, *, start: int, lanes: int) -> str:
    """Return `lanes` lanes of a vector from lane `start` on; missing ones repeat its first."""
    if width == lanes:
        return text
    emit = state.writer.emit
    if width == 1:
        first = emit(f"insertelement <{lanes} x {scalar}> poison, {scalar} {text}, i64 0")
        return emit(
            f"shufflevector <{lanes} x {scalar}> {first}, <{lanes} x {scalar}> poison, <{lanes} x i32> zeroinitializer"
        )
    picks = ", ".join(f"i32 {start + lane if start + lane < width else 0}" for lane in range(lanes))
    kind = f"<{width} x {scalar}>"
    return emit(f"shufflevector {kind} {text}, {kind} poison, <{lanes} x i32> <{picks}>")


def join_pieces(state: State, parts: Sequence[str], scalar: str, width: int, lanes: int) -> str:
    """Return the first `width` lanes of vectors of `lanes` lanes put side by side."""
    emit = state.writer.emit
    if width == 1:
        return emit(f"extractelement <{lanes} x {scalar}> {parts[0]}, i64 0")
    items, size = list(parts), lanes
    while len(items) > 1:
        if len(items) % 2:
            items.append(items[-1])
        items = [_pair(state, left, right, scalar, size) for left, right in zip(items[::2], items[1::2], strict=True)]
        size *= 2
    if size == width:
        return items[0]
    picks = ", ".join(f"i32 {lane}" for lane in range(width))
    kind = f"<{size} x {scalar}>"
    return emit(f"shufflevector {kind} {items[0]}, {kind} poison, <{width} x i32> <{picks}>")


def _pair(state: State, left: str, right: str, scalar: str, lanes: int) -> str:
    picks = ", ".join(f"i32 {lane}" for lane in range(2 * lanes))
    kind = f"<{lanes} x {scalar}>"
    return state.writer.emit(f"shufflevector {kind} {left}, {kind} {right}, <{2 * lanes} x i32> <{picks}>")


def _lane_by_lane(state: State, stem: str, scalar: str, operands: Sequence[str], width: int) -> str:
    emit = state.writer.emit
    symbol = stem if scalar == "double" else f"{stem}f"
    state.module.declare(symbol, scalar, [scalar] * len(operands), "nounwind")
    if width == 1:
        return state.writer.call(scalar, f"@{symbol}", [f"{scalar} {item}" for item in operands])
    result, kind = "poison", vector_type(scalar, width)
    for lane in range(width):
        picked = [emit(f"extractelement {kind} {item}, i64 {lane}") for item in operands]
        value = state.writer.call(scalar, f"@{symbol}", [f"{scalar} {item}" for item in picked])
        result = emit(f"insertelement {kind} {result}, {scalar} {value}, i64 {lane}")
    return result
