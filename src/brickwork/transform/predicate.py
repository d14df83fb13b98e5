"""Predication: the host launches nests under a condition that only the device knows, and the kernels ask it.

    for t in range(n):                            goes = True
        if s < eps:                               for t in range(n):
            break                          ->         if goes: if s < eps: goes = False
        for i in parallel:                            for i in parallel:
            x[i] /= s                                     if goes: x[i] /= s

A loop with known bounds that elements end early is launched for all of its iterations, those after the end do nothing.
A `while` that elements end has no bound: one thread runs it. Variables that only such a branch uses, and that the host
can compute, are assigned in any case. Invariant: what a nest or a statement does, it does where the source does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    TRUE,
    Assign,
    Block,
    Break,
    Continue,
    Expression,
    For,
    If,
    Local,
    Role,
    Statement,
    Symbol,
    While,
)
from brickwork.ir.walk import statements
from brickwork.legality import hazard
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import Partition, launched, partition

Symbols = frozenset[Symbol]
FALSE = build.constant(False, BOOL)


def predicate(block: Block, numbers: Iterator[int], device: Iterable[Symbol] = ()) -> Block:
    """Return the body of a scheduled kernel with its nests where the host reaches them.

    `numbers` are for new variables; only the device knows `device`.
    """
    if not any(isinstance(node, If) for node in statements(block)):
        return block
    found = frozenset(device)
    while True:
        maker = _Maker(Partition(found), numbers)
        result = tuple(maker.block(block, None, NONE))
        if maker.device <= found:
            break
        found |= maker.device
    reached = maker.nests <= launched(result, partition(result, device))
    return result if maker.nests and reached else block


@dataclass(frozen=True, slots=True)
class _Scope:
    """A branch that runs where `holds` does; the `outer` variables are seen outside of it, too."""

    holds: Symbol
    outer: Symbols


@dataclass(slots=True)
class _Maker:
    """Makes one attempt, with `places` for the variables that are known to be the device's.

    `device` collects those of the source that turn out to be, and `nests` the indices of nests that are put under a
    condition.
    """

    places: Partition
    numbers: Iterator[int]
    device: set[Symbol] = field(default_factory=set[Symbol])
    nests: set[Symbol] = field(default_factory=set[Symbol])
    made: set[Symbol] = field(default_factory=set[Symbol])

    def block(self, block: Block, scope: _Scope | None, after: Symbols) -> Iterator[Statement]:
        """Yield the statements of a block that stands in a scope; variables `after` are read later."""
        waiting: list[Statement] = []
        for place, statement in enumerate(block):
            if scope is not None and self.waits(statement, scope):
                self.note(statement)
                waiting.append(statement)
                continue
            yield from _under(scope, waiting)
            waiting.clear()
            yield from self.statement(statement, scope, live_before(block[place + 1 :], after))
        yield from _under(scope, waiting)

    def waits(self, statement: Statement, scope: _Scope) -> bool:
        """Whether a statement is run by one thread, where the scope's condition holds."""
        match statement:
            case Local():
                return False
            case Assign(symbol=symbol, value=value):
                return symbol in scope.outer | self.places.device or not self.places.is_known(value)
            case _:
                return not self.reaches(statement, inside=True)

    def statement(self, statement: Statement, scope: _Scope | None, after: Symbols) -> Iterator[Statement]:
        """Yield what becomes of a statement that does not wait."""
        match statement:
            case For() if self.places.is_nest(statement):
                yield from self.nest(statement, scope)
            case If() if self.reaches(statement, inside=scope is not None):
                if self.places.is_known(statement.condition):
                    then = tuple(self.block(statement.then, scope, after))
                    yield replace(statement, then=then, otherwise=tuple(self.block(statement.otherwise, scope, after)))
                else:
                    yield from self.branches(statement, scope, after)
            case For() if self.reaches(statement, inside=scope is not None):
                yield from self.loop(statement, scope, after | live_before((statement,), after))
            case While(body=body) if self.reaches(statement, inside=scope is not None):
                again = after | live_before((statement,), after)
                yield replace(statement, body=tuple(self.block(body, scope, again)))
            case Assign(symbol=symbol, value=value):
                if not self.places.is_known(value):
                    self.device.add(symbol)
                yield statement
            case _:
                self.note(statement)
                yield statement

    def reaches(self, statement: Statement, *, inside: bool, jumping: bool = False) -> bool:
        """Whether the host can come to a nest in a statement, `inside` a scope or not.

        `jumping`: the jumps of the loop around it will be assignments.
        """
        match statement:
            case For() if self.places.is_nest(statement):
                return True
            case For(start=start, stop=stop, body=body):
                known = statement.role is Role.SEQUENTIAL and self.places.is_known(start, stop)
                ends = _jumps_by_elements(body, self.places)
                inner = (self.reaches(item, inside=inside or ends, jumping=ends) for item in body)
                return known and not effects(body).rebinds and any(inner)
            case While(prelude=prelude, condition=condition, body=body):
                ahead = not inside and self.places.is_known(condition) and all(map(self.places.is_host, prelude))
                plain = ahead and not _jumps_by_elements(body, self.places)
                return plain and any(self.reaches(item, inside=False) for item in body)
            case If(condition=condition, then=then, otherwise=otherwise):
                known = self.places.is_known(condition)
                barred = not known and (effects(statement).rebinds or (effects(statement).leaves and not jumping))
                parts = (*then, *otherwise)
                return not barred and any(
                    self.reaches(item, inside=inside or not known, jumping=jumping) for item in parts
                )
            case _:
                return False

    # ------------------------------------------------------------ what is put under a condition

    def nest(self, loop: For, scope: _Scope | None) -> Iterator[Statement]:
        """Yield a nest, each iteration of which asks whether the scope's condition holds."""
        self.device |= {item.symbol for item in loop.reductions}
        if scope is None:
            yield loop
            return
        self.nests.add(loop.index)
        levels = self.places.nest(loop)
        result = replace(levels[-1], body=(If(condition=build.read(scope.holds), then=levels[-1].body),))
        for level in reversed(levels[:-1]):
            result = replace(level, body=(result,))
        yield result

    def branches(self, choice: If, scope: _Scope | None, after: Symbols) -> Iterator[Statement]:
        """Yield the branches of an `if` that elements decide, one after the other, each under its condition."""
        parts = [(choice.then, choice.condition)]
        first = self.symbol("holds")
        if choice.otherwise:
            parts.append((choice.otherwise, build.apply("logical_not", build.read(first))))
        scopes: list[_Scope] = []
        for number, (_, condition) in enumerate(parts):
            holds = first if number == 0 else self.symbol("fails")
            scopes.append(_Scope(holds, after | live_before((choice,), NONE)))
            if scope is not None:
                yield Assign(symbol=holds, value=FALSE)
            yield from _under(scope, [Assign(symbol=holds, value=condition, loc=choice.loc)])
        for (part, _), inner in zip(parts, scopes, strict=True):
            yield from self.block(part, inner, after)

    def loop(self, loop: For, scope: _Scope | None, after: Symbols) -> Iterator[Statement]:
        """Yield a loop that the host runs: to the end, where elements end it."""
        if not _jumps_by_elements(loop.body, self.places):
            yield replace(loop, body=tuple(self.block(loop.body, scope, after)))
            return
        goes = self.symbol("goes")
        ends, skips = effects(loop.body).breaks, effects(loop.body).continues
        runs = self.symbol("runs") if skips else goes
        segments = _segments(loop.body, goes if ends else None, runs)
        body: list[Statement] = []
        if skips:
            body.append(Assign(symbol=runs, value=build.read(goes) if ends else TRUE))
        whole = tuple(item for segment in segments for item in segment)
        inner = _Scope(runs, after | live_before(whole, NONE) | {goes, runs})
        for segment in segments:
            body += self.block(segment, inner, after | live_before(whole, NONE))
        if ends:
            yield Assign(symbol=goes, value=TRUE if scope is None else build.read(scope.holds))
        elif scope is not None:
            body[0] = Assign(symbol=runs, value=build.read(scope.holds))
        yield replace(loop, body=tuple(body))

    def note(self, statement: Statement) -> None:
        """Note that the device runs a statement."""
        assigned = {node.symbol for node in statements(statement) if isinstance(node, Assign)}
        self.device |= assigned - self.made

    def symbol(self, name: str) -> Symbol:
        """Return a new variable of the device's."""
        made = Symbol(name, next(self.numbers), BOOL)
        self.made.add(made)
        self.places = Partition(self.places.device | {made})
        return made


