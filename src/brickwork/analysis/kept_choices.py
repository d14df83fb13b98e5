"""Choices that stay in indices where an access is inverted: starts of windows that are kept inside of borders.

    for i in range(n):                                   for y:
        start = min(max(i - r, 0), n - K)                    for i in range(max(0, y - K + 1), min(n, y + K)):
        for a in range(K):                     ->                start = min(max(i - r, 0), n - K)
            k[start + a] += g[i, a]                              if 0 <= y - start < K: k[y] += g[i, y - start]

The loop that the choice is made of stays, near to the element, and another one is solved for. Invariant: nothing is put
in place of an index that a choice is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from brickwork.analysis.formula import Comparison, less
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Choice, Model, is_fixed
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, number, of_atom, order_of
from brickwork.legality import legality


@legality
def kept_choices(model: Model, indices: Sequence[Polynomial]) -> Mapping[Atom, IndexAtom]:
    """Return the choices in indices, and of which loop's index each is made; nothing where some are made of others."""
    result: dict[Atom, IndexAtom] = {}
    for atom in sorted({atom for index in indices for atom in index.atoms()}, key=order_of):
        if isinstance(model.origins.get(atom), Choice):
            match [*{item for item in _made_of(model, atom) if not is_fixed(item)}]:
                case [IndexAtom() as moved]:
                    result[atom] = moved
                case _:
                    return {}
    return result


def leaves_of(model: Model, atom: Atom) -> Iterator[Polynomial]:
    """Yield what a choice may be, where that is chosen no further."""
    origin = model.origins.get(atom)
    for way in (origin.then, origin.otherwise) if isinstance(origin, Choice) else ():
        inner = [item for item in way.atoms() if isinstance(model.origins.get(item), Choice)]
        if not inner:
            yield way
        elif len(inner) == 1 and way == of_atom(inner[0]):
            yield from leaves_of(model, inner[0])
        else:
            yield from (of_atom(item) for item in inner)


def _made_of(model: Model, atom: Atom) -> Iterator[Atom]:
    """Yield what a choice is made of: what it may be, and what its conditions are about."""
    origin = model.origins.get(atom)
    if not isinstance(origin, Choice) or not isinstance(origin.condition, Comparison):
        yield atom
        return
    for part in (origin.condition.polynomial, origin.then, origin.otherwise):
        for item in part.atoms():
            yield from _made_of(model, item)


@legality
def natural_if_chosen(model: Model, solver: Solver, access: Access, value: Polynomial) -> tuple[Comparison, ...] | None:
    """Return what parameters have to be for an index with choices to be at least 0; None if that is unknown."""
    assumed = tuple(dict.fromkeys(_open(model, value)))
    wrong = less(value, number(0))
    natural = solver.feasible(model.closure((*model.domain(access), *assumed, wrong))) is False
    return assumed if natural else None


def _open(model: Model, value: Polynomial) -> Iterator[Comparison]:
    """Yield that what choices in an index may be is at least 0, where parameters say that."""
    for atom in sorted(value.atoms(), key=order_of):
        for leaf in leaves_of(model, atom):
            if all(map(is_fixed, leaf.atoms())) and not model.is_natural(leaf):
                yield Comparison(leaf)


def near_by(
    model: Model, solver: Solver, access: Access, kept: tuple[Atom, IndexAtom], given: Sequence[Polynomial]
) -> list[Polynomial]:
    """Return what else is at least 0 where the `given` are: it says of an index how near it is to the element.

    The index is that which a kept choice is made of. Nothing where it is not bounded on both sides.
    """
    choice, atom = kept
    near = [*distances(model, solver, access, choice, atom)]
    found = [item + apart for item in given for apart, sign in near if item.factor((choice,)) == -sign]
    return found if len({item.factor((atom,)) > 0 for item in found if item.factor((atom,))}) == 2 else []


@legality
def distances(
    model: Model, solver: Solver, access: Access, choice: Atom, atom: IndexAtom
) -> Iterator[tuple[Polynomial, int]]:
    """Yield how far a choice is from the index that it is made of, wherever the access is made.

    The polynomials are at least 0. With 1 comes one of `choice - atom`, and with -1 one of `atom - choice`.
    """
    domain = model.domain(access)
    for room in dict.fromkeys(_rooms(model, access, choice, atom)):
        for sign in (1, -1):
            apart = (of_atom(choice) - of_atom(atom) - room).scale(sign)
            if solver.feasible(model.closure((*domain, less(apart, number(0))))) is False:
                yield apart, sign


def _rooms(model: Model, access: Access, choice: Atom, atom: IndexAtom) -> Iterator[Polynomial]:
    """Yield distances that may be the greatest or the least between a choice and an index."""
    loop = next(loop for loop in access.loops if loop.atom == atom)
    stops = (stop - number(1) for stop in model.least_of(loop.stop))
    ends = [of_atom(atom), *model.greatest_of(loop.start), *stops]
    rooms = (leaf - end for leaf in leaves_of(model, choice) for end in ends)
    return (room for room in rooms if all(map(is_fixed, room.atoms())))
