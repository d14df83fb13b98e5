"""Tensors that a nest reads before it stores into them, element by element, so that others can read them before it.

    for i in range(n):                             for k in range(m):
        a = v[i]                                       total = 0
        v[i] = 0                                       for i in range(k - 1, k + 2): total += v[i]
        for k in range(i - 1, i + 2):      ->          u[k] += total
            u[k] += a                              for i in range(n): v[i] = 0

Invariant: no iteration reads what another one, or a statement before, has stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from brickwork.analysis.polyhedral_model import Access
from brickwork.ir.nodes import Assign, For, Load, Store, Tensor
from brickwork.ir.walk import statements, walk


def read_before_write(
    root: For, accesses: Iterable[Access], is_same_iteration: Callable[[Access, Access], bool]
) -> frozenset[Tensor]:
    """Return the tensors that a nest loads from, and stores into only after that.

    `is_same_iteration` tells of two accesses whether one element is touched by both in one iteration alone.
    """
    order = _order(root)
    inside: dict[Tensor, list[Access]] = {}
    for access in accesses:
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
        and all(is_same_iteration(found[0], access) for access in found)
    )


def _order(root: For) -> dict[int, int]:
    """Return which of the accesses in a nest stands where: those of a statement's value before what it stores."""
    found: list[int] = []
    for statement in statements(root):
        if isinstance(statement, Assign | Store):
            found += [node.access for node in walk(statement) if isinstance(node, Load)]
            found += [statement.access] if isinstance(statement, Store) else []
    return {number: place for place, number in enumerate(found)}
