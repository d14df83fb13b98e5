"""The arguments of a call as torch passes them, made into the plain data of `runtime/signature.py`, or refused.

Refusals use torch's own words where torch has some, and name the argument and the operator.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.parameter_parts import Given
from brickwork.frontend.parameters import Kind, ParameterDeclaration
from brickwork.host.layout import Placement, may_alias, real_view
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, PARTS, DType
from brickwork.ir.signature import MOST_RATE, AbsentType, ArgumentType, ListType, ScalarType, Signature, TextType
from brickwork.pytorch.declared_schema import Declared
from brickwork.pytorch.dtypes import from_torch
from brickwork.pytorch.gate import ArgumentKind
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.runtime.signature import Argument, TensorArgument, TensorListArgument, signature_of
from brickwork.transform.derivation import Defined, Derived

_SCALARS = {
    ArgumentKind.INT: INT64,
    ArgumentKind.FLOAT: FLOAT64,
    ArgumentKind.BOOL: BOOL,
    ArgumentKind.OPTIONAL_INT: INT64,
    ArgumentKind.OPTIONAL_FLOAT: FLOAT64,
    ArgumentKind.OPTIONAL_BOOL: BOOL,
}
_LISTS = {ArgumentKind.INT_LIST: INT64, ArgumentKind.FLOAT_LIST: FLOAT64, ArgumentKind.BOOL_LIST: BOOL}


def signature_of_call(
    definition: Defined, kinds: Sequence[ArgumentKind], values: Sequence[object], device: str | None = None
) -> Signature:
    """Return the signature of a call with the values of all arguments in the schema's order, those of results last.

    The kind of device is the tensors', unless `device` says what tensors without data stand for.
    """
    count = len(definition.parameters)
    key = values[count] if definition.draws_random else None
    tensors = [tensor for tensor in tensors_of(values) if tensor is not key]
    check_devices(definition.name, tensors, names_of(definition, values, len(tensors)))
    kind = device or device_kind(tensors)
    arguments = [_argument(definition, position, kinds[position], values[position]) for position in range(count)]
    arguments = with_values(definition, arguments, values, kind)
    written = {position for position, each in enumerate(definition.parameters) if each.name in definition.mutated}
    if definition.draws_random:
        _check_key(definition, key, tensors)
    outputs = values[count + (1 if definition.draws_random else 0) :]
    names = ["out"] if len(outputs) == 1 else [f"out{number}" for number in range(len(outputs))]
    out = [_tensor(definition, name, value, None) for name, value in zip(names, outputs, strict=True)]
    integers, default = _integers(kinds[:count], values), definition.default_dtype
    return signature_of(arguments, written, out, device=kind, integers=integers, default_dtype=default)


def names_of(definition: Defined, values: Sequence[object], count: int) -> list[str]:
    """Return the names of the arguments that the tensors of a call are given as; none where there are others."""
    pairs = zip(definition.parameters, values, strict=False)
    names = [parameter.name for parameter, value in pairs for _ in tensors_of([value])]
    return names if len(names) == count else []


def device_kind(tensors: Sequence[torch.Tensor]) -> str:
    """Return the kind of device that code for these tensors runs on; without data it is the CPU."""
    return "cuda" if tensors and tensors[0].device.type == "cuda" else "cpu"


_Kind = TypeVar("_Kind", Argument, ArgumentType)


def with_values(definition: Defined, types: Sequence[_Kind], values: Sequence[object], device: str) -> list[_Kind]:
    """Return the types of arguments, on a GPU with the values of those that code is made for alone."""
    parameters = definition.parameters if device != "cpu" else ()
    found = [*types]
    for place, (parameter, kind, value) in enumerate(zip(parameters, types, values, strict=False)):
        if parameter.name in definition.rates and isinstance(kind, ScalarType) and is_small_rate(value):
            found[place] = replace(kind, value=int(cast("int", value)))
    return found


def is_small_rate(value: object) -> bool:
    """Whether code is made for an int alone where it is a rate; a symbolic one is not known."""
    return isinstance(value, int) and 1 <= value <= MOST_RATE


def _integers(kinds: Sequence[ArgumentKind], values: Sequence[object]) -> list[int]:
    """Return the values of int arguments, and the items of lists of them."""
    found: list[int] = []
    for kind, value in zip(kinds, values, strict=False):
        if kind in {ArgumentKind.INT, ArgumentKind.OPTIONAL_INT} and value is not None:
            found.append(int(cast("int", value)))
        elif kind is ArgumentKind.INT_LIST:
            found += [int(item) for item in cast("Sequence[int]", value)]
    return found


def _check_key(definition: Defined, key: object, tensors: Sequence[torch.Tensor]) -> None:
    """Refuse a random key that is not one 64-bit integer (or one a sample) on the CPU or where the tensors are."""
    if not isinstance(key, torch.Tensor):
        return
    rank = definition.key_rank if isinstance(definition, Derived) else 0
    if key.dtype != torch.int64 or (key.dim() != rank if rank else key.numel() != 1):
        what = f"has shape {tuple(key.shape)} and dtype {key.dtype}"
        raise ValueError(f"{definition.name}(): argument 'key' must hold one int64, but it {what}")
    if key.device.type != "cpu":
        check_devices(definition.name, [*tensors[:1], key])


def check_devices(operator: str, tensors: Sequence[torch.Tensor], names: Sequence[str] = ()) -> None:
    """Refuse tensors on different devices; `names` are those of the arguments."""
    devices = {str(tensor.device): None for tensor in tensors}
    if len(devices) > 1:
        first, second, *_ = devices
        places = [str(tensor.device) for tensor in tensors]
        found = zip(names, places, strict=True) if names else ()
        which = ", ".join(f"{name!r} is on {place}" for name, place in found)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{first} and {second}! (when calling {operator}{which and f': {which}'})"
        )


def check_written(operator: str, name: str, tensor: torch.Tensor) -> None:
    """Refuse to write into a tensor in which several elements share one place."""
    overlaps = any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if overlaps and tensor.numel():
        raise RuntimeError(
            f"unsupported operation: more than one element of the written-to tensor `{name}` of {operator} refers to "
            "a single memory location. Please clone() the tensor before performing the operation."
        )


def refuse_overlaps(definition: Defined | Declared, values: Sequence[object]) -> None:
    """Refuse a call to differentiate in which a tensor that is written shares memory with another one, or in itself."""
    if not are_in_memory(values):
        return
    groups = [tensors_of([value]) for value in values]
    names = [item.name for item in definition.parameters]
    stored = [name in definition.mutated for name, group in zip(names, groups, strict=False) for _ in group]
    placements = [_placement(tensor) for group in groups[: len(names)] for tensor in group]
    if may_alias(placements, [place for place, is_stored in enumerate(stored) if is_stored]):
        raise RuntimeError(
            f"{definition.name}() cannot be differentiated where an argument that it stores into shares memory with "
            "another one: pass a .clone() of one of them"
        )


def explain_mismatch(
    definition: Defined,
    signature: inspect.Signature,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    given: Given | None = None,
) -> None:
    """Raise a TypeError that says why arguments do not fit the function; return where they do.

    `given` says how objects are given by their parts. It is asked once torch has refused a call: torch speaks of
    schemas and overloads.
    """
    known = [*signature.parameters]
    for name in named:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            advice = f": did you mean {close[0]!r}?" if close else f": it has {', '.join(known)}"
            raise TypeError(f"{definition.name}() got an unexpected keyword argument {name!r}{advice}") from None
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        most = [item.name for item in signature.parameters.values() if item.kind is not item.KEYWORD_ONLY]
        too_many = f"takes {len(most)} argument{'s' * (len(most) != 1)} ({', '.join(most)}), not {len(arguments)}"
        said = too_many if len(arguments) > len(most) else error
        raise TypeError(f"{definition.name}() {said}") from None
    positional, words = (arguments, named) if given is None else given.flat(definition.name, arguments, named)
    bound = dict(zip((item.name for item in definition.parameters), positional, strict=False)) | dict(words)
    if "out" in bound and not _fits(bound["out"], "list[tensor]" if definition.results > 1 else "tensor"):
        found = _describe(bound["out"])
        raise TypeError(f"{definition.name}(): argument 'out' must be Tensor, not {found}") from None
    for parameter in definition.parameters:
        if parameter.name in bound and not _takes(bound[parameter.name], parameter):
            wanted = parameter.kind.replace("tensor", "Tensor") + (" or None" if parameter.optional else "")
            found, advice = _describe(bound[parameter.name]), _instead(bound[parameter.name], parameter)
            message = f"{definition.name}(): argument '{parameter.name}' must be {wanted}, not {found}{advice}"
            raise TypeError(message) from None
        _refuse_long(definition.name, parameter.name, bound.get(parameter.name))


def _refuse_long(operator: str, name: str, value: object) -> None:
    """Refuse an int, or one in a list, that has more than 64 bits."""
    for item in cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,):
        if isinstance(item, int) and not -(1 << 63) <= item < 1 << 63:
            message = f"{operator}(): argument '{name}' must fit in 64 bits, and {item:#x} does not: pass a float"
            raise OverflowError(message) from None


def _instead(value: object, parameter: ParameterDeclaration) -> str:
    """Return what to pass for a value that an argument cannot be, behind a colon; nothing where that is plain."""
    if parameter.kind == "tensor" and type(value).__name__ == "ndarray":
        return ": pass torch.from_numpy(...) of it"
    if parameter.kind == "tensor" and isinstance(value, bool | int | float | list | tuple):
        return ": pass torch.tensor(...) of it"
    if parameter.kind in {"int", "float", "bool"} and isinstance(value, torch.Tensor):
        return ": pass one of its elements, or annotate the parameter as torch.Tensor"
    takes_int = parameter.kind == "int" and isinstance(value, float)
    return ": pass int(...) of it, or annotate the parameter as float" if takes_int else ""


def _takes(value: object, parameter: ParameterDeclaration) -> bool:
    return (value is None and parameter.optional) or _fits(value, parameter.kind)


def _describe(value: object) -> str:
    """Return the type of a value, of a list with those of its items, of a tensor with its shape."""
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        return f"{kind} of shape {tuple(value.shape)}"
    if not isinstance(value, list | tuple):
        return kind
    items = dict.fromkeys(type(item).__name__ for item in cast("Sequence[object]", value))
    return f"{kind} of {' and '.join(items)}" if items else kind


def _fits(value: object, kind: Kind) -> bool:
    """Whether torch may take a value for an argument of this kind; tensors of one element count as numbers."""
    if kind == "tensor" or isinstance(value, torch.Tensor):
        one = kind == "tensor" or (isinstance(value, torch.Tensor) and value.numel() == 1)
        return isinstance(value, torch.Tensor) and one and not kind.startswith("list[")
    if kind.startswith("list["):
        inner = cast("Kind", kind.removeprefix("list[").removesuffix("]"))
        return isinstance(value, list | tuple) and all(_fits(item, inner) for item in cast("Sequence[object]", value))
    if kind == "str":
        return isinstance(value, str)
    return hasattr(value, "__index__" if kind == "int" else "__float__")


def _argument(definition: Defined, position: int, kind: ArgumentKind, value: object) -> Argument:
    if value is None and definition.parameters[position].optional:
        return AbsentType()
    if kind is ArgumentKind.TEXT:
        return TextType(cast("str", value))
    if kind in _SCALARS:
        return ScalarType(_SCALARS[kind])
    if kind in _LISTS and isinstance(value, list | tuple):
        return ListType(_LISTS[kind], len(cast("Sequence[object]", value)))
    name = definition.parameters[position].name
    if kind is ArgumentKind.TENSOR_LIST and isinstance(value, list | tuple):
        items = enumerate(cast("Sequence[object]", value))
        return TensorListArgument(tuple(_tensor(definition, f"{name}[{at}]", item, position) for at, item in items))
    return _tensor(definition, name, value, position)


def _tensor(definition: Defined, name: str, value: object, position: int | None) -> TensorArgument:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{definition.name}(): argument '{name}' must be Tensor, not {type(value).__name__}")
    loc = definition.loc if position is None else definition.parameters[position].loc
    dtype = _dtype(definition, name, value, loc)
    if position is None or definition.parameters[position].name in definition.mutated:
        check_written(definition.name, name, value)
    if dtype in PARTS:
        return TensorArgument(PARTS[dtype], real_view(_placement(value)), pairs=True)
    return TensorArgument(dtype, _placement(value))


def _placement(tensor: torch.Tensor) -> Placement:
    address = tensor.data_ptr() if _has_data(tensor) else 0
    return Placement(address, tuple(tensor.shape), tensor.stride(), tensor.element_size())


def _has_data(tensor: torch.Tensor) -> bool:
    return tensor.device.type != "meta" and not isinstance(tensor, FakeTensor)


def are_in_memory(values: Sequence[object]) -> bool:
    """Whether all tensors among arguments have elements of their own."""
    return all(map(_is_in_memory, tensors_of(values)))


def _is_in_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor is no wrapper of another one, such as those of function transforms and of tracing."""
    plain = type(tensor) in {torch.Tensor, torch.nn.Parameter} and _has_data(tensor)
    return plain and not private("_C._functorch.is_functorch_wrapped_tensor")(tensor)


