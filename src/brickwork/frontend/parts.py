"""Values with parts while loops are lowered: they are made, asked for attributes, and their methods are inlined.

Such a value is a `Record` of operands: its numbers are variables of the program each on its own, and nothing of the
value itself is left in the IR. Operators, comparisons and builtin functions run the methods that Python would run.
"""

from __future__ import annotations

import ast
import difflib
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import binary, unary
from brickwork.frontend.captured_operands import NOT_IMPLEMENTED, captured_operand
from brickwork.frontend.check import why_left_out
from brickwork.frontend.complex_values import ADVICE, is_complex, literal, literal_exponent, of_parts, one
from brickwork.frontend.complex_values import PARTS as COMPLEX_PARTS
from brickwork.frontend.environment import MISSING
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.indexing import is_complex_element, load, numeric, scalar
from brickwork.frontend.lowering_state import Arguments, Frame, State, describe
from brickwork.frontend.optional_numbers import required
from brickwork.frontend.rules import error
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.typing import Items, Opaque, Operand, Record, Value, View, with_parts
from brickwork.frontend.value_classes import (
    BINARY_METHODS,
    UNARY_METHODS,
    Field,
    WrongArgumentsError,
    bound,
    fields_of,
    getter,
    initialiser,
    member,
    method,
)
from brickwork.frontend.value_methods import attribute_names
from brickwork.ir.build import cast, constant, integer, logical_not
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Expression
from brickwork.language.complex_numbers import Complex, product

Tree = TypeVar("Tree", bound=ast.expr)


SIGNS = {
    "floordiv": "//",
    "mod": "%",
    "matmul": "@",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}
"""The operators that complex numbers have not, as they are written."""


def implicit(node: Tree, first: ast.expr | None = None) -> Tree:
    """Return a node for a method that an expression calls without its name: its place is no other call's."""
    made = ast.copy_location(type(node)(**dict(ast.iter_fields(node))), node)
    if first is not None:
        made.lineno, made.col_offset = first.lineno, first.col_offset
    made.end_col_offset = (node.end_col_offset or node.col_offset) + 1
    return made


def as_record(found: Operand | None) -> Record | None:
    """Return an operand if it is a value with parts."""
    return found if isinstance(found, Record) else None


# ---------------------------------------------------------------- making


def construct(
    state: State,
    frame: Frame,
    kind: type[Any],
    node: ast.expr,
    positional: Sequence[Operand],
    named: Mapping[str, Operand],
) -> Record:
    """Return an instance of a class."""
    loc = frame.loc(node)
    values = tuple(_part(state, item, loc) for item in positional)
    keywords = {name: _part(state, item, loc) for name, item in named.items()}
    if kind is Complex:
        return _complex(state, frame, node, values, keywords)
    if fields_of(kind) is None:
        source = state.helpers[function] if (function := initialiser(kind)) is not None else frame.source
        return _made(state, frame, kind, source, Arguments(values, keywords, node))
    try:
        pairs = dict(bound(kind, values, keywords))
    except WrongArgumentsError as wrong:
        raise error("BW004", str(wrong), loc, "write the attributes in their order, or by name") from None
    parts = {
        name: captured_operand(item.default, name, loc) if isinstance(item, Field) else item
        for name, item in pairs.items()
    }
    parts = {name: _part(state, item, loc) for name, item in parts.items()}
    after = method(kind, "__post_init__")
    if after is None:
        return Record(kind, tuple(parts), tuple(parts.values()))
    source = state.helpers[after]
    named_parts = {item.arg: parts[item.arg.partition(".")[2]] for item in source.node.args.kwonlyargs}
    return _made(state, frame, kind, source, Arguments((), named_parts, node))


