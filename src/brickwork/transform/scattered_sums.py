"""Sums of what loops add at places that data tells, in a variable of the innermost loops, on grids.

    for p in range(n):                            for p in range(n):
        for o in range(m):                            for i in range(k):
            for i in range(k):             ->             s = 0.0
                y[at[p], i] += g[p, o] * w[o, i]          for o in range(m): s += g[p, o] * w[o, i]
                                                          if 0 < m: y[at[p], i] += s

An element then takes one atomic addition, not one for each `o`, and neighbouring threads add to neighbours. A nest that
adds to several tensors becomes a nest for each such sum, beside what is left. Invariant: each number is added once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.definitions import Definitions
from brickwork.analysis.found_places import divides, is_found, known_outside, searched
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.autodiff.slices import Step, accumulations
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.free_variables import with_body
from brickwork.transform.guard import conjunction
from brickwork.transform.nests_apart import Changed, each_launch, in_branches
from brickwork.transform.scratch import Names, copied, with_variables


@each_launch("grid")
def with_scattered_sums(launch: Launch, names: Names, _: Target) -> Changed | None:
    """Return the launch of the kernel with nests of their own for sums that are scattered."""
    kernel = launch.kernel
    body = _Writer(kernel, names).block(kernel.body)
    return None if body == kernel.body else ((replace(launch, kernel=with_body(kernel, body, kernel.facts)),), {})


@dataclass(frozen=True, slots=True)
class _Sum:
    """The innermost loops of a nest, in which nothing but values stands beside an update.

    Of these, `kept` move the element, and `summed` do not; they have bounds that are known outside of all of them. So
    is the element's place, `at`, and what is `asked` for all terms. `term` are the statements of an iteration, up to
    the `store`; those branches in it that are left may be taken for some terms alone. It is `dear` if loops beside it
    are needed, too.
    """

    loop: For
    kept: tuple[For, ...]
    summed: tuple[For, ...]
    asked: tuple[Expression, ...]
    at: tuple[Expression, ...]
    term: Block
    store: Store
    added: Expression
    dear: bool


class _Writer:
    """Writes the nests of a kernel anew."""

    def __init__(self, kernel: Kernel, names: Names) -> None:
        """Note what is read after each loop."""
        self.live = live_after_loops(kernel.body)
        self.names = names

    def block(self, block: Block) -> Block:
        """Return a block that stands in no loop."""
        return in_branches(block, lambda each: self.nest(each) if isinstance(each, For) else (each,))

    def nest(self, root: For) -> Block:
        """Return a nest as one for each of its scattered sums, and one for what is left."""
        left: tuple[For, ...] = (root,)
        found = list[Statement]()
        for updates in accumulations(root).values() if self.may_be_several(root) else ():
            for place, _ in updates:
                (alone,) = _part(root, place.store, other=False)
                rest = _part(left[0], place.store, other=True)
                total = _sum(alone, searched(alone))
                if total is not None and not (rest and total.dear):
                    (made,) = rewrite_statements(
                        (alone,), lambda item, total=total: self.written(total) if item is total.loop else (item,)
                    )
                    found.append(self.own(made))
                    left = rest
        return (*left, *found)

    @legality
    def may_be_several(self, root: For) -> bool:
        """Whether each update of a nest may be made by a nest of its own: it only adds, and leaves nothing else."""
        does = effects(root)
        leaves = does.stores - accumulations(root).keys() or self.live[root.index] & assigned_symbols(root)
        return does.simple and not leaves

    def written(self, total: _Sum) -> Block:
        """Return loops that add each sum once."""
        store, loc = total.store, total.store.loc
        variable = self.names.symbol(store.tensor.name, total.added.dtype)
        some = self.names.symbol("some", INT64)
        added = build.add(build.read(variable), total.added)
        counted = build.apply("maximum", build.read(some), build.integer(1))
        step = (Assign(symbol=variable, value=added, loc=loc), Assign(symbol=some, value=counted, loc=loc))
        asks = any(isinstance(item, If) for item in total.term)
        step = step if asks else step[:1]
        inside = rewrite_statements(total.term, lambda item: step if item is store else (item,))
        for loop in reversed(total.summed):
            inside = (replace(loop, body=inside, claimed=False),)
        begun = (Assign(symbol=variable, value=build.empty_sum(variable.dtype), loc=loc),)
        begun += (Assign(symbol=some, value=build.integer(0), loc=loc),) if asks else ()
        held = [build.apply("gt", build.read(some), build.integer(0))] if asks else []
        held = held or [build.apply("lt", loop.start, loop.stop) for loop in total.summed]
        body: Block = (*begun, *inside, If(condition=conjunction(held), then=self.update(total, variable), loc=loc))
        if total.asked:
            body = (If(condition=conjunction(total.asked), then=body, loc=loc),)
        for loop in reversed(total.kept):
            body = (replace(loop, body=body),)
        return body

    def own(self, nest: Statement) -> Statement:
        """Return a nest with loops, accesses and variables of its own."""
        mine = copied(nest, self.names)
        indices = {node.index for node in statements(mine) if isinstance(node, For)}
        others = sorted(assigned_symbols(mine) - indices, key=lambda each: each.number)
        return with_variables(mine, {each: self.names.symbol(each.name, each.dtype) for each in others})

    def update(self, total: _Sum, variable: Symbol) -> Block:
        """Return the addition of a sum to its element."""
        store, names = total.store, self.names
        found = [names.symbol(f"{store.tensor.name}_at", INT64) for _ in total.at]
        given = (Assign(symbol=each, value=index, loc=store.loc) for each, index in zip(found, total.at, strict=True))
        place = tuple(map(build.read, found))
        loaded = replace(names.load(store.tensor, *place), loc=store.loc)
        value = build.add(loaded, build.read(variable))
        return (*given, replace(names.store(store.tensor, *place, value), loc=store.loc))


def _part(root: For, update: Store, *, other: bool) -> tuple[For, ...]:
    """Return a nest with an update alone, or with all `other` stores; nothing where there are none."""

    def change(statement: Statement) -> Block:
        gone = isinstance(statement, Store) and (statement.access == update.access) == other
        return () if gone else (statement,)

    found = without_dead(rewrite_statements((root,), change), effects(root).stores)
    return tuple(item for item in found if isinstance(item, For))


def _sum(nest: For, found: frozenset[Symbol]) -> _Sum | None:
    """Return the sum that a nest with one update scatters, if terms of one element stand in loops that move it.

    `found` are the variables that come from elements or floats.
    """
    ((update,),) = accumulations(nest).values()
    place, added = update
    if not is_found(place.store.indices, found):
        return None
    steps, blocks = place.steps, [*(step.before for step in place.steps[1:]), place.before]
    bare = [_is_bare(step, block) for step, block in zip(steps, blocks, strict=True)]
    for first, step in enumerate(steps):
        if isinstance(step.into, For) and all(bare[first:]):
            total = _turned(step.into, steps[first:], blocks[first:], place.store, effects(nest).stores)
            if total is not None:
                dear = any(effects(each.before).loops for each in steps[: first + 1])
                return replace(total, added=added, dear=dear)
    return None


@legality
def _turned(
    root: For, steps: Sequence[Step], blocks: Sequence[Block], store: Store, stored: frozenset[Tensor]
) -> _Sum | None:
    """Return the sum of an update in a nest of loops and values, if some of its loops move the element and some do not.

    Some that do not have to stand around others: nothing is gained else.
    """
    told = _told(steps, blocks, stored, store.indices)
    if told is None:
        return None
    at, loops, asked = told
    kept = _moving(loops, at)
    summed = tuple(loop for loop in loops if loop not in kept)
    indices = frozenset(loop.index for loop in summed)
    bounds = [bound for loop in summed for bound in (loop.start, loop.stop)]
    turned = any(one in summed and other in kept for place, one in enumerate(loops) for other in loops[place:])
    if not turned or read_symbols(bounds) & indices:
        return None
    same = [each if each is not None and not read_symbols(each) & indices else None for each in asked]
    term: Block = (store,)
    for step, block, each in reversed([*zip(steps, blocks, same, strict=True)]):
        term = (*block, *term)
        if isinstance(step.into, If) and each is None:
            term = (replace(step.into, condition=_taken(step, step.into), then=term, otherwise=(), version=""),)
    held = tuple(each for each in same if each is not None)
    return _Sum(root, kept, summed, held, at, term, store, store.value, dear=False)


def _taken(step: Step, branch: If) -> Expression:
    """Return whether a branch leads to where a step does."""
    return branch.condition if step.then else build.apply("logical_not", branch.condition)


@legality
def _is_bare(step: Step, before: Block) -> bool:
    """Whether nothing but values stands beside what a step leads to, and iterations leave nothing for later ones."""
    alone = len(step.inside) == len(before) + 1 and all(isinstance(item, Assign) for item in before)
    carried = live_before(step.inside, NONE) & assigned_symbols(step.inside)
    return alone and not (isinstance(step.into, For) and carried)


def _told(
    steps: Sequence[Step], blocks: Sequence[Block], stored: frozenset[Tensor], place: Sequence[Expression]
) -> tuple[tuple[Expression, ...], tuple[For, ...], list[Expression | None]] | None:
    """Return an element's place, the loops on the way to it, and what branches ask, in terms of what is known outside.

    What branches ask is None for loops, and where it is not known. Nothing where the place or a bound is not known.
    """
    indices = {step.into.index for step in steps if isinstance(step.into, For)}
    known = Definitions(assigned_symbols(steps[0].into) - indices, stored)
    loops, asked = list[For](), list[Expression | None]()
    for step, block in zip(steps, blocks, strict=True):
        match step.into:
            case For(start=start, stop=stop):
                ends = known_outside((start, stop), known)
                if ends is None or effects(ends).loads:
                    return None
                loops.append(replace(step.into, start=ends[0], stop=ends[1]))
                asked.append(None)
            case If(condition=condition):
                value = known.value(condition)
                plain = value is not None and effects(value).plain and not any(map(divides, walk(value)))
                given = value if step.then or value is None else build.apply("logical_not", value)
                asked.append(given if plain else None)
        known = known.inside(step.into)
        for statement in block:
            known = known.after(statement)
    found = known_outside(place, known)
    return None if found is None else (found, tuple(loops), asked)


def _moving(loops: Sequence[For], place: Sequence[Expression]) -> tuple[For, ...]:
    """Return the loops that move an element, and those that say how long these are."""
    moving, kept = read_symbols(place), list[For]()
    for loop in reversed(loops):
        if loop.index in moving:
            moving |= read_symbols((loop.start, loop.stop))
            kept.insert(0, loop)
    return tuple(kept)
