"""Tiling across thread blocks: for nests that run along memory in one loop for some tensors, in another for others.

    for j in range(m): for i in range(n): y[j, i] = x[i, j]      threads of a block lie along both loops, and each takes
                                                                  4 x 4 iterations: x and y are both accessed 16 bytes
                                                                  at once, and their lines by neighbours at one time

    for i in range(n): for j in range(m): s = 0.0                 the same for products of rows: neighbours read other
        for k in range(p): s += x[i, k] * w[j, k]                 lines of w, so a warp has few j, and several i that
        y[i, j] = s                                               read the same of w

Legal where the loops of the nest are independent and have fixed bounds: every order of their iterations is right then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.polyhedral_model import Access
from brickwork.ir.nodes import For, Node, Role, Symbol, While
from brickwork.ir.walk import rewrite, statements
from brickwork.transform.schedule.permute import permute
from brickwork.transform.schedule.planner import access_cost
from brickwork.transform.schedule.schedule import Tile
from brickwork.transform.schedule.unroll_jam import may_jam, unroll_jam


def find_across(accesses: Sequence[Access], band: Sequence[For], innermost: For) -> For | None:
    """Return the loop of a band that runs along memory where the one that is to be innermost jumps, if there is one.

    A body with loops of its own is not for tiles: what those read is what counts.
    """
    if any(isinstance(node, For | While) for node in statements(band[-1].body)):
        return None
    jumps = [access for access in accesses if not is_cheap(access, (innermost,))]
    found = [node for node in band if node is not innermost and any(is_cheap(access, (node,)) for access in jumps)]
    return found[-1] if found else None


def is_cheap(access: Access, loops: Iterable[For]) -> bool:
    """Whether neighbouring iterations of one of the loops access the same element or neighbouring ones."""
    scale = 2.0 if access.store else 1.0
    return any(access_cost(access, {loop.index}) <= scale / 8 for loop in loops)


def tile(loop: For, directive: Tile, order: tuple[Symbol, ...], numbers: Iterator[int]) -> tuple[For, ...]:
    """Return the nest that begins with `loop` in tiles; `order` is that of its loops, outermost first.

    A nest with iterations that could fail is not jammed: the order in which failures are met stays that of the source.
    """
    inner = (*(index for index in order if index not in (directive.across, order[-1])), directive.across, order[-1])
    nest = permute(_marked(loop, order[-1], directive.threads), inner)
    if directive.factor == 1 or not may_jam(nest.body):
        return (nest,)
    outer = (directive.across, *(index for index in inner if index != directive.across))
    parts = unroll_jam(permute(nest, outer), directive.factor, numbers)
    placed = [_second_last(part, len(order)) for part in parts]
    if any(isinstance(node, For) and node.role is not Role.PARALLEL for node in statements(nest.body)):
        # What is left over has fewer iterations of `across` than the threads that would lie along it, and long ones.
        placed[1:] = [rewrite(part, _without_tile) for part in placed[1:]]
    return tuple(placed)


def nest_of(loop: For) -> tuple[Symbol, ...]:
    """Return the indices of a parallel nest, outermost first."""
    if len(loop.body) == 1 and isinstance(inner := loop.body[0], For) and inner.role is Role.PARALLEL:
        return (loop.index, *nest_of(inner))
    return (loop.index,)


def _without_tile(node: Node) -> Node:
    return replace(node, across=0) if isinstance(node, For) and node.across else node


def _marked(loop: For, index: Symbol, threads: int) -> For:
    if loop.index == index:
        return replace(loop, across=threads)
    (inner,) = loop.body
    if not isinstance(inner, For):
        raise TypeError("the loops of a nest stand directly in one another")
    return replace(loop, body=(_marked(inner, index, threads),))


def _second_last(loop: For, depth: int) -> For:
    """Return a nest of so many loops with the outermost one second to last."""
    found = [node for node in statements(loop) if isinstance(node, For)][:depth]
    first, *rest = (node.index for node in found)
    return permute(loop, (*rest[:-1], first, rest[-1]))
