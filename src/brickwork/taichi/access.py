"""Stores: into variables, elements, entries and members; and updates, which are atomic where iterations may meet."""

from __future__ import annotations

from typing import Any

from brickwork.ir import build
from brickwork.taichi import arithmetic
from brickwork.taichi.arithmetic import convert, is_scalar, lift
from brickwork.taichi.compound import Struct
from brickwork.taichi.errors import TaichiCompilationError, TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.matrix import Matrix, Pick, broadcast, made, settled
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import is_sequence
from brickwork.taichi.values import Element, LoopIndex, Scalar, Value, Variable, current, kept


def described(value: Any) -> str:
    """Return a value's type as messages have it."""
    if isinstance(value, Matrix):
        return f"[Tensor ({', '.join(map(str, value.shape))}) {value.scalar_type}]"
    return str(arithmetic.type_of(value)) if is_scalar(value) else type(value).__name__


def store(target: Any, value: Any) -> None:
    """Give a target a value, in the target's type."""
    if isinstance(target, Matrix):
        _store_entries(target, value)
    elif isinstance(target, Struct):
        if not isinstance(value, Struct | dict):
            raise TaichiTypeError(f"cannot assign '{described(value)}' to a struct")
        given = {name: snapshot(value[name]) for name, _ in target.items}
        for name, each in target.items:
            store(each, given[name])
    elif isinstance(target, Scalar):
        if not is_scalar(value):
            raise TaichiTypeError(f"cannot assign '{described(value)}' to '{target.type}'")
        _store_scalar(target, value)
    else:
        raise TaichiCompilationError(f"a {type(target).__name__} cannot be assigned to in a kernel")


def _store_entries(target: Matrix, value: Any) -> None:
    if is_sequence(value):
        value = Matrix(value)
    if isinstance(value, Matrix):
        if value.shape != target.shape:
            raise TaichiTypeError(f"cannot assign '{described(value)}' to '{described(target)}'")
        values = snapshot(value).entries
    else:
        values = [snapshot(lift(value))] * len(target.entries)
    for entry, each in zip(target.entries, values, strict=True):
        store(entry, each)


def _store_scalar(target: Scalar, value: Any) -> None:
    builder, given = current(), convert(value, target.type)
    match target:
        case Variable():
            builder.assign(target.symbol, given.value if target.fits else given.ir)
        case Element():
            value = given.value if target.tensor.is_local else given.ir  # stores into tensors wrap
            builder.store(target.tensor, target.indices, value)
        case Pick():
            kept_value = settled(given)
            for number, entry in enumerate(target.matrix.entries):
                here = build.apply("eq", target.place, build.integer(number), loc=builder.loc)
                old, new = convert(entry, target.type).ir, kept_value.ir
                store(entry, Value(build.select(here, new, old, builder.loc), target.type, fits=False))
        case LoopIndex():
            raise TaichiSyntaxError("Cannot assign to a loop variable: copy it into a variable of its own")
        case _:
            raise TaichiSyntaxError("Kernel arguments are immutable in the kernel: copy it into a variable of its own")


def update(name: str, target: Any, value: Any, *, wants_old: bool = True) -> Any:
    """Combine a target with a value, atomically where it is an element; return what it was before.

    What the element was is known only where iterations come one after the other.
    """
    if isinstance(target, Matrix):
        given = Matrix(value) if is_sequence(value) else value
        if isinstance(given, Matrix) and given.shape != target.shape:
            raise TaichiTypeError(f"cannot assign '{described(given)}' to '{described(target)}'")
        now = snapshot(given)  # an entry that is updated may be one of the value
        values = now.entries if isinstance(now, Matrix) else [now] * len(target.entries)
        pairs = zip(target.entries, values, strict=True)
        return made([update(name, entry, each, wants_old=wants_old) for entry, each in pairs], target.shape)
    if not isinstance(target, Variable | Element | Pick):
        raise TaichiSyntaxError("cannot use a non-writable target as the first operand of an atomic operation")
    if not is_scalar(value):
        raise TaichiTypeError(f"cannot assign '{described(value)}' to '{target.type}'")
    if name.startswith(("bit", "shift")) and (target.type.is_real or arithmetic.type_of(value).is_real):
        raise TaichiTypeError(f"unsupported operand type(s) for '{arithmetic.SIGNS[name]}': '{target.type}'")
    given = convert(value, target.type)
    current().updates.add(current().loc.line)
    if not wants_old:
        _combine(name, target, given)
        return None
    if isinstance(target, Element):
        current().in_order = True
    given = settled(given)
    old = kept(target, "old")
    _store_scalar(target, arithmetic.binary(name, old, given))
    return old


def _combine(name: str, target: Scalar, given: Scalar) -> None:
    kind: ScalarType = target.type
    if name in {"minimum", "maximum"} and kind.is_real:
        # The update that reductions know passes over NaN when the element is the first operand.
        made_ = Value(build.apply(name, target.value, given.value, loc=current().loc), kind)
        _store_scalar(target, made_)
        return
    _store_scalar(target, arithmetic.binary(name, target, given))


def augmented(name: str, target: Any, value: Any) -> None:
    """Run `target op= value`: sums, differences, products and bits are updates; others read, compute and store."""
    atomic = {"add", "sub", "mul", "bit_and", "bit_or", "bit_xor"}
    if isinstance(target, Struct):
        raise TaichiTypeError("a struct has no such operator")
    if name in atomic:
        update(name, target, value, wants_old=False)
    else:
        store(target, broadcast(name, target, value) if name != "matmul" else value)


def snapshot(value: Any) -> Any:
    """Return a value as it is now."""
    if isinstance(value, Scalar):
        steady = isinstance(value.ir, build.Read) and value.ir.symbol in current().fixed
        return kept(value) if isinstance(value.ir, build.Read) and not steady else settled(value)
    if isinstance(value, Matrix):
        return value.mapped(snapshot)
    if isinstance(value, Struct):
        made = Struct({name: snapshot(each) for name, each in value.items})
        made.__dict__.update(methods=value.__dict__["methods"], type=value.__dict__["type"])
        return made
    if is_sequence(value):
        items = [snapshot(each) for each in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value
