"""Wide loads: chunks of 16 aligned bytes, which unrolled loops of device kernels read at once and take elements from.

So do iterations that read most of a short row, as the corners of a box or the parts of a splat. Neighbouring iterations
and lanes find what they read in the same few chunks, in registers. Rows are to be whole chunks: then each chunk with an
element that is read lies in the tensor, and where the element lies in it is known from the loops' indices. Sizes tell
at run time; where rows are not whole, the loop runs one iteration at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from brickwork.codegen.builder import Known
from brickwork.codegen.emitter_state import State
from brickwork.ir.nodes import Block, Constant, Expression, For, Load, Store, Tensor
from brickwork.ir.signature import ALIGNMENT
from brickwork.ir.walk import read_symbols, walk
from brickwork.legality import legality


def rows(state: State, loop: For) -> dict[str, int]:
    """Return the sizes that have to be multiples of something for a loop to read chunks, and are not known to be."""
    if not state.target.grid:
        return {}
    read, stored = dict[str, int](), dict[str, int]()
    for node in walk(loop.body):
        if isinstance(node, Load | Store) and node.indices and loop.index in read_symbols(node.indices[-1]):
            if isinstance(node, Load) and may_have_chunks(state, node.tensor):
                found = read
            elif isinstance(node, Store) and begins_at_chunk(state, node.tensor):
                found = stored
            else:
                continue
            size, whole = _row(state, node.tensor), _items(node.tensor)
            if state.writer.known(size).multiple % whole:
                found[size] = max(found.get(size, 1), whole)
    # Chunks are stored at once where they are read at once.
    return {**stored, **read} if read else {}


def records(state: State, block: Block) -> dict[str, int]:
    """Return what sizes have to be multiples of for a block to read chunks of short rows, of which it reads most."""
    if not state.target.grid:
        return {}
    read: dict[tuple[Tensor, tuple[Expression, ...], int], set[int]] = {}
    for node in walk(block):
        if not isinstance(node, Load) or node.tensor.type.rank < 2 or not may_have_chunks(state, node.tensor):
            continue
        *row, last = node.indices
        if isinstance(last, Constant):
            place = int(last.value)
            read.setdefault((node.tensor, tuple(row), place // _items(node.tensor)), set()).add(place)
    found = {tensor: _items(tensor) for (tensor, _, _), places in read.items() if 2 * len(places) > _items(tensor)}
    sizes = ((_row(state, tensor), whole) for tensor, whole in found.items())
    return {size: whole for size, whole in sizes if state.writer.known(size).multiple % whole}


def _items(tensor: Tensor) -> int:
    """Return how many elements a chunk has."""
    return ALIGNMENT // tensor.type.dtype.size


def are_whole(state: State, rows: Mapping[str, int]) -> str:
    """Return whether sizes are multiples of what they have to be, as i1."""
    emit, together = state.writer.emit, "true"
    for size, whole in rows.items():
        rest = emit(f"icmp eq i64 {emit(f'and i64 {size}, {whole - 1}')}, 0")
        together = rest if together == "true" else emit(f"and i1 {together}, {rest}")
    return together


@contextmanager
def read_whole(state: State, rows: Mapping[str, int]) -> Generator[None]:
    """Write code that is run only where the sizes are multiples of what they have to be, and that reads chunks."""
    with state.writer.supposing({size: Known(multiple=whole) for size, whole in rows.items()}), state.writer.folding():
        yield


@legality
def has_chunks(state: State, tensor: Tensor) -> bool:
    """Whether elements of a tensor can be taken from chunks here."""
    if not state.writer.is_folding or not may_have_chunks(state, tensor):
        return False
    return state.writer.known(_row(state, tensor)).multiple % (ALIGNMENT // tensor.type.dtype.size) == 0


@legality
def may_have_chunks(state: State, tensor: Tensor) -> bool:
    """Whether a tensor that the kernel only reads is dense and begins at a chunk."""
    return tensor not in state.stored and begins_at_chunk(state, tensor)


@legality
def begins_at_chunk(state: State, tensor: Tensor) -> bool:
    """Whether a tensor is dense and begins at a chunk, and is accessed where it lies."""
    kind = tensor.type
    fits = kind.dtype.size >= 2 and kind.rank > 0 and kind.contiguous and tensor not in state.rows
    return fits and tensor in state.kernel.aligned


def _row(state: State, tensor: Tensor) -> str:
    return state.slot_value(state.layout.tensors[tensor].sizes[tensor.type.rank - 1])
