"""libcuda played in Python: what `host/driver.py` calls, with devices, contexts and code that are only noted."""

from __future__ import annotations

import ctypes
from typing import Any

NOT_SUPPORTED = 222
RELAXED = 2
"""The mode of a thread that may take memory while others capture graphs."""


class FakeLibrary:
    """The functions of libcuda that Python calls; every call is noted."""

    def __init__(
        self, *, version: int = 13000, capabilities: tuple[tuple[int, int], ...] = ((9, 0),), log: bytes = b""
    ) -> None:
        """Have a driver's version, GPUs, and something that the assembler complains of."""
        self.number, self.capabilities, self.log = version, capabilities, log
        self.calls: list[str] = []
        self.loaded: list[bytes] = []
        self.contexts: list[int] = []
        self.functions: list[tuple[int, int]] = []
        self.errors = 0
        self.capture_mode = 0
        self.capturing: set[int] = set()
        self.source = b""
        self._kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        """Lack every other function."""
        raise AttributeError(name)

    def cuDriverGetVersion(self, out: Any) -> int:
        """Play the driver's function."""
        out._obj.value = self.number
        return 0

    def cuInit(self, flags: Any) -> int:
        """Play the driver's function."""
        self.calls.append("cuInit")
        return 0

    def cuDeviceGetCount(self, out: Any) -> int:
        """Play the driver's function."""
        out._obj.value = len(self.capabilities)
        return 0

    def cuDeviceGet(self, out: Any, ordinal: Any) -> int:
        """Play the driver's function."""
        out._obj.value = ordinal.value
        return 0 if ordinal.value < len(self.capabilities) else 101

    def cuDeviceGetName(self, text: Any, length: Any, device: Any) -> int:
        """Play the driver's function."""
        text.value = f"GPU {device.value}".encode()
        return 0

    def cuDeviceGetAttribute(self, out: Any, attribute: Any, device: Any) -> int:
        """Play the driver's function."""
        capability = self.capabilities[int(device.value)]
        out._obj.value = {75: capability[0], 76: capability[1], 16: 132}[int(attribute.value)]
        return 0

    def cuDevicePrimaryCtxRetain(self, out: Any, device: Any) -> int:
        """Play the driver's function."""
        out._obj.value = 0x1000 + device.value
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        """Play the driver's function."""
        self.contexts.append(context.value)
        return 0

    def cuCtxPopCurrent_v2(self, out: Any) -> int:
        """Play the driver's function."""
        out._obj.value = self.contexts.pop()
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:
        """Play the driver's function."""
        self.capture_mode, mode._obj.value = mode._obj.value, self.capture_mode
        return 0

    def cuStreamIsCapturing(self, stream: Any, out: Any) -> int:
        """Play the driver's function."""
        out._obj.value = int(stream.value in self.capturing)
        return 0

    def cuLinkCreate_v2(self, count: Any, options: Any, values: Any, out: Any) -> int:
        """Play the driver's function."""
        self.line_info = [*options] == [3, 4, 5, 6, 13] and values[4] == 1
        assert self.line_info or [*options] == [3, 4, 5, 6]
        ctypes.memmove(values[2], self.log + b"\0", len(self.log) + 1)
        out._obj.value = 0x77
        self.calls.append("cuLinkCreate")
        return 0 if self.contexts else 201

    def cuLinkAddData_v2(
        self, linker: Any, kind: Any, data: Any, size: Any, name: Any, count: Any, options: Any, values: Any
    ) -> int:
        """Play the driver's function."""
        assert (linker.value, kind.value) == (0x77, 1)
        assert len(data.value) + 1 == size.value
        self.source = data.value
        return NOT_SUPPORTED if self.log else 0

    def cuLinkComplete(self, linker: Any, out: Any, size: Any) -> int:
        """Play the driver's function."""
        code = ctypes.create_string_buffer(b"cubin:" + self.source)
        self._kept.append(code)
        out._obj.value, size._obj.value = ctypes.addressof(code), len(code.value)
        return 0

    def cuLinkDestroy(self, linker: Any) -> int:
        """Play the driver's function."""
        self.calls.append("cuLinkDestroy")
        return 0

    def cuLibraryLoadData(self, out: Any, data: Any, *rest: Any) -> int:
        """Play the driver's function."""
        assert [getattr(each, "value", each) for each in rest] == [None, None, 0, None, None, 0]
        assert self.capture_mode == RELAXED
        self.loaded.append(data.value)
        out._obj.value = 0x100 * len(self.loaded)
        return 0

    def cuLibraryGetKernel(self, out: Any, library: Any, name: Any) -> int:
        """Play the driver's function."""
        out._obj.value = library.value + len(name)
        return 0

    def cuKernelGetFunction(self, out: Any, kernel: Any) -> int:
        """Play the driver's function."""
        self.functions.append((self.contexts[-1], kernel.value))
        out._obj.value = kernel.value + 1
        return 0

    def cuFuncGetAttribute(self, out: Any, attribute: Any, function: Any) -> int:
        """Play the driver's function."""
        out._obj.value = 10 * attribute.value + 1
        return 0

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out: Any, function: Any, threads: Any, shared: Any) -> int:
        """Play the driver's function."""
        out._obj.value = 2048 // threads.value
        return 0

    def cuMemHostAlloc(self, out: Any, size: Any, flags: Any) -> int:
        """Play the driver's function."""
        assert self.contexts
        assert self.capture_mode == RELAXED
        assert flags.value == 3
        memory = (ctypes.c_uint64 * (size.value // 8))(*[7] * (size.value // 8))
        self._kept.append(memory)
        out._obj.value = ctypes.addressof(memory)
        return 0

    def cuMemHostGetDevicePointer_v2(self, out: Any, host: Any, flags: Any) -> int:
        """Play the driver's function."""
        out._obj.value = host.value
        return 0

    def cuGetErrorName(self, code: Any, out: Any) -> int:
        """Play the driver's function."""
        self._kept.append(out)
        out._obj.value = {222: b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 101: b"CUDA_ERROR_INVALID_DEVICE"}.get(code.value)
        return 0

    def cuGetErrorString(self, code: Any, out: Any) -> int:
        """Play the driver's function."""
        out._obj.value = b"the provided PTX was compiled with an unsupported toolchain."
        return 0
