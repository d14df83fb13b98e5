"""The statements of a host program as part of an entry: scalars, branches, checks, allocations, launches, results.

Scalars live in stack slots and sizes in the tensors' blocks; an optimiser turns both into registers. Handles that the
program makes are kept in slots that hold null before and after, so that one list of releases serves every way out.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from brickwork.codegen.builder import FailureSite
from brickwork.codegen.convention import RECORD_FAILED, RECORD_SITE, RECORD_VALUES, context_layout
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.failures import weights
from brickwork.codegen.state import Slot, State
from brickwork.codegen.support import (
    ALLOCATE_FAILED,
    ALLOCATE_LAYOUT,
    ALLOCATE_NEGATIVE,
    TABLE,
    block_words,
    type_word,
)
from brickwork.codegen.values import scalar_type
from brickwork.diagnostics.location import Location
from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, DType, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Cast,
    Check,
    Constant,
    Expression,
    Failure,
    FailureKind,
    If,
    Kernel,
    Launch,
    Node,
    Program,
    Read,
    Return,
    Size,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import rewrite, walk

_CONTEXT_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Local:
    """A tensor that the entry holds: its block, its type as a word, the slot of its handle.

    `position` is its place on the stack, or None for a tensor that the program makes.
    """

    block: str
    word: int
    handle: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Host:
    """Where the emission of an entry stands."""

    state: State
    program: Program
    kernels: Mapping[str, str]
    given: tuple[Tensor, ...]
    written: tuple[Tensor, ...]
    record: str
    failed: str
    locals: dict[Tensor, Local] = field(default_factory=dict[Tensor, Local])
    sizes: dict[tuple[Tensor, int], Symbol] = field(default_factory=dict[tuple[Tensor, int], Symbol])


def given_tensors(program: Program) -> tuple[Tensor, ...]:
    """Return the caller's result tensors in the order in which they are returned."""
    given = {node.tensor for node in walk(program.body) if isinstance(node, Allocate) and node.given}
    for node in walk(program.body):
        if isinstance(node, Return):
            return tuple(dict.fromkeys(tensor for tensor in node.tensors if tensor in given))
    return ()


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


def emit_statements(host: Host, block: Block) -> None:
    """Emit the body of the host program; an end without `Return` returns nothing."""
    for statement in block:
        _emit(host, statement)
    if not host.state.writer.terminated:
        _return(host, ())


def prepare(host: Host, block: Block) -> None:
    """Make room for every tensor that the program allocates, with a null handle, before anything can fail."""
    writer = host.state.writer
    for node in walk(block):
        if isinstance(node, Allocate) and not node.given and node.tensor not in host.locals:
            memory, handle = writer.alloca("i64", block_words(node.tensor.type.rank)), writer.alloca("ptr")
            writer.store("ptr", "null", handle)
            word = type_word(node.tensor.type, written=True)
            host.locals[node.tensor] = Local(block=memory, word=word, handle=handle, position=None)


def _emit(host: Host, statement: Statement) -> None:
    match statement:
        case Assign():
            store_scalar(host, statement.symbol, scalar(host, statement.value))
        case If():
            _branch(host, statement)
        case Check():
            _check(host, statement)
        case Allocate():
            _allocate(host, statement)
        case Launch():
            _launch(host, statement.kernel)
        case Return():
            _return(host, statement.tensors)
        case _:
            msg = f"{type(statement).__name__} cannot stand in a host program"
            raise TypeError(msg)


def _branch(host: Host, statement: If) -> None:
    writer = host.state.writer
    then, otherwise, after = writer.label("then"), writer.label("otherwise"), writer.label("after")
    writer.branch_if(scalar(host, statement.condition), then, otherwise)
    for label, block in ((then, statement.then), (otherwise, statement.otherwise)):
        writer.place(label)
        for inner in block:
            _emit(host, inner)
        writer.branch(after)
    writer.place(after)


def _check(host: Host, check: Check) -> None:
    writer = host.state.writer
    passed, wrong = writer.label("passed"), writer.label("wrong")
    writer.branch_if(scalar(host, check.condition), passed, wrong, weights(host.state))
    writer.place(wrong)
    values = tuple((scalar(host, value), value.dtype) for value in check.values)
    fail(host, check.failure, values, check.loc)
    writer.place(passed)


def fail(host: Host, failure: Failure, values: tuple[tuple[str, DType], ...], loc: Location) -> None:
    """Write a failure into the record and go where failed calls end."""
    writer = host.state.writer
    site = host.state.module.site(FailureSite(failure, tuple(dtype for _, dtype in values), loc))
    writer.store("i64", "1", writer.slot(host.record, RECORD_FAILED))
    writer.store("i64", str(site), writer.slot(host.record, RECORD_SITE))
    for index, (text, dtype) in enumerate(values):
        kind, wide = _word(host, text, dtype)
        writer.store(kind, wide, writer.slot(host.record, RECORD_VALUES + index))
    writer.branch(host.failed)


