"""The support object: what all entries share, and the gates themselves, as one LLVM module that never changes.

It is compiled once, cached, and loaded once for each operator with these names bound: `bw_next` (the head of the chain:
an address), `bw_table` (see `argument_table`), `bw_type_name`, and the callbacks `bw_on_miss`, `bw_on_autograd`,
`bw_failed`; with CUDA `bw_devices` too (see `device_table`). Handles are owned by whoever holds the stack; nothing in
here throws through a frame of its own: gates jump to what throws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from brickwork.host.torch_abi import (
    CPLUSPLUS,
    CUDA_CPLUSPLUS,
    CUDA_STABLE,
    DRIVER,
    RUNTIME,
    STABLE,
    UNDEFINED_TENSOR,
)
from brickwork.ir.signature import ALIGNMENT, NARROW_EXTENT, NARROW_SIZE

PLAIN, TENSOR, OPTIONAL_TENSOR, LIST, TENSOR_LIST, OPTIONAL, TEXT = range(7)
"""Kinds of stack slots as the support functions tell them apart: who owns what, and where tensors are."""

OTHER_KEYS, REQUIRES_GRAD, FORWARD_GRAD = 1, 2, 4
"""Why the autograd gate asks Python, as bits: keys beyond those of plain tensors, and gradients asked for."""


TYPE_NAME = "bw_type_name"
"""The C++ name of the type that is thrown, zero-terminated.

It is `PYTHON_ERROR` where torch's class of this name is known to be laid out as `exceptions.ll` has it, else
`OTHER_ERROR`, which torch turns into a RuntimeError with the text.
"""
PYTHON_ERROR, OTHER_ERROR = b"12python_error", b"15brickwork_error"


def argument_table(
    keys: int, autograd: int, allowed: int, modes: Sequence[int], inplace: int, kinds: Sequence[int], *, locks: bool
) -> tuple[int, ...]:
    """Return the words of `bw_table`.

    `keys` is where a TensorImpl keeps its key set (-1: unknown), `autograd` where it keeps the pointer to what autograd
    knows (0: unknown; both go into one word), `allowed` the keys that plain tensors have, `modes`
    four dispatch keys that must not be included by a mode, `inplace` the key ADInplaceOrView (not included: inference
    mode), `kinds` one number a stack slot. `locks` says that giving up a tensor takes Python's lock: several are then
    given up under one.
    """
    first, second, third, fourth = modes
    offsets = -1 if keys < 0 else keys | autograd << 32
    several = locks and (TENSOR_LIST in kinds or sum(kind in {TENSOR, OPTIONAL_TENSOR} for kind in kinds) > 1)
    count = len(kinds) | (1 << 32 if several else 0)
    return (offsets, ~allowed, first, second, third, fourth, inplace, count, *kinds)


def device_table(devices: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the words of `bw_devices`: how many devices there are, then two words for each.

    They are the architecture that code for the device is made for (the number in the name of its `Target.cpu`: 90 for
    sm_90), and the device's primary context. The context is 0 until Python has retained it: until then calls for the
    device miss. Words may be set at any time, the architecture before the context.
    """
    return (len(devices), *(word for device in devices for word in device))


def support_text(*, cuda: bool = False) -> str:
    """Return the module as LLVM assembly; only with `cuda` it needs names of libtorch_cuda and of the driver."""
    functions = (*STABLE, *CPLUSPLUS, *RUNTIME)
    parts = [_part(name) for name in _PARTS]
    if cuda:
        functions = (*functions, *CUDA_STABLE, *CUDA_CPLUSPLUS, *DRIVER)
        parts.append(_numbered(_part("cuda.ll")))
    fill = _part("fill.ll")
    fills = (fill.replace("KIND", kind).replace("LANES", str(lanes)) for kind, lanes in _FILLED.items())
    declarations = (function.declaration() for function in functions)
    return "\n".join((*declarations, _GLOBALS, *fills, *parts))


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _numbered(text: str) -> str:
    """Write the limits of narrow and aligned calls into a part."""
    limits = {"NARROW_SIZE": NARROW_SIZE, "NARROW_EXTENT": NARROW_EXTENT, "ALIGNMENT_MASK": ALIGNMENT - 1}
    for name, value in limits.items():
        text = text.replace(name, str(value))
    return text


_FILLED = {"i8": 64, "i16": 32, "i32": 16, "i64": 8}
"""The kinds of elements that tensors are filled with, and how many are stored at a time."""

_PARTS = ("inspect.ll", "shapes.ll", "allocate.ll", "handles.ll", "gates.ll", "exceptions.ll")

_GLOBALS = f"""
@bw_next = external global ptr
@bw_table = external global i64
@{UNDEFINED_TENSOR} = external global ptr
declare i64 @bw_on_miss(ptr, i64, i64)
declare i64 @bw_on_autograd(ptr, i64, i64, i64)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @Py_DecRef(ptr)
@empty_like = private unnamed_addr constant [17 x i8] c"aten::empty_like\\00"
@no_name = private unnamed_addr constant [1 x i8] c"\\00"
"""
