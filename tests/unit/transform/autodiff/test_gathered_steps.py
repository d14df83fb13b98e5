"""Sums over the elements of one step in a loop in order, of which each reads what the step before has left."""

# pyright: basic
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, For, Program, Size, Store
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.derive import Backward, derive
from brickwork.transform.pipeline import schedule_program
from support.gradients import KEY, _differences, _memory, forward, is_float, lowered, numbers
from support.scheduling import GPU
from support.tensors import argument_type, to_tensor


def spread(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Each column is made of three neighbours in the one before."""
    rows, columns = x.shape
    h = torch.empty_like(x)
    for w in range(columns):
        for i in range(rows):
            above = g[0, i, w] * h[i - 1, w - 1] if w > 0 and i > 0 else 0.0
            beside = g[1, i, w] * h[i, w - 1] if w > 0 else 0.0
            below = g[2, i, w] * h[i + 1, w - 1] if w > 0 and i < rows - 1 else 0.0
            h[i, w] = x[i, w] + above + beside + below
    return h


def chained(e: torch.Tensor, m: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Logarithms of sums of exponentials, step after step, as many steps as elements say."""
    samples, states = e.shape[0], e.shape[2]
    a = torch.empty_like(e)
    out = e.new_zeros((samples, states))
    for b in range(samples):
        for k in range(states):
            a[b, 0, k] = e[b, 0, k]
        for t in range(1, lengths[b]):
            for k in range(states):
                top = -math.inf
                for j in range(states):
                    top = max(top, a[b, t - 1, j] + m[j, k])
                z = 0.0
                for j in range(states):
                    z += math.exp(a[b, t - 1, j] + m[j, k] - top)
                a[b, t, k] = e[b, t, k] + top + math.log(z)
        for k in range(states):
            out[b, k] = a[b, lengths[b] - 1, k]
    return out


def balanced(s: torch.Tensor, steps: int) -> torch.Tensor:
    """Rows and columns in turns."""
    samples, rows, columns = s.shape
    u, v = s.new_zeros((samples, rows)), s.new_zeros((samples, columns))
    out = torch.empty_like(s)
    for b in range(samples):
        for _ in range(steps):
            for i in range(rows):
                z = 0.0
                for j in range(columns):
                    z += math.exp(s[b, i, j] + v[b, j])
                u[b, i] = -math.log(z)
            for j in range(columns):
                z = 0.0
                for i in range(rows):
                    z += math.exp(s[b, i, j] + u[b, i])
                v[b, j] = -math.log(z)
        for i in range(rows):
            for j in range(columns):
                out[b, i, j] = s[b, i, j] + u[b, i] + v[b, j]
    return out


def greatest_before(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """An element of a column adds to a place in the one before that elements say."""
    rows, columns = x.shape
    h = torch.empty_like(x)
    for w in range(columns):
        for i in range(rows):
            s = x[i, w]
            if w > 0:
                top = h[0, w - 1]
                for k in range(1, rows):
                    top = max(top, h[k, w - 1])
                s += g[i, w] * (top + h[i, w - 1])
            h[i, w] = s
    return h


def along(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """What a column reads of itself is no part of the one before: its rows are in order, too."""
    rows, columns = x.shape
    h = torch.empty_like(x)
    for w in range(columns):
        for i in range(rows):
            s = x[i, w]
            if w > 0:
                s += g[i, w] * h[i, w - 1]
            if i > 0:
                s += g[i, w] * h[i - 1, w] * h[i - 1, w]
            h[i, w] = s
    return h


def nearest_before(x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """A row is changed where a way through one of three neighbours in the row above is shorter."""
    rows, columns = x.shape
    d = start.clone()
    for h in range(1, rows):
        for w in range(columns):
            best = d[h, w]
            for k in range(-1, 2):
                if 0 <= w + k < columns:
                    best = min(best, d[h - 1, w + k] + abs(x[h, w] - x[h - 1, w + k]))
            d[h, w] = best
    return d


def halved_before(x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """What a row reads of itself is stored over, and so is what the row above is read for."""
    rows, columns = x.shape
    d = start.clone()
    for h in range(1, rows):
        for w in range(columns):
            d[h, w] = d[h, w] * x[h, w]
            for k in range(3):
                if w + k < columns:
                    d[h, w] += d[h - 1, w + k] * x[h - 1, w]
    return d


def lengths(*items: int) -> torch.Tensor:
    return torch.tensor(items)


CASES: dict[str, tuple[Callable[..., object], tuple[Any, ...]]] = {
    "spread": (spread, (numbers(4, 3), numbers(3, 4, 3))),
    "spread one row": (spread, (numbers(1, 4), numbers(3, 1, 4))),
    "spread empty": (spread, (numbers(0, 4), numbers(3, 0, 4))),
    "chained": (chained, (numbers(3, 4, 3), numbers(3, 3), lengths(1, 4, 2))),
    "chained beside a wider matrix": (chained, (numbers(2, 3, 2), numbers(3, 4), lengths(3, 2))),
    "balanced": (balanced, (numbers(2, 3, 2), 2)),
    "balanced in no step": (balanced, (numbers(2, 3, 2), 0)),
    "greatest before": (greatest_before, (numbers(3, 4), numbers(3, 4))),
    "along": (along, (numbers(3, 3), numbers(3, 3))),
    "nearest before": (nearest_before, (numbers(4, 4), 2 + 3 * numbers(4, 4))),
    "nearest before in one column": (nearest_before, (numbers(3, 1), 2 + 3 * numbers(3, 1))),
    "halved before": (halved_before, (numbers(3, 4), numbers(3, 4))),
}


def on_grid(function: Callable[..., object], arguments: tuple[Any, ...]) -> tuple[Program, Program]:
    """Return the gradients of a function for a GPU, as they are derived and as they are scheduled."""
    program = lowered(function, arguments)
    given = [*map(argument_type, (*arguments, *forward(program, arguments)))]
    signature = Signature(tuple(given), device="cuda", narrow=True, aligned=True)
    made = derive(program, Backward(tuple(map(is_float, arguments))), signature)
    scheduled = schedule_program(made, GPU)[0]
    verify_program(made)
    verify_program(scheduled)
    return made, scheduled


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_steps_are_central_differences(name: str) -> None:
    function, arguments = CASES[name]
    program = lowered(function, arguments)
    given = [torch.randn(item.shape, dtype=item.dtype) for item in forward(program, arguments)]
    places = [place for place, item in enumerate(arguments) if is_float(item)]
    expected = [item for place in places for item in _differences(program, arguments, place, given)]
    for way in on_grid(function, arguments):
        memories = [_memory(item) for item in (*arguments, *given)]
        found = [to_tensor(memory) for memory in run_program(way, memories, key=KEY, check=True)]
        for got, right in zip(found, expected, strict=True):
            assert torch.allclose(got.double(), right, rtol=1e-5, atol=1e-5), (got, right)


def updates(program: Program) -> set[str]:
    return {node.tensor.name for node in walk(program) if isinstance(node, Store) and node.combine is not None}


@pytest.mark.parametrize(
    ("name", "atomic"),
    [
        ("spread", set()),
        ("chained", {"m_gradient", "m_gradient_copies"}),
        ("balanced", set()),
        ("greatest before", {"h_adjoint"}),
        ("nearest before", set()),
        ("halved before", {"d_adjoint"}),
    ],
)
def test_what_a_step_adds_to_is_added_up_for_each_element(name: str, atomic: set[str]) -> None:
    _, scheduled = on_grid(*CASES[name])
    assert updates(scheduled) <= atomic


def test_terms_of_neighbours_are_one_sum() -> None:
    made, _ = on_grid(*CASES["spread"])
    loops = [
        node for node in walk(made) if isinstance(node, For) and not any(isinstance(i, For) for i in walk(node.body))
    ]
    stores = [
        node.tensor.name
        for loop in loops
        for node in walk(loop)
        if isinstance(node, Store) and node.tensor.name == "h_adjoint"
    ]
    assert len(stores) == 2  # one fills the adjoint, one adds what a column is used for


def test_what_steps_keep_has_no_element_for_a_step_that_passes_the_sum_on() -> None:
    made, _ = on_grid(*CASES["chained"])
    kept = {node.tensor for node in walk(made) if isinstance(node, Allocate) and node.tensor.name.endswith("_kept")}
    assert {tensor.type.rank for tensor in kept} >= {2, 3}


def test_rows_that_depend_on_each_other_stay_in_order() -> None:
    _, scheduled = on_grid(*CASES["along"])
    assert not updates(scheduled)


def ragged(ends: torch.Tensor, at: torch.Tensor, w: torch.Tensor, v: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Each row has elements of its own, which say what else it is made of."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for h in range(x.shape[1]):
            top = -math.inf
            for e in range(ends[i], ends[i + 1]):
                s = w[i, h] + v[at[e], h]
                s = s if s > 0 else s * 0.5
                top = max(top, s)
            total = 0.0
            for e in range(ends[i], ends[i + 1]):
                s = w[i, h] + v[at[e], h]
                s = s if s > 0 else s * 0.5
                total += math.exp(s - top)
            for e in range(ends[i], ends[i + 1]):
                s = w[i, h] + v[at[e], h]
                s = s if s > 0 else s * 0.5
                p = math.exp(s - top) / total
                for f in range(x.shape[2]):
                    out[i, h, f] += p * x[at[e], h, f]
    return out


def test_what_rows_of_ragged_tensors_need_is_kept_for_no_other_row() -> None:
    arguments = (lengths(0, 2, 5), lengths(0, 1, 1, 0, 1), *(numbers(2, 2) for _ in "wv"), numbers(2, 2, 3))
    derived, _ = on_grid(ragged, arguments)
    made = [node for node in walk(derived) if isinstance(node, Allocate) and node.tensor.name.endswith("_kept")]
    assert not [node for node in made if len(node.sizes) > 1]


def bagged(x: torch.Tensor, ends: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Rows of ragged elements, each scaled by a number of its own; some may count from the end."""
    out = x.new_zeros((len(ends) - 1, x.shape[1]))
    for b in range(len(ends) - 1):
        for i in range(ends[b], ends[b + 1]):
            for d in range(x.shape[1]):
                out[b, d] += scale[i] * x[i, d]
    return out


def test_no_row_of_a_ragged_tensor_looks_at_the_elements_of_all() -> None:
    arguments = (numbers(5, 2), lengths(-1, 2, 2, 5), numbers(5))
    program = lowered(bagged, arguments)
    given = [torch.randn(item.shape, dtype=item.dtype) for item in forward(program, arguments)]
    expected = _differences(program, arguments, 2, given)[0]
    derived, scheduled = on_grid(bagged, arguments)
    for way in (derived, scheduled):
        found = run_program(way, [_memory(item) for item in (*arguments, *given)], key=KEY, check=True)
        assert torch.allclose(to_tensor(found[1]).double(), expected, rtol=1e-5, atol=1e-5)
    loops = [node for node in walk(derived) if isinstance(node, For)]
    inner = [node for loop in loops for node in walk(loop.body) if isinstance(node, For)]
    assert not [node for node in inner if isinstance(node.stop, Size) and node.stop.axis == 0]


def paired(x: torch.Tensor, w: torch.Tensor, pairs: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """Rows that elements say are multiplied by a matrix each, and added to rows that elements say."""
    out = torch.zeros_like(x)
    for k in range(w.shape[0]):
        for p in range(count[k]):
            for o in range(w.shape[2]):
                s = 0.0
                for i in range(w.shape[1]):
                    s += x[pairs[0, k, p], i] * w[k, i, o]
                out[pairs[1, k, p], o] += s
    return out


def test_places_that_elements_say_in_each_iteration_are_no_sums_of_it() -> None:
    """Two nests for each pair, of which one is for places that count from the end, would keep the pairs in order."""
    pairs = torch.tensor([[[0, 2, -1], [1, 1, 0]], [[1, 0, 1], [2, -1, 2]]])
    arguments = (numbers(3, 2), numbers(2, 2, 2), pairs, lengths(3, 2))
    program = lowered(paired, arguments)
    given = [torch.randn(item.shape, dtype=item.dtype) for item in forward(program, arguments)]
    expected = _differences(program, arguments, 0, given)[0]
    derived, scheduled = on_grid(paired, arguments)
    for way in (derived, scheduled):
        found = run_program(way, [_memory(item) for item in (*arguments, *given)], key=KEY, check=True)
        assert torch.allclose(to_tensor(found[0]).double(), expected, rtol=1e-5, atol=1e-5)
    stores = [node for node in walk(derived) if isinstance(node, Store) and node.tensor.name == "x_gradient"]
    assert len(stores) == 1
    assert "x_gradient" in updates(scheduled)
