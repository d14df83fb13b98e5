"""The timing protocol on a GPU.

As on the CPU, the contenders of one comparison take turns. Before each sample the level-two cache is emptied, by
writing a buffer larger than it, and the device is kept busy for a moment, so that the host is done with its part before
the first event is reached: what is timed, between two events, is the device's time alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from brickwork.bench.timers import Call, Timing, summary

_device: Any = torch.cuda
_FLUSHED = 192 << 20
_HOST_CYCLES = 400_000
"""About a fifth of a millisecond, longer than the host takes for a call."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The timings of the contenders that ran, and for the others why they did not."""

    timings: dict[str, Timing]
    failures: dict[str, str]


def measure(contenders: Mapping[str, Call], *, rounds: int = 50, budget: float = 2.0) -> Measured:
    """Time the contenders turn by turn, within about `budget` seconds but five rounds at least."""
    buffer = torch.empty(_FLUSHED // 4, dtype=torch.int32, device="cuda")
    failures: dict[str, str] = {}
    running: dict[str, Call] = {}
    total = 0.0
    for name, call in contenders.items():
        try:
            total += _warm(call)
            running[name] = call
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            failures[name] = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in running}
    for _ in range(max(5, min(rounds, int(budget / max(total, 1e-6))))):
        for name, call in running.items():
            events[name].append(_sample(call, buffer))
    torch.cuda.synchronize()
    timings = {
        name: summary([start.elapsed_time(end) / 1e3 for start, end in pairs], 1) for name, pairs in events.items()
    }
    return Measured(timings, failures)


def _warm(call: Call) -> float:
    """Call until it is warm, and return about how many seconds a sample of it takes."""
    for _ in range(3):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 + 4e-4


def _sample(call: Call, buffer: torch.Tensor) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    buffer.zero_()
    _device._sleep(_HOST_CYCLES)  # noqa: SLF001  # torch has no public name for it
    start.record()
    call()
    end.record()
    return start, end


def replayed(call: Call, count: int) -> Call:
    """Return a call that replays a graph of `count` calls."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay


def launches(call: Call) -> int | None:
    """Return how many kernels a call launches, or None where the profiler shows none."""
    call()
    torch.cuda.synchronize()
    profiler: Any = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    try:
        with profiler:
            call()
            torch.cuda.synchronize()
    except RuntimeError:
        return None
    return sum(event.device_type.name == "CUDA" for event in profiler.events() or ()) or None
