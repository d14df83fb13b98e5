"""LLVM for expressions: each is emitted as the cheapest form of value that is right in all active lanes."""

from __future__ import annotations

from typing import assert_never

from brickwork.analysis.integer_range import integer_range
from brickwork.analysis.searches import MIRRORED
from brickwork.codegen import lanes, memory
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import Strided, Uniform, Value, Varying, Wrapped, scalar_type, vector_type
from brickwork.codegen.operators import (
    apply,
    cast,
    constant,
    float_of_bytes,
    float_of_few_bits,
    fused,
    whole_power,
    without_jump,
)
from brickwork.codegen.random import draw
from brickwork.ir.dtypes import BOOL, FLOAT32, INT8, INT64, UINT8
from brickwork.ir.nodes import Apply, Cast, Constant, Expression, Load, Random, Read, Select, Size, Symbol
from brickwork.ir.walk import walk


def emit_expression(state: State, expression: Expression) -> Value:
    """Emit an expression; return its value."""
    if state.lines is None:
        return _emit(state, expression)
    with state.lines.at(state.writer, expression.loc):
        return _emit(state, expression)


def _emit(state: State, expression: Expression) -> Value:
    match expression:
        case Constant():
            return Uniform(constant(expression.value, expression.dtype), expression.dtype)
        case Read():
            return read(state, expression.symbol)
        case Size():
            return Uniform(memory.size(state, expression.tensor, expression.axis), INT64)
        case Load() if state.read and expression in state.read:
            return memory.value_of(state, expression.tensor, state.read[expression])
        case Load():
            return memory.element_load(state, expression.tensor, emit_all(state, expression.indices))
        case Apply():
            return _apply(state, expression)
        case Cast():
            return _cast(state, expression)
        case Select():
            return _select(state, expression)
        case Random():
            operands = (expression.key, expression.counter, expression.extra, *expression.bounds)
            return draw(state, expression, emit_all(state, operands))
        case _:
            assert_never(expression)


def emit_all(state: State, expressions: tuple[Expression, ...]) -> tuple[Value, ...]:
    """Emit expressions in order."""
    return tuple(emit_expression(state, expression) for expression in expressions)


def emit_scalar(state: State, expression: Expression) -> str:
    """Emit an expression that lanes agree on; return the scalar."""
    value = emit_expression(state, expression)
    if not isinstance(value, Uniform):
        msg = f"lanes may disagree on {expression}"
        raise TypeError(msg)
    return value.text


def read(state: State, symbol: Symbol) -> Value:
    """Return the value of a variable."""
    if symbol in state.values:
        return state.values[symbol]
    if symbol in state.slots:
        slot = state.slots[symbol]
        width = state.width if slot.varying else 1
        text = state.writer.load(vector_type(scalar_type(symbol.dtype), width), slot.address)
        return Varying(text, symbol.dtype) if slot.varying else Uniform(text, symbol.dtype)
    slot_number = state.layout.scalars[symbol]
    if symbol.dtype is BOOL:
        return Uniform(state.writer.once(f"trunc i64 {state.slot_value(slot_number)} to i1"), BOOL)
    if symbol.dtype is FLOAT32 and state.target.grid:
        bits = state.writer.once(f"trunc i64 {state.slot_value(slot_number)} to i32")
        return Uniform(state.writer.once(f"bitcast i32 {bits} to float"), FLOAT32)
    if symbol.dtype is FLOAT32:
        wide = state.slot_value(slot_number, "double")
        return Uniform(state.writer.once(f"fptrunc double {wide} to float"), FLOAT32)
    return Uniform(state.slot_value(slot_number, scalar_type(symbol.dtype)), symbol.dtype)


def _apply(state: State, expression: Apply) -> Value:
    name = expression.operator.name
    if (contracted := _contracted(state, expression)) is not None:
        return contracted
    if (exponent := _whole_exponent(state, expression)) is not None:
        return _whole_power(state, expression, exponent)
    values = emit_all(state, expression.operands)
    operand = expression.operands[0].dtype
    if all(isinstance(value, Uniform) for value in values):
        texts = tuple(value.text for value in values if isinstance(value, Uniform))
        if _is_extreme_of_elements(expression) and not state.target.grid:
            return Uniform(without_jump(state, name, operand, texts), expression.dtype)
        return Uniform(apply(state, name, operand, texts, 1), expression.dtype)
    if operand is INT64 and (kept := _without_vectors(state, name, values)) is not None:
        return kept
    if operand is INT64 and name in MIRRORED and not state.target.grid:
        flags = lanes.compare(state, name, *values)
        if flags is not None:
            return Varying(flags, BOOL)
    texts = tuple(lanes.vector(state, value) for value in values)
    return Varying(apply(state, name, operand, texts, state.width), expression.dtype)


def _is_extreme_of_elements(expression: Apply) -> bool:
    """Whether the smaller or greater of two integers is taken that come from data."""
    extreme = expression.operator.name in {"minimum", "maximum"} and expression.dtype.is_integer
    return extreme and any(isinstance(node, Load) for node in walk(expression))


