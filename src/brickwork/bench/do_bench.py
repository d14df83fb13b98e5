"""`do_bench`: the time of one function, with the arguments and the answer of Triton's function of that name.

On a GPU it is the device's time between two events, with the level-two cache emptied before each call; on a CPU the
time of the clock. `bench.compare` measures several functions in turns, and says more.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import torch

from brickwork.bench.device_timers import FLUSHED
from brickwork.bench.timers import once

Mode: TypeAlias = Literal["min", "max", "mean", "median", "all"]
_MODES: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
}
_ESTIMATED = 5
"""Calls that the number of calls is estimated from, as in Triton."""


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[torch.Tensor] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: Mode = "mean",
    *,
    device: str | None = None,
) -> float | list[float]:
    """Return the milliseconds of a call of `fn`.

    Args:
        fn: The function.
        warmup: Milliseconds to call it before.
        rep: Milliseconds to measure it for.
        grad_to_none: Tensors whose gradients are dropped before each call, so that `backward` does not add to them.
        quantiles: Return these quantiles instead: `[0.5, 0.2, 0.8]`; of a single one the number.
        return_mode: "min", "max", "mean" or "median" of all calls, or "all" for a list of them.
        device: "cuda" or "cpu"; the GPU where this process has used one.

    Raises:
        ValueError: `return_mode` or `device` is none of these.
    """
    if return_mode not in (*_MODES, "all"):
        raise ValueError(f"return_mode is one of {', '.join(_MODES)} and all, not {return_mode!r}")
    fn()
    kind = torch.device(device).type if device else "cuda" if torch.cuda.is_initialized() else "cpu"
    if kind not in {"cpu", "cuda"}:
        raise ValueError(f"functions are timed on cpu and cuda, not on {kind}")
    times = (_on_gpu if kind == "cuda" else _on_cpu)(fn, warmup, rep, tuple(grad_to_none or ()))
    if quantiles is not None:
        found = [float(each) for each in torch.tensor(times).quantile(torch.tensor(quantiles, dtype=torch.float32))]
        return found[0] if len(found) == 1 else found
    return times if return_mode == "all" else _MODES[return_mode](times)


def _on_cpu(fn: Callable[[], object], warmup: float, rep: float, dropped: tuple[torch.Tensor, ...]) -> list[float]:
    estimate = max(1e3 * once(fn, _ESTIMATED), 1e-6)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    times: list[float] = []
    for _ in range(max(1, int(rep / estimate))):
        _drop(dropped)
        start = time.perf_counter()
        fn()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def _on_gpu(fn: Callable[[], object], warmup: float, rep: float, dropped: tuple[torch.Tensor, ...]) -> list[float]:
    buffer = torch.empty(FLUSHED // 4, dtype=torch.int32, device="cuda")

    def timed(count: int) -> list[float]:
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        for start, end in pairs:
            _drop(dropped)
            buffer.zero_()
            start.record()
            fn()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    estimate = max(statistics.fmean(timed(_ESTIMATED)), 1e-3)
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    return timed(max(1, int(rep / estimate)))


def _drop(tensors: tuple[torch.Tensor, ...]) -> None:
    for tensor in tensors:
        tensor.grad = None
