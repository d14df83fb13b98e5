"""Coalescing: a temporary that is read once, by a copy, gives way to the variable that it is copied to.

    value = x[p]                best = x[p]
    best = value        ->      where = p
    where = p

`best, where = x[p], p` is lowered with such temporaries. Invariant: between the two places, the variable is neither
read nor assigned, and nothing leaves the loop around.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_blocks, statements, walk
from brickwork.legality import legality


def coalesce(block: Block) -> Block:
    """Return the block without temporaries that only pass a value on."""
    reads = Counter(node.symbol for node in walk(block) if isinstance(node, Read))
    writes = Counter(node.symbol for node in statements(block) if isinstance(node, Assign))
    passed = {symbol for symbol, number in writes.items() if number == reads[symbol] == 1}
    if not passed:
        return block
    return rewrite_blocks(block, lambda inner: _coalesced(inner, passed))


def _coalesced(block: Block, passed: set[Symbol]) -> Block:
    result = [*block]
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=symbol, value=Read(symbol=source)) if source in passed and source.dtype == symbol.dtype:
                before = next((at for at in range(place) if _assigns(result[at], source)), None)
                if before is not None and _is_untouched(symbol, result[before:place]):
                    result[before] = replace(result[before], symbol=symbol, loc=statement.loc)
                    result[place] = replace(statement, value=Read(symbol=symbol))
            case _:
                pass
    return tuple(item for item in result if not _repeats(item))


def _assigns(statement: Statement, symbol: Symbol) -> bool:
    return isinstance(statement, Assign) and statement.symbol == symbol


def _repeats(statement: Statement) -> bool:
    match statement:
        case Assign(symbol=symbol, value=Read(symbol=source)):
            return symbol == source
        case _:
            return False


@legality
def _is_untouched(symbol: Symbol, block: list[Statement]) -> bool:
    """Whether a block, which begins with the assignment of a temporary, has nothing to do with a variable."""
    rest = block[1:]
    if effects(rest).leaves:
        return False
    return not any(symbol in read_symbols(item) or symbol in assigned_symbols(item) for item in rest)
