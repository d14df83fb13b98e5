"""A brickwork operator's machine code in front of a kernel of PyTorch's, so that calls reach it without Python.

The dispatcher calls a gate with a chain of its own. Calls that no entry takes are answered by the override in Python;
if the operator served one, the code for such arguments goes into the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from brickwork.pytorch.gate import ArgumentKind, Gate, OnAutograd, call_in_order
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.overrides.overloads import Form, Member, schema_of
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.records import dataclass

_KINDS = {
    "Tensor": ArgumentKind.TENSOR,
    "Optional[Tensor]": ArgumentKind.OPTIONAL_TENSOR,
    "int": ArgumentKind.INT,
    "SymInt": ArgumentKind.INT,
    "float": ArgumentKind.FLOAT,
    "bool": ArgumentKind.BOOL,
    "Optional[int]": ArgumentKind.OPTIONAL_INT,
    "Optional[SymInt]": ArgumentKind.OPTIONAL_INT,
    "Optional[float]": ArgumentKind.OPTIONAL_FLOAT,
    "Optional[bool]": ArgumentKind.OPTIONAL_BOOL,
    "List[Tensor]": ArgumentKind.TENSOR_LIST,
    "List[int]": ArgumentKind.INT_LIST,
    "List[SymInt]": ArgumentKind.INT_LIST,
    "List[float]": ArgumentKind.FLOAT_LIST,
    "List[bool]": ArgumentKind.BOOL_LIST,
}

_ALLOCATES = "aten::empty_like"
"""What entries call for results of rare layouts: in its place their code would call itself."""


@runtime_checkable
class StandIn(Protocol):
    """An operator whose code can be put behind the gate of another one."""

    def native_arguments(self) -> tuple[tuple[ArgumentKind, ...], int] | None:
        """Return the kinds of the arguments, and how many results there are; None where there is no code to put."""
        ...

    def gate_of(self, operator: str, answer: OnAutograd) -> Gate:
        """Return a gate of `operator` without entries; `answer` serves the calls that no entry takes."""
        ...

    def link(self, gate: Gate, values: Sequence[object]) -> None:
        """Put the code for these arguments into a gate's chain."""
        ...


@dataclass(frozen=True, slots=True)
class Front:
    """Such a gate. It is made once for an operator and a kernel, and serves all overrides of the one by the other."""

    operator: StandIn
    gate: Gate

    def link(self, values: Sequence[object]) -> None:
        """Take calls with such arguments from now on; not while a graph is captured, which cannot take new code."""
        on_gpu = any(tensor.is_cuda for tensor in tensors_of(values))
        if not (on_gpu and torch.cuda.is_current_stream_capturing()):
            self.operator.link(self.gate, values)


def can_stand(function: object, member: Member) -> bool:
    """Whether a callable has machine code that takes the arguments of an overload as they lie."""
    if member.form is not Form.FUNCTION or not isinstance(function, StandIn):
        return False
    name, schema = member.overload.name(), schema_of(member.overload)
    # A kernel that torch trusts with lazily negated tensors would get them as they are.
    lazy = private("_C._dispatch_has_kernel_for_dispatch_key")(name, "Negative")
    kinds = tuple(_KINDS.get(str(each.real_type)) for each in schema.arguments)
    plain = all(str(each.type) == "Tensor" for each in schema.returns)
    own = function.native_arguments()
    return plain and not lazy and name != _ALLOCATES and own == (kinds, len(schema.returns))


def front_of(operator: StandIn, overload: Any, key: str, serve: Callable[..., Any]) -> Front:
    """Return a gate of an overload at a dispatch key; `serve` answers as a layer does."""

    def answer(values: tuple[object, ...], wants_gradient: bool) -> object:
        del wants_gradient
        keys = private("_C.DispatchKeySet")(getattr(private("_C.DispatchKey"), key))
        return call_in_order(overload, values, lambda *arguments, **named: serve(keys, arguments, named))

    return Front(operator, operator.gate_of(overload.name(), answer))
