"""Loops with `else`, and over enumerate, zip, reversed, tensors and tuples; they stay parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

WEIGHTS = (0.25, 0.5, 0.25)
STENCIL = ((-1, 0.25), (0, 0.5), (1, 0.25))


def first_above(x: torch.Tensor, v: float) -> torch.Tensor:
    out = torch.zeros(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > v:
                found = j
                break
        else:
            found = -1
        out[i] = found
    return out


def steps_until(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        n = 0
        while n < 5:
            if x[i] * n > 1.5:
                break
            n += 1
        else:
            n = 100
        out[i] = n
    return out


def else_of_else(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(3):
            for k in range(3):
                if x[i] * (j + k) > 2:
                    break
            else:
                continue
            out[i] = 10 * j
            break
        else:
            out[i] = -1
    return out


def else_without_break(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i]
    else:
        out[0] = 7
    return out


def over_pairs(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i, v in enumerate(x):
        out[i] = v * 2 + i
    return out


def counted_from(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i, v in enumerate(x[1], 1):
        out[0, i - 1] = v * i
    for i, k in enumerate(range(5, 1, -2), start=-1):
        out[i, 0] = k
    return out


def dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    s = torch.zeros(1, dtype=torch.float64)
    for a, b in zip(x, y):
        s[0] += a * b
    return s


def nested_targets(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(y)
    for i, (a, (b, k)) in enumerate(zip(x, zip(y, range(3, 100, 2)))):
        out[i] = a - b * k
    return out


def backwards(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    k = 0.0
    for v in reversed(x):
        k = 0.5 * k + v
    for i in reversed(range(1, x.shape[0], 2)):
        out[i] = x[i] + k
        k += 1
    for i in reversed(range(x.shape[0])):
        out[i] -= 1
    for i in reversed(range(0)):
        out[i] = 100
    for w in reversed(WEIGHTS):
        out[0] = out[0] * 2 + w
    return out


def rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i, row in enumerate(x):
        for v in row:
            out[i] += v
    return out


def written_rows(x: torch.Tensor) -> None:
    for i, row in enumerate(x):
        for j in range(len(row)):
            row[j] = i * row[j]


def live(x: torch.Tensor) -> None:
    for i, v in enumerate(x):
        if i + 1 < x.shape[0]:
            x[i + 1] += v


def over_constants(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    n = x.shape[0]
    for i in range(n):
        s = 0.0
        for d, w in STENCIL:
            if i + d < 0:
                continue
            if i + d >= n:
                break
            s += w * x[i + d]
        else:
            s += 100
        for a in (1, 2.5, 3):
            s += a
        for k, w in enumerate(WEIGHTS):
            s += k * w
        out[i] = s
    return out


def weights_by_a_variable(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(3):
            out[i] += WEIGHTS[j] * x[i] + STENCIL[j][1] - STENCIL[-j][0]
    return out


def zipped_with_constants(x: torch.Tensor) -> torch.Tensor:
    s = torch.zeros((), dtype=x.dtype)
    for w, v in zip(WEIGHTS, x):
        s[()] += w * v
    return s


def the_value_is_kept(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i, v in enumerate(x):
        x[i] = 7.0
        out[i] = v
        v += 1
        out[i] += v
    return out


X, Y = torch.randn(9, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
MATRIX = torch.randn(4, 5, dtype=torch.float64)
CASES = [
    (first_above, (torch.rand(6, 5), 0.7)),
    (first_above, (torch.rand(3, 0), 0.5)),
    (steps_until, (torch.rand(8),)),
    (else_of_else, (2 * torch.rand(9),)),
    (else_without_break, (X,)),
    (over_pairs, (X,)),
    (counted_from, (MATRIX,)),
    (dot, (X, Y)),
    (dot, (Y[:0], X)),
    (nested_targets, (X, Y)),
    (backwards, (X,)),
    (rows, (MATRIX,)),
    (written_rows, (MATRIX,)),
    (live, (X,)),
    (over_constants, (X,)),
    (weights_by_a_variable, (X,)),
    (zipped_with_constants, (X,)),
    (zipped_with_constants, (X[:2],)),
]


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=lambda item: getattr(item, "__name__", None))
def test_it_means_what_python_means(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    agree(function, *arguments)


def test_an_element_is_a_value_once_its_turn_has_begun() -> None:
    agree(the_value_is_kept, X, plain=False)


@pytest.mark.parametrize("function", [over_pairs, rows, nested_targets, dot])
def test_independent_turns_run_in_parallel(function: Callable[..., Any]) -> None:
    arguments = (MATRIX,) if function is rows else (X, Y) if function in {nested_targets, dot} else (X,)
    explained = agree(function, *arguments).explain(*arguments)
    assert "in parallel" in explained
    assert "checked" not in explained
