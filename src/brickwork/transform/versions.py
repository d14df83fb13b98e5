"""The versions of a kernel: schedules that run where sizes, strides and alignment are what they are made for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.nodes import Expression, Kernel
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.argument_facts import ArgumentFacts, narrow_kernel
from brickwork.transform.schedule.contract import contraction_versions
from brickwork.transform.schedule.defaults import flat_conditions
from brickwork.transform.schedule.lane_conditions import lane_conditions
from brickwork.transform.schedule.long_sums import sum_conditions, sum_schedule
from brickwork.transform.schedule.panels import panel_versions
from brickwork.transform.schedule.register_tile import tile_conditions, tile_schedule
from brickwork.transform.schedule.schedule import Schedule
from brickwork.transform.schedule.shared_work import shared_conditions, shared_schedule
from brickwork.transform.schedule.short_rows import (
    FEW_ROWS,
    SHORT_LANES,
    SHORT_ROWS,
    few_schedules,
    short_schedules,
)

SHARED = "shared work"
"""The version with iterations that run together since they share most of their work."""
TILES = "tiles"
"""The version with register tiles."""


@dataclass(frozen=True, slots=True)
class Version:
    """A schedule that runs where its conditions hold, and those of no version before it.

    It is for one part of a kernel's body where parts are chosen for by themselves.
    """

    name: str
    conditions: tuple[Expression, ...]
    schedule: Schedule
    part: int = 0


def versions_for_sizes(
    kernel: Kernel, analysis: Analysis, target: Target, plain: Schedule, known: ArgumentFacts | None
) -> Iterator[Version]:
    """Yield the versions of a kernel that are for some sizes; of two that are, the later one runs."""
    if not kernel.may_alias:
        for name, panels, needed in panel_versions(kernel.body, analysis, target, plain):
            yield Version(name, needed, panels)
    rows = [*short_schedules(kernel.body, analysis, target, plain, wide=False)] if plain.verbs else []
    for schedule, needed in rows[:1]:
        yield Version(SHORT_ROWS, needed, schedule)
    if _is_easy(kernel, plain, known):
        short, summed = _short(kernel, analysis, target, plain, rows), _summed(kernel, analysis, target, plain)
        for name, schedule, needed in (*short, *summed):
            yield Version(name, (*needed, *narrow_kernel(kernel, known)), schedule)
        for schedule, needed in few_schedules(kernel.body, analysis, target, plain):
            others = conditions_of(kernel, analysis, target, schedule, known)
            yield Version(FEW_ROWS, (*needed, *others), schedule)
        # Offsets fit 32 bits here, and data is aligned: else a thread of a tile has too few registers for addresses.
        for name, find, conditions in (
            (SHARED, shared_schedule, shared_conditions),
            (TILES, tile_schedule, tile_conditions),
        ):
            schedule = find(kernel.body, analysis, target, plain)
            if schedule is not None and (needed := conditions(kernel.body, schedule, target)):
                others = conditions_of(kernel, analysis, target, schedule, known)
                yield Version(name, (*needed, *others), schedule)
        flat = not any(build.is_constant(item, 0) for item in flat_conditions(kernel.body, analysis, plain))
        for name, schedule, needed in contraction_versions(kernel.body, analysis, target, flat=flat):
            others = conditions_of(kernel, analysis, target, schedule, known)
            yield Version(name, tuple(dict.fromkeys((*needed, *others))), schedule)


def conditions_of(
    kernel: Kernel, analysis: Analysis, target: Target, schedule: Schedule, known: ArgumentFacts | None
) -> tuple[Expression, ...]:
    """Return what must hold for a schedule that runs nests as one loop, and lanes of a grid."""
    flat = flat_conditions(kernel.body, analysis, schedule)
    if not target.grid:
        return flat
    narrow = narrow_kernel(kernel, known) if schedule.verbs else ()
    return (*flat, *lane_conditions(kernel.body, analysis, schedule), *narrow)


def _summed(
    kernel: Kernel, analysis: Analysis, target: Target, plain: Schedule
) -> Iterator[tuple[str, Schedule, tuple[Expression, ...]]]:
    """Yield schedules that share long sums out and what must hold for them; first that of rows that begin anywhere."""
    wide = sum_schedule(kernel.body, analysis, target, plain)
    if wide is None or sum_conditions(kernel.body, wide, plain, target) is None:
        return
    narrow = sum_schedule(kernel.body, analysis, target, plain, wide=False)
    for name, schedule in (("narrow sums", None if narrow == wide else narrow), ("sums", wide)):
        needed = None if schedule is None else sum_conditions(kernel.body, schedule, plain, target)
        if schedule is not None and needed is not None:
            yield name, schedule, (*needed, *lane_conditions(kernel.body, analysis, schedule))


def _short(
    kernel: Kernel,
    analysis: Analysis,
    target: Target,
    plain: Schedule,
    rows: Sequence[tuple[Schedule, tuple[Expression, ...]]],
) -> Iterator[tuple[str, Schedule, tuple[Expression, ...]]]:
    """Yield the schedules for short rows in lanes and what must hold for them, but for those of `rows`."""
    for schedule, needed in short_schedules(kernel.body, analysis, target, plain, wide=True):
        if (schedule, needed) not in rows:
            flat = flat_conditions(kernel.body, analysis, schedule)
            yield SHORT_LANES, schedule, (*needed, *flat, *lane_conditions(kernel.body, analysis, schedule))


def _is_easy(kernel: Kernel, plain: Schedule, known: ArgumentFacts | None) -> bool:
    """Whether a kernel of a grid has loops for its threads, and is for tensors that are aligned and narrow."""
    return bool(plain.verbs) and known is not None and known.asked and all(map(known.is_aligned, kernel.tensors))
