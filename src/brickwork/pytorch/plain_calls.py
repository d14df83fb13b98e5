"""Calls with a gradient that nothing but autograd has to do with: plain tensors and numbers, as most calls are.

Such a call need not go through the dispatcher to be brought back to Python: it goes to torch's autograd at once, by a
function made for calls of its kind, which does no more than one written by hand would. The first call of a kind goes
the other way (`autograd.py`), where it is found out what is done with such calls. Invariant: results, gradients and
graphs are those of the call by the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter, methodcaller
from typing import Any, TypeAlias

import torch
from torch.compiler import is_dynamo_compiling

from brickwork.pytorch.arguments import refuse_overlaps
from brickwork.pytorch.autograd_recipes import Family, Recipe
from brickwork.pytorch.gate import caller_below_autograd, plain_call_test, schema_arguments
from brickwork.pytorch.saved_arguments import Values, sequence
from brickwork.records import dataclass

_TENSORS: tuple[type, ...] = (torch.Tensor, torch.nn.Parameter)
_TYPES: Mapping[str, tuple[type, ...]] = {"Tensor": _TENSORS, "int": (int,), "float": (float, int), "bool": (bool,)}
"""The types of values by types in schemas."""
_facts = attrgetter("dtype", "ndim", "is_cpu", "requires_grad")
"""What of a plain tensor decides how gradients are computed."""
_is_grad_enabled = torch.is_grad_enabled
_is_view: Callable[[torch.Tensor], bool] = methodcaller("_is_view")

_Served: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The calls with arguments of the same types: which are tensors, and what serves them by the facts of these."""

    are_tensors: Sequence[bool]
    all_tensors: bool
    served: dict[object, _Served]


class PlainCalls:
    """Takes plain calls of one operator to torch's autograd, by a function for each kind of call."""

    def __init__(self, family: Family, known: Callable[[Values], Recipe | None], others: _Served) -> None:
        """Make nothing yet.

        `known` says what is done with calls like one that has been differentiated before; `others` serves calls that
        are plain, but store into what they must not write by themselves.
        """
        self._family = family
        self._recipe = known
        self._others = others
        arguments = schema_arguments(family.overload)
        takes = not (family.definition.draws_random or any(each.kwarg_only for each in arguments))
        self._accepted = [_types_of(str(each.type)) for each in arguments] if takes else None
        self._written = [place for place, each in enumerate(arguments) if each.alias_info is not None]
        self._kinds: dict[tuple[type, ...], _Kinds | None] = {}
        self._are_plain = plain_call_test()
        self._reads_default = family.definition.reads_default_dtype

    def function(self, values: Values) -> _Served | None:
        """Return what serves a call with a gradient; None for one that the dispatcher would not bring here as it is.

        All arguments are plain; no mode, transform or tracer has to do with it, the user has written no gradient, and a
        call like it has been differentiated.
        """
        types = tuple(map(type, values))
        try:
            kinds = self._kinds[types]
        except KeyError:
            kinds = self._kinds[types] = self._which(types)
        if kinds is None or self._family.replaced is not None:
            return None
        tensors = values if kinds.all_tensors else [*compress(values, kinds.are_tensors)]
        if not self._are_plain(tensors):
            return None
        kind = (*map(_facts, tensors), torch.get_default_dtype()) if self._reads_default else (*map(_facts, tensors),)
        served = kinds.served.get(kind)
        if served is None:
            found = self._recipe(values)
            if found is not None:
                served = kinds.served[kind] = self._made(found, types)
        return served

    def _which(self, types: tuple[type, ...]) -> _Kinds | None:
        """Return what there is for arguments of these types; None where they are not all plain."""
        if self._accepted is None or len(types) != len(self._accepted):
            return None
        if not all(one in accepted for one, accepted in zip(types, self._accepted, strict=True)):
            return None
        are_tensors = [one in _TENSORS for one in types]
        return _Kinds(are_tensors, all(are_tensors), {})

    def _made(self, found: Recipe, types: Sequence[type]) -> _Served:
        """Return what serves calls of a kind."""
        if self._written:
            some = found.integers or found.plan is None or any(types[place] not in _TENSORS for place in self._written)
            return self._others if some else _storing(self._family, found, self._written, self._others)
        if found.plan is None:
            below = caller_below_autograd(self._family.overload)
            return lambda *values: below(values)
        return _applied(self._family, _forward(self._family, found), _backward(found))


