"""Calls with a gradient that nothing but autograd has to do with: plain tensors and numbers, as most calls are.

Such a call need not go through the dispatcher to be brought back to Python: it goes to torch's autograd at once, by a
function that does no more than one written by hand would. Invariant: results, gradients and graphs are those of the
call by the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import torch

from brickwork.pytorch.gate import plain_call_test, schema_arguments
from brickwork.pytorch.kept import Lengths, Values, sequence
from brickwork.pytorch.recipes import Family, Recipe, recipe

_TENSORS: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)
_TYPES: Mapping[str, tuple[type, ...]] = {"Tensor": _TENSORS, "int": (int,), "float": (float, int), "bool": (bool,)}
"""The types of values by types in schemas."""
_facts = attrgetter("dtype", "ndim", "is_cpu")
"""What of a plain tensor decides how gradients are computed."""


class PlainCalls:
    """The plain calls of one operator."""

    def __init__(self, family: Family, call: Callable[..., Any] | None) -> None:
        """Make nothing yet; `call` serves the calls of an operator that stores into arguments."""
        self._family = family
        self._call = call
        arguments = schema_arguments(family.overload)
        takes = not (family.definition.draws_random or any(each.kwarg_only for each in arguments))
        self._accepted = [_types_of(str(each.type)) for each in arguments] if takes else None
        self._known: dict[tuple[type, ...], tuple[Sequence[bool], Callable[..., Any]] | None] = {}
        self._are_plain = plain_call_test()

    def function(self, values: Values) -> Callable[..., Any] | None:
        """Return what serves a call with a gradient; None for one that the dispatcher would not bring here as it is.

        All arguments are plain; no mode, transform or tracer has to do with it, and the user has written no gradient.
        """
        types = tuple(map(type, values))
        if types not in self._known:
            self._known[types] = self._made(types)
        known = self._known[types]
        if known is None or self._family.replaced is not None:
            return None
        tensors, function = known
        return function if self._are_plain(compress(values, tensors)) else None

    def _made(self, types: tuple[type, ...]) -> tuple[Sequence[bool], Callable[..., Any]] | None:
        """Return which arguments of these types are tensors, and what serves calls with them."""
        if self._accepted is None or len(types) != len(self._accepted):
            return None
        if not all(one in accepted for one, accepted in zip(types, self._accepted, strict=True)):
            return None
        tensors = [one in _TENSORS for one in types]
        return tensors, self._call or _autograd_function(self._family, tensors)


def _autograd_function(family: Family, tensors: Sequence[bool]) -> Callable[..., Any]:
    """Return an operator as a function of torch's autograd; `tensors` says which arguments are some."""
    native: Callable[..., Any] = getattr(family.overload, "_op", family.overload)
    recipes: dict[object, Recipe] = {}

    def forward(ctx: Any, *values: Any) -> Any:
        outputs = native(*values)
        needs = ctx.needs_input_grad
        key = needs, *map(_facts, compress(values, tensors))
        found = recipes.get(key)
        if found is None:
            lengths = Lengths((None,) * len(values))
            found = recipes[key] = recipe(family, needs, lengths, values, sequence(outputs))
        if len(found.floats) > 1:
            ctx.set_materialize_grads(False)
        found.keep(ctx, values, sequence(outputs))
        return outputs

    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        found, items, outputs = ctx.kept
        # torch fills the gradient of a single output.
        filled = grads if found.alone else found.filled(grads, outputs)
        if filled is None:
            return (None,) * len(ctx.needs_input_grad)
        values = found.restored(ctx, items)
        return found.spread(found.plan.call(*values, *found.in_rows(filled, values)))

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(family.definition.name, (torch.autograd.Function,), members)
    # The `apply` of torch.autograd.Function in Python looks for transforms first, of which there are none.
    bare: Any = super(torch.autograd.Function, function)
    return bare.apply


def _types_of(kind: str) -> tuple[type, ...]:
    """Return the types of values that the dispatcher would pass on as they are, for an argument of a schema."""
    plain = kind.removeprefix("Optional[").removesuffix("]")
    return (*_TYPES.get(plain, ()), type(None)) if plain != kind else _TYPES.get(plain, ())
