"""How many kernels a call launches, as the profiler sees it. Runs last: the profiler makes later launches slower."""

from __future__ import annotations

import torch

from benchmarks.cuda.brick_pad import HEIGHT, LATTICE, WIDTH
from benchmarks.cuda.compare import Progress, compare
from brickwork import ops
from brickwork.bench.counters import launches
from brickwork.bench.record import Case
from brickwork.bench.timers import Call


def cases(progress: Progress) -> list[Case]:
    """Return the padding and the samples once more, with the number of launches noted."""
    tile = torch.rand(48, 32, device="cuda")
    mu, sigma = torch.randn(5000, device="cuda"), torch.rand(5000, device="cuda")
    calls: dict[str, Call] = {
        "brick_pad": lambda: ops.brick_pad(tile, HEIGHT, WIDTH, *LATTICE),
        "sample_normal": lambda: ops.sample_normal(mu, sigma, 1024),
    }
    return [_case(name, call, progress) for name, call in calls.items()]


def _case(name: str, call: Call, progress: Progress) -> Case:
    case = compare(
        f"launches of {name}", {"brickwork": call}, reference="brickwork", progress=progress, same=False, rounds=5
    )
    count = launches(call)
    case.notes["brickwork"] = "not known: the profiler shows no kernels" if count is None else f"{count}"
    return case
