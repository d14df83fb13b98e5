"""Takes out factors of products that are divided by again, and divides a sum once instead of each of its terms.

    s = 0.0                                  q = 0.0
    for j in range(n):                       for j in range(n):
        v = r[j] * t                  ->         q = q + a[j] * r[j]
        s = s + a[j] / t * v / t             s = q / t if n > 0 else 0.0
    for j in range(n):                       for j in range(n):
        v = r[j] * t                             y[j] = q * r[j]
        y[j] = s * v

Reverse mode divides by the divisor of a quotient what it multiplies with values that it has as multiples of that (see
`saved_results.py`). Where the divisor is 0 or infinite, what it cancels would have been NaN. Invariant: a variable
stands for a quotient only while none of the factors has been assigned again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace

from brickwork.ir import build
from brickwork.ir.build import is_constant
from brickwork.ir.dtypes import BOOL
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
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, assigned_symbols, read_symbols, rebuild, walk
from brickwork.records import dataclass
from brickwork.transform.scratch import Names

_MOST = 3
"""Factors of a quotient that is written anew: products of them may have been computed before."""


@dataclass(frozen=True, slots=True)
class _Quotient:
    """A product by a product, or the negative of one."""

    above: tuple[Expression, ...]
    below: tuple[Expression, ...] = ()
    negative: bool = False

    @property
    def is_short(self) -> bool:
        """Whether it is as cheap as what it stands for."""
        return len(self.above) + len(self.below) <= _MOST

    def cancelled(self) -> _Quotient:
        """Return it without factors that stand on both sides."""
        both = Counter(filter(_is_variable, self.above)) & Counter(filter(_is_variable, self.below))
        if not both:
            return self
        return replace(self, above=_without(self.above, both), below=_without(self.below, both))

    def expression(self, like: Expression) -> Expression:
        """Return it as an expression of the type of another one."""
        result = self.above[0] if self.above else build.constant(1.0, like.dtype)
        for factor in self.above[1:]:
            result = build.mul(result, factor)
        for factor in self.below:
            result = build.apply("truediv", result, factor)
        return build.apply("neg", result) if self.negative else result


def _is_variable(factor: Expression) -> bool:
    return isinstance(factor, Read)


def _without(factors: tuple[Expression, ...], taken: Counter[Expression]) -> tuple[Expression, ...]:
    left, result = Counter(taken), list[Expression]()
    for factor in factors:
        if left[factor]:
            left[factor] -= 1
        else:
            result.append(factor)
    return tuple(result)


@dataclass(slots=True)
class _State:
    """What is known at a place: variables that are quotients of others, and those that are 0."""

    quotients: dict[Symbol, _Quotient] = field(default_factory=dict[Symbol, _Quotient])
    zeros: frozenset[Symbol] = frozenset()

    def copy(self) -> _State:
        """Return what is known, to be changed on its own."""
        return _State(dict(self.quotients), self.zeros)

    def forget(self, changed: frozenset[Symbol]) -> None:
        """Forget what is not so where some variables may have been assigned."""
        for symbol, quotient in [*self.quotients.items()]:
            if symbol in changed or read_symbols((*quotient.above, *quotient.below)) & changed:
                del self.quotients[symbol]
        self.zeros -= changed

    def assign(self, node: Assign) -> None:
        """Note what an assignment tells."""
        self.forget(frozenset({node.symbol}))
        if is_constant(node.value, 0.0):
            self.zeros |= {node.symbol}
        quotient = self.quotient(node.value)
        factors = (*quotient.above, *quotient.below)
        plain = all(isinstance(item, Read | Constant) for item in factors)
        if plain and len(factors) > 1 and build.read(node.symbol) not in factors:
            self.quotients[node.symbol] = quotient

    def quotient(self, node: Expression) -> _Quotient:
        """Return an expression as a quotient, as far as its variables are known."""
        match node:
            case Apply(operator=operator, operands=(operand,)) if operator.name == "neg" and node.dtype.is_float:
                inner = self.quotient(operand)
                return replace(inner, negative=not inner.negative)
            case Apply(operator=operator, operands=(left, right)) if node.dtype.is_float:
                if operator.name not in {"mul", "truediv"}:
                    return _Quotient((node,))
                one, other = self.quotient(left), self.quotient(right)
                above, below = (other.above, other.below) if operator.name == "mul" else (other.below, other.above)
                negative = one.negative != other.negative
                return _Quotient((*one.above, *above), (*one.below, *below), negative).cancelled()
            case Read(symbol=symbol):
                return self.quotients.get(symbol, _Quotient((node,)))
            case _:
                return _Quotient((node,))


def cancel_factors(block: Block, names: Names) -> Block:
    """Return the block with fewer multiplications and divisions."""
    return tuple(_block(block, _State(), names))


def _block(block: Block, state: _State, names: Names) -> Iterator[Statement]:
    for statement in block:
        match statement:
            case For():
                yield from _loop(statement, state, names)
            case While(body=body):
                state.forget(assigned_symbols(statement))
                yield replace(statement, body=tuple(_block(body, state.copy(), names)))
            case If(then=then, otherwise=otherwise):
                first, second = (tuple(_block(part, state.copy(), names)) for part in (then, otherwise))
                state.forget(assigned_symbols(statement))
                yield replace(statement, then=first, otherwise=second)
            case _:
                changed = rebuild(statement, lambda node: _changed(node, state))
                if isinstance(changed, Assign):
                    state.assign(changed)
                yield changed


def _changed(node: Node, state: _State) -> Node:
    """Return an expression with shorter quotients."""
    if not isinstance(node, EXPRESSIONS):
        return node
    match node:
        case Apply(operator=operator) if operator.name in {"mul", "truediv"} and node.dtype.is_float:
            quotient = state.quotient(node)
            if quotient.is_short and len(quotient.above) + len(quotient.below) < _count(node, state):
                return quotient.expression(node)
        case _:
            pass
    return rebuild(node, lambda child: _changed(child, state))


def _count(node: Expression, state: _State) -> int:
    """Return how many factors there would be if none were taken out."""
    match node:
        case Apply(operator=operator, operands=operands) if operator.name in {"mul", "truediv", "neg"}:
            return sum(_count(operand, state) for operand in operands)
        case Read(symbol=symbol) if symbol in state.quotients:
            known = state.quotients[symbol]
            return len(known.above) + len(known.below)
        case _:
            return 1


def _loop(loop: For, state: _State, names: Names) -> Iterator[Statement]:
    """Yield a loop, with the divisors of its sums behind it; `state` is moved on."""
    zeros, bound = state.zeros, assigned_symbols(loop)
    state.forget(bound)
    body: list[Statement] = []
    divided: dict[Symbol, tuple[Symbol, tuple[Expression, ...]]] = {}
    known = state.copy()
    for statement in loop.body:
        term = _term(statement)
        if term is not None and term[0] in zeros and _is_only_sum(loop.body, term[0]):
            symbol, added = term
            quotient = known.quotient(added)
            below = tuple(item for item in quotient.below if isinstance(item, Read) and item.symbol not in bound)
            rest = replace(quotient, below=_without(quotient.below, Counter(below)))
            if below and rest.is_short:
                total = names.symbol(symbol.name, symbol.dtype)
                divided[symbol] = total, below
                value = build.add(build.read(total), rest.expression(added))
                body.append(Assign(symbol=total, value=value, loc=statement.loc))
                continue
        body.extend(_block((statement,), known, names))
    ran = names.symbol("ran", BOOL)
    if divided:
        yield Assign(symbol=ran, value=build.apply("lt", loop.start, loop.stop), loc=loop.loc)
    for total, _ in divided.values():
        yield Assign(symbol=total, value=build.constant(0.0, total.dtype))
    yield replace(loop, body=tuple(body))
    for symbol, (total, below) in divided.items():
        quotient = _Quotient((build.read(total),), below)
        zero = build.constant(0.0, total.dtype)
        value = build.select(build.read(ran), quotient.expression(zero), zero)
        yield Assign(symbol=symbol, value=value, loc=loop.loc)
        state.quotients[symbol] = quotient


def _term(statement: Statement) -> tuple[Symbol, Expression] | None:
    """Return what is added to which variable by an assignment that does nothing else."""
    match statement:
        case Assign(symbol=symbol, value=Apply(operator=operator, operands=(Read(symbol=old), added))):
            if operator.name == "add" and old == symbol and symbol.dtype.is_float:
                return symbol, added
        case _:
            pass
    return None


def _is_only_sum(body: Block, symbol: Symbol) -> bool:
    """Whether a variable is named in a loop's body by one sum alone."""
    named = 0
    for node in walk(body):
        named += isinstance(node, Assign | Read) and node.symbol == symbol
    return named == 2  # the sum, and what it adds to
