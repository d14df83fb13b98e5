"""`python -m benchmarks.contractions [FILE]`: contractions in plain loops on this GPU, beside cuBLAS and cuDNN.

Each case is captured in a graph, so that launches cost little, and replayed in turns with the library's. Errors are
those of the norm, against float64. With FILE the record is written there; the table is printed in any case.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import brickwork as bw
from brickwork.bench.record import Case, Record, load_all, record, save_all
from brickwork.bench.timers import Timing, summary
from brickwork.ops import timex

Tensor = torch.Tensor
Call = Callable[[], Tensor]
RECORD = Path(__file__).parent / "results/nvidia-h200/contractions.json"
SAMPLES, SECONDS = 9, 0.01
OURS, THEIRS = "brickwork", "library"


@bw.op("contractions::product")
def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b."""
    assert a.shape[1] == b.shape[0], "the sizes do not fit"
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


@bw.op("contractions::activated")
def activated(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    """Return gelu(a @ b + bias)."""
    assert a.shape[1] == b.shape[0], "the sizes do not fit"
    assert bias.shape[0] == b.shape[1], "the sizes do not fit"
    out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            v = s + bias[j]
            out[i, j] = 0.5 * v * (1.0 + math.erf(v * 0.7071067811865476))
    return out


@bw.op("contractions::dequantised")
def dequantised(a: Tensor, q: Tensor, scale: Tensor) -> Tensor:
    """Return a @ (q * scale).T for whole numbers q of 8 bits."""
    assert a.shape[1] == q.shape[1], "the sizes do not fit"
    assert scale.shape[0] == q.shape[0], "the sizes do not fit"
    out = torch.empty(a.shape[0], q.shape[0], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * (q[j, k] * scale[j])
            out[i, j] = s
    return out


@bw.op("contractions::group_scaled")
def group_scaled(a: Tensor, codes: Tensor, scale: Tensor) -> Tensor:
    """Return a @ w for codes of four bits, two a byte, each 32 terms of which have a scale."""
    assert a.shape[1] == 2 * codes.shape[0], "the sizes do not fit"
    assert scale.shape[0] * 32 == a.shape[1], "the sizes do not fit"
    assert scale.shape[1] == codes.shape[1], "the sizes do not fit"
    out = torch.empty(a.shape[0], codes.shape[1], dtype=a.dtype, device=a.device)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * (((codes[k // 2, j] >> (4 * (k % 2))) & 15) - 8) * scale[k // 32, j]
            out[i, j] = s
    return out


@bw.op("contractions::convolution")
def convolution(x: Tensor, w: Tensor) -> Tensor:
    """Return the convolution of x (N, C, H, W) with w (F, C, R, S), with borders of zeros."""
    N, C, H, W = x.shape
    F, _, R, S = w.shape
    assert w.shape[1] == C, "the channels do not fit"
    out = torch.empty(N, F, H, W, dtype=x.dtype, device=x.device)
    for n in range(N):
        for f in range(F):
            for i in range(H):
                for j in range(W):
                    s = 0.0
                    for c in range(C):
                        for p in range(R):
                            for q in range(S):
                                y = i + p - R // 2
                                z = j + q - S // 2
                                if 0 <= y < H and 0 <= z < W:
                                    s += x[n, c, y, z] * w[f, c, p, q]
                    out[n, f, i, j] = s
    return out


@bw.op("contractions::batched")
def batched(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b for each of a batch."""
    assert a.shape[0] == b.shape[0], "the sizes do not fit"
    assert a.shape[2] == b.shape[1], "the sizes do not fit"
    out = torch.empty(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype, device=a.device)
    for h in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                s = 0.0
                for k in range(a.shape[2]):
                    s += a[h, i, k] * b[h, k, j]
                out[h, i, j] = s
    return out


def drawn(*shape: int, dtype: torch.dtype) -> Tensor:
    """Return normal numbers on the GPU."""
    return torch.randn(*shape, device="cuda").to(dtype)


def cases() -> Iterator[tuple[str, Call, Call, Call]]:
    """Yield titles, plain loops, the library's call, and what is right in float64."""
    bfloat, single = torch.bfloat16, torch.float32
    sizes = [(bfloat, n, n, n) for n in (4096, 2048, 1024, 512, 256)] + [
        (single, n, n, n) for n in (4096, 2048, 1024, 512)
    ]
    sizes += [(bfloat, 256, 8192, 256), (bfloat, 16, 4096, 4096), (bfloat, 100, 1000, 4097), (single, 100, 1000, 4097)]
    for dtype, n, k, m in sizes:
        a, b = drawn(n, k, dtype=dtype), drawn(k, m, dtype=dtype)
        title = f"{_name(dtype)} {n} x {k} x {m}"
        yield title, lambda a=a, b=b: product(a, b), lambda a=a, b=b: a @ b, lambda a=a, b=b: a.double() @ b.double()
    a, b, bias = drawn(4096, 4096, dtype=bfloat), drawn(4096, 4096, dtype=bfloat) / 64, drawn(4096, dtype=bfloat)
    gelu = torch.nn.functional.gelu
    yield (
        "bfloat16 4096, with bias and GELU",
        lambda: activated(a, b, bias),
        lambda: gelu(torch.addmm(bias, a, b)),
        lambda: gelu(a.double() @ b.double() + bias.double()),
    )
    yield from narrow_cases(a, bias)
    for dtype in (bfloat, single):
        x, w = drawn(16, 64, 58, 58, dtype=dtype), drawn(64, 64, 3, 3, dtype=dtype)
        yield (
            f"{_name(dtype)} convolution 3 x 3, 16 x 64 x 58 x 58",
            lambda x=x, w=w: convolution(x, w),
            lambda x=x, w=w: torch.conv2d(x, w, padding=1),
            lambda x=x, w=w: torch.conv2d(x.double(), w.double(), padding=1),
        )
    left, right = drawn(32, 1024, 64, dtype=bfloat), drawn(32, 64, 1024, dtype=bfloat)
    yield (
        "bfloat16 batch 32 x 1024 x 64 x 1024",
        lambda: batched(left, right),
        lambda: left @ right,
        lambda: left.double() @ right.double(),
    )
    w, k = drawn(768, 768, dtype=bfloat), drawn(32, 768, 768, dtype=bfloat)
    place = torch.arange(768, device="cuda")
    index = (767 - place[:, None] + place[None]).clamp(0, 767)
    table = torch.where(place[None] <= place[:, None], w.float()[:, index], 0.0)
    rows = k.transpose(0, 1).contiguous().float()
    yield (
        "bfloat16 timex 32 x 768 x 768 (library: a float32 product with a table)",
        lambda: timex(w, k, 0.5),
        lambda: (rows @ table.mT).transpose(0, 1) + 0.5,
        lambda: (rows.double() @ table.double().mT).transpose(0, 1) + 0.5,
    )


def narrow_cases(a: Tensor, scale: Tensor) -> Iterator[tuple[str, Call, Call, Call]]:
    """Yield the same for weights of few bits, which the library turns into elements before."""
    q = torch.randint(-100, 100, (4096, 4096), device="cuda", dtype=torch.int8)
    yield (
        "bfloat16 x int8 4096, scaled",
        lambda: dequantised(a, q, scale),
        lambda: a @ (q.to(a.dtype) * scale[:, None]).T,
        lambda: a.double() @ (q.double() * scale.double()[:, None]).T,
    )
    codes = torch.randint(0, 256, (2048, 4096), device="cuda", dtype=torch.uint8)
    scales = drawn(128, 4096, dtype=a.dtype)

    def weights(dtype: torch.dtype) -> Tensor:
        whole = torch.stack([codes & 15, codes >> 4], 1).reshape(4096, 4096).to(dtype) - 8
        return whole * scales.to(dtype).repeat_interleave(32, 0)

    for rows in (1, 16, 4096):
        some = a[:rows]
        yield (
            f"bfloat16 x int4, {rows} x 4096 x 4096, a scale for 32 terms",
            lambda some=some: group_scaled(some, codes, scales),
            lambda some=some: some @ weights(some.dtype),
            lambda some=some: some.double() @ weights(torch.float64),
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def measured() -> Record:
    """Measure all cases on this GPU."""
    found: list[Case] = []
    for title, ours, theirs, exact in cases():
        calls = {OURS: ours, THEIRS: theirs}
        right = exact()
        notes = {name: f"error {_error(call(), right):.2g}" for name, call in calls.items()}
        found.append(Case(title=title, timings=_timed(calls), reference=THEIRS, notes=notes, device="cuda"))
    return record("contractions", found)


def _error(found: Tensor, right: Tensor) -> float:
    parts = (found.double() - right).square().sum(), right.square().sum()
    return math.sqrt(float(parts[0]) / float(parts[1]))


def _timed(calls: dict[str, Call]) -> dict[str, Timing]:
    """Return how long calls take, as replays of graphs in turns."""
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
    for name, call in calls.items():
        call()
        count = max(3, min(50, int(SECONDS / max(_seconds(call), 1e-7))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
        graphs[name] = graph, count
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(SAMPLES):
        for name, (graph, count) in graphs.items():
            samples[name].append(_seconds(graph.replay) / count)
    return {name: summary(values, graphs[name][1]) for name, values in samples.items()}


def _seconds(call: Callable[[], object]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def markdown(result: Record) -> str:
    """Return a record as a table."""
    lines = ["| | brickwork, us | library, us | ratio | errors |", "|---|---:|---:|---:|---|"]
    for case in result.cases:
        ours, theirs = (1e6 * case.timings[name].median for name in (OURS, THEIRS))
        errors = ", ".join(case.notes[name].removeprefix("error ") for name in (OURS, THEIRS))
        lines.append(f"| {case.title} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {errors} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, write the record where a file is named, and print the table; `table` prints that of the record."""
    arguments = sys.argv[1:]
    if arguments == ["table"]:
        print(markdown(load_all(RECORD)[0]))
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    result = measured()
    if arguments:
        save_all([result], Path(arguments[0]))
    print(markdown(result))


if __name__ == "__main__":
    main()
