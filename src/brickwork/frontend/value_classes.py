"""Classes whose instances are values with parts: NamedTuples, dataclasses, and small classes of the user's.

What a class itself says lives here: its attributes, how its constructor takes arguments, its methods. Nothing is
lowered or run. Invariant: the attributes of a value with parts are set while it is made.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar, cast

from brickwork.frontend.environment import MISSING, intrinsic
from brickwork.records import dataclass

Part = TypeVar("Part")

BINARY_METHODS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "truediv",
    "floordiv": "floordiv",
    "mod": "mod",
    "pow": "pow",
    "matmul": "matmul",
    "bit_and": "and",
    "bit_or": "or",
    "bit_xor": "xor",
    "shift_left": "lshift",
    "shift_right": "rshift",
}
"""What the methods of binary operators are called, between `__` or `__r` and `__`, by the operator's name."""
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The comparison that gives the same with the operands exchanged."""
UNARY_METHODS: dict[type[ast.unaryop], str] = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
BUILTIN_METHODS = {
    f"builtins.{name}": f"__{name}__" for name in ("abs", "len", "int", "float", "bool", "round", "iter")
}
"""The methods that builtin functions call."""
OPERATOR_METHODS = frozenset(
    {
        *(f"__{side}{name}__" for name in BINARY_METHODS.values() for side in ("", "r", "i")),
        *(f"__{name}__" for name in MIRRORED),
        *UNARY_METHODS.values(),
        *BUILTIN_METHODS.values(),
        *("__call__", "__contains__", "__getitem__", "__setitem__"),
    }
)
"""The methods that are called without their names."""
_PLAIN_ONLY = ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of a constructor that sets attributes and does nothing else; without default it is MISSING."""

    name: str
    default: object
    keyword_only: bool = False


class WrongArgumentsError(TypeError):
    """The arguments of a constructor do not fit."""


def is_value_class(found: object) -> TypeGuard[type[Any]]:
    """Return whether instances of a class are values with parts, as far as the class says without its source."""
    if not isinstance(found, type) or type(found) is not type or found.__module__ in {"builtins", "types"}:
        return False
    if intrinsic(found) is not None:
        return False
    return fields_of(found) is not None or initialiser(found) is not None


def fields_of(kind: type[Any]) -> tuple[Field, ...] | None:
    """Return the parameters of a NamedTuple's or dataclass's own constructor; None of another class."""
    if issubclass(kind, tuple):
        names: tuple[str, ...] | None = getattr(cast("Any", kind), "_fields", None)
        defaults: Mapping[str, object] = getattr(cast("Any", kind), "_field_defaults", {})
        return None if names is None else tuple(Field(name, defaults.get(name, MISSING)) for name in names)
    if not dataclasses.is_dataclass(kind) or not _is_plain(kind) or _has_source(kind, "__init__"):
        return None
    made = dataclasses.fields(kind)
    if any(not each.init or each.default_factory is not dataclasses.MISSING for each in made):
        return None
    return tuple(
        Field(each.name, MISSING if each.default is dataclasses.MISSING else each.default, bool(each.kw_only))
        for each in made
    )


def initialiser(kind: type[Any]) -> types.FunctionType | None:
    """Return the `__init__` that the user wrote for a small class."""
    found = inspect.getattr_static(kind, "__init__", None)
    if not isinstance(found, types.FunctionType) or not _is_plain(kind) or not _has_source(kind, "__init__"):
        return None
    return found


def _is_plain(kind: type[Any]) -> bool:
    """Return whether a class and its bases are Python's own, and treat attributes as Python does."""
    if any(each.__module__ == "builtins" and each is not object for each in kind.__mro__):
        return False
    special = [name for name in _PLAIN_ONLY if member(kind, name) is not vars(object).get(name, MISSING)]
    return kind.__new__ is object.__new__ and all(map(functools.partial(_is_generated, kind), special))


def _is_generated(kind: type[Any], name: str) -> bool:
    """Return whether a method is one that `dataclass` made."""
    return dataclasses.is_dataclass(kind) and not _has_source(kind, name)


def _has_source(kind: type[Any], name: str) -> bool:
    code = getattr(inspect.getattr_static(kind, name, None), "__code__", None)
    home = code.co_filename if isinstance(code, types.CodeType) else "<none>"
    return home not in {"<none>", "<string>", _RECORDS, collections.__file__}


