"""Sums of short integers are in variables, which wrap when they are stored; what else is done with them is not."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.ir.dtypes import BFLOAT16, FLOAT32, INT8, INT32, INT64, UINT8
from brickwork.ir.interpret import run_kernel
from brickwork.ir.nodes import For, Store, Tensor, TensorType
from brickwork.ir.walk import statements
from brickwork.transform.promote import promote
from support.lowering import memory
from support.written import kernel, load, loop, op, store, symbol, when

I, N = symbol("i"), symbol("n")
X = Tensor("x", 1, TensorType(INT64, 1, contiguous=True, unit_axis=0))


def row(dtype):
    return Tensor("y", 0, TensorType(dtype, 1, contiguous=True, unit_axis=0))


def promoted(dtype, make):
    """Whether a loop over what `make` says keeps its element in a variable; it leaves the same there."""
    y = row(dtype)
    body = (loop(I, 0, N, *make(y)),)
    written = kernel((y, X), *body, scalars=(N,))
    made = promote(written)
    for count in (0, 1, 4):
        found = []
        for each in (written, made):
            data = memory([3, 5], dtype)
            run_kernel(each, [data, memory([100, 90, -70, 120], INT64)], (count,))
            found.append(list(data.data))
        assert found[0] == found[1]
    return not any(isinstance(node, Store) for each in _loops(made) for node in statements(each.body))


def _loops(made):
    return [node for node in statements(made.body) if isinstance(node, For)]


def added(y, *, name="add"):
    return (store(y, (1,), op(name, load(y, 1), load(X, I))),)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT32, INT64])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "minimum", "maximum"])
def test_integers_wrap_once(dtype, name):
    wraps = dtype is INT64 or name not in {"minimum", "maximum"}
    assert promoted(dtype, lambda y: added(y, name=name)) == wraps


@pytest.mark.parametrize(("dtype", "kept"), [(BFLOAT16, False), (FLOAT32, True)])
def test_roundings_stay_where_they_are(dtype, kept):
    y, z = row(dtype), Tensor("z", 2, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0))
    body = (loop(I, 0, N, store(y, (1,), op("add", load(y, 1), load(z, I)))),)
    assert (promote(kernel((y, z), *body, scalars=(N,))).body != body) == kept


def test_what_is_read_in_between_has_wrapped():
    read = (*added(row(INT8)), store(X, (0,), load(row(INT8), 1)))
    assert not promoted(INT8, lambda y: read)
    assert not promoted(INT8, lambda y: (when(op("lt", load(y, 1), 100), added(y)),))
    assert promoted(INT8, lambda y: (*added(y), *added(y)))
    assert not promoted(INT8, lambda y: (*added(y), *added(y, name="mul")))
