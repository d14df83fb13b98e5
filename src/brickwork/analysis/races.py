"""Dependence analysis of loops: proved free of races, or the two accesses that are in the way.

Two accesses are apart if their elements differ in every two iterations of the loop, for fixed iterations of the loops
around it. A quick rule finds indices that step further than the rest of the index can reach; isl decides the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.analysis.ascending_rows import are_in_other_rows, rows_ascend
from brickwork.analysis.bounds import lower_corner
from brickwork.analysis.delinearise import parts_of
from brickwork.analysis.formula import (
    TRUE,
    Formula,
    at_least,
    atoms_of,
    both,
    comparisons,
    either,
    equal,
    is_exact,
    less,
    negate,
    substitute,
)
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Axis, Loop, Model, depth_of
from brickwork.analysis.polynomial import (
    Atom,
    IndexAtom,
    Polynomial,
    ScalarAtom,
    UnknownAtom,
    cofactor,
    combine,
    interval_of,
    number,
    of_atom,
    order_of,
)
from brickwork.analysis.verdicts import BoundVerdict, Conflict, ConflictKind, Party
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

PAIR = 2
OTHER_ITERATION = 1_000_000
"""Added to the numbers of atoms that belong to the second of two iterations."""
Places: TypeAlias = tuple[Loop, int, tuple[Loop, ...], tuple[Loop, ...], tuple[tuple[Polynomial, Polynomial], ...]]
"""A loop in which two accesses may meet, how deep what differs stands, the loops around both and their indices."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The model, the solver and the verdicts of bounds that the questions of this module rest on.

    `apart` are pairs of accesses of which isl said that the second never meets the first in a later iteration.
    """

    model: Model
    solver: Solver
    bounds: Mapping[tuple[int, int], BoundVerdict]
    apart: dict[Places, list[tuple[Access, Access]]] = field(
        init=False, default_factory=dict[Places, list[tuple[Access, Access]]], compare=False, repr=False
    )

    @legality
    def plain(self, access: Access, axis: int) -> bool:
        """Whether an index of an access is never negative."""
        return not access.axes[axis].wraps or self.bounds[access.number, axis].plain


@hazard
def find_race(
    facts: Facts, loop: Loop, *, may_alias: bool, accesses: Iterable[Access] | None = None
) -> Conflict | None:
    """Return two accesses in the way of running a loop's iterations at once, or None if there are none.

    All are looked at, or those that are given.
    """
    if facts.model.is_natural(loop.start + number(1) - loop.stop):
        return None
    inside = [access for access in (facts.model.accesses if accesses is None else accesses) if access.is_shared(loop)]
    reads = [access for access in inside if not access.store]
    stores = [access for access in inside if access.store]
    for place, store in enumerate(stores):
        if may_alias and not store.tensor.is_local:
            others = (access for access in inside if not access.tensor.is_local)
            other = next((access for access in others if access.tensor != store.tensor), None)
            if other is not None:
                return _overlap(store, other)
        for other in (*reads, *stores[place:]):
            if _are_apart(facts, loop, store, other):
                continue
            conflict = _ask(facts, loop, store, other)
            if conflict is not None:
                return conflict
            for pair in ((store, other), (other, store)):
                facts.apart.setdefault(_places(loop, loop.depth, pair), []).append(pair)
    return None


def _places(loop: Loop, depth: int, pair: tuple[Access, Access]) -> Places:
    """Return where two accesses are, but for indices that are one number in both: what else differs decides."""
    indices = ((one.value, other.value) for one, other in zip(pair[0].axes, pair[1].axes, strict=True))
    differing = tuple(each for each in indices if each[0] != each[1] or not each[0].is_constant)
    return loop, depth, pair[0].loops, pair[1].loops, differing


@legality
def _are_apart(facts: Facts, loop: Loop, first: Access, second: Access) -> bool:
    """Whether no two iterations of a loop meet on an element by two accesses, as far as it is seen without isl."""
    if first.tensor != second.tensor or (first.alone and second.alone) or _store_the_same(first, second):
        return True
    if _are_clear(facts, loop, first, second, loop.depth):
        return True
    return all(_follows(facts, loop, pair, loop.depth) for pair in ((first, second), (second, first)))


@legality
def _are_clear(facts: Facts, loop: Loop, first: Access, second: Access, depth: int) -> bool:
    """Whether accesses of one tensor are seen to be apart by their indices alone."""
    if are_in_other_rows(facts.model, facts.solver, loop, (first, second), depth):
        return True
    return are_separated(facts, loop, first, second, depth=depth)


@legality
def _follows(facts: Facts, loop: Loop, pair: tuple[Access, Access], depth: int) -> bool:
    """Whether the second of two accesses never meets the first since those known to be apart do not."""
    return any(_cover(each, pair) for each in facts.apart.get(_places(loop, depth, pair), ()))


@legality
def _store_the_same(first: Access, second: Access) -> bool:
    """Whether two accesses store one literal where elements or the like say: it does not matter which is made last."""
    told = any(isinstance(atom, UnknownAtom) for axis in first.axes for atom in axis.value.atoms())
    return told and first.literal is not None and first.literal == second.literal


@legality
def _cover(known: tuple[Access, Access], pair: tuple[Access, Access]) -> bool:
    """Whether two accesses touch all that two others do at the same indices: they have no more conditions."""
    places = zip(known, pair, strict=True)
    return all(one is other or {*one.conditions} <= {*other.conditions} for one, other in places)


def _overlap(store: Access, other: Access) -> Conflict:
    sentence = f"'{store.tensor.name}' and '{other.tensor.name}' may share memory in this call"
    return Conflict(ConflictKind.ALIASES, sentence, (_party(store), _party(other)))


def _party(access: Access, indices: Mapping[str, int] | None = None) -> Party:
    verb = "stores into" if access.store else "reads"
    return Party(f"{verb} '{access.tensor.name}'", access.loc, indices or {})


# ---------------------------------------------------------------- the quick rule


@legality
def are_separated(facts: Facts, loop: Loop, first: Access, second: Access, *, depth: int | None = None) -> bool:
    """Whether two accesses are seen to be apart in every two iterations of a loop: the quick rule.

    Loops around them that stand `depth` loops deep, or deeper, may be in any two iterations: those in it, if not given.
    """
    depth = loop.depth if depth is None else depth
    plain = [place for place in range(len(first.axes)) if facts.plain(first, place) and facts.plain(second, place)]
    indices = [(first.axes[place].value, second.axes[place].value) for place in plain]
    if any(left.is_constant and right.is_constant and left != right for left, right in indices):
        return True
    where = (loop, depth, first.loops, second.loops, first.conditions, second.conditions)
    for left, right in indices:
        if (known := facts.model.steps.get((*where, left, right))) is None:
            known = _steps_apart(facts.model.within(first, second), loop, (first, left), (second, right), depth)
            facts.model.steps[*where, left, right] = known
        if known:
            return True
    return False


@legality
def _steps_apart(
    model: Model, loop: Loop, one: tuple[Access, Polynomial], two: tuple[Access, Polynomial], depth: int
) -> bool:
    """Whether the loop's step in an index is greater than the reach of all that varies; without one, one is ahead."""
    step = cofactor(one[1], loop.atom)
    if depth == loop.depth and one[1] == two[1] and rows_ascend(model, loop, *one):
        return True
    if step is None or not _is_fixed(step.atoms(), depth):
        return False
    if not step.terms and one[1] == two[1]:
        return False  # Nothing is ahead of itself.
    moves = step * of_atom(loop.atom)
    pair = (one[0], one[1] - moves), (two[0], two[1] - moves)
    # Ends of loops that are the least or greatest of others may cancel out, but for what they are in all iterations.
    return any(_step_exceeds(model, step, pair, depth, kept) for kept in (step.atoms(), model.origins))


