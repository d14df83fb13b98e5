"""Scalar dependences of loops: variables private to an iteration, accumulated by a reduction, or carried on.

Liveness is computed backwards over the statements. Nothing in here asks about tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from brickwork.analysis.searches import EXTREMES, MIRRORED, same, search_of
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Continue,
    Expression,
    For,
    If,
    Node,
    Read,
    Reduction,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import assigned_symbols, children, read_symbols, statements
from brickwork.legality import legality
from brickwork.records import dataclass

Symbols = frozenset[Symbol]
NONE: Symbols = frozenset()

_REDUCING = {"add": "add", "sub": "add", "mul": "mul", "minimum": "minimum", "maximum": "maximum"}


@dataclass(frozen=True, slots=True)
class Carried:
    """A variable whose value passes from one iteration to the next, or out of the loop."""

    symbol: Symbol
    loc: Location
    after: bool


@legality
def scalar_verdict(loop: For, live_after: Symbols) -> tuple[tuple[Reduction, ...], Carried | None]:
    """Return a loop's reductions, and a variable in the way of independence if there is one."""
    assigned = assigned_symbols(loop.body) - {loop.index}
    exposed = live_before(loop.body, NONE) & assigned
    outlives = live_after & assigned
    needed = sorted(exposed | outlives, key=lambda item: item.number)
    operators = {symbol: reduction_of(loop.body, symbol) for symbol in needed}
    reductions = [Reduction(symbol, OPERATORS[name]) for symbol, name in operators.items() if name is not None]
    for symbol in needed:
        if (found := search_of(loop, symbol, outlives)) is not None:
            place = found.place(loop)
            reductions += () if place is None else found.reductions(place)
    made = {item.symbol for item in reductions}
    for symbol in needed:
        if symbol not in made:
            loc = next(node.loc for node in statements(loop.body) if isinstance(node, Assign) and node.symbol == symbol)
            return (), Carried(symbol, loc, symbol not in exposed)
    return tuple(reductions), None


# ---------------------------------------------------------------- liveness


def live_before(
    block: Block,
    after: Symbols,
    breaks: Symbols = NONE,
    continues: Symbols = NONE,
    note: _Note | None = None,
) -> Symbols:
    """Return the variables whose values at the start of a block may be read later.

    `breaks` and `continues` are those that are live where such a statement jumps to. `note` is told of each For what
    is live after it.
    """
    return Liveness({}).block(block, after, Ends(breaks, continues), note)


@dataclass(frozen=True, slots=True)
class Ends:
    """What is live where a `break` and a `continue` jump to."""

    breaks: Symbols = NONE
    continues: Symbols = NONE


_Note: TypeAlias = Callable[[For, Symbols], None]


@dataclass(frozen=True, slots=True)
class Liveness:
    """Liveness of one tree. What is live before a block is what it reads first, and some of what is live after it.

    So what an iteration reads before it assigns is asked once for each loop, however deep it stands; `exposed` has it.
    """

    exposed: dict[int, Symbols]

    def block(self, block: Block, after: Symbols, ends: Ends, note: _Note | None) -> Symbols:
        """Return what is live before a block."""
        live = after
        for statement in reversed(block):
            live = self.statement(statement, live, ends, note)
        return live

    @legality
    def statement(self, statement: Statement, after: Symbols, ends: Ends, note: _Note | None) -> Symbols:
        """Return what is live before a statement."""
        match statement:
            case Assign(symbol=symbol, value=value):
                return (after - {symbol}) | read_symbols(value)
            case If(condition=condition, then=then, otherwise=otherwise):
                first = self.block(then, after, ends, note)
                return read_symbols(condition) | first | self.block(otherwise, after, ends, note)
            case For(index=index, body=body):
                around = after | (self.read_first(statement, body) - {index})
                if note is not None:
                    self.block(body, around, Ends(after, around), note)
                    note(statement, after)
                joined = {item.symbol for item in statement.reductions}  # with the values from before
                return around | joined | read_symbols((statement.start, statement.stop))
            case While(prelude=prelude, condition=condition, body=body):
                whole = (*prelude, If(condition=condition, then=body, otherwise=(Break(),)))
                around = after | self.read_first(statement, whole)
                return self.block(whole, around, Ends(after, around), note)
            case Break():
                return ends.breaks
            case Continue():
                return ends.continues
            case _:
                return after | read_symbols(statement)

    def read_first(self, loop: For | While, turn: Block) -> Symbols:
        """Return the variables that an iteration of a loop may read before it sets them."""
        if id(loop) not in self.exposed:
            self.exposed[id(loop)] = self.block(turn, NONE, Ends(), None)
        return self.exposed[id(loop)]


