"""What the host knows of a program for a GPU: the index of a loop that it runs, even if a device runs a copy of it."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir.build import apply, constant, integer, read
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Draw, Expression, For, Load, Random, Role, Symbol, Tensor, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.host_device_partition import Partition, in_order
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor


def steps(x: torch.Tensor, shift: int) -> None:
    for t in range(1, 4):
        for i in range(x.shape[1]):
            x[t, i] = x[t - 1, shift] + i


def test_a_loop_of_the_host_with_a_checked_copy_on_the_device_keeps_its_index():
    x = torch.arange(20.0).reshape(4, 5)
    types = Signature((argument_type(x), argument_type(2)), device="cuda")
    pieces, _ = schedule_program(lower(define(steps), types), cuda_target((9, 0)))
    verify_program(pieces)
    assert not [node.tensor.name for node in walk(pieces) if isinstance(node, Allocate) and node.tensor.name == "t"]
    memory = to_memory(x)
    run_program(pieces, [memory, 2], check=True)
    for t in range(1, 4):
        x[t] = x[t - 1, 2] + torch.arange(5)
    assert torch.equal(to_tensor(memory), x)


def until_an_element_says(a: torch.Tensor, x: torch.Tensor) -> None:
    t = 0
    while t < 3:
        for i in range(x.shape[0]):
            x[i] = x[i] * 2 + a[t]
        if a[t] > 5:
            break
        t += 1


def test_a_loop_that_an_element_ends_is_not_run_by_the_host():
    for elements in ([1.0, 2.0, 3.0], [9.0, 2.0, 3.0], [1.0, 9.0, 3.0]):
        a, x = torch.tensor(elements), torch.zeros(5)
        types = Signature((argument_type(a), argument_type(x)), device="cuda")
        pieces, _ = schedule_program(lower(define(until_an_element_says), types), cuda_target((9, 0)))
        verify_program(pieces)
        memories = [to_memory(a), to_memory(x)]
        run_program(pieces, memories, check=True)
        until_an_element_says(a, x)
        assert torch.equal(to_tensor(memories[1]), x)


def lists_that_may_fail(a: torch.Tensor, x: torch.Tensor) -> None:
    t = 0
    for i in range(a.shape[0]):
        w = [0.0] * 100
        for j in range(100):
            w[j] = x[j, j + 1]
        if a[i] < 1:
            t = 4
    for i in range(a.shape[0]):
        a[i] += t


def test_a_list_that_the_careful_copy_shares_out_stays_private_in_the_fast_one():
    tensors = torch.zeros(5), torch.zeros(100, 101)
    types = Signature(tuple(map(argument_type, tensors)), device="cuda")
    pieces, _ = schedule_program(lower(define(lists_that_may_fail), types), cuda_target((9, 0)))
    memories = [*map(to_memory, tensors)]
    run_program(pieces, memories, check=True)
    assert memories[0].data == [4.0] * 5


def test_nothing_of_a_schedule_is_left_on_a_loop_that_one_thread_runs():
    plain = For(index=Symbol("i", 1, INT64), start=integer(0), stop=integer(9), body=())
    for role, width, across in ((Role.PARALLEL, 4, 32), (Role.BLOCK, 1, 0), (Role.THREAD, 2, 0)):
        scheduled = replace(plain, role=role, width=width, across=across)
        assert in_order((scheduled,)) == (plain,)


N, SUM = Symbol("n", 1, INT64), Symbol("sum", 2, INT64)
HALF, ROW = constant(0.5, FLOAT32), Tensor("x", 1, TensorType(INT64, 1))
SCALE = read(Symbol("scale", 3, FLOAT32))


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (apply("floordiv", read(N), integer(2)), True),
        (apply("truediv", SCALE, HALF), True),
        (apply("add", read(SUM), integer(1)), False),
        (Load(tensor=ROW, indices=(read(N),), access=0, dtype=INT64), False),
        (Random(draw=Draw.UNIFORM, key=integer(1), counter=read(N), extra=integer(0), site=0, dtype=FLOAT32), False),
        (apply("floordiv", SCALE, HALF), False),
        (apply("add", apply("sqrt", SCALE), HALF), False),
    ],
    ids=["integers", "a quotient", "a sum of the device", "an element", "a draw", "a floor", "a root"],
)
def test_what_the_host_can_evaluate(value: Expression, known: bool):
    assert Partition(frozenset({SUM})).is_known(value) is known
