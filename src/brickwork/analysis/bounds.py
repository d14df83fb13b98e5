"""Bounds analysis: accesses proved in range, or in range under a guard, or neither.

The order of attempts is that of cost: corners of the iteration space, isl, isl's condition on the parameters, the
corners' condition, what the host computes of quotients, and speculation that a factor equals a divisor. Invariant: an
index that is PROVED, or GUARDED while its guard holds, is within its axis in every execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import TypeAlias

from brickwork.analysis.corners import lower_corner, without_floors, without_index_floors, without_quotients
from brickwork.analysis.extremes import guard_of_extremes
from brickwork.analysis.formula import Comparison, Formula, at_least, either, negate
from brickwork.analysis.isl import Solver
from brickwork.analysis.parameter_expressions import choice_expression
from brickwork.analysis.polyhedral_model import Access, Axis, Model, Place, is_fixed, is_parameter
from brickwork.analysis.polynomial import (
    SCALAR_LIMIT,
    Atom,
    IndexAtom,
    Polynomial,
    SizeAtom,
    UnknownAtom,
    combine,
    interval_of,
    number,
    of_atom,
)
from brickwork.analysis.verdicts import Bound, BoundVerdict
from brickwork.legality import legality
from brickwork.records import dataclass

TEST_LIMIT = 24
"""Comparisons of a guard, or of a test before a loop, beyond which checking is thought cheaper."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Comparisons over parameters under which something holds: all of them, each a choice of several."""

    needed: tuple[tuple[Comparison, ...], ...]

    @property
    def certain(self) -> bool:
        """Whether nothing is needed."""
        return not self.needed


Proofs: TypeAlias = dict[tuple[Place, Polynomial], Proof | None]
"""What it takes for a polynomial to be at least 0 at a place, as it was found: many accesses have the same indices."""


def bound_access(
    model: Model, solver: Solver, access: Access, proofs: Proofs, *, unguarded: bool = False
) -> dict[int, BoundVerdict]:
    """Return the verdict of each axis of an access; if `unguarded`, no guards are looked for.

    `proofs` are those that were found for other accesses of the model.
    """
    model = model.within(access)
    if unguarded:
        return {place: _bound_unguarded(model, solver, access, axis, proofs) for place, axis in enumerate(access.axes)}
    return {place: _bound_axis(model, solver, access, axis, proofs) for place, axis in enumerate(access.axes)}


def _bound_unguarded(model: Model, solver: Solver, access: Access, axis: Axis, proofs: Proofs) -> BoundVerdict:
    """Judge an index by what is certain."""

    def is_certain(goal: Polynomial) -> bool:
        key = ((access.loops, access.conditions), goal)
        if key not in proofs:
            proofs[key] = Proof(()) if _is_certain(model, solver, access, goal) else None
        return proofs[key] is not None

    natural = is_certain(_goal(model, axis, negative=True))
    if is_certain(_goal(model, axis, negative=False)):
        if natural:
            return BoundVerdict(Bound.PROVED)
        if axis.wraps and is_certain(axis.value + axis.size):
            return BoundVerdict(Bound.PROVED, plain=False)
    return BoundVerdict(Bound.CHECKED, plain=natural or not axis.wraps)


def _bound_axis(model: Model, solver: Solver, access: Access, axis: Axis, proofs: Proofs) -> BoundVerdict:
    below = _prove(model, solver, access, _goal(model, axis, negative=True), proofs)
    above = _prove(model, solver, access, _goal(model, axis, negative=False), proofs)
    if above is not None:
        # An index that moves with a loop is hardly meant to count from the end for some arguments only.
        moves = any(isinstance(atom, IndexAtom) for atom in axis.value.atoms())
        plain = below is not None and (below.certain or moves or not axis.wraps)
        if plain and below is not None and _can_hold(model, solver, access, (*below.needed, *above.needed)):
            return _verdict((*below.needed, *above.needed), plain=True)
        if (verdict := _bound_wrapping(model, solver, access, axis, above, proofs)) is not None:
            return verdict

    def can_hold(goal: Polynomial) -> bool:
        return _can_hold(model, solver, access, ((Comparison(goal),),))

    if (extremes := guard_of_extremes(model, access, axis, can_hold)) is not None:
        return BoundVerdict(Bound.GUARDED, extremes)
    for speculation, special in _candidates(model, axis):
        room = special.size - special.value - number(1)
        corners = [lower_corner(model, access.loops, goal) for goal in (special.value, room)]
        if all(corner is not None and _certain(model, corner) for corner in corners):
            return _verdict(speculation, plain=True)
    natural = below is not None and below.certain
    return BoundVerdict(Bound.CHECKED, plain=natural or not axis.wraps)


