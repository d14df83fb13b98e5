"""Flat loops become nests over the digits of their indices, where these are all that is used of them.

Each program means the same as written, for processors and for a GPU.
"""

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import For, Launch
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from support.lowering import numbers, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = numbers(2, 3, 4)
Y = numbers(2, 3, 4)
V = numbers(24)


def remainders(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1] * x.shape[2]):
        w = index % x.shape[2]
        h = index // x.shape[2] % x.shape[1]
        b = index // (x.shape[1] * x.shape[2])
        y[b, h, w] = 2 * x[b, h, w] + w


def quotients_of_quotients(x: Tensor, y: Tensor) -> None:
    H, W = x.shape[1], x.shape[2]
    for index in range(x.numel()):
        y[index // W // H, index // W % H, index % W] = x[index // W // H, index // W % H, index % W] - 1


def one_after_the_other(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(W * B * H):
        rest = index
        w = rest % W
        rest = rest // W
        h = rest % H
        rest = rest // H
        y[rest, h, w] = x[rest, h, w] * h


def planes_apart(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        b, place = index // (H * W), index % (H * W)
        y[b, place // W, place % W] = x[b, place // W, place % W] + place


def first_digits_alone(x: Tensor, v: Tensor) -> None:
    B, H, W = x.shape
    for row in range(B * H):
        total = 0.0
        for w in range(W):
            total += x[row // H, row % H, w]
        v[row // H] += total


def literals(v: Tensor, m: Tensor) -> None:
    for index in range(m.shape[0] * 2 * 3):
        if index % 6 != 4:
            m[index // 6, index // 3 % 2 + index % 3] = v[index % 3]


def of_what_is_made(x: Tensor, side: int) -> Tensor:
    made = torch.zeros(side, x.shape[1])
    for index in range(side * x.shape[1]):
        made[index // x.shape[1], index % x.shape[1]] = x[0, index % x.shape[1], 0] + index // x.shape[1]
    return made


def within_a_branch(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        w = index % W
        if x[0, 0, w] > 5:
            w = 0
        y[index // W // H, index // W % H, w] = 1.0 + w


def goes_on(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        if index % W == 1:
            continue
        y[index // W // H, index // W % H, index % W] = x[index // W // H, index // W % H, index % W] + 3


def claimed(x: Tensor, y: Tensor) -> None:
    for index in bw.prange(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1], 0] = x[index // x.shape[1], index % x.shape[1], 1]


def all_of_it(x: Tensor, v: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        v[index] = x[index // x.shape[1], index % x.shape[1], 0]


def all_of_what_literals_divide(x: Tensor, v: Tensor) -> None:
    for index in range(x.shape[0] * 3):
        v[index] = x[index // 3, index % 3, 0]


def alone(x: Tensor, v: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        v[index] = x[0, 0, 0] + index


def divided_at_once(x: Tensor, y: Tensor) -> None:
    rows, columns = x.shape[0] // 2, x.shape[1] // 2
    for index in range(rows * columns):
        row, column = divmod(index, columns)
        y[row, column, 0] = x[row, 2 * column, 1] + index


def copied(x: Tensor, v: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        same = index
        v[same] = x[same // x.shape[1], index % x.shape[1], 0]


def from_one(x: Tensor, y: Tensor) -> None:
    for index in range(1, x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1], 0] = x[index // x.shape[1], index % x.shape[1], 1]


def left(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1]):
        if x[index // x.shape[1], index % x.shape[1], 0] > 3:
            break
        y[index // x.shape[1], index % x.shape[1], 0] = 1


def of_an_argument(x: Tensor, y: Tensor, side: int, wide: int) -> None:
    for index in range(side * wide):
        y[0, abs(index // wide), abs(index % wide)] = 1.0 + x[0, 0, 0]


def too_few(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * W):
        y[index // W // H, index // W % H, index % W] = x[0, 0, index % W]


def frames(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        t = index % (2 * H * W) // (H * W)
        h = index % (H * W) // W
        w = index % W
        n = index // (2 * H * W)
        y[n * 2 + t, h, w] = x[n * 2 + t, h, w] + 10 * t + n


def frames_of_three(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        n, rest = index // (3 * W * H), index % (3 * H * W)
        h, w = rest // W % H, rest % W
        before = rest // (H * W) - 1
        y[rest // (H * W) + 3 * n, h, w] = x[n * 3 + before, h, w] if before >= 0 else 7.0


def put_together(x: Tensor, v: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        w, h, b = index % W, index // W % H, index // (W * H)
        v[w + (h + b * H) * W] = x[b, h, w]


def no_digit_below(x: Tensor, v: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        w, h, b = index % W, index // W % H, index // (W * H)
        v[(b * W + w) * H + h] = x[b, h, w] + h * W + b


def wide_groups(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * W):
        row, w = index // W, index % W
        for h in range(H):
            y[row, h, w] = x[row // 2 * 2, h, w] + index // (2 * W) - index % (4 * W) // (2 * W)


def groups_of_whole_rows(x: Tensor, v: Tensor) -> None:
    for index in range(x.shape[0] * 2):
        v[index] = index // (x.shape[1] * x.shape[2] * x.shape[0] * 3) + x[0, index % (x.shape[1] * 3), 0]


def unlike_groups(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * W):
        y[index // W, 0, index % W] = x[0, 0, index % W] + index // (3 * H)


def side_by_side(x: Tensor, y: Tensor) -> None:
    B, H, W = x.shape
    for index in range(B * H * W):
        y[index // (H * W), index // B % H % H, 0] += x[0, 0, index % W]


def divisors_that_change(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * x.shape[1] * x.shape[2]):
        side = x.shape[1]
        if x[0, 0, 0] > 0:
            side = x.shape[2]
        y[0, 0, index % side] = index // side


def read_afterwards(x: Tensor, y: Tensor) -> None:
    index = 0
    for index in range(x.shape[0] * x.shape[1]):
        y[index // x.shape[1], index % x.shape[1], 0] = 1
    y[0, 0, 0] = index


def halves(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[0] * (x.shape[1] // 2)):
        y[index // (x.shape[1] // 2), index % (x.shape[1] // 2), 0] = x[0, index % (x.shape[1] // 2), 1]


def with_borders(x: Tensor) -> Tensor:
    B, H, W = x.shape
    made = torch.zeros(B, H + 1, 2 * W + 1)
    for index in range(B * (H + 1) * (2 * W + 1)):
        row = index // (2 * W + 1)
        made[row // (H + 1), row % (H + 1), index % (2 * W + 1)] = 1.0 + row % (H + 1)
    return made


def at_least_one(x: Tensor, n: int) -> Tensor:
    made = torch.zeros(x.shape[0], max(n, 1))
    for index in range(x.shape[0] * max(n, 1)):
        made[index // max(n, 1), index % max(n, 1)] = x[index // max(n, 1), 0, 0] + index % max(n, 1)
    return made


def fewer(x: Tensor, y: Tensor) -> None:
    H = x.shape[1] + -5
    for index in range((x.shape[0] + -4) * H):
        y[0, 0, index % H] = index // H


def of_computed_sizes(x: Tensor, D: int, K: int) -> Tensor:
    B, H = x.shape[0], x.shape[1]
    G, P = 2 * D + 1, (H - K) // 2 + 1
    made = torch.zeros(B, G, P)
    for index in range(B * G * P):
        p, g, b = index % P, index // P % G, index // P // G
        made[b, g, p] = x[b, 2 * p, 0] * (g - D)
    return made


def of_a_negative_number(x: Tensor, y: Tensor) -> None:
    for index in range(-2 * x.shape[1]):
        y[0, index % x.shape[1], 0] = index // x.shape[1]


def negative_halves(x: Tensor, y: Tensor) -> None:
    for index in range((x.shape[0] // -2) * (x.shape[1] // -2)):
        y[0, 0, abs(index % (x.shape[1] // -2))] = index // (x.shape[1] // -2)


def never(x: Tensor, y: Tensor) -> None:
    for index in range(0 * x.shape[1]):
        y[0, index // x.shape[1], index % x.shape[1]] = 1.0


def once(x: Tensor, y: Tensor) -> None:
    for index in range(x.shape[1] * 1):
        y[0, index % x.shape[1], index // x.shape[1]] = x[1, index % x.shape[1], 2]


def sums_of_digits(x: Tensor, y: Tensor) -> None:
    W = x.shape[2]
    for index in range(x.shape[1] * W):
        y[0, (index + 1) // W % x.shape[1], index % W] = x[0, index // W, index % W]


def loops(function: Callable[..., object], *arguments: object) -> list[str]:
    """Return the names of the loops of an operator in canonical form, from the outside in."""
    kernels = [
        node.kernel for node in statements(canonical(program_of(function, *arguments)).body) if isinstance(node, Launch)
    ]
    return [node.index.name for kernel in kernels for node in statements(kernel.body) if isinstance(node, For)]


NESTS = [
    (remainders, (X, Y), ["b", "h", "w"]),
    (quotients_of_quotients, (X, Y), ["index", "index", "index"]),
    (one_after_the_other, (X, Y), ["rest", "h", "w"]),
    (planes_apart, (X, Y), ["b", "index", "place"]),
    (first_digits_alone, (X, V), ["row", "row", "w"]),
    (literals, (V, numbers(3, 6)), ["index", "index", "index"]),
    (of_what_is_made, (X, 4), ["index", "index"]),
    (of_what_is_made, (X, 0), ["index", "index"]),
    (within_a_branch, (X, Y), ["index", "index", "w"]),
    (goes_on, (X, Y), ["index", "index", "index"]),
    (claimed, (X, Y), ["index", "index"]),
    (all_of_it, (X, V), ["index", "index"]),
    (all_of_what_literals_divide, (X, V), ["index"]),
    (copied, (X, V), ["index", "index"]),
    (alone, (X, V), ["index"]),
    (divided_at_once, (X, Y), ["row", "column"]),
    (from_one, (X, Y), ["index"]),
    (left, (X, Y), ["index"]),
    (of_an_argument, (X, Y, 1, 2), ["index", "index", "index"]),
    (of_an_argument, (X, Y, -1, -2), ["index", "index", "index"]),
    (too_few, (X, Y), ["index", "index"]),
    (frames, (X, Y), ["t", "h", "w"]),
    (frames_of_three, (X, Y), ["index", "h", "w"]),
    (put_together, (X, V), ["b", "h", "w"]),
    (no_digit_below, (X, V), ["b", "h", "w"]),
    (wide_groups, (X, Y), ["row", "w", "h"]),
    (groups_of_whole_rows, (X, V), ["index"]),
    (unlike_groups, (X, Y), ["index"]),
    (side_by_side, (X, Y), ["index"]),
    (divisors_that_change, (X, Y), ["index"]),
    (read_afterwards, (X, Y), ["index", "index"]),
    (halves, (X, Y), ["index", "index"]),
    (with_borders, (X,), ["index", "row", "index"]),
    (at_least_one, (X, 3), ["index", "index"]),
    (at_least_one, (X, -3), ["index", "index"]),
    (fewer, (X, Y), ["index", "index", "index"]),
    (of_computed_sizes, (X, 2, 2), ["b", "g", "p"]),
    (of_computed_sizes, (X, 0, 5), ["b", "g", "p"]),
    (of_a_negative_number, (X, Y), ["index"]),
    (negative_halves, (X, Y), ["index"]),
    (never, (X, Y), ["index"]),
    (once, (X, Y), ["index"]),
    (sums_of_digits, (X, Y), ["index", "index"]),
]


@pytest.mark.parametrize(
    ("function", "arguments", "names"), NESTS, ids=[f"{each[0].__name__}{i}" for i, each in enumerate(NESTS)]
)
def test_digits(function: Callable[..., object], arguments: tuple[object, ...], names: list[str]):
    """A flat loop is a nest of its digits, and its index a sum of them, unless literals alone divide a whole one."""
    assert loops(function, *arguments) == names
    same(function, *arguments)


def test_empty():
    """A factor that is 0 leaves nothing to do, and no divisor that is checked."""
    same(first_digits_alone, numbers(2, 0, 3), V)
    same(remainders, numbers(2, 0, 3), numbers(2, 0, 3))


def test_loops_that_a_schedule_names_are_kept():
    """A user's schedule says how the loops run that the user wrote."""
    program = canonical(program_of(remainders, X, Y), given="bind(index, pool)")
    kernels = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    assert [node.index.name for each in kernels for node in statements(each.body) if isinstance(node, For)] == ["index"]


def test_gradients_of_flat_loops_are_gathered():
    """The gradient of a flat loop needs no order, and adds nothing to elements that meet."""

    @bw.op
    def shifted(x: Tensor) -> Tensor:
        H, W = x.shape[1], x.shape[2]
        out = torch.empty_like(x)
        for index in range(x.numel()):
            w, h, b = index % W, index // W % H, index // (H * W)
            out[b, h, w] = x[b, h, w] * x[b, h, max(w - 1, 0)]
        return out

    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(shifted, x)
    assert "scatter" not in shifted.explain("backward", x)


def joined_by_numbers(x: Tensor, v: Tensor, d: int, e: int) -> None:
    for index in range(2 * x.shape[0]):
        same_index = (index // (d * e) * d + index // e % d) * e + index % e
        v[index % x.shape[0]] += same_index + index // x.shape[0]


@pytest.mark.parametrize(("d", "e"), [(2, 3), (-3, -2), (-2, 3), (3, -2)])
def test_what_digits_are_joined_by_is_positive(d: int, e: int):
    same(joined_by_numbers, numbers(6), numbers(6), d, e)
