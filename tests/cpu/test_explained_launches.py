"""What `explain` says of a GPU against what is launched: versions, kernels, grids, roles of loops, and atomics.

The driver of the tests records launches and runs nothing, so that arguments may be as large as those that choose tiles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.grid import grid_of
from brickwork.codegen.llvm import assembly
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.host.layout import tensor_type
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import For, Kernel, Load, Program, Role
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.launches import Followed, followed
from brickwork.transform.derivation import Backward
from brickwork.transform.derive import derive
from brickwork.transform.explain import explain
from brickwork.transform.explanation import Explanation
from brickwork.transform.pipeline import schedule_program
from support.emulated import emulated_target
from support.fake_cuda import CudaRig, Launched
from support.layouts import products_of_rows

Tensor = torch.Tensor
TARGET = emulated_target()


def scaled(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * y[j]
    return out


def product(a: Tensor, b: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    out = a.new_empty(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def normalised(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    for i in range(x.shape[0]):
        out[i] = x[i] / total
    return out


def histogram(x: Tensor, like: Tensor) -> Tensor:
    out = torch.zeros(like.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


def embedding(table: Tensor, ids: Tensor) -> Tensor:
    out = torch.empty(ids.shape[0], table.shape[1])
    for i in range(ids.shape[0]):
        for j in range(table.shape[1]):
            out[i, j] = table[ids[i], j]
    return out


def recurrence(x: Tensor, a: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = torch.tanh(h * a[b] + x[b, t])
            out[b, t] = h
    return out


def smoothed(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    level = 0.0
    for i in range(x.shape[0]):
        level = 0.9 * level + 0.1 * x[i]
        out[i] = level
    return out


def causal(w: Tensor, k: Tensor) -> Tensor:
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


def softmax(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - m) / s
    return out


def convolved(x: Tensor, w: Tensor) -> Tensor:
    out = x.new_empty(x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1)
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                s = 0.0
                for p in range(w.shape[0]):
                    for q in range(w.shape[1]):
                        s += x[n, i + p, j + q] * w[p, q]
                out[n, i, j] = s
    return out


def columns(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


def diffused(x: Tensor) -> Tensor:
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


def farthest(x: Tensor, near: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], 16, dtype=torch.int64)
    for b in range(x.shape[0]):
        last = 0
        for s in range(16):
            out[b, s] = last
            best, at = -1.0, 0
            for n in range(x.shape[1]):
                near[b, n] = min(near[b, n], abs(x[b, n] - x[b, last]))
                if near[b, n] > best:
                    best, at = near[b, n], n
            last = at
    return out


def windows(x: Tensor, w: Tensor) -> Tensor:
    out = x.new_empty(x.shape[0], x.shape[1] - w.shape[0] + 1)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(w.shape[0]):
                s += x[i, j + k] * w[k]
            out[i, j] = s
    return out


def shifted(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


def of(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def ids(length: int) -> Tensor:
    return of(length, dtype=torch.int64)


@dataclass(frozen=True)
class Case:
    """A program, arguments for several of its versions, and the sizes of its result for a gradient."""

    function: Callable[..., Any]
    arguments: Sequence[tuple[Tensor, ...]]
    result: Callable[..., tuple[int, ...]] | None = None


CASES = [
    Case(scaled, [(of(40, 33), of(33)), (of(4096, 4096), of(4096))], lambda x, y: x.shape),
    Case(
        product,
        [(of(12, 64), of(64, 16)), (of(4096, 512), of(512, 4096)), (of(8, 4096), of(4096, 7)), (of(9, 7), of(7, 3))],
        lambda a, b: (a.shape[0], b.shape[1]),
    ),
    Case(
        products_of_rows,
        [(of(2, 5, 24), of(2, 36, 24)), (of(1, 6, 4096), of(1, 64, 4096)), (of(1, 6, 4097), of(1, 64, 4097))],
    ),
    Case(normalised, [(of(40),), (of(1 << 20),)], lambda x: x.shape),
    Case(histogram, [(ids(40), of(64)), (ids(1 << 20), of(64)), (ids(1 << 20), of(1 << 16))]),
    Case(embedding, [(of(40, 8), ids(7)), (of(4000, 512), ids(70000))], lambda t, i: (i.shape[0], t.shape[1])),
    Case(recurrence, [(of(4, 9), of(4)), (of(4096, 256), of(4096))], lambda x, a: x.shape),
    Case(smoothed, [(of(9),), (of(1 << 20),)], lambda x: x.shape),
    Case(causal, [(of(4, 6), of(2, 4, 6)), (of(512, 768), of(32, 512, 768))], lambda w, k: k.shape),
    Case(softmax, [(of(4, 6),), (of(4096, 4096),)], lambda x: x.shape),
    Case(
        convolved,
        [(of(2, 9, 9), of(3, 3)), (of(16, 512, 512), of(5, 5))],
        lambda x, w: (x.shape[0], x.shape[1] - w.shape[0] + 1, x.shape[2] - w.shape[1] + 1),
    ),
    Case(columns, [(of(9, 9),), (of(4096, 64),), (of(4096, 1 << 16),)], lambda x: (x.shape[1],)),
    Case(diffused, [(of(300),), (of(1 << 20),)], lambda x: x.shape),
    Case(farthest, [(of(3, 20), of(3, 20)), (of(64, 1 << 16), of(64, 1 << 16))]),
    Case(
        windows,
        [(of(4, 20), of(3)), (of(512, 4096), of(31)), (of(512, 4096), of(1024))],
        lambda x, w: (x.shape[0], x.shape[1] - w.shape[0] + 1),
    ),
    Case(shifted, [(of(300), of(300)), (of(300), of(200))]),
]


# ---------------------------------------------------------------- what is compared


class Told:
    """A scheduled program with what is said of it, and a driver that takes its launches down."""

    def __init__(self, program: Program, kinds: int) -> None:
        self.program, kernels = schedule_program(program, TARGET)
        self.explanation = Explanation(tuple(part for kernel in kernels for part in explain(kernel).parts))
        self.rig = CudaRig([ArgumentKind.TENSOR] * kinds, lambda _: None)
        self.rig.add(self.program)

    def compared(self, arguments: Sequence[Tensor]) -> Followed:
        """Assert that what is said for arguments is what is launched for them."""
        self.rig.gpu.launches.clear()
        outputs = len(self.program.body[-1].tensors)
        assert self.rig.call(*arguments, outputs=outputs) is not None
        found = followed(self.program, [tuple(x.shape) for x in arguments])
        said = [item for item in found.launches if item.blocks]
        launched = self.rig.gpu.launches
        assert found.complete
        assert [(item.kernel, item.blocks, item.threads) for item in said] == [*map(grid, launched)]
        assert [item.form for item in said] == [grid_of(item.kernel).form for item in launched]
        assert [bool(item.atomic) for item in said] == [adds_atomically(item.kernel) for item in launched]
        lines = self.explanation.lines(found.taken)
        names = {line.loop for line in lines}
        roles = {
            (line.loop, role, line.lanes if role == "parallel" else 0, line.together > 1 and role != "thread")
            for line in lines
            for role in line.role.split()
            if role != "sequential"
        }
        run = {item for launch in launched for item in roles_in(launch.kernel) if item[0] in names}
        assert roles == {item for item in run if item[3] or (*item[:3], True) not in run}
        atomic = {name for line in lines for name in line.atomic}
        assert atomic == {name.removesuffix("_copies") for item in said for name in item.atomic}
        return found


def grid(launch: Launched) -> tuple[str, int, int]:
    return launch.kernel.name, math.prod(launch.grid), math.prod(launch.block)


def roles_in(kernel: Kernel) -> Iterator[tuple[str, str, int, bool]]:
    """Yield the loops of a kernel that are shared out: name in the source, role, lanes, and whether several go at once.

    Kernels that join the results of pieces have none that the source has.
    """
    joins = any(isinstance(node, Load) and node.tensor.name.endswith("_partial") for node in walk(kernel.body))
    for node in () if joins else statements(kernel.body):
        if isinstance(node, For) and node.role is not Role.SEQUENTIAL:
            name = re.sub("_(block|chunk|tile)$", "", node.index.name)
            lanes = node.width if node.role is Role.PARALLEL else 0
            yield name, node.role.value, lanes, node.index.name.endswith("_block")


@cache
def adds_atomically(kernel: Kernel) -> bool:
    """Whether the PTX of a kernel adds to elements in one step; that a check takes a lock is no matter here."""
    module = Module()
    emit_device_kernel(module, kernel, TARGET)
    text = module.text()
    if re.search(r"atomicrmw f?add", text) is None:
        return False
    return re.search(r"\b(atom|red)\.\S*add", assembly(text, TARGET)) is not None


def signature_of(arguments: Sequence[Tensor]) -> Signature:
    kinds = (tensor_type(DTYPES[str(x.dtype).removeprefix("torch.")], x.shape, x.stride()) for x in arguments)
    return Signature(tuple(kinds), device="cuda", narrow=True, aligned=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function.__name__)
def test_what_is_said_is_what_is_launched(case):
    program = lower(define(case.function), signature_of(case.arguments[0]))
    told = Told(program, len(case.arguments[0]))
    for arguments in case.arguments:
        told.compared(arguments)
    if case.result is None:
        return
    given = [(*arguments, of(*case.result(*arguments))) for arguments in case.arguments]
    wanted = Backward(tuple(x.is_floating_point() for x in case.arguments[0]))
    gradient = Told(derive(program, wanted, signature_of(given[0])), len(given[0]))
    for arguments in given:
        gradient.compared(arguments)
