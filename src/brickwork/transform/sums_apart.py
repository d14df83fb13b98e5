"""Loops that add up several sums of products, as a loop for each of them.

    for k in range(p):                           for k in range(p): s += a[i, k] * g[k, j]
        s += a[i, k] * g[k, j]           ->      for k in range(p): t += a[i, k] * u[k, j]
        t += a[i, k] * u[k, j]

What adds several products to one variable (`s += a * b + c * d`) is a loop for each product, too: sums of contractions
are taken in an order of their own. Invariant: variables and elements are in the end what they were, but for the order
in which a sum takes its terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import computed_from
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.nodes import Apply, Assign, Block, Expression, For, If, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.legality import legality


@legality
def sums_of(statement: Statement, live: frozenset[Symbol] = NONE) -> tuple[Statement, ...]:
    """Return a loop, or a condition, in which variables are added up and nothing else, once for each product.

    Each assigns what its product is computed from, or all that the others assign, too, if that is `live` after them.
    """
    parts = tuple(_each(statement))
    totals = assigned_symbols(map(_total, parts))
    assigns = [node for node in statements(statement) if isinstance(node, Assign)]
    others = [node.symbol for node in assigns if _added(node) is None]
    apart = len({*others}) == len(others) and totals.isdisjoint(others)
    carried = live_before((statement,), NONE) & assigned_symbols(statement)
    reads = any(read_symbols(_terms(part)) & totals for part in parts)
    parts = parts if live & {*others} else tuple(map(_alone, parts))
    return parts if apart and carried <= totals and not reads else ()


def _each(statement: Statement) -> Iterator[Statement]:
    match statement:
        case For(body=body):
            yield from (replace(statement, body=block) for block in _blocks(body))
        case If(then=then, otherwise=()):
            yield from (replace(statement, then=block) for block in _blocks(then))
        case _:
            pass


def _blocks(block: Block) -> Iterator[Block]:
    """Yield a block once for each product that it adds up, with what that is computed from; nothing if it does more."""
    ahead: list[Statement] = []
    sums: list[Statement] = []
    for statement in block:
        added = _added(statement)
        if added is not None:
            sums += added
        elif isinstance(statement, Assign):
            ahead.append(statement)
        elif parts := tuple(_each(statement)):
            sums += parts
        else:
            return
    yield from ((*ahead, item) for item in sums)


def assigned_for(statement: Statement, block: Sequence[Statement]) -> tuple[Assign, ...]:
    """Return the assignments of a block that a statement of it, and these, are computed from."""
    return computed_from(block, live_before((statement,), NONE))


def total_of(statement: Statement) -> Symbol:
    """Return the variable that a sum is added to."""
    (symbol,) = assigned_symbols([_total(statement)])
    return symbol


def _alone(statement: Statement) -> Statement:
    """Return a sum without what it does not read."""
    match statement:
        case For(body=(*ahead, last)):
            last = _alone(last)
            return replace(statement, body=(*assigned_for(last, ahead), last))
        case If(then=(*ahead, last)):
            last = _alone(last)
            return replace(statement, then=(*assigned_for(last, ahead), last))
        case _:
            return statement


def _total(statement: Statement) -> Statement:
    """Return the innermost statement of a sum: what adds to the variable."""
    match statement:
        case For(body=body):
            return _total(body[-1])
        case If(then=then):
            return _total(then[-1])
        case _:
            return statement


def _terms(statement: Statement) -> list[Expression]:
    """Return what a sum is computed from, but for what it was before."""
    match statement:
        case For(start=start, stop=stop, body=body):
            return [start, stop, *(term for item in body for term in _terms(item))]
        case If(condition=condition, then=then):
            return [condition, *(term for item in then for term in _terms(item))]
        case Assign(symbol=symbol, value=Apply(operands=(Read(symbol=before), term))) if before == symbol:
            return [term]
        case Assign(value=value):
            return [value]
        case _:
            return []


@legality
def _added(statement: Statement) -> list[Statement] | None:
    """Return what adds to a variable as one statement for each product; None if a statement does not add to one."""
    match statement:
        case Assign(symbol=symbol, value=Apply(operator=operator, operands=(left, right))):
            own = Read(symbol=symbol)
            if operator.name in {"add", "sub"} and left == own:
                term = right if operator.name == "add" else _negated(right)
            elif operator.name == "add" and right == own:
                term = left
            else:
                return None
            return [_plus(statement, symbol, each) for each in _products(term)]
        case _:
            return None


def _plus(statement: Assign, symbol: Symbol, term: Expression) -> Assign:
    return replace(statement, value=build.add(build.read(symbol), term))


def _products(term: Expression) -> Iterator[Expression]:
    """Yield the terms of a sum, with their signs."""
    match term:
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            yield from _products(left)
            yield from (_negated(each) if operator.name == "sub" else each for each in _products(right))
        case _:
            yield term


def _negated(term: Expression) -> Expression:
    match term:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "mul":
            return build.apply("mul", build.apply("neg", left), right)
        case _:
            return build.apply("neg", term)
