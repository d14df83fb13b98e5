"""Floor division of integers: of lanes by floats, of a thread of a grid in 32 bits, where the numbers turn out to fit.

Processors have no division of integers in lanes; that of floats takes an eighth of the time of eight divisions. A
machine with a grid divides 64-bit integers by a function, and signed ones by more instructions than unsigned ones.
Where a kernel calls a function, its loads cost more instructions everywhere: natural numbers are divided in place.
Invariant: no operands make a division trap; by 0 the results are any numbers.
"""

from __future__ import annotations

from collections.abc import Callable

from brickwork.codegen.builder import FunctionWriter, Known
from brickwork.codegen.emitter_state import is_parameter
from brickwork.legality import legality

_LEAST, _MOST = -(2**31), 2**31 - 1
_EXACT_BITS = 50
"""Integers of less than 2**50 are floats, and so are quotients rounded down: the next integer is further off than a
float is rounded, which holds up to 2**52. Adding 1.5 * 2**52 puts integers of less than 2**51 into its last bits."""
_SHIFT, _SHIFT_BITS = "0x4338000000000000", 0x4338000000000000


def floor_division(writer: FunctionWriter, left: str, right: str) -> tuple[str, str]:
    """Return floor quotient and modulo of two i64, as i64, also where sums and products around are modulo 2**32."""
    with writer.modular(narrow=False):
        return _floor_division(writer, left, right)


def _floor_division(writer: FunctionWriter, left: str, right: str) -> tuple[str, str]:
    first, second = writer.known(left), writer.known(right)
    if second.low == second.high > 0:
        return _by_literal(writer, left, second.low)
    natural, given = second.low >= 0, right
    if natural:
        right = writer.emit(f"call i64 @llvm.umax.i64(i64 {right}, i64 1)")
        second = Known(max(second.low, 1), max(second.high, 1))
        writer.learn(right, second)
    tests = [_is_word(writer, text) for text, known in ((left, first), (right, second)) if not _fits(known)]
    parameter = given if natural and is_parameter(given) and _fits(second) else ""
    if not tests:
        quotient, remainder = _in_words(writer, left, right, parameter, natural=natural)
    else:
        short = tests[0] if len(tests) == 1 else writer.emit(f"and i1 {tests[0]}, {tests[1]}")
        quotient, remainder = _in_either(writer, short, left, right, parameter, natural=natural)
    if natural:
        writer.learn(quotient, Known(min(first.low, 0), max(first.high, 0)))
        writer.learn(remainder, Known(0, second.high - 1))
    return quotient, remainder


