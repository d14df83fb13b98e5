"""Arguments of kernels: what of them a kernel is compiled for, what they are in it, and what a call passes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, UINT64
from brickwork.ir.nodes import Symbol
from brickwork.pytorch.dtypes import from_torch
from brickwork.records import dataclass
from brickwork.taichi.annotations import NdarrayType, Ref, is_template, kind_of
from brickwork.taichi.arithmetic import is_number
from brickwork.taichi.builder import Builder
from brickwork.taichi.cells import Cells
from brickwork.taichi.compound import MatrixType, Struct, StructType, fitted
from brickwork.taichi.errors import (
    TaichiCompilationError,
    TaichiRuntimeTypeError,
    TaichiSyntaxError,
    TaichiTypeError,
    argument_error,
    unsupported,
)
from brickwork.taichi.fields import CellStruct
from brickwork.taichi.matrix import Matrix, made
from brickwork.taichi.scalars import ScalarType, of_element, plain
from brickwork.taichi.sequences import is_sequence
from brickwork.taichi.values import Value
from brickwork.taichi.views import View, local


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor that is passed as an array."""

    data: torch.Tensor
    kind: ScalarType
    ndim: int
    element_shape: tuple[int, ...]
    owner: Any
    """What was passed."""

    @property
    def has_grad(self) -> bool:
        """Whether there are gradients, or would be."""
        if isinstance(self.owner, Cells):
            return getattr(self.owner, "grad", None) is not None
        return self.data.requires_grad and self.data.is_leaf

    def grad(self) -> torch.Tensor:
        """Return the gradients; those of a tensor are made now if there are none yet."""
        if isinstance(self.owner, Cells):
            return cast("Any", self.owner).grad.storage
        if self.data.grad is None:
            self.data.grad = torch.zeros_like(self.data)
        return self.data.grad


@dataclass(frozen=True, slots=True)
class Passed:
    """An argument of a call: what the kernel is compiled for, and the numbers or the tensor that are passed."""

    key: Any
    value: Any


def annotated(function: Any, name: str, annotation: Any) -> Any:
    """Return the annotation of a kernel's parameter as a type; refuse one that is none."""
    if annotation is NdarrayType or isinstance(annotation, NdarrayType):
        return annotation() if annotation is NdarrayType else annotation
    if is_template(annotation) or isinstance(annotation, MatrixType | StructType):
        return annotation
    if annotation is inspect.Parameter.empty:
        raise TaichiSyntaxError(f"Taichi kernels parameters must be type annotated: `{name}` of `{function.__name__}`")
    if isinstance(annotation, Ref):
        raise TaichiSyntaxError("`ti.ref` is for functions, not for kernels")
    try:
        return kind_of(annotation, name)
    except TaichiCompilationError:
        raise TaichiSyntaxError(f"Invalid type annotation (argument {name}) of Taichi kernel: {annotation}") from None


def pass_argument(place: int, name: str, value: Any, kind: Any) -> Passed:
    """Return how a value is passed for a parameter."""
    if is_template(kind):
        return Passed(_template_key(value), value)
    if isinstance(kind, NdarrayType):
        array = _array(name, value, kind)
        key = (array.kind, array.ndim, array.element_shape, array.has_grad)
        return Passed(key, array)
    if isinstance(kind, MatrixType | StructType):
        return Passed(None, [_raw(each) for each in _flat(_host_value(name, value, kind), kind)])
    return Passed(None, [_scalar(place, value, kind)])


def _template_key(value: Any) -> Any:
    if is_number(value):
        return type(value), getattr(value, "dtype", None), repr(plain(value))
    if isinstance(value, Matrix):
        return value.shape, value.dtype, tuple(map(_template_key, value.entries))
    if isinstance(value, str | type(None)):
        return value
    if isinstance(value, torch.Tensor):
        return value.dtype, len(value.shape)
    if is_sequence(value):
        return tuple(map(_template_key, value))
    return id(value)


def _scalar(place: int, value: Any, kind: ScalarType) -> Any:
    number = value if getattr(value, "shape", ()) else plain(value)
    if not isinstance(number, bool | int | float) or (isinstance(number, float) and not kind.is_real):
        raise argument_error(place, kind, type(cast("object", value)))
    return _raw((number, kind))


