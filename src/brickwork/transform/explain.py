"""Says in words how a kernel's loops are run and how its accesses are kept in range, with the places in the source.

Only reads what the schedule and the analysis hold; nothing is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.verdicts import Analysis, Bound, Conflict
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Constant, For, Role, Statement, Store, Symbol
from brickwork.ir.operators import Operator
from brickwork.ir.walk import rewrite_statements, statements
from brickwork.records import dataclass
from brickwork.transform.host_device_partition import launched, partition
from brickwork.transform.pipeline import ScheduledKernel
from brickwork.transform.predicate import predicate
from brickwork.transform.schedule.defaults import FEW_ITERATIONS
from brickwork.transform.schedule.schedule import CacheTile, Schedule
from brickwork.transform.spelling import spelled
from brickwork.transform.wavefront import diagonals

_UNUSED_NUMBER = 1 << 40
"""Numbers from here on are those of no variable."""


def explain(scheduled: ScheduledKernel) -> str:
    """Return what happens to a kernel, loop by loop and access by access."""
    lines = [f"kernel {scheduled.kernel.name}"]
    analysis = scheduled.analysis
    skewed, blocks = _skewed(scheduled), _blocks(scheduled)
    alone = _alone(scheduled, blocks)
    nests = _nests(analysis.model.loops)
    for loop in analysis.model.loops:
        lines.extend(_loop_lines(loop, scheduled, nests, alone, skewed, blocks))
    lines.extend(_access_lines(analysis))
    return "\n".join(lines)


# ---------------------------------------------------------------- loops


def _alone(scheduled: ScheduledKernel, blocks: _Blocks) -> frozenset[Symbol]:
    """Return the indices of loops that one thread runs, or one block, since the host cannot tell whether they run."""
    if not scheduled.grid:
        return frozenset()
    every = frozenset(node.index for node in statements(scheduled.kernel.body) if isinstance(node, For))

    def without_blocks(statement: Statement) -> Block:
        return () if isinstance(statement, For) and statement.index in blocks.indices else (statement,)

    body = predicate(rewrite_statements(scheduled.kernel.body, without_blocks), count(_UNUSED_NUMBER))
    return every - launched(body, partition(body))


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The persistent blocks of a kernel: their `indices`, the loops that each runs, and those shared out in them."""

    indices: frozenset[Symbol]
    outermost: frozenset[Symbol]
    shared: frozenset[Symbol]


def _blocks(scheduled: ScheduledKernel) -> _Blocks:
    inside = [node for block in scheduled.persistent for node in statements(block)]
    # The indices of nested loops that are shared out as one are assigned.
    shared = {node.index for node in inside if isinstance(node, For) and node.role is Role.THREAD}
    shared |= {node.symbol for node in inside if isinstance(node, Assign)}
    outermost = {node.index for block in scheduled.persistent for node in block.body if isinstance(node, For)}
    return _Blocks(frozenset(block.index for block in scheduled.persistent), frozenset(outermost), frozenset(shared))


def _skewed(scheduled: ScheduledKernel) -> frozenset[Symbol]:
    """Return the indices of the nests that a grid would run along their diagonals."""
    if scheduled.grid:
        return frozenset()
    outer = diagonals(scheduled.source, scheduled.analysis)
    nests = [node for node in statements(scheduled.source.body) if isinstance(node, For) and node.index in outer]
    return frozenset(node.index for nest in nests for node in statements(nest) if isinstance(node, For))


@dataclass(frozen=True, slots=True)
class _Nests:
    """The loops around each For (by its identity), outermost first, and how many loops stand at each place."""

    around: Mapping[int, Sequence[Loop]]
    places: Counter[Location]


def _nests(loops: Sequence[Loop]) -> _Nests:
    around: dict[int, list[Loop]] = {}
    for loop in loops:
        for inner in dict.fromkeys(id(node) for node in statements(loop.node.body) if isinstance(node, For)):
            around.setdefault(inner, []).append(loop)
    return _Nests(around, Counter(loop.node.loc for loop in loops))


def _if_short(loop: Loop, scheduled: ScheduledKernel) -> Iterator[str]:
    """Yield what runs in lanes instead of a window that is short."""
    index, short = loop.node.index, scheduled.short
    if short is not None and scheduled.schedule.width(index) > 1 and not short.width(index):
        others = [node.index for node in statements(scheduled.source.body) if isinstance(node, For)]
        lanes = [f"{other.name} is vectorised by {short.width(other)}" for other in others if short.width(other) > 1]
        yield f"if it has fewer than {FEW_ITERATIONS}, in order{''.join(f', and {each}' for each in lanes)}"


