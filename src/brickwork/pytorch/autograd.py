"""Differentiation of an operator: the torch.autograd.Function that serves the dispatcher's autograd and functorch keys.

Gradients, tangents and batches are operators of their own, derived when they are first asked for (`native.py`), so that
whatever torch does with them (differentiate again, vmap, trace) goes the same way.

The function is pure: what the operator stores into is cloned, and comes back as an output before the results. Then
it is copied into the arguments by torch's own `copy_`, which knows all rules of writing: leaves, views, versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch

from brickwork.pytorch.arguments import refuse_overlaps
from brickwork.pytorch.batching import Samples, clones
from brickwork.pytorch.declared import Declared
from brickwork.pytorch.gate import caller_below_autograd, plain_call_test, schema_arguments
from brickwork.pytorch.kept import Lengths, Values, flattened_arguments, sequence, without_elements
from brickwork.pytorch.library import private
from brickwork.pytorch.placement import device_of, is_spread, tensors_of
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.replaced import Context, Replaced, flattened
from brickwork.pytorch.schema import KEY
from brickwork.transform.derivation import Defined, Derivation, Forward

_are_transformed: Callable[[], bool] = private("_C._are_functorch_transforms_active")
_FORWARD_MODE: Mapping[str, int] = private("autograd.forward_ad.__dict__")
"""The variables of torch's forward mode: it is on where `_current_level` is not negative."""