def _word(host: Host, text: str, dtype: DType) -> tuple[str, str]:
    """Return a scalar as an 8-byte word: type and value."""
    emit = host.state.writer.emit
    if dtype is BOOL:
        return "i64", emit(f"zext i1 {text} to i64")
    if dtype is FLOAT32:
        return "double", emit(f"fpext float {text} to double")
    return scalar_type(dtype), text


def _allocate(host: Host, statement: Allocate) -> None:
    writer, tensor = host.state.writer, statement.tensor
    local = host.locals[tensor]
    sizes = [scalar(host, size) for size in statement.sizes]
    if statement.given:
        _check_given(host, statement, sizes)
    else:
        for axis, size in enumerate(sizes):
            writer.store("i64", size, writer.slot(local.block, 1 + axis))
        like = "null" if statement.like is None else writer.load("ptr", host.locals[statement.like].handle)
        arguments = (f"ptr {local.block}", f"i64 {local.word}", f"ptr {like}", f"ptr {local.handle}")
        _check_allocated(host, statement, writer.call("i64", "@bw_allocate", arguments), sizes)
    if statement.fill is not None:
        _fill(host, statement, statement.fill)


def _check_given(host: Host, statement: Allocate, sizes: list[str]) -> None:
    writer, local, rank = host.state.writer, host.locals[statement.tensor], len(sizes)
    expected = writer.alloca("i64", max(rank, 1))
    for axis, size in enumerate(sizes):
        writer.store("i64", size, writer.slot(expected, axis))
    same = writer.call("i1", "@bw_same_sizes", (f"ptr {local.block}", f"ptr {expected}", f"i64 {rank}"))
    passed, wrong = writer.label("passed"), writer.label("wrong")
    writer.branch_if(same, passed, wrong, weights(host.state))
    writer.place(wrong)
    shape = ", ".join("{}" for _ in sizes)
    values = [(size, INT64) for size in sizes]
    message = f"expected {statement.tensor.name} of shape [{shape}]"
    if rank <= 4:
        values += [(writer.load("i64", writer.slot(local.block, 1 + axis)), INT64) for axis in range(rank)]
        message += f", but it has shape [{shape}]"
    if len(values) > 8:
        values, message = [], f"{statement.tensor.name} does not have the shape of the result"
    fail(host, Failure(FailureKind.VALUE, message), tuple(values), statement.loc)
    writer.place(passed)


def _check_allocated(host: Host, statement: Allocate, code: str, sizes: list[str]) -> None:
    writer = host.state.writer
    made, wrong, last = writer.label("made"), writer.label("wrong"), writer.label("last")
    writer.branch_if(writer.emit(f"icmp eq i64 {code}, 0"), made, wrong, weights(host.state))
    writer.place(wrong)
    shape = ", ".join("{}" for _ in sizes)
    values = tuple((size, INT64) for size in sizes) if len(sizes) <= 8 else ()
    where = f" [{shape}]" if values else ""
    reasons = {
        ALLOCATE_NEGATIVE: f"Trying to create tensor with negative dimension:{where}",
        ALLOCATE_LAYOUT: "cannot give the result the layout of an argument that overlaps itself; pass a contiguous one",
    }
    for reason, message in reasons.items():
        here, other = writer.label("reason"), writer.label("other")
        writer.branch_if(writer.emit(f"icmp eq i64 {code}, {reason}"), here, other)
        writer.place(here)
        used = values if "{}" in message else ()
        fail(host, Failure(FailureKind.RUNTIME, message), used, statement.loc)
        writer.place(other)
    writer.branch(last)
    writer.place(last)
    message = f"cannot allocate a tensor of shape{where or ' (too large)'} (error {ALLOCATE_FAILED})"
    fail(host, Failure(FailureKind.RUNTIME, message), values, statement.loc)
    writer.place(made)


def _fill(host: Host, statement: Allocate, value: Expression) -> None:
    writer, tensor = host.state.writer, statement.tensor
    local, dtype = host.locals[tensor], tensor.type.dtype
    wanted = value_dtype(dtype)
    text = scalar(host, value if value.dtype is wanted else Cast(operand=value, dtype=wanted))
    if statement.given and not tensor.type.contiguous:
        number = text
        if not wanted.is_float:
            number = writer.emit(f"{'uitofp' if wanted is BOOL else 'sitofp'} {scalar_type(wanted)} {text} to double")
        elif wanted is FLOAT32:
            number = writer.emit(f"fpext float {text} to double")
        writer.call("i1", "@bw_fill_strided", (f"ptr {writer.load('ptr', local.handle)}", f"double {number}"))
        return
    bits = _constant_bits(value, dtype) or _bits(host, text, dtype)
    writer.call("void", "@bw_fill", (f"ptr {local.block}", f"i64 {local.word}", f"i64 {bits}"))


