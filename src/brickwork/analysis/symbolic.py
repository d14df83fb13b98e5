"""Symbolic execution of a kernel, once, into its `Model`: integers become polynomials, conditions formulas.

What cannot be expressed becomes an unknown that is fixed during one iteration of the loops around it. Invariant: the
model describes a superset of the states that the kernel can reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from brickwork.analysis.expressions import Environment, Values
from brickwork.analysis.formula import Comparison, Formula, at_least, both, either, negate
from brickwork.analysis.invariants import (
    Limits,
    candidates,
    implied,
    kept,
    multiplies,
    still_hold,
    within,
)
from brickwork.analysis.isl import Solver
from brickwork.analysis.noted_indices import Ranges, noted_indices
from brickwork.analysis.polyhedral_model import Access, Axis, Loop, Model, is_parameter
from brickwork.analysis.polynomial import (
    INT64_RANGE,
    SIZE_LIMIT,
    Atom,
    IndexAtom,
    Interval,
    Polynomial,
    ScalarAtom,
    SizeAtom,
    number,
    of_atom,
    only_atom,
    order_of,
)
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Continue,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Local,
    Node,
    Rebind,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, children, statements, walk
from brickwork.legality import legality

SUMS_BITS = 56
"""Bits of products of sizes and scalars, where their factors are sums of some (`h + 2 * pad - k + 1`): four bits fewer
than of products alone, which is room for sixteen times as much."""
MOST_TRIALS = 2
"""Trial runs of a `while` that may be inside of one another."""


def model_kernel(kernel: Kernel) -> tuple[Model, dict[Atom, Interval]]:
    """Return the model of a kernel, and the sizes and scalars assumed to be small so that products do not wrap.

    Scalars are only assumed to be small where something cannot wrap then. Whether a polynomial is exact is asked of the
    intervals of its own atoms (`Values.exact`): one that may wrap in spite of the limits is an unknown, and the others
    keep them. No index of a tensor has more bits than numbers are shifted by to the left.
    """
    walker = _walked(kernel, {})
    counts = {
        atom: Interval(0, SIZE_LIMIT.bit_length() - 1)
        for atom in sorted(walker.values.counts, key=order_of)
        if is_parameter(atom)
    }
    assumed: dict[Atom, Interval] = counts
    if counts:
        walker = _walked(kernel, assumed)
    if walker.values.wrapped and (sizes := _small(walker.values, SizeAtom, walker.values.factors)):
        assumed = {**sizes, **counts}
        walker = _walked(kernel, assumed)
    if walker.values.wrapped and (scalars := _small(walker.values, ScalarAtom, walker.values.widening())):
        limits = {**assumed, **scalars, **counts}
        limited = _walked(kernel, limits)
        if len(limited.values.wrapped) < len(walker.values.wrapped):
            assumed, walker = limits, limited
    if walker.values.wrapped and (scalars := _small(walker.values, ScalarAtom, walker.values.widening(), SUMS_BITS)):
        limits = {**_small(walker.values, SizeAtom, walker.values.factors, SUMS_BITS), **scalars, **counts}
        limited = _walked(kernel, limits)
        if len(limited.values.wrapped) < len(walker.values.wrapped):
            assumed, walker = limits, limited
    return walker.model(), assumed


def _walked(kernel: Kernel, assumed: Mapping[Atom, Interval]) -> _Walker:
    walker = _Walker(kernel, assumed)
    walker.block(kernel.body)
    return walker


def _small(
    values: Values, kind: type[SizeAtom | ScalarAtom], factors: Iterable[Atom], bits: int = 60
) -> dict[Atom, Interval]:
    """Return narrow intervals for the factors of this kind, so narrow that no product of them has more bits."""
    limit = 2 ** (bits // values.degree)
    low = 0 if kind is SizeAtom else -limit
    return {atom: Interval(low, limit) for atom in sorted(factors, key=order_of) if isinstance(atom, kind)}


@legality
def _unchanged(kernel: Kernel) -> frozenset[Tensor]:
    """Return the tensors whose elements are the same in the whole kernel."""
    if kernel.may_alias:
        return frozenset()
    changed: set[Tensor] = set()
    for node in statements(kernel.body):
        match node:
            case Store(tensor=tensor):
                changed.add(tensor)
            case Rebind(targets=targets):
                changed.update(targets)
            case _:
                pass
    return frozenset(kernel.tensors) - changed


class _Walker:
    """Walks the statements of a kernel once, with the polynomial of each variable and the conditions on the way."""

    def __init__(self, kernel: Kernel, assumed: Mapping[Atom, Interval]) -> None:
        self.values = Values(kernel.scalars, assumed, _unchanged(kernel), kernel.ascending)
        self.alone = kernel.alone
        self.environment: Environment = {}
        self.conditions: list[Formula] = []
        self.nest: list[Loop] = []
        self.declared: dict[Tensor, int] = {}
        """Of each local, the number of loops around its declaration."""
        self.depth = 0
        self.loops: list[Loop] = []
        self.accesses: list[Access] = []
        self.context: list[Formula] = []
        self.solver = Solver()
        self.trials = 0
        self.noted = noted_indices(kernel)
        for fact in kernel.facts:
            self._fact(fact)

    def _fact(self, fact: Expression) -> None:
        if isinstance(fact, Apply) and fact.operator.name == "logical_and":
            for operand in fact.operands:  # sizes that one replaces are replaced in the next
                self._fact(operand)
            return
        formula = self.values.condition(fact, self.environment, 0)
        for part in getattr(formula, "parts", (formula,)):
            if isinstance(part, Comparison) and part.equal:
                if self._eliminate(part.polynomial):
                    continue
                self.values.name(part)
            self.context.append(part)

    def _eliminate(self, polynomial: Polynomial) -> bool:
        """Use `polynomial == 0` to replace a size by the rest, wherever it occurs from now on."""
        sizes = [atom for atom in polynomial.atoms() if isinstance(atom, SizeAtom)]
        for atom in sorted(sizes, key=lambda size: (size.tensor.number, size.axis), reverse=True):
            factor = polynomial.factor((atom,))
            rest = of_atom(atom) - polynomial.scale(factor)
            if abs(factor) == 1 and atom not in rest.atoms():
                self.values.replace(atom, rest)
                self.values.narrow(rest, atom)
                return True
        return False

    def model(self) -> Model:
        """Return what has been found so far."""
        values = self.values
        return Model(
            loops=tuple(self.loops),
            accesses=tuple(self.accesses),
            definitions=values.definitions,
            intervals=values.intervals,
            own=values.own,
            quotients=values.quotients,
            exclusive=values.exclusive,
            loose=frozenset(values.loose),
            context=tuple(self.context),
            scalars=frozenset(values.used),
            origins=values.origins,
            elements=values.elements,
        )

    # ------------------------------------------------------------ statements

    def block(self, block: Block) -> None:
        held = len(self.conditions)
        for statement in block:
            self.statement(statement)
        del self.conditions[held:]

    def statement(self, statement: Statement) -> None:
        match statement:
            case Assign(symbol=symbol, value=value):
                self.record(statement)
                self.environment[symbol] = self.value(value)
            case Local(tensor=tensor):
                self.declared[tensor] = len(self.nest)
            case If():
                self.branch(statement)
            case For():
                self.loop(statement)
            case While():
                self.while_loop(statement)
            case Check(condition=condition):
                self.record(statement)
                self.conditions.append(self.values.condition(condition, self.environment, self.depth))
            case _:
                self.record(statement)

    def value(self, expression: Expression) -> Polynomial | Formula | None:
        if expression.dtype is INT64:
            return self.values.integer(expression, self.environment, self.depth)
        if expression.dtype is BOOL:
            return self.values.condition(expression, self.environment, self.depth)
        return None

    def branch(self, statement: If) -> None:
        self.record_expression(statement.condition)
        condition = self.values.condition(statement.condition, self.environment, self.depth)
        opposite = negate(condition)
        before = dict(self.environment)
        self.conditions.append(condition)
        self.block(statement.then)
        self.conditions.pop()
        after_then = self.environment
        self.environment = before
        self.conditions.append(opposite)
        self.block(statement.otherwise)
        self.conditions.pop()
        if leaves_always(statement.then):
            self.conditions.append(opposite)
        elif leaves_always(statement.otherwise):
            self.conditions.append(condition)
            self.environment = after_then
        else:
            changed = assigned_symbols((*statement.then, *statement.otherwise))
            self.environment = self.values.join(condition, after_then, self.environment, changed, self.depth)

    def loop(self, statement: For) -> None:
        self.record_expression(statement.start)
        self.record_expression(statement.stop)
        start = self.values.exact(self.values.integer(statement.start, self.environment, self.depth))
        stop = self.values.exact(self.values.integer(statement.stop, self.environment, self.depth))
        atom = IndexAtom(statement.index, len(self.loops), self.depth + 1)
        self.values.ends[atom] = start, stop
        low, high = self.values.interval(start).low, self.values.interval(stop).high
        self.values.ranges[atom] = frozenset(start.atoms() | stop.atoms())
        self.values.intervals[atom] = Interval(low, None if high is None else high - 1)
        low, high = self.values.own_interval(start).low, self.values.own_interval(stop).high
        self.values.own[atom] = Interval(low, None if high is None else high - 1)
        loop = Loop(statement, atom, start, stop, self.depth, effects(statement.body).breaks)
        self.loops.append(loop)
        self.nest.append(loop)
        changed = assigned_symbols(statement.body)
        self.enter(changed)
        self.environment[statement.index] = of_atom(atom)
        self.block(statement.body)
        self.nest.pop()
        self.leave((*changed, statement.index))

    def while_loop(self, statement: While) -> None:
        changed = assigned_symbols((*statement.prelude, *statement.body))
        limits = self.limits(statement, changed)
        self.enter(changed)
        self.take(limits)
        held = len(self.conditions)
        self.turn(statement)
        del self.conditions[held:]
        self.leave(changed)
        if not effects((*statement.prelude, *statement.body)).breaks:
            self.take(limits)

    def turn(self, statement: While) -> None:
        """Run a `while` once; what holds in its body stays among the conditions."""
        for inner in statement.prelude:
            self.statement(inner)
        self.record_expression(statement.condition)
        condition = self.values.condition(statement.condition, self.environment, self.depth)
        self.conditions.append(condition)
        if multiplies(walk(statement)) and self.narrow(statement, condition):
            self.conditions.append(self.values.condition(statement.condition, self.environment, self.depth))
        self.block(statement.body)

    def narrow(self, statement: While, condition: Formula) -> bool:
        """Let the variables of a `while` be new unknowns that are as small as its condition says; whether any is.

        What they are multiplied with does not wrap then.
        """
        found = False
        for symbol in sorted(assigned_symbols(statement), key=lambda symbol: symbol.number):
            value = self.environment.get(symbol)
            if not isinstance(value, Polynomial) or (atom := only_atom(value)) is None:
                continue
            known = self.values.interval(value)
            interval, rests = implied(condition, atom, self.values.intervals)
            if known.high is not None and interval.high is not None and interval.high < known.high:
                self.environment[symbol] = self.values.narrowed(value, interval.meet(known), rests, self.depth)
                found = True
        return found

    def limits(self, statement: While, changed: Iterable[Symbol]) -> Limits:
        """Return what a `while` keeps true of its variables; in a trial run inside of another, nothing."""
        if self.trials == MOST_TRIALS or effects((*statement.prelude, *statement.body)).continues:
            return ()
        if not effects(statement).loads and not effects(statement).stores:
            return ()
        entry = {
            symbol: value
            for symbol in sorted(changed, key=lambda symbol: symbol.number)
            if symbol.dtype is INT64 and isinstance(value := self.environment.get(symbol), Polynomial)
        }
        first = candidates(entry, self.values.intervals, multiplied=multiplies(walk(statement.condition)))
        return kept(first, lambda limits: self.tried(statement, changed, limits))

    def tried(self, statement: While, changed: Iterable[Symbol], limits: Limits) -> Limits:
        """Return which of the limits that hold before an iteration hold after it; nothing else comes of the run."""
        if not limits:
            return ()
        environment, held, marks = self.environment, len(self.conditions), (len(self.loops), len(self.accesses))
        self.trials += 1
        with self.values.trial():
            self.enter(changed)
            self.take(limits)
            self.turn(statement)
            values = {symbol: value for symbol, value in self.environment.items() if isinstance(value, Polynomial)}
            path = (*(part for loop in self.nest for part in loop.domain), *self.conditions)
            result = still_hold(limits, values, path, self.model(), self.solver)
        self.trials, self.depth, self.environment = self.trials - 1, self.depth - 1, environment
        del self.conditions[held:], self.loops[marks[0] :], self.accesses[marks[1] :]
        return result

    def take(self, limits: Limits) -> None:
        """Let variables be new unknowns within limits."""
        for symbol in dict.fromkeys(limit.symbol for limit in limits):
            own = [limit for limit in limits if limit.symbol == symbol]
            value = self.values.unknown(self.depth, within(own, self.values.intervals))
            self.values.restrict(value, both(*(at_least(limit.slack(value), number(0)) for limit in own)))
            self.environment[symbol] = value

    def enter(self, changed: Iterable[Symbol]) -> None:
        self.depth += 1
        self.forget(changed)

    def leave(self, changed: Iterable[Symbol]) -> None:
        self.depth -= 1
        self.forget(changed)

    def forget(self, changed: Iterable[Symbol]) -> None:
        """Let variables be new unknowns; those that note indices are among these."""
        self.environment = self.values.forget(self.environment, changed, self.depth)
        for symbol in self.noted.keys() & {*changed}:
            self.environment[symbol] = self.index(self.noted[symbol])

    def index(self, ranges: Ranges) -> Polynomial:
        """Return a new unknown that is in one of some ranges."""
        ends = [tuple(self.values.exact(self.values.integer(end, {}, 0)) for end in pair) for pair in ranges]
        lows = [self.values.interval(start).low for start, _ in ends]
        highs = [self.values.interval(stop).high for _, stop in ends]
        low = min(each for each in lows if each is not None) if None not in lows else None
        high = max(each for each in highs if each is not None) - 1 if None not in highs else None
        value = self.values.unknown(self.depth, Interval(low, high).meet(INT64_RANGE))
        inside = (both(at_least(value, start), at_least(stop - number(1), value)) for start, stop in ends)
        self.values.restrict(value, either(*inside))
        return value

    # ------------------------------------------------------------ accesses

    def record(self, statement: Statement) -> None:
        """Note the accesses of a statement without blocks, reads first."""
        for child in children(statement):
            self.record_expression(child)
        if isinstance(statement, Store):
            self.access(statement, statement.tensor, statement.indices, statement.access)

    def record_expression(self, expression: Node) -> None:
        for node in walk(expression):
            if isinstance(node, Load):
                self.access(node, node.tensor, node.indices, node.access)

    def access(self, node: Load | Store, tensor: Tensor, indices: tuple[Expression, ...], count: int) -> None:
        axes = tuple(self.axis(tensor, axis, index) for axis, index in enumerate(indices))
        self.accesses.append(
            Access(
                number=count,
                tensor=tensor,
                store=isinstance(node, Store),
                axes=axes,
                loops=tuple(self.nest),
                conditions=tuple(self.conditions),
                depth=self.depth,
                loc=node.loc,
                private=self.declared.get(tensor, 0),
                alone=count in self.alone,
                literal=build.stored_literal(node) if isinstance(node, Store) else None,
            )
        )

    def axis(self, tensor: Tensor, axis: int, index: Expression) -> Axis:
        size = self.values.integer(build.size(tensor, axis), self.environment, self.depth)
        inner = unwrapped(index, tensor, axis)
        source = index if inner is None else inner
        value = self.values.integer(source, self.environment, self.depth)
        return Axis(self.values.exact(value), size, inner is not None, source, value)


def unwrapped(index: Expression, tensor: Tensor, axis: int) -> Expression | None:
    """Return `i` if an index is `Select(i < 0, i + size, i)` with the size of that axis, else None."""
    match index:
        case Select(
            condition=Apply(operator=compare, operands=(tested, zero)),
            then=moved,
            otherwise=inner,
        ) if (
            compare.name == "lt"
            and build.is_constant(zero, 0)
            and tested == inner
            and moved == build.add(inner, build.size(tensor, axis))
        ):
            return inner
        case _:
            return None


def as_written(access: Load | Store) -> list[Expression]:
    """Return the indices of an access as the user wrote them, where negative ones count from the end."""
    return [unwrapped(index, access.tensor, axis) or index for axis, index in enumerate(access.indices)]


def of_other(indices: tuple[Expression, ...], tensor: Tensor, other: Tensor) -> tuple[Expression, ...]:
    """Return the indices of an element as those of the same one of a tensor of the same sizes."""
    result = [*indices]
    for axis, index in enumerate(indices):
        inner = unwrapped(index, tensor, axis)
        if inner is not None:
            below = build.apply("lt", inner, build.integer(0))
            result[axis] = build.select(below, build.add(inner, build.size(other, axis)), inner)
    return tuple(result)


def leaves_always(block: Block) -> bool:
    """Whether a block never runs through to its end."""
    for statement in block:
        if isinstance(statement, Break | Continue):
            return True
        if isinstance(statement, If) and leaves_always(statement.then) and leaves_always(statement.otherwise):
            return True
    return False
