"""LLVM for each scalar operator and cast, on scalars and on vectors of lanes alike.

Operands come as text of the type `vector_type(scalar_type(dtype), width)`. No operand makes an instruction trap: lanes
that are masked out may hold anything. Functions of the mathematical library are called in `sleef.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from brickwork.codegen.attributes import attributes
from brickwork.codegen.builder import FunctionWriter, float_constant, splat
from brickwork.codegen.division import lanes_by_floats
from brickwork.codegen.elements import narrowed, widened
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import scalar_type, type_suffix, vector_type
from brickwork.codegen.lanes import exponent, floor_division
from brickwork.codegen.sleef import FUNCTIONS, call_function
from brickwork.ir.dtypes import BOOL, DTYPES, FLOAT32, INT64, UINT64, DType

_INTEGER = {"add": "add", "sub": "sub", "mul": "mul"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
BITWISE = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor", "logical_and": "and", "logical_or": "or"}
_COMPARE_INTEGER = {"eq": "eq", "ne": "ne", "lt": "{}lt", "le": "{}le", "gt": "{}gt", "ge": "{}ge"}
_COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint", "sqrt": "sqrt"}

_POWER = """define internal i64 @bw_power(i64 %base, i64 %exponent) {
start:
  br label %test
test:
  %b = phi i64 [%base, %start], [%square, %step]
  %e = phi i64 [%exponent, %start], [%half, %step]
  %r = phi i64 [1, %start], [%next, %step]
  %done = icmp eq i64 %e, 0
  br i1 %done, label %end, label %step
step:
  %low = trunc i64 %e to i1
  %factor = select i1 %low, i64 %b, i64 1
  %next = mul i64 %r, %factor
  %square = mul i64 %b, %b
  %half = lshr i64 %e, 1
  br label %test
end:
  ret i64 %r
}"""


def constant(value: bool | float, dtype: DType) -> str:
    """Return a literal of a value type, without the type."""
    if dtype is BOOL:
        return "true" if value else "false"
    if dtype.is_float:
        return float_constant(float(value), scalar_type(dtype))
    return str((int(value) + 2**63) % 2**64 - 2**63)


def apply(state: State, name: str, dtype: DType, operands: Sequence[str], width: int) -> str:
    """Return the operator `name` applied to operands of one value type."""
    if dtype is BOOL:
        return _apply_bool(state.writer, name, operands, vector_type("i1", width))
    if name in FUNCTIONS and dtype.is_float:
        return call_function(state, name, scalar_type(dtype), operands, width)
    if dtype.is_float:
        return _apply_float(state, name, dtype, operands, width)
    return _apply_integer(state, name, dtype, operands, width)


def fused(state: State, dtype: DType, operands: Sequence[str], width: int) -> str:
    """Return a * b + c with one rounding where the target has it, else with two."""
    kind = vector_type(scalar_type(dtype), width)
    left, right, addend = operands
    if state.target.fused:
        name = f"llvm.fma.{type_suffix(scalar_type(dtype), width)}"
        return state.writer.emit(f"call {kind} @{name}({kind} {left}, {kind} {right}, {kind} {addend})")
    return state.writer.emit(f"fadd {kind} {state.writer.emit(f'fmul {kind} {left}, {right}')}, {addend}")


def whole_power(state: State, dtype: DType, base: str, exponent: int, width: int) -> str:
    """Return `base` to a whole power other than 0 by repeated squaring; a negative one is the reciprocal."""
    left, square, result = abs(exponent), base, ""
    while left:
        if left & 1:
            result = apply(state, "mul", dtype, (result, square), width) if result else square
        left >>= 1
        if left:
            square = apply(state, "mul", dtype, (square, square), width)
    return result if exponent > 0 else apply(state, "truediv", dtype, (_literal(dtype, 1.0, width), result), width)


def without_jump(state: State, name: str, dtype: DType, operands: Sequence[str]) -> str:
    """Return the smaller or greater of two scalar integers; a processor guesses wrongly which of two elements it is.

    LLVM would make a minimum of the comparison, and a jump of the minimum, if it knew what is compared.
    """
    first, last = operands
    hidden = state.writer.emit(f'call i64 asm "", "=r,0"(i64 {first})')
    test = _COMPARE_INTEGER["lt" if name == "minimum" else "gt"].format("u" if dtype is UINT64 else "s")
    better = state.writer.emit(f"icmp {test} i64 {hidden}, {last}")
    unpredictable = state.module.metadata("!{}")
    return state.writer.emit(f"select i1 {better}, i64 {first}, i64 {last}, !unpredictable {unpredictable}")


def cast(state: State, text: str, source: DType, result: DType, width: int) -> str:
    """Return `text` converted between value types."""
    emit = state.writer.emit
    old, new = vector_type(scalar_type(source), width), vector_type(scalar_type(result), width)
    if old == new:
        return text
    if result is BOOL:
        zero = "zeroinitializer" if width > 1 else constant(0, source)
        return emit(f"fcmp une {old} {text}, {zero}" if source.is_float else f"icmp ne {old} {text}, {zero}")
    if source is BOOL:
        return emit(f"{'uitofp' if result.is_float else 'zext'} {old} {text} to {new}")
    if source.is_float and result.is_float:
        return emit(f"{'fpext' if result.bits > source.bits else 'fptrunc'} {old} {text} to {new}")
    if result.is_float:
        return emit(f"{'uitofp' if source is UINT64 else 'sitofp'} {old} {text} to {new}")
    name = "fptoui" if result is UINT64 else "fptosi"
    suffix = f"{type_suffix('i64', width)}.{type_suffix(scalar_type(source), width)}"
    return emit(f"call {new} @llvm.{name}.sat.{suffix}({old} {text})")


def float_of_few_bits(writer: FunctionWriter, text: str, width: int) -> str:
    """Return int64 lanes from -2**22 to 2**22 - 1 as float32, by additions: GPUs convert at a quarter of their rate.

    They are put into the lower bits of 1.5 * 2**23, of which the last one is 1.
    """
    kind, real = vector_type("i32", width), vector_type("float", width)
    word = writer.emit(f"trunc {vector_type('i64', width)} {text} to {kind}")
    placed = writer.emit(f"add {kind} {word}, splat (i32 {0x4B400000})")
    number = writer.emit(f"bitcast {kind} {placed} to {real}")
    return writer.exactly(f"fsub {real} {number}, splat (float 0x4168000000000000)")


def float_of_bytes(state: State, text: str, width: int, *, signed: bool) -> str:
    """Return int64 lanes, a multiple of four that bytes of memory hold, as float32: a permutation and an addition each.

    A permutation puts a byte, from 0 on, into the lower bits of 2**23. Words of four bytes stay as they were read.
    """
    writer, many = state.writer, width // FLOAT32.size
    bytes_read = writer.emit(f"trunc <{width} x i64> {text} to <{width} x i8>")
    words = writer.emit(f"bitcast <{width} x i8> {bytes_read} to <{many} x i32>")
    if signed:
        words = writer.emit(f"xor <{many} x i32> {words}, splat (i32 {-0x7F7F7F80})")
    name = state.module.declare("llvm.nvvm.prmt", "i32", ("i32",) * 3, "nocallback nounwind memory(none)")
    found = "poison"
    for place in range(width):
        number, byte = divmod(place, FLOAT32.size)
        word = writer.emit(f"extractelement <{many} x i32> {words}, i32 {number}")
        placed = writer.call("i32", name, (f"i32 {word}", f"i32 {0x4B000000}", f"i32 {0x7440 + byte}"))
        found = writer.emit(f"insertelement <{width} x i32> {found}, i32 {placed}, i32 {place}")
    real = f"<{width} x float>"
    number = writer.emit(f"bitcast <{width} x i32> {found} to {real}")
    return writer.exactly(f"fsub {real} {number}, splat (float {float(2**23 + 128 * signed)})")


def _literal(dtype: DType, value: float, width: int) -> str:
    return splat(scalar_type(dtype), constant(value, dtype), width)


def _apply_bool(writer: FunctionWriter, name: str, operands: Sequence[str], kind: str) -> str:
    if name in BITWISE:
        return writer.emit(f"{BITWISE[name]} {kind} {operands[0]}, {operands[1]}")
    if name == "logical_not":
        return writer.emit(f"xor {kind} {operands[0]}, {'true' if kind == 'i1' else 'splat (i1 true)'}")
    return writer.emit(f"icmp {_COMPARE_INTEGER[name].format('u')} {kind} {operands[0]}, {operands[1]}")


def _apply_float(state: State, name: str, dtype: DType, operands: Sequence[str], width: int) -> str:
    emit, kind = state.writer.emit, vector_type(scalar_type(dtype), width)
    suffix = type_suffix(scalar_type(dtype), width)
    first, last = operands[0], operands[-1]
    if name == "fmod":
        return _remainder(state, dtype, first, last, width)
    if name in _FLOAT:
        return emit(f"{_FLOAT[name]} {kind} {first}, {last}")
    if name in _COMPARE_FLOAT:
        return emit(f"fcmp {_COMPARE_FLOAT[name]} {kind} {first}, {last}")
    if name in _ROUNDING:
        return emit(f"call {kind} @llvm.{_ROUNDING[name]}.{suffix}({kind} {first})")
    match name:
        case "minimum" | "maximum":
            better = emit(f"fcmp {'olt' if name == 'minimum' else 'ogt'} {kind} {last}, {first}")
            return emit(f"select {vector_type('i1', width)} {better}, {kind} {last}, {kind} {first}")
        case "neg":
            return emit(f"fneg {kind} {first}")
        case "abs":
            return emit(f"call {kind} @llvm.fabs.{suffix}({kind} {first})")
        case "copysign":
            return emit(f"call {kind} @llvm.copysign.{suffix}({kind} {first}, {kind} {last})")
        case "isnan":
            return emit(f"fcmp uno {kind} {first}, {first}")
        case "isinf" | "isfinite":
            size = emit(f"call {kind} @llvm.fabs.{suffix}({kind} {first})")
            test = "oeq" if name == "isinf" else "olt"
            return emit(f"fcmp {test} {kind} {size}, {_literal(dtype, float('inf'), width)}")
        case "to_float16" | "to_bfloat16":
            narrow = DTYPES[name.removeprefix("to_")]
            return widened(state, narrowed(state, first, narrow, width), narrow, width)
        case "nextafter":
            return _next_after(state, dtype, first, last, width)
        case "mod":
            return _floor_modulo(state, dtype, first, last, width)
        case "floordiv":
            return _floor_quotient(state, dtype, first, last, width)
        case _:
            raise NotImplementedError(name)


def _next_after(state: State, dtype: DType, value: str, target: str, width: int) -> str:
    """Return the next number on the way to the target: the bits counted up or down."""
    emit, flags = state.writer.emit, vector_type("i1", width)
    kind, bits = vector_type(scalar_type(dtype), width), vector_type(f"i{dtype.bits}", width)
    zero = _literal(dtype, 0.0, width)
    one, less = (f"splat (i{dtype.bits} {step})" if width > 1 else str(step) for step in (1, -1))
    up = emit(f"fcmp olt {kind} {value}, {target}")
    away = emit(f"xor {flags} {up}, {emit(f'fcmp olt {kind} {value}, {zero}')}")
    step = emit(f"select {flags} {away}, {bits} {one}, {bits} {less}")
    moved = emit(f"add {bits} {emit(f'bitcast {kind} {value} to {bits}')}, {step}")
    least = apply(state, "copysign", dtype, (emit(f"bitcast {bits} {one} to {kind}"), target), width)
    found = emit(f"bitcast {bits} {moved} to {kind}")
    found = emit(f"select {flags} {emit(f'fcmp oeq {kind} {value}, {zero}')}, {kind} {least}, {kind} {found}")
    found = emit(f"select {flags} {emit(f'fcmp oeq {kind} {value}, {target}')}, {kind} {target}, {kind} {found}")
    neither = emit(f"fcmp uno {kind} {value}, {target}")
    return emit(f"select {flags} {neither}, {kind} {emit(f'fadd {kind} {value}, {target}')}, {kind} {found}")


def _remainder(state: State, dtype: DType, left: str, right: str, width: int) -> str:
    """Return C's fmod, which is exact."""
    kind = scalar_type(dtype)
    if state.target.vector_library == "libdevice":
        return call_function(state, "fmod", kind, (left, right), width)
    return state.writer.emit(f"frem {vector_type(kind, width)} {left}, {right}")


