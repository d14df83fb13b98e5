"""Each condition of `element_extremes` decides about a program: it is found, or it only looks as if it were one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir.nodes import Allocate, For, Program
from brickwork.ir.walk import walk
from support.gradients import check_gradients, derived, numbers
from support.kernels_extremes_conditions import (
    APART,
    MEETING,
    NOT_FOUND,
    half_before,
    in_two_steps,
    over_fewer,
    over_three,
    squared,
    times_a_number,
)

CLAIMED = (in_two_steps, half_before, times_a_number)
"""Their adjoints are independent by claims alone."""
PLACE = torch.tensor([0, 2, 0, 1, 2])


def _wheres(program: Program) -> int:
    return sum(isinstance(node, Allocate) and node.tensor.name.endswith("_where") for node in walk(program))


@pytest.mark.parametrize("function", [*APART, *MEETING], ids=lambda item: item.__name__)
def test_they_are_found(function: Callable[..., Any]) -> None:
    arguments = (numbers(5, 2), PLACE, numbers(3, 2))
    program = derived(function, arguments)
    assert _wheres(program) == (2 if function in {over_three, over_fewer} else 1)
    claimed = any(isinstance(node, For) and node.claimed for node in walk(program))
    assert claimed == (function in CLAIMED)


@pytest.mark.parametrize("function", [*APART, *MEETING], ids=lambda item: item.__name__)
def test_their_gradients_are_those_of_central_differences(function: Callable[..., Any]) -> None:
    check_gradients(function, numbers(5, 2), PLACE, numbers(3, 2))


@pytest.mark.parametrize("function", NOT_FOUND, ids=lambda item: item.__name__)
def test_they_only_look_as_if(function: Callable[..., Any]) -> None:
    assert not _wheres(derived(function, (numbers(5, 2), PLACE, numbers(3, 2))))


def test_products_of_half_types_are_rounded_to_more_than_they_are_stored_in() -> None:
    arguments = (numbers(5, 2), PLACE, numbers(3, 2))
    assert not _wheres(derived(squared, tuple(item.half() if item.is_floating_point() else item for item in arguments)))
