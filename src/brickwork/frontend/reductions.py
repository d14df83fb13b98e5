"""`sum`, `min`, `max`, `any`, `all` and `math.prod` over a generator expression: loops with an accumulator.

The sums go from left to right. `any` and `all` stop at the first item that decides. An empty `min` or `max` is a failed
check, unless it has a `default`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence

from brickwork.diagnostics.location import Location
from brickwork.frontend.calls import extremum
from brickwork.frontend.comparisons import link
from brickwork.frontend.complex_values import as_complex, is_complex
from brickwork.frontend.evaluation_order import settle
from brickwork.frontend.expressions import condition, operand, value
from brickwork.frontend.indexing import numeric, scalar
from brickwork.frontend.iterables import Iterable, item, trips
from brickwork.frontend.loops import AssignTarget, Head, Loop, bind_target, enter, head_of, leave, lower_loop, new_flag
from brickwork.frontend.lowering_state import Frame, Key, ListDemanded, LoopLevel, State
from brickwork.frontend.parts import binary_operand, implicit
from brickwork.frontend.random_sites import place
from brickwork.frontend.rules import error
from brickwork.frontend.typing import Items, Operand, Value, numbers_of, with_numbers
from brickwork.ir.build import apply, cast, constant, integer, logical_not, read, select
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Break, Expression, FailureKind, For, If, Statement, Symbol
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Reduction:
    """One reduction: its place, name, generator and how names are assigned."""

    call: ast.Call
    name: str
    generator: ast.GeneratorExp
    key: Key
    loc: Location
    assign: AssignTarget
    spreads: bool = False
    """Whether the extreme of items among which there is a NaN is NaN, as torch has it."""


def reduce(
    state: State, frame: Frame, call: ast.Call, name: str, assign: AssignTarget, *, spreads: bool = False
) -> Operand:
    """Return `name` (`sum`, `prod`, `min`, `max`, `any`, `all`) of a generator expression.

    `spreads`: the extreme of items among which there is a NaN is NaN, as torch has it.
    """
    generator = call.args[0]
    if not isinstance(generator, ast.GeneratorExp):
        raise TypeError("a reduction runs over a generator expression")
    key = (*frame.path, place(call)), name
    bindings, local = dict(frame.bindings), frame.local
    names = (item for clause in generator.generators for item in ast.walk(clause.target))
    frame.local |= {item.id for item in names if isinstance(item, ast.Name)}
    reduction = _Reduction(call, name, generator, key, frame.loc(call), assign, spreads)
    match name:
        case "sum" | "prod":
            found = _accumulated(state, frame, reduction)
        case "any" | "all":
            found = _decided(state, frame, reduction)
        case _ if isinstance(generator.elt, ast.Tuple) or key in state.tuples:
            found = _extreme_items(state, frame, reduction)
        case _:
            found = _extreme(state, frame, reduction)
    frame.bindings, frame.local = bindings, local
    return found


def _options(state: State, frame: Frame, reduction: _Reduction, names: Sequence[str], most: int) -> dict[str, Value]:
    """Return the arguments besides the generator, by name."""
    call = reduction.call
    given = dict(zip(names, call.args[1:], strict=False)) | {item.arg or "**": item.value for item in call.keywords}
    if len(call.args) > most or any(name not in names for name in given):
        message = f"`{reduction.name}` does not take these arguments with a generator"
        raise error("BW004", message, reduction.loc, "leave them out")
    found = {name: value(state, frame, node) for name, node in given.items()}
    return {name: Value(state.fix(item.expression), item.weak) for name, item in found.items()}


def _nest(
    state: State,
    frame: Frame,
    reduction: _Reduction,
    body: Callable[[], None],
    *,
    level: int = 0,
    flag: Symbol | None = None,
    head: Head | None = None,
) -> None:
    """Lower the `for`s and `if`s of the generator around `body`; `flag` says that an inner `break` leaves them all.

    `head` is what the outermost `for` runs over, where that has been evaluated.
    """
    if level == len(reduction.generator.generators):
        body()
        return
    clause = reduction.generator.generators[level]
    head = head or head_of(state, frame, clause.iter)
    loc, regular = reduction.loc, frame.is_regular(clause.iter)
    loop = Loop(clause.target, head.axes, loc, regular, head.claimed, head.tuples, flag is not None, flag)

    def inside() -> None:
        _filtered(
            state,
            frame,
            clause.ifs,
            lambda: _nest(state, frame, reduction, body, level=level + 1, flag=flag),
        )
        if flag is not None and level + 1 < len(reduction.generator.generators):
            stop = Break(loc=reduction.loc)
            state.emit(If(condition=read(flag, reduction.loc), then=(stop,), loc=reduction.loc))

    lower_loop(state, frame, loop, inside, reduction.assign)


def _filtered(state: State, frame: Frame, tests: Sequence[ast.expr], body: Callable[[], None]) -> None:
    """Lower `body` under the conditions, tested one after the other."""
    if not tests:
        body()
        return
    test = condition(state, frame, tests[0])
    block: list[Statement] = []
    assigned = set(state.assigned)
    with state.into(block):
        _filtered(state, frame, tests[1:], body)
    state.assigned = assigned
    state.emit(If(condition=test, then=tuple(block), loc=frame.loc(tests[0])))


def _now(state: State, key: Key, loc: Location) -> Value:
    return Value(read(state.variable(key), loc), state.types[key].weak)


def _result(state: State, key: Key, loc: Location) -> Value:
    """Return the accumulator's value; the next time round it is another."""
    found = _now(state, key, loc)
    return Value(state.pin(found.expression, key[1]), found.weak)