def _verdict(needed: tuple[tuple[Comparison, ...], ...], *, plain: bool) -> BoundVerdict:
    guard = tuple(map(choice_expression, needed))
    return BoundVerdict(Bound.GUARDED if guard else Bound.PROVED, guard, plain)


def _can_hold(model: Model, solver: Solver, access: Access, needed: tuple[tuple[Comparison, ...], ...]) -> bool:
    """Whether a guard can hold in a call that executes the access; one that cannot would give up all others."""
    if not needed:
        return True
    formulas = (*model.domain(access), *(either(*choices) for choices in needed))
    return solver.feasible(model.closure(formulas)) is not False


def _bound_wrapping(
    model: Model, solver: Solver, access: Access, axis: Axis, above: Proof, proofs: Proofs
) -> BoundVerdict | None:
    """Judge an index that may be negative: it has to be at least minus the size."""
    below = _prove(model, solver, access, axis.value + axis.size, proofs)
    if below is None or not axis.wraps:
        return None
    needed = (*below.needed, *above.needed)
    return _verdict(tuple(dict.fromkeys(needed)), plain=False) if _can_hold(model, solver, access, needed) else None


def _candidates(model: Model, axis: Axis) -> Iterator[tuple[tuple[tuple[Comparison, ...], ...], Axis]]:
    """Yield the axis as it is where factors of quotients equal the divisors, or are zero, and under which condition."""
    choices: list[list[tuple[Comparison, dict[tuple[Atom, ...], Polynomial]] | None]] = []
    for monomial, _ in axis.modular.terms:
        options = _speculations(model, monomial)
        if options:
            choices.append([None, *options])
    if not 0 < len(choices) <= 3:
        return
    for combination in product(*choices):
        value = axis.modular
        taken = [choice for choice in combination if choice is not None]
        for _, exchange in taken:
            for monomial, replacement in exchange.items():
                factor = value.factor(monomial)
                value = value - combine(((monomial, factor),)) + replacement.scale(factor)
        if interval_of(value, model.intervals).fits:
            conditions = tuple((condition,) for condition, _ in taken)
            yield conditions, replace(axis, value=value)


def _speculations(
    model: Model, monomial: tuple[Atom, ...]
) -> list[tuple[Comparison, dict[tuple[Atom, ...], Polynomial]]]:
    if len(monomial) != 2:
        return []
    result: list[tuple[Comparison, dict[tuple[Atom, ...], Polynomial]]] = []
    for atom, other in (monomial, monomial[::-1]):
        known = model.quotients.get(atom)
        if known is None or not is_parameter(other) or not all(map(is_parameter, known.divisor.atoms())):
            continue
        same = Comparison(known.divisor - of_atom(other), equal=True)
        result.append((same, {monomial: known.dividend - known.rest}))
        result.append((Comparison(of_atom(other), equal=True), {monomial: number(0)}))
    return result


# ---------------------------------------------------------------- proofs


def _prove(model: Model, solver: Solver, access: Access, goal: Polynomial, proofs: Proofs) -> Proof | None:
    """Prove that a goal is at least 0 where an access is made, unless that was done before."""
    key = ((access.loops, access.conditions), goal)
    if key not in proofs:
        proofs[key] = _proved(model, solver, access, goal)
    return proofs[key]


