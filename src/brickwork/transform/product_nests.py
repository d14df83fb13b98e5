"""Nests that add products to elements, with conditions and partial sums between their loops, as perfect nests.

    for t ...:                                         for t ...: for j ...: for k ...:
        at = i + t - 1                                     if i + t >= 1 and i + t - 1 < n:
        if at >= 0 and at < n:                                 y[i, j] += x[i + t - 1, k] * w[t, k, j]
            for j ...:                           ->
                s = 0.0
                for k ...: s += x[at, k] * w[t, k, j]
                y[i, j] += s

Such nests may have their loops in any order, and so are contractions. Invariant: elements get the same terms; where
partial sums were added, in the order in which these took them. It is chosen where sizes are worth tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import SUMMED, accumulation
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Launch,
    Load,
    Read,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, substitute
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.guard import conjunction
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import (
    Apart,
    Changed,
    Place,
    each_launch,
    in_branches,
    launches,
    stands_alone,
    worth_tiles,
)
from brickwork.transform.scratch import Names, copied

APART = "_products"
"""Ends the names of kernels with such nests."""
REMARK = "where sums of products are worth tiles, in any order of the loops"
"""What `explain` says of them."""


@each_launch("matrix")
def with_product_nests(launch: Launch, names: Names, _: Target) -> Changed:
    """Return launches of a kernel's nests, and of such nests in their place where that is worth it, and remarks."""
    kernel = launch.kernel
    fixed, live = frozenset(kernel.scalars) - assigned_symbols(kernel.body), live_after_loops(kernel.body)
    return launches(launch, [_perfect(item, fixed, live, names) for item in kernel.body], APART, REMARK)


def _perfect(
    statement: Statement, fixed: frozenset[Symbol], live: Mapping[Symbol, frozenset[Symbol]], names: Names
) -> Apart | None:
    """Return nests, which may stand in conditions, as perfect ones that are contractions; None if there are none."""
    worth: list[Expression] = []

    def visit(statement: Statement) -> Block:
        alone = isinstance(statement, For) and stands_alone(statement, live[statement.index])
        found = _product_nest((statement,), {}) if alone else None
        if found is None or not found.parted or (needed := found.worth(fixed)) is None:
            return (statement,)
        worth.extend(needed)
        return (copied(found.nest(), names),)

    nests = in_branches((statement,), visit)
    return Apart(nests, (), tuple(worth)) if worth else None


@dataclass(frozen=True, slots=True)
class _ProductNest:
    """Loops, outermost first, the conditions under which something is added to an element, and the store that does.

    Something may stand `between` two loops, which is in the way of other orders if they are `parted` then: by a
    condition, or where a loop around is one of the sum. Of loops that are `filled` there must be an iteration.
    """

    loops: tuple[For, ...]
    conditions: tuple[Expression, ...]
    store: Store
    element: Load
    added: Expression
    between: bool = False
    parted: bool = False
    filled: tuple[For, ...] = ()

    def around(self, loop: For, *, between: bool) -> _ProductNest:
        """Return what a loop adds; something may stand between it and the next one."""
        between = self.between or between
        parted = self.parted or (between and loop.index not in read_symbols(self.store.indices))
        return replace(self, loops=(loop, *self.loops), between=between, parted=parted)

    def nest(self) -> Statement:
        """Return the loops, directly in one another."""
        return self.inside(replace(self.store, value=build.add(self.element, self.added)), self.loops)

    def inside(self, statement: Statement, loops: Sequence[For]) -> Statement:
        """Return a statement under the conditions, in some loops."""
        if self.conditions:
            statement = If(condition=conjunction(dict.fromkeys(self.conditions)), then=(statement,))
        for loop in reversed(loops):
            statement = replace(loop, body=(statement,))
        return statement

    def worth(self, fixed: frozenset[Symbol]) -> tuple[Expression, ...] | None:
        """Return what must hold so that the sum is worth tiles; None if it is no contraction."""
        own = read_symbols(self.store.indices)
        place = Place((), Ranges(fixed))
        for loop in self.loops:
            place = place.inside(loop)
        total = Symbol("total", -1, self.added.dtype)
        term = Assign(symbol=total, value=build.add(build.read(total), self.added))
        only = self.inside(term, [loop for loop in self.loops if loop.index not in own])
        rows = tuple(loop for loop in self.loops if loop.index in own)
        worth = worth_tiles((), only, Place(rows, place.ranges)) if isinstance(only, For) else None
        if worth is None or any(read_symbols((loop.start, loop.stop)) - fixed for loop in self.filled):
            return None
        return (*worth, *(build.apply("lt", loop.start, loop.stop) for loop in self.filled))


