"""How the ready operators scale: with threads, with the size of the work, and over two GPUs of one process.

With size: the time for a million elements, while their number grows by 10,000; where it stays the same, the cost of an
element does. Over two GPUs: the same work on one, and a half on each, on streams of one thread of one process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.lineup import float32_convolutions, paced
from benchmarks.peers import torch_formulations
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.record import Case
from brickwork.bench.timers import Call, Timing, measure

SIZES = {
    "cpu": (1_024, 10_240, 102_400, 1_024_000, 10_240_000),
    "cuda": (10_240, 102_400, 1_024_000, 10_240_000, 102_400_000),
}
LENGTH = 64
"""Of the convolution that grows by rows: the cost of an element is that of its sum, and stays the same."""
MILLION = 1_000_000
PARTS = 2


def tables(run: Run) -> Parts:
    """Return the tables that the machine allows: threads on a CPU, two GPUs where there are two."""
    parts: Parts = {"size-sin": lambda: size_of_sin(run), "size-timex": lambda: size_of_timex(run)}
    if run.device == "cpu":
        return {
            **{
                f"threads-{name}": functools.partial(threads, run, name) for name in run.pick(tuple(THREADED), ("pad",))
            },
            **parts,
        }
    return {**parts, "gpus": lambda: gpus(run)} if torch.cuda.device_count() >= PARTS else parts


# ---------------------------------------------------------------- threads


def _timex() -> dict[str, Call]:
    w, k = torch.randn(64, 512), torch.randn(8, 64, 512)
    return {
        "brickwork": lambda: ops.timex(w, k, 0.1),
        "torch FFT": lambda: torch_formulations.timex_fourier(w, k, 0.1),
        "torch conv1d": lambda: torch_formulations.timex(w, k, 0.1),
    }


def _pad() -> dict[str, Call]:
    tile, image = torch.rand(48, 32), torch.empty(2072, 4112)
    return {
        "brickwork": lambda: ops.brick_pad(tile, 2072, 4112, [4096, 2048], [32, 0], [10, 48], out=image),
        "fill_": lambda: image.fill_(1.0),
    }


def _sample() -> dict[str, Call]:
    mu, sigma = torch.randn(2500), torch.rand(2500)
    return {
        "brickwork": lambda: ops.sample_normal(mu, sigma, 1024),
        "torch": lambda: torch_formulations.sample_normal(mu, sigma, 1024),
    }


THREADED = {"timex": _timex, "pad": _pad, "sample": _sample}
"""Work that arithmetic limits, that memory limits, and that draws random numbers."""
MEASURES = {"fill_"}
"""What is no rival."""


def threads(run: Run, name: str) -> bench.Table:
    """Measure one operator with one thread, with two, and so on to as many as torch takes by itself."""
    most = torch.get_num_threads()

    def contenders(count: int) -> dict[str, Call]:
        torch.set_num_threads(count)
        return THREADED[name]()

    counts = sorted({*(1 << power for power in range(most.bit_length())), most})
    try:
        table = bench.compare(
            contenders,
            run.pick(tuple(counts), (1,)),
            "ms",
            x_name="threads",
            title=f"{name} over the number of threads",
            **paced(run, check=False, unchecked=MEASURES, roofline=False),
        )
    finally:
        torch.set_num_threads(most)
    return replace(_with_gains(table), protocol={**table.protocol, "threads": "as the rows say"})


def _with_gains(table: bench.Table) -> bench.Table:
    """Note for each line how many times as fast as with one thread it is."""
    alone = table.record.cases[0].timings
    cases = tuple(
        replace(case, notes={**case.notes, **_gains(case, alone)}) if case.timings is not alone else case
        for case in table.record.cases
    )
    return replace(table, record=replace(table.record, cases=cases))


def _gains(case: Case, alone: dict[str, Timing]) -> dict[str, str]:
    return {
        line: f"{alone[line].median / timing.median:.2f} x as fast as with one thread"
        for line, timing in case.timings.items()
        if line in alone
    }


# ---------------------------------------------------------------- size


def size_of_sin(run: Run) -> bench.Table:
    """Measure the sine of more and more floats."""

    def contenders(count: int) -> dict[str, Call]:
        x = torch.randn(count, device=run.device)
        out = torch.empty_like(x)
        return {"brickwork": lambda: ops.sin(x, out=out), "torch": lambda: torch.sin(x, out=out)}

    return _over_sizes(run, contenders, "sin", moved="8 * N")


def size_of_timex(run: Run) -> bench.Table:
    """Measure the convolution of more and more rows."""

    def contenders(count: int) -> dict[str, Call]:
        w = torch.randn(1, LENGTH, device=run.device)
        k = torch.randn(count // LENGTH, 1, LENGTH, device=run.device)
        return {
            "brickwork": lambda: ops.timex(w, k, 0.1),
            "torch FFT": lambda: torch_formulations.timex_fourier(w, k, 0.1),
        }

    return _over_sizes(run, contenders, f"timex of rows of {LENGTH}", moved="8 * N", flops=f"{LENGTH + 1} * N")


def _over_sizes(
    run: Run, contenders: Callable[[int], dict[str, Call]], name: str, *, moved: str, flops: str | None = None
) -> bench.Table:
    with float32_convolutions():
        table = bench.compare(
            contenders,
            run.pick(SIZES[run.device], (64,)),
            "us",
            x_name="N",
            title=f"{name}: time for a million of N elements",
            moved=moved,
            flops=flops,
            x_log=True,
            y_log=True,
            **paced(run),
        )
    cases = tuple(_for_a_million(case, int(n)) for n, case in zip(table.x_values, table.record.cases, strict=True))
    formulas = {what: f"{formula}, for each million" for what, formula in table.formulas.items()}
    return replace(table, record=replace(table.record, cases=cases), formulas=formulas)


def _for_a_million(case: Case, count: int) -> Case:
    """Return a case of so many elements with the time and the work of a million of them."""
    share = MILLION / count
    return replace(
        case,
        timings={line: _times(timing, share) for line, timing in case.timings.items()},
        host={line: _times(timing, share) for line, timing in case.host.items()},
        moved=round(case.moved * share),
        flops=round(case.flops * share),
    )


def _times(timing: Timing, factor: float) -> Timing:
    return replace(
        timing,
        median=timing.median * factor,
        lower=timing.lower * factor,
        upper=timing.upper * factor,
        least=timing.least * factor,
    )


# ---------------------------------------------------------------- two GPUs

Work = Callable[[int, int], Callable[[], Tensor]]
"""Given a device and the parts that the work is split into, returns the call that does one part there."""


def _timex_on(device: int, parts: int) -> Callable[[], Tensor]:
    w, k = torch.randn(768, 768, device=f"cuda:{device}"), torch.randn(64 // parts, 768, 768, device=f"cuda:{device}")
    return lambda: ops.timex(w, k, 0.1)


def _sin_on(device: int, parts: int) -> Callable[[], Tensor]:
    x = torch.randn((1 << 29) // parts, device=f"cuda:{device}")
    out = torch.empty_like(x)
    return lambda: ops.sin(x, out=out)


def _sample_on(device: int, parts: int) -> Callable[[], Tensor]:
    mu = torch.zeros((1 << 19) // parts, device=f"cuda:{device}")
    sigma = torch.ones_like(mu)
    return lambda: ops.sample_normal(mu, sigma, 1024)


SPLIT: dict[str, Work] = {"timex": _timex_on, "sin": _sin_on, "sample": _sample_on}


def gpus(run: Run) -> bench.Table:
    """Measure on the host's clock, from the launches until all devices are done."""
    rows: dict[str, dict[str, Timing]] = {}
    for name, work in SPLIT.items():
        run.tell(f"{name} on one GPU and on two")
        _refuse_differences(name, work)
        calls = {"brickwork, one GPU": on_streams(work, 1), "brickwork": on_streams(work, PARTS)}
        rows[name] = measure(calls, rounds=run.pick(25, 3), warm_up=0.05, sample=0.0)
        del calls
        torch.cuda.empty_cache()
    return bench.tabled(
        rows,
        "ms",
        title="the same work on one GPU, and split over two",
        x_name="work",
        device="cuda",
        baseline="brickwork, one GPU",
        protocol={"time": "on the host's clock, from the launches until all devices are done; median of turns"},
    )


def on_streams(work: Work, parts: int) -> Call:
    """Return a call that launches each part on a stream of its own device, and waits for all."""
    calls = [work(device, parts) for device in range(parts)]
    streams = [torch.cuda.Stream(device) for device in range(parts)]

    def call() -> None:
        answers = [_launched(each, stream) for each, stream in zip(calls, streams, strict=True)]
        for stream in streams:
            stream.synchronize()
        answers.clear()

    for device in range(parts):
        torch.cuda.synchronize(device)
    return call


def _launched(call: Callable[[], Tensor], stream: torch.cuda.Stream) -> Tensor:
    with torch.cuda.stream(stream):
        return call()


def _refuse_differences(name: str, work: Work) -> None:
    """Fail if a part has another answer on the second device than on the first."""
    found: list[Tensor] = []
    for device in range(PARTS):
        with torch.cuda.device(device):
            torch.cuda.manual_seed(0)
            found.append(work(device, 64)().cpu())
    if not torch.equal(*found):
        raise RuntimeError(f"{name} has other answers on the second GPU than on the first")
