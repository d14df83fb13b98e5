"""What an inverted access is: loops over the elements of a tensor, and those over the iterations that reach one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brickwork.analysis.formula import Comparison, Formula, at_least
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, SizeAtom, number, of_atom
from brickwork.legality import legality
from brickwork.records import dataclass

ZERO, ONE = number(0), number(1)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient of polynomials. The divisor is at least 1."""

    numerator: Polynomial
    divisor: Polynomial = ONE


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison that iterations satisfy; one that is not `needed` follows from the others."""

    polynomial: Polynomial
    equal: bool = False
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Divisible:
    """That a polynomial is a multiple of another, which is at least 1."""

    numerator: Polynomial
    divisor: Polynomial


Guard = Comparison | Divisible
Ratios = tuple[Ratio, ...]


def is_zero(ratio: Ratio, *, low: bool) -> bool:
    """Whether a bound is 0, once it is rounded."""
    return ratio.numerator in {ZERO, ONE - ratio.divisor if low else ratio.divisor - ONE}


@legality
def holds_as_computed(formula: Formula) -> bool:
    """Whether a bound of a loop holds of its numbers as they are computed, which those of arguments may not."""
    if not isinstance(formula, Comparison) or not formula.polynomial.is_affine:
        return False
    return all(isinstance(atom, IndexAtom | SizeAtom) for atom in formula.polynomial.atoms())


def unique(ratios: Iterable[Ratio]) -> Ratios:
    """Return each bound once."""
    return tuple(dict.fromkeys(ratios))


@dataclass(frozen=True, slots=True)
class Dimension:
    """A loop: from the greatest of `lower`, rounded up, to the least of `upper`, rounded down, both included.

    Its iterations are those in which the `guards` hold. A `fixed` loop is one of the kernel's, with the bounds that it
    has there. `atom` is the index of a loop of the kernel, a quotient, or an index of the element.
    """

    atom: Atom
    lower: Ratios = ()
    upper: Ratios = ()
    guards: tuple[Guard, ...] = ()
    fixed: Loop | None = None

    @property
    def single(self) -> tuple[Ratio, Ratio] | None:
        """The two bounds between which one integer lies, whatever they are, if there are such bounds."""
        pairs = ((low, high) for low in self.lower for high in self.upper if low.divisor == high.divisor)
        return next((pair for pair in pairs if pair[1].numerator - pair[0].numerator == pair[1].divisor - ONE), None)

    @property
    def is_single(self) -> bool:
        """Whether the loop has one iteration at most."""
        return self.single is not None

    @property
    def domain(self) -> list[Formula]:
        """What holds of the index in each iteration."""
        index = of_atom(self.atom)
        lower = [at_least(index * item.divisor, item.numerator) for item in self.lower]
        return [*lower, *(at_least(item.numerator, index * item.divisor) for item in self.upper)]


@dataclass(frozen=True, slots=True)
class Inverse:
    """The loops over elements, and inside of them those over the iterations that reach one.

    `indices` are those of the element. `values` are the indices of the kernel's loops, where they are no dimension.
    If `everywhere`, the `elements` are all there are in the tensor. If it `chooses`, indices of loops are in choices.
    """

    indices: tuple[Polynomial, ...]
    elements: tuple[Dimension, ...]
    guards: tuple[Guard, ...]
    terms: tuple[Dimension, ...]
    values: Mapping[Atom, Ratio]
    assumed: tuple[Comparison, ...]
    everywhere: bool
    chooses: bool = False

    @property
    def is_single(self) -> bool:
        """Whether no loop over the iterations that reach an element has several."""
        return all(each.is_single for each in self.terms)

    @property
    def is_looked_for(self) -> bool:
        """Whether an element has one iteration at most, which is found by divisions by parameters."""
        divisors = [bound.divisor for each in self.terms for bound in (*each.lower, *each.upper)]
        return self.is_single and not all(item.is_constant for item in divisors)