_RECORDS = cast("types.FunctionType", dataclass).__code__.co_filename
"""Where brickwork's `dataclass` makes methods; the standard one's are of no file, a NamedTuple's of `collections`."""


def is_value(found: object) -> bool:
    """Return whether a captured object is a value with parts."""
    return not isinstance(found, type) and is_value_class(class_of(found))


def class_of(found: object) -> type[Any]:
    """Return the class of an object."""
    return type(found)


def attributes_of(value: Any) -> dict[str, object]:
    """Return the attributes of an instance, in the order in which they were set."""
    fields = fields_of(class_of(value))
    if fields is not None:
        return {each.name: getattr(value, each.name) for each in fields}
    slots = [name for each in type(value).__mro__ for name in _slots(each)]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | dict(getattr(value, "__dict__", {}))


def _slots(kind: type[Any]) -> Sequence[str]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return [name for name in names if name != "__dict__"]


def described(value: object, depth: int = 8) -> object:
    """Return what tells two captured values with parts apart: their attributes, and the class of anything else."""
    if not is_value(value) or not depth:
        return value
    parts = attributes_of(value).items()
    return class_of(value).__qualname__, tuple((name, described(item, depth - 1)) for name, item in parts)


def snapshot(value: Any, depth: int = 8) -> Any:
    """Return a copy of a captured value with parts of which nobody else can change the attributes."""
    kind = class_of(value)
    if not depth or not is_value(value) or issubclass(kind, tuple) or _is_frozen(kind):
        return value
    made: Any = object.__new__(kind)
    for name, item in attributes_of(value).items():
        object.__setattr__(made, name, snapshot(item, depth - 1))
    return made


def _is_frozen(kind: type[Any]) -> bool:
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return bool(parameters is not None and parameters.frozen)


def member(kind: type[Any], name: str) -> object:
    """Return what a class has under a name, unbound; MISSING if nothing."""
    return inspect.getattr_static(kind, name, MISSING)


def method(kind: type[Any], name: str) -> types.FunctionType | None:
    """Return the method of a class that the user wrote; None where there is none, or `dataclass` made it."""
    found = member(kind, name)
    if isinstance(found, staticmethod):
        found = cast("staticmethod[..., object]", found).__func__
    return found if isinstance(found, types.FunctionType) and _has_source(kind, name) else None


def getter(kind: type[Any], name: str) -> types.FunctionType | None:
    """Return the function of a property."""
    found = member(kind, name)
    inner = found.fget if isinstance(found, property) else getattr(found, "func", None)
    is_one = isinstance(found, property | functools.cached_property)
    return inner if is_one and isinstance(inner, types.FunctionType) else None


def is_compared_by_parts(kind: type[Any]) -> bool:
    """Return whether `==` of two instances compares their attributes, in order."""
    if issubclass(kind, tuple):
        return True
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return bool(parameters is not None and parameters.eq)


def is_ordered_by_parts(kind: type[Any]) -> bool:
    """Return whether `<` of two instances compares their attributes, in order."""
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return issubclass(kind, tuple) or bool(parameters is not None and parameters.order)


def bound(kind: type[Any], positional: Sequence[Part], named: Mapping[str, Part]) -> Iterator[tuple[str, Part | Field]]:
    """Yield each attribute that a NamedTuple's or dataclass's constructor sets; a Field is a default."""
    fields = fields_of(kind) or ()
    places = [each.name for each in fields if not each.keyword_only]
    name = kind.__name__
    if len(positional) > len(places):
        raise WrongArgumentsError(f"`{name}` takes {len(places)} arguments, not {len(positional)}")
    given = dict(zip(places, positional, strict=False))
    for key, item in named.items():
        if key in given or all(each.name != key for each in fields):
            problem = "is given twice" if key in given else "is none of its attributes"
            raise WrongArgumentsError(f"`{key}` {problem}: `{name}` has {', '.join(each.name for each in fields)}")
        given[key] = item
    for each in fields:
        if each.name not in given and each.default is MISSING:
            raise WrongArgumentsError(f"`{name}` needs the argument `{each.name}`")
        yield each.name, given.get(each.name, each)
