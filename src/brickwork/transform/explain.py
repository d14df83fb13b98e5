"""Says how a kernel's loops are run and how its accesses are kept in range, with the places in the source.

Only reads what the schedule and the analysis hold; nothing is decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.searches import is_made
from brickwork.analysis.verdicts import Analysis, Bound, Conflict
from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    Expression,
    For,
    Local,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
    joined_together,
)
from brickwork.ir.operators import Operator
from brickwork.ir.walk import rewrite_statements, statements, substitute
from brickwork.records import dataclass
from brickwork.transform.checked_places import hoisted_checks, place_of
from brickwork.transform.explain_contractions import of_batch, of_panels, of_tile
from brickwork.transform.explanation import IN_ORDER, Choice, Explanation, Line, Part
from brickwork.transform.guard import conjunction
from brickwork.transform.host_device_partition import launched, partition
from brickwork.transform.persistent import block_version
from brickwork.transform.pipeline import ScheduledKernel
from brickwork.transform.predicate import predicate
from brickwork.transform.privatise_reductions import copied_version
from brickwork.transform.register_lists import LENGTHS, goes_over, list_version
from brickwork.transform.replicate_reductions import copies_version
from brickwork.transform.schedule.defaults import FEW_ITERATIONS
from brickwork.transform.schedule.schedule import Rfactor, Schedule
from brickwork.transform.scratch import ONCE
from brickwork.transform.spelling import spelled
from brickwork.transform.split_recurrences import chunk_version
from brickwork.transform.split_reductions import split_version
from brickwork.transform.split_rows import rows_version
from brickwork.transform.wavefront import diagonals

_UNUSED_NUMBER = 1 << 40
"""Numbers from here on are those of no variable."""


def explain(scheduled: ScheduledKernel) -> Explanation:
    """Return what happens to a kernel, loop by loop and access by access."""
    parts = tuple(_parts(scheduled))
    for name, holds in reversed(scheduled.branches):
        other = (Line(f"kernel {scheduled.kernel.name} is not launched for these arguments"),)
        parts = (Choice(name, "", parts if holds else other, other if holds else parts, unknown=parts),)
    return Explanation(parts)


def _parts(scheduled: ScheduledKernel) -> Iterator[Part]:
    yield Line(f"kernel {scheduled.kernel.name}")
    yield from map(Line, _rows(scheduled))
    if scheduled.remark == IN_ORDER:
        return
    yield from map(Line, _by_user(scheduled))
    view = _view(scheduled)
    fast = _versions(view)
    if scheduled.guards and scheduled.careful is not None:
        schedule, analysis = scheduled.careful
        slow = (Line("  since what is tested below does not hold:"), *_loops(view.of(schedule, analysis)))
        yield Choice(scheduled.guarded, _told(conjunction(scheduled.guards), scheduled), fast, slow, unknown=fast)
    else:
        yield from fast
    yield from map(Line, _access_lines(scheduled))


def _rows(scheduled: ScheduledKernel) -> Iterator[str]:
    """Yield for which elements and sizes a kernel is, where another one is for others."""
    for item in scheduled.source.ascending:
        most = ", ".join(f"{size.tensor.name}.shape[{size.axis}]" for size in item.most)
        if item.last is None:
            yield f"  where '{item.tensor.name}' ascends from 0 on to no more than {most}, which is tested before"
            continue
        ends = "is as long as" if item.counted else "ends at"
        yield (
            f"  where each row, which begins at an element of '{item.tensor.name}' and {ends} one of"
            f" '{item.last.name}', is after all before it, within {most}, which is tested before"
        )
    if scheduled.remark:
        yield f"  {scheduled.remark}"


def _by_user(scheduled: ScheduledKernel) -> Iterator[str]:
    """Yield which loops a user's schedule is for, and that it changes the order of sums, if it does."""
    loops = [item.node.index for item in scheduled.analysis.model.loops if item.node.index in scheduled.given]
    if loops:
        names = ", ".join(dict.fromkeys(f"'{index.name}'" for index in loops))
        yield f"  the loops over {names} run as the schedule says that the operator was given"
    sums = [verb.loop for verb in scheduled.schedule.verbs if isinstance(verb, Rfactor) and verb.level is not None]
    if any(index in scheduled.given for index in sums):
        yield "  its `rfactor` makes partial results: sums of floats may differ from the source's in the last digits"


