"""What the language's own functions are in plain Python."""

from __future__ import annotations

import contextlib
import importlib
from types import SimpleNamespace

import pytest
import torch

from brickwork.ir.operators import OPERATORS
from brickwork.language.loops import indices, ndrange, prange
from brickwork.language.math import FUNCTIONS
from brickwork.language.random import rand, randint, randn


def test_prange_is_range():
    assert list(prange(3)) == [0, 1, 2]
    assert list(prange(1, 3)) == [1, 2]


def test_ndrange_runs_over_tuples_the_last_index_fastest():
    assert list(ndrange(2, (1, 3), parallel=True)) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert list(ndrange((2, 4))) == [2, 3]
    assert list(ndrange(3, 0)) == []


def test_indices_runs_over_the_elements():
    assert list(indices(SimpleNamespace(shape=(2, 2)))) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(indices(SimpleNamespace(shape=()))) == [()]


@pytest.mark.parametrize(("draw", "arguments"), [(rand, ()), (randn, ()), (randint, (0, 4))])
def test_a_draw_outside_of_an_operator_says_so(draw, arguments):
    with pytest.raises(RuntimeError, match=rf"bw\.{draw.__name__}\(\) draws inside the loops of an operator"):
        draw(*arguments)


def test_every_function_exists_and_has_an_operator_of_its_arity():
    for path, name in FUNCTIONS.items():
        module, _, function = path.replace("torch.special_", "torch.special.").rpartition(".")
        called = getattr(importlib.import_module(module), function)
        number = torch.ones(()) if module.startswith("torch") else 1.0
        with contextlib.suppress(ValueError):
            called(*[number] * OPERATORS[name].arity)
