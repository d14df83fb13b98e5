"""Runs device kernels without a GPU: their LLVM as host code, once for each thread of each block.

The threads of a block take turns (`grid_threads.py`). Functions of libdevice are those of the C library.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from brickwork.codegen.builder import FailureSite, FunctionWriter, Module
from brickwork.codegen.convention import (
    RECORD_FAILED,
    RECORD_LOCK,
    RECORD_ORDER,
    RECORD_OWNER,
    RECORD_SITE,
    RECORD_VALUES,
    RECORD_WORDS,
    ContextLayout,
    context_layout,
)
from brickwork.codegen.device import emit_device_kernel
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.launch_dimensions import emit_launch_dimensions
from brickwork.codegen.llvm import compile_module, translate_module
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Kernel
from brickwork.runtime.loader import load
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from support.grid_threads import Block, answers, run_straight
from support.machine import Failed, Number

OWNER = 4711
_PARAMETER = re.compile(r"(ptr|i64|double)(?: range\([^)]*\)| \w+| align \d+)*? %(slot\d+)")


def emulated_target(capability: tuple[int, int] = (9, 0)) -> Target:
    """Return a GPU without what a processor has no answer to: products of matrices, bfloat16, clusters of blocks."""
    return replace(cuda_target(capability), matrix="", rounds_bfloat=False, cluster=1)


_MACHINE = """
define internal i32 @emulated_mulhi(i32 %a, i32 %b) {
  %wide = zext i32 %a to i64
  %other = zext i32 %b to i64
  %product = mul i64 %wide, %other
  %high = lshr i64 %product, 32
  %result = trunc i64 %high to i32
  ret i32 %result
}
define internal float @emulated_sqrt(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  ret float %root
}
declare i32 @emulated_equal(i64)
define internal { i32, i1 } @emulated_match(i32 %mask, i64 %value) {
  %found = call i32 @emulated_equal(i64 %value)
  %same = trunc i32 %found to i1
  %pair = insertvalue { i32, i1 } zeroinitializer, i1 %same, 1
  ret { i32, i1 } %pair
}
declare i32 @emulated_votes(i32)
define internal i32 @emulated_ballot(i32 %mask, i1 %value) {
  %word = zext i1 %value to i32
  %found = call i32 @emulated_votes(i32 %word)
  ret i32 %found
}
declare i32 @emulated_active()
declare i32 @emulated_lane()
"""
"""What the machine has instructions for."""

WHOLE_WARPS = False
"""Whether all threads of a warp are together wherever one asks; a test says so that has no others."""


class Emulated:
    """A device kernel compiled for the host."""

    def __init__(
        self,
        kernel: Kernel,
        capability: tuple[int, int] = (9, 0),
        failures: Sequence[FailureSite] = (),
        *,
        optimised: bool = False,
    ) -> None:
        """Emit the kernel for a GPU, after others with these failures, and compile what was emitted for this host.

        It is translated as it stands unless it is to be `optimised`: a GPU's code is optimised for another machine.
        """
        self.kernel, self.module = kernel, Module(failures=list(failures))
        name = emit_device_kernel(self.module, kernel, emulated_target(capability))
        self.layout = context_layout(kernel, device=True)
        self.text = self.module.text()
        text = _for_host(self.text, name, self.layout)
        text += _geometry(kernel, self.layout)
        host = host_target(16)
        address = load((compile_module if optimised else translate_module)(text, host), answers()).address
        self._run = address("run")
        self._geometry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address("geometry"))

    def __call__(self, tensors: Sequence[torch.Tensor], scalars: Sequence[Number] = ()) -> Failed | None:
        """Run on tensors and scalars in the order in which the kernel names them."""
        record = (ctypes.c_int64 * RECORD_WORDS)()
        context = self.context(tensors, scalars, record)
        x, y, block, teams = self.geometry(context)
        self.run_grid((x, y), (block, teams), context)
        if not record[RECORD_FAILED]:
            assert not any(record)
            return None
        assert record[RECORD_LOCK] == 1
        assert record[RECORD_OWNER] == OWNER
        site = self.module.failures[int(record[RECORD_SITE])]
        return Failed(site, record[RECORD_ORDER], tuple(record[RECORD_VALUES : RECORD_VALUES + len(site.values)]))

    def geometry(self, context: Any) -> tuple[int, int, int, int]:
        """Return blocks along x and y, and threads along x and y."""
        found = (ctypes.c_int32 * 4)()
        self._geometry(ctypes.addressof(context), ctypes.addressof(found))
        return found[0], found[1], found[2], found[3]

    def context(self, tensors: Sequence[torch.Tensor], scalars: Sequence[Number], record: Any = None) -> Any:
        """Return the parameters for tensors and scalars, with the address of a record."""
        context = (ctypes.c_int64 * self.layout.length)()
        context[self.layout.record] = ctypes.addressof(record) if record is not None else 0
        context[self.layout.owner or 0] = OWNER
        for tensor, data in zip(self.kernel.tensors, tensors, strict=True):
            slots = self.layout.tensors[tensor]
            numbers = (data.data_ptr(), *data.shape, *data.stride())
            for slot, value in zip((slots.data, *slots.sizes, *slots.strides), numbers, strict=True):
                context[slot] = value
        for symbol, value in zip(self.kernel.scalars, scalars, strict=True):
            context[self.layout.scalars[symbol]] = _bits(symbol.dtype is FLOAT32, symbol.dtype.is_float, value)
        return context

    def run_grid(self, grid: tuple[int, int], block: tuple[int, int], context: Any) -> None:
        """Run all blocks in turn, with the parameters in `context`."""
        x, y = grid
        for number in range(x * y if x else 0):
            self.run_block((number % x, number // x), (x, y), block, context)

    def run_block(self, at: tuple[int, int], grid: tuple[int, int], block: tuple[int, int], context: Any) -> None:
        """Run the block of threads that stands somewhere in a grid."""
        places = (self._run, ctypes.addressof(context), at, grid, block)
        if "sync" in self.text:
            Block(*places, together=lambda: bool(WHOLE_WARPS)).run()
        else:
            run_straight(*places)


def _bits(single: bool, floating: bool, value: Number) -> int:
    if single:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.unpack("<q", struct.pack("<d", value))[0] if floating else int(value)


def _for_host(text: str, name: str, layout: ContextLayout) -> str:
    """Return a device module's text with the host's names for what only GPUs have."""
    text = re.sub(r" addrspace\([13]\)", "", text)
    text = re.sub(r'call void asm sideeffect "[^"]*exit; }".*\n\s*br label \S+', "ret void", text)
    text = re.sub(
        r'call i32 asm sideeffect "activemask[^"]*", "=r"\(\) convergent', "call i32 @emulated_active()", text
    )
    text = text.replace("@llvm.nvvm.read.ptx.sreg.laneid()", "@emulated_lane()")
    text = re.sub(r"declare .*emulated_lane.*\n", "", text)
    text = re.sub(r"@llvm\.nvvm\.match\.all\.sync\.i64p\(", "@emulated_match(", text)
    text = text.replace("@llvm.nvvm.vote.ballot.sync(", "@emulated_ballot(")
    text = text.replace("ptx_kernel ", "").replace(' syncscope("device")', "")
    text = re.sub(
        r"@llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+?)\(", lambda m: f"@emulated_sreg_{m[1].replace('.', '_')}(", text
    )
    text = re.sub(r"@llvm\.nvvm\.barrier\.[\w.]+\(", "@emulated_barrier(", text)
    text = text.replace("@llvm.nvvm.bar.warp.sync(", "@emulated_warp_barrier(")
    text = re.sub(r"@llvm\.nvvm\.shfl\.sync\.(\w+)\.i32\(", r"@emulated_shuffle_\1(", text)
    text = text.replace("@__nv_", "@").replace("@llvm.nvvm.mulhi.ui", "@emulated_mulhi")
    text = re.sub(r"@llvm\.nvvm\.(\w+)\.approx\.ftz\.f", r"@emulated_\1", text)
    text = re.sub(r"declare .*@emulated_(mulhi|sqrt|match|ballot)\(.*", "", text) + _MACHINE
    head = next(line for line in text.splitlines() if f"@{name}(" in line)
    kinds = {match[2]: match[1] for match in _PARAMETER.finditer(head)}
    assert len(kinds) == layout.length, head
    lines = ["define void @run(ptr %context) {"]
    for slot in range(layout.length):
        lines.append(f"  %at{slot} = getelementptr i64, ptr %context, i64 {slot}")
        lines.append(f"  %v{slot} = load {kinds[f'slot{slot}']}, ptr %at{slot}")
    arguments = ", ".join(f"{kinds[f'slot{slot}']} %v{slot}" for slot in range(layout.length))
    lines += [f"  call void @{name}({arguments})", "  ret void", "}", ""]
    return text + "\n".join(lines)


def _geometry(kernel: Kernel, layout: ContextLayout) -> str:
    """Return a function that writes the grid and block for a context."""
    module = Module()
    writer = FunctionWriter(module, "geometry", "void", (("ptr", "context"), ("ptr", "out")))
    state = State(module, host_target(16), kernel, layout, writer, "%context", "0")
    found = emit_launch_dimensions(lambda expression: emit_scalar(state, expression), writer, kernel)
    for number, text in enumerate((found.x, found.y, found.block, found.teams)):
        writer.store("i32", text, writer.emit(f"getelementptr i32, ptr %out, i64 {number}"))
    writer.terminate("ret void")
    writer.close()
    text = re.sub(r", !invariant\.load !\d+", "", module.text())
    return "\n".join(line for line in text.splitlines() if not line.startswith("!")) + "\n"
