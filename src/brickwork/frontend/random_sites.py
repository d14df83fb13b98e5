"""Numbers for the random draws in a source: each place of a draw, in each chain of inlined calls, has its own.

A place is told by its span, so that copies of a tree have the same numbers. The order is that of a walk over the source
with every helper taken where it is called.

Beside its place a draw has the number of the iteration. Nests whose lengths sizes and arguments say count in row-major
order. From the first loop on whose length is another in each turn around it (a triangle), the number n of the turns
around is spread, n * SPREAD & SPREAD_BITS, and the turn of the loop is added: a number of the iteration alone, so that
such nests, too, run in parallel. In two loops, two iterations could only meet where the product of their distances
is beyond 2**56.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from brickwork.frontend.environment import DRAWS, intrinsic, resolve
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_methods import meant

Place: TypeAlias = tuple[int, int, int, int]
"""First line, first column, last line, last column."""
Path: TypeAlias = tuple[Place, ...]
"""A chain of calls, outermost first."""

SPREAD = 4 * 0x9E3779B97F4A7C1
"""Four times the golden section of 2**60, to an odd number: its multiples lie far from one another modulo 2**62."""
SPREAD_BITS = 2**62 - 1


def place(node: ast.expr) -> Place:
    """Return where an expression stands in its file."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def draw_sites(source: SourceFunction, helpers: Mapping[types.FunctionType, SourceFunction]) -> dict[Path, int]:
    """Return the number of each draw by the chain of calls that leads to it, the draw's own call included."""
    return {path: number for number, path in enumerate(_draws(source, helpers, (), (source,)))}


def _draws(
    source: SourceFunction,
    helpers: Mapping[types.FunctionType, SourceFunction],
    path: Path,
    chain: tuple[SourceFunction, ...],
) -> Iterator[Path]:
    local = source.local
    for node in (item for statement in source.node.body for item in all_nodes(statement)):
        if not isinstance(node, ast.Call):
            continue
        inner = (*path, place(node))
        if intrinsic(resolve(node.func, source.captured, local)) in DRAWS:
            yield inner
        for called in meant(node, source, helpers):
            if called not in chain:
                yield from _draws(called, helpers, inner, (*chain, called))
