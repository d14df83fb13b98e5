"""What `explain` says of a GPU against what is launched: versions, kernels, grids, roles of loops, and atomics.

The driver of the tests records launches and runs nothing, so that arguments may be as large as those that choose tiles.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch

from brickwork.codegen.builder import Module
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.grid import grid_of
from brickwork.codegen.llvm import assembly
from brickwork.host.layout import tensor_type
from brickwork.ir import nodes as ir
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import Block, For, If, Kernel, Launch, Load, Program, Role, Store, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.launches import MOST_LAUNCHES, Followed, followed
from brickwork.transform.derivation import Backward
from brickwork.transform.explain import explain
from brickwork.transform.explanation import Explanation, Line
from support.emulated import emulated_target
from support.fake_cuda import CudaRig, Launched
from support.launched_programs import (
    attention,
    balanced,
    batch_norm,
    causal,
    columns,
    convolved,
    covariance,
    diffused,
    edit,
    embedding,
    energy,
    farthest,
    histogram,
    linear_attention,
    mlp,
    moments,
    nearest,
    neighbours,
    nll,
    normalised,
    product,
    recurrence,
    row_sums,
    scaled,
    segments,
    shifted,
    sinkhorn,
    smoothed,
    softmax,
    steps_of_cells,
    two_sums,
    windows,
    written,
)
from support.layouts import products_of_rows
from support.shared import define, derive, lower, schedule_program

Tensor = torch.Tensor
TARGET = emulated_target()


def of(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype)


def ids(*shape: int) -> Tensor:
    return of(*shape, dtype=torch.int64)


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
    # The grid is launched for each step.
    Case(
        balanced,
        [(of(2, 9), of(9, 7), of(3)), (of(2, 1024), of(1024, 1024), of(20)), (of(512, 1024), of(1024, 1024), of(20))],
    ),
    Case(
        sinkhorn,
        [(of(2, 9, 7), of(3)), (of(2, 1024, 1024), of(20)), (of(600, 64, 64), of(20))],
        lambda c, n: (c.shape[0], c.shape[2]),
    ),
    Case(
        steps_of_cells,
        [(of(2, 5, 8), of(8, 8)), (of(4, 64, 512), of(512, 512)), (of(1024, 64, 32), of(32, 32))],
        lambda x, r: (x.shape[0], x.shape[1] + 1, x.shape[2]),
    ),
    # Teams of a warp, and of parts of it.
    Case(row_sums, [(of(7, 5),), (of(100000, 32),), (of(100000, 8),), (of(64, 1 << 20),)], lambda x: x.shape[:1]),
    Case(
        neighbours,
        [(of(2, 9, 16), of(2, 9, 16)), (of(64, 4096, 32), of(64, 4096, 32)), (of(4, 64, 256), of(4, 64, 256))],
        lambda q, k: (*q.shape[:2], 7),
    ),
    # Sums that are cut into pieces.
    Case(energy, [(of(7, 5),), (of(4096, 4096),), (of(1, 1 << 20),), (of(1 << 20, 2),)], lambda x: (1,)),
    Case(nll, [(of(7, 5), ids(7)), (of(1 << 18, 100), ids(1 << 18))], lambda x, y: ()),
    Case(covariance, [(of(7, 5),), (of(4096, 256),), (of(1 << 16, 16),)], lambda x: (x.shape[1], x.shape[1])),
    Case(moments, [(of(2, 3, 5),), (of(64, 64, 1024),), (of(4, 2, 1 << 20),)], lambda x: (x.shape[1], 2)),
    Case(batch_norm, [(of(2, 3, 5), of(3)), (of(4, 2, 1 << 20), of(2))], lambda x, w: x.shape),
    Case(two_sums, [(of(9, 3), of(9, 4)), (of(1 << 16, 3), of(100, 64)), (of(4096, 4096), of(4096, 4096))]),
    # Versions for each nest.
    Case(
        mlp,
        [
            (of(7, 5), of(5, 6), of(6, 4)),
            (of(512, 512), of(512, 512), of(512, 512)),
            (of(512, 512), of(512, 64), of(64, 7)),
            (of(16, 4096), of(4096, 4096), of(4096, 4096)),
        ],
        lambda x, v, w: (x.shape[0], w.shape[1]),
    ),
    # Kernels beside others: with parts of scratch tensors, for the last stores, for rows that ascend.
    Case(attention, [(of(2, 5, 8), of(2, 9, 8), of(2, 9, 8)), (of(32, 512, 64),) * 3]),
    Case(linear_attention, [(of(2, 5, 16),) * 3, (of(64, 512, 16),) * 3], lambda q, k, v: q.shape),
    Case(written, [(of(9, 4), of(3, 4), ids(3)), (of(90000, 128), of(4096, 128), ids(4096))], lambda c, x, s: c.shape),
    Case(segments, [(of(9), ids(3)), (of(1 << 20), ids(400)), (of(1 << 20), ids(1 << 14))], lambda x, p: x.shape),
    Case(nearest, [(of(9, 3), of(4, 3)), (of(1 << 16, 3), of(64, 3)), (of(16, 64), of(1 << 16, 64))]),
    Case(edit, [(ids(2, 5), ids(2, 6)), (ids(256, 100), ids(256, 120))]),
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
        """Assert that what is said for arguments is what is launched for them.

        Loops that run no iteration for them are said to run as they would. Of very many launches the
        first ones are said.
        """
        self.rig.gpu.launches.clear()
        outputs = len(self.program.body[-1].tensors)
        assert self.rig.call(*arguments, outputs=outputs) is not None
        found = followed(self.program, [tuple(x.shape) for x in arguments])
        said = [item for item in found.launches if item.blocks]
        launched = [item.kernel for item in self.rig.gpu.launches]
        could = [*reachable(self.program.body, found.taken)]
        assert found.complete or len(found.launches) == MOST_LAUNCHES
        launched, grids = launched[: len(said)], [*map(grid, self.rig.gpu.launches)]
        assert [(item.kernel, item.blocks, item.threads) for item in said] == grids[
            : None if found.complete else len(said)
        ]
        assert [item.form for item in said] == [grid_of(kernel).form for kernel in launched]
        assert [bool(item.atomic) for item in said] == [*map(updates_atomically, launched)]
        lines = self.explanation.lines(found.taken)
        names = {place(line) for line in lines}
        roles = {
            (place(line), role, line.lanes if role == "parallel" else 0, line.together > 1 and role != "thread")
            for line in lines
            for role in line.role.split()
            if role != "sequential"
        }
        # What is said to go several at once goes one by one where there are too few, or where some are left.
        run, may_run = (
            {item for kernel in kernels for item in roles_in(kernel) if item[0] in names}
            for kernels in (launched, could)
        )
        assert run <= roles | {(*item[:3], False) for item in roles}
        assert roles <= may_run
        atomic = {name for line in lines for name in line.atomic}
        assert {name.removesuffix("_copies") for item in said for name in item.atomic} <= atomic
        assert atomic <= {tensor.name for kernel in could for tensor in updated(kernel)}
        return found


def reachable(block: Block, taken: Mapping[str, bool]) -> Iterator[Kernel]:
    """Yield the kernels that are launched for some sizes that make these choices."""
    for statement in block:
        match statement:
            case Launch(kernel=kernel):
                yield kernel
            case If(version=version, then=then, otherwise=otherwise):
                yield from reachable(then, taken) if taken.get(version) is not False else ()
                yield from reachable(otherwise, taken) if taken.get(version) is not True else ()
            case For(body=body):
                yield from reachable(body, taken)
            case While(prelude=prelude, body=body):
                yield from reachable((*prelude, *body), taken)
            case _:
                pass


def place(line: Line) -> str:
    """Return the loop that a line is about: its name in the source, and where it stands."""
    return line.text.strip().split(": ")[0]


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
            yield f"for {name} at {node.loc}", node.role.value, lanes, node.index.name.endswith("_block")


def updated(kernel: Kernel) -> set[ir.Tensor]:
    """Return the tensors that a kernel updates in one step."""
    return {node.tensor for node in statements(kernel.body) if isinstance(node, Store) and node.combine is not None}


@cache
def updates_atomically(kernel: Kernel) -> bool:
    """Whether the PTX of a kernel updates elements in one step; that a check takes a lock is no matter here."""
    module = Module()
    emit_device_kernel(module, kernel, TARGET)
    text = module.text()
    if re.search(r"atomicrmw (f?add|u?max|u?min|fmax|fmin) ", text) is None:
        return False
    return re.search(r"\b(atom|red)\.\S*(add|max|min)", assembly(text, TARGET)) is not None


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
