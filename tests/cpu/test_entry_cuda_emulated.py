"""Entries for CUDA together with the machine code of their kernels, on this processor: only the GPU is missing."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch

from brickwork.codegen.builder import FailureSite
from brickwork.host.layout import tensor_type
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import Kernel, Launch, Program, TensorParameter
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.pytorch.gate import ArgumentKind
from brickwork.transform import persistent
from support.emulated import Emulated, emulated_target
from support.fake_cuda import CudaRig, Launched
from support.layouts import products_of_rows
from support.shared import define, lower, schedule_program


class Machine:
    """Runs the device kernels of programs block by block, with the grid and the parameters of the launch."""

    def __init__(self) -> None:
        self.kernels: dict[Kernel, Emulated] = {}

    def load(self, program: Program) -> list[FailureSite]:
        """Compile the kernels of a program; return what their checks mean, in one numbering."""
        sites: list[FailureSite] = []
        for kernel in [node.kernel for node in walk(program.body) if isinstance(node, Launch)]:
            made = self.kernels[kernel] = Emulated(kernel, failures=sites)
            sites = list(made.module.failures)
        return sites

    def __call__(self, launch: Launched) -> None:
        context = (ctypes.c_uint64 * len(launch.words))(*launch.words)
        (x, y, _), (threads, teams, _) = launch.grid, launch.block
        self.kernels[launch.kernel].run_grid((x, y), (threads, teams), context)


def rig_of(function: Callable[..., Any], *tensors: torch.Tensor) -> CudaRig:
    types = [tensor_type(DTYPES[str(x.dtype).removeprefix("torch.")], x.shape, x.stride()) for x in tensors]
    signature = Signature(tuple(types), device="cuda", narrow=True, aligned=True)
    program, _ = schedule_program(lower(define(function), signature), emulated_target())
    assert all(isinstance(parameter, TensorParameter) for parameter in program.parameters)
    machine = Machine()
    rig = CudaRig([ArgumentKind.TENSOR] * len(tensors), machine)
    rig.add(program, before=machine.load(program))
    return rig


def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * y[j]
    return out


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 5), (40, 33)])
def test_nests_of_loops(shape):
    x, y = torch.randn(shape), torch.randn(shape[1])
    rig = rig_of(scaled, x, y)
    assert torch.equal(rig.call(x, y)[0], x * y)
    assert rig.gpu.handles == 0


def normalised(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    for i in range(x.shape[0]):
        out[i] = x[i] / total
    return out


@pytest.mark.parametrize("length", [1, 7, 1000, 5000])
def test_sums_over_the_grid_go_from_launch_to_launch(length):
    x = torch.rand(length)
    rig = rig_of(normalised, x)
    torch.testing.assert_close(rig.call(x)[0], x / x.sum(), rtol=1e-5, atol=0)
    assert len(rig.gpu.launches) > 1
    assert rig.gpu.handles == 0


def columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


@pytest.mark.parametrize(("shape", "launches"), [((127, 3), 1), ((128, 3), 2), ((301, 5), 2), ((300, 0), 0)])
def test_few_long_columns_are_summed_in_pieces(shape, launches):
    x = torch.randint(-9, 9, shape).float()
    rig = rig_of(columns, x)
    assert torch.equal(rig.call(x)[0], x.sum(0))
    assert len(rig.gpu.launches) == launches
    assert rig.gpu.handles == 0


def diffused(x: torch.Tensor) -> torch.Tensor:
    a, b = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.shape[0]):
        a[i] = x[i]
        b[i] = x[i]
    for t in range(5):
        for i in range(1, x.shape[0] - 1):
            b[i] = (a[i - 1] + a[i + 1]) / 2
        for i in range(1, x.shape[0] - 1):
            a[i] = b[i]
    return a


@pytest.mark.parametrize(("few", "launches"), [(0, 11), (4096, 2)])
def test_steps_of_a_stencil_are_launched_in_order_or_run_by_a_block(few, launches, monkeypatch):
    monkeypatch.setattr(persistent, "few_iterations", lambda _: few)
    x = torch.randn(300)
    rig = rig_of(diffused, x)
    wanted = x.clone()
    for _ in range(5):
        wanted[1:-1] = (wanted[:-2] + wanted[2:]) / 2
    assert torch.equal(rig.call(x)[0], wanted)
    assert len(rig.gpu.launches) == launches


def eliminated(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Gauss's elimination, and the substitution backwards."""
    n = b.shape[0]
    x = torch.zeros_like(b)
    for k in range(n):
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            b[i] -= f * b[k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= a[i, j] * x[j]
        x[i] = s / a[i, i]
    return x


@pytest.mark.parametrize("size", [1, 2, 6])
def test_a_block_goes_on_from_turn_to_turn(size):
    a, b = torch.rand(size, size).double() + size * torch.eye(size), torch.rand(size).double()
    rig = rig_of(eliminated, a, b)
    wanted = torch.linalg.solve(a, b)
    torch.testing.assert_close(rig.call(a, b)[0], wanted)
    assert len(rig.gpu.launches) == 3
    assert rig.gpu.handles == 0


def halved(x: torch.Tensor) -> torch.Tensor:
    """Elements decide how often, and for which rows."""
    count = torch.zeros(1)
    largest = 1.0
    while largest >= 0.01:
        largest = 0.0
        count[0] += 1
        for i in range(x.shape[0]):
            if x[i, 0] < 0.001:
                continue
            for j in range(x.shape[1]):
                x[i, j] /= 2
            largest = max(largest, x[i, 0])
    return count


def test_a_block_runs_what_elements_end():
    x = torch.rand(5, 70) + 0.5
    rig = rig_of(halved, x)
    wanted, times = x.clone(), 0
    while True:
        times += 1
        wanted[wanted[:, 0] >= 0.001] /= 2
        if wanted[:, 0].max() < 0.01:
            break
    assert rig.call(x)[0].tolist() == [times]
    assert torch.equal(x, wanted)
    assert len(rig.gpu.launches) == 3


def gathered(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.empty(index.shape[0])
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


def test_what_a_launch_finds_wrong_is_raised_by_the_next_call():
    x, index = torch.arange(10.0), torch.arange(9, -1, -1)
    rig = rig_of(gathered, x, index)
    assert rig.call(x, index)[0].tolist() == list(range(9, -1, -1))
    bad = index.clone()
    bad[3] = 10
    assert rig.call(x, bad) is not None
    with pytest.raises(IndexError, match=r"index 10 is out of bounds for dimension 0 of tensor 'x' with size 10"):
        rig.call(x, index)
    assert rig.call(x, index)[0].tolist() == list(range(9, -1, -1))
    assert rig.asked == 1
    assert rig.gpu.handles == 0


def causal(w: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """A causal convolution."""
    B, C, T = k.shape
    assert w.shape[0] == C
    assert w.shape[1] == T
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = 0.0
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                out[b, c, t] = s
    return out


def correlated(w: torch.Tensor, g: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The gradient of its weights."""
    B, C, T = k.shape
    assert w.shape[0] == C
    assert w.shape[1] == T
    assert g.shape[0] == B
    assert g.shape[1] == C
    assert g.shape[2] == T
    out = torch.empty_like(w)
    for c in range(C):
        for x in range(T):
            s = 0.0
            for b in range(B):
                for u in range(x + 1):
                    s += g[b, c, T + u - (x + 1)] * k[b, c, u]
            out[c, x] = s
    return out


def multiplied(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A matrix product."""
    assert a.shape[1] == b.shape[0]
    out = a.new_empty(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def numbers(*shape):
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) % 7 - 3).float()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (causal, lambda length: (numbers(2, length), numbers(5, 2, length))),
        (correlated, lambda length: (numbers(2, length), numbers(5, 2, length) + 1, numbers(5, 2, length))),
        (multiplied, lambda length: (numbers(6, length), numbers(length, 8))),
    ],
)
def test_what_a_thread_holds_in_registers_is_summed_as_the_source_says(function, arguments):
    rig = rig_of(function, *arguments(8))
    for length in (1, 3, 4, 12, 22):
        given = arguments(length)
        assert torch.equal(rig.call(*given)[0], function(*given))


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1, 1), (2, 4, 4, 8), (1, 70, 36, 8), (3, 5, 3, 7), (2, 0, 4, 4), (1, 67, 40, 0)]
)
def test_tiles_of_threads_over_products_of_rows(sizes):
    batch, rows, columns, length = sizes
    x = torch.randint(-9, 9, (batch, rows, length)).float()
    w = torch.randint(-9, 9, (batch, columns, length)).float()
    rig = rig_of(products_of_rows, x, w)
    assert torch.equal(rig.call(x, w)[0], x @ w.mT)
