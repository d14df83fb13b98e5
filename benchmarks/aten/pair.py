"""What is measured beside each other: an operator as plain loops, and torch's own kernel for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor

from benchmarks.published.operator import Source, source
from brickwork.bench.timers import Call

Scale = Literal["tiny", "cpu", "cuda"]
"""How much there is to do: `tiny` is for tests."""
BROKEN = 1e-3
"""The part of the elements that may differ: comparisons of close numbers turn out one way or the other."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An operator of torch, and the same as plain loops.

    `inputs` makes the arguments of both from a source and one of the numbers in `scales`. `gradient` has the positions
    of the arguments whose gradients are measured: not those of which torch makes a view and computes nothing.
    """

    ours: Callable[..., Any]
    theirs: (
        Callable[[Any], Any]
        | Callable[[Any, Any], Any]
        | Callable[[Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any], Any]
    )
    inputs: Callable[[Source, int], tuple[Any, ...]]
    scales: tuple[int, int, int]
    gradient: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the loops."""
        return self.ours.__name__

    def forward(self, device: str, scale: Scale) -> dict[str, Call]:
        """Return calls of both on the same arguments; ValueError if they do not return the same."""
        given = self._arguments(device, scale)
        calls: dict[str, Call] = {name: functools.partial(function, *given) for name, function in self._both().items()}
        _agree(self.name, *(_results(call()) for call in calls.values()))
        return calls

    def backward(self, device: str, scale: Scale) -> dict[str, Call]:
        """Return backward passes of both from the same gradients; ValueError if they do not return the same."""
        given = self._arguments(device, scale)
        for at in self.gradient:
            given[at].requires_grad_()
        wanted = [given[at] for at in self.gradient]
        calls = {name: _differentiated(function(*given), wanted) for name, function in self._both().items()}
        _agree(self.name, *(call() for call in calls.values()))
        return {**calls}

    def _both(self) -> Mapping[str, Callable[..., Any]]:
        return {"brickwork": self.ours, "torch": cast("Callable[..., Any]", self.theirs)}

    def _arguments(self, device: str, scale: Scale) -> list[Any]:
        size = dict(zip(("tiny", "cpu", "cuda"), self.scales, strict=True))[scale]
        return [each.detach() if isinstance(each, Tensor) else each for each in self.inputs(source(device), size)]


def _results(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else [*cast("tuple[Tensor, ...]", found)]


def _differentiated(found: Any, wanted: list[Tensor]) -> Callable[[], list[Tensor]]:
    """Return a call that computes gradients of `wanted`, from a forward pass that has run."""
    outs = [each for each in _results(found) if each.requires_grad]
    numbers = torch.Generator(outs[0].device).manual_seed(1)
    gradients = [torch.randn(out.shape, generator=numbers, device=out.device).to(out.dtype) for out in outs]
    return lambda: [*torch.autograd.grad(outs, wanted, gradients, retain_graph=True)]


def _agree(name: str, ours: list[Tensor], theirs: list[Tensor]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        if mine.shape != other.shape:
            raise ValueError(
                f"{name}: {tuple(mine.shape)} is the shape of a result, and torch's is {tuple(other.shape)}."
            )
        close = 4e-2 if other.dtype == torch.bfloat16 else 1e-2
        off = (mine.double() - other.double()).abs() > close * (other.double().abs() + other.double().abs().mean())
        if off.double().mean().item() > BROKEN:
            raise ValueError(f"{name}: {int(off.sum())} of {off.numel()} elements differ from torch's.")
