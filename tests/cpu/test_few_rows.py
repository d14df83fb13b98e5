"""Long rows that few threads would each go along several times, shared out by blocks, on an emulated GPU."""

import math

import pytest
import torch

from brickwork.ir.nodes import Constant, For, If, Role
from brickwork.ir.walk import operands_of, walk
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


def triangle(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Sums over two loops, of which the outer one ends where the row says."""
    out = torch.empty(s.shape[0])
    for a in range(s.shape[0]):
        t = 0.0
        for b in range(a + 1):
            for i in range(x.shape[0]):
                t += s[a, b] * x[i, b]
        out[a] = t
    return out


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("length", [LEAST - 1, LEAST])
def test_blocks_share_out_sums_that_no_pieces_are_made_of(rows, length):
    x, s = (torch.randint(-4, 5, shape).float() for shape in ((length, rows), (rows, rows)))
    rig = rig_of(triangle, x, s)
    assert torch.equal(rig.call(x, s)[0], (s.tril() * x.sum(0)).sum(1))
    assert (Role.BLOCK in roles(rig)) == (length >= LEAST)


def most_rows(function, *arguments) -> int:
    """How many rows are no longer few."""
    program, _ = schedule_program(program_for_gpu(function, *arguments), emulated_target())
    asked = (node.condition for node in walk(program) if isinstance(node, If) and node.version == FEW_ROWS)
    limits = (part.operands[1] for part in operands_of(next(asked), "logical_and") if part.operator.name == "lt")
    return max(int(limit.value) for limit in limits if isinstance(limit, Constant))


def columns(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """The same of columns, which neighbouring threads read neighbours of."""
    out = torch.empty(x.shape[1])
    for a in range(x.shape[1]):
        t = 0.0
        for b in range(a + 1):
            for i in range(x.shape[0]):
                t += x[i, a] * s[b]
        out[a] = t
    return out


def test_fewer_columns_are_few_where_threads_read_neighbours():
    x, s = torch.randint(-4, 5, (LEAST, 5)).float(), torch.randint(-4, 5, (5,)).float()
    few = emulated_target().threads // 2
    assert most_rows(triangle, x, torch.ones(5, 5)) == few
    assert 1 < most_rows(columns, x, s) <= few // 4
    assert torch.equal(rig_of(columns, x, s).call(x, s)[0], x.sum(0) * s.cumsum(0))


def test_columns_whose_sums_have_pieces_stay_with_threads():
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
