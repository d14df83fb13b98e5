"""Sums that are scaled anew whenever a running maximum rises: the maximum first, then the sums, on a grid.

    for j in range(n):                            for j in range(n):
        s = ...                                       s = ...; kept[i, j] = s
        new = max(m, s)                               m = max(m, s)
        c, p = exp(m - new), exp(s - new)     ->  for j in range(n):
        z = z * c + p                                 p = exp(kept[i, j] - m)
        for d: o[d] = o[d] * c + p * v[j, d]          z = z + p
        m = new                                       for d: o[d] = o[d] + p * v[j, d]

Attention and cross-entropy are written so, where a row's scores are not kept. An iteration waits for the one before
it; the maximum and the sums do not. What the sums begin with is scaled by `exp(before - m)`, but for zeros.
Invariant: maxima are the same, and sums are but for rounding: each term is scaled once, by all scales together. Where
the first values of a row are -inf, as the maximum is before, that has the NaN of -inf - -inf, and this has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from brickwork.analysis.products import terms_of
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Launch,
    Load,
    Node,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import NodeType, assigned_symbols, operands_of, read_symbols, rewrite, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.nest_parts import NestCutter, asked
from brickwork.transform.nests_apart import Changed, Place, each_launch, launches
from brickwork.transform.scratch import Names, copied

APART = "_maxima"
"""Ends the name of a kernel that takes maxima first."""
REMARK = "where there is room for what a maximum is taken of: sums that follow it are not scaled in each step"
"""What `explain` says of it."""
_POWERS = frozenset({"exp", "exp2"})
_Power = tuple[str, tuple[Expression, ...]]


@each_launch("matrix")
def with_running_extremes(launch: Launch, names: Names, target: Target) -> Changed:
    """Return launches of a kernel's nests with maxima taken before the sums that go with them, and remarks."""
    kernel = launch.kernel
    if not any(isinstance(node, Apply) and node.operator.name == "maximum" for node in walk(kernel.body)):
        return (launch,), {}
    found = _Cutter.of(kernel, names, target).all_cut(kernel.body)
    return launches(launch, found, APART, REMARK, most=target.scratch_bytes)


