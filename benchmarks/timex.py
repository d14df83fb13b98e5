"""The causal depthwise convolution, B=8 C=64 T=512, against torch's convolution, its Fourier transform and peers."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare, compiled
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call, measure

B, C, T = 8, 64, 512
OPERATIONS = B * C * T * (T + 1)


def fma_peak(progress: Progress) -> float:
    """Return the machine's rate of fused multiply-adds, in GFLOP/s, as torch's matrix product reaches it."""
    size = 1536
    a, b = torch.randn(size, size), torch.randn(size, size)
    timing = measure({"matrix product": lambda: a @ b}, rounds=7, progress=progress)["matrix product"]
    return 2 * size**3 / timing.least / 1e9


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the convolution from the plain source, and the spelling with a padded k."""
    w, k = torch.randn(C, T), torch.randn(B, C, T)
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.timex(w, k, 0.1),
        "torch FFT": lambda: torch_formulations.timex_fourier(w, k, 0.1),
        "torch conv1d": lambda: torch_formulations.timex(w, k, 0.1),
    }
    fast = compiled(torch_formulations.timex)
    if fast is not None:
        contenders["torch.compile"] = lambda: fast(w, k, 0.1)
    contenders |= registry.contenders("timex", w, k, 0.1, peers=frozenset({"numba", "taichi", "quadrants"}))
    plain = compare(
        f"timex B={B} C={C} T={T}",
        contenders,
        reference="torch FFT",
        target="1.2 x torch FFT, 1/4 of Taichi, 1/8 of Numba",
        progress=progress,
        rounds=rounds,
    )
    rate = OPERATIONS / plain.timings["brickwork"].median / 1e9
    share = 100 * rate / fma_peak(progress)
    plain.notes["brickwork"] = f"{rate:.0f} GFLOP/s in float32, {share:.0f} % of what torch's matrix product reaches"
    padded, weights = torch.nn.functional.pad(k, (T - 1, 0)), w.unsqueeze(1)
    wide: dict[str, Call] = {
        "brickwork": lambda: ops.timex_padded(weights, padded, 0.1),
        "torch conv1d": lambda: torch_formulations.timex_padded(weights, padded, 0.1),
    }
    title = f"timex with padded k, B={B} C={C} T={T}"
    return [plain, compare(title, wide, reference="torch conv1d", progress=progress, rounds=rounds)]