@legality
def _step_exceeds(
    model: Model,
    step: Polynomial,
    pair: tuple[tuple[Access, Polynomial], tuple[Access, Polynomial]],
    depth: int,
    kept: Collection[Atom],
) -> bool:
    """Whether a step is greater than the reach of what else is in two indices; unknowns that are `kept` stay in it."""
    (one, left_rest), (two, right_rest) = pair
    fixed = _fixed_part(right_rest, depth)
    leasts: list[Polynomial] = []
    for sign in (1, -1):
        lefts, rights = (left_rest - fixed).scale(-sign), (right_rest - fixed).scale(sign)
        left = lower_corner(model, _inner_loops(one, depth), lefts, kept=kept)
        right = lower_corner(model, _inner_loops(two, depth), rights, kept=kept)
        # What differs between the two iterations must not cancel out in the sum.
        if left is None or right is None or any(depth_of(atom) > depth for atom in left.atoms() & right.atoms()):
            return False
        leasts.append(left + right - number(1))
    if not step.terms:
        return any(_is_natural(model, least, depth) for least in leasts)
    return any(all(_is_natural(model, each + least, depth) for least in leasts) for each in (step, step.scale(-1)))


@legality
def _is_natural(model: Model, polynomial: Polynomial, depth: int) -> bool:
    """Whether a polynomial is at least 0; the least and greatest of several are each of them, if the same in both."""
    if model.is_natural(polynomial):
        return True
    same = all(depth_of(atom) <= depth for atom in polynomial.atoms() & model.origins.keys())
    return same and any(map(model.is_natural, model.greatest_of(polynomial)))


