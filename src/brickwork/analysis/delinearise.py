"""Delinearisation: the flat index `i * n + j` with `0 <= j < n` is the pair (i, j); pairs are compared by parts.

    i * n + j == k * n + l   is   i == k and j == l   where both j and l lie in range(n)

Products of indices and sizes are opaque to isl; the parts are not. Invariant: the parts of two indices are equal
exactly if the indices are, in every state that satisfies what the caller can prove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from brickwork.analysis.polyhedral_model import is_parameter
from brickwork.analysis.polynomial import Atom, Monomial, Polynomial, combine, number, order_of

Prover: TypeAlias = Callable[[Polynomial], bool]
"""Whether a polynomial is at least 0 wherever its access happens."""


def parts_of(
    left: Polynomial, right: Polynomial, left_is_natural: Prover, right_is_natural: Prover
) -> list[tuple[Polynomial, Polynomial]]:
    """Return pairs of polynomials that are all equal exactly if `left` and `right` are."""
    result: list[tuple[Polynomial, Polynomial]] = []
    # Each quotient is a product of fewer parameters.
    while found := _split(left, right, left_is_natural, right_is_natural):
        (left, low), (right, other_low) = found
        result.append((low, other_low))
    return [*result, (left, right)]


_Division: TypeAlias = tuple[Polynomial, Polynomial]


def _split(
    left: Polynomial, right: Polynomial, left_is_natural: Prover, right_is_natural: Prover
) -> tuple[_Division, _Division] | None:
    """Divide both indices by a stride that both remainders stay below."""
    for stride in _strides((left, right)):
        first = _divide(left, stride, left_is_natural)
        if first is None:
            continue
        second = _divide(right, stride, right_is_natural)
        if second is not None:
            return first, second
    return None


def _divide(value: Polynomial, stride: Polynomial, is_natural: Prover) -> _Division | None:
    """Return quotient and remainder of a polynomial, the remainder proved to lie in range(stride)."""
    quotient, rest = divide_terms(value, stride)
    for shift in (0, 1, -1):
        low = rest + stride.scale(shift)
        if is_natural(low) and is_natural(stride - low - number(1)):
            return quotient - number(shift), low
    return None


def divide_terms(value: Polynomial, divisor: Polynomial) -> _Division:
    """Return polynomials with `value == quotient * divisor + rest`, as many terms as possible in the quotient."""
    lead, factor = max(divisor.terms, key=lambda term: (len(term[0]), [order_of(atom) for atom in term[0]]))
    quotient: list[tuple[Monomial, int]] = []
    rest, left = value, list(value.terms)
    while left:
        monomial, times = max(left, key=lambda term: (len(term[0]), [order_of(atom) for atom in term[0]]))
        left.remove((monomial, times))
        ratio = _ratio(monomial, lead)
        if ratio is None or times % factor:
            continue
        part = combine([(ratio, times // factor)])
        quotient.extend(part.terms)
        rest = rest - part * divisor
        place = (len(monomial), [order_of(atom) for atom in monomial])
        left = [term for term in rest.terms if (len(term[0]), [order_of(atom) for atom in term[0]]) < place]
    return combine(quotient), rest


def _ratio(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Return the product that is left when the atoms of another are taken out of one."""
    left = list(monomial)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _strides(values: Sequence[Polynomial]) -> list[Polynomial]:
    """Return what varying atoms are multiplied with, if that is no number; the smallest products first."""
    found: dict[Polynomial, None] = {}
    for value in values:
        varying = {atom for monomial, _ in value.terms for atom in monomial if not is_parameter(atom)}
        for atom in sorted(varying, key=order_of):
            factor = _factor(value, atom)
            if factor.terms and not factor.is_constant and all(map(is_parameter, factor.atoms())):
                found[_positive(factor)] = None
    return sorted(found, key=lambda item: (max(len(monomial) for monomial, _ in item.terms), len(item.terms)))


def _factor(value: Polynomial, atom: Atom) -> Polynomial:
    return combine(
        (tuple(other for other in monomial if other != atom), factor)
        for monomial, factor in value.terms
        if monomial.count(atom) == 1
    )


def _positive(factor: Polynomial) -> Polynomial:
    return factor.scale(-1) if factor.terms[-1][1] < 0 else factor
