"""Products as they are written: factors of a term, divisors, signs, and factors that a condition chooses over zero.

    s += a[i, k] * b[k, j] / n           factors a[i, k] and b[k, j], divisor n
    v = x[u] if 0 <= u < n else 0.0      the factor x[u] where the condition holds: elsewhere the product is a zero,
    s += v * w[k, j]                     if what v is multiplied by is finite

Asked of expressions; what factors go with is asked in `contractions.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import frexp, isfinite

from brickwork.analysis.integer_range import integer_range
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, DType
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Constant, Expression, For, If, Read, Statement, Symbol
from brickwork.ir.walk import operands_of, read_symbols, substitute
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Zero:
    """A condition, and factors that are 0 where it does not hold."""

    condition: Expression
    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Accumulation:
    """What loops add up in a variable, and the conditions under which it is added: those of `zeros`, too."""

    loops: tuple[For, ...]
    symbol: Symbol
    added: Expression
    masks: tuple[Expression, ...]
    zeros: tuple[Zero, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """A factor of a product, or what the product is divided by."""

    value: Expression
    divides: bool = False


@legality
def terms_of(value: Expression) -> Iterator[Term]:
    """Yield the factors of a product, and its divisors; a float of a product of small integers is one of floats."""
    match value:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "mul":
            yield from terms_of(left)
            yield from terms_of(right)
        case Apply(operator=operator, operands=(left, right)) if operator.name == "truediv":
            yield from terms_of(left)
            yield _inverse(right) or Term(right, divides=True)
        case Apply(operator=operator, operands=(operand,)) if operator.name == "neg":
            yield Term(build.constant(-1, operand.dtype))
            yield from terms_of(operand)
        case Cast(operand=Apply(operator=operator, operands=operands) as product) if (
            operator.name == "mul"
            and value.dtype in {FLOAT32, FLOAT64}
            and all(is_exact(each) for each in (product, *operands))
        ):
            for each in operands:
                yield from terms_of(build.cast(each, value.dtype))
        case _:
            yield Term(value)


@legality
def _inverse(divisor: Expression) -> Term | None:
    """Return the factor that a divisor is, if it is a power of two, not near the ends of a type's range."""
    if isinstance(divisor, Constant) and 2**-100 <= abs(divisor.value) <= 2**100:
        return Term(build.constant(1 / divisor.value, divisor.dtype)) if abs(frexp(divisor.value)[0]) == 0.5 else None
    return None


@legality
def is_exact(value: Expression) -> bool:
    """Whether float32, of 24 bits, has all integers that a value can be."""
    bounds = integer_range(value)
    return bounds is not None and max(-bounds[0], bounds[1]) <= 2**24


def chooses_one(zeros: Sequence[Zero], mask: Expression, sides: Sequence[Sequence[Term]]) -> bool:
    """Whether a mask chooses factors of the second side of a product alone."""
    first, second = (any(term.value in _chosen(zeros, mask) for term in side) for side in sides)
    return second and not first


@legality
def are_zero(zeros: Sequence[Zero], masks: Sequence[Sequence[Expression]], sides: Sequence[Sequence[Term]]) -> bool:
    """Whether each side of a product is 0 as a whole where masks of it do not hold, or factors of it are 0.

    What is not finite, times 0, is not 0: a side has nothing of that but what is 0 there, too.
    """
    for zero in zeros:
        chosen = _chosen(zeros, zero.condition)
        for own, side in zip(masks, sides, strict=True):
            whole = zero.condition in own or any(term.value in chosen for term in side)
            if whole and not Counter(term.value for term in side if not is_finite(term.value)) <= chosen:
                return False
    return True


def _chosen(zeros: Sequence[Zero], condition: Expression) -> Counter[Expression]:
    """Return the factors that are 0 where a condition does not hold."""
    return Counter(factor for zero in zeros if zero.condition == condition for factor in zero.factors)


@legality
def is_finite(factor: Expression) -> bool:
    """Whether a factor is known to be neither an infinity nor NaN."""
    match factor:
        case Constant(value=number):
            return isfinite(number)
        case Cast(operand=operand):
            return not operand.dtype.is_float
        case _:
            return not factor.dtype.is_float


