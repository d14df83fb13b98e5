"""Nests whose sums ask for remainders of their indices: a nest for the iterations of each remainder, without asking.

    for y in range(n):                               for r in range(2):
        s = 0.0                                          for q in range(n + 1 + 1 // 2):        y + 1 = 2 * q + r
            for k in range(4):                               s = 0.0
                if (y + 1 - k) % 2 == 0:       ->            for m in range(2):                 k = r + 2 * m
                    s += x[(y + 1 - k) // 2] * w[k]              s += x[q - m] * w[r + 2 * m]
        out[y] = s                                           if 0 <= 2 * q + r - 1 < n: out[2 * q + r - 1] = s

So go convolutions that spread their input and gradients of those with strides, resampling by a ratio, and the like.
Three steps, each of which is equal for integers that do not wrap: those of `limit_of`.
1. A loop whose terms all ask that a remainder of `a + k` or `a - k` is fixed goes through those `k` alone (`strided`).
2. A loop around is two, over remainders and over quotients (`split`): remainders and quotients of what it is part of
   are those of indices that a remainder has alone.
3. A sum that begins at a place of each row begins at 0 (`shifted`): factors that go with the remainder and the place in
   the sum do not go with the row any more.
Remainders stand outermost, and each of them has sums of its own length. Invariant: the nest runs where it is a
contraction that is worth tiles, and kernel scalars are small; elsewhere the kernel runs as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import accumulation, reached
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Statement,
    Symbol,
)
from brickwork.ir.walk import NodeType, operands_of, read_symbols, rewrite, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction
from brickwork.transform.scratch import Names
from brickwork.transform.sums import Limits, Sum, limit_of, linear, within


@dataclass(frozen=True, slots=True)
class SumNest:
    """Loops in one another around a sum: what comes before and after it, its loops and its terms.

    `limits` are those of variables, of the `fixed` ones from before the nest, too.
    """

    fixed: Limits
    limits: Limits
    band: tuple[For, ...]
    before: tuple[Assign, ...]
    sums: tuple[For, ...]
    symbol: Symbol
    term: Expression
    masks: tuple[Expression, ...]
    after: Block

    def sum(self) -> Statement:
        """Return the loops of the sum."""
        add = build.add(build.read(self.symbol), self.term)
        body: Block = (Assign(symbol=self.symbol, value=add),)
        if self.masks:
            body = (If(condition=conjunction(self.masks), then=body),)
        for loop in reversed(self.sums):
            body = (replace(loop, body=body),)
        return body[0]

    def statement(self) -> For:
        """Return the nest."""
        body = (*self.before, self.sum(), *self.after)
        for loop in reversed(self.band):
            body = (replace(loop, body=body),)
        (nest,) = body
        if not isinstance(nest, For):
            raise TypeError("a nest is a loop")
        return nest


@legality
def sum_nest(statement: Statement, fixed: Limits) -> SumNest | None:
    """Return a nest of loops around one sum, if a statement is one; nothing in masks reads an element."""
    band: list[For] = []
    body: Block = (statement,)
    limits = fixed
    while len(body) == 1 and isinstance(only := body[0], For):
        band.append(only)
        limits = within(limits, only)
        body = only.body
    before: list[Assign] = []
    for item in body:
        if not isinstance(item, Assign):
            break
        before.append(item)
    place = len(before)
    found = accumulation(body[place]) if band and place < len(body) else None
    if found is None:
        return None
    sums, symbol, term, masks = found
    if not sums or effects(masks).loads:
        return None
    for item in before:
        limit = limit_of(item.value, limits)
        others = {symbol: each for symbol, each in limits.items() if symbol != item.symbol}
        limits = others if limit is None else {**others, item.symbol: limit}
    for loop in sums:
        limits = within(limits, loop)
    return SumNest(fixed, limits, tuple(band), tuple(before), sums, symbol, term, masks, body[place + 1 :])


# ---------------------------------------------------------------- sums of integers


@legality
def divided(name: str, found: Sum, divisor: int, small: Limits) -> Expression:
    """Return a quotient or remainder of a sum; `small` variables are not negative and below a number."""
    whole = Sum(
        tuple((item, count // divisor) for item, count in found.terms if count % divisor == 0),
        found.constant // divisor,
    )
    rest = Sum(tuple((item, count) for item, count in found.terms if count % divisor), found.constant % divisor)
    match rest:
        case Sum(terms=((Read(symbol=symbol), 1),), constant=0) if small.get(symbol, divisor + 1) <= divisor:
            is_small = True
        case _:
            is_small = not rest.terms
    if name == "mod":
        return rest.expression() if is_small else build.apply("mod", rest.expression(), build.integer(divisor))
    if is_small:
        return whole.expression()
    return build.add(whole.expression(), build.apply("floordiv", rest.expression(), build.integer(divisor)))


@legality
def simplified(node: NodeType, limits: Limits, small: Limits) -> NodeType:
    """Return a tree with its integers that do not wrap written as sums, and less of them divided."""

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=(left, Constant(value=divisor))) if (
                operator.name in {"floordiv", "mod"} and divisor > 0 and limit_of(left, limits) is not None
            ):
                return divided(operator.name, linear(left), int(divisor), small)
            case Apply(operator=operator) if operator.name in {"add", "sub"} and limit_of(node, limits) is not None:
                return linear(node).expression()
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"eq", "ge", "le", "lt", "gt"}:
                return build.apply(operator.name, left, right)
            case _:
                return node

    return rewrite(node, visit)


# ---------------------------------------------------------------- loops through one remainder


@legality
def strided(nest: SumNest, names: Names) -> SumNest:
    """Return a nest whose sums go through terms alone that ask for a remainder."""
    for mask in nest.masks:
        for place, loop in enumerate(nest.sums):
            found = _remainder(nest, mask, loop, nest.sums[place + 1 :])
            if found is not None:
                masks = tuple(item for item in nest.masks if item is not mask)
                return strided(_stepped(replace(nest, masks=masks), place, *found, names), names)
    return nest


@legality
def _remainder(nest: SumNest, mask: Expression, loop: For, inner: Sequence[For]) -> tuple[Sum, int, int, int] | None:
    """Return what of a condition a loop is added to or taken from, the sign, the divisor and the remainder.

    The condition goes with no loop inside, and all of these have limits: they begin whether or not it holds.
    """
    match mask:
        case Apply(
            operator=equal,
            operands=(Apply(operator=operator, operands=(value, Constant(value=divisor))), Constant(value=remainder)),
        ) if equal.name == "eq" and operator.name == "mod" and 0 <= remainder < divisor:
            pass
        case _:
            return None
    found = linear(value).along(loop.index)
    if limit_of(value, nest.limits) is None or any(each.index not in nest.limits for each in (loop, *inner)):
        return None
    if found is None or abs(found[0]) != 1 or read_symbols(mask) & {each.index for each in inner}:
        return None
    sign, rest = found
    return rest, sign, int(divisor), int(remainder)


def _stepped(nest: SumNest, place: int, rest: Sum, sign: int, divisor: int, remainder: int, names: Names) -> SumNest:
    """Return a nest of which a loop goes through the quotients of `rest` and its index that have a remainder."""
    loop = nest.sums[place]
    index = names.symbol(loop.index.name, INT64)
    over = rest.plus(Sum((), remainder), -1)
    here = Sum(((Read(symbol=index), divisor),)).plus(over, -1)
    here = here if sign > 0 else Sum().plus(here, -1)

    def bound(value: Expression, ahead: int) -> Expression:
        end = over.plus(linear(value), sign).plus(Sum((), ahead))
        return divided("floordiv", end, divisor, {})

    ends = (loop.start, divisor - 1), (loop.stop, divisor - 1)
    if sign < 0:
        ends = (loop.stop, divisor), (loop.start, divisor)
    own = replace(loop, index=index, start=bound(*ends[0]), stop=bound(*ends[1]))
    limits = within(nest.limits, own)

    def changed(node: NodeType) -> NodeType:
        return simplified(substitute(node, {loop.index: here.expression()}), limits, {})

    inner = tuple(replace(each, start=changed(each.start), stop=changed(each.stop)) for each in nest.sums[place + 1 :])
    sums = (*nest.sums[:place], own, *inner)
    return replace(nest, limits=limits, sums=sums, term=changed(nest.term), masks=tuple(map(changed, nest.masks)))


# ---------------------------------------------------------------- loops over remainders and over quotients


@legality
def split(nest: SumNest, names: Names) -> tuple[SumNest, dict[Symbol, int]] | None:
    """Return a nest with each loop as two that its sums move along with by quotients, and the remainders' limits.

    Its iterations run in another order. What comes before the sum, and where that begins, is computed for some more:
    no element of theirs is read there.
    """
    found = {loop.index: asked for loop in nest.band if (asked := _asked(nest, loop)) is not None}
    if not found or any(limit_of(end, nest.fixed) is None for loop in nest.band for end in (loop.start, loop.stop)):
        return None
    moving = reached(nest.before, frozenset(found))
    if any(isinstance(node, Load) and read_symbols(node) & moving for node in walk(nest.before)):
        return None
    if any(loop.index not in nest.limits for loop in nest.sums):
        return None
    remainders: list[For] = []
    band: list[For] = []
    values: dict[Symbol, Expression] = {}
    masks: list[Expression] = []
    limits = nest.limits
    for loop in nest.band:
        if loop.index not in found:
            band.append(loop)
            continue
        rest, divisor = found[loop.index]
        by, ahead = build.integer(divisor), rest.expression()
        remainder, quotient = (names.symbol(f"{loop.index.name}{end}", INT64) for end in ("_rest", ""))
        remainders.append(replace(loop, index=remainder, start=build.integer(0), stop=by, claimed=False))
        first = build.apply("floordiv", build.add(loop.start, ahead), by)
        last = build.apply("floordiv", build.add(build.add(loop.stop, ahead), build.integer(divisor - 1)), by)
        band.append(replace(loop, index=quotient, start=first, stop=last, claimed=False))
        limits = within(within(limits, remainders[-1]), band[-1])
        place = build.add(build.mul(by, build.read(quotient)), build.read(remainder))
        values[loop.index] = build.sub(place, ahead)
        masks.append(build.apply("ge", values[loop.index], loop.start))
        masks.append(build.apply("lt", values[loop.index], loop.stop))
    small = {loop.index: limits[loop.index] for loop in remainders}

    def changed(node: NodeType) -> NodeType:
        return simplified(substitute(node, values), limits, small)

    inside = tuple(map(changed, masks))
    sums = tuple(replace(loop, start=changed(loop.start), stop=changed(loop.stop)) for loop in nest.sums)
    after = (If(condition=conjunction(inside), then=tuple(map(changed, nest.after))),)
    split_nest = replace(
        nest,
        limits=limits,
        band=(*remainders, *band),
        before=tuple(map(changed, nest.before)),
        sums=sums,
        term=changed(nest.term),
        masks=(*inside, *map(changed, nest.masks)),
        after=after,
    )
    return split_nest, small


def _asked(nest: SumNest, loop: For) -> tuple[Sum, int] | None:
    """Return what is added to a loop's index where a sum ends at a quotient of that, and the divisor.

    It begins at such a quotient, too. What is added is known before the nest.
    """
    for each in nest.sums:
        first, last = _quotients(each.start, "maximum", loop.index), _quotients(each.stop, "minimum", loop.index)
        for rest, divisor in last:
            if any(divisor == other for _, other in first) and limit_of(rest.expression(), nest.fixed) is not None:
                return rest, divisor
    return None


def _quotients(bound: Expression, name: str, index: Symbol) -> list[tuple[Sum, int]]:
    """Return what is added to an index in the quotients of a bound, and the divisors."""
    found: list[tuple[Sum, int]] = []
    for item in operands_of(bound, name):
        for part, count in linear(item).terms:
            match part:
                case Apply(operator=operator, operands=(value, Constant(value=divisor))) if (
                    operator.name == "floordiv" and divisor > 1 and count == 1
                ):
                    along = linear(value).along(index)
                    if along is not None and along[0] == 1:
                        found.append((along[1], int(divisor)))
                case _:
                    pass
    return found


# ---------------------------------------------------------------- sums that begin at 0


def shifted(
    nest: SumNest, names: Names, small: Limits, before: tuple[tuple[For, For], ...] = ()
) -> tuple[SumNest, tuple[tuple[For, For], ...]]:
    """Return a nest whose sums begin at 0 where both their ends go along with one of its loops, and these pairs."""
    for place, loop in enumerate(nest.sums):
        for outer in nest.band:
            first = _moving(loop.start, "maximum", outer.index)
            last = _moving(loop.stop, "minimum", outer.index)
            if first is None or last is None:
                continue
            length = linear(last).plus(linear(first), -1)
            if length.along(outer.index) != (0, length):
                continue
            index = names.symbol(loop.index.name, INT64)
            here = build.add(first, build.read(index))
            ends = [build.apply("ge", here, item) for item in operands_of(loop.start, "maximum") if item is not first]
            ends += [build.apply("lt", here, item) for item in operands_of(loop.stop, "minimum") if item is not last]
            values: dict[Symbol, Expression] = {loop.index: here}
            own = replace(loop, index=index, start=build.integer(0), stop=length.expression())
            limits = within(nest.limits, own)

            def changed(
                node: NodeType, values: Mapping[Symbol, Expression] = values, limits: Limits = limits
            ) -> NodeType:
                return simplified(substitute(node, values), limits, small)

            inner = (
                replace(each, start=changed(each.start), stop=changed(each.stop)) for each in nest.sums[place + 1 :]
            )
            masks = (*map(changed, nest.masks), *map(changed, ends))
            sums = (*nest.sums[:place], own, *inner)
            made = replace(nest, limits=limits, sums=sums, term=changed(nest.term), masks=masks)
            return shifted(made, names, small, (*before, (outer, own)))
    return nest, before


def _moving(bound: Expression, name: str, index: Symbol) -> Expression | None:
    """Return what of a bound goes along with a loop, step by step."""
    for item in operands_of(bound, name):
        found = linear(item).along(index)
        if found is not None and found[0] == 1:
            return item
    return None
