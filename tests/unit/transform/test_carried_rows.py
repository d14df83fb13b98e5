"""Rows of tensors that loops carry, in lists meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from brickwork.ir.dtypes import BFLOAT16, INT64
from brickwork.ir.nodes import Constant, If, Launch, Load, Local, Node, Store, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite, statements, walk
from brickwork.transform.carried_rows import carried_rows
from brickwork.transform.register_lists import MOST
from support.lowering import memory, numbers
from support.ptx import assemble, program_for_gpu, ptx_of
from support.scheduling import GPU, kernel_of, loops_of, same
from support.shared import schedule_program


def attention(s: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for j in range(s.shape[2]):
            for t in range(q.shape[0]):
                y = 0.0
                for i in range(s.shape[1]):
                    s[b, i, j] += k[t, i] * v[t, j]
                    y += q[t, i] * s[b, i, j]
                v[t, j] = y


def state(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for i in range(s.shape[1]):
            s[b, i] = s[b, i] * 0.5
        for t in range(x.shape[1]):
            y = 0.0
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
                y += s[b, i]
            x[b, t] = y
        for i in range(s.shape[1]):
            s[b, i] = s[b, i] + 1.0


def two(s: torch.Tensor, r: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
                r[b, i] = r[b, i] + s[b, i]
            for i in range(s.shape[1]):
                x[b, t] += r[b, i]


def twice(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] * 0.5


def four(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            y = 0.0
            for i in range(4):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
                y += s[b, i]
            x[b, t] = y


def long(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            y = 0.0
            for i in range(129):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
                y += s[b, i]
            x[b, t] = y


def beside(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] * 0.75 + x[b, t]
            x[b, t] = 7.0


def where_a_number_says(s: torch.Tensor, x: torch.Tensor, n: int) -> None:
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            if n > 0:
                for i in range(s.shape[1]):
                    s[b, i] = s[b, i] * 0.75 + x[b, t]
            for i in range(s.shape[1]):
                x[b, t] += s[b, i]


def choices(function: Callable[..., object], *arguments: object) -> set[str]:
    program, _ = schedule_program(program_for_gpu(function, *arguments), GPU)
    return {node.version for node in statements(program.body) if isinstance(node, If)} - {""}


def row_of(function: Callable[..., object], loop: str, *arguments: object) -> list[str]:
    return [row.tensor.name for row in carried_rows(loops_of(kernel_of(function, *arguments))[loop])]


@pytest.mark.parametrize(("items", "steps"), [(1, 3), (3, 0), (16, 3), (17, 2), (64, 2), (65, 2), (128, 2), (129, 2)])
def test_states_of_all_lengths(items: int, steps: int) -> None:
    same(state, numbers(2, items), numbers(2, steps))
    same(two, numbers(2, items), numbers(2, items), numbers(2, steps))


@pytest.mark.parametrize("items", [1, 16, 32, 33, 128])
def test_columns_of_a_matrix(items: int) -> None:
    same(attention, numbers(1, items, 2), numbers(3, items), numbers(3, items), numbers(3, 2))


@pytest.mark.parametrize("items", [0, 3, 64])
def test_what_else_the_loop_does_is_done_where_rows_are_empty(items: int) -> None:
    s, x = memory([[0.5] * items] * 2), numbers(2, 3)
    assert row_of(beside, "t", s, x) == ["s"]
    assert same(beside, s, x)[-1] == [[7.0] * 3] * 2


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("items", [3, 32])
def test_rows_that_are_stored_into_where_a_number_says(items: int, n: int) -> None:
    assert row_of(where_a_number_says, "t", numbers(2, items), numbers(2, 3), n) == ["s"]
    same(where_a_number_says, numbers(2, items), numbers(2, 3), n)


def test_a_version_for_a_length_has_no_branch_for_empty_rows() -> None:
    program, _ = schedule_program(program_for_gpu(beside, torch.ones(2, 3), torch.ones(2, 3)), GPU)
    (choice,) = [node for node in statements(program.body) if isinstance(node, If) and node.version == "32 items of s"]
    assert not any(isinstance(node, If) and node.otherwise for node in statements(choice.then))
    assert any(isinstance(node, If) and node.otherwise for node in statements(choice.otherwise))


def test_a_literal_length_needs_no_version() -> None:
    same(four, numbers(2, 5), numbers(2, 3))
    program, _ = schedule_program(program_for_gpu(four, torch.ones(2, 5), torch.ones(2, 3)), GPU)
    launches = [node for node in statements(program.body) if isinstance(node, Launch)]
    assert any(isinstance(node, Local) for launch in launches for node in statements(launch.kernel.body))


def test_some_lengths_have_versions() -> None:
    found = choices(state, torch.ones(2, 3), torch.ones(2, 3))
    assert {"at most 16 items of s", "16 items of s", "32 items of s", "64 items of s"} <= found


def test_rows_up_to_the_longest_list_are_for_a_thread_each() -> None:
    program, _ = schedule_program(program_for_gpu(state, torch.ones(2, 3), torch.ones(2, 3)), GPU)
    choices = (node for node in statements(program.body) if isinstance(node, If) and node.version == "short rows")
    constants = {node.value for choice in choices for node in walk(choice.condition) if isinstance(node, Constant)}
    assert MOST + 1 in constants


def test_the_rows_are_in_registers(tmp_path: Path) -> None:
    program = program_for_gpu(attention, torch.ones(1, 4, 2), torch.ones(3, 4), torch.ones(3, 4), torch.ones(3, 2))
    found = assemble(ptx_of([program], GPU), GPU, tmp_path)
    # The assembler gives up some beside 64 items, so that more threads fit.
    assert [each.stack < 16 for each in found.values()].count(False) <= 1
    assert max(each.registers for each in found.values()) > 64


# ---------------------------------------------------------------- what is no row


def another_element(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, 0] + s[b, i] * x[0, t]


def another_row(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b + 1, i] + s[b, i] * x[0, t]


def along_time(s: torch.Tensor, x: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        for i in range(s.shape[1]):
            s[t, i] = s[t, i] + x[0, t]


def shifted(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1] - 1):
                s[b, i + 1] = s[b, i + 1] + x[0, t]


def from_the_second(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(1, s.shape[1]):
                s[b, i] = s[b, i] + x[0, t]


def of_two_lengths(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] + x[0, t]
            for i in range(x.shape[1]):
                s[b, i] = s[b, i] + x[0, t]


def longer_and_longer(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(t):
                s[b, i] = s[b, i] + x[0, t]


def seldom(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                if x[b, t] > 0:
                    s[b, i] = s[b, i] + x[0, t]


def one_element(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            s[b, 0] = s[b, 0] + x[b, t]


def only_stored(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = x[b, t]


def with_loops_inside(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                for j in range(x.shape[0]):
                    s[b, i] = s[b, i] * 0.5 + x[j, t]


def asserting(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] + x[0, t]
            assert x[b, t] > 0, "x"


def ending(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[b, i] = s[b, i] + x[0, t]
            if x[b, t] > 3:
                break


def exchanging(s: torch.Tensor, x: torch.Tensor) -> None:
    r = torch.zeros_like(s)
    for t in range(x.shape[1]):
        for i in range(s.shape[1]):
            s[0, i] = s[0, i] + r[0, i] * x[0, t]
            r[0, i] = s[0, i]
        s, r = r, s


def in_a_list(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        r = [0.0, 0.0, 0.0, 0.0]
        for t in range(x.shape[1]):
            y = 0.0
            for i in range(4):
                r[i] = r[i] * 0.75 + float(x[b, t])
                y += r[i]
            x[b, t] = y


def up_to_a_variable(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            n = s.shape[1] - t
            for i in range(n):
                s[b, i] = s[b, i] + x[0, t]


def placed_by_itself(s: torch.Tensor, x: torch.Tensor) -> None:
    for b in range(s.shape[0]):
        for t in range(x.shape[1]):
            for i in range(s.shape[1]):
                s[int(s[b, 0]), i] += x[0, t]


OTHERS = [
    another_element,
    another_row,
    along_time,
    shifted,
    from_the_second,
    of_two_lengths,
    longer_and_longer,
    seldom,
    long,
    one_element,
    only_stored,
    with_loops_inside,
    asserting,
    ending,
    in_a_list,
    up_to_a_variable,
    placed_by_itself,
]


@pytest.mark.parametrize("function", OTHERS)
def test_other_rows_stay_in_memory(function: Callable[..., object]) -> None:
    s, x = numbers(4, 5), numbers(3, 3)
    assert row_of(function, "t", s, x) == []


@pytest.mark.parametrize("function", [state, two])
def test_what_is_a_row(function: Callable[..., object]) -> None:
    count = 1 if function is state else 2
    assert row_of(function, "t", *(numbers(4, 5) for _ in range(count + 1))) == ["s", "r"][:count]


def test_tensors_that_change_places_have_no_rows() -> None:
    assert row_of(exchanging, "t", numbers(2, 3), numbers(2, 3)) == []


def test_a_row_at_a_place_that_elements_say() -> None:
    loop = loops_of(kernel_of(state, numbers(2, 3), numbers(2, 3)))["t"]
    load = Load(tensor=Tensor("at", 99, TensorType(INT64, 0)), indices=(), access=99, dtype=INT64)

    def visit(node: Node) -> Node:
        if not isinstance(node, Load | Store) or node.tensor.name != "s":
            return node
        return replace(node, indices=(load, *node.indices[1:]))

    assert carried_rows(loop) != []
    assert carried_rows(rewrite(loop, visit)) == []


def test_elements_that_are_rounded_as_they_are_stored() -> None:
    s = memory([[1.0, 2.0]], BFLOAT16)
    assert row_of(state, "t", s, numbers(1, 3)) == []


def test_indivisible_updates_are_no_rows() -> None:
    loop = loops_of(kernel_of(twice, numbers(2, 3), numbers(2, 3)))["t"]

    def visit(node: Node) -> Node:
        last = isinstance(node, Store) and node.access == places[-1]
        return replace(node, combine=OPERATORS["add"]) if last else node

    places = [node.access for node in statements(loop) if isinstance(node, Store) and node.tensor.name == "s"]
    assert len(places) == 2
    assert carried_rows(loop) != []
    assert carried_rows(rewrite(loop, visit)) == []
