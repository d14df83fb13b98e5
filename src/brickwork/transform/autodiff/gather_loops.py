"""Writes the loops of inverted accesses: for each element, the sum of the terms that iterations add to it.

    for i in range(n):                             for i in range(m):
        for k in range(l):                             total = 0
            y[i + k] += x[i] * w[k]       ->           for k in range(max(0, i - n + 1), min(l, i + 1)):
                                                           total += x[i - k] * w[k]
                                                       y[i] = total

What the loops are is found in `analysis/inverse.py`, and what a term needs in `slices.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.access_cases import is_natural, plain
from brickwork.analysis.formula import Comparison
from brickwork.analysis.inverted import Dimension, Divisible, Guard, Inverse, Ratio
from brickwork.analysis.isl import Solver
from brickwork.analysis.parameter_expressions import parameter_expression
from brickwork.analysis.polyhedral_model import Access, Axis, Choice, Element, Floor, Model, is_parameter
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, UnknownAtom, number
from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, rewrite, substitute
from brickwork.records import dataclass
from brickwork.transform.autodiff.slices import Kept, Place, Slice

ONE = number(1)


@dataclass(frozen=True, slots=True)
class Term:
    """What one access adds to an element, and in which iterations: those of `inverse`."""

    place: Place
    value: Expression
    inverse: Inverse
    branches: frozenset[int]
    """The numbers of the steps to the access whose conditions are asked again."""
    needs: Slice


@dataclass(frozen=True, slots=True)
class GatherWriter:
    """Writes expressions and loops for one kernel; the iterators give numbers that are not in use."""

    model: Model
    solver: Solver
    accesses: Mapping[int, Access]
    symbols: Iterator[int]
    numbers: Iterator[int]
    kept: Callable[[Kept, Sequence[Expression]], Expression]
    """Gives the read of a variable that is kept, in the iteration with these indices."""

    def fresh(self, name: str) -> Symbol:
        """Return a new integer variable."""
        return Symbol(name, next(self.symbols), INT64)

    # ------------------------------------------------------------ expressions

    def integer(self, polynomial: Polynomial, names: Mapping[Atom, Expression]) -> Expression | None:
        """Return a polynomial as an expression; None where one of its atoms has no name."""
        gains: Expression = build.integer(0)
        losses: Expression = build.integer(0)
        for monomial, factor in sorted(polynomial.terms, key=lambda term: not term[0]):
            value: Expression | None = build.integer(abs(factor))
            for atom in monomial:
                operand = self.atom(atom, names)
                value = None if value is None or operand is None else build.mul(value, operand)
            if value is None:
                return None
            if factor > 0:
                gains = build.add(gains, value)
            else:
                losses = value if build.is_constant(losses, 0) else build.add(losses, value)
        return build.sub(gains, losses)

    def atom(self, atom: Atom, names: Mapping[Atom, Expression]) -> Expression | None:
        """Return an atom as an expression."""
        if atom in names:
            return names[atom]
        if is_parameter(atom):
            return parameter_expression(atom)
        if (element := self.model.elements.get(atom)) is not None:
            return self.element(element, names)
        origin = self.model.origins.get(atom)
        if isinstance(origin, Choice) and isinstance(origin.condition, Comparison):
            return self.choice(origin, origin.condition, names)
        if not isinstance(origin, Floor):
            return None
        dividend, divisor = self.integer(origin.dividend, names), self.integer(origin.divisor, names)
        if dividend is None or divisor is None:
            return None
        return build.apply("mod" if origin.remainder else "floordiv", dividend, divisor)

    def element(self, element: Element, names: Mapping[Atom, Expression]) -> Expression | None:
        """Return an element that the kernel does not change, as an expression."""
        indices = [self.integer(index, names) for index in element.indices]
        known = tuple(index for index in indices if index is not None)
        if len(known) < len(indices):
            return None
        dtype = value_dtype(element.tensor.type.dtype)
        load = Load(tensor=element.tensor, indices=known, access=next(self.numbers), dtype=dtype)
        return build.cast(load, INT64)

    def choice(self, origin: Choice, condition: Comparison, names: Mapping[Atom, Expression]) -> Expression | None:
        """Return a choice as an expression."""
        then, otherwise = self.integer(origin.then, names), self.integer(origin.otherwise, names)
        if then is None or otherwise is None or self.integer(condition.polynomial, names) is None:
            return None
        room = origin.otherwise - origin.then
        for name, distance in (("minimum", room), ("maximum", room.scale(-1))):
            if condition in {Comparison(distance), Comparison(distance - ONE)}:
                return build.apply(name, then, otherwise)
        return build.select(self.condition(condition, names), then, otherwise)

    def can_write(self, inverse: Inverse, around: Collection[Atom]) -> bool:
        """Whether loops can be written inside those of the indices `around`."""
        names: dict[Atom, Expression] = dict.fromkeys(around, build.integer(0))
        for dimension in (*inverse.elements, *inverse.terms):
            ratios = (*dimension.lower, *dimension.upper)
            bounds = [part for item in ratios for part in (item.numerator, item.divisor)]
            if any(self.integer(item, names) is None for item in bounds):
                return False
            names[dimension.atom] = build.integer(0)
        guards = (*inverse.guards, *(item for each in (*inverse.elements, *inverse.terms) for item in each.guards))
        inside = [
            part
            for item in guards
            for part in ((item.numerator, item.divisor) if isinstance(item, Divisible) else (item.polynomial,))
        ]
        inside += [item.polynomial for item in inverse.assumed]
        inside += [part for item in inverse.values.values() for part in (item.numerator, item.divisor)]
        return all(self.integer(item, names) is not None for item in (*inside, *inverse.indices))

    def known(self, polynomial: Polynomial, names: Mapping[Atom, Expression]) -> Expression:
        """Return a polynomial whose atoms all have names as an expression."""
        found = self.integer(polynomial, names)
        if found is None:
            raise TypeError("bounds are over what is known around them")
        return found

    def floor(self, ratio: Ratio, names: Mapping[Atom, Expression]) -> Expression:
        """Return a quotient, rounded down."""
        numerator, divisor = self.known(ratio.numerator, names), self.known(ratio.divisor, names)
        return build.apply("floordiv", numerator, divisor)

    def ceiling(self, ratio: Ratio, names: Mapping[Atom, Expression]) -> Expression:
        """Return a quotient, rounded up."""
        return self.floor(Ratio(ratio.numerator + ratio.divisor - ONE, ratio.divisor), names)

    def condition(self, guard: Guard, names: Mapping[Atom, Expression]) -> Expression:
        """Return a guard as an expression."""
        if isinstance(guard, Divisible):
            rest = build.apply("mod", self.known(guard.numerator, names), self.known(guard.divisor, names))
            return build.apply("eq", rest, build.integer(0))
        terms = guard.polynomial.terms
        gains = Polynomial(tuple(term for term in terms if term[1] > 0))
        losses = Polynomial(tuple(term for term in terms if term[1] < 0)).scale(-1)
        return build.apply("eq" if guard.equal else "ge", self.known(gains, names), self.known(losses, names))

    # ------------------------------------------------------------ loops

    def guarded(self, guards: Sequence[Guard], body: Block, names: Mapping[Atom, Expression]) -> Block:
        """Return a block that is run where guards hold."""
        if not guards:
            return body
        conditions = dict.fromkeys(self.condition(guard, names) for guard in guards)
        return (If(condition=reduce(lambda one, two: build.apply("logical_and", one, two), conditions), then=body),)

    def loop(
        self, dimension: Dimension, names: dict[Atom, Expression], inside: Callable[[], Block], loc: Location
    ) -> Block:
        """Return the loop of a dimension, or what is asked of a quotient with one value; that has a name `inside`."""
        if dimension.fixed is not None:
            return (self.fixed(dimension, dimension.fixed.node, names, inside),)
        atom = dimension.atom
        single = dimension.single if isinstance(atom, UnknownAtom) else None
        bounds = (self.floor(item, names) for item in (*dimension.lower, *dimension.upper))
        if single is not None and not any(effects(bound).loads for bound in bounds):
            low, high = single
            names[atom] = value = self.floor(high, names)
            asked = [build.apply("ge", value, self.ceiling(item, names)) for item in dimension.lower if item != low]
            asked += [build.apply("le", value, self.floor(item, names)) for item in dimension.upper if item != high]
            body = self.guarded(dimension.guards, inside(), names)
            for condition in asked:
                body = (If(condition=condition, then=body),)
            return body
        index = self.fresh(atom.symbol.name if isinstance(atom, IndexAtom) else "turn")
        starts = [self.ceiling(item, names) for item in dimension.lower]
        stops = [self.floor(Ratio(item.numerator + item.divisor, item.divisor), names) for item in dimension.upper]
        start, stop = self.own_bounds(dimension, names)
        starts, stops = [*dict.fromkeys((*starts, *start))], [*dict.fromkeys((*stops, *stop))]
        names[atom] = build.read(index)
        return self.ahead(
            For(
                index=index,
                start=reduce(lambda one, two: build.apply("maximum", one, two), starts),
                stop=reduce(lambda one, two: build.apply("minimum", one, two), stops),
                body=self.guarded(dimension.guards, inside(), names),
                loc=next((loop.node.loc for loop in self.model.loops if loop.atom == atom), loc),
            )
        )

    def own_bounds(
        self, dimension: Dimension, names: Mapping[Atom, Expression]
    ) -> tuple[Sequence[Expression], Sequence[Expression]]:
        """Return the bounds of the loop whose index a dimension is, where others say less of it.

        What is divided by a size stays in that range, but no analysis of the loop would know.
        """
        own = next((loop for loop in self.model.loops if loop.atom == dimension.atom), None)
        if own is None or all(item.divisor.is_constant for item in (*dimension.lower, *dimension.upper)):
            return (), ()
        bounds = [self.integer(bound, names) for bound in (own.start, own.stop)]
        start, stop = ([] if bound is None else [bound] for bound in bounds)
        return start, stop

    def fixed(self, dimension: Dimension, loop: For, names: dict[Atom, Expression], inside: Callable[[], Block]) -> For:
        """Return the copy of a loop of the kernel."""
        values = {atom.symbol: name for atom, name in names.items() if isinstance(atom, IndexAtom)}
        start, stop = substitute(loop.start, values), substitute(loop.stop, values)
        index = self.fresh(loop.index.name)
        names[dimension.atom] = build.read(index)
        body = self.guarded(dimension.guards, inside(), names)
        return For(index=index, start=start, stop=stop, body=body, loc=loop.loc)

    def nest(
        self, dimensions: Sequence[Dimension], names: dict[Atom, Expression], inside: Callable[[], Block], loc: Location
    ) -> Block:
        """Return loops in one another; those that are none of the kernel's are at `loc`."""
        if not dimensions:
            return inside()
        first, *rest = dimensions
        return self.loop(first, names, lambda: self.nest(rest, names, inside, loc), loc)

    def ahead(self, loop: For) -> Block:
        """Return a loop behind the variables that its bounds are, where these are computed of elements."""
        start, stop = self.fresh("start"), self.fresh("stop")
        bounds = {start: loop.start, stop: loop.stop}
        read = {symbol: value for symbol, value in bounds.items() if effects(value).loads}
        loop = replace(
            loop,
            start=build.read(start) if start in read else loop.start,
            stop=build.read(stop) if stop in read else loop.stop,
        )
        return (*(Assign(symbol=symbol, value=value, loc=loop.loc) for symbol, value in read.items()), loop)

    def term(self, term: Term, total: Symbol, names: Mapping[Atom, Expression], held: Collection[Guard]) -> Block:
        """Return the loops that add to `total` what a term is, in those that `names` has the element's indices of.

        The guards in `held` hold there.
        """
        own = dict(names)

        def inside() -> Block:
            return self.body(term, total, own)

        guards = [guard for guard in term.inverse.guards if guard not in held]
        return self.guarded(guards, self.nest(term.inverse.terms, own, inside, term.place.store.loc), own)

    # ------------------------------------------------------------ the body of an iteration

    def body(self, term: Term, total: Symbol, names: Mapping[Atom, Expression]) -> Block:
        """Return what an iteration does: what the value needs, and the addition."""
        loops = [loop.atom for loop in self.accesses[term.place.store.access].loops]
        shifted = {atom: item.numerator for atom, item in term.inverse.values.items() if item.divisor == ONE}
        own: dict[Symbol, Expression] = {}
        for atom in loops:
            value = names.get(atom)
            if atom in term.inverse.values:
                value = self.floor(term.inverse.values[atom], names)
            if value is not None:
                own[atom.symbol] = value
        private = assigned_symbols(item for level in term.needs.levels for item in level)
        private |= {kept.symbol for kept in term.needs.kept}
        targets = {symbol: replace(symbol, number=next(self.symbols)) for symbol in sorted(private, key=_number)}
        renamed: dict[Symbol, Expression] = {old: Read(symbol=new) for old, new in targets.items()}
        copier = _Copier(self, names, shifted, {**own, **renamed}, targets, self.reached(term))
        levels: list[Block] = []
        for place, level in enumerate(term.needs.levels):
            reads = [item for item in term.needs.kept if item.level == place]
            loads = (
                Assign(symbol=targets[item.symbol], value=self.kept(item, [own[loop.index] for loop in item.loops]))
                for item in reads
            )
            levels.append((*copier.block(level), *loads))
        value = copier.expression(term.value)
        added = build.apply("add", build.read(total), build.cast(value, total.dtype), loc=term.place.store.loc)
        body: Block = (*levels[-1], Assign(symbol=total, value=added, loc=term.place.store.loc))
        for place in range(len(term.place.steps) - 1, -1, -1):
            step = term.place.steps[place]
            if place in term.branches and isinstance(step.into, If):
                condition = copier.expression(step.into.condition)
                body = (If(condition=condition if step.then else build.logical_not(condition), then=body),)
            body = (*levels[place], *body)
        return body

    def reached(self, term: Term) -> dict[Polynomial, tuple[Polynomial, Axis]]:
        """Return the indices of the access that choose (`min(i, n - 1)`), and which index of the element they are."""
        access = self.accesses[term.place.store.access]
        return {
            axis.value: (index, axis)
            for axis, index in zip(access.axes, term.inverse.indices, strict=True)
            if any(isinstance(self.model.origins.get(atom), Choice) for atom in axis.value.atoms())
        }


