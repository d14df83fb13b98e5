"""Transposes and permutes run in tiles: every element is stored once, whatever the sizes and the width of the lanes."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from support.layouts import last_axis_first

SHAPES = [(0, 3, 5), (2, 0, 5), (1, 1, 1), (2, 3, 300), (2, 300, 3), (3, 17, 33), (1, 260, 70)]


def plus_transposed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return a sum of tensors in two layouts."""
    out = torch.empty_like(y)
    for k in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                out[k, j, i] = x[k, i, j] + 2 * y[k, j, i]
    return out


@functools.cache
def operator(function: Any, vector_bytes: int) -> Any:
    return bw.op(f"cache_tiles_{vector_bytes}::{function.__name__}")(function)


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_every_element_is_stored_once(dtype, vector_bytes):
    with config.override(vector_bytes=vector_bytes):
        permuted, added = operator(last_axis_first, vector_bytes), operator(plus_transposed, vector_bytes)
        for shape in SHAPES:
            x = torch.randint(-30, 30, shape).to(dtype)
            y = torch.randint(-30, 30, (shape[0], shape[2], shape[1])).to(dtype)
            assert torch.equal(permuted(x), x.permute(2, 0, 1))
            assert torch.equal(added(x, y), x.transpose(1, 2) + 2 * y)