def _applied(family: Family, forward: _Served, backward: _Served) -> _Served:
    """Return what applies an autograd function; its `grad_fn` shows the operator's name."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type(family.definition.name, (torch.autograd.Function,), members)
    # The `apply` of torch.autograd.Function in Python looks for transforms first, of which there are none.
    bare: Any = super(torch.autograd.Function, function)
    return bare.apply


def _native(operator: Any) -> _Served:
    """Return what an OpOverload calls."""
    return getattr(operator, "_op", operator)


def _forward(family: Family, found: Recipe) -> _Served:
    """Return the forward pass of calls of a kind."""
    native = _native(family.overload)

    def forward(ctx: Any, *values: Any) -> Any:
        outputs = native(*values)
        if not found.alone:
            ctx.set_materialize_grads(False)
        found.keep(ctx, values, sequence(outputs), plain=True)
        return outputs

    def forward_of_tensors(ctx: Any, *values: Any) -> Any:
        ctx.save_for_backward(*values)
        return native(*values)

    return forward_of_tensors if _keeps_all(found) else forward


def _keeps_all(found: Recipe) -> bool:
    """Whether what is kept of a call is its arguments, which are tensors, and nothing else."""
    return found.alone and found.saved == tuple(range(found.count)) and not found.results


def _backward(found: Recipe, copied: Sequence[int] = ()) -> _Served:
    """Return the backward pass of calls of a kind.

    Their functions have further arguments without gradients, copies of some: of those that outputs `copied` come from.
    """
    plan = found.plan
    operator: Any = None if plan is None else plan.call
    native = _native(operator)
    whole = found.wanted == tuple(range(found.count)) and not copied

    def derived(*given: Any) -> Any:
        # Compilers know the OpOverload alone.
        if is_dynamo_compiling():
            return operator(*given)
        served = plan.plain(given) if plan is not None and _is_grad_enabled() else None
        return (served or native)(*given)

    def called(values: Values, grads: Values, saved: Values = ()) -> Any:
        results = derived(*values, *found.in_rows(grads, values), *saved)
        if whole:
            return results
        gradients = found.spread(results)
        if not copied:
            return gradients
        # Compiled autograd adds up what comes to a tensor without asking whether anything does.
        compiling = is_dynamo_compiling()
        return (*gradients, *(torch.zeros_like(grads[place]) if compiling else None for place in copied))

    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        items, outputs = ctx.kept
        # torch fills the gradient of a single output.
        filled = grads if found.alone else found.filled(grads, outputs)
        if filled is None:
            return (None,) * (found.count + len(copied))
        values, saved = found.restored(ctx, items)
        return called(values, filled, saved)

    def backward_of_tensors(ctx: Any, grad: torch.Tensor) -> Any:
        if whole and not _is_grad_enabled() and not is_dynamo_compiling() and grad.is_contiguous():
            return native(*ctx.saved_tensors, grad)
        return called(ctx.saved_tensors, (grad,))

    return backward_of_tensors if _keeps_all(found) and not copied else backward


def _storing(family: Family, found: Recipe, written: Sequence[int], others: _Served) -> _Served:
    """Return what serves calls of an operator that stores into arguments.

    They are stored into in the forward pass. Where gradients read what they were before, a copy of it, which is
    differentiable, is an argument besides. torch's rules about leaves and views are those of `copy_`: for `others`.
    """
    native = _native(family.overload)
    read = [place for place in written if place in found.saved]
    count = found.count

    def forward(ctx: Any, *values: Any) -> Any:
        items = [*values[:count]]
        results = native(*items)
        stored = [items[place] for place in written]
        outputs = (*stored, *(() if results is None else sequence(results)))
        ctx.mark_dirty(*stored)
        for place, before in zip(read, values[count:], strict=True):
            items[place] = before
        if not found.alone:
            ctx.set_materialize_grads(False)
        found.keep(ctx, items, outputs, plain=True)
        return outputs

    apply = _applied(family, forward, _backward(found, [written.index(place) for place in read]))

    def call(*values: Any) -> Any:
        for place in written:
            if not _may_be_stored_into(values[place]):
                return others(*values)
        if not _lie_apart(values):
            refuse_overlaps(family.definition, values)
        outputs = apply(*values, *[values[place].clone() for place in read])[len(written) :]
        return outputs[0] if len(outputs) == 1 else outputs or None

    return call


def _lie_apart(values: Values) -> bool:
    """Whether no two tensors share memory, as most are seen to do at once: each a piece of memory of its own."""
    end = 0
    pieces: list[tuple[int, int]] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if not value.is_contiguous():
                return False
            begin = value.data_ptr()
            pieces.append((begin, begin + value.nbytes))
    for begin, stop in sorted(pieces):
        if begin < end:
            return False
        end = stop
    return True


def _may_be_stored_into(tensor: torch.Tensor) -> bool:
    """Whether torch has no rule about storing into a tensor: no view, no leaf with a gradient, not for inference."""
    if _is_view(tensor) or tensor.is_inference():
        return False
    return not (tensor.is_leaf and (tensor.requires_grad or tensor.grad is not None))


def _types_of(kind: str) -> tuple[type, ...]:
    """Return the types of values that the dispatcher would pass on as they are, for an argument of a schema."""
    plain = kind.removeprefix("Optional[").removesuffix("]")
    return (*_TYPES.get(plain, ()), type(None)) if plain != kind else _TYPES.get(plain, ())
