"""The arguments of a call as torch passes them, made into the plain data of `runtime/signature.py`, or refused.

Refusals use torch's own words where torch has some, and name the argument and the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.definition import Definition
from brickwork.host.layout import Placement
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, DType
from brickwork.ir.signature import ListType, ScalarType, Signature
from brickwork.pytorch.dtypes import from_torch
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.signature import Argument, TensorArgument, signature_of

_SCALARS = {ArgumentKind.INT: INT64, ArgumentKind.FLOAT: FLOAT64, ArgumentKind.BOOL: BOOL}
_LISTS = {ArgumentKind.INT_LIST: INT64, ArgumentKind.FLOAT_LIST: FLOAT64, ArgumentKind.BOOL_LIST: BOOL}


def signature_of_call(definition: Definition, kinds: Sequence[ArgumentKind], values: Sequence[object]) -> Signature:
    """Return the signature of a call with the values of all arguments in the schema's order, those of results last."""
    check_devices(definition.name, [value for value in values if isinstance(value, torch.Tensor)])
    count = len(definition.parameters)
    arguments = [_argument(definition, position, kinds[position], values[position]) for position in range(count)]
    written = {position for position, each in enumerate(definition.parameters) if each.name in definition.mutated}
    outputs = values[count + (1 if definition.draws_random else 0) :]
    out = [_tensor(definition, f"out{number}", value, None) for number, value in enumerate(outputs)]
    return signature_of(arguments, written, out)


def check_devices(operator: str, tensors: Sequence[torch.Tensor]) -> None:
    """Refuse tensors on different devices."""
    devices = {str(tensor.device): None for tensor in tensors}
    if len(devices) > 1:
        first, second, *_ = devices
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{first} and {second}! (when calling {operator})"
        )


def check_written(operator: str, name: str, tensor: torch.Tensor) -> None:
    """Refuse to write into a tensor in which several elements share one place."""
    overlaps = any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if overlaps and tensor.numel():
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor `{name}` of {operator} refers to "
            "a single memory location. Please clone() the tensor before performing the operation."
        )


def _argument(definition: Definition, position: int, kind: ArgumentKind, value: object) -> Argument:
    if kind in _SCALARS:
        return ScalarType(_SCALARS[kind])
    if kind in _LISTS and isinstance(value, list | tuple):
        return ListType(_LISTS[kind], len(cast("Sequence[object]", value)))
    name = definition.parameters[position].name
    return _tensor(definition, name, value, position)


def _tensor(definition: Definition, name: str, value: object, position: int | None) -> TensorArgument:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{definition.name}(): argument '{name}' must be Tensor, not {type(value).__name__}")
    loc = definition.loc if position is None else definition.parameters[position].loc
    dtype = _dtype(definition, name, value, loc)
    address = 0 if value.device.type == "meta" else value.data_ptr()
    if position is None or name in definition.mutated:
        check_written(definition.name, name, value)
    return TensorArgument(dtype, Placement(address, tuple(value.shape), value.stride(), value.element_size()))


def _dtype(definition: Definition, name: str, tensor: torch.Tensor, loc: Location) -> DType:
    """Return the element type of an argument, or refuse it."""
    dtype = from_torch(tensor.dtype)
    if dtype is not None and tensor.layout == torch.strided:
        return dtype
    what = str(tensor.dtype) if dtype is None else f"a tensor of layout {tensor.layout}"
    help_line = "pass `torch.view_as_real(...)` of it" if tensor.dtype.is_complex else "convert it before the call"
    message = f"argument `{name}` of {definition.name} is {what}, which brickwork cannot compute with"
    raise CompileError(Diagnostic(code="BW301", message=message, loc=loc, help=help_line))
