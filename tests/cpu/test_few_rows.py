"""Long rows that few threads would each go along several times, shared out by blocks, on an emulated GPU."""

import math

import pytest
import torch

from brickwork.ir.nodes import For, If, Role
from brickwork.ir.walk import walk
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.schedule.short_rows import FEW_ROWS
from cpu.test_entry_cuda_emulated import rig_of
from support.emulated import emulated_target
from support.long_rows import soft_least
from support.pairs import in_turn
from support.ptx import program_for_gpu


def along_columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same of columns, which neighbouring threads read neighbours of."""
    out = torch.empty(x.shape[1])
    for i in range(x.shape[1]):
        best = -math.inf
        for j in range(x.shape[0]):
            best = max(best, x[j, i])
        total = y[i, 0] * 0
        for j in range(x.shape[0]):
            total += math.exp(x[j, i] - best)
        out[i] = best + math.log(total)
    return out


def roles(rig) -> set[Role]:
    found = (node for launched in rig.gpu.launches for node in walk(launched.kernel.body))
    return {node.role for node in found if isinstance(node, For)}


LEAST = emulated_target().block_threads // 4


@pytest.mark.parametrize(("points", "places"), in_turn([LEAST - 1, LEAST, LEAST + 1, 2 * LEAST + 77], [1, 3, 31], 1))
def test_blocks_share_long_rows_out_that_few_threads_would_go_along(points, places):
    x, y = torch.randn(5, places), torch.randn(points, places)
    rig = rig_of(soft_least, x, y)
    (found,) = rig.call(x, y)
    expected = torch.logsumexp(-((x.double()[:, None] - y.double()) ** 2).sum(2), 1)
    assert torch.allclose(found.double(), expected, rtol=1e-5, atol=1e-5)
    assert (Role.BLOCK in roles(rig)) == (points >= LEAST)


def has_few_rows(function, *arguments) -> bool:
    program, _ = schedule_program(program_for_gpu(function, *arguments), emulated_target())
    return any(isinstance(node, If) and node.version == FEW_ROWS for node in walk(program))


def test_columns_stay_with_the_threads_that_read_neighbours():
    assert has_few_rows(soft_least, torch.randn(5, 3), torch.randn(300, 3))
    x, y = torch.randn(LEAST + 1, 5), torch.randn(5, 1)
    assert not has_few_rows(along_columns, x, y)
    assert torch.allclose(rig_of(along_columns, x, y).call(x, y)[0], torch.logsumexp(x, 0), rtol=1e-5)


def one_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A sum that pieces are made of."""
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - y[j, k]) ** 2
            total += math.exp(-s)
        out[i] = total
    return out


def test_a_sum_that_pieces_are_made_of_stays_with_threads():
    assert not has_few_rows(one_sum, torch.randn(5, 3), torch.randn(300, 3))
