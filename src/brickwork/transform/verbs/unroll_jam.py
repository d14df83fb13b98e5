"""Unroll-and-jam: several iterations of an outer loop run together, so that they share what they read.

    for i in range(n):                       for block in range(n // 2):
        s = 0                                    i = 2 * block
        for u in range(m):          ->           s, t = 0, 0
            s += a[i, u] * b[u]                  for u in range(m):
        out[i] = s                                   s += a[i, u] * b[u]
                                                     t += a[i + 1, u] * b[u]
                                                 out[i], out[i + 1] = s, t
                                             for i in range(n // 2 * 2, n): the loop as it was

Legal for a loop whose iterations are independent: every order of their statements is right then. What does not vary
along the loop (`varying.py`) is computed once. Inner loops with the
same bounds in all copies become one loop, branches on the same condition one branch. Of inner loops with other bounds
in each copy, what all of them run becomes one loop: each copy runs its own head before it and its own tail after it.

    for u in range(i, m): s += ...           for u in range(i, min(i + 1, m)): s += ...
    for u in range(i + 1, m): t += ...  ->   for u in range(i + 1, min(i + 1, m)): t += ...
                                             for u in range(i + 1, m): s += ...; t += ...

Where no variable passes into such a loop or out of it, the heads of all copies are written once, in a loop over them.
The rest is copied one by one. What each iteration computes, and in which order, stays as it was. The caller
(`defaults.py`) decides whether the loop is independent and worth it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Continue,
    Expression,
    For,
    If,
    Local,
    Node,
    Read,
    Role,
    Statement,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_statements, statements, substitute
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.scratch import with_variables
from brickwork.transform.verbs.varying import Varying, ends_early, is_group, varying


@legality
def may_jam(body: Block, *, failing: bool = False) -> bool:
    """Whether iterations with this body may run together: none ends early, may fail, or has a list of its own.

    Where the order does not matter in which failures are met, iterations may be `failing`.
    """
    kinds = Break | Continue | Local if failing else Break | Check | Continue | Local
    return not any(isinstance(node, kinds) for node in statements(body))


def unroll_jam(loop: For, factor: int, numbers: Iterator[int]) -> tuple[For, For]:
    """Return the loop over blocks of `factor` iterations and the loop over the rest.

    `numbers` yields symbol numbers that are not in use. The loop's iterations are independent, and `may_jam` allows it.
    """
    trips = build.apply("maximum", build.sub(loop.stop, loop.start), build.integer(0))
    blocks = build.apply("floordiv", trips, build.integer(factor))
    block_index = Symbol(f"{loop.index.name}_block", next(numbers), INT64)
    first = build.add(loop.start, build.mul(build.read(block_index), build.integer(factor)))
    source, loop = loop, _of_groups(loop, first, factor)
    apart = varying(loop, factor)
    own = apart.symbols | {node.index for node in statements(loop.body) if isinstance(node, For)}
    copies = tuple(_copy(loop, build.add(first, build.integer(offset)), numbers, own) for offset in range(factor))
    body = _jam(loop.body, _Group(loop, first, copies, numbers, apart))
    jammed = replace(loop, index=block_index, start=build.integer(0), stop=blocks, body=body)
    rest_index = Symbol(loop.index.name, next(numbers), INT64)
    done = build.mul(blocks, build.integer(factor))
    rest_body = _copy(source, build.read(rest_index), numbers).block(source.body)
    rest = replace(loop, index=rest_index, start=build.add(loop.start, done), body=rest_body)
    return (jammed, rest)


def _of_groups(loop: For, first: Expression, factor: int) -> For:
    """Return the loop with the quotients written alike that its index has in `factor` iterations from `first` on."""
    if not build.is_constant(loop.start, 0):
        return loop

    def visit(node: Node) -> Node:
        if isinstance(node, Apply) and is_group(node, loop.index, factor):
            return build.apply("floordiv", first, node.operands[1], loc=node.loc)
        return node

    return replace(loop, body=tuple(rewrite(statement, visit) for statement in loop.body))


@dataclass(frozen=True, slots=True)
class _Copy:
    """How one iteration is written: the value of the loop's index, and names of its own for variables."""

    index: Symbol
    value: Expression
    private: Mapping[Symbol, Symbol]

    def block(self, block: Block) -> Block:
        return tuple(self.statement(statement) for statement in block)

    def expression(self, expression: Expression) -> Expression:
        return substitute(expression, self.values())

    def statement(self, statement: Statement) -> Statement:
        return with_variables(substitute(statement, self.values()), self.private)

    def values(self) -> dict[Symbol, Expression]:
        return {**{old: Read(symbol=new) for old, new in self.private.items()}, self.index: self.value}


