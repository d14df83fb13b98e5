"""Which numbers may be radices of a flat index: those that are never negative, and whose product is the loop's length.

A loop over digits that got another radix would run other iterations. Each program means the same as written.
"""

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Check, For, If, Launch
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from support.lowering import memory, numbers, program_of
from support.scheduling import same
from unit.transform.test_digits import loops

Tensor = torch.Tensor
X = numbers(4, 6)


def filled(y: Tensor, high: int, low: int) -> None:
    for index in range(high * low):
        y[abs(index // low), abs(index % low)] += 1 + index // low


def halves(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0] // 2, x.shape[1])


def more_than_a_size(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0] * 2 + 1, x.shape[1] + x.shape[0])


def at_least_one(x: Tensor, y: Tensor, n: int) -> None:
    filled(y, max(n, 1), x.shape[1])


def products_of_sums(x: Tensor, y: Tensor) -> None:
    filled(y, 1, (x.shape[0] + 1) * x.shape[1])


def literals(x: Tensor, y: Tensor) -> None:
    filled(y, 3, 5)


def twice_the_same(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0], x.shape[0])


def parts_of_an_argument(x: Tensor, y: Tensor, n: int) -> None:
    filled(y, x.shape[0] // n, x.shape[1] // n)


def parts_of_a_negative_number(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0] // -2, x.shape[1] // -2)


def halves_of_an_argument(x: Tensor, y: Tensor, n: int) -> None:
    filled(y, n // 2, n // 2)


def differences(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0] - x.shape[1], x.shape[0] - x.shape[1])


def less_than_a_size(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[0] - 6, x.shape[1] - 9)


def sums_with_an_argument(x: Tensor, y: Tensor, n: int) -> None:
    filled(y, x.shape[0] + n, x.shape[0] + n)


def greater_of_arguments(x: Tensor, y: Tensor, n: int, m: int) -> None:
    filled(y, max(n, m), max(n, m))


def lesser(x: Tensor, y: Tensor, n: int) -> None:
    filled(y, min(x.shape[0], n), min(x.shape[1], n))


def more_than_an_axis(x: Tensor, y: Tensor) -> None:
    filled(y, x.shape[1] - x.shape[0], x.shape[1] - 2)


def divided_further(x: Tensor, y: Tensor, n: int) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        row, column = index // x.shape[1] % n, index % x.shape[1]
        y[abs(index // (n * x.shape[1])), 10 * abs(row) + column] += 1 + row + 10 * (index // (x.shape[1] * n))


def divided_by_a_size_alone(x: Tensor, y: Tensor, rows: int, z: Tensor) -> None:
    for index in range(rows):
        y[index // z.shape[1], index % z.shape[1]] += 1 + index % z.shape[1]


def divided_and_whole(x: Tensor, y: Tensor, n: int) -> None:
    for index in range(x.shape[0]):
        y[index // n, index % n] += index


def divided_twice(x: Tensor, y: Tensor, n: int, m: int) -> None:
    for index in range(x.shape[0]):
        y[index // n // m, index % m] += index // n


def changing_in_the_kernel(x: Tensor, y: Tensor, n: int) -> None:
    for _ in range(2):
        for index in range(x.shape[0] * n):
            y[index // n, index % n] += 1
        n += 1


def negative_literals(x: Tensor, y: Tensor) -> None:
    filled(y, -3, -5)


def read_from_memory(x: Tensor, y: Tensor, sides: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], abs(index % x.shape[1] % (sides[0] + 1))] += 1


def by_its_own_digit(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1] % (index // x.shape[1] + 1)] += 1


def by_an_index_within(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        for other in range(1, 3):
            y[index // x.shape[1], index % other] += other


def three_digits_of_two(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1] // 2 % 3] += 1


def digits_that_overlap(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * 6):
        y[index // 6, index % 6 // 4] += index % 3


def of_one_row(x: Tensor, y: Tensor) -> None:
    for index in range(1 * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1]] += 1


def divided_by_a_length(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1]] = 12 // x.shape[1]


def divided_by_another_length(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1]] = 12 // y.shape[1]


def greater_than_a_length(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1]] = int(x[0, 0]) // (x.shape[1] + 1) % (x.shape[0] - 3)


def rows_alone(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], 0] += 1


def over_what_is_made(x: Tensor, y: Tensor, side: int) -> None:
    made = torch.zeros(x.shape[0], side)
    for index in range(made.shape[0] * made.shape[1]):
        made[index // side, index % side] = index % side
    y[0, 0] = made[1, 1]


TWO = ["index", "index"]
FLAT = ["index"]
ASKED = [*TWO, "index"]
"""The nest where radices are positive, and the loop as it was where one is not."""
PROGRAMS = [
    (halves, (), TWO),
    (more_than_a_size, (), TWO),
    (at_least_one, (2,), TWO),
    (at_least_one, (-2,), TWO),
    (literals, (), TWO),
    (twice_the_same, (), TWO),
    (of_one_row, (), FLAT),
    (rows_alone, (), TWO),
    (over_what_is_made, (3,), TWO),
    (divided_by_a_length, (), TWO),
    (divided_by_another_length, (), TWO),
    (greater_than_a_length, (), TWO),
    (products_of_sums, (), FLAT),
    (parts_of_an_argument, (2,), FLAT),
    (parts_of_an_argument, (-2,), FLAT),
    (parts_of_a_negative_number, (), FLAT),
    (halves_of_an_argument, (-4,), FLAT),
    (differences, (), ASKED),
    (less_than_a_size, (), ASKED),
    (sums_with_an_argument, (-6,), ASKED),
    (greater_of_arguments, (-2, -3), ASKED),
    (lesser, (-2,), ASKED),
    (more_than_an_axis, (), ASKED),
    (sums_with_an_argument, (-4,), ASKED),
    (sums_with_an_argument, (-3,), ASKED),
    (sums_with_an_argument, (2,), ASKED),
    (greater_of_arguments, (2, -3), ASKED),
    (lesser, (3,), ASKED),
    (lesser, (0,), ASKED),
    *((divided_further, (n,), ["row", "column", "index"]) for n in (1, 2, 3, 4, 5, -1, -3, 2**31, 2**40)),
    *((divided_by_a_size_alone, (rows, numbers(rows, columns)), FLAT) for rows in (1, 4) for columns in (1, 3, 4)),
    (divided_and_whole, (2,), FLAT),
    (divided_twice, (2, 2), FLAT),
    (changing_in_the_kernel, (2,), ["_", "index"]),
    (negative_literals, (), FLAT),
    (read_from_memory, (memory([2], INT64),), TWO),
    (by_its_own_digit, (), TWO),
    (three_digits_of_two, (), TWO),
    (digits_that_overlap, (), [*TWO, "index"]),
    (by_an_index_within, (), [*TWO, "other"]),
]


@pytest.mark.parametrize(("function", "more", "names"), PROGRAMS)
def test_radices(function: Callable[..., object], more: tuple[object, ...], names: list[str]):
    """A loop is a nest where its divisors are never negative, do not change, and divide its length."""
    arguments = (X, numbers(30, 60), *more)
    assert loops(function, *arguments) == names
    same(function, *arguments)


@pytest.mark.parametrize(
    ("function", "left"), [(divided_by_a_length, 0), (divided_by_another_length, 1), (greater_than_a_length, 2)]
)
def test_checks_of_divisors(function: Callable[..., object], left: int):
    """A divisor is not checked where no iteration runs if it is 0."""
    program = canonical(program_of(function, X, numbers(30, 60)))
    kernels = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    assert sum(isinstance(node, Check) for each in kernels for node in statements(each.body)) == left


def test_what_is_asked_stands_around_all_loops():
    """A loop that stays beside its nest inside of another would keep that in order."""

    def tiles(y: Tensor, n: int, m: int) -> None:
        for tile in range(n * n):
            for pixel in range(m * m):
                y[tile // n * m + pixel // m, tile % n * m + pixel % m] += 1

    program = canonical(program_of(tiles, numbers(6, 6), 3, 2))
    (launch,) = [node for node in statements(program.body) if isinstance(node, Launch)]
    (choice,) = [node for node in statements(launch.kernel.body) if isinstance(node, If)]
    assert choice in launch.kernel.body
    assert [node.index.name for node in statements(choice.otherwise) if isinstance(node, For)] == ["tile", "pixel"]
    for n, m in ((3, 2), (3, -2), (-2, 3), (-3, -2), (0, 2)):
        same(tiles, numbers(6, 6), n, m)