def _loop_lines(
    loop: Loop,
    scheduled: ScheduledKernel,
    nests: _Nests,
    alone: frozenset[Symbol],
    skewed: frozenset[Symbol],
    blocks: _Blocks,
) -> Iterator[str]:
    analysis, schedule = scheduled.analysis, scheduled.schedule
    verdict = analysis.loops[loop.node.index]
    indent = "  " * (loop.depth + 1)
    how = _how_on_grid(loop, schedule) if scheduled.grid else _how(loop, schedule)
    kept = how is not None and loop.node.index in alone
    if kept:
        how = "shared out among the threads of one block" if loop.node.index in blocks.shared else None
    kept = kept and how is None
    yield f"{indent}for {loop.node.index.name} at {loop.node.loc}: {how or 'in order'}"
    yield from (f"{indent}  {line}" for line in (*_if_short(loop, scheduled), *_moves(loop, nests)))
    for reduction in verdict.reductions:
        if how is not None:
            yield f"{indent}  partial results of '{reduction.symbol.name}' are joined by {_word(reduction.operator)}"
    if how is not None and verdict.updates and verdict.independent:
        names = ", ".join(f"'{tensor.name}'" for tensor in verdict.updates)
        yield f"{indent}  updates of {names} are atomic, as iterations may meet on an element"
    copied = bool(schedule.copies(loop.node.index))
    if (how is None or copied) and verdict.conflict is not None:
        yield from (f"{indent}  {line}" for line in _conflict_lines(verdict.conflict))
        if loop.node.index in skewed:
            yield f"{indent}  its diagonals are independent: on a GPU each of them runs in parallel"
    elif kept:
        yield f"{indent}  by one thread, since the host cannot tell whether it runs"
    elif how is None:
        yield f"{indent}  {_why_in_order(loop, scheduled, nests)}"
    elif verdict.claimed and verdict.conflict is not None:
        yield f"{indent}  taken as independent by your word: {verdict.conflict.sentence}"
    if scheduled.grid and how is None and _launches(loop, schedule, alone):
        yield f"{indent}  each iteration launches what runs in parallel in it"
        if loop.node.index in blocks.outermost:
            yield f"{indent}  or one block of threads runs all iterations, if that is little in each"


def _moves(loop: Loop, nests: _Nests) -> Iterator[str]:
    """Yield what has become of a loop's place in the source."""
    around = nests.around.get(id(loop.node), ())
    inside = [item.node.index.name for item in around if item.node.loc.line > loop.node.loc.line]
    if inside:
        names = " and ".join(f"'{name}'" for name in inside)
        yield f"moved inside of {names}: each element sees the same values in the same order"
    if nests.places[loop.node.loc] > 1:
        lines = sorted({node.loc.line for node in statements(loop.node.body) if isinstance(node, Store)})
        if lines:
            yield f"a part of the loop, with what stores at line {', '.join(map(str, lines))}"


def _how(loop: Loop, schedule: Schedule) -> str | None:
    index = loop.node.index
    parts: list[str] = []
    owner = next((item.loop for item in schedule.directives if index in schedule.flat(item.loop)), None)
    if owner is not None and owner != index:
        return f"part of the loop over '{owner.name}'"
    if schedule.parallel(index):
        parts.append("in parallel")
    if chunk := schedule.chunk(index):
        parts.append(f"in parallel by chunks of {chunk}")
    tile = next((item for item in schedule.directives if isinstance(item, CacheTile) and index in _sides(item)), None)
    if tile is not None:
        parts.append(f"in tiles of {tile.length if index == tile.across else tile.breadth}")
    if copies := schedule.copies(index):
        names = " and ".join(f"'{name}'" for name in sorted({tensor.name for tensor in copies}))
        parts.append(f"in pieces that run in parallel, each with its own copy of {names}, if it is long; else in order")
    if factors := schedule.jam(index):
        parts.append(", then ".join((f"{factors[0]} together", *map(str, factors[1:]))))
    if width := schedule.width(index):
        parts.append(f"vectorised by {width}")
    if owner is not None:
        names = ", ".join(f"'{symbol.name}'" for symbol in schedule.flat(index))
        parts.append(f"as one loop over {names}")
    return ", ".join(parts) or None


def _sides(tile: CacheTile) -> tuple[Symbol, Symbol]:
    return tile.across, tile.along


