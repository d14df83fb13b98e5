"""Gives loops a single exit: `break` and `continue` become flags. Reverse mode starts from this form.

    for j in range(n):                        left = False
        if x[j] < 0: continue                 for j in range(n):
        out[j] = x[j]               ->            on = True
        if x[j] > 1: break                        if x[j] < 0: on = False
                                                  if on:
                                                      out[j] = x[j]
                                                      if x[j] > 1: on = False; left = True
                                                  if left: break

A `while` becomes one whose condition is a variable, without a prelude and never left otherwise. Invariant: `break`
stands at the end of a `for`, as `If(Read(left), (Break(),))`, and nowhere else, and `continue` nowhere.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Break, Continue, For, If, Read, Statement, Symbol, While
from brickwork.ir.walk import rewrite_statements
from brickwork.records import dataclass
from brickwork.transform.scratch import Names


def single_exit(block: Block, names: Names) -> Block:
    """Return the block with its loops left in one place only."""

    def visit(statement: Statement) -> Block:
        match statement:
            case For():
                return _for(statement, names)
            case While():
                return _while(statement, names)
            case _:
                return (statement,)

    return rewrite_statements(block, visit)


def leaving(loop: For) -> Symbol | None:
    """Return the variable that ends a normalised loop early, if one does."""
    match loop.body[-1:]:
        case (If(condition=Read(symbol=symbol), then=(Break(),)),):
            return symbol
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Flags:
    """The variables of a loop: whether this iteration goes on, and whether the loop is left."""

    on: Symbol
    left: Symbol


def _for(statement: For, names: Names) -> Block:
    body = statement.body
    if not effects(body).leaves:
        return (statement,)
    flags = _flags(names)
    inner = (_set(flags.on, True), *_guarded(body, flags))
    if not effects(body).breaks:
        return (replace(statement, body=inner),)
    end = If(condition=build.read(flags.left), then=(Break(loc=statement.loc),), loc=statement.loc)
    return (_set(flags.left, False), replace(statement, body=(*inner, end)))


def _while(statement: While, names: Names) -> Block:
    flags = _flags(names)
    prelude = (_set(flags.on, True), *_guarded(statement.prelude, flags)) if effects(statement.prelude).leaves else ()
    begun = prelude or statement.prelude
    body = statement.body
    if effects(body).leaves:
        body = (_set(flags.on, True), *_guarded(body, flags))
    turn: Block = (
        If(condition=statement.condition, then=body, otherwise=(_set(flags.left, True),), loc=statement.loc),
    )
    if prelude:
        turn = (If(condition=build.read(flags.on), then=turn),)
    going = build.logical_not(build.read(flags.left))
    return (_set(flags.left, False), While(prelude=(), condition=going, body=(*begun, *turn), loc=statement.loc))


def _flags(names: Names) -> _Flags:
    return _Flags(Symbol("on", next(names.symbols), BOOL), Symbol("left", next(names.symbols), BOOL))


def _set(symbol: Symbol, value: bool) -> Assign:
    return Assign(symbol=symbol, value=build.constant(value, BOOL))


def _guarded(block: Block, flags: _Flags) -> Block:
    """Return the block with flags set where it jumped, and what follows under their condition."""
    for place, statement in enumerate(block):
        if not effects(statement).leaves:
            continue
        match statement:
            case Break():
                return (*block[:place], _set(flags.on, False), _set(flags.left, True))
            case Continue():
                return (*block[:place], _set(flags.on, False))
            case If(then=then, otherwise=otherwise):
                branch = replace(statement, then=_guarded(then, flags), otherwise=_guarded(otherwise, flags))
                rest = _guarded(block[place + 1 :], flags)
                guarded = (If(condition=build.read(flags.on), then=rest, loc=statement.loc),) if rest else ()
                return (*block[:place], branch, *guarded)
            case _:
                raise TypeError(type(statement).__name__)
    return block
