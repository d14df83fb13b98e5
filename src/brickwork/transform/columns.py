"""Columns: a loop that is the same in all nests of a loop in order moves out of it, on a grid.

    for b in range(B):                               for b in range(B):
        for t in range(T):                               for j in range(n):
            for i in range(n):                               for t in range(T):
                for j in range(n):             ->                for i in range(n):
                    s[b, i, j] += k[t, i] * v[t, j]                  s[b, i, j] += k[t, i] * v[t, j]
            for j in range(n):                                   for i in range(n):
                for i in range(n):                                   y[t, j] += q[t, i] * s[b, i, j]
                    y[t, j] += q[t, i] * s[b, i, j]

Legal if every tensor that the loop stores into is accessed at this index along one axis: then iterations that meet on
an element have one j, and keep their order. What stores nothing is done again in each column. Tensors that the loop
only adds to may be accessed otherwise, where columns have loops inside: such updates are atomic then, also of what a
nest adds up for a store after it (`column_sums.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.atomic_updates import update_operator
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Constant, For, If, Kernel, Load, Node, Statement, Store, Symbol, Tensor
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, substitute_block, walk
from brickwork.legality import legality
from brickwork.transform.column_sums import as_updates, column_sums
from brickwork.transform.distribute import distribute
from brickwork.transform.scratch import names_of


def may_have_columns(kernel: Kernel) -> bool:
    """Whether a kernel has a loop around nests and more, in another loop, so that its analysis is worth making."""
    return any(
        isinstance(around, For) and any(isinstance(loop, For) and has_nests(loop) for loop in statements(around.body))
        for around in statements(kernel.body)
    )


def has_nests(loop: For) -> bool:
    """Whether a loop has another one and more in it, so that an analysis is worth making."""
    return len(loop.body) > 1 and any(isinstance(node, For) for node in loop.body)


def with_columns(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel with columns around the loops in order that stand in independent ones; `analysis` is of it.

    Branches with loops, which are no nests of columns, run after all iterations of a loop where they may, and it has
    columns then.
    """
    if kernel.may_alias:
        return kernel
    inside = {
        node.index
        for around in statements(kernel.body)
        if isinstance(around, For) and analysis.loops[around.index].independent
        for node in statements(around.body)
        if isinstance(node, For) and not analysis.loops[node.index].independent and has_nests(node)
    }
    found = _with_columns(kernel, analysis, inside)
    if found is not kernel or not inside:
        return found
    cut = distribute(kernel, analysis, grid=True, alone=_has_branches, numbers=names_of(kernel).symbols)
    found = cut if cut is kernel else _with_columns(cut, analysis, inside)
    return kernel if found is cut else found


def _has_branches(block: Block) -> bool:
    """Whether a block has branches with loops."""
    return any(isinstance(node, If) and effects(node).loops for node in block)


def _with_columns(kernel: Kernel, analysis: Analysis, inside: Collection[Symbol]) -> Kernel:
    """Return the kernel with columns around some of the loops `inside` of others."""
    live = live_after_loops(kernel.body)
    names = names_of(kernel)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.index not in inside:
            return (statement,)
        after = live[statement.index]
        if (chosen := columns_of(statement, after)) is not None:
            return (_moved(statement, chosen),)
        sums = column_sums(statement, analysis, after)
        *filled, loop = as_updates(statement, sums, names) if sums else (statement,)
        chosen = columns_of(loop, after, updates=True) if isinstance(loop, For) else None
        return (statement,) if chosen is None or not isinstance(loop, For) else (*filled, _moved(loop, chosen))

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


@legality
def columns_of(loop: For, live: frozenset[Symbol], *, updates: bool = False) -> tuple[For, ...] | None:
    """Return the loop of each nest that can move out of a loop as one, if there are such; `live` is after the loop.

    With `updates`, elements may be added to in another order, by columns that have loops inside.
    """
    inside = effects(loop.body)
    nests, others = _nests(loop), _others(loop)
    if loop.claimed or inside.fails or inside.rebinds:
        return None
    if (live | live_before(loop.body, NONE)) & assigned_symbols(loop.body):
        return None
    if not all(_is_cheap(node, nests) for node in others):
        return None
    if any(_leaves_variables(loop.body[loop.body.index(nest) :]) for nest in nests):
        return None
    changing = assigned_symbols((loop,))
    stored = inside.stores - (_updated(loop, inside.stores) if updates else frozenset[Tensor]())
    if updates and not stored:
        return None
    ways = (way for way in _ways(nests, stored, changing) if _are_alone(loop, way))
    return next((way for way in ways if not updates or all(effects(node.body).loops for node in way)), None)


