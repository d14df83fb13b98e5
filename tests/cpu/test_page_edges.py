"""Tensors that touch memory which may not be read: a stray access, even in a masked lane, ends the process.

Each tensor lies between two forbidden pages, once at the beginning of what may be used and once at its end.
"""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import brickwork as bw
from brickwork.config import config

PAGE = mmap.PAGESIZE
DTYPES = (torch.uint8, torch.bfloat16, torch.float64)
"""Elements of one, two and eight bytes."""
LENGTHS = (1, 7, 33, 130)


def neighbours(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        if i > 0:
            out[i] = x[i - 1]
        if i + 2 < x.shape[0]:
            out[i] = out[i] + x[i + 2]


def backwards(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        out[n - 1 - i] = x[n - 1 - i] + x[-1 - i]


def rolled(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        out[(i + 3) % n] = x[(i + 5) % n] + x[(n - i) % n] + x[i % 3 % n]


def gathered(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        j = (i * 7 + 3) % n
        out[i] = x[j]
        if 2 * i < n:
            out[i] = out[i] + x[2 * i]
        if 3 * i < n and i % 2 == 0:
            out[3 * i] = x[n - 1 - 3 * i]


def ragged(x: torch.Tensor, out: torch.Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        s = out[i]
        for j in range(i, min(i + 4, n)):
            s += x[j]
        for j in range(i % 5):
            if i - j < 1:
                break
            s += x[i - j - 1]
        out[i] = s


KERNELS = (neighbours, backwards, rolled, gathered, ragged)


@contextmanager
def fenced(length: int, dtype: torch.dtype, *, end: bool) -> Iterator[torch.Tensor]:
    """Give a tensor that begins after a forbidden page, or ends before one."""
    size = length * torch.empty((), dtype=dtype).element_size()
    pages = -(-size // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    fences = (address, address + (pages - 1) * PAGE)
    offset = (pages - 1) * PAGE - size if end else PAGE
    tensor = torch.frombuffer(memory, dtype=dtype, count=length, offset=offset)
    tensor.copy_(torch.arange(length) % 11)
    for fence in fences:
        assert protect(fence, PAGE, 0) == 0
    yield tensor
    for fence in fences:
        assert protect(fence, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def run_all(vector_bytes: int) -> None:
    """Run every kernel on every kind of tensor; called in a process of its own."""
    with config.override(vector_bytes=vector_bytes):
        for kernel in KERNELS:
            operator: Any = bw.op(f"edges::{kernel.__name__}")(kernel)
            for dtype in DTYPES:
                for length in LENGTHS:
                    for end in (False, True):
                        run_one(operator, dtype, length, end=end)


def run_one(operator: Any, dtype: torch.dtype, length: int, *, end: bool) -> None:
    with fenced(length, dtype, end=end) as x, fenced(length, dtype, end=end) as out:
        expected = out.clone()
        operator.python(x.clone(), expected)
        operator(x, out)
        assert torch.equal(out, expected), (operator, dtype, length, end)


def test_nothing_beyond_a_tensor_is_touched() -> None:
    run = [sys.executable, __file__]
    result = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


if __name__ == "__main__":
    run_all(16)
    run_all(0)
