"""Arithmetic on lane values: integers stay scalars with a rule while it holds, and become vectors else.

Invariant: whatever form is chosen, a lane has the value that its iteration would compute. Not in here: the machine's
operators on scalars and vectors (`operators.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.analysis.searches import MIRRORED
from brickwork.codegen import division
from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import (
    Ramp,
    Strided,
    Uniform,
    Value,
    Varying,
    Wrapped,
    Wraps,
    scalar_type,
    vector_type,
)
from brickwork.ir.dtypes import INT64


def splat(state: State, kind: str, text: str) -> str:
    """Return a vector with the scalar `text` of type `kind` in every lane."""
    if state.width == 1:
        return text
    if text.lstrip("-").isdigit() or text.startswith("0x") or text in {"true", "false"}:
        return f"splat ({kind} {text})"
    vector = f"<{state.width} x {kind}>"
    first = state.writer.emit(f"insertelement {vector} poison, {kind} {text}, i64 0")
    return state.writer.emit(f"shufflevector {vector} {first}, {vector} poison, <{state.width} x i32> zeroinitializer")


def lane_numbers(width: int, kind: str = "i64", stride: int = 1) -> str:
    """Return the constant vector 0, stride, 2 * stride, ... with its elements' types but not its own."""
    return f"<{', '.join(f'{kind} {stride * lane}' for lane in range(width))}>"


def constant_mask(flags: Sequence[bool]) -> str:
    """Return a mask whose lanes are known."""
    return f"<{', '.join(f'i1 {str(flag).lower()}' for flag in flags)}>"


def known_lanes(mask: str | None, width: int) -> tuple[bool, ...] | None:
    """Return which lanes of a mask are active, if that is known; None is the full mask."""
    if mask is None:
        return (True,) * width
    return tuple(item == "i1 true" for item in mask[1:-1].split(", ")) if mask.startswith("<i1 ") else None


def gathered(state: State, kind: str, items: Sequence[str]) -> str:
    """Return scalars as the lanes of a vector; one is itself."""
    if len(items) == 1:
        return items[0]
    whole, result = f"<{len(items)} x {kind}>", "poison"
    for lane, item in enumerate(items):
        result = state.writer.emit(f"insertelement {whole} {result}, {kind} {item}, i64 {lane}")
    return result


def wrap_counts(state: State, wraps: Wraps) -> str:
    """Return how often each lane has wrapped, as a vector of i32."""
    emit, width = state.writer.emit, state.width
    whole, single = f"<{width} x i32>", f"<{width} x float>"
    distance = splat(state, "i32", wraps.distance)
    past = emit(f"sub {whole} {lane_numbers(width, 'i32')}, {distance}")
    # Numerator and denominator are at most the width: the quotient stays clear of integers by more than it is rounded.
    half = emit(f"fadd {single} {emit(f'sitofp {whole} {past} to {single}')}, splat (float 0x3FE0000000000000)")
    period = splat(state, "float", emit(f"sitofp i32 {wraps.period} to float"))
    quotient = emit(f"fptosi {single} {emit(f'fdiv afn {single} {half}, {period}')} to {whole}")
    more = emit(f"add {whole} {quotient}, splat (i32 1)")
    return emit(f"select <{width} x i1> {wrapped_lanes(state, wraps)}, {whole} {more}, {whole} zeroinitializer")


def wrapped_lanes(state: State, wraps: Wraps) -> str:
    """Return the mask of the lanes that have wrapped at least once."""
    distance = splat(state, "i32", wraps.distance)
    return state.writer.emit(f"icmp sge <{state.width} x i32> {lane_numbers(state.width, 'i32')}, {distance}")


def vector(state: State, value: Value) -> str:
    """Return the lanes of `value` as a vector (in scalar code: the scalar)."""
    emit, width = state.writer.emit, state.width
    match value:
        case Varying():
            return value.text
        case Uniform():
            return splat(state, scalar_type(value.dtype), value.text)
        case Strided():
            first = splat(state, "i64", value.base)
            return emit(f"add <{width} x i64> {first}, {lane_numbers(width, stride=value.stride)}")
        case Ramp():
            first = splat(state, "i64", value.base)
            return emit(f"add <{width} x i64> {first}, {ramp_steps(state, value)}")
        case Wrapped():
            whole = f"<{width} x i64>"
            first = vector(state, Strided(value.base, value.stride))
            counts = emit(f"zext <{width} x i32> {wrap_counts(state, value.wraps)} to {whole}")
            return emit(f"add {whole} {first}, {emit(f'mul {whole} {counts}, ' + splat(state, 'i64', value.jump))}")


