"""Factors that read windows: elements at a place of the rows, moved by loops of the sum other than the depth.

    for c ...: for p ...: for q ...: s += x[n, c, i + p, j + q] * ...        rows i, j; depth c

A tile's rows and those loops read each element of a box many times: `i + p` and `j + q` have few values together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from brickwork.analysis.contractions import Factor
from brickwork.analysis.meeting import slope
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Expression, Load, Node, Read, Symbol
from brickwork.ir.walk import read_symbols, rewrite, walk
from brickwork.legality import legality
from brickwork.records import dataclass

NodeType = TypeVar("NodeType", bound=Node)


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """An axis along which a window lies: the index, its row (a loop of rows), and how far loops of the sum move it."""

    index: Expression
    row: Symbol
    moves: Mapping[Symbol, int]
    place: Symbol
    """Stands for the index, where a factor is asked for at a place in the window."""


@dataclass(frozen=True, slots=True)
class Window:
    """The axes of a factor's element along which its windows lie, in the order of its indices."""

    axes: tuple[WindowAxis, ...]
    value: Expression
    masks: tuple[Expression, ...]
    """The factor in terms of places in the window, and of the depth."""


@legality
def find_window(factor: Factor, rows: Sequence[Symbol], depth: Symbol, moving: Sequence[Symbol]) -> Window | None:
    """Return the window that a factor reads; `moving` are the loops of the sum but the depth.

    Each place of the box is one of a row and a step of each moving loop: rows are next to one another along an axis,
    and so are places from step to step. Rows that no loop moves are none of the window: they must be among no rows.
    """
    parts = (factor.value, *factor.masks)
    loads = {node for node in walk(parts) if isinstance(node, Load)}
    if len(loads) != 1:
        return None
    (load,) = loads
    names = {*rows, *moving}
    axes: list[WindowAxis] = []
    for number, index in enumerate(load.indices):
        here = read_symbols(index) & {*names, depth}
        if not here or index == Read(symbol=depth):
            continue
        slopes = {symbol: slope(index, symbol) for symbol in here}
        own = [symbol for symbol in rows if symbol in here]
        if depth in here or len(own) != 1 or slopes[own[0]] != 1 or not {*slopes.values()} <= {1, -1}:
            return None
        del slopes[own[0]]
        moves = {symbol: 1 if move == 1 else -1 for symbol, move in slopes.items()}
        axes.append(WindowAxis(index, own[0], moves, Symbol(f"place_{number}", -2 - number, INT64)))
    every = [symbol for axis in axes for symbol in (axis.row, *axis.moves)]
    if len({*every}) != len(every) or not any(axis.moves for axis in axes):
        return None
    if Read(symbol=depth) not in load.indices:
        return None
    value, *masks = (_placed(part, axes) for part in parts)
    return None if read_symbols((value, *masks)) & names else Window(tuple(axes), value, tuple(masks))


def unmoved(factor: Factor, rows: Sequence[Symbol], moving: Sequence[Symbol]) -> frozenset[Symbol]:
    """Return the rows that stand in indices of their own, which no loop of the sum moves."""
    indices = [index for node in walk(factor.value) if isinstance(node, Load) for index in node.indices]
    return frozenset(
        row for row in rows if not any({row} < read_symbols(index) & {*rows, *moving} for index in indices)
    )


def _placed(part: NodeType, axes: Sequence[WindowAxis]) -> NodeType:
    """Return an expression with places in the window instead of the indices of its axes."""
    places: dict[Node, Expression] = {axis.index: build.read(axis.place) for axis in axes}
    return rewrite(part, lambda node: places.get(node, node))
