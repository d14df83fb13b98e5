"""NVIDIA's driver as Python calls it: contexts, PTX into machine code, kernels and what they take, pinned memory.

`driver()` opens libcuda when it is first asked; importing this module opens nothing. Handles are plain integers.
Whatever the driver refuses is a `DeviceError`. Entries in machine code call the driver themselves; `launch` is for
kernels that Python launches.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from brickwork.diagnostics.errors import DeviceError
from brickwork.records import dataclass

OLDEST_VERSION = (12, 0)
"""The driver's CUDA version that brought libraries, whose kernels belong to no context."""

LIBRARY_NAMES = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}

_LOG_BYTES = 16384
_INFO_LOG, _INFO_LOG_BYTES, _ERROR_LOG, _ERROR_LOG_BYTES = 3, 4, 5, 6
_LINE_INFO = 13
"""The option CU_JIT_GENERATE_LINE_INFO."""
_INPUT_PTX = 1
_PORTABLE, _DEVICE_MAP = 1, 2
_RELAXED = 2
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76
_MAX_THREADS, _SHARED_BYTES, _CONSTANT_BYTES, _LOCAL_BYTES, _REGISTERS = range(5)
_DYNAMIC_SHARED_BYTES = 8
_SHARED_PERCENT = 9
_MOST_SHARED_BYTES = 97
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2

INVALID_CONTEXT = 201
"""What the driver answers on a thread without a current context."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one thread or block of a kernel takes on a device."""

    registers: int
    local_bytes: int
    """Bytes of a thread in memory of its own: spilled registers and arrays."""
    shared_bytes: int
    """Bytes of a block that the kernel itself declares."""
    constant_bytes: int
    threads: int
    """Most threads of a block."""


class ParameterBuffer:
    """Memory that a kernel's parameters are written into, as `launch` hands it to the driver."""

    __slots__ = ("_size", "memory", "table")

    def __init__(self, size: int) -> None:
        """Take the size of all parameters together."""
        self.memory = ctypes.create_string_buffer(max(size, 1))
        self._size = ctypes.c_size_t(size)
        addresses = (ctypes.addressof(self.memory), ctypes.addressof(self._size))
        self.table = (ctypes.c_void_p * 5)(_BUFFER_POINTER, addresses[0], _BUFFER_SIZE, addresses[1], 0)


@functools.cache
def open_library() -> Any:
    """Return libcuda; OSError where it is not to be found."""
    return ctypes.CDLL(LIBRARY_NAMES.get(sys.platform, "libcuda.so.1"))


@functools.cache
def driver() -> Driver:
    """Return the driver of this machine, ready for use; DeviceError where it is missing or too old."""
    try:
        library = open_library()
    except OSError as error:
        raise DeviceError(f"NVIDIA's driver is not to be found on this machine: {error}") from None
    return Driver(library)


