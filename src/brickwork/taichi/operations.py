"""The functions of `ti` on numbers, vectors and matrices, in Python's scope and in kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Draw, Random
from brickwork.taichi import access, arithmetic, state
from brickwork.taichi.arithmetic import convert, is_scalar
from brickwork.taichi.errors import TaichiCompilationError, TaichiTypeError, unsupported
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.matrix import Matrix, broadcast, mapped
from brickwork.taichi.scalars import f64
from brickwork.taichi.values import Scalar, Value, current


def _unary(name: str, function: str = "") -> Callable[[Any], Any]:
    def operate(x: Any) -> Any:
        if isinstance(x, Matrix):
            return x.mapped(lambda each: arithmetic.unary(function or name, each))
        if not is_scalar(x) and name == "abs" and state.builder() is None:
            return operator.abs(x)
        if not is_scalar(x):
            raise TaichiTypeError(f"`{name}` takes numbers, vectors and matrices, not {type(x).__name__}")
        return arithmetic.unary(function or name, x)

    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = f"Return `{name}` of a number, or of each entry."
    return operate


abs = _unary("abs")
sqrt, rsqrt, exp, log = _unary("sqrt"), _unary("rsqrt"), _unary("exp"), _unary("log")
sin, cos, tan, asin, acos = _unary("sin"), _unary("cos"), _unary("tan"), _unary("asin"), _unary("acos")
tanh = _unary("tanh")
neg, bit_not, logical_not = _unary("neg"), _unary("bit_not"), _unary("logical_not")
isnan, isinf = _unary("isnan"), _unary("isinf")


def _rounding(name: str) -> Callable[..., Any]:
    plain = _unary(name)

    def operate(x: Any, dtype: Any = None) -> Any:
        return plain(x) if dtype is None else cast(plain(x), dtype)

    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = f"Return `{name}` of a float, or of each entry, in its type or in `dtype`."
    return operate


floor, ceil, trunc = _rounding("floor"), _rounding("ceil"), _rounding("trunc")
round = _rounding("round")


def _binary(name: str, function: str) -> Callable[[Any, Any], Any]:
    def operate(x1: Any, x2: Any) -> Any:
        return broadcast(function, x1, x2)

    operate.__name__ = operate.__qualname__ = name
    operate.__doc__ = f"Return `{name}` of two numbers, or of the entries of matrices."
    return operate


atan2, pow = _binary("atan2", "atan2"), _binary("pow", "pow")
raw_div, raw_mod = _binary("raw_div", "raw_div"), _binary("raw_mod", "raw_mod")
bit_shr = _binary("bit_shr", "bit_shr")
bit_sar = _binary("bit_sar", "shift_right")
bit_shl = _binary("bit_shl", "shift_left")
mod = _binary("mod", "mod")


def max(*args: Any) -> Any:
    """Return the greatest of the operands; a NaN is passed over."""
    return _variadic("max", "maximum", args)


def min(*args: Any) -> Any:
    """Return the least of the operands; a NaN is passed over."""
    return _variadic("min", "minimum", args)


def _variadic(name: str, function: str, args: tuple[Any, ...]) -> Any:
    if not args:
        raise TaichiCompilationError(f"{name} takes one operand or more")
    result = args[0]
    for each in args[1:]:
        result = broadcast(function, result, each)
    return result


def cast(obj: Any, dtype: Any) -> Any:
    """Return a value in another type: floats are truncated, integers wrap."""
    kind = scalar_type(dtype)
    if isinstance(obj, Matrix):
        return obj.cast(kind)
    if not is_scalar(obj):
        raise TaichiTypeError(f"`cast` takes numbers, vectors and matrices, not {type(obj).__name__}")
    return convert(obj, kind) if state.builder() is not None else kind.number(obj)


def bit_cast(obj: Any, dtype: Any) -> Any:
    """Return the same bits in another type of the same width."""
    kind = scalar_type(dtype)
    if isinstance(obj, Matrix):
        return obj.mapped(lambda each: arithmetic.bit_cast(each, kind))
    return arithmetic.bit_cast(obj, kind)


def select(cond: Any, x1: Any, x2: Any) -> Any:
    """Return `x1` where the condition holds, else `x2`; both are evaluated."""
    if any(isinstance(each, Matrix) for each in (cond, x1, x2)):
        return mapped(arithmetic.select, (cond, x1, x2))
    return arithmetic.select(cond, x1, x2)


def zero(x: Any) -> Any:
    """Return zero of the type and shape of a value."""
    return _like(x, 0)


def one(x: Any) -> Any:
    """Return one of the type and shape of a value."""
    return _like(x, 1)


def _like(x: Any, number: int) -> Any:
    if isinstance(x, Matrix):
        return x.mapped(lambda each: _like(each, number))
    return arithmetic.literal(number, x.type) if isinstance(x, Scalar) else type(x)(number)


def _atomic(name: str, function: str) -> Callable[[Any, Any], Any]:
    def operate(x: Any, y: Any) -> Any:
        return access.update(function, x, y, wants_old=state.builder() is None or current().wants_value)

    operate.__name__ = operate.__qualname__ = f"atomic_{name}"
    operate.__doc__ = f"Combine an element with a value by `{name}`, in one step; return what it was."
    return operate


atomic_add, atomic_sub, atomic_mul = _atomic("add", "add"), _atomic("sub", "sub"), _atomic("mul", "mul")
atomic_min, atomic_max = _atomic("min", "minimum"), _atomic("max", "maximum")
atomic_and, atomic_or = _atomic("and", "bit_and"), _atomic("or", "bit_or")
atomic_xor = _atomic("xor", "bit_xor")


# ---------------------------------------------------------------- random numbers


def random(dtype: Any = float) -> Any:
    """Return a random number: a float in [0, 1), or an integer of all bits."""
    kind = scalar_type(dtype)
    if state.builder() is None:
        generator = state.settings().generator
        if kind.is_real:
            return torch.rand((), generator=generator).item()
        high, low = (int(each) for each in torch.randint(1 << 32, (2,), generator=generator))
        return kind.number((high << 32) + low)
    if kind.is_bool:
        raise unsupported("ti.random(ti.u1)")
    drawn = _draw(Draw.UNIFORM) if kind.is_real else _draw(Draw.INTEGER)
    if kind.is_real:
        if kind == f64:
            low = build.mul(build.cast(_draw(Draw.UNIFORM), kind.value), build.constant(2.0**-24, kind.value))
            return Value(build.add(build.cast(drawn, kind.value), low), kind)
        return Value(drawn, kind)
    if not kind.wraps:  # A draw has 63 bits.
        high = build.apply("shift_left", _draw(Draw.INTEGER), build.integer(32))
        drawn = build.apply("bit_xor", drawn, high)
    return Value(build.cast(drawn, kind.value), kind, fits=not kind.wraps)


def randn(dt: Any = None) -> Any:
    """Return a random number of the normal distribution."""
    kind = scalar_type(dt or float)
    if state.builder() is None:
        return torch.randn((), generator=state.settings().generator).item()
    return Value(build.cast(_draw(Draw.NORMAL), kind.value), kind)


def _draw(draw: Draw) -> Any:
    """Return a draw, numbered by the iteration of the loops around."""
    builder = current()
    bounds = (build.integer(-(1 << 62)), build.integer(1 << 62)) if draw is Draw.INTEGER else ()
    site, builder.draws = builder.draws, builder.draws + 1
    made = Random(
        draw=draw, key=build.read(builder.key), counter=builder.iteration(), extra=build.integer(0), site=site,
        bounds=bounds, dtype=INT64 if draw is Draw.INTEGER else FLOAT32, loc=builder.loc,
    )  # fmt: skip
    return builder.keep(made, "drawn")


def fold_bits(name: str, items: list[Any]) -> Any:
    """Return whether all, or some, of the items hold."""
    found = [arithmetic.is_true(each) for each in items]
    result = found[0] if found else name == "bit_and"
    for each in found[1:]:
        result = arithmetic.binary(name, result, each)
    return result
