"""Kernels that passes make one after the other have names of their own: code is made, found and launched by names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from brickwork.diagnostics.errors import InternalError
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32
from brickwork.ir.nodes import If, Launch, Program, Tensor, TensorParameter, TensorType
from brickwork.ir.verify import unique_kernels
from brickwork.ir.walk import statements
from brickwork.transform.nests_apart import beside, with_each
from support.written import kernel, loop, store, symbol

X = Tensor("x", 0, TensorType(FLOAT32, 1, True, 0))


def launch(value, name="k"):
    i = symbol("i")
    body = loop(i, 0, 4, store(X, (i,), build.constant(value, FLOAT32)))
    return Launch(kernel=replace(kernel((X,), body), name=name))


def program(*body):
    return Program(name="f", parameters=(TensorParameter(X),), body=body)


def kernels(found):
    return [node.kernel for node in statements(found.body) if isinstance(node, Launch)]


def in_parts(first):
    """Return a pass that makes two kernels of each `k`, and calls the second one as any other pass does."""

    def change(given):
        if given.kernel.name != "k":
            return None
        second = launch(first + 1.0, "k_part")
        return (launch(first), second), {"k_part": f"of pass {first:g}"}

    return change


def test_passes_that_call_kernels_alike_have_kernels_with_names_of_their_own():
    once, remarks = with_each(program(launch(0.0)), in_parts(1.0))
    twice, more = with_each(once, in_parts(3.0))
    found = kernels(twice)
    assert [each.name for each in found] == ["k", "k_part_2", "k_part"]
    assert [each.body[0].body[0].value.value for each in found] == [3.0, 4.0, 2.0]
    assert remarks == {"k_part": "of pass 1"}
    assert more == {"k_part_2": "of pass 3"}


def test_kernels_of_choices_have_names_of_their_own_and_equal_ones_share_theirs():
    condition = build.constant(True, BOOL)
    same, other = launch(1.0), launch(2.0, "other")

    def change(given):
        return beside(given, condition, (), other.kernel, "other") if given.kernel == same.kernel else None

    found, remarks = with_each(program(same, launch(3.0, "other"), same), change)
    assert [each.name for each in kernels(found)] == ["other_2", "k", "other", "other_2", "k"]
    assert isinstance(found.body[0], If)
    assert remarks["other_2"] == "other"


def test_a_program_whose_kernels_share_a_name_is_refused():
    unique_kernels(program(launch(1.0), launch(2.0, "other")))
    same = launch(1.0)
    unique_kernels(program(same, same))
    with pytest.raises(InternalError, match="two kernels have the name k"):
        unique_kernels(program(launch(1.0), launch(2.0)))
