"""Sizes beyond what arithmetic on indices allows are refused before anything is touched."""

import pytest
import torch

import brickwork as bw


@bw.op("enormous::marks")
def marks(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.shape[1]
    for i in range(out.shape[0]):
        out[i + n * 4 - n * 2] = 1


@pytest.mark.parametrize("size", [2**48, 2**62])
def test_an_enormous_expanded_tensor_is_refused(size):
    with pytest.raises(RuntimeError, match="'x' has an axis of 2"):
        marks(torch.zeros(1, 1).expand(1, size), torch.zeros(4))


def test_large_expanded_tensors_are_in_order():
    with pytest.raises(IndexError):
        marks(torch.zeros(1, 1).expand(1, 2**47), torch.zeros(4))


@bw.op("enormous::thirds")
def thirds(x: torch.Tensor, by: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0] // by, 2)
    for i in range(out.shape[0]):
        out[i, 1] = x[i * by]
    return out


@pytest.mark.parametrize("run", [thirds, thirds.python], ids=["compiled", "python"])
def test_negative_sizes_are_refused_as_by_torch(run):
    assert run(torch.ones(7), 3).tolist() == [[0, 1], [0, 1]]
    with pytest.raises(RuntimeError, match="negative"):
        run(torch.ones(7), -3)
