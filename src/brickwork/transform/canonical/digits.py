"""Loops over a flat index that is taken apart into digits become nests over the digits.

    for index in range(B * C * W):              for b in range(B):
        w = index % W                               for c in range(C):
        c = index // W % C            ->                for w in range(W):
        b = index // (W * C)                                y[b, c, w] = x[b, c, w]
        y[b, c, w] = x[b, c, w]

That is how kernels of CUDA are written. Iterations keep their order. The analyses then see independent loops, gradients
are gathered, and no thread divides. The index itself, if it is used beside its digits, is computed of them.
What is divided by more than the highest of them, or by what is no factor of the number of iterations, is the highest
digit divided; a digit times a radix, plus the digit below it, is one digit.

Invariant: the radices are sizes, or numbers that are not negative, and their product is the number of iterations, so an
iteration runs only where none of them is 0. Of others it is asked whether they are positive; the loop stays beside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from brickwork.analysis.polynomial import SCALAR_LIMIT
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
    Node,
    Read,
    Size,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, operands_of, read_counts, rebuild, rewrite_statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction, with_guard
from brickwork.transform.scratch import Names, copied


@dataclass(frozen=True, slots=True)
class _Product:
    """A positive number times factors that are not negative; each stands as often as it is a factor."""

    number: int = 1
    factors: frozenset[tuple[Expression, int]] = frozenset()

    def times(self, other: _Product) -> _Product:
        """Return the product of both."""
        found = Counter(dict(self.factors))
        found.update(dict(other.factors))
        return _Product(self.number * other.number, frozenset(found.items()))

    def over(self, other: _Product) -> _Product | None:
        """Return the quotient, or None if the other has a factor that this has not."""
        found = Counter(dict(self.factors))
        found.subtract(dict(other.factors))
        if self.number % other.number or any(often < 0 for often in found.values()):
            return None
        return _Product(self.number // other.number, frozenset(item for item in found.items() if item[1]))


ONE = _Product()
_TOTAL = frozenset({"add", "sub", "mul", "minimum", "maximum"})
"""Operators that integers always have a result of."""


@dataclass(frozen=True, slots=True)
class _Digits:
    """The digits of a flat index from a place on, up to another one, or to the top."""

    low: _Product = ONE
    high: _Product | None = None


WHOLE = _Digits()


def nests_of_digits(block: Block, facts: Iterable[Expression], names: Names, kept: Iterable[str] = ()) -> Block:
    """Return the body of a kernel with nests in place of flat loops, but for those whose names are `kept`."""
    known = _Known.of(facts, assigned_symbols(block))
    reads = read_counts(block)
    asked: list[Expression] = []

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.index.name in kept:
            return (statement,)
        inside = sum(isinstance(node, Read) and node.symbol == statement.index for node in walk(statement.body))
        if not inside or inside != reads[statement.index]:
            return (statement,)
        nest, conditions = _nest(statement, known, names) or (statement, ())
        asked.extend(conditions)
        return (nest,)

    result: list[Statement] = []
    for statement in block:
        changed = rewrite_statements((statement,), visit)
        rest = (copied(statement, names),) if asked else ()
        result += with_guard(conjunction(dict.fromkeys(asked)), changed, rest)
        asked.clear()
    return tuple(result)


@legality
def _nest(loop: For, known: _Known, names: Names) -> tuple[For, Sequence[Expression]] | None:
    """Return the nest in place of a loop, and what is asked of its radices.

    None where the index is more than digits, which only literals divide.
    """
    whole = known.product(loop.stop)
    if not build.is_constant(loop.start, 0) or whole is None or effects(loop.body).breaks:
        return None
    reader = _Reader(known)
    reader.block(loop.body, {loop.index: WHOLE})
    radices = _radices(reader.places, whole)
    asked = (*known.asked((whole, *reader.places, *reader.joins)),)
    if not radices:
        return None
    if reader.undivided and not any(place.factors for place in reader.places):
        return None  # analyses know what literals divide, and lanes go across such digits
    loops = [
        (
            place,
            build.product(known.expressions(radix)),
            names.symbol(reader.named.get(place, loop.index.name), loop.index.dtype),
        )
        for place, radix in radices
    ]
    reader.values = {place: (symbol, extent) for place, extent, symbol in loops}
    reader.order = [place for place, _, _ in loops]
    reader.whole = whole
    nest = replace(loop, body=reader.block(loop.body, {loop.index: WHOLE}))
    for level, (_, extent, symbol) in enumerate(loops):
        nest = replace(loop, index=symbol, stop=extent, body=(nest,) if level else nest.body)
    return nest, asked


@legality
def _radices(places: Iterable[_Product], whole: _Product) -> list[tuple[_Product, _Product]]:
    """Return the places of digits, the lowest first, and how many values each has; none if one divides not the next.

    Places that do not divide the whole have no digit of their own: the highest digit is divided.
    """
    ordered = sorted({ONE, *places}, key=lambda item: (sum(often for _, often in item.factors), item.number))
    found = [place for place in ordered if whole.over(place) is not None]
    beyond = [place for place in ordered if whole.over(place) is None]
    if beyond and (len(found) == 1 or any(place.over(found[-1]) is None for place in beyond)):
        return []
    result: list[tuple[_Product, _Product]] = []
    for low, high in zip(found, [*found[1:], whole], strict=True):
        radix = high.over(low)
        if radix is None:
            return []
        result.append((low, radix))
    return [(place, radix) for place, radix in result if radix != ONE]


@dataclass(frozen=True, slots=True)
class _Known:
    """What facts say: expressions that sizes are equal to, which are never negative themselves.

    `changing` are the variables that are no arguments.
    """

    equal: Mapping[Expression, Expression]
    natural: frozenset[Expression]
    changing: frozenset[Symbol]

    @staticmethod
    def of(facts: Iterable[Expression], changing: frozenset[Symbol]) -> _Known:
        """Return what these facts say."""
        equal: dict[Expression, Expression] = {}
        natural: set[Expression] = set()
        for fact in facts:
            match fact:
                case Apply(operator=operator, operands=(Size() as size, value)) if operator.name == "eq":
                    natural.add(value)
                    while value in equal:
                        value = equal[value]
                    if value != size and (isinstance(value, Size) or not any(isinstance(n, Size) for n in walk(value))):
                        equal.setdefault(size, value)
                case _:
                    pass
        return _Known(equal, frozenset(natural), changing)

    @legality
    def product(self, value: Expression) -> _Product | None:
        """Return the factors of an integer that is not negative, or of which it can be asked; None if it is neither."""
        result = ONE
        for factor in map(self.plain, operands_of(self.plain(value), "mul")):
            if factor in self.equal:
                found = self.product(self.equal[factor])
                if found is not None:
                    result = result.times(found)
                    continue
            match factor:
                case Constant(value=int(number)) if number > 0:
                    result = replace(result, number=result.number * number)
                case Constant():
                    return None
                case _ if self.is_natural(factor) or self.is_steady(factor):
                    result = result.times(_Product(factors=frozenset(((factor, 1),))))
                case _:
                    return None
        return result

    def plain(self, value: Expression) -> Expression:
        """Return an expression without a `max(..., 0)` around it that changes nothing."""
        match value:
            case Apply(operator=operator, operands=(inner, zero)) if operator.name == "maximum" and (
                build.is_constant(zero, 0) and self.product(inner) is not None
            ):
                return inner
            case _:
                return value

    @legality
    def is_natural(self, value: Expression) -> bool:
        """Whether an integer is never negative."""
        if value in self.natural:
            return True
        match value:
            case Size():
                return True
            case Constant(value=int(number)):
                return number >= 0
            case Apply(operator=operator, operands=(left, Constant(value=int(number)))) if operator.name == "floordiv":
                return number >= 0 and self.is_natural(left)
            case Apply(operator=operator, operands=operands) if operator.name in {"add", "mul"}:
                return all(map(self.is_natural, operands))
            case Apply(operator=operator, operands=operands) if operator.name == "maximum":
                return any(map(self.is_natural, operands))
            case _:
                return False

    @legality
    def is_steady(self, value: Expression) -> bool:
        """Whether an integer is computed of arguments and sizes alone, and can always be."""
        match value:
            case Read(symbol=symbol):
                return symbol not in self.changing
            case Size():
                return True
            case Constant(value=int()):
                return True
            case Apply(operator=operator, operands=operands) if operator.name in _TOTAL:
                return all(map(self.is_steady, operands))
            case _:
                return False

    def asked(self, products: Iterable[_Product]) -> Iterator[Expression]:
        """Yield whether the factors are positive of which it is not known, and small enough for sums of them."""
        factors = (factor for product in products for factor, _ in product.factors)
        for factor in sorted(dict.fromkeys(factors), key=str):
            if not self.is_natural(factor):
                yield build.apply("ge", factor, build.integer(1))
                yield build.apply("le", factor, build.integer(SCALAR_LIMIT))

    @staticmethod
    def expressions(product: _Product) -> Sequence[Expression]:
        """Return the factors of a product as a list of expressions, in an order that does not change."""
        ordered = sorted(product.factors, key=lambda item: str(item[0]))
        found = [factor for factor, often in ordered for _ in range(often)]
        return [build.integer(product.number), *found] if product.number > 1 or not found else found


class _Reader:
    """Goes through the body of a flat loop twice: for the places of its digits, and to write these as indices."""

    def __init__(self, known: _Known) -> None:
        self.known = known
        self.places: set[_Product] = set()
        self.joins: set[_Product] = set()
        self.named: dict[_Product, str] = {}
        self.undivided = False
        self.values: Mapping[_Product, tuple[Symbol, Expression]] | None = None
        self.order: Sequence[_Product] = ()
        self.whole = ONE

    def block(self, block: Block, digits: dict[Symbol, _Digits]) -> Block:
        """Return a block with digits as indices; `digits` are what variables are before it, and then after it."""
        result: list[Statement] = []
        for statement in block:
            match statement:
                case Assign(symbol=symbol, value=value):
                    found = self.digits(value, digits)
                    new = self.written(WHOLE) if found == WHOLE else self.expression(value, digits)
                    result.append(replace(statement, value=new))
                    digits.pop(symbol, None)
                    if found is not None:
                        digits[symbol] = found
                        self.name(found, symbol)
                case For() | While():
                    self.forget(statement, digits)
                    result.append(self.with_blocks(statement, digits))
                case If():
                    result.append(self.with_blocks(statement, digits))
                    self.forget(statement, digits)
                case _:
                    result.append(self.with_blocks(statement, digits))
        return tuple(result)

    def name(self, found: _Digits, symbol: Symbol) -> None:
        """Note what digits are called: a loop has the name of what is just its own digit, if there is such."""
        if found.high is not None or (found != WHOLE and found.low not in self.named):
            self.named[found.low] = symbol.name

    def forget(self, statement: Statement, digits: dict[Symbol, _Digits]) -> None:
        for symbol in assigned_symbols(statement) & digits.keys():
            del digits[symbol]

    def with_blocks(self, statement: Statement, digits: dict[Symbol, _Digits]) -> Statement:
        """Return a statement with its expressions and blocks rewritten."""
        match statement:
            case For(start=start, stop=stop, body=body):
                bounds = {"start": self.expression(start, digits), "stop": self.expression(stop, digits)}
                return replace(statement, **bounds, body=self.block(body, dict(digits)))
            case While(prelude=prelude, condition=condition, body=body):
                own = dict(digits)
                ahead = self.block(prelude, own)
                asked = self.expression(condition, own)
                return replace(statement, prelude=ahead, condition=asked, body=self.block(body, own))
            case If(condition=condition, then=then, otherwise=otherwise):
                asked = self.expression(condition, digits)
                parts = self.block(then, dict(digits)), self.block(otherwise, dict(digits))
                return replace(statement, condition=asked, then=parts[0], otherwise=parts[1])
            case _:
                return rebuild(statement, lambda node: self.expression(cast("Expression", node), digits))

    @legality
    def digits(self, value: Node, known: Mapping[Symbol, _Digits]) -> _Digits | None:
        """Return which digits of the flat index an expression is; None if it is something else."""
        match value:
            case Read(symbol=symbol):
                return known.get(symbol)
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"floordiv", "mod"}:
                inner = self.digits(left, known)
                if inner is None or (by := self.known.product(right)) is None:
                    return None
                place = inner.low.times(by)
                if inner.high is not None and inner.high.over(place) is None:
                    return None
                return _Digits(place, inner.high) if operator.name == "floordiv" else _Digits(inner.low, place)
            case Apply(operator=operator, operands=(left, right)) if operator.name == "add":
                return self.joined(left, right, known) or self.joined(right, left, known)
            case _:
                return None

    @legality
    def joined(self, upper: Expression, lower: Expression, known: Mapping[Symbol, _Digits]) -> _Digits | None:
        """Return the digits that a sum of a digit times a radix and of the digit below it is."""
        below = self.digits(lower, known)
        if below is None or below.high is None or not (isinstance(upper, Apply) and upper.operator.name == "mul"):
            return None
        for digit, radix in (upper.operands, upper.operands[::-1]):
            above, by = self.digits(digit, known), self.known.product(radix)
            if above is not None and by is not None and above.low == below.high == below.low.times(by):
                self.joins.add(by)
                return _Digits(below.low, above.high)
        return None

    def expression(self, value: Expression, known: Mapping[Symbol, _Digits]) -> Expression:
        """Return an expression with digits as indices, or note their places."""
        found = self.digits(value, known)
        if found is None:
            return rebuild(value, lambda node: self.expression(cast("Expression", node), known))
        self.undivided = self.undivided or found == WHOLE
        self.places |= {found.low, *(() if found.high is None else (found.high,))}
        return value if self.values is None else self.written(found)

    def written(self, found: _Digits) -> Expression:
        """Return digits as a number: of their loops' indices."""
        high = self.whole if found.high is None else found.high
        if self.order and self.whole.over(found.low) is None:
            top = self.order[-1]
            return self.within(self.divided("floordiv", self.written(_Digits(top)), found.low.over(top)), found)
        if self.order and self.whole.over(high) is None:
            return self.within(self.written(_Digits(found.low)), found)
        result: Expression = build.integer(0)
        values = self.values or {}
        for place in reversed(self.order):
            if place.over(found.low) is None or high.over(place) in {None, ONE}:
                continue
            symbol, extent = values[place]
            result = build.add(build.mul(result, extent), build.read(symbol))
        return result

    def within(self, value: Expression, found: _Digits) -> Expression:
        """Return the digits below the highest ones of a number that begins where some digits do."""
        by = None if found.high is None else found.high.over(found.low)
        return value if by is None else self.divided("mod", value, by)

    def divided(self, operator: str, value: Expression, by: _Product | None) -> Expression:
        """Return a number divided by a product."""
        return value if by is None else build.apply(operator, value, build.product(self.known.expressions(by)))
