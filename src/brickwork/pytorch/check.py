"""Checks of an operator on real arguments: the same results as its reference, and PyTorch's own `opcheck`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from brickwork.pytorch.devices import check_errors
from brickwork.pytorch.gate import schema_arguments
from brickwork.pytorch.placement import device_of
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.schema import KEY

TOLERANCES = {torch.float16: 1e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-12}
"""How far results may differ, relative to their size, by dtype: compiled code may contract a*b+c."""


def check_operator(
    operator: Any, reference: Callable[..., Any], name: str, arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise AssertionError unless `operator` agrees with `reference` and passes `opcheck` on these arguments.

    The reference runs on the CPU, on copies; an operator that draws on a GPU is given a key for both.
    """
    device = device_of(arguments)
    draws = any(each.name == KEY for each in schema_arguments(operator))
    if draws and named.get(KEY) is None and device is not None and device.type != "cpu":
        named = {**named, KEY: draw_key()}
    seed = torch.random.get_rng_state()
    ours = [_copy(argument) for argument in arguments]
    theirs = [_on_cpu(_copy(argument)) for argument in arguments]
    result = operator(*ours, **named)
    torch.random.set_rng_state(seed)
    expected = reference(*theirs, **{key: _on_cpu(value) for key, value in named.items()})
    check_errors()
    _compare(name, "result", result, expected)
    _compare(name, "arguments after the call", ours, theirs)
    cast("Any", torch.library).opcheck(operator, tuple(_copy(argument) for argument in arguments), dict(named))


def _compare(name: str, what: str, one: Any, other: Any) -> None:
    if isinstance(one, list | tuple):
        pairs = zip(cast("Sequence[Any]", one), cast("Sequence[Any]", other), strict=True)
        for position, (left, right) in enumerate(pairs):
            _compare(name, f"{what}[{position}]", left, right)
    elif isinstance(one, torch.Tensor):
        tolerance = TOLERANCES.get(one.dtype, 0.0)
        torch.testing.assert_close(
            _on_cpu(one),
            _on_cpu(other),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            msg=lambda text: f"{name}: {what} differs from the reference: {text}",
        )


def _on_cpu(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_on_cpu(item) for item in cast("Sequence[Any]", value)]
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _copy(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_copy(item) for item in cast("Sequence[Any]", value)]
    return value.clone() if isinstance(value, torch.Tensor) else value
