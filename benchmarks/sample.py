"""Samples of d normal distributions, 1024 of each: independent draws, and the cheap variant that shares one z.

What shares one z draws no sample of independent distributions: its rows are copies of each other. It is compared with
what shares one z, too, and z is given, so that all answer the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

import brickwork as bw
from benchmarks.lineup import lineup, paced, reference
from benchmarks.targets import Target, reaching
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

N = 1024
COUNTS = {"cpu": (10, 100, 1000, 2500, 5000), "cuda": (10, 100, 1000, 2500, 5000, 100_000)}
PRECISE = {5000: Target(17e-6), 100_000: Target(230e-6)}
FAST = {5000: Target(12e-6), 100_000: Target(160e-6)}
"""What was set for a GPU, in IEEE arithmetic and with `fast_math`."""


@bw.op("brickwork_benchmarks::sample_shared")
def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> Tensor:
    """Scale and shift given deviates: mu (d,), sigma (d,), z (n,) -> (d, n)."""
    out = mu.new_empty((mu.shape[0], z.shape[0]))
    for i in range(mu.shape[0]):
        for j in range(z.shape[0]):
            out[i, j] = mu[i] + sigma[i] * z[j]
    return out


Contenders = Callable[[int], dict[str, Call]]
sample_normal_fast = bw.op("brickwork_benchmarks::sample_normal_fast", fast_math=True)(ops.sample_normal.__wrapped__)


def tables(run: Run) -> Parts:
    """Return both kinds of samples, as times and as speed-ups over torch.compile; on a GPU with `fast_math`, too."""
    apart, alike = functools.cache(lambda: independent(run)), functools.cache(lambda: shared(run))
    parts: Parts = {
        "independent": apart,
        "independent-speed-up": lambda: apart().measured_in("speed-up"),
        "shared": alike,
        "shared-speed-up": lambda: alike().measured_in("speed-up"),
    }
    return {**parts, "fast-math": lambda: fast_math(run)} if run.device == "cuda" else parts


def independent(run: Run) -> bench.Table:
    """Measure draws that are independent of each other."""

    def contenders(d: int) -> dict[str, Call]:
        mu, sigma = _distributions(run, d)
        ours: dict[str, Call] = {"brickwork": lambda: ops.sample_normal(mu, sigma, N)}
        calls = lineup(run, "sample", mu, sigma, N, ours=ours)
        alone: dict[str, Call] = {"torch.randn alone": lambda: torch.randn(d, N, device=run.device)}
        return {**{label: call for label, call in calls.items() if "fast" not in label}, **alone}

    table = _measured(run, contenders, "independent", "(2 + N) * 4 * d", baseline=reference(run))
    if run.device == "cpu":
        return reaching(table, Target(1 / 3, "torch"), at=(2500,))
    return _reaching_each(table, PRECISE)


def fast_math(run: Run) -> bench.Table:
    """Measure independent draws with the fast functions of the hardware, beside those of IEEE accuracy."""

    def contenders(d: int) -> dict[str, Call]:
        mu, sigma = _distributions(run, d)
        ours: dict[str, Call] = {
            "brickwork": lambda: sample_normal_fast(mu, sigma, N),
            "brickwork, IEEE accuracy": lambda: ops.sample_normal(mu, sigma, N),
        }
        calls = lineup(run, "sample", mu, sigma, N, ours=ours)
        return {label: call for label, call in calls.items() if label in ours or "fast" in label}

    table = _measured(run, contenders, "independent, fast_math", "(2 + N) * 4 * d")
    return _reaching_each(_with_errors(run, table), FAST)


def shared(run: Run) -> bench.Table:
    """Measure samples whose rows share one given z."""

    def contenders(d: int) -> dict[str, Call]:
        mu, sigma = _distributions(run, d)
        z = torch.randn(N, device=run.device)
        ours: dict[str, Call] = {"brickwork": lambda: sample_shared(mu, sigma, z)}
        return lineup(run, "sample_shared", mu, sigma, z, ours=ours)

    return _measured(
        run, contenders, "one z shared, and given", "(2 + N) * 4 * d + 4 * N", baseline=reference(run), check=True
    )


def _measured(
    run: Run, contenders: Contenders, kind: str, moved: str, *, baseline: str = "", check: bool = False
) -> bench.Table:
    return bench.compare(
        contenders,
        run.pick(COUNTS[run.device], (10,)),
        "us",
        x_name="d",
        title=f"{N} samples of each of d normal distributions, {kind}",
        moved=moved.replace("N", str(N)),
        baseline=baseline,
        x_log=True,
        y_log=True,
        **paced(run, check=check),
    )


def _reaching_each(table: bench.Table, targets: dict[int, Target]) -> bench.Table:
    return functools.reduce(lambda found, d: reaching(found, targets[d], at=(d,)), targets, table)


def _with_errors(run: Run, table: bench.Table) -> bench.Table:
    """Note how far the fast samples are from the accurate ones of the same key, in units of sigma."""
    cases = [
        replace(case, notes={**case.notes, "brickwork": _error(run, int(d))})
        for d, case in zip(table.x_values, table.record.cases, strict=True)
    ]
    return replace(table, record=replace(table.record, cases=tuple(cases)))


def _error(run: Run, d: int) -> str:
    mu, sigma = _distributions(run, d)
    fast, accurate = sample_normal_fast(mu, sigma, N, key=1), ops.sample_normal(mu, sigma, N, key=1)
    apart = ((fast - accurate) / sigma[:, None]).abs()
    return f"at most {apart.max().item():.1e} sigma from IEEE accuracy, {apart.mean().item():.1e} on average"


def _distributions(run: Run, d: int) -> tuple[Tensor, Tensor]:
    return torch.randn(d, device=run.device), torch.rand(d, device=run.device) + 0.5
