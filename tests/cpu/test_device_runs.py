"""Additions to elements that neighbouring threads have in common: made once for each run of threads of a warp."""

import pytest
import torch

from cpu.test_entry_cuda_emulated import rig_of
from support import emulated
from support.ptx import program_for_gpu, ptx_of
from support.scheduling import GPU


def placed(x: torch.Tensor, at: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(like)
    for i in range(x.shape[0]):
        out[at[i]] += x[i]
    return out


def channels(x: torch.Tensor, at: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(like)
    for i in range(x.shape[0]):
        for c in range(8):
            out[at[i]] += x[i] * c
    return out


def apart(x: torch.Tensor, at: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(like)
    for i in range(x.shape[0]):
        for c in range(out.shape[1]):
            out[at[i], c] += x[i]
    return out


def shared(x: torch.Tensor, at: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A block of threads goes along each row of x, and all of them add to the same elements."""
    out = torch.zeros_like(like)
    for i in range(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        for j in range(x.shape[1]):
            for c in range(3):
                out[at[i]] += (top - x[i, j]) * c
    return out


def expected(function, x, at, out):
    if function is placed:
        return out.index_add(0, at, x)
    if function is channels:
        return out.index_add(0, at, 28 * x)
    return out.index_add(0, at, x[:, None].expand(-1, out.shape[1]))


PLACES = {
    "sorted": lambda n: torch.arange(n) // 5,
    "one": torch.zeros,
    "two": lambda n: torch.arange(n) // 32 % 2,
    "again": lambda n: torch.arange(n) // 2 % 3,
    "each": torch.arange,
}


@pytest.mark.parametrize("function", [placed, channels, apart])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize("whole", [False, True])
def test_each_number_is_added_once(monkeypatch, function, dtype, whole):
    monkeypatch.setattr(emulated, "WHOLE_WARPS", whole)
    n = 64
    for places in PLACES.values():
        at = places(n).to(torch.int64)
        x = (torch.arange(n) * 7 % 5 - 2).to(dtype)
        out = torch.zeros((n, 7) if function is apart else n, dtype=dtype)
        assert torch.equal(rig_of(function, x, at, out).call(x, at, out)[0], expected(function, x, at, out))


@pytest.mark.parametrize(("columns", "whole"), [(1, False), (33, False), (64, False), (64, True)])
def test_each_number_of_a_row_that_a_block_shares_out_is_added_once(monkeypatch, columns, whole):
    monkeypatch.setattr(emulated, "WHOLE_WARPS", whole)
    x, out = torch.arange(40 * columns).reshape(40, columns) % 7, torch.zeros(40, dtype=torch.int64)
    added = 3 * (x.amax(1, keepdim=True) - x).sum(1)
    for places in PLACES.values():
        at = places(40).to(torch.int64)
        assert torch.equal(rig_of(shared, x, at, out).call(x, at, out)[0], out.index_add(0, at, added))


@pytest.mark.parametrize(("function", "exchanges"), [(placed, True), (channels, True), (apart, False)])
def test_threads_ask_for_runs_where_their_elements_may_be_the_same(function, exchanges):
    arguments = torch.ones(3), torch.zeros(3, dtype=torch.int64), torch.ones((3, 64) if function is apart else 3)
    assert ("vote.sync" in ptx_of([program_for_gpu(function, *arguments)], GPU)) is exchanges


def test_threads_of_a_block_ask_for_runs_where_they_share_a_row_out():
    text = ptx_of([program_for_gpu(shared, torch.ones(3, 64), torch.zeros(3, dtype=torch.int64), torch.ones(3))], GPU)
    kernels = text.split(".entry")[1:]
    assert any("vote.sync" in kernel and "bar." in kernel for kernel in kernels)
