"""What is to be compared, and carrying it out: answers first, then times, then what falsifies times.

A plan makes the contenders of one value of x at a time, so that only one case's tensors are held. The profiler and the
counters of memory come last, in a round of their own, since a process that was profiled launches more slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, TypedDict

import torch

from brickwork.bench import check_results, counters, device_timers, environment
from brickwork.bench.record import Case, record
from brickwork.bench.roofline import peaks
from brickwork.bench.table import Metric, Table, X, refuse
from brickwork.bench.timers import Call, Timing, measure, of_each
from brickwork.records import dataclass

Progress: TypeAlias = Callable[[str], None]
_IN_A_GRAPH = 20
"""Calls that a graph holds where the cache is warm; one where it is emptied before each."""
_ROUNDS = {"cpu": 9, "cuda": 500}
"""At least on the CPU, at most on a GPU."""


class Options(TypedDict, total=False):
    """How to measure; what each says is written at `Protocol`."""

    device: Literal["cpu", "cuda"] | None
    check: bool
    unchecked: Collection[str]
    tolerance: float | None
    seconds: float
    precision: float
    cache: Literal["warm", "flushed"] | None
    graph: bool
    details: bool | None
    roofline: bool
    progress: Progress | None
    advance: Callable[[float], None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How to measure: on which device, with which caches, for how long."""

    device: Literal["cpu", "cuda"] | None = None
    """Whose time is taken; None: that of the device where the tensors are."""
    check: bool = True
    """Whether contenders must answer what the first one does."""
    unchecked: Collection[str] = ()
    """Contenders that are measures and no rivals, `copy_` for example: their answers may differ."""
    tolerance: float | None = None
    """By how much numbers may differ, as a part of them; None: by their type."""
    seconds: float = 0.5
    """About how long to measure a contender for one x, if its median is not known well before."""
    precision: float = 0.01
    """When a median is known well: its uncertainty, as a part of it."""
    cache: Literal["warm", "flushed"] | None = None
    """Whether a GPU's level-two cache is emptied before each sample; None: it is. A CPU's caches are warm."""
    graph: bool = False
    """Whether a GPU's calls are replayed from a graph, as models in production make them."""
    details: bool | None = None
    """Whether to count launches and peak memory; None: on a GPU, or where the table shows memory."""
    roofline: bool = False
    """Whether to measure what the machine can do, in the same run."""
    progress: Progress | None = None
    """What is told what is being done."""
    advance: Callable[[float], None] | None = None
    """What is told how much of the table is done, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The contenders of one x, ready to be called, and why the others are not; the work of a call."""

    calls: dict[str, Call]
    failures: dict[str, str] = field(default_factory=dict[str, str])
    moved: int = 0
    flops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be compared; `make` returns the contenders of one x."""

    title: str
    x_name: str
    x_values: tuple[X, ...]
    lines: tuple[str, ...] | None
    """The contenders' labels; None: those that there are for the values of x."""
    baseline: str
    """The contender that speed-ups refer to; nothing: the first one of each x."""
    metric: Metric
    make: Callable[[X], Contest]
    styles: Mapping[str, tuple[str, str]]
    x_log: bool
    y_log: bool
    formulas: dict[str, str]
    warnings: tuple[str, ...] = ()
    """What is known of the contenders that makes their times unfit to be kept."""


def protocol_of(how: Options) -> Protocol:
    """Return the protocol that options ask for; refuse what is none."""
    known = Options.__annotations__
    for name in how:
        if name not in known:
            raise TypeError(f"there is no option {name!r}; there are: {', '.join(known)}")
    return Protocol(**how)


