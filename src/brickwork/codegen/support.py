"""The functions that entries call in the support object: names, LLVM types, and the words that they take.

The functions themselves are written once for all operators (`host/support.py`), so that an entry stays short and does
not know libtorch's names.
"""

from __future__ import annotations

from brickwork.ir.nodes import TensorType

FUNCTIONS = {
    "bw_inspect": ("i1", ("ptr", "i64", "ptr")),
    "bw_inspect_key": ("i1", ("ptr",)),
    "bw_read_key": ("i64", ("ptr",)),
    "bw_inspect_list": ("i1", ("ptr", "i64", "ptr")),
    "bw_overlap": ("i1", ("ptr", "i64", "ptr", "i64")),
    "bw_injective": ("i1", ("ptr", "i64")),
    "bw_expanded": ("i1", ("ptr", "i64")),
    "bw_forbidden": ("i1", ("ptr",)),
    "bw_allocate": ("i64", ("ptr", "i64", "ptr", "ptr")),
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

DTYPE_NUMBERS = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "bool": 11,
    "bfloat16": 15,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
}
"""torch's numbers of element types; a test compares them with torch's `aoti_torch_dtype_*` functions."""

NEXT = "bw_next"
"""Two words: the address of the next function of the chain, and the number of this specialisation."""

TABLE = "bw_table"
"""The operator's table of arguments, see `host/support.py`."""

ALLOCATE_NEGATIVE = 1
ALLOCATE_FAILED = 2
ALLOCATE_LAYOUT = 3


def type_word(kind: TensorType, *, written: bool = False) -> int:
    """Return a tensor type as one word: rank, dtype, contiguous, written, unit axis + 1 and bytes of an element.

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
        | axis << 24
        | kind.dtype.size << 32
    )


def block_words(rank: int) -> int:
    """Return the length of a tensor's block: data pointer, sizes, strides (the order of `convention.TensorSlots`)."""
    return 1 + 2 * rank
