"""What `explain` says of the loops of contractions: of tiles on a grid, and of panels on processors."""

from __future__ import annotations

from collections.abc import Collection

from brickwork.ir.nodes import For, Symbol
from brickwork.ir.walk import statements
from brickwork.transform.schedule.schedule import Contract, Schedule


def of_panels(index: Symbol, schedule: Schedule) -> str:
    """Return how a processor runs a loop of a contraction; empty for other loops."""
    for item in schedule.verbs:
        if isinstance(item, Contract) and index in item.rows:
            return f"in parallel by tiles of {item.height} rows, {item.down} together"
        if isinstance(item, Contract) and index in item.columns:
            return f"in parallel by tiles of {item.width} columns, vectorised by {item.across}"
        if isinstance(item, Contract) and index == item.depth:
            return f"in order, by blocks of {item.staged} terms whose factors are packed"
    return ""


def of_tile(index: Symbol, schedule: Schedule) -> str | None:
    """Return how a grid runs a loop of a contraction's rows, columns or depth; None for other loops."""
    for item in schedule.verbs:
        if not isinstance(item, Contract):
            continue
        for names, size, side, chunked in (
            (item.rows, item.height, "rows", item.chunked[0]),
            (item.columns, item.width, "columns", item.chunked[1]),
        ):
            if index in names:
                staged = "copied in chunks of 16 bytes, or read by them" if chunked else "computed, element by element"
                return f"in tiles of {size} {side}, whose factor is {staged}"
        if index == item.depth:
            unit = "groups of four warps (wgmma)" if item.groups else "warps (mma.sync)"
            parts = ", in parts by the blocks of a cluster where tiles are few" if item.blocks else ""
            return f"by matrix instructions of {unit}, {item.staged} terms at a time in {item.stages} stages{parts}"
    return None


def of_batch(loop: For, around: Collection[Symbol], schedule: Schedule) -> bool:
    """Whether a loop, which stands in those `around`, belongs to a contraction's nest, around or beside its rows."""
    inside = {node.index for node in statements(loop.body) if isinstance(node, For)}
    found = (item for item in schedule.verbs if isinstance(item, Contract))
    return any(item.depth in inside and item.loop in {loop.index, *around} for item in found)