def _accumulated(state: State, frame: Frame, reduction: _Reduction) -> Operand:
    is_sum = reduction.name == "sum"
    options = _options(state, frame, reduction, ["start"], 2 if is_sum else 1)
    loc, key = reduction.loc, reduction.key
    first: Operand = options.get("start") or Value(integer(0 if is_sum else 1, loc), weak=True)
    if key in state.complex or is_complex(first):
        first = as_complex(first, loc)
    keys = [(key[0], f"{key[1]}[{place}]") for place in range(2)] if is_complex(first) else [key]

    def assign(found: Operand) -> None:
        for each, part in zip(keys, [*numbers_of(settle(state, found, loc))], strict=True):
            state.assign(each, part, loc)

    def now() -> Operand:
        return with_numbers(first, iter([_now(state, each, loc) for each in keys]))

    def body() -> None:
        one = numeric(state, operand(state, frame, reduction.generator.elt), loc)
        if is_complex(one) and not is_complex(first):
            state.complex.add(key)
            raise ListDemanded
        name = "add" if is_sum else "mul"
        assign(binary_operand(state, frame, name, (now(), one), implicit(reduction.call)))

    assign(first)
    _nest(state, frame, reduction, body)
    return with_numbers(first, iter([_result(state, each, loc) for each in keys]))


def _decided(state: State, frame: Frame, reduction: _Reduction) -> Value:
    _options(state, frame, reduction, [], 1)
    loc, is_any = reduction.loc, reduction.name == "any"
    flag = new_flag(state, loc)

    def body() -> None:
        test = condition(state, frame, reduction.generator.elt)
        stop = Assign(symbol=flag, value=constant(True, BOOL, loc), loc=loc), Break(loc=loc)
        state.emit(If(condition=test if is_any else logical_not(test, loc), then=stop, loc=loc))

    _nest(state, frame, reduction, body, flag=flag)
    found = state.pin(read(flag, loc), reduction.name)
    return Value(found if is_any else logical_not(found, loc))


# ---------------------------------------------------------------- min and max


def _extreme(state: State, frame: Frame, reduction: _Reduction) -> Value:
    options = _options(state, frame, reduction, ["default"], 1)
    generators, loc, key = reduction.generator.generators, reduction.loc, reduction.key
    default = options.get("default")
    head = head_of(state, frame, generators[0].iter)
    if len(generators) == 1 and not generators[0].ifs and len(head.axes) == 1 and not head.claimed:
        _from_the_first(state, frame, reduction, head.axes[0], default)
    else:
        _by_a_flag(state, frame, reduction, head, default)
    return _result(state, key, loc)


def _number(state: State, frame: Frame, reduction: _Reduction) -> Value:
    """Return what is compared; begin anew where that has turned out to be a tuple."""
    node = reduction.generator.elt
    found = operand(state, frame, node)
    if isinstance(found, Items):
        state.tuples.add(reduction.key)
        raise ListDemanded
    return scalar(state, found, frame.loc(node))


def _extreme_items(state: State, frame: Frame, reduction: _Reduction) -> Operand:
    """Return the first of the least, or greatest, tuples."""
    _options(state, frame, reduction, [], 1)
    loc, found = reduction.loc, new_flag(state, reduction.loc)
    operator = ast.Lt() if reduction.name == "min" else ast.Gt()
    position, forms, kept = len(state.block), list[Operand](), list[Value]()

    def key(number: int) -> Key:
        return reduction.key[0], f"{reduction.name}[{number}]"

    def body() -> None:
        one = settle(state, operand(state, frame, reduction.generator.elt), loc)
        forms.append(one)
        values = [*numbers_of(one)]
        for number, one_value in enumerate(values):
            state.widen(key(number), one_value.type, reduction.name, loc)
        before = with_numbers(one, iter([_now(state, key(number), loc) for number in range(len(values))]))
        better = link(state, frame, reduction.call, operator, (one, before)).expression
        test = apply("logical_or", logical_not(read(found, loc)), better, loc=loc)
        block: list[Statement] = []
        with state.into(block):
            for number, one_value in enumerate(values):
                state.assign(key(number), one_value, loc)
            state.emit(Assign(symbol=found, value=constant(True, BOOL, loc), loc=loc))
        state.emit(If(condition=test, then=tuple(block), loc=loc))

    _nest(state, frame, reduction, body)
    for number, _ in enumerate(numbers_of(forms[-1])):
        symbol = state.variable(key(number))
        zero = Assign(symbol=symbol, value=cast(integer(0, loc), symbol.dtype, loc), loc=loc)
        state.block.insert(position, zero)
        kept.append(_result(state, key(number), loc))
    _empty(state, read(found, loc), reduction.name, loc)
    return with_numbers(forms[-1], iter(kept), keep_sites=False)


