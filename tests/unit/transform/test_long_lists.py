"""Long lists of iterations: in memory, so that blocks share them out, where few threads would have one each."""

from collections.abc import Callable

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Constant, If, Local
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.expand_scratch import with_expanded_scratch
from support.lowering import argument_type, numbers
from support.scheduling import GPU, same, way
from support.shared import define, lower, schedule_program
from support.tensors import to_memory


def gathered(x: torch.Tensor, n: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        total = [0.0] * 70
        for t in range(n[i]):
            score = 0.0
            for d in range(width):
                score += x[i, d] * (t + 1)
            for d in range(width):
                total[d] = total[d] % 8.0 + score * x[i, d]
        for d in range(width):
            out[i, d] = total[d]
    return out


def counted(x: torch.Tensor, n: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        bins = [0] * 70
        for d in range(width):
            bins[int(x[i, d]) % 70] += n[i]
        for d in range(1, width):
            bins[d] += bins[d - 1]
        for d in range(width):
            out[i, d] = bins[d]
    return out


def ladder(x: torch.Tensor, n: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        total = [0.0] * 70
        for d in range(width):
            total[d] = x[i, d]
        for t in range(n[i]):
            for d in range(1, width):
                total[d] = (total[d] + total[d - 1]) % 8.0
        for d in range(width):
            out[i, d] = total[d]
    return out


@pytest.mark.parametrize("function", [gathered, counted, ladder])
@pytest.mark.parametrize(("rows", "width"), [(3, 70), (1, 5), (4, 0), (0, 3), (2, 33)])
def test_long_lists_are_what_each_iteration_has(function, rows, width):
    x = (torch.arange(rows * 70) * 7 % 5 - 2.0).reshape(rows, 70)
    same(function, to_memory(x), to_memory(torch.arange(rows) * 2), width)


def test_places_beyond_a_list_are_errors():
    x, n = to_memory(torch.ones(2, 80)), to_memory(torch.ones(2, dtype=torch.int64))
    signature = Signature(
        (argument_type(x), argument_type(n), argument_type(71)), device="cuda", narrow=True, aligned=True
    )
    with pytest.raises(IndexError):
        run_program(way(gathered, signature, GPU), [x, n, 71], check=True)


def test_lists_are_in_memory_where_few_threads_would_have_them():
    x, n = to_memory(torch.ones(2, 80)), to_memory(torch.ones(2, dtype=torch.int64))
    signature = Signature(
        (argument_type(x), argument_type(n), argument_type(7)), device="cuda", narrow=True, aligned=True
    )
    program = way(gathered, signature, GPU)
    sized = [node for node in walk(program) if isinstance(node, Allocate) and node.tensor.name == "total"]
    assert [len(node.sizes) for node in sized] == [2]
    assert any(isinstance(node, Local) and node.tensor.name == "total" for node in statements(program))


def least_and_all(x: torch.Tensor, n: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        kept = [0.0] * 70
        least = 9.0
        for d in range(70):
            kept[d] = x[i, d] * n[i]
            least = min(least, kept[d])
        for d in range(70):
            if d < width:
                out[i, d] = kept[d] - least
    return out


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_lists_whose_items_threads_access_are_what_each_iteration_has(rows):
    x = (torch.arange(rows * 70) * 7 % 5 - 2.0).reshape(rows, 70)
    same(least_and_all, to_memory(x), to_memory(torch.arange(rows) * 2), 33)


@pytest.mark.parametrize(
    ("function", "many"), [(least_and_all, True), (gathered, True), (counted, False), (ladder, False)]
)
def test_many_have_lists_in_memory_where_threads_of_a_block_have_the_items(function, many):
    x, n = to_memory(torch.ones(2, 70)), to_memory(torch.ones(2, dtype=torch.int64))
    signature = Signature(
        (argument_type(x), argument_type(n), argument_type(7)), device="cuda", narrow=True, aligned=True
    )
    program = schedule_program(lower(define(function), signature), GPU)[0]
    branches = [node for node in walk(program) if isinstance(node, If)]
    lists = {"kept", "total", "bins"}
    (choice,) = [
        node for node in branches if any(isinstance(item, Allocate) and item.tensor.name in lists for item in node.then)
    ]
    few = build.integer(GPU.threads // 2)
    assert many == (few not in [*walk(choice.condition)])


def nearest(x: torch.Tensor, n: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        best = [9.0] * 70
        for t in range(n[i]):
            value = x[i, t]
            p = width - 1
            while p > 0 and best[p - 1] > value:
                best[p] = best[p - 1]
                p -= 1
            best[p] = value
        for d in range(width):
            out[i, d] = best[d]
    return out


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_lists_that_a_search_goes_through_are_their_threads(rows):
    x, n = (torch.arange(rows * 70) * 7 % 5 - 2.0).reshape(rows, 70), to_memory(torch.arange(rows) * 2)
    same(nearest, to_memory(x), n, 3)
    signature = Signature(
        (argument_type(to_memory(x)), argument_type(n), argument_type(3)), device="cuda", narrow=True, aligned=True
    )
    program = schedule_program(lower(define(nearest), signature), GPU)[0]
    assert not [node for node in walk(program) if isinstance(node, Allocate) and node.tensor.name == "best"]
    assert any(isinstance(node, Local) and node.tensor.name == "best" for node in statements(program))


def low_rank(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        h = torch.zeros(a.shape[0])
        for q in range(a.shape[0]):
            for c in range(x.shape[1]):
                h[q] += x[i, c] * a[q, c]
        for j in range(b.shape[0]):
            s = 0.0
            for q in range(a.shape[0]):
                s += h[q] * b[j, q]
            y[i, j] = s


def summed_outside(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    """Each thread of a block would have the sum, and none a part of it."""
    for i in range(x.shape[0]):
        h = torch.zeros(a.shape[0])
        for q in range(a.shape[0]):
            for c in range(x.shape[1]):
                h[q] += x[i, c] * a[q, c]
        s = 0.0
        for q in range(a.shape[0]):
            s += h[q] * b[0, q]
        y[i, 0] = s


@pytest.mark.parametrize(("function", "few"), [(low_rank, True), (summed_outside, False)])
def test_few_items_that_sums_of_long_loops_read_have_an_axis_for_few_rows(
    function: Callable[..., None], few: bool
) -> None:
    given = (numbers(3, 4), numbers(2, 4), numbers(40, 2), numbers(3, 40))
    signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
    program, _ = with_expanded_scratch(canonical(way(function, signature), sizes=True), GPU)
    (choice,) = (node for node in program.body if isinstance(node, If))
    numbers_asked = [node.value for node in walk(choice.condition) if isinstance(node, Constant)]
    assert (GPU.threads // 2 in numbers_asked) == few
    same(function, *given)
