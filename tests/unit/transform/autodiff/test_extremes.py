"""Gradients of least and greatest values go to the iteration that set them, as in loops that are run backwards."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Block, Program, Store
from brickwork.ir.walk import assigned_symbols, read_symbols, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.autodiff import reverse
from brickwork.transform.canonical.form import canonical
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import Bind, Level, Rfactor
from support.gradients import check_gradients, derived, kernel_of, numbers
from support.pairs import in_turn
from support.shared import schedule_program
from support.sweep import sampled
from support.tensors import to_memory


def greatest(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        out[i] = m * m
    return out


def least_last(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            if x[i, j] <= m:
                m = x[i, j]
        out[i] = 3 * m
    return out


def from_the_first(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        if x.shape[1] > 0:
            m = x[i, 0]
        for j in range(1, x.shape[1]):
            v = 3 * x[i, j]
            if m < v:
                m = v
        out[i] = m
    return out


def both_and_where(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        high = first
        low = first
        where = 0
        total = 0.0
        for j in range(x.shape[1]):
            y = 2 * x[i, j]
            low = min(low, y)
            total += y
            if high <= y:
                high = y
                where = j + 1
        out[i] = high * where - low + total
    return out


def left_early(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            if x[i, j] > 1:
                break
            m = max(m, x[i, j])
        out[i] = m
    return out


def windows(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        for k in range(x.shape[1] - 1):
            m = first
            for j in range(2):
                m = max(m, x[i, k + j])
            out[i] += m
    return out


def panes(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for a in range(x.shape[1] - 1):
            for b in range(2):
                m = max(m, x[i, a + b])
        out[i] = m * m
    return out


def last_of_panes(x: torch.Tensor, first: float) -> torch.Tensor:
    """Loops that begin elsewhere than at 0, with something ahead in both, and a place that is noted."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        where = 0
        for a in range(1, x.shape[1]):
            right = a + 1
            for b in range(-2, 0):
                v = 3 * x[i, right + b]
                if v <= m:
                    m = v
                    where = a * 2 + b
        out[i] = m * where
    return out


def diagonals(x: torch.Tensor, first: float) -> torch.Tensor:
    """Windows that overlap along all loops."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0] - 1):
        for _ in range(min(1, x.shape[1])):
            m = first
            for j in range(2):
                m = max(m, x[i + j, 0])
            out[i] += m
    return out


def fields(x: torch.Tensor, first: float) -> torch.Tensor:
    """Windows that overlap along both axes, with something of each of their places added."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1] - 1):
            m = first
            for p in range(2):
                for q in range(2):
                    v = x[i + p, j + q] + x[0, q]
                    if v > m:
                        m = v
            out[i] += m
    return out


def steps(x: torch.Tensor, first: float) -> torch.Tensor:
    """Windows that move by 2: what element is in which is not asked."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        for k in range((x.shape[1] - 1) // 2):
            m = first
            for j in range(3):
                m = max(m, x[i, 2 * k + j])
            out[i] += m
    return out


def padded(x: torch.Tensor, first: float) -> torch.Tensor:
    """Windows that reach beyond the edges."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            m = first
            for p in range(3):
                for q in range(3):
                    y = i + p - 1
                    z = j + q - 1
                    if 0 <= y < x.shape[0] and 0 <= z < x.shape[1]:
                        m = max(m, x[y, z])
            out[i] += m
    return out


def chosen_some(x: torch.Tensor, first: float) -> torch.Tensor:
    """Only some elements count, by what is read in branches, and the last place is noted."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        where = 0
        for j in range(x.shape[1]):
            if x[i, j] < 1.0:
                v = 2 * x[i, j]
                if j < 2 or i > 3:
                    if v <= m:
                        m = v
                        where = j
        out[i] = m * m + where
    return out


def by_itself(x: torch.Tensor, first: float) -> torch.Tensor:
    """Whether a value counts depends on the greatest one so far."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            if m < 1.0:
                m = max(m, x[i, j])
        out[i] = m
    return out


def read_on_the_way(x: torch.Tensor, first: float) -> torch.Tensor:
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
            out[i] += m
    return out