def _proved(model: Model, solver: Solver, access: Access, goal: Polynomial) -> Proof | None:
    corner = lower_corner(model, access.loops, goal)
    if _is_implied(model, access, goal, corner):
        return Proof(())
    # Guards are found without the limits: one that says how large a quotient of sizes may be would hardly ever hold.
    free = model.unlimited
    corner = lower_corner(free, access.loops, goal)
    if _is_at_corner(model, access, goal, corner) and corner is not None:
        if _is_about_defined(model, corner) and _is_never_missed(model, solver, access, goal):
            return Proof(())
        proof = None if corner.is_constant else _usable(model, Proof(((Comparison(corner),),)))
        if proof is not None:
            return proof
    if _is_never_missed(model, solver, access, goal):
        return Proof(())
    if not model.quotients.keys().isdisjoint(without_quotients(model, goal).atoms()):
        # Of a quotient by an argument is known that it is no greater than the dividend, which it seldom comes near to.
        return None
    found = solver.parameters_where(_wrongs(free, access, goal), free.closure(model.domain(access)))
    told = any(isinstance(atom, UnknownAtom) and atom not in model.quotients for atom in goal.atoms())
    if found is not None and (proof := _avoid(model, found, told=told)) is not None:
        return proof
    assumed: list[Polynomial] = []
    if corner is None:
        corner = lower_corner(free, access.loops, goal, assumed)
    corner = None if corner is None else without_floors(model, corner)
    if corner is None or not all(map(is_parameter, corner.atoms())):
        return None
    needed = [item for item in dict.fromkeys((*assumed, corner)) if not _certain(model, item)]
    if not needed or any(item.is_constant for item in needed):
        return None
    return _usable(model, Proof(tuple((Comparison(item),) for item in needed)))


def _is_certain(model: Model, solver: Solver, access: Access, goal: Polynomial) -> bool:
    """Whether a goal is at least 0 for all arguments."""
    corner = lower_corner(model, access.loops, goal)
    if _is_implied(model, access, goal, corner):
        return True
    at_corner = _is_at_corner(model, access, goal, corner) and corner is not None and not corner.is_constant
    isl_knows_more = not at_corner or _is_about_defined(model, corner)
    return isl_knows_more and _is_never_missed(model, solver, access, goal)


@legality
def _is_never_missed(model: Model, solver: Solver, access: Access, goal: Polynomial) -> bool:
    """Whether a goal is reached wherever the access is made, or a lower bound of it: `g * n + i` is opaque to isl."""
    if solver.feasible(_wrongs(model, access, goal)) is False:
        return True
    bound = lower_corner(model, access.loops, goal, kept=model.definitions)
    return bound not in (None, goal) and solver.feasible(_wrongs(model, access, bound)) is False


def _goal(model: Model, axis: Axis, *, negative: bool) -> Polynomial:
    """Return what has to be at least 0."""
    return without_index_floors(model, axis.value if negative else axis.size - axis.value - number(1))


def _is_implied(model: Model, access: Access, goal: Polynomial, corner: Polynomial | None) -> bool:
    """Whether a lower bound of a goal, which may be this one, is at least 0 because the loops around the access run."""
    if corner is not None and (_certain(model, corner) or _follows(model, access, corner)):
        return True
    plain = lower_corner(model, access.loops, goal, plainly=True)
    return plain is not None and (_certain(model, plain) or _follows(model, access, plain))


def _wrongs(model: Model, access: Access, goal: Polynomial) -> tuple[Formula, ...]:
    """Return when an access is made where a goal is missed."""
    return model.closure((*model.domain(access), at_least(number(-1), goal)))


def _is_at_corner(model: Model, access: Access, goal: Polynomial, corner: Polynomial | None) -> bool:
    """Whether a goal is reached for just those arguments for which its lower bound is."""
    return corner is not None and _is_tight(model, access, goal) and all(map(is_parameter, corner.atoms()))


def _is_about_defined(model: Model, corner: Polynomial | None) -> bool:
    """Whether more than an interval is known of a parameter: that it is a size divided by a number, say."""
    return corner is not None and not model.definitions.keys().isdisjoint(corner.atoms())


def _follows(model: Model, access: Access, corner: Polynomial) -> bool:
    """Whether a polynomial is at least 0 because a loop around the access runs at all."""
    return any(_certain(model, corner - (loop.stop - loop.start - number(1))) for loop in access.loops)


