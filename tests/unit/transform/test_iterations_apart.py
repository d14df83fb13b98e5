"""A loop is cut at the iteration that stores what the others read, if they are independent then, and at no other."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Apply, Assign, For, If, Launch, Load, Program, Symbol, Tensor
from brickwork.ir.signature import Signature
from brickwork.ir.tensor_types import type_of
from brickwork.ir.walk import statements, walk
from brickwork.target.cpu import host_target
from brickwork.transform import iterations_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.iterations_apart import with_iterations_apart
from support.shared import define, lower, verify_program
from support.tensors import argument_type, to_memory, to_tensor


def cut(function: Callable[..., object], *arguments: object) -> tuple[Program, Program]:
    """Return the program of a function, and that with its loops cut."""
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, arguments)))), sizes=True)
    found, remarks = with_iterations_apart(program, host_target())
    verify_program(found)
    assert not remarks
    return program, found


def loops(function: Callable[..., object], *arguments: object) -> list[tuple[str, bool]]:
    """Return the loops of a function once they are cut: their names, and whether they are independent."""
    _, found = cut(function, *arguments)
    verdicts = [analyse(node.kernel).loops for node in walk(found) if isinstance(node, Launch)]
    return [(index.name, verdict.independent) for each in verdicts for index, verdict in each.items()]


def agree(function: Callable[..., object], d: torch.Tensor, *others: int) -> None:
    """Assert that the cut program does what the whole one does."""
    results: list[torch.Tensor] = []
    for program in cut(function, d, *others):
        memory = to_memory(d.clone())
        run_program(program, [memory, *others], key=5, check=True)
        results.append(to_tensor(memory))
    assert torch.equal(results[0], results[1])


def shortest_paths(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def from_another_size(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]


def by_its_diagonal(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[k, j] = d[k, j] * d[k, k] + 1.0


def by_a_later_one(d: torch.Tensor) -> None:
    for i in range(d.shape[0] - 2):
        d[i + 2, 0] = d[i + 2, 0] * 2.0 + d[3, 0]


def by_an_argument(d: torch.Tensor, at: int) -> None:
    for i in range(d.shape[0]):
        d[i, 0] = d[i, 0] + d[at, 0]


def inside_of_it(d: torch.Tensor, at: int) -> None:
    for i in range(2, d.shape[0] - 2):
        d[i, 0] = d[i, 0] + d[at, 0]


def by_a_loop_in_another(d: torch.Tensor) -> None:
    m = d.shape[0] - 1
    for _ in range(m):
        for k in range(d.shape[0]):
            for i in range(m):
                d[i, 0] = d[i, 0] + d[k, 0]


def from_the_third_on(d: torch.Tensor) -> None:
    for k in range(2, d.shape[0]):
        for i in range(d.shape[0]):
            d[i, 0] = d[i, 0] + d[k, 0]


def by_one_after(d: torch.Tensor) -> None:
    for i in range(1, d.shape[0]):
        for k in range(1, 3):
            d[i, k] = d[i, k] - d[k - 1, 0]


def among_conditions(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        if k % 2 == 0:
            for i in range(d.shape[0]):
                d[i, k] = d[i, k] + d[k, k]
        else:
            for i in range(1, d.shape[0]):
                d[i, 0] = d[i, 0] - d[k, 0]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "function",
    [
        shortest_paths,
        from_another_size,
        by_its_diagonal,
        by_a_later_one,
        by_one_after,
        among_conditions,
        by_a_loop_in_another,
        from_the_third_on,
    ],
)
def test_cut_loops_do_what_whole_ones_did(function: Callable[..., object], size: int) -> None:
    size = size if function not in (by_a_later_one, by_one_after) else size + 4
    agree(function, torch.randint(-9, 9, (size, size + (function is by_its_diagonal))).float())


@pytest.mark.parametrize("at", [0, 1, 2, 4, 5, 6, 7])
@pytest.mark.parametrize("function", [by_an_argument, inside_of_it])
def test_the_place_may_be_an_argument(function: Callable[..., object], at: int) -> None:
    agree(function, torch.randint(1, 9, (8, 1)).float(), at)


def by_an_argument_at_times(d: torch.Tensor, at: int) -> None:
    for i in range(d.shape[0]):
        d[i, 0] = d[i, 0] * 2.0
        if at < d.shape[0]:
            d[i, 0] = d[i, 0] + d[at, 0]


@pytest.mark.parametrize("at", [5, 2**31 - 1, 2**63 - 2, 2**63 - 1])
def test_no_number_is_after_the_greatest(at: int) -> None:
    assert len(loops(by_an_argument_at_times, torch.ones(6, 1), at)) == 2
    agree(by_an_argument_at_times, torch.randint(1, 9, (6, 1)).float(), at)


def by_a_quotient(d: torch.Tensor, at: int, by: int) -> None:
    for i in range(d.shape[0]):
        d[i, 0] = d[i, 0] * 2.0
        if by != 0:
            d[i, 0] = d[i, 0] + d[at // by, 0]


def test_nothing_is_divided_ahead_of_the_loop() -> None:
    program, found = cut(by_a_quotient, torch.ones(6, 1), 4, 2)
    assert program == found
    for by in (0, 2):
        agree(by_a_quotient, torch.ones(6, 1), 4, by)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (shortest_paths, [("k", False), ("i", True), ("j", True)]),
        (by_its_diagonal, [("k", True), ("j", True), ("j", True)]),
        (by_a_later_one, [("i", True), ("i", True)]),
    ],
)
def test_iterations_on_both_sides_are_independent(
    function: Callable[..., object], expected: list[tuple[str, bool]]
) -> None:
    found = loops(function, torch.ones(5, 5))
    assert {*expected} == {*found}
    assert len(found) == (9 if function is shortest_paths else len(expected))


def test_what_a_loop_around_says_of_the_place_is_not_asked() -> None:
    """The index of a loop over the same range is in it; where columns are others, it may not be."""
    for function, asked in (
        (shortest_paths, 0),
        (from_another_size, 3),
        (from_the_third_on, 0),
        (by_its_diagonal, 1),
        (by_an_argument, 1),
    ):
        arguments = (torch.ones(5, 5), 3) if function is by_an_argument else (torch.ones(5, 5),)
        program, found = cut(function, *arguments)
        before, after = (sum(isinstance(node, If) for node in statements(each.body)) for each in (program, found))
        copies = 9 if function is from_another_size else 1
        assert after - before * copies == asked, function
        ends = [item for node in walk(found) if isinstance(node, For) for item in walk((node.start, node.stop))]
        limited = any(isinstance(node, Apply) and node.operator.name in ("minimum", "maximum") for node in ends)
        assert limited == bool(asked), function


# ---------------------------------------------------------------- what stays whole


def independent_already(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            if i != k:
                d[i, 0] = d[i, 0] + d[k, 0]


def in_order_anyway(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(1, d.shape[0]):
            d[i, 0] = d[i - 1, 0] + d[k, 0]


def at_two_places(d: torch.Tensor) -> None:
    for k in range(2, d.shape[0]):
        for i in range(d.shape[0]):
            d[i, 0] = d[i, 0] + d[k, 0] * d[k - 2, 0]


def at_a_place_of_elements(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        at = int(d[k, 0]) % d.shape[0]
        for i in range(d.shape[0]):
            d[i, 1] = d[i, 1] + d[at, 1]


def at_a_place_that_moves(d: torch.Tensor) -> None:
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, 0] = d[i, 0] + d[j, 0]


def until_it_is_large(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            if d[i, 0] > 5.0:
                break
            d[i, 0] = d[i, 0] + d[k, 0]


def skipping(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            if d[i, 0] > 5.0:
                continue
            d[i, 0] = d[i, 0] + d[k, 0]
            if d[i, 0] > 3.0:
                continue
            d[i, 1] = 1.0


def by_chance(d: torch.Tensor) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            d[i, 0] = d[i, 0] + d[k, 0] * bw.rand()


def of_another_tensor(d: torch.Tensor) -> None:
    e = torch.zeros_like(d)
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            d[i, 0] = d[0, 1] + e[k, 0]
            d[0, 1] = d[i, 0] + d[0, 1]


@pytest.mark.parametrize(
    "function",
    [
        independent_already,
        in_order_anyway,
        at_two_places,
        at_a_place_of_elements,
        at_a_place_that_moves,
        until_it_is_large,
        skipping,
        by_chance,
        of_another_tensor,
    ],
)
def test_others_stay_whole(function: Callable[..., object]) -> None:
    program, found = cut(function, torch.ones(5, 5))
    assert program == found
    agree(function, torch.randint(-9, 9, (5, 5)).float())


def test_a_large_loop_has_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations_apart, "LARGE_BODY", 40)
    found = loops(shortest_paths, torch.ones(5, 5))
    assert [name for name, _ in found] == ["k", "i", "j", "j"]


def test_a_place_that_elements_say_is_none() -> None:
    """It may be another one in each iteration."""
    tensor = Tensor("a", 0, type_of(INT64, 1, dense=True))
    place = Load(tensor=tensor, indices=(build.integer(0),), access=0, dtype=INT64)
    assert not iterations_apart._is_fixed(place, frozenset())
    assert iterations_apart._is_fixed(build.integer(0), frozenset())


def test_the_end_of_a_loop_around_is_no_limit_where_it_moves() -> None:
    k, i, m = (Symbol(name, number, INT64) for number, name in enumerate("kim"))
    zero, end = build.integer(0), build.read(m)
    loop = For(index=i, start=zero, stop=end, body=())
    for body, limited in (((loop,), True), ((Assign(symbol=m, value=zero), loop), False)):
        around = For(index=k, start=zero, stop=end, body=body)
        assert iterations_apart._limits(loop, build.read(k), (around,)) == (True, limited)


def test_the_beginning_of_a_loop_around_is_no_limit_where_it_moves() -> None:
    k, i, m = (Symbol(name, number, INT64) for number, name in enumerate("kim"))
    begin, end = build.read(m), build.integer(9)
    loop = For(index=i, start=begin, stop=end, body=())
    for body, limited in (((loop,), True), ((Assign(symbol=m, value=end), loop), False)):
        around = For(index=k, start=begin, stop=end, body=body)
        assert iterations_apart._limits(loop, build.read(k), (around,)) == (limited, True)
    around = For(index=k, start=build.read(i), stop=end, body=(loop,))
    assert iterations_apart._limits(loop, build.read(k), (around,)) == (False, True)
