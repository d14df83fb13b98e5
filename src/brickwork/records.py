"""Classes of data: `dataclass` means what the standard library's means, and takes a fraction of the time to make one.

The standard library compiles six methods of each frozen class, one by one, before an instance is made. Of the three
hundred classes of brickwork and its compiler that would be most of the time that they take to import. Here a method
that depends on the fields is compiled when it is first called, and the rest are shared. `fields`, `replace`, `asdict`
and `match` work as they do on the standard library's. Of its settings there are those that brickwork uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard  # noqa: TID251  # it finds the fields
from functools import partial
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass  # noqa: TID251  # type checkers know it
else:

    def dataclass(cls: type | None = None, /, **settings: bool) -> Any:
        """Make a class of data of a class with annotations: a decorator, with or without settings."""
        return make(cls, **settings) if cls is not None else partial(make, **settings)


def make(
    cls: type[Any], /, *, frozen: bool = False, eq: bool = True, slots: bool = False, kw_only: bool = False
) -> type[Any]:
    """Return the class of data that a class with annotations describes."""
    methods: dict[str, Any] = {"__init__": _frozen_initialiser if frozen else _initialiser}
    methods["__repr__"] = _representation
    if eq:
        methods |= {"__eq__": _equality, "__hash__": _hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    methods = {name: method for name, method in methods.items() if name not in vars(cls)}
    made = standard(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
    for name, method in methods.items():
        setattr(made, name, _late(made, name, method) if method in _LATE else method)
    return made


_Method = tuple[str, dict[str, Any]]
"""The text of a method, and what it names."""


def _late(cls: type[Any], name: str, method_of: Callable[[type[Any]], _Method]) -> Callable[..., Any]:
    """Return what compiles a method of a class at the first call, puts it in its own place, and runs it."""

    def method(*arguments: Any, **named: Any) -> Any:
        text, names = method_of(cls)
        exec(text, names)  # noqa: S102  # the text is ours
        compiled = names[name]
        compiled.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, compiled)
        return compiled(*arguments, **named)

    return method


# ---------------------------------------------------------------- what depends on the fields


def _initialiser(cls: type[Any]) -> _Method:
    return _initialiser_with(cls, "self.{name} = {value}", {})


def _frozen_initialiser(cls: type[Any]) -> _Method:
    """Set the fields past `__setattr__`: slots by their descriptors, which is quicker than by name."""
    slots: dict[str, Any] = {each.name: getattr(cls, each.name, None) for each in fields(cls)}
    if not all(isinstance(slot, MemberDescriptorType) for slot in slots.values()):
        return _initialiser_with(cls, "put(self, '{name}', {value})", {"put": object.__setattr__})
    puts = {f"put_{name}": slot.__set__ for name, slot in slots.items()}
    return _initialiser_with(cls, "put_{name}(self, {value})", puts)


def _initialiser_with(cls: type[Any], put: str, names: dict[str, Any]) -> _Method:
    names["MISSING"] = MISSING
    set_here = [each for each in fields(cls) if each.init or each.default_factory is not MISSING]
    lines = [put.format(name=each.name, value=_value(each, names)) for each in set_here]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    given = [each for each in fields(cls) if each.init]
    positional = [_parameter(each, names) for each in given if not each.kw_only]
    named = [_parameter(each, names) for each in given if each.kw_only]
    parameters = ", ".join(("self", *positional, *(("*", *named) if named else ())))
    return f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), names


def _parameter(each: Field[Any], names: dict[str, Any]) -> str:
    if each.default is not MISSING:
        names[f"default_{each.name}"] = each.default
        return f"{each.name}=default_{each.name}"
    return each.name if each.default_factory is MISSING else f"{each.name}=MISSING"


def _value(each: Field[Any], names: dict[str, Any]) -> str:
    if each.default_factory is MISSING:
        return each.name
    names[f"make_{each.name}"] = each.default_factory
    made = f"make_{each.name}()"
    return f"{made} if {each.name} is MISSING else {each.name}" if each.init else made


def _equality(cls: type[Any]) -> _Method:
    compared = [each.name for each in fields(cls) if each.compare]
    mine, other = ("".join(f"{owner}.{name}, " for name in compared) for owner in ("self", "other"))
    answer = f"({mine}) == ({other}) if other.__class__ is self.__class__ else NotImplemented"
    return f"def __eq__(self, other):\n return {answer}", {}


def _hash(cls: type[Any]) -> _Method:
    hashed = [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]
    return f"def __hash__(self):\n return hash(({''.join(f'self.{name}, ' for name in hashed)}))", {}


_LATE = (_initialiser, _frozen_initialiser, _equality, _hash)


# ---------------------------------------------------------------- what all classes share


@recursive_repr()
def _representation(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign {value!r} to field {name!r} of a {type(self).__qualname__}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r} of a {type(self).__qualname__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    """Set the fields of an instance that a pickle or a copy made, which has slots that refuse to be set."""
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
