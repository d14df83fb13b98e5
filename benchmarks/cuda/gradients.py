"""Both gradients of the causal depthwise convolution on a GPU, B=32 C=768 T=768, derived and by hand."""

from __future__ import annotations

import torch

from benchmarks.cuda.compare import Progress, compare
from benchmarks.cuda.timex import OPERATIONS, B, C, T
from benchmarks.gradients import both
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call


def cases(progress: Progress) -> list[Case]:
    """Return the gradients."""
    torch.backends.cudnn.allow_tf32 = False
    w, k = torch.randn(C, T, device="cuda"), torch.randn(B, C, T, device="cuda")
    gradient = torch.randn(B, C, T, device="cuda")
    contenders: dict[str, Call] = {
        "brickwork": both(ops.timex, w, k, gradient),
        **registry.contenders("timex_backward", w, k, gradient, peers=frozenset({"cuda"})),
        "torch FFT": both(torch_formulations.timex_fourier, w, k, gradient),
        "torch conv1d": both(torch_formulations.timex, w, k, gradient),
    }
    case = compare(
        f"timex backward, both gradients, B={B} C={C} T={T}",
        contenders,
        reference="torch FFT",
        progress=progress,
        target="CUDA C++ with one element a thread",
        at_most=4.86e-3,
        as_fast_as="CUDA C++",
        rounds=20,
    )
    if "brickwork" in case.timings:
        rate = 2 * OPERATIONS / case.timings["brickwork"].median / 1e12
        case.notes["brickwork"] = f"{rate:.1f} TFLOP/s in float32"
    return [case]