def _complex(
    state: State, frame: Frame, node: ast.expr, values: Sequence[Operand], named: Mapping[str, Operand]
) -> Record:
    """Return `complex(a, b)`: of one number, or of two parts, which may be complex themselves."""
    loc = frame.loc(node)
    if len(values) + len(named) > 2 or not {*named} <= {*COMPLEX_PARTS[len(values) :]}:
        raise error("BW004", "`complex` takes a real and an imaginary part", loc, "write `complex(a, b)`")
    found = dict(zip(COMPLEX_PARTS, values, strict=False)) | dict(named)
    parts = {name: numeric(state, item, loc) for name, item in found.items()}
    real, imag = (parts.get(name, Value(integer(0, loc), weak=True)) for name in COMPLEX_PARTS)
    if is_complex(imag):
        turned = binary_operand(state, frame, "mul", (imag, literal(1j, loc)), implicit(node))
        return as_record(binary_operand(state, frame, "add", (turned, real), implicit(node))) or imag
    if is_complex(real):
        both = [scalar(state, item, loc) for item in (real.parts[1], imag)]
        return of_parts(scalar(state, real.parts[0], loc), binary(state, "add", both[0], both[1], loc), loc)
    return of_parts(scalar(state, real, loc), scalar(state, imag, loc), loc)


def _made(state: State, frame: Frame, kind: type[Any], source: SourceFunction, arguments: Arguments) -> Record:
    """Return what `__init__` or `__post_init__` makes."""
    found = _inlined(state, frame, source, arguments)
    names = attribute_names(source)
    return Record(kind, names, found.items if isinstance(found, Items) else ())


def _part(state: State, found: Operand, loc: Location) -> Operand:
    """Return what an attribute is set to: an element is read, and a literal is a number like any other."""
    if isinstance(found, View) and found.is_element:
        return load(state, found, loc)
    if isinstance(found, Value):
        return replace(found, given=False)
    return with_parts(found, lambda item: _part(state, item, loc))


def _inlined(state: State, frame: Frame, source: SourceFunction, arguments: Arguments) -> Operand | None:
    if source in state.calls:
        raise error("BW004", f"`{source.name}` calls itself", frame.loc(arguments.call), "write a loop instead")
    return state.inline(state, source, arguments, frame)


# ---------------------------------------------------------------- attributes and methods


def attribute(state: State, frame: Frame, owner: Record, node: ast.Attribute) -> Operand:
    """Return an attribute: a part, a property, or a number of the class."""
    loc, name = frame.loc(node), node.attr
    part = owner.part(name)
    if part is not None:
        return part
    function = getter(owner.kind, name)
    if function is not None:
        found = run(state, frame, function, Arguments((owner,), {}, implicit(node)))
        return Opaque("None") if found is None else found
    found = member(owner.kind, name)
    if found is MISSING:
        known = [*owner.names, *(item for item in dir(owner.kind) if not item.startswith("_"))]
        close = difflib.get_close_matches(name, known, 1)
        advice = f"write `.{close[0]}`, if that is meant" if close else f"it has {', '.join(known) or 'none'}"
        raise error("BW005", f"{describe(owner)} has no attribute `{name}`", loc, advice)
    if callable(found):
        raise error("BW004", f"the method `{name}` is not called here", loc, f"write `{ast.unparse(node)}(...)`")
    return captured_operand(found, ast.unparse(node), loc)


def call_method(state: State, frame: Frame, owner: Record, name: str, arguments: Arguments) -> Operand | None:
    """Return the call of a method by its name; `arguments` lack the object."""
    loc, function = frame.loc(arguments.call), method(owner.kind, name)
    if name == "__class__":
        return construct(state, frame, owner.kind, arguments.call, arguments.positional, arguments.keywords)
    if function is not None:
        is_static = isinstance(member(owner.kind, name), staticmethod)
        given = arguments.positional if is_static else (owner, *arguments.positional)
        return run(state, frame, function, replace(arguments, positional=given))
    if name == "_replace" and owner.is_tuple and not arguments.positional:
        return replaced(state, frame, owner, arguments.call, arguments.keywords)
    kind = owner.kind.__name__
    if isinstance(member(owner.kind, name), classmethod):
        raise error("BW004", f"`{name}` is a method of the class", loc, f"call it on the class: `{kind}.{name}(...)`")
    if name in owner.names or getter(owner.kind, name) is not None:
        raise error("BW004", f"`{name}` is an attribute here, not a method", loc, f"write `.{name}`")
    if name == "__call__":
        raise error("BW004", f"{describe(owner)} is called as a function", loc, f"define `__call__` in `{kind}`")
    raise error("BW005", f"{describe(owner)} has no method `{name}`", loc, f"define it in `{kind}`")


