"""Sums over columns: what a nest in a loop adds up for a store after it, it adds to the element itself.

    for t in range(T):                            for t in range(T): y[t] = 0
        a = 0                                     for t in range(T):
        for j in range(n):               ->           for j in range(n):
            s[j] = s[j] * w[t]                            s[j] = s[j] * w[t]
            a = a + s[j]                                  a = 0; a = a + s[j]
        y[t] = a                                          y[t] = y[t] + a

So the loop over `j` can move out (`columns.py`), with updates that are atomic. Invariant: as long as nothing moves,
each element is the sum of the same numbers in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, may_meet
from brickwork.analysis.scalars import reduction_of
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, If, Load, Read, Statement, Store, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.scratch import Names, copied


@dataclass(frozen=True, slots=True)
class ColumnSum:
    """A variable that begins at 0, the nest that adds to it, and what stores it: a store, or one in a branch."""

    begin: Assign
    nest: For
    stored: Statement

    @property
    def store(self) -> Store:
        """The store."""
        (found,) = [node for node in statements(self.stored) if isinstance(node, Store)]
        return found

    def storing(self, value: Expression, names: Names) -> Statement:
        """Return what stores another value."""
        store = replace(self.store, value=value, access=next(names.accesses))
        return replace(self.stored, then=(store,)) if isinstance(self.stored, If) else store

    def updating(self, names: Names) -> Statement:
        """Return what adds the variable to the element."""
        before = names.load(self.store.tensor, *self.store.indices)
        return self.storing(build.add(before, build.read(self.begin.symbol)), names)


def column_sums(loop: For, analysis: Analysis, live: frozenset[Symbol]) -> list[ColumnSum]:
    """Return the sums of a loop that can be added to elements; `live` are the variables that are read after it."""
    found = (_sum_of(loop, statement, live) for statement in loop.body)
    return [item for item in found if item is not None and _is_stored_once(loop, item.store, analysis)]


@legality
def _sum_of(loop: For, stored: Statement, live: frozenset[Symbol]) -> ColumnSum | None:
    """Return the sum that a statement stores, if that is all it does and what the variable is for."""
    match stored:
        case Store(value=Read(symbol=symbol)) as store:
            condition: tuple[Expression, ...] = ()
        case If(condition=given, then=(Store(value=Read(symbol=symbol)) as store,), otherwise=()):
            condition = (given,)
        case _:
            return None
    if store.tensor.is_local or store.combine is not None:
        return None
    if value_dtype(store.tensor.type.dtype) != store.tensor.type.dtype or symbol in live:
        return None
    users = [node for node in loop.body if symbol in effects(node).reads | effects(node).assigns]
    match users:
        case [Assign(value=value) as begin, For() as nest, _] if build.is_constant(value, 0):
            pass
        case _:
            return None
    place = (*store.indices, *condition)
    if reduction_of((nest,), symbol) != "add" or not effects(place).plain:
        return None
    computed = _computed(loop)
    others = [node for node in loop.body if node not in computed]
    if (read_symbols(place) | read_symbols(node.value for node in computed)) & assigned_symbols(others):
        return None
    if len({node.symbol for node in computed}) < len(computed):
        return None
    return ColumnSum(begin, nest, stored)


@legality
def _is_stored_once(loop: For, store: Store, analysis: Analysis) -> bool:
    """Whether a loop stores into each element once, and does nothing else with the tensor."""
    touched = [node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor == store.tensor]
    around = next(item for item in analysis.model.loops if item.node.index == loop.index)
    access = next(item for item in analysis.accesses if item.number == store.access)
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    return len(touched) == 1 and not may_meet(facts, around, access, access, depth=around.depth)


def as_updates(loop: For, sums: list[ColumnSum], names: Names) -> Block:
    """Return the loop that sets elements to 0, and the loop that adds to them."""
    values: dict[Symbol, Expression] = {}
    for node in _computed(loop):
        values[node.symbol] = substitute(node.value, values)
    placed = [replace(item, stored=substitute(item.stored, values)) for item in sums]
    zeros = (item.storing(build.constant(0, item.begin.symbol.dtype), names) for item in placed)
    filled = copied(replace(loop, body=(*zeros,)), names)
    gone = [node for item in sums for node in (item.begin, item.stored)]
    kept = tuple(node for node in loop.body if not any(node is each for each in gone))
    return filled, replace(loop, body=tuple(_updating(node, placed, names) for node in kept))


def _computed(loop: For) -> list[Assign]:
    """Return the assignments in a loop itself that read no elements."""
    return [node for node in loop.body if isinstance(node, Assign) and effects(node).plain]


def _updating(statement: Statement, sums: list[ColumnSum], names: Names) -> Statement:
    """Return a statement with updates at the end of each iteration, if it is the nest of such sums."""
    own = [item for item in sums if item.nest is statement]
    if not isinstance(statement, For) or not own:
        return statement
    begins = tuple(item.begin for item in own)
    return replace(statement, body=(*begins, *statement.body, *(item.updating(names) for item in own)))