_TENSORS: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)
_TYPES: Mapping[str, tuple[type, ...]] = {"Tensor": _TENSORS, "int": (int,), "float": (float, int), "bool": (bool,)}
"""The types of values by types in schemas."""


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


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is done with calls of one kind: how gradients are computed, and what is kept for it.

    Places are those in the flat list of arguments, and of outputs. `plan` is None where no gradient is wanted.
    """

    plan: Plan | None
    saved: tuple[int, ...]
    bare: tuple[int, ...]
    """Places of tensors of which the sizes are kept alone."""
    wanted: tuple[bool, ...]
    floats: tuple[bool, ...]
    integers: tuple[int, ...]


class Differentiation:
    """What differentiates an operator."""

    def __init__(self, family: Family) -> None:
        """Make nothing yet."""
        self._family = family
        definition = family.definition
        self._count = len(definition.parameters)
        self._written = [place for place, item in enumerate(definition.parameters) if item.name in definition.mutated]
        self._recipes: dict[object, Recipe] = {}
        self._below = caller_below_autograd(family.overload)
        self._native: Callable[..., Any] = getattr(family.overload, "_op", family.overload)
        arguments = schema_arguments(family.overload)
        lists = any("List" in str(each.type) for each in arguments)
        named = any(each.kwarg_only for each in arguments)
        simple = definition.results and not (lists or self._written or definition.draws_random or named)
        self._simple = Lengths((None,) * self._count) if simple else None
        """How the arguments of all calls lie, if they come as they are."""
        self._types = tuple(_types_of(str(each.type)) for each in arguments) if simple else ()
        self._is_plain = plain_call_test()

    def serves(self, values: Values) -> bool:
        """Whether a call with a gradient would come here from the dispatcher with these very arguments.

        All are plain; no mode, transform or tracer has to do with it.
        """
        if len(values) != len(self._types):
            return False
        tensors: list[torch.Tensor] = []
        for value, types in zip(values, self._types, strict=True):
            if type(value) not in types:
                return False
            if types[0] is torch.Tensor and value is not None:
                tensors.append(value)
        return self._is_plain(tensors)

    def __call__(self, values: Values) -> Any:
        """Call the operator so that torch can differentiate and batch the call."""
        transformed = _are_transformed()
        if self._simple is not None and not transformed:
            results = self._direct(self._simple, *values)
            return results[0] if len(results) == 1 else results
        before = values
        if self._written:
            refuse_overlaps(self._family.definition, values)
            before = [clones(value) if place in self._written else value for place, value in enumerate(values)]
        lengths, flat = flattened_arguments(self._with_key(before))
        outputs: Sequence[torch.Tensor] = (self._transformed if transformed else self._direct)(lengths, *flat)
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
    def _transformed(self) -> Callable[..., Any]:
        """The autograd function for calls under function transforms."""
        made = self._function(forward=self._forward, setup_context=self._remember, vmap=self._vmap)
        return made.apply

    @cached_property
    def _direct(self) -> Callable[..., Any]:
        """The autograd function for all other calls, by torch's native `apply`: its own serves transforms, too."""

        def forward(ctx: Any, *inputs: Any) -> Any:
            outputs = self._forward(*inputs)
            self._remember(ctx, inputs, outputs)
            return outputs

        bare: Any = super(torch.autograd.Function, self._function(forward=forward))
        return bare.apply

    def _function(self, **more: Callable[..., Any]) -> Any:
        """Return an autograd function; `grad_fn` shows the operator's name."""
        methods: dict[str, Callable[..., Any]] = {"backward": self._backward, "jvp": self._jvp, **more}
        members = {key: staticmethod(method) for key, method in methods.items()}
        return type(self._family.definition.name, (torch.autograd.Function,), members)

    def _forward(self, lengths: Lengths, *flat: Any) -> tuple[torch.Tensor, ...]:
        if lengths is self._simple:
            # There is no gradient in here: the gate runs the call at once, unless forward gradients are on.
            plain = _FORWARD_MODE["_current_level"] < 0 and not _are_transformed()
            return (*sequence(self._native(*flat) if plain else self._below(flat)),)
        values = lengths.restore(flat)
        for place in self._written:
            values[place] = clones(values[place])
        results = self._below(values)
        written = tensors_of(values[place] for place in self._written)
        return (*written, *(() if results is None else sequence(results)))

    def _remember(self, ctx: Any, inputs: Values, outputs: Sequence[torch.Tensor]) -> None:
        """Keep what the gradients and the tangents need."""
        lengths: Lengths = inputs[0]
        flat = [*inputs[1:]]
        ctx.set_materialize_grads(False)
        ctx.replaced, ctx.lengths = self._family.replaced, lengths
        if ctx.replaced is not None:
            ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
            self._remember_for_user(ctx, ctx.replaced, lengths, flat, outputs)
            return
        key = lengths.items, ctx.needs_input_grad, *map(_kind, flat)
        recipe = self._recipes.get(key)
        if recipe is None:
            recipe = self._recipes[key] = self._recipe(ctx.needs_input_grad[1:], lengths, flat, outputs)
        ctx.recipe = recipe
        if recipe.integers:
            ctx.mark_non_differentiable(*(outputs[place] for place in recipe.integers))
        if _are_transformed() or _FORWARD_MODE["_current_level"] >= 0:
            ctx.primals = [None if isinstance(item, torch.Tensor) else item for item in flat]
            ctx.tensors = [place for place, item in enumerate(flat) if isinstance(item, torch.Tensor)]
            ctx.save_for_forward(*(flat[place] for place in ctx.tensors))
        if recipe.plan is None:
            return
        ctx.save_for_backward(*[flat[place] for place in recipe.saved])
        for place in recipe.saved:
            flat[place] = None
        for place in recipe.bare:
            flat[place] = without_elements(flat[place])
        ctx.items = flat
        if sum(recipe.floats) > 1:
            ctx.outputs = [without_elements(output) for output in outputs]

    def _recipe(self, needs: Sequence[bool], lengths: Lengths, flat: Values, outputs: Sequence[torch.Tensor]) -> Recipe:
        floats = tuple(output.is_floating_point() for output in outputs)
        integers = tuple(place for place, is_float in enumerate(floats) if not is_float)
        needed = [need and _is_float(item) for need, item in zip(needs, flat, strict=True)]
        wanted = tuple(map(any, lengths.grouped(needed)))[: self._count]
        if not any(wanted) or not any(floats):
            return Recipe(None, (), (), (), floats, integers)
        plan = self._family.plan(wanted, lengths.restore(flat), outputs)
        read = lengths.spread([*plan.read, True])
        tensors = [place for place, item in enumerate(flat) if isinstance(item, torch.Tensor)]
        saved = tuple(place for place in tensors if read[place])
        bare = tuple(place for place in tensors if not read[place])
        return Recipe(plan, saved, bare, tuple(lengths.spread([*plan.wanted, False])), floats, integers)

    def _backward(self, ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of all inputs of the function."""
        lengths: Lengths = ctx.lengths
        if ctx.replaced is not None:
            return None, *self._backward_of_user(ctx, ctx.replaced, lengths, grads)
        recipe: Recipe = ctx.recipe
        filled = [grad for grad, is_float in zip(grads, recipe.floats, strict=True) if is_float]
        if recipe.plan is None or all(grad is None for grad in filled):
            return (None,) * len(ctx.needs_input_grad)
        if len(filled) > 1:
            outputs = [output for output, is_float in zip(ctx.outputs, recipe.floats, strict=True) if is_float]
            filled = [output.zeros() if grad is None else grad for grad, output in zip(filled, outputs, strict=True)]
        flat = [*ctx.items]
        for place in recipe.bare:
            flat[place] = flat[place].tensor()
        saved = ctx.saved_tensors  # To be asked for once: a checkpoint computes them then.
        for place, tensor in zip(recipe.saved, saved, strict=True):
            flat[place] = tensor
        if all(tensor.is_contiguous() for tensor in saved):
            filled = [_in_rows(grad) for grad in filled]
        results = iter(sequence(self._call(recipe.plan.call, lengths.restore(flat), filled)))
        return (None, *[next(results) if item else None for item in recipe.wanted])

    def _jvp(self, ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the tangents of all outputs of the function."""
        if ctx.replaced is not None:
            name = self._family.overload.name()
            raise NotImplementedError(f"{name} has no forward mode: its gradient was replaced by `@op.backward`")
        lengths: Lengths = ctx.lengths
        recipe: Recipe = ctx.recipe
        flat = [*ctx.primals]
        for place, tensor in zip(ctx.tensors, ctx.saved_tensors, strict=True):
            flat[place] = tensor
        moved = [tangent if _is_float(item) else None for tangent, item in zip(tangents[1:], flat, strict=True)]
        given = tuple(any(item is not None for item in items) for items in lengths.grouped(moved))[: self._count]
        if not any(given) or not any(recipe.floats):
            return (None,) * len(recipe.floats)
        spread = lengths.spread([*given, False])
        pairs = zip(moved, flat, spread, strict=True)
        filled = [torch.zeros_like(item) if tangent is None else tangent for tangent, item, chosen in pairs if chosen]
        values = lengths.restore(flat)
        call = self._family.derived(Forward(given), values, recipe.floats)
        results = iter(sequence(self._call(call, values, filled)))
        return tuple(next(results) if is_float else None for is_float in recipe.floats)

    def _remember_for_user(
        self, ctx: Any, replaced: Replaced, lengths: Lengths, flat: Values, outputs: Sequence[torch.Tensor]
    ) -> None:
        """Keep what a gradient that the user has written needs."""
        ctx.autocast = _autocast_state(flat)
        if replaced.setup_context is None:
            ctx.items = [None if isinstance(item, torch.Tensor) else item for item in flat]
            ctx.tensors = [place for place, item in enumerate(flat) if isinstance(item, torch.Tensor)]
            ctx.save_for_backward(*(flat[place] for place in ctx.tensors))
            ctx.outputs = [without_elements(output) for output in outputs]
            return
        ctx.set_materialize_grads(True)
        output = outputs[0] if len(outputs) == 1 else tuple(outputs)
        replaced.setup_context(self._context(ctx), tuple(lengths.restore(flat)[: self._count]), output)

    def _backward_of_user(self, ctx: Any, replaced: Replaced, lengths: Lengths, grads: Values) -> list[Any]:
        """Return the gradients of the inputs that the user's function gives."""
        if replaced.setup_context is None:
            flat = [*ctx.items]
            for place, tensor in zip(ctx.tensors, ctx.saved_tensors, strict=True):
                flat[place] = tensor
            values = lengths.restore(flat)[: self._count]
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


def _in_rows(grad: torch.Tensor | None) -> torch.Tensor | None:
    """Return a gradient that lies as its operator's other tensors do: row-major, unless its elements repeat.

    One copy costs less than loops that read across memory again and again.
    """
    if grad is None or grad.is_contiguous() or 0 in grad.stride():
        return grad
    return grad.contiguous()


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


def _kind(item: Any) -> object:
    """Return what of an argument decides how its gradient is computed."""
    return (item.dtype, item.dim(), item.device) if isinstance(item, torch.Tensor) else item is None


def _types_of(kind: str) -> tuple[type, ...]:
    """Return the types of values that the dispatcher would pass on as they are, for an argument of a schema."""
    plain = kind.removeprefix("Optional[").removesuffix("]")
    return (*_TYPES.get(plain, ()), type(None)) if plain != kind else _TYPES.get(plain, ())


def _is_float(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.is_floating_point()
