"""Long sums are cut into pieces where all that an iteration does stands in a branch."""

import pytest
import torch

from unit.transform.test_split_reductions import agree_in_pieces, low_limits, parts_of, pieces_of

__all__ = ["low_limits"]


def wholly_in_branches(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        before = out[j]
        if j != 1:
            s = before * 3.0
            if s > 2.0:
                t = s + 1.0
                for i in range(x.shape[0]):
                    t += x[i, j]
                out[j] = t - before


def or_else(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        if j != 1:
            s = 1.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        else:
            out[j] = 7.0


@pytest.mark.parametrize("function", [wholly_in_branches, or_else])
@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 7), (3, 8), (3, 29), (4, 30), (9, 30), (3, 0)])
def test_pieces_mean_what_the_source_says(function, few, long):
    agree_in_pieces(function, torch.randint(-9, 9, (long, few)).float(), torch.ones(few))


@pytest.mark.parametrize(("function", "launches"), [(wholly_in_branches, {2}), (or_else, set())])
def test_nests_in_one_branch_alone_are_cut(function, launches):
    assert set(parts_of(pieces_of(function, torch.ones(3, 3), torch.ones(3)))) == launches
