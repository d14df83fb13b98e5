"""Sums of partial sums with scales are sums of all terms, where these are contractions; what is not finite is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart
from brickwork.transform.canonical.form import canonical
from brickwork.transform.product_nests import APART, with_product_nests
from support.contracted import planned_for
from support.lowering import argument_type, memory
from support.scheduling import GPU, same, way
from support.tensors import to_memory

Tensor = torch.Tensor
X = to_memory((torch.arange(24).reshape(3, 8) % 7 - 3).to(torch.int8))
Q = to_memory((torch.arange(32).reshape(4, 8) % 5 - 2).to(torch.int8))
U, W = memory([[0.5, 2.0], [4.0, 0.25], [1.0, 8.0]]), memory([[1.0, 2.0], [0.5, 1.0], [2.0, 4.0], [1.0, 0.5]])
Y = memory([[0.0] * 4] * 3)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small nests be worth it."""
    for name in ("LEAST_SIDE", "LEAST_AREA", "LEAST_TERMS"):
        monkeypatch.setattr(nests_apart, name, 1)


def scaled(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b] * w[j, b]
            y[i, j] = s


def masked(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    """A sum without terms, times an infinity, is NaN."""
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 1.0
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    if b * 4 + k < 7:
                        a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b]
            y[i, j] = s * w[j, 0]


def rows_alone(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k])
                s += a * w[j, b]
            y[i, j] = s


def begun_with_something(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 1
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b] * w[j, b]
            y[i, j] = s


def begun_twice(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            s += w[j, 0]
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b]
            y[i, j] = s


def begun_before_something_changes(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            t = w[j, 0]
            s = t
            t = t * 2.0
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b]
            y[i, j] = s * t


def counted(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            t = 1.0
            for b in range(u.shape[1]):
                t = t * 2.0
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b] * t
            y[i, j] = s


def squared(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0.0
                for k in range(4):
                    a += x[i, b * 4 + k] * q[j, b * 4 + k]
                s += a * a * u[i, b]
            y[i, j] = s


def moved(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0.0
                for k in range(4):
                    a += x[i, b * 4 + k] * q[j, b * 4 + k]
                s += (a + 1.0) * u[i, b]
            y[i, j] = s


def divided(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0.0
                for k in range(4):
                    a += x[i, b * 4 + k] * q[j, b * 4 + k]
                s += u[i, b] / a if a != 0.0 else w[j, b]
            y[i, j] = s


def passed_on(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(u.shape[1]):
                a = 0.0
                for k in range(4):
                    a += x[i, b * 4 + k] * q[j, b * 4 + k]
                s += a * s
            y[i, j] = s


def read_afterwards(x: Tensor, q: Tensor, u: Tensor, w: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            a = 0
            for b in range(u.shape[1]):
                a = 0
                for k in range(4):
                    a += int(x[i, b * 4 + k]) * int(q[j, b * 4 + k])
                s += a * u[i, b] * w[j, b]
            y[i, j] = s + a


def _sums(function: Callable[..., None], x: Memory = X) -> list[list[For]]:
    signature = Signature(tuple(map(argument_type, (x, Q, U, W, Y))), device="cuda", narrow=True, aligned=True)
    program, _ = with_product_nests(canonical(way(function, signature), sizes=True), GPU)
    kernels = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    return [
        [node for node in statements(item.body) if isinstance(node, For)]
        for item in kernels
        if item.name.endswith(APART)
    ]


@pytest.mark.parametrize("function", [scaled, rows_alone, begun_twice], ids=lambda item: item.__name__)
def test_scaled_sums_are_sums_of_all_terms(function: Callable[..., None]) -> None:
    (found,) = _sums(function)
    assert [loop.index.name for loop in found] == ["i", "j", "b", "k", "b", "k"]
    same(function, X, Q, U, W, Y)


@pytest.mark.parametrize("scale", [math.inf, math.nan, -math.inf])
def test_scales_that_are_not_finite_meet_whole_sums(scale: float) -> None:
    """The first sum is 0 for some rows: all of its terms with an infinity are not."""
    given = memory([[scale, 2.0], [4.0, 0.25], [1.0, scale]])
    ones = to_memory(torch.tensor([[1, -1] * 4, [2, -2] * 4, [1, 1] * 4], dtype=torch.int8))
    arguments = (ones, to_memory(torch.ones(4, 8, dtype=torch.int8)), given, W, Y)
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(way(scaled, signature), sizes=True)
    found, _ = with_product_nests(program, GPU)
    assert found != program
    left = list[str]()
    for each in (program, found):
        copies = [replace(item, data=[*item.data]) for item in arguments]
        run_program(each, copies, check=True)
        left.append(str(copies[-1].data))
    assert left[0] == left[1]
    assert "nan" in left[0]


@pytest.mark.parametrize(
    "function",
    [
        masked,
        begun_before_something_changes,
        counted,
        begun_with_something,
        squared,
        moved,
        divided,
        passed_on,
        read_afterwards,
    ],
    ids=lambda item: item.__name__,
)
def test_other_sums_stay(function: Callable[..., None]) -> None:
    assert not _sums(function)


def test_sums_of_integers_that_floats_do_not_have_stay() -> None:
    """2^40 + 1 less 2^40 is 1, but for floats."""
    assert not _sums(rows_alone, memory([[2**40 + 1, -(2**40), 1, 1] * 2] * 3, INT64))


def in_long_blocks(x: Tensor, q: Tensor, u: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(q.shape[0]):
            s = 0.0
            for b in range(x.shape[1] // 64):
                for k in range(64):
                    s += x[i, b * 64 + k] * u[i, b] * q[j, b * 64 + k]
            y[i, j] = s


def test_a_tile_goes_along_blocks_and_not_from_one_to_the_next() -> None:
    given = [memory([[0.0] * 4] * 4)] * 4
    signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
    (kernel,) = (node.kernel for node in walk(canonical(way(in_long_blocks, signature))) if isinstance(node, Launch))
    (loop,) = kernel.body
    assert isinstance(loop, For)
    for second in (True, False):
        nest = replace(planned_for(kernel), second=second).contracted(loop)
        assert nest is not None
        assert nest.depth.index.name == "k"
