"""Captured tables of numbers that are indexed by variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree

LONG = tuple(float(k * k % 97) for k in range(300))
WHOLE = [k * 7 % 11 for k in range(20)]
FLAGS = [k % 3 == 0 for k in range(12)]
NESTED = [[1.5, 2, 3], [4, 5, 6], [7, 8, 9.25]]
SPECIAL = [float("inf"), float("-inf"), -0.0, 0.1, 1e300, 2.0, 3.0, 4.0, 5.0]


def long(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = LONG[at[i]] + LONG[-at[i] - 1] + WHOLE[at[i] % 20]
    return out


def nested(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        a, b, c = NESTED[at[i] % 3]
        out[i] = NESTED[i % 3][at[i] % 3] + NESTED[1][i % 3] - NESTED[at[i] % 3][-1] + a * b - c
    return out


def in_conditions(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        k = 0
        while WHOLE[k] < 9 and LONG[k + i] < 80.0:
            k += 1
        out[i] = (LONG[k] if x[i] > 0 else WHOLE[k]) + k
        if FLAGS[at[i] % 12] or not 1 < WHOLE[i] < 8:
            out[i] += 100
    return out


def special(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = SPECIAL[at[i] % 9]
    return out


@pytest.mark.parametrize("function", [long, nested, in_conditions, special], ids=lambda item: item.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_means_what_python_means(function: Callable[..., Any], dtype: torch.dtype) -> None:
    n = 19
    x, at = torch.linspace(-1, 1, n, dtype=dtype), torch.arange(n) * 15
    agree(function, x, at, name=f"table_{function.__name__}_{str(dtype)[6:]}")


def test_an_index_that_is_out_of_range_is_told_with_the_table() -> None:
    operator = bw.op("tables::long")(long)
    x = torch.zeros(2)
    with pytest.raises(IndexError, match=r"index 300 is out of bounds for dimension 0 of list 'LONG' with size 300"):
        operator(x, torch.tensor([1, 300]))


def test_lanes_gather_from_a_table() -> None:
    operator = bw.op("tables::special")(special)
    x, at = torch.zeros(1000), torch.arange(1000)
    assert "vectorised" in operator.explain(x, at) or "in parallel" in operator.explain(x, at)
    expected = torch.tensor(SPECIAL, dtype=torch.float64)[at % 9].to(torch.float32)
    torch.testing.assert_close(operator(x, at), expected)


def test_a_table_is_constant_memory_on_a_gpu() -> None:
    operator = bw.op("tables::long_on_gpu")(long)
    text = operator.inspect("ptx", torch.zeros(4), torch.zeros(4, dtype=torch.int64), device="sm_90")
    assert ".global .align" in text