def carry_out(plan: Plan, protocol: Protocol) -> Table:
    """Measure what a plan asks, and return the table."""
    _refuse(plan, protocol)
    tell = protocol.progress or _silent
    before, since = "", environment.spent()
    cases: list[Case] = []
    lines: dict[str, None] = dict.fromkeys(plan.lines or ())
    for number, x in enumerate(plan.x_values):
        case, protocol = _case(plan, x, protocol)
        before = before or environment.clocks(case.device)
        cases.append(case)
        lines.update(dict.fromkeys((*case.timings, *case.notes)))
        _advance(protocol, (number + 1) / (len(plan.x_values) + 1))
    device = protocol.device or "cpu"
    found: dict[str, float] = {}
    if protocol.roofline:
        tell("what the machine can do")
        found = peaks(device)
    after = environment.clocks(device)
    warnings = (*plan.warnings, *environment.warnings_for(device, since))
    if protocol.details if protocol.details is not None else device == "cuda" or plan.metric == "MiB":
        cases = [_detailed(plan, x, case, tell) for x, case in zip(plan.x_values, cases, strict=True)]
    _advance(protocol, 1)
    return Table(
        record=record(plan.title, cases),
        x_name=plan.x_name,
        x_values=plan.x_values,
        lines=tuple(lines),
        metric=plan.metric,
        styles=dict(plan.styles),
        x_log=plan.x_log,
        y_log=plan.y_log,
        formulas=plan.formulas,
        protocol=_told(protocol, device, before, after),
        measures=tuple(line for line in lines if line in protocol.unchecked),
        peaks=found,
        warnings=warnings,
    )


def _silent(text: str) -> None:
    """Tell nobody."""


def _advance(protocol: Protocol, done: float) -> None:
    if protocol.advance is not None:
        protocol.advance(done)


def _refuse(plan: Plan, protocol: Protocol) -> None:
    """Refuse a plan that cannot be measured, in words."""
    if plan.lines is not None and not plan.lines:
        raise ValueError("there is nothing to compare: name at least one contender")
    if not plan.x_values:
        raise ValueError("there is nothing to compare: give at least one case")
    if len(set(plan.x_values)) != len(plan.x_values):
        raise ValueError(f"values of {plan.x_name} occur more than once")
    if plan.lines is not None and plan.baseline not in plan.lines:
        raise ValueError(f"the baseline {plan.baseline!r} is no contender; there are: {', '.join(plan.lines)}")
    refuse(plan.metric, plan.formulas)
    if protocol.seconds <= 0:
        raise ValueError(f"seconds is {protocol.seconds:g}; it must be more than 0")
    if plan.lines is not None and (unknown := [name for name in protocol.unchecked if name not in plan.lines]):
        raise ValueError(f"unchecked names {unknown[0]!r}, which is no contender; there are: {', '.join(plan.lines)}")


# ---------------------------------------------------------------- one value of x


def _case(plan: Plan, x: X, protocol: Protocol) -> tuple[Case, Protocol]:
    """Measure one value of x; return the protocol, too, with the device that the answers were on."""
    tell = protocol.progress or _silent
    title = f"{plan.title}, {plan.x_name} = {x}"
    tell(f"{title}: answers")
    with seeded():
        contest = plan.make(x)
    notes = dict(contest.failures)
    wrong, device = _answered(contest, protocol)
    if device == "cpu" and plan.metric == "kernels":
        raise ValueError("kernels are counted on a GPU, and the contenders run on the CPU: give them CUDA tensors")
    notes |= wrong
    protocol = replace(protocol, device=device)
    calls = {name: call for name, call in contest.calls.items() if name not in notes}
    host: dict[str, Timing] = {}
    if device == "cuda":
        tell(f"{title}: times")
        timings, failures = _on_a_gpu(calls, protocol)
        notes |= {name: f"failed: {why}" for name, why in failures.items()}
        host = device_timers.host_times({name: call for name, call in calls.items() if name in timings})
    else:
        timings = _on_the_cpu(calls, protocol, lambda text: tell(f"{title}: {text}"))
    case = Case(
        title=title,
        timings=timings,
        reference=plan.baseline or next(iter(contest.calls), ""),
        notes=notes,
        device=device,
        moved=contest.moved,
        flops=contest.flops,
        host=host,
    )
    return case, protocol


@contextmanager
def seeded() -> Generator[None]:
    """Give whoever draws random numbers here the same ones each time, and nobody else other ones."""
    random: Any = torch.random
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with random.fork_rng(devices):
        random.manual_seed(0)
        yield


