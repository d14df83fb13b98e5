"""Operators that come with another one and have a native host part: pieces, and what is derived for gradients and vmap.

What is derived is registered when it is first asked for, under a name that says what it is (`ns::f__backward_11`), so
that a compiled graph in another process finds it by that name.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.parameters import argument_type
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import are_in_memory, device_kind, is_small_rate, signature_of_call, with_values
from brickwork.pytorch.autograd import Differentiation
from brickwork.pytorch.autograd_recipes import Plan
from brickwork.pytorch.dtypes import has_gradient
from brickwork.pytorch.fusion import may_fuse
from brickwork.pytorch.gate import ArgumentKind, Gate
from brickwork.pytorch.register import DEFAULT, Registration, register
from brickwork.pytorch.saved_arguments import Values
from brickwork.pytorch.schema import derive
from brickwork.pytorch.specialise import Place, Specialiser, Tools
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.pytorch.user_backward import UserBackward
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.compile import elements_read
from brickwork.transform.derivation import Backward, Batch, Defined, Derivation, Derived, derived


class NativeOperator:
    """An operator with a native host part that belongs to another operator: a piece, a gradient, a tangent, a batch."""

    def __init__(self, name: str, kept: str, definition: Defined, tools: Tools) -> None:
        """Register it under `name`, or under `kept`, which is its name in every process, where that is taken."""
        self.definition = definition
        self.kept = kept
        self.fusible = definition if tools.fuse and may_fuse(definition) else None
        self.specialiser = Specialiser(definition, tools.compile, tools.note)
        self._schema = derive(name.partition("::")[2], definition)
        self._registration: Registration = register(
            name, self._schema, self, tools.thunks, python=tools.interpreted, alone=False
        )
        self.call: Any = self._registration.overload(DEFAULT)
        self._family = DerivedOperators(name, kept, definition, self.call, tools)

    def miss(self, overload: str, gate: Gate, values: tuple[object, ...]) -> None:
        """Compile for these arguments."""
        self.specialiser.miss(gate, overload, self._schema.default.arguments, values)

    def fake(self, overload: str) -> Callable[..., Any]:
        """Return the fake implementation; the overload with given results is never called."""
        del overload
        return self._fake

    @cached_property
    def _fake(self) -> Callable[..., Any]:
        return importlib.import_module("brickwork.pytorch.fake").fake_default(self.definition)

    def run(self, overload: str) -> Callable[..., Any]:
        """Return the implementation in the checking interpreter."""
        room = importlib.import_module("brickwork.pytorch.interpreted")
        return room.implementation(self.definition, self._registration.overload(overload), self._signature)

    def differentiate(self, overload: str, values: Values) -> Any:
        """Serve a call that torch wants to differentiate or to batch."""
        del overload
        return self._family.differentiate(values)

    def plain(self, values: Values) -> Callable[..., Any] | None:
        """Return what serves a call with a gradient without the dispatcher; None for one that must go by it."""
        return self._family.differentiate.plain.function(values)

    def batch(self, values: Values) -> Any:
        """Serve a call over the samples of torch's older vmap."""
        return self._family.differentiate.batch(values)

    def define(self, base: str, suffix: str) -> bool:
        """Register what is derived as `base__suffix`; return whether there is such a thing."""
        return self._family.define(base, suffix)

    def _signature(self, values: tuple[object, ...]) -> Signature:
        return signature_of_call(self.definition, self._schema.default.arguments, values)

    @property
    def kinds(self) -> tuple[ArgumentKind, ...]:
        """How its arguments lie on the stack."""
        return self._schema.default.arguments

    def prepare(self, values: Sequence[object], place: Place) -> Artifact:
        """Compile for arguments like these, which have no data; without tensors it runs on the CPU.

        The random key, which stands last, may be left out.
        """
        if self.definition.draws_random and len(values) == len(self.definition.parameters):
            values = [*values, None]
        place = place if any(isinstance(value, torch.Tensor) for value in values) else Place()
        signature = signature_of_call(self.definition, self._schema.default.arguments, values, place.kind)
        gate = self._registration.gates.get(DEFAULT)
        return self.specialiser.specialise(DEFAULT, replace(signature, may_alias=False), place, gate)

    @property
    def artifacts(self) -> list[Artifact]:
        """What was compiled, oldest first."""
        return [*self.specialiser.artifacts.values()]


