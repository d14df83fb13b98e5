"""Memory of which nothing but the tensors of a case may be touched: what reads or writes elsewhere is noticed.

Tensors lie far apart in a large mapping whose pages the kernel hands out when they are first touched; which ones it has
handed out can be asked. On a GPU they lie in a large tensor of one byte pattern, where writes are noticed.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import torch

_PAGE = mmap.PAGESIZE
_GAP = 2**20
"""Bytes between two tensors."""
_SIZE = 2**28
"""Bytes of the whole: five million elements to either side of the middle are within."""
_PATTERN = 0x5A
_MAP_NORESERVE = 0x4000


class Guard(Protocol):
    """Memory that tensors are put into, and that says what else was touched."""

    def place(self, memory: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor of one axis, with a storage of its own size."""
        ...

    def touched(self) -> str:
        """Return what was touched beside the tensors; "" for nothing."""
        ...


@lru_cache(maxsize=1)
def guarded_pages() -> GuardedPages | None:
    """Return the mapping of this process; None where the system does not tell which pages are touched."""
    if sys.platform != "linux":
        return None
    made = GuardedPages()
    return None if made.touched() else made


class GuardedPages:
    """Pages of the processor's memory."""

    def __init__(self) -> None:
        """Map them; none is touched yet."""
        self._map = mmap.mmap(-1, _SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        self._map.madvise(mmap.MADV_NOHUGEPAGE)
        self._begin = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._pages = bytearray(_SIZE // _PAGE)
        self._given = (ctypes.c_ubyte * len(self._pages)).from_buffer(self._pages)
        self._used: list[tuple[int, int]] = []

    def fresh(self) -> GuardedPages:
        """Forget all tensors: the memory of those that were placed is taken back."""
        self._map.madvise(mmap.MADV_DONTNEED)
        self._used.clear()
        return self

    def place(self, memory: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor of one axis."""
        begin = _next(self._used)
        self._used.append((begin, begin + memory.nbytes))
        made = torch.frombuffer(self._map, dtype=memory.dtype, count=memory.numel(), offset=begin)
        return made.copy_(memory)

    def touched(self) -> str:
        """Return where a page was touched that no tensor is in, or where one is changed beside them."""
        place, size = ctypes.c_void_p(self._begin), ctypes.c_size_t(_SIZE)
        if ctypes.CDLL(None).mincore(place, size, self._given):
            raise OSError("mincore failed")
        for begin, end in self._used:
            for page in range(begin // _PAGE, -(-end // _PAGE)):
                self._pages[page] = 0
            rest = self._map[end : -(-end // _PAGE) * _PAGE]
            if rest.strip(b"\0"):
                return f"memory was written less than {len(rest)} bytes after a tensor"
        found = self._pages.find(1)
        return "" if found < 0 else _words("touched", found * _PAGE, self._used)


@dataclass(slots=True)
class GuardedDevice:
    """A large tensor of a GPU, filled with one byte."""

    device: str
    memory: torch.Tensor = field(init=False)
    used: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def __post_init__(self) -> None:
        """Fill it."""
        self.memory = torch.full((_SIZE,), _PATTERN, dtype=torch.uint8, device=self.device)

    def place(self, memory: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor of one axis on the GPU."""
        begin = _next(self.used)
        self.used.append((begin, begin + memory.nbytes))
        storage: Any = self.memory.untyped_storage()
        made: Any = torch.empty(0, dtype=memory.dtype, device=self.device)
        return made.set_(storage[begin : begin + memory.nbytes]).copy_(memory)

    def touched(self) -> str:
        """Return where a byte beside the tensors has changed."""
        for begin, end in self.used:
            self.memory[begin:end] = _PATTERN
        if bool((self.memory.view(torch.int64) == int.from_bytes(bytes([_PATTERN] * 8))).all()):
            return ""
        found = int((self.memory != _PATTERN).nonzero()[0])
        return _words("written", found, self.used)


def placed(tensors: Sequence[Any], place: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    """Return arguments whose tensors are copied by `place`, with all memory around them: what is shared still is."""
    blocks: dict[int, torch.Tensor] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in blocks:
            count = storage.nbytes() // tensor.element_size()
            blocks[storage.data_ptr()] = place(tensor.as_strided((count,), (1,), 0))
        found = blocks[storage.data_ptr()].view(tensor.dtype)
        return found.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    return [move(item) if isinstance(item, torch.Tensor) else item for item in tensors]


def _next(used: Sequence[tuple[int, int]]) -> int:
    """Return where the next tensor begins: the first one in the middle, others after it."""
    return -(-used[-1][1] // _PAGE) * _PAGE + _GAP if used else _SIZE // 2


def _words(what: str, place: int, used: Sequence[tuple[int, int]]) -> str:
    begin, end = min(used, key=lambda item: max(item[0] - place, place - item[1]), default=(0, 0))
    distance = f"{begin - place} bytes before" if place < begin else f"{place - end} bytes after"
    return f"memory was {what} {distance} a tensor"