@dataclass(slots=True)
class _Cutter(NestCutter):
    """Takes maxima first in the nests of one kernel."""

    def nests(self, statement: Statement) -> Block:
        """Return a nest with its loops changed."""
        if not isinstance(statement, For):
            return (statement,)
        changed = self.inside(statement, Place((), self.known))
        return (statement,) if changed is statement else (copied(changed, self.names),)

    def inside(self, loop: For, place: Place) -> For:
        """Return a loop with those in it changed."""
        place, body = place.inside(loop), list[Statement]()
        for number, item in enumerate(loop.body):
            match item:
                case For() if (found := _running(item, self.live[item.index])) is not None:
                    body += self.written(found, loop.body[:number], place)
                case For():
                    body.append(self.inside(item, place))
                case _:
                    body.append(item)
        same = len(body) == len(loop.body) and all(one is other for one, other in zip(body, loop.body, strict=True))
        return loop if same else replace(loop, body=tuple(body))

    def written(self, found: _Running, before: Block, place: Place) -> Block:
        """Return a loop as one for the maximum and one for the sums, and what scales what they begin with."""
        most, old = build.read(found.most.symbol), self.names.symbol(found.most.symbol.name, found.most.new.dtype)
        value, given = found.most.value, found.most.value
        first, last = [*found.ahead], list[Statement]()
        if found.ahead:
            sizes, indices = self.elements(place.inside(found.loop), frozenset())
            tensor, made = self.names.tensor("score_kept", value.dtype, *sizes)
            self.kept.append(made)
            score, again = (self.names.symbol("score", value.dtype) for _ in range(2))
            first.append(Assign(symbol=score, value=value))
            value, given = build.read(score), build.read(again)
            first.append(replace(self.names.store(tensor, *indices, value), loc=found.loop.loc))
            last.append(Assign(symbol=again, value=self.names.load(tensor, *indices)))
        first.append(Assign(symbol=most.symbol, value=build.apply("maximum", most, value)))
        scaled = [item for item in found.updates if item.scale is not None and not item.begins_with_zero(before)]
        rises, one = build.apply("gt", most, build.read(old)), build.constant(1.0, old.dtype)
        steps = [
            item.inside(
                item.stored(
                    build.mul(item.own, build.select(rises, found.most.between(item.scale, build.read(old)), one))
                )
            )
            for item in scaled
            if item.scale is not None
        ]
        keeps = (Assign(symbol=old, value=most),) if scaled else ()
        sums = (self.summed(item, found, tuple(last), given) for item in found.updates if item.terms)
        others = self.beside(found, tuple(last), given)
        return (*keeps, *(copied(item, self.names) for item in (found.over(first), *steps, *others, *sums)))

    def summed(self, update: _Update, found: _Running, ahead: Block, given: Expression) -> Statement:
        """Return the loops that add up a sum: inside of those of its elements, in a variable."""
        own, terms = update.own, (found.most.final(term, given) for term in update.terms)
        total = own if isinstance(own, Read) else build.read(self.names.symbol(own.tensor.name, own.dtype))
        loop = found.over((*ahead, Assign(symbol=total.symbol, value=reduce(build.add, terms, total), loc=own.loc)))
        if isinstance(own, Read):
            return loop
        first = Assign(symbol=total.symbol, value=own, loc=own.loc)
        return update.inside(first, loop, update.stored(total))

    def beside(self, found: _Running, ahead: Block, given: Expression) -> Iterator[Statement]:
        """Yield what an iteration does else, in a loop of its own: of one iteration where that is asked for."""
        others = tuple(found.most.with_value(item, given) for item in found.others)
        own = build.read(found.loop.index)
        match others:
            case ():
                return
            case (If(condition=Apply(operator=operator, operands=operands), then=then, otherwise=()),) if (
                operator.name == "eq" and own in operands and found.condition is None
            ):
                moving, places = assigned_symbols((*ahead, *then)), [item for item in operands if item != own]
                fixed = effects(places).reads.isdisjoint(moving) and effects(places).loads.isdisjoint(
                    effects(then).changes
                )
                if len(places) == 1 and fixed and found.loop.index not in read_symbols(places):
                    place = self.names.symbol("place", INT64)
                    start = build.apply("maximum", found.loop.start, build.read(place))
                    stop = build.apply("minimum", found.loop.stop, build.add(build.read(place), build.integer(1)))
                    once = replace(found.loop, start=start, stop=stop, body=(*ahead, *then))
                    asked = build.apply("lt", found.loop.start, found.loop.stop)
                    yield If(condition=asked, then=(Assign(symbol=place, value=places[0]), once), loc=once.loc)
                    return
            case _:
                pass
        yield found.over((*ahead, *others))


def _where(condition: Expression | None, body: Block) -> Block:
    return body if condition is None else (If(condition=condition, then=body),)


# ---------------------------------------------------------------- what is recognised


@legality
def _running(loop: For, live: frozenset[Symbol]) -> _Running | None:
    """Return the running maximum of a loop, if all else that passes from one iteration to the next goes with it."""
    condition, body = asked(tuple(rewrite(item, _unnumbered) for item in loop.body))
    found, own = effects(body), assigned_symbols(body)
    carried = live_before(body, live) & own
    if found.draws or found.fails or found.leaves or found.rebinds or found.declares or (live & own) - carried:
        return None
    values, inside = _values(body), assigned_symbols(item for item in body if not isinstance(item, Assign))
    for symbol in sorted(carried & values.keys() - inside, key=lambda item: item.number):
        match values[symbol]:
            # The maximum of a number and NaN is the first of the two.
            case Apply(operator=operator, operands=(left, right)) as new if operator.name == "maximum" and (
                left == build.read(symbol)
            ):
                if (running := _of(loop, condition, body, _Maximum(symbol, right, new), carried)) is not None:
                    return running
            case _:
                pass
    return None


def _unnumbered(node: Node) -> Node:
    """Return a read of an element that is equal to others of it: none is used where one of its tensor changes."""
    return replace(node, access=-1) if isinstance(node, Load) else node


