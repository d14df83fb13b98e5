"""The causal depthwise convolution on a GPU, B=32 C=768 T=768, from the plain source and by hand."""

from __future__ import annotations

import torch

from benchmarks.cuda.compare import Progress, compare
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

B, C, T = 32, 768, 768
OPERATIONS = B * C * T * (T + 1)


def cases(progress: Progress) -> list[Case]:
    """Return the convolution."""
    torch.backends.cudnn.allow_tf32 = False
    w, k = torch.randn(C, T, device="cuda"), torch.randn(B, C, T, device="cuda")
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.timex(w, k, 0.1),
        **registry.contenders("timex", w, k, 0.1, peers=frozenset({"cuda"})),
        "torch FFT": lambda: torch_formulations.timex_fourier(w, k, 0.1),
        "torch conv1d": lambda: torch_formulations.timex(w, k, 0.1),
    }
    title = f"timex B={B} C={C} T={T}"
    case = compare(
        title,
        contenders,
        reference="torch FFT",
        progress=progress,
        target="CUDA C++ with one output a thread",
        at_most=2.34e-3,
        as_fast_as="CUDA C++",
        rounds=20,
    )
    if "brickwork" in case.timings:
        case.notes["brickwork"] = f"{OPERATIONS / case.timings['brickwork'].median / 1e12:.1f} TFLOP/s in float32"
    return [case]