def _dtype(definition: Defined, name: str, tensor: torch.Tensor, loc: Location) -> DType:
    """Return the element type of an argument, or refuse it."""
    dtype = from_torch(tensor.dtype)
    if dtype is not None and tensor.layout == torch.strided and not tensor.is_nested:
        return dtype
    what = f"a tensor of layout {tensor.layout}" if dtype is not None else str(tensor.dtype)
    if tensor.is_nested:
        what = "a nested tensor"
    message = f"argument `{name}` of {definition.name} is {what}, which brickwork cannot compute with"
    raise CompileError(Diagnostic(code="BW301", message=message, loc=loc, help=_conversion(tensor)))


def _conversion(tensor: torch.Tensor) -> str:
    """Return what to write for a tensor that cannot be computed with."""
    if tensor.dtype.is_complex:
        return "pass `.to(torch.complex64)` of it"
    if tensor.is_nested:
        return "pass a list of tensors, or `torch.nested.to_padded_tensor(..., 0.0)` of it"
    if tensor.is_quantized:
        return "pass `.dequantize()` of it"
    if tensor.layout != torch.strided:
        return "pass `.to_dense()` of it"
    return "pass `.to(torch.float16)` of it" if tensor.dtype.itemsize == 1 else "pass `.to(...)` another dtype of it"


def call_by_values(definition: Defined, function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Call a function that has the parameters of an operator with the values of all, in their order."""
    pairs = [*zip(definition.parameters, values, strict=True)]
    positional = [value for item, value in pairs if not item.keyword_only]
    return function(*positional, **{item.name: value for item, value in pairs if item.keyword_only})


def as_numbers(value: Any) -> Any:
    """Return an argument with the sizes of tensors in place of them."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    return [as_numbers(item) for item in cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else value