def _values(body: Block) -> dict[Symbol, Expression]:
    """Return what variables are worth after a body, in terms of what they were before, or of what loops leave in them.

    Nothing where what a loop leaves has no name, as it is assigned anew.
    """
    values, left = dict[Symbol, Expression](), set[Symbol]()
    for statement in body:
        if isinstance(statement, Assign):
            values[statement.symbol] = substitute(statement.value, values)
            continue
        own = assigned_symbols(statement)
        if own & left or any(read_symbols(value) & own for symbol, value in values.items() if symbol not in own):
            return {}
        left |= own
        values |= {symbol: build.read(symbol) for symbol in own}
    return values


_Parts: TypeAlias = tuple[Expression | None, tuple[Expression, ...], tuple[Expression, ...], _Power]
"""The scale of a sum, its terms, what these have as factors and divisors beside their powers, and the power of all."""


@dataclass(frozen=True, slots=True)
class _Maximum:
    """A running maximum: the variable before an iteration, what it is taken of, and what it is afterwards."""

    symbol: Symbol
    value: Expression
    new: Expression

    @legality
    def power(self, expression: Expression, over: Expression) -> _Power | None:
        """Return which power an expression is of what something is over the new maximum: its base, and its factors."""
        match expression:
            case Apply(operator=operator, operands=(exponent,)) if operator.name in _POWERS:
                terms, difference = [*terms_of(exponent)], build.apply("sub", over, self.new)
                others = tuple(item.value for item in terms if item.value != difference)
                plain = not any(item.divides for item in terms) and len(others) == len(terms) - 1
                return (operator.name, others) if plain else None
            case _:
                return None

    @legality
    def parted(self, value: Expression, own: Expression) -> _Parts | None:
        """Return what a sum is scaled by in an iteration, and the terms that are added; None if it is no such sum."""
        scales, terms, rest = list[Expression](), list[Expression](), list[Expression]()
        powers, kept = set[_Power | None](), 0
        for addend in operands_of(value, "add"):
            found = [*terms_of(addend)]
            factors = [item.value for item in found if not item.divides]
            if own in factors:
                kept += 1 if len(factors) == len(found) else 2
                factors.remove(own)
                scales += factors
                powers |= {self.power(item, build.read(self.symbol)) for item in factors}
            else:
                terms.append(addend)
                each_power = [self.power(item.value, self.value) for item in found if not item.divides]
                own_powers = [item for item in each_power if item is not None]
                powers |= {own_powers[0] if len(own_powers) == 1 else None}
                rest += [item.value for item in found if item.divides or self.power(item.value, self.value) is None]
        power = powers.pop() if kept == len(powers) == 1 and len(scales) <= 1 else None
        return None if power is None else (scales[0] if scales else None, tuple(terms), tuple(rest), power)

    def final(self, term: Expression, given: Expression) -> Expression:
        """Return a term in terms of the last maximum, where that is taken of what is given."""
        term = rewrite(term, lambda node: build.read(self.symbol) if node == self.new else node)
        return self.with_value(term, given)

    def with_value(self, root: NodeType, given: Expression) -> NodeType:
        """Return a tree with what is given in place of what the maximum is taken of."""
        return rewrite(root, lambda node: given if node == self.value else node)

    def between(self, scale: Expression, old: Expression) -> Expression:
        """Return a scale as it is between an older maximum and the last one."""
        most = build.read(self.symbol)
        difference = build.apply("sub", most, self.new)
        return rewrite(scale, lambda node: build.apply("sub", old, most) if node == difference else node)

    def without_value(self, root: NodeType) -> NodeType:
        """Return a tree without what the maximum is taken of."""
        return self.with_value(root, build.constant(0.0, self.new.dtype))


