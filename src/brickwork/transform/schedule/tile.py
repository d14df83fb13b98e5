"""Tiles of a block of threads: for nests that run along memory in one loop for some tensors, in another for others.

    for j in range(m): for i in range(n): y[j, i] = x[i, j]      threads of a block lie along both loops, and each takes
                                                                  4 x 4 iterations: x and y are both accessed 16 bytes
                                                                  at once, and their lines by neighbours at one time

    for i in range(n): for j in range(m): s = 0.0                 the same for products of rows: neighbours read other
        for k in range(p): s += x[i, k] * w[j, k]                 lines of w, so a warp has few j, and several i that
        y[i, j] = s                                               read the same of w

Legal where the loops of the nest are independent and have fixed bounds: every order of their iterations is right then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from brickwork.analysis.polyhedral_model import Access
from brickwork.ir.nodes import Block, For, Symbol, While
from brickwork.ir.walk import statements
from brickwork.transform.schedule.planner import access_cost
from brickwork.transform.schedule.schedule import Schedule


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


def tile_of(nest: For, schedule: Schedule) -> dict[Symbol, int]:
    """Return the loop of a nest over which threads of a block are laid beside its last one, and how many it takes."""
    band: list[For] = []
    block: Block = (nest,)
    while len(block) == 1 and isinstance(inner := block[0], For) and schedule.parallel(inner.index):
        band.append(inner)
        block = inner.body
    if not any(schedule.beside(node.index) for node in band):
        return {}
    return {node.index: factors[0] for node in band if (factors := schedule.jam(node.index))}
