"""Complex numbers while loops are lowered: values with parts of one class, `language/complex_numbers.py`.

Nothing of a complex number is left in the IR: its parts are numbers of one type, and a tensor of complex elements is
one of floats with an axis more (`TensorType.pairs`).
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from brickwork.diagnostics.location import Location
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Operand, Record, Value, floating, join
from brickwork.ir.build import cast, constant, integer
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.nodes import Constant
from brickwork.language.complex_numbers import LARGEST_POWER, OF_PARTS, ON_COMPLEX, POWER, Complex, log_of_base

PARTS = ("real", "imag")
"""The attributes of a complex number."""
ADVICE = "write `.real`, `.imag` or `abs(...)` of it"
"""What to write where a real number is needed."""


def is_complex(found: object) -> TypeGuard[Record]:
    """Return whether an operand is a complex number."""
    return isinstance(found, Record) and found.kind is Complex


def of_parts(real: Value, imag: Value, loc: Location) -> Record:
    """Return a complex number; both parts get the type in which they meet."""
    kind = join(real.type, imag.type)
    if kind is None:
        raise error("BW101", f"{real.type} and {imag.type} do not mix", loc, "write float(...) around the uint64 one")
    kind = floating(kind)
    parts = tuple(Value(cast(item.expression, kind.dtype, loc), kind.weak) for item in (real, imag))
    return Record(Complex, PARTS, parts)


def as_complex(found: Operand, loc: Location) -> Operand:
    """Return a real number as a complex one; anything else as it is."""
    if not isinstance(found, Value):
        return found
    kind = floating(found.type)
    real = replace(found, expression=cast(found.expression, kind.dtype, loc), weak=kind.weak, given=False)
    return of_parts(real, Value(constant(0.0, kind.dtype, loc), kind.weak), loc)


def literal(found: complex, loc: Location) -> Record:
    """Return a literal or a captured number of Python's."""
    real, imag = (Value(constant(part, FLOAT64, loc), weak=True) for part in (found.real, found.imag))
    return of_parts(real, imag, loc)


def alike(left: Operand | None, right: Operand | None, loc: Location) -> tuple[Operand | None, Operand | None]:
    """Return two operands, with a number as a complex one where the other is complex."""
    if is_complex(left) and isinstance(right, Value):
        return left, as_complex(right, loc)
    if is_complex(right) and isinstance(left, Value):
        return as_complex(left, loc), right
    return left, right


def literal_exponent(found: Operand) -> int | None:
    """Return a small integer exponent that the text says, for which a power is a product."""
    if not isinstance(found, Value) or not isinstance(found.expression, Constant):
        return None
    number = found.expression.value
    return int(number) if abs(number) <= LARGEST_POWER and number == int(number) else None


def one(loc: Location) -> Record:
    """Return 1."""
    return of_parts(Value(integer(1, loc), weak=True), Value(integer(0, loc), weak=True), loc)


def part_of_real(found: Value, name: str, loc: Location) -> Value:
    """Return `.real` or `.imag` of a real number."""
    zero = cast(integer(0, loc), found.dtype, loc)
    return found if name == "real" else Value(zero, found.weak)


def of_complex(name: str, arguments: Sequence[Operand]) -> types.FunctionType | None:
    """Return what a known function is on these arguments where one of them is complex, or where it may give one."""
    if name == "cmath.log" and len(arguments) == 2:
        return log_of_base
    if name in OF_PARTS:
        return OF_PARTS[name]
    if not any(map(is_complex, arguments)):
        return None
    if name == "builtins.pow" and len(arguments) == 2:
        return POWER
    return ON_COMPLEX.get(name)