def _versions(view: _View) -> tuple[Part, ...]:
    """Return the loops as the versions of a kernel's parts run them."""
    scheduled = view.scheduled
    several = scheduled.versions[-1:] and scheduled.versions[-1].part > 0
    return tuple(
        told
        for place, statement in enumerate(scheduled.source.body if several else (None,))
        for told in _versions_of(view, place, statement)
    )


def _versions_of(view: _View, place: int, statement: Statement | None) -> tuple[Part, ...]:
    """Return the loops of a part as its versions run them."""
    told: tuple[Part, ...] = ()
    for version in reversed([item for item in view.scheduled.versions if item.part == place]):
        loops = tuple(_loops(view.of(version.schedule, view.scheduled.analysis), statement))
        if not told or loops == told:
            told = loops
        else:
            told = (Choice(version.name, _told(conjunction(version.conditions), view.scheduled), loops, told),)
    return told


def _told(condition: Expression, scheduled: ScheduledKernel) -> str:
    """Return a condition in the user's notation, with what the host computed as the user computed it."""
    return spelled(substitute(condition, scheduled.computed))


def _view(scheduled: ScheduledKernel) -> _View:
    """Return what a kernel is told from."""
    blocks, loops = _blocks(scheduled), scheduled.analysis.model.loops
    return _View(scheduled, _nests(loops), _alone(scheduled, blocks), _skewed(scheduled), blocks)


# ---------------------------------------------------------------- loops


@dataclass(frozen=True, slots=True)
class _View:
    """A kernel with the schedule of one version, and what is known of its loops.

    `alone` are loops that one thread runs, or one block; `skewed` those of nests that a grid would run along their
    diagonals. `in_block`: a block of threads runs the loops.
    """

    scheduled: ScheduledKernel
    nests: _Nests
    alone: frozenset[Symbol]
    skewed: frozenset[Symbol]
    blocks: _Blocks
    in_block: bool = False

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        return self.scheduled.schedule

    def of(self, schedule: Schedule, analysis: Analysis) -> _View:
        """Return what a version of the kernel is told from."""
        seen = replace(self.scheduled, schedule=schedule, analysis=analysis)
        return replace(self, scheduled=seen, nests=_nests(analysis.model.loops))


def _loops(view: _View, part: Statement | None = None) -> Iterator[Part]:
    """Yield what is said of the loops of a kernel, or of a part of its body."""
    loops = view.scheduled.analysis.model.loops
    inside = None if part is None else {node.index for node in statements((part,)) if isinstance(node, For)}
    yield from _nest([loop for loop in loops if inside is None or loop.node.index in inside], view)


def _nest(loops: Sequence[Loop], view: _View) -> Iterator[Part]:
    """Yield what is said of loops, each with those inside of it."""
    place = 0
    while place < len(loops):
        loop = loops[place]
        end = next((at for at in range(place + 1, len(loops)) if loops[at].depth <= loop.depth), len(loops))
        version = block_version(loop.node)
        if version in view.scheduled.choices and not view.in_block:
            inner = loops[place + 1 : end]
            apart = (*_loop_parts(loop, view), *_nest(inner, view))
            block = replace(view, in_block=True)
            together = (*_loop_parts(loop, block), *_nest(inner, block))
            indent = "  " * (loop.depth + 2)
            either = Line(f"{indent}or one block of threads runs all iterations, if that is little in each")
            unknown = (*_loop_parts(loop, view), either, *_nest(inner, view))
            yield Choice(version, "", together, apart, unknown)
        else:
            yield from _loop_parts(loop, view)
            yield from _nest(loops[place + 1 : end], view)
        place = end


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
    """The persistent blocks of a kernel: their `indices`, and the loops that are shared out in them."""

    indices: frozenset[Symbol]
    shared: frozenset[Symbol]


def _blocks(scheduled: ScheduledKernel) -> _Blocks:
    inside = [node for block in scheduled.persistent for node in statements(block)]
    shared = {node.index for node in inside if isinstance(node, For) and node.role is Role.THREAD}
    return _Blocks(frozenset(block.index for block in scheduled.persistent), frozenset(shared))


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


@dataclass(frozen=True, slots=True)
class _Way:
    """How a loop runs, in words and as a `Line` has it; None in place of one is in order."""

    text: str
    role: str
    lanes: int = 1
    together: int = 1


