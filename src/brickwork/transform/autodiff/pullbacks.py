"""Pullbacks of expressions: each is computed once with all that its derivatives need, and then pulled back.

`evaluate` writes an expression of the source with the variables of a recomputation; what derivatives may ask for later
(elements, operands and results of operators that a gradient passes through) becomes a variable. `pulled` takes an
adjoint of the result down to the leaves. Where a branch of a `Select`, or a derivative by its rule, is not the one that
counts, the leaf gets 0 whatever was computed: NaN times 0 is never added to a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Cast,
    Constant,
    Expression,
    Load,
    Node,
    Random,
    Read,
    Select,
    Size,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import rebuild
from brickwork.records import dataclass
from brickwork.transform.autodiff.activity import Activity
from brickwork.transform.autodiff.rules import RULES, Point
from brickwork.transform.scratch import Names


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor of the source; the indices are of the recomputation."""

    tensor: Tensor
    indices: tuple[Expression, ...]


Leaf: TypeAlias = Symbol | Element


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of the source, its value in the recomputation, and the operands that a gradient passes through.

    `operands` has None for those that it does not. `leaf` is what a gradient is added to. `arguments` are the values of
    an operator's operands, `condition` is a Select's.
    """

    node: Expression
    value: Expression
    operands: tuple[Term | None, ...] = ()
    leaf: Leaf | None = None
    condition: Expression | None = None
    arguments: tuple[Expression, ...] = ()


@dataclass(slots=True)
class Evaluator:
    """Writes expressions of one statement into `out`; `load` gives an element as the recomputation knows it."""

    names: Names
    activity: Activity
    values: dict[Symbol, Symbol]
    load: Callable[[Load, tuple[Expression, ...]], Expression]
    out: list[Statement]
    recalled: Callable[[Apply], Expression | None] = field(default=lambda _: None)
    """Gives the value of an operator that need not be computed again."""
    loaded: dict[Element, Expression] = field(default_factory=dict[Element, Expression])

    def term(self, node: Expression) -> Term:
        """Return an expression with what its derivatives need."""
        if not self.activity.is_active(node):
            return Term(node, self.kept(self.plain(node), "v"))
        match node:
            case Read(symbol=symbol):
                return Term(node, self.plain(node), leaf=symbol)
            case Load(tensor=tensor, indices=indices):
                element = Element(tensor, tuple(self.plain(index) for index in indices))
                return Term(node, self.element(node, element), leaf=element)
            case Cast(operand=operand):
                inner = self.term(operand)
                return Term(node, self.kept(build.cast(inner.value, node.dtype, node.loc), "v"), (inner,))
            case Select(condition=condition, then=then, otherwise=otherwise):
                chosen = self.kept(self.plain(condition), "c")
                first, second = self.term(then), self.term(otherwise)
                value = self.kept(build.select(chosen, first.value, second.value, node.loc), "v")
                return Term(node, value, (self.active(first), self.active(second)), condition=chosen)
            case Apply(operands=operands):
                terms = tuple(self.term(operand) for operand in operands)
                applied = Apply(
                    operator=node.operator, operands=tuple(item.value for item in terms), dtype=node.dtype, loc=node.loc
                )
                value = self.kept(self.recalled(applied) or applied, "v")
                return Term(node, value, tuple(map(self.active, terms)), arguments=applied.operands)
            case Constant() | Size() | Random():
                raise TypeError(type(node).__name__)

    def active(self, term: Term) -> Term | None:
        """Return a term that a gradient passes through, or None."""
        return term if self.activity.is_active(term.node) else None

    def plain(self, node: Expression) -> Expression:
        """Return an expression in variables of the recomputation; elements that it reads are in variables."""

        def change(child: Node) -> Node:
            match child:
                case Constant() | Read() | Size() | Load() | Apply() | Cast() | Select() | Random():
                    return self.plain(child)
                case _:
                    return child

        match node:
            case Read(symbol=symbol):
                return build.read(self.values.get(symbol, symbol), node.loc)
            case Load(tensor=tensor, indices=indices):
                return self.element(node, Element(tensor, tuple(self.plain(index) for index in indices)))
            case _:
                return rebuild(node, change)

    def element(self, node: Load, element: Element) -> Expression:
        """Return an element; one that is read twice in a statement is loaded once."""
        if element not in self.loaded:
            self.loaded[element] = self.kept(self.load(node, element.indices), "v")
        return self.loaded[element]

    def kept(self, value: Expression, name: str) -> Expression:
        """Return the value as a read of a new variable, or itself where it is short."""
        return self.names.kept(value, name, self.out)


# ---------------------------------------------------------------- backwards


@dataclass(frozen=True, slots=True)
class _Adjoint:
    """The adjoint of a term, and the condition under which it counts."""

    value: Expression
    mask: Expression | None = None


Contributions: TypeAlias = dict[Leaf, list[Expression]]


def pulled(term: Term, adjoint: Expression, writer: Evaluator, skipped: Leaf | None = None) -> Contributions:
    """Return what is to be added to the adjoint of each leaf; the leaf that a sum goes on in may be `skipped`."""
    found: Contributions = {}
    for leaf, each in _pull(term, _Adjoint(adjoint), writer):
        if leaf != skipped:
            masked = each.value
            if each.mask is not None:
                masked = build.select(each.mask, each.value, build.constant(0.0, each.value.dtype))
            found.setdefault(leaf, []).append(masked)
    return found


def _pull(term: Term, adjoint: _Adjoint, writer: Evaluator) -> Iterator[tuple[Leaf, _Adjoint]]:
    if term.leaf is not None:
        yield term.leaf, adjoint
        return
    match term.node:
        case Cast():
            for operand in _active(term.operands):
                yield from _pull(
                    operand, _Adjoint(build.cast(adjoint.value, operand.value.dtype), adjoint.mask), writer
                )
        case Select() if term.condition is not None:
            then, otherwise = term.operands
            if then is not None:
                yield from _pull(then, _where(adjoint, term.condition, writer), writer)
            if otherwise is not None:
                yield from _pull(otherwise, _where(adjoint, build.logical_not(term.condition), writer), writer)
        case Apply(operator=operator):
            yield from _pull_operands(term, operator.name, adjoint, writer)
        case _:
            raise TypeError(type(term.node).__name__)


def _pull_operands(term: Term, name: str, adjoint: _Adjoint, writer: Evaluator) -> Iterator[tuple[Leaf, _Adjoint]]:
    """Yield what an operator's active operands get."""
    adjoint = _Adjoint(writer.kept(adjoint.value, "a"), adjoint.mask)
    point = Point(term.arguments, term.value)
    for partial, operand in zip(RULES[name], term.operands, strict=True):
        if partial is None or operand is None:
            continue
        inner = _Adjoint(partial.scale(adjoint.value, point), adjoint.mask)
        if partial.where is not None:
            inner = _where(inner, partial.where(point), writer)
        yield from _pull(operand, inner, writer)


