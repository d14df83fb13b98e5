"""A `while` whose counter is doubled or halved becomes a loop with an index; what is not shifted so stays.

Each program means the same as written, for processors and for a GPU.
"""

import pytest
import torch

from brickwork.ir.nodes import For, While
from brickwork.ir.walk import statements
from support.lowering import memory
from support.scheduling import same
from unit.transform.test_canonical import kernel_of

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([0.25] * 6)


def doubled(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h < x.shape[0]:
        y[h] = x[h] + h
        h *= 2
    y[0] = h


def doubled_up_to_a_limit(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while a >= h:
        y[h] = x[h]
        h = 2 * h
        y[0] += h


def shifted_by_two_places(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while h <= a:
        y[0] += h
        h <<= 2
    y[1] = h


def halved(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h > 1:
        y[0] = y[0] * 2.0 + h
        h //= 2
        y[1] += h
    y[2] = h


def divided_at_once(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h >= 1:
        y[0] = y[0] * 2.0 + h
        h = h >> 70
    y[1] = h


def divided_by_eight(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h >= 1:
        y[0] = y[0] * 2.0 + h
        h = h >> 3
    y[1] = h


SCALED = [
    *((doubled, (X, Y, a)) for a in (1, 2, 3, 5, 6, 9)),
    *(
        (function, (X, Y, a))
        for function in (halved, divided_by_eight, divided_at_once)
        for a in (-9, -1, 0, 1, 2, 7, 8, 9, 63, 64, 511)
    ),
    *((shifted_by_two_places, (X, Y, a)) for a in (-(2**63), -1, 0, 1, 3, 4, 15, 16, 17, 64)),
    *((doubled_up_to_a_limit, (X, Y, a)) for a in (-1, 0, 1, 2, 3, 4, 5)),
]


@pytest.mark.parametrize(("function", "arguments"), SCALED)
def test_what_is_doubled_or_halved_is_shifted(function, arguments):
    found = [*statements(kernel_of(function, arguments))]
    assert any(isinstance(node, For) for node in found)
    assert not any(isinstance(node, While) for node in found)
    same(function, *arguments)


def halved_below_nothing(x: Tensor, y: Tensor, a: int) -> None:
    h = 5
    while h > a:
        y[0] += h
        h //= 2
        if h == 0:
            break


def trebled(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while h < a:
        y[0] += h
        h *= 3


def halved_to_a_limit(x: Tensor, y: Tensor, a: int) -> None:
    h = 40
    while h > a:
        y[0] += h
        h //= 2


def doubled_away(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h > -9:
        y[0] += h
        h *= 2


def halved_away(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h < -2:
        y[0] += h
        h //= -2


def halved_below(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h < 3:
        y[0] += h
        h //= 2


def halved_beyond_nothing(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h > -1:
        y[0] += h
        h //= 2


def halved_upwards(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h < -2:
        y[0] += h
        h //= 2


def doubled_while_great(x: Tensor, y: Tensor, a: int) -> None:
    h = a
    while h > 2:
        y[0] += h
        h *= 2


def not_shifted(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while h <= a:
        y[0] += h
        h <<= 0


def times_a_size(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while h <= a:
        y[0] += h
        h *= x.shape[0]


def doubled_to_a_limit_that_falls(x: Tensor, y: Tensor, a: int) -> None:
    h = 1
    while h < a:
        y[0] += h
        h *= 2
        a -= 7


STAYING = [
    (halved_below, (X, Y, 9)),
    (halved_beyond_nothing, (X, Y, -5)),
    (halved_upwards, (X, Y, -9)),
    (doubled_while_great, (X, Y, 1)),
    (not_shifted, (X, Y, 0)),
    (times_a_size, (X, Y, 40)),
    (doubled_to_a_limit_that_falls, (X, Y, 40)),
    (halved_below_nothing, (X, Y, -1)),
    (trebled, (X, Y, 30)),
    (halved_to_a_limit, (X, Y, 3)),
    (doubled_away, (X, Y, -1)),
    (halved_away, (X, Y, -5)),
]


@pytest.mark.parametrize(("function", "arguments"), STAYING)
def test_other_counters_stay(function, arguments):
    assert any(isinstance(node, While) for node in statements(kernel_of(function, arguments)))
    same(function, *arguments)