def together(terms: Sequence[Term]) -> list[list[Term]]:
    """Return terms in groups of the same elements; where the first of one is, its elements exist, and others may be."""
    groups: list[list[Term]] = []
    for term in sorted(terms, key=lambda term: len(term.inverse.guards)):
        elements = term.inverse.indices, term.inverse.elements
        for group in groups:
            first = group[0].inverse
            if (first.indices, first.elements) == elements and {*first.guards} <= {*term.inverse.guards}:
                group.append(term)
                break
        else:
            groups.append([term])
    return groups


def _number(symbol: Symbol) -> int:
    return symbol.number


@dataclass(frozen=True, slots=True)
class _Copier:
    """Copies statements into an iteration that is known by other indices."""

    writer: GatherWriter
    names: Mapping[Atom, Expression]
    shifted: Mapping[Atom, Polynomial]
    values: Mapping[Symbol, Expression]
    targets: Mapping[Symbol, Symbol]
    reached: Mapping[Polynomial, tuple[Polynomial, Axis]]
    """Indices that are those of the element, on axes of one length."""

    def block(self, block: Block) -> Block:
        """Return the copies of statements."""
        return tuple(map(self.statement, block))

    def statement(self, statement: Statement) -> Statement:
        """Return the copy of a statement."""
        return rewrite(statement, self.node)

    def expression(self, expression: Expression) -> Expression:
        """Return the copy of an expression."""
        return rewrite(expression, self.node)

    def node(self, node: Node) -> Node:
        match node:
            case Read(symbol=symbol):
                return self.values.get(symbol, node)
            case Assign(symbol=symbol):
                return replace(node, symbol=self.targets[symbol])
            case Load():
                return replace(node, indices=self.indices(node), access=next(self.writer.numbers))
            case _:
                return node

    def indices(self, node: Load) -> tuple[Expression, ...]:
        """Return the indices of a read as polynomials of the new indices, where they are; others are copies."""
        access = self.writer.accesses.get(node.access)
        if access is None or access.tensor.is_local:
            return node.indices
        return tuple(self.index(access, place, index) for place, index in enumerate(node.indices))

    def index(self, access: Access, place: int, index: Expression) -> Expression:
        axis = access.axes[place]
        reached, same = self.reached.get(axis.value, (None, axis))
        if reached is not None and axis.size == same.size and axis.wraps == same.wraps:
            return self.writer.known(reached, self.names)
        polynomial = plain(self.writer.model, axis.value)
        if any(self.is_of_shifted(atom) for atom in polynomial.atoms()):
            return index
        value = self.writer.integer(polynomial.substitute(self.shifted), self.names)
        if value is None:
            return index
        natural = not axis.wraps or is_natural(self.writer.model, self.writer.solver, access, axis.value)
        return value if natural else _wrapping(value, access.tensor, place)

    def is_of_shifted(self, atom: Atom) -> bool:
        """Whether an atom without a name is computed of an index that has another value here than its name says."""
        origin = None if atom in self.names or atom in self.shifted else self.writer.model.origins.get(atom)
        match origin:
            case Floor(dividend=dividend, divisor=divisor):
                inside = dividend.atoms() | divisor.atoms()
            case Choice(condition=Comparison(polynomial=polynomial), then=then, otherwise=otherwise):
                inside = polynomial.atoms() | then.atoms() | otherwise.atoms()
            case _:
                return False
        return any(item in self.shifted or self.is_of_shifted(item) for item in inside)


def _wrapping(index: Expression, tensor: Tensor, axis: int) -> Expression:
    """Return the index that counts from the end where it is negative."""
    below = build.apply("lt", index, build.integer(0))
    return build.select(below, build.add(index, build.size(tensor, axis)), index)