def _empty(state: State, filled: Expression, name: str, loc: Location) -> None:
    state.check(filled, FailureKind.VALUE, f"{name}() iterable argument is empty", (), loc)


def _from_the_first(state: State, frame: Frame, reduction: _Reduction, axis: Iterable, default: Value | None) -> None:
    """Begin with the first item, and compare the rest with it: a reduction that may run in parallel."""
    loc, key = reduction.loc, reduction.key
    count = state.fix(trips(axis, loc), "turns")
    filled = apply("gt", count, integer(0, loc), loc=loc)
    block: list[Statement] = []
    if default is None:
        _empty(state, filled, reduction.name, loc)
        _compared(state, frame, reduction, axis, count)
        return
    state.assign(key, default, loc)
    with state.into(block):
        _compared(state, frame, reduction, axis, count)
    state.emit(If(condition=filled, then=tuple(block), loc=loc))


def _compared(state: State, frame: Frame, reduction: _Reduction, axis: Iterable, count: Expression) -> None:
    loc, key, clause = reduction.loc, reduction.key, reduction.generator.generators[0]
    target, regular = clause.target, frame.is_regular(clause.iter)

    def turn(position: Expression) -> Value:
        saved = enter(state, frame, LoopLevel(position, count, regular, dict(frame.bindings), frame.path))
        bind_target(state, frame, target, item(state, axis, position, loc), reduction.assign)
        found = _number(state, frame, reduction)
        leave(state, frame, saved)
        return found

    first = turn(integer(0, loc))
    odd = (key[0], f"{key[1]} is NaN") if reduction.spreads and first.dtype.is_float else None
    if odd is not None:
        first = Value(state.fix(first.expression), first.weak)
        state.assign(odd, _is_odd(first, loc), loc)
    state.assign(key, first, loc)
    index = state.symbol(target.id if isinstance(target, ast.Name) else "index", INT64)
    state.invariant.add(index)
    state.nonnegative.add(read(index, loc))
    block: list[Statement] = []
    with state.into(block):
        found = turn(read(index, loc))
        if odd is not None:
            found = Value(state.fix(found.expression), found.weak)
            state.assign(odd, extremum("max", [_now(state, odd, loc), _is_odd(found, loc)], loc), loc)
        state.assign(key, extremum(reduction.name, [_now(state, key, loc), found], loc), loc)
    state.emit(For(index=index, start=integer(1, loc), stop=count, body=tuple(block), loc=loc))
    if odd is not None:
        met, best = _now(state, odd, loc).expression, _now(state, key, loc)
        none = apply("eq", met, constant(0.0, met.dtype, loc), loc=loc)
        nan = constant(math.nan, best.dtype, loc)
        state.assign(key, Value(select(none, best.expression, nan, loc), best.weak), loc)


def _is_odd(found: Value, loc: Location) -> Value:
    """Return 1 for a NaN and 0 for a number, as a float."""
    return Value(cast(apply("ne", found.expression, found.expression, loc=loc), found.dtype, loc))


def _by_a_flag(state: State, frame: Frame, reduction: _Reduction, head: Head, default: Value | None) -> None:
    """Take the first item that comes, and compare later ones with it; a flag tells which is which."""
    loc, key = reduction.loc, reduction.key
    found = new_flag(state, loc)
    position = len(state.block)

    def body() -> None:
        one = _number(state, frame, reduction)
        one = Value(state.fix(one.expression), one.weak)
        first: list[Statement] = []
        with state.into(first):
            state.assign(key, one, loc)
            state.emit(Assign(symbol=found, value=constant(True, BOOL, loc), loc=loc))
        later: list[Statement] = []
        with state.into(later):
            state.assign(key, extremum(reduction.name, [_now(state, key, loc), one], loc), loc)
        state.emit(If(condition=read(found, loc), then=tuple(later), otherwise=tuple(first), loc=loc))

    _nest(state, frame, reduction, body, head=head)
    if key not in state.types:
        state.assign(key, Value(integer(0, loc), weak=True), loc)
    symbol = state.variable(key)
    before = Assign(symbol=symbol, value=cast(integer(0, loc), symbol.dtype, loc), loc=loc)
    if not state.ended:
        state.block.insert(position, before)
    if default is None:
        _empty(state, read(found, loc), reduction.name, loc)
        return
    block: list[Statement] = []
    with state.into(block):
        state.assign(key, default, loc)
    state.emit(If(condition=logical_not(read(found, loc), loc), then=tuple(block), loc=loc))
