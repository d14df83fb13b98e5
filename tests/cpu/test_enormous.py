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
