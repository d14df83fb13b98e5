"""Gates: the functions that PyTorch's dispatcher holds, and the chain of specialisations behind each operator.

An operator has one chain. `Gate` makes its native functions (loaded once, never unloaded), registers them, links new
entries in front, and turns misses and failures into calls of Python. See docs/internals/native-abi.md.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import count
from operator import attrgetter
from types import TracebackType
from typing import Any, TypeAlias, cast

import torch
from torch._ops import OpOverload

from brickwork.codegen.convention import RECORD_WORDS
from brickwork.codegen.entry_description import EntryDescription
from brickwork.codegen.llvm import translate_module
from brickwork.codegen.support import CUDA_FUNCTIONS, CUDA_LOAD, FUNCTIONS, NEXT, TABLE
from brickwork.diagnostics.errors import InternalError
from brickwork.host import support
from brickwork.host.failure import exception_of
from brickwork.pytorch import libtorch
from brickwork.pytorch.devices import devices, driver_error, out_of_memory, own_symbols
from brickwork.runtime.loader import LoadedObject, load
from brickwork.runtime.traceback import hide_frames
from brickwork.target.target import Target


class ArgumentKind(Enum):
    """How an argument lies on the stack, from its type in the schema (SymInt counts as int)."""

    TENSOR = "Tensor"
    OPTIONAL_TENSOR = "Tensor?"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    OPTIONAL_INT = "int?"
    OPTIONAL_FLOAT = "float?"
    OPTIONAL_BOOL = "bool?"
    TENSOR_LIST = "Tensor[]"
    INT_LIST = "int[]"
    FLOAT_LIST = "float[]"
    BOOL_LIST = "bool[]"
    TEXT = "str"


OnMiss: TypeAlias = Callable[[tuple[object, ...]], None]
"""Called with the Python values of all stack arguments when no entry matches, under the gate's lock. It must make the
next walk of the chain match: `gate.add(...)`; if it has added an entry for such arguments before (another thread missed
at the same time), it just returns. What it raises reaches the caller of the operator."""

OnAutograd: TypeAlias = Callable[[tuple[object, ...], bool], object]
"""Called at the autograd key instead of the chain when an argument is no plain dense tensor (a FakeTensor, a
functorch wrapper, a subclass, a neg/conj view), a dispatch mode is active, or a gradient is asked for (second argument
True: grad mode is on and an argument requires grad, or one has a forward gradient). Returns the operator's result."""

_SLOTS = {
    ArgumentKind.TENSOR: support.TENSOR,
    ArgumentKind.OPTIONAL_TENSOR: support.OPTIONAL_TENSOR,
    ArgumentKind.INT: support.PLAIN,
    ArgumentKind.FLOAT: support.PLAIN,
    ArgumentKind.BOOL: support.PLAIN,
    ArgumentKind.OPTIONAL_INT: support.OPTIONAL,
    ArgumentKind.OPTIONAL_FLOAT: support.OPTIONAL,
    ArgumentKind.OPTIONAL_BOOL: support.OPTIONAL,
    ArgumentKind.TENSOR_LIST: support.TENSOR_LIST,
    ArgumentKind.INT_LIST: support.LIST,
    ArgumentKind.FLOAT_LIST: support.LIST,
    ArgumentKind.BOOL_LIST: support.LIST,
    ArgumentKind.TEXT: support.TEXT,
}
_ITEMS = {
    ArgumentKind.TENSOR_LIST: ArgumentKind.TENSOR,
    ArgumentKind.INT_LIST: ArgumentKind.INT,
    ArgumentKind.FLOAT_LIST: ArgumentKind.FLOAT,
    ArgumentKind.BOOL_LIST: ArgumentKind.BOOL,
}
_INSIDE = {
    ArgumentKind.OPTIONAL_TENSOR: ArgumentKind.TENSOR,
    ArgumentKind.OPTIONAL_INT: ArgumentKind.INT,
    ArgumentKind.OPTIONAL_FLOAT: ArgumentKind.FLOAT,
    ArgumentKind.OPTIONAL_BOOL: ArgumentKind.BOOL,
}
_REFUSED = ("SparseCPU", "SparseCsrCPU", "QuantizedCPU", "MkldnnCPU", "NestedTensorCPU", "AutogradNestedTensor")
_REFUSED_ON_CUDA = ("SparseCUDA", "SparseCsrCUDA", "QuantizedCUDA", "NestedTensorCUDA")
"""Dispatch keys of tensors that no entry takes: a call always misses, and `OnMiss` says why it cannot be served."""
_MODES = ("Python", "PythonDispatcher", "Functionalize", "FuncTorchDynamicLayerBackMode")
"""Dispatch keys below autograd that a mode, not a tensor, brings in."""

