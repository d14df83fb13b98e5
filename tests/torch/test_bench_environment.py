"""Operators among the rest of torch: data loaders, checkpoints, generators, threads that fail, memory."""

import gc
import sys
import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import brickwork as bw
from support.operators import noise, square, total, weighted


class Squares(Dataset):
    """Squares that are computed where the items are made."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return square(torch.full((20_000,), float(index)))


def test_workers_of_a_data_loader():
    square(torch.randn(100_000))
    for index, item in enumerate(DataLoader(Squares(), num_workers=2, multiprocessing_context="fork")):
        assert torch.equal(item, torch.full((1, 20_000), float(index) ** 2))


def test_a_checkpoint_draws_the_same_numbers_again():
    drawn = []

    def forward(x):
        with torch.no_grad():
            drawn.append(noise(torch.zeros(5), 1.0))
        return (x * drawn[-1]).sum()

    x = torch.randn(5, requires_grad=True)
    y = checkpoint(forward, x, use_reentrant=False, preserve_rng_state=True)
    noise(torch.zeros(3), 1.0)
    y.backward()
    assert len(drawn) == 2
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(x.grad, drawn[0])


def test_a_saved_state_of_the_generator_is_taken_up_again():
    state = torch.get_rng_state()
    first = noise(torch.zeros(5), 1.0)
    torch.set_rng_state(state)
    assert torch.equal(noise(torch.zeros(5), 1.0), first)


def test_a_compiled_graph_draws_what_eager_code_does():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: noise(x, 1.0) + 1, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    found = compiled(torch.zeros(6))
    torch.manual_seed(1)
    assert torch.equal(found, noise(torch.zeros(6), 1.0) + 1)


def test_failures_in_several_threads_reach_their_callers():
    caught = []

    @bw.op("bwtest::beyond")
    def beyond(x: torch.Tensor, by: int) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i + by]
        return out

    def run(size):
        for _ in range(50):
            with pytest.raises(IndexError, match=f"index {size} is out of bounds .* 'x' .*shape .{size},"):
                beyond(torch.zeros(size), 1)
        caught.append(size)

    threads = [threading.Thread(target=run, args=(size,)) for size in (3, 5, 50_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(caught) == [3, 5, 50_000]


def test_no_reference_to_an_argument_is_kept_or_lost():
    tensors = [torch.randn(12), torch.randn(3, 3), torch.randn(12).to_sparse()]
    lists = [[0.5, 2.0], [1, -2]]
    counts = [sys.getrefcount(each) for each in tensors]
    for _ in range(50):
        weighted(tensors[0], *lists)
        square(tensors[0], out=tensors[0])
        for place in (1, 2):
            with pytest.raises(bw.CompileError):
                total(tensors[place])
    gc.collect()  # an error and its traceback refer to each other
    assert [sys.getrefcount(each) for each in tensors] == counts
