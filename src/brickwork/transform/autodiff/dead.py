"""Takes out what no result depends on: reverse mode writes generously, and this leaves what is needed.

A statement stays if the variable it assigns may be read later, or the tensor it stores into loaded; a tensor counts as
one variable. Loops and branches stay if something in them does. A `while` is taken to end. For normalised blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TypeAlias

from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Constant,
    Continue,
    For,
    If,
    Launch,
    Load,
    Local,
    Node,
    Read,
    Rebind,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.normal import leaving

_DIVISIONS = frozenset({"floordiv", "mod"})


@dataclass(frozen=True, slots=True)
class _Division:
    """Stands for the integer divisions that follow, which the checks before them are for."""


_Name: TypeAlias = Symbol | Tensor | _Division
Live: TypeAlias = frozenset[_Name]


def without_dead(block: Block, results: Collection[Tensor]) -> Block:
    """Return what the elements of `results` after the block depend on."""
    return _block(block, frozenset[_Name](results), _NOWHERE)[0]


_NOWHERE: Live = frozenset()


def _reads(*roots: Node) -> Live:
    found: set[_Name] = set()
    for node in walk(roots):
        match node:
            case Read(symbol=symbol):
                found.add(symbol)
            case Load(tensor=tensor):
                found.add(tensor)
            case Apply(operator=operator, operands=(_, divisor)) if operator.name in _DIVISIONS:
                if divisor.dtype.is_integer and not isinstance(divisor, Constant):
                    found.add(_Division())
            case _:
                pass
    return frozenset(found)


def _block(block: Block, after: Live, left: Live) -> tuple[Block, Live]:
    """Return what stays of a block, and what is live before it; `left` is what is live where a `break` leads to."""
    kept: list[Statement] = []
    live = after
    for statement in reversed(block):
        stays, live = _statement(statement, live, left)
        if stays is not None:
            kept.append(stays)
    return tuple(reversed(kept)), live


def _statement(statement: Statement, live: Live, left: Live) -> tuple[Statement | None, Live]:
    match statement:
        case Assign(symbol=symbol, value=value):
            return (statement, (live - {symbol}) | _reads(value)) if symbol in live else (None, live)
        case Store(tensor=tensor, indices=indices, value=value):
            return (statement, live | _reads(*indices, value)) if tensor in live else (None, live)
        case Local(tensor=tensor):
            return (statement, live - {tensor}) if tensor in live else (None, live)
        case Check(condition=condition, values=values):
            return (statement, live | _reads(condition, *values)) if _Division() in live else (None, live)
        case Rebind(targets=targets, sources=sources):
            if not live & {*targets}:
                return None, live
            return statement, (live - {*targets}) | {*sources}
        case If():
            return _if(statement, live, left)
        case For():
            return _for(statement, live)
        case While():
            return _while(statement, live)
        case Break():
            return statement, left
        case Continue() | Allocate() | Launch() | Return():
            raise TypeError(type(statement).__name__)


def _if(statement: If, live: Live, left: Live) -> tuple[Statement | None, Live]:
    then, first = _block(statement.then, live, left)
    otherwise, second = _block(statement.otherwise, live, left)
    if not then and not otherwise:
        return None, live
    before = first | second | _reads(statement.condition)
    return replace(statement, then=then, otherwise=otherwise), before


def _for(statement: For, after: Live) -> tuple[Statement | None, Live]:
    """Return a loop if it does something besides finding out when it is left."""
    core = statement.body if leaving(statement) is None else statement.body[:-1]
    body, before = _repeated(core, after)
    if not body:
        return None, after
    if core is not statement.body:
        body, before = _repeated(statement.body, after)
    return replace(statement, body=body), (before - {statement.index}) | _reads(statement.start, statement.stop)


def _while(statement: While, after: Live) -> tuple[Statement | None, Live]:
    """Return a normalised `while` if it does something besides finding out when it ends."""
    body, _ = _repeated(statement.body, after)
    if not body:
        return None, after
    body, before = _repeated(statement.body, after | _reads(statement.condition))
    return replace(statement, body=body), before


def _repeated(body: Block, after: Live) -> tuple[Block, Live]:
    """Return what stays of a loop's body, and what is live before the loop."""
    around = after
    while True:
        kept, before = _block(body, around, after)
        if before <= around:
            return kept, around
        around = around | before
