"""Parts of numbers: what matrix instructions take of a float32 in place of it.

A number is the sum of its parts, the largest first: each has the upper bits of what the ones before leave. Of TF32
there are two; the first is rounded and the second is cut by the instructions.
"""

from __future__ import annotations

from brickwork.codegen.builder import FunctionWriter
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType

_ROUND, _UPPER = 0x1000, -0x2000
"""What rounds a float32 to the bits of TF32, and the mask of these."""


def parts_of_word(writer: FunctionWriter, word: str, lanes: int = 1) -> tuple[str, str]:
    """Return the bits of TF32 of a float32 (or of lanes), and of the rest, as i32."""
    kind, real = (f"<{lanes} x {name}>" if lanes > 1 else name for name in ("i32", "float"))
    more, mask = (f"splat (i32 {number})" if lanes > 1 else str(number) for number in (_ROUND, _UPPER))
    upper = writer.emit(f"and {kind} {writer.emit(f'add {kind} {word}, {more}')}, {mask}")
    number, high = (writer.emit(f"bitcast {kind} {text} to {real}") for text in (word, upper))
    return upper, writer.emit(f"bitcast {real} {writer.emit(f'fsub {real} {number}, {high}')} to {kind}")


def packed_parts(writer: FunctionWriter, values: str, width: int, dtype: DType, count: int) -> list[str]:
    """Return the parts of a chunk of floats as numbers of a type, packed in four words."""
    if dtype is FLOAT32:
        bits = writer.emit(f"bitcast <{width} x float> {values} to <{width} x i32>")
        return [bits] if count == 1 else [*parts_of_word(writer, bits, width)]
    return [_packed(writer, values, width, dtype)]


def packed_number(writer: FunctionWriter, value: str, dtype: DType) -> str:
    """Return the bits of a float that a type has exactly."""
    if dtype is FLOAT16:
        return writer.emit(f"bitcast half {writer.emit(f'fptrunc float {value} to half')} to i16")
    bits = writer.emit(f"bitcast float {value} to i32")
    if dtype is FLOAT32:
        return bits
    return writer.emit(f"trunc i32 {writer.emit(f'lshr i32 {bits}, 16')} to i16")


def _packed(writer: FunctionWriter, values: str, width: int, dtype: DType) -> str:
    """Return floats that a type of 16 bits has exactly as such, packed in four words."""
    kind = f"<{width} x float>"
    if dtype is FLOAT16:
        kind, values = f"<{width} x half>", writer.emit(f"fptrunc {kind} {values} to <{width} x half>")
    elif dtype is BFLOAT16:
        bits = writer.emit(f"bitcast {kind} {values} to <{width} x i32>")
        high = writer.emit(f"lshr <{width} x i32> {bits}, splat (i32 16)")
        kind, values = f"<{width} x i16>", writer.emit(f"trunc <{width} x i32> {high} to <{width} x i16>")
    return writer.emit(f"bitcast {kind} {values} to <4 x i32>")