def live_after_loops(block: Block) -> dict[Symbol, Symbols]:
    """Return for each For, by its index, the variables that are live after it."""
    result: dict[Symbol, Symbols] = {}

    def note(loop: For, live: Symbols) -> None:
        result[loop.index] = result.get(loop.index, NONE) | live

    live_before(block, NONE, note=note)
    return result


# ---------------------------------------------------------------- reductions


def reduction_of(block: Block, symbol: Symbol) -> str | None:
    """Return the operator with which a block accumulates into a variable, if it does nothing else with it."""
    operators: set[str | None] = set()
    _collect(block, symbol, operators)
    return operators.pop() if len(operators) == 1 else None


@legality
def _collect(block: Block, symbol: Symbol, operators: set[str | None]) -> None:
    for statement in block:
        if isinstance(statement, Assign) and statement.symbol == symbol:
            operators.add(_accumulated(statement.value, symbol))
        elif (operator := _selected(statement, symbol)) is not None:
            operators.add(operator)
        else:
            _collect_inside(statement, symbol, operators)


@legality
def _collect_inside(statement: Node, symbol: Symbol, operators: set[str | None]) -> None:
    blocks: list[Block] = []
    match statement:
        case If(then=then, otherwise=otherwise):
            blocks = [then, otherwise]
        case For(body=body):
            blocks = [body]
        case While(prelude=prelude, body=body):
            blocks = [prelude, body]
        case _:
            pass
    inner = {id(child) for block in blocks for child in block}
    for child in children(statement):
        if id(child) not in inner and symbol in read_symbols(child):
            operators.add(None)
    for block in blocks:
        _collect(block, symbol, operators)


@legality
def _accumulated(value: Expression, symbol: Symbol) -> str | None:
    """Return the operator of `s op e`, where e does not read s."""
    if not isinstance(value, Apply) or len(value.operands) != 2:
        return None
    operator = _REDUCING.get(value.operator.name)
    left, right = value.operands
    inside, other = (left, right) if symbol in read_symbols(left) else (right, left)
    # The minimum of NaN and a number is the first of the two: then it is only associative with the variable first.
    ordered = value.operator.name == "sub" or (operator in {"minimum", "maximum"} and value.dtype.is_float)
    if symbol in read_symbols(other) or (ordered and inside is right):
        return None
    if isinstance(inside, Read):
        return operator if inside.symbol == symbol else None
    return operator if _accumulated(inside, symbol) == operator else None


@legality
def _selected(statement: Statement, symbol: Symbol) -> str | None:
    """Return the operator of `if e < s: s = e` and its kin."""
    match statement:
        case If(
            condition=Apply(operator=compare, operands=(left, right)),
            then=(Assign(symbol=target, value=value),),
            otherwise=(),
        ) if target == symbol and compare.name in EXTREMES and symbol not in read_symbols(value):
            if same(left, value) and right == Read(symbol=symbol):
                return EXTREMES[compare.name]
            if same(right, value) and left == Read(symbol=symbol):
                return EXTREMES[MIRRORED[compare.name]]
            return None
        case _:
            return None
