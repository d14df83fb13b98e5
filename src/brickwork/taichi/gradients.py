"""Gradients and tangents of kernels: operators that brickwork derives of them, and where Taichi keeps the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from brickwork.pytorch.autograd_recipes import call_derived
from brickwork.pytorch.saved_arguments import sequence
from brickwork.records import dataclass
from brickwork.transform.derivation import Forward

Companion = Callable[[], torch.Tensor] | None
"""Gives the gradients, or the tangents, that belong to a tensor, if there are any."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a kernel: its tensors and numbers, the random key, and what belongs to the tensors."""

    instance: Any
    tensors: list[torch.Tensor]
    numbers: list[Any]
    key: list[torch.Tensor]
    adjoints: list[Companion]
    tangents: list[Companion]

    @property
    def written(self) -> list[int]:
        """The places of the tensors that the kernel stores into."""
        return [place for place, is_written in enumerate(self.instance.mutated) if is_written]

    @property
    def values(self) -> list[Any]:
        """All arguments of the operator."""
        return [*self.tensors, *self.numbers, *self.key]

    def as_it_is(self) -> Launch:
        """Return the call with copies of the tensors that it stores into."""
        written = {*self.written}
        tensors = [
            each.detach().clone() if place in written and _matters(each) else each
            for place, each in enumerate(self.tensors)
        ]
        return Launch(self.instance, tensors, self.numbers, self.key, self.adjoints, self.tangents)


def _matters(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point()


def add_gradients(launch: Launch) -> None:
    """Carry the gradients of what a kernel stores into back to what it reads."""
    tensors = [each.detach() for each in launch.tensors]
    wanted = [each is not None and _matters(tensor) for each, tensor in zip(launch.adjoints, tensors, strict=True)]
    if not any(wanted):
        return
    family = launch.instance.operator.family
    values = [*tensors, *launch.numbers, *launch.key]
    outputs = [tensors[place] for place in launch.written]
    results = results_of(launch)
    plan = family.plan((*wanted, *(False for _ in launch.numbers)), values, [*outputs, *results])
    places = [place for place in launch.written if _matters(tensors[place])]
    grads = [_companion(launch.adjoints[place], tensors[place]) for place in places]
    grads += [torch.zeros_like(each) for each in results if _matters(each)]
    given = [each for each, is_given in zip(results, plan.results, strict=False) if is_given]
    found = sequence(call_derived(family, plan.call, values, (*grads, *given)))
    written = {*launch.written}
    targets = [place for place, is_wanted in enumerate(wanted) if is_wanted]
    with torch.no_grad():
        for place, gradient in zip(targets, found, strict=True):
            adjoint = launch.adjoints[place]
            assert adjoint is not None  # it is wanted
            if place in written:
                adjoint().copy_(gradient)
            else:
                adjoint().add_(gradient)


def results_of(launch: Launch) -> list[torch.Tensor]:
    """Return tensors like those that the kernel returns its numbers in."""
    host = launch.instance.operator.family.definition.written.host
    found: Any = host()
    return [] if found is None else [torch.zeros_like(each) for each in sequence(found)]


def _companion(companion: Companion, tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor) if companion is None else companion().detach()


def tangents_after(launch: Launch) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the tangents of what a kernel will store into, each with where it belongs; the kernel has not run yet."""
    tensors = [each.detach() for each in launch.tensors]
    given = [each is not None and _matters(tensor) for each, tensor in zip(launch.tangents, tensors, strict=True)]
    outputs = [tensors[place] for place in launch.written]
    floats = tuple(_matters(each) for each in (*outputs, *results_of(launch)))
    if not any(given) or not any(floats):
        return []
    family = launch.instance.operator.family
    values = [*tensors, *launch.numbers, *launch.key]
    call = family.derived(Forward((*given, *(False for _ in launch.numbers))), values, floats)
    tangents = [
        _companion(each, tensor)
        for each, tensor, is_given in zip(launch.tangents, tensors, given, strict=True)
        if is_given
    ]
    found: Sequence[torch.Tensor] = sequence(call_derived(family, call, values, tangents))
    places = [place for place in launch.written if _matters(tensors[place])]
    made: list[tuple[torch.Tensor, torch.Tensor]] = []
    for place, tangent in zip(places, found, strict=False):
        companion = launch.tangents[place]
        if companion is not None:
            made.append((companion(), tangent))
    return made
