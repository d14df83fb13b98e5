"""sum, min, max, any, all and math.prod of generator expressions, in loops and beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.fourfold import agree, failure


def sums(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(n, dtype=x.dtype)
    for i in range(n):
        out[i] = sum(x[i, j] * x[i, j] for j in range(m)) / (1 + sum(1 for j in range(m) if x[i, j] > 0))
        out[i] += sum((x[i, j] * k for j in range(m) if j % 2 for k in range(j)), 0.5) + sum((1.5, 2, x[i, 0]))
    return out


def extremes(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(n, dtype=x.dtype)
    for i in range(n):
        top = max(x[i, j] for j in range(m))
        least = min((abs(v) for v in x[i] if v > 0), default=-1.0)
        out[i] = top - least + max((j for j in range(m) if x[i, j] == top), default=0) + max(k for k in range(9, 2, -3))
        out[i] += min((x[i, j] for j in range(0)), default=4)
    return out


def decisions(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        if any(x[i, j] > 1 for j in range(m)):
            out[i] = 1
        if all(x[i, j] < x[k, j] + 3 for k in range(n) for j in range(m) if j != i):
            out[i] += 2
        if not any(v == 0 for v in x[i]) and all((i >= 0, m > 0)):
            out[i] += 4
    return out


def beside_loops(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = x.shape[0]
    mean = sum(x[i] for i in range(n)) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in x) / n)
    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = (x[i] - mean) / spread
    out[0] = sum(a * b for a, b in zip(x, y)) + max(x) - min(y) + math.prod(1 + v / 9 for v in y)
    return out


def a_scope_of_its_own(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    i = 3
    total = sum(x[i] for i in range(2)) + x[i]
    for j in range(x.shape[0]):
        out[j] = total + sum(j for j in range(j)) + i
    return out


def stops_early(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1, dtype=torch.int64)
    if any(x[i] > 0 for i in range(100)):
        out[0] = 1
    return out


def none_at_all(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = max(x[j] for j in range(i))
    return out


def none_left(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = min(x[j] for j in range(i) if x[j] > 1000)
    return out


X, Y = torch.randn(9, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
MATRIX = torch.randn(4, 5, dtype=torch.float64)


@pytest.mark.parametrize("function", [sums, extremes, decisions])
def test_reductions_in_loops(function: Callable[..., Any]) -> None:
    agree(function, MATRIX)


def test_reductions_beside_loops() -> None:
    explained = agree(beside_loops, X, Y).explain(X, Y)
    assert "partial results" in explained


def test_names_of_a_generator_are_its_own() -> None:
    agree(a_scope_of_its_own, X)


def test_any_reads_no_further_than_it_must() -> None:
    agree(stops_early, torch.tensor([-1.0, 2.0]))


@pytest.mark.parametrize(("function", "name"), [(none_at_all, "max"), (none_left, "min")])
def test_an_empty_extreme_is_an_error(function: Callable[..., Any], name: str) -> None:
    kind, message = failure(function, X)
    assert kind is ValueError
    assert f"{name}() iterable argument is empty" in message


def first_label(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2, dtype=x.dtype)
    best, label = x[0], labels[-1]
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            label = labels[x.shape[0] - 1 - i]
    out[0] = best
    out[1] = label
    return out


def test_what_is_noted_of_a_place_is_read_at_all_of_them() -> None:
    rising = torch.arange(5, dtype=torch.float64)
    agree(first_label, rising, X)
    kind, message = failure(first_label, rising, Y[:2])
    assert kind is IndexError
    assert "index 3 is out of bounds" in message


def sum_of_column_norms(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    norms = x.new_empty(m)
    total = 0.0
    for j in range(m):
        s = 0.0
        for i in range(n):
            s += x[i, j] * x[i, j]
        norms[j] = s
        total += math.sqrt(s)
    for j in range(m):
        norms[j] /= total
    return norms


@pytest.mark.parametrize("shape", [(3, 70), (0, 3), (2, 0)])
def test_lanes_of_a_sum_over_columns_run_along_the_rows(shape: tuple[int, int]) -> None:
    x = torch.randn(*shape)
    text = agree(sum_of_column_norms, x).explain(x)
    outer, inner, *_ = (line for line in text.splitlines() if line.lstrip().startswith("for "))
    assert "vectorised by 32" in outer
    assert "in order" in inner
