"""A GPU that is not there: entries for CUDA run on CPU tensors; torch's CUDA functions and the driver are played here.

The fake driver runs a launched kernel on the memory that its context names, in the interpreter unless told otherwise.
Handles are counted.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import torch

from brickwork.codegen.builder import FailureSite, Module
from brickwork.codegen.convention import RECORD_FAILED, RECORD_OWNER, RECORD_WORDS, context_layout
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.grid import grid_of
from brickwork.codegen.llvm import compile_module, translate_module
from brickwork.codegen.support import CUDA_CALLBACKS, CUDA_FUNCTIONS, CUDA_LOAD, FUNCTIONS, kernel_cell
from brickwork.host import support
from brickwork.host.failure import exception_of
from brickwork.ir.dtypes import BOOL, DType
from brickwork.ir.interpret import Memory, run_kernel
from brickwork.ir.nodes import Kernel, Launch, Program
from brickwork.ir.scalar_semantics import Number
from brickwork.ir.walk import walk
from brickwork.pytorch import libtorch
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.loader import LoadedObject, load
from brickwork.target.cpu import host_target
from support.emulated import emulated_target

CONTEXTS = (0xC0, 0xC1)
"""The primary contexts of the two devices."""
STREAMS = (0x50, 0x51)
ARCHITECTURE = 90
DRAWN = 0x0123_4567_89AB_CDEF
"""What the fake generator draws."""

_WORD, _POINTER, _INT = ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int32
_SLOTS = {
    ArgumentKind.TENSOR: support.TENSOR,
    ArgumentKind.OPTIONAL_TENSOR: support.OPTIONAL_TENSOR,
    ArgumentKind.INT_LIST: support.LIST,
}
_ELEMENTS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64, "int32": ctypes.c_int32}


_CLUSTER_DIMENSION = 4
"""CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION."""


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute of the dimensions of a cluster."""

    _fields_ = (("kind", _INT), ("padding", ctypes.c_char * 4), ("sizes", _INT * 3), ("rest", ctypes.c_char * 52))


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", _INT * 3),
        ("block", _INT * 3),
        ("shared", _INT),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", _INT),
    )


@dataclass(frozen=True)
class Launched:
    """A launch as the driver saw it."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stream: int
    context: int
    words: tuple[int, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)


@dataclass
class Gpu:
    """What the fake functions read and write."""

    launches: list[Launched] = field(default_factory=list[Launched])
    kernels: dict[int, Kernel] = field(default_factory=dict[int, Kernel])
    places: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Kind and index of the device by the address of a TensorImpl; (1, 0) for the rest."""
    contexts: list[int] = field(default_factory=lambda: [CONTEXTS[0]])
    """The stack of current contexts."""
    handles: int = 0
    """Handles that have an owner."""
    memsets: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    allocated: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Kind and index of the device of each tensor that was made."""
    refused: int = 0
    """The driver's answer to launches."""
    loads_late: bool = False
    """Whether the cells of kernels are empty until a launch asks for them."""
    loads: list[int] = field(default_factory=list[int])
    """The streams of launches that asked for a kernel."""
    unloadable: bool = False
    """Whether no kernel can be loaded."""
    full: bool = False
    """Whether torch finds no memory."""
    exhausted: bool = False
    """Whether torch's generator refuses."""
    deterministic: bool = False
    warns: bool = False


