"""Windows that variables place, in loops that the host runs in order: it launches all that they may be in.

Each program does the same as written, for a GPU and for processors.
"""

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Block, For, If, Kernel, Program
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.rectangle import rectangle
from support.lowering import memory, program_of
from support.scheduling import same
from support.shared import schedule_program

Tensor = torch.Tensor
GPU = cuda_target((9, 0))
X = memory([[float(3 * i + j % 4) for j in range(7)] for i in range(6)])
P = memory([[2, 3], [0, 6], [5, 0], [-4, 9], [9, 9], [3, 3]], INT64)


def stamped(x: Tensor, p: Tensor) -> None:
    for t in range(p.shape[0]):
        top, left = p[t, 0] - 2, p[t, 1] - 1
        for i in range(max(0, top), min(x.shape[0], top + 4)):
            for j in range(max(left, 0), min(x.shape[1], left + 3)):
                x[i, j] = x[i, j] * 0.5 + i - top


def cubes(x: Tensor, p: Tensor) -> None:
    y = torch.zeros((6, 7, 4))
    for t in range(p.shape[0]):
        top, left = p[t, 0] - 2, p[t, 1] - 1
        for i in range(max(0, top), min(x.shape[0], top + 4)):
            for j in range(max(left, 0), min(x.shape[1], left + 3)):
                for k in range(max(left - 1, 0), min(4, left + 1)):
                    y[i, j, k] = y[i, j, k] * 0.5 + i - top + k
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = y[i, j, 1] + y[i, j, 2]


def around_the_greatest(x: Tensor, p: Tensor) -> None:
    for _ in range(3):
        best, row, column = -1.0, 0, 0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                if x[i, j] > best:
                    best = x[i, j]
                    row = i
                    column = j
        for i in range(max(0, row - 1), min(x.shape[0] - 1, row + 1) + 1):
            for j in range(max(0, column - 2), min(x.shape[1] - 1, column + 2) + 1):
                x[i, j] -= 0.25 * best


def first_ones(x: Tensor, p: Tensor) -> None:
    n = p[0, 0]
    for i in range(min(x.shape[0], n)):
        x[i, 1] = 7.0


def one_side(x: Tensor, p: Tensor) -> None:
    for t in range(p.shape[0]):
        n = p[t, 0]
        for i in range(1, min(n, x.shape[0] - 1)):
            x[i, 1] = x[i, 1] * 0.5 + x[0, t]


def not_clipped(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n), n + 1):
            if i < x.shape[0]:
                x[i, 2] = x[i, 2] * 0.5 + t + i


def clipped_to_elements(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n), min(p[t, 1], n + 2)):
            if i < x.shape[0]:
                x[i, 2] = x[i, 2] * 0.5 + t


def begins_anywhere(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(n, min(x.shape[0], n + 2)):
            if i >= 0:
                x[i, 2] = x[i, 2] * 0.5 + t


def the_host_knows(x: Tensor, p: Tensor) -> None:
    for t in range(1, x.shape[0]):
        for i in range(max(0, t - 2), min(x.shape[1], t + 2)):
            x[t, i] += x[t - 1, i]


def for_threads(x: Tensor, p: Tensor) -> None:
    for t in range(x.shape[0]):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[1], n + 2)):
            x[t, i] += 1.0


def in_order_itself(x: Tensor, p: Tensor) -> None:
    for t in range(3):
        n = p[t, 0]
        for i in range(max(1, n), min(x.shape[0], n + 4)):
            x[i, 0] = x[i - 1, 0] + x[i, 0]


def a_sum(x: Tensor, p: Tensor) -> None:
    for t in range(1, 3):
        n = p[t, 0]
        total = 0.0
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            total += x[i, t - 1]
        x[0, t] = total


