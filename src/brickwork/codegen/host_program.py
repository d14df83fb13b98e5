"""The statements of a host program as part of an entry: scalars, control flow, checks, allocations, launches, results.

Handles that the program makes are kept in slots that hold null before and after, so that one list of releases serves
every way out.

Not in here: launches of device kernels (`host_cuda.py`).
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import assert_never

from brickwork.codegen.convention import RECORD_FAILED, context_layout
from brickwork.codegen.failures import MOST_VALUES, weights
from brickwork.codegen.host_cuda import emit_end, emit_launch
from brickwork.codegen.host_state import Held, Host, Loop, fail, scalar, store_scalar, view_as_pairs, word
from brickwork.codegen.lane_values import scalar_type
from brickwork.codegen.support import (
    ALLOCATE_LAYOUT,
    ALLOCATE_NEGATIVE,
    TABLE,
    block_words,
    element_word,
    type_word,
)
from brickwork.ir.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT64, DType, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Break,
    Cast,
    Check,
    Constant,
    Continue,
    Expression,
    Failure,
    FailureKind,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    Local,
    Program,
    Read,
    Rebind,
    Return,
    Statement,
    Store,
    Tensor,
    While,
)
from brickwork.ir.walk import statements

_CONTEXT_ALIGNMENT = 8


def given_tensors(program: Program) -> tuple[Tensor, ...]:
    """Return the caller's result tensors in the order in which they are returned."""
    given = {node.tensor for node in statements(program.body) if isinstance(node, Allocate) and node.given}
    for node in statements(program.body):
        if isinstance(node, Return):
            return tuple(dict.fromkeys(tensor for tensor in node.tensors if tensor in given))
    return ()


def emit_statements(host: Host, block: Block) -> None:
    """Emit the body of the host program; an end without `Return` returns nothing."""
    _emit_block(host, block)
    if not host.state.writer.terminated:
        _return(host, ())


def _emit_block(host: Host, block: Block) -> None:
    """Emit statements up to one that leaves."""
    for statement in block:
        _emit(host, statement)
        if host.state.writer.terminated:
            return


def prepare(host: Host, program: Program) -> None:
    """Make room for every tensor that the program makes, with a null handle, before anything can fail."""
    writer = host.state.writer
    cells = [parameter.cell for parameter in program.parameters if isinstance(parameter, KeyParameter)]
    made = [node.tensor for node in statements(program.body) if isinstance(node, Allocate) and not node.given]
    places = {tensor: None for node in statements(program.body) if isinstance(node, Rebind) for tensor in node.targets}
    for tensor in dict.fromkeys((*cells, *made, *places)):
        if tensor is None:
            continue
        memory, handle = writer.alloca("i64", block_words(tensor.type.rank)), writer.alloca("ptr")
        writer.store("ptr", "null", handle)
        kind = type_word(tensor.type, written=True, cuda=host.cuda is not None)
        host.locals[tensor] = Held(block=memory, word=kind, handle=handle, position=None, borrowed=tensor in places)


def _emit(host: Host, statement: Statement) -> None:
    match statement:
        case Assign():
            store_scalar(host, statement.symbol, scalar(host, statement.value))
        case If():
            _branch(host, statement)
        case For():
            _for(host, statement)
        case While():
            _while(host, statement)
        case Break() | Continue():
            _leave(host, stop=isinstance(statement, Break))
        case Check():
            _check(host, statement)
        case Rebind():
            _rebind(host, statement)
        case Allocate():
            _allocate(host, statement)
        case Launch():
            _launch(host, statement.kernel)
        case Return():
            _return(host, statement.tensors)
        case Store() | Local():
            msg = "elements are stored by kernels"
            raise TypeError(msg)
        case _:
            assert_never(statement)


def _branch(host: Host, statement: If) -> None:
    writer = host.state.writer
    then, otherwise, after = writer.label("then"), writer.label("otherwise"), writer.label("after")
    writer.branch_if(scalar(host, statement.condition), then, otherwise)
    for label, block in ((then, statement.then), (otherwise, statement.otherwise)):
        writer.place(label)
        _emit_block(host, block)
        writer.branch(after)
    writer.place(after)


