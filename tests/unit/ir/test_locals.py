"""Locals in the IR: printed and read back, made anew by the interpreter, kept where they are known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from brickwork.diagnostics.errors import InternalError, RaceError
from brickwork.ir.build import constant
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.interpret import Memory, run_kernel
from brickwork.ir.nodes import TRUE, Local, Role, Size, Statement, Store, Tensor, TensorType, While
from brickwork.ir.parse import parse_kernel
from brickwork.ir.text import print_kernel
from brickwork.ir.verify import verify_kernel
from support.written import extent, kernel, let, load, loop, store, symbol

VECTOR = TensorType(FLOAT32, 1)
X, Y = Tensor("x", 0, VECTOR), Tensor("y", 1, VECTOR)
HELD = Tensor("h", 9, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0), (2,))
LOCAL = Local(tensor=HELD)
I = symbol("i")


def item(value: float = 0.0) -> Store:
    return store(HELD, (0,), constant(value, FLOAT32))


def vector(*values: float) -> Memory:
    return Memory([*values], (len(values),), (1,), FLOAT32)


def test_they_are_printed_with_their_sizes_and_tables_with_their_values():
    kind = TensorType(FLOAT64, 2, contiguous=True, unit_axis=1)
    plain, table = Tensor("h", 8, kind, (1, 2)), Tensor("w", 9, kind, (2, 1))
    whole = kernel(
        (),
        Local(tensor=plain),
        store(plain, (0, 1), constant(0.0, FLOAT64)),
        Local(tensor=table, values=(0.5, -math.inf)),
    )
    text = print_kernel(whole)
    assert "h_t8 = tensor('h', 8, float64, 2, contiguous=True, unit_axis=1, sizes=(1, 2))" in text
    assert "local(w_t9, float64(0.5), float64('-inf'))" in text
    assert parse_kernel(text) == whole


def test_one_is_new_in_each_iteration_and_watched_where_iterations_share_it():
    around = loop(I, 0, extent(X), store(HELD, (0,), load(X, I)), store(Y, (I,), load(HELD, 0)))
    around = replace(around, role=Role.PARALLEL)
    memories = [vector(1.0, 2.0, 3.0), vector(0.0, 0.0, 0.0)]
    inside = replace(around, body=(LOCAL, *around.body))
    run_kernel(kernel((X, Y), inside), memories, check=True)
    assert memories[1].data == [1.0, 2.0, 3.0]
    with pytest.raises(RaceError, match=r"h\[0\]"):
        run_kernel(kernel((X, Y), LOCAL, around), memories, check=True)


def test_a_table_has_its_values_and_indices_are_checked():
    y = vector(0.0, 0.0)
    table = Local(tensor=HELD, values=(5.0, 6.0))
    run_kernel(kernel((Y,), table, store(Y, (1,), load(HELD, 1))), [y])
    assert y.data == [0.0, 6.0]
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 0 of list"):
        run_kernel(kernel((Y,), table, store(Y, (1,), load(HELD, 2))), [y])


@pytest.mark.parametrize(
    "body",
    [
        (replace(loop(I, 0, 3, LOCAL, item()), role=Role.PARALLEL), loop(I, 0, 3, LOCAL, item())),
        (LOCAL, replace(loop(I, 0, 3, item()), role=Role.PARALLEL)),
        (While(prelude=(LOCAL,), condition=TRUE, body=(item(),)),),
    ],
)
def test_legal_kernels(body: tuple[Statement, ...]):
    verify_kernel(kernel((X,), *body))


SHARED = replace(loop(symbol("j"), 0, 3, item()), role=Role.THREAD)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((loop(I, 0, 3, LOCAL), item()), "`h` is not known here"),
        ((LOCAL, replace(loop(I, 0, 3, SHARED), role=Role.BLOCK)), "`h` is not stored into here"),
        ((Local(tensor=HELD, values=(0.0, 0.0)), item()), "`h` is not stored into here"),
        ((Local(tensor=HELD, values=(0.0,)),), "all its values"),
        ((Local(tensor=replace(HELD, sizes=(2, 2))),), "has its sizes"),
        ((Local(tensor=replace(HELD, type=VECTOR)),), "row-major"),
        ((LOCAL, let(I, Size(tensor=HELD, axis=0))), "literals"),
    ],
)
def test_broken_rules_are_named(body: tuple[Statement, ...], message: str):
    with pytest.raises(InternalError, match=message):
        verify_kernel(kernel((X,), *body))
