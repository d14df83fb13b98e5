"""Finds the iteration whose value is the least or greatest, so that a gradient goes there and nowhere else.

    for j in range(n):                        found, place = m, n
        m = max(m, x[i, j])       ->          for j in range(n):
                                                  if x[i, j] > found: found, place = x[i, j], j
                                              if 0 <= place < n: m = x[i, place]

The loop left is a search (`analysis/searches.py`), which has no derivative, instead of one that is run backwards with a
tape. A comparison that takes equal values keeps the last place. NaN is never taken, so that it has no place. Where a
result tells the place, nothing is left of the loop (`saved_places.py`), whatever is chosen.

Branches may stand around what is compared, and two loops over a window, one in the other, are taken as one.
What stands at a place of a window that slides (`x[i + p, j + q]`) is read by a loop over all places, which adds zeros
at the others: so each element's gradient is a sum over windows. Those of other windows that overlap would be added to
at places that nothing tells beforehand. Invariant: every variable has the same value afterwards, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.scalars import live_before
from brickwork.analysis.searches import MIRRORED, without_numbers
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Local,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    NodeType,
    assigned_symbols,
    read_symbols,
    rewrite,
    rewrite_statements,
    statements,
    walk,
    with_blocks,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.saved_places import SavedPlaces
from brickwork.transform.autodiff.window_elements import is_alone, is_of, slides
from brickwork.transform.distribute import distribute
from brickwork.transform.promote import promote
from brickwork.transform.scratch import Names, with_variables
from brickwork.transform.unguarded_analysis import unguarded_analysis

_TAKEN = {"minimum": "lt", "maximum": "gt"}


def choose_extremes(
    block: Block, active: Collection[Symbol | Tensor], names: Names, saved: SavedPlaces | None = None
) -> Block:
    """Return the block with the least and greatest values in `active` found by their places, which may be `saved`."""
    finder = _Finder(frozenset(active), names, _read_elsewhere(block), saved)
    return tuple(_block(block, finder, ()))


def extremes_apart(
    kernel: Kernel, active: Callable[[Block], Collection[Symbol | Tensor]], names: Names
) -> tuple[Kernel, tuple[Expression, ...]]:
    """Return the kernel with extremes of elements that their loops store in loops of their own, and what that assumes.

    Of `h[j + 1] = f(h[j]); best = max(best, h[j + 1])` the second is a loop after that over the first: a search. An
    element that keeps an extreme while a loop runs is in a variable first.
    """
    kernel = _in_variables(kernel, active(kernel.body), names)
    changed = {
        item.best
        for loop in statements(kernel.body)
        if isinstance(loop, For)
        for node in loop.body
        if (item := _extreme(node)) is not None and effects(node).loads & effects(loop).stores
    }
    if kernel.may_alias or not changed.intersection(active(kernel.body)):
        return kernel, ()

    def is_extreme(block: Block) -> bool:
        return not effects(block).stores and any(
            isinstance(node, Assign | If) and (item := _extreme(node)) is not None and item.best in changed
            for node in statements(block)
        )

    analysis = unguarded_analysis(kernel)
    apart = distribute(kernel, analysis, alone=is_extreme, numbers=names.symbols)
    return apart, () if apart is kernel else analysis.assumptions


def _in_variables(kernel: Kernel, active: Collection[Symbol | Tensor], names: Names) -> Kernel:
    """Return the kernel with elements in variables that keep extremes of what loops compute, while a loop runs.

    Of what is read, or nearly so, `element_extremes` finds the places.
    """

    def is_extreme(loop: For, tensor: Tensor) -> bool:
        operator = update_operator(loop, tensor) if tensor in active and effects(loop.body).loops else None
        inside = any(isinstance(item, For) and tensor in effects(item).stores for item in loop.body)
        return operator is not None and operator.name in _TAKEN and not inside

    return promote(kernel, numbers=names.symbols, only=is_extreme)


def _block(block: Block, finder: _Finder, around: tuple[Symbol, ...]) -> Iterator[Statement]:
    for number, statement in enumerate(block):
        match statement:
            case If():
                yield with_blocks(statement, lambda part: _block(part, finder, around))
            case For(index=index, body=body):
                inner = (*around, index)
                whole = finder.collapsed(statement, inner)
                if whole is not None:
                    yield from whole
                    continue
                own = replace(statement, body=tuple(_block(body, finder, inner))) if effects(body).loops else statement
                yield from finder.loop(own, inner, block[number + 1 :])
            case _:
                yield statement


@dataclass(frozen=True, slots=True)
class _Extreme:
    """`best` becomes `value` where `value <compare> best`, and in all branches that stand around it.

    `statement` is the outermost of the branches, `own` what stands in them.
    """

    statement: Statement
    own: Statement
    best: Symbol
    value: Expression
    compare: str
    guards: tuple[If, ...] = ()

    @property
    def inside(self) -> tuple[Assign, ...]:
        """What the branches assign first."""
        return tuple(node for guard in self.guards for node in guard.then[:-1] if isinstance(node, Assign))

    @property
    def conditions(self) -> tuple[Expression, ...]:
        """When the value counts."""
        return tuple(guard.condition for guard in self.guards)

    @property
    def first(self) -> bool:
        """Whether of equal values the first is kept."""
        return self.compare in {"lt", "gt"}

    def noting(self, place: Symbol, index: Expression) -> Block:
        """Return the statement with the index of the iteration noted beside the value."""
        noted = Assign(symbol=place, value=index, loc=self.own.loc)
        if isinstance(self.own, If):
            return _within(self.guards, (replace(self.own, then=(*self.own.then, noted)),))
        better = build.apply(self.compare, self.value, build.read(self.best), loc=self.own.loc)
        kept = Assign(symbol=self.best, value=self.value, loc=self.own.loc)
        return _within(self.guards, (If(condition=better, then=(kept, noted), loc=self.own.loc),))


class _Form(Enum):
    """How what stands at a place is read."""

    DIRECT = "at an index that nothing tells beforehand"
    SUMMED = "by a loop over all places, which adds zeros at the others"


@dataclass(frozen=True, slots=True)
class _Finder:
    """Rewrites the loops that keep a least or greatest value through which gradients pass."""

    active: frozenset[Symbol | Tensor]
    names: Names
    elsewhere: frozenset[Tensor]
    results: SavedPlaces | None

    def loop(self, loop: For, around: Sequence[Symbol], after: Block = ()) -> Iterator[Statement]:
        """Yield a loop in which active extremes are not, and what finds their places.

        `after` are the statements that follow it.
        """
        found = [item for item in map(_extreme, loop.body) if item is not None and item.best in self.active]
        kept = {item.best: ahead for item in found if (ahead := self.ahead(loop, item)) is not None}
        found = [item for item in found if item.best in kept]
        forms = {item.best: self.form(loop, item, kept[item.best], around) for item in found}
        apart = (item for item in found if forms[item.best] is not _Form.SUMMED)
        told = {item.best: place for item in apart if (place := self.told(loop, item, after)) is not None}
        fresh = {item.best: self.names.symbol(item.best.name, item.best.dtype) for item in found}
        places = {item.best: self.names.symbol(f"{loop.index.name}_place", INT64) for item in found}
        for item in found:
            yield Assign(symbol=fresh[item.best], value=build.read(item.best), loc=loop.loc)
            if item.best not in told:
                yield Assign(symbol=places[item.best], value=_outside(loop, item), loc=loop.loc)
        looked = (item for item in found if item.best not in told)
        noting = {item.statement: item.noting(places[item.best], build.read(loop.index)) for item in looked}
        body = tuple(inner for node in loop.body for inner in noting.get(node, (node,)))
        yield with_variables(replace(loop, body=body), fresh)
        for item in found:
            if item.best in told:
                yield Assign(symbol=places[item.best], value=told[item.best], loc=loop.loc)
            yield from self.place(
                loop,
                item,
                kept[item.best],
                places[item.best],
                summed=forms[item.best] is _Form.SUMMED,
                told=item.best in told,
            )

    def told(self, loop: For, item: _Extreme, after: Block) -> Expression | None:
        """Return what a result tells of the place of an extreme."""
        if self.results is None or not isinstance(item.own, If):
            return None
        return self.results.of(loop, item.own.then, after)

    def collapsed(self, outer: For, around: Sequence[Symbol]) -> tuple[Statement, ...] | None:
        """Return two loops over a window, one in the other, run as one, with the extremes in it found by their places.

        None where there are none.
        """
        *ahead, inner = outer.body or (None,)
        if not isinstance(inner, For) or effects(inner.body).loops:
            return None
        changing = {outer.index, *assigned_symbols(tuple(ahead))}
        bounds = (outer.start, outer.stop, inner.start, inner.stop)
        if not all(isinstance(node, Assign) for node in ahead) or read_symbols(bounds) & changing:
            return None
        if not any(map(_extreme, inner.body)):
            return None
        place = self.names.symbol(f"{outer.index.name}_{inner.index.name}", INT64)
        lengths = [build.iterations(loop.start, loop.stop) for loop in (outer, inner)]
        divisor = build.apply("maximum", lengths[1], build.integer(1))
        down = build.apply("floordiv", build.read(place), divisor)
        right = build.apply("mod", build.read(place), divisor)
        whole = For(
            index=place,
            start=build.integer(0),
            stop=build.mul(lengths[0], lengths[1]),
            body=(
                Assign(symbol=outer.index, value=build.add(outer.start, down), loc=outer.loc),
                Assign(symbol=inner.index, value=build.add(inner.start, right), loc=inner.loc),
                *(node for node in ahead),
                *inner.body,
            ),
            loc=outer.loc,
        )
        found = tuple(self.loop(whole, (*around[:-1], place)))
        if len(found) == 1:
            return None
        return tuple(_reopened(item, outer, inner, divisor) if isinstance(item, For) else item for item in found)

    def ahead(self, loop: For, item: _Extreme) -> Block | None:
        """Return the assignments, branches and loops of such, that lead to a value; None if its place is of no use."""
        changing = assigned_symbols(loop.body)
        bounds = (loop.start, loop.stop)
        others = tuple(node for node in loop.body if node is not item.statement)
        branch = item.own.then if isinstance(item.own, If) else ()
        noted = [node for node in branch if not _assigns(node, item.best)]
        guarded = (*item.conditions, *item.inside)
        if item.best in assigned_symbols(others) | read_symbols((*others, item.value, *noted, *guarded, *bounds)):
            return None
        if effects(loop.body).jumps:
            return None
        ahead: list[Statement] = []
        needed = read_symbols((*guarded, item.value)) & changing - {node.symbol for node in item.inside}
        for node in reversed(loop.body[: loop.body.index(item.statement)]):
            if not needed & assigned_symbols(node):
                continue
            if not _only_assigns(node):
                return None
            ahead.insert(0, node)
            needed = live_before((node,), needed) & changing
        read = (*ahead, *item.inside, *item.conditions, item.value)
        stored = {node.tensor for node in statements(loop.body) if isinstance(node, Store | Local)}
        if needed or effects(read).draws:
            return None
        loads = [node for node in walk(read) if isinstance(node, Load)]
        moving = {loop.index} | {node.symbol for node in statements(ahead) if isinstance(node, Assign)}
        placed = (node.tensor for node in loads if read_symbols(node.indices) & moving)
        if effects(ahead).loops and self.active & self.elsewhere & {*placed}:
            return None
        return None if any(node.tensor in stored for node in loads) else tuple(ahead)

    def form(self, loop: For, item: _Extreme, ahead: Block, around: Sequence[Symbol]) -> _Form:
        """Return how what stands at the place of a value is read.

        It is added up only where all variables of it are assigned once, and in no branch.
        """
        chosen = self.chosen(item, ahead)
        alone = [node for node in chosen if is_alone(node, loop, around)]
        if len(alone) == len(chosen):
            return _Form.DIRECT
        assigned = [node for node in (*ahead, *item.inside) if isinstance(node, Assign)]
        values = {node.symbol: node.value for node in assigned}
        once = len(values) == len(assigned) == len(ahead) + len(item.inside)
        sliding = [node for node in chosen if once and slides(node, values, around)]
        if sliding and all(node in alone or node in sliding or is_of(node, values, around) for node in chosen):
            return _Form.SUMMED
        return _Form.DIRECT

    def chosen(self, item: _Extreme, ahead: Block) -> list[Load]:
        """Return the active elements that a value is made of."""
        read = (*ahead, *item.inside, item.value)
        return [node for node in walk(read) if isinstance(node, Load) and node.tensor in self.active]

    def place(
        self, loop: For, item: _Extreme, ahead: Block, place: Symbol, *, summed: bool, told: bool
    ) -> Iterator[Statement]:
        """Yield the assignment of what stands at the place of a value.

        Where a result has `told` the place, the value is compared once more: nothing may have been found.
        """
        inside = build.apply(
            "logical_and",
            build.apply("le", loop.start, build.read(place)),
            build.apply("lt", build.read(place), loop.stop),
        )
        if summed:
            yield from self.summed(loop, item, ahead, place, inside)
        else:
            again, guards, hit = self.copy(loop, item, ahead, place)
            then = (*again, *_within(guards, (hit,)))
            then = self.if_better(loop, item, ahead, place, then) if told else then
            yield If(condition=inside, then=then, loc=loop.loc)

    def if_better(self, loop: For, item: _Extreme, ahead: Block, place: Symbol, then: Block) -> Block:
        """Return a block in a branch that is taken if what stands at a place is better than the value before.

        Both compute that value: where the branch is not taken, it has no adjoint, which might be 0 times infinity.
        """
        again, guards, hit = self.copy(loop, item, ahead, place)
        better = build.apply(item.compare, hit.value, build.read(item.best), loc=hit.loc)
        if not guards:
            return (*again, If(condition=better, then=then, loc=hit.loc))
        found = self.names.symbol("found", BOOL)
        none = Assign(symbol=found, value=build.constant(False, BOOL), loc=hit.loc)
        noted = _within(guards, (replace(none, value=better),))
        return (none, *again, *noted, If(condition=build.read(found), then=then, loc=hit.loc))

    def summed(self, loop: For, item: _Extreme, ahead: Block, place: Symbol, inside: Expression) -> Iterator[Statement]:
        """Yield a loop that adds up what stands at a place and zeros: its gradients have a gather form.

        Adding to -0.0 leaves every number as it is.
        """
        index = self.names.symbol(loop.index.name, INT64)
        chosen = self.names.symbol(item.best.name, item.best.dtype)
        zero = build.constant(-0.0, item.best.dtype)
        again, guards, hit = self.copy(loop, item, ahead, index)
        here = build.apply("eq", build.read(index), build.read(place))
        total = build.add(build.read(chosen), build.select(here, hit.value, zero))
        yield Assign(symbol=chosen, value=zero, loc=loop.loc)
        added = _within(guards, (Assign(symbol=chosen, value=total, loc=hit.loc),))
        yield replace(loop, index=index, body=(*again, *added))
        yield If(condition=inside, then=(replace(hit, value=build.read(chosen)),), loc=loop.loc)

    def copy(self, loop: For, item: _Extreme, ahead: Block, index: Symbol) -> tuple[Block, tuple[If, ...], Assign]:
        """Return what leads to a value in an iteration, the branches around it, and what assigns it its best variable.

        They have accesses and variables of their own.
        """
        assigned = sorted(assigned_symbols((*ahead, *item.inside)), key=lambda symbol: symbol.number)
        fresh = {symbol: self.names.symbol(symbol.name, symbol.dtype) for symbol in assigned}
        end = Assign(symbol=item.best, value=item.value, loc=item.own.loc)

        def visit(node: Node) -> Node:
            match node:
                case Load():
                    return replace(node, access=next(self.names.accesses))
                case Read(symbol=symbol) if symbol == loop.index:
                    return replace(node, symbol=index)
                case _:
                    return node

        def own(node: NodeType) -> NodeType:
            return rewrite(with_variables(node, fresh), visit)

        bare = (replace(guard, then=guard.then[:-1]) for guard in item.guards)
        guards = (own(guard) for guard in bare)
        return tuple(map(own, ahead)), tuple(replace(guard, then=(*guard.then, end)) for guard in guards), own(end)


@legality
def _only_assigns(statement: Statement) -> bool:
    """Whether a statement is an assignment, or branches and loops of such."""
    match statement:
        case Assign():
            return True
        case If(then=then, otherwise=otherwise):
            return all(map(_only_assigns, (*then, *otherwise)))
        case For(body=body):
            return all(map(_only_assigns, body))
        case _:
            return False


def _read_elsewhere(block: Block) -> frozenset[Tensor]:
    """Return the tensors that loops without extremes read at their indices: their gradients have a gather form.

    They would have none with what is added at the place of an extreme.
    """

    def without(statement: Statement) -> Block:
        return () if isinstance(statement, For) and any(map(_extreme, statement.body)) else (statement,)

    indices = {loop.index for loop in statements(block) if isinstance(loop, For)}
    loads = (node for node in walk(rewrite_statements(block, without)) if isinstance(node, Load))
    return frozenset(node.tensor for node in loads if read_symbols(node.indices) <= indices)


def _outside(loop: For, item: _Extreme) -> Expression:
    """Return the place of a value that no iteration has."""
    return loop.stop if item.first else build.sub(loop.start, build.integer(1))


def _within(guards: Sequence[If], block: Block) -> Block:
    """Return a block in branches, in place of the last statement of the innermost."""
    for guard in reversed(guards):
        block = (replace(guard, then=(*guard.then[:-1], *block)),)
    return block


def _reopened(loop: For, outer: For, inner: For, length: Expression) -> For:
    """Return a loop over a window as two again, whose indices it begins with: so it needs no divisions."""
    match loop.body:
        case (Assign(symbol=down), Assign(symbol=right), *rest):
            offsets = (
                build.sub(build.read(symbol), around.start) for symbol, around in ((down, outer), (right, inner))
            )
            first, second = offsets
            place = Assign(symbol=loop.index, value=build.add(build.mul(first, length), second), loc=loop.loc)
            body = For(index=right, start=inner.start, stop=inner.stop, body=(place, *rest), loc=inner.loc)
            return replace(loop, index=down, start=outer.start, stop=outer.stop, body=(body,))
        case _:
            raise TypeError("the loop begins with the indices of those that it stands for")


# ---------------------------------------------------------------- what is one


def _extreme(statement: Statement) -> _Extreme | None:
    """Return the least or greatest value that a statement goes on with, if it does."""
    match statement:
        case Assign(symbol=best, value=Apply(operator=operator, operands=(Read(symbol=symbol), value))) if (
            operator.name in _TAKEN and symbol == best
        ):
            return _Extreme(statement, statement, best, value, _TAKEN[operator.name])
        case If(condition=Apply(operator=operator, operands=(left, right)), then=then, otherwise=()) if (
            operator.name in MIRRORED
        ):
            for compare, value, best in ((operator.name, left, right), (MIRRORED[operator.name], right, left)):
                if isinstance(best, Read) and _is_taken(then, best.symbol, value):
                    return _Extreme(statement, statement, best.symbol, value, compare)
            return _guarded(statement)
        case If(otherwise=()):
            return _guarded(statement)
        case _:
            return None


def _guarded(statement: If) -> _Extreme | None:
    """Return the extreme that stands last in a branch, if there are only assignments before it."""
    *first, last = statement.then or (None,)
    found = None if last is None else _extreme(last)
    if found is None or not all(isinstance(node, Assign) for node in first):
        return None
    return replace(found, statement=statement, guards=(statement, *found.guards))


def _assigns(statement: Statement, symbol: Symbol) -> bool:
    return isinstance(statement, Assign) and statement.symbol == symbol


@legality
def _is_taken(then: Block, best: Symbol, value: Expression) -> bool:
    """Whether a branch gives a variable a value, and reads it nowhere."""
    assigned = [node for node in statements(then) if isinstance(node, Assign) and node.symbol == best]
    direct = len(assigned) == 1 and assigned[0] in then
    same = direct and without_numbers(assigned[0].value) == without_numbers(value)
    return same and not read_symbols(value) & assigned_symbols(then)