def ramp_steps(state: State, value: Ramp) -> str:
    """Return how far each lane is from the first, as a vector of i64."""
    step = splat(state, "i64", value.step)
    return state.writer.emit(f"mul <{state.width} x i64> {step}, {lane_numbers(state.width)}")


def add(state: State, left: Value, right: Value) -> Value | None:
    """Return the sum of two int64 in a form without vectors, or None."""
    emit = state.writer.emit
    if isinstance(left, Varying) or isinstance(right, Varying):
        return None
    if isinstance(left, Ramp) or isinstance(right, Ramp):
        return _add_ramps(state, left, right)
    base, stride = emit(f"add i64 {_base(left)}, {_base(right)}"), _stride(left) + _stride(right)
    match left, right:
        case Wrapped(), Wrapped():
            if left.wraps != right.wraps:
                return None
            return Wrapped(base, stride, emit(f"add i64 {left.jump}, {right.jump}"), left.wraps)
        case (Wrapped(jump=jump, wraps=wraps), _) | (_, Wrapped(jump=jump, wraps=wraps)):
            return Wrapped(base, stride, jump, wraps)
        case _:
            return _strided(base, stride)


def _add_ramps(
    state: State, left: Uniform | Strided | Ramp | Wrapped, right: Uniform | Strided | Ramp | Wrapped
) -> Value | None:
    if isinstance(left, Wrapped) or isinstance(right, Wrapped):
        return None
    steps = [_step(value) for value in (left, right)]
    step = (
        steps[0]
        if steps[1] == "0"
        else steps[1]
        if steps[0] == "0"
        else state.writer.emit(f"add i64 {steps[0]}, {steps[1]}")
    )
    return Ramp(state.writer.emit(f"add i64 {_base(left)}, {_base(right)}"), step)


def negate(state: State, value: Value) -> Value | None:
    """Return the negative of an int64 in a form without vectors, or None."""
    return multiply(state, value, Uniform("-1", INT64))


def subtract(state: State, left: Value, right: Value) -> Value | None:
    """Return the difference of two int64 in a form without vectors, or None."""
    negative = negate(state, right)
    return None if negative is None else add(state, left, negative)


def multiply(state: State, left: Value, right: Value) -> Value | None:
    """Return the product of two int64 in a form without vectors, or None."""
    emit = state.writer.emit
    if isinstance(left, Uniform):
        left, right = right, left
    if not isinstance(right, Uniform) or isinstance(left, Varying):
        return None
    factor = _literal(right.text)
    if isinstance(left, Ramp):
        if factor is None:
            return None
        return Ramp(emit(f"mul i64 {left.base}, {factor}"), emit(f"mul i64 {left.step}, {factor}"))
    stride = _stride(left)
    if stride and (factor is None or abs(stride * factor) > SCALAR_LIMIT):
        return None
    base, stride = emit(f"mul i64 {_base(left)}, {right.text}"), stride * (factor or 0)
    if isinstance(left, Wrapped):
        return Wrapped(base, stride, emit(f"mul i64 {left.jump}, {right.text}"), left.wraps)
    return _strided(base, stride)


def scale(state: State, left: Value, right: Value) -> Value | None:
    """Return the product of an int64 with a stride and a uniform one of any value, without vectors, or None."""
    emit = state.writer.emit
    if isinstance(left, Uniform):
        left, right = right, left
    if not isinstance(left, Strided) or not isinstance(right, Uniform) or state.target.grid:
        return None
    step = right.text if left.stride == 1 else emit(f"mul i64 {left.stride}, {right.text}")
    return Ramp(emit(f"mul i64 {left.base}, {right.text}"), step)


