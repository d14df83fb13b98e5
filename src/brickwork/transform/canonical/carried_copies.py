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
from collections.abc import Iterable, Iterator
from functools import partial

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, For, Node, Read, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_blocks, statements, walk
from brickwork.legality import legality
from brickwork.transform.scratch import with_variables


def without_carried_copies(block: Block) -> Block:
    """Return the block without variables that only carry others through statements."""
    while carriers := _carriers(block):
        block = rewrite_blocks(block, partial(_without, carriers=carriers))
    return block


def _carriers(block: Block) -> frozenset[Symbol]:
    """Return the variables that do nothing but carry others, be it at several places."""
    carrying = Counter[Symbol]()

    def visit(inner: Block) -> Block:
        for place, end in _carries(inner):
            (symbol,) = assigned_symbols(inner[place])
            carrying[symbol] += _mentions(inner[place : end + 1])[symbol]
        return inner

    rewrite_blocks(block, visit)
    mentions = _mentions(block) if carrying else carrying
    return frozenset(symbol for symbol, number in carrying.items() if number == mentions[symbol])


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


def _carries(block: Block) -> Iterator[tuple[int, int]]:
    """Yield the places of two copies between which a variable carries another one."""
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=carrier, value=Read(symbol=carried)) if carrier.dtype == carried.dtype:
                end = _end(block, place, carrier, carried)
                if end is not None and not any(_begins(item, carrier) for item in statements(block[place + 1 : end])):
                    yield place, end
            case _:
                pass


def _begins(statement: Node, carrier: Symbol) -> bool:
    return isinstance(statement, Assign) and statement.symbol == carrier and isinstance(statement.value, Read)


def _without(block: Block, carriers: frozenset[Symbol]) -> Block:
    for place, end in _carries(block):
        copy = block[place]
        if isinstance(copy, Assign) and isinstance(copy.value, Read) and copy.symbol in carriers:
            middle = tuple(with_variables(item, {copy.symbol: copy.value.symbol}) for item in block[place + 1 : end])
            return _without((*block[:place], *middle, *block[end + 1 :]), carriers)
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
