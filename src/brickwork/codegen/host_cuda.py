"""What the entry of a program for CUDA does besides: it finds the device, launches kernels, and makes the key's cell.

A session (context and stream) is begun before the first launch on each way through the program and ended on each way
out; nothing waits for the device. See docs/internals/cuda.md.

Not in here: the functions that are called (`host/cuda.ll`), the grid of a kernel (`launch_dimensions.py`).
"""

from __future__ import annotations

from brickwork.codegen.builder import FunctionWriter
from brickwork.codegen.convention import RECORD_FAILED, ContextLayout, context_layout
from brickwork.codegen.failures import weights
from brickwork.codegen.host_state import Cuda, Host, fail, scalar, word
from brickwork.codegen.launch_dimensions import emit_launch_dimensions
from brickwork.codegen.support import CUDA_DATA, CUDA_FUNCTIONS, NEXT, SESSION_WORDS, TABLE, block_words
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Failure, FailureKind, Kernel, Read, Symbol, Tensor
from brickwork.ir.signature import NARROW_SIZE
from brickwork.target.target import Target

_WORD = 8
_RECORD, _RECORD_ON_DEVICE, _ = CUDA_DATA
_UNORDERED = (
    "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. You can"
    " turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable"
    " for your application."
)


def begin_cuda(writer: FunctionWriter, target: Target) -> Cuda:
    """Reserve what an entry for CUDA needs, and declare what it calls."""
    module = writer.module
    for name, (result, parameters) in CUDA_FUNCTIONS.items():
        module.declare(name, result, parameters)
    for name in (_RECORD, _RECORD_ON_DEVICE):
        module.globals[name] = f"@{name} = external global i64"
    cuda = Cuda(
        target=target,
        device=writer.alloca("i32"),
        session=writer.alloca("i64", SESSION_WORDS),
        begun=writer.alloca("i1"),
        error=writer.alloca("i64"),
    )
    writer.store("i32", "-1", cuda.device)
    writer.store("i1", "false", cuda.begun)
    writer.store("i64", "0", cuda.error)
    return cuda


def emit_pending(host: Host) -> None:
    """Let Python raise what an earlier launch failed with; nothing but the stack is owned yet."""
    writer = host.state.writer
    address = f"getelementptr (i64, ptr @{_RECORD}, i64 {RECORD_FAILED})"
    flag = writer.emit(f"load atomic i64, ptr {address} acquire, align 8")
    clean, pending, throw = (writer.label(stem) for stem in ("clean", "pending", "throw"))
    writer.branch_if(writer.emit(f"icmp eq i64 {flag}, 0"), clean, pending, weights(host.state))
    writer.place(pending)
    exception = writer.call("i64", "@bw_cuda_pending", ())
    writer.branch_if(writer.emit(f"icmp eq i64 {exception}, 0"), clean, throw)
    writer.place(throw)
    writer.call("void", "@bw_release", ("ptr %stack", f"ptr @{TABLE}"))
    emit_throw(writer, exception)
    writer.place(clean)


def emit_throw(writer: FunctionWriter, exception: str) -> None:
    """Jump to the thrower with the address of a native exception."""
    pointer = writer.emit(f"inttoptr i64 {exception} to ptr")
    writer.effect(f"musttail call void @bw_throw(ptr {pointer}, i64 %inputs, i64 %outputs)")
    writer.terminate("ret void")


def device_condition(host: Host, cuda: Cuda, handle: str) -> str:
    """Emit whether a tensor is on the device of those before it; the first one's has to be ready and of this kind."""
    writer = host.state.writer
    device = writer.call("i32", "@bw_cuda_device", (f"ptr {handle}",))
    if any(local.position is not None for local in host.locals.values()):
        return writer.emit(f"icmp eq i32 {device}, {writer.load('i32', cuda.device)}")
    writer.store("i32", device, cuda.device)
    architecture = int(cuda.target.cpu.removeprefix("sm_"))
    return writer.call("i1", "@bw_cuda_serves", (f"i32 {device}", f"i64 {architecture}"))


def narrow_condition(writer: FunctionWriter, number: str) -> str:
    """Emit whether an integer argument is within the limits of a narrow call."""
    shifted = writer.emit(f"add i64 {number}, {NARROW_SIZE - 1}")
    return writer.emit(f"icmp ult i64 {shifted}, {2 * NARROW_SIZE - 1}")


def refuse_nondeterministic(host: Host) -> None:
    """Fail before anything runs where torch is told to raise for results that depend on the order of threads."""
    writer = host.state.writer
    with writer.when(writer.call("i1", "@bw_cuda_deterministic", ())):
        fail(host, Failure(FailureKind.RUNTIME, _UNORDERED.format(host.program.name)), (), host.program.loc)


def emit_key(host: Host, cuda: Cuda, cell: Tensor, optional: str) -> None:
    """Make the key's cell: the caller's tensor, or one of the entry's own."""
    writer, local = host.state.writer, host.locals[cell]
    for index in range(1, block_words(cell.type.rank)):
        writer.store("i64", "1", writer.slot(local.block, index))
    _begin(host, cuda)
    device = writer.load("i32", cuda.device)
    places = (f"ptr {local.block}", f"ptr {local.handle}", f"ptr {cuda.session}")
    code = writer.call("i64", "@bw_cuda_key", (f"ptr {optional}", f"i32 {device}", *places))
    _require_success(host, cuda, code)


