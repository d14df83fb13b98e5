"""Values with parts in `op.python`: their methods run rewritten, as helpers do, whoever calls them.

Instances are the user's own objects, so that attributes are Python's. Constructors of the user's own run as functions
that return the attributes (`value_methods.py`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from brickwork.frontend.reference_complex import complex_of, small_power
from brickwork.frontend.reference_scalar import GivenFloat, GivenInt, Scalar
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.value_calls import COMPLEX_CLASSES, is_number_of, kinds_in
from brickwork.frontend.value_classes import (
    BINARY_METHODS,
    BUILTIN_METHODS,
    MIRRORED,
    Field,
    attributes_of,
    bound,
    class_of,
    fields_of,
    getter,
    initialiser,
    method,
)
from brickwork.frontend.value_methods import Values, attribute_names
from brickwork.language.complex_numbers import Complex

NOTHING = object()
"""What stands for the result of a method that there is not."""


class ReferenceValues:
    """The values with parts of one operator; `run` calls a rewritten function of an execution."""

    def __init__(
        self,
        values: Values,
        sources: Mapping[types.FunctionType, SourceFunction],
        run: Callable[..., Any],
    ) -> None:
        """Take the classes, the functions and how they are run."""
        self._values = values
        self._kinds = values.kinds | {Complex}
        self._sources = sources
        self._run = run

    def has(self, *found: object) -> bool:
        """Return whether one of several objects is a value with parts."""
        return any(type(item) in self._kinds for item in found)

    def is_class(self, found: object) -> bool:
        """Return whether something is a class of values with parts."""
        return isinstance(found, type) and found in self._kinds

    # ------------------------------------------------------------ making

    def construct(self, kind: type[Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return an instance."""
        positional, keywords = [*map(_plain, arguments)], {name: _plain(item) for name, item in named.items()}
        if kind is Complex:
            return complex_of(*positional, **keywords)
        function = initialiser(kind)
        if fields_of(kind) is None and function is not None:
            parts = self._attributes(function, positional, keywords)
        else:
            pairs = bound(kind, positional, keywords)
            parts = {name: item.default if isinstance(item, Field) else item for name, item in pairs}
            if kind.__new__ is not object.__new__:
                return kind(**parts)
            after = method(kind, "__post_init__")
            if after is not None:
                names = [item.arg for item in self._sources[after].node.args.kwonlyargs]
                parts = self._attributes(after, (), {name: parts[name.partition(".")[2]] for name in names})
        made = object.__new__(kind)
        for name, item in parts.items():
            object.__setattr__(made, name, item)
        return made

    def _attributes(
        self, function: types.FunctionType, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = attribute_names(self._sources[function])
        return dict(zip(names, self._run(function, *arguments, **named), strict=True))

    def replaced(self, value: Any, named: Mapping[str, Any]) -> Any:
        """Return a value with some attributes replaced, made anew."""
        return self.construct(class_of(value), (), attributes_of(value) | {**named})

    # ------------------------------------------------------------ methods

    def special(self, owner: Any, name: str, *arguments: Any) -> Any:
        """Return what a method gives; NOTHING where there is none."""
        function = method(class_of(owner), name) if self.has(owner) else None
        return NOTHING if function is None else self._run(function, owner, *arguments)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute; a property is run."""
        function = getter(class_of(owner), name) if self.has(owner) else None
        return getattr(owner, name) if function is None else self._run(function, owner)

    def binary(self, name: str, left: Any, right: Any, *, stored: bool = False) -> Any:
        """Return `left <name> right`; NOTHING where no method takes both."""
        if name == "pow" and isinstance(left, Complex):
            found = small_power(left, right, lambda one, other: self.binary("mul", one, other))
            if found is not None:
                return found if right > 0 else self.binary("truediv", complex_of(1, 0), found)
        text = BINARY_METHODS[name]
        tries = [(left, f"__{text}__", right)]
        if type(left) is not type(right):
            tries.append((right, f"__r{text}__", left))
            first, second = class_of(left), class_of(right)
            own = self.has(left) and self.has(right) and issubclass(second, first)
            if own and method(second, tries[1][1]) is not method(first, tries[1][1]):
                tries.reverse()
        for owner, called, other in [*([(left, f"__i{text}__", right)] if stored else []), *tries]:
            found = self.special(owner, called, _plain(other))
            if found is not NOTHING and found is not NotImplemented:
                return found
        if isinstance(left, Complex) or isinstance(right, Complex):
            raise TypeError(f"complex numbers have no {name}")
        return NOTHING

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Return a comparison by the methods of the user's; NOTHING where there is none."""
        for owner, called, other in ((left, name, right), (right, MIRRORED[name], left)):
            found = self.special(owner, f"__{called}__", other)
            if found is not NOTHING and found is not NotImplemented:
                return found
        if name not in {"eq", "ne"} and (isinstance(left, Complex) or isinstance(right, Complex)):
            raise TypeError("complex numbers are not ordered: compare abs(...) of them, or their parts")
        found = self.special(left, "__eq__", right) if name == "ne" else NOTHING
        return NOTHING if found is NOTHING else not found

    def parts(self, value: Any) -> Any:
        """Return the attributes of a value, in order; anything else as it is."""
        return tuple(attributes_of(value).values()) if self.has(value) else value

    def truth(self, value: Any) -> bool:
        """Return whether a value counts as true."""
        for name in ("__bool__", "__len__"):
            found = self.special(value, name)
            if found is not NOTHING:
                return bool(found)
        return bool(value)

    def items(self, value: Any) -> Any:
        """Return what is run over."""
        found = self.special(value, "__iter__")
        return value if found is NOTHING else tuple(found)

    def builtin(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the call of a builtin function that runs a method; NOTHING where it runs none."""
        if name == "builtins.isinstance" and isinstance(arguments[0], Scalar):
            return any(is_number_of(arguments[0].dtype, kind) for kind in kinds_in(arguments[1]))
        if name == "builtins.isinstance" and isinstance(arguments[0], Complex):
            return any(kind in COMPLEX_CLASSES for kind in kinds_in(arguments[1]))
        if not self.has(*arguments[:1]):
            return NOTHING
        if name == "dataclasses.replace":
            return self.replaced(arguments[0], named)
        if name == "builtins.bool":
            return self.truth(arguments[0])
        called = BUILTIN_METHODS.get(name)
        found = self.special(arguments[0], called, *arguments[1:]) if called is not None else NOTHING
        if found is NOTHING and name in {"builtins.tuple", "builtins.list", "builtins.sum"}:
            items = tuple(self.items(arguments[0]))
            return items if name != "builtins.sum" else NOTHING
        return found


def _plain(value: Any) -> Any:
    """Return a number without the mark that the operator was given it; an element is read."""
    if isinstance(value, GivenInt | GivenFloat):
        return int(value) if isinstance(value, GivenInt) else float(value)
    if type(value) is tuple:
        return tuple(map(_plain, cast("tuple[Any, ...]", value)))
    return value