def nearest(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is compared is computed in branches, of elements that other rows read, too."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[0] - 1, -1, -1):
            for k in range(x.shape[1]):
                d = x[i, k] - x[j, x.shape[1] - 1 - k]
                t = 2.0
                if d < 0:
                    if j % 2 == 0:
                        s = -d
                    else:
                        s = 3 * d
                        t = s + 1
                else:
                    s = d - x[j, k]
                s = s - t
                m = max(m, s)
        out[i] = m
    return out


def nearest_of_all(x: torch.Tensor, first: float) -> torch.Tensor:
    """Elements that all iterations share are those that are chosen."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for k in range(x.shape[1]):
            m = min(m, x[0, k] - x[i, 0])
        out[i] = m
    return out


def carried_in_a_branch(x: torch.Tensor, first: float) -> torch.Tensor:
    """What is compared may be of an iteration before."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        s = 0.5
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                s = x[i, j]
            m = max(m, s + x[i, j])
        out[i] = m
    return out


def carried_by_another(x: torch.Tensor, first: float) -> torch.Tensor:
    """One branch assigns what the other leaves as it was."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        s = 0.5
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                t = s
                s = x[i, j]
            else:
                t = 1.0
            m = max(m, t + x[i, j])
        out[i] = m
    return out


def stored_in_a_branch(x: torch.Tensor, first: float) -> torch.Tensor:
    """A branch that leads to what is compared stores, too."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            s = x[i, j]
            if s > 0:
                s = s + 1
                out[i] = 2.0
            m = max(m, s)
        out[i] += m
    return out


def stored_in_the_other(x: torch.Tensor, first: float) -> torch.Tensor:
    """The other branch that leads to what is compared stores."""
    out = x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        m = first
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                s = x[i, j] + 1
            else:
                s = -x[i, j]
                out[i] = 2.0
            m = max(m, s)
        out[i] += m
    return out


def of_states(x: torch.Tensor, first: float) -> torch.Tensor:
    """The greatest of the cells of a table, each of which is made of those before."""
    rows, columns = x.shape
    h = x.new_zeros((rows + 1, columns + 1))
    out = x.new_empty((rows,))
    best = first
    for i in range(rows):
        for j in range(columns):
            h[i + 1, j + 1] = max(0.5 * h[i, j] + x[i, j], 0.25 * h[i, j + 1], 0.125 * h[i + 1, j])
            best = max(best, h[i + 1, j + 1])
    for i in range(rows):
        out[i] = best * best
    return out


def of_states_stored_over(x: torch.Tensor, first: float) -> torch.Tensor:
    """Rows store over the states of those before, which are looked at as they are then."""
    rows, columns = x.shape
    h = x.new_zeros((columns + 1,))
    out = x.new_empty((rows,))
    best = first
    for i in range(rows):
        for j in range(columns):
            h[j + 1] = 0.5 * h[j] + x[i, j]
            best = max(best, h[j + 1])
        out[i] = best
    return out


def of_states_ahead(x: torch.Tensor, first: float) -> torch.Tensor:
    """States are looked at that the next iteration stores over."""
    rows, columns = x.shape
    h = x.new_ones((rows, columns + 2))
    out = x.new_empty((rows,))
    for i in range(rows):
        best = first
        for j in range(columns):
            h[i, j] = 0.5 * h[i, j] * x[i, j]
            best = max(best, h[i, j + 1] + x[i, j])
        out[i] = best
    return out


FUNCTIONS = (
    nearest,
    nearest_of_all,
    carried_in_a_branch,
    carried_by_another,
    stored_in_a_branch,
    stored_in_the_other,
    greatest,
    least_last,
    from_the_first,
    both_and_where,
    left_early,
    windows,
    panes,
    last_of_panes,
    diagonals,
    fields,
    steps,
    padded,
    chosen_some,
    by_itself,
    read_on_the_way,
)
ROWS = torch.tensor(
    [[*row] for row in itertools.product((-math.inf, -0.0, 0.0, 1.5, math.nan), repeat=3)],
    dtype=torch.float64,
)


def as_it_is(block: Block, *_: object) -> Block:
    return block


def gradient(program: Program, *arguments: Any) -> list[str]:
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    (result,) = run_program(program, memories, check=True)
    return [str(value + 0.0) for value in result.data]


@pytest.mark.parametrize(
    ("function", "first"),
    sampled(in_turn(FUNCTIONS, [-math.inf, 0.0, -0.0, math.nan, math.inf, 0.5], 2)),
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_gradients_are_those_of_the_loop_run_backwards(
    function: Callable[..., Any], first: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree_backwards(function, first, monkeypatch)


def agree_backwards(
    function: Callable[..., Any], first: float, monkeypatch: pytest.MonkeyPatch, rows: torch.Tensor = ROWS
) -> None:
    """Assert that a gradient is that of the loop run backwards."""
    arguments = (rows, first)
    found = derived(function, arguments)
    monkeypatch.setattr(reverse, "choose_extremes", as_it_is)
    plain = derived(function, arguments)
    given = torch.arange(1.0, 1.0 + rows.shape[0], dtype=torch.float64)
    assert gradient(found, *arguments, given) == gradient(plain, *arguments, given)


@pytest.mark.parametrize(
    ("function", "columns"),
    [*in_turn(FUNCTIONS, [5], 1), *in_turn(FUNCTIONS, [0, 1], 1)],
    ids=lambda item: getattr(item, "__name__", str(item)),
)
def test_gradients_are_those_of_central_differences(function: Callable[..., Any], columns: int) -> None:
    check_gradients(function, numbers(3, columns), -0.3)


@pytest.mark.parametrize("function", [greatest, least_last, from_the_first], ids=lambda item: item.__name__)
def test_rows_are_reductions_without_a_tape(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(3, 4), 0.0))
    kernel = kernel_of(canonical(program))
    assert not any(isinstance(node, Allocate) and "tape" in node.tensor.name for node in walk(program))
    assert all(verdict.independent for verdict in schedule_kernel(kernel, cuda_target((9, 0))).analysis.loops.values())


def test_rows_belong_to_blocks_of_threads_on_a_grid() -> None:
    scheduled, (kernel,) = schedule_program(derived(greatest, (numbers(3, 4), 0.0)), cuda_target((9, 0)))
    levels = {item.level for item in kernel.schedule.verbs if isinstance(item, Bind | Rfactor)}
    assert levels == {Level.BLOCK, Level.THREAD, Level.LANE, Level.GRID}
    arguments = (numbers(3, 4), 0.0, torch.ones(3, dtype=torch.float64))
    assert gradient(scheduled, *arguments) == gradient(derived(greatest, arguments[:2]), *arguments)


@pytest.mark.parametrize(
    "function",
    [
        windows,
        panes,
        last_of_panes,
        diagonals,
        fields,
        steps,
        padded,
        chosen_some,
        nearest,
        nearest_of_all,
        of_states,
    ],
    ids=lambda item: item.__name__,
)
def test_windows_have_no_tape(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(3, 4), 0.0))
    assert not any(isinstance(node, Allocate) and "tape" in node.tensor.name for node in walk(program))


@pytest.mark.parametrize(
    "function",
    [
        left_early,
        by_itself,
        read_on_the_way,
        carried_in_a_branch,
        carried_by_another,
        stored_in_a_branch,
        stored_in_the_other,
        of_states_ahead,
    ],
    ids=lambda item: item.__name__,
)
def test_other_extremes_have_no_place(function: Callable[..., Any]) -> None:
    program = derived(function, (numbers(3, 4), 0.0))
    assert not any(symbol.name.endswith("_place") for symbol in assigned_symbols(program))


@pytest.mark.parametrize("function", [fields, padded], ids=lambda item: item.__name__)
def test_windows_that_overlap_are_summed_for_each_element(function: Callable[..., Any]) -> None:
    kernel = kernel_of(derived(function, (numbers(4, 5), 0.0)))
    loops = schedule_kernel(kernel, cuda_target((9, 0))).analysis.loops
    assert all(verdict.independent for index, verdict in loops.items() if index.name in {"i", "j"})
    stores = [node for node in walk(kernel) if isinstance(node, Store) and node.tensor.name == "x_gradient"]
    assert not any(
        symbol.name.endswith("_place") for symbol in read_symbols([index for node in stores for index in node.indices])
    )
