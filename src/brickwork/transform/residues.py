"""Nests whose sums ask for remainders of their indices: a nest for the iterations of each remainder, without asking.

    for y in range(n):                               for r in range(2):
        s = 0.0                                          for q in range(n + 1 + 1 // 2):        y + 1 = 2 * q + r
            for k in range(4):                               s = 0.0
                if (y + 1 - k) % 2 == 0:       ->            for m in range(2):                 k = r + 2 * m
                    s += x[(y + 1 - k) // 2] * w[k]              s += x[q - m] * w[r + 2 * m]
        out[y] = s                                           if 0 <= 2 * q + r - 1 < n: out[2 * q + r - 1] = s

So go convolutions that spread their input and gradients of those with strides, resampling by a ratio, and the like.
Three steps, each of which is equal for integers that do not wrap (`Sum`s over literals, sizes and indices):
1. A loop whose terms all ask that a remainder of `a + k` or `a - k` is fixed goes through those `k` alone (`strided`).
2. A loop around is two, over remainders and over quotients (`split`): remainders and quotients of what it is part of
   are those of indices that a remainder has alone.
3. A sum that begins at a place of each row begins at 0 (`shifted`): factors that go with the remainder and the place in
   the sum do not go with the row any more.
Remainders stand outermost, and each of them has sums of its own length. Invariant: the nest runs where it is a
contraction that is worth tiles, and kernel scalars are small; elsewhere the kernel runs as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import accumulation
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
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
    Store,
    Symbol,
)
from brickwork.ir.walk import NodeType, read_symbols, rewrite, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction
from brickwork.transform.scratch import Names
from brickwork.transform.sums import Sum, sum_of


@dataclass(frozen=True, slots=True)
class SumNest:
    """Parallel loops in one another around a sum: what comes before and after it, its loops and its terms."""

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
def sum_nest(statement: Statement) -> SumNest | None:
    """Return a nest of loops around one sum, if a statement is one; nothing in masks reads an element."""
    band: list[For] = []
    body: Block = (statement,)
    while len(body) == 1 and isinstance(only := body[0], For):
        band.append(only)
        body = only.body
    place = next((n for n, item in enumerate(body) if isinstance(item, For | If)), None)
    found = None if place is None or not band else accumulation(body[place])
    if place is None or found is None:
        return None
    sums, symbol, term, masks = found
    before = [item for item in body[:place] if isinstance(item, Assign)]
    if len(before) < place or any(isinstance(node, Load) for node in walk(masks)):
        return None
    if not all(isinstance(node, Assign | Store | If) for node in statements(body[place + 1 :])):
        return None
    return SumNest(tuple(band), tuple(before), sums, symbol, term, tuple(_parts(masks)), body[place + 1 :])


def _parts(masks: Sequence[Expression]) -> Iterator[Expression]:
    """Yield what all has to hold, in its smallest parts."""
    for mask in masks:
        match mask:
            case Apply(operator=operator, operands=operands) if operator.name == "logical_and":
                yield from _parts(operands)
            case _:
                yield mask


# ---------------------------------------------------------------- sums of integers


@legality
def linear(value: Expression) -> Sum:
    """Return an int64 as a sum, of whatever it is added up of."""
    match value:
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            return linear(left).plus(linear(right), 1 if operator.name == "add" else -1)
        case Apply(operator=operator, operands=(Constant(value=int(factor)), other)) if operator.name == "mul":
            return Sum().plus(linear(other), factor)
        case Apply(operator=operator, operands=(other, Constant(value=int(factor)))) if operator.name == "mul":
            return Sum().plus(linear(other), factor)
        case _:
            return sum_of(value) or Sum(((value, 1),))


def factor_of(found: Sum, symbol: Symbol) -> int:
    """Return how many times a variable is in a sum."""
    return next((count for item, count in found.terms if item == Read(symbol=symbol)), 0)


@legality
def without(found: Sum, symbol: Symbol) -> Sum | None:
    """Return a sum without a variable, if nothing else in it is computed from that."""
    left = Sum(tuple(pair for pair in found.terms if pair[0] != Read(symbol=symbol)), found.constant)
    return None if symbol in read_symbols([item for item, _ in left.terms]) else left


@legality
def divided(name: str, found: Sum, divisor: int, small: Mapping[Symbol, int]) -> Expression:
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


def simplified(node: NodeType, small: Mapping[Symbol, int]) -> NodeType:
    """Return a tree with its integers written as sums, and less of them divided."""

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=(left, Constant(value=int(divisor)))) if (
                operator.name in {"floordiv", "mod"} and divisor > 0 and node.dtype is INT64
            ):
                return divided(operator.name, linear(left), divisor, small)
            case Apply(operator=operator) if operator.name in {"add", "sub"} and node.dtype is INT64:
                return linear(node).expression()
            case Apply(operator=operator, operands=(left, right)) if (
                operator.name in {"eq", "ge", "le", "lt", "gt"} and left.dtype is INT64
            ):
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
            found = _remainder(mask, loop, nest.sums[place + 1 :])
            if found is not None:
                masks = tuple(item for item in nest.masks if item is not mask)
                return strided(_stepped(replace(nest, masks=masks), place, *found, names), names)
    return nest


@legality
def _remainder(mask: Expression, loop: For, inner: Sequence[For]) -> tuple[Sum, int, int, int] | None:
    """Return what of a condition a loop is added to or taken from, the sign, the divisor and the remainder.

    The condition goes with no loop inside.
    """
    match mask:
        case Apply(
            operator=equal,
            operands=(
                Apply(operator=operator, operands=(value, Constant(value=int(divisor)))),
                Constant(value=int(remainder)),
            ),
        ) if equal.name == "eq" and operator.name == "mod" and divisor > 1 and 0 <= remainder < divisor:
            pass
        case _:
            return None
    found = linear(value)
    sign, rest = factor_of(found, loop.index), without(found, loop.index)
    if abs(sign) != 1 or rest is None or read_symbols(mask) & {each.index for each in inner}:
        return None
    return rest, sign, divisor, remainder


def _stepped(nest: SumNest, place: int, rest: Sum, sign: int, divisor: int, remainder: int, names: Names) -> SumNest:
    """Return a nest of which a loop goes through the quotients of `rest` and its index that have a remainder."""
    loop, by = nest.sums[place], build.integer(divisor)
    index = names.symbol(loop.index.name, INT64)
    over = rest.plus(Sum((), remainder), -1)
    here = Sum(((Read(symbol=index), divisor),)).plus(over, -1)
    here = here if sign > 0 else Sum().plus(here, -1)
    known = over.plus(Sum(((Read(symbol=loop.index), sign),)))

    def bound(value: Expression, ahead: int) -> Expression:
        end = over.plus(linear(value), sign).plus(Sum((), ahead))
        return divided("floordiv", end, divisor, {})

    ends = (loop.start, divisor - 1), (loop.stop, divisor - 1)
    if sign < 0:
        ends = (loop.stop, divisor), (loop.start, divisor)
    own = replace(loop, index=index, start=bound(*ends[0]), stop=bound(*ends[1]))

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=(value, Constant(value=int(number)))) if (
                operator.name == "floordiv" and number == divisor
            ):
                found = linear(value)
                turns = sign * factor_of(found, loop.index)
                left = found.plus(known, -turns)
                if turns and loop.index not in read_symbols([item for item, _ in left.terms]):
                    quotient = Sum(((Read(symbol=index), turns),)).expression()
                    return build.add(quotient, build.apply("floordiv", left.expression(), by))
                return node
            case _:
                return node

    def changed(node: NodeType) -> NodeType:
        return simplified(substitute(rewrite(node, visit), {loop.index: here.expression()}), {})

    inner = tuple(replace(each, start=changed(each.start), stop=changed(each.stop)) for each in nest.sums[place + 1 :])
    sums = (*nest.sums[:place], own, *inner)
    return replace(nest, sums=sums, term=changed(nest.term), masks=tuple(map(changed, nest.masks)))


# ---------------------------------------------------------------- loops over remainders and over quotients


@legality
def split(nest: SumNest, names: Names) -> tuple[SumNest, dict[Symbol, int]] | None:
    """Return a nest with each loop as two that its sums move along with by quotients, and the remainders' limits."""
    found = {loop.index: asked for loop in nest.band if (asked := _asked(nest, loop)) is not None}
    fixed = {loop.index for loop in nest.band}
    if not found or any(read_symbols((loop.start, loop.stop)) & fixed for loop in nest.band):
        return None
    if any(isinstance(node, Load) and read_symbols(node) & found.keys() for node in walk(nest.before)):
        return None
    remainders: list[For] = []
    band: list[For] = []
    values: dict[Symbol, Expression] = {}
    masks: list[Expression] = []
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
        place = build.add(build.mul(by, build.read(quotient)), build.read(remainder))
        values[loop.index] = build.sub(place, ahead)
        masks.append(build.apply("ge", values[loop.index], loop.start))
        masks.append(build.apply("lt", values[loop.index], loop.stop))
    small = {loop.index: int(loop.stop.value) for loop in remainders if isinstance(loop.stop, Constant)}

    def changed(node: NodeType) -> NodeType:
        return simplified(substitute(node, values), small)

    within = tuple(map(changed, masks))
    sums = tuple(replace(loop, start=changed(loop.start), stop=changed(loop.stop)) for loop in nest.sums)
    after = (If(condition=conjunction(within), then=tuple(map(changed, nest.after))),)
    split_nest = replace(
        nest,
        band=(*remainders, *band),
        before=tuple(map(changed, nest.before)),
        sums=sums,
        term=changed(nest.term),
        masks=(*within, *map(changed, nest.masks)),
        after=after,
    )
    return split_nest, small


