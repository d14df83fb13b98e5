"""Lists that grow in operators whose host part runs in Python, and in helpers: both compiled."""

import pytest
import torch

import brickwork as bw


def put(items, value):
    items.append(value + 1)
    items.sort()


def ordered(x):
    values, order = x.sort()
    return values, order


def made_in_loops(x: torch.Tensor) -> torch.Tensor:
    y = torch.cumsum(x, 0)
    out = torch.zeros(len(x))
    for i in range(len(x)):
        found: list = []
        for j in range(i):
            if y[j] > 3:
                found.append(y[j])
                put(found, y[i])
        out[i] = sum(found) + len(found)
    return out


def kept_by_torch(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(len(x)):
        rows.append(x[i] * 2)
    return torch.stack(rows)


def added_to_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2)
    found = [3]
    put(found, 1)
    for i in range(len(x)):
        put(found, i - 7)
    out[0], out[1] = found[0], sum(found)
    return out


def sorted_by_torch(x: torch.Tensor) -> torch.Tensor:
    values, order = ordered(x)
    out = torch.zeros(len(x))
    for i in range(len(x)):
        out[i] = values[i] + order[i]
    return out


@pytest.mark.parametrize("function", [made_in_loops, kept_by_torch, added_to_by_a_helper, sorted_by_torch])
def test_agrees_with_python(function):
    made = bw.op(f"lists_and_torch::{function.__name__}")(function)
    x = torch.randn(12).abs()
    torch.testing.assert_close(made(x), made.python(x))


def test_what_has_no_torch_in_it_is_native():
    made = bw.op("lists_and_torch::native")(added_to_by_a_helper)
    assert "host part: native" in made.explain(torch.randn(3))


def test_loops_with_lists_of_their_own_are_compiled():
    made = bw.op("lists_and_torch::pieces")(made_in_loops)
    assert "compiled, as lists_and_torch::pieces__loop0" in made.explain(torch.randn(3))