def divide(state: State, left: Value, right: Value) -> tuple[Value, Value] | None:
    """Return floor quotient and modulo of an int64 of stride 1 or -1 by a uniform one, without vectors, or None.

    On a grid that is so for greater strides and for quotients of neighbours, too.
    """
    if isinstance(right, Uniform) and (isinstance(left, Wrapped) or (isinstance(left, Strided) and left.stride > 1)):
        return _divided_one_by_one(state, left, right.text)
    if not (isinstance(left, Strided) and isinstance(right, Uniform) and abs(left.stride) == 1):
        return None
    emit, stride, divisor = state.writer.emit, left.stride, right.text
    quotient, remainder = floor_division(state, left.base, divisor)
    if state.writer.known(divisor).low >= 0:
        return _divided_upwards(state, stride, divisor, (quotient, remainder))
    positive = emit(f"icmp sgt i64 {divisor}, 0")
    size = emit(f"call i64 @llvm.abs.i64(i64 {divisor}, i1 false)")
    # The remainder runs through [0, d) for a positive divisor and through (d, 0] for a negative one.
    if stride == 1:
        up, down = emit(f"sub i64 {divisor}, {remainder}"), emit(f"sub i64 1, {remainder}")
    else:
        up, down = emit(f"add i64 {remainder}, 1"), emit(f"sub i64 {remainder}, {divisor}")
    distance = emit(f"select i1 {positive}, i64 {up}, i64 {down}")
    wraps = Wraps(_clamped(state, distance), _clamped(state, size))
    step = emit(f"select i1 {positive}, i64 {stride}, i64 {-stride}")
    jump = size if stride == -1 else emit(f"sub i64 0, {size}")
    return Wrapped(quotient, 0, step, wraps), Wrapped(remainder, stride, jump, wraps)


def _divided_one_by_one(state: State, left: Strided | Wrapped, divisor: str) -> tuple[Value, Value] | None:
    """Return quotient and modulo of numbers that go up, lane by lane, where a grid divides in 32 bits; or None."""
    writer = state.writer
    known, by = writer.known(left.base), writer.known(divisor)
    upwards = isinstance(left, Strided) or (left.stride == 0 and left.jump == "1")
    highest = known.high + (left.stride or 1) * state.width
    if not (state.target.grid and upwards and known.low >= 0 and by.low >= 0 and max(highest, by.high) < 2**31):
        return None
    kind, numbers = f"<{state.width} x i64>", vector(state, left)
    found = ["poison", "poison"]
    for lane in range(state.width):
        text = writer.emit(f"extractelement {kind} {numbers}, i32 {lane}")
        writer.learn(text, Known(known.low, highest))
        for place, each in enumerate(floor_division(state, text, divisor)):
            found[place] = writer.emit(f"insertelement {kind} {found[place]}, i64 {each}, i32 {lane}")
    return Varying(found[0], INT64), Varying(found[1], INT64)


def _divided_upwards(state: State, stride: int, divisor: str, first: tuple[str, str]) -> tuple[Value, Value]:
    """Return quotient and modulo, the first lane's of which are given, for a divisor that is not negative."""
    emit, (quotient, remainder) = state.writer.emit, first
    distance = emit(f"sub i64 {divisor}, {remainder}" if stride == 1 else f"add i64 {remainder}, 1")
    known = state.writer.known(divisor)
    state.writer.learn(distance, Known(0, known.high))
    wraps = Wraps(_clamped(state, distance), _clamped(state, divisor))
    jump = divisor if stride == -1 else emit(f"sub i64 0, {divisor}")
    return Wrapped(quotient, 0, str(stride), wraps), Wrapped(remainder, stride, jump, wraps)


def compare(state: State, name: str, left: Value, right: Value) -> str | None:
    """Return the mask of lanes in which an order of two int64 holds, of which one has a stride; None if none has.

    base + stride * lane > limit   ->   stride * lane > limit - base, in the smallest lanes that hold the strides
    """
    if isinstance(left, Uniform):
        left, right, name = right, left, MIRRORED[name]
    if not (isinstance(left, Strided) and isinstance(right, Uniform) and abs(left.stride) * state.width < 2**15):
        return None
    emit, width = state.writer.emit, state.width
    bits = 8 if abs(left.stride) * width < 2**7 else 16
    most = 2 ** (bits - 1) - 1
    distance = emit(f"call i64 @llvm.ssub.sat.i64(i64 {right.text}, i64 {left.base})")
    distance = emit(f"call i64 @llvm.smin.i64(i64 {distance}, i64 {most})")
    distance = emit(f"call i64 @llvm.smax.i64(i64 {distance}, i64 {-most - 1})")
    small = splat(state, f"i{bits}", emit(f"trunc i64 {distance} to i{bits}"))
    return emit(f"icmp s{name} <{width} x i{bits}> {lane_numbers(width, f'i{bits}', left.stride)}, {small}")


