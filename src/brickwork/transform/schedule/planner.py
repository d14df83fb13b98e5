"""What the schedules of all targets rest on: bands of independent loops, and what accesses cost in lanes.

Nothing here knows a target; the choices are in `defaults.py` for processors and in `grid.py` for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from brickwork.analysis.formula import atoms_of
from brickwork.analysis.polyhedral_model import Access, Choice, Floor, Model, depth_of
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, UnknownAtom, cofactor, number
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    For,
    Load,
    Node,
    Random,
    Read,
    Size,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import read_symbols, statements, straight, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.schedule import Rfactor, Verb

LONG_OPERATORS = frozenset(
    {
        "pow",
        "cbrt",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
    }
    | {"sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "atan2", "hypot"}
)
"""The operators that take many instructions."""
FEW = 8
"""Iterations of a loop that is known to have no more, for which lanes are too many."""
NEIGHBOUR = 1 / 8
"""What a read costs in lanes, of which each reads the element after the one before."""
PIECES = 32
"""Pieces that a sum is cut into for however many threads there are, so that it is the same for all; chosen."""
SHARE = 1 << 16
"""Least work of a thread's share, in units of `codegen/cost.py`."""
DEPTH_WEIGHT = 16.0
"""How often an inner loop is taken to run, also for the work of a nest where only data tell."""
JAMMED = 4
"""Iterations of an outer loop that run together, sharing what they read or its lines; chosen, not measured."""
MOST_LEAN = JAMMED // 2
"""How far bounds may move from one iteration of an outer loop to the next, where such iterations run together."""
LARGE_BODY = 400
"""Nodes of a body that is too large to be written out more than once; chosen, not measured."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Answers about the loops of an analysed kernel."""

    analysis: Analysis
    deepest: ClassVar[int] = 1
    """Most accumulating loops, one in another, that iterations which share what is read may hold."""

    @legality
    def band(self, loop: For) -> Iterator[For]:
        """Yield the perfectly nested independent loops from `loop` inwards."""
        yield loop
        if len(loop.body) == 1 and isinstance(loop.body[0], For):
            inner = loop.body[0]
            verdict = self.analysis.loops[inner.index]
            if verdict.is_free:
                yield from self.band(inner)

    @legality
    def rectangle(self, loop: For) -> Iterator[For]:
        """Yield the loops of a band whose bounds are fixed outside of it."""
        fixed: set[Symbol] = set()
        for node in self.band(loop):
            bounds = (node.start, node.stop)
            if read_symbols(bounds) & fixed:
                return
            fixed.add(node.index)
            yield node

    def updates(self, loop: For) -> Iterator[Verb]:
        """Make the updates in a nest indivisible that iterations may meet on."""
        for node in statements(loop):
            if isinstance(node, For):
                yield from (Rfactor(node.index, None, tensor=item) for item in self.analysis.loops[node.index].updates)

    @legality
    def accumulates(self, loop: For, symbols: set[Symbol]) -> bool:
        """Whether a loop accumulates into these variables and is independent otherwise."""
        verdict = self.analysis.loops[loop.index]
        return verdict.independent and {item.symbol for item in verdict.reductions} <= symbols

    def has_costly_terms(self, last: For) -> bool:
        """Whether terms of a sum take longer to compute than to read: tiles would be more code, and nothing less."""
        loops = (node for node in walk(last.body) if isinstance(node, For))
        sums = (loop for loop in loops if self.analysis.loops[loop.index].reductions)
        return any(sum(map(_is_costly, walk(loop.body))) >= JAMMED for loop in sums)

    def lanes(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops of a band to run in lanes: one of the band, or those that stand apart inside it."""
        inner = (*self.inner_lanes(band[-1].body),)
        choices = [*((inner,) if inner else ()), *((node,) for node in reversed(band) if _is_long(node))]
        return min(choices, key=lambda chosen: self.cost(band[0], chosen), default=())

    def lanes_inside(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops of a band to run in lanes that stands in another loop which others may run in parallel."""
        return self.lanes(band)

    def inner_lanes(self, block: Block) -> Iterator[For]:
        """Yield the loops in a block that could run in lanes; they may be inside loops that run in order."""
        for statement in straight(block):
            if isinstance(statement, For):
                verdict = self.analysis.loops[statement.index]
                if verdict.is_free:
                    yield from self.lanes_inside([*self.band(statement)])
                elif verdict.independent and self.worth_lanes(statement):
                    yield statement
                else:
                    yield from self.inner_lanes(statement.body)

    def worth_lanes(self, loop: For) -> bool:
        """Whether an accumulating loop is worth lanes of its own: it is as long as an axis and holds no other loop."""
        return self.is_along(loop) and not any(isinstance(node, For | While) for node in statements(loop.body))

    def is_along(self, loop: For) -> bool:
        """Whether a loop goes along an axis: up to a size, or to a place of a loop around that does (a triangle)."""
        reached = read_symbols(loop.stop)
        around = (item.node for item in self.analysis.model.loops if item.node.index in reached)
        sizes = any(isinstance(node, Size) for node in walk(loop.stop)) or reached & self.analysis.sizes
        return bool(sizes) or any(map(self.is_along, around))

    def cost(self, loop: For, vectors: tuple[For, ...]) -> float:
        """Return about how long a nest takes if these loops run in lanes."""
        chosen = {node.index for node in vectors}
        return sum(
            self.access_cost(access, chosen) * DEPTH_WEIGHT ** len(access.loops)
            for access in self.analysis.inside(loop.index)
        )

    def leans_little(self, loop: For, outer: For, most: int = MOST_LEAN) -> bool:
        """Whether a loop's bounds move by few iterations from one iteration of an outer loop to the next."""
        around = {item.node.index: item for item in self.analysis.model.loops}
        atom, inner = around[outer.index].atom, around[loop.index]
        for bound in (inner.start, inner.stop):
            move = cofactor(bound, atom)
            if move is None or not move.is_constant or abs(move.constant) > most:
                return False
            if any(isinstance(item, UnknownAtom) and _varies(item, atom) for item in bound.atoms()):
                return False
        return True

    def only_moves_apart(self, loop: For) -> bool:
        """Whether a loop does no more than move elements that are apart, one by one: lanes of it would gain nothing."""
        moves = all(isinstance(node, Store) and isinstance(node.value, Constant | Load | Read) for node in loop.body)
        ends = (access for access in self.analysis.accesses if access.loops)
        return moves and all(
            is_apart(access, loop.index) for access in ends if access.loops[-1].node.index == loop.index
        )

    def access_cost(self, access: Access, vectors: set[Symbol]) -> float:
        """Return about how long an access takes if these loops run in lanes."""
        return access_cost(access, vectors)

    def sharing(self, band: list[For], vector: For) -> For | None:
        """Return the outer loop whose iterations read the same vectors in the accumulating loops of a vector loop."""
        inner = {node.index for node in statements(vector.body) if isinstance(node, For)}
        inner -= {node.index for node in band}
        accumulating = {index for index in inner if self.analysis.loops[index].reductions}
        if not 1 <= len(accumulating) <= self.deepest or inner != accumulating or not _is_chain(vector, accumulating):
            return None
        reads = [
            access
            for access in self.analysis.accesses
            if not access.store and accumulating & {around.node.index for around in access.loops}
        ]
        vectors = [access for access in reads if varies_with(access, vector.index)]
        for outer in (node for node in band if node is not vector):
            shared = any(not varies_with(access, outer.index) for access in vectors)
            if shared and any(varies_with(access, outer.index) for access in reads):
                return outer
        return None


def _is_chain(around: For, loops: set[Symbol]) -> bool:
    """Whether loops inside another stand one in another."""
    inside = [node for node in statements(around.body) if isinstance(node, For) and node.index in loops]
    return all(any(node is below for node in statements(above.body)) for above, below in pairwise(inside))


def value_bytes(node: Load | Store) -> int:
    """Return the bytes that a lane holds for an element: integers stay narrow, floats are computed wide."""
    dtype = node.tensor.type.dtype
    return value_dtype(dtype).size if dtype.is_float else dtype.size


def access_cost(access: Access, vectors: set[Symbol], model: Model | None = None) -> float:
    """Return about how long an access takes if these loops run in lanes; twice as long for a store.

    The model says of elements at which places they are read.
    """
    atom = next((around.atom for around in access.loops if around.node.index in vectors), None)
    scale = 2.0 if access.store else 1.0
    if atom is None:
        return scale
    varying = moved_axes(access, atom, model)
    if not varying:
        return scale / 16
    if varying == [access.tensor.type.neighbours]:
        return scale * NEIGHBOUR if abs(access.axes[varying[0]].modular.factor((atom,))) == 1 else scale / 2
    return scale


def is_apart(access: Access, loop: Symbol) -> bool:
    """Whether a loop's iterations access elements at no constant distance along memory."""
    atom = _atom(access, loop)
    varying = moved_axes(access, atom)
    if varying != [access.tensor.type.neighbours]:
        return bool(varying)
    return not access.axes[varying[0]].modular.factor((atom,))


def is_strided(access: Access, loop: Symbol) -> bool:
    """Whether a loop's iterations access elements some places apart along memory."""
    unit = access.tensor.type.neighbours
    step = cofactor(access.axes[unit].modular, _atom(access, loop)) if unit is not None else None
    return step is not None and step not in {number(0), number(1), number(-1)}


def _atom(access: Access, loop: Symbol) -> IndexAtom:
    return next(around.atom for around in access.loops if around.node.index == loop)


def drifts(access: Access, vectors: set[Symbol]) -> bool:
    """Whether lanes of these loops begin an inner loop, by whose index the access goes, at places of their own."""
    return any(True for _ in setting_out(access, vectors))


def setting_out(access: Access, vectors: set[Symbol]) -> Iterator[tuple[For, Polynomial | None]]:
    """Yield the inner loops that lanes of these loops begin at places of their own, and how far apart those are.

    They are those by whose indices the access goes; the distance is 0 where it is not known, None where it grows.
    """
    atom = next((around.atom for around in access.loops if around.node.index in vectors), None)
    reached = frozenset(item for axis in access.axes for item in axis.value.atoms())
    for around in access.loops:
        inside = atom is not None and around.atom.depth > atom.depth and around.atom in reached
        if atom is not None and inside and any(_varies(item, atom) for item in around.start.atoms()):
            yield around.node, cofactor(around.start, atom)


def varies_with(access: Access, loop: Symbol) -> bool:
    """Whether the element that is accessed depends on a loop's index."""
    atom = next((around.atom for around in access.loops if around.node.index == loop), None)
    return atom is not None and any(moves_with(axis.modular, atom) for axis in access.axes)


def moved_axes(access: Access, index: IndexAtom, model: Model | None = None) -> list[int]:
    """Return the axes along which an access moves with the index of a loop."""
    return [place for place, axis in enumerate(access.axes) if moves_with(axis.modular, index, model)]


def moves_with(value: Polynomial, index: IndexAtom, model: Model | None = None) -> bool:
    """Whether an index of an access depends on that of a loop."""
    return any(_varies(atom, index, model) for atom in value.atoms())


def slope_of(value: Polynomial, index: IndexAtom, model: Model) -> Fraction | None:
    """Return how far a place moves with a loop's index for the most part, or None where that is unknown.

    What is kept within limits moves as it does between them, a quotient by parts of a step.
    """
    step = cofactor(value, index)
    if step is None or not step.is_constant:
        return None
    total = Fraction(step.constant)
    for other in (atom for atom in value.atoms() if atom != index and _varies(atom, index, model)):
        match model.origins.get(other):
            case Floor(dividend=dividend, remainder=True):
                found = slope_of(dividend, index, model)
            case Floor(dividend=dividend, divisor=divisor) if divisor.is_constant and divisor.constant:
                moved = slope_of(dividend, index, model)
                found = None if moved is None else moved / divisor.constant
            case Choice(then=then, otherwise=otherwise):
                moving = (way for way in (then, otherwise) if moves_with(way, index, model))
                ways = {slope_of(way, index, model) for way in moving}
                found = ways.pop() if len(ways) == 1 else None
            case Floor():
                found = Fraction(0)
            case _:
                found = None
        if found is None or (found and not value.factor((other,))):
            return None
        total += value.factor((other,)) * found
    return total


def _varies(atom: Atom, index: IndexAtom, model: Model | None = None) -> bool:
    """Whether an atom moves with a loop's index; an element that stays the same does so where its place does."""
    if atom == index or isinstance(atom, IndexAtom) or depth_of(atom) < index.depth:
        return atom == index
    if model is None:
        return True
    if (element := model.elements.get(atom)) is not None:
        return any(moves_with(place, index, model) for place in element.indices)
    match model.origins.get(atom):
        case Floor(dividend=dividend, divisor=divisor):
            return moves_with(dividend, index, model) or moves_with(divisor, index, model)
        case Choice(condition=condition, then=then, otherwise=otherwise):
            asked = any(_varies(item, index, model) for item in atoms_of((condition,)))
            return asked or moves_with(then, index, model) or moves_with(otherwise, index, model)
        case None:
            return True


@legality
def has_fixed_bounds(inner: For, around: Sequence[For]) -> bool:
    """Whether neither the iterations of loops around a loop nor elements nor draws say where it begins and ends."""
    found = effects((inner.start, inner.stop))
    return found.plain and found.reads.isdisjoint(loop.index for loop in around)


def trip_count(loop: For) -> int | None:
    """Return how many iterations a loop has, where that is known."""
    if isinstance(loop.start, Constant) and isinstance(loop.stop, Constant):
        return max(int(loop.stop.value) - int(loop.start.value), 0)
    return None


def _is_costly(node: Node) -> bool:
    """Whether a node is a long computation, or a quotient of floats."""
    divides = isinstance(node, Apply) and node.operator.name == "truediv" and not isinstance(node.operands[1], Constant)
    return divides or is_long_computation(node)


def is_long_computation(node: Node) -> bool:
    """Whether a node is a random number or a function that takes many instructions."""
    return isinstance(node, Random) or (isinstance(node, Apply) and node.operator.name in LONG_OPERATORS)


def _is_long(loop: For) -> bool:
    match loop.stop:
        case Apply(operator=operator, operands=(_, Constant(value=most))) if operator.name == "minimum" and most <= FEW:
            return False
        case _:
            count = trip_count(loop)
            return count is None or count >= JAMMED
