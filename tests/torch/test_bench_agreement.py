"""The harness measures what others measure: torch's timer on a CPU; events, Triton and the profiler on a GPU."""

import math
import statistics

import pytest
import torch
from torch.utils.benchmark import Timer

from brickwork import bench
from brickwork.bench import plan, roofline
from brickwork.bench.timers import measure


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_times_are_those_of_torchs_timer(one_thread):
    x = torch.randn(1 << 14)
    out = torch.empty_like(x)

    def sine():
        return torch.sin(x, out=out)

    timer = Timer("sine()", globals={"sine": sine})
    ours, theirs = math.inf, math.inf
    for _ in range(20):  # samples of a quarter of a millisecond, so that some run undisturbed on a busy machine, too
        ours = min(ours, measure({"sin": sine}, rounds=50, warm_up=0.01, sample=2.5e-4)["sin"].least)
        theirs = min(theirs, *(timer.timeit(20).median for _ in range(50)))
        if ours == pytest.approx(theirs, rel=0.1):
            return
    assert ours == pytest.approx(theirs, rel=0.1)


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{}, {"cache": "warm"}, {"graph": True}, {"graph": True, "cache": "warm"}])
def test_on_a_gpu_the_device_and_the_host_are_timed_apart(how):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    table = bench.compare(
        {"one": torch.sin, "two": lambda x: torch.sin(x).neg().neg()},
        [1 << 24],
        "GB/s",
        arguments=lambda count: torch.zeros(count, device="cuda"),
        moved="8 * N",
        check=False,
        seconds=0.2,
        **how,
    )
    case = table.case(1 << 24)
    assert case.device == "cuda"
    assert not case.notes
    assert case.timings["two"].median > 2 * case.timings["one"].median
    assert case.host["one"].median < case.timings["one"].median
    assert case.memory["one"] == 4 << 24
    assert not case.launches or case.launches == {"one": 1, "two": 3}
    assert plan.Protocol(**how).cache == how.get("cache")


LARGE = 1 << 28
"""Floats whose sine takes an H200 half a millisecond."""


@pytest.fixture
def large():
    """Kernels of more than 200 microseconds: a sine, a copy, and many operations on few bytes."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    x = torch.randn(LARGE, device="cuda")
    out = torch.empty_like(x)
    a = torch.randn(4096, 4096, device="cuda")
    product = torch.empty_like(a)
    return {
        "sin": lambda: torch.sin(x, out=out),
        "copy": lambda: out.copy_(x),
        "product": lambda: torch.mm(a, a, out=product),
    }


def on_the_device(calls, **how):
    table = bench.compare(calls, {"large": ()}, check=False, device="cuda", seconds=0.5, details=False, **how)
    timings = table.case("large").timings
    assert set(timings) == set(calls), table.case("large").notes
    assert all(timing.median > 200e-6 for timing in timings.values())
    return {name: timing.median for name, timing in timings.items()}


@pytest.mark.gpu
@pytest.mark.parametrize("how", [{}, {"cache": "warm"}, {"graph": True}])
def test_large_kernels_take_what_triton_measures(large, how):
    testing = pytest.importorskip("triton.testing")
    ours = on_the_device(large, **how)
    for name, call in large.items():
        if how.get("graph"):
            theirs = testing.do_bench_cudagraph(call, rep=300, return_mode="median") / 1e3
        else:
            theirs = testing.do_bench(call, warmup=50, rep=300, return_mode="median") / 1e3
        assert ours[name] == pytest.approx(theirs, rel=0.05), name


@pytest.mark.gpu
def test_large_kernels_take_what_the_profiler_sees(large):
    ours = on_the_device(large)
    for name, call in large.items():
        call()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(20):
                call()
            torch.cuda.synchronize()
        kernels = [event for event in profiler.events() if event.device_type.name == "CUDA"]
        if not kernels:
            pytest.skip("the profiler shows no kernels here")
        longest = [event.time_range.elapsed_us() / 1e6 for event in kernels if event.time_range.elapsed_us() > 100]
        assert len(longest) == 20, "one kernel a call"
        assert ours[name] == pytest.approx(statistics.median(longest), rel=0.05), name


@pytest.mark.gpu
def test_peaks_of_a_gpu_are_plausible():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    found = roofline.peaks("cuda")
    properties = torch.cuda.get_device_properties(0)
    assert 0.5 < found["copy"] / found["fill"] < 2
    assert found["fma"] > 1e12
    assert found["fma"] < 2 * 256 * properties.multi_processor_count * 3e9
