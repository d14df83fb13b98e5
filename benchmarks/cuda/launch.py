"""What a call costs the host: 1024 floats on a GPU, allocation included; and in a graph, the device."""

from __future__ import annotations

import dataclasses

import torch

from benchmarks.cuda.compare import Progress, compare, gathered
from benchmarks.peers import registry
from brickwork import ops
from brickwork.bench.device_timers import replayed
from brickwork.bench.record import Case
from brickwork.bench.timers import Call, measure, of_each

COUNT = 1024
REPLAYED = 50


def cases(progress: Progress) -> list[Case]:
    """Return the host's time of a call, and the device's time of one in a graph."""
    x = torch.randn(COUNT, device="cuda")
    return gathered(
        {
            f"host time of a call with {COUNT} floats": lambda: _host(x, progress),
            f"a call with {COUNT} floats in a replayed graph": lambda: _device(x, progress),
        }
    )


def _host(x: torch.Tensor, progress: Progress) -> Case:
    progress("host time of a call")
    packed = torch.ops.brickwork.sin
    compiled = torch.compile(torch.sin, dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.sin(x),
        "brickwork, torch.ops": lambda: packed(x),
        "torch.sin": lambda: torch.sin(x),
        "torch.compile": lambda: compiled(x),
        **registry.contenders("sin", x, torch.empty_like(x), peers=frozenset({"cuda", "triton"})),
    }
    running: dict[str, Call] = {}
    notes: dict[str, str] = {}
    for name, call in contenders.items():
        try:
            call()
            running[name] = call
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            notes[name] = f"failed: {error}".splitlines()[0]
    torch.cuda.synchronize()
    timings = measure(running, rounds=25, warm_up=0.1, sample=0.003)
    torch.cuda.synchronize()
    return Case(
        title=f"host time of a call with {COUNT} floats",
        timings=timings,
        reference="torch.sin",
        target="torch.sin",
        notes=notes,
        device="cuda",
        at_most=timings["torch.sin"].median,
    )


def _device(x: torch.Tensor, progress: Progress) -> Case:
    contenders: dict[str, Call] = {
        "brickwork": replayed(lambda: ops.sin(x), REPLAYED),
        "torch.sin": replayed(lambda: torch.sin(x), REPLAYED),
    }
    case = compare(
        f"a call with {COUNT} floats in a replayed graph",
        contenders,
        reference="torch.sin",
        progress=progress,
        same=False,
    )
    return dataclasses.replace(case, timings={name: of_each(timing, REPLAYED) for name, timing in case.timings.items()})
