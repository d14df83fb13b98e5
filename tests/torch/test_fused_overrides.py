"""Overrides by pointwise operators, which Inductor makes part of its own kernels."""

import math

import pytest
import torch

import brickwork as bw
from support.inductor_graphs import compiled

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@bw.op("bwfusedover::sine")
def sine(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for index in bw.indices(x):
        out[index] = math.sin(x[index])
    return out


@bw.op("bwfusedover::half_sine")
def half_sine(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for index in bw.indices(x):
        out[index] = 0.5 * math.sin(x[index])
    return out


@bw.op("bwfusedover::called_sine", fuse=False)
def called_sine(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for index in bw.indices(x):
        out[index] = 0.25 * math.sin(x[index])
    return out


def test_overrides_are_fused():
    run, graphs = compiled(lambda x: torch.sin(x) + 1)
    x = torch.randn(3, 5, requires_grad=True)
    for _ in range(2):
        with bw.override("aten::sin", half_sine):
            found = run(x)
        torch.testing.assert_close(found, 0.5 * torch.sin(x) + 1)
        torch.testing.assert_close(torch.autograd.grad(found.sum(), x), (torch.cos(x),))
        torch.testing.assert_close(run(x), torch.sin(x) + 1)
    assert not graphs.calls()
    assert "aten::mul" in graphs.names()
    assert len(graphs.modules) == 3, "two forward, one backward"


def test_a_graph_for_each_formula_and_one_for_all_calls():
    run, graphs = compiled(lambda x: torch.sin(x) + 1)
    x = torch.randn(5)
    factors = {half_sine: 0.5, sine: 1.0, called_sine: 0.25, lambda x: 2 * torch.sin(x): 2.0}
    for _ in range(2):
        for callable_, factor in factors.items():
            with bw.override("aten::sin", callable_):
                found = run(x)
            torch.testing.assert_close(found, factor * torch.sin(x) + 1)
    assert len(graphs.modules) == 3
    assert graphs.calls() == {"brickwork_override::aten_sin"}


def test_the_newest_override_counts():
    run, graphs = compiled(torch.sin)
    x = torch.randn(5)
    with bw.override("aten::sin", half_sine):
        with bw.override("aten::sin", called_sine):
            torch.testing.assert_close(run(x), called_sine(x))
        torch.testing.assert_close(run(x), half_sine(x))
    assert graphs.calls() == {"brickwork_override::aten_sin"}


def test_a_formula_means_torchs_own_functions():
    run, graphs = compiled(lambda x: half_sine(x) + torch.sin(x))
    x = torch.randn(5)
    with bw.override("aten::sin", torch.cos):
        torch.testing.assert_close(run(x), half_sine(x) + torch.cos(x))
    assert {"aten::sin", "brickwork_override::aten_sin"} <= graphs.names()


def test_what_the_callable_does_not_take_is_torchs():
    run, graphs = compiled(torch.sin)
    numbers = torch.arange(5)
    with bw.override("aten::sin", sine):
        found = run(numbers)
    torch.testing.assert_close(found, torch.sin(numbers))
    assert graphs.calls() == {"brickwork_override::aten_sin"}