_DECREF = "_ZNK3c1010TensorImpl15decref_pyobjectEv"
"""What torch has where a tensor that goes out of use in C++ takes Python's lock to tell its Python object."""

_WORD = ctypes.c_uint64
_ON_MISS = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD)
_ON_AUTOGRAD = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD, _WORD, _WORD)
_ON_FAILURE = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD)
_ON_PENDING = ctypes.CFUNCTYPE(_WORD)
_ON_LOAD = ctypes.CFUNCTYPE(_WORD, _WORD, _WORD)
_EXCEPTION = ctypes.PYFUNCTYPE(_WORD, _WORD, _WORD, _WORD, ctypes.c_char_p, _WORD)
_RELEASE = ctypes.PYFUNCTYPE(None, _WORD, _WORD)


def thunk_object(target: Target) -> bytes:
    """Return the object code that every gate is made of; the same for all gates, so it can be cached on disk."""
    return translate_module(support.support_text(cuda=libtorch.can_launch()), target)


def thunk_name() -> str:
    """Return what `thunk_object` makes on this machine, for cache keys."""
    return "gate with CUDA" if libtorch.can_launch() else "gate"


def caller_below_autograd(overload: OpOverload) -> Callable[[Sequence[object]], Any]:
    """Return what calls an operator, with all arguments in order, so that the dispatcher begins below autograd."""
    guard: Any = libtorch.private("_C._AutoDispatchBelowAutograd")
    plain = not any(each.kwarg_only for each in schema_arguments(overload))
    native: Callable[..., Any] = attrgetter("_op")(overload)

    def call(arguments: Sequence[object]) -> Any:
        with guard():
            return native(*arguments) if plain else call_in_order(overload, arguments)

    return call


def schema_arguments(overload: Any) -> Any:
    """Return the arguments that the schema of an OpOverload declares."""
    return attrgetter("_schema.arguments")(overload)


def call_in_order(
    overload: OpOverload, arguments: Sequence[object], function: Callable[..., object] | None = None
) -> object:
    """Call an operator, or a function in place of it, with all arguments in the order of its schema."""
    parameters = schema_arguments(overload)
    positional = [value for value, parameter in zip(arguments, parameters, strict=True) if not parameter.kwarg_only]
    named = {p.name: value for value, p in zip(arguments, parameters, strict=True) if p.kwarg_only}
    return (function or overload)(*positional, **named)


