"""What a loop leaves for a later one is computed again where it is read, and nothing else is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import Launch, Load, Store
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.passed_values import with_passed_values
from brickwork.transform.canonical.form import canonical
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import names_of
from support.gradients import check_gradients, forward, lowered, numbers


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j])
            total += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] /= total


def between(x: torch.Tensor, y: torch.Tensor) -> None:
    """Two nests, with steps, and two readers."""
    z = torch.empty_like(x)
    for i in range(x.shape[0]):
        w = i * 0.5
        for j in range(x.shape[1]):
            v = x[i, j] * 2.0
            z[i, j] = v * v + w
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = z[i, j]
        for j in range(x.shape[1]):
            y[i, 0] += z[i, j]


def summed(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
            y[i, j] = s
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def shorter(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def neighbours(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] + y[i, max(j - 1, 0)]


def changed(x: torch.Tensor, y: torch.Tensor) -> None:
    """What the value is made of is another by then."""
    for i in range(x.shape[0]):
        c = x[i, 0]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * c
        for j in range(x.shape[1]):
            c = c * 2.0
            y[i, j] = y[i, j] * c


def stored_over(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        y[i, 0] = 5.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def sometimes(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = 1.0
            if x[i, j] > 0:
                y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def of_one(x: torch.Tensor, y: torch.Tensor) -> None:
    """All iterations store into one element."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, 0] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, 0] = y[i, 0] + x[i, j]