def _inner_loops(access: Access, depth: int) -> tuple[Loop, ...]:
    return tuple(inner for inner in access.loops if inner.depth >= depth)


def _fixed_part(polynomial: Polynomial, depth: int) -> Polynomial:
    """Return the part of a polynomial that `depth` loops fix."""
    return combine(term for term in polynomial.terms if _is_fixed(term[0], depth))


@legality
def _is_fixed(atoms: Iterable[Atom], depth: int) -> bool:
    """Whether what these atoms are is the same during one iteration of `depth` loops."""
    return all(depth_of(atom) <= depth for atom in atoms)


# ---------------------------------------------------------------- isl


def _ask(facts: Facts, loop: Loop, first: Access, second: Access) -> Conflict | None:
    formulas, moved = _meetings(facts, loop, loop.depth, first, second)
    index, other_index = of_atom(loop.atom), moved[loop.atom]
    orders: tuple[Formula, ...] = (less(index, other_index),)
    if first != second:
        orders = (*orders, less(other_index, index))
    for order in orders:
        if facts.solver.feasible((*formulas, order)) is not False:
            return _conflict(facts, loop, first, second, (*formulas, order))
    return None


@hazard
def may_meet(facts: Facts, loop: Loop, first: Access, second: Access, *, depth: int) -> bool:
    """Whether `first` may touch what `second` touches where the loop's index is greater.

    Loops around them that stand `depth` loops deep, or deeper, may be in any two iterations; the others are in one.
    """
    pair = first, second
    if _are_clear(facts, loop, first, second, depth) or _follows(facts, loop, pair, depth):
        return False
    formulas, moved = _meetings(facts, loop, depth, first, second)
    if facts.solver.feasible((*formulas, less(of_atom(loop.atom), moved[loop.atom]))) is not False:
        return True
    facts.apart.setdefault(_places(loop, depth, pair), []).append(pair)
    return False


