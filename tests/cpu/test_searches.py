"""Searches with their results, bit for bit: in lanes and threads of processors, and on an emulated GPU."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import walk
from cpu.test_entry_cuda_emulated import rig_of
from support.kernels_searches import SEARCHES, first_greatest, flat_place, stores_meanwhile, values
from support.pairs import in_turn

pytestmark = pytest.mark.usefixtures("quick")

DTYPES = (torch.float32, torch.float64)


def bits(tensors):
    """Return the bits of results, where all that is not a number counts as one."""
    whole = {torch.float32: torch.int32, torch.float64: torch.int64}
    return [
        each.where(each == each, torch.nan).view(whole[each.dtype]) if each.is_floating_point() else each
        for each in tensors
    ]


def on_a_grid(function, x):
    """Return the call of a function on an emulated GPU, and the loops of its launches."""
    rig = rig_of(function, x)

    def call(x):
        return rig.call(x, outputs=2)

    return call, lambda: [node for each in rig.gpu.launches for node in walk(each.kernel.body) if isinstance(node, For)]


def agree(function, call, x):
    for one, other in zip(bits(function(x)), bits(call(x)), strict=True):
        assert torch.equal(one, other), x


@pytest.mark.parametrize("function", SEARCHES, ids=lambda function: function.__name__)
def test_on_processors(function):
    operator = bw.op(function)
    for seed, (shape, dtype) in enumerate(in_turn([(2, 1), (3, 7), (5, 40), (3, 300), (2, 9000)], DTYPES, 1)):
        agree(function, operator, values(*shape, seed=seed, dtype=dtype))


@pytest.mark.parametrize(
    ("function", "shape"), in_turn(SEARCHES, [(2, 40), (3, 7)], 1), ids=lambda item: getattr(item, "__name__", "")
)
def test_on_a_grid(function, shape):
    x = values(*shape, seed=shape[1])
    agree(function, on_a_grid(function, x)[0], x)


@pytest.mark.parametrize("function", [first_greatest, flat_place])
def test_several_warps_and_pieces(function):
    x = values(1, 5000) if function is flat_place else values(1, 600)
    agree(function, on_a_grid(function, x)[0], x)


def test_stores_beside_a_search_are_for_the_same_threads():
    """There is one launch, which has the search in it."""
    x = values(2, 140, seed=1)
    call, launched = on_a_grid(stores_meanwhile, x)
    agree(stores_meanwhile, call, x)
    loops = launched()
    assert [node.index.name for node in loops if node.role is Role.THREAD] == ["j"]
    assert [node.index.name for node in loops if node.role is Role.BLOCK] == ["i"]


@bw.op("searches::elsewhere")
def elsewhere(x: torch.Tensor) -> torch.Tensor:
    """The search compares with an element that is not always at the place it notes."""
    out = torch.zeros(1, dtype=torch.int64)
    at = 0
    for j in range(x.shape[0] - 5):
        k = at + 5 if at < 3 else at
        if x[j] < x[k]:
            at = j
    out[0] = at
    return out


@bw.op("searches::from_the_end")
def from_the_end(x: torch.Tensor, at: int) -> torch.Tensor:
    """Places count from the end for a while."""
    out = torch.zeros(1, dtype=torch.int64)
    for j in range(-3, x.shape[0]):
        if x[j] < x[at]:
            at = j
    out[0] = at
    return out


@pytest.mark.parametrize("seed", range(12))
def test_the_value_that_is_kept_is_the_one_compared_with(seed):
    x = torch.rand(12, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(elsewhere(x), elsewhere.python(x))
    assert torch.equal(from_the_end(x, 4), from_the_end.python(x, 4))
    assert "joined by min" not in str(elsewhere.explain(x))
    assert "joined by min" in str(from_the_end.explain(x, 4))