class Driver:
    """NVIDIA's driver library, libcuda: each call is checked, and a failure is a DeviceError."""

    def __init__(self, library: Any) -> None:
        """Start the driver; `library` has its functions as attributes."""
        self._library = library
        self.version = self._version()
        if self.version < OLDEST_VERSION:
            raise DeviceError(
                f"NVIDIA's driver on this machine is for CUDA {_dotted(self.version)}, and brickwork needs one for CUDA"
                f" {_dotted(OLDEST_VERSION)} or later: install a newer driver"
            )
        self._call("cuInit", ctypes.c_uint(0))

    def _version(self) -> tuple[int, int]:
        """Return the newest CUDA version that the driver serves."""
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10

    # ------------------------------------------------------------ devices and contexts

    def count(self) -> int:
        """Return the number of devices."""
        number = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def name(self, device: int) -> str:
        """Return the name of a device."""
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, ctypes.c_int(256), self._device(device))
        return text.value.decode(errors="replace")

    def capability(self, device: int) -> tuple[int, int]:
        """Return the compute capability of a device."""
        return self._attribute(device, _MAJOR), self._attribute(device, _MINOR)

    def multiprocessors(self, device: int) -> int:
        """Return the number of multiprocessors of a device."""
        return self._attribute(device, _MULTIPROCESSORS)

    def primary_context(self, device: int) -> int:
        """Return the primary context of a device, which stays alive from now on."""
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device(device))
        return context.value or 0

    @contextmanager
    def using(self, context: int) -> Generator[None]:
        """Make a context current for the time of a `with` block, which may be while other threads capture graphs.

        They would otherwise forbid what takes memory, and their captures would end.
        """
        with self._beside_captures():
            self._call("cuCtxPushCurrent_v2", ctypes.c_void_p(context))
            try:
                yield
            finally:
                before = ctypes.c_void_p()
                self._call("cuCtxPopCurrent_v2", ctypes.byref(before))

    @contextmanager
    def _beside_captures(self) -> Generator[None]:
        mode = ctypes.c_int(_RELAXED)
        self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def _device(self, ordinal: int) -> ctypes.c_int:
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
        return device

    def _attribute(self, device: int, attribute: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(attribute), self._device(device))
        return value.value

    def is_capturing(self, stream: int) -> bool:
        """Return whether a graph is being captured on a stream."""
        status = ctypes.c_int()
        self._call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return bool(status.value)

    # ------------------------------------------------------------ code

    def assemble(self, ptx: str, gpu: str) -> bytes:
        """Return the machine code of a PTX module for the device of the current context; `gpu` names it in errors."""
        information, errors = ctypes.create_string_buffer(_LOG_BYTES), ctypes.create_string_buffer(_LOG_BYTES)
        given = {
            _INFO_LOG: ctypes.addressof(information),
            _INFO_LOG_BYTES: _LOG_BYTES,
            _ERROR_LOG: ctypes.addressof(errors),
            _ERROR_LOG_BYTES: _LOG_BYTES,
            **({_LINE_INFO: 1} if "\t.loc\t" in ptx else {}),
        }
        options = (ctypes.c_int * len(given))(*given)
        values = (ctypes.c_void_p * len(given))(*given.values())
        linker, data = ctypes.c_void_p(), ptx.encode() + b"\0"
        code, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("cuLinkCreate_v2", ctypes.c_uint(len(given)), options, values, ctypes.byref(linker))
        try:
            none = (ctypes.c_uint(0), None, None)
            kind, length = ctypes.c_int(_INPUT_PTX), ctypes.c_size_t(len(data))
            self._call("cuLinkAddData_v2", linker, kind, ctypes.c_char_p(data), length, b"brickwork", *none)
            self._call("cuLinkComplete", linker, ctypes.byref(code), ctypes.byref(size))
            return ctypes.string_at(code.value or 0, size.value)
        except DeviceError as error:
            raise DeviceError(self.refusal(ptx, gpu, str(error), errors.value.decode(errors="replace"))) from None
        finally:
            self._call("cuLinkDestroy", linker)

    def refusal(self, ptx: str, gpu: str, reason: str, log: str = "") -> str:
        """Return what to say when the driver does not take code."""
        known = re.search(r"^\.version (\S+)", ptx, re.MULTILINE)
        target = re.search(r"^\.target (\S+)", ptx, re.MULTILINE)
        version = f"PTX {known[1] if known else '(unknown)'} for {target[1].rstrip(',') if target else '(unknown)'}"
        text = f"the driver (CUDA {_dotted(self.version)}) does not take {version} on {gpu}: {reason}"
        return f"{text}\n{log.strip()}" if log.strip() else text

    def load(self, code: bytes) -> int:
        """Return a library of kernels, for ever: machine code, or PTX that each context translates for itself."""
        library = ctypes.c_void_p()
        data = ctypes.create_string_buffer(code + b"\0")
        none = (None, None, ctypes.c_uint(0))
        self._call("cuLibraryLoadData", ctypes.byref(library), data, *none, *none)
        return library.value or 0

    def kernel(self, library: int, name: str) -> int:
        """Return a kernel of a library; it may be launched in every context."""
        kernel = ctypes.c_void_p()
        self._call("cuLibraryGetKernel", ctypes.byref(kernel), ctypes.c_void_p(library), name.encode())
        return kernel.value or 0

    def function(self, kernel: int) -> int:
        """Return a kernel's function in the current context, loaded now, so that no launch has to wait for that."""
        function = ctypes.c_void_p()
        self._call("cuKernelGetFunction", ctypes.byref(function), ctypes.c_void_p(kernel))
        return function.value or 0

    def resources(self, function: int) -> Resources:
        """Return what a function takes."""

        def attribute(number: int) -> int:
            value = ctypes.c_int()
            self._call("cuFuncGetAttribute", ctypes.byref(value), ctypes.c_int(number), ctypes.c_void_p(function))
            return value.value

        return Resources(
            registers=attribute(_REGISTERS),
            local_bytes=attribute(_LOCAL_BYTES),
            shared_bytes=attribute(_SHARED_BYTES),
            constant_bytes=attribute(_CONSTANT_BYTES),
            threads=attribute(_MAX_THREADS),
        )

    def resident_blocks(self, function: int, threads: int) -> int:
        """Return how many blocks of so many threads run on a multiprocessor at once."""
        blocks = ctypes.c_int()
        arguments = (ctypes.c_void_p(function), ctypes.c_int(threads), ctypes.c_size_t(0))
        self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), *arguments)
        return blocks.value

    def most_shared_bytes(self, device: int) -> int:
        """Return how much shared memory a block may have on a device, if its kernel asks for it."""
        return self._attribute(device, _MOST_SHARED_BYTES)

    def allow_shared(self, function: int, size: int) -> None:
        """Let launches of a function give each block so many bytes of shared memory beside what the kernel declares."""
        self._set(function, _DYNAMIC_SHARED_BYTES, size)

    def prefer_shared(self, function: int) -> None:
        """Let multiprocessors that run a function have all the shared memory that they can, not just for one block."""
        self._set(function, _SHARED_PERCENT, 100)

    def _set(self, function: int, attribute: int, value: int) -> None:
        arguments = (ctypes.c_void_p(function), ctypes.c_int(attribute), ctypes.c_int(value))
        self._call("cuFuncSetAttribute", *arguments)

    @functools.cached_property
    def launch(self) -> Any:
        """`cuLaunchKernel`: function, grid, block, bytes of shared memory, stream, None, table of a ParameterBuffer.

        It returns 0 or the driver's error, as nothing but that is wanted of a launch.
        """
        launch = self._library.cuLaunchKernel
        launch.argtypes = (ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3)
        return launch

    # ------------------------------------------------------------ memory

    def pinned(self, size: int) -> tuple[int, int]:
        """Return zeroed host memory that all devices can reach, for ever: its address here and on devices.

        A context must be current.
        """
        host, device = ctypes.c_void_p(), ctypes.c_uint64()
        flags = ctypes.c_uint(_PORTABLE | _DEVICE_MAP)
        self._call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(size), flags)
        self._call("cuMemHostGetDevicePointer_v2", ctypes.byref(device), host, ctypes.c_uint(0))
        ctypes.memset(host.value or 0, 0, size)
        return host.value or 0, device.value

    # ------------------------------------------------------------ errors

    def describe(self, code: int) -> str:
        """Return an error of the driver in words."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(name))
        self._library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        said = (text.value or b"unknown error").decode(errors="replace")
        return f"{said} ({(name.value or str(code).encode()).decode(errors='replace')})"

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; DeviceError if it is missing or says that something is wrong."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DeviceError(
                f"NVIDIA's driver on this machine lacks {name}; brickwork needs one for CUDA {_dotted(OLDEST_VERSION)}"
                " or later"
            ) from None
        code = int(function(*arguments))
        if code:
            raise DeviceError(f"{name}: {self.describe(code)}")


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