class DerivedOperators:
    """The operators that are derived from one operator: made when they are first asked for, and kept."""

    def __init__(self, name: str, kept: str, definition: Defined, overload: Any, tools: Tools) -> None:
        """Make nothing yet; `name` is `ns::name`, and `kept` the operator's name in every process."""
        self.definition = definition
        self.overload = overload
        self.replaced: UserBackward | None = None
        self._name, self._kept = name, kept
        self._tools = tools
        self._made: dict[tuple[str, str], NativeOperator] = {}
        self._plans: dict[object, Plan] = {}
        self._batched: dict[object, Callable[..., Any] | None] = {}
        self._lock = threading.RLock()

    @cached_property
    def differentiate(self) -> Differentiation:
        """What serves calls that torch wants to differentiate or to batch."""
        return Differentiation(self)

    def define(self, base: str, suffix: str) -> bool:
        """Register what is derived as `base__suffix`; return whether there is such a thing."""
        found = derived(self.definition, suffix)
        if found is None:
            return False
        self._operator(found, base)
        return True

    def derived(self, derivation: Derivation, values: Values, floats: tuple[bool, ...]) -> Callable[..., Any]:
        """Return a derived operator for arguments like these; `floats` as in `Derived`."""
        return self._operator(self._derived(derivation, values, floats)).call

    def batched(self, given: tuple[bool, ...], values: Values, *, keys: bool) -> Callable[..., Any] | None:
        """Return the operator over samples for arguments like these; None where there is none."""
        key = given, keys, self.definition.default_dtype, self._rates(values), *map(_kind, values)
        if key not in self._batched:
            self._batched[key] = self._over_samples(Batch(given, keys), values)
        return self._batched[key]

    def _over_samples(self, derivation: Batch, values: Values) -> Callable[..., Any] | None:
        made = self._derived(derivation, values, ())
        try:
            elements_read(made, _types_signature(made, values, values))
        except CompileError:
            return None
        return self._operator(made).call

    def plan(self, wanted: tuple[bool, ...], values: Values, outputs: Sequence[torch.Tensor]) -> Plan:
        """Return how gradients are computed for arguments and outputs like these."""
        key = wanted, self.definition.default_dtype, self._rates(values), *map(_kind, values), *map(_kind, outputs)
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._plan(wanted, values, outputs)
        return found

    def _rates(self, values: Values) -> tuple[int, ...]:
        """Return the rates that code is made for alone: what is derived may depend on them."""
        pairs = zip(self.definition.parameters, values, strict=False)
        return tuple(value for item, value in pairs if item.name in self.definition.rates and is_small_rate(value))

    def _plan(self, wanted: tuple[bool, ...], values: Values, outputs: Sequence[torch.Tensor]) -> Plan:
        found = self.gradients(wanted, values, outputs)
        made = cast("Derived", found.definition)
        return Plan(wanted, made.read, made.results_given, found.call, found.plain)

    def gradients(self, wanted: tuple[bool, ...], values: Values, outputs: Sequence[torch.Tensor]) -> NativeOperator:
        """Return the operator for gradients, derived to know what it reads; calling it says why there is none."""
        floats = tuple(has_gradient(output) for output in outputs)
        results = self._results(outputs)
        default = self.definition.default_dtype
        made = self._derived(Backward(wanted, (True,) * len(results), default), values, floats)
        grads = [output for output, is_float in zip(outputs, floats, strict=True) if is_float]
        count = len(self.definition.parameters)
        taken = (*values[:count], *grads, *results)
        key = values[count : count + 1] if self.definition.draws_random else ()
        call = (*taken, *key)
        laid = _signature_of(made, call) if are_in_memory(call) else None
        try:
            read = elements_read(made, _types_signature(made, taken, values), laid)
        except CompileError:
            read = made.read
        derivation = Backward(wanted, read[count:] if any(read[count:]) else (), default)
        return self._operator(replace(made, read=read[:count], derivation=derivation))

    def _results(self, outputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Return those of the outputs that gradients may read: results, which stand last.

        Those of gradients may not: torch adds to gradients in place.
        """
        definition = self.definition
        if isinstance(definition, Derived) and isinstance(definition.derivation, Backward):
            return ()
        return outputs[len(outputs) - definition.results :]

    def _derived(self, derivation: Derivation, values: Values, floats: tuple[bool, ...]) -> Derived:
        parameters = self.definition.parameters
        counts = tuple(
            len(value) if item.kind == "list[tensor]" else int(item.kind == "tensor" and value is not None)
            for item, value in zip(parameters, values, strict=False)
        )
        return Derived(self.definition, derivation, floats, counts, (True,) * len(parameters))

    def _operator(self, made: Derived, base: str | None = None) -> NativeOperator:
        key = (base or self._name, made.suffix)
        found = self._made.get(key)
        if found is None:
            with self._lock:
                found = self._made.get(key)
                if found is None:
                    kept = f"{self._kept}__{made.suffix}"
                    found = self._made[key] = NativeOperator("__".join(key), kept, made, self._tools)
        return found


def _signature_of(definition: Defined, values: Sequence[object]) -> Signature:
    """Return the signature of a call with the values of all arguments."""
    return signature_of_call(definition, derive(definition.name, definition).default.arguments, values)


def _types_signature(definition: Defined, taken: Values, values: Values) -> Signature:
    """Return the signature of a call of which the types of what is taken count, and rates; `values` tell the device."""
    device = device_kind(tensors_of(values))
    types = with_values(definition, [*map(argument_type, definition.parameters, taken)], taken, device)
    return Signature((*types,), device=device, default_dtype=definition.default_dtype)


def _kind(value: Any) -> object:
    """Return what of an argument decides how its gradient is computed."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), value.device.type
    if isinstance(value, list | tuple):
        return tuple(map(_kind, cast("Values", value)))
    return value is None
