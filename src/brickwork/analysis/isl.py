"""The only door to isl: formulas become integer sets, and questions about them are answered or given up.

Products of atoms become variables of their own. Every question has an operation limit; running out, or anything that
isl cannot do, is answered by None ("not known"). Nothing in here knows of loops or accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from brickwork.analysis.eliminate import left_over
from brickwork.analysis.formula import AllOf, AnyOf, Comparison, Formula, Unknown, comparisons
from brickwork.analysis.polynomial import (
    Atom,
    Monomial,
    Polynomial,
    ScalarAtom,
    SizeAtom,
    combine,
    place_of,
)

if TYPE_CHECKING:
    import islpy

OPERATION_LIMIT = 50_000
"""Steps of isl for one question; some milliseconds."""
QUESTION_LIMIT = 120
"""Questions about one kernel; further ones are not asked."""


class Solver:
    """Asks isl about formulas; one for a kernel, so that its context is shared."""

    def __init__(self) -> None:
        """Begin without isl: it is loaded, which takes a while, at the first question."""
        self._loaded: islpy.Context | None = None
        self._questions = 0
        self._known: dict[tuple[Formula, ...], bool | None] = {}
        self._answers: dict[tuple[str, ...], bool | None] = {}

    def feasible(self, formulas: Sequence[Formula]) -> bool | None:
        """Whether some integers satisfy all formulas."""
        key = tuple(formulas)
        if key not in self._known:
            self._known[key] = self._decided(key)
        return self._known[key]

    def _decided(self, formulas: tuple[Formula, ...]) -> bool | None:
        parts = left_over(formulas)
        if parts is None:
            return False
        found: bool | None = True
        for part in sorted(parts, key=len):
            answer = self._feasible(part)
            if answer is False:
                return False
            found = found and answer
        return found

    def _feasible(self, formulas: tuple[Formula, ...]) -> bool | None:
        """Ask isl, once for all formulas that are alike but for their order and the numbers of the atoms in them."""
        monomials = sorted(_names(formulas), key=place_of)
        names = {monomial: f"v{rank}" for rank, monomial in enumerate(monomials)}
        texts = [_formula_text(formula, names) for formula in formulas]
        key = tuple(sorted(texts))
        if key not in self._answers:
            self._answers[key] = self._answer(_text({}, names, formulas))
        return self._answers[key]

    def _answer(self, text: str) -> bool | None:
        import islpy

        try:
            context = self._context()
            return not islpy.Set(text, context).is_empty()
        except islpy.Error:
            return None

    def parameters_where(
        self, formulas: Sequence[Formula], known: Sequence[Formula]
    ) -> tuple[tuple[Comparison, ...], ...] | None:
        """Return for which sizes and scalars the formulas can be satisfied, given that `known` can be.

        The answer is a disjunction of conjunctions.
        """
        import islpy

        names = _names((*formulas, *known))
        parameters = {monomial: name for monomial, name in names.items() if all(map(_is_parameter, monomial))}
        rest = {monomial: name for monomial, name in names.items() if monomial not in parameters}
        try:
            context = self._context()
            found = islpy.Set(_text(parameters, rest, formulas), context).params()
            base = islpy.Set(_text(parameters, rest, known), context).params()
            return _disjuncts(found.gist(base).coalesce(), parameters)
        except islpy.Error:
            return None

    def sample(self, formulas: Sequence[Formula]) -> dict[Monomial, int] | None:
        """Return integers that satisfy all formulas, or None if there are none or none were found."""
        import islpy

        names = _names(formulas)
        try:
            context = self._context()
            point = islpy.Set(_text({}, names, formulas), context).sample_point()
            if point.is_void():
                return None
            values = [point.get_coordinate_val(islpy.dim_type.set, place) for place in range(len(names))]
            return {monomial: int(value.to_python()) for monomial, value in zip(names, values, strict=True)}
        except islpy.Error:
            return None

    def _context(self) -> islpy.Context:
        """Return isl's context with a fresh allowance."""
        import islpy

        if self._loaded is None:
            self._loaded = islpy.Context()
        self._questions += 1
        if self._questions > QUESTION_LIMIT:
            raise islpy.Error("no more questions")
        self._loaded.reset_operations()
        self._loaded.set_max_operations(OPERATION_LIMIT)
        return self._loaded


def _is_parameter(atom: Atom) -> bool:
    return isinstance(atom, SizeAtom | ScalarAtom)


def _names(formulas: Iterable[Formula]) -> dict[Monomial, str]:
    names: dict[Monomial, str] = {}
    for formula in formulas:
        for comparison in comparisons(formula):
            for monomial, _ in comparison.polynomial.terms:
                if monomial:
                    names.setdefault(monomial, f"v{len(names)}")
    return names


def _text(parameters: dict[Monomial, str], variables: dict[Monomial, str], formulas: Iterable[Formula]) -> str:
    names = {**parameters, **variables}
    parts = [part for formula in formulas if (part := _formula_text(formula, names)) != "true"]
    condition = f" : {' and '.join(parts)}" if parts else ""
    return f"[{','.join(parameters.values())}] -> {{ [{','.join(variables.values())}]{condition} }}"


def _formula_text(formula: Formula, names: dict[Monomial, str]) -> str:
    match formula:
        case Comparison(polynomial, same):
            return f"{_polynomial_text(polynomial, names)} {'=' if same else '>='} 0"
        case AllOf(parts):
            texts = [text for part in parts if (text := _formula_text(part, names)) != "true"]
            return f"({' and '.join(texts)})" if texts else "true"
        case AnyOf(parts):
            texts = [_formula_text(part, names) for part in parts]
            if "true" in texts:
                return "true"
            return f"({' or '.join(texts)})" if texts else "false"
        case Unknown():
            return "true"


def _polynomial_text(polynomial: Polynomial, names: dict[Monomial, str]) -> str:
    terms = [f"{factor} {names[monomial]}" if monomial else f"{factor}" for monomial, factor in polynomial.terms]
    return " + ".join(terms) or "0"


def _disjuncts(found: islpy.Set, names: dict[Monomial, str]) -> tuple[tuple[Comparison, ...], ...] | None:
    import islpy

    monomials = {name: monomial for monomial, name in names.items()}
    result: list[tuple[Comparison, ...]] = []
    for basic in found.get_basic_sets():
        if basic.dim(islpy.dim_type.div):
            return None
        constraints: list[Comparison] = []
        for constraint in basic.get_constraints():
            factors = constraint.get_coefficients_by_name()
            terms = [
                (() if isinstance(name, int) else monomials[name], int(value.to_python()))
                for name, value in factors.items()
            ]
            constraints.append(Comparison(combine(terms), constraint.is_equality()))
        result.append(tuple(constraints))
    return tuple(result)
