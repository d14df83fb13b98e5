"""Lists that begin with items, or as comprehensions, of which tensors are made: their loops are compiled."""

# pyright: basic
from __future__ import annotations

import warnings

import pytest
import torch

import brickwork as bw


def begun(x: torch.Tensor) -> torch.Tensor:
    out = [x[0], x[1] * 2]
    for i in range(1, len(x)):
        out.append(0.9 * out[-1] + x[i])
    return torch.tensor(out)


def listed(x: torch.Tensor, level: float) -> torch.Tensor:
    keep = [i for i in range(len(x)) if x[i] > level]
    return torch.tensor(keep)


def placed(x: torch.Tensor) -> torch.Tensor:
    keep = []
    for i in range(len(x)):
        if x[i] > 0:
            keep.append(x[i] * 2)
    return torch.tensor(keep, dtype=torch.float64, device=x.device)


X = torch.tensor([1.0, -2.0, 0.5, 3.0, -0.25])


@pytest.mark.parametrize(("function", "arguments"), [(begun, (X,)), (listed, (X, 0.25)), (placed, (X,))])
def test_loops_are_compiled(function, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error", bw.BrickworkWarning)
        operator = bw.op(f"begun_lists::{function.__name__}")(function)
        found = operator(*arguments)
    wanted = function(*arguments)
    assert found.dtype is wanted.dtype
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(operator.python(*arguments), wanted)
    assert "__loop0" in operator.explain(*arguments)


def kept_by_python(x: torch.Tensor) -> torch.Tensor:
    parts = [x[0], x[1]]
    for i in range(2, len(x)):
        parts.append(x[i].nan_to_num())
    return torch.stack(parts)


def test_a_list_of_elements_is_pythons_where_python_needs_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        operator = bw.op("begun_lists::kept_by_python")(kept_by_python)
        torch.testing.assert_close(operator(X), X)
