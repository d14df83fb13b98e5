"""What each machine computes that runs the program on its shard: replicated, sharded or partial values (`sharding.py`).

Outside of the loops that are shared out all machines do the same with the same values. In such a loop each does its
own iterations, which touch only their own places of the axes, so that values in there belong to the machine. Only sums
leave it: a variable or an element that iterations add to is *partial* from then on, and its true value is the sum over
the machines. Partial values may be added, negated and scaled, and make what they are assigned to partial; nothing else
may depend on them. What is partial is zero before anything is added.

Invariant: a program that passes computes, with any shares, the same as with one, but for the order of sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import assert_never

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.scalars import Symbols, live_after_loops, scalar_verdict
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Cast,
    Check,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Launch,
    Load,
    Local,
    Read,
    Rebind,
    Return,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import walk
from brickwork.records import dataclass


class DependentError(Exception):
    """Raised where a shard of the program needs values of another shard."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The axes that are shared out, at most one of each tensor, the loops over them, and what variables stand for."""

    axes: Mapping[Tensor, int]
    loops: frozenset[Symbol]
    meanings: Mapping[Symbol, Expression]


def forwarded(node: Expression, meanings: Mapping[Symbol, Expression]) -> Expression:
    """Return what an expression stands for, if it is the name of something else."""
    return meanings.get(node.symbol, node) if isinstance(node, Read) else node


def partial_tensors(block: Block, share: Shard) -> frozenset[Tensor]:
    """Return the tensors of a block that are partial; raise DependentError if the shares need one another."""
    machine = _Machine(share, live_after_loops(block))
    known = -1
    while known < len(machine.partial):
        known = len(machine.partial)
        machine.run(block, None)
    return frozenset(item for item in machine.partial if isinstance(item, Tensor))


class _Kind(Enum):
    """What a value is outside of the loops that are shared out."""

    SAME = "the same on all machines"
    ZERO = "zero, and so the sum of zeros"
    PARTIAL = "to be summed over the machines"


