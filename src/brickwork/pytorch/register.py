"""Operators as PyTorch's dispatcher knows them: libraries, schemas, gates at their keys, fakes, and redefinition.

What is registered stays: the dispatcher's functions go through a `Registration`, whose `behaviour` is exchanged when an
operator is defined again with the same schema. With another schema it is registered under its kept name, which
`torch.ops.ns.name` then means; an OpOverload of the old one that somebody holds keeps working.

The kept name of an operator, `ns::name__<hash>`, means one code in every process. A handle whose name another
definition takes over goes by it, and so does what is derived of an operator where the shorter name is taken.
"""

from __future__ import annotations

import importlib
import re
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch

from brickwork.pytorch.fusion import LOWERINGS, enter_in_keys, offer
from brickwork.pytorch.gate import (
    Gate,
    OnAutograd,
    asks_for_gradient,
    caller_below_autograd,
    passes_autograd,
    schema_arguments,
)
from brickwork.pytorch.import_hooks import when_imported
from brickwork.pytorch.kept_names import Held, KeptNames
from brickwork.pytorch.libtorch import made_for_cuda, private
from brickwork.pytorch.overrides.fast_path import Front, StandIn, can_stand, front_of
from brickwork.pytorch.overrides.inductor import NAMESPACE, Overridden, follow
from brickwork.pytorch.overrides.kernel_stack import Kernel, Layer, Registered, kernel_at, put_in_front, take_out
from brickwork.pytorch.overrides.overloads import Member
from brickwork.pytorch.schema import OUT, Overload, Schema
from brickwork.pytorch.scripted import let_scripts_call
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.records import dataclass
from brickwork.runtime.traceback import OwnFramesHidden, hide_frames

if TYPE_CHECKING:
    from brickwork.transform.derivation import Defined

DEFAULT = "default"
"""torch's name of the overload without a name."""
_DTENSOR = "torch.distributed.tensor"

_KEPT_SECONDS = 10.0
"""How long a function that was taken out of the dispatcher is kept for threads that are on their way into it."""


class Behaviour(Protocol):
    """What an operator does when the dispatcher asks; `overload` is DEFAULT or OUT."""

    @property
    def definition(self) -> Defined | None:
        """What it was made of, if its loops are known."""
        ...

    @property
    def fusible(self) -> Defined | None:
        """The same where graphs may have its code; None where they have to call it."""
        ...

    @property
    def kept(self) -> str:
        """Its name with a hash of all that it is made of: of the same code in every process."""
        ...

    def miss(self, overload: str, gate: Gate, values: tuple[object, ...]) -> None:
        """Add a specialisation for these arguments to a gate of the overload."""
        ...

    def fake(self, overload: str) -> Callable[..., Any]:
        """Return the fake implementation of an overload."""
        ...

    def differentiate(self, overload: str, values: Sequence[Any]) -> Any:
        """Serve a call that torch wants to differentiate or, of the default overload, to batch."""
        ...

    def define(self, base: str, suffix: str) -> bool:
        """Register what is derived as `base__suffix`; return whether there is such a thing."""
        ...


class HeldBehaviour(Held, Behaviour, Protocol):
    """What an operator does that a user holds."""


class NativeBehaviour(Behaviour, Protocol):
    """What an operator does whose host part is machine code."""

    def batch(self, values: Sequence[Any]) -> Any:
        """Serve a call of the default overload, which stores into nothing, over the samples of torch's older vmap."""
        ...


class PythonBehaviour(Behaviour, Protocol):
    """What an operator does whose host part runs in Python."""

    def run(self, overload: str) -> Callable[..., Any]:
        """Return the implementation of an overload."""
        ...


@dataclass(slots=True)
class Registration:
    """One operator as it is registered in the dispatcher; it outlives redefinitions of the operator."""

    name: str
    """`ns::name`, as the user wrote it."""
    schema: Schema
    packet: Any
    """What `torch.ops.ns.name` is."""
    behaviour: Behaviour
    gates: dict[str, Gate] = field(default_factory=dict[str, Gate])
    python: bool = False
    """Whether the implementation is Python's; there are no gates then."""
    devices: tuple[str, ...] = ()
    """The keys of devices that Python implements it at."""
    operator: str = ""
    """The dispatcher's name of it: `name` or a kept name."""

    def overload(self, name: str) -> Any:
        """Return the OpOverload of that name."""
        return getattr(self.packet, name)


