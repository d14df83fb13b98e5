"""Keeps an element that a loop accumulates into in a variable: it stays in a register and is seen as a reduction.

    for j in range(n): out[i] = out[i] + x[i, j]   ->   if 0 < n: s = out[i]
                                                                  for j in range(n): s = s + x[i, j]
                                                                  out[i] = s

Invariant: the order of the arithmetic and its roundings are unchanged, and no element is touched that was not before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import (
    Assign,
    Block,
    Break,
    Check,
    Continue,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Local,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, children, read_symbols, rewrite, walk

PROMOTED_NUMBERS = 2_000_000
"""Numbers of the variables made in here start from this."""


def promote(kernel: Kernel) -> Kernel:
    """Return the kernel with accumulated elements in variables."""
    if kernel.may_alias:
        return kernel
    body = tuple(_block(kernel.body, count(PROMOTED_NUMBERS)))
    return replace(kernel, body=body)


def _block(block: Block, numbers: Iterator[int]) -> Iterator[Statement]:
    for statement in block:
        match statement:
            case For():
                yield from _loop(statement, numbers)
            case If(then=then, otherwise=otherwise):
                inner = tuple(_block(then, numbers)), tuple(_block(otherwise, numbers))
                yield replace(statement, then=inner[0], otherwise=inner[1])
            case While(body=body):
                yield replace(statement, body=tuple(_block(body, numbers)))
            case _:
                yield statement


def _loop(loop: For, numbers: Iterator[int]) -> Iterator[Statement]:
    own = {node.tensor for node in walk(loop.body) if isinstance(node, Local)}
    stored = dict.fromkeys(node.tensor for node in walk(loop.body) if isinstance(node, Store))
    before: list[Statement] = []
    after: list[Statement] = []
    runs: dict[Expression, None] = {}
    for tensor in stored:
        accesses = [node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor == tensor]
        kept = tensor not in own and _is_accumulator(loop, tensor, accesses, stored)
        reached = _reached((loop,), tensor) if kept else None
        if reached is None:
            continue
        symbol = Symbol(tensor.name, next(numbers), value_dtype(tensor.type.dtype))
        load = next(node for node in accesses if isinstance(node, Load))
        store = next(node for node in accesses if isinstance(node, Store))
        before.append(Assign(symbol=symbol, value=load, loc=load.loc))
        after.append(replace(store, value=Read(symbol=symbol, loc=store.loc)))
        loop = _replace(loop, tensor, symbol)
        runs.update(dict.fromkeys(reached if store.indices else ()))
    loop = replace(loop, body=tuple(_block(loop.body, numbers)))
    whole: Block = (*before, loop, *after)
    for condition in reversed(runs):
        whole = (If(condition=condition, then=whole, loc=loop.loc),)
    yield from whole


def _is_accumulator(loop: For, tensor: Tensor, accesses: list[Load | Store], stored: dict[Tensor, None]) -> bool:
    """Whether a loop reads and writes a tensor at one element only."""
    indices = accesses[0].indices
    dtype = tensor.type.dtype
    if value_dtype(dtype) != dtype or any(access.indices != indices for access in accesses):
        return False
    if not any(isinstance(access, Load) for access in accesses):
        return False
    changing = assigned_symbols(loop.body) | {loop.index}
    if any(read_symbols(index) & changing for index in indices):
        return False
    return not any(isinstance(node, Load) and node.tensor in stored for index in indices for node in walk(index))


def _reached(block: Block, tensor: Tensor, changing: frozenset[Symbol] = frozenset()) -> tuple[Expression, ...] | None:
    """Return conditions under which a block surely touches a tensor that it names; None if there are none.

    They are over what does not change in the block, or in what is around it: the `changing` variables.
    """
    if not tensor.type.rank:
        return ()
    changing = changing | assigned_symbols(block)
    for statement in block:
        reached: tuple[Node, ...]
        match statement:
            case If(condition=condition):
                reached = (condition,)
            case For(start=start, stop=stop):
                reached = (start, stop)
            case While():
                return None
            case Check() | Break() | Continue():
                return () if any(_reads(child, tensor) for child in children(statement)) else None
            case _:
                reached = (statement,)
        if any(_reads(node, tensor) for node in reached):
            return ()
        if isinstance(statement, If) and any(isinstance(node, Break | Continue) for node in walk(statement)):
            return None
        if isinstance(statement, For) and _reads(statement, tensor):
            inner = _reached(statement.body, tensor, changing)
            bounds = (statement.start, statement.stop)
            fixed = not read_symbols(bounds) & changing and not any(isinstance(node, Load) for node in walk(bounds))
            if inner is not None and fixed:
                return (build.apply("lt", *bounds, loc=statement.loc), *inner)
    return None


def _reads(root: Node, tensor: Tensor) -> bool:
    return any(isinstance(node, Load | Store) and node.tensor == tensor for node in walk(root))


def _replace(loop: For, tensor: Tensor, symbol: Symbol) -> For:
    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=other) if other == tensor:
                return Read(symbol=symbol, loc=node.loc)
            case Store(tensor=other, value=value) if other == tensor:
                return Assign(symbol=symbol, value=value, loc=node.loc)
            case _:
                return node

    return rewrite(loop, visit)
