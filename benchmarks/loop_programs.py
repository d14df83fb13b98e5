"""The loop programs beside Numba: how long a call takes, a first call, and what the checks of indices cost.

Numba runs the same source on NumPy's arrays, with the loops in parallel that a person would mark (`programs`); its
settings are its defaults. Where it cannot take the source as it is, it runs what stands in `peers/numba_programs.py`.
The first answers of all contenders are compared; no time is told of one whose answer is not ours. Arguments are made
as new before each call, outside the time. What checks cost is the difference to the same program compiled here, and
only here, with every access taken for proved; no setting of brickwork does that.
"""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import torch

import brickwork as bw
from benchmarks.programs import PROGRAMS, LoopProgram
from benchmarks.programs.numpy_form import as_numpy, numba_form
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.bench.plan import Progress
from brickwork.bench.record import Case
from brickwork.bench.report import duration, ratio
from brickwork.bench.timers import Call, Timing, summary
from brickwork.config import config
from brickwork.runtime import cache
from brickwork.transform import pipeline

OURS, UNCHECKED, NUMBA = "brickwork", "brickwork, no checks", "numba"
ROUNDS = 5
TOLERANCE = 1e-6
"""How far an answer may be from ours, beside the greatest number in ours: sums are added up in other orders."""
PART = 2**22
"""How many elements of answers are compared at once."""
WRONG = "wrong answer"
LEAST = {"compute": 2.0, "bandwidth": 0.95, "order": 0.8}
"""How many times as long Numba must take, as a geometric mean over the programs that something limits."""


def cases(progress: Progress, *, rounds: int = ROUNDS) -> list[Case]:
    """Return a case for each program."""
    return [*of_programs(progress, (), rounds=rounds)]


def of_programs(progress: Progress, only: Sequence[str], *, rounds: int = ROUNDS) -> Generator[Case]:
    """Yield and print a case for each program that is named, or is of a family that is, or for all."""
    chosen = [program for program in PROGRAMS if not only or {program.name, program.family} & {*only}]
    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        for program in chosen:
            progress(program.name)
            case = _case(program, rounds)
            progress("")
            print(line(case), flush=True)
            yield case


def _case(program: LoopProgram, rounds: int) -> Case:
    """Time one program; what cannot be compiled is a case without timings that says why."""
    notes = {"family": program.family, "bound": program.bound, "loops": described(program)}
    try:
        operator = compiled(program, "programs")
    except bw.BrickworkError as error:
        return Case(title=program.name, timings={}, reference=OURS, notes={**notes, "refused": first_line(error)})
    notes["compiled in"] = f"{operator.stats().specialisations[-1].seconds:.3f} s"
    given = program.arguments(*program.large)
    work = tuple(item.clone() if isinstance(item, torch.Tensor) else item for item in given)
    contenders: dict[str, Call] = {OURS: lambda: operator(*work)}
    if "checked" in operator.explain():
        with everything_proved():
            unchecked = compiled(program, "unchecked")
        contenders[UNCHECKED] = lambda: unchecked(*work)
    if importlib.util.find_spec("numba") is not None:
        try:
            contenders[NUMBA] = _in_numba(program, work)
        except Exception as error:  # noqa: BLE001  # what the peer cannot compile is noted
            notes["numba"] = first_line(error)

    def renew() -> None:
        for one, other in zip(work, given, strict=True):
            if isinstance(one, torch.Tensor):
                one.copy_(other)

    answers: dict[str, list[torch.Tensor]] = {}

    def compare(name: str, returned: Any) -> None:
        answer = tensors(returned, work)
        if program.conserved is not None:
            answer = [program.conserved(item) for item in answer]
        if name == OURS:
            answers[OURS] = [item.clone() for item in answer]
        elif not same(answers[OURS], answer):
            notes[name] = WRONG

    timings = in_turn(contenders, renew, rounds, compare)
    right = {name: timing for name, timing in timings.items() if notes.get(name) != WRONG}
    return Case(title=program.name, timings=right, reference=OURS, notes=notes)


