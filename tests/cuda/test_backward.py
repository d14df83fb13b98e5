"""Gradients on GPUs among streams, graphs and devices: backward runs where the forward did, and can be captured."""

import gc
import threading
import time

import pytest
import torch

from brickwork.ops.timex import timex
from support.gpu import GPU, two_gpus

pytestmark = GPU
LONG = 400_000_000
"""Cycles of a kernel that does nothing; a fifth of a second and more."""


def arguments(device="cuda"):
    """Return weights and a sequence that need gradients."""
    w = torch.randn(8, 64, device=device, requires_grad=True)
    k = torch.randn(2, 8, 64, device=device, requires_grad=True)
    return w, k


def expected(w, k):
    """Return the gradients of the sum of squares, computed on the CPU."""
    w, k = (tensor.detach().cpu().requires_grad_() for tensor in (w, k))
    return torch.autograd.grad(timex(w, k, 0.1).square().sum(), (w, k))


def check(found, w, k):
    """Compare gradients with those of the CPU."""
    for one, other in zip(found, expected(w, k), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4, atol=1e-3)


def test_backward_runs_on_the_stream_of_the_forward():
    w, k = arguments()
    torch.autograd.grad(timex(w, k, 0.1).sum(), (w, k))
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(LONG)
        loss = timex(w, k, 0.1).square().sum()
    found = torch.autograd.grad(loss, (w, k))
    torch.cuda.current_stream().wait_stream(side)
    check(found, w, k)


def test_a_graph_holds_forward_and_backward():
    w, k = arguments()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            timex(w, k, 0.1).square().sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    w.grad = k.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        timex(w, k, 0.1).square().sum().backward()
    for _ in range(2):
        with torch.no_grad():
            w.normal_()
            k.normal_()
        graph.replay()
        torch.cuda.synchronize()
        check((w.grad, k.grad), w, k)


def test_graphed_callables():
    w, k = arguments()
    sample = tuple(tensor.detach().clone().requires_grad_() for tensor in (w, k))
    graphed = torch.cuda.make_graphed_callables(lambda w, k: timex(w, k, 0.1), sample)
    found = torch.autograd.grad(graphed(w, k).square().sum(), (w, k))
    check(found, w, k)


def test_gradients_allocate_nothing_but_themselves():
    w, k = arguments()
    gradient = torch.randn_like(k)

    def backward():
        return torch.autograd.grad(timex(w, k, 0.1), (w, k), gradient)

    for _ in range(3):
        backward()
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    for _ in range(20):
        backward()
    torch.cuda.synchronize()
    # A thread of the autograd engine lets go of the last call's tensors after the call has returned.
    end = time.monotonic() + 5
    while torch.cuda.memory_allocated() != before and time.monotonic() < end:
        time.sleep(0.01)
    assert torch.cuda.memory_allocated() == before


@two_gpus
@pytest.mark.parametrize("together", [True, False])
def test_two_gpus_run_backward(together):
    calls = [arguments(f"cuda:{index}") for index in range(2)]
    found = [None, None]

    def run(index):
        w, k = calls[index]
        found[index] = torch.autograd.grad(timex(w, k, 0.1).square().sum(), (w, k))

    if together:
        losses = [timex(w, k, 0.1).square().sum().to("cuda:0") for w, k in calls]
        gradients = torch.autograd.grad(losses[0] + losses[1], [tensor for call in calls for tensor in call])
        found = [gradients[:2], gradients[2:]]
    else:
        threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for (w, k), each in zip(calls, found, strict=True):
        check(each, w, k)
