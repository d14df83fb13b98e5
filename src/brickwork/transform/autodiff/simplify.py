"""Puts the variables of reverse mode that are read once where they are read, and takes out copies and sums with 0.

    v = x[i]
    a = g[i]                        y[i] = y[i] + g[i] * x[i]
    s = 0.0                 ->
    s = s + a
    y[i] = y[i] + s * v

Invariant: no expression passes a store into what it loads, or an assignment of what it reads, and none is moved into a
loop or a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace

from brickwork.ir.build import is_constant
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Random,
    Read,
    Rebind,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, assigned_symbols, read_symbols, rebuild, statements, substitute_block, walk
from brickwork.records import dataclass
from brickwork.transform.autodiff.dead_code import without_dead
from brickwork.transform.preconditions import Preconditions


def simplified(block: Block, results: Collection[Tensor], before: Preconditions) -> Block:
    """Return a block that leaves the same in `results`, with fewer variables; `before` was checked before it."""
    while True:
        bound = assigned_symbols(block)
        changed = without_dead(_without_checks(_without_copies(block), bound, before.conditions), results, before)
        changed = _with_values(changed, _counts(changed))
        if changed == block:
            return block
        block = changed


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often each variable is assigned and read in a kernel."""

    assigned: Counter[Symbol]
    read: Counter[Symbol]


def _counts(block: Block) -> _Counts:
    assigned, read = Counter[Symbol](), Counter[Symbol]()
    for node in walk(block):
        match node:
            case Assign(symbol=symbol):
                assigned[symbol] += 1
            case For(index=index):
                assigned[index] += 1
            case Read(symbol=symbol):
                read[symbol] += 1
            case _:
                pass
    return _Counts(assigned, read)


def _without_copies(block: Block) -> Block:
    """Return the block without variables that are, all the time, a literal or another variable."""
    counts = _counts(block)
    copies: dict[Symbol, Expression] = {}
    for node in statements(block):
        match node:
            case Assign(symbol=symbol, value=Constant() as value) if counts.assigned[symbol] == 1:
                copies[symbol] = value
            case Assign(symbol=symbol, value=Read(symbol=source) as value):
                if counts.assigned[symbol] == 1 and counts.assigned[source] <= 1:
                    copies[symbol] = value
            case _:
                pass
    return substitute_block(block, {symbol: _end(value, copies) for symbol, value in copies.items()})


def _end(value: Expression, copies: Mapping[Symbol, Expression]) -> Expression:
    """Return what a variable is a copy of."""
    while isinstance(value, Read) and value.symbol in copies:
        value = copies[value.symbol]
    return value