def _how_on_grid(loop: Loop, schedule: Schedule) -> str | None:
    index = loop.node.index
    parts: list[str] = []
    owner = next((item.loop for item in schedule.directives if index in schedule.flat(item.loop)), None)
    if owner is not None and owner != index:
        return f"part of the loop over '{owner.name}'"
    if schedule.partials(index):
        parts.append("pieces of it for blocks of threads, which a last block joins in order")
    if schedule.blocks(index):
        parts.append("a block of threads an iteration")
    if schedule.threads(index):
        parts.append("shared out among the threads of a block")
    if schedule.split(index) and not schedule.threads(index):
        parts.append("in order, or in pieces if there are few iterations around it")
    if schedule.parallel(index):
        width = schedule.width(index)
        parts.append(f"one thread for {width} neighbouring iterations" if width > 1 else "one thread an iteration")
    if factors := schedule.jam(index):
        parts.append(", then ".join((f"{factors[0]} together", *map(str, factors[1:]))))
    if owner is not None:
        names = ", ".join(f"'{symbol.name}'" for symbol in schedule.flat(index))
        parts.append(f"as one loop over {names}")
    return ", ".join(parts) or None


def _launches(loop: Loop, schedule: Schedule, alone: frozenset[Symbol]) -> bool:
    inner = [node.index for node in statements(loop.node.body) if isinstance(node, For) and node.index not in alone]
    return any(schedule.parallel(index) or schedule.blocks(index) or schedule.partials(index) for index in inner)


def _why_in_order(loop: Loop, scheduled: ScheduledKernel, nests: _Nests) -> str:
    analysis, schedule = scheduled.analysis, scheduled.schedule
    if scheduled.kernel.may_alias:
        return "since arguments may share memory"
    around = nests.around.get(id(loop.node), ())
    if scheduled.grid:
        return _why_in_a_thread(loop, around, scheduled)
    if analysis.loops[loop.node.index].reductions:
        return "since it accumulates, and a loop around it runs in parallel"
    lanes = next((item for item in reversed(around) if schedule.width(item.node.index)), None)
    return f"inside each lane of '{lanes.node.index.name}'" if lanes is not None else "since it is short"


def _why_in_a_thread(loop: Loop, around: Sequence[Loop], scheduled: ScheduledKernel) -> str:
    schedule = scheduled.schedule
    outer = [item.node.index for item in around]
    if any(schedule.parallel(index) or schedule.threads(index) for index in outer):
        return "inside each thread"
    if any(schedule.blocks(index) or schedule.partials(index) for index in outer):
        return "by all threads of a block in lockstep"
    if scheduled.analysis.loops[loop.node.index].reductions:
        return "since it accumulates what threads of a block cannot make in lockstep"
    return "since it is short"


def _conflict_lines(conflict: Conflict) -> Iterator[str]:
    yield f"because {conflict.sentence}"
    if any(f"line {party.loc.line}" not in conflict.sentence for party in conflict.parties):
        yield from (f"{party.loc}: {party.action}" for party in conflict.parties)


def _word(operator: Operator) -> str:
    return {"add": "+", "mul": "*", "minimum": "min", "maximum": "max"}[operator.name]


# ---------------------------------------------------------------- accesses


def _access_lines(analysis: Analysis) -> Iterator[str]:
    guarded: dict[str, None] = {}
    for access in analysis.accesses:
        for axis in range(len(access.axes)):
            verdict = analysis.bounds[access.number, axis]
            what = f"{access.loc}: index {axis} of '{access.tensor.name}'"
            if verdict.bound is Bound.CHECKED:
                yield f"  {what} {_verb(access)} is checked at each execution"
            elif verdict.bound is Bound.GUARDED:
                conditions = " and ".join(spelled(guard) for guard in verdict.guard)
                guarded[f"  {what} {_verb(access)} is in range if {conditions}; tested once, else checked"] = None
    yield from guarded
    if analysis.assumptions:
        yield f"  proofs hold for {_limits(analysis)}; tested once, else all runs in order"


def _limits(analysis: Analysis) -> str:
    """Return the limits of arguments and sizes that the assumptions set, the tightest of each."""
    limits: dict[str, int] = {}
    for item in analysis.assumptions:
        match item:
            case Apply(operands=(Constant(value=value), bounded)):
                name = spelled(bounded.operand if isinstance(bounded, Cast) else bounded)
                limits[name] = min(int(value), limits.get(name, int(value)))
            case _:
                pass
    scalars = {symbol.name for symbol in analysis.model.scalars}
    parts: list[str] = []
    for limit in sorted({*limits.values()}):
        names = sorted(name for name, other in limits.items() if other == limit)
        inside, sizes = ([item for item in names if (item in scalars) is kind] for kind in (True, False))
        parts += [f"{', '.join(inside)} within plus or minus {limit}"] if inside else []
        parts += [f"{', '.join(sizes)} up to {limit}"] if sizes else []
    return " and ".join(parts)


def _verb(access: Access) -> str:
    return "stored into" if access.store else "read"
