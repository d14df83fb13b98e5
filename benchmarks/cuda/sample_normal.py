"""d normal distributions on a GPU, 1024 independent samples of each, in IEEE arithmetic and with `fast_math`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

import brickwork as bw
from benchmarks.cuda.compare import Progress, compare, gathered
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

N = 1024
TARGETS = {5000: (17e-6, 12e-6), 100_000: (230e-6, 160e-6)}
"""Seconds in IEEE arithmetic and with `fast_math`."""
fast_sample_normal = bw.op("brickwork_benchmarks::sample_normal_fast", fast_math=True)(ops.sample_normal.__wrapped__)


def cases(progress: Progress) -> list[Case]:
    """Return the sampling for each number of distributions, twice."""
    makers: dict[str, Callable[[], Case]] = {}
    for d in (100, 1000, 5000, 100_000):
        makers[f"sample_normal d={d} n={N}"] = functools.partial(_precise, d, progress)
        makers[f"sample_normal d={d} n={N}, fast_math"] = functools.partial(_fast, d, progress)
    return gathered(makers)


def _distributions(d: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(d, device="cuda"), torch.rand(d, device="cuda") + 0.5


def _precise(d: int, progress: Progress) -> Case:
    mu, sigma = _distributions(d)
    compiled = torch.compile(torch_formulations.sample_normal, dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.sample_normal(mu, sigma, N),
        "torch": lambda: torch_formulations.sample_normal(mu, sigma, N),
        "torch.randn alone": lambda: torch.randn(d, N, device="cuda"),
        "torch.compile": lambda: compiled(mu, sigma, N),
        **registry.contenders("sample", mu, sigma, N, peers=frozenset({"cuda", "triton"})),
    }
    return _case(f"sample_normal d={d} n={N}", contenders, TARGETS.get(d, (0.0, 0.0))[0], d, progress)


def _fast(d: int, progress: Progress) -> Case:
    mu, sigma = _distributions(d)
    contenders: dict[str, Call] = {
        "brickwork": lambda: fast_sample_normal(mu, sigma, N),
        **registry.contenders("sample", mu, sigma, N, peers=frozenset({"cuda"})),
    }
    case = _case(f"sample_normal d={d} n={N}, fast_math", contenders, TARGETS.get(d, (0.0, 0.0))[1], d, progress)
    case.notes["brickwork"] = _error(mu, sigma)
    return case


def _case(title: str, contenders: dict[str, Call], limit: float, d: int, progress: Progress) -> Case:
    target = f"{limit * 1e6:.0f} us" if limit else ""
    moved = 4 * d * N
    reference = "torch.randn alone" if "torch.randn alone" in contenders else "CUDA C++, tuned, fast math"
    return compare(
        title,
        contenders,
        reference=reference,
        progress=progress,
        target=target,
        at_most=limit,
        moved=moved,
        same=False,
    )


def _error(mu: torch.Tensor, sigma: torch.Tensor) -> str:
    """Say how far the quick samples are from the precise ones of the same key, in units of sigma."""
    quick, precise = fast_sample_normal(mu, sigma, N, key=1), ops.sample_normal(mu, sigma, N, key=1)
    apart = ((quick - precise) / sigma[:, None]).abs()
    return f"at most {apart.max().item():.1e} sigma from IEEE arithmetic, {apart.mean().item():.1e} on average"
