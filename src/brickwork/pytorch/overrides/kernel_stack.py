"""A kernel of PyTorch and what was put in front of it: who is asked first, and who next.

The dispatcher keeps all kernels of one key in a row and calls the newest; taking one out anywhere leaves the others as
they were. `Kernel` keeps the same row, so that each can pass a call on to the one before it, down to the original.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any, Protocol

import torch

from brickwork.pytorch.libtorch import private
from brickwork.pytorch.overrides.fast_path import Front
from brickwork.pytorch.overrides.overloads import numbers_for_tensors, schema_of
from brickwork.pytorch.untraced import untraced
from brickwork.records import dataclass


class Layer(Protocol):
    """A callable that stands in front of a kernel, and may pass calls on to it."""

    def serve(self, keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Answer a call."""
        ...

    @property
    def owner(self) -> object:
        """The handle of the override that this is a part of."""
        ...

    @property
    def code(self) -> str:
        """What tells the callable's code from that of others, if graphs may have it instead of calling the kernel."""
        ...

    def written(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what a call gives, by PyTorch's operators; NotImplemented where it has to be made."""
        ...


@dataclass(frozen=True, slots=True)
class Registered:
    """A layer in the dispatcher."""

    remove: Callable[[], object]
    functions: list[object]
    """torch's handles on what the dispatcher calls. While somebody holds it, a thread that was sent there
    just before it was taken out finds it."""


@dataclass(eq=False, slots=True)
class Kernel:
    """The kernels of one overload at the dispatch key of a device: the original, and the layers in front of it."""

    overload: Any
    key: str
    original: Any
    """torch's handle on the kernel that was there first."""
    layers: tuple[Layer, ...] = ()
    """Oldest first."""
    registered: dict[Layer, Registered] = field(default_factory=dict["Layer", Registered])

    def call_below(self, layer: Layer, keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Serve a call by what stands behind a layer; by the original if the layer was taken out meanwhile."""
        layers = self.layers
        older = layers[: layers.index(layer)] if layer in layers else ()
        if older:
            return older[-1].serve(keys, arguments, named)
        return self.call_original(keys, arguments, named)

    def call_original(self, keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Serve a call as if nothing had ever been put in front."""
        return self.original.call_boxed(keys, *self._as_tensors(arguments), **named)

    def _as_tensors(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return positional arguments with tensors where torch passes numbers to Python in place of tensors."""
        numbers = numbers_for_tensors(self.overload, arguments)
        if not numbers:
            return arguments
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        names = [each.name for each in schema_of(self.overload).arguments]
        pairs = zip(arguments, names, strict=False)
        return tuple(_as_tensor(value, tensors) if name in numbers else value for value, name in pairs)


def kernel_at(overload: Any, key: str) -> Any:
    """Return torch's handle on the kernel that it calls at a dispatch key now."""
    return private("library.get_kernel")(overload, key)


def put_in_front(kernel: Kernel, layer: Layer, front: Front | None) -> None:
    """Make the dispatcher ask a layer first, through machine code if it has some.

    The function in Python is registered even so: torch warns once in a process, and only there it can be kept from it.
    """
    namespace, _, name = kernel.overload.name().partition("::")
    library = private("_C._dispatch_library")("IMPL", namespace, kernel.key, "", 0)

    @untraced
    def function(keys: Any, *arguments: Any, **named: Any) -> Any:
        return layer.serve(keys, arguments, named)

    with warnings.catch_warnings():
        # torch tells of the first replaced kernel in a process; this one was asked for.
        warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel")
        library.impl(name, getattr(private("_C.DispatchKey"), kernel.key), function, with_keyset=True)
    kernel.layers = (*kernel.layers, layer)
    functions = [kernel_at(kernel.overload, kernel.key)]
    kernel.registered[layer] = Registered(library.reset, functions)
    if front is not None:
        remove = front.gate.register_at(kernel.key)
        functions.append(kernel_at(kernel.overload, kernel.key))
        kernel.registered[layer] = Registered(lambda: (remove(), library.reset()), functions)


def take_out(kernel: Kernel, layer: Layer) -> Registered:
    """Undo `put_in_front`, whatever has come in front of the layer since."""
    registered = kernel.registered.pop(layer)
    kernel.layers = tuple(each for each in kernel.layers if each is not layer)
    registered.remove()
    return registered


def _as_tensor(number: complex, tensors: list[torch.Tensor]) -> torch.Tensor:
    """Return a tensor of rank 0 that counts in promotion as the number does."""
    result = torch.result_type(tensors[0], number) if tensors else torch.tensor(number).dtype
    for tensor in tensors[1:]:
        result = torch.promote_types(result, torch.result_type(tensor, number))
    ranks = max((tensor.dim() for tensor in tensors), default=0)
    exact = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: result}[type(number)]
    weak = ranks > 0 and all(_category(tensor.dtype) == _category(exact) for tensor in tensors)
    return torch.tensor(number, dtype=exact if weak else result, device="cpu")


def _category(dtype: torch.dtype) -> tuple[bool, bool, bool]:
    return dtype == torch.bool, dtype.is_floating_point, dtype.is_complex
