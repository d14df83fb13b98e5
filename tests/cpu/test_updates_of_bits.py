"""`x[i] |= bits` and its kin are updates, which threads may make at once: on elements of each width."""

# pyright: basic
from __future__ import annotations

from typing import Any

import pytest
import torch

import brickwork as bw

OPTIMISED = True


@bw.op("bits::set_bits")
def set_bits(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        if x[i]:
            out[i // 8] |= 1 << (i % 8)


@bw.op("bits::keep_bits")
def keep_bits(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        if x[i]:
            out[i // 8] &= ~(1 << (i % 8))


@bw.op("bits::turn_bits")
def turn_bits(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        if x[i]:
            out[i // 8] ^= 1 << (i % 8)


@bw.op("bits::binned")
def binned(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[x[i] % 5] |= x[i]


def bits(dtype: torch.dtype, number: int) -> torch.Tensor:
    return torch.randint(0, 100, (number,), generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("op", [set_bits, keep_bits, turn_bits])
@pytest.mark.parametrize("number", [0, 1, 20003])
def test_bits_of_neighbours_are_updated_at_once(op: Any, dtype: torch.dtype, number: int) -> None:
    x = torch.rand(number, generator=torch.Generator().manual_seed(1)) < 0.5
    found = bits(dtype, (number + 7) // 8)
    wanted = found.long()
    places = torch.nn.functional.pad(x, (0, -number % 8)).view(-1, 8)
    mask = (places * (1 << torch.arange(8))).sum(1)
    wanted = {"set_bits": wanted | mask, "keep_bits": wanted & ~mask, "turn_bits": wanted ^ mask}[op.__name__]
    op(x, found)
    assert torch.equal(found, wanted.to(dtype))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_bits_of_bins(dtype: torch.dtype) -> None:
    x, found = bits(torch.int64, 30011), torch.zeros(5, dtype=dtype)
    wanted = torch.zeros(5, dtype=torch.int64)
    for place in range(5):
        for value in x[x % 5 == place].unique().tolist():
            wanted[place] |= value
    binned(x, found)
    assert torch.equal(found, wanted.to(dtype))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32])
def test_a_gpu_updates_the_word_around_an_element(dtype: torch.dtype) -> None:
    x, out = torch.empty(4096, dtype=torch.bool, device="meta"), torch.empty(512, dtype=dtype, device="meta")
    assert "updates of 'out' are atomic" in set_bits.explain(x, out, device="sm_90")
    text = set_bits.inspect("ptx", x, out, device="sm_90")
    assert ".or.b32" in text
