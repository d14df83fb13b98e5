"""What operators return: all results, as many as the annotation says, and no tensor twice."""

from typing import NamedTuple

import pytest
import torch
from torch._subclasses import FakeTensorMode

import brickwork as bw
from brickwork.diagnostics.errors import CompileError


class Pair(NamedTuple):
    """Two tensors under names."""

    values: torch.Tensor
    places: torch.Tensor


@bw.op("bwreturned::ordered")
def ordered(x: torch.Tensor):
    """What torch gives, as it is."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return torch.sort(out, descending=True)


@bw.op("bwreturned::largest")
def largest(x: torch.Tensor) -> "torch.return_types.max":
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    found = out.max(0)
    return found


@bw.op("bwreturned::pair")
def pair(x: torch.Tensor) -> Pair:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return Pair(out, torch.argsort(out))


def foreign(x):
    return x.clone(), torch.cumsum(x, 0)


def scaled(value):
    return value, value * 2


@bw.op("bwreturned::promised")
def promised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Only the annotation tells."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return foreign(out)


@bw.op("bwreturned::numbers")
def numbers(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A helper that gives two numbers."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return scaled(total)


@bw.op("bwreturned::twice_a_number")
def twice_a_number(x: torch.Tensor):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total, total


@pytest.mark.parametrize(
    "operator", [ordered, largest, pair, promised, numbers, twice_a_number], ids=lambda each: each.name
)
def test_all_results_are_returned(operator: bw.Op):
    x = torch.tensor([3.0, 1.0, 2.0])
    first, second = operator(x)
    expected = {
        ordered: torch.sort(x * 2, descending=True),
        largest: (x * 2).max(0),
        pair: (x * 2, torch.argsort(x)),
        promised: (x * 2, torch.cumsum(x * 2, 0)),
        numbers: (x.sum(), x.sum() * 2),
        twice_a_number: (x.sum(), x.sum()),
    }[operator]
    for found in ((first, second), operator.python(x), torch.compile(operator, backend="aot_eager")(x)):
        torch.testing.assert_close(tuple(found), tuple(expected))
    with FakeTensorMode() as mode:
        assert [each.shape for each in operator(mode.from_tensor(x))] == [first.shape, second.shape]
    assert first.data_ptr() != second.data_ptr()


def test_every_result_counts_in_a_gradient():
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    first, second = promised(x)
    (first.sum() + second.sum()).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [8.0, 6.0, 4.0]


def test_results_that_the_source_does_not_show_are_counted():
    def parts(x: torch.Tensor):
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i]
        return foreign(out)

    unsaid = bw.op("bwreturned::unsaid")(parts)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2))
    for call in (lambda: unsaid(torch.ones(2)), lambda: unsaid.python(torch.ones(2)), lambda: unsaid(fake)):
        with pytest.raises(CompileError, match=r"this gives 2 tensors, and `parts` is not annotated") as caught:
            call()
        assert caught.value.diagnostics[0].help == "annotate it as `-> tuple[torch.Tensor, torch.Tensor]`"


def test_a_tensor_under_two_names_is_one_result():
    def aliased(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.empty_like(x)
        other = out
        for i in range(x.shape[0]):
            out[i] = x[i]
        return out, other

    def aliased_in_python(x: torch.Tensor) -> list[torch.Tensor]:
        out = torch.sort(x)[0]
        other = out
        for i in range(x.shape[0]):
            out[i] = x[i]
        return [out, other]

    for function in (aliased, aliased_in_python):
        operator = bw.op(f"bwreturned::{function.__name__}")(function)
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(torch.ones(2))
        for value, call in ((torch.ones(2), operator), (torch.ones(2), operator.python), (fake, operator)):
            with pytest.raises(CompileError, match="`other` is a result twice: two results cannot share memory"):
                call(value)