def _loop_parts(loop: Loop, view: _View) -> Iterator[Part]:
    """Yield what is said of one loop; nothing of one that stands around what the source has alone."""
    if loop.node.index.name == ONCE:
        return
    way, index = _way(loop, view), loop.node.index
    indent, updated = "  " * (loop.depth + 1), _updated(loop, way, view)
    first = f"{indent}for {index.name} at {loop.node.loc}: "
    atomic = tuple(tensor.name for tensor in updated)
    if way is None:
        line = Line(f"{first}in order", index.name, Role.SEQUENTIAL.value, atomic=atomic)
    else:
        line = Line(f"{first}{way.text}", index.name, way.role, way.lanes, way.together, atomic)
    if view.schedule.pieces(index) and split_version(index) in view.scheduled.choices:
        how = "in order" if way is None else way.text
        pieces = replace(line, text=f"{first}{how}, in pieces that are joined afterwards")
        either = replace(line, text=f"{first}{how}, or in pieces if there are few iterations around it")
        yield Choice(split_version(index), "", (pieces,), (line,), (either,))
    elif way is not None and view.schedule.blocks(index) and rows_version(index) in view.scheduled.choices:
        several = "several blocks of threads an iteration, one loop in it after the other"
        pieces = replace(line, text=f"{first}{several}")
        either = replace(line, text=f"{line.text}, or several if there are few long ones")
        yield Choice(rows_version(index), "", (pieces,), (line,), (either,))
    elif way is None and index in view.scheduled.carrying and chunk_version(index) in view.scheduled.choices:
        chunks = replace(line, text=f"{first}in order, in chunks that run in parallel once it is known how they begin")
        either = replace(line, text=f"{first}in order, or in chunks if there are few iterations around it")
        yield Choice(chunk_version(index), "", (chunks,), (line,), (either,))
    else:
        yield line
    yield from (Line(f"{indent}  {text}") for text in _more(loop, way, view))
    yield from _in_registers(loop, view, indent)
    for tensor in updated:
        if (version := copies_version(tensor)) in view.scheduled.choices:
            copied = Line(f"{indent}  threads update copies of '{tensor.name}', which are summed at the end")
            either = Line(
                f"{indent}  if there are many, threads update copies of '{tensor.name}', which are summed at the end"
            )
            yield Choice(version, "", (copied,), (), (either,))


def _in_registers(loop: Loop, view: _View, indent: str) -> Iterator[Part]:
    """Yield which lengths of a list that a loop goes over have a version with the list in registers."""
    for tensor in {node.tensor for node in statements(view.scheduled.source.body) if isinstance(node, Local)}:
        for items, exact in LENGTHS:
            version = list_version(tensor, items, exact=exact)
            if version in view.scheduled.choices and goes_over(loop.node, tensor):
                kept = Line(f"{indent}  written out, with '{tensor.name}' in registers")
                yield Choice(version, "", (kept,), (), (replace(kept, text=f"{kept.text} if there are {version}"),))


def _way(loop: Loop, view: _View) -> _Way | None:
    index = loop.node.index
    if not view.scheduled.grid:
        return _how(loop, view)
    if view.in_block or index in view.alone:
        if index not in view.blocks.shared:
            return None
        return _Way("shared out among the threads of one block", Role.THREAD.value)
    return _how_on_grid(loop, view)


def _updated(loop: Loop, way: _Way | None, view: _View) -> tuple[Tensor, ...]:
    """Return the tensors that iterations of a loop update atomically, also where one thread runs them all."""
    verdict, index = view.scheduled.analysis.loops[loop.node.index], loop.node.index
    if view.schedule.copies(index):
        return ()
    if way is None:
        return tuple(tensor for tensor in verdict.updates if tensor in view.schedule.updates(index))
    return verdict.updates if verdict.independent else ()


