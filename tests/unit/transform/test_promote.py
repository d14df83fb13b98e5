"""Elements kept in variables: what is computed, and which elements are touched, stay the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.scalars import live_after_loops
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Assign, Cast, Kernel, Launch, Load, Node, Program, Store
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.promote import is_idle_unless_reached, promote, reached
from support.lowering import Nested, memory, nested, program_of
from support.scheduling import kernel_of, loops_of, same


def whole_total(a: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[1] += a[i, j]


def beside(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        z[i] = 1.0
        for j in range(a.shape[1]):
            y[0] += a[i, j]


def behind(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        y[0] += 2.0


def either(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        for j in range(b.shape[1]):
            y[0] += b[i, j]


def either_as_elements_say(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        for j in range(int(b[0, 0])):
            y[0] += 1.0


def two(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        z[1] += 1.0
        for j in range(a.shape[1]):
            y[0] += a[i, j]


def branch(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if n > 0:
            for j in range(a.shape[1]):
                y[0] += a[i, j]


def other_branch(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if n > 0:
            y[0] += a[i, 0]
        else:
            z[0] = 1.0


def both_branches(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if n > 0:
            y[0] += a[i, 0]
        else:
            y[0] += 3.0


def changing_branch(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if i > 0:
            y[0] += a[i, 0]


def changing_elements(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(int(z[0])):
            y[0] += 1.0
        z[0] = 2.0


def ending(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if b[0, 0] > 1:
            break
        y[0] += 1.0


def failing(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        assert z[0] < 1, "z"
        y[0] += 1.0


def waiting(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        k = 0
        while k < n:
            y[0] += 1.0
            k += 1


def twice(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        for j in range(a.shape[1]):
            y[0] += a[i, j]


def ending_beside(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        if n > 0:
            break


def failing_beside(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[0] += a[i, j]
        assert z[0] < 1, "z"


def as_elements_say(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if b[0, 0] > 1:
            y[0] += 1.0


def read_behind(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    last = 0.0
    for i in range(a.shape[0]):
        last = i * 2.0
        for j in range(a.shape[1]):
            y[0] += a[i, j]
    z[0] = last


PLACES = [
    beside,
    behind,
    either,
    either_as_elements_say,
    two,
    branch,
    other_branch,
    both_branches,
    changing_branch,
    changing_elements,
    ending,
    read_behind,
]


def assigning(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, z: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        k = a[0, 0] * 2.0
        for j in range(a.shape[1]):
            y[0] += k


REACHED = {
    beside: (2, False),
    behind: (1, True),
    either: (2, True),
    either_as_elements_say: (None, True),
    two: (2, False),
    branch: (3, True),
    other_branch: (2, False),
    both_branches: (None, True),
    changing_branch: (None, True),
    changing_elements: (None, False),
    ending: (None, True),
    failing: (None, True),
    waiting: (None, True),
    twice: (2, True),
    ending_beside: (2, False),
    failing_beside: (2, False),
    as_elements_say: (None, True),
    read_behind: (2, False),
}
"""How many conditions tell that y[0] is reached, and whether nothing else is done where it is not."""


@pytest.mark.parametrize("function", REACHED)
def test_when_an_element_is_reached(function: Callable[..., object]) -> None:
    kernel = kernel_of(function, *map(memory, ([[1.0]], [[1.0]], [1.0], [1.0])), 1)
    loop = loops_of(kernel)["i"]
    accesses = [node for node in walk(loop) if isinstance(node, Load | Store) and node.tensor.name == "y"]
    numbers = frozenset(node.access for node in accesses)
    conditions, idle = REACHED[function]
    found = reached((loop,), numbers)
    assert (found if found is None else len(found)) == conditions
    live = live_after_loops(kernel.body)[loop.index]
    assert is_idle_unless_reached((loop,), numbers, live) is idle


def test_loops_that_elements_end_are_reached_in_no_way_that_is_known() -> None:
    kernel = kernel_of(whole_total, memory([[1.0]]), memory([1.0, 2.0]))
    loop = loops_of(kernel)["i"]
    numbers = frozenset(node.access for node in walk(loop) if isinstance(node, Store))
    element = next(node for node in walk(loop) if isinstance(node, Load) and node.tensor.name == "a")
    element = replace(element, indices=(build.integer(0), build.integer(0)), access=1000)
    assert reached((loop,), numbers) is not None
    counted = replace(loop, stop=Cast(operand=element, dtype=INT64))
    assert reached((counted,), numbers) is None


def counted_under_a_condition(a: torch.Tensor, y: torch.Tensor, n: int) -> None:
    for i in range(a.shape[0]):
        if n > 2:
            while y[0] < 3.0:
                y[0] += 1.0


def test_what_is_not_there_or_in_a_while_is_reached_in_no_way_that_is_known() -> None:
    kernel = kernel_of(counted_under_a_condition, memory([[1.0]]), memory([1.0, 2.0]), 3)
    loop = loops_of(kernel)["i"]
    numbers = frozenset(node.access for node in walk(loop) if isinstance(node, Load | Store))
    assert reached((loop,), numbers) is None
    assert reached((loop,), frozenset((10_000,))) is None


def test_all_variables_may_be_read_behind() -> None:
    kernel = kernel_of(assigning, *map(memory, ([[1.0]], [[1.0]], [1.0], [1.0])), 1)
    loop = loops_of(kernel)["i"]
    numbers = frozenset(node.access for node in walk(loop) if isinstance(node, Store))
    assert is_idle_unless_reached((loop,), numbers, frozenset())
    assert not is_idle_unless_reached((loop,), numbers, None)


@pytest.mark.parametrize("function", PLACES)
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(("value", "size"), [(0.0, 1), (2.0, 2), (1.0, 0)])
def test_nothing_else_changes_where_an_element_is_not_reached(
    function: Callable[..., object], n: int, value: float, size: int
) -> None:
    if not size and function in {either_as_elements_say, ending}:
        return  # These need an element of b.
    for columns in (0, 2):
        if not columns and function in {other_branch, both_branches, changing_branch}:
            continue  # And these of a.
        given = [[0.5] * columns] * 3, [[value] * size] * 3, [1.0, 1.0], [0.0] * 3
        program = program_of(function, *map(memory, given), n)
        assert outcome(promoted(program), *given, n) == outcome(program, *given, n)
        same(function, *map(memory, given), n)


def test_a_loop_that_reaches_nothing_needs_no_element() -> None:
    given: tuple[list[list[float]], list[list[float]], list[float], list[float]] = [[], []], [[], []], [], [0.0, 0.0]
    program = promoted(program_of(beside, *map(memory, given), 0))
    assert outcome(program, *given, 0)[-1] == [1.0, 1.0]


def promoted(program: Program) -> Program:
    """Return a program with elements in variables."""

    def visit(node: Node) -> Node:
        return Launch(kernel=promote(node.kernel)) if isinstance(node, Launch) else node

    return rewrite(program, visit)


def outcome(program: Program, *arguments: Nested | int) -> tuple[Nested, ...]:
    """Return what a program leaves in its arguments."""
    given = [item if isinstance(item, int) else memory(item) for item in arguments]
    run_program(program, given, check=True)
    return tuple(nested(item) for item in given if isinstance(item, Memory))


def after(change: Callable[[Kernel], Kernel], *arguments: Nested) -> Nested:
    """Return what `whole_total` leaves in its last argument if its kernel is changed before."""

    def visit(node: Node) -> Node:
        return Launch(kernel=change(node.kernel)) if isinstance(node, Launch) else node

    given = [memory(item) for item in arguments]
    run_program(rewrite(program_of(whole_total, *given), visit), given, check=True)
    return nested(given[-1])


@pytest.mark.parametrize("a", [[[1.0, 2.0], [3.0, 4.0]], [[1.0]]])
def test_an_element_that_a_nest_accumulates_into(a: list[list[float]]) -> None:
    expected = [0.0, 10.0 + sum(map(sum, a))]
    assert after(lambda kernel: kernel, a, [0.0, 10.0]) == expected
    assert after(promote, a, [0.0, 10.0]) == expected


def test_no_element_is_touched_where_an_inner_loop_is_empty() -> None:
    empty: list[list[float]] = [[], []]
    assert after(promote, empty, [0.0]) == [0.0]


def two_sums(a: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[i] += a[i, j]
    counts = torch.zeros(a.shape[0], dtype=torch.int64)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            counts[i] += j
    return counts


def test_variables_of_two_kernels_have_numbers_of_their_own() -> None:
    """A program is written and read as text, in which a number says what variable is meant."""
    kernels = [
        node.kernel for node in walk(program_of(two_sums, memory([[0.0]]), memory([0.0]))) if isinstance(node, Launch)
    ]
    promoted = [promote(kernel) for kernel in kernels]
    made = [node.symbol for kernel in promoted for node in walk(kernel.body) if isinstance(node, Assign)]
    assert {symbol.name for symbol in made} == {"y", "counts"}
    assert len({symbol.number for symbol in made}) == len({*made}) == 2
