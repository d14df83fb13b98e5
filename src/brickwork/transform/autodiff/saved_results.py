"""What results of the forward pass tell: values that are dear to compute again are read from those that were saved.

    out[i] = exp(x[i])                      v = result[i]                   instead of exp(x[i])
    out[i, j] = exp(x[i, j] - m) / t        v = result[i, j] * t            instead of exp(x[i, j] - m)

The second holds in every loop over the same j, also in one before the store: `total += exp(x[i, j] - m)`.

Invariant: an equation is told of variables of a recomputation, each of which is assigned once, or by loops that are
over; of elements of arguments that are only read; and of elements of a result that nothing stores into afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from brickwork.analysis.searches import without_numbers
from brickwork.ir import build
from brickwork.ir.interned import Interned, parts
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Expression,
    For,
    If,
    Load,
    Node,
    Random,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, substitute
from brickwork.records import dataclass
from brickwork.transform.autodiff.pullbacks import Evaluator, Term
from brickwork.transform.autodiff.reaching_stores import ReachingStores
from brickwork.transform.autodiff.store_forwarding import is_exact
from brickwork.transform.scratch import Names

_DEAR = frozenset(
    "pow exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 erf erfc"
    " gamma lgamma".split()
)
"""Operators that cost more than reading an element."""


@dataclass(frozen=True, slots=True)
class _Equation:
    """An expression and what it is equal to, for all values of the loops' indices in `varying`."""

    found: Expression
    value: Expression
    varying: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class Equations:
    """The equations that are known in a block, besides those of the blocks around it."""

    around: Equations | None = None
    own: list[_Equation] = field(default_factory=list[_Equation])

    def __iter__(self) -> Iterator[_Equation]:
        """Yield all that are known."""
        yield from self.own
        if self.around is not None:
            yield from self.around