def _raw(pair: tuple[Any, ScalarType]) -> Any:
    """Return a number as the operator takes it: integers as int64, floats as float64."""
    value, kind = pair
    number = kind.number(value)
    return number - (1 << 64) if kind.element is UINT64 and number >= 1 << 63 else number


def _host_value(name: str, value: Any, kind: Any) -> Any:
    try:
        if isinstance(value, CellStruct):
            value = value.entries
        return fitted(Matrix(value) if isinstance(kind, MatrixType) and not isinstance(value, Matrix) else value, kind)
    except (TypeError, ValueError, TaichiSyntaxError, TaichiTypeError, AttributeError) as error:
        raise TaichiRuntimeTypeError(f"Argument {name}: {error}") from None
    except TaichiCompilationError as error:
        raise ValueError(f"Invalid argument {name}: {error}") from None


def _flat(value: Any, kind: Any) -> list[tuple[Any, ScalarType]]:
    """Return the numbers of a value, each with its type."""
    if isinstance(kind, StructType):
        return [pair for name, each in kind.members.items() for pair in _flat(value[name], each)]
    if isinstance(kind, MatrixType):
        own = kind.dtype or value.scalar_type
        return [(entry, own) for entry in value.entries]
    return [(value, kind_of(kind, "a member"))]


# ---------------------------------------------------------------- arrays


def _array(name: str, value: Any, kind: NdarrayType) -> Array:
    if isinstance(value, Cells):
        array = Array(value.storage, value.dtype, len(value.shape), value.element_shape, value)
        _matches(name, array, kind)
        return array
    owner = value
    data = value if isinstance(value, torch.Tensor) else _from_numpy(name, value)
    element = from_torch(data.dtype)
    own = None if element is None else of_element(element)
    if own is None:
        raise TaichiRuntimeTypeError(f"Argument {name}: elements of {data.dtype} are not supported")
    dims = kind.element_dim or 0
    if dims > data.dim():
        raise _wrong_dims(name, kind, data.dim())
    if kind.ndim is not None and kind.ndim != data.dim() - dims:
        raise _wrong_dims(name, kind, data.dim())
    element_shape = tuple(data.shape[data.dim() - dims :])
    if kind.dtype is not None and kind.dtype != own:
        said = f"Invalid value for argument {name} - required array has dtype={kind.dtype}"
        raise ValueError(f"{said}, array with dtype={own} is provided")
    if kind.element_shape is not None and kind.element_shape != element_shape:
        said = f"Invalid value for argument {name} - required element_shape={kind.element_shape}"
        raise ValueError(f"{said}, array with element shape of {element_shape} is provided")
    array = Array(data, own, data.dim() - dims, element_shape, owner)
    _matches(name, array, kind)
    return array


def _wrong_dims(name: str, kind: NdarrayType, given: int) -> ValueError:
    dims = f" element_dim={kind.element_dim}" if kind.element_dim else ""
    ndim = f"ndim={kind.ndim}" if kind.ndim is not None else ""
    said = f"Invalid value for argument {name} - required array has {ndim}{dims}"
    return ValueError(f"{said}, array with {given} dimensions is provided")


def _from_numpy(name: str, value: Any) -> torch.Tensor:
    if not hasattr(value, "__array_interface__"):
        raise TaichiRuntimeTypeError(f"Invalid type for argument {name}, got {value}")
    if any(stride < 0 for stride in value.strides) or not value.flags.writeable:
        raise ValueError(f"Non contiguous numpy arrays are not supported for `{name}`: pass a copy")
    try:
        return torch.as_tensor(value)
    except TypeError:
        raise TaichiRuntimeTypeError(f"Argument {name}: elements of {value.dtype} are not supported") from None