@legality
def _product_nest(block: Block, known: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a block adds to an element; None if it does anything else, or what stands in it must stay there.

    That are conditions and bounds that read elements: these may be out of range where conditions around do not hold.
    `known` are variables that were assigned before.
    """
    values = {**known}
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=symbol, value=value):
                if (whole := _partial(block[place:], values)) is not None:
                    return whole
                values[symbol] = substitute(value, values)
                if effects(value).loads:
                    found = _product_nest(block[place + 1 :], values)
                    # What is read here would not be where no iteration of a loop in it runs.
                    if found is None or found.conditions:
                        return None
                    return replace(found, filled=(*found.filled, *found.loops))
            case If(condition=condition, then=then, otherwise=()) if place + 1 == len(block):
                asked, found = substitute(condition, values), _product_nest(then, values)
                if found is None or not is_simple(asked):
                    return None
                return replace(found, conditions=(asked, *found.conditions), parted=bool(found.loops))
            case For(start=start, stop=stop, body=body) if place + 1 == len(block):
                if live_before(body, NONE) & assigned_symbols(body):
                    return None  # a variable that passes between iterations is not worth what it was before the loop
                loop = replace(statement, start=substitute(start, values), stop=substitute(stop, values))
                found = _product_nest(body, values) if is_simple(loop.start) and is_simple(loop.stop) else None
                return None if found is None else found.around(loop, between=not isinstance(body[0], For | Store))
            case Store() if place + 1 == len(block):
                return _added(statement, values)
            case _:
                return None
    return None


@legality
def _partial(block: Block, values: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a block adds to an element that adds up a sum of its own first: the terms of that."""
    match block:
        case (Assign(symbol=symbol, value=Constant(value=0)), total, Store() as store) if symbol.dtype in SUMMED:
            values = {each: value for each, value in values.items() if each not in assigned_symbols(total)}
            summed, added = accumulation(substitute(total, values)), _added(store, values)
        case _:
            return None
    if summed is None or added is None or added.added != Read(symbol=symbol):
        return None
    loops, own, term, masks = summed
    simple = all(map(is_simple, (*masks, *(bound for loop in loops for bound in (loop.start, loop.stop)))))
    if own != symbol or not simple or _reads_ahead((total,)) or added.store.tensor in effects((term, *masks)).loads:
        return None
    return replace(added, loops=loops, conditions=masks, added=term, between=True)


@legality
def _reads_ahead(block: Block) -> bool:
    """Whether a sum reads elements before a loop, or a condition, in it, which would not be read without iterations."""
    *heads, last = block
    inner = last.body if isinstance(last, For) else last.then if isinstance(last, If) else ()
    return bool(inner) and (bool(effects(heads).loads) or _reads_ahead(inner))


@legality
def _added(store: Store, values: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a store adds to its element, in terms of loops and elements; None if it does anything else."""
    store = substitute(store, values)
    match store.value:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "add" and store.combine is None:
            for element, other in ((left, right), (right, left)):
                if not isinstance(element, Load) or (element.tensor, element.indices) != (store.tensor, store.indices):
                    continue
                alone = all(map(is_simple, store.indices)) and store.tensor not in effects(other).loads
                if alone and store.tensor.type.dtype in SUMMED:
                    return _ProductNest((), (), store, element, other)
        case _:
            pass
    return None
