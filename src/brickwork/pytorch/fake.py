"""The fake implementation: the host part of the function run on tensors without data, shapes possibly symbolic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.frontend.definition import Definition
from brickwork.frontend.host_python import host_function
from brickwork.frontend.lower import PYTHON_ERRORS, refuse_wrong_ranks
from brickwork.frontend.results import check_results
from brickwork.pytorch.arguments import check_devices, names_of
from brickwork.pytorch.schema import KEY
from brickwork.pytorch.tensor_devices import allocating_like, tensors_of
from brickwork.transform.derivation import Backward, Batch, Defined, Derived, Forward


def fake_default(definition: Defined) -> Callable[..., Any]:
    """Return the fake of the overload that allocates its results."""
    host = host_function(definition) if isinstance(definition, Definition) else _derived(definition)

    def fake(*arguments: Any, **named: Any) -> Any:
        if definition.draws_random:
            named.pop(KEY, None)
        tensors = tensors_of((*arguments, *named.values()))
        check_devices(definition.name, tensors, names_of(definition, arguments, len(tensors)))
        with allocating_like(tensors):
            try:
                results: Any = host(*arguments, **named)
            except PYTHON_ERRORS:
                if isinstance(definition, Definition):
                    refuse_wrong_ranks(definition, arguments, named)
                raise
        if isinstance(definition, Definition) and definition.results > 1:
            check_results(definition.source, results, definition.results)
        return results

    return fake


def _derived(made: Derived) -> Callable[..., Any]:
    """Return what makes the results of a derived operator, without what is in them."""
    count = len(made.base.parameters)
    written = [place for place, item in enumerate(made.base.parameters) if item.name in made.base.mutated]
    base = fake_default(made.base)

    def host(*arguments: Any) -> Any:
        values, derivation = arguments[:count], made.derivation
        match derivation:
            case Backward(wanted=wanted):
                of = tensors_of(value for value, chosen in zip(values, wanted, strict=True) if chosen)
            case Forward():
                outputs = [*tensors_of(values[place] for place in written), *tensors_of((base(*values),))]
                of = [output for output, is_float in zip(outputs, made.floats, strict=True) if is_float]
            case Batch(given=given):
                size = tensors_of(value for value, has in zip(values, given, strict=True) if has)[0].shape[0]
                sample = [_sample(value) if has else value for value, has in zip(values, given, strict=True)]
                of = [result.new_empty((size, *result.shape)) for result in tensors_of((base(*sample),))]
        results = tuple(map(torch.empty_like, of))
        return results[0] if len(results) == 1 else results or None

    return host


def _sample(value: Any) -> Any:
    """Return what one sample of an argument is, without data."""
    if isinstance(value, list | tuple):
        return [_sample(item) for item in cast("Sequence[Any]", value)]
    return torch.empty_strided(value.shape[1:], value.stride()[1:], dtype=value.dtype, device=value.device)


def fake_out(definition: Defined, outputs: Sequence[str]) -> Callable[..., None]:
    """Return the fake of the overload that takes its results: it checks their shapes and returns nothing."""
    default = fake_default(definition)

    def fake(*arguments: Any, **named: Any) -> None:
        given = [named.pop(name) for name in outputs]
        check_devices(definition.name, tensors_of((*arguments, *given)))
        results = default(*arguments, **named)
        for name, tensor, result in zip(outputs, given, results if len(outputs) > 1 else (results,), strict=True):
            check_result(definition.name, name, tensor, result)

    return fake


def check_result(operator: str, name: str, tensor: torch.Tensor, result: torch.Tensor) -> None:
    """Refuse a buffer that cannot take a result."""
    if tensor.dtype != result.dtype:
        raise RuntimeError(f"{operator}(): expected `{name}` to have dtype {result.dtype}, but got {tensor.dtype}")
    same = tensor.dim() == result.dim() and all(
        size == wanted for size, wanted in zip(tensor.shape, result.shape, strict=True)
    )
    if not same:
        shapes = f"{tuple(result.shape)}, but got {tuple(tensor.shape)}"
        raise RuntimeError(f"{operator}(): expected `{name}` to have shape {shapes}")