@dataclass(frozen=True, slots=True)
class _Update:
    """A sum in a variable, or in the elements of a tensor, in loops: its scale, if it has one, and what is added.

    All have the same `power` as a factor; the `rest` are the others of terms, and divisors.
    """

    own: Read | Load
    loops: tuple[For, ...]
    scale: Expression | None
    terms: tuple[Expression, ...]
    rest: tuple[Expression, ...]
    power: _Power

    @property
    def name(self) -> Symbol | Tensor:
        """The variable, or the tensor."""
        return self.own.symbol if isinstance(self.own, Read) else self.own.tensor

    @property
    def places(self) -> tuple[Expression, ...]:
        """The indices of the elements, and the bounds of the loops over them."""
        indices = self.own.indices if isinstance(self.own, Load) else ()
        return (*indices, *(bound for loop in self.loops for bound in (loop.start, loop.stop)))

    @property
    def zero(self) -> Statement:
        """What makes the sum, or each element, zero."""
        return self.inside(self.stored(build.constant(0.0, self.own.dtype)))

    def stored(self, value: Expression) -> Statement:
        """Return what gives the sum, or one element, another value."""
        if isinstance(self.own, Read):
            return Assign(symbol=self.own.symbol, value=value, loc=self.own.loc)
        tensor, indices = self.own.tensor, self.own.indices
        return Store(tensor=tensor, indices=indices, value=value, access=self.own.access, loc=self.own.loc)

    def inside(self, *block: Statement) -> Statement:
        """Return statements in the loops of the elements."""
        for loop in reversed(self.loops):
            block = (replace(loop, body=block),)
        return block[0]

    @legality
    def begins_with_zero(self, before: Block) -> bool:
        """Whether the sum, or each element, is zero after a block."""
        needed = effects(self.zero)
        for statement in reversed(before):
            found = effects(statement)
            if self.name in found.assigns | found.stores:
                return _same(statement, self.zero)
            if found.assigns & needed.reads or found.changes & needed.loads:
                return False
        return False


@legality
def _same(one: Statement, other: Statement) -> bool:
    """Whether two statements are the same assignment, or the same loops around the same store."""
    match one, other:
        case For(body=(inner,)), For(body=(last,)):
            bounds = (one.start, one.stop) == (other.start, other.stop)
            return bounds and _same(inner, substitute(last, {other.index: build.read(one.index)}))
        case Store(), Store():
            return (one.indices, one.value, one.combine) == (other.indices, other.value, None)
        case _:
            return one == other


@dataclass(frozen=True, slots=True)
class _Running:
    """A loop with a running maximum: what that is computed from `ahead`, and the sums that go with it.

    The `others` are what else an iteration does: that reads neither the maximum nor the sums.
    """

    loop: For
    condition: Expression | None
    most: _Maximum
    ahead: Block
    updates: tuple[_Update, ...]
    others: Block

    @legality
    def is_scaled_once(self) -> bool:
        """Whether each sum is scaled before something is added to all that was scaled, and by the same power."""
        scaled, added = dict[Symbol | Tensor, _Update](), set[Symbol | Tensor]()
        for each in self.updates:
            if (each.name in scaled) == (each.scale is not None):
                return False
            first = scaled.setdefault(each.name, each)
            if first.power != each.power or not _same(first.zero, each.zero):
                return False
            added |= {each.name} if each.terms else set()
        return bool(scaled) and scaled.keys() == added

    @legality
    def is_apart(self, body: Block, carried: frozenset[Symbol], others: Block) -> bool:
        """Whether what is computed ahead, all terms, and the others read nothing that something else has left."""
        changed, moving = effects(body).changes, assigned_symbols(body)
        passed = live_before(self.ahead, NONE) | (read_symbols([self.most.value]) - assigned_symbols(self.ahead))
        if effects((*self.ahead, self.most.value)).loads & changed or effects(self.ahead).changes or passed & carried:
            return False
        own = frozenset(each.name for each in self.updates)
        for each in self.updates:
            inside = {loop.index for loop in each.loops}
            rest = [self.most.without_value(item) for item in each.rest]
            if read_symbols(rest) & (moving - inside) or effects((*each.terms, *each.places)).loads & changed:
                return False
        if effects(self.others).changes & own or effects(self.others).loads & own:
            return False
        without = tuple(self.most.without_value(item) for item in self.others)
        beside = [item for item in body if not any(item is other for other in others)]
        return not live_before(without, NONE) & assigned_symbols(beside)

    @legality
    def has_places(self, body: Block) -> bool:
        """Whether each iteration of the loops around a sum has an element of its own, the same one for all maxima.

        So is what powers have as a factor: scales of all iterations together are one then.
        """
        moving = assigned_symbols(body) | {self.loop.index}
        for each in self.updates:
            places = each.own.indices if isinstance(each.own, Load) else ()
            inside = {loop.index for loop in each.loops}
            fixed = read_symbols((*each.places, *each.power[1]))
            if not all(build.read(index) in places for index in inside) or fixed & (moving - inside):
                return False
        return True

    def over(self, block: Sequence[Statement]) -> For:
        """Return the loop with another body, under the condition that is asked in it."""
        return replace(self.loop, body=_where(self.condition, tuple(block)))


