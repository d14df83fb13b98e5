"""Streams, graphs and threads: where kernels run, what a call waits for, and what a graph may hold."""

import json
import threading
import time

import pytest
import torch

import brickwork as bw
from support.causal import timex
from support.gpu import GPU, script
from support.gpu_operators import gather, heat
from support.operators import halves, noise, square

pytestmark = GPU
LONG = 400_000_000
"""Cycles of a kernel that does nothing; a fifth of a second and more."""


def cold(number):
    """Return an operator that no other test has called; with a power of two, its results are torch's bit by bit."""

    @bw.op(f"bwgpu::cold_{number}")
    def operator(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * number + 1
        return out

    return operator


# ---------------------------------------------------------------- streams


def test_side_streams_are_waited_for_by_events():
    x = torch.randn(1 << 20, device="cuda")
    square(x * 2)  # A kernel that is loaded now waits for none that sleeps.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(LONG)
        y = x * 2
        found = square(y)
        event = side.record_event()
    assert not event.query()
    torch.cuda.current_stream().wait_event(event)
    assert torch.equal(found + 0, 4 * x * x)


def test_a_call_does_not_wait_for_the_device():
    x = torch.randn(1 << 16, device="cuda")
    heat(x, 3)
    square(x)
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    start = time.perf_counter()
    found = square(x)
    heat(x, 3)
    passed = time.perf_counter() - start
    busy = not torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    waited = time.perf_counter() - start
    assert busy
    assert passed < waited / 4
    assert torch.equal(found, x * x)


def kernels_of(trace):
    events = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    return [(event["name"], event["args"]["stream"]) for event in events]


def test_the_profiler_shows_the_kernel_on_the_side_stream(tmp_path):
    x = torch.randn(1000, device="cuda")
    square(x)
    side = torch.cuda.Stream()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        square(x)
        with torch.cuda.stream(side):
            square(x)
            torch.neg(x)
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    found = kernels_of(json.loads((tmp_path / "trace.json").read_text()))
    if not found:
        pytest.skip("the profiler shows no kernels on this machine")
    theirs = {stream for name, stream in found if "neg" in name}
    ours = [stream for name, stream in found if "neg" not in name]
    assert len(ours) == 2
    assert {ours[1]} == theirs
    assert ours[0] != ours[1]


def test_nothing_is_allocated_but_the_results():
    x = torch.randn(1000, device="cuda")
    index = torch.arange(1000, device="cuda")
    for call, count in ((lambda: square(x), 1), (lambda: halves(x), 2), (lambda: gather(x, index), 1)):
        call()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        held = call()
        assert torch.cuda.memory_stats()["allocation.all.allocated"] - before == count
        del held
    out = torch.empty_like(x)
    square(x, out=out)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    square(x, out=out)
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before


# ---------------------------------------------------------------- graphs


def captured(call):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    return graph, found


@pytest.mark.parametrize("warm", ["warmup", "a call"])
def test_graphs_replay_with_new_data(warm):
    operator = cold(2 if warm == "warmup" else 3)
    x = torch.randn(1000, device="cuda")
    if warm == "warmup":
        operator.warmup(torch.empty(8, device="meta"), device="cuda")
    else:
        operator(x)
    torch.cuda.synchronize()
    graph, found = captured(lambda: operator(x))
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(found, operator(x))
    assert len(operator.stats().specialisations) == 1


def test_graphs_hold_sequences_of_launches():
    x = torch.randn(1000, device="cuda")
    heat(x, 10)
    graph, found = captured(lambda: heat(x, 10))
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(found, heat(x, 10))


def test_replays_draw_anew_and_follow_the_seed():
    x = torch.zeros(1000, device="cuda")
    noise(x, 1.0)
    graph, found = captured(lambda: noise(x, 1.0))
    drawn = []
    for _ in range(2):
        graph.replay()
        drawn.append(found.clone())
    assert not torch.equal(*drawn)
    again = []
    for _ in range(2):
        torch.cuda.manual_seed(11)
        graph.replay()
        again.append(found.clone())
    assert torch.equal(*again)
    assert not torch.equal(again[0], drawn[0])
    assert 0.8 < again[0].std().item() < 1.2


def test_a_cold_operator_in_a_capture_is_refused_and_the_capture_goes_on():
    operator = cold(4)
    x = torch.randn(1000, device="cuda")
    square(x)
    torch.cuda.synchronize()
    refused = []

    def call():
        try:
            operator(x)
        except (RuntimeError, bw.BrickworkError) as error:
            refused.append(str(error))
        return square(x)

    graph, found = captured(call)
    (said,) = refused
    assert "operator.warmup(...)" in said
    x.normal_()
    graph.replay()
    assert torch.equal(found, x * x)
    assert torch.equal(operator(x), x * 4 + 1)


def test_the_kernel_of_other_sizes_is_made_by_their_first_call():
    operator = bw.op("bwgpu::causal_of_sizes")(timex)
    few = torch.randn(2, 8, device="cuda"), torch.randn(2, 2, 8, device="cuda"), 0.5
    many = torch.randn(64, 512, device="cuda"), torch.randn(64, 64, 512, device="cuda"), 0.5
    operator(*few)
    refused = []

    def call():
        try:
            operator(*many)
        except RuntimeError as error:
            refused.append(str(error))
        return operator(*few)

    graph, found = captured(call)
    assert "causal_of_sizes.warmup(...)" in refused[0]
    graph.replay()
    assert torch.equal(found, operator(*few))
    operator.warmup(*many)
    graph, found = captured(lambda: operator(*many))
    graph.replay()
    assert torch.equal(found, operator(*many))
    torch.testing.assert_close(
        found[:2, :2].cpu(), operator(many[0][:2].cpu(), many[1][:2, :2].cpu(), 0.5), rtol=1e-3, atol=1e-3
    )


# ---------------------------------------------------------------- threads and processes


def test_threads_that_meet_a_cold_operator_compile_it_once():
    operator = cold(8)
    x, barrier, wrong = torch.randn(1000, device="cuda"), threading.Barrier(8), []

    def run():
        barrier.wait()
        for _ in range(20):
            if not torch.equal(operator(x), x * 8 + 1):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(operator.stats().specialisations) == 1


OPERATOR = """
import os, sys, torch
import brickwork as bw

@bw.op("bwgpu::plus")
def plus(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + 1
    return out
"""

IN_BACKWARD = """
class Function(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        import threading
        print(threading.current_thread() is threading.main_thread())
        return plus(gradient)

x = torch.ones(5, device="cuda", requires_grad=True)
Function.apply(x).sum().backward()
assert x.grad.tolist() == [2.0] * 5, x.grad
bw.check_errors()
"""


def test_the_first_call_may_come_from_the_thread_of_backward(tmp_path):
    assert script(tmp_path, OPERATOR + IN_BACKWARD).split() == ["False"]


WHILE_ANOTHER_CAPTURES = """
import threading
x = torch.ones(5, device="cuda")
graph, wrong = torch.cuda.CUDAGraph(), []

def compile_it():
    try:
        plus.warmup(torch.empty(8, device="meta"), device="cuda")
    except Exception as error:
        wrong.append(error)

with torch.cuda.graph(graph):
    found = x * 2
    thread = threading.Thread(target=compile_it)
    thread.start(); thread.join()
assert not wrong, wrong
x.fill_(3)
graph.replay()
assert found.tolist() == [6.0] * 5
assert plus(x).tolist() == [4.0] * 5
assert len(plus.stats().specialisations) == 1
"""


def test_a_thread_may_compile_while_another_captures(tmp_path):
    script(tmp_path, OPERATOR + WHILE_ANOTHER_CAPTURES)


IN_A_FRESH_THREAD = """
import threading
x = torch.ones(5, device="cuda")
found = []
thread = threading.Thread(target=lambda: found.append(plus(x)))
thread.start(); thread.join()
assert found[0].tolist() == [2.0] * 5
assert plus(x).tolist() == [2.0] * 5
"""


def test_the_first_call_may_come_from_any_thread(tmp_path):
    script(tmp_path, OPERATOR + IN_A_FRESH_THREAD)


FORKED = """
if sys.argv[1] == "after":
    plus(torch.ones(3, device="cuda"))
else:
    plus(torch.ones(3))
child = os.fork()
if child == 0:
    try:
        ok = plus(torch.ones(3, device="cuda")).tolist() == [2.0] * 3
        bw.check_errors()
        print("worked" if ok else "wrong", flush=True)
    except RuntimeError as error:
        print(str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
assert plus(torch.ones(3, device="cuda")).tolist() == [2.0] * 3
"""


def test_a_fork_before_cuda_starts_works_in_the_child(tmp_path):
    assert script(tmp_path, OPERATOR + FORKED, "before").split() == ["worked"]


def test_a_fork_after_cuda_has_started_is_refused_in_torchs_words(tmp_path):
    assert "Cannot re-initialize CUDA in forked subprocess" in script(tmp_path, OPERATOR + FORKED, "after")


GIVEN_FROM_THE_PARENT = """
x = torch.ones(3, device="cuda")
plus(x)
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    try:
        plus(x)
        print("called", flush=True)
    except RuntimeError as error:
        print(str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
assert plus(x).tolist() == [2.0] * 3
"""


def test_a_tensor_of_the_parent_is_refused_in_torchs_words_in_the_child(tmp_path):
    said = script(tmp_path, OPERATOR + GIVEN_FROM_THE_PARENT)
    assert "Cannot re-initialize CUDA in forked subprocess" in said or "initialization error" in said


ON_THE_CPU_IN_THE_CHILD = """
from support.gpu_operators import gather
gather(torch.ones(3), torch.tensor([2]))
gather(torch.ones(3, device="cuda"), torch.tensor([7], device="cuda"))
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    print(gather(torch.ones(3), torch.tensor([2])).tolist(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
try:
    bw.check_errors()
except IndexError:
    print("told")
"""


def test_in_a_forked_child_calls_on_the_cpu_go_on_and_failures_are_the_parents(tmp_path):
    assert script(tmp_path, OPERATOR + ON_THE_CPU_IN_THE_CHILD).split() == ["[1.0]", "told"]


WARM = """
x = torch.ones(5, device="cuda")
assert plus(x).tolist() == [2.0] * 5
print(plus.stats().specialisations[0].cached, "llvmlite" in sys.modules, "islpy" in sys.modules)
"""


def test_a_warm_cache_needs_no_compiler(tmp_path):
    assert script(tmp_path, OPERATOR + WARM).split()[:2] == ["False", "True"]
    assert script(tmp_path, OPERATOR + WARM).split() == ["True", "False", "False"]


CPU_ALONE = """
assert plus(torch.ones(3)).tolist() == [2.0] * 3
assert not torch.cuda.is_initialized()
child = os.fork()
if child == 0:
    os._exit(0 if torch.ones(2, device="cuda").sum().item() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_calls_on_the_cpu_do_not_start_cuda(tmp_path):
    script(tmp_path, OPERATOR + CPU_ALONE)