def product_of(terms: Sequence[Term], dtype: DType) -> Expression:
    """Return the product of factors, divided by divisors."""
    above, below = ([each.value for each in terms if each.divides is divides] for divides in (False, True))
    value = build.product(above) if above else build.constant(1, dtype)
    return build.apply("truediv", value, build.product(below)) if below else value


@dataclass(slots=True)
class Choices:
    """Variables that are a value where a condition holds, and else 0; `hidden` ones are assigned in a branch alone."""

    found: dict[Symbol, tuple[Expression, Expression]] = field(
        default_factory=dict[Symbol, tuple[Expression, Expression]]
    )
    hidden: set[Symbol] = field(default_factory=set[Symbol])

    @legality
    def take(self, statement: Statement, values: Mapping[Symbol, Expression], here: set[Symbol]) -> Symbol | None:
        """Note the variable that a statement assigns so, and return it; `here` are those that were assigned before.

        What it was before does not matter but in a branch that leaves it.
        """
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                asked = substitute(condition, values)
            case _:
                return None
        if _zero(then) is not None:
            asked, then, otherwise = build.logical_not(asked), otherwise, then
        found = self._branch(then, values)
        if found is None or found[0] in self.found or found[0] in self.hidden:
            return None
        symbol, value = found
        if _zero(otherwise) != symbol and not (symbol in here and not otherwise and _is_null(values[symbol])):
            return None
        self.found[symbol] = asked, value
        return symbol

    def _branch(self, block: Block, values: Mapping[Symbol, Expression]) -> tuple[Symbol, Expression] | None:
        """Return the variable that a branch assigns last, and its value; others in it are hidden."""
        inner = {**values}
        last: Symbol | None = None
        for item in block:
            if not isinstance(item, Assign) or (last is not None and last in values):
                return None
            inner[item.symbol] = substitute(item.value, inner)
            self.hidden |= set() if last is None else {last}
            last = item.symbol
        return None if last is None else (last, inner[last])

    @legality
    def resolved(self, sum_up: Accumulation) -> Accumulation | None:
        """Return a sum with the values of choices, and their conditions as masks; None if one is no factor.

        What reads the sum itself goes on from the terms before, and is none either.
        """
        masks, zeros = [*sum_up.masks], list[Zero]()
        added = self._whole(sum_up.added, masks, zeros)
        own = self.found.keys() | self.hidden | {sum_up.symbol}
        bounds = [bound for loop in sum_up.loops for bound in (loop.start, loop.stop)]
        if read_symbols((added, *masks, *bounds)) & own:
            return None
        return replace(sum_up, added=added, masks=tuple(masks), zeros=tuple(zeros))

    def _whole(self, value: Expression, masks: list[Expression], zeros: list[Zero]) -> Expression:
        """Return what is added; where it is a choice, nothing is added elsewhere."""
        if isinstance(value, Read) and value.symbol in self.found:
            asked, value = self.found[value.symbol]
            masks += operands_of(asked, "logical_and")
            return self._whole(value, masks, zeros)
        return self._factors(value, masks, zeros) if read_symbols(value) & self.found.keys() else value

    def _factors(self, value: Expression, masks: list[Expression], zeros: list[Zero]) -> Expression:
        """Return a product with the values of its factors that are choices."""
        terms: list[Term] = []
        for term in terms_of(value):
            own = term.value
            if isinstance(own, Read) and own.symbol in self.found and not term.divides:
                asked, own = self.found[own.symbol]
                parts = (*operands_of(asked, "logical_and"),)
                masks += parts
                own = self._factors(own, masks, zeros)
                chosen = tuple(each.value for each in terms_of(own))
                zeros += (Zero(part, chosen) for part in parts)
            terms.append(replace(term, value=own))
        return product_of(terms, value.dtype)


def _zero(block: Block) -> Symbol | None:
    """Return the variable that a block assigns 0 to, if it does nothing else."""
    match block:
        case (Assign(symbol=symbol, value=value),) if _is_null(value):
            return symbol
        case _:
            return None


def _is_null(value: Expression | None) -> bool:
    return isinstance(value, Constant) and value.value == 0
