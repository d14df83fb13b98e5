"""Gather form: nests in which iterations add to elements of tensors become loops over these elements.

    for i in range(n):                             for k in range(l):
        for k in range(l):                             total = 0
            w[k] += g[i] * x[i + k]       ->           for i in range(n):
                                                           total += g[i] * x[i + k]
                                                       w[k] = total

So the loops are independent, nothing is added by two threads at once, each element is written once, and a tensor that
is filled with zeros only to be added to needs no filling. Invariant: each contribution is added exactly once, in an
order that is the same in every run. Where an access cannot be inverted (`analysis/inverse.py`) the nest stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from brickwork.analysis.access_cases import Case, access_cases, conjunction, plain
from brickwork.analysis.formula import Comparison
from brickwork.analysis.inverse import invert
from brickwork.analysis.inverted import Inverse
from brickwork.analysis.isl import Solver
from brickwork.analysis.normalise_inverse import normalise_inverse
from brickwork.analysis.parameter_expressions import comparison_expression
from brickwork.analysis.polyhedral_model import Access, Axis, Floor, Loop, is_fixed, is_parameter
from brickwork.analysis.polynomial import (
    SCALAR_LIMIT,
    Atom,
    IndexAtom,
    Polynomial,
    ScalarAtom,
    number,
    of_atom,
)
from brickwork.analysis.symbolic import model_kernel
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Program,
    Rebind,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
    parameter_tensors,
)
from brickwork.ir.walk import read_symbols, rewrite, rewrite_statements, walk, with_blocks
from brickwork.transform.autodiff.fold_zero_sums import fold_zero_sums
from brickwork.transform.autodiff.gather_loops import GatherWriter, Term, together
from brickwork.transform.autodiff.gather_versions import Versions
from brickwork.transform.autodiff.joined_updates import joined_updates
from brickwork.transform.autodiff.kept_values import KeptValues
from brickwork.transform.autodiff.partial_sums import partial_sums
from brickwork.transform.autodiff.read_before_write import read_after_write, read_before_write
from brickwork.transform.autodiff.separate_updates import SeparateUpdates
from brickwork.transform.autodiff.slices import (
    Kept,
    Place,
    accumulations,
    added_by,
    ends_early,
    loads,
    loads_of,
    most_stores,
    own_read,
    slice_of,
    updated,
)
from brickwork.transform.autodiff.trip_counts import TripCounts
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.free_variables import with_body
from brickwork.transform.preconditions import Preconditions, preconditions_of
from brickwork.transform.scratch import Names, copied
from brickwork.transform.tables import tables_first

ELEMENT_NUMBERS = 3_000_000
"""Numbers of the atoms that stand for indices of elements start from this."""


def gather(program: Program, names: Names, only: Collection[str] | None = None) -> Program:
    """Return the program with accumulating nests, or those of some kernels, in gather form: all they access exists."""
    body: list[Statement] = []
    for place, statement in enumerate(program.body):
        wanted = isinstance(statement, Launch) and (only is None or statement.kernel.name in only)
        if not isinstance(statement, Launch) or not wanted or statement.kernel.may_alias:
            body.append(statement)
            continue
        fresh = untouched(program.body[:place]).keys() - effects(statement.kernel.body).rebinds
        results = _needed(program, program.body[place + 1 :])
        grid = program.device != "cpu"
        summed = partial_sums(tables_first(statement.kernel.body), names, grid=grid)
        source = replace(statement.kernel, body=joined_updates(summed, names))
        before = preconditions_of(program.body[:place], source.body)
        gatherer = _Gatherer(source, names, set(fresh), before, grid=grid)
        changed = fold_zero_sums(without_dead(gatherer.block(source.body, 0), results, before))
        kernel = with_body(statement.kernel, changed, (*statement.kernel.facts, *_facts(gatherer.kept.allocated)))
        filled = frozenset(gatherer.covered)
        body = [_unfilled(item, filled) for item in body]
        body += [*gatherer.kept.allocated, replace(statement, kernel=kernel)]
    return replace(program, body=tuple(body))


def untouched(block: Block) -> dict[Tensor, Allocate]:
    """Return the tensors that are filled with zeros before, and that no kernel has changed since."""
    made = {
        node.tensor: node
        for node in block
        if isinstance(node, Allocate) and node.fill is not None and build.is_constant(node.fill, 0) and not node.given
    }
    for node in block:
        if not isinstance(node, Allocate | Check):
            for inner in walk(node):
                if isinstance(inner, Launch):
                    for tensor in inner.kernel.tensors:
                        made.pop(tensor, None)
    return made


def _needed(program: Program, later: Block) -> frozenset[Tensor]:
    """Return the tensors whose elements matter after a kernel."""
    needed = {*parameter_tensors(program.parameters)}
    for node in walk(later):
        if isinstance(node, Return):
            needed |= {*node.tensors}
        elif isinstance(node, Launch):
            needed |= {*node.kernel.tensors}
        elif isinstance(node, Rebind):
            needed |= {*node.targets, *node.sources}
    return frozenset(needed)


def _unfilled(statement: Statement, covered: frozenset[Tensor]) -> Statement:
    if isinstance(statement, Allocate) and statement.tensor in covered:
        return replace(statement, fill=None)
    return statement


def _facts(allocated: Sequence[Allocate]) -> Iterator[Expression]:
    """Yield what sizes tensors have that are allocated."""
    for item in allocated:
        for axis, size in enumerate(item.sizes):
            yield build.apply("eq", build.size(item.tensor, axis), size)


class _Gatherer:
    """Changes the nests of one kernel. `zero` are the tensors that are known to hold zeros where it has come to.

    What is in `before` was checked before the kernel. What was `read` before it is added to is filled.
    """

    def __init__(self, kernel: Kernel, names: Names, zero: set[Tensor], before: Preconditions, *, grid: bool) -> None:
        """Begin before the first statement."""
        self.model, self.small = model_kernel(kernel)
        self.solver = Solver()
        self.kept = KeptValues(names, TripCounts(kernel.body, kernel.scalars, reached=grid))
        self.accesses = {access.number: access for access in self.model.accesses}
        self.separate = SeparateUpdates(self.model, self.solver, self.accesses)
        self.names = names
        self.zero = zero
        self.before = before
        self.covered, self.read = set[Tensor](), set[Tensor]()
        self.writer = GatherWriter(
            self.model, self.solver, self.accesses, names.symbols, names.accesses, self.kept.read
        )
        self.forms = True
        """Whether nests are written in several forms: not in branches, which often are such forms."""
        self.versions = Versions(self.model, self.accesses, names, grid)
        self.grid = grid
        self.shared = frozenset[Kept]()
        """What is kept for other tensors of the nest in any case."""
        self.scatters = False
        """Whether the nest adds, on a grid, to elements of another tensor that stay a scatter."""

    def block(self, block: Block, depth: int) -> Block:
        """Return a block that stands in `depth` loops with its nests in gather form."""
        result: list[Statement] = []
        for statement in block:
            match statement:
                case For():
                    result += self.nest(statement, depth)
                case If(then=then, otherwise=otherwise):
                    (zero, self.zero), (forms, self.forms) = (self.zero, set[Tensor]()), (self.forms, False)
                    then, otherwise = self.block(then, depth), self.block(otherwise, depth)
                    self.zero, self.forms = zero, forms
                    result.append(replace(statement, then=then, otherwise=otherwise))
                case _:
                    result.append(statement)
            self.zero, self.read = self.zero - effects(statement).stores, self.read | effects(statement).loads
        return tuple(result)

    def nest(self, root: For, depth: int) -> Block:
        """Return a nest without the accumulations that can be inverted, and a nest for each of those."""
        found = self.accumulations(root, depth)
        own = {place.store.access for updates in found.values() for place in updates}
        mixed = {node.tensor for node in walk(root) if isinstance(node, Store) and node.access not in own}
        self.zero -= mixed
        added_to = {read.access for each in found.values() for place in each if (read := own_read(place.store))}
        self.read |= {each.tensor for each in walk(root) if isinstance(each, Load) and each.access not in added_to}
        early = read_before_write(root, self.separate, depth)
        changing = loads_of(root, effects(root).stores.difference(found.keys() - mixed))
        gathered = self.gathered(root, found, depth, changing - loads_of(root, early)) if early else {}
        if not early or not self.gains(gathered, depth):
            early = frozenset[Tensor]()
            late = read_after_write(root, self.separate, depth) - loads_of(root, frozenset(found))
            gathered = self.gathered(root, found, depth, changing - late)
        turned = {term.place.store.access for terms in gathered.values() for term in terms}
        left = {tensor: [item for item in each if item.store.access not in turned] for tensor, each in found.items()}
        rest = {tensor: updates for tensor, updates in left.items() if updates}
        assumed = self.assumed(gathered)
        begun = set[Tensor]() if assumed else {tensor for tensor in rest if not early or tensor not in gathered}
        begun = {tensor for tensor in begun if self.is_first(rest[tensor], depth)}
        first = {rest[tensor][0].store.access for tensor in begun} | self.alone(rest, gathered if early else (), depth)
        self.covered |= begun - self.read
        self.zero -= rest.keys()
        residual = self.residual(root, gathered, first)
        inner = ends_early(root) or updated(root) - (found.keys() - mixed)
        if inner or any(not self.separate.is_separate(updates, depth) for updates in rest.values()):
            zero, self.zero = self.zero, set[Tensor]()
            residual = replace(residual, body=self.block(residual.body, depth + 1))
            self.zero = zero
        nests = [item for tensor, terms in gathered.items() for item in self.written(tensor, terms, depth, not assumed)]
        remaining = (residual,) if effects(residual).stores else _without_checks(residual)
        new = (*nests, *remaining) if early else (*remaining, *nests)
        if not assumed or not gathered:
            return new if gathered else (residual,)
        condition = reduce(lambda one, two: build.apply("logical_and", one, two), assumed)
        return (If(condition=condition, then=new, otherwise=(copied(root, self.names),)),)

    def gathered(
        self, root: For, found: Mapping[Tensor, Sequence[Place]], depth: int, changing: frozenset[int]
    ) -> dict[Tensor, tuple[Term, ...]]:
        """Return the terms of those tensors whose updates are inverted.

        What the nests read is as this one finds it, or leaves it, but for `changing` loads.
        """
        result = dict[Tensor, tuple[Term, ...]]()
        self.shared, self.scatters = frozenset[Kept](), False
        for _ in range(1 + self.grid):
            for tensor, updates in found.items():
                if tensor in result or self.stays(root, updates, depth):
                    continue
                terms, single = self.terms(updates, depth, changing), self.separate.is_separate(updates, depth)
                if terms is None or (single and not all(term.inverse.is_single for term in terms)):
                    continue
                if len(updates) == 1 and all(term.inverse.is_looked_for for term in terms):
                    self.separate.single.add(updates[0].store.access)
                else:
                    result[tensor] = terms
            self.shared = frozenset(item for terms in result.values() for term in terms for item in term.needs.kept)
            left = [place for tensor, updates in found.items() if tensor not in result for place in updates]
            self.scatters = self.grid and not all(self.is_apart(item, depth) for item in left)
            if not self.shared and not self.scatters:
                break
        rest = (found[tensor] for tensor in found if tensor not in result)
        if not self.grid or all(self.separate.is_separate(updates, depth) for updates in rest):
            return result
        return {tensor: terms for tensor, terms in result.items() if not all(self.is_flat(e, depth) for e in terms)}

    def is_flat(self, term: Term, depth: int) -> bool:
        """Whether an element has one iteration of the loops that say its place, which is looked for in some of them.

        Beside a scatter all of that would be done again, by neighbours that find what they look for at other times.
        """
        access = self.accesses[term.place.store.access]
        said = {atom for axis in access.axes for atom in axis.value.atoms()}
        once = all(self.separate.moves(access, access, loop) for loop in access.loops[depth:] if loop.atom in said)
        looked = once and any(each.atom in said for each in term.inverse.terms)
        return looked and not term.needs.kept and (depth > 0 or self.is_apart(term.place, depth))

    def gains(self, gathered: Mapping[Tensor, Sequence[Term]], depth: int) -> bool:
        """Whether sums before a nest gain: they keep nothing, and some are of elements that the nest moves along.

        Where all of it adds to one element, what it reads and then stores into had better stay together.
        """
        terms = [term for found in gathered.values() for term in found]
        places = [self.accesses[term.place.store.access] for term in terms]
        inside = [({loop.atom for loop in place.loops[depth:]}, place) for place in places]
        moves = any(not loops.isdisjoint(axis.value.atoms()) for loops, place in inside for axis in place.axes)
        return moves and not any(term.needs.kept for term in terms)

    # ------------------------------------------------------------ what a nest does

    def accumulations(self, root: For, depth: int) -> dict[Tensor, list[Place]]:
        """Return the updates of the tensors that a nest adds to, of which it reads no elements but others."""
        found = accumulations(root, partial(self.separate.are_others, depth=depth))
        return {
            tensor: [place for place, _ in updates]
            for tensor, updates in found.items()
            if all(place.store.access in self.accesses for place, _ in updates)
        }

    def stays(self, root: For, updates: Sequence[Place], depth: int) -> bool:
        """Whether a tensor's updates had better stay where they are: iterations do not meet on an element.

        Where an iteration makes no other update, nothing is computed again for those that are not of all elements.
        """
        if not self.separate.is_separate(updates, depth):
            return False
        return depth > 0 or most_stores(root) > 1 or self.is_cover(updates[0], depth)

    def is_apart(self, update: Place, depth: int) -> bool:
        """Whether an element belongs to one iteration of the nest's loop, which is then independent as it is."""
        access = self.accesses[update.store.access]
        return self.separate.moves(access, access, access.loops[depth])

    def is_window(self, access: Access, kept: Sequence[Kept]) -> bool:
        """Whether an access moves with all loops that values are kept in: they are about as many as the elements.

        Some of the loops must meet on elements; else the access is as good where it is.
        """
        around = {loop.index for item in kept for loop in item.loops}
        loops = [loop for loop in access.loops if loop.node.index in around]
        atoms = {atom for axis in access.axes for atom in axis.value.atoms()}
        return atoms.issuperset(loop.atom for loop in loops) and not all(
            self.separate.moves(access, access, loop) for loop in loops
        )

    def is_product(self, access: Access, kept: Sequence[Kept]) -> bool:
        """Whether an access sums products of values that are kept in any case: over loops that it does not move with.

        Of `x @ w` the gradients of both factors are sums of products of the result's then, which run in tiles.
        """
        if not kept or not self.shared.issuperset(kept):
            return False
        around = {loop.index for item in kept for loop in item.loops}
        inside = [loop for loop in access.loops if loop.node.index in around]
        alone = [loop for loop in access.loops if loop.node.index not in around]
        return any(not self.separate.moves(access, access, loop) for loop in inside) and any(
            self.separate.moves(access, access, loop) for loop in alone
        )

    def is_first(self, updates: Sequence[Place], depth: int) -> bool:
        """Whether the first of a tensor's updates is made of every element, before all others, and finds zeros."""
        tensor = updates[0].store.tensor
        return tensor in self.zero and self.is_cover(updates[0], depth) and self.separate.is_separate(updates, depth)

    def alone(self, rest: Mapping[Tensor, Sequence[Place]], after: Collection[Tensor], depth: int) -> set[int]:
        """Return the updates that find zeros, each alone in updating an element; tensors in `after` were added to."""
        found = (rest[tensor] for tensor in rest if tensor in self.zero and tensor not in after)
        return {item.store.access for items in found if self.separate.are_once(items, depth) for item in items}

    def is_cover(self, update: Place, depth: int) -> bool:
        """Whether an update is made of every element."""
        access = self.accesses[update.store.access]
        loops = access.loops[depth:]
        found = {loop.atom for axis in access.axes for loop in loops if self.covers(access, axis, loop)}
        return not access.conditions and len(loops) == len(access.axes) == len(found)

    def covers(self, access: Access, axis: Axis, loop: Loop) -> bool:
        """Whether a loop runs along all of an axis, forwards or backwards."""
        factor = axis.value.factor((loop.atom,))
        rest = axis.value - of_atom(loop.atom).scale(factor)
        first, last = (loop.start, loop.stop - number(1)) if factor > 0 else (loop.stop - number(1), loop.start)
        whole = abs(factor) == 1 and not (rest + first.scale(factor)).terms
        return whole and rest + last.scale(factor) == axis.size - number(1) and self.separate.is_plain(access, axis)

    # ------------------------------------------------------------ turning accesses around

    def terms(self, updates: Sequence[Place], depth: int, changing: frozenset[int]) -> tuple[Term, ...] | None:
        """Return what is added to an element of a tensor, or None if that is not known.

        An update whose iterations do not meet may stay where it is, if others that meet can be inverted.
        """
        rank = len(updates[0].store.indices)
        elements = [
            IndexAtom(Symbol(self.name_of(updates[0], axis), axis, INT64), ELEMENT_NUMBERS + axis, depth + 1)
            for axis in range(rank)
        ]
        result: list[Term] = []
        for update in updates:
            found = self.turned(update, depth, elements, changing)
            if found is None and not self.is_apart(update, depth):
                return None
            result += found or ()
        if len(result) < len(updates) and all(self.is_apart(term.place, depth) for term in result):
            return None
        return tuple(result)

    def name_of(self, update: Place, axis: int) -> str:
        """Return what to call an index of an element: as a loop that runs along the axis, if there is one."""
        access = self.accesses[update.store.access]
        names = [loop.node.index.name for loop in access.loops if loop.atom in access.axes[axis].value.atoms()]
        return names[0] if len(names) == 1 else f"{update.store.tensor.name}_{axis}"

    def turned(
        self, update: Place, depth: int, elements: Sequence[Atom], changing: frozenset[int]
    ) -> list[Term] | None:
        """Return the terms of one update."""
        access, value = self.accesses[update.store.access], added_by(update.store)
        told = self.grid and self.separate.is_told(access, depth)
        found = None if told else access_cases(self.model, self.solver, access)
        if found is None or value is None or loads(value, changing):
            return None
        formulas = update.conditions(access.conditions)
        result: list[Term] = []
        for way in found.cases:
            known = {place: conjunction(self.model, way, item) for place, item in formulas.items()}
            held = tuple(part for item in known.values() if item is not None for part in item)
            asked = frozenset(place for place, item in known.items() if item is None)
            branches = [update.steps[place] for place in asked]
            if any(loads(step.into.condition, changing) for step in branches if isinstance(step.into, If)):
                return None
            inverse = invert(
                self.model, self.solver, access, Case(way.indices, (*way.conditions, *held)), depth, elements
            )
            needs = slice_of(update, read_symbols(value), branches, changing)
            if inverse is None or needs is None:
                return None
            if not self.writer.can_write(inverse, [loop.atom for loop in access.loops[:depth]]):
                return None
            beside = self.is_apart(update, depth) and not self.is_window(access, needs.kept)
            beside = beside and not self.is_product(access, needs.kept) and not self.scatters
            if needs.kept and (beside or (depth and not self.grid)):
                return None
            if needs.kept and depth:
                around = self.separate.free_around(access, depth)
                needs = replace(needs, kept=tuple(replace(item, around=around) for item in needs.kept))
            if any(self.kept.buffer(item) is None for item in needs.kept):
                return None
            inverse = replace(inverse, assumed=(*found.assumed, *inverse.assumed))
            result.append(self.best(Term(update, value, inverse, asked, needs)))
        return result

    def best(self, term: Term) -> Term:
        """Return a term with its loops from 0 on, in the direction in which elements share more of what they read."""
        either = [
            replace(term, inverse=normalise_inverse(term.inverse, backwards=backwards)) for backwards in (False, True)
        ]
        return min(either, key=self.apart)

    def apart(self, term: Term) -> int:
        """Return how many reads are others for each element, along the axis that elements are neighbours on.

        Only what is the same along another axis can be read once for several elements.
        """
        tensor = term.place.store.tensor
        elements = [item.atom for item in term.inverse.elements]
        unit = tensor.type.neighbours
        along = elements[unit] if term.inverse.everywhere and unit is not None else None
        values = {atom: item.numerator for atom, item in term.inverse.values.items() if item.divisor == number(1)}
        total = 0
        for node in walk((term.value, *(item for level in term.needs.levels for item in level))):
            access = self.accesses.get(node.access) if isinstance(node, Load) else None
            if access is not None:
                axes = (plain(self.model, axis.value).substitute(values) for axis in access.axes)
                inside = {atom for axis in axes for atom in axis.atoms()}
                total += along in inside and inside.issuperset(elements)
        return total

    def assumed(self, gathered: Mapping[Tensor, Sequence[Term]]) -> list[Expression]:
        """Return the conditions under which the nests are right, but for those that were checked before the kernel."""
        terms = [term for found in gathered.values() for term in found]
        comparisons = dict.fromkeys(item for term in terms for item in term.inverse.assumed)
        divisors = (self.divisors(atom) for item in comparisons for atom in item.polynomial.atoms())
        comparisons.update(dict.fromkeys(Comparison(item - number(1)) for found in [*divisors] for item in found))
        atoms = (atom for term in terms for item in _polynomials(term.inverse) for atom in item.atoms())
        scalars = dict.fromkeys(item for atom in atoms for item in self.scalars(atom))
        limits = [Comparison(number(SCALAR_LIMIT) + of_atom(atom).scale(sign)) for atom in scalars for sign in (1, -1)]
        for atom, interval in self.small.items() if terms else ():
            limits += [Comparison(number(end) - of_atom(atom)) for end in (interval.high,) if end is not None]
            if isinstance(atom, ScalarAtom) and interval.low is not None:
                limits.append(Comparison(of_atom(atom) - number(interval.low)))
        conditions = (self.condition(item) for item in (*comparisons, *limits))
        return [item for item in conditions if not self.before.holds(item)]

    def condition(self, comparison: Comparison) -> Expression:
        """Return a comparison over parameters, and over what is computed of them alone, as an expression."""
        if all(map(is_parameter, comparison.polynomial.atoms())):
            return comparison_expression(comparison)
        return _total(self.writer.condition(comparison, {}))

    def divisors(self, atom: Atom) -> Iterator[Polynomial]:
        """Yield what is divided by in an atom."""
        origin = self.model.origins.get(atom)
        if isinstance(origin, Floor):
            yield origin.divisor
            for inner in origin.dividend.atoms() | origin.divisor.atoms():
                yield from self.divisors(inner)

    def scalars(self, atom: Atom) -> Iterator[ScalarAtom]:
        """Yield the integer arguments that an atom which is fixed depends on."""
        origin = self.model.origins.get(atom)
        if isinstance(atom, ScalarAtom):
            yield atom
        elif isinstance(origin, Floor) and is_fixed(atom):
            for inner in origin.dividend.atoms() | origin.divisor.atoms():
                yield from self.scalars(inner)

    # ------------------------------------------------------------ what is written

    def residual(self, root: For, gathered: Mapping[Tensor, Sequence[Term]], first: set[int]) -> For:
        """Return a nest without some updates, and with the variables kept that those need.

        The updates with the numbers in `first` find zeros.
        """
        turned = {term.place.store.access for terms in gathered.values() for term in terms}
        kept: dict[int, list[Kept]] = {}
        for item in dict.fromkeys(item for terms in gathered.values() for term in terms for item in term.needs.kept):
            kept.setdefault(id(item.ahead), []).append(item)

        def block(statements: Block) -> Block:
            result: list[Statement] = []
            for statement in statements:
                result += [self.kept.keep(item) for item in kept.get(id(statement), ())]
                match statement:
                    case Store(access=access) if access in turned:
                        pass
                    case Store(access=access, value=value) if access in first:
                        result.append(replace(statement, value=added_by(statement) or value, combine=None))
                    case _:
                        result.append(with_blocks(statement, block))
            return tuple(result)

        return replace(root, body=block(root.body))

    def written(self, tensor: Tensor, terms: Sequence[Term], depth: int, certain: bool) -> Block:
        """Return the nests that add all terms to the elements of a tensor."""
        everywhere = all(term.inverse.everywhere for term in terms)
        groups = [[*terms]] if everywhere and terms else together(terms) if depth else [[term] for term in terms]
        result: list[Statement] = []
        for group in groups:
            zero = tensor in self.zero and not result
            if zero and everywhere and certain and tensor not in self.read:
                self.covered.add(tensor)
            nest = self.element(tensor, group, depth, zero)
            if not self.forms:
                result += nest
            elif whole := self.versions.whole(group):
                bare = [replace(term, inverse=replace(term.inverse, guards=())) for term in group]
                then = self.versions.of(self.element(tensor, bare, depth, zero), bare)
                condition = reduce(lambda one, two: build.apply("logical_and", one, two), map(self.condition, whole))
                result.append(If(condition=condition, then=then, otherwise=nest))
            else:
                result += self.versions.of(nest, group)
        return tuple(result)

    def element(self, tensor: Tensor, terms: Sequence[Term], depth: int, zero: bool) -> Block:
        """Return the loops over the elements of a tensor that terms are added to."""
        access = self.accesses[terms[0].place.store.access]
        names: dict[Atom, Expression] = {loop.atom: build.read(loop.node.index) for loop in access.loops[:depth]}
        inverse = terms[0].inverse
        held = () if inverse.everywhere else inverse.guards
        total = Symbol(tensor.name, next(self.names.symbols), value_dtype(tensor.type.dtype))

        def inside() -> Block:
            indices = tuple(self.writer.known(index, names) for index in inverse.indices)
            # In a loop, iterations may meet on an element: each then updates it, once.
            apart = not zero and depth > 0
            loc = terms[0].place.store.loc
            element = replace(self.names.load(tensor, *indices), loc=loc)
            start = build.constant(0, total.dtype) if zero or apart else element
            added = [item for term in terms for item in self.writer.term(term, total, names, held)]
            value = build.add(element, build.read(total)) if apart else build.read(total)
            store = replace(self.names.store(tensor, *indices, value), loc=loc)
            body = (Assign(symbol=total, value=start), *added, store)
            return self.writer.guarded(held, body, names)

        return self.writer.nest(inverse.elements, names, inside, loc=terms[0].place.loops[0].loc)


def _without_checks(loop: For) -> Block:
    """Return a loop that stores nothing without its checks of divisors, which others have passed."""
    return rewrite_statements((loop,), lambda statement: () if isinstance(statement, Check) else (statement,))


def _polynomials(inverse: Inverse) -> Iterator[Polynomial]:
    """Yield what an access that was inverted depends on."""
    yield from (item.numerator for item in inverse.values.values())
    for dimension in (*inverse.elements, *inverse.terms):
        for ratio in (*dimension.lower, *dimension.upper):
            yield from (ratio.numerator, ratio.divisor)


def _total(condition: Expression) -> Expression:
    """Return a condition that says of each divisor in it that it is at least 1, with no division by less."""

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=(dividend, divisor)) if operator.name in {"floordiv", "mod"}:
                return build.apply(operator.name, dividend, build.apply("maximum", divisor, build.integer(1)))
            case _:
                return node

    return rewrite(condition, visit)
