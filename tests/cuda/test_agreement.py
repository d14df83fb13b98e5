"""Every kernel of the suite and generated programs give on the GPU what they give on the CPU.

The CPU's results are those of the reference (`tests/cpu/test_agreement.py`). `BRICKWORK_GPU_PROGRAMS` sets how many
generated programs are tried.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.frontend.definition import define
from support.fuzz.check import FoundError
from support.fuzz.check_cuda import examine_on_cuda
from support.fuzz.generate import case_of_seed
from support.gpu import GPU, moved, results_of
from support.kernels import SUITE, Case
from support.tensors import LAYOUTS, beside, copy

pytestmark = GPU
KEY = 123456789012345
TOLERANCES = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 2e-5, torch.float64: 1e-12}
"""Relative to the size of the numbers: each machine has functions of its own, and joins sums in an order of its own."""
SIZES = (0, 1, 7, 1025)
PROGRAMS = int(os.environ.get("BRICKWORK_GPU_PROGRAMS", "200"))
BATCH = 10
NAMES = sorted(
    name for name, case in SUITE.items() if any(isinstance(item, torch.Tensor) for item in case.arguments(2))
)
"""Kernels with a tensor among their arguments: without one, results are the CPU's."""
EVERY_LAYOUT = {**LAYOUTS, "beside": beside}
"""On GPUs code for memory that is not aligned is code of its own."""


def arguments_of(case: Case, size: int, layout: str) -> tuple[Any, ...]:
    definition = define(case.function)
    change = EVERY_LAYOUT[layout]

    def laid_out(name: str, value: Any) -> Any:
        written_once = not (layout == "expanded" and name in definition.mutated)
        return change(value) if isinstance(value, torch.Tensor) and written_once else value

    names = [parameter.name for parameter in definition.parameters]
    return tuple(laid_out(name, value) for name, value in zip(names, case.arguments(size), strict=True))


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor], case: Case, what: str) -> None:
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        tolerance = 0.0 if case.exact else TOLERANCES.get(case.computed or left.dtype, 0.0)
        torch.testing.assert_close(
            left, right, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda text: f"{what}: {text}"
        )


@pytest.mark.parametrize("layout", EVERY_LAYOUT)
@pytest.mark.parametrize("name", NAMES)
def test_the_suite_agrees_with_the_cpu(name: str, layout: str) -> None:
    case = SUITE[name]
    operator = bw.op(f"suite_cuda_{layout}::{name}")(case.function)
    named = {"key": KEY} if case.draws else {}
    for size in SIZES:
        if size < case.least:
            continue
        on_cpu = tuple(map(copy, arguments_of(case, size, layout)))
        on_gpu = moved(on_cpu, "cuda")
        returned = operator(*on_gpu, **named)
        results = returned if isinstance(returned, tuple) else (returned,)
        assert all(item is None or item.is_cuda for item in results)
        bw.check_errors()
        found = results_of(returned, on_gpu)
        assert_close(found, results_of(operator(*on_cpu, **named), on_cpu), case, f"size {size}")


@pytest.mark.parametrize("name", NAMES)
def test_the_suite_gives_the_same_bits_each_time(name: str) -> None:
    case = SUITE[name]
    operator = bw.op(f"suite_cuda_again::{name}")(case.function)
    named = {"key": KEY} if case.draws else {}
    runs: list[list[torch.Tensor]] = []
    for _ in range(3):
        arguments = moved(case.arguments(500), "cuda")
        runs.append(results_of(operator(*arguments, **named), arguments))
    for other in runs[1:]:
        for left, right in zip(runs[0], other, strict=True):
            torch.testing.assert_close(left, right, rtol=0.0, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("batch", range((PROGRAMS + BATCH - 1) // BATCH))
def test_generated_programs_agree_with_python(batch: int, tmp_path: Any) -> None:
    wrong: list[str] = []
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        try:
            examine_on_cuda(case_of_seed(seed), tmp_path)
        except (FoundError, bw.BrickworkError, RuntimeError) as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)
