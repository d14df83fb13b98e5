"""The GPUs of this process as native code sees them, the kernels that are loaded on them, and what failed there.

`devices()` is made without CUDA being started. A GPU is made ready when the first call for it misses: its context is
kept, the kernels that are there are loaded on it, and its words in the table (`host/support.py`) are set last.
A kernel is compiled and loaded when it is first launched: entries find 0 in its cell and ask for it.
The record of failures is one for the process; it is read and given back under the lock.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import ModuleType
from typing import Any

import torch

from brickwork.codegen.convention import RECORD_FAILED, RECORD_LOCK, RECORD_OWNER, RECORD_WORDS
from brickwork.codegen.entry_description import EntryDescription
from brickwork.codegen.support import CUDA_ALLOCATE, CUDA_DATA, CUDA_DRAW, kernel_cell
from brickwork.diagnostics.errors import DeviceError, InternalError
from brickwork.host.driver import driver
from brickwork.host.failure import exception_of
from brickwork.host.support import device_table
from brickwork.pytorch import libtorch
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.device_code import Gpu, function_on, load_kernel
from brickwork.target.cuda import OLDEST, cuda_target
from brickwork.target.target import Target

MOST_DEVICES = 64
"""The length of the table; torch itself takes no more."""

_WORD = 8
_RECORD, _RECORD_ON_DEVICE, _TABLE = CUDA_DATA
_LATE = "(found on the GPU by an earlier launch, and told by the first call after it)"


@dataclass(frozen=True, slots=True)
class _Unloaded:
    """A kernel that no call has launched: whose it is, and a GPU of the kind that it is for."""

    artifact: Artifact
    name: str
    index: int


@dataclass(slots=True)
class Devices:
    """What native code and Python know of the GPUs together."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    table: ctypes.Array[ctypes.c_int64] = field(default_factory=ctypes.c_int64 * (1 + 2 * MOST_DEVICES))
    record: int = 0
    """The address of the record; 0 until a GPU is ready."""
    record_on_device: ctypes.c_uint64 = field(default_factory=ctypes.c_uint64)
    process: int = 0
    """The process whose GPUs these are: in one that it forks, CUDA does not work, and the record is not its own."""
    gpus: dict[int, Gpu] = field(default_factory=dict[int, Gpu])
    """The GPUs that are ready, by index."""
    loaded: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    """The kernels that are loaded, each with the architecture that it is for, and its bytes of shared memory."""
    unloaded: dict[int, _Unloaded] = field(default_factory=dict[int, _Unloaded])
    """The others, by the address of the cell."""
    owners: dict[int, EntryDescription] = field(default_factory=dict[int, EntryDescription])
    """What failures mean, by the address of the cell of the specialisation."""
    cells: list[ctypes.Array[ctypes.c_uint64]] = field(default_factory=list[ctypes.Array[ctypes.c_uint64]])
    """The words that hold kernels; entries read them for ever."""

    def ready(self, index: int) -> Gpu:
        """Return a GPU, made ready for calls; DeviceError if it or its driver cannot serve."""
        with self.lock:
            found = self.gpus.get(index)
            if found is not None and self.process == os.getpid():
                return found
            torch.cuda.init()
            nvidia = driver()
            gpu = Gpu(nvidia.name(index), nvidia.capability(index), nvidia.primary_context(index))
            target = target_of(gpu)
            if not self.record:
                with nvidia.using(gpu.context):
                    self.record, self.record_on_device.value = nvidia.pinned(RECORD_WORDS * _WORD)
                self.process = os.getpid()
            for architecture, kernel, shared in self.loaded:
                if architecture == target.cpu:
                    function_on(nvidia, kernel, gpu, shared)
            self.gpus[index] = gpu
            words = device_table([(int(target.cpu.removeprefix("sm_")), gpu.context)])
            self.table[1 + 2 * index], self.table[2 + 2 * index] = words[1:]
            self.table[0] = torch.cuda.device_count()
            return gpu

    def link(self, artifact: Artifact, index: int) -> Mapping[str, int]:
        """Return what the entry of an artifact for GPUs like this one links with; none of its kernels is loaded yet."""
        with self.lock:
            self.ready(index)
            cells = (ctypes.c_uint64 * max(len(artifact.kernels), 1))()
            self.cells.append(cells)
            places = {kernel_cell(number): ctypes.addressof(cells) + _WORD * number for number in range(len(cells))}
            for address, name in zip(places.values(), artifact.kernels, strict=False):
                self.unloaded[address] = _Unloaded(artifact, name, index)
            return places | {_RECORD: self.record, _RECORD_ON_DEVICE: ctypes.addressof(self.record_on_device)}

    def make_ahead(self, artifact: Artifact, index: int, arguments: Sequence[Any]) -> None:
        """Make machine code of the kernels that a call will launch; `arguments` are its sizes and numbers."""
        gpu = self.ready(index)
        if _alike(target_of(gpu)):
            _kernels_ahead().make_ahead(driver(), artifact, gpu, arguments)

    def load(self, cell: int) -> None:
        """Load the kernel of a cell for all GPUs that it can run on, unless another thread has just done so."""
        with self.lock:
            wanted = self.unloaded.get(cell)
            if wanted is None:
                return
            nvidia, target = driver(), target_of(self.ready(wanted.index))
            like = [gpu for gpu in self.gpus.values() if target_of(gpu).cpu == target.cpu]
            kernel = load_kernel(nvidia, wanted.artifact, wanted.name, like, alike=_alike(target))
            self.loaded.append((target.cpu, kernel, wanted.artifact.shared.get(wanted.name, 0)))
            # A kernel is launched on whatever device is current, but a function is found sooner.
            only = torch.cuda.device_count() == 1
            ctypes.c_uint64.from_address(cell).value = function_on(nvidia, kernel, like[0]) if only else kernel
            del self.unloaded[cell]

    def load_all(self, artifact: Artifact) -> None:
        """Load the kernels of an artifact that no call has launched."""
        with self.lock:
            found = {cell: each for cell, each in self.unloaded.items() if each.artifact is artifact}
            gpus = {each.index: self.ready(each.index) for each in found.values()}
            for index, gpu in gpus.items():
                names = [each.name for each in found.values() if each.index == index]
                if _alike(target_of(gpu)):
                    _kernels_ahead().make_together(driver(), artifact, gpu, names)
            for cell in found:
                self.load(cell)

    def load_for_launch(self, cell: int, stream: int, operator: str) -> None:
        """Load the kernel of a cell that is to be launched on a stream, unless a CUDA graph is being captured there."""
        if driver().is_capturing(stream):
            raise _unprepared(operator, "the stream")
        self.load(cell)

    def like(self, architecture: str) -> Gpu | None:
        """Return a GPU of this architecture that is ready, or None."""
        return next((gpu for gpu in self.gpus.values() if target_of(gpu).cpu == architecture), None)

    def table_symbol(self) -> Mapping[str, int]:
        """Return the table as a symbol for native code."""
        return {_TABLE: ctypes.addressof(self.table)}

    def take_failure(self) -> Exception | None:
        """Return the exception for what a launch has recorded since it was last asked, and give the record back."""
        with self.lock:
            if not self.record or self.process != os.getpid():
                return None
            words = (ctypes.c_uint64 * RECORD_WORDS).from_address(self.record)
            if not words[RECORD_FAILED]:
                return None
            found = list(words)
            words[RECORD_FAILED] = 0
            words[RECORD_LOCK] = 0
            owner = self.owners.get(found[RECORD_OWNER])
        if owner is None:
            return InternalError("a kernel on the GPU recorded a failure that belongs to no operator")
        error = exception_of(found, owner.failures, owner.operator)
        return type(error)(f"{error} {_LATE}")