def twice(x: torch.Tensor, y: torch.Tensor) -> None:
    """The second reader finds what the first one stores."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] + 1.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def elsewhere(x: torch.Tensor, y: torch.Tensor) -> None:
    """Elements of other iterations are stored over before they are read."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
    for i in range(x.shape[0]):
        y[x.shape[0] - 1 - i, 0] = 7.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def read_between(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        first = y[i, 0]
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * first


def inside_a_loop(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            for _ in range(2):
                y[i, j] = y[i, j] * 2.0


def over_x(x: torch.Tensor, y: torch.Tensor) -> None:
    """The reader changes what the value was made of, for later iterations."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[x.shape[0] - 1 - i, j] * 3.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = y[i, j] * y[i, j]


def rounded(x: torch.Tensor, y: torch.Tensor) -> None:
    z = torch.empty(x.shape, dtype=torch.float16)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, j] = z[i, j]


def from_the_end(x: torch.Tensor, y: torch.Tensor) -> None:
    """The first iteration stores into the last element, too."""
    for i in range(x.shape[0]):
        for j in range(-1, x.shape[1]):
            y[i, j] = j * 3.0
        for j in range(-1, x.shape[1]):
            x[i, j] = y[i, j]


def from_a_size(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(0 - x.shape[1], x.shape[1]):
            y[i, j] = j * 3.0
        for j in range(0 - x.shape[1], x.shape[1]):
            x[i, j] = y[i, j]


def of_rows(x: torch.Tensor, y: torch.Tensor) -> None:
    """The iterations of one of two loops store into one element."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, 0] = j * 3.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = y[i, 0]


def doubled(x: torch.Tensor, y: torch.Tensor) -> None:
    """A loop makes the value."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            for _ in range(j):
                v = v * 2.0
            y[i, j] = v
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def of_what_changes(x: torch.Tensor, y: torch.Tensor) -> None:
    w = torch.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = w[i, 0] * x[i, j]
            w[i, 0] = w[i, 0] + 1.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def of_steps_that_change(x: torch.Tensor, y: torch.Tensor) -> None:
    w = torch.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = w[i, 0] * 2.0
            y[i, j] = v * v
            w[i, 0] = w[i, 0] + 1.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * x[i, j]


def of_a_counter(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        c = x[i, 0]
        for j in range(x.shape[1]):
            y[i, j] = c * 2.0
            c = c * c + 1.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * x[i, j]


def at_rows_that_change(x: torch.Tensor, y: torch.Tensor) -> None:
    k = 0
    for j in range(x.shape[1]):
        y[k, j] = x[k, j] * 3.0
        k = min(k + 1, x.shape[0] - 1)
    for j in range(x.shape[1]):
        x[k, j] = y[k, j] * 2.0
        k = max(k - 1, 0)


def over_some(x: torch.Tensor, y: torch.Tensor) -> None:
    z = torch.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            z[i, j] = 2.0
            y[i, min(j, 1)] = 5.0
        for j in range(x.shape[1]):
            if x[i, j] > z[i, j]:
                y[i, j] = z[i, j]


def beside_x(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * x[i, j]


def and_after(x: torch.Tensor, y: torch.Tensor) -> None:
    z = torch.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * 2.0
            z[i, j] = y[i, j] * 5.0
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * z[i, j]


def crossed(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            y[i, x.shape[1] - 1 - j] = y[i, j] + 1.0


def read_twice(x: torch.Tensor, y: torch.Tensor) -> None:
    z, w = torch.ones_like(x), torch.ones_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 3.0
        for j in range(x.shape[1]):
            z[i, j] = y[i, j] * 2.0
            v = y[i, j] + 1.0
            w[i, j] = y[i, j] * v


def at_a_row_that_moved(x: torch.Tensor, y: torch.Tensor) -> None:
    """The reader goes along the row that the first loop would have come to next."""
    k = 0
    for j in range(x.shape[1]):
        y[k, j] = j * 3.0
        k = min(k + 1, x.shape[0] - 1)
    for j in range(x.shape[1]):
        x[k, j] = y[k, j] * 2.0


LEFT = {
    read_twice: (3, 0),
    at_a_row_that_moved: (2, 1),
    rounded: (2, 1),
    from_the_end: (2, 1),
    from_a_size: (2, 1),
    of_rows: (2, 1),
    doubled: (2, 2),
    of_what_changes: (3, 4),
    of_steps_that_change: (3, 3),
    of_a_counter: (2, 1),
    at_rows_that_change: (2, 2),
    over_some: (4, 0),
    beside_x: (1, 0),
    and_after: (3, 1),
    crossed: (2, 1),
    softmax: (1, 0),
    between: (3, 1),
    neighbours: (2, 1),
    read_between: (2, 1),
    twice: (3, 2),
    summed: (2, 2),
    shorter: (2, 2),
    changed: (2, 1),
    stored_over: (3, 2),
    sometimes: (3, 2),
    of_one: (2, 1),
    elsewhere: (3, 2),
    inside_a_loop: (2, 1),
    over_x: (2, 3),
}
"""How many stores are left, and loads of what is stored."""


def passed(function, x, kept=()):
    """Return a program with values computed again, and as it was."""
    program = canonical(lowered(function, (x, torch.zeros_like(x))))
    names = names_of(program)

    def visit(node):
        if not isinstance(node, Launch):
            return node
        found = frozenset(item for item in node.kernel.tensors if item.name in kept)
        return replace(
            node, kernel=with_body(node.kernel, with_passed_values(node.kernel, found, names).body, node.kernel.facts)
        )

    result = replace(program, body=tuple(map(visit, program.body)))
    verify_program(result)
    return result, program


@pytest.mark.parametrize("function", LEFT)
@pytest.mark.parametrize("sizes", [(0, 0), (1, 1), (3, 1), (2, 4)])
def test_values_are_as_before(function, sizes):
    arguments = (numbers(*sizes), torch.ones(sizes, dtype=torch.float64))
    results = [forward(program, arguments) for program in passed(function, arguments[0])]
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("function", [function for function in LEFT if function is not rounded])
def test_gradients_are_those_of_differences(function):
    check_gradients(function, numbers(2, 3), torch.ones((2, 3), dtype=torch.float64))


def accesses(program):
    stored = [node for node in walk(program) if isinstance(node, Store)]
    tensors = {node.tensor for node in stored}
    return len(stored), sum(isinstance(node, Load) and node.tensor in tensors for node in walk(program))


@pytest.mark.parametrize("function", LEFT)
def test_what_is_computed_again_is_not_read(function):
    assert accesses(passed(function, numbers(2, 3))[0]) == LEFT[function]


def drawn(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * bw.rand()
        for j in range(x.shape[1]):
            y[i, j] = y[i, j] * y[i, j]


def test_what_is_drawn_is_not_drawn_again():
    changed, program = passed(drawn, numbers(2, 3))
    assert changed == program


def test_what_a_result_has_is_read():
    changed, program = passed(between, numbers(2, 3), ("z",))
    assert changed == program
