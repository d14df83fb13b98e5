"""Kernels whose sums go through remainders of their indices, and those that run all remainders apart: where it pays.

How nests are rewritten is in `residues.py`; here it is chosen. Sums go through the terms that have the remainder that
they ask for in any case, if kernel scalars are small, so that no integer wraps. A nest for each remainder runs where
it is a contraction that is worth tiles, and has more rows of quotients than a sum has terms along them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.analysis.polynomial import SCALAR_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Expression, If, Kernel, Launch, Program, Statement
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.target.target import Target
from brickwork.transform.free_variables import fresh_names
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import Apart, Changed, Place, launches, stand_apart, with_each, worth_tiles
from brickwork.transform.residues import shifted, split, strided, sum_nest
from brickwork.transform.scratch import Names, copied

STRIDED, APART = "_strided", "_residues"
"""End the names of kernels whose sums go through one remainder, and of those with a nest for each."""
SMALL = "where integer arguments are small"
REMARK = "where the nest of each remainder is worth tiles"
"""What `explain` says of them."""


def with_strides(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with sums that go through those of their terms that have a remainder, and remarks."""
    if not target.grid:
        return program, {}
    names = fresh_names(program)

    def change(launch: Launch) -> Changed:
        found = [_strided(item, launch.kernel, names) for item in launch.kernel.body]
        if not any(found) or not stand_apart(launch.kernel.body):
            return (launch,), {}
        return launches(launch, found, STRIDED, SMALL, usual=True)

    return with_each(program, change)


def _strided(statement: Statement, kernel: Kernel, names: Names) -> Apart | None:
    """Return nests, which may stand in conditions, with sums that go through one remainder if they ask for it."""

    def visit(statement: Statement) -> Statement:
        match statement:
            case If(then=then, otherwise=otherwise):
                return replace(statement, then=tuple(map(visit, then)), otherwise=tuple(map(visit, otherwise)))
            case _:
                nest = sum_nest(statement)
                made = nest if nest is None else strided(nest, names)
                return statement if made is nest or made is None else copied(made.statement(), names)

    made = visit(statement)
    return None if made == statement else Apart((made,), (), tuple(_are_small(statement, kernel)))


def with_residues(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with kernels that run a nest for each remainder, and remarks."""
    if not target.matrix:
        return program, {}
    names = fresh_names(program)

    def change(launch: Launch) -> Changed:
        found = [_split(item, launch.kernel, names) for item in launch.kernel.body]
        if not any(found) or not stand_apart(launch.kernel.body):
            return (launch,), {}
        return launches(launch, found, APART, REMARK)

    return with_each(program, change)


def _split(statement: Statement, kernel: Kernel, names: Names) -> Apart | None:
    """Return the nests of all remainders, if it has any, and what makes them worth tiles."""
    match statement:
        case If(condition=condition, then=(then,)) if not effects(condition).loads:
            found = _split(then, kernel, names)
            return None if found is None else replace(found, worth=(condition, *found.worth))
        case _:
            nest = sum_nest(statement)
    found = None if nest is None else split(nest, names)
    if nest is None or found is None:
        return None
    made, small = found
    made, pairs = shifted(made, names, small)
    around = Place((), Ranges(frozenset(kernel.scalars) - assigned_symbols(kernel.body)))
    for loop in made.band:
        around = around.inside(loop)
    around = Place(tuple(loop for loop in made.band if loop.index not in small), around.ranges)
    worth = worth_tiles(made.before, made.sum(), around)
    lengths = [(around.total([outer]), around.total([own])) for outer, own in pairs]
    if worth is None or len(pairs) < len(small):
        return None
    longer = [build.apply("ge", one, other) for one, other in lengths if one is not None and other is not None]
    return Apart((copied(made.statement(), names),), (), (*_are_small(statement, kernel), *worth, *longer))


def _are_small(statement: Statement, kernel: Kernel) -> Iterator[Expression]:
    """Yield what must hold so that no integer of a nest wraps: sizes and indices are small anyway."""
    for symbol in kernel.scalars:
        if symbol.dtype is INT64 and symbol in read_symbols(statement):
            yield build.apply("le", build.read(symbol), build.integer(SCALAR_LIMIT))
            yield build.apply("ge", build.read(symbol), build.integer(-SCALAR_LIMIT))
