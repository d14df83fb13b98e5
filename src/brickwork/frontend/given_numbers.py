"""Numbers that are stored as they were given: literals, scalar arguments, and numbers of the host part.

torch converts such a Python number to the element type and refuses one that the type cannot hold, so they are tested
here: literals when they are lowered, the others once before the loops. What is computed in the loops, of elements, loop
indices or draws, is stored as `ir/scalar_semantics.py` says: integers wrap.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.environment import is_number, resolve
from brickwork.frontend.lowering_state import Frame, State
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.typing import Items, Operand, Value
from brickwork.ir.build import apply, constant, logical_not
from brickwork.ir.dtypes import BOOL, FLOAT32, INT32, DType, Kind
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Check,
    Constant,
    Expression,
    FailureKind,
    For,
    If,
    Statement,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, walk

_NAMES = {INT32: "int", FLOAT32: "float"}
"""What torch calls the types in C++, but for those that end in `_t`."""
_GREATEST_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127


class NumberOverflowError(CompileError, RuntimeError):
    """A literal that the elements which it is stored into cannot hold."""


def overflow_text(dtype: DType) -> str:
    """Return torch's message for a number that a type cannot hold."""
    return f"value cannot be converted to type {_NAMES.get(dtype, f'{dtype}_t')} without overflow"


def bounds(dtype: DType, *, whole: bool) -> tuple[float, float] | None:
    """Return the least and the greatest number that torch puts into elements of a type; None where it takes any.

    `whole`: the number is an int, which unsigned types take from -max on. Beyond the range of float32 there are
    infinities and NaN; float16 and bfloat16 round to them.
    """
    if dtype is FLOAT32 and not whole:
        return -_GREATEST_FLOAT32, _GREATEST_FLOAT32
    if not dtype.is_integer or (whole and dtype.bits == 64):
        return None
    signed = dtype.kind is Kind.INT
    high = (1 << (dtype.bits - signed)) - 1
    low = -high - 1 if signed else -high if whole else 0
    return (low, high) if whole else (float(low), float(high))


def fits(value: float, dtype: DType) -> bool:
    """Return whether torch puts a Python number into elements of a type."""
    if dtype.is_float and not math.isfinite(value):
        return True
    found = bounds(dtype, whole=isinstance(value, int))
    return found is None or found[0] <= value <= found[1]


def is_literal(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether an expression is made of literals and captured numbers alone."""
    match node:
        case ast.Constant():
            return is_number(node.value)
        case ast.Name() | ast.Attribute():
            return is_number(resolve(node, captured, local))
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert()):
            return is_literal(node.operand, captured, local)
        case ast.BinOp():
            return is_literal(node.left, captured, local) and is_literal(node.right, captured, local)
        case _:
            return False


def given_names(source: SourceFunction, lifted: frozenset[int]) -> frozenset[str]:
    """Return the names that no lifted statement assigns: in loops they are what the call or the host part made them."""
    within = [item for node in all_nodes(source.node) if id(node) in lifted for item in all_nodes(node)]
    assigned = {item.id for item in within if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return source.local - assigned


def as_given(frame: Frame, node: ast.expr, found: Operand) -> Operand:
    """Return what an expression gives, marked where it is a literal, or a tuple with such items."""
    if isinstance(found, Value) and is_literal(node, frame.source.captured, frame.local):
        return replace(found, given=True)
    if isinstance(found, Items) and isinstance(node, ast.Tuple) and len(node.elts) == len(found.items):
        parts = zip(node.elts, found.items, strict=True)
        return replace(found, items=tuple(as_given(frame, part, item) for part, item in parts))
    return found


def refuse_overflow(state: State, value: Value, dtype: DType, loc: Location) -> None:
    """Refuse a literal that elements of `dtype` cannot hold, and have any other number that is given tested."""
    if value.dtype is BOOL:
        return
    found = bounds(dtype, whole=value.dtype.is_integer)
    if found is None:
        return
    number, message = value.expression, overflow_text(dtype)
    if isinstance(number, Constant):
        if not fits(number.value, dtype):
            advice = "store what the elements can hold, or make the tensor of a wider dtype"
            raise NumberOverflowError(Diagnostic(code="BW104", message=message, loc=loc, help=advice))
        return
    low, high = (constant(limit, number.dtype, loc) for limit in found)
    holds = apply("logical_and", apply("ge", number, low, loc=loc), apply("le", number, high, loc=loc), loc=loc)
    if dtype.is_float:
        holds = apply("logical_or", holds, logical_not(apply("isfinite", number, loc=loc), loc), loc=loc)
    state.check(holds, FailureKind.RUNTIME, message, (), loc)


# ---------------------------------------------------------------- before the loops


def taken_out(kernel: Sequence[Statement]) -> tuple[list[Statement], list[Check]]:
    """Return lifted statements without the tests of given numbers that can stand before them, and those tests.

    A test goes before the loops around it, and holds where one of them has no iterations. It stays where a `break`, a
    `while` or a condition on elements may keep the store from being reached.
    """
    if not any(_is_test(node) for node in walk(kernel)):
        return [*kernel], []
    found: dict[Expression, Check] = {}
    inside = frozenset(symbol for node in kernel for symbol in assigned_symbols(node))
    return _without(kernel, (), inside, found), [*found.values()]


def _is_test(node: object) -> bool:
    return isinstance(node, Check) and node.failure.kind is FailureKind.RUNTIME


def _without(
    block: Sequence[Statement],
    around: tuple[Expression, ...],
    inside: frozenset[Symbol],
    found: dict[Expression, Check],
) -> list[Statement]:
    """Return a block without its tests; `around` are the conditions under which it runs."""
    left: list[Statement] = []
    for place, node in enumerate(block):
        match node:
            case Check() if _is_test(node) and _is_known((node.condition,), inside):
                condition = node.condition
                for each in around:
                    condition = apply("logical_or", condition, logical_not(each), loc=node.loc)
                found.setdefault(condition, replace(node, condition=condition))
            case For(start=start, stop=stop) if _is_known((start, stop), inside):
                runs = apply("lt", start, stop)
                left.append(replace(node, body=tuple(_without(node.body, (*around, runs), inside, found))))
            case If(condition=condition) if _is_known((condition,), inside):
                then = _without(node.then, (*around, condition), inside, found)
                otherwise = _without(node.otherwise, (*around, logical_not(condition)), inside, found)
                if then or otherwise:
                    left.append(replace(node, then=tuple(then), otherwise=tuple(otherwise)))
            case _:
                left.append(node)
        if effects(node).jumps or effects(node).whiles:
            return [*left, *block[place + 1 :]]
    return left


def _is_known(expressions: Sequence[Expression], inside: frozenset[Symbol]) -> bool:
    """Whether expressions have one value, which the host knows."""
    found = effects(expressions)
    return found.plain and not found.reads & inside
