"""Loops that are left first thing once their index has come far enough end there, so that nothing leaves them.

    for k in range(n):                     for k in range(min(n, m - i - 1)):
        j = i + k + 1                          j = i + k + 1
        if j >= m: break          ->           y[i, k] = x[j]
        y[i, k] = x[j]

Invariant: a condition that has come true stays true, as it grows with the index and nothing else in it changes; what
an iteration does before it is left is of no use after the loop, and cannot fail. Integers that a program names are
not beyond those that `counting.py` takes, so that no difference wraps.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.analysis.scalars import Symbols, live_after_loops
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Break, Constant, Expression, For, If, Statement, Symbol
from brickwork.ir.walk import operands_of, rewrite_statements, statements, substitute, walk
from brickwork.legality import legality
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.canonical.steps import is_fixed
from brickwork.transform.sums import Sum, linear


def with_ends(block: Block) -> Block:
    """Return the block with ends of loops in place of what leaves them first thing at such an end."""
    if not any(isinstance(node, Break) for node in statements(block)):
        return block
    live = live_after_loops(block)

    def visit(statement: Statement) -> Block:
        return (_ended(statement, live[statement.index]) if isinstance(statement, For) else statement,)

    return rewrite_statements(block, visit)


@legality
def _ended(loop: For, live: Symbols) -> For:
    """Return a loop that ends where the statements which it begins with leave it."""
    known: dict[Symbol, Expression] = {}
    body, stop = [*loop.body], loop.stop
    for item in loop.body:
        match item:
            case Assign(symbol=symbol, value=value) if symbol not in live and effects(value).plain:
                known[symbol] = substitute(value, known)
            case If(condition=condition, then=(Break(),), otherwise=()):
                parts = [*operands_of(condition, "logical_or")]
                ends = [end for part in parts if (end := _end(substitute(part, known), loop)) is not None]
                if len(ends) < len(parts):
                    break
                for end in ends:
                    stop = build.apply("minimum", stop, end)
                body.remove(item)
            case _:
                break
    return replace(loop, stop=stop, body=tuple(body))


@legality
def _end(condition: Expression, loop: For) -> Expression | None:
    """Return from which index on a condition holds, and not before; None where that is not known."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if is_simple(condition):
            name = operator.name
        case _:
            return None
    if any(isinstance(node, Constant) and abs(node.value) > SCALAR_LIMIT for node in walk(condition)):
        return None
    if name in {"lt", "le"}:
        left, right = right, left
    elif name not in {"gt", "ge"}:
        return None
    # It holds where `factor` times the index and the rest is at least 0.
    along = linear(build.sub(left, right)).along(loop.index)
    if along is None or along[0] <= 0:
        return None
    factor, rest = along
    needed = Sum((), factor - (name in {"ge", "le"})).plus(rest, -1).expression()
    return build.apply("floordiv", needed, build.integer(factor)) if is_fixed(needed, loop) else None
