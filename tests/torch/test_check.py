"""`op.check`: all checks on every ready operator, and each of them fails where it should."""

import pytest
import torch

import brickwork as bw
from brickwork.ops import sample_normal, sin, timex, timex_padded
from brickwork.ops.brick_pad import brick_pad_colour, brick_pad_plane
from brickwork.pytorch.check import CHECKS

pytestmark = pytest.mark.filterwarnings("ignore")

LATTICE = ([1, 2], [4, 0], [2, 3])
ARGUMENTS = {
    timex: lambda: (torch.randn(2, 5), torch.randn(3, 2, 5), 0.1),
    timex_padded: lambda: (torch.randn(2, 1, 3), torch.randn(2, 2, 5), 0.1),
    sin: lambda: (torch.randn(4, 3),),
    sample_normal: lambda: (torch.randn(3), torch.rand(3), 5),
    brick_pad_plane: lambda: (torch.rand(3, 4), 7, 9, *LATTICE),
    brick_pad_colour: lambda: (torch.rand(3, 4, 2), 5, 6, *LATTICE),
}


@pytest.mark.parametrize("operator", ARGUMENTS, ids=lambda operator: operator.__name__)
def test_ready_operators(device, operator, capsys):
    operator.check(*ARGUMENTS[operator]())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == ["passed"] * len(CHECKS)


def test_results_that_are_not_a_number_are_the_same_in_compiled_graphs(capsys):
    @bw.op("bwcheck::changes")
    def changes(x: torch.Tensor) -> torch.Tensor:
        out = torch.full_like(x, float("nan"))
        for i in range(1, x.shape[0]):
            out[i] = x[i] - x[i - 1]
        return out

    changes.check(torch.randn(4))
    assert "opcheck        passed" in capsys.readouterr().out


def test_a_wrong_gradient_is_found(capsys):
    @bw.op("bwcheck::wrong")
    def wrong(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * x[i]
        return out

    wrong.check(torch.randn(3))

    @wrong.backward
    def _(x, grad):
        return x * grad

    with pytest.raises(AssertionError, match="gradcheck"):
        wrong.check(torch.randn(3))
    found = {line[len("bwcheck::wrong  ") :][:13].strip(): line for line in capsys.readouterr().out.splitlines()}
    assert "FAILED" in found["gradcheck"]
    assert "passed" in found["reference"]


def test_what_has_no_floats_is_skipped(capsys):
    @bw.op("bwcheck::counted")
    def counted(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] + 1
        return out

    counted.check(torch.arange(5))
    assert "skipped: no argument, or no result, is a tensor of floats" in capsys.readouterr().out


def test_batches_are_skipped_where_an_element_says_a_size(capsys):
    @bw.op("bwcheck::positive")
    def positive(x: torch.Tensor) -> torch.Tensor:
        count = torch.zeros(1, dtype=torch.int64)
        for i in range(x.shape[0]):
            if x[i] > 0:
                count[0] += 1
        total = int(count[0])
        out = x.new_empty(total)
        at = 0
        for i in range(x.shape[0]):
            if x[i] > 0:
                out[at] = x[i]
                at += 1
        return out

    positive.check(torch.arange(-3, 4))
    *_, batches = capsys.readouterr().out.splitlines()
    assert "skipped: the host part asks for the value of an element" in batches


@bw.op("checks::weighted_rows")
def weighted_rows(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Take elements at places that are floats: no gradient is that of rounding."""
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * x[min(max(int(places[i] * 10), 0), len(x) - 1)] + places[i]
    return out


def test_arguments_may_be_held_constant(capsys: pytest.CaptureFixture[str]) -> None:
    x, places = torch.rand(4), torch.arange(4) / 10
    weighted_rows.check(x, places, constant=("places",))
    assert "gradcheck      passed" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="gradcheck"):
        weighted_rows.check(x, places)
    with pytest.raises(ValueError, match="has no argument 'place' to hold constant: it has x, places"):
        weighted_rows.check(x, places, constant=("place",))
