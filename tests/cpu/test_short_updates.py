"""Loops that update elements: those of unknown length run few iterations one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.fourfold import agree


def updated(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(w.shape[0], x.shape[1])
    for i in range(w.shape[0]):
        for c in range(x.shape[0]):
            row = int(w[i, c] * 4.0)
            for f in range(x.shape[1]):
                out[i, f] += w[i, c] * x[row, f]
    return out


def of_known_length(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(w.shape[0], 40)
    for i in range(w.shape[0]):
        for c in range(x.shape[0]):
            row = int(w[i, c] * 4.0)
            for f in range(40):
                out[i, f] += w[i, c] * x[row, f % 2]
    return out


def stored(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(w.shape[0], x.shape[1])
    for i in range(w.shape[0]):
        for c in range(x.shape[0]):
            row = int(w[i, c] * 4.0)
            for f in range(x.shape[1]):
                out[i, f] = w[i, c] * x[row, f]
    return out


@pytest.mark.parametrize(("function", "short"), [(updated, True), (of_known_length, False), (stored, False)])
def test_few_updates_run_one_after_the_other(function: Callable[..., Any], *, short: bool) -> None:
    operator = agree(function, torch.rand(5, 4), torch.rand(4, 2))
    for features in (1, 3, 4, 5, 37):
        x, w = torch.rand(4, features), torch.rand(5, 4)
        if features > 1:
            torch.testing.assert_close(operator(w, x), function(w, x))
    assert ("\ntogether." in operator.inspect("llvm", torch.rand(5, 4), torch.rand(4, 2))) is short
