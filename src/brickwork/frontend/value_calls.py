"""Python's own functions on values with parts: `len`, `abs`, `sum`, `isinstance`, `dataclasses.replace` and others."""

from __future__ import annotations

import ast
import numbers
import types
import typing
from collections.abc import Iterator
from typing import cast

from brickwork.frontend.complex_values import ADVICE, is_complex
from brickwork.frontend.environment import resolve
from brickwork.frontend.indexing import numeric
from brickwork.frontend.lowering_state import Arguments, Frame, State, describe
from brickwork.frontend.parts import binary_operand, implicit, items_of, replaced, special, truth_of
from brickwork.frontend.rules import INSTEAD, error
from brickwork.frontend.typing import Items, Opaque, Operand, Record, Value, View, is_none
from brickwork.frontend.value_classes import BUILTIN_METHODS
from brickwork.ir.build import constant, integer
from brickwork.ir.dtypes import BOOL, DType
from brickwork.language.complex_numbers import OF_PARTS, Complex

NUMBERS: tuple[tuple[type, str], ...] = (
    (bool, "b"),
    (int, "bi"),
    (float, "f"),
    (numbers.Number, "bif"),
    (numbers.Complex, "bif"),
    (numbers.Real, "bif"),
    (numbers.Rational, "bi"),
    (numbers.Integral, "bi"),
)
"""The classes of numbers, and whether bools, ints and floats are among their instances."""
COMPLEX_CLASSES: frozenset[object] = frozenset({complex, Complex, numbers.Number, numbers.Complex, object})
"""The classes that complex numbers are instances of."""


def call_on_values(state: State, frame: Frame, name: str, arguments: Arguments) -> Operand:
    """Return the call of a known function on arguments of which one is a value with parts."""
    node, given = arguments.call, arguments.positional
    loc, first = frame.loc(node), given[0]
    if name == "dataclasses.replace" and isinstance(first, Record) and len(given) == 1:
        return replaced(state, frame, first, node, arguments.keywords)
    if name == "builtins.bool" and isinstance(first, Record):
        return Value(truth_of(state, frame, first, node))
    called = BUILTIN_METHODS.get(name)
    found = special(state, frame, first, called, node, *given[1:]) if called is not None else None
    if found is not None:
        return found
    items = items_of(state, frame, first, node)
    if isinstance(items, Items):
        match name:
            case "builtins.len":
                return Value(integer(len(items.items), loc), weak=True)
            case "builtins.tuple" | "builtins.list" | "builtins.iter":
                return items
            case "builtins.sum":
                return total(state, frame, items, Arguments(given[1:], {}, node))
            case _:
                pass
    if any(map(is_complex, given)):
        raise error("BW101", f"`{name.removeprefix('builtins.')}` does not take a complex number", loc, _instead(name))
    raise error(
        "BW101",
        f"`{name.removeprefix('builtins.')}` does not take {describe(next(filter(_is_record, given)))}",
        loc,
        f"define `{called}` in its class" if called is not None else "write numbers, such as its attributes",
    )


def _instead(name: str) -> str:
    """Return what to write for a function of real numbers."""
    module, _, function = name.rpartition(".")
    return f"write `cmath.{function}`" if module == "math" and f"cmath.{function}" in OF_PARTS else ADVICE


def _is_record(found: Operand) -> bool:
    return isinstance(found, Record)


def total(state: State, frame: Frame, items: Items, arguments: Arguments) -> Operand:
    """Return the sum of a tuple."""
    loc = frame.loc(arguments.call)
    found: Operand = arguments.positional[0] if arguments.positional else Value(integer(0, loc), weak=True)
    for item in items.items:
        found = binary_operand(state, frame, "add", (found, item), implicit(arguments.call))
    return found


# ---------------------------------------------------------------- isinstance


def is_instance(state: State, frame: Frame, node: ast.Call, found: Operand) -> Value:
    """Return `isinstance(x, kinds)`, which the types of the arguments decide."""
    loc = frame.loc(node)
    if len(node.args) != 2:
        raise error("BW004", "`isinstance` takes 2 arguments", loc, "write `isinstance(x, kind)`")
    kinds = [*_kinds(frame, node.args[1])]
    if isinstance(found, View) and found.is_element:
        found = numeric(state, found, loc)
    return Value(constant(any(_is_of(found, kind) for kind in kinds), BOOL, loc))


def _kinds(frame: Frame, node: ast.expr) -> Iterator[type]:
    """Yield the classes that the second argument names."""
    if isinstance(node, ast.Tuple):
        for item in node.elts:
            yield from _kinds(frame, item)
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from (*_kinds(frame, node.left), *_kinds(frame, node.right))
        return
    for kind in kinds_in(resolve(node, frame.source.captured, frame.local)):
        if not isinstance(kind, type):
            advice = INSTEAD["builtins.type"]
            raise error("BW004", f"`{ast.unparse(node)}` is no class here", frame.loc(node), advice)
        yield kind


def kinds_in(found: object) -> tuple[object, ...]:
    """Return the classes of a tuple or a union of them, or the one class."""
    parts = typing.get_args(found) if isinstance(found, types.UnionType) else found
    return cast("tuple[object, ...]", parts) if isinstance(parts, tuple) else (parts,)


def _is_of(found: Operand, kind: type) -> bool:
    match found:
        case Record(kind=own) if own is Complex:
            return kind in COMPLEX_CLASSES
        case Record():
            return issubclass(found.kind, kind)
        case Value():
            return kind is object or is_number_of(found.dtype, kind)
        case Items():
            return kind is object or issubclass(tuple if found.site is None else list, kind)
        case View():
            return kind.__module__ == "torch" and kind.__name__ == "Tensor"
        case Opaque(text=text) if text:
            return issubclass(str, kind)
        case _:
            return is_none(found) and kind is types.NoneType


def is_number_of(dtype: DType, kind: object) -> bool:
    """Return whether numbers of a value type are instances of a class."""
    letter = "b" if dtype is BOOL else "f" if dtype.is_float else "i"
    return any(kind is each and letter in letters for each, letters in NUMBERS)
