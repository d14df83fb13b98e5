"""Triangular nests of long iterations are rectangles on a grid, with the same iterations."""

from __future__ import annotations

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Block, Expression, For, If, Kernel, Program
from brickwork.ir.walk import substitute, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.rectangle import rectangle
from support.kernels_ir import Index, KernelBuilder, apply, value
from support.lowering import program_of
from support.shared import schedule_program
from support.tensors import to_memory, to_tensor

Tensor = torch.Tensor
GPU = cuda_target((9, 0))


def lower_half(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def band(c: Tensor, a: Tensor) -> None:
    n = c.shape[0]
    for i in range(n):
        for j in range(max(i - 2, 0), min(i + 3, n)):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def falling(c: Tensor, a: Tensor) -> None:
    n = c.shape[0]
    for i in range(n):
        for j in range(n - i):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def by_rows(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[0]):
                c[i, j] += a[k, i] * a[k, j]


def short(c: Tensor, a: Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            c[i, j] = a[j, i]


MAKE = KernelBuilder()
X, A, Y = MAKE.tensor("x", 2), MAKE.tensor("a", 2), MAKE.tensor("y", 1)
I, J, L = MAKE.symbol("i"), MAKE.symbol("j"), MAKE.symbol("l")
N, S = MAKE.scalar("n"), MAKE.symbol("s", FLOAT32)
ZERO = build.constant(0.0, FLOAT32)
ROWS = 6


def long_rows(start: Index, stop: Index, *, after: Block = ()) -> Kernel:
    """A triangle whose iterations each hold a loop."""
    total = MAKE.loop(L, 9, MAKE.assign(S, apply("add", S, MAKE.load(A, J, L))))
    inner = MAKE.loop(J, stop, MAKE.assign(S, ZERO), total, MAKE.store(X, (I, J), value(S)), start=start)
    return MAKE.kernel(MAKE.loop(I, ROWS, inner, *after, start=1))


def bounded(kernel: Kernel) -> tuple[Block, int]:
    """Return the kernel's body with rectangles, and how many conditions are in it."""
    block = rectangle(kernel.body, analyse(kernel))
    return block, sum(isinstance(node, If) for node in walk(block))


FIRST, LAST = 1, ROWS - 1


@pytest.mark.parametrize(
    ("start", "stop", "least", "most"),
    [
        (0, apply("add", I, 1), None, LAST),
        (0, apply("sub", N, I), None, FIRST),
        (I, N, FIRST, None),
        (I, apply("mul", 2, I), FIRST, LAST),
        (0, apply("add", apply("mul", -2, I), N), None, FIRST),
        (apply("sub", 5, I), apply("add", I, N), LAST, LAST),
        (0, apply("minimum", apply("add", I, 2), N), None, LAST),
        (0, apply("sub", I, apply("mul", -1, I)), None, LAST),
    ],
)
def test_bounds_that_never_fall_or_never_rise(start: Index, stop: Index, least: int | None, most: int | None):
    block, conditions = bounded(long_rows(start, stop))
    (inner,) = [node for node in walk(block) if isinstance(node, For) and node.index == J]
    ends = [value(I if end is None else end) for end in (least, most)]
    expected = [substitute(value(bound), {I: end}) for bound, end in zip((start, stop), ends, strict=True)]
    assert [inner.start, inner.stop] == expected
    assert conditions == sum(end is not None for end in (least, most))


WAVES = apply("mod", I, 3)


@pytest.mark.parametrize(
    "bound",
    [
        WAVES,
        apply("sub", N, WAVES),
        apply("mul", -2, WAVES),
        apply("mul", 2, WAVES),
        apply("add", I, apply("mul", -2, I)),
        apply("sub", I, apply("mul", 2, I)),
        apply("floordiv", 9, I),
        apply("mul", I, I),
    ],
)
def test_bounds_that_rise_and_fall_stay(bound: Expression):
    for kernel in (long_rows(bound, 9), long_rows(0, bound), long_rows(bound, apply("add", I, 1))):
        assert bounded(kernel) == (kernel.body, 0)


def test_what_stands_beside_the_inner_loop_stays():
    beside = (MAKE.store(Y, (I,), ZERO),)
    kernel = long_rows(0, apply("add", I, 1), after=beside)
    assert bounded(kernel) == (kernel.body, 0)


def made(function) -> tuple[Program, Program]:
    program = program_of(function, to_memory(torch.rand(4, 4)), to_memory(torch.rand(4, 4)))
    return program, schedule_program(program, GPU)[0]


@pytest.mark.parametrize("function", [lower_half, band, falling])
def test_threads_share_a_triangle_out(function):
    program, pieces = made(function)
    nests = [node for node in walk(pieces) if isinstance(node, For) and node.role.value == "parallel"]
    assert {node.index.name for node in nests} == {"i", "j"}
    for n in (0, 1, 2, 7):
        c, a = torch.rand(n, n), torch.rand(n, 5)
        plain, cut = [to_memory(c), to_memory(a)], [to_memory(c), to_memory(a)]
        run_program(program, plain)
        run_program(pieces, cut, check=True)
        assert to_tensor(plain[0]).equal(to_tensor(cut[0]))


@pytest.mark.parametrize("function", [by_rows, short])
def test_rows_for_blocks_and_short_iterations_stay(function):
    program, _ = made(function)
    kernel = next(node for node in walk(program) if isinstance(node, Kernel))
    assert rectangle(kernel.body, analyse(kernel)) == kernel.body