def _floor_modulo(state: State, dtype: DType, left: str, right: str, width: int) -> str:
    """Return Python's float %: the sign of the divisor, and zero with that sign."""
    emit, kind, flags = state.writer.emit, vector_type(scalar_type(dtype), width), vector_type("i1", width)
    zero = _literal(dtype, 0.0, width)
    rest = _remainder(state, dtype, left, right, width)
    differ = emit(f"xor {flags} {emit(f'fcmp olt {kind} {rest}, {zero}')}, {emit(f'fcmp olt {kind} {right}, {zero}')}")
    shifted = emit(f"select {flags} {differ}, {kind} {emit(f'fadd {kind} {rest}, {right}')}, {kind} {rest}")
    signed = apply(state, "copysign", dtype, (zero, right), width)
    exact = emit(f"fcmp oeq {kind} {rest}, {zero}")
    return emit(f"select {flags} {exact}, {kind} {signed}, {kind} {shifted}")


def _floor_quotient(state: State, dtype: DType, left: str, right: str, width: int) -> str:
    """Return Python's float //, and left / right for a zero divisor."""
    emit, kind, flags = state.writer.emit, vector_type(scalar_type(dtype), width), vector_type("i1", width)
    zero, one = _literal(dtype, 0.0, width), _literal(dtype, 1.0, width)
    rest = _remainder(state, dtype, left, right, width)
    quotient = emit(f"fdiv {kind} {emit(f'fsub {kind} {left}, {rest}')}, {right}")
    differ = emit(f"xor {flags} {emit(f'fcmp olt {kind} {rest}, {zero}')}, {emit(f'fcmp olt {kind} {right}, {zero}')}")
    low = emit(f"and {flags} {differ}, {emit(f'fcmp une {kind} {rest}, {zero}')}")
    quotient = emit(f"select {flags} {low}, {kind} {emit(f'fsub {kind} {quotient}, {one}')}, {kind} {quotient}")
    floor = apply(state, "floor", dtype, (quotient,), width)
    above = emit(f"fcmp ogt {kind} {emit(f'fsub {kind} {quotient}, {floor}')}, {_literal(dtype, 0.5, width)}")
    floor = emit(f"select {flags} {above}, {kind} {emit(f'fadd {kind} {floor}, {one}')}, {kind} {floor}")
    ratio = emit(f"fdiv {kind} {left}, {right}")
    signed = apply(state, "copysign", dtype, (zero, ratio), width)
    none = emit(f"fcmp oeq {kind} {quotient}, {zero}")
    floor = emit(f"select {flags} {none}, {kind} {signed}, {kind} {floor}")
    return emit(f"select {flags} {emit(f'fcmp oeq {kind} {right}, {zero}')}, {kind} {ratio}, {kind} {floor}")


