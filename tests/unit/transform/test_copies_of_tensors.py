"""Of which tensors parts of a loop may have copies, and which loops run in such parts."""

from dataclasses import replace

import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT8
from brickwork.ir.nodes import Break, Continue, For, If, Reduction, Role, Symbol, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.transform.privatise_reductions import Copier, may_privatise
from brickwork.transform.schedule.schedule import Schedule
from brickwork.transform.scratch import names_of
from support.lowering import memory
from support.scheduling import kernel_of


def test_copies_join_to_what_one_tensor_would_have_been():
    for dtype, names in (
        (FLOAT64, {"add"}),
        (FLOAT32, {"add"}),
        (FLOAT16, set()),
        (INT64, {"add", "mul", "minimum", "maximum"}),
        (INT32, {"add"}),
        (UINT8, {"add"}),
        (BOOL, set()),
    ):
        tensor = Tensor("h", 1, TensorType(dtype, 1, contiguous=True, unit_axis=0))
        operators = ("add", "mul", "minimum", "maximum")
        assert {name for name in operators if may_privatise(tensor, OPERATORS[name])} == names, dtype
        assert not may_privatise(tensor, None)
        assert not may_privatise(replace(tensor, sizes=(3,)), OPERATORS["add"])


def rows(x: torch.Tensor, h: torch.Tensor, n: int) -> None:
    for i in range(n):
        for j in range(x.shape[0]):
            h[x[j]] += i


def test_pieces_are_of_loops_that_the_host_knows_the_length_of_and_that_nothing_leaves():
    numbers = memory([1, 2], INT64)
    kernel = kernel_of(rows, numbers, numbers, 3)
    copier = Copier(kernel, Schedule(), names_of((kernel,), 1000))
    (loop,) = kernel.body
    assert isinstance(loop, For)
    (inner,) = loop.body
    assert isinstance(inner, For)
    assert copier.is_fit(loop)
    assert not copier.is_fit(replace(inner, stop=build.read(loop.index)))
    summed = (Reduction(Symbol("s", 99, INT64), OPERATORS["add"]),)
    for role, reductions, fit in (
        (Role.PARALLEL, summed, False),
        (Role.PARALLEL, (), True),
        (Role.VECTOR, summed, True),
    ):
        assert copier.is_fit(replace(loop, body=(replace(inner, role=role, reductions=reductions),))) is fit
    asked = build.apply("gt", build.read(loop.index), build.integer(1))
    for jump in (Break(), Continue()):
        assert not copier.is_fit(replace(loop, body=(If(condition=asked, then=(jump,)), inner)))
        assert copier.is_fit(replace(loop, body=(replace(inner, body=(jump,)),)))