def _by_literal(writer: FunctionWriter, left: str, right: int) -> tuple[str, str]:
    """Divide by a number that is at least 1: LLVM makes a product of it, if it is no power of two."""
    known = writer.known(left)
    if right & (right - 1) == 0:
        quotient = writer.emit(f"ashr i64 {left}, {right.bit_length() - 1}")
        remainder = writer.emit(f"and i64 {left}, {right - 1}")
    elif _fits(known) and right <= _MOST:
        quotient, remainder = _in_words(writer, left, str(right), "", natural=True)
    else:
        quotient, remainder = by_natural(writer, left, str(right))
    writer.learn(quotient, Known(known.low // right, known.high // right))
    writer.learn(remainder, Known(0, right - 1))
    return quotient, remainder


def _in_words(writer: FunctionWriter, left: str, right: str, parameter: str, *, natural: bool) -> tuple[str, str]:
    words = [writer.emit(f"trunc i64 {text} to i32") for text in (left, right)]
    if parameter:
        found = _by_parameter(writer, words[0], parameter, positive=writer.known(left).low >= 0)
    elif natural:
        found = _natural(writer, "i32", words[0], words[1], positive=writer.known(left).low >= 0)
    else:
        found = _signed(writer, "i32", words[0], words[1])
    quotient, remainder = (writer.emit(f"sext i32 {text} to i64") for text in found)
    return quotient if natural else _for_minus_one(writer, quotient, left, right), remainder


def _in_longs(writer: FunctionWriter, left: str, right: str, *, natural: bool) -> tuple[str, str]:
    if natural:
        return _natural(writer, "i64", left, right, positive=writer.known(left).low >= 0)
    quotient, remainder = _signed(writer, "i64", left, right)
    return _for_minus_one(writer, quotient, left, right), remainder


def _in_either(
    writer: FunctionWriter, short: str, left: str, right: str, parameter: str, *, natural: bool
) -> tuple[str, str]:
    narrow, wide, divided = writer.label("narrow"), writer.label("wide"), writer.label("divided")
    writer.branch_if(short, narrow, wide)
    writer.place(narrow)
    words = _in_words(writer, left, right, parameter, natural=natural)
    near = writer.block
    writer.branch(divided)
    writer.place(wide)
    longs = _in_longs(writer, left, right, natural=natural)
    far = writer.block
    writer.place(divided)
    quotient, remainder = (
        writer.emit(f"phi i64 [{one}, %{near}], [{other}, %{far}]") for one, other in zip(words, longs, strict=True)
    )
    if natural and _fits(writer.known(right)):
        remainder = writer.emit(f"sext i32 {writer.emit(f'trunc i64 {remainder} to i32')} to i64")
    return quotient, remainder


def by_natural(writer: FunctionWriter, left: str, right: str) -> tuple[str, str]:
    """Return floor quotient and modulo of an i64 by one that is at least 1; LLVM makes a product of a literal one."""

    def divide(text: str) -> str:
        return writer.emit(f"udiv i64 {text}, {right}")

    return _rounded_down(writer, "i64", left, right, divide, positive=writer.known(left).low >= 0)


def _natural(writer: FunctionWriter, kind: str, left: str, right: str, *, positive: bool) -> tuple[str, str]:
    """Divide integers of `kind` by one that is at least 1; a `positive` dividend is at least 0."""

    def divide(text: str) -> str:
        return writer.emit(f"udiv i32 {text}, {right}") if kind == "i32" else long_quotient(writer, text, right)

    return _rounded_down(writer, kind, left, right, divide, positive=positive)


def long_quotient(writer: FunctionWriter, left: str, right: str) -> str:
    """Return the quotient of an i64 that is not negative by one that is at least 1, without a call.

    The reciprocal of the divisor comes from that of a float, and three of Newton's steps make it as exact as a double
    is. With it the first estimate is at most 2**13 away from the quotient, the second at most 1.
    """
    emit = writer.emit
    divisor = emit(f"uitofp i64 {right} to double")
    single = emit(f"fptrunc double {divisor} to float")
    reciprocal = emit(f"fpext float {emit(f'fdiv afn float 1.0, {single}')} to double")
    for _ in range(3):
        error = _fused(writer, emit(f"fneg double {divisor}"), reciprocal, "1.0")
        reciprocal = _fused(writer, reciprocal, error, reciprocal)
    estimate = emit(f"fmul double {emit(f'uitofp i64 {left} to double')}, {reciprocal}")
    first = emit(f"fptoui double {estimate} to i64")
    rest = emit(f"sub i64 {left}, {emit(f'mul i64 {first}, {right}')}")
    estimate = emit(f"fmul double {emit(f'sitofp i64 {rest} to double')}, {reciprocal}")
    second = emit(f"fptosi double {estimate} to i64")
    rest = emit(f"sub i64 {rest}, {emit(f'mul i64 {second}, {right}')}")
    quotient = emit(f"add i64 {first}, {second}")
    below = emit(f"sext i1 {emit(f'icmp slt i64 {rest}, 0')} to i64")
    beyond = emit(f"zext i1 {emit(f'icmp sge i64 {rest}, {right}')} to i64")
    return emit(f"add i64 {emit(f'add i64 {quotient}, {below}')}, {beyond}")


def _fused(writer: FunctionWriter, left: str, right: str, addend: str) -> str:
    return writer.emit(f"call double @llvm.fma.f64(double {left}, double {right}, double {addend})")


def _by_parameter(writer: FunctionWriter, left: str, parameter: str, *, positive: bool) -> tuple[str, str]:
    """Divide an i32 by a natural parameter of the kernel, of which each thread computes the reciprocal once."""
    word = writer.once(f"trunc i64 {parameter} to i32")
    divisor = writer.once(f"call i32 @llvm.umax.i32(i32 {word}, i32 1)")
    reciprocal = writer.once(f"udiv i32 -1, {divisor}")

    def divide(text: str) -> str:
        return word_quotient(writer, text, divisor, reciprocal)

    return _rounded_down(writer, "i32", left, divisor, divide, positive=positive)


def word_quotient(writer: FunctionWriter, left: str, divisor: str, reciprocal: str) -> str:
    """Return the quotient of an i32 that is not negative by one of which (2**32 - 1) / divisor is given.

    The reciprocal is less than 1 below 2**32 / divisor. Of a number below 2**31, the estimate is 1 too small at most.
    """
    emit = writer.emit
    with writer.modular(narrow=False):
        wide = emit(f"mul i64 {emit(f'zext i32 {left} to i64')}, {emit(f'zext i32 {reciprocal} to i64')}")
    estimate = emit(f"trunc i64 {emit(f'lshr i64 {wide}, 32')} to i32")
    rest = emit(f"sub i32 {left}, {emit(f'mul i32 {estimate}, {divisor}')}")
    more = emit(f"icmp uge i32 {rest}, {divisor}")
    return emit(f"add i32 {estimate}, {emit(f'zext i1 {more} to i32')}")


def _rounded_down(
    writer: FunctionWriter, kind: str, left: str, right: str, divide: Callable[[str], str], *, positive: bool
) -> tuple[str, str]:
    """Return floor quotient and modulo, where `divide` gives the quotient of a number that is not negative."""
    emit = writer.emit
    if positive:
        quotient = divide(left)
    else:
        # For a negative dividend, ~((~left) / right) is the quotient rounded down.
        sign = emit(f"ashr {kind} {left}, {int(kind[1:]) - 1}")
        quotient = emit(f"xor {kind} {divide(emit(f'xor {kind} {left}, {sign}'))}, {sign}")
    return quotient, emit(f"sub {kind} {left}, {emit(f'mul {kind} {quotient}, {right}')}")


def _signed(writer: FunctionWriter, kind: str, left: str, right: str) -> tuple[str, str]:
    """Divide integers of `kind`; 0 and -1 are taken for 1."""
    emit = writer.emit
    near_zero = emit(f"icmp ult {kind} {emit(f'add {kind} {right}, 1')}, 2")
    divisor = emit(f"select i1 {near_zero}, {kind} 1, {kind} {right}")
    quotient = emit(f"sdiv {kind} {left}, {divisor}")
    remainder = emit(f"sub {kind} {left}, {emit(f'mul {kind} {quotient}, {divisor}')}")
    inexact = emit(f"icmp ne {kind} {remainder}, 0")
    opposite = emit(f"icmp slt {kind} {emit(f'xor {kind} {remainder}, {divisor}')}, 0")
    low = emit(f"and i1 {inexact}, {opposite}")
    quotient = emit(f"sub {kind} {quotient}, {emit(f'zext i1 {low} to {kind}')}")
    return quotient, emit(f"add {kind} {remainder}, {emit(f'select i1 {low}, {kind} {divisor}, {kind} 0')}")


def _for_minus_one(writer: FunctionWriter, quotient: str, left: str, right: str) -> str:
    is_minus_one = writer.emit(f"icmp eq i64 {right}, -1")
    return writer.emit(f"select i1 {is_minus_one}, i64 {writer.emit(f'sub i64 0, {left}')}, i64 {quotient}")


def _is_word(writer: FunctionWriter, text: str) -> str:
    """Return whether an i64 is an extended i32, as i1."""
    word = writer.emit(f"trunc i64 {text} to i32")
    return writer.emit(f"icmp eq i64 {writer.emit(f'sext i32 {word} to i64')}, {text}")


@legality
def _fits(known: Known) -> bool:
    return known.low >= _LEAST and known.high <= _MOST


def lanes_by_floats(
    writer: FunctionWriter,
    operands: tuple[str, str],
    width: int,
    otherwise: Callable[[], str],
    *,
    part: bool,
    signed: bool,
) -> str:
    """Return floor quotients of lanes of i64, or their modulo if `part`; `otherwise` writes them for any numbers."""
    emit, exactly = writer.emit, writer.exactly
    whole, floats, flags = (f"<{width} x {kind}>" for kind in ("i64", "double", "i1"))

    def small(text: str) -> str:
        least = 2**_EXACT_BITS if signed else 0
        moved = emit(f"add {whole} {text}, splat (i64 {least})")
        return emit(f"icmp ult {whole} {moved}, splat (i64 {2**_EXACT_BITS + least})")

    def as_float(text: str) -> str:
        bits = emit(f"add {whole} {text}, splat (i64 {_SHIFT_BITS})")
        return exactly(f"fsub {floats} {emit(f'bitcast {whole} {bits} to {floats}')}, splat (double {_SHIFT})")

    left, right = operands
    both = emit(f"and {flags} {small(left)}, {small(right)}")
    fit = emit(f"call i1 @llvm.vector.reduce.and.v{width}i1({flags} {both})")
    near, far, divided = writer.label("near"), writer.label("far"), writer.label("divided")
    writer.branch_if(fit, near, far)
    writer.place(near)
    dividend, divisor = as_float(left), as_float(right)
    ratio = exactly(f"fdiv {floats} {dividend}, {divisor}")
    result = emit(f"call {floats} @llvm.floor.v{width}f64({floats} {ratio})")
    if part:
        result = exactly(f"fsub {floats} {dividend}, {exactly(f'fmul {floats} {result}, {divisor}')}")
    bits = emit(f"bitcast {floats} {exactly(f'fadd {floats} {result}, splat (double {_SHIFT})')} to {whole}")
    first = emit(f"sub {whole} {bits}, splat (i64 {_SHIFT_BITS})")
    begun = writer.block
    writer.branch(divided)
    writer.place(far)
    second = otherwise()
    ended = writer.block
    writer.place(divided)
    return emit(f"phi {whole} [{first}, %{begun}], [{second}, %{ended}]")
