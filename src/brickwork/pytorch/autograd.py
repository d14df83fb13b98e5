"""Differentiation of an operator: the torch.autograd.Function that serves the dispatcher's autograd and functorch keys.

Gradients, tangents and batches are operators of their own, derived when they are first asked for (`native.py`), so that
whatever torch does with them (differentiate again, vmap, trace) goes the same way.

The function is pure: what the operator stores into is cloned, and comes back as an output before the results. Then
it is copied into the arguments by torch's own `copy_`, which knows all rules of writing: leaves, views, versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import torch

from brickwork.pytorch.arguments import refuse_overlaps
from brickwork.pytorch.autograd_recipes import Family, Recipe, call_derived, recipe
from brickwork.pytorch.batching import Samples, clones, with_level, without_level
from brickwork.pytorch.dtypes import has_gradient
from brickwork.pytorch.gate import caller_below_autograd
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.plain_calls import PlainCalls
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.saved_arguments import ArgumentLengths, Values, flattened_arguments, sequence, without_elements
from brickwork.pytorch.tensor_devices import device_of, is_spread, tensors_of
from brickwork.pytorch.user_backward import Context, UserBackward, flattened
from brickwork.transform.derivation import Forward

_are_transformed: Callable[[], bool] = private("_C._are_functorch_transforms_active")
_FORWARD_MODE: Mapping[str, int] = private("autograd.forward_ad.__dict__")
"""The variables of torch's forward mode: it is on where `_current_level` is not negative."""


