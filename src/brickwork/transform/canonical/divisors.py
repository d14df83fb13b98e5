"""Takes out checks that cannot fail: of divisors that are literals or lengths of loops, and of shifts by small numbers.

for i in range(n): check(n != 0); y[i] = x[(i + s) % n]      ->      for i in range(n): y[i] = x[(i + s) % n]

An iteration runs, so the length is not 0; a remainder by a positive literal is between 0 and the literal, and so is the
index of a loop from 0 to there, and what is computed of such numbers, also by way of variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    For,
    Read,
    Statement,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass

LARGE_BITS = 62
"""Integers of fewer bits do not wrap."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Lengths of loops around, which are not 0, and the most that variables which are not negative can be."""

    lengths: frozenset[Expression]
    most: Mapping[Symbol, int]


def without_sure_checks(block: Block) -> Block:
    """Return the block without the checks that cannot fail where they stand."""
    changing = assigned_symbols(block)
    often = Counter(node.symbol for node in statements(block) if isinstance(node, Assign))

    @legality
    def is_length(loop: For) -> bool:
        """Whether a loop that runs at all shows that its end is greater than 0, and stays so."""
        start = loop.start
        return isinstance(start, Constant) and start.value >= 0 and not read_symbols(loop.stop) & changing

    @legality
    def after(statement: Statement, known: _Known) -> _Known:
        """Return what is known after a statement: a variable that is assigned nowhere else has that value."""
        match statement:
            case Assign(symbol=symbol, value=value) if often[symbol] == 1 and (most := _most(value, known)) is not None:
                return replace(known, most={**known.most, symbol: most})
            case _:
                return known

    def visit(block: Block, known: _Known) -> Block:
        kept: list[Statement] = []
        for statement in block:
            if not _is_sure(statement, known):
                kept.append(inside(statement, known))
            known = after(statement, known)
        return block if len(kept) == len(block) and all(map(_is, kept, block)) else tuple(kept)

    def inside(statement: Statement, known: _Known) -> Statement:
        if isinstance(statement, For):
            known = _in_loop(statement, known)
            known = replace(known, lengths=known.lengths | {statement.stop}) if is_length(statement) else known
        return with_blocks(statement, lambda block: visit(block, known))

    return visit(block, _Known(frozenset(), {}))


@legality
def _in_loop(loop: For, known: _Known) -> _Known:
    """Return what is known in a loop: of its index, too, if that is not negative, and ends at a literal."""
    match loop:
        case For(index=index, start=Constant(value=int(start)), stop=Constant(value=int(stop))) if start >= 0:
            return replace(known, most={**known.most, index: max(stop - 1, 0)})
        case _:
            return known


def _is(one: Statement, other: Statement) -> bool:
    return one is other


@legality
def _is_sure(statement: Statement, known: _Known) -> bool:
    if not isinstance(statement, Check):
        return False
    if build.is_constant(statement.condition, 1):
        return True
    if any(statement.condition == build.apply("ne", length, build.integer(0)) for length in known.lengths):
        return True
    match statement.condition:
        case Apply(operator=operator, operands=(number, zero)) if operator.name == "ge" and build.is_constant(zero, 0):
            most = _most(number, known)
            return most is not None and most.bit_length() < LARGE_BITS
        case _:
            return False


@legality
def _most(number: Expression, known: _Known) -> int | None:
    """Return a limit of an integer that is not negative, or None where one of them is not known."""
    match number:
        case Constant(value=int(value)) if value >= 0:
            return value
        case Read(symbol=symbol):
            return known.most.get(symbol)
        case Apply(operator=operator, operands=(_, Constant(value=int(value)))) if operator.name == "mod" and value > 0:
            return value - 1
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "mul"}:
            one, other = _most(left, known), _most(right, known)
            if one is None or other is None:
                return None
            return one + other if operator.name == "add" else one * other
        case _:
            return None