@legality
def _asked(nest: SumNest, loop: For) -> tuple[Sum, int] | None:
    """Return what is added to a loop's index where a sum ends at a quotient of that, and the divisor.

    It begins at such a quotient, too.
    """
    inner = {each.index for each in (*nest.band, *nest.sums)} - {loop.index}
    for each in nest.sums:
        first, last = (_quotients(bound, name, loop.index) for bound, name in _ends(each))
        for rest, divisor in last:
            if any(divisor == other for _, other in first):
                left = [item for item, _ in rest.terms]
                if not read_symbols(left) & inner and not any(isinstance(node, Load) for node in walk(left)):
                    return rest, divisor
    return None


def _ends(loop: For) -> tuple[tuple[Expression, str], tuple[Expression, str]]:
    return (loop.start, "maximum"), (loop.stop, "minimum")


@legality
def _quotients(bound: Expression, name: str, index: Symbol) -> list[tuple[Sum, int]]:
    """Return what is added to an index in the quotients of a bound, and the divisors."""
    found: list[tuple[Sum, int]] = []
    for item in _operands(bound, name):
        for part, count in linear(item).terms:
            match part:
                case Apply(operator=operator, operands=(value, Constant(value=int(divisor)))) if (
                    operator.name == "floordiv" and divisor > 1 and count == 1
                ):
                    whole = linear(value)
                    rest = without(whole, index)
                    if rest is not None and factor_of(whole, index) == 1:
                        found.append((rest, divisor))
                case _:
                    pass
    return found