def replaced(state: State, frame: Frame, owner: Record, node: ast.expr, named: Mapping[str, Operand]) -> Record:
    """Return a value with some attributes replaced, made anew."""
    return construct(state, frame, owner.kind, node, (), dict(zip(owner.names, owner.parts, strict=True)) | {**named})


def run(state: State, frame: Frame, function: types.FunctionType, arguments: Arguments) -> Operand | None:
    """Return what a method gives, inlined."""
    source = state.helpers.get(function)
    if source is None:
        raise why_left_out(function, frame.loc(arguments.call))
    return _inlined(state, frame, source, arguments)


def special(state: State, frame: Frame, owner: Operand, name: str, node: ast.expr, *given: Operand) -> Operand | None:
    """Return what the method gives that an expression calls without its name; None where there is none."""
    function = method(owner.kind, name) if isinstance(owner, Record) else None
    if function is None:
        return None
    found = run(state, frame, function, Arguments((owner, *given), {}, implicit(node)))
    return Opaque("None") if found is None else found


def binary_operand(
    state: State, frame: Frame, name: str, sides: tuple[Operand, Operand], node: ast.expr, *, stored: bool = False
) -> Operand:
    """Return `left <name> right`; `stored` says that the left side is assigned to."""
    left, right = (numeric(state, side, frame.loc(node)) if is_complex_element(side) else side for side in sides)
    loc = frame.loc(node)
    if not isinstance(left, Record) and not isinstance(right, Record) and name != "matmul":
        return binary(state, name, scalar(state, left, loc), scalar(state, right, loc), loc)
    exponent = literal_exponent(right) if name == "pow" and is_complex(left) else None
    if exponent is not None:
        return _small_power(state, frame, left, exponent, node)
    text = BINARY_METHODS[name]
    tries = [(left, f"__{text}__", right)]
    if not (isinstance(left, Record) and isinstance(right, Record) and left.kind is right.kind):
        tries.append((right, f"__r{text}__", left))
    if _comes_first(left, right, f"__r{text}__"):
        tries.reverse()
    for owner, called, other in [*([(left, f"__i{text}__", right)] if stored else []), *tries]:
        found = special(state, frame, owner, called, node, _part(state, other, loc))
        if found is not None and found != NOT_IMPLEMENTED:
            return found
    if not isinstance(left, Record) and not isinstance(right, Record):
        raise error("BW003", "`@` is not part of the language", loc, "write the loops of the product")
    if is_complex(left) or is_complex(right):
        raise error("BW101", f"`{SIGNS[name]}` does not take a complex number", loc, ADVICE)
    kind = left.kind if isinstance(left, Record) else right.kind if isinstance(right, Record) else type(None)
    message = f"{describe(left)} and {describe(right)} have no `__{text}__` that takes both"
    raise error("BW101", message, loc, f"define it in `{kind.__name__}`, or compute with the attributes")


def binary_number(
    state: State, frame: Frame, name: str, sides: Sequence[Value | Record], node: ast.expr
) -> Value | Record:
    """Return `left <name> right` of numbers, which may be complex."""
    left, right = sides
    if isinstance(left, Value) and isinstance(right, Value):
        return binary(state, name, left, right, frame.loc(node))
    return numeric(state, binary_operand(state, frame, name, (left, right), implicit(node)), frame.loc(node))