@functools.cache
def devices() -> Devices:
    """Return the GPUs of this process."""
    return Devices()


def _kernels_ahead() -> ModuleType:
    """Return what compiles, which few processes need."""
    return importlib.import_module("brickwork.runtime.kernels_ahead")


def check_errors() -> None:
    """Wait for the GPUs that have run operators, and raise the error that a kernel on them has found, if any.

    Without it, an error of a kernel (a failed `assert`, an index out of range) is raised by the next call of an
    operator on that GPU. Call it after the replay of a CUDA graph, which calls no operator.

    Raises:
        AssertionError: An `assert` has failed.
        IndexError: An index was out of range.
        ZeroDivisionError: A divisor was 0.
    """
    if not torch.cuda.is_initialized():
        return
    for index in tuple(devices().gpus):
        torch.cuda.synchronize(index)
    error = devices().take_failure()
    if error is not None:
        raise error


def target_of(gpu: Gpu) -> Target:
    """Return what code for a GPU is made for; DeviceError for one that is too old."""
    if gpu.capability < OLDEST:
        have, need = (".".join(map(str, each)) for each in (gpu.capability, OLDEST))
        raise DeviceError(f"{gpu.name} has compute capability {have}, and brickwork needs {need} or later")
    return cuda_target(gpu.capability)


def driver_error(operator: str, code: int) -> Exception:
    """Return the exception for what the driver answered to the entry of an operator; torch's own in a forked child."""
    try:
        torch.cuda.init()
    except RuntimeError as error:
        return error
    if code == CUDA_ALLOCATE:
        return torch.OutOfMemoryError(f"CUDA out of memory: there is none for a random key of {operator}")
    if code == CUDA_DRAW:
        return RuntimeError(f"torch's generator of the device cannot draw a random key for {operator}")
    return RuntimeError(f"CUDA error: {driver().describe(code)} (when launching {operator})")


def out_of_memory(error: MemoryError) -> Exception:
    """Return torch's exception for an allocation that failed on a GPU; in a forked child, what it says of that."""
    try:
        torch.cuda.init()
    except RuntimeError as refused:
        return refused
    return torch.OutOfMemoryError(f"CUDA out of memory: {error}")


def refuse_capture(operator: str, index: int) -> None:
    """Refuse to compile or load while a CUDA graph is being captured."""
    with torch.cuda.device(index):
        if torch.cuda.is_current_stream_capturing():
            raise _unprepared(operator, f"cuda:{index}")


def _unprepared(operator: str, where: str) -> RuntimeError:
    return RuntimeError(
        f"{operator} is not ready for arguments like these on {where}, and cannot be made so while a CUDA graph is"
        f" captured: call {operator.rpartition('::')[2]}.warmup(...) with such arguments before"
    )


def index_of(tensors: Sequence[torch.Tensor]) -> int | None:
    """Return the index of the GPU that tensors with data are on, or None."""
    for tensor in tensors:
        if tensor.device.type == "cuda":
            return tensor.device.index
    return None


def _alike(target: Target) -> bool:
    """Whether all GPUs of the machine that share this PTX have one capability."""
    nvidia = driver()
    found: set[Any] = set()
    for index in range(torch.cuda.device_count()):
        capability = nvidia.capability(index)
        if capability >= OLDEST and cuda_target(capability).cpu == target.cpu:
            found.add(capability)
    return len(found) <= 1


def own_symbols() -> Mapping[str, int]:
    """Return what gates link with besides torch's names where native code can launch kernels."""
    return devices().table_symbol() if libtorch.can_launch() else {}
