"""Calls of functions that the compiler knows, on operands that are lowered already: builtins, `math`, random draws."""

from __future__ import annotations

from collections.abc import Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import binary, meet
from brickwork.frontend.captured_operands import limits_of
from brickwork.frontend.environment import MADE_ROWS, OF_TYPES
from brickwork.frontend.indexing import scalar, size_of
from brickwork.frontend.lowering_state import State, describe, truth
from brickwork.frontend.made_rows import made_row
from brickwork.frontend.random_sites import SPREAD, SPREAD_BITS, Path
from brickwork.frontend.rows import row_of_list
from brickwork.frontend.rules import SUPPORTED, error
from brickwork.frontend.typing import Items, Opaque, Operand, Row, Value, View, floating, number
from brickwork.ir.build import add, apply, cast, constant, integer, mul, read
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Draw, Expression, FailureKind, Random
from brickwork.ir.operators import OPERATORS
from brickwork.language.math import FUNCTIONS


def call(state: State, name: str, arguments: Sequence[Operand], site: Path, loc: Location) -> Operand:
    """Return the call of the function `name` (`module.function`)."""
    module, _, function = name.rpartition(".")
    match module:
        case "builtins":
            return _builtin(state, function, arguments, loc)
        case "math":
            if function == "prod":
                _arity(arguments, 1, 1, "math.prod", loc)
                return _folded(state, function, arguments, loc)
            if function in {"fsum", "fma"}:
                advice = "write `sum`, or the sum with its compensation" if function == "fsum" else "write `x * y + z`"
                raise error("BW004", f"`math.{function}` is not part of the language", loc, advice)
            if f"math.{function}" not in FUNCTIONS and function not in {"log", "radians", "degrees"}:
                raise error("BW004", f"`math.{function}` is not part of the language", loc, SUPPORTED)
            return _math(state, function, [scalar(state, item, loc) for item in arguments], loc)
        case "brickwork" if function in {"rand", "randn", "randint"}:
            return _draw(state, function, [scalar(state, item, loc) for item in arguments], site, loc)
        case "brickwork" if function == "require":
            text = arguments[1]
            message = text.text if isinstance(text, Opaque) else ""
            state.check(truth(scalar(state, arguments[0], loc), loc), FailureKind.VALUE, message, (), loc)
            return Opaque("None")
        case "brickwork" if function == "items_of":
            return state.tensor_of_items(state, arguments[0], loc)
        case "brickwork" if function == "row_of":
            return row_of_list(state, arguments[0], loc)
        case "brickwork" if function in MADE_ROWS:
            return made_row(state, function, arguments, loc)
        case "torch" if name in OF_TYPES:
            return limits_of(name, arguments[0] if len(arguments) == 1 else None, loc)
        case "torch" if name in FUNCTIONS:
            return _of_torch(name, [scalar(state, item, loc) for item in arguments], state, loc)
        case "brickwork":
            raise error(
                "BW008", f"`{function}` stands only in the head of a `for`", loc, f"write `for i in {function}(...)`"
            )
        case _:
            message = f"`{name}` cannot be called on elements"
            raise error("BW004", message, loc, f"write it with `math` or a loop; {SUPPORTED}")


def _arity(arguments: Sequence[object], low: int, high: int, name: str, loc: Location) -> None:
    if not low <= len(arguments) <= high:
        expected = str(low) if low == high else f"{low} to {high}"
        raise error("BW004", f"`{name}` takes {expected} arguments, not {len(arguments)}", loc, f"give it {expected}")


