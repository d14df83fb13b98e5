"""Locals as machine code: each iteration and each lane has its own, and loops in its block share it."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64, INT64, DType
from brickwork.ir.nodes import Expression, For, Kernel, Local, Reduction, Role, Symbol, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from support.emulated import Emulated
from support.machine import Machine, interpreted, named, scheduled
from support.written import extent, kernel, let, load, loop, op, store, symbol, when

SCHEDULES: list[dict[str, tuple[Role, int]]] = [
    {},
    {"i": (Role.VECTOR, 4)},
    {"i": (Role.VECTOR, 16)},
    {"i": (Role.PARALLEL, 1)},
    {"i": (Role.PARALLEL, 8)},
    {"j": (Role.VECTOR, 4)},
]


def array(number: int, *sizes: int, dtype: DType = INT64) -> Tensor:
    rank = len(sizes)
    kind = TensorType(dtype, rank, contiguous=True, unit_axis=rank - 1)
    return Tensor(f"h{number}", 90 + number, kind, sizes)


def agree(made: Kernel, tensors: list[torch.Tensor], *, device: bool = True) -> None:
    """Check that all schedules give the interpreter's result, bit for bit."""
    expected = interpreted(made, tensors)
    for roles in SCHEDULES:
        copies = [data.clone() for data in tensors]
        assert Machine(scheduled(made, roles))(copies) is None
        for copy, wanted in zip(copies, expected, strict=True):
            torch.testing.assert_close(copy, wanted, rtol=0, atol=0, equal_nan=True, msg=str(roles))
    for width in (1, 4) if device else ():
        copies = [data.clone() for data in tensors]
        made = replace(made, narrow=made.tensors, aligned=made.tensors)
        assert Emulated(scheduled(made, {"i": (Role.PARALLEL, width)}))(copies) is None
        for copy, wanted in zip(copies, expected, strict=True):
            torch.testing.assert_close(copy, wanted, rtol=0, atol=0, equal_nan=True, msg=f"device, {width}")


@pytest.fixture
def numbers() -> torch.Tensor:
    """Return 101 whole numbers from -50 to 50."""
    return torch.arange(101) - 50


def filled(h: Tensor, j: Symbol, value: Expression) -> For:
    return loop(j, 0, h.sizes[0], store(h, (j,), value))


def test_indices_that_lanes_agree_on_and_others(numbers: torch.Tensor):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, j, k, s = symbol("i"), symbol("j"), symbol("k"), symbol("s")
    h = array(0, 7)
    varying = op("mod", op("add", load(x, i), i), 7)
    body = (
        Local(tensor=h),
        filled(h, j, op("mul", j, load(x, i))),
        store(h, (varying,), op("add", load(h, varying), 100)),
        when(op("gt", load(x, i), 3), (store(h, (2,), 5), store(h, (op("mod", i, 7),), i))),
        let(s, 0),
        loop(k, 0, 7, let(s, op("add", op("mul", s, 3), load(h, k)))),
        store(out, (i,), op("add", s, load(h, varying))),
    )
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


def test_a_local_under_a_mask_with_loops_of_the_lanes_own(numbers: torch.Tensor):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, j, k = symbol("i"), symbol("j"), symbol("k")
    h = array(0, 3, 2)
    inner = (
        Local(tensor=h),
        loop(j, 0, 3, store(h, (j, 0), j), store(h, (j, 1), op("add", j, load(x, i)))),
        loop(k, 0, op("mod", i, 3), store(h, (k, op("mod", k, 2)), op("floordiv", 100, op("add", load(h, k, 0), 1)))),
        store(out, (i,), op("add", load(h, 1, 1), op("mul", load(h, op("mod", i, 3), 0), 1000))),
    )
    body = (when(op("eq", op("mod", load(x, i), 2), 0), inner, (store(out, (i,), 7),)),)
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


def test_loops_in_the_block_share_it(numbers: torch.Tensor):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    t, i, j = symbol("t"), symbol("i"), symbol("j")
    h = array(0, 8)
    body = (
        Local(tensor=h),
        filled(h, j, op("mul", j, op("add", t, 1))),
        loop(i, 0, extent(x), store(out, (i,), op("add", load(out, i), load(h, op("mod", i, 8))))),
    )
    whole = kernel((x, out), loop(t, 0, 3, *body))
    agree(whole, [numbers, torch.zeros_like(numbers)], device=False)


def test_a_table_is_a_constant(numbers: torch.Tensor):
    x, out = named("x", 0, numbers), named("out", 1, numbers.double())
    i = symbol("i")
    table, mixed = array(0, 5, dtype=FLOAT64), array(1, 2, 2)
    value = op("mul", load(table, op("mod", load(x, i), 5)), load(table, 3))
    body = (
        Local(tensor=table, values=(0.5, float("inf"), -2.0, 1e-3, 7.0)),
        Local(tensor=mixed, values=(1, 2, 3, 4)),
        loop(i, 0, extent(x), when(op("gt", load(mixed, op("mod", i, 2), 1), 2), (store(out, (i,), value),))),
    )
    agree(kernel((x, out), *body), [numbers, numbers.double()], device=False)


def test_threads_of_a_block_have_copies_with_the_same_values(numbers: torch.Tensor):
    x, out = named("x", 0, numbers.reshape(1, -1)), named("out", 1, numbers[:1])
    i, j, k, s = symbol("i"), symbol("j"), symbol("k"), symbol("s")
    h = array(0, 4)
    inner = loop(k, 0, extent(x, 1), let(s, op("add", s, op("mul", load(x, i, k), load(h, op("mod", k, 4))))))
    inner = replace(inner, reductions=(Reduction(s, OPERATORS["add"]),))
    body = (Local(tensor=h), filled(h, j, op("add", j, load(out, i))), let(s, 0), inner, store(out, (i,), s))
    whole = kernel((x, out), loop(i, 0, extent(out), *body))
    tensors = [numbers.reshape(1, -1), torch.ones(1, dtype=torch.int64)]
    expected = interpreted(whole, tensors)
    for width in (1, 4):
        copies = [data.clone() for data in tensors]
        assert Emulated(scheduled(whole, {"i": (Role.BLOCK, 1), "k": (Role.THREAD, width)}))(copies) is None
        torch.testing.assert_close(copies[1], expected[1], rtol=0, atol=0)
