"""Whether the threads of a block can run a body in lockstep: no thread may write what another one has still to read.

A barrier follows each loop that is shared out among the threads, and each store outside of such loops, which one thread
does; of a local each thread has a copy. A shared loop with nothing in it is a barrier and nothing else. Invariant:
between an element's read by all threads and a write of its tensor there is a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Block,
    Break,
    Continue,
    For,
    If,
    Local,
    Node,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import rewrite_loops, rewrite_statements, statements, unused_number
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

Tensors = frozenset[Tensor]
NONE: Tensors = frozenset()


@dataclass(frozen=True, slots=True)
class _Way:
    """What statements do with the tensors that were read since the last barrier before them."""

    written: Tensors
    """None of these may have been read."""
    passes: bool
    """Whether they may be gone through without a barrier: what was read before is still read since the last one."""
    read: Tensors
    """What was read in them since the last one."""


@legality
def runs_in_lockstep(block: Block, shared: frozenset[Symbol] = frozenset()) -> bool:
    """Return whether a block can be run in lockstep, with THREAD loops and those of these indices shared out."""
    return _way(block, shared) is not None


@legality
def _way(block: Block, shared: frozenset[Symbol]) -> _Way | None:
    """Return what a block does; None if it writes what was read since the last barrier."""
    way = _Way(NONE, True, NONE)
    for statement in block:
        step = _step(statement, shared)
        if step is None or step.written & way.read:
            return None
        written = way.written | step.written if way.passes else way.written
        way = _Way(written, way.passes and step.passes, way.read | step.read if step.passes else step.read)
    return way


@legality
def _step(statement: Statement, shared: frozenset[Symbol]) -> _Way | None:
    match statement:
        case For() if statement.index in shared or statement.role in {Role.THREAD, Role.WARP}:
            return None if _stores_into_copies(statement) else _Way(_stored(statement.body), False, NONE)
        case For(body=body):
            return _repeated(body, shared)
        case While(prelude=prelude, condition=condition, body=body):
            return _repeated((*prelude, If(condition=condition, then=body)), shared)
        case If(condition=condition, then=then, otherwise=otherwise):
            one, other, read = _way(then, shared), _way(otherwise, shared), _loaded((condition,))
            if one is None or other is None or (one.written | other.written) & read:
                return None
            passes, inside = one.passes or other.passes, one.read | other.read
            return _Way(one.written | other.written, passes, inside | read if passes else inside)
        case Store(tensor=tensor) if not tensor.is_local:
            # What a store itself reads is of use to the one thread that does it.
            return _Way(frozenset((tensor,)), False, NONE)
        case _:
            return _Way(NONE, True, _loaded((statement,)))


@legality
def _repeated(block: Block, shared: frozenset[Symbol]) -> _Way | None:
    """Return what a block does that runs any number of times."""
    way = _way(block, shared)
    return None if way is None or way.written & way.read else replace(way, passes=True)


def may_run_in_lockstep(block: Block, shared: frozenset[Symbol]) -> bool:
    """Return whether a block can be run in lockstep, with loops of these indices shared out, if it has barriers."""
    roles = rewrite_loops(block, shared, lambda loop: (replace(loop, role=Role.THREAD),))
    return runs_in_lockstep(with_barriers(roles, count(unused_number(block))))


def with_barriers_in_blocks(block: Block, numbers: Iterator[int]) -> Block:
    """Return a block with the barriers that its BLOCK loops need to be run in lockstep."""

    def change(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.role is not Role.BLOCK:
            return (statement,)
        roles = {node.role for node in statements(statement.body) if isinstance(node, For)}
        if not roles <= {Role.SEQUENTIAL, Role.THREAD, Role.VECTOR} or runs_in_lockstep(statement.body):
            return (statement,)
        return (replace(statement, body=with_barriers(statement.body, numbers)),)

    return rewrite_statements(block, change)


def with_barriers(block: Block, numbers: Iterator[int]) -> Block:
    """Return a block with the barriers that it needs to be run in lockstep; `numbers` are for their indices."""
    return _Placing(numbers).block(block, NONE)[0]


@dataclass(slots=True)
class _Placing:
    """Places barriers before writes of what all threads have read since the last one.

    `jumped` is what was read since then where an iteration of the loop around has ended early.
    """

    numbers: Iterator[int]
    jumped: Tensors = NONE

    def block(self, block: Block, read: Tensors) -> tuple[Block, Tensors]:
        """Return a block with its barriers, and the tensors read since the last one, given those read before."""
        result: list[Statement] = []
        for statement in block:
            placed, read = self.statement(statement, read)
            result += placed
        return tuple(result), read

    def statement(self, statement: Statement, read: Tensors) -> tuple[Block, Tensors]:
        """Return the same for a statement."""
        match statement:
            case For(role=Role.THREAD | Role.WARP):
                return self.written(statement, read)
            case Store(tensor=tensor) if not tensor.is_local:
                return self.written(statement, read)
            case For(body=body):
                _, body, read = self.repeated((), (), body, read)
                return (replace(statement, body=body),), read
            case While(prelude=prelude, condition=condition, body=body):
                prelude, body, read = self.repeated(prelude, (condition,), body, read)
                return (replace(statement, prelude=prelude, body=body),), read
            case If(condition=condition, then=then, otherwise=otherwise):
                read |= _loaded((condition,))
                (then, one), (otherwise, other) = self.block(then, read), self.block(otherwise, read)
                return (replace(statement, then=then, otherwise=otherwise),), one | other
            case Break() | Continue():
                self.jumped |= read
                return (statement,), read
            case _:
                return (statement,), read | _loaded((statement,))

    def written(self, statement: For | Store, read: Tensors) -> tuple[Block, Tensors]:
        """Return a statement that a barrier follows, and the one before it that it needs."""
        if not read & _stored((statement,)):
            return (statement,), NONE
        index = Symbol("barrier", next(self.numbers), INT64)
        ends = build.integer(0), build.integer(1)
        barrier = For(index=index, start=ends[0], stop=ends[1], body=(), role=Role.THREAD, loc=statement.loc)
        return (barrier, statement), NONE

    def repeated(
        self, prelude: Block, condition: tuple[Node, ...], body: Block, read: Tensors
    ) -> tuple[Block, Block, Tensors]:
        """Return the parts of a loop with their barriers, and what is read since the last one after it."""
        around, self.jumped = self.jumped, NONE
        first, second = prelude, body
        for _ in range(2):  # The second time, what an iteration leaves is known.
            before = read
            first, asked = self.block(prelude, read)
            second, last = self.block(body, asked | _loaded(condition))
            read |= asked | last | self.jumped | _loaded(condition)
            if read == before:
                break
        self.jumped = around
        return first, second, read


@hazard
def _stores_into_copies(loop: For) -> bool:
    """Return whether a loop stores into a local from outside, of which each thread of the block has a copy."""
    own = {node.tensor for node in statements(loop.body) if isinstance(node, Local)}
    return any(
        isinstance(node, Store) and node.tensor.is_local and node.tensor not in own for node in statements(loop.body)
    )


def _loaded(nodes: Iterable[Node]) -> Tensors:
    return frozenset(tensor for tensor in effects(nodes).loads if not tensor.is_local)


def _stored(nodes: Iterable[Node]) -> Tensors:
    return effects(nodes).stores
