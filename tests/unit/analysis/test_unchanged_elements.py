"""Elements of tensors that stay the same: equal ones are one unknown, fixed as long as their indices are."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.polyhedral_model import depth_of
from brickwork.analysis.verdicts import Bound
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Kernel, Launch, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from support.shared import define, lower

PLACES = TensorType(INT64, 1, contiguous=True, unit_axis=0)
VALUES = TensorType(FLOAT64, 1, contiguous=True, unit_axis=0)


def in_range(x: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
    """Test a place, and read what is there."""
    for j in range(min(len(p), len(q))):
        if p[j] >= 0 and p[j] < len(x):
            x[p[j]] = 1.0


def stored(x: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
    """Change the place after the test."""
    for j in range(min(len(p), len(q))):
        if p[j] >= 0 and p[j] < len(x):
            p[j] = j - 5
            x[p[j]] = 1.0


def exchanged(x: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
    """Let another tensor stand for the place after the test."""
    assert len(p) == len(q)
    for j in range(len(p)):
        inside = p[j] >= 0 and p[j] < len(x)
        if j > 2:
            p, q = q, p
        if inside:
            x[p[j]] = 1.0


def other(x: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
    """Change a tensor that may be the one that was tested."""
    for j in range(min(len(p), len(q))):
        if p[j] >= 0 and p[j] < len(x):
            q[j] = j - 5
            x[p[j]] = 1.0


def rows(x: torch.Tensor, p: torch.Tensor, q: torch.Tensor):
    """Begin the rows of all columns at the same places."""
    for i in range(len(p) - 1):
        for j in range(len(q)):
            s = 0.0
            for e in range(p[i], p[i + 1]):
                s += x[e]
            q[j] = int(s)


def kernel_of(function: Callable[..., object]) -> Kernel:
    program = lower(define(function), Signature((VALUES, PLACES, PLACES)))
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return kernel


def bound(kernel: Kernel) -> set[Bound]:
    """Return how the store into `x` is kept in range."""
    analysis = analyse(kernel)
    stores = [item for item in analysis.accesses if item.store and item.tensor.name == "x"]
    return {analysis.bounds[item.number, 0].bound for item in stores}


def test_what_was_tested_of_an_element_holds_for_it() -> None:
    assert bound(kernel_of(in_range)) == {Bound.PROVED}
    assert bound(kernel_of(other)) == {Bound.PROVED}


@pytest.mark.parametrize("function", [stored, exchanged])
def test_an_element_of_a_tensor_that_changes_is_another_one_each_time(function: Callable[..., object]) -> None:
    assert bound(kernel_of(function)) == {Bound.CHECKED}


def test_tensors_that_may_share_memory_may_change() -> None:
    assert bound(replace(kernel_of(other), may_alias=True)) == {Bound.CHECKED}


def test_an_element_is_fixed_as_long_as_its_indices_are() -> None:
    (loop,) = [item for item in analyse(kernel_of(rows)).model.loops if item.node.index.name == "e"]
    assert loop.depth == 2
    assert set(map(depth_of, loop.start.atoms())) == {1}