def unary_of_parts(state: State, frame: Frame, node: ast.UnaryOp, found: Record) -> Operand:
    """Return a unary operator of a value with parts."""
    loc, name = frame.loc(node), UNARY_METHODS[type(node.op)]
    result = special(state, frame, found, name, node)
    if result is None:
        advice = ADVICE if is_complex(found) else f"define it in `{found.kind.__name__}`"
        raise error("BW101", f"{describe(found)} has no `{name}`", loc, advice)
    return result


def unary_number(state: State, frame: Frame, node: ast.UnaryOp, found: Value | Record) -> Value | Record:
    """Return a unary operator of an item of a row, which may be complex."""
    loc = frame.loc(node)
    if isinstance(found, Record):
        return numeric(state, unary_of_parts(state, frame, node, found), loc)
    if found.dtype is BOOL and isinstance(node.op, ast.Invert):  # a mask, as torch has it
        return Value(logical_not(found.expression, loc))
    return unary(state, node.op, found, loc)


def _small_power(state: State, frame: Frame, base: Operand, exponent: int, node: ast.expr) -> Operand:
    """Return a power of a complex number as products."""
    loc = frame.loc(node)

    def multiply(left: Operand, right: Operand) -> Operand:
        return settle(state, binary_operand(state, frame, "mul", (left, right), implicit(node)), loc)

    if not exponent:
        return one(loc)
    found = product(settle(state, base, loc), abs(exponent), multiply)
    return found if exponent > 0 else binary_operand(state, frame, "truediv", (one(loc), found), implicit(node))


def _comes_first(left: Operand, right: Operand, name: str) -> bool:
    """Return whether the right operand is asked first, as an instance of a subclass with a method of its own."""
    if not isinstance(left, Record) or not isinstance(right, Record) or left.kind is right.kind:
        return False
    return issubclass(right.kind, left.kind) and method(right.kind, name) is not method(left.kind, name)


def truth_of(state: State, frame: Frame, owner: Record, node: ast.expr) -> Expression:
    """Return whether a value with parts counts as true."""
    loc = frame.loc(node)
    found = special(state, frame, owner, "__bool__", node) or special(state, frame, owner, "__len__", node)
    if found is None:
        return constant(not owner.is_tuple or bool(owner.parts), BOOL, loc)
    return cast(scalar(state, found, loc).expression, BOOL, loc)


# ---------------------------------------------------------------- items


def items_of(state: State, frame: Frame, found: Operand, node: ast.expr) -> Operand:
    """Return a value with parts that can be run over as a tuple of its items; anything else as it is."""
    found = required(state, found, frame.loc(node))
    if not isinstance(found, Record):
        return found
    if found.is_tuple:
        return Items(found.parts)
    items = special(state, frame, found, "__iter__", node)
    return found if items is None else items_of(state, frame, items, node)


def item_of(state: State, frame: Frame, owner: Record, node: ast.Subscript, indices: Sequence[Operand]) -> Operand:
    """Return `v[i]` or `s[i, j]`."""
    found = special(state, frame, owner, "__getitem__", node, at(node, indices))
    if found is None:
        advice = f"define `__getitem__` in `{owner.kind.__name__}`, or read an attribute"
        raise error("BW003", f"{describe(owner)} cannot be indexed", frame.loc(node), advice)
    return found


def store_item(
    state: State, frame: Frame, owner: Record, node: ast.Subscript, indices: Sequence[Operand], stored: Operand
) -> None:
    """Lower `v[i] = x`."""
    loc = frame.loc(node)
    done = special(state, frame, owner, "__setitem__", node, at(node, indices), _part(state, stored, loc))
    if done is None:
        advice = f"define `__setitem__` in `{owner.kind.__name__}`, storing into a list; or make a new value"
        raise error("BW002", f"{describe(owner)} cannot be stored into", loc, advice)


def at(node: ast.Subscript, indices: Sequence[Operand]) -> Operand:
    """Return the index that a method is given."""
    return Items(tuple(indices)) if isinstance(node.slice, ast.Tuple) else indices[0]
