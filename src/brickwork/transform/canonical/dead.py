"""Dead-code elimination: takes out what no result depends on.

A statement stays if the variable it assigns may be read later, or the tensor it stores into loaded; a tensor counts as
one variable.

Of a derivative, loops and branches stay if something in them does besides leaving them. A `while` is taken to end.
Checks of divisors stay beside what divides; where nothing else is left in a loop, the call that a derivative is for
has passed them. Reverse mode writes generously and relies on it.

Of what a user wrote only assignments go, and a `for` of nothing else: a `while` may have no end, and what may fail has
to. A branch that one iteration at most takes leaves nothing for itself:

    for j ...:                                      for j ...:
        if j == last: t += p; p = 0       ->            if j == last: t += p
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import TypeAlias, TypeVar

from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Launch,
    Load,
    Local,
    Node,
    Read,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import (
    assigned_symbols,
    operands_of,
    read_counts,
    read_symbols,
    statements,
    substitute,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.preconditions import NOTHING, Preconditions, divisor_of

_DIVISIONS = frozenset({"floordiv", "mod"})


@dataclass(frozen=True, slots=True)
class _Division:
    """Stands for the integer divisions by an expression that follow, which a check before them is for.

    None are divisions that no check is seen to be for: then all checks before them stay.
    """

    divisor: Expression | None


@dataclass(frozen=True, slots=True)
class _Declaration:
    """Stands for the declaration of a local whose elements are all stored into before any is loaded."""

    tensor: Tensor


_Name: TypeAlias = Symbol | Tensor | _Division | _Declaration
Live: TypeAlias = frozenset[_Name]
_Kept = TypeVar("_Kept")


def without_dead(block: Block, results: Collection[Tensor], before: Preconditions = NOTHING) -> Block:
    """Return what the elements of `results` after the block depend on; `before` was checked before the block."""
    checks = (node.condition for node in statements(block) if isinstance(node, Check))
    checked = frozenset(divisor for each in checks if (divisor := divisor_of(each)) is not None)
    cleaner = _Cleaner(checked, before.nonzero, {}, assignments=False)
    return cleaner.block(block, frozenset[_Name](results), None, ())[0]


def without_dead_assignments(block: Block) -> Block:
    """Return the block without assignments whose values are not read; elements may be out of range, and are read."""
    return _Cleaner(frozenset(), frozenset(), {}, assignments=True).block(block, frozenset(), None, ())[0]


def without_unused(host: Block) -> Block:
    """Return the statements of a host part without tensors that nothing later names, and launches of nothing."""
    needed: set[Tensor] = set()
    kept: list[Statement] = []
    for statement in reversed(host):
        match statement:
            case Allocate(tensor=tensor, like=like):
                if tensor not in needed:
                    continue
                needed |= {like} if like is not None else set()
            case Rebind(targets=targets, sources=sources):
                if not needed & {*targets}:
                    continue
                needed |= {*sources}
            case Launch(kernel=kernel):
                if not kernel.body:
                    continue
                needed |= {*kernel.tensors}
            case Return(tensors=tensors):
                needed |= {*tensors}
            case _:
                pass
        needed |= {node.tensor for node in walk(statement) if isinstance(node, Size)}
        kept.append(statement)
    return tuple(reversed(kept))


@dataclass(frozen=True, slots=True)
class _Jumps:
    """What is live where a `break` and where a `continue` lead to."""

    left: Live
    again: Live


@legality
def _leaves_nothing(block: Block, after: Live) -> bool:
    """Whether a block leaves nothing that is live after it, but may have checks in it."""
    found = effects(block)
    return not found.jumps and after.isdisjoint(found.changes | found.assigns)


@legality
def filled_local(loop: Statement) -> Tensor | None:
    """Return the local that a nest stores each element of, if it does nothing else and loads none of them."""
    bounds: list[tuple[Symbol, Expression]] = []
    inner = loop
    while isinstance(inner, For) and len(inner.body) == 1 and build.is_constant(inner.start, 0):
        bounds.append((inner.index, inner.stop))
        (inner,) = inner.body
    match inner:
        case Store(tensor=tensor, indices=indices, value=value, combine=None) if tensor.is_local:
            whole = [(index, build.integer(size)) for (index, _), size in zip(bounds, tensor.sizes, strict=False)]
            along = tuple(build.read(index) for index, _ in bounds)
            loads = tensor in effects(value).loads
            return tensor if whole == bounds and along == indices and not loads else None
        case _:
            return None


def _taken_once(loop: For) -> Iterator[tuple[If, frozenset[Symbol]]]:
    """Yield the branches that one iteration of a loop at most takes, and the variables that they alone read."""
    reads: Counter[Symbol] | None = None
    for branch, condition in _asked(loop.body, {}):
        if any(_holds_once(part, loop) for part in operands_of(condition, "logical_and")):
            reads = read_counts(loop) if reads is None else reads
            own = read_counts(branch.then)
            yield branch, frozenset(name for name, count in own.items() if count == reads[name])


def _asked(block: Block, values: Mapping[Symbol, Expression]) -> Iterator[tuple[If, Expression]]:
    """Yield the branches of a block, but for those in loops, and what they ask, in terms of what is assigned before."""
    for statement in block:
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                yield statement, substitute(condition, values)
                yield from _asked(then, values)
                yield from _asked(otherwise, values)
            case _:
                pass
        changed = assigned_symbols(statement)
        known = {name: value for name, value in values.items() if not changed & {name, *read_symbols(value)}}
        if isinstance(statement, Assign) and statement.symbol not in read_symbols(statement.value):
            known[statement.symbol] = substitute(statement.value, values)
        values = known


@legality
def _holds_once(condition: Expression, loop: For) -> bool:
    """Whether a condition is that what goes along with a loop's index is something that stays as it is in the loop."""
    match condition:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "eq":
            found, fixed = effects(loop.body), {loop.index} | assigned_symbols(loop.body)
            stored = {tensor.type.dtype for tensor in found.changes}
            return any(
                _goes_along(one, loop.index)
                and not read_symbols(one) & (fixed - {loop.index})
                and not read_symbols(other) & fixed
                and not any(isinstance(node, Load) and node.tensor.type.dtype in stored for node in walk((one, other)))
                for one, other in ((left, right), (right, left))
            )
        case _:
            return False


