"""Sums whose iterations warps share out are cut into pieces that are shorter than those of threads."""

import pytest
import torch

from brickwork.ir.nodes import Allocate, Constant, For, If, Role
from brickwork.ir.walk import walk
from brickwork.transform import split_reductions
from unit.transform.test_split_reductions import agree_in_pieces, loops_named, low_limits, parts_of, pieces_of

__all__ = ["low_limits"]


def nearest(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            best = 9.0
            for k in range(x.shape[1]):
                if k != j:
                    best = min(best, abs(x[i, j] - x[i, k]))
            total += best
        for k in range(x.shape[1]):
            most = 0.0
            for j in range(x.shape[1]):
                most = max(most, x[i, j] * x[i, k])
            total += most
        out[i] = total


def test_warps_are_cut_into_shorter_pieces():
    program = pieces_of(nearest, torch.ones(3, 5), torch.ones(3))
    assert set(parts_of(program)) == {2}
    warps = [node for piece in loops_named(program, "piece") for node in walk(piece) if isinstance(node, For)]
    warps = [node for node in warps if node.role is Role.WARP and not isinstance(node.start, Constant)]
    assert {node.index.name for node in warps} == {"j", "k"}
    choices = [node for node in walk(program) if isinstance(node, If) and isinstance(node.then[0], Allocate)]
    limits = [{item.value for item in walk(choice.condition) if isinstance(item, Constant)} for choice in choices]
    assert any({2 * split_reductions.WARPS.least, split_reductions.WARPS.few} <= each for each in limits)


@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 7), (3, 9), (3, 31), (7, 30), (3, 0)])
def test_pieces_of_warps_mean_what_the_source_says(few, long):
    x = torch.randint(-9, 9, (few, long)).float()
    agree_in_pieces(nearest, x, torch.ones(few))
