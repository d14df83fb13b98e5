"""Differentiation of an operator: the torch.autograd.Function that serves the dispatcher's autograd and functorch keys.

Gradients, tangents and batches are operators of their own, derived when they are first asked for (`native.py`), so that
whatever torch does with them (differentiate again, vmap, trace) goes the same way.

The function is pure: what the operator stores into is cloned, and comes back as an output before the results. Then
it is copied into the arguments by torch's own `copy_`, which knows all rules of writing: leaves, views, versions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Protocol, TypeAlias, cast

import torch

from brickwork.pytorch.arguments import refuse_overlaps
from brickwork.pytorch.batching import Samples, clones
from brickwork.pytorch.declared import Declared
from brickwork.pytorch.gate import call_below_autograd
from brickwork.pytorch.placement import device_of, is_spread, tensors_of
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.replaced import Context, Replaced, flattened
from brickwork.pytorch.schema import KEY
from brickwork.transform.derivation import Defined, Derivation, Forward

Values: TypeAlias = Sequence[Any]
"""The arguments of a call in the order of the schema."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """How the arguments of a call lie in a flat list: for each the length of its list, None where it is none."""

    items: tuple[int | None, ...]

    def restore(self, flat: Values) -> list[Any]:
        """Return the arguments that a flat list stands for."""
        rest = iter(flat)
        return [next(rest) if length is None else [next(rest) for _ in range(length)] for length in self.items]

    def spread(self, values: Values) -> list[Any]:
        """Return a flat list that repeats what is said of an argument for each of its items.

        The last value goes for all arguments beyond.
        """
        more = [values[-1]] * (len(self.items) - len(values))
        pairs = zip((*values, *more), self.items, strict=False)
        return [value for value, length in pairs for _ in range(1 if length is None else length)]

    def grouped(self, flat: Values) -> list[list[Any]]:
        """Return the items of a flat list by argument."""
        rest = iter(flat)
        return [[next(rest) for _ in range(1 if length is None else length)] for length in self.items]


@dataclass(frozen=True, slots=True)
class WithoutElements:
    """What is kept of a tensor whose elements the backward operator does not read.

    `spread` is a DTensor of one element on the same mesh if the tensor is a DTensor.
    """

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    spread: torch.Tensor | None

    def tensor(self) -> torch.Tensor:
        """Return a tensor of its shape that has no elements to speak of."""
        one = torch.empty((), dtype=self.dtype, device=self.device) if self.spread is None else self.spread
        return one.expand(self.shape)

    def zeros(self) -> torch.Tensor:
        """Return a tensor of zeros."""
        if self.spread is not None:
            return self.spread.new_zeros(self.shape)
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


@dataclass(frozen=True, slots=True)
class Plan:
    """How gradients are computed: which arguments have one, which the derived operator reads, and that operator."""

    wanted: tuple[bool, ...]
    read: tuple[bool, ...]
    call: Callable[..., Any]


class Family(Protocol):
    """What gives an operator and all that is derived of it."""

    @property
    def definition(self) -> Defined | Declared:
        """What the operator is made of, or what is said of it."""
        ...

    @property
    def overload(self) -> Any:
        """The operator as the dispatcher knows it."""
        ...

    @property
    def replaced(self) -> Replaced | None:
        """The gradient that the user has written."""
        ...

    def derived(self, derivation: Derivation, values: Values, floats: tuple[bool, ...]) -> Callable[..., Any]:
        """Return a derived operator for arguments like these; `floats` as in `Derived`."""
        ...

    def batched(self, given: tuple[bool, ...], values: Values, *, keys: bool) -> Callable[..., Any] | None:
        """Return the operator over samples for arguments like these; None where there is none."""
        ...

    def plan(self, wanted: tuple[bool, ...], values: Values, outputs: Sequence[torch.Tensor]) -> Plan:
        """Return how gradients are computed for arguments and outputs like these."""
        ...


class Differentiation:
    """What differentiates an operator."""

    def __init__(self, family: Family) -> None:
        """Make nothing yet."""
        self._family = family
        definition = family.definition
        self._count = len(definition.parameters)
        self._written = [place for place, item in enumerate(definition.parameters) if item.name in definition.mutated]

    def __call__(self, values: Values) -> Any:
        """Call the operator so that torch can differentiate and batch the call."""
        if self._written:
            refuse_overlaps(self._family.definition, values)
        before = [clones(value) if place in self._written else value for place, value in enumerate(values)]
        lengths, flat = _flat(self._with_key(before))
        outputs: Sequence[torch.Tensor] = self._function.apply(lengths, *flat)
        written = tensors_of(values[place] for place in self._written)
        for tensor, output in zip(written, outputs, strict=False):
            tensor.copy_(output)
        results = tuple(outputs[len(written) :])
        return results[0] if len(results) == 1 else results or None

    def _with_key(self, values: Values) -> Values:
        """Return the arguments with a random key; under vmap it is drawn as its randomness says.

        On several machines each would draw one of its own: without one the call is refused.
        """
        if not self._family.definition.draws_random or values[self._count] is not None:
            return values
        if any(map(is_spread, tensors_of(values))):
            return values
        return [*values[: self._count], draw_key(device=device_of(values))]

    @cached_property
    def _function(self) -> Any:
        """The autograd function; `grad_fn` shows the operator's name."""
        methods: dict[str, Callable[..., Any]] = {
            "forward": self._forward,
            "setup_context": self._remember,
            "backward": self._backward,
            "jvp": self._jvp,
            "vmap": self._vmap,
        }
        name = self._family.definition.name
        members = {key: staticmethod(method) for key, method in methods.items()}
        return type(name, (torch.autograd.Function,), members)

    def _forward(self, lengths: Lengths, *flat: Any) -> tuple[torch.Tensor, ...]:
        values = lengths.restore(flat)
        for place in self._written:
            values[place] = clones(values[place])
        results: Any = call_below_autograd(self._family.overload, values)
        written = tensors_of(values[place] for place in self._written)
        return (*written, *(() if results is None else _sequence(results)))

    def _remember(self, ctx: Any, inputs: Values, outputs: Sequence[torch.Tensor]) -> None:
        """Keep what the gradients and the tangents need."""
        lengths, *flat = inputs
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        if self._family.replaced is not None:
            self._remember_for_user(ctx, self._family.replaced, lengths, flat, outputs)
            return
        ctx.save_for_forward(*filter(_is_tensor, flat))
        ctx.lengths, ctx.primals = lengths, [_SAVED if _is_tensor(item) else item for item in flat]
        ctx.floats = floats = tuple(output.is_floating_point() for output in outputs)
        needed = [needs and _is_float(item) for needs, item in zip(ctx.needs_input_grad[1:], flat, strict=True)]
        wanted = tuple(map(any, lengths.grouped(needed)))[: self._count]
        ctx.plan = ctx.replaced = None
        if any(wanted) and any(floats):
            ctx.plan = plan = self._family.plan(wanted, lengths.restore(flat), outputs)
            read = lengths.spread([*plan.read, True])
            kept = [is_read and _is_tensor(item) for is_read, item in zip(read, flat, strict=True)]
            ctx.save_for_backward(*(item for item, keep in zip(flat, kept, strict=True) if keep))
            ctx.items = [_SAVED if keep else _without_elements(item) for item, keep in zip(flat, kept, strict=True)]
            ctx.outputs = [_without_elements(output) for output in outputs]

    def _backward(self, ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of all inputs of the function."""
        lengths: Lengths = ctx.lengths
        if ctx.replaced is not None:
            return None, *self._backward_of_user(ctx, ctx.replaced, lengths, grads)
        plan: Plan | None = ctx.plan
        if plan is None or all(grad is None for grad in grads):
            return (None,) * (len(ctx.primals) + 1)
        given = zip(grads, ctx.outputs, ctx.floats, strict=True)
        filled = [output.zeros() if grad is None else grad for grad, output, is_float in given if is_float]
        values = lengths.restore(_filled(ctx.items, ctx.saved_tensors))
        results = iter(_sequence(self._call(plan.call, values, filled)))
        wanted = lengths.spread([*plan.wanted, False])
        return (None, *(next(results) if item else None for item in wanted))

    def _jvp(self, ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the tangents of all outputs of the function."""
        if ctx.replaced is not None:
            name = self._family.overload.name()
            raise NotImplementedError(f"{name} has no forward mode: its gradient was replaced by `@op.backward`")
        lengths: Lengths = ctx.lengths
        flat = _filled(ctx.primals, ctx.saved_tensors)
        moved = [tangent if _is_float(item) else None for tangent, item in zip(tangents[1:], flat, strict=True)]
        given = tuple(any(item is not None for item in items) for items in lengths.grouped(moved))[: self._count]
        if not any(given) or not any(ctx.floats):
            return (None,) * len(ctx.floats)
        spread = lengths.spread([*given, False])
        pairs = zip(moved, flat, spread, strict=True)
        filled = [torch.zeros_like(item) if tangent is None else tangent for tangent, item, chosen in pairs if chosen]
        values = lengths.restore(flat)
        call = self._family.derived(Forward(given), values, ctx.floats)
        results = iter(_sequence(self._call(call, values, filled)))
        return tuple(next(results) if is_float else None for is_float in ctx.floats)

    def _remember_for_user(
        self, ctx: Any, replaced: Replaced, lengths: Lengths, flat: Values, outputs: Sequence[torch.Tensor]
    ) -> None:
        """Keep what a gradient that the user has written needs."""
        ctx.replaced, ctx.lengths = replaced, lengths
        ctx.autocast = _autocast_state(flat)
        if replaced.setup_context is None:
            ctx.items = [_SAVED if _is_tensor(item) else item for item in flat]
            ctx.outputs = [_without_elements(output) for output in outputs]
            ctx.save_for_backward(*filter(_is_tensor, flat))
            return
        ctx.set_materialize_grads(True)
        output = outputs[0] if len(outputs) == 1 else tuple(outputs)
        replaced.setup_context(self._context(ctx), tuple(lengths.restore(flat)[: self._count]), output)

    def _backward_of_user(self, ctx: Any, replaced: Replaced, lengths: Lengths, grads: Values) -> list[Any]:
        """Return the gradients of the inputs that the user's function gives."""
        if replaced.setup_context is None:
            values = lengths.restore(_filled(ctx.items, ctx.saved_tensors))[: self._count]
            pairs = zip(grads, ctx.outputs, strict=True)
            arguments = [*values, *(output.zeros() if grad is None else grad for grad, output in pairs)]
        else:
            arguments = [self._context(ctx), *grads]
        name = self._family.overload.name()
        with _as_it_was(ctx.autocast):
            found = flattened(replaced.gradients(name, self._count, arguments), lengths.items, name)
        return [*found, *[None] * (len(lengths.items) - self._count)]

    def _context(self, ctx: Any) -> Context:
        groups = zip(ctx.lengths.grouped(ctx.needs_input_grad[1:]), ctx.lengths.items, strict=True)
        return Context(ctx, [items[0] if length is None else items for items, length in groups][: self._count])

    def _vmap(self, info: Any, dims: Values, lengths: Lengths, *flat: Any) -> tuple[Any, Any]:
        """Return the outputs of the function for a batch of inputs, and where their batches lie."""
        samples = Samples(info.batch_size, lengths.restore(flat), lengths.restore(dims[1:]), self._written)
        call = None
        if self._family.replaced is None:
            given, keys = samples.given(self._count)
            call = self._family.batched(given, samples.values[: self._count], keys=keys) if any(given) else None
        if call is None:
            outputs = samples.one_by_one(self._family.overload)
        else:
            outputs = samples.at_once(self._count, lambda values: self._call(call, values, ()))
        return outputs, (0,) * len(outputs)

    def _call(self, call: Callable[..., Any], values: Values, more: Values) -> Any:
        """Call a derived operator with the arguments of the base and what it takes besides."""
        named = {KEY: values[self._count]} if self._family.definition.draws_random else {}
        return call(*values[: self._count], *more, **named)


def _autocast_state(values: Values) -> tuple[str, bool, torch.dtype] | None:
    """Return whether torch casts arguments of its operators now, where the tensors of a call are, and to what."""
    device = device_of(values)
    kind = "cpu" if device is None else device.type
    if not torch.amp.is_autocast_available(kind):
        return None
    return kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)


