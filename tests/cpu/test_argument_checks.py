"""Checks of arguments alone, which are asked before a kernel, so that its loops may be cut into pieces."""

import pytest
import torch

from brickwork.ir.nodes import Check
from brickwork.ir.walk import walk
from brickwork.transform.argument_checks import without_argument_checks
from cpu.test_entry_cuda_emulated import rig_of
from support.lowering import memory
from support.ptx import program_for_gpu
from support.scheduling import GPU, same
from support.shared import schedule_program


def grouped(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    group = counts.shape[0] - 20
    out = torch.empty(w.shape[1])
    for n in range(w.shape[1]):
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k] * w[k, n] * scale[k // group, n]
        out[n] = s
    return out


def arguments(terms, group, groups):
    x = torch.arange(float(terms)) % 3 - 1
    w = (torch.arange(terms * 5.0) % 7 - 3).reshape(terms, 5)
    scale = (torch.arange(groups * 5.0) % 4 + 1).reshape(groups, 5)
    return x, w, scale, torch.empty(group + 20)


def expected(x, w, scale, counts):
    group = len(counts) - 20
    return (x[:, None] * w * scale[torch.arange(len(x)) // group]).sum(0)


@pytest.mark.parametrize(("terms", "group", "groups"), [(256, 64, 4), (200, 64, 4), (12, 5, 3), (12, -5, 4), (0, 0, 1)])
def test_groups_are_found_whatever_their_size(terms, group, groups):
    given = arguments(terms, group, groups)
    assert torch.equal(rig_of(grouped, *given).call(*given)[0], expected(*given) if terms else torch.zeros(5))


def test_loops_over_groups_are_cut_into_pieces():
    _, (scheduled,) = schedule_program(program_for_gpu(grouped, *arguments(256, 64, 4)), GPU)
    assert any(scheduled.schedule.pieces(loop) for loop in scheduled.analysis.loops)


def checks_left(function, *given):
    program = program_for_gpu(function, *given)
    (kernel,) = (node.kernel for node in walk(program) if hasattr(node, "kernel"))
    free, asked = without_argument_checks(kernel)
    return sum(isinstance(node, Check) for node in walk(free.body)), len(asked)


def of_changing(x: torch.Tensor, group: int) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for k in range(x.shape[0]):
        group = group - 1
        out[k] = k // group
    return out


def of_quotients(x: torch.Tensor, group: int) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for k in range(x.shape[0]):
        out[k] = k // (100 // group)
    return out


def of_elements(x: torch.Tensor, group: int) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for k in range(x.shape[0]):
        out[k] = k // int(x[0])
    return out


def test_only_checks_of_arguments_are_asked_before():
    x = torch.ones(3)
    assert checks_left(of_changing, x, 9) == (1, 0)
    assert checks_left(of_quotients, x, 9) == (0, 2)
    assert checks_left(of_elements, x, 9) == (1, 0)


@pytest.mark.parametrize("group", [9, -9, 101, -101, 0])
def test_a_divisor_that_is_a_quotient_is_asked_without_dividing_by_zero(group):
    same(of_quotients, memory([1.0] * 3), group)