def whole_rows(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            for j in range(x.shape[1]):
                if x[i, j] > 4:
                    x[i, j] -= 1.5
                x[i, j] = x[i, j] * 0.5 + t


def rows_in_order(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            m = n + i
            for j in range(max(1, m - 1), min(x.shape[1], m + 2)):
                x[i, j] += x[i, j - 1]


def with_what_is_told_first(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            m = n + i
            for j in range(max(0, m - 1), min(x.shape[1], m + 2)):
                x[i, j] = x[i, j] * 0.5 + m


def placed_again(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            n = p[i, 1] % 7
            x[i, n] = x[i, n] * 0.5 + t


def clipped_by_an_index(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n), min(t + 1, n + 2) + 1):
            if i < x.shape[0]:
                x[i, 2] = x[i, 2] * 0.5 + t


def turned_round(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n), min(x.shape[0], n) * -1 + 6):
            if i < x.shape[0]:
                x[i, 2] = x[i, 2] * 0.5 + t


def an_element_first(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            w = x[i, 0]
            for j in range(max(1, n - 1), min(x.shape[1], n + 2)):
                x[i, j] = x[i, j] * 0.5 + w


def a_store_first(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            x[i, 0] = 1.0 + t
            for j in range(max(1, n - 1), min(x.shape[1], n + 2)):
                x[i, j] = x[i, j] * 0.5 + t


def elements_that_meet(x: Tensor, p: Tensor) -> None:
    for t in range(4):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(p.shape[0], n + 2)):
            x[p[i, 0] % 6, 0] += x[t, 1]


def placed_before(x: Tensor, p: Tensor) -> None:
    n = p[0, 0]
    for t in range(1, 3):
        for i in range(max(0, n - t), min(x.shape[0], n + t)):
            x[i, t] = x[i, t - 1] + n
        n = n + 1


def another_inside(x: Tensor, p: Tensor) -> None:
    for t in range(3):
        n = p[t, 0]
        for i in range(max(0, n - 1), min(x.shape[0], n + 2)):
            m = p[i, 1]
            for j in range(max(0, m - 1), min(x.shape[1], m + 2)):
                x[i, j] = x[i, j] * 2 + t


PROGRAMS: list[tuple[Callable[[Tensor, Tensor], None], list[str]]] = [
    (stamped, ["i", "j"]),
    (cubes, ["i", "j", "k"]),
    (around_the_greatest, ["i", "j"]),
    (first_ones, ["i"]),
    (one_side, ["i"]),
    (not_clipped, []),
    (clipped_to_elements, []),
    (the_host_knows, []),
    (for_threads, []),
    (in_order_itself, []),
    (a_sum, []),
    (begins_anywhere, []),
    (whole_rows, ["i"]),
    (rows_in_order, ["i"]),
    (with_what_is_told_first, ["i"]),
    (placed_again, ["i"]),
    (clipped_by_an_index, []),
    (turned_round, []),
    (an_element_first, ["i"]),
    (a_store_first, ["i"]),
    (elements_that_meet, []),
    (placed_before, ["i"]),
    (another_inside, ["i"]),
]


def longer(function: Callable[..., object]) -> list[str]:
    """Return the names of the loops that a grid runs over more than the source does."""
    kernel = next(node for node in walk(canonical(program_of(function, X, P))) if isinstance(node, Kernel))
    before = {node.index: node for node in walk(kernel) if isinstance(node, For)}
    body: Block = rectangle(kernel.body, find_updates(kernel, analyse(kernel)))
    loops = [node for node in walk(body) if isinstance(node, For)]
    return [
        each.index.name
        for each in loops
        if (each.start, each.stop) != (before[each.index].start, before[each.index].stop)
    ]


@pytest.mark.parametrize(("function", "names"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
def test_windows(function: Callable[..., object], names: list[str]):
    """Which loops are longer, and that what they do is the same."""
    assert longer(function) == names
    same(function, X, P)


def test_nests_are_shared_out_whole():
    """No condition stands between the loops of a nest, so a grid has both."""
    program: Program = schedule_program(program_of(stamped, X, P), GPU)[0]
    nests = [node for node in walk(program) if isinstance(node, For) and node.role.value == "parallel"]
    assert {node.index.name for node in nests} >= {"i", "j"}
    assert not any(isinstance(item, If) for node in nests if node.index.name == "i" for item in node.body)
