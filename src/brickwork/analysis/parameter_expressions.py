"""Polynomials over sizes and arguments, and comparisons of them, as expressions that the host computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brickwork.analysis.formula import Comparison
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, ScalarAtom, SizeAtom, UnknownAtom
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Constant, Expression, Size

Values = Mapping[Atom, Expression]
"""What atoms are that are no parameters themselves, but computed from some."""


def comparison_expression(comparison: Comparison, values: Values | None = None) -> Expression:
    """Return a comparison over parameters as an expression, without subtraction where possible."""
    gains, losses = _sides(comparison.polynomial, values or {})
    return build.apply("eq" if comparison.equal else "ge", gains, losses)


def choice_expression(choices: Iterable[Comparison]) -> Expression:
    """Return whether one of some comparisons holds."""
    result: Expression = Constant(value=False, dtype=BOOL)
    for comparison in choices:
        result = build.apply("logical_or", result, comparison_expression(comparison))
    return result


def expression_of(polynomial: Polynomial, values: Values | None = None) -> Expression:
    """Return a polynomial over parameters as an expression."""
    gains, losses = _sides(polynomial, values or {})
    return gains if build.is_constant(losses, 0) else build.apply("sub", gains, losses)


def _sides(polynomial: Polynomial, values: Values) -> tuple[Expression, Expression]:
    """Return what is added and what is taken away, each as a sum without negative factors."""
    gains = [(monomial, factor) for monomial, factor in polynomial.terms if factor > 0]
    losses = [(monomial, -factor) for monomial, factor in polynomial.terms if factor < 0]
    return _sum(gains, values), _sum(losses, values)


def _sum(terms: Iterable[tuple[tuple[Atom, ...], int]], values: Values) -> Expression:
    total: Expression = build.integer(0)
    for monomial, factor in terms:
        value: Expression = build.integer(factor)
        for atom in monomial:
            value = build.apply("mul", value, values[atom] if atom in values else parameter_expression(atom))
        total = build.apply("add", total, value)
    return total


def parameter_expression(atom: Atom) -> Expression:
    """Return a size or scalar as an expression."""
    match atom:
        case SizeAtom(tensor, axis):
            return Size(tensor=tensor, axis=axis)
        case ScalarAtom(symbol):
            return build.cast(build.read(symbol), INT64)
        case IndexAtom() | UnknownAtom():
            raise ValueError("only parameters stand in guards")