def _apply_integer(state: State, name: str, dtype: DType, operands: Sequence[str], width: int) -> str:
    emit, kind, sign = state.writer.emit, vector_type("i64", width), "u" if dtype is UINT64 else "s"
    suffix, first, last = type_suffix("i64", width), operands[0], operands[-1]
    if name in _INTEGER or name in BITWISE:
        return emit(f"{_INTEGER.get(name) or BITWISE[name]} {kind} {first}, {last}")
    if name in _COMPARE_INTEGER:
        return emit(f"icmp {_COMPARE_INTEGER[name].format(sign)} {kind} {first}, {last}")
    match name:
        case "minimum" | "maximum":
            return emit(f"call {kind} @llvm.{sign}{name[:3]}.{suffix}({kind} {first}, {kind} {last})")
        case "neg":
            return emit(f"sub {kind} {_literal(INT64, 0, width)}, {first}")
        case "bit_not":
            return emit(f"xor {kind} {first}, {_literal(INT64, -1, width)}")
        case "bit_length":
            size = first if dtype is UINT64 else emit(f"call {kind} @llvm.abs.{suffix}({kind} {first}, i1 false)")
            zeros = emit(f"call {kind} @llvm.ctlz.{suffix}({kind} {size}, i1 false)")
            return emit(f"sub {kind} {_literal(INT64, 64, width)}, {zeros}")
        case "abs":
            return first if dtype is UINT64 else emit(f"call {kind} @llvm.abs.{suffix}({kind} {first}, i1 false)")
        case "shift_left" | "shift_right":
            return _shift(state, name, dtype, (first, last), width)
        case "floordiv" | "mod":
            return _divide(state, name, dtype, (first, last), width)
        case "pow":
            if _POWER not in state.module.functions:
                state.module.functions.append(_POWER)
            return _lane_by_lane(state, "bw_power", _power, (first, last), width)
        case _:
            raise NotImplementedError(name)


