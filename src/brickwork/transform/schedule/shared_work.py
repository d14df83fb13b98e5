"""Shared work: iterations of a loop that compute mostly the same run together, in one thread of a grid.

    for c in range(C):                              a thread takes four c of a y and x: the place and the weight do
        for y in range(H): for x in range(W):       not vary along c, and are computed once for the four
            u = x + offset[y, x]
            left = floor(u)
            if 0 <= left < W - 1: out[c, y, x] = (u - left) * image[c, y, left] + ...

Channels of what is read at fractional places, of windows and of rotations are such iterations. Where all of them
together are too few to keep a GPU busy, each is for a thread: `shared_conditions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    For,
    If,
    Node,
    Read,
    Size,
    Statement,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import (
    assigned_symbols,
    children,
    read_symbols,
    rewrite,
    rewrite_statements,
    statements,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.planner import DEPTH_WEIGHT, JAMMED, is_long_computation, trip_count, varies_with
from brickwork.transform.schedule.register_tile import outermost
from brickwork.transform.schedule.schedule import Reorder, Schedule, Unroll, Verb, planned
from brickwork.transform.schedule.tile import is_cheap
from brickwork.transform.verbs.unroll_jam import may_jam
from brickwork.transform.verbs.varying import Varying, varying

_DIVISIONS = frozenset({"floordiv", "mod"})
_INSIDE = int(DEPTH_WEIGHT)
"""How often a loop inside is taken to run, and the instructions of a function or a division, which are like one."""


@dataclass(frozen=True, slots=True)
class SharedPlanner(GridPlanner):
    """Runs iterations together that share most of their work, and schedules the rest as a `GridPlanner` does."""

    def independent(self, loop: For, *, inside: bool) -> Iterator[Verb]:
        """Schedule a band of loops: several iterations of one of them for a thread, where those share their work."""
        band = [*self.rectangle(loop)]
        innermost = self.innermost(band)
        together = None if inside else self.together(band, innermost)
        if together is None or self.has_rows(band, together):
            yield from GridPlanner.independent(self, loop, inside=inside)
            return
        order = [*(node for node in band if node is not innermost), innermost]
        if order != band:
            yield Reorder(tuple(node.index for node in order))
        branches = any(isinstance(node, For | If | While) for node in statements(band[-1].body))
        for node in order:
            yield from self.threads(node, 1 if branches or node is not innermost else self.width(innermost, band[-1]))
        yield Unroll(together.index, JAMMED, jam=True)

    def together(self, band: Sequence[For], innermost: For) -> For | None:
        """Return the loop of a band whose iterations share the most of their work, if that is most of it."""
        if len(band) < 2 or not may_jam(band[-1].body, failing=True) or self.sharing([*band], innermost) is not None:
            return None
        if any(node.index in read_symbols(self.bounds_inside(band)) for node in band):
            return None
        found: list[tuple[int, int]] = []
        for place, node in enumerate(band):
            body = _in_groups(replace(node, body=band[-1].body)).body
            shared, own = _Work(varying(replace(node, body=body), JAMMED)).of_block(body)
            if node is not innermost and shared > own:
                found.append((shared, place))
        return band[max(found)[1]] if found else None

    def has_rows(self, band: list[For], together: For) -> bool:
        """Whether blocks of threads share out what such iterations read along memory, rows of their own."""
        chosen = self.for_blocks(band)
        reads = [item for node in chosen for item in self.inside(node) if not item.store]
        return bool(chosen) and all(is_cheap(item, chosen) for item in reads if varies_with(item, together.index))

    def bounds_inside(self, band: Sequence[For]) -> list[Expression]:
        """Return the bounds of a band's loops."""
        return [bound for node in band for bound in (node.start, node.stop)]


def shared_schedule(block: Block, analysis: Analysis, target: Target, plain: Schedule) -> Schedule | None:
    """Return the schedule of a kernel's body that shares work, where that is another one than `plain`."""
    schedule = planned(SharedPlanner(analysis, target, lengths_in(block)).block(block))
    return None if schedule == plain else schedule


def shared_conditions(block: Block, schedule: Schedule, target: Target) -> tuple[Expression, ...] | None:
    """Return what must hold so that iterations which run together are enough; None if that is not known before."""
    inner = assigned_symbols(block)
    found: dict[Expression, None] = {}
    for nest in outermost(block, schedule):
        band = [
            node for node in (nest, *statements(nest.body)) if isinstance(node, For) and schedule.parallel(node.index)
        ]
        jams = [node for node in band if schedule.jam(node.index)]
        if not jams:
            continue
        bounds = [bound for node in band for bound in (node.start, node.stop)]
        if read_symbols(bounds) & inner:
            return None
        total = build.product([build.iterations(node.start, node.stop) for node in band])
        found[build.apply("ge", total, build.integer(JAMMED * target.threads))] = None
        for node in jams:
            found[build.apply("ge", build.iterations(node.start, node.stop), build.integer(JAMMED))] = None
            for divisor in _divisors(node):
                found.update(dict.fromkeys(_is_multiple(divisor)))
    return tuple(found)


# ---------------------------------------------------------------- groups


