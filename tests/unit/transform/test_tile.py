"""Nests that run along memory in one loop for some tensors and in another for the rest."""

import pytest
import torch

from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import walk
from brickwork.transform.schedule.text import Names
from support.layouts import columns, last_axis_first, transpose, transpose_and_add
from support.lowering import memory
from unit.transform.test_grid import agree, kernels, pieces_of


def numbers(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape).tolist()


def copy(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j + 0 * i] + x[i, 0]


def checked(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], x.shape[0]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            assert x[j, i] >= 0
            out[i, j] = x[j, i]
    return out


@pytest.mark.parametrize("shape", [(4, 4), (8, 12), (5, 3), (1, 9), (9, 1), (7, 13)])
def test_transposes(shape):
    x = memory(numbers(*shape))
    result = agree(transpose, x)[0]
    assert result == torch.tensor(numbers(*shape)).T.tolist()
    agree(transpose_and_add, x, memory(torch.tensor(numbers(*shape)).T.contiguous().tolist()))


@pytest.mark.parametrize("shape", [(2, 4, 4), (3, 5, 6), (1, 1, 1), (2, 8, 3)])
def test_permutes_of_three_axes(shape):
    assert agree(last_axis_first, memory(numbers(*shape)))[0] == torch.tensor(numbers(*shape)).permute(2, 0, 1).tolist()


def test_threads_lie_along_both_loops_and_take_several_of_each():
    _, pieces, (scheduled,) = pieces_of(last_axis_first, memory(numbers(2, 4, 4)))
    assert "bind(i, grid, 8)\nbind(i, lane, 4)\nunroll(j, 4, jam)" in str(scheduled.schedule)
    jammed, rest, single = kernels(pieces)
    for kernel, names, width in (
        (jammed, ["k", "j_block", "i"], 4),
        (rest, ["k", "j", "i"], 4),
        (single, ["k", "j", "i"], 1),
    ):
        loops = [node for node in walk(kernel) if isinstance(node, For)]
        assert [loop.index.name for loop in loops] == names
        assert {loop.role for loop in loops} == {Role.PARALLEL}
        assert (loops[-1].width, loops[-1].across) == (width, 8)
    names = Names(scheduled.source)
    assert names.read(names.text(scheduled.schedule)) == scheduled.schedule


@pytest.mark.parametrize(("function", "more"), [(columns, (1,)), (copy, (memory(numbers(2, 2)),))])
def test_what_runs_along_memory_in_one_loop_is_not_laid_in_tiles(function, more):
    _, _, (scheduled,) = pieces_of(function, memory(numbers(2, 2)), *more)
    assert "jam" not in str(scheduled.schedule)


def test_nests_that_could_fail_fail_in_the_threads_order():
    _, pieces, _ = pieces_of(checked, memory(numbers(2, 2)))
    assert any(isinstance(node, For) and node.index.name == "i_block" for node in walk(pieces))
    agree(checked, memory(numbers(5, 6)))
