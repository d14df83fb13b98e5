"""`PYTHONPATH=tests compute-sanitizer --tool memcheck|racecheck --error-exitcode 9 python -m tests.cuda.sanitize`.

Every kernel, small.

Runs each operator of the suite and each ready one on the GPU on few elements, aligned and not, and compares with the
CPU. One kernel that differs or fails does not hide the others; the process ends with 1 if any did.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import brickwork as bw
from brickwork import ops
from brickwork.config import config
from brickwork.transform.schedule import register_tile
from support.causal import product
from support.gpu import moved, results_of
from support.gpu_operators import heat, scatter, scatter_add
from support.kernels import SUITE
from support.tensors import beside, copy

Call = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]
SIZES = (7, 300)


def calls() -> Iterator[Call]:
    """Yield names, operators and arguments on the CPU."""
    for name, case in sorted(SUITE.items()):
        operator = bw.op(f"sanitize::{name}")(case.function)
        for size in SIZES:
            arguments = case.arguments(size)
            named = {"key": 5} if case.draws else {}
            if any(isinstance(item, torch.Tensor) for item in arguments):
                yield f"{name} of {size}", operator, arguments, named
                others = tuple(beside(item) if isinstance(item, torch.Tensor) else item for item in arguments)
                yield f"{name} of {size}, not aligned", operator, others, named
    index = torch.arange(300) % 100
    yield "scatter", scatter, (torch.zeros(300), torch.randperm(300), torch.randn(300)), {}
    yield "scatter_add", scatter_add, (torch.zeros(100, dtype=torch.int64), index, torch.arange(300)), {}
    yield "heat", heat, (torch.randn(300), 3), {}
    yield "brick_pad", ops.brick_pad, (torch.rand(4, 6), 33, 64, [3, 2], [6, 0], [2, 4]), {}
    yield "timex", ops.timex, (torch.randn(3, 40), torch.randn(2, 3, 40), 0.1), {}
    yield "sin", ops.sin, (torch.randn(1003),), {}
    yield "sample_normal", ops.sample_normal, (torch.zeros(5), torch.ones(5), 130), {"key": 3}
    for height, width in ((1000, 1024), (1003, 1001)):
        yield "brick_pad, large", ops.brick_pad, (torch.rand(48, 32), height, width, [64, 32], [32, 0], [10, 48]), {}
    for length in (768, 767):
        yield "timex, large", ops.timex, (torch.randn(8, length), torch.randn(4, 8, length), 0.1), {}
    yield "timex, in tiles", ops.timex, (torch.randn(3, 48), torch.randn(5, 3, 48), 0.1), {}
    yield "product, in tiles", bw.op("sanitize::tiled")(product), (torch.randn(6, 48), torch.randn(48, 32)), {}
    for count in (1024, 1023):
        yield "sample_normal, large", ops.sample_normal, (torch.zeros(200), torch.ones(200), count), {"key": 3}


def difference(call: Call) -> str:
    """Return what is wrong with a call on the GPU, or nothing."""
    _, operator, arguments, named = call
    on_cpu = tuple(map(copy, arguments))
    on_gpu = moved(on_cpu, "cuda")
    try:
        found = results_of(operator(*on_gpu, **named), on_gpu)
        bw.check_errors()
        expected = results_of(operator(*on_cpu, **named), on_cpu)
        for left, right in zip(found, expected, strict=True):
            torch.testing.assert_close(left, right, rtol=2e-3, atol=2e-3, equal_nan=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def main() -> int:
    """Run all calls; nests have register tiles however few iterations they have."""
    register_tile.busy_threads = lambda _: 1
    with tempfile.TemporaryDirectory() as folder, config.override(cache_dir=folder):
        return run()


def run() -> int:
    """Return 0 if nothing was wrong."""
    start, wrong, count = time.perf_counter(), 0, 0
    for call in calls():
        said = difference(call)
        count += 1
        if said:
            wrong += 1
            print(f"{call[0]}: {said}", flush=True)
    print(f"{count} calls, {wrong} wrong, {time.perf_counter() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
