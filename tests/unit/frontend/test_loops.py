"""The loops of the language, and the numbers of the iterations that random draws are made from."""

import math

import pytest
import torch
from torch import Tensor

from brickwork.analysis.analyse import analyse
from brickwork.frontend.definition import define
from brickwork.frontend.random_sites import SPREAD, SPREAD_BITS
from brickwork.frontend.reference import python_function
from brickwork.ir.nodes import For, Launch, Random
from brickwork.ir.philox import integer, normal, uniform
from brickwork.ir.walk import walk
from brickwork.language.loops import indices, ndrange, prange
from brickwork.language.random import rand, randint, randn
from support.lowering import memory, program_of, run


def sin(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for index in indices(x):
        out[index] = math.sin(x[index])
    return out


@pytest.mark.parametrize("values", [[[0.0, 1.0], [2.0, 3.0]], [0.5], 0.5])
def test_indices_of_any_rank(values):
    (out,) = run(sin, memory(values))
    flat = memory(values).data
    assert memory(out).data == pytest.approx([math.sin(item) for item in flat], rel=1e-6)


def test_a_break_leaves_the_whole_nest():
    def expected(n, m):
        return [[10 * i + j if i < 2 and j else 0 for j in range(m)] for i in range(n)]

    x = memory([0.0])

    def with_tensor(x: Tensor, n: int, m: int) -> Tensor:
        out = torch.zeros(n, m)
        for i, j in ndrange(n, (1, m)):
            if i == 2:
                break
            out[i, j] = 10 * i + j
        return out

    assert run(with_tensor, x, 4, 3) == (expected(4, 3),)


def claims(x: Tensor) -> None:
    for i in prange(x.shape[0]):
        x[i] += 1
    for i in ndrange(x.shape[0], parallel=True):
        x[i] += 1
    for i in ndrange(x.shape[0]):
        x[i] += 1


def test_the_word_of_the_user_is_kept():
    x = memory([1.0])
    loops = [node for node in walk(program_of(claims, x)) if isinstance(node, For)]
    assert [loop.claimed for loop in loops] == [True, True, False]
    run(claims, x)
    assert x.data == [4.0]


def sample(mu: Tensor, n: int) -> Tensor:
    d = mu.shape[0]
    out = mu.new_empty((d, n))
    for i in range(d):
        for j in range(n):
            out[i, j] = mu[i] + randn()
    return out


def test_draws_count_the_iterations_in_row_major_order():
    (out,) = run(sample, memory([1.0, 2.0]), 3, key=5)
    assert out == [
        pytest.approx([mu + normal(5, 3 * i + j, 0, 0) for j in range(3)], rel=1e-6) for i, mu in enumerate([1.0, 2.0])
    ]


def many(x: Tensor) -> None:
    for i in range(x.shape[0]):
        x[i] = rand() + 10 * randint(2, 5)


def test_each_place_has_its_own_numbers():
    x = memory([0.0, 0.0])
    program = program_of(many, x)
    assert sorted({node.site for node in walk(program) if isinstance(node, Random)}) == [0, 1]
    run(many, x, key=7)
    assert x.data == pytest.approx([uniform(7, i, 0, 0) + 10 * integer(7, i, 0, 1, (2, 5)) for i in range(2)], rel=1e-6)


def triangle(x: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i + 1):
            x[i, j] = rand()


def test_draws_of_an_irregular_nest_are_all_different():
    x = memory([[0.0] * 4 for _ in range(4)])
    run(triangle, x, key=1)
    drawn = [x.data[4 * i + j] for i in range(4) for j in range(i + 1)]
    assert len(set(drawn)) == 10
    expected = [uniform(1, (i * SPREAD & SPREAD_BITS) + j, 0, 0) for i in range(4) for j in range(i + 1)]
    assert drawn == pytest.approx(expected, rel=1e-6)


def test_an_irregular_nest_that_draws_is_parallel():
    kernel = next(node.kernel for node in walk(program_of(triangle, memory([[0.0]]))) if isinstance(node, Launch))
    assert all(verdict.independent for verdict in analyse(kernel).loops.values())


def checkerboard(x: Tensor) -> None:
    for colour in (0, 1):
        for i in range(x.shape[0]):
            for j in range((i + colour) % 2, x.shape[1], 2):
                x[i, j] = rand()


def of_a_helper(x: Tensor) -> None:
    for i in range(x.shape[0]):
        x[i, 0] = several(x.shape[1]) + several(i)


def several(n: int) -> float:
    s = 0.0
    for _ in range(n):
        s += rand()
    return s


def of_a_table(x: Tensor) -> None:
    for i in range(x.shape[0]):
        for k, length in enumerate((3, 1, 4)):
            for j in range(length):
                x[i, j] += rand() * k


def of_a_length_that_is_drawn(x: Tensor) -> None:
    for i in range(x.shape[0]):
        for _ in range(randint(1, 4)):
            for j in range(x.shape[1]):
                x[i, j] += rand()


def of_lists(x: Tensor) -> None:
    for i in range(x.shape[0]):
        v = [rand() for _ in range(3)]
        for j in range(i):
            for k in range(len(v)):
                x[i, j] += v[k] + sum(rand() for _ in range(k)) + tuple(rand() for _ in range(2))[1]


DRAWING = [checkerboard, of_a_helper, of_a_table, of_a_length_that_is_drawn, of_lists, triangle]


@pytest.mark.parametrize("function", DRAWING, ids=lambda function: function.__name__)
def test_draws_are_those_of_python(function):
    x, expected = memory([[0.0] * 5 for _ in range(5)]), torch.zeros(5, 5)
    run(function, x, key=11)
    python_function(define(function))(expected, key=11)
    assert x.data == pytest.approx(expected.flatten().tolist(), rel=1e-6)


def test_the_turns_of_a_loop_that_is_written_out_draw_different_numbers():
    x = memory([[0.0] * 6 for _ in range(4)])
    run(checkerboard, x, key=2)
    assert len(set(x.data)) == 24


def until(x: Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        while s < 2:
            s += rand()
        x[i] = s


def test_draws_under_while_count_its_turns():
    x = memory([0.0, 0.0])
    run(until, x, key=3)
    for i in range(2):
        s, turn = 0.0, 1
        while s < 2:
            s += uniform(3, i, turn, 0)
            turn += 1
        assert x.data[i] == pytest.approx(s, rel=1e-6)
