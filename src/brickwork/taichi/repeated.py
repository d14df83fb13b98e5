"""Calls like those before: with tensors and numbers of types that a kernel ran with, they are its operator's alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from brickwork.records import dataclass
from brickwork.taichi import state
from brickwork.taichi.builder import Bound
from brickwork.taichi.packing import Numbers
from brickwork.taichi.scalars import ScalarType, u64


@dataclass(frozen=True, slots=True)
class Ready:
    """An operator, and what it is called with."""

    operator: Callable[..., Any]
    bound: tuple[Bound, ...]
    scalars: tuple[tuple[int, ScalarType], ...]
    """The places of the numbers, with their types."""
    generation: int

    def values(self, args: Sequence[Any]) -> list[Any] | None:
        """Return what the operator is called with; None where it takes more than that."""
        if self.generation != state.generation() or not state.is_quiet():
            return None
        values = [args[each.place] if each.place >= 0 else each.owner.data for each in self.bound]
        for place, kind in self.scalars:
            if not kind.holds(args[place]):
                return None
            values.append(args[place])
        return None if any(each is None for each in values) else values


def types_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return what operators are told apart by: dtypes and axes of tensors, types of others."""
    return tuple([
        (each.dtype, each.ndim, each.requires_grad) if type(each) is torch.Tensor else type(each) for each in args
    ])  # fmt: skip


def ready_for(kernel: Any, args: Sequence[Any], instance: Any) -> Ready | None:
    """Return what calls with arguments of these types need; None where they do more than call an operator."""
    kinds = list(kernel.kinds.values())
    more = instance.log is not None or instance.returns is not None or instance.operator.draws_random
    if more or not kernel.may_be_in_graphs or state.settings().others.get("kernel_profiler"):
        return None
    if not all(_repeats(each, kind) for each, kind in zip(args, kinds, strict=True)):
        return None
    if any(isinstance(each.owner, Numbers) or (each.place >= 0 and each.part != "data") for each in instance.bound):
        return None
    scalars = [(place, kind) for place, kind in enumerate(kinds) if isinstance(kind, ScalarType)]
    return Ready(instance.operator.call, instance.bound, tuple(scalars), state.generation())


def _repeats(value: Any, kind: Any) -> bool:
    if not isinstance(kind, ScalarType):
        return type(value) is torch.Tensor and not value.requires_grad and not kind.element_dim
    return type(value) is (float if kind.is_real else bool if kind.is_bool else int) and kind is not u64
