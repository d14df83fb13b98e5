"""Updates of elements in loops over lists: added up first, and made by the threads of a warp together."""

import pytest
import torch

from brickwork.ir.nodes import For
from brickwork.ir.walk import walk
from brickwork.transform.row_updates import row_update
from cpu.test_entry_cuda_emulated import rig_of
from support import emulated
from support.ptx import program_for_gpu
from support.scheduling import GPU
from support.shared import schedule_program, verify_program


def steps(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 1, 64)
    for i in range(x.shape[1]):
        state = [0.0] * 64
        for t in range(x.shape[0]):
            s, given = 0.0, x[t, i]
            for j in range(64):
                state[j] = state[j] * w[j] + given
                out[t, j] += state[j]
                out[x.shape[0], j] += state[j] * 2.0
                s += state[j]
            x[t, i] = s
    return out


def few(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 1, 16)
    for i in range(x.shape[1]):
        state = [1.0] * 16
        for t in range(x.shape[0]):
            s, given = 0.0, x[t, i]
            for j in range(16):
                state[j] = -state[j] + given * w[j]
                out[t, j] += state[j]
                out[x.shape[0], j] += state[j] * 2.0
                s += state[j]
            x[t, i] = s
    return out


def expected(function, x, w):
    items = 64 if function is steps else 16
    state = torch.full((x.shape[1], items), 0.0 if function is steps else 1.0)
    rows = []
    for t in range(x.shape[0]):
        given = x[t][:, None]
        state = state * w[:items] + given if function is steps else -state + given * w[:items]
        rows.append(state.sum(0))
    out = torch.stack(rows)
    return torch.cat((out, 2 * out.sum(0)[None]))


@pytest.mark.parametrize(("function", "whole"), [(steps, True), (few, False), (few, True)])
def test_rows_are_what_each_thread_adds(monkeypatch, function, whole):
    monkeypatch.setattr(emulated, "WHOLE_WARPS", whole)
    x = (torch.arange(2.0 * 64) * 7 % 5 - 2).reshape(2, 64)
    w = torch.arange(64.0) % 3 - 1
    rig = rig_of(function, x, w)
    assert torch.equal(rig.call(x.clone(), w)[0], expected(function, x, w))
    launched = [node for each in rig.gpu.launches for node in walk(each.kernel.body)]
    assert any(isinstance(node, For) and row_update(node) is not None for node in launched)


def test_rows_of_a_part_of_a_warp_are_made_one_by_one():
    x, w = torch.ones(2, 37), torch.arange(64.0) % 3 - 1
    assert torch.equal(rig_of(few, x, w).call(x.clone(), w)[0], expected(few, x, w))


@pytest.mark.parametrize("function", [steps, few])
def test_programs_with_rows_are_valid(function):
    program, _ = schedule_program(program_for_gpu(function, torch.ones(2, 3), torch.ones(64)), GPU)
    verify_program(program)