def _for(host: Host, loop: For) -> None:
    writer = host.state.writer
    start, stop = scalar(host, loop.start), scalar(host, loop.stop)
    head, body, latch, after = (writer.label(stem) for stem in ("for", "body", "next", "after"))
    counter = writer.alloca("i64")
    writer.store("i64", start, counter)
    writer.place(head)
    number = writer.load("i64", counter)
    writer.branch_if(writer.emit(f"icmp slt i64 {number}, {stop}"), body, after)
    writer.place(body)
    store_scalar(host, loop.index, number)
    _emit_block(replace(host, loop=Loop(after, latch)), loop.body)
    writer.place(latch)
    writer.store("i64", writer.emit(f"add nsw i64 {number}, 1"), counter)
    writer.branch(head)
    writer.place(after)


def _while(host: Host, loop: While) -> None:
    writer = host.state.writer
    head, body, after = (writer.label(stem) for stem in ("while", "body", "after"))
    inner = replace(host, loop=Loop(after, head))
    writer.place(head)
    _emit_block(inner, loop.prelude)
    if not writer.terminated:
        writer.branch_if(scalar(host, loop.condition), body, after)
        writer.place(body)
        _emit_block(inner, loop.body)
        writer.branch(head)
    writer.place(after)


def _leave(host: Host, *, stop: bool) -> None:
    if host.loop is None:
        msg = "break or continue outside of a loop"
        raise TypeError(msg)
    host.state.writer.branch(host.loop.leave if stop else host.loop.next)


def _check(host: Host, check: Check) -> None:
    writer = host.state.writer
    passed, wrong = writer.label("passed"), writer.label("wrong")
    writer.branch_if(scalar(host, check.condition), passed, wrong, weights(host.state))
    writer.place(wrong)
    values = tuple((scalar(host, value), value.dtype) for value in check.values)
    fail(host, check.failure, values, check.loc)
    writer.place(passed)


def _rebind(host: Host, statement: Rebind) -> None:
    """Let places hold the blocks and the handles of others; all are read before one is written."""
    writer = host.state.writer
    read: list[list[tuple[str, str]]] = []
    for source in statement.sources:
        local = host.locals[source]
        words = [("i64", writer.load("i64", place)) for place in _words(host, source)]
        read.append([*words, ("ptr", writer.load("ptr", local.handle))])
    for target, words in zip(statement.targets, read, strict=True):
        places = (*_words(host, target), host.locals[target].handle)
        for (kind, text), place in zip(words, places, strict=True):
            writer.store(kind, text, place)


def _words(host: Host, tensor: Tensor) -> list[str]:
    """Return the addresses of the words of a tensor's block."""
    block = host.locals[tensor].block
    return [host.state.writer.slot(block, index) for index in range(block_words(tensor.type.rank))]


def _allocate(host: Host, statement: Allocate) -> None:
    writer, tensor = host.state.writer, statement.tensor
    local = host.locals[tensor]
    sizes = [scalar(host, size) for size in statement.sizes]
    if statement.given:
        _check_given(host, statement, sizes)
    else:
        kind, block, word = tensor.type, local.block, local.word
        if kind.pairs:
            sizes, block = sizes[:-1], writer.alloca("i64", block_words(kind.axes))
            word = element_word(kind, written=True, cuda=host.cuda is not None)
        for axis, size in enumerate(sizes):
            writer.store("i64", size, writer.slot(block, 1 + axis))
        if host.loop is not None:
            _give_up(host, local)
        like = "null" if statement.like is None else writer.load("ptr", host.locals[statement.like].handle)
        device = "-1" if host.cuda is None else writer.load("i32", host.cuda.device)
        places = (f"ptr {block}", f"i64 {word}", f"ptr {like}", f"ptr {local.handle}")
        arguments = (*places, f"i32 {device}")
        _check_allocated(host, statement, writer.call("i64", "@bw_allocate", arguments), sizes)
        if kind.pairs:
            view_as_pairs(writer, kind, block, local.block)
    if statement.fill is not None:
        _fill(host, statement, statement.fill)


def _give_up(host: Host, local: Held) -> None:
    """Give up the tensor that an earlier iteration made."""
    writer = host.state.writer
    writer.call("void", "@bw_delete", (f"ptr {writer.load('ptr', local.handle)}",))
    writer.store("ptr", "null", local.handle)