def emit_launch(host: Host, cuda: Cuda, kernel: Kernel) -> None:
    """Launch a device kernel on torch's stream, unless its grid is empty."""
    writer = host.state.writer
    _begin(host, cuda)
    geometry = emit_launch_dimensions(lambda expression: scalar(host, expression), writer, kernel)
    with writer.when(writer.emit(f"icmp ne i32 {geometry.x}, 0")):
        layout = context_layout(kernel, device=True)
        context = _fill_context(host, layout)
        cell = host.kernels[kernel.name].removeprefix("@")
        host.state.module.globals[cell] = f"@{cell} = external global ptr"
        sizes = (geometry.x, geometry.y, geometry.block, geometry.teams)
        grid = (f"ptr @{cell}", *(f"i32 {size}" for size in sizes), f"i32 {geometry.shared}")
        grid = (*grid, f"i32 {geometry.together}")
        parameters = (f"ptr {context}", f"i64 {_WORD * layout.length}", f"ptr {cuda.session}")
        _require_success(host, cuda, writer.call("i64", "@bw_cuda_launch", (*grid, *parameters)))


def emit_end(host: Host, cuda: Cuda) -> None:
    """End the session, if one was begun."""
    writer = host.state.writer
    with writer.when(writer.load("i1", cuda.begun)):
        writer.call("void", "@bw_cuda_end", (f"ptr {cuda.session}",))


def emit_exception(host: Host, cuda: Cuda, number: str) -> str:
    """Ask Python for the exception of a call that failed, in a check or because of the driver; return its address."""
    writer = host.state.writer
    exception = writer.alloca("i64")
    error = writer.load("i64", cuda.error)
    checked, refused, after = (writer.label(stem) for stem in ("checked", "refused", "after"))
    writer.branch_if(writer.emit(f"icmp eq i64 {error}, 0"), checked, refused)
    writer.place(checked)
    of_check = writer.call("i64", "@bw_failed", (f"i64 {number}", f"ptr {host.record}"))
    writer.store("i64", of_check, exception)
    writer.branch(after)
    writer.place(refused)
    of_driver = writer.call("i64", "@bw_cuda_failed", (f"i64 {number}", f"i64 {error}"))
    writer.store("i64", of_driver, exception)
    writer.place(after)
    return writer.load("i64", exception)


def refuse(host: Host, cuda: Cuda, error: str) -> None:
    """End the call with an error of the driver, or one of `support.CUDA_ALLOCATE`, `CUDA_DRAW`."""
    host.state.writer.store("i64", error, cuda.error)
    host.state.writer.branch(host.failed)


def _begin(host: Host, cuda: Cuda) -> None:
    """Begin the session on ways on which it has not been."""
    writer = host.state.writer
    begin, ready = writer.label("begin"), writer.label("ready")
    writer.branch_if(writer.load("i1", cuda.begun), ready, begin)
    writer.place(begin)
    device = writer.load("i32", cuda.device)
    _require_success(host, cuda, writer.call("i64", "@bw_cuda_begin", (f"i32 {device}", f"ptr {cuda.session}")))
    writer.store("i1", "true", cuda.begun)
    writer.place(ready)


def _require_success(host: Host, cuda: Cuda, error: str) -> None:
    """End the call where the driver has returned an error."""
    writer = host.state.writer
    good, bad = writer.label("good"), writer.label("bad")
    writer.branch_if(writer.emit(f"icmp eq i64 {error}, 0"), good, bad, weights(host.state))
    writer.place(bad)
    refuse(host, cuda, error)
    writer.place(good)


def _fill_context(host: Host, layout: ContextLayout) -> str:
    """Fill the parameters of a kernel; return their address."""
    writer = host.state.writer
    context = writer.alloca("i64", layout.length, _WORD)
    writer.store("ptr", writer.load("ptr", f"@{_RECORD_ON_DEVICE}"), writer.slot(context, layout.record))
    if layout.owner is not None:
        writer.store("ptr", f"@{NEXT}", writer.slot(context, layout.owner))
    host.state.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    for tensor, slots in layout.tensors.items():
        place, source = writer.slot(context, slots.data), host.locals[tensor].block
        bytes_ = _WORD * block_words(tensor.type.rank)
        writer.effect(f"call void @llvm.memcpy.p0.p0.i64(ptr {place}, ptr {source}, i64 {bytes_}, i1 false)")
    for symbol, slot in layout.scalars.items():
        kind, text = _device_word(host, symbol)
        writer.store(kind, text, writer.slot(context, slot))
    return context


def _device_word(host: Host, symbol: Symbol) -> tuple[str, str]:
    """Return a variable as a word for a device kernel: a float32 is its bits."""
    text = scalar(host, Read(symbol=symbol))
    if symbol.dtype is not FLOAT32:
        return word(host, text, symbol.dtype)
    emit = host.state.writer.emit
    return "i64", emit(f"zext i32 {emit(f'bitcast float {text} to i32')} to i64")
