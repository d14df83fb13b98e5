"""Random schedules for random programs: those that are legal compute what Python does, in order and as machine code.

A schedule is drawn verb by verb. One that is refused is taken back, so that the verbs that stay are legal together.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from brickwork.config import config
from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.reference import python_function as in_python
from brickwork.ir.nodes import For, Kernel, Program
from brickwork.ir.walk import statements
from brickwork.target.cpu import host_target
from brickwork.target.target import Target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.text import Names, ScheduleError
from support.fuzz.case import Case
from support.fuzz.check import FoundError, agreed_outcome, compare, is_small, prepare
from support.fuzz.execute import (
    Scheduled,
    in_interpreter,
    kernels_of,
    operator_of,
    outcome,
    scheduled,
    small_pieces,
    taken,
)

MOST_VERBS = 6
TRIES = 14
WIDTH = 32
_MISSING = re.compile(r"there is no loop over '([^']+)'")
_LINE = re.compile(r"the schedule says (.*?), but (.*)")


def examine_schedules(case: Case, folder: Path, *, compiled: bool = True) -> Counter[str]:
    """Run a case by a schedule that is drawn for it; return what was seen, or raise FoundError."""
    seen: Counter[str] = Counter(programs=1)
    with small_pieces(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare(case, folder, seen)
        if prepared is None:
            return seen
        definition, program = prepared
        expected = outcome(in_python(definition), case)
        agreed = agreed_outcome(case, program, expected, seen) if is_small(expected, case) else None
        if agreed is None:
            return seen
        expected = agreed
        target = host_target(WIDTH)
        try:
            text, made = _drawn(case, program, target, seen)
        except RaceError:
            seen["claims refuted"] += 1
            return seen
        try:
            found = outcome(in_interpreter(made[0]), case)
        except RaceError as error:
            raise FoundError("race in a given schedule", f"{text}\n{error}") from None
        compare("given schedule", found, expected, case, text)
        if compiled and text:
            with config.override(vector_bytes=WIDTH, cache_size=0), taken(program, target, made):
                compare("machine code by a schedule", outcome(operator_of(definition), case), expected, case, text)
            seen["runs of machine code"] += 1
        seen["compared"] += 1
        seen["compared with verbs"] += bool(text)
    return seen


def _drawn(case: Case, program: Program, target: Target, seen: Counter[str]) -> tuple[str, Scheduled]:
    """Return a legal schedule for a program, and what comes of it."""
    source = random.Random(case.seed * 31 + 7)
    written = (node for kernel in kernels_of(program) for node in statements(kernel.body))
    named = " ".join(node.index.name for node in written if isinstance(node, For))
    kernels = kernels_of(canonical(program, sizes=True, given=named))
    kept: list[str] = []
    made = scheduled(program, target)
    for _ in range(TRIES if kernels else 0):
        line = _line(source, source.choice(kernels), Names(*kernels))
        if not line or len(kept) == MOST_VERBS:
            continue
        try:
            made = scheduled(program, target, "\n".join((*kept, line)))
        except ScheduleError as error:
            seen[f"refused {line.partition('(')[0]}"] += 1
            _is_about(line, kept, error)
            continue
        kept.append(line)
        seen[f"verb {line.partition('(')[0]}{' jam' if 'jam' in line else ''}"] += 1
    return "\n".join(kept), made


def _is_about(line: str, kept: list[str], error: CompileError) -> None:
    """See that a refusal names the verb that was added last, or one before it that it takes the ground from.

    Or it names its loop: a loop over places may have gone where no schedule names it.
    """
    found, missing = _LINE.search(str(error)), _MISSING.search(str(error))
    if missing is not None and missing[1] in line:
        return
    if found is None or found[1] not in (line, *kept):
        raise FoundError("a refusal without its verb", f"{line}: {error}")


def _line(source: random.Random, kernel: Kernel, names: Names) -> str:
    """Return a verb that may be legal for a kernel."""
    loops = [node for node in statements(kernel.body) if isinstance(node, For)]
    if not loops:
        return ""
    loop = source.choice(loops)
    nest = [loop, *_directly_inside(loop)]
    name = names.called(loop.index)
    chunk = name.replace(":", "_chunk:") if ":" in name else f"{name}_chunk"
    some = source.choice((name, name, name, chunk))
    tensors = [tensor.name for tensor in kernel.tensors]
    called = [names.called(node.index) for node in nest]
    source.shuffle(called)
    choices = [
        f"bind({some}, pool)",
        f"bind({some}, lane, {source.choice((2, 4, 8, 16))})",
        f"split({name}, {source.choice((1, 2, 3, 5, 8))})",
        f"unroll({some}, {source.choice((2, 4, 8))})",
        f"unroll({some}, {source.choice(('2, jam', '4, jam', '4, jam, 2'))})",
        f"rfactor({name}, lane, {source.choice((2, 4, 8))})",
        f"rfactor({name}, pool, {source.choice((1, 3, 4))})",
        f"rfactor({name}, {source.choice(('pool', 'atomic'))}, {source.choice(tensors)})" if tensors else "",
        f"reorder({', '.join(called)})" if len(called) > 1 else "",
        f"reorder({', '.join(called[:2])})" if len(called) > 1 else "",
        f"reorder({chunk}, {', '.join(called)})",
        f"fuse({', '.join(names.called(node.index) for node in nest)})" if len(nest) > 1 else "",
    ]
    return source.choice([each for each in choices if each])


def _directly_inside(loop: For) -> Iterator[For]:
    """Yield the loops that stand directly in one another, from the one inside a loop on."""
    if len(loop.body) == 1 and isinstance(loop.body[0], For):
        yield loop.body[0]
        yield from _directly_inside(loop.body[0])