def _builtin(state: State, name: str, arguments: Sequence[Operand], loc: Location) -> Operand:
    if name == "len":
        _arity(arguments, 1, 1, name, loc)
        return _length(arguments[0], loc)
    if name in {"min", "max"} and len(arguments) == 1 and isinstance(arguments[0], Items):
        arguments = arguments[0].items
    if name in {"sum", "any", "all"}:
        _arity(arguments, 1, 2 if name == "sum" else 1, name, loc)
        return _folded(state, name, arguments, loc)
    if name in {"tuple", "list", "iter"} and len(arguments) == 1 and isinstance(arguments[0], Items):
        return arguments[0]
    if name == "range":
        advice = "for a list of numbers write `[i for i in range(n)]`; for a test, `low <= i < high`"
        raise error("BW004", "`range` stands only in the head of a `for`", loc, advice)
    if name not in {"min", "max", "abs", "int", "float", "bool", "round", "pow", "divmod", "ord"}:
        raise error("BW004", f"`{name}` cannot be compiled", loc, SUPPORTED)
    if name == "float" and len(arguments) == 1 and isinstance(arguments[0], Opaque) and arguments[0].text:
        return _read_float(arguments[0].text, loc)
    if name == "ord":
        text = arguments[0].text if len(arguments) == 1 and isinstance(arguments[0], Opaque) else ""
        if len(text) != 1:
            raise error("BW004", "`ord` takes a text of one character", loc, 'write `ord("a")`')
        return Value(integer(ord(text), loc), weak=True)
    values = [scalar(state, item, loc) for item in arguments]
    match name:
        case "min" | "max":
            return extremum(name, values, loc)
        case "pow":
            _arity(values, 2, 2, name, loc)
            return binary(state, "pow", values[0], values[1], loc)
        case "divmod":
            _arity(values, 2, 2, name, loc)
            left, right = (Value(state.pin(item.expression), item.weak) for item in values)
            return Items(tuple(binary(state, part, left, right, loc) for part in ("floordiv", "mod")))
        case "round":
            _arity(values, 1, 1, name, loc)
            return _rounded(values[0], "round", loc)
        case "abs":
            _arity(values, 1, 1, name, loc)
            kind = number(values[0].type)
            return Value(apply("abs", cast(values[0].expression, kind.dtype, loc), loc=loc), kind.weak)
        case _:
            _arity(values, 1, 1, name, loc)
            return _convert(name, values[0], loc)


def _folded(state: State, name: str, arguments: Sequence[Operand], loc: Location) -> Value:
    """Return `sum`, `prod`, `any` or `all` of a tuple."""
    if not isinstance(arguments[0], Items):
        advice = "write a generator: `sum(x[i] for i in range(n))`"
        raise error("BW101", f"`{name}` takes a tuple or a generator, not {describe(arguments[0])}", loc, advice)
    values = [scalar(state, item, loc) for item in arguments[0].items]
    if name in {"sum", "prod"}:
        first = scalar(state, arguments[1], loc) if len(arguments) > 1 else None
        result = first or Value(integer(int(name == "prod"), loc), weak=True)
        for value in values:
            result = binary(state, "add" if name == "sum" else "mul", result, value, loc)
        return result
    found: Expression = constant(name == "all", BOOL, loc)
    for value in values:
        test = cast(value.expression, BOOL, loc)
        found = apply("logical_and" if name == "all" else "logical_or", found, test, loc=loc)
    return Value(found)


def _convert(name: str, value: Value, loc: Location) -> Value:
    match name:
        case "bool":
            return Value(cast(value.expression, BOOL, loc))
        case "int":
            weak = value.weak or value.dtype is BOOL
            return Value(cast(value.expression, INT64, loc), weak)
        case _:
            kind = floating(value.type)
            return Value(cast(value.expression, kind.dtype, loc), kind.weak)


def _read_float(text: str, loc: Location) -> Value:
    """Return the number that a text such as "inf" says."""
    try:
        return _weak(float(text), loc)
    except ValueError:
        raise error("BW101", f"{text!r} is no number", loc, 'write a number, "inf" or "nan"') from None


def _rounded(value: Value, operator: str, loc: Location) -> Value:
    if not value.dtype.is_float:
        return Value(cast(value.expression, number(value.type).dtype, loc), value.weak)
    return Value(cast(apply(operator, value.expression, loc=loc), INT64, loc), value.weak)


def _length(operand: Operand, loc: Location) -> Value:
    match operand:
        case Items():
            return Value(integer(len(operand.items), loc), weak=True)
        case View() | Row() if operand.rank > 0:
            return size_of(operand, 0, loc)
        case _:
            raise error("BW101", f"`len` takes a tensor or a list, not {describe(operand)}", loc, "pass one of those")


def extremum(name: str, values: Sequence[Value], loc: Location) -> Value:
    """Return the least (`min`) or the greatest (`max`) of values, the first of equal ones."""
    if not values:
        raise error("BW004", f"`{name}` of nothing", loc, "give it values")
    operator = "minimum" if name == "min" else "maximum"
    result = values[0]
    for value in values[1:]:
        kind = meet(result, value, loc)
        if kind.dtype is BOOL:
            kind = number(kind)
        operands = [cast(item.expression, kind.dtype, loc) for item in (result, value)]
        result = Value(apply(operator, *operands, loc=loc), kind.weak)
    return result


