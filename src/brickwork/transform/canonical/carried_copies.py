"""A variable that carries another one through a statement, and gives it back, gives way to that one.

    t = s                                  for y in range(H):
    for y in range(H): t += x[y]    ->         s += x[y]
    s = t

Sums over several loops, computed again by gradients, have one such variable a loop. Invariant: between the two copies
nothing reads or assigns the other variable, all that has to do with the first one stands there, and they are reached
one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, For, Node, Read, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_blocks, walk
from brickwork.legality import legality


def without_carried_copies(block: Block) -> Block:
    """Return the block without variables that only carry others through statements."""
    mentions = _mentions(block)
    return rewrite_blocks(block, lambda inner: _without(inner, mentions))


def _mentions(nodes: Iterable[Node]) -> Counter[Symbol]:
    """Return how often variables are read and assigned."""
    found = Counter[Symbol]()
    for node in walk(nodes):
        match node:
            case Assign(symbol=symbol) | Read(symbol=symbol) | For(index=symbol):
                found[symbol] += 1
            case _:
                pass
    return found


def _without(block: Block, mentions: Counter[Symbol]) -> Block:
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=carrier, value=Read(symbol=carried)) if carrier.dtype == carried.dtype:
                end = _end(block, place, carrier, carried)
                if end is not None and _mentions(block[place : end + 1])[carrier] == mentions[carrier]:
                    # The four mentions in the copies are gone.
                    mentions[carried] += mentions.pop(carrier) - 4
                    middle = tuple(_renamed(item, carrier, carried) for item in block[place + 1 : end])
                    return _without((*block[:place], *middle, *block[end + 1 :]), mentions)
            case _:
                pass
    return block


@legality
def _end(block: Block, place: int, carrier: Symbol, carried: Symbol) -> int | None:
    """Return where what the statement at a place gives a variable is given back."""
    for end in range(place + 1, len(block)):
        match block[end]:
            case Assign(symbol=symbol, value=Read(symbol=source)) if symbol == carried and source == carrier:
                return end
            case statement if carried in read_symbols(statement) | assigned_symbols(statement):
                return None
            case statement if effects(statement).leaves:
                return None
            case _:
                pass
    return None


def _renamed(statement: Statement, carrier: Symbol, carried: Symbol) -> Statement:
    def visit(node: Node) -> Node:
        match node:
            case Read(symbol=symbol) if symbol == carrier:
                return build.read(carried)
            case Assign(symbol=symbol) if symbol == carrier:
                return replace(node, symbol=carried)
            case _:
                return node

    return rewrite(statement, visit)
