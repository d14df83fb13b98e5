"""The boxed entry of a specialisation: `void @entry(ptr %stack, i64 %inputs, i64 %outputs)`, called by the dispatcher.

It tests whether the arguments are of its specialisation (else it jumps to the next entry), runs the host program, and
leaves the results on the stack. It owns the handles on the stack once it has matched. See docs/internals/native-abi.md.

Not in here: the statements of the host program (`host_program.py`), what all entries share (`support.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import assert_never

from brickwork.analysis.polynomial import SIZE_LIMIT
from brickwork.codegen.builder import FunctionWriter, Module
from brickwork.codegen.convention import RECORD_FAILED, RECORD_LOCK, RECORD_WORDS, ContextLayout
from brickwork.codegen.emitter_state import Slot, State
from brickwork.codegen.entry_description import ANY, EntryDescription, Sizes
from brickwork.codegen.host_cuda import (
    begin_cuda,
    device_condition,
    emit_end,
    emit_exception,
    emit_key,
    emit_pending,
    emit_throw,
    narrow_condition,
    refuse_nondeterministic,
)
from brickwork.codegen.host_program import emit_statements, given_tensors, prepare
from brickwork.codegen.host_state import Cuda, Held, Host, fail, scalar, store_scalar, view_as_pairs
from brickwork.codegen.lane_values import scalar_type
from brickwork.codegen.support import (
    ANY_AXIS,
    DTYPE_NUMBERS,
    FUNCTIONS,
    NEXT,
    TABLE,
    block_words,
    element_word,
    type_word,
)
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, DType
from brickwork.ir.nodes import (
    AbsentParameter,
    Failure,
    FailureKind,
    Kernel,
    KeyParameter,
    ListParameter,
    Parameter,
    Program,
    ScalarParameter,
    Size,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TextParameter,
    parameter_tensors,
)
from brickwork.ir.signature import MOST_RATE
from brickwork.target.target import Target

ENTRY = "entry"
"""The name of the function that `emit_entry` writes."""

_EXPANDED = Failure(
    FailureKind.RUNTIME,
    "unsupported operation: more than one element of the written-to tensor {name!r} refers to a single memory location."
    " Please clone() the tensor before performing the operation.",
)
_INFERENCE = Failure(
    FailureKind.RUNTIME,
    "Inplace update to inference tensor {name!r} outside InferenceMode is not allowed."
    " You can make a clone to get a normal tensor before doing inplace update.",
)
_ENORMOUS = Failure(
    FailureKind.RUNTIME,
    "the tensor {name!r} has an axis of 2**48 elements or more, for which arithmetic on indices may overflow.",
)


def emit_entry(
    module: Module,
    program: Program,
    kernels: Mapping[str, str],
    target: Target,
    device: Target | None = None,
    *,
    nondeterministic: bool = False,
    default_dtype: DType | None = None,
    sizes: Sizes = ANY,
) -> EntryDescription:
    """Write the entry of `program` into `module`, after its kernels; `kernels` maps Kernel.name to the function.

    For a program whose device is CUDA, `device` is the GPU's target, `kernels` maps to the symbols of the kernels'
    cells (`support.kernel_cell`), and the module begins with the failures of the module of the device kernels, whose
    numbers stay valid. `nondeterministic` says that results depend on the order of threads: atomic updates of floats.
    `default_dtype` is what torch's default dtype must be for the code to fit; None where it does not matter. With
    `sizes`, those of each tensor argument in order, the entry takes only calls with just these.

    The stack holds the parameters in order, then, for an out variant, one tensor for each `given` allocation in the
    order of `Return`. Results that are the caller's tensors are returned only if the schema has outputs.
    """
    for name, (result, parameters) in FUNCTIONS.items():
        module.declare(name, result, parameters)
    module.globals[NEXT] = f"@{NEXT} = external global [2 x i64]"
    module.globals[TABLE] = f"@{TABLE} = external global i64"
    writer = FunctionWriter(module, ENTRY, "void", [("ptr", "stack"), ("i64", "inputs"), ("i64", "outputs")])
    host = _begin(module, program, kernels, target, writer, device)
    prepare(host, program)
    writer.store("i64", "0", writer.slot(host.record, RECORD_LOCK))
    writer.store("i64", "0", writer.slot(host.record, RECORD_FAILED))
    if host.cuda is not None:
        emit_pending(host)
    miss = writer.label("miss")
    if default_dtype is not None:
        number = DTYPE_NUMBERS[default_dtype.name]
        _require(host, writer.emit(f"icmp eq i64 {writer.call('i64', '@bw_default_dtype', ())}, {number}"), miss)
    _match_all(host, miss)
    if sizes:
        _match_sizes(host, sizes, miss)
    _refuse_enormous(host)
    _refuse_unwritable(host)
    _match_aliasing(host, miss)
    if nondeterministic and host.cuda is not None:
        refuse_nondeterministic(host)
    _read_keys(host)
    emit_statements(host, program.body)
    _emit_failure(host)
    writer.place(miss)
    head = writer.emit(f"load atomic ptr, ptr @{NEXT} acquire, align 8")
    writer.effect(f"musttail call void {head}(ptr %stack, i64 %inputs, i64 %outputs)")
    writer.terminate("ret void")
    writer.close()
    return EntryDescription(program.name, ENTRY, tuple(module.failures))


def _begin(
    module: Module,
    program: Program,
    kernels: Mapping[str, str],
    target: Target,
    writer: FunctionWriter,
    device: Target | None,
) -> Host:
    on_cuda = program.device == "cuda"
    if on_cuda and device is None:
        msg = "a program for CUDA needs the GPU's target"
        raise TypeError(msg)
    nowhere = Kernel(name=program.name, tensors=(), scalars=(), facts=(), body=())
    layout = ContextLayout(record=0, tensors={}, scalars={}, length=1)
    state = State(module, target, nowhere, layout, writer, "null", "0")
    written = {*parameter_tensors(program.parameters, mutated=True)}
    given = given_tensors(program)
    return Host(
        state=state,
        program=program,
        kernels=kernels,
        given=given,
        written=tuple(written | {*given}),
        record=writer.alloca("i64", RECORD_WORDS),
        failed=writer.label("failed"),
        cuda=begin_cuda(writer, device) if on_cuda and device is not None else None,
    )


def _argument(host: Host, position: int) -> str:
    writer = host.state.writer
    return writer.load("ptr", writer.slot("%stack", position))


def _require(host: Host, condition: str, miss: str) -> None:
    """Go on where a condition holds, else try the next specialisation."""
    writer = host.state.writer
    match = writer.label("match")
    writer.branch_if(condition, match, miss)
    writer.place(match)


def _match_all(host: Host, miss: str) -> None:
    """Go on where all arguments are of this specialisation; the key comes last, as it is told by the device."""
    parameters = host.program.parameters
    for position, parameter in enumerate(parameters):
        if not isinstance(parameter, KeyParameter):
            _match(host, position, parameter, miss)
    for offset, tensor in enumerate(host.given):
        place = len(parameters) + offset
        _match_tensor(host, place, _argument(host, place), tensor, miss, written=True)
    if host.cuda is not None:
        if all(local.position is None for local in host.locals.values()):
            msg = "without tensors among its arguments a program is not for CUDA"
            raise TypeError(msg)
        _require_beyond(host, host.cuda, miss)
    for position, parameter in enumerate(parameters):
        if isinstance(parameter, KeyParameter):
            _match(host, position, parameter, miss)


def _match_sizes(host: Host, sizes: Sizes, miss: str) -> None:
    """Go on where the tensor arguments have these sizes."""
    writer = host.state.writer
    tensors = [tensor for tensor, local in host.locals.items() if local.position is not None]
    for tensor, extents in zip(tensors, sizes, strict=True):
        for axis, extent in enumerate(extents):
            size = scalar(host, Size(tensor=tensor, axis=axis))
            _require(host, writer.emit(f"icmp eq i64 {size}, {extent}"), miss)


def _match(host: Host, position: int, parameter: Parameter, miss: str) -> None:
    writer = host.state.writer
    match parameter:
        case TensorParameter(tensor=tensor, mutated=mutated, optional=optional):
            handle = writer.load("ptr", _present(host, position, miss)) if optional else _argument(host, position)
            _match_tensor(host, position, handle, tensor, miss, written=mutated)
        case ScalarParameter(symbol=symbol, optional=optional):
            place = _present(host, position, miss) if optional else writer.slot("%stack", position)
            _match_scalar(host, place, symbol, miss)
            _match_value(host, place, parameter, miss)
        case AbsentParameter():
            _require(host, writer.emit(f"icmp eq ptr {_argument(host, position)}, null"), miss)
        case TextParameter(value=value):
            bytes_of = f"ptr {host.state.module.string(value)}"
            arguments = (f"ptr {_argument(host, position)}", bytes_of, f"i64 {len(value.encode())}")
            _require(host, writer.call("i1", "@bw_is_text", arguments), miss)
        case ListParameter(symbols=symbols):
            items = _items(host, position, len(symbols), miss)
            for index, symbol in enumerate(symbols):
                _match_scalar(host, writer.slot(items, index), symbol, miss)
        case TensorListParameter(tensors=tensors, mutated=mutated):
            items = _items(host, position, len(tensors), miss)
            for index, tensor in enumerate(tensors):
                handle = writer.load("ptr", writer.slot(items, index))
                _match_tensor(host, position, handle, tensor, miss, written=mutated)
        case KeyParameter(symbol=symbol):
            optional = f"ptr {_argument(host, position)}"
            if host.cuda is None:
                _require(host, writer.call("i1", "@bw_inspect_key", (optional,)), miss)
                host.state.slots[symbol] = Slot(writer.alloca("i64"), INT64, varying=False)
            else:
                device = f"i32 {writer.load('i32', host.cuda.device)}"
                _require(host, writer.call("i1", "@bw_cuda_inspect_key", (optional, device)), miss)
        case _:
            assert_never(parameter)


def _present(host: Host, position: int, miss: str) -> str:
    """Go on where an optional argument is there; return the address of its word."""
    word = _argument(host, position)
    _require(host, host.state.writer.emit(f"icmp ne ptr {word}, null"), miss)
    return word


def _items(host: Host, position: int, length: int, miss: str) -> str:
    """Go on where a list has `length` items; return the address of their words."""
    writer = host.state.writer
    items = writer.alloca("i64", max(length, 1))
    arguments = (f"ptr {_argument(host, position)}", f"i64 {length}", f"ptr {items}")
    _require(host, writer.call("i1", "@bw_inspect_list", arguments), miss)
    return items


def _match_tensor(host: Host, position: int, handle: str, tensor: Tensor, miss: str, *, written: bool) -> None:
    writer = host.state.writer
    block = writer.alloca("i64", block_words(tensor.type.rank))
    word = type_word(tensor.type, written=written, cuda=host.cuda is not None)
    if tensor.type.pairs:
        whole = writer.alloca("i64", block_words(tensor.type.axes))
        asked = element_word(tensor.type, written=written, cuda=host.cuda is not None, unit=ANY_AXIS)
        _require(host, writer.call("i1", "@bw_inspect", (f"ptr {handle}", f"i64 {asked}", f"ptr {whole}")), miss)
        view_as_pairs(writer, tensor.type, whole, block)
    else:
        _require(host, writer.call("i1", "@bw_inspect", (f"ptr {handle}", f"i64 {word}", f"ptr {block}")), miss)
    if host.cuda is not None:
        _require(host, device_condition(host, host.cuda, handle), miss)
        within = writer.call("i1", "@bw_narrow", (f"ptr {block}", f"i64 {word}"))
        aligned = writer.call("i1", "@bw_aligned", (f"ptr {block}",))
        _limit(host, within, miss, asked=host.program.narrow, found=host.cuda.within)
        _limit(host, aligned, miss, asked=host.program.aligned, found=host.cuda.aligned)
    slot = writer.alloca("ptr")
    writer.store("ptr", handle, slot)
    host.locals[tensor] = Held(block=block, word=word, handle=slot, position=position)


def _match_scalar(host: Host, address: str, symbol: Symbol, miss: str) -> None:
    _read_scalar(host, address, symbol)
    if host.cuda is not None and symbol.dtype is INT64:
        writer = host.state.writer
        within = narrow_condition(writer, writer.load("i64", address))
        _limit(host, within, miss, asked=host.program.narrow, found=host.cuda.within)


def _match_value(host: Host, address: str, parameter: ScalarParameter, miss: str) -> None:
    """Go on where a scalar has the value that the program is for, and none that others are for."""
    writer = host.state.writer
    if parameter.value is not None:
        _require(host, writer.emit(f"icmp eq i64 {writer.load('i64', address)}, {parameter.value}"), miss)
    elif parameter.rate:
        above = writer.emit(f"sub i64 {writer.load('i64', address)}, 1")
        _require(host, writer.emit(f"icmp uge i64 {above}, {MOST_RATE}"), miss)


def _limit(host: Host, condition: str, miss: str, *, asked: bool, found: list[str]) -> None:
    """Require what holds for each argument of a narrow or aligned call, or remember it."""
    if asked:
        _require(host, condition, miss)
    else:
        found.append(condition)


def _require_beyond(host: Host, cuda: Cuda, miss: str) -> None:
    """Go on where a call is not narrow, or not aligned, that is to be so: others have code of their own."""
    writer = host.state.writer
    for found in (cuda.within, cuda.aligned):
        if found:
            every = reduce(lambda one, other: writer.emit(f"and i1 {one}, {other}"), found)
            _require(host, writer.emit(f"xor i1 {every}, true"), miss)


def _read_keys(host: Host) -> None:
    """Read or draw the random key, or make the cell that holds it on a GPU."""
    writer = host.state.writer
    for position, parameter in enumerate(host.program.parameters):
        match parameter:
            case KeyParameter(cell=cell) if cell is not None and host.cuda is not None:
                emit_key(host, host.cuda, cell, _argument(host, position))
            case KeyParameter(symbol=symbol) if host.cuda is None:
                key = writer.call("i64", "@bw_read_key", (f"ptr {_argument(host, position)}",))
                writer.store("i64", key, host.state.slots[symbol].address)
            case _:
                pass


def _read_scalar(host: Host, address: str, symbol: Symbol) -> None:
    """Unpack a stack word: an int64, the bits of a double, or a bool in the lowest bit."""
    writer = host.state.writer
    if symbol.dtype is BOOL:
        text = writer.emit(f"trunc i64 {writer.load('i64', address)} to i1")
    elif symbol.dtype.is_float:
        text = writer.load("double", address)
        if symbol.dtype is not FLOAT64:
            text = writer.emit(f"fptrunc double {text} to {scalar_type(symbol.dtype)}")
    else:
        text = writer.load("i64", address)
    store_scalar(host, symbol, text)


def _match_aliasing(host: Host, miss: str) -> None:
    """Require that written tensors share memory with others, or with themselves, just if the program expects it."""
    writer = host.state.writer
    found: list[str] = []
    tensors = [tensor for tensor, local in host.locals.items() if local.position is not None]
    for tensor in host.written:
        local = host.locals[tensor]
        mine = f"ptr {local.block}, i64 {local.word}"
        if not tensor.type.contiguous and tensor.type.rank:
            found.append(writer.emit(f"xor i1 {writer.call('i1', '@bw_injective', (mine,))}, true"))
        for other in tensors:
            if other is not tensor and not (other in host.written and other.number < tensor.number):
                theirs = f"ptr {host.locals[other].block}, i64 {host.locals[other].word}"
                found.append(writer.call("i1", "@bw_overlap", (mine, theirs)))
    if not found:
        return
    some = found[0]
    for condition in found[1:]:
        some = writer.emit(f"or i1 {some}, {condition}")
    _require(host, some if host.program.may_alias else writer.emit(f"xor i1 {some}, true"), miss)


def _refuse_enormous(host: Host) -> None:
    """Fail before anything runs where an axis is beyond what proofs assume: only an expanded or empty one can be."""
    writer = host.state.writer
    if host.program.narrow:
        return
    for tensor, local in host.locals.items():
        if local.position is None or not tensor.type.rank or (tensor.type.contiguous and tensor.type.rank == 1):
            continue
        sizes = [scalar(host, Size(tensor=tensor, axis=axis)) for axis in range(tensor.type.rank)]
        bits = sizes[0]
        for size in sizes[1:]:
            bits = writer.emit(f"or i64 {bits}, {size}")
        beyond = writer.emit(f"icmp uge i64 {bits}, {SIZE_LIMIT}")
        _fail_where(host, beyond, Failure(_ENORMOUS.kind, _named(_ENORMOUS, tensor)))


def _refuse_unwritable(host: Host) -> None:
    """Fail before anything runs where a written tensor is expanded, or is an inference tensor that must not change."""
    writer = host.state.writer
    for tensor in sorted(host.written, key=lambda tensor: tensor.number):
        local = host.locals[tensor]
        handle = writer.load("ptr", local.handle)
        forbidden = writer.call("i1", "@bw_forbidden", (f"ptr {handle}",))
        _fail_where(host, forbidden, Failure(_INFERENCE.kind, _named(_INFERENCE, tensor)))
        if not tensor.type.contiguous and tensor.type.rank:
            expanded = writer.call("i1", "@bw_expanded", (f"ptr {local.block}, i64 {local.word}",))
            _fail_where(host, expanded, Failure(_EXPANDED.kind, _named(_EXPANDED, tensor)))


def _named(failure: Failure, tensor: Tensor) -> str:
    return failure.message.replace("{name!r}", repr(tensor.name))


def _fail_where(host: Host, condition: str, failure: Failure) -> None:
    with host.state.writer.when(condition):
        fail(host, failure, (), host.program.loc)


def _emit_failure(host: Host) -> None:
    """Write the end of a call that failed: give up every handle, ask Python for the exception, jump to the thrower."""
    writer = host.state.writer
    writer.place(host.failed)
    if host.cuda is not None:
        emit_end(host, host.cuda)
    for local in host.locals.values():
        if local.position is None and not local.borrowed:
            writer.call("void", "@bw_delete", (f"ptr {writer.load('ptr', local.handle)}",))
    writer.call("void", "@bw_release", ("ptr %stack", f"ptr @{TABLE}"))
    number = writer.load("i64", f"getelementptr (i64, ptr @{NEXT}, i64 1)")
    if host.cuda is not None:
        exception = emit_exception(host, host.cuda, number)
    else:
        exception = writer.call("i64", "@bw_failed", (f"i64 {number}", f"ptr {host.record}"))
    emit_throw(writer, exception)
