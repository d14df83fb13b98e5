"""Loops whose iterations fill scratch tensors, on processors: pieces of them have a part each, of any size."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Constant, For, If
from brickwork.ir.parse import parse_kernel
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel
from brickwork.ir.walk import statements, walk
from brickwork.transform import expand_scratch, privatise
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import ScheduledKernel, schedule_program
from support.lowering import argument_type, memory
from support.scheduling import AVX2, same

Function = Callable[..., object]


def rows(x: torch.Tensor):
    """Fill a vector in each row, and read it from its end."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = torch.empty(x.shape[1])
        for j in range(x.shape[1]):
            s[j] = x[i, j] * i
        for j in range(x.shape[1]):
            out[i, j] = s[len(s) - 1 - j]
    return out


def tabled(x: torch.Tensor):
    """Fill a table of steps, each from those beside it."""
    n = x.shape[1]
    out = torch.empty(x.shape[0])
    for b in range(x.shape[0]):
        m = torch.zeros(n + 1, n + 1)
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                m[i, j] = min(m[i - 1, j] + 1, m[i, j - 1] + x[b, i - 1], m[i - 1, j - 1] + x[b, j - 1])
        out[b] = m[n, n]
    return out


def counted(x: torch.Tensor):
    """Count in a vector for each row, which an element may be beyond."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = torch.zeros(x.shape[1])
        for j in range(x.shape[1]):
            s[int(abs(x[i, j]))] += x[i, 0]
        for j in range(x.shape[1]):
            out[i, j] = s[j]
    return out


def few_of_many(x: torch.Tensor):
    """Fill a vector of as many elements as a constant says."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = torch.zeros(500)
        for j in range(x.shape[1]):
            s[int(abs(x[i, j]))] += 1.0
        for j in range(x.shape[1]):
            out[i, j] = s[j]
    return out


X = memory([[1.0, -2.0, 3.0, 0.5], [4.0, 5.0, -6.0, 1.0], [-7.0, 8.0, 9.0, 0.25]])
Y = memory([0.0, 0.0, 0.0])
SMALL = memory([[1.0, -2.0, 3.0, 0.5], [3.0, 2.0, 2.5, 0.25], [1.0, -1.0, 1.0, 1.0], [0.0, 3.0, 1.0, 1.5]])
ONE_TOO_LARGE = memory([[1.0, -2.0, 0.0], [0.5, 2.0, 1.0], [0.0, 4.0, 1.0], [0.5, 0.25, 2.0]])


def kernels(function: Function, *arguments: object) -> dict[str, ScheduledKernel]:
    program = lower(define(function), Signature(tuple(map(argument_type, arguments))))
    return {item.kernel.name: item for item in schedule_program(program, AVX2)[1]}


@pytest.mark.parametrize(
    "x", [SMALL, ONE_TOO_LARGE, Memory([], (0, 3), (3, 1), FLOAT32), Memory([], (2, 0), (0, 1), FLOAT32)]
)
def test_checked_accesses_fail_in_parts_as_they_do_in_one_tensor(x: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand_scratch, "PIECES", 3)
    same(counted, x)


def claimed(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        s = torch.zeros(x.shape[1])
        for j in range(x.shape[1]):
            s[int(abs(x[i, j]))] += x[i, 0]
        for j in range(x.shape[1]):
            out[i, j] = s[j]
    return out


def test_what_is_claimed_of_a_loop_is_said_of_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand_scratch, "PIECES", 3)
    loops = statements(kernels(claimed, SMALL)["claimed_expanded"].source.body)
    assert {node.index.name for node in loops if isinstance(node, For) and node.claimed} == {"i_piece"}


def thresholds(function: Function, *arguments: object) -> set[object]:
    """Return the numbers that sizes are compared with before an expanded kernel, where there is one."""
    program = schedule_program(lower(define(function), Signature(tuple(map(argument_type, arguments)))), AVX2)[0]
    chosen = [node.condition for node in statements(program.body) if isinstance(node, If)]
    return {node.value for condition in chosen for node in walk(condition) if isinstance(node, Constant)}


def test_processors_have_room_for_what_is_proved_in_range() -> None:
    assert {privatise.LARGEST // 4, AVX2.scratch_bytes} <= thresholds(rows, X)
    assert AVX2.scratch_bytes in thresholds(counted, X)
    assert privatise.LARGEST // 4 not in thresholds(counted, X)
    assert AVX2.scratch_bytes not in thresholds(few_of_many, X)


@pytest.mark.parametrize(("function", "shared"), [(rows, True), (counted, False), (tabled, False)])
def test_loops_inside_that_could_share_the_work_ask_for_more_iterations(
    function: Function, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand_scratch, "PIECES", 154)
    assert (77 in thresholds(function, X)) == shared


def test_messages_do_not_speak_of_the_axis_of_pieces() -> None:
    item = kernels(counted, SMALL)["counted_expanded"]
    said = str(explain(item))
    assert "index 0 of 's' stored into is checked" in said
    assert "index 1 of 's'" not in said
    kernel = item.source
    assert [tensor.added for tensor in kernel.tensors if tensor.name == "s"] == [1]
    assert parse_kernel(print_kernel(kernel)) == kernel


def a_step_of_two(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        state, new = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
        for t in range(4):
            for a in range(2):
                new[a] = state[1 - a] + x[i, t] * a
            for a in range(2):
                state[a] = new[a]
        y[i] = state[0] - state[1]


def test_what_a_loop_carries_in_another_tensor_leaves_its_iterations_to_the_loop_around() -> None:
    found = kernels(a_step_of_two, X, Y)["a_step_of_two"].analysis.loops
    assert {index.name for index, verdict in found.items() if not verdict.independent} == {"t"}
    same(a_step_of_two, X, Y)