def _more(loop: Loop, way: _Way | None, view: _View) -> Iterator[str]:
    """Yield what else is said of a loop: what became of it, what it accumulates, and why it is in order."""
    scheduled, index = view.scheduled, loop.node.index
    verdict = scheduled.analysis.loops[index]
    yield from (*_if_short(loop, scheduled), *_moves(loop, view.nests))
    for first, *others in joined_together(verdict.reductions):
        if way is not None:
            beside = [f"'{item.symbol.name}'" for item in others if not is_made(item.symbol)]
            along = f", and {' and '.join(beside)} with it" if beside else ""
            yield f"partial results of '{first.symbol.name}' are joined by {_word(first.operator)}{along}"
    if updated := _updated(loop, way, view):
        names = ", ".join(f"'{tensor.name}'" for tensor in updated)
        why = "as iterations may meet on an element" if way is not None else "though one thread runs its iterations"
        yield f"updates of {names} are atomic, {why}"
    copied = bool(view.schedule.copies(index))
    if (way is None or copied) and verdict.conflict is not None:
        yield from _conflict_lines(verdict.conflict)
        if index in view.skewed:
            yield "its diagonals are independent: on a GPU each of them runs in parallel"
    elif way is None and view.in_block:
        yield "by all threads of a block in lockstep"
    elif way is None and index in view.alone:
        yield "by one thread, since the host cannot tell whether it runs"
    elif way is None:
        yield _why_in_order(loop, scheduled, view.nests)
    elif verdict.claimed and verdict.conflict is not None:
        yield f"taken as independent by your word: {verdict.conflict.sentence}"
    if scheduled.grid and way is None:
        if view.in_block and block_version(loop.node) in scheduled.choices:
            yield "one block of threads runs all iterations"
        elif not view.in_block and _launches(loop, view.schedule, view.alone):
            yield "each iteration launches what runs in parallel in it"


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


def _how(loop: Loop, view: _View) -> _Way | None:
    """Return how a processor runs a loop."""
    index, schedule = loop.node.index, view.schedule
    if packed := of_panels(index, schedule):
        return _Way(packed, Role.SEQUENTIAL.value if packed.startswith("in order") else Role.PARALLEL.value)
    parts: list[str] = []
    owner = next((item.loop for item in schedule.verbs if index in schedule.flat(item.loop)), None)
    if owner is not None and owner != index:
        return _Way(f"part of the loop over '{owner.name}'", "")
    if schedule.parallel(index) or schedule.tiled(index):
        parts.append("in parallel")
    if chunk := schedule.chunk(index):
        parts.append(f"in parallel by chunks of {chunk}")
    roles = [Role.PARALLEL.value] if parts else []
    if size := schedule.tiled(index):
        parts.append(f"in tiles of {size}")
    copies = schedule.copies(index) if copied_version(index) in view.scheduled.choices else ()
    if copies:
        names = " and ".join(f"'{name}'" for name in sorted({tensor.name for tensor in copies}))
        parts.append(f"in pieces that run in parallel, each with its own copy of {names}, if it is long; else in order")
    factors = schedule.jam(index)
    if factors:
        parts.append(", then ".join((f"{factors[0]} together", *map(str, factors[1:]))))
    if width := schedule.width(index):
        parts.append(f"vectorised by {width}")
        roles.append(Role.VECTOR.value)
    if (turns := schedule.unrolled(index)) > 1:
        parts.append(f"in order, {turns} iterations written out at a time")
    if owner is not None:
        names = ", ".join(f"'{symbol.name}'" for symbol in schedule.flat(index))
        parts.append(f"as one loop over {names}")
    role = " ".join(roles) or Role.SEQUENTIAL.value
    return _Way(", ".join(parts), role, max(width, 1), factors[0] if factors else 1) if parts else None


def _how_on_grid(loop: Loop, view: _View) -> _Way | None:
    """Return how a grid runs a loop."""
    index, schedule = loop.node.index, view.schedule
    parts, roles = list[str](), list[str]()
    owner = next((item.loop for item in schedule.verbs if index in schedule.flat(item.loop)), None)
    if owner is not None and owner != index:
        return _Way(f"part of the loop over '{owner.name}'", "")
    lanes, together = max(schedule.width(index), 1), _together(index, schedule)
    if schedule.partials(index):
        parts.append("pieces of it for blocks of threads, which a last block joins in order")
        roles.append(Role.BLOCK.value)
    if schedule.blocks(index):
        several = f"a block of threads for up to {together} iterations"
        parts.append(several if together > 1 else "a block of threads an iteration")
        roles.append(Role.BLOCK.value)
    if schedule.warps(index):
        parts.append("shared out among the warps of a block, or parts of them")
        roles.append(Role.WARP.value)
    if schedule.threads(index):
        parts.append("shared out among the threads of a block")
        roles.append(Role.THREAD.value)
    if schedule.parallel(index):
        parts.append(_of_thread(lanes, together))
        roles.append(Role.PARALLEL.value)
    around = [each.node.index for each in view.nests.around.get(id(loop.node), ())]
    if (tile := of_tile(index, schedule)) is not None:
        parts.append(tile)
        roles.append(Role.TILE.value)
    elif view.scheduled.analysis.loops[index].independent and of_batch(loop.node, around, schedule):
        parts.append("tiles of its own for each iteration")
        roles.append(Role.BLOCK.value)
    if owner is not None:
        names = ", ".join(f"'{symbol.name}'" for symbol in schedule.flat(index))
        parts.append(f"as one loop over {names}")
    return _Way(", ".join(parts), " ".join(roles), lanes, together) if parts else None


