"""Loops in which a load is not invariant: a tape of the value needs axes for these alone.

    for i in range(n):
        for j in range(m):                     of `s[i]` only the loop over i: no iteration of the loop over j
            y[i, j] = s[i] * x[i, j]           changes what it is

Invariant: in the loops inside of these, neither the indices nor the tensor change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from typing import cast

from brickwork.ir.nodes import Block, For, Load, Rebind, Statement, Store, Symbol, Tensor, While
from brickwork.ir.walk import STATEMENTS, assigned_symbols, children, read_symbols, walk


@dataclass(frozen=True)
class _Around:
    """A loop around a load, and what changes in it."""

    loop: For | While

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        return assigned_symbols(self.loop)

    @cached_property
    def tensors(self) -> frozenset[Tensor]:
        nodes = [*walk(self.loop)]
        stored = {node.tensor for node in nodes if isinstance(node, Store)}
        return frozenset(stored | {item for node in nodes if isinstance(node, Rebind) for item in node.targets})

    def moves(self, load: Load) -> bool:
        """Whether the loop's iterations may load different elements, or a different value of one."""
        inside = [node.tensor for node in walk(load) if isinstance(node, Load)]
        return bool(read_symbols(load.indices) & self.symbols or self.tensors.intersection(inside))


def varying_loops(block: Block) -> Mapping[int, tuple[For | While, ...]]:
    """Return for each load, by its number, the loops around it from the outermost to the last that moves it."""
    return {load.access: _up_to_moving(load, around) for load, around in _loads(block, ())}


def _up_to_moving(load: Load, around: tuple[_Around, ...]) -> tuple[For | While, ...]:
    needed = [*dropwhile(lambda item: not item.moves(load), reversed(around))]
    return tuple(item.loop for item in reversed(needed))


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