@hazard
def may_precede(facts: Facts, nest: tuple[Loop, Loop], slope: int, first: Access, second: Access) -> bool:
    """Whether `second` may touch in a later iteration of a nest of two what `first` touches, on no later diagonal.

    Iterations of a nest are on one diagonal if `slope * i + j` is the same.
    """
    outer, inner = (of_atom(loop.atom) for loop in nest)
    formulas, moved = _meetings(facts, nest[0], nest[0].depth, first, second)
    moved_outer, moved_inner = moved[nest[0].atom], of_atom(_renamed(nest[1].atom))
    ahead = either(
        less(outer, moved_outer),
        both(at_least(outer, moved_outer), at_least(moved_outer, outer), less(inner, moved_inner)),
    )
    diagonal, other = outer.scale(slope) + inner, moved_outer.scale(slope) + moved_inner
    return facts.solver.feasible((*formulas, ahead, at_least(diagonal, other))) is not False


def may_touch(facts: Facts, loop: Loop, first: Access, second: Access) -> bool:
    """Whether two accesses in a loop may touch one element, in any two of its iterations or in one."""
    formulas, _ = _meetings(facts, loop, loop.depth, first, second)
    return facts.solver.feasible(formulas) is not False


def may_coincide(facts: Facts, depth: int, first: Access, second: Access) -> bool:
    """Whether two accesses may touch one element in one iteration of the `depth` loops around both."""
    formulas, _ = _meetings(facts, None, depth, first, second)
    return facts.solver.feasible(formulas) is not False


def _meetings(
    facts: Facts, loop: Loop | None, depth: int, first: Access, second: Access
) -> tuple[tuple[Formula, ...], dict[Atom, Polynomial]]:
    """Return when two accesses touch one element, and what the loop's index is, and the like, for the second.

    What stands `depth` loops deep, or deeper, may differ between the two.
    """
    here = facts.model.closure((*facts.model.domain(first), *_in_range(first)), _element_atoms(facts, first))
    there = facts.model.closure((*facts.model.domain(second), *_in_range(second)), _element_atoms(facts, second))
    indices = () if loop is None else (loop.atom,)
    moved = _renaming((*there, *here), (*_element_atoms(facts, second), *indices), depth)
    same = [
        either(
            *(
                both(when, substitute(also, moved), *_same(facts, first, second, (value, other), moved))
                for when, value in _cases(facts, first, place)
                for also, other in _cases(facts, second, place)
            )
        )
        for place in range(len(first.axes))
    ]
    linked = _quotient_links(facts, depth, (*here, *same), moved)
    linked += _exclusive_links(facts, depth, (*here, *same))
    if loop is not None:
        linked += _product_links(loop, depth, (*here, *there, *same), moved)
    return (*here, *(substitute(formula, moved) for formula in there), *same, *linked), moved


def _same(
    facts: Facts, first: Access, second: Access, values: tuple[Polynomial, Polynomial], moved: Mapping[Atom, Polynomial]
) -> list[Formula]:
    """Return that two indices, the second one in the other iteration, are equal."""
    value, other = values
    if value.is_affine and other.is_affine:
        return [equal(value, other.substitute(moved))]
    parts = parts_of(value, other, _prover(facts, first), _prover(facts, second))
    return [equal(left, right.substitute(moved)) for left, right in parts]


def _prover(facts: Facts, access: Access) -> Callable[[Polynomial], bool]:
    """Return what proves that a polynomial is at least 0 wherever an access touches an element."""
    model = facts.model.within(access)

    def is_natural(goal: Polynomial) -> bool:
        if model.is_natural(goal):
            return True
        corner = lower_corner(model, access.loops, goal)
        if corner is not None and model.is_natural(corner):
            return True
        wrong = (*model.domain(access), less(goal, number(0)))
        return facts.solver.feasible(model.closure(wrong)) is False

    return is_natural


