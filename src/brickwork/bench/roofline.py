"""What the machine can do at most, measured: bytes copied, bytes filled, and multiplications with additions.

Each is measured in the run that asks, with the protocol of that run, since a machine is not always equally fast; the
fastest sample counts. A call cannot take less
time than its bytes take at the faster of copy and fill, or its operations at the third: its roof.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from brickwork.bench.device_timers import measure as measure_device
from brickwork.bench.timers import Call, measure
from brickwork.codegen.rounding import Rounding
from brickwork.op import Op

_BYTES = {"cpu": 1 << 27, "cuda": 1 << 28}
_ELEMENTS = {"cpu": 1 << 15, "cuda": 1 << 21}
_STEPS = 512
_CHAINS = 8


def peaks(device: str) -> dict[str, float]:
    """Measure bytes a second of copy (read and written) and fill, and float32 operations a second of FMA."""
    count = _BYTES[device] // 4
    source, target = torch.zeros(count, device=device), torch.zeros(count, device=device)
    numbers = torch.zeros(_ELEMENTS[device], device=device)
    chains = _chains()
    calls: dict[str, Call] = {
        "copy": lambda: target.copy_(source),
        "fill": lambda: target.fill_(1),
        "fma": lambda: chains(numbers, 0.5),
    }
    work = {"copy": 8.0 * count, "fill": 4.0 * count, "fma": 2.0 * _CHAINS * _STEPS * numbers.numel()}
    timings = measure(calls, rounds=9, warm_up=0.05) if device == "cpu" else measure_device(calls, budget=1.0).timings
    return {name: work[name] / timing.least for name, timing in timings.items()}


def roof(moved: float, flops: float, found: dict[str, float]) -> float:
    """Return the seconds that a call takes at least on a machine with these peaks; 0 where nothing is known."""
    bandwidth = max(found.get("copy", 0.0), found.get("fill", 0.0))
    return max(moved / bandwidth if bandwidth else 0.0, flops / found["fma"] if found.get("fma") else 0.0)


@functools.cache
def _chains() -> Any:
    """Return the operator whose every element goes through eight independent chains of FMA."""
    return Op("brickwork_bench::fma_chains", _fma_chains, rounding=Rounding(fast_math=True))


def _fma_chains(out: torch.Tensor, factor: float) -> None:
    """Multiply and add 8 times 512 times an element."""
    for i in range(out.shape[0]):
        a = out[i]
        b = a + 1.0
        c = a + 2.0
        d = a + 3.0
        e = a + 4.0
        f = a + 5.0
        g = a + 6.0
        h = a + 7.0
        for _ in range(512):
            a = a * factor + 1.0
            b = b * factor + 1.0
            c = c * factor + 1.0
            d = d * factor + 1.0
            e = e * factor + 1.0
            f = f * factor + 1.0
            g = g * factor + 1.0
            h = h * factor + 1.0
        out[i] = a + b + c + d + e + f + g + h