def _answered(contest: Contest, protocol: Protocol) -> tuple[dict[str, str], Literal["cpu", "cuda"]]:
    """Call every contender once; return why some must not be timed, and the device of the answers."""
    notes: dict[str, str] = {}
    reference = ""
    expected: list[torch.Tensor] = []
    devices: set[str] = set()
    for name, call in contest.calls.items():
        try:
            with seeded():
                found = check_results.kept(call())
            words, asked = "", protocol.check and name not in protocol.unchecked
            if reference and asked:
                words = check_results.difference(found, expected, protocol.tolerance)
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            notes[name] = why(error)
            continue
        devices |= {tensor.device.type for tensor in found}
        if asked and not reference:
            reference, expected = name, found
        if words:
            notes[name] = f"wrong: {words} from what {reference} answers"
    if protocol.device is None and not devices and torch.cuda.is_initialized():
        raise ValueError('the contenders return no tensors, so say on which device they run: device="cpu" or "cuda"')
    device = protocol.device or ("cuda" if "cuda" in devices else "cpu")
    if device == "cpu" and protocol.cache == "flushed":
        raise ValueError('cache="flushed" is for GPUs; a CPU is measured with the caches that calls leave')
    if device == "cpu" and protocol.graph:
        raise ValueError("graph=True is for GPUs: leave it out on a CPU")
    return notes, device


def why(error: Exception) -> str:
    """Return in one line that and why a contender failed."""
    return f"failed: {type(error).__name__}: {error}".strip().splitlines()[0]


def _on_the_cpu(calls: Mapping[str, Call], protocol: Protocol, tell: Progress) -> dict[str, Timing]:
    if not calls:
        return {}
    return measure(
        calls,
        rounds=_ROUNDS["cpu"],
        warm_up=protocol.seconds / 10,
        budget=protocol.seconds * len(calls),
        precision=protocol.precision,
        progress=tell,
    )


def _on_a_gpu(calls: dict[str, Call], protocol: Protocol) -> tuple[dict[str, Timing], dict[str, str]]:
    flush = protocol.cache != "warm"
    failures: dict[str, str] = {}
    count = 1
    if protocol.graph:
        count = 1 if flush else _IN_A_GRAPH
        calls, failures = _graphs(calls, count)
    found = device_timers.measure(
        calls,
        rounds=_ROUNDS["cuda"],
        budget=protocol.seconds * max(1, len(calls)),
        flush=flush,
        precision=protocol.precision,
    )
    timings = {name: of_each(timing, count) for name, timing in found.timings.items()}
    return timings, {**failures, **found.failures}


def _graphs(calls: Mapping[str, Call], count: int) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the replays of those calls that can be captured, and why the others cannot."""
    graphs: dict[str, Call] = {}
    failures: dict[str, str] = {}
    for name, call in calls.items():
        try:
            graphs[name] = device_timers.replayed(call, count)
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            failures[name] = f"cannot be captured: {error}".splitlines()[0]
    return graphs, failures


def _detailed(plan: Plan, x: X, case: Case, tell: Progress) -> Case:
    """Return a case with peak memory and launches, of contenders that are made anew."""
    tell(f"{case.title}: memory and launches")
    with seeded():
        contest = plan.make(x)
    calls = {name: call for name, call in contest.calls.items() if name in case.timings}
    memory = {name: counters.peak_memory(call, case.device) for name, call in calls.items()}
    if case.device == "cpu":
        return replace(case, memory=memory)
    counted = {name: counters.launches(call) for name, call in calls.items()}
    return replace(case, memory=memory, launches={name: count for name, count in counted.items() if count is not None})


# ---------------------------------------------------------------- what is told of it


def _told(protocol: Protocol, device: str, before: str, after: str) -> dict[str, str]:
    """Return how it was measured, in words."""
    moved = f"{before}; after: {after}" if before != after else before
    checked = "compared with the first contender's" if protocol.check else "not compared"
    checked += f", but {', '.join(protocol.unchecked)}" if protocol.check and protocol.unchecked else ""
    common = {"answers": checked, "clocks": moved}
    if device == "cpu":
        return {
            "time": "of a call on the wall clock, median of samples in turns ± half of what lies between the quartiles",
            "threads": str(torch.get_num_threads()),
            "caches": "warm, as the calls before leave them",
            **common,
        }
    replayed = " of a replayed graph" if protocol.graph else ""
    return {
        "time": f"between CUDA events around a call{replayed}, median of samples in turns ± half of what lies between "
        "the quartiles; the host's time apart",
        "level-two cache": "warm" if protocol.cache == "warm" else "emptied before each sample",
        **common,
    }
