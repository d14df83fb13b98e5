"""Names that a loop gives a value to, read after the loop: allowed where the loop certainly runs and assigns them."""

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError


@bw.op("bwafter::marched")
def marched(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        t = 0.0
        hit = False
        for step in range(4):
            place, speed = x[i] * t, x[i] + step
            if place > 1.0:
                hit = True
                break
            t += speed
        if hit:
            out[i] = place + speed
    return out


@bw.op("bwafter::last_of_grid")
def last_of_grid(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for a, b in bw.ndrange(2, 3):
            value = x[i] * a + b
        out[i] = value
    return out


def skipping(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(3):
            if x[i] > k:
                continue
            value = x[i] * k
        x[i] = value


def perhaps_empty(x: torch.Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        for k in range(n):
            value = x[i] * k
        x[i] = value


def left_before(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for k in range(3):
            if x[i] > k:
                break
            value = x[i] * k
        x[i] = value


@pytest.mark.parametrize("operator", [marched, last_of_grid])
@pytest.mark.parametrize("n", [0, 1, 37])
def test_a_name_that_the_loop_certainly_assigns(operator, n):
    x = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(operator(x), operator.python(x), rtol=0, atol=0)


def test_the_loop_around_stays_parallel():
    assert "for i at" in marched.explain(torch.rand(9))
    assert "in order" not in marched.explain(torch.rand(9)).split("for step")[0]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(skipping, ()), (perhaps_empty, (2,)), (left_before, ())],
    ids=lambda item: str(item)[:20],
)
def test_a_name_that_may_have_no_value(function, arguments):
    with pytest.raises(CompileError, match="`value` may be read before it is assigned"):
        bw.op(f"bwafter::{function.__name__}")(function)(torch.rand(3), *arguments)
