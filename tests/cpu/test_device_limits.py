"""Device kernels whose loops begin far from where they end, and tensors of as many elements as narrow ones have."""

from dataclasses import replace

import pytest
import torch

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.host.layout import is_narrow
from brickwork.ir.build import cast, integer, read
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Allocate, Constant, Program, Reduction, Role, ScalarParameter
from brickwork.ir.operators import OPERATORS
from brickwork.ir.signature import NARROW_SIZE
from brickwork.target.cuda import cuda_target
from brickwork.transform.argument_facts import argument_facts_of
from support.emulated import Emulated
from support.machine import named, scheduled
from support.written import extent, kernel, let, loop, op, store, symbol


def test_steps_of_a_loop_that_begins_far_below_its_end():
    x = torch.full((8,), -1)
    tensor, i, first = named("x", 0, x), symbol("i"), symbol("first")
    whole = kernel((tensor,), loop(i, first, extent(tensor), store(tensor, (op("mod", i, 8),), i)), scalars=(first,))
    made = Emulated(replace(scheduled(whole, {"i": (Role.PARALLEL, 1)}), narrow=(tensor,), aligned=(tensor,)))
    context = made.context([x], (-(2**31),))
    blocks, _, block, teams = made.geometry(context)
    assert blocks == 2**23 + 1
    made.run_block((2**23, 0), (blocks, 1), (block, teams), context)
    assert x.tolist() == [*range(8)]


@pytest.mark.parametrize("first", [0, 3, 20, 2**32, 2**32 + 3, 2**40])
@pytest.mark.parametrize("width", [1, 4])
def test_shared_loop_that_begins_behind_its_end(first, width):
    x, out = torch.zeros(1).expand(first), torch.zeros(2)
    tensor, to = named("x", 0, x), named("out", 1, out)
    i, j, total = symbol("i"), symbol("j"), symbol("total", FLOAT32)
    inner = loop(j, extent(tensor), 20, let(total, op("add", total, cast(op("add", 1, op("mul", j, 0)), FLOAT32))))
    inner = replace(inner, reductions=(Reduction(total, OPERATORS["add"]),))
    body = (let(total, cast(read(i), FLOAT32)), inner, store(to, (i,), total))
    whole = kernel((tensor, to), loop(i, 0, extent(to), *body))
    made = scheduled(whole, {"i": (Role.BLOCK, 1), "j": (Role.THREAD, width)})
    assert Emulated(made)([x, out]) is None
    assert out.tolist() == [max(20 - first, 0), max(20 - first, 0) + 1]


@pytest.mark.parametrize("most", [NARROW_SIZE - 1, NARROW_SIZE])
def test_sizes_of_new_tensors_are_in_the_range_that_the_kernel_is_told(most):
    count, i = symbol("count"), symbol("i")
    told = f"i64 range(i64 0, {NARROW_SIZE})"
    for size in (read(count), integer(most)):
        tensor = named("made", 0, torch.zeros(1))
        made = Allocate(tensor=tensor, sizes=(size,))
        program = Program(name="program", parameters=(ScalarParameter(count),), body=(made,), narrow=True)
        small = argument_facts_of(program).is_narrow(tensor)
        whole = kernel((tensor,), loop(i, 0, extent(tensor), store(tensor, (i,), cast(read(i), FLOAT32))))
        whole = replace(scheduled(whole, {"i": (Role.PARALLEL, 1)}), narrow=(tensor,) if small else ())
        module = Module()
        emit_device_kernel(module, whole, cuda_target((9, 0)))
        possible = size.value if isinstance(size, Constant) else most * is_narrow([], [most])
        assert possible < NARROW_SIZE or told not in module.text()
    assert is_narrow([], [NARROW_SIZE - 1])