def _under(scope: _Scope | None, block: Sequence[Statement]) -> Block:
    if scope is None or not block:
        return tuple(block)
    return (If(condition=build.read(scope.holds), then=tuple(block)),)


@hazard
def _jumps_by_elements(block: Block, places: Partition) -> bool:
    """Whether elements decide if a statement in the body of a loop leaves it, or goes on with the next iteration."""
    for statement in block:
        if isinstance(statement, If) and effects(statement).leaves:
            if not places.is_known(statement.condition):
                return True
            if _jumps_by_elements((*statement.then, *statement.otherwise), places):
                return True
    return False


def _segments(block: Block, goes: Symbol | None, runs: Symbol) -> list[Block]:
    """Return a body in parts, each of which runs if `runs` holds after the ones before; its jumps set that."""
    segments: list[list[Statement]] = [[]]
    for statement in block:
        match statement:
            case Break() | Continue():
                if isinstance(statement, Break) and goes is not None and goes != runs:
                    segments[-1].append(Assign(symbol=goes, value=FALSE, loc=statement.loc))
                segments[-1].append(Assign(symbol=runs, value=FALSE, loc=statement.loc))
                break
            case If(then=then, otherwise=otherwise) if effects(statement).leaves:
                parts = (_joined(_segments(part, goes, runs), runs) for part in (then, otherwise))
                first, second = parts
                segments[-1].append(replace(statement, then=first, otherwise=second))
                segments.append([])
            case _:
                segments[-1].append(statement)
    return [tuple(segment) for segment in segments if segment]


def _joined(segments: Sequence[Block], runs: Symbol) -> Block:
    """Return parts as one block: those after the first where the variable still holds."""
    condition: Expression = build.read(runs)
    return (*segments[0], *(If(condition=condition, then=segment) for segment in segments[1:])) if segments else ()
