"""Check hoisting: tests the checks of a loop once, before it, where the range of an index can be computed there.

    for i in range(a, b):          ->   if 0 <= a + w and b - 1 + w < size: the loop without the check
        check(0 <= i + w < size)        else: the loop as it is

That is for loops in which no long loop stands: each is emitted twice. On a grid it is for those that check nothing
else, whose iterations then read at once. Indices are sums of the loop's index and of what the loop does not change,
times constants, and remainders; what makes up a sum is tested to be small.
Invariant: the test holds only if no check that it stands for could fail, whatever wraps; an index is not negative then.
What an index is worth is asked at the place of its check (`analysis/definitions.py`), so a test is made of the loop's
index and of what the loop does not change, and of nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.bounds import TEST_LIMIT
from brickwork.analysis.definitions import Definitions, definitions_in
from brickwork.analysis.symbolic import unwrapped
from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Block,
    Check,
    Constant,
    Expression,
    FailureKind,
    For,
    If,
    Load,
    Node,
    Read,
    Role,
    Statement,
    Store,
    While,
)
from brickwork.ir.walk import NodeType, read_symbols, rewrite, statements, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.borders import Borders, Line, is_safe
from brickwork.transform.guard import conjunction
from brickwork.transform.schedule.planner import FEW
from brickwork.transform.sums import Sum


def hoist_checks(block: Block, *, grid: bool = False) -> Block:
    """Return the block with the checks of its innermost loops tested before them."""
    return tuple(_hoisted(statement, grid=grid) for statement in block)


def _hoisted(statement: Statement, *, grid: bool) -> Statement:
    if isinstance(statement, For) and _is_innermost(statement):
        return _versions(statement, grid=grid)
    return with_blocks(statement, lambda block: hoist_checks(block, grid=grid))


def _is_innermost(loop: For) -> bool:
    if loop.role not in {Role.SEQUENTIAL, Role.VECTOR} or _is_short(loop):
        return False
    inner = [node for node in statements(loop.body) if isinstance(node, For | While)]
    return all(isinstance(node, For) and _is_short(node) for node in inner)


def _is_short(loop: For) -> bool:
    length = build.sub(loop.stop, loop.start)
    return isinstance(length, Constant) and length.value <= FEW


def _versions(loop: For, *, grid: bool) -> Statement:
    """Return the loop without the checks that are tested before it, or with them."""
    pass_ = _Pass(loop, {})
    body = pass_.block(loop.body, definitions_in(loop.body), frozenset())
    tests = tuple(pass_.tests)
    if not tests or len(tests) > TEST_LIMIT or (grid and any(isinstance(node, Check) for node in statements(body))):
        return loop
    return If(condition=conjunction(tests), then=(replace(loop, body=body),), otherwise=(loop,), loc=loop.loc)


Places = frozenset[tuple[Expression, Expression]]
"""Indices and the sizes that they are below, and not negative; in terms of what an iteration does not change."""


@dataclass(slots=True)
class _Pass(Borders):
    """A loop whose checks are taken out. With `tests`, evaluated before it, they hold in all of its iterations."""

    def block(self, block: Block, known: Definitions, inside: Places) -> Block:
        """Return a block without the checks that are tested before the loop."""
        result: list[Statement] = []
        places = set(inside)
        for statement in block:
            match statement:
                case Check() if (place := _place(statement, known)) is not None and self.tested(place):
                    places.add(place)
                    continue
                case If(then=then, otherwise=otherwise):
                    plain = _plain(statement.condition, known, places)
                    blocks = [self.block(part, known, frozenset(places)) for part in (then, otherwise)]
                    result.append(replace(statement, condition=plain, then=blocks[0], otherwise=blocks[1]))
                case For(body=body):
                    result.append(replace(statement, body=self.block(body, known.inside(statement), frozenset(places))))
                case _:
                    result.append(_plain(statement, known, places))
            known = known.after(statement)
        return tuple(result)

    def tested(self, place: tuple[Expression, Expression]) -> bool:
        """Note the test of an index against a size; False if there is none."""
        before = dict(self.tests)
        index, size = place
        ends = self.ends(index)
        if ends is None or self.loop.index in read_symbols(size) or not is_safe(size):
            self.tests = before
            return False
        self.test(build.apply("ge", ends[0], build.integer(0)))
        self.test(build.apply("lt", ends[1], size))
        return True

    @legality
    def ends(self, index: Expression) -> tuple[Expression, Expression] | None:
        """Return the least and the greatest value of an int64 expression over all iterations, computed before these."""
        first, last = self.loop.start, build.sub(self.loop.stop, build.integer(1))
        if self.loop.index not in read_symbols(index):
            return (index, index) if is_safe(index) else None
        if isinstance(index, Read):
            return first, last
        self.leaves.clear()
        if (line := self.line_of(index, {})) is None:
            return None
        for value in (*self.leaves, first, self.loop.stop):
            self.bound(value)
        low, high = (first, last) if line.factor > 0 else (last, first)
        ends = (line.low.plus(Sum(((low, 1),)), line.factor), line.high.plus(Sum(((high, 1),)), line.factor))
        return ends[0].expression(), ends[1].expression()

    @legality
    def leaf(self, value: Expression) -> Line | None:
        """Return what the loop does not change as a line of its own; remainders by that lie below it."""
        match value:
            case Apply(operator=operator, operands=(_, divisor)) if operator.name == "mod" and self.loop.index in (
                read_symbols(value)
            ):
                if (most := Borders.leaf(self, divisor)) is None:
                    return None
                self.test(build.apply("gt", divisor, build.integer(0)))
                return replace(most, low=Sum(), high=most.high.plus(Sum((), -1)))
            case _:
                return Borders.leaf(self, value)


# ---------------------------------------------------------------- checks


@legality
def _place(check: Check, known: Definitions) -> tuple[Expression, Expression] | None:
    """Return the index and the size of a check of an index; None where what one of them is worth is not known."""
    if check.failure.kind is not FailureKind.INDEX:
        return None
    match check.condition:
        # That is `least <= index and index < size`.
        case Apply(operands=(Apply(), Apply(operands=(index, size)))):
            value, limit = known.value(index), known.value(size)  # The length of a list may change.
            return None if value is None or limit is None else (value, limit)
        case _:
            return None


def _plain(node: NodeType, known: Definitions, places: set[tuple[Expression, Expression]]) -> NodeType:
    """Leave out the resolution of negative indices where the test shows that there are none."""

    def visit(item: Node) -> Node:
        if not isinstance(item, Load | Store):
            return item
        indices = (_index(item, axis, known, places) for axis in range(len(item.indices)))
        return replace(item, indices=tuple(indices))

    return rewrite(node, visit) if places else node


@legality
def _index(item: Load | Store, axis: int, known: Definitions, places: set[tuple[Expression, Expression]]) -> Expression:
    """Return an index of an access, as it was written where that is known to be in range."""
    index = unwrapped(item.indices[axis], item.tensor, axis) or item.indices[axis]
    return index if (known.value(index), build.size(item.tensor, axis)) in places else item.indices[axis]
