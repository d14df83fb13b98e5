"""A sane schedule without tuning, from what the analysis proved and what the target is.

The outermost independent loops are shared out among threads, and loops inside them run in vector lanes: those with
which most accesses are to neighbouring elements. Invariant: a schedule depends on neither thread count nor sizes. Loops
that accumulate run in chunks only outside of parallel loops, and their chunks and lanes are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from brickwork.analysis.model import Access, depth_of
from brickwork.analysis.polynomial import Atom, IndexAtom
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Random,
    Size,
    Statement,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import read_symbols, walk
from brickwork.target.target import Target
from brickwork.transform.flatten import find_flat
from brickwork.transform.schedule.schedule import Chunk, Directive, Flatten, Jam, Parallel, Schedule, Vectorise

LANES_LIMIT = 64
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
REDUCTION_LANES = 32
"""Lanes of an accumulating loop: the same on every machine, so that results are."""
LIGHT_CHUNK = 4096
"""Iterations a chunk of a loop without inner loops."""
HEAVY_CHUNK = 256
"""Iterations a chunk of a loop with inner loops."""
ACCUMULATORS = 4
"""Vectors a lane set spans where an inner loop accumulates, to hide the latency of a multiply-add."""
FUNCTION_VECTORS = 2
"""Vectors a lane set spans where functions of floats or random numbers are computed, to hide their latency."""
JAMMED = 4
"""Iterations of an outer loop that run together where they share vectors that an accumulating loop reads."""
JAMMED_ACCUMULATORS = 2
"""Vectors a lane set spans then: with `JAMMED` iterations, as many as hide the latency and fit the registers."""
FEWEST_ITERATIONS = 4
DEPTH_WEIGHT = 16.0
"""How often an inner loop is taken to run."""


@dataclass(frozen=True, slots=True)
class _Planner:
    analysis: Analysis
    target: Target
    flat: bool

    def block(self, block: Block) -> Iterator[Directive]:
        for statement in block:
            match statement:
                case For():
                    yield from self.nest(statement)
                case If(then=then, otherwise=otherwise):
                    yield from self.block(then)
                    yield from self.block(otherwise)
                case While(prelude=prelude, body=body):
                    yield from self.block((*prelude, *body))
                case _:
                    pass

    def nest(self, loop: For) -> Iterator[Directive]:
        """Schedule a loop that stands in no parallel one."""
        flat = find_flat(loop, self.analysis) if self.flat else None
        if flat is not None:
            yield Flatten(loop.index, flat.loops[1:])
            yield Chunk(loop.index, LIGHT_CHUNK)
            yield Vectorise(loop.index, self.width(loop))
        elif not self.analysis.loops[loop.index].independent:
            yield from self.block(loop.body)
        elif self.analysis.loops[loop.index].reductions:
            yield from self.reduction(loop)
        else:
            yield from self.independent(loop)

    def independent(self, loop: For) -> Iterator[Directive]:
        band = [*self.band(loop)]
        chosen = self.lanes(band)
        if not chosen or chosen[0] not in band:
            yield from (Parallel(node.index) for node in band)
            yield from (Vectorise(node.index, self.width(node)) for node in chosen)
            return
        vector = chosen[0]
        sharing = self.sharing(band, vector)
        width = self.width(vector, JAMMED_ACCUMULATORS if sharing else ACCUMULATORS)
        if sharing:
            yield Jam(sharing.index, JAMMED)
        outer = band[: band.index(vector)]
        yield from (Parallel(node.index) for node in outer)
        if not {node.index for node in outer} & _read_in_bounds(vector):
            yield Chunk(vector.index, self.chunk(vector))
        yield Vectorise(vector.index, width)

    def reduction(self, loop: For) -> Iterator[Directive]:
        """Schedule a loop that accumulates: chunks are combined in order."""
        symbols = {reduction.symbol for reduction in self.analysis.loops[loop.index].reductions}
        yield Chunk(loop.index, self.chunk(loop))
        inner = loop
        while len(inner.body) == 1 and isinstance(inner.body[0], For) and self.accumulates(inner.body[0], symbols):
            inner = inner.body[0]
        if not any(isinstance(node, For | While) for node in walk(inner.body)):
            yield Vectorise(inner.index, REDUCTION_LANES)

    def accumulates(self, loop: For, symbols: set[Symbol]) -> bool:
        """Whether a loop accumulates into these variables and is independent otherwise."""
        verdict = self.analysis.loops[loop.index]
        return verdict.independent and {item.symbol for item in verdict.reductions} <= symbols

    def band(self, loop: For) -> Iterator[For]:
        """Yield the perfectly nested independent loops from `loop` inwards."""
        yield loop
        if len(loop.body) == 1 and isinstance(loop.body[0], For):
            inner = loop.body[0]
            verdict = self.analysis.loops[inner.index]
            if verdict.independent and not verdict.reductions:
                yield from self.band(inner)

    def lanes(self, band: list[For]) -> tuple[For, ...]:
        """Return the loops of a band to run in lanes: one of the band, or those that stand apart inside it."""
        inner = (*self.inner_lanes(band[-1].body),)
        choices = [*((inner,) if inner else ()), *((node,) for node in reversed(band) if _is_long(node))]
        return min(choices, key=lambda chosen: self.cost(band[0], chosen), default=())

    def inner_lanes(self, block: Block) -> Iterator[For]:
        """Yield the loops in a block that could run in lanes; they may be inside loops that run in order."""
        for statement in _straight(block):
            if isinstance(statement, For):
                verdict = self.analysis.loops[statement.index]
                if verdict.independent and not verdict.reductions:
                    yield from self.lanes([*self.band(statement)])
                elif verdict.independent and _runs_along_axis(statement):
                    yield statement
                else:
                    yield from self.inner_lanes(statement.body)

    def cost(self, loop: For, vectors: tuple[For, ...]) -> float:
        """Return about how long a nest takes if these loops run in lanes."""
        chosen = {node.index for node in vectors}
        return sum(
            _access_cost(access, chosen) * DEPTH_WEIGHT ** len(access.loops)
            for access in self.analysis.accesses
            if any(around.node.index == loop.index for around in access.loops)
        )

    def sharing(self, band: list[For], vector: For) -> For | None:
        """Return the outer loop whose iterations read the same vectors in the accumulating loops of a vector loop."""
        inner = {node.index for node in walk(vector.body) if isinstance(node, For)}
        accumulating = {index for index in inner if self.analysis.loops[index].reductions}
        if not self.target.vector_bytes or len(accumulating) != 1 or inner != accumulating:
            return None
        reads = [
            access
            for access in self.analysis.accesses
            if not access.store and accumulating & {around.node.index for around in access.loops}
        ]
        vectors = [access for access in reads if _varies_with(access, vector.index)]
        for outer in (node for node in band if node is not vector):
            shared = any(not _varies_with(access, outer.index) for access in vectors)
            if shared and any(_varies_with(access, outer.index) for access in reads):
                return outer
        return None

    def width(self, loop: For, accumulators: int = ACCUMULATORS) -> int:
        """Return the lanes of a loop: those of the registers for its widest values, more if loops in it sum."""
        if self.analysis.loops[loop.index].reductions:
            return REDUCTION_LANES
        widest = max((_value_bytes(node) for node in walk(loop.body) if isinstance(node, Load | Store)), default=4)
        lanes = max(self.target.vector_bytes // widest, 1)
        if any(isinstance(node, For) and self.analysis.loops[node.index].reductions for node in walk(loop.body)):
            lanes *= accumulators
        elif any(_is_long_computation(node) for node in walk(loop.body)):
            lanes *= FUNCTION_VECTORS
        count = _trip_count(loop)
        while count is not None and lanes > count:
            lanes //= 2
        return max(min(lanes, LANES_LIMIT), 1)

    def chunk(self, loop: For) -> int:
        """Return how many iterations make up a piece of work."""
        return HEAVY_CHUNK if any(isinstance(node, For | While) for node in walk(loop.body)) else LIGHT_CHUNK


def default_schedule(block: Block, analysis: Analysis, target: Target, *, flat: bool = True) -> Schedule:
    """Return the schedule of a kernel's body; if `flat`, nests over whole tensors are run as one loop."""
    return Schedule(tuple(_Planner(analysis, target, flat).block(block)))


