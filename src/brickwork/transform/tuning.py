"""Which schedules `op.tune` may measure: those that are legal and give the bits that the default gives."""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.ir.nodes import For, Launch, Program
from brickwork.ir.walk import statements
from brickwork.target.target import Target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.given import outermost
from brickwork.transform.pipeline import ScheduledKernel, schedule_program
from brickwork.transform.schedule.candidates import candidates
from brickwork.transform.schedule.schedule import Rfactor, Schedule, Verb, chunk_of
from brickwork.transform.schedule.text import Names, ScheduleError


def schedules_to_try(program: Program, target: Target) -> list[str]:
    """Return the schedules of a program, as text, that a processor may run it by besides the default one."""
    kernels = [node.kernel for node in statements(canonical(program, sizes=True).body) if isinstance(node, Launch)]
    names = Names(*kernels)
    _, default = schedule_program(program, target)
    found: dict[str, None] = {}
    for item in default:
        for schedule in _varied(item):
            if all(names.knows(verb) for verb in schedule.verbs):
                found[names.text(schedule)] = None
    return [text for text in found if text and _may_stand_in(text, program, target, default)]


def _varied(item: ScheduledKernel) -> Iterator[Schedule]:
    """Yield schedules for each nest of a kernel, of which no loop was cut or made by a transform."""
    whole = Schedule((*item.moved, *item.schedule.verbs))
    for loop in outermost(item.source.body):
        nest = [node for node in (loop, *statements(loop.body)) if isinstance(node, For)]
        loops = {node.index for node in nest}
        yield from candidates(whole, nest, loops | set(map(chunk_of, loops)), item.analysis)


def _may_stand_in(text: str, program: Program, target: Target, default: tuple[ScheduledKernel, ...]) -> bool:
    """Whether a schedule is legal, and makes the partial results that the default makes, for few iterations, too."""
    try:
        _, made = schedule_program(program, target, text)
    except ScheduleError:
        return False
    return [(_sums(item.schedule), item.short and _sums(item.short)) for item in made] == [
        (_sums(item.schedule), item.short and _sums(item.short)) for item in default
    ]


def _sums(schedule: Schedule) -> frozenset[Verb]:
    return frozenset(verb for verb in schedule.verbs if isinstance(verb, Rfactor))
