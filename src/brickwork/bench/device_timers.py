"""The timing protocol on a GPU.

As on the CPU, the contenders of one comparison take turns. Before each sample the level-two cache is emptied, by
writing a buffer larger than it, unless it is to be warm, when a call that is not timed comes before. Then the device is
kept busy for a moment, so that the host is done with its part before the first event is reached: what is timed, between
two events, is the device's time alone. The host's time of a call is measured apart, with the device at rest before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from brickwork.bench.timers import Call, Timing, known, once, summary
from brickwork.records import dataclass

_device: Any = torch.cuda
FLUSHED = 192 << 20
"""Bytes that are written to empty the level-two cache, which has up to 126 MB on the GPUs there are."""
_HOST_CYCLES = 400_000
"""About a fifth of a millisecond, longer than the host takes for most calls."""
_CYCLES_PER_SECOND = 2e9
_LONGEST_WAIT = 0.02
_QUEUED = 10
"""Calls that are made in a row where the host is timed: few enough for the queue of launches not to fill."""
_AT_LEAST = 5
_ENOUGH = 20
"""Samples whose spread is believed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The timings of the contenders that ran, and for the others why they did not."""

    timings: dict[str, Timing]
    failures: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Warm:
    """A contender that has run: its call, the seconds of a sample, and the cycles to keep the device busy before."""

    call: Call
    seconds: float
    cycles: int


def measure(
    contenders: Mapping[str, Call],
    *,
    rounds: int = 50,
    budget: float = 2.0,
    flush: bool = True,
    precision: float = 0.0,
) -> Measured:
    """Time the contenders turn by turn, within about `budget` seconds but five rounds at least.

    `flush` empties the level-two cache before each sample. With a `precision`, rounds may end early, when each median
    is known within it.
    """
    buffer = torch.empty(FLUSHED // 4, dtype=torch.int32, device="cuda") if flush else None
    failures: dict[str, str] = {}
    running: dict[str, _Warm] = {}
    for name, call in contenders.items():
        try:
            running[name] = _warm(call)
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            failures[name] = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    total = sum(each.seconds for each in running.values())
    wanted = max(_AT_LEAST, min(rounds, int(budget / max(total, 1e-6))))
    seconds: dict[str, list[float]] = {name: [] for name in running}
    while running and len(next(iter(seconds.values()))) < wanted:
        for name, values in _rounds(running, buffer, _AT_LEAST).items():
            seconds[name] += values
        if precision and known(seconds, precision) and len(next(iter(seconds.values()))) >= _ENOUGH:
            break
    return Measured({name: summary(values, 1) for name, values in seconds.items()}, failures)


def _rounds(running: Mapping[str, _Warm], buffer: torch.Tensor | None, count: int) -> dict[str, list[float]]:
    """Return the seconds of `count` samples of each contender, taken in turns."""
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in running}
    for _ in range(count):
        for name, contender in running.items():
            events[name].append(_sample(contender, buffer))
    torch.cuda.synchronize()
    return {name: [start.elapsed_time(end) / 1e3 for start, end in pairs] for name, pairs in events.items()}


def _warm(call: Call) -> _Warm:
    """Call until it is warm, and return about how many seconds a sample of it takes, and the host's part of it."""
    for _ in range(3):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    host = once(call, 1)
    end.record()
    end.synchronize()
    cycles = max(_HOST_CYCLES, int(1.5 * min(host, _LONGEST_WAIT) * _CYCLES_PER_SECOND))
    return _Warm(call, start.elapsed_time(end) / 1e3 + 2 * cycles / _CYCLES_PER_SECOND, cycles)


def _sample(contender: _Warm, buffer: torch.Tensor | None) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if buffer is None:
        contender.call()
    else:
        buffer.zero_()
    _device._sleep(contender.cycles)  # noqa: SLF001  # torch has no public name for it
    start.record()
    contender.call()
    end.record()
    return start, end


def host_times(contenders: Mapping[str, Call], *, rounds: int = 25) -> dict[str, Timing]:
    """Return how long the host takes for a call of each contender, turn by turn, with the device at rest before."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name, call in contenders.items():
            torch.cuda.synchronize()
            call()
            seconds[name].append(once(call, _QUEUED))
    torch.cuda.synchronize()
    return {name: summary(values, _QUEUED) for name, values in seconds.items()}


def replayed(call: Call, count: int) -> Call:
    """Return a call that replays a graph of `count` calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay
