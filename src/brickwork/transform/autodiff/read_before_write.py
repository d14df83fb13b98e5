"""Tensors that a nest reads before it stores into them, element by element, so that others can read them before it.

    for i in range(n):                             for k in range(m):
        a = v[i]                                       total = 0
        v[i] = 0                                       for i in range(k - 1, k + 2): total += v[i]
        for k in range(i - 1, i + 2):      ->          u[k] += total
            u[k] += a                              for i in range(n): v[i] = 0

What it reads after it has stored into it can be read after the nest: the sums then stand behind what is left of it.

Invariant: no iteration reads what another one, or a statement before, has stored; or all that it reads was stored
before by the same one.
"""

from __future__ import annotations

from brickwork.analysis.polyhedral_model import Access
from brickwork.ir.nodes import Assign, For, Load, Store, Tensor
from brickwork.ir.walk import statements, walk
from brickwork.legality import legality
from brickwork.transform.autodiff.separate_updates import SeparateUpdates


@legality
def read_before_write(root: For, known: SeparateUpdates, depth: int) -> frozenset[Tensor]:
    """Return the tensors that a nest loads from, and stores into only after that.

    Each element is touched in one iteration alone of the loops inside of `depth` others.
    """
    order = _order(root)
    inside: dict[Tensor, list[Access]] = {}
    for access in known.model.accesses:
        if any(loop.node.index == root.index for loop in access.loops):
            inside.setdefault(access.tensor, []).append(access)
    return frozenset(
        tensor
        for tensor, found in inside.items()
        if not tensor.is_local
        and {access.store for access in found} == {True, False}
        and all(access.number in order for access in found)
        and max(order[access.number] for access in found if not access.store)
        < min(order[access.number] for access in found if access.store)
        and all(known.is_same_iteration(found[0], access, depth) for access in found)
    )


@legality
def read_after_write(root: For, known: SeparateUpdates, depth: int) -> frozenset[int]:
    """Return the loads of a nest that read what it leaves in tensors, for elements that it stores into.

    It stores into these before, in the same iteration of the loops around both, but for `depth` around the nest:
    nothing is stored into them later.
    """
    order = _order(root)
    stores: dict[Tensor, list[Access]] = {}
    for access in known.model.accesses:
        if access.store and any(loop.node.index == root.index for loop in access.loops):
            stores.setdefault(access.tensor, []).append(access)
    return frozenset(
        access.number
        for access in known.model.accesses
        if not access.store
        and access.number in order
        and access.tensor in stores
        and not access.tensor.is_local
        and all(
            item.number in order
            and order[item.number] < order[access.number]
            and known.is_same_common_iteration(item, access, depth)
            for item in stores[access.tensor]
        )
    )


def _order(root: For) -> dict[int, int]:
    """Return which of the accesses in a nest stands where: those of a statement's value before what it stores."""
    found: list[int] = []
    for statement in statements(root):
        if isinstance(statement, Assign | Store):
            found += [node.access for node in walk(statement) if isinstance(node, Load)]
            found += [statement.access] if isinstance(statement, Store) else []
    return {number: place for place, number in enumerate(found)}
