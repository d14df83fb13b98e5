"""Gradients of elements that keep a least or greatest value go to the iteration that set them at last."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, For, Program
from brickwork.ir.walk import walk
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.transform.autodiff import reverse
from brickwork.transform.autodiff.element_extremes import Chosen
from brickwork.transform.canonical.form import canonical
from brickwork.transform.pipeline import schedule_kernel
from support.gradients import check_gradients, derived, forward, kernel_of, lowered, numbers
from support.kernels_extremes import (
    FOUND,
    OTHERS,
    greatest,
    in_place,
    least_last,
    list_beside,
    listed,
    neighbours,
    scaled,
    two_places,
    used_afterwards,
)
from support.tensors import to_memory


def constant(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], max(x[n, k], 0.1))
    return out


def other_type(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    out = base.new_full((base.shape[0], base.shape[1]), -9.0)
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[n, k] > out[place[n], k]:
                out[place[n], k] = x[n, k]
    return out


def greatest_and_base(x: torch.Tensor, place: torch.Tensor, base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = x.new_full((base.shape[0], base.shape[1]), -9.0)
    other = x.new_empty((base.shape[0], base.shape[1]))
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            other[i, k] = base[i, k] * base[i, k]
    for n in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[place[n], k] = max(out[place[n], k], x[n, k])
    return out, other


def _as_it_is(block: Any, *_: object) -> Chosen:
    return Chosen(block)


def _is_found(program: Program) -> bool:
    return any(isinstance(node, Allocate) and node.tensor.name.endswith("_where") for node in walk(program))


def _special(columns: int) -> torch.Tensor:
    """Return columns with all sequences of three values, equal ones, zeros of both signs and NaN among them."""
    values = (-math.inf, -0.0, 0.0, 1.5, math.nan)
    rows = torch.tensor([[*row] for row in itertools.product(values, repeat=3)], dtype=torch.float64)
    return torch.cat([rows.T, rows.flip(0).T, rows.roll(7, 0).T])[:, :: max(1, len(rows) // columns)].contiguous()


def _gradients(program: Program, *arguments: Any) -> list[list[str]]:
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    return [[str(value + 0.0) for value in result.data] for result in run_program(program, memories, check=True)]


@pytest.mark.parametrize("function", [*FOUND, *OTHERS], ids=lambda item: item.__name__)
def test_gradients_are_those_of_the_loop_run_backwards(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _special(25)
    place = torch.tensor([0, 1, 0, 1, 1, 0, 0, 0, 1])
    base = torch.zeros(3, x.shape[1], dtype=torch.float64)
    found = derived(function, (x, place, base))
    monkeypatch.setattr(reverse, "choose_element_extremes", _as_it_is)
    plain = derived(function, (x, place, base))
    if found == plain:
        return
    for first in (-math.inf, 0.0, math.nan):
        base.fill_(first)
        shapes = [item.shape for item in forward(lowered(function, (x, place, base)), (x, place, base))]
        given = [torch.arange(1.0, 1.0 + shape.numel(), dtype=torch.float64).reshape(shape) for shape in shapes]
        outcomes = [_gradients(program, x, place, base, *given) for program in (found, plain)]
        assert outcomes[0] == outcomes[1], first


@pytest.mark.parametrize("function", FOUND, ids=lambda item: item.__name__)
@pytest.mark.parametrize("rows", [5, 0])
def test_gradients_are_those_of_central_differences(function: Callable[..., Any], rows: int) -> None:
    place = torch.tensor([0, 2, 0, 1, 2])[:rows]
    if rows or function is not greatest:
        check_gradients(function, numbers(rows, 2), place, numbers(3, 2))


@pytest.mark.parametrize("function", FOUND, ids=lambda item: item.__name__)
def test_elements_have_no_tape(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2)))
    assert _is_found(program)
    tapes = [node for node in walk(program) if isinstance(node, Allocate) and "tape" in node.tensor.name]
    assert not tapes or function is used_afterwards


@pytest.mark.parametrize("function", OTHERS, ids=lambda item: item.__name__)
def test_others_have_no_place(function: Callable[..., Any]) -> None:
    assert not _is_found(derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("function", "found"),
    [(greatest, True), (in_place, True), (used_afterwards, False), (constant, False), (other_type, False)],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_values_of_half_types_are_those_that_were_read(
    function: Callable[..., Any], found: bool, kind: torch.dtype
) -> None:
    arguments = (numbers(5, 2).to(kind), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2).to(kind))
    if function is other_type:
        arguments = (arguments[0].float(), *arguments[1:])
    assert _is_found(derived(function, arguments)) is found


def test_what_has_no_gradient_is_not_looked_for() -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    assert not _is_found(derived(greatest_and_base, arguments, (False, False, True)))
    assert _is_found(derived(greatest_and_base, arguments, (True, False, False)))


@pytest.mark.parametrize("function", [two_places, scaled, listed, neighbours], ids=lambda item: item.__name__)
def test_adjoints_that_may_meet_are_not_claimed_to_be_apart(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2)))
    assert not any(isinstance(node, For) and node.claimed for node in walk(program))


@pytest.mark.parametrize(
    "function",
    [item for item in FOUND if item not in {two_places, scaled, listed, neighbours, list_beside}],
    ids=lambda item: item.__name__,
)
def test_all_of_it_is_parallel_on_a_grid(function: Callable[..., Any]) -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    kernel = kernel_of(canonical(derived(function, arguments)))
    loops = schedule_kernel(kernel, cuda_target((9, 0))).analysis.loops
    assert all(verdict.independent for index, verdict in loops.items() if index.name in {"n", "i"})


def test_what_is_taken_is_parallel_on_a_processor() -> None:
    arguments = (numbers(5, 2), torch.tensor([0, 2, 0, 0, 2]), numbers(3, 2))
    kernel = kernel_of(canonical(derived(least_last, arguments)))
    loops = schedule_kernel(kernel, host_target()).analysis.loops
    first, *_, last = [verdict for index, verdict in loops.items() if index.name == "n"]
    assert last.independent
    assert first.updates
