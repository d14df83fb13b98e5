"""The loop programs on the GPU, beside the processor of the same machine: host's and device's time of a call.

A program whose loops run in order is given less to do (`LoopProgram.device`): one thread of a GPU does it.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Sequence
from typing import Any, cast

import torch

import brickwork as bw
from benchmarks.loop_programs import compiled, described, first_line, in_turn
from benchmarks.programs import PROGRAMS, LoopProgram
from brickwork.bench.plan import Progress
from brickwork.bench.record import Case
from brickwork.bench.report import duration, ratio
from brickwork.config import config

ROUNDS = 3
PROCESSORS = 16
"""How many cores the processor's contender has at most."""


def cases(progress: Progress, *, only: Sequence[str] = ()) -> list[Case]:
    """Return a case for each program, or for those named (or of the families named)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(min(PROCESSORS, len(os.sched_getaffinity(0))))
    chosen = [program for program in PROGRAMS if not only or {program.name, program.family} & {*only}]
    found: list[Case] = []
    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        for program in chosen:
            progress(program.name)
            found.append(_case(program))
            progress("")
            print(line(found[-1]), flush=True)
    torch.set_num_threads(threads)
    return found


def _case(program: LoopProgram) -> Case:
    sizes = program.device or program.large
    notes = {"family": program.family, "bound": program.bound, "loops": described(program), "sizes": str(sizes)}
    if not any(isinstance(item, torch.Tensor) for item in program.arguments(*program.small[-1])):
        notes["refused"] = "runs on the processor, as no argument is a tensor on a GPU"
        return Case(title=program.name, timings={}, reference="", notes=notes, device="cuda")
    try:
        return _timed(program, sizes, notes)
    except bw.BrickworkError as error:
        notes["refused"] = first_line(error)
        return Case(title=program.name, timings={}, reference="", notes=notes, device="cuda")


def _timed(program: LoopProgram, sizes: tuple[int, ...], notes: dict[str, str]) -> Case:
    operator = compiled(program, "programs")
    on_device = compiled(program, "programs_on_gpu", device="cuda")
    notes["compiled in"] = f"{on_device.stats().specialisations[-1].seconds:.3f} s"
    given = program.arguments(*sizes)
    work, there, work_there = _copies(given, "cpu"), _copies(given, "cuda"), _copies(given, "cuda")

    def on_the_gpu() -> object:
        result = on_device(*work_there)
        torch.cuda.synchronize()
        return result

    def renew() -> None:
        for targets, sources in ((work, given), (work_there, there)):
            for one, other in zip(targets, sources, strict=True):
                if isinstance(one, torch.Tensor):
                    one.copy_(other)
        torch.cuda.synchronize()

    expected, found = _results(operator(*work), work), _results(on_the_gpu(), work_there)
    bw.check_errors()
    if not all(torch.allclose(one, other.cpu(), equal_nan=True) for one, other in zip(expected, found, strict=True)):
        notes["brickwork"] = "differs from the processor's results"
    timings = in_turn({"brickwork": on_the_gpu, "processor": lambda: operator(*work)}, renew, ROUNDS)
    return Case(title=program.name, timings=timings, reference="brickwork", notes=notes, device="cuda")


def _copies(values: Sequence[Any], device: str) -> tuple[Any, ...]:
    return tuple(item.to(device, copy=True) if isinstance(item, torch.Tensor) else item for item in values)


def _results(returned: Any, arguments: Sequence[Any]) -> list[torch.Tensor]:
    results: tuple[Any, ...] = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)
    return [item for item in (*results, *arguments) if isinstance(item, torch.Tensor)]


def line(case: Case) -> str:
    """Return a case as one line."""
    if not case.timings:
        return f"{case.title:28} {case.notes['refused']}"
    ours = case.timings["brickwork"].median
    words = [f"{case.title:28} {duration(ours):>9}", f"processor {ratio(case.ratio('processor'))}"]
    words += [f"compiled in {case.notes['compiled in']}", case.notes["sizes"], case.notes.get("brickwork", "")]
    return "  ".join(words)


def markdown(found: Sequence[Case]) -> str:
    """Return the cases as a table in Markdown."""
    lines = ["| program | sizes | GPU | processor |", "|---|---|---|---|"]
    for case in found:
        if case.timings:
            times = f"{duration(case.timings['brickwork'].median)} | {ratio(case.ratio('processor'))}"
        else:
            times = f"{case.notes['refused']} |"
        lines.append(f"| {case.title} | {case.notes['sizes'].strip('(,)')} | {times} |")
    return "\n".join(lines)


BENCHMARKS = {
    f"programs/{family}": functools.partial(cases, only=[family])
    for family in dict.fromkeys(program.family for program in PROGRAMS)
}
"""A benchmark for each family, so that a run that ends early keeps those before."""
