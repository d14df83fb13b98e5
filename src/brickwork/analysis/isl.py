"""The only door to isl: formulas become integer sets, and questions about them are answered or given up.

Products of atoms become variables of their own. Every question has an operation limit; running out, or anything that
isl cannot do, is answered by None ("not known"). A question is a text, and its answer depends on nothing else: the
newest answers are kept, since the passes over a kernel, and kernels that are alike, ask the same. Nothing in here knows
of loops or accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, TypeAlias

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
QUESTION_LIMIT = 240
"""Different questions about one kernel; further ones are not asked."""
FOLLOWED = 8
"""Variables of a loop, values of one, or cases of an index beyond which they are not followed: isl is asked of each."""
REMEMBERED = FOLLOWED * QUESTION_LIMIT
"""Answers of each kind that are kept: those about a few kernels, most of which take some tens."""


class Solver:
    """Asks isl about formulas; one for a pass over a kernel, whose questions it counts."""

    def __init__(self) -> None:
        """Begin without isl: it is loaded, which takes a while, at the first question."""
        self._questions = 0
        self._known: dict[tuple[Formula, ...], bool | None] = {}
        self._answers: dict[tuple[str, ...], bool | None] = {}
        self._asked: set[tuple[str, str]] = set()

    def feasible(self, formulas: Sequence[Formula]) -> bool | None:
        """Whether some integers satisfy all formulas."""
        key = tuple(formulas)
        if key not in self._known:
            self._known[key] = self._decided(key)
        return self._known[key]

    def _decided(self, formulas: tuple[Formula, ...]) -> bool | None:
        parts = _left_over(formulas)
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
            self._answers[key] = self._found(formulas, names) if self._may_ask() else None
        return self._answers[key]

    @staticmethod
    def _found(formulas: Sequence[Formula], names: dict[Monomial, str]) -> bool | None:
        """Ask about what has no choices first: isl goes through all combinations of those."""
        plain = [formula for formula in formulas if isinstance(formula, Comparison)]
        if len(plain) < len(formulas) and _is_feasible(_text({}, names, plain)) is False:
            return False
        return _is_feasible(_text({}, names, formulas))

    def parameters_where(
        self, formulas: Sequence[Formula], known: Sequence[Formula]
    ) -> tuple[tuple[Comparison, ...], ...] | None:
        """Return for which sizes and scalars the formulas can be satisfied, given that `known` can be.

        The answer is a disjunction of conjunctions.
        """
        names = _names((*formulas, *known))
        parameters = {monomial: name for monomial, name in names.items() if all(map(_is_parameter, monomial))}
        rest = {monomial: name for monomial, name in names.items() if monomial not in parameters}
        question = _text(parameters, rest, formulas), _text(parameters, rest, known)
        if question not in self._asked and not self._may_ask():
            return None
        self._asked.add(question)
        found = _parameters_where(*question)
        monomials: dict[str, Monomial] = {"": (), **{name: monomial for monomial, name in parameters.items()}}
        if found is None:
            return None

        def comparison(terms: _Terms, same: bool) -> Comparison:
            return Comparison(combine((monomials[name], factor) for name, factor in terms), same)

        return tuple(tuple(starmap(comparison, each)) for each in found)

    def sample(self, formulas: Sequence[Formula]) -> dict[Monomial, int] | None:
        """Return integers that satisfy all formulas, or None if there are none or none were found."""
        names = _names(formulas)
        values = _sample(_text({}, names, formulas), len(names)) if self._may_ask() else None
        return None if values is None else dict(zip(names, values, strict=True))

    def _may_ask(self) -> bool:
        """Count a question; return whether it is one of those that are asked."""
        self._questions += 1
        return self._questions <= QUESTION_LIMIT


_left_over = lru_cache(REMEMBERED)(left_over)


@lru_cache(REMEMBERED)
def _is_feasible(text: str) -> bool | None:
    """Return whether a set has members."""
    import islpy

    try:
        return not islpy.Set(text, _context()).is_empty()
    except islpy.Error:
        return None


_Terms: TypeAlias = tuple[tuple[str, int], ...]
"""Factors by the names of variables; the constant has none."""


@lru_cache(REMEMBERED)
def _parameters_where(text: str, known: str) -> tuple[tuple[tuple[_Terms, bool], ...], ...] | None:
    """Return for which parameters a set has members, given that `known` has; of each comparison whether it is equal."""
    import islpy

    try:
        context = _context()
        found = islpy.Set(text, context).params()
        base = islpy.Set(known, context).params()
        return _disjuncts(found.gist(base).coalesce())
    except (islpy.Error, TypeError):  # As for the coordinates of a member.
        return None


@lru_cache(REMEMBERED)
def _sample(text: str, count: int) -> tuple[int, ...] | None:
    """Return the coordinates of a member of a set, or None if there is none or none was found."""
    import islpy

    try:
        point = islpy.Set(text, _context()).sample_point()
        if point.is_void():
            return None
        values = [point.get_coordinate_val(islpy.dim_type.set, place) for place in range(count)]
        return tuple(int(value.to_python()) for value in values)
    except (islpy.Error, TypeError):  # A coordinate is written with the last steps of the allowance, or is no number.
        return None


def _context() -> islpy.Context:
    """Return a context for one question, with its allowance; it is made in half a microsecond."""
    import islpy

    context = islpy.Context()
    context.set_max_operations(OPERATION_LIMIT)
    return context


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
    # isl takes a condition after the other: what comparisons rule out of a choice it then combines with no other one.
    plainly = sorted(_conjuncts(formulas), key=lambda formula: not isinstance(formula, Comparison))
    parts = [part for formula in plainly if (part := _formula_text(formula, names)) != "true"]
    condition = f" : {' and '.join(parts)}" if parts else ""
    return f"[{','.join(parameters.values())}] -> {{ [{','.join(variables.values())}]{condition} }}"


def _conjuncts(formulas: Iterable[Formula]) -> Iterator[Formula]:
    for formula in formulas:
        yield from _conjuncts(formula.parts) if isinstance(formula, AllOf) else (formula,)


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


def _disjuncts(found: islpy.Set) -> tuple[tuple[tuple[_Terms, bool], ...], ...] | None:
    import islpy

    result: list[tuple[tuple[_Terms, bool], ...]] = []
    for basic in found.get_basic_sets():
        if basic.dim(islpy.dim_type.div):
            return None
        result.append(tuple((_terms(each), each.is_equality()) for each in basic.get_constraints()))
    return tuple(result)


def _terms(constraint: islpy.Constraint) -> _Terms:
    factors = constraint.get_coefficients_by_name()
    return tuple(("" if isinstance(name, int) else name, int(value.to_python())) for name, value in factors.items())
