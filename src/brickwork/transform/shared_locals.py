"""Locals that several device kernels use become scratch tensors, as kernels have no other memory in common.

    for t in range(n):                            s = scratch(8)
        local h                                   for t in range(n):
        for j in parallel: h[j] = x[j]      ->        for j in parallel: s[j] = x[j]
        for i in parallel: y[i] += h[t]               for i in parallel: y[i] += s[t]

Invariant: only locals of blocks that the host runs are changed; those inside of nests and of serial pieces stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brickwork.ir.effects import effects
from brickwork.ir.nodes import Allocate, Block, Load, Local, Statement, Tensor
from brickwork.ir.walk import blocks_in, rewrite_statements, walk, with_blocks
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import renamed


@dataclass(frozen=True, slots=True)
class SharedLocals:
    """A kernel's body without the locals of blocks that the host runs: their scratch tensors, and the tables."""

    body: Block
    made: tuple[Allocate, ...]
    tables: Mapping[Tensor, Local]


def share_locals(block: Block, places: Partition, names: Names) -> SharedLocals:
    """Return the body with its locals placed where all pieces that use them see them."""
    found = dict.fromkeys(_of_host(block, places))
    if not found:
        return SharedLocals(block, (), {})
    tensors: dict[Tensor, Tensor] = {}
    made: list[Allocate] = []
    for local in found:
        tensor = local.tensor
        if not local.values and tensor not in tensors:
            tensors[tensor], allocate = names.tensor(tensor.name, tensor.type.dtype, *tensor.sizes)
            made.append(allocate)
    tables = {local.tensor: local for local in found if local.values}

    def without(statement: Statement) -> Block:
        return () if isinstance(statement, Local) and statement.tensor in tables else (statement,)

    body = rewrite_statements(tuple(_placed(block, places, tensors)), without)
    return SharedLocals(body, tuple(made), tables)


def used_tables(block: Block, tables: Mapping[Tensor, Local]) -> Block:
    """Return the declarations of the tables that a piece reads."""
    used = dict.fromkeys(node.tensor for node in walk(block) if isinstance(node, Load) and node.tensor in tables)
    return tuple(tables[tensor] for tensor in used)


def _of_host(block: Block, places: Partition) -> Iterator[Local]:
    for statement in block:
        if isinstance(statement, Local):
            yield statement
        for inner in blocks_in(statement) if places.is_host(statement) else ():
            yield from _of_host(inner, places)


@legality
def _placed(block: Block, places: Partition, tensors: Mapping[Tensor, Tensor]) -> Iterator[Statement]:
    """Yield a block that the host runs with the scratch tensors from where its locals are declared.

    A local of that name that is declared further in, as in another copy of a loop, is another one.
    """
    seen: set[Tensor] = set()
    for statement in block:
        if isinstance(statement, Local) and statement.tensor in tensors:
            seen.add(statement.tensor)
            continue
        inside = effects(statement).declares
        (changed,) = renamed((statement,), {tensor: tensors[tensor] for tensor in seen - inside})
        if places.is_host(statement):
            changed = with_blocks(changed, lambda inner: _placed(inner, places, tensors))
        yield changed
