"""Loop versioning of gathered nests for common arguments: strides of 1, and windows of few elements.

    for k in range(K):                             if K <= 8: lanes run along t
        total = 0
        for t in range(T):             ->          else: lanes run along k
            total += g[t] * x[t + k]
        w[k] = total

Which elements a stride hits is asked with a division for each of them, which a stride of 1 needs not. The weights of a
convolution are few, so that lanes along them would be idle on a processor. Invariant: all forms add the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.access_cases import plain
from brickwork.analysis.formula import Comparison
from brickwork.analysis.inverted import Dimension, Divisible, Guard, Ratio
from brickwork.analysis.polyhedral_model import Access, Model, is_parameter
from brickwork.analysis.polynomial import Polynomial, ScalarAtom, of_atom, order_of
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, If, Load, Node, Statement
from brickwork.ir.walk import rewrite, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.gather_loops import ONE, Term
from brickwork.transform.schedule.planner import FEW
from brickwork.transform.scratch import Names, copied
from brickwork.transform.specialise import specialise


@dataclass(frozen=True, slots=True)
class Versions:
    """Writes the forms of the nests of one kernel; on a grid each element is a thread, however few there are."""

    model: Model
    accesses: Mapping[int, Access]
    names: Names
    grid: bool

    def of(self, nest: Block, terms: Sequence[Term]) -> Block:
        """Return a nest in the forms that are of use to it."""
        few = not self.grid and self.slides(terms)
        strides = self.strides(terms, few=few)
        if not strides:
            return self.by_length(nest) if few else nest
        ones = [build.apply("eq", build.read(item.symbol), build.constant(1, item.symbol.dtype)) for item in strides]
        plainer = specialise(tuple(copied(item, self.names) for item in nest), ones)
        then = self.by_length(plainer) if few else plainer
        return (If(condition=_all(ones), then=then, otherwise=nest),)

    @legality
    def whole(self, terms: Sequence[Term]) -> list[Comparison]:
        """Return when each term of a sum is one of every element, though sizes tell that; nothing where not known.

        A processor's lanes are masked for the others; threads would compute less at once.
        """
        if not self.grid or not terms[0].inverse.everywhere:
            return []
        guards = [guard for term in terms for guard in term.inverse.guards]
        found = [at_worst(guard, terms[0].inverse.elements) for guard in guards]
        known = [item for item in found if item is not None]
        return [*dict.fromkeys(known)] if len(known) == len(found) else []

    def strides(self, terms: Sequence[Term], *, few: bool) -> Sequence[ScalarAtom]:
        """Return the arguments that are strides: those that hit an element or not, or that long loops read along."""
        guards = [guard for term in terms for each in term.inverse.terms for guard in each.guards]
        found = {guard.divisor for guard in guards if isinstance(guard, Divisible)}
        if few and not found:
            found = {stride for term in terms for stride in self.along(term)}
        atoms = {atom for stride in found for atom in stride.atoms()}
        scalars = [atom for atom in atoms if isinstance(atom, ScalarAtom)]
        alone = len(scalars) == len(atoms) == len(found)
        return sorted(scalars, key=order_of) if alone else ()

    def along(self, term: Term) -> list[Polynomial]:
        """Return what the index of the innermost loop is multiplied with in what a term reads."""
        inner = term.inverse.terms[-1].atom
        monomials = [
            tuple(atom for atom in monomial if atom != inner)
            for polynomial in self.indices(term)
            for monomial, _ in polynomial.terms
            if inner in monomial
        ]
        return [of_atom(monomial[0]) for monomial in monomials if len(monomial) == 1]

    def indices(self, term: Term) -> list[Polynomial]:
        """Return the indices of what a term reads."""
        values = {atom: item.numerator for atom, item in term.inverse.values.items() if item.divisor == ONE}
        inside = walk((term.value, *(item for level in term.needs.levels for item in level)))
        found = [self.accesses.get(node.access) for node in inside if isinstance(node, Load)]
        axes = [axis for access in found if access is not None for axis in access.axes]
        return [plain(self.model, axis.value).substitute(values) for axis in axes]

    def slides(self, terms: Sequence[Term]) -> bool:
        """Whether elements side by side are summed over places that what is read slides along: those of a window.

        Loops over places stand around that over the window in the source.
        """
        (term, *others), unit = terms, terms[0].place.store.tensor.type.neighbours
        if others or unit is None or unit != terms[0].place.store.tensor.type.axes - 1 or not term.inverse.everywhere:
            return False
        element = term.inverse.elements[unit].atom
        loops = self.accesses[term.place.store.access].loops
        own = next((loop for loop in loops if term.inverse.values.get(loop.atom) == Ratio(of_atom(element))), None)
        if own is None or not all(map(is_parameter, own.start.atoms() | own.stop.atoms())):
            return False
        summed = {each.atom for each in term.inverse.terms}
        places = {loop.atom for loop in loops if loop.atom in summed and loop.depth < own.depth}
        places = {atom for atom in places if self.model.is_natural(of_atom(atom))}
        return any(element in index.atoms() and places & index.atoms() for index in self.indices(term))

    def by_length(self, nest: Block) -> Block:
        """Return a nest, and for few elements side by side the same with that known."""
        loops = _down(nest)
        if not loops:
            return nest
        last = loops[-1]
        short = build.apply("minimum", last.stop, build.integer(FEW))

        def visit(node: Node) -> Node:
            return replace(node, stop=short) if isinstance(node, For) and node.index == last.index else node

        shorter = tuple(copied(rewrite(item, visit), self.names) for item in nest)
        condition = build.apply("ge", build.integer(FEW), last.stop)
        return (If(condition=condition, then=shorter, otherwise=nest),)


@legality
def at_worst(guard: Guard, elements: Sequence[Dimension]) -> Comparison | None:
    """Return a guard of elements where it is least likely to hold, over parameters; None where that is unknown."""
    if not isinstance(guard, Comparison) or guard.equal or not guard.polynomial.is_affine:
        return None
    rest = guard.polynomial
    for each in elements:
        (end,) = each.lower if rest.factor((each.atom,)) > 0 else each.upper
        rest = rest.substitute({each.atom: end.numerator})
    return Comparison(rest) if all(map(is_parameter, rest.atoms())) else None


def _down(nest: Block) -> list[For]:
    """Return the loops over elements: those that hold nothing but the next one."""
    result: list[For] = []
    block: Sequence[Statement] = nest
    while len(block) == 1 and isinstance(block[0], For):
        result.append(block[0])
        block = block[0].body
    return result


def _all(conditions: Sequence[Expression]) -> Expression:
    return reduce(lambda one, two: build.apply("logical_and", one, two), conditions)
