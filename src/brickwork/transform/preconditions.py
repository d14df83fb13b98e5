"""Preconditions of a kernel: what the host part has checked before the launch, and what that implies.

Derived programs check in their host part what their derivation rests on. Their kernels need no second body for
arguments that break it, and no checks of divisors that the host excludes to be 0. Invariant: what is said to hold does
so in every launch; conditions that read elements, or what is changed after the check, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from brickwork.analysis.verdicts import Analysis, Bound, BoundVerdict
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Cast,
    Check,
    Constant,
    Expression,
    Read,
    Rebind,
    Size,
    Statement,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.argument_facts import ArgumentFacts, holds


@dataclass(frozen=True)
class Preconditions:
    """The conditions that the host part has checked before a launch."""

    conditions: frozenset[Expression] = frozenset()

    @cached_property
    def nonzero(self) -> frozenset[Expression]:
        """The expressions that are not 0."""
        return frozenset(found for item in self.conditions if (found := divisor_of(item)) is not None)

    @legality
    def holds(self, condition: Expression) -> bool:
        """Whether a condition was checked, or a stricter limit of the same number."""
        if condition in self.conditions:
            return True
        limit = _limit(condition)
        return limit is not None and self._strictest.get(limit[0], limit[1] + 1) <= limit[1]

    @cached_property
    def _strictest(self) -> dict[tuple[Expression, bool], int]:
        found: dict[tuple[Expression, bool], int] = {}
        for item in self.conditions:
            if (limit := _limit(item)) is not None:
                found[limit[0]] = min(limit[1], found.get(limit[0], limit[1]))
        return found


NOTHING = Preconditions()


@legality
def preconditions_of(host: Block, kernel: Block) -> Preconditions:
    """Return what holds in the body of a kernel since the statements of the host part before it have checked it."""
    found: list[Expression] = []
    for statement in host:
        match statement:
            case Check(condition=condition):
                found += [condition] if effects(condition).plain else []
            case Rebind(targets=targets):
                found = [item for item in found if not _sized(item).intersection(targets)]
            case _:
                found = _unchanged(found, statement)
    return Preconditions(frozenset(_unchanged(found, kernel)))


def _sized(condition: Expression) -> frozenset[Tensor]:
    return frozenset(node.tensor for node in walk(condition) if isinstance(node, Size))


def _unchanged(conditions: list[Expression], by: Statement | Block) -> list[Expression]:
    """Return the conditions on variables that statements do not assign."""
    changed = assigned_symbols(by)
    return [item for item in conditions if changed.isdisjoint(read_symbols(item))] if changed else conditions


@legality
def divisor_of(condition: Expression) -> Expression | None:
    """Return the expression that a check excludes to be 0."""
    match condition:
        case Apply(operator=operator, operands=(divisor, zero)) if operator.name == "ne" and build.is_constant(zero, 0):
            return divisor
        case _:
            return None


def strictest(conditions: Iterable[Expression], already: Preconditions) -> Iterator[Expression]:
    """Yield the conditions that neither those checked `already` nor the others imply."""
    every = [item for item in dict.fromkeys(conditions) if not already.holds(item)]
    for place, item in enumerate(every):
        if not Preconditions(frozenset((*every[:place], *every[place + 1 :]))).holds(item):
            yield item


@legality
def _limit(condition: Expression) -> tuple[tuple[Expression, bool], int] | None:
    """Return a number, whether it is bounded from above, and how far from 0 it may be, if that is all that is said."""
    match condition:
        case Apply(operator=operator, operands=(Constant(value=most), Size() | Read() | Cast() as bounded)):
            if operator.name == "ge":
                return (bounded, True), int(most)
        case Apply(operator=operator, operands=(Apply() as total, zero)) if operator.name == "ge":
            match total.operands:
                case (Constant(value=most), Size() | Read() | Cast() as bounded):
                    if total.operator.name == "add" and build.is_constant(zero, 0):
                        return (bounded, False), int(most)
                case _:
                    pass
        case _:
            pass
    return None


def assuming_less(analysis: Analysis, known: ArgumentFacts | None, before: Preconditions) -> Analysis:
    """Return the analysis without the assumptions and guards that are known to hold."""
    left = (item for item in analysis.assumptions if known is None or not holds(item, known))
    bounds = {place: _guarded_less(verdict, before) for place, verdict in analysis.bounds.items()}
    return replace(analysis, assumptions=tuple(item for item in left if not before.holds(item)), bounds=bounds)


def _guarded_less(verdict: BoundVerdict, before: Preconditions) -> BoundVerdict:
    guard = tuple(item for item in verdict.guard if not before.holds(item))
    if guard == verdict.guard:
        return verdict
    return replace(verdict, guard=guard, bound=verdict.bound if guard else Bound.PROVED)