# ---------------------------------------------------------------- sums that begin at 0


@legality
def shifted(
    nest: SumNest, names: Names, small: Mapping[Symbol, int], before: tuple[tuple[For, For], ...] = ()
) -> tuple[SumNest, tuple[tuple[For, For], ...]]:
    """Return a nest whose sums begin at 0 where both their ends go along with one of its loops, and these pairs."""
    for place, loop in enumerate(nest.sums):
        for outer in nest.band:
            first = _moving(loop.start, "maximum", outer.index)
            last = _moving(loop.stop, "minimum", outer.index)
            if first is None or last is None:
                continue
            length = linear(last).plus(linear(first), -1)
            if outer.index in read_symbols([item for item, _ in length.terms]):
                continue
            index = names.symbol(loop.index.name, INT64)
            here = build.add(first, build.read(index))
            ends = [build.apply("ge", here, item) for item in _operands(loop.start, "maximum") if item is not first]
            ends += [build.apply("lt", here, item) for item in _operands(loop.stop, "minimum") if item is not last]
            values: dict[Symbol, Expression] = {loop.index: here}

            def changed(node: NodeType, values: Mapping[Symbol, Expression] = values) -> NodeType:
                return simplified(substitute(node, values), small)

            own = replace(loop, index=index, start=build.integer(0), stop=length.expression())
            inner = (
                replace(each, start=changed(each.start), stop=changed(each.stop)) for each in nest.sums[place + 1 :]
            )
            masks = (*map(changed, nest.masks), *(simplified(item, small) for item in ends))
            made = replace(nest, sums=(*nest.sums[:place], own, *inner), term=changed(nest.term), masks=masks)
            return shifted(made, names, small, (*before, (outer, own)))
    return nest, before


def _operands(value: Expression, name: str) -> Iterator[Expression]:
    match value:
        case Apply(operator=operator, operands=operands) if operator.name == name:
            for operand in operands:
                yield from _operands(operand, name)
        case _:
            yield value


def _moving(bound: Expression, name: str, index: Symbol) -> Expression | None:
    """Return what of a bound goes along with a loop, step by step."""
    for item in _operands(bound, name):
        found = linear(item)
        if factor_of(found, index) == 1 and without(found, index) is not None:
            return item
    return None