@legality
def _updated(loop: For, stored: Collection[Tensor]) -> frozenset[Tensor]:
    """Return the tensors with whose elements a loop does nothing but update them by one operator."""
    return frozenset(item for item in stored if not item.is_local and update_operator(loop, item) is not None)


def _nests(loop: For) -> list[For]:
    """Return the loops right inside of a loop that store something."""
    return [node for node in loop.body if isinstance(node, For) and effects(node).stores]


def _others(loop: For) -> list[Statement]:
    """Return the other statements right inside of a loop."""
    return [node for node in loop.body if not any(node is nest for nest in _nests(loop))]


def _is_cheap(statement: Statement, nests: Sequence[For]) -> bool:
    """Whether a statement may be run in each column: it takes less than what else an iteration of a nest runs."""
    depth = max((effects(node).depth for node in nests), default=0)
    return isinstance(statement, Assign | For) and effects(statement).depth < depth


@legality
def _leaves_variables(block: Block) -> bool:
    """Whether the first statement of a block gives a variable a value that is read after it."""
    return bool(live_before(block[1:], NONE) & assigned_symbols(block[:1]))


@legality
def _candidates(nest: For, changing: frozenset[Symbol]) -> Iterator[For]:
    """Yield the loops that can stand around a nest, and whose bounds the loop around does not change.

    Each of them is the first statement of the one before.
    """
    node: Node | None = nest
    while isinstance(node, For):
        natural = isinstance(node.start, Constant) and int(node.start.value) >= 0
        passed = live_before(node.body, NONE) & assigned_symbols(node.body)
        if natural and not read_symbols(node.stop) & changing and not passed and not effects(node.body).leaves:
            yield node
        node = next(iter(node.body), None)


@legality
def _ways(nests: Sequence[For], stored: Collection[Tensor], changing: frozenset[Symbol]) -> Iterator[tuple[For, ...]]:
    """Yield a loop of each nest, so that each nest touches its own column alone of what is stored into."""
    if not nests:
        yield ()
        return
    for before in _ways(nests[:-1], stored, changing):
        for last in _candidates(nests[-1], changing):
            way = (*before, last)
            if all(_has_column(nests, way, tensor) for tensor in stored):
                yield way


@legality
def _has_column(nests: Sequence[For], way: Sequence[For], tensor: Tensor) -> bool:
    """Whether nests access a tensor at the index of the column along one axis, if it is not of an iteration alone."""
    if len({(node.start, node.stop) for node in way}) != 1:
        return False
    axes = {*range(tensor.type.rank)}
    for nest, column in zip(nests, way, strict=True):
        if tensor in effects(column.body).declares:
            return True
        for access in _accesses(nest, tensor):
            axes &= {place for place, index in enumerate(access.indices) if index == build.read(column.index)}
    return bool(axes)


@legality
def _are_alone(loop: For, way: Sequence[For]) -> bool:
    """Whether a loop has no others of these indices, and touches what it stores into in the nests alone."""
    indices = {node.index for node in way}
    if sum(isinstance(node, For) and node.index in indices for node in statements(loop.body)) != len(way):
        return False
    return not effects(loop.body).stores & effects(_others(loop)).loads


def _accesses(nest: For, tensor: Tensor) -> Iterator[Load | Store]:
    return (node for node in walk(nest) if isinstance(node, Load | Store) and node.tensor == tensor)


def _moved(loop: For, way: Sequence[For]) -> For:
    """Return the loop inside of one that these, one of each nest, become."""
    first, indices = way[0], {node.index: build.read(way[0].index) for node in way}

    def without(statement: Statement) -> Block:
        return statement.body if isinstance(statement, For) and statement.index in indices else (statement,)

    body = substitute_block(rewrite_statements(loop.body, without), indices)
    return replace(first, body=(replace(loop, body=body),))