def _math(state: State, name: str, values: list[Value], loc: Location) -> Operand:
    if name in {"floor", "ceil", "trunc"}:
        _arity(values, 1, 1, f"math.{name}", loc)
        return _rounded(values[0], name, loc)
    match name:
        case "log":
            _arity(values, 1, 2, "math.log", loc)
            logs = [_real("log", [value], loc) for value in values]
            return logs[0] if len(logs) == 1 else binary(state, "truediv", logs[0], logs[1], loc)
        case "radians" | "degrees":
            _arity(values, 1, 1, f"math.{name}", loc)
            factor = 0.017453292519943295 if name == "radians" else 57.29577951308232
            return binary(state, "mul", _real("abs", values, loc, keep=True), _weak(factor, loc), loc)
        case _:
            operator = OPERATORS[FUNCTIONS[f"math.{name}"]]
            _arity(values, operator.arity, operator.arity, f"math.{name}", loc)
            return _real(operator.name, values, loc)


def _of_torch(name: str, values: list[Value], state: State, loc: Location) -> Value:
    """Return one of torch's functions that is one operator; those that round leave integers alone."""
    operator = OPERATORS[FUNCTIONS[name]]
    _arity(values, operator.arity, operator.arity, name, loc)
    if operator.name == "pow":
        return binary(state, "pow", values[0], values[1], loc)
    if operator.name in {"floor", "ceil", "trunc", "round", "abs"}:
        kind = number(values[0].type)
        operand = cast(values[0].expression, kind.dtype, loc)
        kept = operator.name != "abs" and not kind.dtype.is_float
        return Value(operand if kept else apply(operator.name, operand, loc=loc), kind.weak)
    return _real(operator.name, values, loc)


def _weak(value: float, loc: Location) -> Value:
    return Value(constant(value, FLOAT64, loc), weak=True)


def _real(name: str, values: Sequence[Value], loc: Location, *, keep: bool = False) -> Value:
    kind = values[0].type
    for value in values[1:]:
        kind = meet(Value(constant(0, kind.dtype), kind.weak), value, loc)
    kind = floating(kind)
    operands = [cast(value.expression, kind.dtype, loc) for value in values]
    return Value(operands[0] if keep else apply(name, *operands, loc=loc), kind.weak)


def _draw(state: State, name: str, values: list[Value], site: Path, loc: Location) -> Value:
    _arity(values, 2 if name == "randint" else 0, 2 if name == "randint" else 0, f"bw.{name}", loc)
    bounds: tuple[Expression, ...] = ()
    if name == "randint":
        if any(not value.dtype.is_integer for value in values):
            raise error("BW101", "the bounds of `randint` are integers", loc, "write int(...) around them")
        low, high = (state.fix(cast(value.expression, INT64, loc), "bound") for value in values)
        message = "randint: low {0} is not below high {1}"
        state.check(apply("lt", low, high, loc=loc), FailureKind.VALUE, message, (low, high), loc)
        bounds = (low, high)
    draw = {"rand": Draw.UNIFORM, "randn": Draw.NORMAL, "randint": Draw.INTEGER}[name]
    random = Random(
        draw=draw,
        key=read(state.random_key, loc),
        counter=_counter(state, loc),
        extra=integer(0, loc) if state.while_counter is None else read(state.while_counter, loc),
        site=state.sites[site],
        bounds=bounds,
        dtype=INT64 if name == "randint" else FLOAT32,
        loc=loc,
    )
    return Value(state.pin(random, "draw"), weak=True)


def _counter(state: State, loc: Location) -> Expression:
    """Return the number of this iteration among those of the enclosing `for` loops."""
    levels = [level for level in state.loops if level.iteration is not None]
    result: Expression = integer(0, loc)
    irregular = False
    for position, level in enumerate(levels):
        trips, iteration = level.trips, level.iteration
        if trips is None or iteration is None:
            continue
        irregular = irregular or (position > 0 and not (level.regular and _is_host(state, trips)))
        if irregular:
            result = apply("bit_and", mul(result, integer(SPREAD, loc), loc), integer(SPREAD_BITS, loc), loc=loc)
        elif position:
            result = mul(result, trips, loc)
        result = add(result, iteration, loc) if position else iteration
    return result


def _is_host(state: State, expression: Expression) -> bool:
    """Return whether an expression is made of sizes and scalar arguments only."""
    return effects(expression).made_of(state.parameters)
