"""Loop invariants of a `while`: which integer variables stay at least, or at most, what they were before it.

Candidates are all taken for granted, the loop is run once symbolically, and those that do not hold after an iteration
are dropped, until all that are left do (the runs are made by `symbolic.py`). Invariant: what is returned holds whenever
the condition is about to be evaluated, and 64-bit arithmetic that leads there does not wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isqrt
from typing import TypeAlias

from brickwork.analysis.formula import AllOf, Comparison, Formula, at_least, atoms_of
from brickwork.analysis.isl import FOLLOWED, Solver
from brickwork.analysis.polyhedral_model import Model
from brickwork.analysis.polynomial import (
    INT64_RANGE,
    Atom,
    Interval,
    Polynomial,
    ScalarAtom,
    SizeAtom,
    atom_interval,
    combine,
    interval_of,
    number,
    of_atom,
)
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Constant, Node, Symbol
from brickwork.records import dataclass

FAR = 2**62
"""A variable that lies within plus or minus this can be added to indices without wrapping."""
NEAR = 2**31 - 1
"""Two variables that lie within plus or minus this can be multiplied without wrapping."""


@dataclass(frozen=True, slots=True)
class Limit:
    """That a variable is at least `bound` (`below`), or at most."""

    symbol: Symbol
    bound: Polynomial
    below: bool

    def slack(self, value: Polynomial) -> Polynomial:
        """Return what is at least 0 if the limit holds for a value."""
        return value - self.bound if self.below else self.bound - value


Limits: TypeAlias = tuple[Limit, ...]


def candidates(
    entry: Mapping[Symbol, Polynomial], intervals: Mapping[Atom, Interval], *, multiplied: bool = False
) -> Limits:
    """Return what may stay true of variables with these values before the loop; all of it is true there.

    If variables are `multiplied` with others, they may be so small that no product wraps.
    """
    followed: list[Limits] = []
    for symbol, value in entry.items():
        around = interval_of(value, intervals)
        if around.low is None or around.high is None or around.low < -FAR or around.high > FAR:
            continue
        lows = [value, *(number(low) for low in (0, -1, -FAR) if low <= around.low)]
        highs = [number(high) for high in (FAR, *((NEAR,) if multiplied and around.high <= NEAR else ()))]
        bounds = [*((low, True) for low in lows), (value, False), *((high, False) for high in highs)]
        followed.append(tuple(Limit(symbol, bound, below) for bound, below in dict.fromkeys(bounds)))
    return tuple(limit for limits in followed for limit in limits) if len(followed) <= FOLLOWED else ()


def kept(limits: Limits, turn: Callable[[Limits], Limits]) -> Limits:
    """Return the limits that hold after each iteration that begins with all of them.

    `turn` returns those of the given ones that hold after one, so that there are fewer each time.
    """
    while (left := turn(limits)) != limits:
        limits = left
    return limits


def still_hold(
    limits: Limits,
    values: Mapping[Symbol, Polynomial],
    path: Iterable[Formula],
    model: Model,
    solver: Solver,
) -> Limits:
    """Return the limits that hold of the values at the end of a path; the values may be modulo 2**64."""
    path = tuple(path)

    def never(slack: Polynomial) -> bool:
        """Whether a polynomial is at least 0 at the end of the path."""
        low = interval_of(slack, model.intervals).low
        if low is not None and low >= 0:
            return True
        wrong = model.closure((*path, at_least(number(-1), slack)))
        ranges = [formula for atom in atoms_of(wrong) for formula in _range(atom, model)]
        return solver.feasible((*wrong, *ranges)) is False

    result: list[Limit] = []
    fits: dict[Symbol, bool] = {}
    for limit in limits:
        value = values.get(limit.symbol)
        if value is None:
            continue
        if limit.symbol not in fits:
            ends = (value - number(INT64_RANGE.low or 0), number(INT64_RANGE.high or 0) - value)
            fits[limit.symbol] = all(map(never, ends))
        if fits[limit.symbol] and never(limit.slack(value)):
            result.append(limit)
    return tuple(result)


def _range(atom: Atom, model: Model) -> tuple[Formula, ...]:
    if not isinstance(atom, SizeAtom | ScalarAtom):
        return ()
    around = atom_interval(atom, model.intervals)
    return (
        at_least(of_atom(atom), number(around.low or 0)),
        at_least(number(around.high or 0), of_atom(atom)),
    )


def implied(condition: Formula, atom: Atom, intervals: Mapping[Atom, Interval]) -> tuple[Interval, frozenset[Atom]]:
    """Return an interval around an atom where a condition holds, and what that interval rests on."""
    result, rests = INT64_RANGE, frozenset[Atom]()
    for part in condition.parts if isinstance(condition, AllOf) else (condition,):
        if not isinstance(part, Comparison) or part.equal:
            continue
        for monomial in ((atom,), (atom, atom)):
            factor = part.polynomial.factor(monomial)
            rest = part.polynomial - combine([(monomial, factor)])
            high = interval_of(rest, intervals).high
            if factor not in {1, -1} or high is None or atom in rest.atoms():
                continue
            if len(monomial) == 1:
                result = result.meet(Interval(-high, None) if factor == 1 else Interval(None, high))
                rests |= rest.atoms()
            elif factor == -1:
                root = isqrt(max(high, 0))
                result = result.meet(Interval(-root, root))
                rests |= rest.atoms()
    return result, rests


def multiplies(nodes: Iterable[Node]) -> bool:
    """Whether variables are multiplied with one another among the nodes."""
    return any(
        isinstance(node, Apply)
        and node.dtype is INT64
        and node.operator.name == "mul"
        and not any(isinstance(operand, Constant) for operand in node.operands)
        for node in nodes
    )


def within(limits: Iterable[Limit], intervals: Mapping[Atom, Interval]) -> Interval:
    """Return an interval around a variable of these limits."""
    result = INT64_RANGE
    for limit in limits:
        around = interval_of(limit.bound, intervals)
        result = result.meet(Interval(around.low, None) if limit.below else Interval(None, around.high))
    return result
