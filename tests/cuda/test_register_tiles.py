"""Register tiles on a GPU compute what loops compute one by one, for rows that are whole tiles and for all others."""

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.transform.schedule import register_tile
from support.causal import product, timex
from support.gpu import GPU
from support.operators import torch_timex

pytestmark = GPU
LENGTHS = [1, 16, 20, 32, 48, 100, 112]


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch, tmp_path):
    """Have tiles for nests of few iterations, too."""
    monkeypatch.setattr(register_tile, "busy_threads", lambda _: 1)
    with config.override(cache_dir=str(tmp_path)):
        yield


def made():
    """Return operators that nobody has compiled yet."""
    return bw.op("bwtiles::causal")(timex), bw.op("bwtiles::product")(product)


def counting(*shape, dtype):
    return (torch.arange(torch.Size(shape).numel(), device="cuda") % 5 - 2).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_tiles_agree(dtype):
    causal, product = made()
    for length in LENGTHS:
        for rows in (1, 2, 5):
            w, k = counting(3, length, dtype=dtype), counting(rows, 3, length, dtype=dtype)
            expected = torch_timex(w.double().cpu(), k.double().cpu(), 0.5)
            torch.testing.assert_close(causal(w, k, 0.5).double().cpu(), expected.double(), rtol=1e-3, atol=0)
            a, b = counting(rows, length, dtype=dtype), counting(length, 16, dtype=dtype)
            torch.testing.assert_close(product(a, b).double(), a.double() @ b.double(), rtol=1e-3, atol=0)


@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_tiles_agree(length):
    causal, _ = made()
    w, k = counting(3, length, dtype=torch.float32), counting(5, 3, length, dtype=torch.float32)
    found, expected = [], []
    for run, results in ((causal, found), (torch_timex, expected)):
        given = [item.clone().requires_grad_() for item in (w, k)]
        out = run(*given, 0.5)
        results += torch.autograd.grad(out, given, counting(*out.shape, dtype=torch.float32))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