def with_groups(block: Block, schedule: Schedule) -> Block:
    """Return a block that does the same where `shared_conditions` hold, and says what iterations of a group share.

    for c in range(C): g = c // d    ->    g = c // 4 * 4 // d, where d is a multiple of 4
    """

    def change(statement: Statement) -> Block:
        return (_in_groups(statement) if isinstance(statement, For) and schedule.jam(statement.index) else statement,)

    return rewrite_statements(block, change)


def _in_groups(loop: For) -> For:
    divisors = _divisors(loop)

    def visit(node: Node) -> Node:
        if isinstance(node, Apply) and _is_quotient(node, loop) and node.operands[1] in divisors:
            first = build.apply("floordiv", node.operands[0], build.integer(JAMMED))
            return build.apply("floordiv", build.mul(first, build.integer(JAMMED)), node.operands[1], loc=node.loc)
        return node

    return replace(loop, body=tuple(rewrite(statement, visit) for statement in loop.body)) if divisors else loop


def _divisors(loop: For) -> frozenset[Expression]:
    """Return what a loop divides its index by, other than literals, where that is known before the loop."""
    inside = assigned_symbols(loop)
    quotients = [node for node in walk(loop.body) if isinstance(node, Apply) and _is_quotient(node, loop)]
    found = [node.operands[1] for node in quotients if not isinstance(node.operands[1], Constant)]
    return frozenset(each for each in found if _is_known(each, inside))


@legality
def _is_known(divisor: Expression, inside: frozenset[Symbol]) -> bool:
    """Whether the host can compute a divisor: it reads nothing that the loop assigns, and no elements."""
    return effects(divisor).plain and not effects(divisor).reads & inside


@legality
def _is_quotient(node: Apply, loop: For) -> bool:
    """Whether the index of a loop from 0 is divided."""
    from_zero = build.is_constant(loop.start, 0)
    return from_zero and node.operator.name == "floordiv" and node.operands[0] == build.read(loop.index)


def _is_multiple(divisor: Expression) -> Iterator[Expression]:
    """Yield what must hold so that a divisor is positive and a multiple; what divides in it is positive, too."""

    def visit(node: Node) -> Node:
        if isinstance(node, Apply) and node.operator.name in _DIVISIONS:
            least = build.apply("maximum", node.operands[1], build.integer(1))
            return build.apply(node.operator.name, node.operands[0], least, loc=node.loc)
        return node

    for node in walk(divisor):
        if isinstance(node, Apply) and node.operator.name in _DIVISIONS:
            yield build.apply("ge", rewrite(node.operands[1], visit), build.integer(1))
    value = rewrite(divisor, visit)
    yield build.apply("ge", value, build.integer(1))
    yield build.apply("eq", build.apply("mod", value, build.integer(JAMMED)), build.integer(0))


# ---------------------------------------------------------------- work


@dataclass(frozen=True, slots=True)
class _Work:
    """What an iteration computes, in operations: as often as loops inside change it, which are `around` it.

    `along` is what varies along the loop of the iterations.
    """

    along: Varying
    around: tuple[tuple[Varying, int], ...] = ()

    def of_block(self, block: Block) -> tuple[int, int]:
        """Return about how many operations are the same for all iterations, and how many are an iteration's own."""
        return _sum(self.of_statement(statement) for statement in block)

    def of_statement(self, statement: Statement) -> tuple[int, int]:
        match statement:
            case Assign(value=value):
                return self.of_expression(value)
            case Store(indices=indices, value=value):
                parts = [*map(self.of_expression, (*indices, value))]
                return _sum((*parts, (0, self.times((*indices, value), 1))))
            case Check(condition=condition):
                return _sum((self.of_expression(condition), self.of(condition, 1)))
            case If(condition=condition, then=then, otherwise=otherwise):
                return _sum((self.of_expression(condition), self.of_block(then), self.of_block(otherwise)))
            case For(body=body):
                count = trip_count(statement)
                turns = _INSIDE if count is None else count
                return _Work(self.along, (*self.around, (varying(statement), turns))).of_block(body)
            case While(prelude=prelude, body=body):
                return self.of_block((*prelude, *body))
            case _:
                return 0, 0

    def of_expression(self, expression: Expression) -> tuple[int, int]:
        parts = [self.of_expression(cast("Expression", each)) for each in children(expression)]
        return _sum((*parts, self.of(expression, operation_cost(expression))))

    def of(self, expression: Expression, cost: int) -> tuple[int, int]:
        """Return what is shared and what is not of one operation, of which the expression is the value."""
        cost = self.times((expression,), cost)
        return (0, cost) if self.along.reads(expression) else (cost, 0)

    def times(self, expressions: Sequence[Expression], cost: int) -> int:
        return cost * prod(turns for loop, turns in self.around if loop.reads(*expressions))


def operation_cost(expression: Expression) -> int:
    """Return what one operation costs, in additions."""
    match expression:
        case Constant() | Read() | Size():
            return 0
        case Apply(operator=operator, operands=operands) if operator.name in _DIVISIONS:
            return 1 if isinstance(operands[1], Constant) else _INSIDE
        case _:
            return _INSIDE if is_long_computation(expression) else 1


def _sum(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    pairs = [*parts]
    return sum(shared for shared, _ in pairs), sum(own for _, own in pairs)
