"""A backward function that the user has written, in place of the derived one (`@op.backward`).

    def backward(*inputs, *grads) -> one gradient for each input

or, with `setup_context`, what `torch.library.register_autograd` takes: `setup_context(ctx, inputs, output)` keeps what
`backward(ctx, *grads)` needs. Both are made of torch's operators, or of ours, and are differentiated through those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class UserBackward:
    """The functions that the user gave to `@op.backward`."""

    backward: Callable[..., Any]
    setup_context: Callable[..., None] | None = None

    def gradients(self, operator: str, count: int, arguments: Sequence[Any]) -> list[Any]:
        """Return a gradient, or None, for each of `count` inputs."""
        found = self.backward(*arguments)
        items = [*cast("Sequence[Any]", found)] if isinstance(found, list | tuple) else [found]
        if count == 1 and isinstance(found, list):
            items = [items]
        if len(items) != count:
            name = getattr(self.backward, "__name__", "backward")
            raise RuntimeError(
                f"{name}, the gradient of {operator}, returned {len(items)} values for {count} inputs: return a"
                " gradient, or None, for each argument in the order of the function's parameters"
            )
        return items


class Context:
    """The `ctx` that the user's functions see: torch's own, but inputs are counted as the operator's arguments are."""

    def __init__(self, ctx: Any, needs: Sequence[bool | Sequence[bool]]) -> None:
        """Look through to `ctx`."""
        self.__dict__["_ctx"] = ctx
        self.__dict__["needs_input_grad"] = tuple(needs)

    def __getattr__(self, name: str) -> Any:
        """Return what torch's context has."""
        return getattr(self.__dict__["_ctx"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep something in torch's context."""
        setattr(self.__dict__["_ctx"], name, value)


def flattened(items: Sequence[Any], lengths: Sequence[int | None], operator: str) -> list[Any]:
    """Return gradients with those of lists in their places; one that is None goes for all items of a list."""
    flat: list[Any] = []
    for item, length in zip(items, lengths, strict=False):
        if length is None:
            flat.append(item)
        elif item is None:
            flat += [None] * length
        elif len(item) == length:
            flat += item
        else:
            raise RuntimeError(
                f"the gradient of {operator} has {len(item)} items for a list of {length}: return a list of as many"
                " gradients, or None for the whole list"
            )
    wrong = next((item for item in flat if item is not None and not isinstance(item, torch.Tensor)), None)
    if wrong is not None:
        raise RuntimeError(f"a gradient of {operator} is a Tensor or None, not {type(wrong).__name__}")
    return flat