class Gate:
    """The native side of one operator overload. It lives as long as the process, as the dispatcher does."""

    def __init__(
        self,
        operator: str,
        arguments: Sequence[ArgumentKind],
        on_miss: OnMiss,
        on_autograd: OnAutograd,
        thunks: bytes,
        *,
        last: str = "bw_miss",
    ) -> None:
        """Make the gate of `operator` (`ns::name` or `ns::name.overload`); `thunks` is `thunk_object`'s result.

        With "bw_serve" as the end of the chain, `on_autograd` answers the calls that no entry takes.
        """
        self.operator = operator
        self._kinds = tuple(arguments)
        self._on_miss, self._on_autograd = on_miss, on_autograd
        self._lock = threading.RLock()
        self._numbers = count()
        self._descriptions: dict[int, EntryDescription] = {}
        self._kept: list[object] = []
        self._served: dict[tuple[int, int], tuple[int, int]] = {}
        self._unloadable: dict[int, BaseException] = {}
        self._head = (_WORD * 2)()
        self.clearings = 0
        name = support.PYTHON_ERROR if libtorch.knows_python_error() else support.OTHER_ERROR
        self._type_name = ctypes.create_string_buffer(name)
        table = support.argument_table(
            libtorch.key_set_offset(),
            libtorch.autograd_offset(),
            libtorch.plain_keys(),
            [libtorch.dispatch_key(name) for name in _MODES],
            libtorch.dispatch_key("ADInplaceOrView"),
            [_SLOTS[kind] for kind in self._kinds],
            locks=libtorch.has_symbol(_DECREF),
        )
        self._table = (ctypes.c_int64 * len(table))(*table)
        self._symbols = self._bind(thunks)
        self._last = self._thunks.address(last)
        self._head[0] = self._last
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    def _bind(self, thunks: bytes) -> Mapping[str, int]:
        """Load the gate's own functions; return what its entries link with."""
        callbacks = {
            "bw_on_miss": _ON_MISS(self._missed),
            "bw_on_autograd": _ON_AUTOGRAD(self._at_autograd),
            "bw_failed": _ON_FAILURE(self._failed),
            "bw_cuda_failed": _ON_FAILURE(self._refused),
            "bw_cuda_pending": _ON_PENDING(self._pending),
            "bw_cuda_load": _ON_LOAD(self._load),
        }
        self._kept += callbacks.values()
        own = {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in callbacks.items()}
        own |= own_symbols()
        own |= {NEXT: ctypes.addressof(self._head), TABLE: ctypes.addressof(self._table)}
        own[support.TYPE_NAME] = ctypes.addressof(self._type_name)
        self._thunks: LoadedObject = load(thunks, libtorch.TorchSymbols(own))
        self._make_exception = _EXCEPTION(self._thunks.address("bw_exception"))
        self._release = _RELEASE(self._thunks.address("bw_release"))
        functions = (*FUNCTIONS, *CUDA_FUNCTIONS) if libtorch.can_launch() else FUNCTIONS
        return own | {name: self._thunks.address(name) for name in functions if name not in own}

    def register(self) -> None:
        """Register with the dispatcher, for ever; the schema must have been defined.

        Tensors bring a call to their device's keys; where no argument has to be one, every call passes BackendSelect.
        """
        places: dict[str, str] = {}
        if ArgumentKind.TENSOR not in self._kinds:
            places = {"BackendSelect": "bw_gate"}
        if {ArgumentKind.TENSOR, ArgumentKind.OPTIONAL_TENSOR, ArgumentKind.TENSOR_LIST} & {*self._kinds}:
            places |= {"CPU": "bw_gate", "AutogradCPU": "bw_autograd"} | dict.fromkeys(_REFUSED, "bw_miss")
            if libtorch.made_for_cuda():
                places |= {"CUDA": "bw_gate", "AutogradCUDA": "bw_autograd"}
                places |= dict.fromkeys(_REFUSED_ON_CUDA, "bw_miss")
        for key, function in places.items():
            self._implement(key, function)

    def register_at(self, key: str) -> Callable[[], None]:
        """Register the chain at one dispatch key; return what takes it out again."""
        handle = self._implement(key, "bw_gate")
        return functools.partial(libtorch.libraries()[0].aoti_torch_delete_library_object, handle)

    def _implement(self, key: str, function: str) -> ctypes.c_void_p:
        """Register a function at a dispatch key; return torch's handle on the registration."""
        namespace, _, name = self.operator.partition("::")
        functions = libtorch.libraries()[0]
        functions.aoti_torch_abi_version.restype = ctypes.c_uint64
        version = ctypes.c_uint64(functions.aoti_torch_abi_version())
        handle, address = ctypes.c_void_p(), ctypes.c_void_p(self._thunks.address(function))
        made = functions.aoti_torch_library_init_impl(
            namespace.encode(), key.encode(), b"brickwork", ctypes.c_uint32(1), ctypes.byref(handle)
        )
        if made or functions.torch_library_impl(handle, name.encode(), address, version):
            raise RuntimeError(f"torch does not accept a kernel for {self.operator} at the dispatch key {key}")
        return handle

    def add(self, object_bytes: bytes, description: EntryDescription, symbols: Mapping[str, int] | None = None) -> None:
        """Load a specialisation and put it in front of the chain; `symbols` are what it links with besides."""
        with self._lock:
            number = next(self._numbers)
            cell = (_WORD * 2)(self._head[0], number)
            own = {**self._symbols, **(symbols or {}), NEXT: ctypes.addressof(cell)}
            entry = load(object_bytes, libtorch.TorchSymbols(own))
            self._kept += (cell, entry)
            self._descriptions[number] = description
            devices().owners[ctypes.addressof(cell)] = description
            self._head[0] = entry.address(description.symbol)

    def clear(self) -> None:
        """Forget all specialisations: the chain is the miss routine alone (their code stays loaded)."""
        with self._lock:
            self._head[0] = self._last
            self.clearings += 1

    def _missed(self, stack: int, inputs: int, outputs: int) -> int:
        """Answer a miss: 0 to walk the chain again, or the exception to throw."""
        del inputs, outputs

        def answer() -> None:
            with self._lock:
                before = self._progress()
                self._on_miss(self._values(stack))
                self._check_progress((threading.get_ident(), stack), before)

        code = self._answered(answer)
        if code:
            self._release(stack, ctypes.addressof(self._table))
        return code

    def _progress(self) -> tuple[int, int]:
        """Return what changes when a miss helps: the head of the chain, or how many GPUs are ready."""
        return self._head[0], len(devices().gpus)

    def _check_progress(self, call: tuple[int, int], before: tuple[int, int]) -> None:
        """Raise if a call misses again though nothing was added: Python and machine code disagree about its arguments.

        A miss adds nothing if another thread has just added what this one needs; the next walk of the chain must match.
        """
        if self._progress() != before:
            self._served.pop(call, None)
        elif self._served.get(call) == before:
            raise InternalError(f"no code of {self.operator} takes the arguments that it was compiled for")
        else:
            self._served[call] = before

    def _at_autograd(self, stack: int, inputs: int, outputs: int, reasons: int) -> int:
        """Serve a call that needs Python at the autograd key; 0, or the exception to throw."""
        del inputs
        results: list[torch.Tensor] = []

        def answer() -> None:
            values = self._values(stack)
            gradients = reasons & (support.REQUIRES_GRAD | support.FORWARD_GRAD)
            wanted = bool(gradients) if libtorch.key_set_offset() >= 0 else asks_for_gradient(values)
            result: Any = self._on_autograd(values, wanted)
            results.extend([result] if isinstance(result, torch.Tensor) else result or ())

        code = self._answered(answer)
        self._release(stack, ctypes.addressof(self._table))
        if not code:
            words = (_WORD * outputs).from_address(stack)
            for index, tensor in zip(range(outputs), results, strict=False):
                words[index] = libtorch.handle_of(tensor)
        return code

    def _failed(self, number: int, record: int) -> int:
        """Return the exception for a failed check of specialisation `number`."""
        words = (_WORD * RECORD_WORDS).from_address(record)

        def answer() -> None:
            description = self._descriptions[number]
            error = exception_of(list(words), description.failures, description.operator)
            raise out_of_memory(error) if isinstance(error, MemoryError) else error

        return self._answered(answer)

    def _refused(self, number: int, error: int) -> int:
        """Return the exception for what the driver refused to specialisation `number`."""

        def answer() -> None:
            code = ctypes.c_int64(error).value
            if code == CUDA_LOAD:
                raise self._unloadable.pop(threading.get_ident())
            raise driver_error(self._descriptions[number].operator, code)

        return self._answered(answer)

    def _load(self, cell: int, stream: int) -> int:
        """Load a kernel that is to be launched; 0, or `CUDA_LOAD` for what `_refused` tells then."""

        def keep(error: BaseException) -> int:
            self._unloadable[threading.get_ident()] = error
            return CUDA_LOAD

        shield = _Shield(keep)
        with shield:
            devices().load_for_launch(cell, stream, self.operator)
        return shield.code

    def _pending(self) -> int:
        """Return the exception for what an earlier launch has recorded; 0 if another thread has told it."""

        def answer() -> None:
            error = devices().take_failure()
            if error is not None:
                raise error

        return self._answered(answer)

    def _answered(self, action: Callable[[], None]) -> int:
        """Run something on behalf of native code, which no exception may pass; 0, or the exception to throw."""
        shield = _Shield(self._thrown)
        with shield:
            action()
        return shield.code

    def _thrown(self, error: BaseException) -> int:
        """Return a native exception that carries a Python one."""
        trace = error.__traceback__
        message = type(error).__name__
        with suppress(Exception):
            message = f"{message}: {error}"
        text = message.encode(errors="replace")
        for item in (type(error), error, *(() if trace is None else (trace,))):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
        return int(self._make_exception(id(type(error)), id(error), _address(trace), text, len(text)))

    def _values(self, stack: int) -> tuple[Any, ...]:
        """Return the arguments on a stack as Python values; the stack keeps its handles."""
        words = (_WORD * len(self._kinds)).from_address(stack)
        return tuple(_value(word, kind) for word, kind in zip(words, self._kinds, strict=True))