def _shift(state: State, name: str, dtype: DType, operands: tuple[str, str], width: int) -> str:
    value, amount = operands
    emit, kind = state.writer.emit, vector_type("i64", width)
    most, limit = _literal(INT64, 63, width), _literal(INT64, 64, width)
    clamped = emit(f"call {kind} @llvm.umin.{type_suffix('i64', width)}({kind} {amount}, {kind} {most})")
    if name == "shift_right" and dtype is not UINT64:
        return emit(f"ashr {kind} {value}, {clamped}")
    shifted = emit(f"{'shl' if name == 'shift_left' else 'lshr'} {kind} {value}, {clamped}")
    inside = emit(f"icmp ult {kind} {amount}, {limit}")
    return emit(f"select {vector_type('i1', width)} {inside}, {kind} {shifted}, {kind} {_literal(INT64, 0, width)}")


def _divide(state: State, name: str, dtype: DType, operands: tuple[str, str], width: int) -> str:
    part, bits, kind = name == "mod", exponent(operands[1]), vector_type("i64", width)
    if bits is not None and (width > 1 or not state.target.grid):
        amount = _literal(INT64, 2**bits - 1 if part else bits, width)
        operation = "and" if part else "lshr" if dtype is UINT64 else "ashr"
        return state.writer.emit(f"{operation} {kind} {operands[0]}, {amount}")

    def signed(inner: State, left: str, right: str) -> str:
        return floor_division(inner, left, right)[part]

    def unsigned(inner: State, left: str, right: str) -> str:
        divisor = inner.writer.emit(f"call i64 @llvm.umax.i64(i64 {right}, i64 1)")
        return inner.writer.emit(f"{'urem' if part else 'udiv'} i64 {left}, {divisor}")

    name = f"bw_{name}_{dtype}"

    def one_by_one() -> str:
        return _lane_by_lane(state, name, unsigned if dtype is UINT64 else signed, operands, width)

    if width == 1 or state.target.grid:
        return one_by_one()
    return lanes_by_floats(state.writer, operands, width, one_by_one, part=part, signed=dtype is not UINT64)


