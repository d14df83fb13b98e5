"""`op.python`: elements are values, indices are checked, results go where they are asked to go."""

from __future__ import annotations

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.reference import python_function
from brickwork.language.random import rand


def double(x: torch.Tensor, by: int = 2) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = x[i]
        s *= by
        out[i] = s
    return out


def beyond(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i + 1] = 1.0


def draws(n: int) -> torch.Tensor:
    out = torch.empty(n)
    for i in range(n):
        out[i] = rand()
    return out


def test_an_element_is_a_value_and_defaults_hold():
    x = torch.tensor([1.0, 2.0])
    assert python_function(define(double))(x).tolist() == [2.0, 4.0]
    assert python_function(define(double))(x, by=3).tolist() == [3.0, 6.0]
    assert x.tolist() == [1.0, 2.0]


def test_out_takes_the_result_and_its_shape_is_checked():
    out = torch.zeros(2)
    assert python_function(define(double))(torch.tensor([1.0, 2.0]), out=out) is out
    assert out.tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match="shape"):
        python_function(define(double))(torch.tensor([1.0]), out=out)


def test_an_index_out_of_range_names_tensor_index_and_shape():
    x = torch.zeros(3)
    with pytest.raises(
        IndexError, match=r"index 3 is out of bounds for dimension 0 of tensor 'x' with size 3 \(shape \(3,\)\)"
    ):
        python_function(define(beyond))(x)
    assert x.tolist() == [0.0, 1.0, 1.0]


def test_draws_follow_the_key_or_torchs_generator():
    run = python_function(define(draws))
    assert torch.equal(run(8, key=3), run(8, key=3))
    assert not torch.equal(run(8, key=3), run(8, key=4))
    torch.manual_seed(5)
    first = run(8)
    torch.manual_seed(5)
    assert torch.equal(first, run(8))
    assert not torch.equal(first, run(8))