def _quotient_links(
    facts: Facts, depth: int, formulas: Sequence[Formula], moved: Mapping[Atom, Polynomial]
) -> list[Formula]:
    """Return what links quotients and remainders by one parameter in two iterations.

    What remainders leave of dividends is the divisor as often as the quotient says: equal where the quotients are, or
    at least the divisor apart.
    """
    atoms = atoms_of(formulas)
    result: list[Formula] = []
    for quotient, known in facts.model.quotients.items():
        rests = known.rest.atoms()
        fixed = all(depth_of(atom) <= depth for atom in known.divisor.atoms())
        if not fixed or len(rests) != 1 or not (rests & atoms or quotient in atoms):
            continue
        if not interval_of(known.dividend, facts.model.intervals).fits or not known.dividend.is_affine:
            continue
        other = {
            atom: of_atom(_renamed(atom))
            for atom in (quotient, *rests, *known.dividend.atoms())
            if depth_of(atom) > depth
        }
        dividend = known.dividend.substitute({**moved, **other})
        apart = known.dividend - known.rest - dividend + known.rest.substitute(other)
        steps = of_atom(quotient) - of_atom(quotient).substitute(other)
        same = both(equal(steps, number(0)), equal(apart, number(0)))
        after, ahead = (
            both(at_least(steps.scale(sign), number(1)), at_least(apart.scale(sign), known.divisor)) for sign in (1, -1)
        )
        result.append(either(same, after, ahead, less(known.divisor, number(1))))
    return result


def _exclusive_links(facts: Facts, depth: int, formulas: Sequence[Formula]) -> list[Formula]:
    """Return what links exclusive ors with one fixed number in two iterations: numbers change places in pairs.

    `a ^ m == b ^ m` is `a == b`, and `a ^ m == b` is `a == b ^ m`.
    """
    atoms = atoms_of(formulas)
    result: list[Formula] = []
    for atom, known in facts.model.exclusive.items():
        for mask, mine in ((known.left, known.right), (known.right, known.left)):
            varying = {each for each in mine.atoms() if depth_of(each) > depth}
            if atom not in atoms or not varying or any(depth_of(each) > depth for each in mask.atoms()):
                continue
            other = {each: of_atom(_renamed(each)) for each in (atom, *varying)}
            image, yours, moved = of_atom(atom), mine.substitute(other), of_atom(atom).substitute(other)
            for one, two in ((equal(image, moved), equal(mine, yours)), (equal(image, yours), equal(mine, moved))):
                result += [either(negate(one), two), either(negate(two), one)]
    return result


def _product_links(
    loop: Loop, depth: int, formulas: Sequence[Formula], moved: Mapping[Atom, Polynomial]
) -> list[Formula]:
    """Return that products of the loop's index and a fixed number are at least that number apart."""
    monomials = {
        monomial
        for formula in formulas
        for item in comparisons(formula)
        for monomial, _ in item.polynomial.terms
        if len(monomial) == PAIR and loop.atom in monomial
    }
    index, other = of_atom(loop.atom), moved[loop.atom]
    result: list[Formula] = []
    for monomial in sorted(monomials, key=lambda item: [order_of(atom) for atom in item]):
        (factor, *more) = [atom for atom in monomial if atom != loop.atom] or [loop.atom]
        if more or depth_of(factor) > depth:
            continue
        by = of_atom(factor)
        negative, positive = less(by, number(0)), less(number(0), by)
        for low, high in ((index, other), (other, index)):
            result.append(either(negative, at_least(low, high), at_least(by * high, by * low + by)))
            result.append(either(positive, at_least(low, high), at_least(by * low + by, by * high)))
    return result


def _in_range(access: Access) -> list[Formula]:
    """Return that an access touches an element: others fail before they do anything."""
    return [
        part
        for axis in access.axes
        for part in (
            at_least(axis.value, axis.size.scale(-1) if axis.wraps else number(0)),
            less(axis.value, axis.size),
        )
    ]


def _cases(facts: Facts, access: Access, place: int) -> list[tuple[Formula, Polynomial]]:
    axis = access.axes[place]
    if facts.plain(access, place):
        return [(TRUE, axis.value)]
    zero = number(0)
    return [(at_least(axis.value, zero), axis.value), (less(axis.value, zero), axis.value + axis.size)]


