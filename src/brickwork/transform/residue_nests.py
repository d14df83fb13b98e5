"""Kernels whose sums go through remainders of their indices, and those that run all remainders apart: where it pays.

How nests are rewritten is in `residues.py`; here it is chosen. Sums go through the terms that have the remainder that
they ask for in any case, if kernel scalars are small, so that no integer wraps. A nest for each remainder runs where
it is a contraction that is worth tiles, and has more rows of quotients than a sum has terms along them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from brickwork.analysis.analyse import analyse
from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, Expression, For, If, Kernel, Launch, Statement
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.distribute import may_have_parts
from brickwork.transform.guard import guards
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import Apart, Changed, Place, each_launch, in_branches, launches, worth_tiles
from brickwork.transform.residues import shifted, split, strided, sum_nest
from brickwork.transform.scratch import Names, copied
from brickwork.transform.sums import Limits

STRIDED, APART = "_strided", "_residues"
"""End the names of kernels whose sums go through one remainder, and of those with a nest for each."""
SMALL = "where integer arguments are small"
REMARK = "where the nest of each remainder is worth tiles"
"""What `explain` says of them."""


@each_launch("grid")
def with_strides(launch: Launch, names: Names, _: Target) -> Changed:
    """Return nests with sums that go through those of their terms that have a remainder, and remarks."""
    fixed = _limits(launch.kernel)
    found = [_strided(item, fixed, names) for item in launch.kernel.body]
    return launches(launch, found, STRIDED, SMALL, usual=True)


def _limits(kernel: Kernel) -> Limits:
    """Return the integer arguments that a kernel reads as they are given, each with its limit."""
    assigned = assigned_symbols(kernel.body)
    return {each: SCALAR_LIMIT for each in kernel.scalars if each.dtype is INT64 and each not in assigned}


def _strided(statement: Statement, fixed: Limits, names: Names) -> Apart | None:
    """Return nests, which may stand in conditions, with sums that go through one remainder if they ask for it."""

    def visit(statement: Statement) -> Block:
        nest = sum_nest(statement, fixed)
        made = nest if nest is None else strided(nest, names)
        return (statement if made is nest or made is None else copied(made.statement(), names),)

    (made,) = in_branches((statement,), visit)
    return None if made == statement else Apart((made,), (), tuple(_are_small(statement, fixed)))


@each_launch("matrix")
def with_residues(launch: Launch, names: Names, _: Target) -> Changed:
    """Return nests for each remainder, and remarks."""
    kernel, analysed = launch.kernel, cache(lambda: analyse(launch.kernel))
    return launches(launch, [_split(item, _limits(kernel), analysed, names) for item in kernel.body], APART, REMARK)


def _split(statement: Statement, fixed: Limits, analysed: Callable[[], Analysis], names: Names) -> Apart | None:
    """Return the nests of all remainders, if it has any, and what makes them legal and worth tiles."""
    match statement:
        case If(condition=condition, then=(then,), otherwise=()) if not effects(condition).loads:
            found = _split(then, fixed, analysed, names)
            return None if found is None else replace(found, worth=(condition, *found.worth))
        case _:
            nest = sum_nest(statement, fixed)
    found = None if nest is None or effects(nest.after).loops else split(nest, names)
    if nest is None or found is None or not may_be_reordered(nest.band, analysed()):
        return None
    made, small = found
    made, pairs = shifted(made, names, small)
    around = Place((), Ranges(frozenset(fixed)))
    for loop in made.band:
        around = around.inside(loop)
    around = Place(tuple(loop for loop in made.band if loop.index not in small), around.ranges)
    worth = worth_tiles(made.before, made.sum(), around)
    lengths = [(around.total([outer]), around.total([own])) for outer, own in pairs]
    if worth is None or len(pairs) < len(small):
        return None
    longer = [build.apply("ge", one, other) for one, other in lengths if one is not None and other is not None]
    held = (*_are_small(statement, fixed), *guards(analysed()))
    return Apart((copied(made.statement(), names),), (), (*held, *worth, *longer))


@legality
def may_be_reordered(band: Sequence[For], analysis: Analysis) -> bool:
    """Whether iterations of loops in one another may run in any order, and leave nothing for what comes after."""
    verdicts = [analysis.loops[loop.index] for loop in band]
    return may_have_parts(band[0]) and all(each.is_free for each in verdicts)


def _are_small(statement: Statement, fixed: Limits) -> Iterator[Expression]:
    """Yield what must hold so that no integer of a nest wraps: sizes and indices are small anyway."""
    for symbol, limit in fixed.items():
        if symbol in read_symbols(statement):
            yield build.apply("le", build.read(symbol), build.integer(limit))
            yield build.apply("ge", build.read(symbol), build.integer(-limit))
