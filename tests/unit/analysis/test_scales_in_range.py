"""What scales a sum once is read for elements to which nothing is added, too: its places are there all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.contractions import find_contraction
from brickwork.ir import build
from brickwork.ir.nodes import Apply, For, Load
from brickwork.ir.walk import walk
from brickwork.transform.schedule.contract import contraction_versions
from support.lowering import numbers
from support.scheduling import GPU, kernel_of

Tensor = torch.Tensor
ROWS, FEW, RESULT = numbers(4, 4), numbers(3), numbers(4, 4)


def rows_under_a_condition(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                if i < g.shape[0]:
                    s += a[i, k] * g[i] * b[k, j]
            y[i, j] = s


def chosen_rows(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                v = a[i, k] / g[i] if i < g.shape[0] else 0.0
                s += v * b[k, j]
            y[i, j] = s


def elements_under_a_condition(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                if i + j < g.shape[0]:
                    s += a[i, k] * b[k, j] * g[i + j]
            y[i, j] = s


def rows_without_terms(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(i):
                s += a[i, k] * g[i - 1] * b[k, j]
            y[i, j] = s


def rows_that_are_there(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(g.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                if i < k:
                    s += a[i, k] * g[i] * b[k, j]
            y[i, j] = s


def all_rows(a: Tensor, g: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(3):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(4):
                s += a[i, k] * g[i] * b[k, j]
            y[i, j] = s


def _scale(function: Callable[..., None]) -> Load:
    (rows,) = kernel_of(function, ROWS, FEW, ROWS, RESULT).body
    assert isinstance(rows, For)
    (columns,) = rows.body
    assert isinstance(columns, For)
    sides = frozenset({rows.index}), frozenset({columns.index})
    found = find_contraction(columns.body, *sides, (rows, columns))
    assert found is not None
    (scale,) = (node for node in walk(found.scale) if isinstance(node, Load))
    return scale


def _is_clipped(scale: Load) -> bool:
    (index,) = scale.indices
    last = build.sub(build.size(scale.tensor, 0), build.integer(1))
    match index:
        case Apply(operator=operator, operands=(Apply(operator=inner, operands=(_, least)), most)):
            ends = operator.name, most, inner.name, least
            return ends == ("minimum", last, "maximum", build.integer(0))
        case _:
            return False


@pytest.mark.parametrize(
    "function", [rows_under_a_condition, chosen_rows, elements_under_a_condition, rows_without_terms]
)
def test_places_are_there_where_nothing_is_summed_up(function: Callable[..., None]) -> None:
    assert _is_clipped(_scale(function))


@pytest.mark.parametrize("function", [rows_that_are_there, all_rows])
def test_places_that_are_there_are_as_they_are_written(function: Callable[..., None]) -> None:
    assert not _is_clipped(_scale(function))


@pytest.mark.parametrize("function", [chosen_rows, rows_that_are_there])
def test_some_element_is_there(function: Callable[..., None]) -> None:
    kernel = kernel_of(function, ROWS, FEW, ROWS, RESULT)
    versions = [*contraction_versions(kernel.body, analyse(kernel), GPU)]
    assert versions
    some = build.apply("ge", build.size(_scale(function).tensor, 0), build.integer(1))
    assert all(some in conditions for _, _, conditions in versions)