class CudaRig:
    """The gate of one operator without torch's dispatcher: a chain of entries and the fake functions."""

    def __init__(self, kinds: Sequence[ArgumentKind], execute: Callable[[Launched], None] | None = None) -> None:
        """Load the support object for an operator with these arguments; `execute` does what a launch is to do."""
        self.gpu = Gpu()
        self.execute: Callable[[Launched], None] = execute or interpret
        self.missed = 0
        self.thrown: BaseException | None = None
        self.pending: BaseException | None = None
        self.asked = 0
        self._kinds = tuple(kinds)
        self._kept: list[Any] = []
        self._placed: list[torch.Tensor] = []
        self._exceptions: list[BaseException] = []
        self._failures: dict[int, tuple[tuple[FailureSite, ...], str]] = {}
        self._owners: dict[int, int] = {}
        self._handles: dict[int, int] = {}
        self.record = (_WORD * RECORD_WORDS)()
        self.record_on_device = _WORD(ctypes.addressof(self.record))
        table = support.device_table([(ARCHITECTURE, context) for context in CONTEXTS])
        self.devices = (_WORD * len(table))(*table)
        arguments = support.argument_table(
            -1,
            0,
            0,
            [0] * 4,
            libtorch.dispatch_key("ADInplaceOrView"),
            [_SLOTS.get(kind, 0) for kind in kinds],
            locks=False,
        )
        self._table = (ctypes.c_int64 * len(arguments))(*arguments)
        self.symbols = self._fakes() | {
            "bw_table": ctypes.addressof(self._table),
            "bw_record": ctypes.addressof(self.record),
            "bw_record_device": ctypes.addressof(self.record_on_device),
            "bw_devices": ctypes.addressof(self.devices),
        }
        self._head = self._cell(self._callback(self._miss, None, _POINTER, _WORD, _WORD))
        unused = self._callback(lambda *_: 0, _WORD, _WORD, _WORD, _WORD, _WORD)
        symbols = self.symbols | dict.fromkeys(("bw_type_name", "bw_on_miss", "bw_on_autograd"), unused)
        functions = load(_support(), libtorch.TorchSymbols({**symbols, "bw_next": ctypes.addressof(self._head)}))
        names = [name for name in (*FUNCTIONS, *CUDA_FUNCTIONS) if name not in self.symbols]
        self.symbols |= {name: functions.address(name) for name in names}

    # ------------------------------------------------------------ entries

    def add(
        self,
        program: Program,
        *,
        nondeterministic: bool = False,
        before: Sequence[FailureSite] = (),
        optimised: bool = False,
    ) -> None:
        """Compile an entry, as it stands unless it is to be `optimised`, and put it in front of the chain."""
        module, cells = Module(failures=list(before)), dict[str, str]()
        symbols = dict(self.symbols)
        for number, node in enumerate(node for node in walk(program.body) if isinstance(node, Launch)):
            handle = 0xAB00 + len(self.gpu.kernels)
            self.gpu.kernels[handle] = node.kernel
            cell = _WORD(0 if self.gpu.loads_late else handle)
            self._handles[ctypes.addressof(cell)] = handle
            self._kept.append(cell)
            cells[node.kernel.name] = kernel_cell(number)
            symbols[kernel_cell(number)] = ctypes.addressof(cell)
        target = host_target()
        description = emit_entry(module, program, cells, target, emulated_target(), nondeterministic=nondeterministic)
        number = len(self._failures)
        self._failures[number] = (description.failures, description.operator)
        cell = self._cell(self._head[0], number)
        symbols["bw_next"] = self.next = ctypes.addressof(cell)
        self._owners[self.next] = number
        code = (compile_module if optimised else translate_module)(module.text(), target)
        loaded: LoadedObject = load(code, libtorch.TorchSymbols(symbols))
        self._kept.append(loaded)
        self._head[0] = loaded.address(description.symbol)

    def call(self, *values: object, outputs: int = 1) -> list[torch.Tensor] | None:
        """Call the chain; return the results, or None if no entry matched. Raises what an entry throws."""
        self.thrown, missed = None, self.missed
        stack = (_WORD * max(len(values), outputs, 1))(
            *(self._word(v, k) for v, k in zip(values, self._kinds, strict=True))
        )
        entry = ctypes.CFUNCTYPE(None, _POINTER, _WORD, _WORD)(self._head[0])
        entry(ctypes.addressof(stack), len(values), outputs)
        if self.thrown is not None:
            raise self.thrown
        if self.missed != missed:
            self._release(stack, values)
            return None
        results = [libtorch.tensor_of(stack[index]) for index in range(outputs)]
        for index in range(outputs):
            self._delete(stack[index])
        return results

    def fail_on_device(self) -> None:
        """Do as a kernel does whose check fails."""
        self.record[RECORD_FAILED] = 1

    def place(self, tensor: torch.Tensor, kind: int, index: int) -> torch.Tensor:
        """Say on which device a tensor is taken to be."""
        handle = libtorch.handle_of(tensor)
        self.gpu.places[_impl(handle)] = (kind, index)
        libtorch.libraries()[0].aoti_torch_delete_tensor_object(_POINTER(handle))
        self._placed.append(tensor)
        return tensor

    # ------------------------------------------------------------ the stack

    def _word(self, value: object, kind: ArgumentKind) -> int:
        if isinstance(value, torch.Tensor):
            self.gpu.handles += 1
            handle = libtorch.handle_of(value)
            if all(value is not placed for placed in self._placed):
                self.gpu.places.pop(_impl(handle), None)
            if kind is not ArgumentKind.OPTIONAL_TENSOR:
                return handle
            new = libtorch.libraries()[0]._Znwm
            new.restype = _POINTER
            place = new(ctypes.c_size_t(8))
            _WORD.from_address(place).value = handle
            return place
        if isinstance(value, list | tuple):
            return _list(cast("Sequence[float]", value))
        return _bits(value) if isinstance(value, int | float) else 0

    def _release(self, stack: Any, values: Sequence[object]) -> None:
        release = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)(self.symbols["bw_release"])
        release(ctypes.addressof(stack), ctypes.addressof(self._table))
        del values

    def _cell(self, *words: int) -> Any:
        cell = (_WORD * 2)(*words)
        self._kept.append(cell)
        return cell

    # ------------------------------------------------------------ Python's part

    def _miss(self, stack: int, inputs: int, outputs: int) -> None:
        del stack, inputs, outputs
        self.missed += 1

    def _throw(self, exception: int, inputs: int, outputs: int) -> None:
        del inputs, outputs
        self.thrown = self._exceptions[exception - 1]

    def _exception(self, error: BaseException) -> int:
        self._exceptions.append(error)
        return len(self._exceptions)

    def _failed(self, number: int, record: int) -> int:
        failures, operator = self._failures[number]
        return self._exception(exception_of(list((_WORD * RECORD_WORDS).from_address(record)), failures, operator))

    def _cuda_failed(self, number: int, error: int) -> int:
        code = ctypes.c_int64(error).value
        return self._exception(RuntimeError(f"the driver's error {code} in specialisation {number}"))

    def _cuda_load(self, cell: int, stream: int) -> int:
        self.gpu.loads.append(stream)
        if self.gpu.unloadable:
            return CUDA_LOAD
        _WORD.from_address(cell).value = self._handles[cell]
        return 0

    def _cuda_pending(self) -> int:
        self.asked += 1
        found = list(self.record)
        self.record[:] = [0] * RECORD_WORDS
        if found[RECORD_OWNER]:
            failures, operator = self._failures[self._owners[found[RECORD_OWNER]]]
            return self._exception(exception_of(found, failures, operator))
        return 0 if self.pending is None else self._exception(self.pending)

    # ------------------------------------------------------------ the fake functions

    def _callback(self, function: Callable[..., Any], result: Any, *parameters: Any) -> int:
        made = ctypes.CFUNCTYPE(result, *parameters)(function)
        self._kept.append(made)
        return ctypes.cast(made, _POINTER).value or 0

    def _fakes(self) -> dict[str, int]:
        make = self._callback
        flag = ctypes.c_uint8
        return {
            "bw_throw": make(self._throw, None, _WORD, _WORD, _WORD),
            "bw_failed": make(self._failed, _WORD, _WORD, _WORD),
            CUDA_CALLBACKS[0]: make(self._cuda_pending, _WORD),
            CUDA_CALLBACKS[1]: make(self._cuda_failed, _WORD, _WORD, _WORD),
            CUDA_CALLBACKS[2]: make(self._cuda_load, _WORD, _WORD, _WORD),
            "aoti_torch_get_device_type": make(self._device_type, _INT, _POINTER, _POINTER),
            "aoti_torch_get_device_index": make(self._device_index, _INT, _POINTER, _POINTER),
            "aoti_torch_get_current_cuda_stream": make(self._stream, _INT, _INT, _POINTER),
            "aoti_torch_cuda_randint_low_out": make(self._draw, _INT, _POINTER, _WORD, _WORD, _POINTER, _WORD),
            "aoti_torch_empty_strided": make(self._empty, _INT, _WORD, _POINTER, _POINTER, _INT, _INT, _INT, _POINTER),
            "aoti_torch_new_tensor_handle": make(self._share, _INT, _POINTER, _POINTER),
            "aoti_torch_delete_tensor_object": make(self._delete, _INT, _POINTER),
            "_ZN2at13globalContextEv": make(lambda: 1, _WORD),
            "_ZNK2at7Context23deterministicAlgorithmsEv": make(self._deterministic, flag, _WORD),
            "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv": make(self._warns, flag, _WORD),
            "cuCtxGetCurrent": make(self._current, _INT, _POINTER),
            "cuCtxPushCurrent_v2": make(self._push, _INT, _WORD),
            "cuCtxPopCurrent_v2": make(self._pop, _INT, _POINTER),
            "cuMemsetD32Async": make(self._memset, _INT, _WORD, ctypes.c_uint32, _WORD, _WORD),
            "cuLaunchKernel": make(self._launch, _INT, _WORD, *(_INT,) * 7, _WORD, _POINTER, _POINTER),
            "cuLaunchKernelEx": make(self._launch_configured, _INT, _POINTER, _WORD, _POINTER, _POINTER),
        }

    def _deterministic(self, settings: int) -> bool:
        del settings
        return self.gpu.deterministic

    def _warns(self, settings: int) -> bool:
        del settings
        return self.gpu.warns

    def _device_type(self, handle: int, out: int) -> int:
        _INT.from_address(out).value = self.gpu.places.get(_impl(handle), (1, 0))[0]
        return 0

    def _device_index(self, handle: int, out: int) -> int:
        _INT.from_address(out).value = self.gpu.places.get(_impl(handle), (1, 0))[1]
        return 0

    def _stream(self, device: int, out: int) -> int:
        _WORD.from_address(out).value = STREAMS[device]
        return 0

    def _draw(self, handle: int, low: int, high: int, sizes: int, count: int) -> int:
        assert (low, high, count, ctypes.c_int64.from_address(sizes).value) == (0, 2**63 - 1, 1, 1)
        libtorch.tensor_of(handle).fill_(DRAWN)
        return int(self.gpu.exhausted)

    def _empty(self, rank: int, sizes: int, strides: int, dtype: int, kind: int, index: int, out: int) -> int:
        if self.gpu.full:
            _WORD.from_address(out).value = 0xBAD
            return 1
        self.gpu.allocated.append((kind, index))
        real = libtorch.libraries()[0].aoti_torch_empty_strided
        arguments = (_WORD(rank), _POINTER(sizes), _POINTER(strides), _INT(dtype), _INT(0), _INT(0), _POINTER(out))
        code = int(real(*arguments))
        if not code:
            self.gpu.handles += 1
            self.gpu.places[_impl(_WORD.from_address(out).value)] = (kind, index)
        return code

    def _share(self, handle: int, out: int) -> int:
        self.gpu.handles += 1
        return int(libtorch.libraries()[0].aoti_torch_new_tensor_handle(_POINTER(handle), _POINTER(out)))

    def _delete(self, handle: int) -> int:
        self.gpu.handles -= 1
        return int(libtorch.libraries()[0].aoti_torch_delete_tensor_object(_POINTER(handle)))

    def _current(self, out: int) -> int:
        _WORD.from_address(out).value = self.gpu.contexts[-1] if self.gpu.contexts else 0
        return 0

    def _push(self, context: int) -> int:
        self.gpu.contexts.append(context)
        return 0

    def _pop(self, out: int) -> int:
        _WORD.from_address(out).value = self.gpu.contexts.pop()
        return 0

    def _memset(self, address: int, value: int, count: int, stream: int) -> int:
        assert count == 1
        self.gpu.memsets.append((address, value, stream))
        ctypes.c_uint32.from_address(address).value = value
        return 0

    def _launch_configured(self, config: int, kernel: int, parameters: int, extra: int) -> int:
        found = _Configuration.from_address(config)
        attribute = found.attributes[0]
        assert (found.count, attribute.kind) == (1, _CLUSTER_DIMENSION)
        sizes = (*found.grid, *found.block, found.shared, found.stream, parameters, extra)
        return self._launch(kernel, *sizes, cluster=tuple(attribute.sizes))

    def _launch(self, kernel: int, *rest: Any, cluster: tuple[int, int, int] = (1, 1, 1)) -> int:
        x, y, z, *block, shared, stream, parameters, extra = rest
        assert (parameters, z) == (None, 1)
        assert x % cluster[0] == 0
        tile = grid_of(self.gpu.kernels[kernel]).tile
        assert shared == (0 if tile is None else tile.shared_bytes)
        if self.gpu.refused:
            return self.gpu.refused
        marks = (_WORD * 5).from_address(extra)
        assert (marks[0], marks[2], marks[4]) == (1, 2, 0)
        size = _WORD.from_address(marks[3]).value
        words = tuple((_WORD * (size // 8)).from_address(marks[1]))
        node = self.gpu.kernels[kernel]
        self.gpu.launches.append(Launched(node, (x, y, z), tuple(block), stream, self.gpu.contexts[-1], words, cluster))
        self.execute(self.gpu.launches[-1])
        return 0


def interpret(launch: Launched) -> None:
    """Run a device kernel in the interpreter on the memory and scalars of its context."""
    kernel, words = launch.kernel, launch.words
    layout = context_layout(kernel, device=True)
    assert len(words) == layout.length
    memories: list[Memory] = []
    for tensor, slots in layout.tensors.items():
        sizes, strides = (tuple(words[slot] for slot in group) for group in (slots.sizes, slots.strides))
        length = 0 if 0 in sizes else 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        memories.append(
            Memory(_elements(words[slots.data], length, tensor.type.dtype), sizes, strides, tensor.type.dtype)
        )
    run_kernel(kernel, memories, [_number(words[slot], symbol.dtype) for symbol, slot in layout.scalars.items()])


def _elements(address: int, length: int, dtype: DType) -> Any:
    """Return the elements in memory as the interpreter reads and writes them."""
    if dtype.name in _ELEMENTS or not length:
        return (_ELEMENTS.get(dtype.name, ctypes.c_int8) * length).from_address(address)
    return _Elements(address, length, dtype)


class _Elements:
    """Elements of a type that ctypes does not know."""

    def __init__(self, address: int, length: int, dtype: DType) -> None:
        memory = (ctypes.c_char * (length * dtype.size)).from_address(address)
        self._data = torch.frombuffer(memory, dtype=getattr(torch, dtype.name))

    def __getitem__(self, index: int) -> Number:
        return self._data[index].item()

    def __setitem__(self, index: int, value: Number) -> None:
        self._data[index] = value


def _number(word: int, dtype: DType) -> Number:
    if dtype is BOOL:
        return bool(word)
    if dtype.is_float:
        kind, size = ("<f", 4) if dtype.size == 4 else ("<d", 8)
        return struct.unpack(kind, word.to_bytes(8, "little")[:size])[0]
    return word - (word >> 63 << 64)


def _bits(value: float) -> int:
    """Return a number as a word of the stack."""
    return struct.unpack("<Q", struct.pack("<d", value))[0] if isinstance(value, float) else value % 2**64


def _list(items: Sequence[float]) -> int:
    """Return a new list of numbers as a stack holds it."""
    functions, handle = libtorch.libraries()[0], _POINTER()
    functions.torch_new_list_reserve_size(ctypes.c_size_t(len(items)), ctypes.byref(handle))
    for item in items:
        functions.torch_list_push_back(handle, _WORD(_bits(item)))
    return handle.value or 0


def _impl(handle: int) -> int:
    return _WORD.from_address(handle).value


@cache
def _support() -> bytes:
    return translate_module(support.support_text(cuda=True), host_target())
