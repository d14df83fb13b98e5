"""Integer expressions as sums: of what is added up, each so many times, and a constant.

Sums are equal modulo 2**64 to the expressions that they are of, whatever wraps in these.
"""

from __future__ import annotations

from brickwork.analysis.polynomial import SIZE_LIMIT
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Expression, Read, Size
from brickwork.legality import legality
from brickwork.records import dataclass

SMALL = 2**40
"""What is added up is tested to lie within plus or minus this, but for sizes, which are below `SIZE_LIMIT`."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Expressions, each times a factor that is not 0, and a constant."""

    terms: tuple[tuple[Expression, int], ...] = ()
    constant: int = 0

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """Return this and so many times the other."""
        terms = dict(self.terms)
        for item, count in other.terms:
            terms[item] = terms.get(item, 0) + factor * count
        left = tuple((item, count) for item, count in terms.items() if count)
        return Sum(left, self.constant + factor * other.constant)

    @property
    def limit(self) -> int:
        """The greatest absolute value, where what is added up is small."""
        sizes = sum(abs(factor) * (SIZE_LIMIT if isinstance(item, Size) else SMALL) for item, factor in self.terms)
        return sizes + abs(self.constant)

    def expression(self) -> Expression:
        """Return what computes it, what is taken away last."""
        total: Expression = build.integer(0)
        for item, factor in sorted(self.terms, key=lambda term: term[1] < 0):
            part = build.mul(build.integer(abs(factor)), item)
            total = build.add(total, part) if factor > 0 else build.sub(total, part)
        return build.add(total, build.integer(self.constant))


@legality
def sum_of(value: Expression) -> Sum | None:
    """Return an int64 that is added up of variables, sizes and literals; None for another one."""
    match value:
        case Constant(value=number) if value.dtype is INT64:
            return Sum((), int(number))
        case Read() | Size() if value.dtype is INT64:
            return Sum(((value, 1),))
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            first, second = sum_of(left), sum_of(right)
            if first is None or second is None:
                return None
            return first.plus(second, 1 if operator.name == "add" else -1)
        case _:
            return None
