"""Turns of a block's loop that do nothing are skipped where elements decide it, and nowhere else."""

import pytest
import torch

from brickwork.frontend.reference import python_function
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Assign, For, If, Load, Role, Symbol, Tensor, TensorType, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements
from brickwork.target.cuda import cuda_target
from brickwork.transform.skipped_turns import with_skipped_turns
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))


def skips(function, x, first=0):
    """Whether turns are skipped, where the program on a grid does what the source does, without collisions."""
    signature = Signature(tuple(map(argument_type, (x, first))), device="cuda", narrow=True, aligned=True)
    program, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(program)
    expected = x.clone()
    python_function(define(function))(expected, first)
    found = to_memory(x.clone())
    run_program(program, [found, first], check=True)
    torch.testing.assert_close(to_tensor(found), expected)
    searches = [node for node in statements(program) if isinstance(node, While)]
    return any(isinstance(node, For) and node.role is Role.THREAD for each in searches for node in statements(each))


def sieve(x: torch.Tensor, first: int) -> None:
    for i in range(max(first, 0), x.shape[0]):
        if x[i] > 0.5:
            for j in range(i + 1, x.shape[0]):
                if x[j] > x[i] - 0.5:
                    x[j] = 0.0


def both(x: torch.Tensor, first: int) -> None:
    for i in range(max(first, 0), x.shape[0]):
        if x[i] > 0.5:
            for j in range(i + 1, x.shape[0]):
                x[j] = x[j] * 0.9
        else:
            for j in range(i + 1, x.shape[0]):
                x[j] = x[j] * 1.05


def in_any_case(x: torch.Tensor, first: int) -> None:
    for i in range(max(first, 0), x.shape[0]):
        if x[i] > 0.5:
            for j in range(i + 1, x.shape[0]):
                x[j] = x[j] * 0.9
        for j in range(i + 1, x.shape[0]):
            x[j] = x[j] * 1.05


def decided_by_sizes(x: torch.Tensor, first: int) -> None:
    for i in range(max(first, 0), x.shape[0]):
        if i % 3 == 1:
            for j in range(i + 1, x.shape[0]):
                x[j] = x[j] + x[i]


def left(x: torch.Tensor, first: int) -> None:
    for i in range(max(first, 0), x.shape[0]):
        if x[i] > 0.5:
            for j in range(i + 1, x.shape[0]):
                x[j] = x[j] * 0.9
            if x[i] > 0.95:
                break


@pytest.mark.parametrize("first", [0, 3, 50])
@pytest.mark.parametrize("n", [0, 1, 7, 50, 1100])
def test_turns_that_do_nothing_are_skipped(n, first):
    x = (torch.rand(n, generator=torch.Generator().manual_seed(n)) > 0.9).float()
    assert skips(sieve, x, min(first, n))


def test_no_element_may_hold():
    assert skips(sieve, torch.zeros(40))


@pytest.mark.parametrize("function", [both, in_any_case, decided_by_sizes, left])
def test_turns_that_always_do_something_are_not_searched_for(function):
    assert not skips(function, torch.rand(30, generator=torch.Generator().manual_seed(1)))


def turns(role=Role.SEQUENTIAL, inner=Role.THREAD):
    """A loop whose turns elements decide, around one of these roles."""
    keep = Tensor("keep", 1, TensorType(BOOL, 1, contiguous=True, unit_axis=0))
    i, j = Symbol("i", 1, INT64), Symbol("j", 2, INT64)
    ends = {"start": build.integer(0), "stop": build.size(keep, 0)}
    decided = Load(tensor=keep, indices=(build.read(i),), access=0, dtype=BOOL)
    noted = Assign(symbol=Symbol("noted", 3, INT64), value=build.read(i))
    shared = For(index=j, body=(), role=inner, **ends)
    return For(index=i, body=(If(condition=decided, then=(noted, shared)),), role=role, **ends)


@pytest.mark.parametrize(
    ("loop", "skipped"),
    [
        (turns(), True),
        (turns(role=Role.THREAD), False),
        (turns(inner=Role.SEQUENTIAL), False),
    ],
)
def test_turns_in_order_that_threads_share_are_skipped(loop, skipped):
    block = with_skipped_turns((loop,), iter(range(10, 20)), 32)
    assert (block != (loop,)) == skipped
