"""Nests that add to places which two loops say together: turned around on grids only where all places exist."""

import pytest
import torch

from brickwork.ir.signature import Signature
from brickwork.transform.canonical.form import canonical
from brickwork.transform.gathered_scatters import with_gathers
from support.lowering import argument_type
from support.scheduling import GPU, same
from support.shared import define, lower
from support.tensors import to_memory


def rows(a: torch.Tensor) -> None:
    for i in range(1):
        for k in range(a.shape[1]):
            a[i + k] += 1


def spread(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + w.shape[0] - 1)
    for i in range(x.shape[0]):
        for k in range(w.shape[0]):
            out[i + k] += x[i] * w[k]
    return out


def divided(x: torch.Tensor, by: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 2)
    for i in range(x.shape[0]):
        for k in range(3):
            out[i + k] += x[i] * (5 // (k - by))
    return out


def asserted(x: torch.Tensor, most: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0] + 2)
    for i in range(x.shape[0]):
        for k in range(3):
            assert k < most, "too many"
            out[i + k] += x[i]
    return out


def read_beside(x: torch.Tensor, at: int) -> None:
    for i in range(2):
        for k in range(2):
            x[i + k] += x[at, 0]


def counted(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        x[()] += 1
        out[i] = x[()]


@pytest.mark.parametrize(("height", "width"), [(5, 7), (7, 5), (5, 5), (0, 3), (3, 0), (1, 1)])
def test_rows_that_do_not_exist_are_errors(height, width):
    same(rows, to_memory(torch.zeros(height, width)))


@pytest.mark.parametrize("at", [0, 2, -3, 4])
def test_elements_that_are_read_beside_are_there(at):
    same(read_beside, to_memory(torch.ones(3, 2)), at)


@pytest.mark.parametrize("function", [divided, asserted])
@pytest.mark.parametrize("number", [0, 2, 3])
def test_other_checks_are_made(function, number):
    same(function, to_memory(torch.ones(5)), number)
    signature = Signature((argument_type(to_memory(torch.ones(5))), argument_type(number)), device="cuda")
    program = canonical(lower(define(function), signature), sizes=True)
    assert with_gathers(program, GPU)[0] == program


@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_tensor_of_one_element_has_no_bins(size):
    same(counted, to_memory(torch.zeros((), dtype=torch.int64)), to_memory(torch.zeros(size)))


@pytest.mark.parametrize(("function", "sizes", "turned"), [(spread, (8, 3), True), (rows, (5, 7), False)])
def test_places_that_are_proved_to_exist_are_gone_through(function, sizes, turned):
    given = [torch.zeros(size) for size in sizes] if turned else [torch.zeros(*sizes)]
    types = tuple(argument_type(to_memory(item)) for item in given)
    program = canonical(lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True)), sizes=True)
    assert (with_gathers(program, GPU)[0] != program) is turned