def _of(
    loop: For, condition: Expression | None, body: Block, most: _Maximum, carried: frozenset[Symbol]
) -> _Running | None:
    """Return a maximum with what goes with it; None if something does not."""
    ahead, updates, others, own = _ahead(body, most.value), list[_Update](), list[Statement](), list[Statement]()
    here, plain, stale = dict[Symbol, Expression](), set[Symbol](), set[Symbol]()
    for statement in body:
        if stale & live_before((statement,), NONE):
            return None
        if isinstance(statement, Assign):
            here[statement.symbol] = substitute(statement.value, here)
            plain.add(statement.symbol)
            continue
        if not any(statement is item for item in ahead):
            update = _stored(statement, here, most, ())
            if update is None:
                others.append(substitute(statement, here))
                own.append(statement)
            elif assigned_symbols(statement) & carried:
                return None
            else:
                updates.append(update)
        # Elements that are read before they change are not read again behind that.
        stale |= {symbol for symbol, value in here.items() if effects(value).loads & effects(statement).changes}
        here |= {symbol: build.read(symbol) for symbol in assigned_symbols(statement)}
    summed = (plain & carried) - {most.symbol}
    for symbol in sorted(summed, key=lambda item: item.number):
        found = most.parted(here[symbol], build.read(symbol))
        if found is None:
            return None
        updates.append(_Update(build.read(symbol), (), *found))
    result = _Running(loop, condition, most, ahead, tuple(updates), tuple(others))
    right = not summed & assigned_symbols((*others, *ahead)) and result.is_scaled_once() and result.has_places(body)
    return result if right and result.is_apart(body, carried, tuple(own)) else None


def _ahead(body: Block, value: Expression) -> Block:
    """Return the statements that a value is computed from, if there are loops among them."""
    needed = {symbol for item in body if not isinstance(item, Assign) for symbol in assigned_symbols(item)}
    needed &= read_symbols([value])
    found = list[Statement]()
    for statement in reversed(body):
        own = assigned_symbols(statement)
        if own & needed and (found or not isinstance(statement, Assign)):
            found.append(statement)
            needed |= live_before((statement,), NONE)
    return tuple(reversed(found))


@legality
def _stored(
    statement: Statement, here: Mapping[Symbol, Expression], most: _Maximum, loops: tuple[For, ...]
) -> _Update | None:
    """Return the sum that a store adds to, in loops of nothing else; None if it is no such sum."""
    match statement:
        case For(body=(*steps, last)) if all(isinstance(item, Assign) for item in steps) and not (
            live_before((statement,), NONE) & assigned_symbols(steps)
        ):
            inside, loop = {**here}, substitute(replace(statement, body=()), here)
            for item in steps:
                if isinstance(item, Assign):
                    inside[item.symbol] = substitute(item.value, inside)
            return _stored(last, inside, most, (*loops, loop))
        case Store(tensor=tensor, combine=None) if value_dtype(tensor.type.dtype) is tensor.type.dtype:
            place, value = (
                tuple(substitute(index, here) for index in statement.indices),
                substitute(statement.value, here),
            )
            own = [node for node in walk(value) if isinstance(node, Load) and node.tensor == tensor]
            found = most.parted(value, own[0]) if len(own) == 1 and own[0].indices == place else None
            return None if found is None else _Update(own[0], loops, *found)
        case _:
            return None
