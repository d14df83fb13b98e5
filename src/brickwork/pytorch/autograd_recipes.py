"""How calls of one kind are differentiated: how their gradients are computed, and what is saved for that.

Kinds are told apart by the types of arguments and by which of them want a gradient. How a call comes to torch's
autograd is in `autograd.py` and `plain_calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from brickwork.pytorch.declared_schema import Declared
from brickwork.pytorch.dtypes import has_gradient
from brickwork.pytorch.saved_arguments import (
    ArgumentLengths,
    Values,
    WithoutElements,
    sequence,
    stand_in,
    without_elements,
)
from brickwork.pytorch.schema import KEY
from brickwork.pytorch.user_backward import UserBackward
from brickwork.records import dataclass
from brickwork.transform.derivation import Defined, Derivation


@dataclass(frozen=True, slots=True)
class Plan:
    """How gradients are computed: which arguments have one, what the derived operator reads, and that operator.

    It reads arguments, and some of the results; `results` is empty where none is read.
    `plain` is `PlainCalls.function` of that operator, for gradients that are differentiated again.
    """

    wanted: tuple[bool, ...]
    read: tuple[bool, ...]
    results: tuple[bool, ...]
    call: Callable[..., Any]
    plain: Callable[[Values], Callable[..., Any] | None]


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
    def replaced(self) -> UserBackward | None:
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
    """What is done with calls of one kind.

    Places are those in the flat list of arguments, and of outputs. `plan` is None where no gradient is wanted.
    """

    plan: Plan | None
    saved: tuple[int, ...]
    results: tuple[int, ...]
    """Places of the outputs that are saved."""
    bare: tuple[int, ...]
    """Places of tensors of which the sizes are kept alone."""
    wanted: tuple[int, ...]
    """Places of the arguments that the derived operator gives gradients for."""
    count: int
    """How many flat arguments there are."""
    floats: tuple[bool, ...]
    integers: tuple[int, ...]
    alone: bool
    """Whether a gradient is wanted, and there is one output."""

    def keep(self, ctx: Any, flat: Values, outputs: Sequence[torch.Tensor], *, plain: bool = False) -> None:
        """Keep what the gradients of a call need, in the context of its autograd function.

        `plain` says that no mode or subclass has to do with the call.
        """
        if self.integers:
            ctx.mark_non_differentiable(*(outputs[place] for place in self.integers))
        if self.plan is None:
            ctx.kept = None, None
            return
        items, saved = [*flat], self.saved
        ctx.save_for_backward(*[flat[place] for place in saved], *[outputs[place] for place in self.results])
        for place in saved:
            items[place] = None
        for place in self.bare:
            item = flat[place]
            items[place] = stand_in(item.shape, item.dtype, item.device) if plain else without_elements(item)
        ctx.kept = items, None if self.alone else [without_elements(output) for output in outputs]

    def filled(self, grads: Sequence[torch.Tensor | None], outputs: Sequence[Any] | None) -> Values | None:
        """Return a gradient for each output of floats; None where no gradient comes to any."""
        if self.plan is None:
            return None
        found = grads
        if self.integers:
            found = [grad for grad, is_one in zip(grads, self.floats, strict=True) if is_one]
        if all(grad is None for grad in found):
            return None
        if outputs is None:
            return found
        floats = (output for output, is_one in zip(outputs, self.floats, strict=True) if is_one)
        return [output.zeros() if grad is None else grad for grad, output in zip(found, floats, strict=True)]

    def restored(self, ctx: Any, items: Values) -> tuple[list[Any], Values]:
        """Return the flat list of arguments, and the results that were saved."""
        flat = [*items]
        # The tensors are to be asked for once: a checkpoint computes them then.
        tensors: Values = ctx.saved_tensors
        count = len(self.saved)
        for place, tensor in zip(self.saved, tensors[:count], strict=True):
            flat[place] = tensor
        for place in self.bare:
            if isinstance(flat[place], WithoutElements):
                flat[place] = flat[place].tensor()
        return flat, tensors[count:]

    def in_rows(self, grads: Values, flat: Values) -> Values:
        """Return gradients that lie as the tensors that are read with them do: row-major, unless elements repeat.

        One copy costs less than loops that read across memory again and again.
        """
        for grad in grads:
            if not (grad.is_contiguous() or 0 in grad.stride()):
                break
        else:
            return grads
        if not all(flat[place].is_contiguous() for place in self.saved):
            return grads
        return [grad if 0 in grad.stride() else grad.contiguous() for grad in grads]

    def spread(self, results: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the results of the derived operator as gradients of the flat arguments."""
        found: list[torch.Tensor | None] = [None] * self.count
        for place, result in zip(self.wanted, sequence(results), strict=True):
            found[place] = result
        return (*found,)


def recipe(
    family: Family, needs: Sequence[bool], lengths: ArgumentLengths, flat: Values, outputs: Sequence[torch.Tensor]
) -> Recipe:
    """Return what is done with calls like this one; `needs` says which flat arguments are asked for."""
    count = len(family.definition.parameters)
    floats = tuple(has_gradient(output) for output in outputs)
    integers = tuple(place for place, is_one in enumerate(floats) if not is_one)
    needed = [need and has_gradient(item) for need, item in zip(needs, flat, strict=True)]
    wanted = tuple(map(any, lengths.grouped(needed)))[:count]
    if not any(wanted) or not any(floats):
        return Recipe(None, (), (), (), (), len(flat), floats, integers, alone=False)
    plan = family.plan(wanted, lengths.restore(flat), outputs)
    read = lengths.spread([*plan.read, True])
    tensors = [place for place, item in enumerate(flat) if isinstance(item, torch.Tensor)]
    saved = tuple(place for place in tensors if read[place])
    bare = tuple(place for place in tensors if not read[place])
    given = lengths.spread([*plan.wanted, False])
    places = tuple(place for place, is_given in enumerate(given) if is_given)
    first = len(outputs) - len(plan.results)
    results = tuple(first + place for place, is_read in enumerate(plan.results) if is_read)
    return Recipe(plan, saved, results, bare, places, len(flat), floats, integers, alone=len(floats) == 1)


def call_derived(family: Family, call: Callable[..., Any], values: Values, more: Values) -> Any:
    """Call a derived operator with the arguments of the base and what it takes besides."""
    count = len(family.definition.parameters)
    named = {KEY: values[count]} if family.definition.draws_random else {}
    return call(*values[:count], *more, **named)