def _of_thread(lanes: int, together: int) -> str:
    if together > 1:
        return f"one thread for up to {together} iterations"
    return f"one thread for {lanes} neighbouring iterations" if lanes > 1 else "one thread an iteration"


def _together(index: Symbol, schedule: Schedule) -> int:
    """Return how many iterations of a loop a thread, or a block, takes at a time besides lanes."""
    return max((1, *schedule.jam(index)[:1]))


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
    words = {"add": "+", "mul": "*", "minimum": "min", "maximum": "max", "bit_and": "&", "bit_or": "|", "bit_xor": "^"}
    return words[operator.name]


# ---------------------------------------------------------------- accesses


def _access_lines(scheduled: ScheduledKernel) -> Iterator[str]:
    analysis = scheduled.analysis
    hoisted = frozenset[tuple[Location, str]]() if scheduled.grid else hoisted_checks(scheduled.kernel.body)
    guarded: dict[str, None] = {}
    for access in analysis.accesses:
        for axis in range(len(access.axes)):
            verdict = analysis.bounds[access.number, axis]
            what = f"{access.loc}: index {axis - access.tensor.added} of '{access.tensor.name}'"
            if verdict.bound is Bound.CHECKED and place_of(access.loc, access.tensor, axis) in hoisted:
                yield f"  {what} {_verb(access)} is tested before the loop where that is possible, else checked"
            elif verdict.bound is Bound.CHECKED:
                yield f"  {what} {_verb(access)} is checked at each execution"
            elif verdict.bound is Bound.GUARDED:
                conditions = " and ".join(_told(guard, scheduled) for guard in verdict.guard)
                guarded[f"  {what} {_verb(access)} is in range if {conditions}; tested once, else checked"] = None
    yield from guarded
    if analysis.assumptions:
        yield f"  proofs hold {_assumed(scheduled)}; tested once, else all runs in order"
    elif guarded and (lost := _lost(scheduled)):
        yield f"  where one of these does not hold, {lost} in order"


def _lost(scheduled: ScheduledKernel) -> str:
    """Return which loops run in order where the guards do not hold, with the verb; nothing if none do."""
    verdicts = scheduled.analysis.loops
    if not scheduled.grid:
        return "all loops run" if verdicts else ""
    slow = verdicts if scheduled.careful is None else scheduled.careful[1].loops
    names = dict.fromkeys(
        f"'{index.name}'"
        for index, verdict in slow.items()
        if index in verdicts and verdicts[index].independent > verdict.independent
    )
    return f"{' and '.join(names)} run{'' if len(names) > 1 else 's'}" if names else ""


def _assumed(scheduled: ScheduledKernel) -> str:
    """Return what is assumed of arguments and sizes: the tightest limit of each, and other conditions."""
    limits: dict[str, int] = {}
    others: list[str] = []
    for item in scheduled.analysis.assumptions:
        match item:
            case Apply(operands=(Constant(value=value), bounded)):
                name = _told(bounded, scheduled)
                limits[name] = min(int(value), limits.get(name, int(value)))
            case Apply(operator=operator, operands=(Apply(), Constant(value=0))) if operator.name == "ge":
                pass  # the limit below 0 that goes with one above
            case Constant(value=True):
                pass  # the arguments say so
            case _:
                others.append(_told(item, scheduled))
    scalars = {_told(build.read(symbol), scheduled) for symbol in scheduled.analysis.model.scalars}
    parts: list[str] = []
    for limit in sorted({*limits.values()}):
        names = sorted(name for name, other in limits.items() if other == limit)
        inside, sizes = ([item for item in names if (item in scalars) is kind] for kind in (True, False))
        parts += [f"{', '.join(inside)} within plus or minus {limit}"] if inside else []
        parts += [f"{', '.join(sizes)} up to {limit}"] if sizes else []
    found = [f"for {' and '.join(parts)}"] if parts else []
    return " and ".join([*found, *([f"if {' and '.join(others)}"] if others else [])])


def _verb(access: Access) -> str:
    return "stored into" if access.store else "read"