def _as_it_was(state: tuple[str, bool, torch.dtype] | None) -> AbstractContextManager[object]:
    """Return a context in which torch casts as it did then."""
    if state is None:
        return nullcontext()
    kind, enabled, dtype = state
    if (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) == (enabled, dtype):
        return nullcontext()
    return torch.autocast(kind, dtype=dtype, enabled=enabled)


class _Saved(Enum):
    """Stands for a tensor that torch keeps for us."""

    SAVED = 0


_SAVED = _Saved.SAVED


def _filled(items: Values, saved: Values) -> list[Any]:
    """Return arguments with the saved tensors, and tensors for those without elements, in their places."""
    rest = iter(saved)
    return [
        next(rest) if item is _SAVED else item.tensor() if isinstance(item, WithoutElements) else item for item in items
    ]


def _without_elements(item: Any) -> Any:
    if not isinstance(item, torch.Tensor):
        return item
    spread = item.new_empty(()) if is_spread(item) else None
    return WithoutElements(item.shape, item.dtype, item.device, spread)


def _flat(values: Values) -> tuple[Lengths, list[Any]]:
    """Return the arguments with the items of lists in their places, and how to undo that."""
    lengths = Lengths(tuple(len(cast("Values", item)) if isinstance(item, list | tuple) else None for item in values))
    return lengths, [each for item in values for each in _sequence(item)]


def _sequence(value: Any) -> Values:
    return cast("Values", value) if isinstance(value, list | tuple) else (value,)


def _is_tensor(item: Any) -> bool:
    return isinstance(item, torch.Tensor)


def _is_float(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.is_floating_point()