def _address(trace: TracebackType | None) -> int:
    return 0 if trace is None else id(trace)


def _value(word: int, kind: ArgumentKind) -> Any:
    match kind:
        case ArgumentKind.TENSOR:
            return libtorch.tensor_of(word)
        case ArgumentKind.INT:
            return ctypes.c_int64(word).value
        case ArgumentKind.FLOAT:
            return ctypes.c_double.from_buffer(_WORD(word)).value
        case ArgumentKind.BOOL:
            return bool(word & 0xFF)
        case ArgumentKind.TEXT:
            return _text(word)
        case _ if kind in _INSIDE:
            return _value(_WORD.from_address(word).value, _INSIDE[kind]) if word else None
        case _:
            return [_value(item, _ITEMS[kind]) for item in _items(word)]


def _text(handle: int) -> str:
    functions, length, data = libtorch.libraries()[0], ctypes.c_size_t(), ctypes.c_void_p()
    functions.torch_string_length(ctypes.c_void_p(handle), ctypes.byref(length))
    functions.torch_string_c_str(ctypes.c_void_p(handle), ctypes.byref(data))
    return ctypes.string_at(data, length.value).decode(errors="surrogatepass") if data else ""


def _items(handle: int) -> list[int]:
    functions, size, word = libtorch.libraries()[0], ctypes.c_size_t(), _WORD()
    functions.torch_list_size(ctypes.c_void_p(handle), ctypes.byref(size))
    items: list[int] = []
    for index in range(size.value):
        functions.torch_list_get_item(ctypes.c_void_p(handle), ctypes.c_size_t(index), ctypes.byref(word))
        items.append(word.value)
    return items


