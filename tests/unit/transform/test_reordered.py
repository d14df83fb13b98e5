"""Loops cut into several and nests in another order: where that is done, and that results stay bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import For, Kernel, Launch, Node
from brickwork.ir.walk import rewrite, walk
from brickwork.target.cpu import host_target
from brickwork.target.target import Target
from brickwork.transform.pipeline import reordered
from support.lowering import memory, nested, program_of

Tensor = torch.Tensor
GRID = replace(host_target(), grid=True)


def rows(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def outer(c: Tensor, a: Tensor, b: Tensor) -> None:
    for k in range(a.shape[1]):
        for j in range(c.shape[1]):
            for i in range(c.shape[0]):
                c[i, j] += a[i, k] * b[k, j]


def scaled(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] *= 0.5
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def recurrence(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[1] - 1):
        a[0, i] = b[0, i] * 2
        c[0, i + 1] = c[0, i] + a[0, i]


def reads_ahead(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[1] - 1):
        a[0, i] = c[0, i + 1] * 2
        c[0, i + 1] = c[0, i] + b[0, i]


def reads_behind(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(1, c.shape[1]):
        a[0, i] = c[0, i - 1] * 2
        c[0, i] = c[0, i - 1] + b[0, i]


def columns(c: Tensor, a: Tensor, b: Tensor) -> None:
    for j in range(1, c.shape[1]):
        for i in range(c.shape[0]):
            c[i, j] = c[i, j - 1] + a[i, j]


def diagonal(c: Tensor, a: Tensor, b: Tensor) -> None:
    for j in range(1, c.shape[1]):
        for i in range(c.shape[0] - 1):
            c[i, j] = c[i + 1, j - 1] + a[i, j]


def triangle(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[0]):
        for k in range(i):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def carried(c: Tensor, a: Tensor, b: Tensor) -> None:
    for i in range(c.shape[1]):
        t = a[0, i]
        c[0, i] = t
        b[0, i] = t + 1.0


# What stands in which order: indices of the loops as they are met from the outside inwards.
EXPECTED = {
    rows: "ijk",
    outer: "jik",
    scaled: "ijijk",
    recurrence: "ii",
    reads_ahead: "ii",
    reads_behind: "i",
    columns: "ij",
    diagonal: "ji",
    triangle: "ijk",
    carried: "i",
}


def changed(function: Callable[..., None], target: Target, arguments: list[Memory]) -> tuple[str, list[object]]:
    """Return the indices of a function's loops once they are in order for a target, and the arguments after a run."""
    kernels: list[Kernel] = []

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        kernels.append(reordered(node.kernel, analyse(node.kernel), target)[0])
        return Launch(kernel=kernels[0])

    run_program(rewrite(program_of(function, *arguments), visit), arguments, check=True)
    names = [node.index.name for node in walk(kernels[0].body) if isinstance(node, For)]
    return "".join(names), [nested(item) for item in arguments]


def matrices() -> list[Memory]:
    draw = random.Random(1)
    return [memory([[draw.gauss(0, 1) for _ in range(5)] for _ in range(5)], FLOAT64) for _ in range(3)]


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
@pytest.mark.parametrize("target", [host_target(), GRID], ids=["cpu", "grid"])
def test_orders(function: Callable[..., None], target: Target) -> None:
    plain = matrices()
    run_program(program_of(function, *plain), plain, check=True)
    names, results = changed(function, target, matrices())
    assert results == [nested(item) for item in plain]
    if target is not GRID:
        assert names == EXPECTED[function]


def scaled_first(a: Tensor) -> None:
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            scaled = a[i, k] / a[k, k]
            a[i, k] = scaled
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]


@pytest.mark.parametrize(("target", "count"), [(GRID, 2), (host_target(), 1)])
def test_what_keeps_a_nest_from_being_perfect_has_a_loop_of_its_own_on_a_grid(target, count):
    program = program_of(scaled_first, memory([[1.0] * 3] * 3, FLOAT64))
    kernel = next(node for node in walk(program) if isinstance(node, Kernel))
    outer = next(node for node in walk(reordered(kernel, analyse(kernel), target)[0].body) if isinstance(node, For))
    assert len(outer.body) == count
