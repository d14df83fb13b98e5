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

from dataclasses import field, replace
from typing import NamedTuple

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
from brickwork.ir.walk import NodeType, read_symbols, rewrite, statements, walk, with_blocks
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.guard import conjunction
from brickwork.transform.schedule.planner import FEW

LEAF = 2**40
"""What is added up or multiplied is tested to lie within plus or minus this, so that no sum of it wraps."""
MOST = 2**62
WHOLE = 2**63
"""The limit of what is not tested to be small."""


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
    pass_ = _Pass(loop)
    body = pass_.block(loop.body, definitions_in(loop.body), frozenset())
    tests = tuple(pass_.tests)
    if not tests or len(tests) > TEST_LIMIT or (grid and any(isinstance(node, Check) for node in statements(body))):
        return loop
    return If(condition=conjunction(tests), then=(replace(loop, body=body),), otherwise=(loop,), loc=loop.loc)


class Range(NamedTuple):
    """The least and the greatest value of an index, computed before the loop, and what neither exceeds if tested."""

    low: Expression
    high: Expression
    limit: int


Places = frozenset[tuple[Expression, Expression]]
"""Indices and the sizes that they are below, and not negative; in terms of what an iteration does not change."""


@dataclass(slots=True)
class _Pass:
    """A loop whose checks are taken out. With `tests`, evaluated before it, they hold in all of its iterations."""

    loop: For
    tests: dict[Expression, None] = field(default_factory=dict[Expression, None])

    # ------------------------------------------------------------ statements

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
        found = self.range(index)
        if found is None or self.loop.index in read_symbols(size) or not _is_safe(size):
            self.tests = before
            return False
        self.test("ge", found.low, build.integer(0))
        self.test("lt", found.high, size)
        return True

    def test(self, name: str, left: Expression, right: Expression) -> None:
        """Note a comparison, unless it is sure to hold."""
        condition = build.apply(name, left, right)
        if not (isinstance(condition, Constant) and condition.value):
            self.tests[condition] = None

    # ------------------------------------------------------------ what an index runs through

    @legality
    def range(self, index: Expression) -> Range | None:
        """Return the range of an int64 expression over all iterations."""
        if self.loop.index not in read_symbols(index):
            return Range(index, index, WHOLE) if _is_safe(index) else None
        match index:
            case Read():
                return Range(self.loop.start, build.sub(self.loop.stop, build.integer(1)), WHOLE)
            case Apply(operator=operator, operands=operands):
                return self.apply(operator.name, operands)
            case _:
                return None

    def part(self, index: Expression) -> Range | None:
        """Return the range of what an operator is applied to, which is tested to be small."""
        found = self.range(index)
        if found is None or found.limit < WHOLE:
            return found
        for value in dict.fromkeys((found.low, found.high)):
            self.test("ge", value, build.integer(-LEAF))
            self.test("le", value, build.integer(LEAF))
        return found._replace(limit=LEAF)

    @legality
    def apply(self, name: str, operands: tuple[Expression, ...]) -> Range | None:
        """Return the range of an operator's results."""
        match name, operands:
            case "mul", (Constant(value=factor), other) | (other, Constant(value=factor)):
                return _scaled(self.part(other), int(factor))
            case "neg", (operand,):
                return _scaled(self.part(operand), -1)
            case "mod", (_, divisor):
                rest = self.part(divisor)
                if rest is None or rest.low != rest.high:
                    return None
                self.test("gt", rest.low, build.integer(0))
                return Range(build.integer(0), build.sub(rest.low, build.integer(1)), rest.limit)
            case (("add" | "sub"), (left, right)):
                first, second = self.part(left), self.part(right)
                second = _scaled(second, -1) if name == "sub" else second
                if first is None or second is None or first.limit + second.limit > MOST:
                    return None
                return Range(
                    build.add(first.low, second.low), build.add(first.high, second.high), first.limit + second.limit
                )
            case _:
                return None


@legality
def _scaled(found: Range | None, factor: int) -> Range | None:
    if found is None or abs(factor) * found.limit > MOST:
        return None
    ends = (found.low, found.high) if factor == abs(factor) else (found.high, found.low)
    low, high = (build.mul(build.integer(factor), end) for end in ends)
    return Range(low, high, abs(factor) * found.limit)


@legality
def _is_safe(value: Expression) -> bool:
    """Whether an expression can be computed although the loop may not run: nothing in it may fail."""
    return not any(isinstance(node, Load) or may_divide_by_zero(node) for node in walk(value))


@hazard
def may_divide_by_zero(node: Node) -> bool:
    """Whether a node is a quotient or a remainder of integers by what may be zero."""
    match node:
        case Apply(operator=operator, operands=(_, divisor)) if operator.name in {"floordiv", "mod"}:
            return not (isinstance(divisor, Constant) and divisor.value)
        case _:
            return False


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
