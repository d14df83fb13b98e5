"""Rows and elements told apart before the signature is known: which calls of torch run in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError


def indexed_twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    y = torch.tanh(x[0])
    for i in range(x.shape[1]):
        out[0, i] = y[i]
        out[1, i] = x[1, i]
    return out


def result_indexed(x: torch.Tensor, out: torch.Tensor) -> None:
    for b in range(len(x)):
        y = torch.tanh(x[b])
        for i in range(len(y)):
            out[b][i] = y[i]


def summed(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    out = torch.zeros(rows)
    for b in range(rows):
        s = torch.exp(x[b]).sum()
        for i in range(columns):
            out[b] += s
    return out


def without_formula(x: torch.Tensor, out: torch.Tensor) -> None:
    for b in range(len(x)):
        y = torch.special.i0(x[b])
        for i in range(len(y)):
            out[b, i] = y[i]


def of_elements(x: torch.Tensor, out: torch.Tensor) -> None:
    s = torch.tanh(x[0, 0])
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[b, i] = torch.tanh(x[b, i]) + s


@pytest.mark.parametrize(
    ("function", "host"),
    [
        (indexed_twice, "python"),
        (result_indexed, "native"),
        (summed, "native"),
        (without_formula, "python"),
        (of_elements, "native"),
    ],
)
def test_rows_run_in_python_and_elements_are_compiled(function: Callable[..., Any], host: str) -> None:
    operator = bw.op(f"ranks::{function.__name__}")(function)
    assert operator.definition.host == host
    x = torch.randn(2, 3)
    found, wanted = [(x, torch.zeros(2, 3))[: len(operator.definition.parameters)] for _ in range(2)]
    results = operator(*found), function(*wanted)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(*results)


def test_a_function_without_a_meaning_on_elements_is_refused_by_name() -> None:
    def bessel(x: torch.Tensor, out: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            out[i] = torch.special.i0(x[i])

    with pytest.raises(CompileError, match=r"BW004: `torch.special.i0` of an element") as caught:
        bw.op("ranks::bessel")(bessel)
    assert "out[i] = torch.special.i0(x[i])" in str(caught.value)
    assert "y = torch.special.i0(...)" in str(caught.value)