def _renaming(formulas: Sequence[Formula], atoms: Iterable[Atom], depth: int) -> dict[Atom, Polynomial]:
    """Return new names for the atoms that may differ between two iterations of a loop that stands so deep."""
    return {atom: of_atom(_renamed(atom)) for atom in (*atoms_of(formulas), *atoms) if depth_of(atom) > depth}


def _renamed(atom: Atom) -> Atom:
    if isinstance(atom, IndexAtom | UnknownAtom):
        return replace(atom, number=atom.number + OTHER_ITERATION)
    return atom


def _element_atoms(facts: Facts, access: Access) -> frozenset[Atom]:
    return frozenset(
        atom for place in range(len(access.axes)) for _, value in _cases(facts, access, place) for atom in value.atoms()
    )


# ---------------------------------------------------------------- what to say


def _conflict(facts: Facts, loop: Loop, first: Access, second: Access, formulas: tuple[Formula, ...]) -> Conflict:
    verb = "stores into" if second.store else "reads"
    where = "the same statement" if _line(first) == _line(second) else f"line {second.loc.line}"
    sentence = (
        f"line {first.loc.line} stores into '{first.tensor.name}', and {where} {verb} '{second.tensor.name}'"
        f" in another iteration of '{loop.node.index.name}', maybe at the same element"
    )
    vague = Conflict(ConflictKind.ELEMENTS, sentence, (_party(first), _party(second)))
    if loop.leaves or not _is_certain(facts, first, second, formulas):
        return vague
    point = facts.solver.sample(formulas)
    if point is None:
        return vague
    values = {monomial[0]: value for monomial, value in point.items() if len(monomial) == 1}
    mine = _iteration(first, values, loop, moved=False)
    other = _iteration(second, values, loop, moved=True)
    text = (
        f"{first.tensor.name}[{', '.join(str(_evaluate(axis, values)) for axis in first.axes[first.tensor.added :])}]"
    )
    sentence = (
        f"line {first.loc.line} stores into {text} with {_spell(mine)},"
        f" and {where} {verb} the same element with {_spell(other)}"
    )
    parties = (_party(first, mine), _party(second, other))
    return Conflict(ConflictKind.ELEMENTS, sentence, parties, refuted=True, element=text)


def _line(access: Access) -> tuple[str, int]:
    return access.loc.file, access.loc.line


def _is_certain(facts: Facts, first: Access, second: Access, formulas: tuple[Formula, ...]) -> bool:
    """Whether a solution of the formulas is a pair of iterations that a call can have."""
    if not all(map(is_exact, formulas)):
        return False
    if not all(part.polynomial.is_affine for item in formulas for part in comparisons(item)):
        return False
    atoms = atoms_of(formulas)
    indexing = _element_atoms(facts, first) | _element_atoms(facts, second)
    if any(isinstance(atom, ScalarAtom) for atom in indexing):
        return False
    return not any(
        isinstance(atom, UnknownAtom) and not facts.model.is_defined(atom, OTHER_ITERATION) for atom in atoms
    )


def _iteration(access: Access, values: Mapping[Atom, int], loop: Loop, *, moved: bool) -> dict[str, int]:
    result: dict[str, int] = {}
    for around in access.loops:
        atom: Atom = _renamed(around.atom) if moved and around.depth >= loop.depth else around.atom
        if atom in values:
            result[around.node.index.name] = values[atom]
    return result


def _evaluate(axis: Axis, values: Mapping[Atom, int]) -> int:
    """Return the element's index for affine values, counted from the start."""
    value, size = (
        sum(factor * (values[monomial[0]] if monomial else 1) for monomial, factor in part.terms)
        for part in (axis.value, axis.size)
    )
    return value + size if value < 0 else value


def _spell(iteration: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in iteration.items())