def _where(adjoint: _Adjoint, condition: Expression, writer: Evaluator) -> _Adjoint:
    condition = condition if adjoint.mask is None else build.apply("logical_and", adjoint.mask, condition)
    return _Adjoint(adjoint.value, writer.kept(condition, "c"))


def _active(terms: Iterable[Term | None]) -> Iterator[Term]:
    return (term for term in terms if term is not None)


def total(values: list[Expression]) -> Expression:
    """Return the sum of contributions."""
    result = values[0]
    for value in values[1:]:
        result = build.add(result, value)
    return result


# ---------------------------------------------------------------- sums that go on


def continues(term: Term, leaf: Leaf) -> bool:
    """Whether an expression is the leaf's old value plus what does not depend on it: its adjoint stays as it is."""
    return _occurrences(term, leaf) == 1 and _is_whole(term, leaf)


def _occurrences(term: Term, leaf: Leaf) -> int:
    if term.leaf is not None:
        return int(term.leaf == leaf)
    return sum(_occurrences(operand, leaf) for operand in _active(term.operands))


def _is_whole(term: Term, leaf: Leaf) -> bool:
    if term.leaf is not None:
        return term.leaf == leaf
    match term.node:
        case Apply(operator=operator):
            whole = {"add": (0, 1), "sub": (0,)}.get(operator.name, ())
            return any(_is_whole(operand, leaf) for operand in _active(term.operands[place] for place in whole))
        case _:
            return False
