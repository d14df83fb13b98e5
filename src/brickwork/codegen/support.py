"""The functions that entries call in the support object: names, LLVM types, and the words that they take.

The functions themselves are written once for all operators (`host/support.py`), so that an entry stays short and does
not know libtorch's names.
"""

from __future__ import annotations

from brickwork.ir.nodes import TensorType

FUNCTIONS = {
    "bw_inspect": ("i1", ("ptr", "i64", "ptr")),
    "bw_default_dtype": ("i64", ()),
    "bw_inspect_key": ("i1", ("ptr",)),
    "bw_read_key": ("i64", ("ptr",)),
    "bw_inspect_list": ("i1", ("ptr", "i64", "ptr")),
    "bw_is_text": ("i1", ("ptr", "ptr", "i64")),
    "bw_overlap": ("i1", ("ptr", "i64", "ptr", "i64")),
    "bw_injective": ("i1", ("ptr", "i64")),
    "bw_expanded": ("i1", ("ptr", "i64")),
    "bw_forbidden": ("i1", ("ptr",)),
    "bw_allocate": ("i64", ("ptr", "i64", "ptr", "ptr", "i32")),
    "bw_fill": ("void", ("ptr", "i64", "i64")),
    "bw_fill_strided": ("i1", ("ptr", "double")),
    "bw_same_sizes": ("i1", ("ptr", "ptr", "i64")),
    "bw_bump": ("void", ("ptr",)),
    "bw_share": ("ptr", ("ptr",)),
    "bw_delete": ("void", ("ptr",)),
    "bw_release": ("void", ("ptr", "ptr")),
    "bw_failed": ("i64", ("i64", "ptr")),
    "bw_throw": ("void", ("ptr", "i64", "i64")),
}
"""Result and parameters of each function by name. `bw_failed` is Python's and `bw_next`, `bw_table` are data."""

CUDA_FUNCTIONS = {
    "bw_cuda_device": ("i32", ("ptr",)),
    "bw_cuda_serves": ("i1", ("i32", "i64")),
    "bw_narrow": ("i1", ("ptr", "i64")),
    "bw_aligned": ("i1", ("ptr",)),
    "bw_cuda_inspect_key": ("i1", ("ptr", "i32")),
    "bw_cuda_key": ("i64", ("ptr", "i32", "ptr", "ptr", "ptr")),
    "bw_cuda_begin": ("i64", ("i32", "ptr")),
    "bw_cuda_launch": ("i64", ("ptr", *("i32",) * 6, "ptr", "i64", "ptr")),
    "bw_cuda_end": ("void", ("ptr",)),
    "bw_cuda_deterministic": ("i1", ()),
    "bw_cuda_pending": ("i64", ()),
    "bw_cuda_failed": ("i64", ("i64", "i64")),
    "bw_cuda_load": ("i64", ("ptr", "ptr")),
}
"""What entries for CUDA call besides: only there where a gate knows of CUDA (`host/support.py`).

`bw_cuda_pending`, `bw_cuda_failed` and `bw_cuda_load` are Python's; `bw_record`, `bw_record_device` and
`bw_devices` are data.
"""

CUDA_CALLBACKS = ("bw_cuda_pending", "bw_cuda_failed", "bw_cuda_load")
"""Those of `CUDA_FUNCTIONS` that are Python's."""

CUDA_DATA = ("bw_record", "bw_record_device", "bw_devices")
"""The record of failures (host memory that devices write), a word that holds its address on devices, and the devices
(`host/support.py`)."""

SESSION_WORDS = 2
"""Words of a session: the stream, and whether a context was pushed."""

DTYPE_NUMBERS = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "complex64": 9,
    "complex128": 10,
    "bool": 11,
    "bfloat16": 15,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
}
"""torch's numbers of element types; a test compares them with torch's `aoti_torch_dtype_*` functions."""

CUDA_ALLOCATE, CUDA_DRAW, CUDA_LOAD = -1, -2, -3
"""Errors besides the driver's: torch has no memory for a random key, its generator refuses, a kernel does not load."""

NEXT = "bw_next"
"""Two words: the address of the next function of the chain, and the number of this specialisation."""

TABLE = "bw_table"
"""The operator's table of arguments, see `host/support.py`."""

ALLOCATE_NEGATIVE = 1
ALLOCATE_LAYOUT = 3


def kernel_cell(number: int) -> str:
    """Return the symbol of the word that holds a device kernel (a `CUkernel`), 0 until one is loaded."""
    return f"bw_kernel_{number}"


def type_word(kind: TensorType, *, written: bool = False, cuda: bool = False) -> int:
    """Return a tensor as a word: rank, dtype, contiguous, written, on CUDA, unit axis + 1 and bytes of an element.

    >>> from brickwork.ir.dtypes import FLOAT32
    >>> hex(type_word(TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)))
    '0x402010602'
    """
    axis = 0 if kind.unit_axis is None else kind.unit_axis + 1
    return (
        kind.rank
        | DTYPE_NUMBERS[kind.dtype.name] << 8
        | int(kind.contiguous) << 16
        | int(written) << 17
        | int(cuda) << 18
        | axis << 24
        | kind.dtype.size << 32
    )


ANY_AXIS = 255
"""In a word: whatever the unit axis is."""


def element_word(kind: TensorType, *, written: bool, cuda: bool, unit: int = 0) -> int:
    """Return torch's tensor with complex elements as a word; the type is that of its real view."""
    whole = TensorType(kind.element, kind.axes, kind.contiguous)
    return type_word(whole, written=written, cuda=cuda) | unit << 24


def block_words(rank: int) -> int:
    """Return the length of a tensor's block: data pointer, sizes, strides (the order of `convention.TensorSlots`)."""
    return 1 + 2 * rank
