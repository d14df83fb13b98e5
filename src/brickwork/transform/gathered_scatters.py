"""Nests that add to places which two loops say together, as loops over these places, on grids.

    for y in range(n):                               for e in range(2 * n + 2):
        for k in range(4):                               s = 0.0
            out[2 * y + k] += x[y] * w[k]     ->         for y in range(max(0, (e - 2) // 2), min(n, e // 2 + 1)):
                                                             s += x[y] * w[e - 2 * y]
                                                         out[e] += s

Gradients are turned so in any case (`autodiff/gather.py`). Nothing is added by two threads at once then, and sums of
products are contractions. Where one loop alone says each index, the order of loops does that.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Check, Expression, For, Kernel, Launch, Load, Program, Store, Symbol
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.scratch import names_of


def with_gathers(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with such nests turned around."""
    if not target.grid:
        return program, {}
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    turned = [kernel.name for kernel in kernels if _spreads(kernel) and _is_inside(kernel)]
    if not turned:
        return program, {}
    gather = import_module("brickwork.transform.autodiff.gather").gather
    return cast("Program", gather(program, names_of(program), turned)), {}


@legality
def _is_inside(kernel: Kernel) -> bool:
    """Whether what is accessed is there, but for what is added: that is read as before, and checked where it is read.

    What is added beside a tensor would be no term of any element, and fail no check, and other checks would not be made
    for it. Gradients touch what their forward did, which has been checked.
    """
    found = [*statements(kernel.body)]
    stores = [node for node in found if isinstance(node, Store) and _adds(node)]
    added = {
        node.access
        for store in stores
        for node in walk(store.value)
        if isinstance(node, Load) and node.tensor != store.tensor
    }
    return not any(isinstance(node, Check) for node in found) and all(
        number in added or verdict.bound is Bound.PROVED for (number, _), verdict in analyse(kernel).bounds.items()
    )


def _spreads(kernel: Kernel) -> bool:
    """Whether a kernel adds to elements at places that several loops say together."""
    if kernel.may_alias:
        return False
    loops = {node.index for node in statements(kernel.body) if isinstance(node, For)}
    values: dict[Symbol, frozenset[Symbol]] = {}
    for node in statements(kernel.body):
        if isinstance(node, Assign) and node.symbol.dtype is INT64:
            read = read_symbols(node.value)
            values[node.symbol] = read.union(*(values.get(symbol, frozenset()) for symbol in read))

    def said_by(index: Expression) -> frozenset[Symbol]:
        read = read_symbols(index)
        return read.union(*(values.get(symbol, frozenset()) for symbol in read)) & loops

    return any(
        isinstance(node, Store) and _adds(node) and any(len(said_by(index)) > 1 for index in node.indices)
        for node in statements(kernel.body)
    )


def _adds(store: Store) -> bool:
    """Whether a store adds something to the element."""
    own: list[Expression] = [
        node for node in walk(store.value) if isinstance(node, Load) and node.tensor == store.tensor
    ]
    return bool(own)
