"""Kernels in the graphs of `torch.compile`: a call on tensors and numbers alone is that of an operator there."""

from __future__ import annotations

from typing import Any

import torch

from brickwork.pytorch.specialise import place_of
from brickwork.pytorch.untraced import untraced
from brickwork.taichi import state
from brickwork.taichi.arguments import pass_argument
from brickwork.taichi.builder import Bound
from brickwork.taichi.operators import NAMESPACE
from brickwork.taichi.scalars import ScalarType


def in_graph(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a kernel while Dynamo traces: by its operator where it can be one, else outside of the graph."""
    given = dict(zip(kernel.names, args, strict=False))
    given.update(named)
    known = kernel.may_be_in_graphs and len(args) + len(named) == len(given) == len(kernel.names)
    if known and all(_fits(given[name], kind) for name, kind in kernel.kinds.items()):
        described = tuple(_described(given[name], kind) for name, kind in kernel.kinds.items())
        found = kernel.in_graphs(described)
        if found is not None:
            name, places = found
            tensors = [given[kernel.names[place]] for place in places]
            kinds = kernel.kinds.items()
            numbers = [_number(given[name], kind) for name, kind in kinds if isinstance(kind, ScalarType)]
            getattr(getattr(torch.ops, NAMESPACE), name).default(*tensors, *numbers)
            return None
    return _apart(kernel, args, named)


@untraced
def _apart(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return kernel.run(args, named)


def _fits(value: Any, kind: Any) -> bool:
    """Return whether an argument can be one of an operator."""
    if not isinstance(kind, ScalarType):
        return isinstance(value, torch.Tensor)
    if isinstance(value, float):
        return kind.is_real
    return isinstance(value, bool) or (isinstance(value, int) and (kind.is_real or kind.holds(value)))


def _described(value: Any, kind: Any) -> Any:
    """Return what a kernel is compiled for of a tensor: dtype, axes and cells, device, whether it is a leaf."""
    if isinstance(kind, ScalarType):
        return None
    axes = value.dim() - (kind.element_dim or 0)
    shape = (*(2 for _ in range(axes)), *(int(size) for size in value.shape[axes:]))
    return value.dtype, shape, value.device, value.requires_grad and value.is_leaf


def _number(value: Any, kind: ScalarType) -> Any:
    return float(value) if kind.is_real else bool(value) if kind.is_bool else value


def operator_for(kernel: Any, described: tuple[Any, ...]) -> tuple[str, tuple[int, ...]] | None:
    """Return the name of a kernel's operator and which arguments are its tensors; None where it is more than that.

    More is what uses fields, random numbers or a log, what returns numbers, what a tape records, and what stores into
    a leaf, which gets no gradient of it.
    """
    if state.recorder() is not None or state.builder() is not None:
        return None
    examples = [1 if each is None else _example(*each) for each in described]
    kinds = kernel.kinds.items()
    passed = {
        name: pass_argument(place, name, example, kind)
        for place, ((name, kind), example) in enumerate(zip(kinds, examples, strict=True))
    }
    instance, _ = kernel.instance(passed)
    stored = [each.place for each, is_stored in zip(instance.bound, instance.mutated, strict=True) if is_stored]
    plain = all(map(_is_argument, instance.bound)) and not any(described[place][3] for place in stored)
    if not plain or instance.operator.draws_random or instance.log is not None or instance.returns is not None:
        return None

    def prepare(instance: Any) -> Any:
        values: list[Any] = [examples[each.place] for each in instance.bound]
        values += kernel.numbers(passed)
        instance.operator.prepare(values, place_of(values, None))
        return instance

    ready = kernel.checked(passed, prepare)
    return ready.operator.name, tuple(each.place for each in ready.bound)


def _is_argument(bound: Bound) -> bool:
    return bound.place >= 0 and bound.part == "data"


def _example(dtype: torch.dtype, shape: tuple[int, ...], device: torch.device, is_leaf: bool) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device, requires_grad=is_leaf)