def compiled(program: LoopProgram, namespace: str, **place: str) -> bw.Op:
    """Return the program as an operator that is compiled for its arguments, not taken from the cache."""
    cache.forget()
    operator = bw.op(f"{namespace}::{program.name}")(program.function)
    operator.warmup(*program.arguments(*program.small[-1]), **place)
    return operator


def _in_numba(program: LoopProgram, work: tuple[Any, ...]) -> Call:
    numba: Any = importlib.import_module("numba")
    numba.set_num_threads(torch.get_num_threads())
    rewritten = importlib.import_module("benchmarks.peers.numba_programs").PROGRAMS.get(program.name)
    function, arrays = rewritten or numba_form(program), as_numpy(work)
    function(*as_numpy(program.arguments(*program.small[-1])))
    return lambda: function(*arrays)


def in_turn(
    contenders: Mapping[str, Call],
    renew: Callable[[], None],
    rounds: int,
    look: Callable[[str, Any], None] | None = None,
) -> dict[str, Timing]:
    """Time the contenders turn by turn, one call each a round; fewer rounds where a call takes seconds.

    `look` is shown what each returned first, before its arguments are made as new.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    began = time.perf_counter()
    for number in range(rounds):
        for name, call in contenders.items():
            renew()
            start = time.perf_counter()
            returned = call()
            seconds[name].append(time.perf_counter() - start)
            if look is not None and number == 0:
                look(name, returned)
            del returned
        if number >= 2 and time.perf_counter() - began > 10:
            break
    return {name: summary(values, 1) for name, values in seconds.items()}


def tensors(returned: Any, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Return what a call returned, and the tensors that it was given, which it may have changed."""
    results: tuple[Any, ...] = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)
    found = [_tensor(item) for item in results if item is not None]
    return [*found, *(item for item in arguments if isinstance(item, torch.Tensor))]


def _tensor(result: Any) -> torch.Tensor:
    """Return a result as a tensor; Python's floats are float64."""
    return torch.tensor(result, dtype=torch.float64) if isinstance(result, float) else torch.as_tensor(result)