def _is_tight(model: Model, access: Access, goal: Polynomial) -> bool:
    """Whether some iteration reaches the corner, unless a loop with fixed bounds is empty: isl could prove no more."""
    if access.conditions or any(isinstance(atom, UnknownAtom) for atom in goal.atoms()):
        return False
    for place, loop in enumerate(access.loops):
        if _moves_unseen(loop.start) or _moves_unseen(loop.stop):
            return False
        length = loop.stop - loop.start - number(1)
        if all(map(is_parameter, length.atoms())):
            continue
        least = lower_corner(model, access.loops[:place], length)
        if least is None or not _certain(model, least):
            return False
    return True


def _moves_unseen(end: Polynomial) -> bool:
    """Whether an end of a loop moves with quotients of indices around it: their intervals do not say how."""
    return any(isinstance(atom, UnknownAtom) and not is_fixed(atom) for atom in end.atoms())


def _avoid(model: Model, disjuncts: tuple[tuple[Comparison, ...], ...], *, told: bool) -> Proof | None:
    """Return what to ask of the parameters so that none of the disjuncts holds.

    What elements have `told` is out of range for all parameters: few iterations, hence none that asks, hardly ever are.
    """
    needed: list[tuple[Comparison, ...]] = []
    for conjunction in disjuncts:
        if not conjunction:
            return None
        choices = [part for comparison in conjunction for part in _negated(comparison) if _is_possible(part)]
        choices = [part for part in choices if not (told and _is_about_few(part))]
        if not choices:
            return None
        needed.append(tuple(choices))
    return _usable(model, Proof(tuple(needed)))


def _usable(model: Model, proof: Proof) -> Proof | None:
    """Return a proof whose conditions are worth testing, and can be tested in 64 bits."""
    polynomials = [part.polynomial for choices in proof.needed for part in choices]
    if len(polynomials) > TEST_LIMIT or any(map(_is_about_types, polynomials)):
        return None
    if not all(any(map(_may_hold, choices)) for choices in proof.needed):
        return None
    return proof if all(_fits_when_tested(model, item) for item in polynomials) else None


def _fits_when_tested(model: Model, polynomial: Polynomial) -> bool:
    """Whether neither side of the comparison that `comparison_expression` makes of a polynomial wraps."""
    gains = combine(term for term in polynomial.terms if term[1] > 0)
    losses = combine(term for term in polynomial.terms if term[1] < 0)
    return all(interval_of(side, model.intervals).fits for side in (gains, losses.scale(-1)))


def _is_about_types(polynomial: Polynomial) -> bool:
    """Whether a comparison comes from the range of a type: it would hardly ever hold."""
    return any(abs(factor) > SCALAR_LIMIT // 2 for _, factor in polynomial.terms)


def _is_possible(comparison: Comparison) -> bool:
    """Whether a comparison may hold, and is not one about the range of a type."""
    if _is_about_types(comparison.polynomial):
        return False
    interval = interval_of(comparison.polynomial, {})
    return interval.high is None or interval.high >= 0


def _may_hold(comparison: Comparison) -> bool:
    """Whether a comparison of sizes with products of sizes holds for some of those tried: `n > n * n` never does."""
    atoms, tried = [*comparison.polynomial.atoms()], (1, 2, 100)
    if len(atoms) > len(tried) or comparison.polynomial.is_affine or not all(map(_is_size, atoms)):
        return True
    return any(
        comparison.polynomial.substitute(dict(zip(atoms, map(number, sizes), strict=True))).constant >= 0
        for sizes in product(tried, repeat=len(atoms))
    )


def _is_size(atom: Atom) -> bool:
    return isinstance(atom, SizeAtom)


def _is_about_few(comparison: Comparison) -> bool:
    """Whether a comparison says of sizes alone that they are no greater than a number."""
    terms = comparison.polynomial.terms
    return all(factor < 0 and all(map(_is_size, atoms)) for atoms, factor in terms if atoms)


def _negated(comparison: Comparison) -> tuple[Comparison, ...]:
    formula = negate(comparison)
    return (formula,) if isinstance(formula, Comparison) else tuple(_parts(formula))


def _parts(formula: Formula) -> Iterable[Comparison]:
    parts: tuple[Formula, ...] = getattr(formula, "parts", ())
    return [part for part in parts if isinstance(part, Comparison)]


def _certain(model: Model, polynomial: Polynomial) -> bool:
    low = interval_of(polynomial, model.intervals).low
    return low is not None and low >= 0
