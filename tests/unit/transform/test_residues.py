"""Sums that ask for remainders of their indices go through the terms that have them, and remainders run apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from unittest.mock import patch

import pytest
import torch

from brickwork.ir.nodes import (
    Apply,
    For,
    Kernel,
    Launch,
    Node,
    Store,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.residue_nests import APART, STRIDED, with_residues, with_strides
from support.lowering import argument_type, memory, numbers
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program
from support.sweep import sampled

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1):
        yield


def kernels(function: Callable[..., object], *arguments: object) -> dict[str, Kernel]:
    """Return the kernels of a function for a GPU, by what their names end with."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(lower(define(function), signature), sizes=True)
    program, _ = with_residues(with_strides(program, GPU)[0], GPU)
    found = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return {kernel.name.removeprefix(function.__name__): kernel for kernel in found}


def divisions(node: Node) -> int:
    """Return how many remainders are asked for."""
    return sum(isinstance(item, Apply) and item.operator.name == "mod" for item in walk(node))


def spread(x: Tensor, w: Tensor) -> Tensor:
    """Put a number after each element of x, and sum windows of four."""
    out = torch.empty(x.shape[0], w.shape[1], 2 * x.shape[2] + 1)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2] + 1):
                s = 0.5
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + 1 - k) % 2 == 0 and 0 <= (y + 1 - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + 1 - k) // 2] * w[c, o, k]
                out[b, o, y] = s
    return out


def spread_by_three(x: Tensor, w: Tensor) -> Tensor:
    """Ask for another remainder than 0, and add to the index instead of taking it away."""
    out = torch.empty(x.shape[0], w.shape[1], 3 * x.shape[2] - 2)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(3 * x.shape[2] - 2):
                s = 0.0
                for k in range(1, w.shape[2]):
                    i = (y + k) // 3
                    if (y + k) % 3 == 1 and i < x.shape[2]:
                        for c in range(x.shape[1]):
                            s += x[b, c, i] * w[c, o, k]
                if s > 1.0:
                    out[b, o, y] = s
                else:
                    out[b, o, y] = -s
    return out