def same(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> bool:
    """Whether two answers are the same but for rounding, which is measured by the greatest number of the answer."""
    greatest = max(map(_greatest, expected), default=0.0)
    pairs = zip(expected, found, strict=False)
    return len(expected) == len(found) and all(_close(one, other, greatest) for one, other in pairs)


def _greatest(answer: torch.Tensor) -> float:
    """Return the greatest magnitude of the finite elements of floating-point numbers."""
    if not answer.dtype.is_floating_point:
        return 0.0
    finite = (part[part.isfinite()].abs() for part in answer.reshape(-1).split(PART))
    return max((float(part.max()) for part in finite if part.numel()), default=0.0)


def _close(expected: torch.Tensor, found: torch.Tensor, greatest: float) -> bool:
    if expected.shape != found.shape:
        return False
    if not expected.dtype.is_floating_point:
        return torch.equal(expected, found.to(expected.dtype))
    parts = zip(expected.reshape(-1).split(PART), found.reshape(-1).split(PART), strict=True)
    return all(torch.allclose(one, other, TOLERANCE, TOLERANCE * greatest, equal_nan=True) for one, other in parts)


@contextmanager
def everything_proved() -> Generator[None]:
    """Let operators that are compiled meanwhile do without checks of indices, to measure what those cost."""
    analyse = pipeline.analyse

    def proved(*arguments: Any, **named: Any) -> Analysis:
        found = analyse(*arguments, **named)
        bounds = {place: replace(each, bound=Bound.PROVED, guard=()) for place, each in found.bounds.items()}
        return replace(found, bounds=bounds, assumptions=())

    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        cast("Any", pipeline).analyse = proved
        try:
            yield
        finally:
            cast("Any", pipeline).analyse = analyse
            cache.forget()


# ---------------------------------------------------------------- what is printed


def described(program: LoopProgram) -> str:
    """Return the loops with their verdicts."""
    return ", ".join(f"{loop.index} {loop.verdict}" for loop in program.loops)


def line(case: Case) -> str:
    """Return a case as one line."""
    if not case.timings:
        return f"{case.title:28} {'; '.join(text for name, text in case.notes.items() if name == 'refused')}"
    words = [f"{case.title:28} {duration(case.timings[OURS].median):>9}"]
    if NUMBA in case.timings:
        words.append(f"{case.notes['bound']:9} numba {ratio(case.ratio(NUMBA))}")
    words.append(f"compiled in {case.notes['compiled in']}")
    if UNCHECKED in case.timings:
        words.append(f"checks {100 * cost_of_checks(case):+.0f} %")
    words += [f"numba: {case.notes['numba']}"] if "numba" in case.notes else []
    return "  ".join(words)


def cost_of_checks(case: Case) -> float:
    """Return what checks cost, as a part of the time without; 0 where there are none."""
    unchecked = case.timings.get(UNCHECKED)
    return case.timings[OURS].least / unchecked.least - 1 if unchecked else 0.0


def summarised(found: Sequence[Case]) -> list[str]:
    """Return the means by what limits the programs, the times of first calls, and the cost of checks, as lines."""
    timed = [case for case in found if case.timings]
    lines: list[str] = []
    for bound, least in LEAST.items():
        ratios = {
            case.title: case.ratio(NUMBA) for case in timed if case.notes["bound"] == bound and NUMBA in case.timings
        }
        if ratios:
            worst = min(ratios, key=lambda name: ratios[name])
            mean = statistics.geometric_mean(ratios.values())
            lines.append(
                f"limited by {bound}: {len(ratios)} programs, numba {ratio(mean)} (goal: {least} x),"
                f" least {worst} {ratio(ratios[worst])}"
            )
    if timed:
        seconds = {case.title: float(case.notes["compiled in"].removesuffix(" s")) for case in timed}
        slowest = max(seconds, key=lambda name: seconds[name])
        median = duration(statistics.median(seconds.values()))
        lines.append(f"compiled in {median} (median), {slowest} {duration(seconds[slowest])} (worst)")
        costs = {case.title: 1 + cost_of_checks(case) for case in timed}
        most = max(costs, key=lambda name: costs[name])
        mean = 100 * (statistics.geometric_mean(costs.values()) - 1)
        lines.append(
            f"checks of indices cost {mean:.1f} % (geometric mean), {most} {100 * (costs[most] - 1):.0f} % (most)"
        )
    return lines


def peer_wrong(case: Case) -> str:
    """Return what the table says of Numba where there is no time of it."""
    return WRONG if case.notes.get(NUMBA) == WRONG else ""


def first_line(error: Exception) -> str:
    """Return the first line that an error says, without the place of a file."""
    said = next((text for text in str(error).splitlines() if text.strip()), type(error).__name__)
    return said.rpartition(": error ")[2]


def markdown(found: Sequence[Case]) -> str:
    """Return the cases as a table in Markdown, and the summary below it."""
    lines = ["| program | limited by | loops | brickwork | Numba | checks |", "|---|---|---|---|---|---|"]
    for case in found:
        cells = [case.title, case.notes["bound"], case.notes["loops"]]
        if not case.timings:
            lines.append(f"| {' | '.join(cells)} | not compiled | | |")
            continue
        other = ratio(case.ratio(NUMBA)) if NUMBA in case.timings else peer_wrong(case)
        checks = f"{100 * cost_of_checks(case):+.0f} %" if UNCHECKED in case.timings else ""
        lines.append(f"| {' | '.join((*cells, duration(case.timings[OURS].median), other, checks))} |")
    return "\n".join([*lines, "", *(f"- {text}" for text in summarised(found))])
