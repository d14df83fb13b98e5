"""Parts of numbers: what matrix instructions take of a float32 in place of it.

A number is the sum of its parts, the largest first: each has the upper bits of what the ones before leave. Of TF32
there are two; the first is rounded and the second is cut by the instructions. Of bfloat16 the last is rounded, and
others are cut.
"""

from __future__ import annotations

from brickwork.codegen.builder import FunctionWriter
from brickwork.ir.dtypes import FLOAT16, FLOAT32, DType

_ROUND, _UPPER = 0x1000, -0x2000
"""What rounds a float32 to the bits of TF32, and the mask of these."""
_HALF_BITS = -0x10000
"""The mask of the bits of bfloat16."""


def parts_of_word(writer: FunctionWriter, word: str, lanes: int = 1) -> tuple[str, str]:
    """Return the bits of TF32 of a float32 (or of lanes), and of the rest, as i32."""
    kind, real = (f"<{lanes} x {name}>" if lanes > 1 else name for name in ("i32", "float"))
    more, mask = (f"splat (i32 {number})" if lanes > 1 else str(number) for number in (_ROUND, _UPPER))
    upper = writer.emit(f"and {kind} {writer.emit(f'add {kind} {word}, {more}')}, {mask}")
    number, high = (writer.emit(f"bitcast {kind} {text} to {real}") for text in (word, upper))
    return upper, writer.emit(f"bitcast {real} {writer.emit(f'fsub {real} {number}, {high}')} to {kind}")


def parts_of(writer: FunctionWriter, values: str, width: int, dtype: DType, count: int) -> list[str]:
    """Return the parts of a chunk of floats, each as four words."""
    kind, found = f"<{width} x float>", list[str]()
    if dtype is FLOAT32:
        bits = writer.emit(f"bitcast {kind} {values} to <{width} x i32>")
        return [*parts_of_word(writer, bits, width)]
    for _ in range(count - 1):
        bits = writer.emit(f"bitcast {kind} {values} to <{width} x i32>")
        upper = writer.emit(f"and <{width} x i32> {bits}, splat (i32 {_HALF_BITS})")
        upper = writer.emit(f"bitcast <{width} x i32> {upper} to {kind}")
        found.append(narrowed(writer, upper, width, dtype))
        values = writer.emit(f"fsub {kind} {values}, {upper}")
    last = writer.emit(f"fptrunc {kind} {values} to <{width} x bfloat>")
    found.append(writer.emit(f"bitcast <{width} x bfloat> {last} to <{width} x i16>"))
    return [writer.emit(f"bitcast <{width} x i16> {text} to <4 x i32>") for text in found]


def packed_number(writer: FunctionWriter, value: str, dtype: DType) -> str:
    """Return the bits of a float that a type of 16 bits has exactly."""
    if dtype is FLOAT16:
        return writer.emit(f"bitcast half {writer.emit(f'fptrunc float {value} to half')} to i16")
    bits = writer.emit(f"bitcast float {value} to i32")
    return writer.emit(f"trunc i32 {writer.emit(f'lshr i32 {bits}, 16')} to i16")


def narrow_type(dtype: DType) -> str:
    """Return what numbers of 16 bits are in LLVM, as `narrowed` gives them."""
    return "half" if dtype is FLOAT16 else "i16"


def narrowed(writer: FunctionWriter, values: str, width: int, dtype: DType) -> str:
    """Return floats that a type of 16 bits has exactly as numbers of it."""
    kind = f"<{width} x float>"
    if dtype is FLOAT16:
        return writer.emit(f"fptrunc {kind} {values} to <{width} x half>")
    bits = writer.emit(f"bitcast {kind} {values} to <{width} x i32>")
    high = writer.emit(f"lshr <{width} x i32> {bits}, splat (i32 16)")
    return writer.emit(f"trunc <{width} x i32> {high} to <{width} x i16>")
