"""Values with parts that a host part in Python hands to a piece: attribute by attribute, and made again inside.

That is for NamedTuples and dataclasses without `__post_init__`, whose constructors only keep what they are given.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from brickwork.frontend.value_classes import attributes_of, class_of, fields_of, method
from brickwork.frontend.value_methods import Values
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The class of a value, and for each attribute the name of its input, or the shape of a value in it."""

    kind: type[Any]
    parts: tuple[tuple[str, str | Shape], ...]

    def __call__(self) -> None:
        """Do nothing: pieces are made for what is called, as they are for functions."""

    def classes(self) -> Iterator[type[Any]]:
        """Yield the classes that are needed to make the value."""
        yield self.kind
        for _, part in self.parts:
            if isinstance(part, Shape):
                yield from part.classes()

    def made(self, place: ast.stmt) -> ast.expr:
        """Return the expression that makes the value of its inputs."""
        parts = [
            ast.keyword(name, part.made(place) if isinstance(part, Shape) else ast.Name(part, ast.Load()))
            for name, part in self.parts
        ]
        made = ast.Call(ast.Name(class_name(self.kind), ast.Load()), [], parts)
        for node in ast.walk(made):
            ast.copy_location(node, place)
        return made


def class_name(kind: type[Any]) -> str:
    """Return under which name a piece knows a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def flattening(values: Values) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what puts the attributes of values in place of them, and their shapes under their own names."""
    return partial(_flattened, values)


def _flattened(values: Values, given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in given.items():
        found[name] = _shape(values, name, value, found) if _is_plain(values, value) else value
    return found


def _is_plain(values: Values, value: Any) -> bool:
    kind = class_of(value)
    return values.holds(value) and fields_of(kind) is not None and method(kind, "__post_init__") is None


def _shape(values: Values, name: str, value: Any, found: dict[str, Any]) -> Shape:
    parts: list[tuple[str, str | Shape]] = []
    for key, item in attributes_of(value).items():
        inner = f"{name}__{key}"
        if _is_plain(values, item):
            parts.append((key, _shape(values, inner, item, found)))
        else:
            found[inner] = item
            parts.append((key, inner))
    return Shape(class_of(value), tuple(parts))
