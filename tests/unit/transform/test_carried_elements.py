"""Elements that the next iterations read are kept in variables on grids, so that such recurrences run in chunks."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import If
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import split_recurrences
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = replace(cuda_target((9, 0)), threads=64, launch_ns=0)
"""A machine for which a few iterations are worth being cut."""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(split_recurrences, "UNROLLED", 2)


def prefix(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1] - 1):
        out[0, t + 1] = out[0, t] + x[0, t]


def in_place(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] += out[0, t - 1]


def but_the_first(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        out[0, t] = x[0, t] - (out[0, t - 1] if t > 0 else 3.0)


def of_the_first_two(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        s = x[0, t]
        if t > 0:
            s -= out[0, t - 1]
        if t > 1:
            s -= out[0, t - 2]
        out[0, t] = s


def downwards(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    N = x.shape[1]
    for t in range(N - 2, -1, -1):
        out[0, t] = x[0, t] + a[0, t] * out[0, t + 1]


def in_steps(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(3, x.shape[1], 3):
        out[0, t] = x[0, t] + a[0, t] * out[0, t - 3]
        out[0, t - 1] = 7.0


def stored_if_read_again(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    T = x.shape[1]
    for t in range(T):
        x[0, t] = out[0, T - 1 - t]
        if t < T - 1:
            out[0, T - 2 - t] += a[0, t] * out[0, T - 1 - t]


def rows(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        out[c, 0] = x[c, 0]
        for t in range(1, x.shape[1]):
            out[c, t] = x[c, t] + a[c, t] * out[c, t - 1]


def columns(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[0]):
        for c in range(x.shape[1]):
            out[t, c] = x[t, c] + a[t, c] * out[t - 1, c]


def read_again(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = out[0, t - 1] + x[0, t]
        a[0, t] = a[0, t - 1] + out[0, t]


def from_the_end(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        out[0, t] = out[0, t - 1] + x[0, t]


CUT = [
    prefix,
    in_place,
    but_the_first,
    of_the_first_two,
    downwards,
    in_steps,
    stored_if_read_again,
    rows,
    columns,
    read_again,
    from_the_end,
]


def stored_under_conditions(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        if a[0, t] > 0.0:
            out[0, t] = x[0, t] + out[0, t - 1]


def stored_but_once(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        s = x[0, t] + out[0, t - 1]
        if t != 3:
            out[0, t] = s


def stored_twice(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = x[0, t] + out[0, t - 1]
        out[0, t] = 2.0 - out[0, t]


def stored_over(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = x[0, t] + out[0, t - 1]
        out[0, 2] = 5.0


def read_later(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = x[0, t] + a[0, t]
        x[0, t] = out[0, t - 1]


def read_ahead(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1] - 1):
        out[0, t] = out[0, t - 1] + out[0, t + 1]


def read_anywhere(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = out[0, t - 1] + out[0, x.shape[1] // 2]


def every_second(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(2, x.shape[1]):
        out[0, t] = out[0, t - 2] + x[0, t]


def never_elsewhere(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        out[0, 0] = x[0, t] + a[0, t] * out[0, 0]


def in_a_loop_inside(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        for k in range(2):
            out[0, t] = x[0, t] + out[0, t - 1] * k


def left_early(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, t] = x[0, t] + out[0, t - 1]
        if out[0, t] > 6.0:
            break


def at_its_middle(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    T = x.shape[1]
    for t in range(2 * T - 1):
        out[0, t // 2] = x[0, t // 2] + out[0, (t - 1) // 2 if t > 0 else 0]


def three_from_the_end(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(x.shape[1]):
        if x.shape[1] > 2 or t > 3:
            out[0, t] = out[0, t - 1] - out[0, t - 2] + out[0, t - 3]


def stencil(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(1, x.shape[0]):
        for t in range(1, x.shape[1]):
            out[c, t] = out[c - 1, t] - out[c, t - 1] + x[c, t]


def stored_first(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        out[0, 0] = 5.0
        out[0, t] = x[0, t] + out[0, t - 1]


def two_of_three(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        if t % 3 > 0:
            out[0, t] = x[0, t] + out[0, t - 1]


def in_rows_of_data(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for t in range(1, x.shape[1]):
        c = min(max(int(a[0, t]), 0), x.shape[0] - 1)
        out[c, t] = x[0, t] + out[c, t - 1]


OTHERS = [
    stored_first,
    two_of_three,
    in_rows_of_data,
    stored_under_conditions,
    stored_but_once,
    stored_twice,
    stored_over,
    read_later,
    read_ahead,
    read_anywhere,
    every_second,
    never_elsewhere,
    in_a_loop_inside,
    left_early,
    at_its_middle,
    three_from_the_end,
    stencil,
]


def pieces_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    return pieces


def is_cut(pieces):
    return any(isinstance(node, If) and node.version.startswith("chunks") for node in walk(pieces))


def arguments_of(few, long):
    generator = torch.Generator().manual_seed(long)
    x, out = (torch.randint(-3, 4, (few, long), generator=generator).float() for _ in range(2))
    return x, torch.randint(-1, 2, (few, long), generator=generator).float(), out


def results_of(program, arguments):
    memories = [to_memory(each.clone()) for each in arguments]
    try:
        run_program(program, memories, check=True)
    except IndexError as error:
        return str(error)
    return [to_tensor(each).tolist() for each in memories]


@pytest.mark.parametrize("function", [*CUT, *OTHERS])
@pytest.mark.parametrize(("few", "long"), [(1, 0), (1, 1), (1, 2), (2, 3), (2, 4), (3, 7), (2, 17), (1, 64), (70, 3)])
def test_means_what_the_source_says(function, few, long):
    arguments = arguments_of(few, long)
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    expected = results_of(lower(define(function), signature), arguments)
    found = results_of(pieces_of(function, *arguments), arguments)
    assert found == expected


@pytest.mark.parametrize("function", CUT)
def test_cut_where_it_can_be(function):
    assert is_cut(pieces_of(function, *arguments_of(2, 4)))


@pytest.mark.parametrize("function", OTHERS)
def test_in_order_elsewhere(function):
    assert not is_cut(pieces_of(function, *arguments_of(2, 4)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_types_that_variables_have(dtype):
    arguments = [each.to(dtype) for each in arguments_of(1, 40)]
    assert is_cut(pieces_of(prefix, *arguments))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32])
def test_narrow_elements_are_read_again(dtype):
    arguments = [each.to(dtype) for each in arguments_of(1, 40)]
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    expected = results_of(lower(define(prefix), signature), arguments)
    assert results_of(pieces_of(prefix, *arguments), arguments) == expected