@dataclass(slots=True)
class _State:
    """The state of this module: everything that was ever registered in this process."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    libraries: dict[str, Any] = field(default_factory=dict[str, Any])
    registrations: dict[str, Registration] = field(default_factory=dict[str, Registration])
    defined: set[str] = field(default_factory=set[str])
    """The dispatcher's names of all operators."""
    names: KeptNames = field(default_factory=KeptNames)
    defining: set[str] = field(default_factory=set[str])
    """Names that are being defined, which torch looks up before."""
    awaited: set[str] = field(default_factory=set[str])
    """The modules, DTensor's and Inductor's, that will be told of the operators when they are imported."""
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict[tuple[str, str], Kernel])
    """Kernels of PyTorch with overrides in front, by overload and key."""
    fronts: dict[tuple[StandIn, str, str], Front] = field(default_factory=dict[tuple[StandIn, str, str], Front])
    """Machine code that has ever stood in front of an overload at a key."""
    overridden: SimpleNamespace = field(default_factory=SimpleNamespace)
    """The keys at which overloads are overridden, each with the code that graphs may have, by the overloads' names with
    underscores: what guards of graphs look at."""
    left: deque[tuple[float, Registered]] = field(default_factory=deque[tuple[float, Registered]])
    """What was taken out lately, and when: a thread may still be on its way there."""


_state = _State()


def register(
    name: str,
    schema: Schema,
    behaviour: Behaviour,
    thunks: Callable[[], bytes],
    *,
    python: bool = False,
    alone: bool = True,
    devices: tuple[str, ...] | None = None,
) -> Registration:
    """Make `name` (`ns::name`) an operator, or exchange its behaviour; `thunks` gives the code that gates need.

    With `python` the behaviour is a `PythonBehaviour`, which has no gates. One that is `alone` is `Held`, and takes the
    name over. Another one comes with an operator: it is exchanged for the same code only, and nothing is traced anew.
    `devices` are the keys that Python serves, those of all devices unless given.
    """
    if devices is None:
        devices = ("CPU", "CUDA") if made_for_cuda() else ("CPU",)
    with _state.lock:
        known = _state.registrations.get(name)
        if known is not None and alone:
            forget_traces()
        elif known is not None and known.behaviour.kept != behaviour.kept:
            name = behaviour.kept
        registration = _fitting(name, (schema, python, devices), behaviour, alone=alone)
        if alone:
            _state.names.take_over(name, cast("HeldBehaviour", behaviour))
        if registration is None:
            registration = _define(name, schema, behaviour, None if python else thunks(), devices)
        else:
            registration.behaviour = behaviour
            for gate in registration.gates.values():
                gate.clear()
        _state.registrations[name] = _state.registrations[registration.operator] = registration
        namespace, _, plain = name.partition("::")
        setattr(getattr(torch.ops, namespace), plain, registration.packet)
    _share(registration, anew=known is not None)
    if isinstance(behaviour, Held):
        let_scripts_call(behaviour, registration.operator)
    if _is_imported(LOWERINGS, _offer_all):
        _offer(registration)
    return registration


def _fitting(name: str, kind: tuple[object, ...], behaviour: Behaviour, *, alone: bool) -> Registration | None:
    """Return the registration that a behaviour can be exchanged in: of the same code, or of a name to take over."""
    for each in (name, behaviour.kept):
        known = _state.registrations.get(each)
        if known is None or (known.schema, known.python, known.devices) != kind:
            continue
        if known.behaviour.kept == behaviour.kept or (alone and each == known.operator):
            return known
    return None


def kept_name(name: str, digest: str, *, tells_all: bool) -> str:
    """Return the kept name of what is defined; where its hash does not tell all, definitions are counted."""
    kept = f"{name}__{digest}"
    with _state.lock:
        return kept if tells_all else _state.names.count(kept)


def note_call(kept: str) -> str | None:
    """Note that a handle is called of a name that one has left; see `KeptNames.note_call`."""
    with _state.lock:
        return _state.names.note_call(kept)


def family_name(name: str, kept: str) -> str:
    """Return what the names of operators that are derived of a handle begin with: those of a name's first definition
    with that name, others with the kept one. Graphs look names up when they run, also after a name was taken over.
    """
    with _state.lock:
        return name if _state.names.first.get(name) == kept else kept


