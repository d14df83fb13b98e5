"""Sums of loops that each stand in a branch of their own are cut into pieces together."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import If, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import split_reductions
from support.lowering import argument_type, numbers
from support.scheduling import GPU, same, way
from support.tensors import to_memory


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = split_reductions.Limits(few=8, least=4, unit=1, enough=12, most=3)
    monkeypatch.setattr(split_reductions, "THREADS", limits)


def in_branches(x: torch.Tensor, out: torch.Tensor) -> None:
    """Each column sums in some of three loops."""
    for j in range(x.shape[1]):
        s = 0.0
        if j > 0:
            for i in range(x.shape[0]):
                s += x[i, j]
        if j < 2:
            for i in range(x.shape[0]):
                s += x[i, j] * 3
        if j != 1:
            for i in range(1, x.shape[0]):
                s += x[i - 1, j] * 5
        out[j] = s


def after_a_test_of_it(x: torch.Tensor, out: torch.Tensor) -> None:
    """Whether the second loop runs depends on what the first has summed."""
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        if s > 0.0:
            for i in range(x.shape[0]):
                s += x[i, j] * 3
        out[j] = s


def beside_checks(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    """The halves of a row are weighed apart, one by weights that elements choose."""
    half = x.shape[1] // 2
    for j in range(x.shape[1]):
        s = 0.0
        if j < half:
            for i in range(x.shape[0]):
                s += x[i, j] * w[j]
        if j >= half:
            for i in range(x.shape[0]):
                s += x[i, j] * w[at[j]]
        out[j] = s


def launches(function: Callable[..., object], *arguments: object) -> list[int]:
    """Return the numbers of launches of the choices that make partial results."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces = way(function, signature, GPU)
    choices = [node for node in walk(pieces) if isinstance(node, If) and node.version.startswith("pieces")]
    return [sum(isinstance(item, Launch) for item in choice.then) for choice in choices]


@pytest.mark.parametrize("function", [in_branches, after_a_test_of_it])
@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 7), (3, 8), (3, 29), (4, 30), (9, 30), (3, 0)])
def test_pieces_mean_what_the_source_says(function: Callable[..., object], few: int, long: int) -> None:
    same(function, numbers(long, few), numbers(few))


def test_loops_in_branches_are_cut_together() -> None:
    found = launches(in_branches, numbers(30, 3), numbers(3))
    assert found
    assert set(found) == {2}


@pytest.mark.parametrize(("few", "long"), [(3, 30), (4, 30), (4, 8), (4, 0), (1, 30)])
def test_sums_beside_checks_are_those_of_the_source(few: int, long: int) -> None:
    same(beside_checks, numbers(long, few), numbers(4), to_memory(torch.arange(few) % 3), numbers(few))


def test_sums_beside_checks_are_joined_only_if_none_failed() -> None:
    arguments = (numbers(30, 4), numbers(4), to_memory(torch.tensor([9, 9, 1, 4])), numbers(4))
    found = launches(beside_checks, *arguments)
    assert found
    assert set(found) == {3}  # one lowers the flag that a failed check raises
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    left = [*arguments[3].data]
    with pytest.raises(IndexError, match="index 4"):
        run_program(way(beside_checks, signature, GPU), arguments, check=True)
    assert [*arguments[3].data] == left


def test_a_sum_that_is_asked_for_is_a_nest_of_its_own() -> None:
    """What asks for it is launched after it, and each of both is cut by itself."""
    found = launches(after_a_test_of_it, numbers(30, 3), numbers(3))
    assert found
    assert set(found) == {2}
