"""Loop flattening (collapsing): a nest over all elements of contiguous tensors becomes one long loop.

    for i in range(n): for j in range(m): y[i, j] = sin(x[i, j])   ->   for i in range(n * m): y[0, i] = sin(x[0, i])

An index beyond its axis is then meant: in a dense row-major tensor it counts on into the next row. Invariant: the nest
visits every element of these tensors once, in the order in which they lie in memory.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.formula import Comparison
from brickwork.analysis.parameter_expressions import comparison_expression
from brickwork.analysis.polyhedral_model import Access, is_parameter
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.nodes import FLAT_ACCESS, Block, Expression, For, Load, Node, Read, Role, Store, Symbol
from brickwork.ir.walk import rewrite, rewrite_loops, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.schedule.schedule import Fuse
from brickwork.transform.verbs.context import Context
from brickwork.transform.verbs.places import places


def apply(block: Block, verb: Fuse, context: Context) -> Block:  # noqa: ARG001  # as of all verbs
    """Return the block with a nest as one loop."""
    return rewrite_loops(block, {verb.loop}, lambda loop: (flatten(loop, (verb.loop, *verb.inner)),))


@dataclass(frozen=True, slots=True)
class Flat:
    """A nest that can be run as one loop, outermost index first, if the `conditions` hold."""

    loops: tuple[Symbol, ...]
    conditions: tuple[Expression, ...]


@hazard
def refusal(block: Block, verb: Fuse, context: Context) -> str | None:
    """Return why a nest cannot be run as one loop, if it cannot."""
    found = [*places(block, verb.loop)]
    nest = (verb.loop, *verb.inner)
    if any(node.role is not Role.SEQUENTIAL for place in found for node in (place.loop, *place.inside)):
        return "a loop of the nest is bound already: fuse it before"
    flat = next((find_flat(place.loop, context.analysis) for place in found), None)
    if flat is None:
        return "it is no nest over all elements of contiguous tensors, each of which is accessed by just these indices"
    if flat.loops != nest:
        return f"the nest has these loops: {', '.join(index.name for index in flat.loops)}"
    return None


@legality
def find_flat(loop: For, analysis: Analysis) -> Flat | None:
    """Return how the nest that begins with `loop` can be run as one loop, or None."""
    nest = _nest(loop, analysis)
    loops = tuple(level.index for level in nest)
    if len(nest) < 2 or any(not build.is_constant(level.start, 0) for level in nest):
        return None
    whole = tuple(Read(symbol=symbol) for symbol in loops)
    inside = [*walk(nest[-1].body)]
    found = [node for node in inside if isinstance(node, Load | Store) and node.indices == whole]
    flat = [node.access for node in found if node.tensor.type.contiguous]
    reads = sum(isinstance(node, Read) and node.symbol in loops for node in inside)
    if not flat or reads != len(loops) * len(flat):
        return None
    conditions: dict[Expression, None] = {}
    for access in analysis.accesses:
        if access.number in flat:
            needed = _equal_sizes(access, nest, analysis)
            if needed is None:
                return None
            conditions.update(dict.fromkeys(needed))
    return Flat(loops, tuple(conditions))


def flatten(loop: For, loops: tuple[Symbol, ...]) -> For:
    """Return the nest as one loop, whose index is the outermost one's."""
    nest = [loop]
    while nest[-1].index != loops[-1]:
        nest.append(_only_loop(nest[-1]))
    total = build.product([level.stop for level in nest])
    whole = tuple(Read(symbol=symbol) for symbol in loops)
    place = (*(build.integer(0) for _ in loops[1:]), Read(symbol=loop.index))

    def visit(node: Node) -> Node:
        return (
            replace(node, indices=place, access=FLAT_ACCESS)
            if isinstance(node, Load | Store) and node.indices == whole
            else node
        )

    return replace(loop, stop=total, body=tuple(rewrite(statement, visit) for statement in nest[-1].body))


@legality
def _nest(loop: For, analysis: Analysis) -> list[For]:
    """Return the perfectly nested loops that are independent; they accumulate into the same variables."""
    nest: list[For] = []
    block: Block = (loop,)
    # Of loops that verbs have made, as those over chunks, nothing was asked.
    while len(block) == 1 and isinstance(inner := block[0], For) and inner.index in analysis.loops:
        if not analysis.loops[inner.index].independent:
            break
        nest.append(inner)
        block = inner.body
    return nest


def _only_loop(loop: For) -> For:
    inner = loop.body[0]
    if not isinstance(inner, For):
        raise TypeError("the loops of a flat nest stand directly in one another")
    return inner


@legality
def _equal_sizes(access: Access, nest: list[For], analysis: Analysis) -> list[Expression] | None:
    """Return what must hold so that an access's tensor has the extents of the nest; None if it can never be used."""
    result: list[Expression] = []
    stops = {loop.node.index: loop.stop for loop in analysis.model.loops}
    for place, level in enumerate(nest):
        if analysis.bounds[access.number, place].bound is Bound.CHECKED:
            return None
        difference = access.axes[place].size - stops[level.index]
        if not all(map(is_parameter, difference.atoms())):
            return None
        if difference.terms:
            result.append(comparison_expression(Comparison(difference, equal=True)))
    return result