def _without_checks(block: Block, bound: AbstractSet[Symbol], passed: frozenset[Expression]) -> Block:
    """Return the block without checks that have been `passed` before; `bound` are the variables that change."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case Check(condition=condition):
                if condition in passed:
                    continue
                if not read_symbols(condition) & bound and not any(isinstance(node, Load) for node in walk(condition)):
                    passed |= {condition}
                result.append(statement)
            case If(then=then, otherwise=otherwise):
                first, second = (_without_checks(part, bound, passed) for part in (then, otherwise))
                result.append(replace(statement, then=first, otherwise=second))
            case For(body=body) | While(body=body):
                result.append(replace(statement, body=_without_checks(body, bound, passed)))
            case _:
                result.append(statement)
    return tuple(result)


# ---------------------------------------------------------------- one block after the other


@dataclass(frozen=True, slots=True)
class _Value:
    """An assignment that waits, the variables that its value reads, and the tensors that it loads from."""

    node: Assign
    read: AbstractSet[Symbol]
    loaded: AbstractSet[Tensor]


@dataclass(slots=True)
class _Waiting:
    """What is written of a block so far, and assignments of variables that are read once, still to be written."""

    values: dict[Symbol, _Value] = field(default_factory=dict[Symbol, _Value])
    out: list[Statement] = field(default_factory=list[Statement])

    def wait(self, node: Assign) -> None:
        """Let an assignment wait."""
        nodes = [*walk(node.value)]
        read = {each.symbol for each in nodes if isinstance(each, Read)}
        self.values[node.symbol] = _Value(node, read, {each.tensor for each in nodes if isinstance(each, Load)})

    def write(self, symbols: Iterable[Symbol]) -> None:
        """Write the assignments of these variables after all."""
        self.out.extend([self.values.pop(symbol).node for symbol in symbols])

    def taken(self, statement: Statement) -> Statement:
        """Return a statement with values in place of what it reads itself.

        A `while` reads again in each iteration; bounds of a loop read no elements, and nothing that the loop assigns.
        """
        changing = assigned_symbols(statement) if isinstance(statement, For) else None

        def may_move(value: _Value) -> bool:
            fixed = not any(isinstance(node, Load | Random) for node in walk(value.node.value))
            return changing is None or (fixed and changing.isdisjoint(value.read))

        def visit(node: Node) -> Node:
            if isinstance(node, Read) and node.symbol in self.values and may_move(self.values[node.symbol]):
                return self.values.pop(node.symbol).node.value
            return rebuild(node, visit) if isinstance(node, EXPRESSIONS) else node

        return rebuild(statement, visit) if self.values and not isinstance(statement, While) else statement

    def disturbed(self, statement: Statement) -> list[Symbol]:
        """Return the variables that have to be written before a statement."""
        if not self.values:
            return []
        changed, read, stored = set[Symbol](), set[Symbol](), set[Tensor]()
        exchanges = False
        for node in walk(statement):
            match node:
                case Read(symbol=symbol):
                    read.add(symbol)
                case Assign(symbol=symbol) | For(index=symbol):
                    changed.add(symbol)
                case Store(tensor=tensor):
                    stored.add(tensor)
                case Rebind():
                    exchanges = True
                case _:
                    pass

        def is_disturbed(symbol: Symbol, value: _Value) -> bool:
            moved = not stored.isdisjoint(value.loaded) or (exchanges and bool(value.loaded))
            return symbol in read or moved or not changed.isdisjoint(value.read)

        return [symbol for symbol, value in self.values.items() if is_disturbed(symbol, value)]

    def begun(self, symbol: Symbol) -> int | None:
        """Return where a variable was set to 0, if nothing has used it since."""
        if any(symbol in value.read for value in self.values.values()):
            return None
        for place in range(len(self.out) - 1, -1, -1):
            match self.out[place]:
                case Assign(symbol=target, value=value) if target == symbol:
                    return place if is_constant(value, 0.0) else None
                case other if symbol in assigned_symbols(other) | read_symbols(other):
                    return None
                case _:
                    pass
        return None


def _with_values(block: Block, counts: _Counts) -> Block:
    waiting = _Waiting()
    for statement in block:
        changed = _inner(waiting.taken(statement), counts)
        if isinstance(changed, Assign):
            symbol = changed.symbol
            if counts.assigned[symbol] == 1 and counts.read[symbol] == 1:
                waiting.wait(changed)
                continue
            changed = _first_term(changed, waiting)
        waiting.write(waiting.disturbed(changed))
        waiting.out.append(changed)
    waiting.write([*waiting.values])
    return tuple(waiting.out)


def _first_term(node: Assign, waiting: _Waiting) -> Assign:
    """Return a variable's assignment without the 0 that a sum begins with."""
    match node.value:
        case Apply(operator=operator, operands=(Read(symbol=symbol), added)) if operator.name == "add":
            if symbol == node.symbol and symbol.dtype.is_float and symbol not in read_symbols(added):
                place = waiting.begun(symbol)
                if place is not None:
                    del waiting.out[place]
                    return replace(node, value=added)
        case _:
            pass
    return node


def _inner(statement: Statement, counts: _Counts) -> Statement:
    match statement:
        case If(then=then, otherwise=otherwise):
            return replace(statement, then=_with_values(then, counts), otherwise=_with_values(otherwise, counts))
        case For(body=body) | While(body=body):
            return replace(statement, body=_with_values(body, counts))
        case _:
            return statement