def lock() -> threading.RLock:
    """Return what is held while anything is registered."""
    return _state.lock


def kernel_of(overload: Any, key: str) -> Kernel:
    """Return the kernel of an overload at a dispatch key, with what is in front of it by now."""
    return _state.kernels.get((overload.name(), key)) or Kernel(overload, key, kernel_at(overload, key))


def native_front(function: object, member: Member, key: str) -> Front | None:
    """Return the machine code of a callable for an overload at a key; None where it has none. `lock()` is held."""
    if not isinstance(function, StandIn) or not can_stand(function, member):
        return None
    overload, name = member.overload, member.overload.name()

    def serve(keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        kernel = kernel_of(overload, key)
        layers = kernel.layers
        return layers[-1].serve(keys, arguments, named) if layers else kernel.call_original(keys, arguments, named)

    if (function, name, key) not in _state.fronts:
        _state.fronts[function, name, key] = front_of(function, overload, key, serve)
    return _state.fronts[function, name, key]


def replace(kernel: Kernel, layer: Layer, front: Front | None) -> None:
    """Put a layer in front of a kernel; `lock()` is held since `kernel_of` has returned it."""
    put_in_front(kernel, layer, front)
    _state.kernels[kernel.overload.name(), kernel.key] = kernel
    _tell_compilers(kernel.overload)


def restore(kernel: Kernel, layer: Layer) -> None:
    """Take a layer out. What it was in front of is as it was before."""
    with _state.lock:
        now = time.monotonic()
        _state.left.append((now, take_out(kernel, layer)))
        while _state.left[0][0] < now - _KEPT_SECONDS:
            _state.left.popleft()
        if not kernel.layers:
            del _state.kernels[kernel.overload.name(), kernel.key]
        _tell_compilers(kernel.overload)


def overriding_layers() -> list[Layer]:
    """Return what stands in front of kernels."""
    return [layer for kernel in list(_state.kernels.values()) for layer in kernel.layers]


def _tell_compilers(overload: Any) -> None:
    """Let graphs that are made, or about to be called, see at which keys an overload is overridden."""
    name = overload.name()
    plain = name.replace("::", "_").replace(".", "_")
    first = not hasattr(_state.overridden, plain)
    kernels = [kernel for (each, _), kernel in _state.kernels.items() if each == name]
    setattr(_state.overridden, plain, tuple(f"{each.key} {each.layers[-1].code}" for each in kernels))
    if first:
        if NAMESPACE not in _state.libraries:
            _state.libraries[NAMESPACE] = torch.library.Library(NAMESPACE, "FRAGMENT")

        def devices() -> tuple[str, ...]:
            return tuple(key for each, key in _state.kernels if each == name)

        def written(key: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
            return _state.kernels[name, key].layers[-1].written(arguments, named)

        seen = Overridden(devices, ("pytorch", "register", "_state", "overridden", plain), written)
        follow(overload, seen, _state.libraries[NAMESPACE])


def registered(name: str) -> Registration | None:
    """Return what is registered as `ns::name`."""
    return _state.registrations.get(name)


def by_name(name: str, module: str) -> Any:
    """Return the behaviour of the operator of that name, importing the module that defines it if need be."""
    found = _state.names.find(name) or registered(name)
    if found is None:
        importlib.import_module(module)
        found = _state.names.find(name) or registered(name)
    if found is None:
        raise LookupError(f"module {module} does not define the operator {name}")
    return found.behaviour if isinstance(found, Registration) else found


class _Namespace(type(torch.ops.aten)):
    """What `torch.ops.ns` is where operators of ours are: names of something derived, and kept names, are found.

    Such names stand in graphs that another process has compiled.
    """

    __module__ = "torch._ops"

    def __getattr__(self, name: str) -> Any:
        """Return an operator that nobody has asked for yet."""
        if _appears(f"{self.name}::{name}"):
            return vars(self)[name]
        return super().__getattr__(name)


def _appears(name: str) -> bool:
    """Return whether a name is kept for a handle, or that of a derived operator; it is registered from then on."""
    base, mark, suffix = name.rpartition("__")
    if not mark or name in _state.defining:
        return False
    handle = _state.names.find(name)
    if handle is not None:
        handle.appear()
        return name in _state.registrations
    if not (base in _state.registrations or _appears(base)):
        return False
    return _state.registrations[base].behaviour.define(base, suffix)


def _define(
    name: str, schema: Schema, behaviour: Behaviour, thunks: bytes | None, devices: tuple[str, ...]
) -> Registration:
    namespace = name.partition("::")[0]
    if name not in _state.defined and _is_taken(name):
        raise ValueError(f"{name} is an operator of PyTorch or of another library already; choose another name")
    operator = _free_name(name, behaviour.kept)
    internal = operator.partition("::")[2]
    library: Any = _state.libraries.get(namespace)
    if library is None:
        library = _state.libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
        getattr(torch.ops, namespace).__class__ = _Namespace
    tags = [torch.Tag.pt2_compliant_tag]
    if schema.random:
        tags.append(torch.Tag.nondeterministic_seeded)
    overloads = {DEFAULT: schema.default} | ({OUT: schema.out} if schema.out is not None else {})
    _state.defining.add(operator)
    for overload in overloads.values():
        library.define(re.sub(r"\w+", internal, overload.schema, count=1), tags=tags)
    packet = getattr(getattr(torch.ops, namespace), internal)
    _state.defining.discard(operator)
    _state.defined.add(operator)
    registration = Registration(name, schema, packet, behaviour, {}, thunks is None, devices, operator)
    for label, overload in overloads.items():
        full_name = operator + ("" if label == DEFAULT else f".{label}")
        _implement(registration, label, overload, full_name, thunks)
    return registration


def _free_name(name: str, kept: str) -> str:
    """Return the dispatcher's name for what is to be called `name`; names are never given away again."""
    count, chosen = 1, name if name not in _state.defined else kept
    while chosen in _state.defined:
        count += 1
        chosen = f"{kept}_{count}"
    return chosen


def _share(registration: Registration, *, anew: bool = False) -> None:
    """Tell DTensor of an operator, perhaps `anew`: now, or of all that there are once it is imported.

    The lock is not held: another thread may be importing it, and then wants the lock.
    """
    if _is_imported(_DTENSOR, _share_all):
        room = importlib.import_module("brickwork.pytorch.sharding")
        default = registration.overload(DEFAULT)

        def definition() -> Defined | None:
            return registration.behaviour.definition

        if anew:
            room.forget_placements()
        room.share(default, registration.schema, definition)
        if registration.schema.out is not None:
            room.share_out(registration.overload(OUT), registration.schema.out.outputs, default)


def _share_all() -> None:
    for registration in _all():
        _share(registration)


def _offer(registration: Registration) -> None:
    """Let Inductor ask about an operator.

    Where a name was taken over, its graphs are others than those of processes in which it means one code.
    """
    kept = registration.behaviour.kept
    if _state.names.first.get(registration.name, kept) != kept:
        enter_in_keys(f"{registration.name} is defined again", kept)

    def fusible() -> Defined | None:
        return registration.behaviour.fusible

    def fake(*values: object, **named: object) -> Any:
        return registration.behaviour.fake(DEFAULT)(*values, **named)

    offer(registration.overload(DEFAULT), fusible, fake)


def _offer_all() -> None:
    for registration in _all():
        _offer(registration)


def _all() -> list[Registration]:
    with _state.lock:
        return [*_state.registrations.values()]


def _is_imported(module: str, later: Callable[[], None]) -> bool:
    """Whether a module has been imported; if not, `later` is called when it is."""
    if module in sys.modules:
        return True
    if module not in _state.awaited:
        _state.awaited.add(module)
        when_imported(module, later)
    return False


def _is_taken(name: str) -> bool:
    """Return whether torch knows an operator of this name."""
    try:
        private("_C._dispatch_find_schema_or_throw")(name, "")
    except RuntimeError:
        return False
    return True


def _implement(
    registration: Registration, label: str, overload: Overload, full_name: str, thunks: bytes | None
) -> None:
    """Put the gate (for None: the Python implementation) and the fake of one overload in place."""

    def miss(values: tuple[object, ...]) -> None:
        registration.behaviour.miss(label, registration.gates[label], values)

    def fake(*arguments: Any, **named: Any) -> Any:
        return registration.behaviour.fake(label)(*arguments, **named)

    library = _state.libraries[registration.name.partition("::")[0]]
    name = full_name.partition("::")[2]
    if thunks is None:
        _implement_in_python(registration, label, library, name)
    else:
        gate = Gate(full_name, overload.arguments, miss, _on_autograd(registration, label), thunks)
        gate.register()
        registration.gates[label] = gate
    _follow_transforms(registration, label, library, name)
    library._register_fake(name, fake)  # noqa: SLF001  # torch's own door to a library's fakes


def _implement_in_python(registration: Registration, label: str, library: Any, name: str) -> None:
    """Register the Python implementation of an overload.

    Tensors bring a call to their device's keys; where no argument has to be one, any call is served.
    """

    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return cast("PythonBehaviour", registration.behaviour).run(label)(*arguments, **named)
        except Exception as error:
            hide_frames(error)
            raise

    if any(str(each.type) == "Tensor" for each in schema_arguments(registration.overload(label))):
        for device in registration.devices:
            library.impl(name, run, device)
    else:
        library.impl(name, run, "CompositeExplicitAutograd")


def _follow_transforms(registration: Registration, label: str, library: Any, name: str) -> None:
    """Put in place what differentiates and batches an overload in Python.

    That is at the autograd keys that have no gate, and, for the default overload, where function transforms begin. An
    operator without a kernel there would pass as one whose gradient is zero.
    """
    arguments = schema_arguments(registration.overload(label))
    on_autograd = _on_autograd(registration, label)

    def at_autograd(*given: Any, **named: Any) -> Any:
        try:
            if (
                registration.python
                and passes_autograd(given)
                and not (named and not passes_autograd([*named.values()]))
            ):
                return cast("PythonBehaviour", registration.behaviour).run(label)(*given, **named)
            values = in_order(arguments, given, named)
            return on_autograd(values, asks_for_gradient(values))
        except Exception as error:
            hide_frames(error)
            raise

    def transformed(*given: Any, **named: Any) -> Any:
        with OwnFramesHidden():
            return registration.behaviour.differentiate(label, in_order(arguments, given, named))

    def batched(*given: Any, **named: Any) -> Any:
        with OwnFramesHidden():
            return cast("NativeBehaviour", registration.behaviour).batch(in_order(arguments, given, named))

    if any("Tensor" in str(each.type) for each in arguments):
        library.impl(name, at_autograd, "Autograd")
    if label == DEFAULT:
        library.impl(name, transformed, "FuncTorchDynamicLayerFrontMode")
    if label == DEFAULT and not registration.python and not any(each.alias_info for each in arguments):
        library.impl(name, batched, "Batched")


def _on_autograd(registration: Registration, label: str) -> OnAutograd:
    """Return what serves calls that machine code leaves to Python.

    A lazily negated or conjugated tensor that is written is resolved in here: torch's own fallback does so only for
    operators that return what they write.
    """
    overload = registration.overload(label)
    arguments = schema_arguments(overload)
    written = [place for place, each in enumerate(arguments) if each.alias_info and each.alias_info.is_write]
    below = caller_below_autograd(overload)

    def on_autograd(values: tuple[object, ...], wants_gradient: bool) -> object:
        if wants_gradient:
            return registration.behaviour.differentiate(label, values)
        stored = tensors_of([values[place] for place in written])
        lazy = [tensor for tensor in stored if tensor.is_neg() or tensor.is_conj()]
        resolved = {id(tensor): tensor.clone().resolve_neg() for tensor in lazy}
        result = below([_kernel(value, resolved) for value in values] if lazy else values)
        for tensor in lazy:
            tensor.copy_(resolved[id(tensor)])
        return result

    return on_autograd


def in_order(arguments: Any, given: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
    """Return the values of a call in the order of the schema, with its defaults."""
    return tuple(
        given[place] if place < len(given) else named.get(each.name, each.default_value)
        for place, each in enumerate(arguments)
    )


def _kernel(value: object, tensors: Mapping[int, torch.Tensor]) -> object:
    """Return an argument with tensors, and those in a list, replaced by their ids."""
    if isinstance(value, list | tuple):
        return [_kernel(item, tensors) for item in cast("Sequence[object]", value)]
    return tensors.get(id(value), value)


def forget_traces() -> None:
    """Make Dynamo trace anew whatever it has compiled: an operator in it may have changed.

    For that it imports the rest of torch's compiler, whose own warnings are no matter of the caller's.
    """
    dynamo: Any = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dynamo.reset()
