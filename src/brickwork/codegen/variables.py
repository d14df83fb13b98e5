"""Which variables need memory, and which differ between the lanes of a vector loop: facts that emission asks for.

Not in here: emission. Both facts err towards the general case.
"""

from __future__ import annotations

from collections.abc import Iterable

from brickwork.ir.nodes import Assign, Block, Break, Continue, Expression, For, If, Node, Read, Statement, Symbol, While
from brickwork.ir.walk import assigned_symbols, children, walk

_Place = tuple[int, ...]


def bound_symbols(block: Block) -> frozenset[Symbol]:
    """Return the variables with one assignment in `block` that is before all reads, in their block or around it."""
    assigned: dict[Symbol, list[_Place]] = {}
    read: dict[Symbol, list[_Place]] = {}
    _collect(block, (), assigned, read)
    return frozenset(
        symbol
        for symbol, places in assigned.items()
        if len(places) == 1 and all(place[: len(places[0])] == places[0] for place in read.get(symbol, ()))
    )


def _collect(
    block: Block, place: _Place, assigned: dict[Symbol, list[_Place]], read: dict[Symbol, list[_Place]]
) -> None:
    """Note where variables are assigned and read; a block's place extends that of the block around it."""

    def note(nodes: Iterable[Node], where: _Place) -> None:
        for node in walk(nodes):
            if isinstance(node, Read):
                read.setdefault(node.symbol, []).append(where)

    for number, statement in enumerate(block):
        match statement:
            case If():
                note((statement.condition,), place)
                _collect(statement.then, (*place, number, 0), assigned, read)
                _collect(statement.otherwise, (*place, number, 1), assigned, read)
            case For():
                note((statement.start, statement.stop), place)
                for reduction in statement.reductions:
                    assigned.setdefault(reduction.symbol, []).append((*place, number, 2))
                _collect(statement.body, (*place, number, 0), assigned, read)
            case While():
                _collect(statement.prelude, (*place, number), assigned, read)
                note((statement.condition,), (*place, number))
                _collect(statement.body, (*place, number, 0), assigned, read)
            case Assign():
                note((statement.value,), place)
                assigned.setdefault(statement.symbol, []).append(place)
            case _:
                note((statement,), place)


def may_vary(expression: Expression, varying: frozenset[Symbol]) -> bool:
    """Return whether lanes may disagree on an expression, given the variables that may differ."""
    return any(isinstance(node, Read) and node.symbol in varying for node in walk(expression))


def varying_symbols(loop: For) -> frozenset[Symbol]:
    """Return the variables that may differ between lanes, each of which runs an iteration of `loop`."""
    found = frozenset({loop.index, *(reduction.symbol for reduction in loop.reductions)})
    while (more := found | _assigned_varying(loop.body, found, divergent=False)) != found:
        found = more
    return found


def _assigned_varying(block: Block, varying: frozenset[Symbol], *, divergent: bool) -> frozenset[Symbol]:
    found: set[Symbol] = set()
    for statement in block:
        match statement:
            case Assign():
                if divergent or may_vary(statement.value, varying):
                    found.add(statement.symbol)
            case If():
                inner = divergent or may_vary(statement.condition, varying)
                found |= _assigned_varying(statement.then, varying, divergent=inner)
                found |= _assigned_varying(statement.otherwise, varying, divergent=inner)
            case For():
                inner = divergent or diverges(statement, varying)
                if may_vary(statement.start, varying):
                    found.add(statement.index)
                found |= _assigned_varying(statement.body, varying, divergent=inner)
            case While():
                inner = divergent or diverges(statement, varying)
                found |= _assigned_varying((*statement.prelude, *statement.body), varying, divergent=inner)
            case _:
                pass
    return frozenset(found)


def diverges(loop: For | While, varying: frozenset[Symbol]) -> bool:
    """Return whether lanes may leave `loop`, or skip the rest of an iteration, at different times."""
    bounds = (loop.start, loop.stop) if isinstance(loop, For) else (loop.condition,)
    body = loop.body if isinstance(loop, For) else (*loop.prelude, *loop.body)
    return any(may_vary(bound, varying) for bound in bounds) or leaves_divergently(body, varying)


def leaves_divergently(block: Block, varying: frozenset[Symbol], *, divergent: bool = False) -> bool:
    """Return whether `block` has a `break` or `continue` of the loop around it that only some lanes may take."""
    for statement in block:
        match statement:
            case Break() | Continue():
                if divergent:
                    return True
            case If():
                inner = divergent or may_vary(statement.condition, varying)
                if any(
                    leaves_divergently(arm, varying, divergent=inner) for arm in (statement.then, statement.otherwise)
                ):
                    return True
            case _:
                pass
    return False


def leaves(statement: Statement) -> bool:
    """Return whether `statement` may hold a `break` or `continue` of the loop around it."""
    if isinstance(statement, If):
        return any(leaves(inner) for inner in (*statement.then, *statement.otherwise))
    return isinstance(statement, Break | Continue)


def private_symbols(loop: For) -> frozenset[Symbol]:
    """Return the variables that each iteration of a parallel or vector loop has for itself."""
    return assigned_symbols(loop.body) - {reduction.symbol for reduction in loop.reductions}


def statement_count(block: Block) -> int:
    """Return the number of nodes in a block: a measure of its code."""
    return sum(1 + sum(1 for _ in children(node)) for node in walk(block))
