"""Stores of narrowed integers write their element and nothing beside it, however few lanes take part."""

import pytest
import torch

from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import Role
from support.kernels_ir import KernelBuilder, apply
from support.machine import Machine, scheduled


@pytest.mark.parametrize("count", [1, 2, 3, 9])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_one_lane_of_a_vector_writes_one_element(dtype, lanes, count):
    make = KernelBuilder()
    x, out, i = make.tensor("x", 1, DTYPES["int64"]), make.tensor("out", 1, DTYPES[dtype]), make.symbol("i")
    kernel = make.kernel(make.loop(i, count, make.store(out, (i,), make.load(x, i))))
    machine = Machine(scheduled(kernel, {"i": (Role.VECTOR, lanes)}))
    kind = getattr(torch, dtype)
    memory = torch.ones(64, dtype=kind)
    machine([torch.zeros(64, dtype=torch.int64), memory])
    assert memory.tolist() == [0] * count + [1] * (64 - count)


@pytest.mark.parametrize("place", range(8))
def test_a_lane_chosen_by_the_loop_writes_one_element(place):
    make = KernelBuilder()
    x, out, i = make.tensor("x", 1, DTYPES["int64"]), make.tensor("out", 1, DTYPES["int32"]), make.symbol("i")
    store = make.store(out, (i,), make.load(x, i))
    kernel = make.kernel(make.loop(i, 8, make.branch(apply("eq", i, place), (store,))))
    memory = torch.ones(64, dtype=torch.int32)
    Machine(scheduled(kernel, {"i": (Role.VECTOR, 8)}))([torch.zeros(64, dtype=torch.int64), memory])
    assert [index for index, item in enumerate(memory.tolist()) if item == 0] == [place]
