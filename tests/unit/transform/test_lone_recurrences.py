"""Recurrences that stand alone run in chunks on grids, where they can be cut, and others in order."""

from dataclasses import replace
from itertools import product

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import If
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import split_recurrences
from support.shared import define, lower, schedule_program, verify_program
from support.sweep import sampled
from support.tensors import argument_type, to_memory, to_tensor

GPU = replace(cuda_target((9, 0)), threads=64, launch_ns=0)
"""A machine for which a few iterations are worth being cut."""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(split_recurrences, "UNROLLED", 2)


def running_sum(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for t in range(x.shape[0]):
        s += x[t]
        out[t] = s


def with_total(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = x[0]
    for t in range(1, x.shape[0]):
        out[t] = s
        s += x[t]
    out[0] = s
    for t in range(x.shape[0]):
        out[t] += s


def decayed(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 3.0
    for t in range(x.shape[0]):
        s = s * at[t] + x[t]
        out[t] = s
    for t in range(x.shape[0]):
        s = s * -1.0 + x[t]
        out[t] += s
    out[0] = s


def numbered(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    m, k = 4, 0
    for t in range(x.shape[0]):
        out[t] = m * 100 + k
        if x[t] > 0.0:
            m += 1
        elif x[t] < -1.0:
            k += at[t]
    if x.shape[0] > 2:
        out[0] = m * 100 + k


def with_a_sum_beside(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s, total = 1.0, 2.0
    for t in range(x.shape[0]):
        s = x[t] - s
        total += x[t] * s
        out[t] = s
    out[0] = s + total


def of_whole_numbers(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 0
    for t in range(x.shape[0]):
        out[t] = s
        s += at[t]


def placed(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for t in range(x.shape[0]):
        s += x[t]
        out[at[t]] = s


def previous_results(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for t in range(1, x.shape[0]):
        s = s * x[t] + out[t - 1]
        out[t] = s


CUT = [running_sum, with_total, decayed, numbered, with_a_sum_beside, of_whole_numbers, placed, previous_results]


def squared(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 1.0
    for t in range(x.shape[0]):
        s = s * s - x[t]
        out[t] = s


def ended(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 1.0
    for t in range(x.shape[0]):
        s += x[t]
        if s > 100.0:
            break
        out[t] = s


def last_of_another(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s, z = 1.0, 0.0
    for t in range(x.shape[0]):
        s += x[t]
        z = x[t]
        out[t] = s
    out[0] = z


def asserted(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 1.0
    for t in range(x.shape[0]):
        s += x[t]
        assert s > -1e9
        out[t] = s


def with_a_loop(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 1.0
    for t in range(x.shape[0]):
        for u in range(2):
            s += x[t]
        out[t] = s


def of_narrow_floats(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = at[0] > 1
    for t in range(x.shape[0]):
        s = not s
        out[t] = float(s)


def only_a_sum(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for t in range(x.shape[0]):
        s += x[t]
    out[0] = s


OTHERS = [
    squared,
    ended,
    last_of_another,
    asserted,
    with_a_loop,
    of_narrow_floats,
    only_a_sum,
]


def pieces_of(function, *arguments, target=GPU):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), target)
    verify_program(pieces)
    return pieces


def is_cut(pieces):
    return any(isinstance(node, If) and node.version.startswith("chunks") for node in walk(pieces))


def arguments_of(size):
    generator = torch.Generator().manual_seed(size)
    x = torch.randint(-3, 4, (size,), generator=generator).float()
    return x, torch.randint(-1, 2, (size,), generator=generator), torch.zeros(size)


@pytest.mark.parametrize(("size", "function"), sampled(product([1, 3, 4, 17, 64, 200], [*CUT, *OTHERS])))
def test_chunks_mean_what_the_source_says(function, size):
    arguments = arguments_of(size)
    if function is placed:
        arguments = (arguments[0], torch.randperm(size), arguments[2])
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    results = []
    for one in (lower(define(function), signature), pieces_of(function, *arguments)):
        memories = [to_memory(each.clone()) for each in arguments]
        run_program(one, memories, check=True)
        results.append(to_tensor(memories[-1]))
    assert torch.equal(*results)


def test_loops_without_iterations_leave_what_was_before():
    arguments = (torch.zeros(0), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    run_program(pieces_of(numbered, *arguments), [to_memory(each) for each in arguments], check=True)


@pytest.mark.parametrize("function", CUT)
def test_cut_where_it_can_be(function):
    assert is_cut(pieces_of(function, *arguments_of(4)))


@pytest.mark.parametrize("function", OTHERS)
def test_in_order_elsewhere(function):
    assert not is_cut(pieces_of(function, *arguments_of(4)))


def test_few_iterations_are_not_worth_it():
    pieces = pieces_of(running_sum, *arguments_of(4), target=cuda_target((9, 0)))
    (condition,) = {
        str(node.condition) for node in walk(pieces) if isinstance(node, If) and node.version.startswith("chunks t")
    }
    assert "85" in condition
