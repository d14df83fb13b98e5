"""What must hold so that a thread of a grid reads and writes neighbours at once: rows begin where they are aligned."""

from __future__ import annotations

from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.polynomial import of_atom
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Block, Expression, For, Size, Symbol
from brickwork.ir.walk import statements
from brickwork.transform.schedule.schedule import Schedule
from brickwork.transform.schedule.tile import tile_of


def lane_conditions(block: Block, analysis: Analysis, schedule: Schedule) -> tuple[Expression, ...]:
    """Return what must hold so that the lanes of a schedule's loops read and write aligned neighbours."""
    found: dict[Expression, None] = {}
    loops = [node for node in statements(block) if isinstance(node, For)]
    tiles = {index: factor for loop in loops for index, factor in tile_of(loop, schedule).items()}
    for loop in loops:
        width = max(schedule.width(loop.index), tiles.get(loop.index, 0))
        for access in analysis.accesses:
            kind = access.tensor.type
            if access.tensor.is_local:
                continue
            if width > 1 and kind.contiguous and kind.rank > 1 and _is_direct(access, loop.index):
                rest = build.apply("mod", Size(tensor=access.tensor, axis=kind.rank - 1), build.integer(width))
                found[build.apply("eq", rest, build.integer(0))] = None
    return tuple(found)


def _is_direct(access: Access, loop: Symbol) -> bool:
    """Whether the last index of an access, and no other, is the index of a loop."""
    atom = next((around.atom for around in access.loops if around.node.index == loop), None)
    if atom is None or access.axes[-1].value != of_atom(atom):
        return False
    return not any(atom in axis.value.atoms() for axis in access.axes[:-1])
