"""Coalescing: a temporary that is read once, by a copy, gives way to the variable that it is copied to.

    value = x[p]                best = x[p]
    best = value        ->      where = p
    where = p

`best, where = x[p], p` is lowered with such temporaries. They may also be assigned in both branches of an `if`, as the
values that gradients compute again are:

    if x[p] > best: value = x[p]        if x[p] > best: best = x[p]
    else: value = best             ->
    best = value

Invariant: between the two places, the variable is neither read nor assigned, the temporary is not assigned again, and
nothing leaves the loop around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, If, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_counts, read_symbols, rewrite_blocks, statements
from brickwork.legality import legality


def coalesce(block: Block) -> Block:
    """Return the block without temporaries that only pass a value on."""
    reads = read_counts(block)
    writes = Counter(node.symbol for node in statements(block) if isinstance(node, Assign))
    # An `if` assigns a temporary once in each branch.
    passed = {symbol: number for symbol, number in writes.items() if number <= 2 and reads[symbol] == 1}
    if not passed:
        return block
    return rewrite_blocks(block, lambda inner: _coalesced(inner, passed))


def _coalesced(block: Block, passed: Mapping[Symbol, int]) -> Block:
    result = [*block]
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=symbol, value=Read(symbol=source)) if source in passed and source.dtype == symbol.dtype:
                before = next((at for at in range(place) if source in assigned_symbols(result[at])), None)
                if before is not None and _is_free(symbol, source, result[before + 1 : place]):
                    given = _given(result[before], source, statement, passed[source])
                    if given is not None:
                        result[before] = given
                        result[place] = replace(statement, value=Read(symbol=symbol))
            case _:
                pass
    return tuple(item for item in result if not _repeats(item))


@legality
def _is_free(symbol: Symbol, source: Symbol, between: Sequence[Statement]) -> bool:
    """Whether statements have nothing to do with a variable, and leave a temporary as it is."""
    return _is_untouched(symbol, between) and not any(source in assigned_symbols(item) for item in between)


@legality
def _given(statement: Statement, source: Symbol, copy: Assign, writes: int) -> Statement | None:
    """Return a statement that gives a variable what it gave the temporary `source`, which has so many `writes`."""
    match statement:
        case Assign() if writes == 1:
            return replace(statement, symbol=copy.symbol, loc=copy.loc)
        case If(then=then, otherwise=otherwise):
            first, second = (_given_last(branch, source, copy) for branch in (then, otherwise))
            return None if first is None or second is None else replace(statement, then=first, otherwise=second)
        case _:
            return None


@legality
def _given_last(branch: Block, source: Symbol, copy: Assign) -> Block | None:
    """Return a branch that assigns a temporary with the variable in its place; None if it goes on with that."""
    for place, statement in enumerate(branch):
        if isinstance(statement, Assign) and statement.symbol == source:
            if not _is_untouched(copy.symbol, branch[place + 1 :]):
                return None
            given = replace(statement, symbol=copy.symbol, loc=copy.loc)
            return (*branch[:place], *(() if _repeats(given) else (given,)), *branch[place + 1 :])
    return None


def _repeats(statement: Statement) -> bool:
    match statement:
        case Assign(symbol=symbol, value=Read(symbol=source)):
            return symbol == source
        case _:
            return False


@legality
def _is_untouched(symbol: Symbol, block: Sequence[Statement]) -> bool:
    """Whether a block has nothing to do with a variable, and runs to its end."""
    if effects(block).leaves:
        return False
    return not any(symbol in read_symbols(item) or symbol in assigned_symbols(item) for item in block)
