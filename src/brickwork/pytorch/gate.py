"""Gates: the functions that PyTorch's dispatcher holds, and the chain of specialisations behind each operator.

An operator has one chain. `Gate` makes its native functions (loaded once, never unloaded), registers them, links new
entries in front, and turns misses and failures into calls of Python. See docs/internals/native-abi.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias

from brickwork.codegen.entry import EntryDescription
from brickwork.target.target import Target


class ArgumentKind(Enum):
    """How an argument lies on the stack, from its type in the schema (SymInt counts as int)."""

    TENSOR = "Tensor"
    OPTIONAL_TENSOR = "Tensor?"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TENSOR_LIST = "Tensor[]"
    INT_LIST = "int[]"
    FLOAT_LIST = "float[]"
    BOOL_LIST = "bool[]"


OnMiss: TypeAlias = Callable[[tuple[object, ...]], None]
"""Called with the Python values of all stack arguments when no entry matches, under the gate's lock. It must make the
next walk of the chain match: `gate.add(...)` (again: another thread may have added the entry; then it just returns).
What it raises reaches the caller of the operator."""

OnAutograd: TypeAlias = Callable[[tuple[object, ...], bool], object]
"""Called at the autograd key instead of the chain when an argument is no plain dense CPU tensor (a FakeTensor, a
functorch wrapper, a subclass, a neg/conj view), a dispatch mode is active, or a gradient is asked for (second argument
True: grad mode is on and an argument requires grad, or one has a forward gradient). Returns the operator's result."""


def thunk_object(target: Target) -> bytes:
    """Return the object code that every gate is made of; the same for all gates, so it can be cached on disk."""
    raise NotImplementedError(target)


class Gate:
    """The native side of one operator overload."""

    def __init__(
        self,
        operator: str,
        arguments: Sequence[ArgumentKind],
        on_miss: OnMiss,
        on_autograd: OnAutograd,
        thunks: bytes,
    ) -> None:
        """Make the gate of `operator` (`ns::name` or `ns::name.overload`); `thunks` is `thunk_object`'s result."""
        raise NotImplementedError((operator, arguments, on_miss, on_autograd, thunks))

    def register(self, keys: Sequence[str] = ("CPU",), autograd_keys: Sequence[str] = ("AutogradCPU",)) -> None:
        """Register with the dispatcher; the schema must have been defined. An operator without tensors: see the docs."""
        raise NotImplementedError((keys, autograd_keys))

    def add(self, object_bytes: bytes, description: EntryDescription) -> None:
        """Load a specialisation and put it in front of the chain."""
        raise NotImplementedError((object_bytes, description))

    def clear(self) -> None:
        """Forget all specialisations: the chain is the miss routine alone (their code stays loaded)."""
        raise NotImplementedError