class _Machine:
    """One walk over the statements; `partial` grows until nothing new becomes partial."""

    def __init__(self, share: Shard, live: Mapping[Symbol, Symbols]) -> None:
        self.partial: set[Symbol | Tensor] = set()
        self._share = share
        self._live = live
        self._own: set[Tensor] = set()

    def run(self, block: Block, loop: For | None) -> None:
        """Follow a block, in the iterations of a loop that is shared out or, for None, on all machines alike."""
        for statement in block:
            self._statement(statement, loop)

    def _statement(self, statement: Statement, loop: For | None) -> None:
        match statement:
            case Assign():
                self._assign(statement, loop)
            case Store():
                self._store(statement, loop)
            case For():
                self._loop(statement, loop)
            case If(condition=condition, then=then, otherwise=otherwise):
                self._plain((condition,), loop)
                self.run(then, loop)
                self.run(otherwise, loop)
            case While(prelude=prelude, condition=condition, body=body):
                self.run(prelude, loop)
                self._plain((condition,), loop)
                self.run(body, loop)
            case Check(condition=condition, values=values):
                self._plain((condition, *values), loop)
            case Local(tensor=tensor):
                if loop is not None:
                    self._own.add(tensor)
            case Allocate(tensor=tensor, fill=fill):
                if fill is not None:
                    self._plain((fill,), loop)
                    self._mix(tensor, self._kind(fill))
            case Rebind(targets=targets, sources=sources):
                if loop is not None:
                    raise DependentError
                if self.partial & {*targets, *sources}:
                    self.partial |= {*targets, *sources}
            case Break() | Continue() | Return() | Launch():
                pass
            case _:
                assert_never(statement)

    def _loop(self, node: For, loop: For | None) -> None:
        self._plain((node.start, node.stop), loop)
        if node.index not in self._share.loops:
            self.run(node.body, loop)
            return
        if loop is not None or effects(node.body).breaks:
            raise DependentError
        reductions, carried = scalar_verdict(node, self._live[node.index])
        if carried is not None or any(item.operator.name != "add" for item in reductions):
            raise DependentError
        self.partial |= {item.symbol for item in reductions}
        self.run(node.body, node)

    def _assign(self, node: Assign, loop: For | None) -> None:
        if loop is None:
            self._mix(node.symbol, self._kind(node.value))
        else:  # What is partial is added to here: the loop has no other reductions.
            self._plain((node.value,), loop, but=node.symbol)

    def _store(self, node: Store, loop: For | None) -> None:
        tensor = node.tensor
        self._plain(node.indices, loop)
        self._place(tensor, node.indices, loop)
        if loop is None:
            kind = self._kind(node.value)
            adds = node.combine is None or node.combine.name == "add"
            self._mix(tensor, kind if adds or kind is not _Kind.ZERO else _Kind.SAME)
            if tensor in self.partial and not adds:
                raise DependentError
        elif tensor in self._share.axes or tensor in self._own:
            self._plain((node.value,), loop)
        elif _adds(loop, tensor):
            self.partial.add(tensor)
            self._plain((node.value,), loop, but=tensor)
        else:
            raise DependentError

    def _mix(self, target: Symbol | Tensor, kind: _Kind) -> None:
        """Give a variable, or an element of a tensor, a value outside of the loops that are shared out."""
        if kind is _Kind.PARTIAL:
            self.partial.add(target)
        elif kind is _Kind.SAME and target in self.partial:
            raise DependentError

    def _plain(self, expressions: Iterable[Expression], loop: For | None, but: Symbol | Tensor | None = None) -> None:
        """Refuse expressions with something partial in them, and places of other machines."""
        for node in walk(expressions):
            match node:
                case Read(symbol=symbol) if symbol in self.partial and symbol != but:
                    raise DependentError
                case Load(tensor=tensor, indices=indices):
                    self._place(tensor, indices, loop)
                    if tensor in self.partial and tensor != but:
                        raise DependentError
                case _:
                    pass

    def _place(self, tensor: Tensor, indices: tuple[Expression, ...], loop: For | None) -> None:
        """Refuse an access to a tensor that is shared out, unless it is to the iteration's own place."""
        axis = self._share.axes.get(tensor)
        if axis is not None:
            index = forwarded(indices[axis], self._share.meanings)
            if loop is None or not isinstance(index, Read) or index.symbol != loop.index:
                raise DependentError

    def _kind(self, value: Expression) -> _Kind:
        """Return what a value is outside of the loops that are shared out."""
        if not self._is_partial(value):
            self._plain((value,), None)
            return _Kind.ZERO if isinstance(value, Constant) and value.value == 0 else _Kind.SAME
        match value:
            case Read() | Load():
                self._plain(value.indices if isinstance(value, Load) else (), None)
            case Apply(operator=operator, operands=operands) if operator.name in {"add", "sub", "neg"}:
                self._sum(operands)
            case Apply(operator=operator, operands=(left, right)) if operator.name in {"mul", "truediv"}:
                scaled, by = (left, right) if operator.name == "truediv" or self._is_partial(left) else (right, left)
                self._kind(scaled)
                self._plain((by,), None)
            case Cast(operand=operand, dtype=dtype) if dtype.is_float and operand.dtype != BOOL:
                self._kind(operand)
            case Select(condition=condition, then=then, otherwise=otherwise):
                self._plain((condition,), None)
                self._sum((then, otherwise))
            case _:
                raise DependentError
        return _Kind.PARTIAL

    def _sum(self, operands: Iterable[Expression]) -> None:
        """Refuse operands that are the same on all machines: they would count once for each."""
        if any(self._kind(operand) is _Kind.SAME for operand in operands):
            raise DependentError

    def _is_partial(self, value: Expression) -> bool:
        return any(
            (isinstance(node, Read) and node.symbol in self.partial)
            or (isinstance(node, Load) and node.tensor in self.partial)
            for node in walk(value)
        )


def _adds(loop: For, tensor: Tensor) -> bool:
    """Whether all that a loop does with a tensor is to add to elements."""
    touching = [node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor == tensor]
    if all(isinstance(node, Store) and node.combine is not None and node.combine.name == "add" for node in touching):
        return True
    operator = update_operator(loop, tensor)
    return operator is not None and operator.name == "add"