def _power(state: State, left: str, right: str) -> str:
    return state.writer.emit(f"call i64 @bw_power(i64 {left}, i64 {right})")


def _lane_by_lane(
    state: State, name: str, compute: Callable[[State, str, str], str], operands: tuple[str, str], width: int
) -> str:
    """Return `compute` applied to each lane of two i64 in turn, in a function of its own."""
    if width == 1:
        return compute(state, *operands)
    kind, name = vector_type("i64", width), f"{name}.{width}"
    if not any(f" @{name}(" in text.partition("{")[0] for text in state.module.functions):
        parameters = ((kind, "left"), (kind, "right"))
        writer = FunctionWriter(state.module, name, f"internal {kind}", parameters, attributes(state.target))
        places = [writer.alloca(kind) for _ in range(3)]
        for (_, label), place in zip(parameters, places, strict=False):
            writer.store(kind, f"%{label}", place)
        with writer.count("0", str(width)) as lane:
            addresses = [writer.emit(f"getelementptr i64, ptr {place}, i64 {lane}") for place in places]
            left, right = (writer.load("i64", address) for address in addresses[:2])
            writer.store("i64", compute(replace(state, writer=writer), left, right), addresses[2])
        writer.terminate(f"ret {kind} {writer.load(kind, places[2])}")
        writer.close()
    left, right = operands
    return state.writer.call(kind, f"@{name}", (f"{kind} {left}", f"{kind} {right}"))