def padded(x: Tensor, w: Tensor, pad: int) -> Tensor:
    out = torch.empty(x.shape[0], w.shape[1], 2 * x.shape[2])
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(2 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[1]):
                    for k in range(w.shape[2]):
                        if (y + pad - k) % 2 == 0 and 0 <= (y + pad - k) // 2 < x.shape[2]:
                            s += x[b, c, (y + pad - k) // 2] * w[c, o, k]
                out[b, o, y] = s
    return out


def two_axes(x: Tensor, w: Tensor) -> Tensor:
    out = torch.empty(w.shape[1], 2 * x.shape[1], 3 * x.shape[2])
    for o in range(w.shape[1]):
        for y in range(2 * x.shape[1]):
            for z in range(3 * x.shape[2]):
                s = 0.0
                for c in range(x.shape[0]):
                    for k in range(w.shape[2]):
                        for m in range(w.shape[2]):
                            if (y - k) % 2 == 0 and (z + 1 - m) % 3 == 0:
                                i = (y - k) // 2
                                j = (z + 1 - m) // 3
                                if 0 <= i < x.shape[1] and 0 <= j < x.shape[2]:
                                    s += x[c, i, j] * w[c, o, k] * w[c, o, m]
                out[o, y, z] = s
    return out


X, W = numbers(2, 3, 4), numbers(3, 2, 4)


@pytest.mark.parametrize(
    ("length", "terms", "function"), sampled(product((1, 4, 5), range(1, 6), (spread, spread_by_three, two_axes)), 4)
)
def test_sums_of_one_remainder_are_those_of_the_source(
    function: Callable[..., object], terms: int, length: int
) -> None:
    same(function, numbers(2, 3, length) if function is not two_axes else numbers(3, 2, length), numbers(3, 2, terms))


@pytest.mark.parametrize("pad", [0, 1, 2, 5, -1])
def test_arguments_move_windows(pad: int) -> None:
    same(padded, X, W, pad)


def test_remainders_are_not_asked_for_in_sums() -> None:
    for function in (spread, spread_by_three, two_axes):
        given = (X, W) if function is not two_axes else (numbers(3, 2, 4), W)
        found = kernels(function, *given)
        assert divisions(next(iter(found.values()))) == 0
        assert APART in found


def test_remainders_stand_outermost() -> None:
    (nest,) = kernels(two_axes, numbers(3, 2, 4), W)[APART].body
    names = [node.index.name for node in statements(nest) if isinstance(node, For)]
    assert names == ["y_rest", "z_rest", "o", "y", "z", "c", "k", "m"]


def test_kernels_with_arguments_ask_whether_these_are_small() -> None:
    found = kernels(padded, X, W, 1)
    assert set(found) == {f"{STRIDED}{APART}", STRIDED, ""}
    assert found[""].may_alias
    assert divisions(found[""]) > 0
    same(padded, X, W, 2**62)
    same(padded, X, W, -(2**62))


# ---------------------------------------------------------------- what stays


def with_elements(x: Tensor, w: Tensor, at: Tensor) -> Tensor:
    """Ask for a remainder of what elements say."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (at[y] - k) % 2 == 0:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


def twice(x: Tensor, w: Tensor) -> Tensor:
    """Ask for a remainder of twice the index."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y + 2 * k) % 4 == 0:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


def squared(x: Tensor, w: Tensor) -> Tensor:
    """Ask for a remainder of what the index is in twice."""
    out = torch.empty(x.shape[0], w.shape[1], 8)
    for b in range(x.shape[0]):
        for o in range(w.shape[1]):
            for y in range(8):
                s = 0.0
                for k in range(w.shape[2]):
                    if (y * k + k) % 4 == 0:
                        s += x[b, 0, k] * w[0, o, k]
                out[b, o, y] = s
    return out


@pytest.mark.parametrize("function", [twice, squared])
def test_other_remainders_are_asked_for(function: Callable[..., object]) -> None:
    assert divisions(kernels(function, X, W)[""]) > 0
    same(function, X, W)


def test_remainders_of_elements_are_asked_for() -> None:
    same(with_elements, X, W, numbers(8))


# ---------------------------------------------------------------- what comes of scatters


def spread_by_adding(x: Tensor, w: Tensor, length: int) -> Tensor:
    out = torch.zeros(x.shape[0], w.shape[1], length)
    for b in range(x.shape[0]):
        for c in range(x.shape[1]):
            for y in range(x.shape[2]):
                for o in range(w.shape[1]):
                    for k in range(w.shape[2]):
                        place = 2 * y + k - 1
                        if 0 <= place < out.shape[2]:
                            out[b, o, place] += x[b, c, y] * w[c, o, k]
    return out


@pytest.mark.parametrize("length", [1, 2, 9, 10])
def test_what_is_added_to_places_of_two_loops_is_summed_for_each_place(length: int) -> None:
    same(spread_by_adding, X, W, length)
    signature = Signature(tuple(map(argument_type, (X, W, length))), device="cuda", narrow=True, aligned=True)
    program, _ = schedule_program(lower(define(spread_by_adding), signature), GPU)
    assert not any(isinstance(node, Store) and node.combine for node in walk(program.body))


def histogram(x: Tensor, at: Tensor, out: Tensor) -> None:
    """Add to places that elements say: these stay."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[int(at[i, j]) + j] += x[i, j]


def test_what_is_added_to_places_that_elements_say_stays_a_scatter() -> None:
    same(histogram, numbers(3, 4), memory([[0.0, 1.0, 2.0, 0.0]] * 3), numbers(8))


# ---------------------------------------------------------------- sums between quotients


def of_strides(g: Tensor, w: Tensor, pad: int) -> Tensor:
    """Return the gradient of a convolution of stride 2: of each element the windows that it is in."""
    size = w.shape[2]
    x = torch.empty(g.shape[0], w.shape[1], 2 * g.shape[2] + size - 2 * pad)
    for b in range(g.shape[0]):
        for c in range(w.shape[1]):
            for e in range(2 * g.shape[2] + size - 2 * pad):
                s = 0.0
                for o in range(g.shape[1]):
                    for y in range(max(0, (e + pad + 2 - size) // 2), min(g.shape[2], (e + pad + 2) // 2)):
                        s += g[b, o, y] * w[o, c, e + pad - 2 * y]
                x[b, c, e] = s
    return x


@pytest.mark.parametrize(("length", "terms"), sampled(product((1, 2, 5), range(1, 6))))
def test_sums_between_quotients_begin_at_0(length: int, terms: int) -> None:
    given = numbers(2, 3, length), numbers(3, 2, terms), 0
    assert APART in kernels(of_strides, *given)
    same(of_strides, *given)
    if length > 1:
        same(of_strides, *given[:2], 1)