def _constant_bits(value: Expression, dtype: DType) -> str | None:
    """Return a literal as an element of a 16-bit type; None where `_bits` does."""
    if not isinstance(value, Constant) or dtype not in {FLOAT16, BFLOAT16}:
        return None
    if dtype is FLOAT16:
        return str(struct.unpack("<H", struct.pack("<e", float(value.value)))[0])
    return None


def _bits(host: Host, text: str, dtype: DType) -> str:
    """Return a value as the bits of an element of `dtype`, in an i64 whose upper bytes do not matter."""
    emit = host.state.writer.emit
    if dtype is FLOAT64:
        return emit(f"bitcast double {text} to i64")
    if dtype is FLOAT16:
        half = emit(f"fptrunc float {text} to half")
        return emit(f"zext i16 {emit(f'bitcast half {half} to i16')} to i64")
    if dtype.is_float:
        word = emit(f"bitcast float {text} to i32")
        if dtype is BFLOAT16:
            odd = emit(f"and i32 {emit(f'lshr i32 {word}, 16')}, 1")
            rounded = emit(f"add i32 {emit(f'add i32 {word}, 32767')}, {odd}")
            number = emit(f"fcmp ord float {text}, {text}")
            word = emit(f"lshr i32 {emit(f'select i1 {number}, i32 {rounded}, i32 2143289344')}, 16")
        return emit(f"zext i32 {word} to i64")
    return emit(f"zext i1 {text} to i64") if dtype is BOOL else text


def _launch(host: Host, kernel: Kernel) -> None:
    writer, layout = host.state.writer, context_layout(kernel)
    context = writer.alloca("i64", layout.length, _CONTEXT_ALIGNMENT)
    writer.store("ptr", host.record, writer.slot(context, layout.record))
    for tensor, slots in layout.tensors.items():
        length = 8 * block_words(tensor.type.rank)
        target, source = writer.slot(context, slots.data), host.locals[tensor].block
        writer.effect(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {length}, i1 false)")
    host.state.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    for symbol, slot in layout.scalars.items():
        kind, text = _word(host, scalar(host, Read(symbol=symbol)), symbol.dtype)
        writer.store(kind, text, writer.slot(context, slot))
    writer.call("void", "@" + host.kernels[kernel.name].removeprefix("@"), (f"ptr {context}",))
    failed = writer.emit(f"icmp eq i64 {writer.load('i64', writer.slot(host.record, RECORD_FAILED))}, 0")
    good = writer.label("good")
    writer.branch_if(failed, good, host.failed, weights(host.state))
    writer.place(good)


def _return(host: Host, tensors: tuple[Tensor, ...]) -> None:
    """End the call: tell autograd what was written, put results on the stack, give up all else."""
    writer = host.state.writer
    for tensor in sorted(host.written, key=lambda tensor: tensor.number):
        writer.call("void", "@bw_bump", (f"ptr {writer.load('ptr', host.locals[tensor].handle)}",))
    if any(host.locals[tensor].position is not None for tensor in tensors):
        wanted, unwanted = writer.label("wanted"), writer.label("unwanted")
        writer.branch_if(writer.emit("icmp ne i64 %outputs, 0"), wanted, unwanted)
        writer.place(unwanted)
        _finish(host, ())
        writer.place(wanted)
    _finish(host, tensors)


def _finish(host: Host, tensors: tuple[Tensor, ...]) -> None:
    writer = host.state.writer
    results: list[str] = []
    taken: set[Tensor] = set()
    for tensor in tensors:
        local = host.locals[tensor]
        handle = writer.load("ptr", local.handle)
        if tensor in taken:
            handle = writer.call("ptr", "@bw_share", (f"ptr {handle}",))
        elif local.position is not None:
            writer.store("ptr", "null", writer.slot("%stack", local.position))
        taken.add(tensor)
        results.append(handle)
    for tensor, local in host.locals.items():
        if local.position is None and tensor not in taken:
            writer.call("void", "@bw_delete", (f"ptr {writer.load('ptr', local.handle)}",))
    writer.call("void", "@bw_release", ("ptr %stack", f"ptr @{TABLE}"))
    for index, handle in enumerate(results):
        writer.store("ptr", handle, writer.slot("%stack", index))
    writer.terminate("ret void")
