"""Which values variables have that do nothing but note indices: those of some loops, and some constants.

    last = 0
    for s in range(1, samples):
        for n in range(N):             `furthest` and `last` are 0, or in range(N)
            if ...: furthest = n
        last = furthest

This does not ask in which order things happen. Invariant: whenever such a variable is read, it has one of the values.
"""

from __future__ import annotations

from typing import TypeAlias

from brickwork.analysis.isl import FOLLOWED
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Constant, Expression, For, Kernel, Read, Symbol
from brickwork.ir.walk import read_symbols, statements
from brickwork.legality import legality

Ranges: TypeAlias = tuple[tuple[Expression, Expression], ...]
"""First values, and those before which the values end."""


@legality
def noted_indices(kernel: Kernel) -> dict[Symbol, Ranges]:
    """Return the values of the variables that note indices; the ranges read nothing that the kernel assigns."""
    given: dict[Symbol, set[Expression]] = {}
    loops: dict[Symbol, set[tuple[Expression, Expression]]] = {}
    for node in statements(kernel.body):
        if isinstance(node, Assign) and node.symbol.dtype is INT64:
            given.setdefault(node.symbol, set()).add(node.value)
        elif isinstance(node, For):
            loops.setdefault(node.index, set()).add((node.start, node.stop))
    changing = effects(kernel.body).assigns
    found: dict[Symbol, Ranges] = {}
    for symbol in given.keys() - {*kernel.scalars}:
        ranges: dict[tuple[Expression, Expression], None] = {}
        for source in _sources(symbol, given):
            if isinstance(source, Constant):
                ranges[source, build.add(source, build.integer(1))] = None
            elif isinstance(source, Read) and source.symbol in loops:
                ranges.update(dict.fromkeys(sorted(loops[source.symbol], key=str)))
            else:
                break
        else:
            if len(ranges) <= FOLLOWED and not read_symbols(each for item in ranges for each in item) & changing:
                found[symbol] = tuple(ranges)
    return found


def _sources(symbol: Symbol, given: dict[Symbol, set[Expression]]) -> list[Expression]:
    """Return what a variable is given, by way of other variables, too."""
    reached, left, sources = {symbol}, [symbol], list[Expression]()
    while left:
        for value in given[left.pop()]:
            if isinstance(value, Read) and value.symbol in given:
                if value.symbol not in reached:
                    reached.add(value.symbol)
                    left.append(value.symbol)
            else:
                sources.append(value)
    return sources