def asks_for_gradient(values: Sequence[Any]) -> bool:
    """Answer in Python what the gate could not see natively."""
    unpack: Callable[[torch.Tensor], Any] = attrgetter("autograd.forward_ad.unpack_dual")(torch)
    items: list[Any] = []
    for value in values:
        items += value if isinstance(value, list) else (value,)
    tensors = [item for item in items if isinstance(item, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return True
    return any(unpack(tensor).tangent is not None for tensor in tensors)


def passes_autograd(values: Sequence[Any]) -> bool:
    """Answer in Python what the gate sees natively: nothing between autograd and the device has to do with a call.

    All tensors are plain dense ones, no dispatch mode is on, and no gradient is asked for.
    """
    included, keys_of, modes, more = _key_sets()
    if included().raw_repr() & modes or _FORWARD["_current_level"] >= 0:
        return False
    grad = torch.is_grad_enabled()
    for value in values:
        if isinstance(value, torch.Tensor):
            if keys_of(value).raw_repr() & more or (grad and value.requires_grad):
                return False
        elif isinstance(value, list) and not passes_autograd(cast("list[Any]", value)):
            return False
    return True


@functools.cache
def plain_call_test() -> Callable[[Iterable[torch.Tensor]], bool]:
    """Return what tells whether the dispatcher would bring a call of tensors to the gate at the autograd key at once.

    All are plain dense ones, and this thread has no mode, transform, tracer or forward gradient on, nor autograd off.
    """
    included, keys_of, _, more = _key_sets()
    is_excluded = libtorch.private("_C._dispatch_tls_is_dispatch_key_excluded")
    has_function_mode = libtorch.private("_C._is_torch_function_mode_enabled")
    devices = ("CPU", "CUDA") if libtorch.made_for_cuda() else ("CPU",)
    usual = libtorch.keys_of_modes(("BackendSelect", "ADInplaceOrView", *(f"Autocast{device}" for device in devices)))
    unusual, autograd = ~usual, libtorch.private("_C.DispatchKey.AutogradFunctionality")

    def is_plain(tensors: Iterable[torch.Tensor]) -> bool:
        if included().raw_repr() & unusual or is_excluded(autograd):
            return False
        if _FORWARD["_current_level"] >= 0 or has_function_mode():
            return False
        for tensor in tensors:  # noqa: SIM110  # as `any` of a generator it takes twice as long
            if keys_of(tensor).raw_repr() & more:
                return False
        return True

    return is_plain


@functools.cache
def _key_sets() -> tuple[Callable[[], Any], Callable[[torch.Tensor], Any], int, int]:
    """Return torch's functions for the key sets of a thread and a tensor, and the bits that matter in them."""
    included, keys_of = libtorch.private("_C._dispatch_tls_local_include_set"), libtorch.private("_C._dispatch_keys")
    return included, keys_of, libtorch.keys_of_modes(_MODES), ~libtorch.plain_keys()


_FORWARD: Mapping[str, Any] = vars(torch.autograd.forward_ad)
"""Where torch keeps the level of forward gradients; -1 while there are none."""


class _Shield:
    """A context that no exception leaves: it becomes `code`, the native exception that carries it."""

    def __init__(self, throw: Callable[[BaseException], int]) -> None:
        self.code = 0
        self._throw = throw

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None:
            hide_frames(error)
            self.code = self._throw(error)
        return True