@legality
def _goes_along(value: Expression, index: Symbol) -> bool:
    """Whether a value is another one for each value of an index: that, and something else added or taken away."""
    match value:
        case Read(symbol=symbol):
            return symbol == index
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            moving = [each for each in (left, right) if index in read_symbols(each)]
            return len(moving) == 1 and _goes_along(moving[0], index)
        case _:
            return False


_Place: TypeAlias = tuple[int, ...]
"""Where a block stands: the place of each statement on the way, of branches which one, of loops whether jumps stay."""


@dataclass(frozen=True, slots=True)
class _Cleaner:
    """Takes out the dead statements of a block in which these divisors are checked; those in `nonzero` were before it.

    A loop is gone through until nothing more is live around it. What was live the last time is live the next time, too,
    since that grows with what is live after the loop: so loops in loops are not begun anew. `around` remembers it.
    """

    checked: frozenset[Expression]
    nonzero: frozenset[Expression]
    around: dict[_Place, Live]
    assignments: bool
    """Whether nothing but assignments goes."""
    once: dict[int, frozenset[Symbol]] = field(default_factory=dict[int, frozenset[Symbol]])
    """What a branch, known by its `id`, leaves for nothing but itself, which is taken no more."""

    def reads(self, *roots: Node) -> Live:
        """Return what expressions depend on."""
        found: set[_Name] = set()
        for node in walk(roots):
            match node:
                case Read(symbol=symbol):
                    found.add(symbol)
                case Load(tensor=tensor):
                    found.add(tensor)
                case Apply(operator=operator, operands=(_, divisor)) if operator.name in _DIVISIONS:
                    known = isinstance(divisor, Constant) or divisor in self.nonzero
                    if divisor.dtype.is_integer and not known:
                        found.add(_Division(divisor if divisor in self.checked else None))
                case _:
                    pass
        return frozenset(found)

    def block(self, block: Block, after: Live, jumps: _Jumps | None, at: _Place) -> tuple[Block, Live]:
        """Return what stays of a block, and what is live before it; without `jumps`, no jump stays."""
        kept: list[Statement] = []
        live = after
        for place in range(len(block) - 1, -1, -1):
            stays, live = self.statement(block[place], live, jumps, (*at, place))
            if stays is not None:
                kept.append(stays)
        kept.reverse()
        same = len(kept) == len(block) and all(new is old for new, old in zip(kept, block, strict=True))
        return block if same else tuple(kept), live

    def statement(self, node: Statement, live: Live, jumps: _Jumps | None, at: _Place) -> tuple[Statement | None, Live]:
        """Return a statement if it stays, and what is live before it."""
        match node:
            case Assign(symbol=symbol, value=value):
                return (node, (live - {symbol}) | self.reads(value)) if self.is_needed(node, live) else (None, live)
            case Store() | Local() | Check() | Rebind() if self.assignments:
                return node, live | self.reads(node)
            case Store(tensor=tensor, indices=indices, value=value):
                return (node, live | self.reads(*indices, value)) if tensor in live else (None, live)
            case Local(tensor=tensor):
                names = {tensor, _Declaration(tensor)}
                return (node, live - names) if live & names else (None, live)
            case Check():
                return self.check(node, live)
            case Rebind(targets=targets, sources=sources):
                if not live & {*targets}:
                    return None, live
                return node, (live - {*targets}) | {*sources}
            case If():
                return self.branch(node, live, jumps, at)
            case For():
                return self.loop(node, live, at)
            case While():
                return self.turns(node, live, at)
            case Break():
                return (None, live) if jumps is None else (node, jumps.left)
            case Continue():
                return (None, live) if jumps is None else (node, jumps.again)
            case Allocate() | Launch() | Return():
                raise TypeError(type(node).__name__)

    @legality
    def is_needed(self, node: Assign, live: Live) -> bool:
        """Whether an assignment does something besides giving a variable a value that nothing reads."""
        return node.symbol in live or bool(self.assignments and effects(node.value).loads)

    def check(self, node: Check, live: Live) -> tuple[Statement | None, Live]:
        """Return a check if a division follows that it is for."""
        divisor = divisor_of(node.condition)
        own = _Division(divisor)
        if divisor in self.nonzero or (own not in live and _Division(None) not in live):
            return None, live
        return node, (live - {own}) | self.reads(node.condition, *node.values)

    def branch(self, node: If, live: Live, jumps: _Jumps | None, at: _Place) -> tuple[Statement | None, Live]:
        """Return a branch if something in it stays."""
        then, first = self.block(node.then, live - self.once.get(id(node), frozenset()), jumps, (*at, 0))
        otherwise, second = self.block(node.otherwise, live, jumps, (*at, 1))
        if not then and not otherwise and not self.assignments:
            return None, live
        if self.checked and _leaves_nothing((*then, *otherwise), live):
            return None, live
        if then is not node.then or otherwise is not node.otherwise:
            node = replace(node, then=then, otherwise=otherwise)
        return node, first | second | self.reads(node.condition)

    def loop(self, node: For, after: Live, at: _Place) -> tuple[Statement | None, Live]:
        """Return a loop if it does something besides finding out when it is left."""

        def turn(around: Live, jumps: _Jumps | None, at: _Place) -> tuple[Block, Live]:
            return self.block(node.body, around, jumps, at)

        self.once.update((id(branch), own - after) for branch, own in _taken_once(node))
        body, before = self.repeated(turn, after, at, jumps=False)
        if not body or (self.checked and _leaves_nothing(body, after)):
            return None, after
        if effects(node.body).jumps:
            body, before = self.repeated(turn, after, at, jumps=True)
        before = (before - {node.index}) | self.reads(node.start, node.stop)
        filled = filled_local(node)
        stays = node if body is node.body else replace(node, body=body)
        return stays, before if filled is None else before - {filled} | {_Declaration(filled)}

    def turns(self, node: While, after: Live, at: _Place) -> tuple[Statement | None, Live]:
        """Return a `while` if it does something besides finding out when it ends."""

        def turn(around: Live, jumps: _Jumps | None, at: _Place) -> tuple[tuple[Block, Block], Live]:
            body, head = self.block(node.body, around, jumps, (*at, 0))
            tested = after | head if jumps is None else after | head | self.reads(node.condition)
            prelude, before = self.block(node.prelude, tested, jumps, (*at, 1))
            return (prelude, body), before

        if not self.assignments and not any(self.repeated(turn, after, at, jumps=False)[0]):
            return None, after
        (prelude, body), before = self.repeated(turn, after, at, jumps=True)
        if prelude is node.prelude and body is node.body:
            return node, before
        return replace(node, prelude=prelude, body=body), before

    def repeated(
        self, turn: Callable[[Live, _Jumps | None, _Place], tuple[_Kept, Live]], after: Live, at: _Place, *, jumps: bool
    ) -> tuple[_Kept, Live]:
        """Return what stays of an iteration, which may come again, and what is live before the loop."""
        at = (*at, int(jumps))
        around = after | self.around.get(at, frozenset())
        while True:
            kept, before = turn(around, _Jumps(after, around) if jumps else None, at)
            if before <= around:
                self.around[at] = around
                return kept, around
            around = around | before