def _check_given(host: Host, statement: Allocate, sizes: list[str]) -> None:
    writer, local, rank = host.state.writer, host.locals[statement.tensor], len(sizes)
    expected = writer.alloca("i64", max(rank, 1))
    for axis, size in enumerate(sizes):
        writer.store("i64", size, writer.slot(expected, axis))
    same = writer.call("i1", "@bw_same_sizes", (f"ptr {local.block}", f"ptr {expected}", f"i64 {rank}"))
    passed, wrong = writer.label("passed"), writer.label("wrong")
    writer.branch_if(same, passed, wrong, weights(host.state))
    writer.place(wrong)
    rank = statement.tensor.type.axes
    shape = ", ".join("{}" for _ in range(rank))
    values = [(size, INT64) for size in sizes[:rank]]
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
    values = tuple((size, INT64) for size in sizes) if len(sizes) <= MOST_VALUES else ()
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
    dtype = statement.tensor.type.element
    count = (_bytes(host, sizes, dtype), FLOAT64)
    values = (count, *values) if len(values) < MOST_VALUES else (count,)
    where = f" of shape [{shape}]" if len(values) > 1 else ""
    message = f"can't allocate memory: you tried to allocate {{:.0f}} bytes, for a tensor{where} of {dtype.name}"
    fail(
        host, Failure(FailureKind.RUNTIME if host.cuda is None else FailureKind.MEMORY, message), values, statement.loc
    )
    writer.place(made)


def _bytes(host: Host, sizes: list[str], dtype: DType) -> str:
    """Return how many bytes a tensor takes: a double, as they may be more than an integer holds."""
    emit, total = host.state.writer.emit, f"{float(dtype.size)}"
    for size in sizes:
        total = emit(f"fmul double {total}, {emit(f'sitofp i64 {size} to double')}")
    return total


def _fill(host: Host, statement: Allocate, value: Expression) -> None:
    writer, tensor = host.state.writer, statement.tensor
    if host.cuda is not None:
        msg = "kernels fill tensors on a GPU"
        raise TypeError(msg)
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
    if host.cuda is not None:
        emit_launch(host, host.cuda, kernel)
        return
    writer, layout = host.state.writer, context_layout(kernel)
    context = writer.alloca("i64", layout.length, _CONTEXT_ALIGNMENT)
    writer.store("ptr", host.record, writer.slot(context, layout.record))
    for tensor, slots in layout.tensors.items():
        length = 8 * block_words(tensor.type.rank)
        target, source = writer.slot(context, slots.data), host.locals[tensor].block
        writer.effect(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {length}, i1 false)")
    host.state.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    for symbol, slot in layout.scalars.items():
        kind, text = word(host, scalar(host, Read(symbol=symbol)), symbol.dtype)
        writer.store(kind, text, writer.slot(context, slot))
    for tensor, slot in layout.handles.items():
        writer.store("ptr", writer.load("ptr", host.locals[tensor].handle), writer.slot(context, slot))
    writer.call("void", "@" + host.kernels[kernel.name].removeprefix("@"), (f"ptr {context}",))
    for tensor, slot in layout.handles.items():
        length, local = 8 * block_words(tensor.type.rank), host.locals[tensor]
        source = writer.slot(context, layout.tensors[tensor].data)
        writer.effect(f"call void @llvm.memcpy.p0.p0.i64(ptr {local.block}, ptr {source}, i64 {length}, i1 false)")
        writer.store("ptr", writer.load("ptr", writer.slot(context, slot)), local.handle)
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
    if host.cuda is not None:
        emit_end(host, host.cuda)
    results: list[str] = []
    taken: set[Tensor] = set()
    for tensor in tensors:
        local = host.locals[tensor]
        handle = writer.load("ptr", local.handle)
        if tensor in taken or local.borrowed:
            handle = writer.call("ptr", "@bw_share", (f"ptr {handle}",))
        elif local.position is not None:
            writer.store("ptr", "null", writer.slot("%stack", local.position))
        taken.add(tensor)
        results.append(handle)
    for tensor, local in host.locals.items():
        if local.position is None and not local.borrowed and tensor not in taken:
            writer.call("void", "@bw_delete", (f"ptr {writer.load('ptr', local.handle)}",))
    writer.call("void", "@bw_release", ("ptr %stack", f"ptr @{TABLE}"))
    for index, handle in enumerate(results):
        writer.store("ptr", handle, writer.slot("%stack", index))
    writer.terminate("ret void")