def flat_conditions(block: Block, analysis: Analysis, schedule: Schedule) -> tuple[Expression, ...]:
    """Return what must hold for the nests that a schedule runs as one loop."""
    loops = [node for node in walk(block) if isinstance(node, For) and schedule.flat(node.index)]
    found = [flat for loop in loops if (flat := find_flat(loop, analysis)) is not None]
    return tuple(dict.fromkeys(condition for flat in found for condition in flat.conditions))


def _straight(block: Block) -> Iterator[Statement]:
    """Yield the statements of a block and of the branches in it."""
    for statement in block:
        yield statement
        if isinstance(statement, If):
            yield from _straight((*statement.then, *statement.otherwise))


def _value_bytes(node: Load | Store) -> int:
    """Return the bytes that a lane holds for an element: integers stay narrow, floats are computed wide."""
    dtype = node.tensor.type.dtype
    return value_dtype(dtype).size if dtype.is_float else dtype.size


def _access_cost(access: Access, vectors: set[Symbol]) -> float:
    atom = next((around.atom for around in access.loops if around.node.index in vectors), None)
    scale = 2.0 if access.store else 1.0
    if atom is None:
        return scale
    varying = [place for place, axis in enumerate(access.axes) if any(_varies(a, atom) for a in axis.value.atoms())]
    if not varying:
        return scale / 16
    if varying == [access.tensor.type.unit_axis]:
        return scale / 8 if abs(access.axes[varying[0]].value.factor((atom,))) == 1 else scale / 2
    return scale


def _varies_with(access: Access, loop: Symbol) -> bool:
    """Whether the element that is accessed depends on a loop's index."""
    atom = next((around.atom for around in access.loops if around.node.index == loop), None)
    return atom is not None and any(_varies(item, atom) for axis in access.axes for item in axis.value.atoms())


def _varies(atom: Atom, index: IndexAtom) -> bool:
    return atom == index or (not isinstance(atom, IndexAtom) and depth_of(atom) >= index.depth)


def _read_in_bounds(loop: For) -> frozenset[Symbol]:
    return read_symbols((loop.start, loop.stop))


def _trip_count(loop: For) -> int | None:
    if isinstance(loop.start, Constant) and isinstance(loop.stop, Constant):
        return max(int(loop.stop.value) - int(loop.start.value), 0)
    return None


def _is_long_computation(node: Node) -> bool:
    """Whether a node is a random number or a function that takes many instructions."""
    return isinstance(node, Random) or (isinstance(node, Apply) and node.operator.name in LONG_OPERATORS)


def _runs_along_axis(loop: For) -> bool:
    """Whether an accumulating loop is worth lanes of its own: it is as long as an axis and holds no other loop."""
    along = any(isinstance(node, Size) for node in walk(loop.stop))
    return along and not any(isinstance(node, For | While) for node in walk(loop.body))


def _is_long(loop: For) -> bool:
    count = _trip_count(loop)
    return count is None or count >= FEWEST_ITERATIONS