class Differentiation:
    """Serves the calls of one operator that torch wants to differentiate or to batch."""

    def __init__(self, family: Family) -> None:
        """Make nothing yet."""
        self._family = family
        definition = family.definition
        self._count = len(definition.parameters)
        self._written = [place for place, item in enumerate(definition.parameters) if item.name in definition.mutated]
        self._recipes: dict[object, Recipe] = {}
        self._below = caller_below_autograd(family.overload)
        self.plain = PlainCalls(family, self._known, lambda *values: self(values))
        """The calls that need not come from the dispatcher."""

    def _known(self, values: Values) -> Recipe | None:
        """Return what is done with calls like this one, outside of transforms; None if there was none yet."""
        lengths, flat = flattened_arguments(values)
        needs = (isinstance(item, torch.Tensor) and item.requires_grad for item in flat)
        default = self._family.definition.default_dtype
        return self._recipes.get((default, lengths.items, (False, *needs), *map(_kind, flat)))

    def __call__(self, values: Values) -> Any:
        """Call the operator so that torch can differentiate and batch the call."""
        transformed = _are_transformed()
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

        def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
            # A function: Dynamo traces no bound method here, as it does where autograd is compiled.
            return self._backward(ctx, *grads)

        methods: dict[str, Callable[..., Any]] = {"backward": backward, "jvp": self._jvp, **more}
        members = {key: staticmethod(method) for key, method in methods.items()}
        return type(self._family.definition.name, (torch.autograd.Function,), members)

    def _forward(self, lengths: ArgumentLengths, *flat: Any) -> tuple[torch.Tensor, ...]:
        values = lengths.restore(flat)
        for place in self._written:
            values[place] = clones(values[place])
        results = self._below(values)
        written = tensors_of(values[place] for place in self._written)
        return (*written, *(() if results is None else sequence(results)))

    def _remember(self, ctx: Any, inputs: Values, outputs: Sequence[torch.Tensor]) -> None:
        """Keep what the gradients and the tangents need."""
        lengths: ArgumentLengths = inputs[0]
        flat = [*inputs[1:]]
        ctx.set_materialize_grads(False)
        ctx.replaced, ctx.lengths = self._family.replaced, lengths
        if ctx.replaced is not None:
            ctx.mark_non_differentiable(*(output for output in outputs if not has_gradient(output)))
            self._remember_for_user(ctx, ctx.replaced, lengths, flat, outputs)
            return
        key = self._family.definition.default_dtype, lengths.items, ctx.needs_input_grad, *map(_kind, flat)
        found = self._recipes.get(key)
        if found is None:
            found = self._recipes[key] = recipe(self._family, ctx.needs_input_grad[1:], lengths, flat, outputs)
        if _are_transformed() or _FORWARD_MODE["_current_level"] >= 0:
            ctx.primals = [None if isinstance(item, torch.Tensor) else item for item in flat]
            ctx.tensors = [place for place, item in enumerate(flat) if isinstance(item, torch.Tensor)]
            ctx.save_for_forward(*(flat[place] for place in ctx.tensors))
        ctx.recipe = found
        found.keep(ctx, flat, outputs)

    def _backward(self, ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of all inputs of the function."""
        lengths: ArgumentLengths = ctx.lengths
        if ctx.replaced is not None:
            return None, *self._backward_of_user(ctx, ctx.replaced, lengths, grads)
        found: Recipe = ctx.recipe
        items, outputs = ctx.kept
        filled = found.filled(grads, outputs)
        if filled is None or found.plan is None:
            return (None,) * len(ctx.needs_input_grad)
        flat, results = found.restored(ctx, items)
        more = (*found.in_rows(filled, flat), *results)
        return None, *found.spread(call_derived(self._family, found.plan.call, lengths.restore(flat), more))

    def _jvp(self, ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the tangents of all outputs of the function."""
        if ctx.replaced is not None:
            name = self._family.overload.name()
            raise NotImplementedError(
                f"{name} has no forward mode: its gradient was replaced by `@op.backward`; use reverse mode, as"
                " torch.func.vjp and torch.func.jacrev do"
            )
        lengths: ArgumentLengths = ctx.lengths
        floats = ctx.recipe.floats
        flat = [*ctx.primals]
        for place, tensor in zip(ctx.tensors, ctx.saved_tensors, strict=True):
            flat[place] = tensor
        moved = [tangent if has_gradient(item) else None for tangent, item in zip(tangents[1:], flat, strict=True)]
        given = tuple(any(item is not None for item in items) for items in lengths.grouped(moved))[: self._count]
        if not any(given) or not any(floats):
            return (None,) * len(floats)
        spread = lengths.spread([*given, False])
        pairs = zip(moved, flat, spread, strict=True)
        filled = [torch.zeros_like(item) if tangent is None else tangent for tangent, item, chosen in pairs if chosen]
        values = lengths.restore(flat)
        call = self._family.derived(Forward(given), values, floats)
        results = iter(sequence(call_derived(self._family, call, values, filled)))
        return tuple(next(results) if is_one else None for is_one in floats)

    def _remember_for_user(
        self, ctx: Any, replaced: UserBackward, lengths: ArgumentLengths, flat: Values, outputs: Sequence[torch.Tensor]
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

    def _backward_of_user(self, ctx: Any, replaced: UserBackward, lengths: ArgumentLengths, grads: Values) -> list[Any]:
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

    def _vmap(self, info: Any, dims: Values, lengths: ArgumentLengths, *flat: Any) -> tuple[Any, Any]:
        """Return the outputs of the function for a batch of inputs, and where their batches lie."""
        outputs = self._over_samples(info.batch_size, lengths.restore(flat), lengths.restore(dims[1:]))
        return outputs, (0,) * len(outputs)

    def batch(self, values: Values) -> Any:
        """Call an operator that stores into nothing over the samples of torch's older vmap."""
        name = self._family.overload.name()
        if self._family.definition.draws_random and values[self._count] is None:
            raise RuntimeError(f"vmap: {name} draws random numbers; pass a key, or use torch.vmap")
        lengths, flat = flattened_arguments(values)
        level, size, items, dims = without_level(name, flat)
        outputs = self._over_samples(size, lengths.restore(items), lengths.restore(dims))
        results = tuple(with_level(level, output) for output in outputs)
        return results[0] if len(results) == 1 else results

    def _over_samples(self, size: int, values: Values, dims: Values) -> tuple[torch.Tensor, ...]:
        """Return the outputs for arguments with an axis over samples where `dims` says."""
        samples = Samples(size, values, dims, self._written)
        call = None
        if self._family.replaced is None:
            given, keys = samples.given(self._count)
            call = self._family.batched(given, samples.values[: self._count], keys=keys) if any(given) else None
        if call is None:
            return samples.one_by_one(self._family.overload)
        return samples.at_once(self._count, lambda values: call_derived(self._family, call, values, ()))


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
