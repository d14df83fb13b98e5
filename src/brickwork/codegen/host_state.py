"""The state of the emitter of an entry: its tensors and variables, and the way out where something fails.

Scalars live in stack slots and sizes in the tensors' blocks; an optimiser turns both into registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from brickwork.codegen.builder import FailureSite, FunctionWriter
from brickwork.codegen.convention import RECORD_FAILED, RECORD_SITE, RECORD_VALUES
from brickwork.codegen.emitter_state import Slot, State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.lane_values import scalar_type
from brickwork.diagnostics.location import Location
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64, DType
from brickwork.ir.nodes import Expression, Failure, Node, Program, Read, Size, Symbol, Tensor, TensorType
from brickwork.ir.walk import rewrite
from brickwork.records import dataclass
from brickwork.target.target import Target


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that the entry holds: its block, its type as a word, the slot of its handle.

    `position` is its place on the stack, or None for a tensor that the program makes. A `borrowed` one is a place that
    tensors are exchanged in: others own them.
    """

    block: str
    word: int
    handle: str
    position: int | None
    borrowed: bool = False


@dataclass(frozen=True, slots=True)
class Cuda:
    """What an entry for CUDA has besides, by their addresses.

    `device` is the tensors' (i32), `session` what `bw_cuda_begin` fills, `begun` whether it has been (i1), and `error`
    the driver's error (i64) that ended the call, or 0. `target` is the GPU's. `within` and `aligned` are what was
    found out about arguments of a call that is to be not narrow, or not aligned (i1).
    """

    target: Target
    device: str
    session: str
    begun: str
    error: str
    within: list[str] = field(default_factory=list[str])
    aligned: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Loop:
    """The labels that `break` and `continue` of a host loop jump to."""

    leave: str
    next: str


@dataclass(frozen=True, slots=True)
class Host:
    """Where the emission of an entry stands. `kernels` are functions by Kernel.name, for CUDA the symbols of cells."""

    state: State
    program: Program
    kernels: Mapping[str, str]
    given: tuple[Tensor, ...]
    written: tuple[Tensor, ...]
    record: str
    failed: str
    cuda: Cuda | None = None
    loop: Loop | None = None
    locals: dict[Tensor, Held] = field(default_factory=dict[Tensor, Held])
    sizes: dict[tuple[Tensor, int], Symbol] = field(default_factory=dict[tuple[Tensor, int], Symbol])


def store_scalar(host: Host, symbol: Symbol, text: str) -> None:
    """Set a variable of the host program."""
    slots, kind = host.state.slots, scalar_type(symbol.dtype)
    if symbol not in slots:
        slots[symbol] = Slot(host.state.writer.alloca(kind), symbol.dtype, varying=False)
    host.state.writer.store(kind, text, slots[symbol].address)


def scalar(host: Host, expression: Expression) -> str:
    """Emit an expression of the host program; sizes are read from the blocks."""

    def visit(node: Node) -> Node:
        return Read(symbol=_size_symbol(host, node)) if isinstance(node, Size) else node

    return emit_scalar(host.state, rewrite(expression, visit))


def _size_symbol(host: Host, node: Size) -> Symbol:
    key = (node.tensor, node.axis)
    if key not in host.sizes:
        symbol = Symbol(f"{node.tensor.name}.shape[{node.axis}]", -1 - len(host.sizes), INT64)
        block = host.locals[node.tensor].block
        address = host.state.writer.once(f"getelementptr inbounds i64, ptr {block}, i64 {1 + node.axis}")
        host.sizes[key] = symbol
        host.state.slots[symbol] = Slot(address, INT64, varying=False)
    return host.sizes[key]


def fail(host: Host, failure: Failure, values: tuple[tuple[str, DType], ...], loc: Location) -> None:
    """Write a failure into the record and go where failed calls end."""
    writer = host.state.writer
    site = host.state.module.site(FailureSite(failure, tuple(dtype for _, dtype in values), loc))
    writer.store("i64", "1", writer.slot(host.record, RECORD_FAILED))
    writer.store("i64", str(site), writer.slot(host.record, RECORD_SITE))
    for index, (text, dtype) in enumerate(values):
        kind, wide = word(host, text, dtype)
        writer.store(kind, wide, writer.slot(host.record, RECORD_VALUES + index))
    writer.branch(host.failed)


def word(host: Host, text: str, dtype: DType) -> tuple[str, str]:
    """Return a scalar as an 8-byte word: type and value."""
    emit = host.state.writer.emit
    if dtype is BOOL:
        return "i64", emit(f"zext i1 {text} to i64")
    if dtype is FLOAT32:
        return "double", emit(f"fpext float {text} to double")
    return scalar_type(dtype), text


def view_as_pairs(writer: FunctionWriter, kind: TensorType, whole: str, block: str) -> None:
    """Fill the block of the real view of a tensor, of type `kind`, from that of its complex elements."""
    axes, rank = kind.axes, kind.rank
    writer.store("i64", writer.load("i64", whole), block)
    for axis in range(axes):
        writer.store("i64", writer.load("i64", writer.slot(whole, 1 + axis)), writer.slot(block, 1 + axis))
        stride = writer.emit(f"shl i64 {writer.load('i64', writer.slot(whole, 1 + axes + axis))}, 1")
        writer.store("i64", stride, writer.slot(block, 1 + rank + axis))
    writer.store("i64", "2", writer.slot(block, rank))
    writer.store("i64", "1", writer.slot(block, 2 * rank))