@dataclass(frozen=True, slots=True)
class _Group:
    """Iterations of a loop that run together: the value of the index in the first, and how each is written."""

    loop: For
    first: Expression
    copies: tuple[_Copy, ...]
    numbers: Iterator[int]
    apart: Varying

    def of(self, expression: Expression) -> list[Expression]:
        """Return an expression as each iteration has it."""
        return [copy.expression(expression) for copy in self.copies]


def _copy(loop: For, index: Expression, numbers: Iterator[int], own: Collection[Symbol] | None = None) -> _Copy:
    """Return how the loop's body is written for the iteration `index`, with variables of its own: all, or `own`."""
    found = assigned_symbols(loop.body)
    assigned = sorted(found if own is None else found.intersection(own), key=lambda symbol: symbol.number)
    return _Copy(loop.index, index, {each: Symbol(each.name, next(numbers), each.dtype) for each in assigned})


@legality
def _jam(block: Block, group: _Group) -> Block:
    """Return one block that does what the iterations do in a block of theirs."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case If() if _are_alike(conditions := group.of(statement.condition)):
                then, otherwise = _jam(statement.then, group), _jam(statement.otherwise, group)
                result.append(replace(statement, condition=conditions[0], then=then, otherwise=otherwise))
            case For() if not ends_early(statement):
                result.extend(_shared(statement, group))
            case Assign() if not group.apart.runs_apart(statement):
                result.append(group.copies[0].statement(statement))
            case _:
                result.extend(copy.statement(statement) for copy in group.copies)
    return tuple(result)


@legality
def _shared(loop: For, group: _Group) -> Block:
    """Return what runs an inner loop for all iterations: as one loop, in pieces, or one by one."""
    starts, stops = group.of(loop.start), group.of(loop.stop)
    if _are_alike(starts) and _are_alike(stops):
        return (_together(loop, group, starts[0], stops[0]),)
    if not _can_be_cut(loop):
        return tuple(copy.statement(loop) for copy in group.copies)
    return _cut(loop, group, starts, stops)


def _cut(loop: For, group: _Group, starts: Sequence[Expression], stops: Sequence[Expression]) -> Block:
    """Return what runs an inner loop for all iterations, with what they have in common in one loop."""
    first, last = _extreme("maximum", starts), _extreme("minimum", stops)
    head = replace(loop, stop=build.apply("minimum", first, loop.stop))
    tail = replace(loop, start=build.apply("maximum", first, last))
    heads = () if _are_alike(starts) else _apart(head, group)
    tails = () if _are_alike(stops) else _apart(tail, group)
    return (*heads, _together(loop, group, first, last), *tails)


@legality
def _can_be_cut(loop: For) -> bool:
    """Say whether a loop can be run in pieces: lanes join nothing in an order of their own."""
    return loop.role is Role.SEQUENTIAL or not loop.reductions


def _are_alike(expressions: Iterable[Expression]) -> bool:
    return len({*expressions}) == 1


def _extreme(name: str, bounds: Sequence[Expression]) -> Expression:
    """Return the least or greatest of bounds."""
    return reduce(lambda left, right: build.apply(name, left, right), dict.fromkeys(bounds))


def _together(loop: For, group: _Group, start: Expression, stop: Expression) -> For:
    """Return one loop that runs the bodies of all iterations between the bounds."""
    index = group.copies[0].private[loop.index]
    copies = tuple(replace(copy, private={**copy.private, loop.index: index}) for copy in group.copies)
    # A sum that all copies have in common is one reduction.
    reductions = tuple(dict.fromkeys(item.renamed(copy.private) for copy in copies for item in loop.reductions))
    body = _jam(loop.body, replace(group, copies=copies))
    return replace(loop, index=index, start=start, stop=stop, body=body, reductions=reductions)


@legality
def _apart(loop: For, group: _Group) -> Block:
    """Return what runs an inner loop for one iteration after the other: as a loop over them, where none needs names."""
    around = rewrite_statements(group.loop.body, lambda each: () if _is_of(each, loop.index) else (each,))
    if assigned_symbols(group.loop.body) & _touched(around) & _touched((loop,)):
        return tuple(copy.statement(loop) for copy in group.copies)
    index = Symbol(group.loop.index.name, next(group.numbers), INT64)
    body = _copy(group.loop, build.read(index), group.numbers).block((loop,))
    stop = build.add(group.first, build.integer(len(group.copies)))
    return (For(index=index, start=group.first, stop=stop, body=body, loc=loop.loc),)


def _is_of(statement: Statement, index: Symbol) -> bool:
    return isinstance(statement, For) and statement.index == index


def _touched(block: Block) -> frozenset[Symbol]:
    return read_symbols(block) | assigned_symbols(block)
