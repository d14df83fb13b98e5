"""What the steps of a recurrence read is asked for before the turn, and short rows are read in chunks."""

import math
import re

import pytest
import torch

from brickwork.target.cuda import cuda_target
from support.ptx import assemble, program_for_gpu, ptx_of

GPU = cuda_target((9, 0))
LOAD, DIVISION = "ld.global", "rcp.rn.f32"


def divided(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 1.0
        for t in range(x.shape[0]):
            s = 1.0 / (s + x[t, c])
            y[t, c] = s


def backwards(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 1.0
        for t in range(x.shape[0]):
            at = x.shape[0] - 1 - t
            s = 1.0 / (s + x[at, c])
            y[at, c] = s


def in_place(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 1.0
        for t in range(x.shape[0]):
            s = 1.0 / (s + x[t, c])
            x[t, c] = s


def at_what_was_computed(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s, at = 1.0, 0
        for t in range(x.shape[0]):
            s = 1.0 / (s + x[at % x.shape[0], c])
            at = at * 3 + 1
            y[t, c] = s


def at_the_last_place(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s, at = 1.0, 0
        for t in range(x.shape[0]):
            s = 1.0 / (s + x[at % x.shape[0], c])
            at = t * 3 + 1
            y[t, c] = s


def in_a_branch(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 1.0
        for t in range(x.shape[0]):
            if s > 0.5:
                s = 1.0 / (s + x[t, c])
            y[t, c] = s


def never_held_back(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[1]):
        s = 1.0
        for t in range(x.shape[0]):
            s = s * 0.5 + math.sqrt(s * s) * x[t, c]
            y[t, c] = s


def blocks_of(function):
    """Return the blocks between labels of the PTX for tensors of float32."""
    ptx = ptx_of([program_for_gpu(function, torch.zeros(64, 8), torch.zeros(64, 8))], GPU)
    return re.split(r"^\$L.*:$", ptx, flags=re.MULTILINE)


def early(function):
    """Return the most loads that come before a division in a block, those of the body with checks aside."""
    blocks = [block for block in blocks_of(function) if DIVISION in block]
    return max(block[: block.index(DIVISION)].count(LOAD) for block in blocks)


@pytest.mark.parametrize("function", [divided, backwards])
def test_a_turn_reads_for_the_next_before_it_divides(function):
    assert early(function) == 4


@pytest.mark.parametrize("function", [in_place, at_what_was_computed, at_the_last_place, in_a_branch])
def test_what_a_step_may_change_or_leave_out_is_read_in_its_turn(function):
    assert early(function) == 1


def test_steps_without_branches_are_left_to_the_assembler():
    assert not any(block.count(LOAD) > 4 for block in blocks_of(never_held_back))


def test_early_reads_assemble(tmp_path):
    programs = [
        program_for_gpu(each, torch.zeros(64, 8), torch.zeros(64, 8)) for each in (divided, backwards, in_place)
    ]
    for capability in ((7, 5), (12, 0)):
        target = cuda_target(capability)
        found = assemble(ptx_of(programs, target), target, tmp_path)
        assert all(each.spilled == 0 for each in found.values())


def areas(boxes: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(boxes.shape[0]):
        out[i] = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])


def widths(boxes: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(boxes.shape[0]):
        out[i] = boxes[i, 2] - boxes[i, 0]


def shifted(boxes: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(boxes.shape[0]):
        out[i] = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        boxes[i, 0] = 0.0


@pytest.mark.parametrize(("function", "wide"), [(areas, True), (widths, False), (shifted, False)])
def test_rows_of_which_most_is_read_are_read_in_chunks(function, wide):
    ptx = ptx_of([program_for_gpu(function, torch.zeros(64, 4), torch.zeros(64))], GPU)
    assert ("v4" in ptx) == wide
    assert "ld.global.nc.b32" in ptx or "ld.global.b32" in ptx  # rows of another length


def running(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            s += x[c, t]
            y[c, t] = s


def greatest(x: torch.Tensor, y: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        s = 0.0
        for t in range(x.shape[1]):
            s = max(s, x[c, t] * x[c, t])
            y[c, t] = s


@pytest.mark.parametrize("function", [running, greatest])
def test_steps_along_memory_read_and_store_chunks(function):
    text = ptx_of([program_for_gpu(function, torch.ones(2, 8), torch.ones(2, 8))], GPU)
    assert "ld.global.nc.v4" in text
    assert "st.global.v4" in text
