"""`@ti.func` and its kin: functions that kernels call, which are compiled where they are called."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

from brickwork.taichi import state
from brickwork.taichi.errors import TaichiSyntaxError
from brickwork.taichi.source import parse


class Func:
    """A function of kernels."""

    is_taichi_func = True

    def __init__(
        self, function: Callable[..., Any], *, both: bool = False, real: bool = False, bound: Any = None
    ) -> None:
        """Take the Python function; with `both` Python's scope may call it too."""
        self.function = function
        self.both, self.real, self.bound = both, real, bound
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Func:
        """Return the method of an object."""
        if instance is None:
            return self
        return Func(self.function, both=self.both, real=self.real, bound=instance)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call it in Python's scope, where that is allowed."""
        if state.builder() is None and not self.both:
            raise TaichiSyntaxError("Taichi functions cannot be called from Python-scope.")
        own = () if self.bound is None else (self.bound,)
        return self.function(*own, *args, **named)


def func(fn: Callable[..., Any], is_real_function: bool = False) -> Func:
    """Make a function that kernels call: `@ti.func`."""
    return Func(fn, real=is_real_function)


def real_func(fn: Callable[..., Any]) -> Func:
    """Make a function that kernels call and that may return early: `@ti.real_func`."""
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.annotation is inspect.Parameter.empty and parameter.name != "self":
            raise TaichiSyntaxError(
                f"Taichi real function `{fn.__name__}` parameter `{parameter.name}` must be type annotated"
            )
    if inspect.signature(fn).return_annotation is inspect.Parameter.empty and _returns_value(fn):
        raise TaichiSyntaxError(f"Function `{fn.__name__}`: its return value must be annotated")
    return Func(fn, real=True)


def _returns_value(fn: Callable[..., Any]) -> bool:
    """Return whether a function has a `return` with a value."""
    nodes = ast.walk(parse(fn).node)
    return any(isinstance(node, ast.Return) and node.value is not None for node in nodes)


def pyfunc(fn: Callable[..., Any]) -> Func:
    """Make a function that kernels and Python call: `@ti.pyfunc`."""
    return Func(fn, both=True)
