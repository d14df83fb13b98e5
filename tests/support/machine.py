"""Runs kernels as machine code on torch tensors, without the operator around them; and in the interpreter beside it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch

from brickwork.codegen.builder import FailureSite, Module
from brickwork.codegen.convention import (
    RECORD_FAILED,
    RECORD_ORDER,
    RECORD_SITE,
    RECORD_VALUES,
    RECORD_WORDS,
    context_layout,
)
from brickwork.codegen.kernel import emit_kernel
from brickwork.codegen.llvm import compile_module
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.interpret import Memory, run_kernel
from brickwork.ir.nodes import Block, For, If, Kernel, Role, Statement, Tensor, TensorType, While
from brickwork.runtime.loader import load
from brickwork.target.cpu import host_target
from brickwork.target.target import Target

Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Failed:
    """What a kernel recorded of a failed check."""

    site: FailureSite
    order: int
    values: tuple[int, ...]


@cache
def _torch() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


class _Exports(dict[str, int]):
    """The functions that torch exports, by name."""

    def get(self, name: str, default: Any = None) -> Any:
        function = getattr(_torch(), name, None)
        return default if function is None else ctypes.cast(function, ctypes.c_void_p).value


class Machine:
    """A compiled kernel."""

    def __init__(self, kernel: Kernel, target: Target | None = None, rounding: Rounding = SOURCE) -> None:
        """Compile and load the kernel for this host."""
        self.kernel = kernel
        self.target = target or host_target()
        self.module = Module(rounding=rounding)
        name = emit_kernel(self.module, kernel, self.target).removeprefix("@")
        loaded = load(compile_module(self.module.text(), self.target), _Exports())
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address(name))

    def __call__(self, tensors: Sequence[torch.Tensor], scalars: Sequence[Number] = ()) -> Failed | None:
        """Run on tensors and scalars in the order in which the kernel names them."""
        layout = context_layout(self.kernel)
        record = (ctypes.c_int64 * RECORD_WORDS)()
        context = (ctypes.c_int64 * layout.length)()
        context[layout.record] = ctypes.addressof(record)
        for tensor, data in zip(self.kernel.tensors, tensors, strict=True):
            slots = layout.tensors[tensor]
            for slot, value in zip(
                (slots.data, *slots.sizes, *slots.strides), (data.data_ptr(), *data.shape, *data.stride()), strict=True
            ):
                context[slot] = value
        for symbol, value in zip(self.kernel.scalars, scalars, strict=True):
            bits = struct.unpack("<q", struct.pack("<d", value))[0] if symbol.dtype.is_float else int(value)
            context[layout.scalars[symbol]] = bits
        self._function(ctypes.addressof(context))
        if not record[RECORD_FAILED]:
            return None
        site = self.module.failures[int(record[RECORD_SITE])]
        return Failed(site, record[RECORD_ORDER], tuple(record[RECORD_VALUES : RECORD_VALUES + len(site.values)]))


def tensor_type(data: torch.Tensor) -> TensorType:
    """Return what a compilation knows of a tensor."""
    units = [axis for axis in range(data.dim()) if data.stride(axis) == 1 or data.shape[axis] <= 1]
    dtype = DTYPES[str(data.dtype).removeprefix("torch.")]
    return TensorType(dtype, data.dim(), data.is_contiguous(), units[-1] if units else None)


def interpreted(kernel: Kernel, tensors: Sequence[torch.Tensor], scalars: Sequence[Number] = ()) -> list[torch.Tensor]:
    """Return copies of the tensors after the kernel has run on them in the interpreter."""
    copies = [data.detach().clone().contiguous() for data in tensors]
    memories = [
        Memory(cast("Any", copy.flatten()).tolist(), tuple(copy.shape), copy.stride(), tensor.type.dtype)
        for copy, tensor in zip(copies, kernel.tensors, strict=True)
    ]
    run_kernel(kernel, memories, scalars)
    return [
        torch.tensor(memory.data, dtype=copy.dtype).reshape(copy.shape)
        for memory, copy in zip(memories, copies, strict=True)
    ]


def scheduled(kernel: Kernel, roles: dict[str, tuple[Role, int]]) -> Kernel:
    """Return the kernel with roles and widths given by the names of loop indices."""

    def visit(block: Block) -> Block:
        return tuple(change(statement) for statement in block)

    def change(statement: Statement) -> Statement:
        match statement:
            case For():
                role, width = roles.get(statement.index.name, (Role.SEQUENTIAL, 1))
                return replace(statement, role=role, width=width, body=visit(statement.body))
            case If():
                return replace(statement, then=visit(statement.then), otherwise=visit(statement.otherwise))
            case While():
                return replace(statement, prelude=visit(statement.prelude), body=visit(statement.body))
            case _:
                return statement

    return replace(kernel, body=visit(kernel.body))


def named(name: str, number: int, data: torch.Tensor) -> Tensor:
    """Return the IR's tensor for `data`."""
    return Tensor(name, number, tensor_type(data))
