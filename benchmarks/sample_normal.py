"""2500 normal distributions, 1024 samples of each, against torch's generator."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare, compiled
from benchmarks.peers import torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

D, N = 2500, 1024


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the sampling."""
    mu, sigma = torch.randn(D), torch.rand(D) + 0.5
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.sample_normal(mu, sigma, N),
        "torch": lambda: torch_formulations.sample_normal(mu, sigma, N),
        "torch.randn alone": lambda: torch.randn(D, N),
    }
    fast = compiled(torch_formulations.sample_normal)
    if fast is not None:
        contenders["torch.compile"] = lambda: fast(mu, sigma, N)
    title = f"sample_normal d={D} n={N}"
    return [compare(title, contenders, reference="torch", target="1/3 of torch", progress=progress, rounds=rounds)]
