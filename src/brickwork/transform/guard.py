"""Loop versioning by guards: accesses are kept in range by one test at launch, or else by one before each statement.

    body  ->  if guards: body without the guarded checks, else: body in order with every check that is not proved

Invariant: no element outside a tensor is touched, whatever the arguments; a check that fails comes before any effect of
its statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from brickwork.analysis.symbolic import unwrapped
from brickwork.analysis.verdicts import Analysis, Bound, BoundVerdict
from brickwork.ir import build
from brickwork.ir.nodes import (
    TRUE,
    Block,
    Check,
    Expression,
    Failure,
    FailureKind,
    For,
    If,
    Load,
    Node,
    Statement,
    Store,
    While,
)
from brickwork.ir.walk import children, rewrite, rewrite_statements
from brickwork.legality import legality

Bounds = Mapping[tuple[int, int], BoundVerdict]
SHAPE_LIMIT = 6
"""Ranks up to which a failure records the whole shape."""


def guards(analysis: Analysis) -> tuple[Expression, ...]:
    """Return the conditions, to be tested once, under which the guarded accesses and the loops' verdicts hold."""
    found = [guard for verdict in analysis.bounds.values() for guard in verdict.guard]
    return tuple(dict.fromkeys((*analysis.assumptions, *found)))


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """Return whether all conditions hold."""
    result: Expression = TRUE
    for condition in conditions:
        result = build.apply("logical_and", result, condition)
    return result


@legality
def fast_body(block: Block, analysis: Analysis) -> Block:
    """Return the block for arguments that satisfy the guards."""
    plain = tuple(_simplify(statement, analysis.bounds) for statement in block)
    return _check(plain, analysis.bounds, lambda verdict: verdict.bound is Bound.CHECKED)


@legality
def careful_body(block: Block, analysis: Analysis) -> Block:
    """Return the block for any arguments; proofs that rest on assumptions are worth nothing here."""
    assumed = bool(analysis.assumptions)
    return _check(block, analysis.bounds, lambda verdict: assumed or verdict.bound is not Bound.PROVED)


def with_guard(condition: Expression, fast: Block, careful: Block, version: str = "") -> Block:
    """Return the choice between the two, or the fast one, whose name is `version`, where nothing is to be tested."""
    if condition == TRUE:
        return fast
    return (If(condition=condition, then=fast, otherwise=careful, version=version),)


# ---------------------------------------------------------------- negative indices


@legality
def _simplify(statement: Statement, bounds: Bounds) -> Statement:
    """Leave out the resolution of negative indices where they cannot be negative."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Load | Store):
            return node
        indices = (
            _plain(node, axis, index) if bounds[node.access, axis].plain else index
            for axis, index in enumerate(node.indices)
        )
        return replace(node, indices=tuple(indices))

    return rewrite(statement, visit)


def _plain(node: Load | Store, axis: int, index: Expression) -> Expression:
    return unwrapped(index, node.tensor, axis) or index


# ---------------------------------------------------------------- checks


def _check(block: Block, bounds: Bounds, wanted: Callable[[BoundVerdict], bool]) -> Block:
    def visit(statement: Statement) -> Block:
        match statement:
            case For(start=start, stop=stop):
                return (*_checks_of((start, stop), bounds, wanted), statement)
            case If(condition=condition):
                return (*_checks_of((condition,), bounds, wanted), statement)
            case While(condition=condition):
                checks = _checks_of((condition,), bounds, wanted)
                return (replace(statement, prelude=(*statement.prelude, *checks)) if checks else statement,)
            case Store():
                checks = [*_checks_of(children(statement), bounds, wanted)]
                checks += _access_checks(statement, bounds, wanted)
                return (*dict.fromkeys(checks), statement)
            case _:
                return (*_checks_of(children(statement), bounds, wanted), statement)

    return rewrite_statements(block, visit)


def _checks_of(roots: Iterable[Node], bounds: Bounds, wanted: Callable[[BoundVerdict], bool]) -> tuple[Check, ...]:
    """Return the checks of the reads in expressions, inner ones first."""
    result: list[Check] = []
    for root in roots:
        result.extend(_checks_of(children(root), bounds, wanted))
        if isinstance(root, Load):
            result.extend(_access_checks(root, bounds, wanted))
    return tuple(dict.fromkeys(result))


def _access_checks(node: Load | Store, bounds: Bounds, wanted: Callable[[BoundVerdict], bool]) -> list[Check]:
    return [range_check(node, axis) for axis in range(len(node.indices)) if wanted(bounds[node.access, axis])]


def range_check(node: Load | Store, axis: int) -> Check:
    """Return the check that an index of an access is in range."""
    size, index = build.size(node.tensor, axis), node.indices[axis]
    given = unwrapped(index, node.tensor, axis)
    lowest: Expression = build.integer(0) if given is None else build.apply("neg", size)
    user = index if given is None else given
    condition = build.apply("logical_and", build.apply("ge", user, lowest), build.apply("lt", user, size))
    return index_check(node, axis, user, condition)


def index_check(node: Load | Store, axis: int, user: Expression, condition: Expression) -> Check:
    """Return the check of an index of an access, which says the user's index where the condition does not hold."""
    size = build.size(node.tensor, axis)
    places = range(node.tensor.added, node.tensor.type.axes)
    sizes: tuple[Expression, ...] = (size,)
    shape = ""
    if len(places) <= SHAPE_LIMIT:
        sizes = (size, *(build.size(node.tensor, place) for place in places))
        fields = ", ".join(f"{{{place + 2}}}" for place in range(len(places)))
        shape = f" (shape ({fields}{',' if len(places) == 1 else ''}))"
    name = f"{'list' if node.tensor.is_local else 'tensor'} '{node.tensor.name}'"
    message = f"index {{0}} is out of bounds for dimension {axis - node.tensor.added} of {name} with size {{1}}{shape}"
    return Check(condition=condition, failure=Failure(FailureKind.INDEX, message), values=(user, *sizes), loc=node.loc)
