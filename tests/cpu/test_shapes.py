"""Shapes in annotations: checked at each call, and their names bound in the body."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError

HEAD = """
import torch
from torch import Tensor

"""


class Annotation:
    """Stands for jaxtyping's classes, which are not needed to be there: known by form, or by their attributes."""

    def __class_getitem__(cls, item: object) -> object:
        return cls


class Alias:
    """What `Float32[Tensor, "n m"]` is as an object."""

    dim_str = "n m"
    dtypes = ("float32",)


def made(name: str, body: str) -> bw.Op:
    source = HEAD + body
    linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(keepends=True), f"<{name}>")
    space: dict[str, Any] = dict.fromkeys(("Float", "Int", "Shaped", "Bool", "UInt8"), Annotation)
    space["Matrix"] = Alias
    exec(compile(source, f"<{name}>", "exec"), space)
    return bw.op(f"shapes::{name}")(space["f"])


ROWS = '''
def f(x: Float[Tensor, "B C"], w: Float[Tensor, "C"], k: Int[Tensor, "B 3 C+1"], o: Shaped[Tensor, "... C"]) -> Tensor:
    """Sum of products of each row."""
    out = torch.zeros(B)
    for b in range(B):
        for c in range(C):
            out[b] += x[b, c] * w[c] + k[b, 2, c + 1]
    return out
'''


def arguments() -> list[torch.Tensor]:
    return [torch.randn(4, 5), torch.randn(5), torch.randint(0, 9, (4, 3, 6)), torch.zeros(2, 3, 5)]


def test_names_of_sizes_are_bound_and_spare_the_checks_of_indices() -> None:
    operator, (x, w, k, o) = made("rows", ROWS), arguments()
    expected = x @ w + k[:, 2, 1:].sum(1)
    torch.testing.assert_close(operator(x, w, k, o), expected)
    torch.testing.assert_close(operator.python(x, w, k, o), expected)
    assert "checked" not in operator.explain(x, w, k, o)


WRONG = [
    (1, torch.randn(4), "argument w, axis 0: the size is 4, but C is 5"),
    (2, torch.zeros(4, 2, 6, dtype=torch.int64), "argument k, axis 1: the size is 2, not 3"),
    (2, torch.zeros(4, 3, 5, dtype=torch.int64), "argument k, axis 2: the size is 5, but C+1 is 6"),
    (3, torch.zeros(2, 2), "argument o, axis -1: the size is 2, but C is 5"),
    (0, torch.randn(5), "argument x of f needs 2 dimensions, but has 1"),
    (
        1,
        torch.zeros(5, dtype=torch.int64),
        "argument w of f needs elements of float16 or bfloat16 or float32 or float64",
    ),
]


@pytest.mark.parametrize(("place", "given", "message"), WRONG)
def test_another_shape_is_told_with_argument_axis_and_sizes(place: int, given: torch.Tensor, message: str) -> None:
    operator, values = made("rows", ROWS), arguments()
    values[place] = given
    for run in (operator, operator.python):
        with pytest.raises(AssertionError) as caught:
            run(*values)
        assert message in str(caught.value)


def test_an_annotation_may_be_an_object_quoted_or_optional() -> None:
    body = """
def f(x: Matrix, y: "Float[Tensor, 'm']", z: Float[Tensor, "m"] | None = None) -> Tensor:
    n = 2
    out = torch.zeros(n)
    for i in range(n):
        for j in range(m):
            out[i] += x[i, j] * y[j]
    return out
"""
    operator = made("several", body)
    x, y = torch.randn(3, 4), torch.randn(4)
    torch.testing.assert_close(operator(x, y), (x @ y)[:2])
    torch.testing.assert_close(operator(x, y, y), (x @ y)[:2])
    for wrong in ((x, y[:3]), (x, y, y[:3]), (x.double(), y)):
        with pytest.raises(AssertionError):
            operator(*wrong)


@pytest.mark.parametrize("sizes", ["#n", "?n", "n ... *m ...", "f(n)", "k+1"])
def test_what_is_not_understood_is_refused_by_name(sizes: str) -> None:
    with pytest.raises(CompileError) as caught:
        made("refused", f'\ndef f(x: Float[Tensor, "{sizes}"]) -> None:\n    for i in range(2):\n        x[i] = 1\n')
    assert caught.value.diagnostics[0].code == "BW007"


def test_a_size_is_not_what_its_variable_became_afterwards():
    @bw.op
    def beyond(x: torch.Tensor) -> torch.Tensor:
        half = x.shape[0] // 2
        out = x.new_zeros((half,))
        if x.shape[0] > 2:
            half = half * 2
        for i in range(half):
            out[i] = x[i]
        return out

    with pytest.raises(IndexError, match="out of bounds"):
        beyond(torch.ones(8))
