"""Unroll and jam: several iterations of an outer loop run together, so that they share what they read.

    for i in range(n):                       for block in range(n // 2):
        s = 0                                    i = 2 * block
        for u in range(m):          ->           s, t = 0, 0
            s += a[i, u] * b[u]                  for u in range(m):
        out[i] = s                                   s += a[i, u] * b[u]
                                                     t += a[i + 1, u] * b[u]
                                                 out[i], out[i + 1] = s, t
                                             for i in range(n // 2 * 2, n): the loop as it was

Legal for a loop whose iterations are independent: every order of their statements is right then. Inner loops with the
same bounds in all copies become one loop, branches on the same condition one branch; the rest is copied one by one.
What each iteration computes, and in which order, stays as it was. The caller (`defaults.py`) decides whether the loop
is independent and worth it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
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
)
from brickwork.ir.walk import assigned_symbols, rewrite, substitute, walk


def unroll_jam(loop: For, factor: int, numbers: Iterator[int]) -> Block:
    """Return the loop over blocks of `factor` iterations and the loop over the rest.

    `numbers` yields symbol numbers that are not in use. The loop's body must not leave or continue the loop itself.
    """
    trips = build.apply("maximum", build.sub(loop.stop, loop.start), build.integer(0))
    blocks = build.apply("floordiv", trips, build.integer(factor))
    block_index = Symbol(f"{loop.index.name}_block", next(numbers), INT64)
    first = build.add(loop.start, build.mul(build.read(block_index), build.integer(factor)))
    copies = [_renamed(loop, build.add(first, build.integer(offset)), numbers) for offset in range(factor)]
    jammed = replace(loop, index=block_index, start=build.integer(0), stop=blocks, body=_jam(copies))
    rest_index = Symbol(loop.index.name, next(numbers), INT64)
    done = build.mul(blocks, build.integer(factor))
    rest_body = _renamed(loop, build.read(rest_index), numbers)
    rest = replace(loop, index=rest_index, start=build.add(loop.start, done), body=rest_body)
    return (jammed, rest)


def _renamed(loop: For, index: Expression, numbers: Iterator[int]) -> Block:
    """Return the loop's body for the iteration `index`, with variables of its own."""
    private = {
        symbol: Symbol(symbol.name, next(numbers), symbol.dtype)
        for symbol in sorted(assigned_symbols(loop.body), key=lambda symbol: symbol.number)
    }
    values: dict[Symbol, Expression] = {old: Read(symbol=new) for old, new in private.items()}
    values[loop.index] = index
    return tuple(_rename_targets(substitute(statement, values), private) for statement in loop.body)


def _rename_targets(statement: Statement, private: Mapping[Symbol, Symbol]) -> Statement:
    """Return the statement with the targets of its assignments, its loop indices and its reductions renamed."""

    def visit(node: Node) -> Node:
        match node:
            case Assign():
                return replace(node, symbol=private[node.symbol])
            case For():
                reductions = tuple(
                    Reduction(private.get(item.symbol, item.symbol), item.operator) for item in node.reductions
                )
                return replace(node, index=private[node.index], reductions=reductions)
            case _:
                return node

    return rewrite(statement, visit)


def _jam(copies: Sequence[Block]) -> Block:
    """Return one block that does what the copies do; they are alike but for names."""
    result: list[Statement] = []
    for statements in zip(*copies, strict=True):
        loops = [statement for statement in statements if isinstance(statement, For)]
        choices = [statement for statement in statements if isinstance(statement, If)]
        if len(choices) == len(statements) and all(choice.condition == choices[0].condition for choice in choices):
            then = _jam([choice.then for choice in choices])
            otherwise = _jam([choice.otherwise for choice in choices])
            result.append(replace(choices[0], then=then, otherwise=otherwise))
        elif len(loops) == len(statements) and _can_share(loops):
            result.append(_shared(loops))
        else:
            result.extend(statements)
    return tuple(result)


def _can_share(loops: Sequence[For]) -> bool:
    """Say whether the loops run the same iterations and none leaves or skips on its own."""
    first = loops[0]
    same = all((loop.start, loop.stop) == (first.start, first.stop) for loop in loops)
    return same and not any(isinstance(node, Break | Continue) for node in walk(first.body))


def _shared(loops: Sequence[For]) -> For:
    """Return one loop that runs the bodies of all."""
    index = Read(symbol=loops[0].index)
    bodies = [
        tuple(substitute(statement, {loop.index: index}) for statement in loop.body) if number else loop.body
        for number, loop in enumerate(loops)
    ]
    reductions = tuple(item for loop in loops for item in loop.reductions)
    return replace(loops[0], body=_jam(bodies), reductions=reductions)