def _without_vectors(state: State, name: str, values: tuple[Value, ...]) -> Value | None:
    """Return an operator on int64 in a form without vectors, where there is one."""
    match name, values:
        case "add", (left, right):
            return lanes.add(state, left, right)
        case "sub", (left, right):
            return lanes.subtract(state, left, right)
        case "mul", (left, right):
            return lanes.multiply(state, left, right) or lanes.scale(state, left, right)
        case "neg", (value,):
            return lanes.negate(state, value)
        case (("floordiv" | "mod"), (left, right)):
            pair = lanes.divide(state, left, right)
            return None if pair is None else pair[name == "mod"]
        case _:
            return None


def _contracted(state: State, expression: Apply) -> Value | None:
    """Emit a * b + c, a * b - c or c - a * b of floats as one fused operation; None if it is not that, or not to be."""
    name = expression.operator.name
    if name not in {"add", "sub"} or not (expression.dtype.is_float and state.module.rounding.fused):
        return None
    left, right = expression.operands
    if product := _product(left):
        factors, addend, flip_product, flip_addend = product.operands, right, False, name == "sub"
    elif product := _product(right):
        factors, addend, flip_product, flip_addend = product.operands, left, name == "sub", False
    else:
        return None
    # Operands are emitted in the order of the source, so that failures of nested parts keep theirs.
    if addend is left:
        values = emit_all(state, (addend, *factors))
        values = (*values[1:], values[0])
    else:
        values = emit_all(state, (*factors, addend))
    width = 1 if all(isinstance(value, Uniform) for value in values) else state.width
    texts = [
        value.text if isinstance(value, Uniform) and width == 1 else lanes.vector(state, value) for value in values
    ]
    if flip_product or flip_addend:
        place = 0 if flip_product else 2
        texts[place] = apply(state, "neg", expression.dtype, (texts[place],), width)
    text = fused(state, expression.dtype, texts, width)
    return Uniform(text, expression.dtype) if width == 1 else Varying(text, expression.dtype)


MOST_FACTORS = 64
"""The greatest power that is written out as products: at most 10 of them. `x ** 4` of 200,000 float32 took 37 us so,
and 1,106 us as a general power (one thread, AVX2)."""


def _whole_exponent(state: State, expression: Apply) -> int | None:
    """Return the literal exponent of a power that products give; of floats they round more often than `pow` does."""
    if expression.operator.name != "pow" or not (expression.dtype.is_integer or state.module.rounding.fast_math):
        return None
    exponent = expression.operands[1]
    if not isinstance(exponent, Constant) or exponent.value == 0 or not abs(exponent.value) <= MOST_FACTORS:
        return None
    return int(exponent.value) if exponent.value == int(exponent.value) else None


def _whole_power(state: State, expression: Apply, exponent: int) -> Value:
    base = emit_expression(state, expression.operands[0])
    if isinstance(base, Uniform):
        return Uniform(whole_power(state, expression.dtype, base.text, exponent, 1), expression.dtype)
    text = whole_power(state, expression.dtype, lanes.vector(state, base), exponent, state.width)
    return Varying(text, expression.dtype)


def _product(expression: Expression) -> Apply | None:
    return expression if isinstance(expression, Apply) and expression.operator.name == "mul" else None


def _cast(state: State, expression: Cast) -> Value:
    value, source, result = emit_expression(state, expression.operand), expression.operand.dtype, expression.dtype
    if source is result:
        return value
    if isinstance(value, Uniform):
        return Uniform(cast(state, value.text, source, result, 1), result)
    text = lanes.vector(state, value)
    match expression.operand:
        case Load(tensor=tensor) if state.target.grid and result is FLOAT32 and tensor.type.dtype in {INT8, UINT8}:
            if state.width % 4 == 0:
                signed = tensor.type.dtype is INT8
                return Varying(float_of_bytes(state, text, state.width, signed=signed), result)
        case _:
            pass
    bounds = integer_range(expression.operand) if state.target.grid and source is INT64 and result is FLOAT32 else None
    if bounds is not None and bounds[0] >= -(2**22) and bounds[1] < 2**22:
        return Varying(float_of_few_bits(state.writer, text, state.width), result)
    return Varying(cast(state, text, source, result, state.width), result)


def _select(state: State, expression: Select) -> Value:
    condition, then, otherwise = emit_all(state, (expression.condition, expression.then, expression.otherwise))
    emit, kind = state.writer.emit, scalar_type(expression.dtype)
    if isinstance(condition, Uniform):
        match then, otherwise:
            case Uniform(), Uniform():
                text = emit(f"select i1 {condition.text}, {kind} {then.text}, {kind} {otherwise.text}")
                return Uniform(text, expression.dtype)
            case Strided(), Strided() if then.stride == otherwise.stride:
                text = emit(f"select i1 {condition.text}, i64 {then.base}, i64 {otherwise.base}")
                return Strided(text, then.stride)
            case Wrapped(), Wrapped() if (then.stride, then.wraps) == (otherwise.stride, otherwise.wraps):
                base = emit(f"select i1 {condition.text}, i64 {then.base}, i64 {otherwise.base}")
                jump = emit(f"select i1 {condition.text}, i64 {then.jump}, i64 {otherwise.jump}")
                return Wrapped(base, then.stride, jump, then.wraps)
            case _:
                pass
    if isinstance(condition, Uniform):
        choice = f"i1 {condition.text}"
    else:
        choice = f"<{state.width} x i1> {lanes.vector(state, condition)}"
    whole = vector_type(kind, state.width)
    left, right = lanes.vector(state, then), lanes.vector(state, otherwise)
    return Varying(emit(f"select {choice}, {whole} {left}, {whole} {right}"), expression.dtype)
