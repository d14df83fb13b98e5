"""Straight code (`analysis/pointwise.py`) written with PyTorch's own operators, for compilers that fuse those.

Only what means the same is written: every tensor has the type of its expression, numbers stay numbers until a tensor
meets them, and operators without a counterpart of the same results, for NaN and ties too, are refused. Sizes must be
known to be equal where the code needs it: no guard is added to a graph.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, cast

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.fx.experimental.symbolic_shapes import statically_known_true

from brickwork.analysis.pointwise import Nest, OpaqueError, Pointwise, Written
from brickwork.diagnostics.location import NOWHERE
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64, DType
from brickwork.ir.nodes import (
    Apply,
    Cast,
    Constant,
    Expression,
    ListParameter,
    Load,
    Random,
    Read,
    ScalarParameter,
    Select,
    Size,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
)
from brickwork.ir.scalar_semantics import cast as cast_number
from brickwork.ir.scalar_semantics import evaluate
from brickwork.pytorch.dtypes import to_torch
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.tensor_devices import tensors_of

Value: TypeAlias = Any
"""A tensor, with an axis for each of the nest's or none at all, or a number, which may be symbolic."""

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def _minimum(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.where(right < left, right, left)


def _maximum(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return torch.where(right > left, right, left)


def _is_finite(value: torch.Tensor) -> torch.Tensor:
    return torch.abs(value) < torch.inf


_Table: TypeAlias = dict[str, Callable[..., torch.Tensor]]


def _named(names: str, **spelled: str) -> _Table:
    """Return functions of torch by our names for them, which are torch's unless they are spelled."""
    return {name: getattr(torch, spelled.get(name, name)) for name in (*names.split(), *spelled)}


_COMPARISONS = _named("eq ne lt le gt ge")
_EXTREMES: _Table = {"minimum": _minimum, "maximum": _maximum}
_BITS = _named("", bit_and="bitwise_and", bit_or="bitwise_or", bit_xor="bitwise_xor")

_FLOATS: _Table = {
    **_COMPARISONS,
    **_EXTREMES,
    **_named("add sub mul neg abs floor ceil trunc round sqrt exp exp2 expm1 log log2 log10 log1p", truediv="div"),
    **_named("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc lgamma"),
    **_named("atan2 hypot fmod copysign nextafter isnan isinf pow"),
    "isfinite": _is_finite,
}
"""What floats have counterparts of.

`floordiv`, `mod`, `cbrt` and `gamma` have none. Roundings to narrow types have none either: compilers drop such casts.
"""

_OPERATORS: dict[DType, _Table] = {
    FLOAT32: _FLOATS,
    FLOAT64: _FLOATS,
    # Arithmetic of integers wraps, which it need not in what a compiler makes of torch's.
    INT64: {**_COMPARISONS, **_EXTREMES, **_BITS, **_named("", bit_not="bitwise_not")},
    BOOL: {**_COMPARISONS, **_BITS, **_named("logical_and logical_or logical_not")},
}

_WITH_NUMBERS = frozenset({"add", "sub", "mul", *_COMPARISONS})
"""Operators whose second operand may be a number that is in the type of the first."""

_ROOTS = (0.5, -0.5)
_COMMUTATIVE = frozenset({"add", "mul"})

_ON_SYMBOLIC: dict[str, Callable[..., Any]] = {
    "add": python.add,
    "sub": python.sub,
    "mul": python.mul,
    "neg": python.neg,
}
"""What symbolic numbers are computed with, as integers and as doubles."""

_CASTS = frozenset({(BOOL, INT64), *((source, result) for source in (BOOL, INT64) for result in (FLOAT32, FLOAT64))})
_CASTS_OF_FLOATS = frozenset({(FLOAT32, FLOAT64), (FLOAT64, FLOAT32)})

_ELEMENTS = frozenset("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split())
"""Types of elements that compilers compute with."""


def decompose(code: Pointwise, arguments: Sequence[Any], like: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Return the results of straight code for these arguments, laid out as the tensors `like`.

    Raises:
        OpaqueError: Something has no counterpart, or sizes are not known to be as the code needs them.
    """
    writer = _Writer(code, arguments, like[0].device)
    results: list[torch.Tensor] = []
    for tensor, wanted in zip(code.results, like, strict=True):
        taken = [*tensors_of(arguments), *results]
        results.append(_laid_out(writer.tensors[tensor], wanted, taken))
    return tuple(results)


def are_alike(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> bool:
    """Whether tensors are known to be of the same types and sizes as others."""
    return len(found) == len(wanted) and all(
        left.dtype == right.dtype and left.dim() == right.dim() and all(map(_same, left.shape, right.shape))
        for left, right in zip(found, wanted, strict=True)
    )


def untraced_fakes() -> AbstractContextManager[object]:
    """Return a context in which what is done with fake tensors gets into no graph."""
    return disable_proxy_modes_tracing()


class _Writer:
    """Writes the code for one call; `tensors` are the arguments and what was written."""

    def __init__(self, code: Pointwise, arguments: Sequence[Any], device: torch.device) -> None:
        self.tensors: dict[Tensor, torch.Tensor] = {}
        self._device = device
        self._values: dict[Symbol, Value] = {}
        self._shapes: dict[Tensor, tuple[Any, ...]] = {}
        self._nest = Nest((), (), ())
        self._take(code, arguments)
        for nest in code.nests:
            if not nest.axes and not nest.written:
                self._run(nest)
        for condition in code.conditions:
            self._require(condition)
        for item in code.allocated:
            shape = self._shapes[item.tensor] = tuple(map(self._value, item.sizes))
            if item.fill is not None:
                self.tensors[item.tensor] = self._full(shape, self._value(item.fill), item.tensor.type.dtype)
        for nest in code.nests:
            if nest.axes or nest.written:
                self._run(nest)

    def _take(self, code: Pointwise, arguments: Sequence[Any]) -> None:
        """Take the arguments."""
        for parameter, value in zip(code.program.parameters, arguments, strict=True):
            match parameter:
                case TensorParameter(tensor=tensor):
                    self.tensors[tensor] = value
                case TensorListParameter(tensors=tensors):
                    self.tensors.update(zip(tensors, value, strict=True))
                case ScalarParameter(symbol=symbol):
                    self._values[symbol] = _number(value, symbol.dtype)
                case ListParameter(symbols=symbols):
                    self._values.update(
                        (symbol, _number(item, symbol.dtype)) for symbol, item in zip(symbols, value, strict=True)
                    )
                case _:
                    pass
        self._shapes.update((tensor, tuple(value.shape)) for tensor, value in self.tensors.items())

    def _require(self, condition: Expression) -> None:
        """Refuse a call for which a condition about sizes is not known to hold."""
        match condition:
            case Apply(operator=operator, operands=operands) if operator.name == "logical_and":
                for operand in operands:
                    self._require(operand)
            case Apply(operator=operator, operands=(Size() | Constant(), Size() | Constant()) as sides):
                holds = operator.name == "eq" and _same(*map(self._value, sides))
                if not holds:
                    raise OpaqueError("an assertion is not known to hold", condition.loc)
            case Constant(value=True):
                pass
            case _:
                raise OpaqueError("an assertion is about more than equal sizes", condition.loc)

    def _run(self, nest: Nest) -> None:
        """Write a nest."""
        self._nest = nest
        for statement in nest.body:
            self._values[statement.symbol] = self._value(statement.value)
        written = [(item.tensor, self._written(item)) for item in nest.written]
        self.tensors.update(written)

    def _written(self, item: Written) -> torch.Tensor:
        """Return what a nest leaves in a tensor."""
        axes = [axis.index for axis in self._nest.axes]
        shape, dtype = self._shapes[item.tensor], item.tensor.type.dtype
        value = self._value(item.value)
        places = [axes.index(symbol) for symbol in item.axes]
        self._check(item.tensor, places, item.value)
        if not isinstance(value, torch.Tensor):
            return self._full(shape, value, dtype)
        lengths = [self._value(axis.length) for axis in self._nest.axes]
        return value.to(_element(dtype, item.value)).expand(lengths).permute(places)

    def _check(self, tensor: Tensor, places: Sequence[int], at: Expression) -> None:
        """Refuse axes of a tensor that are not known to be as long as the loops that index them."""
        lengths = [self._value(self._nest.axes[place].length) for place in places]
        if not all(map(_same, self._shapes[tensor], lengths)):
            raise OpaqueError(f"`{tensor.name}` is not known to be of the size of its loops", at.loc)

    # ------------------------------------------------------------ expressions

    def _value(self, expression: Expression) -> Value:
        match expression:
            case Constant(value=value):
                return value
            case Read(symbol=symbol):
                return self._values[symbol]
            case Size(tensor=tensor, axis=axis):
                return self._shapes[tensor][axis]
            case Load():
                return self._load(expression)
            case Cast(operand=operand, dtype=dtype):
                return self._cast(expression, self._value(operand), operand.dtype, dtype)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self._select(expression, *map(self._value, (condition, then, otherwise)))
            case Apply(operands=operands):
                return self._apply(expression, [self._value(operand) for operand in operands])
            case Random():
                raise OpaqueError("it draws random numbers", expression.loc)

    def _load(self, load: Load) -> torch.Tensor:
        """Return a tensor with the axes of the nest."""
        axes = [axis.index for axis in self._nest.axes]
        places = [axes.index(cast("Read", index).symbol) for index in load.indices]
        self._check(load.tensor, places, load)
        _element(load.tensor.type.dtype, load)
        value = self.tensors[load.tensor].to(to_torch(load.dtype))
        if not places:
            return value
        value = value.permute(sorted(range(len(places)), key=places.__getitem__))
        for place in range(len(axes)):
            if place not in places:
                value = value.unsqueeze(place)
        return value

    def _cast(self, at: Expression, value: Value, source: DType, result: DType) -> Value:
        types = source, result
        if isinstance(value, torch.Tensor):
            if result is BOOL:
                return torch.ne(value, 0)
            if types in _CASTS or types in _CASTS_OF_FLOATS:
                return value.to(to_torch(result))
        elif not isinstance(value, _SYMBOLIC):
            return cast_number(value, result)
        elif types in _CASTS and source is INT64:
            return _as_float(value)
        elif types in _CASTS_OF_FLOATS:
            # A symbolic number is rounded where it becomes an element.
            return value if result is FLOAT32 else self._full((), value, FLOAT32).to(torch.float64)
        raise OpaqueError(f"{source} is converted to {result}", at.loc)

    def _select(self, at: Select, condition: Value, then: Value, otherwise: Value) -> Value:
        if isinstance(condition, _SYMBOLIC):
            raise OpaqueError("a condition is about a number that changes", at.loc)
        if not isinstance(condition, torch.Tensor):
            return then if condition else otherwise
        return torch.where(condition, self._tensor(then, at.dtype), self._tensor(otherwise, at.dtype))

    def _apply(self, at: Apply, operands: list[Value]) -> Value:
        name, dtype = at.operator.name, at.operands[0].dtype
        if not any(isinstance(operand, torch.Tensor) for operand in operands):
            if not any(isinstance(operand, _SYMBOLIC) for operand in operands):
                return _evaluated(at, operands)
            if name in _ON_SYMBOLIC and dtype in {INT64, FLOAT64}:
                return _ON_SYMBOLIC[name](*operands)
        function = _OPERATORS.get(dtype, {}).get(name)
        if function is None:
            raise OpaqueError(f"`{name}` of {dtype} has no counterpart in PyTorch", at.loc)
        if name == "pow" and isinstance(operands[1], float) and operands[1] in _ROOTS:
            raise OpaqueError("a power is a square root in PyTorch, with another result for -0", at.loc)
        if name in _COMMUTATIVE and not isinstance(operands[0], torch.Tensor):
            operands.reverse()
        if name in _WITH_NUMBERS and dtype is not BOOL and isinstance(operands[0], torch.Tensor):
            return function(*operands)
        return function(*(self._tensor(operand, dtype) for operand in operands))

    def _tensor(self, value: Value, dtype: DType) -> torch.Tensor:
        """Return a value as a tensor, of one element if it is a number."""
        return value if isinstance(value, torch.Tensor) else self._full((), value, dtype)

    def _full(self, shape: Sequence[Any], value: Value, dtype: DType) -> torch.Tensor:
        """Return a tensor of a number."""
        return torch.full(shape, value, dtype=to_torch(dtype), device=self._device)


def _as_float(value: Any) -> Any:
    """Return a symbolic number as a float."""
    return private("sym_float")(value)


def _number(value: Any, dtype: DType) -> Value:
    """Return an argument as a number of the type that the parameter has."""
    if isinstance(value, torch.Tensor):
        raise OpaqueError("a tensor is passed for a number", NOWHERE)
    if isinstance(value, _SYMBOLIC):
        return _as_float(value) if dtype is FLOAT64 else value
    return cast_number(value, dtype)


def _evaluated(at: Apply, operands: list[Value]) -> Value:
    """Return what an operator makes of numbers."""
    try:
        return evaluate(at.operator, operands, at.operands[0].dtype)
    except (ArithmeticError, ValueError):
        raise OpaqueError(f"`{at.operator.name}` of these numbers has no value", at.loc) from None


def _element(dtype: DType, at: Expression) -> torch.dtype:
    """Return torch's type of elements, if compilers have it."""
    if dtype.name not in _ELEMENTS:
        raise OpaqueError(f"{dtype} is no type that compilers compute with", at.loc)
    return to_torch(dtype)


def _same(left: Any, right: Any) -> bool:
    """Whether two sizes are known to be equal."""
    return statically_known_true(left == right)


def _laid_out(value: torch.Tensor, like: torch.Tensor, taken: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a result in memory of its own, in the order of another tensor."""
    shares = private("_C._is_alias_of")
    if all(map(_same, value.stride(), like.stride())) and not any(shares(value, each) for each in taken):
        return value
    order = _order(like)
    back = sorted(range(len(order)), key=order.__getitem__)
    return value.permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def _order(tensor: torch.Tensor) -> list[int]:
    """Return the axes of a dense tensor, slowest first."""
    strides, axes = tensor.stride(), [*range(tensor.dim())]
    length: Any = 1
    dense = True
    for axis in reversed(axes):
        dense = dense and _same(strides[axis], length)
        length = length * tensor.shape[axis]
    if dense:
        return axes
    if any(isinstance(stride, torch.SymInt) for stride in strides):
        raise OpaqueError("the order of axes in memory is not known", NOWHERE)
    return sorted(axes, key=lambda axis: -strides[axis])
