"""What a call does besides taking time: kernels that it launches, memory that it allocates.

The profiler is asked, after which calls may be slower for the rest of the process: count last.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from brickwork.bench.timers import Call


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


def peak_memory(call: Call, device: str) -> int:
    """Return how many bytes a call allocates at most at one time, its results included, beyond what stood before."""
    call()
    return _on_a_gpu(call) if device == "cuda" else _on_the_cpu(call)


def _on_a_gpu(call: Call) -> int:
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    torch.cuda.synchronize()
    found = torch.cuda.max_memory_allocated() - before
    del result
    return max(0, found)


def _on_the_cpu(call: Call) -> int:
    profiler: Any = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    with profiler:
        result = call()
    del result
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return max(accumulate(changes, initial=0))
