"""The ready operators on an NVIDIA GPU beside the CPU: the same numbers, and the times of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import brickwork as bw
from brickwork import ops
from brickwork.bench.device_timers import measure as measure_device
from brickwork.bench.timers import measure

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one operator: the largest difference between the results, and seconds of a call on each."""

    name: str
    elements: int
    apart: float
    cpu: float
    gpu: float


def why_not() -> str:
    """Return why no GPU can be used, or nothing where one can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"this PyTorch, {torch.__version__}, is built without CUDA"
    return "PyTorch finds no NVIDIA GPU, or no driver for one"


def named() -> str:
    """Return the name of the GPU."""
    return torch.cuda.get_device_name()


def rows() -> list[Row]:
    """Run every ready operator on the same arguments on the CPU and on the GPU."""
    mu, sigma = torch.linspace(-3, 3, 2500), torch.linspace(0.5, 2, 2500)
    calls: dict[str, tuple[Callable[..., torch.Tensor], tuple[Any, ...], dict[str, int]]] = {
        "brick_pad": (ops.brick_pad, (torch.rand(48, 32), 4144, 8224, [4096, 2048], [32, 0], [10, 48]), {}),
        "timex": (ops.timex, (torch.randn(64, 512), torch.randn(8, 64, 512), 0.1), {}),
        "sin": (ops.sin, (torch.randn(1 << 24),), {}),
        "sample_normal": (ops.sample_normal, (mu, sigma, 1024), {"key": 7}),
    }
    return [_row(name, *each) for name, each in calls.items()]


def _row(name: str, operator: Callable[..., torch.Tensor], arguments: tuple[Any, ...], named: dict[str, int]) -> Row:
    there = tuple(item.cuda() if isinstance(item, torch.Tensor) else item for item in arguments)
    expected, found = operator(*arguments, **named), operator(*there, **named)
    bw.check_errors()
    apart = (found.cpu() - expected).abs().max().item()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-3)
    cpu = measure({name: lambda: operator(*arguments, **named)}, rounds=ROUNDS)[name].median
    gpu = measure_device({name: lambda: operator(*there, **named)}).timings[name].median
    return Row(name, expected.numel(), apart, cpu, gpu)