def floor_division(state: State, left: str, right: str) -> tuple[str, str]:
    """Return floor quotient and modulo of two scalar i64; no operands make it trap."""
    if state.target.grid:
        return division.floor_division(state.writer, left, right)
    emit = state.writer.emit
    if (bits := exponent(right)) is not None:
        return emit(f"ashr i64 {left}, {bits}"), emit(f"and i64 {left}, {2**bits - 1}")
    if right.isdigit() and right != "0":
        return division.by_natural(state.writer, left, right)
    near_zero = emit(f"icmp ult i64 {emit(f'add i64 {right}, 1')}, 2")
    divisor = emit(f"select i1 {near_zero}, i64 1, i64 {right}")
    quotient = emit(f"sdiv i64 {left}, {divisor}")
    remainder = emit(f"sub i64 {left}, {emit(f'mul i64 {quotient}, {divisor}')}")
    inexact = emit(f"icmp ne i64 {remainder}, 0")
    opposite = emit(f"icmp slt i64 {emit(f'xor i64 {remainder}, {divisor}')}, 0")
    low = emit(f"and i1 {inexact}, {opposite}")
    quotient = emit(f"sub i64 {quotient}, {emit(f'zext i1 {low} to i64')}")
    remainder = emit(f"add i64 {remainder}, {emit(f'select i1 {low}, i64 {divisor}, i64 0')}")
    return emit(f"select i1 {near_zero}, i64 {emit(f'sub i64 0, {left}')}, i64 {quotient}"), remainder


def exponent(text: str) -> int | None:
    """Return the exponent of a power of two that is a literal i64, or in all lanes of a literal vector."""
    literal = text.removeprefix("splat (i64 ").removesuffix(")")
    value = int(literal) if literal.isdigit() else 0
    return value.bit_length() - 1 if value.bit_count() == 1 else None


def last_active(state: State) -> str:
    """Return the number of the last active lane, as i64."""
    if state.mask is None:
        return str(state.width - 1)
    bits = mask_bits(state, state.mask)
    kind = f"i{state.width}"
    zeros = state.writer.emit(f"call {kind} @llvm.ctlz.{kind}({kind} {bits}, i1 false)")
    return state.writer.emit(f"sub i64 {state.width - 1}, {resize(state, zeros)}")


def pick(state: State, kind: str, text: str, lane: str) -> str:
    """Return one lane of a vector, whose number is an i64."""
    emit, whole = state.writer.emit, f"<{state.width} x {kind}>"
    if lane.isdigit() or not state.target.grid:
        return emit(f"extractelement {whole} {text}, i64 {lane}")
    # A thread of a grid has its lanes in registers, which have no numbers.
    result = emit(f"extractelement {whole} {text}, i64 0")
    for number in range(1, state.width):
        here = emit(f"icmp eq i64 {lane}, {number}")
        item = emit(f"extractelement {whole} {text}, i64 {number}")
        result = emit(f"select i1 {here}, {kind} {item}, {kind} {result}")
    return result


def first_lane(state: State, mask: str) -> str:
    """Return the number of the first lane of a mask that is not empty, as i64."""
    kind = f"i{state.width}"
    zeros = state.writer.emit(f"call {kind} @llvm.cttz.{kind}({kind} {mask_bits(state, mask)}, i1 false)")
    return resize(state, zeros)


def resize(state: State, text: str) -> str:
    """Return the value of an integer of as many bits as there are lanes, as i64."""
    if state.width == INT64.bits:
        return text
    return state.writer.emit(f"{'zext' if state.width < INT64.bits else 'trunc'} i{state.width} {text} to i64")


def mask_bits(state: State, mask: str) -> str:
    """Return a mask as an integer of one bit a lane."""
    return state.writer.emit(f"bitcast <{state.width} x i1> {mask} to i{state.width}")


def any_lane(state: State, mask: str) -> str:
    """Return whether a mask has an active lane, as i1."""
    return state.writer.emit(f"icmp ne i{state.width} {mask_bits(state, mask)}, 0")


def both(state: State, left: str | None, right: str) -> str:
    """Return the intersection of two masks; None is the full one."""
    return right if left is None else state.writer.emit(f"and {vector_type('i1', state.width)} {left}, {right}")


def _strided(base: str, stride: int) -> Value:
    return Strided(base, stride) if stride else Uniform(base, INT64)


def _step(value: Uniform | Strided | Ramp) -> str:
    return value.step if isinstance(value, Ramp) else str(_stride(value))


def _base(value: Uniform | Strided | Ramp | Wrapped) -> str:
    return value.text if isinstance(value, Uniform) else value.base


def _stride(value: Uniform | Strided | Wrapped) -> int:
    return 0 if isinstance(value, Uniform) else value.stride


def _literal(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def _clamped(state: State, text: str) -> str:
    """Return an i64 from 1 to 2**63, unsigned, as an i32 that is at most the number of lanes."""
    low = state.writer.emit(f"call i64 @llvm.umin.i64(i64 {text}, i64 {state.width})")
    return state.writer.emit(f"trunc i64 {low} to i32")
