"""The loops around each load of a kernel: which of them change what it reads, and which only where it reads.

    for t in range(n):
        for i in range(n):                     of `s[i]` the loops over t and i move it, and of these only the one
            for j in range(m):                 over t stores into `s`: no iteration of the loop over i changes
                y[t, i, j] = s[i] * x[i, j]    what `s[i]` is
        for i in range(n):
            s[i] = ...

Accesses in a loop's bounds are made before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import cast

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, For, Load, Statement, Symbol, Tensor, While
from brickwork.ir.walk import STATEMENTS, children, walk
from brickwork.legality import hazard
from brickwork.records import dataclass


@dataclass(frozen=True)
class _Around:
    """A loop around a load, and what changes in it."""

    loop: For | While

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return effects(self.loop).assigns

    @cached_property
    def tensors(self) -> frozenset[Tensor]:
        return effects(self.loop).changes

    @hazard
    def moves(self, load: Load) -> bool:
        """Whether the loop's iterations may load different elements, or a different value of one."""
        return bool(effects(load).reads & self.symbols or effects(load).loads & self.tensors)


@dataclass(frozen=True, slots=True)
class Around:
    """The loops around a load from the outermost on, and how many of them there are up to the last of a kind.

    The iterations of the loops up to `moving` may load different elements or values, those of the loops up to
    `changing` different values of one element: they store into the tensor, or exchange it for another one.
    """

    loops: tuple[For | While, ...]
    moving: int
    changing: int


def varying_loops(block: Block) -> Mapping[int, Around]:
    """Return what is around each load, by its number."""
    return {load.access: _around(load, around) for load, around in _loads(block, ())}


def _around(load: Load, around: tuple[_Around, ...]) -> Around:
    moves = [item.moves(load) for item in around]
    changes = [load.tensor in item.tensors for item in around]
    return Around(tuple(item.loop for item in around), _last(moves), _last(changes))


def _last(answers: Sequence[bool]) -> int:
    """Return how many answers there are up to the last yes."""
    return max((place + 1 for place, answer in enumerate(answers) if answer), default=0)


def _loads(block: Block, around: tuple[_Around, ...]) -> Iterator[tuple[Load, tuple[_Around, ...]]]:
    """Yield the loads of a block with the loops that each is made in; those in bounds are made before the loop."""
    for statement in block:
        match statement:
            case For(start=start, stop=stop, body=body):
                yield from ((node, around) for node in walk((start, stop)) if isinstance(node, Load))
                yield from _loads(body, (*around, _Around(statement)))
            case While():
                inner = (*around, _Around(statement))
                yield from ((node, inner) for node in walk(statement.condition) if isinstance(node, Load))
                yield from _loads((*statement.prelude, *statement.body), inner)
            case _:
                yield from _inside(statement, around)


def _inside(statement: Statement, around: tuple[_Around, ...]) -> Iterator[tuple[Load, tuple[_Around, ...]]]:
    for child in children(statement):
        if isinstance(child, STATEMENTS):
            yield from _loads((cast("Statement", child),), around)
        else:
            yield from ((node, around) for node in walk(child) if isinstance(node, Load))