@dataclass(frozen=True, slots=True)
class SavedResults:
    """The results of one kernel that are given: tensors in place of those that the kernel stores into.

    `ranges` takes what each loop of the recomputation runs through, by its index.
    """

    tensors: Mapping[Tensor, Tensor]
    states: ReachingStores
    names: Names
    ranges: dict[Symbol, tuple[Expression, Expression]] = field(
        default_factory=dict[Symbol, tuple[Expression, Expression]]
    )
    expressions: Interned = field(default_factory=Interned)
    """What variables stand for, whose definitions stand in one another."""

    def stored(
        self, node: Store, indices: tuple[Expression, ...], term: Term, known: Equations, evaluator: Evaluator
    ) -> Term:
        """Return the term of what a store leaves in a result, with values from there; note what it tells."""
        saved = self.tensors.get(node.tensor)
        if saved is None or not is_exact(node) or not self.states.is_final(node):
            return term
        defined = _definitions(evaluator.out)
        element = self.names.load(saved, *indices)
        if self._note(term.value, element, known, defined):
            term = replace(term, value=evaluator.kept(element, "v"))
        match term:
            case Term(node=Apply(operator=operator), arguments=(left, right)) if operator.name == "truediv":
                if not self._note(left, build.mul(element, right), known, defined):
                    return term
                value = evaluator.kept(build.mul(term.value, right), "v")
                first, second = term.operands
                first = None if first is None else replace(first, value=value)
                return replace(term, operands=(first, second), arguments=(value, right))
            case _:
                return term

    def _note(
        self, found: Expression, value: Expression, known: Equations, defined: Mapping[Symbol, Expression | None]
    ) -> bool:
        """Note an equation of a value that is dear; return whether it is one."""
        whole = self._expanded(found, defined)
        nodes = [*parts(whole)]
        sums = any(isinstance(node, Read) and defined.get(node.symbol, node) is None for node in nodes)
        dear = any(isinstance(node, Apply) and node.operator.name in _DEAR for node in nodes)
        if dear and not any(map(self._may_change, nodes)):
            known.own.append(_Equation(whole, value))
        return dear or sums

    def _may_change(self, node: Node) -> bool:
        """Whether an expression may have other values where its variables, and what is in it, have the same."""
        changes = isinstance(node, Load) and (node.tensor.is_local or self.states.changes(node.tensor))
        return changes or isinstance(node, Random)

    def recalled(self, node: Apply, known: Equations, evaluator: Evaluator) -> Expression | None:
        """Return what a value is equal to that does not have to be computed again."""
        if not self.tensors or node.operator.name not in _DEAR | {"truediv"}:
            return None
        equations = [*known]
        if not equations:
            return None
        whole = self._expanded(node, _definitions(evaluator.out))

        def loaded(part: Node) -> Node:
            if not isinstance(part, Load):
                return part
            return evaluator.kept(replace(part, access=next(self.names.accesses)), "v")

        for equation in equations:
            value = self._instance(equation, whole)
            if value is not None:
                return rewrite(value, loaded)
        return None

    def _instance(self, equation: _Equation, whole: Expression) -> Expression | None:
        """Return what an expression is equal to by an equation; None if it is not one that this is about."""
        own, others = _symbols(equation.found), _symbols(whole)
        if len(own) != len(others):
            return None
        pairs = {one: other for one, other in zip(own, others, strict=True) if one != other}
        values = {one: build.read(other) for one, other in pairs.items()}
        if any(one not in equation.varying for one in pairs):
            return None

        def visit(part: Expression) -> Expression:
            return values.get(part.symbol, part) if isinstance(part, Read) else part

        if self.expressions.rewritten(equation.found, visit) is not whole:
            return None
        if (read_symbols(equation.value) & {*equation.varying}) - {*own}:
            return None
        if not all(self._same_range(one, other, values) for one, other in pairs.items()):
            return None
        return substitute(equation.value, values)

    def _same_range(self, one: Symbol, other: Symbol, values: Mapping[Symbol, Expression]) -> bool:
        if other not in self.ranges:
            return False
        bounds = tuple(substitute(bound, values) for bound in self.ranges[one])
        return tuple(map(without_numbers, bounds)) == tuple(map(without_numbers, self.ranges[other]))

    def _expanded(self, node: Expression, defined: Mapping[Symbol, Expression | None]) -> Expression:
        """Return an expression with the definitions of variables in their places, and accesses without numbers."""
        known = dict[Symbol, Expression]()

        def visit(child: Expression) -> Expression:
            if isinstance(child, Read) and (value := defined.get(child.symbol)) is not None:
                if child.symbol not in known:
                    known[child.symbol] = self.expressions.rewritten(value, visit)
                return known[child.symbol]
            return replace(child, access=0) if isinstance(child, Load) else child

        return self.expressions.rewritten(node, visit)

    def leave(self, index: Symbol, code: Sequence[Statement], inside: Equations, known: Equations) -> None:
        """Note what holds of all iterations of a loop, once they are written; `inside` holds in each."""
        for equation in inside.own:
            varying = (*equation.varying, index)
            bounds = (bound for each in varying for bound in self.ranges[each])
            read = read_symbols((equation.found, equation.value, *bounds))
            if not (read - {*varying}) & assigned_symbols(code):
                known.own.append(replace(equation, varying=varying))


def _definitions(out: Sequence[Statement]) -> dict[Symbol, Expression | None]:
    """Return what the variables of a block are, as far as it is written; None for those that its loops leave."""
    found: dict[Symbol, Expression | None] = {}
    for statement in out:
        match statement:
            case Assign(symbol=symbol, value=value):
                found[symbol] = value
            case For() | If() | While():
                found |= dict.fromkeys(assigned_symbols(statement))
            case _:
                pass
    return found


def _symbols(node: Expression) -> list[Symbol]:
    """Return the variables that an expression reads, in the order in which it names them."""
    return [*dict.fromkeys(each.symbol for each in parts(node) if isinstance(each, Read))]
