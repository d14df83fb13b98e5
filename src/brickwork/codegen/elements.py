"""Elements in memory and the values in which they are computed: widened when they are read, narrowed when stored.

Not in here: where elements lie, and the instructions that read and write them (`memory.py`).
"""

from __future__ import annotations

from brickwork.codegen.builder import integer_lanes
from brickwork.codegen.emitter_state import State
from brickwork.codegen.lane_values import memory_type, vector_type
from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, DType, Kind


def widened(state: State, text: str, dtype: DType, width: int) -> str:
    """Return an element from memory as a value."""
    emit, old = state.writer.emit, vector_type(memory_type(dtype), width)
    if dtype is BOOL:
        return emit(f"icmp ne {old} {text}, {'zeroinitializer' if width > 1 else '0'}")
    if dtype is BFLOAT16:
        word = vector_type("i32", width)
        bits = emit(f"shl {word} {emit(f'zext {old} {text} to {word}')}, {integer_lanes(16, width)}")
        return emit(f"bitcast {word} {bits} to {vector_type('float', width)}")
    if dtype is FLOAT16:
        return emit(f"fpext {old} {text} to {vector_type('float', width)}")
    if dtype.is_float or dtype.bits == 64:
        return text
    return emit(f"{'sext' if dtype.kind is Kind.INT else 'zext'} {old} {text} to {vector_type('i64', width)}")


def narrowed(state: State, text: str, dtype: DType, width: int) -> str:
    """Return a value as an element in memory: rounded to nearest even, integers wrapped."""
    emit, new = state.writer.emit, vector_type(memory_type(dtype), width)
    if dtype is BOOL:
        return emit(f"zext {vector_type('i1', width)} {text} to {new}")
    if dtype is FLOAT16:
        return emit(f"fptrunc {vector_type('float', width)} {text} to {new}")
    if dtype is BFLOAT16:
        return _rounded_bfloat(state, text, width)
    if dtype.is_float or dtype.bits == 64:
        return text
    return emit(f"trunc {vector_type('i64', width)} {text} to {new}")


def _rounded_bfloat(state: State, text: str, width: int) -> str:
    """Return the bits of a float32 rounded to bfloat16: instructions of processors for it flush subnormals."""
    emit, word, flags = state.writer.emit, vector_type("i32", width), vector_type("i1", width)
    if state.target.rounds_bfloat:
        rounded = emit(f"fptrunc {vector_type('float', width)} {text} to {vector_type('bfloat', width)}")
        return emit(f"bitcast {vector_type('bfloat', width)} {rounded} to {vector_type('i16', width)}")
    bits = emit(f"bitcast {vector_type('float', width)} {text} to {word}")
    odd = emit(f"and {word} {emit(f'lshr {word} {bits}, {integer_lanes(16, width)}')}, {integer_lanes(1, width)}")
    up = emit(f"add {word} {emit(f'add {word} {bits}, {integer_lanes(0x7FFF, width)}')}, {odd}")
    high = emit(f"lshr {word} {up}, {integer_lanes(16, width)}")
    nan = emit(f"fcmp uno {vector_type('float', width)} {text}, {text}")
    picked = emit(f"select {flags} {nan}, {word} {integer_lanes(0x7FC0, width)}, {word} {high}")
    return emit(f"trunc {word} {picked} to {vector_type('i16', width)}")
