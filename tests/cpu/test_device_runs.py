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
    x = (torch.arange(n) * 7 % 5 - 2).to(dtype)
    out = torch.zeros((n, 7) if function is apart else n, dtype=dtype)
    rig = rig_of(function, x, torch.arange(n), out)
    for places in PLACES.values():
        at = places(n).to(torch.int64)
        assert torch.equal(rig.call(x, at, out)[0], expected(function, x, at, out))


@pytest.mark.parametrize(("function", "exchanges"), [(placed, True), (channels, True), (apart, False)])
def test_threads_ask_for_runs_where_their_elements_may_be_the_same(function, exchanges):
    arguments = torch.ones(3), torch.zeros(3, dtype=torch.int64), torch.ones((3, 64) if function is apart else 3)
    assert ("vote.sync" in ptx_of([program_for_gpu(function, *arguments)], GPU)) is exchanges