def _matches(name: str, array: Array, kind: NdarrayType) -> None:
    said = f"Invalid value for argument {name} - required"
    shape = kind.element_shape
    if (shape is not None and shape != array.element_shape) or (
        kind.element_dim is not None and kind.element_dim != len(array.element_shape)
    ):
        given = _element_text(array.element_shape, array.kind)
        if kind.element_dim == 0:
            raise TypeError(f"Expect element type {kind.dtype} for argument {name}, but get {given}")
        raise ValueError(f"{said} element type: {_element_text(shape or (), kind.dtype)}, but {given} is provided")
    if kind.dtype is not None and kind.dtype != array.kind:
        raise TypeError(f"Expect element type {kind.dtype} for argument {name}, but get {array.kind}")
    if kind.ndim is not None and kind.ndim != array.ndim:
        sizes = tuple(array.data.shape[: array.ndim])
        raise ValueError(f"{said} ndim={kind.ndim}, but {array.ndim}d ndarray with shape {sizes} is provided")
    if kind.needs_grad and not array.has_grad:
        raise ValueError(f"{said} needs_grad=True, but `{name}` has no gradients")


def _element_text(shape: tuple[int, ...], kind: ScalarType | None) -> str:
    if not shape:
        return str(kind)
    return f"{'Vector' if len(shape) == 1 else 'Matrix'}Type[{','.join(map(str, shape))}, {kind}]"


# ---------------------------------------------------------------- in the kernel


def parameter_value(builder: Builder, place: int, name: str, kind: Any, passed: Passed, symbols: list[Symbol]) -> Any:
    """Return what a parameter is in the kernel; scalars are added to `symbols`."""
    if is_template(kind):
        if isinstance(passed.value, torch.Tensor):
            raise unsupported("a torch tensor as a template", "annotate it as ti.types.ndarray()")
        return passed.value
    if isinstance(kind, NdarrayType):
        return _view(builder, place, name, kind, passed.value)
    flat = iter([_parameter(builder, name, each, symbols) for each in flat_kinds(kind)])
    return local(name, _rebuilt(kind, flat))


def flat_kinds(kind: Any) -> list[ScalarType]:
    """Return the types of the numbers of an argument or a result."""
    if isinstance(kind, StructType):
        return [each for member in kind.members.values() for each in flat_kinds(member)]
    if isinstance(kind, MatrixType):
        return [kind_of(kind.dtype or float, "an entry")] * (kind.n * kind.m)
    return [kind_of(kind, "a member")]


def _rebuilt(kind: Any, flat: Any) -> Any:
    if isinstance(kind, StructType):
        made_ = Struct({name: _rebuilt(each, flat) for name, each in kind.members.items()})
        made_.__dict__.update(methods=kind.methods, type=kind)
        return made_
    if isinstance(kind, MatrixType):
        return made([next(flat) for _ in range(kind.n * kind.m)], kind.shape, kind_of(kind.dtype or float, "an entry"))
    return next(flat)


def _parameter(builder: Builder, name: str, kind: ScalarType, symbols: list[Symbol]) -> Value:
    dtype = FLOAT64 if kind.is_real else BOOL if kind.is_bool else INT64
    symbol = builder.symbol(name, dtype)
    symbols.append(symbol)
    builder.fixed.add(symbol)
    return Value(build.cast(build.read(symbol), kind.value), kind, index=True)


def _view(builder: Builder, place: int, name: str, kind: NdarrayType, array: Array) -> View:
    rank = array.ndim + len(array.element_shape)
    tensor = builder.tensor(name, array.kind.element, rank, array.owner, "data", place)

    def of_gradients() -> View:
        made_ = builder.tensor(f"{name}_grad", array.kind.element, rank, array.owner, "grad", place)
        return View(made_, array.kind, array.ndim, array.element_shape)

    grad = of_gradients if array.has_grad else None
    return View(tensor, array.kind, array.ndim, array.element_shape, boundary=kind.boundary, grad=grad)


def result_of(kind: Any, numbers: Sequence[Any]) -> Any:
    """Return numbers as a result of the declared type."""
    return _rebuilt(kind, (own.number(each) for own, each in zip(flat_kinds(kind), numbers, strict=True)))


def flat_values(value: Any, kind: Any) -> list[Any]:
    """Return the scalars of a result in a kernel."""
    return [each for each, _ in _flat(value, kind)]
