"""Devices that a native host part names, where Python runs it: in the fake and in `op.python`.

Invariant: a tensor is made where native code makes it, or refused as native code refuses it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TypeVar

from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.rules import other_device
from brickwork.frontend.source import SourceFunction

DEVICE = "__brickwork_device__"
"""The name of the function of `named_device` in rewritten functions."""

Tree = TypeVar("Tree", bound=ast.AST)


def with_devices(tree: Tree, source: SourceFunction) -> Tree:
    """Return the tree with each `device=` of an allocation passed through `DEVICE`, with its place."""
    local = source.local
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and makes_tensor(node, source, local):
            with_device(node, node)
    return tree


def with_device(made: ast.Call, node: ast.Call) -> ast.Call:
    """Return a call that allocates, with its `device=` passed through `DEVICE`; `node` stands at its place."""
    place = [ast.Constant(value=number) for number in (node.lineno, node.col_offset)]
    for word in made.keywords:
        if word.arg == "device":
            value = ast.Call(ast.Name(DEVICE, ast.Load()), [word.value, *place], [])
            word.value = ast.fix_missing_locations(ast.copy_location(value, word.value))
    return made


def named_device(source: SourceFunction) -> Callable[[object, int, int], object]:
    """Return what stands for `DEVICE` in a function: it returns the device to make a tensor on.

    It is asked where new tensors are made on the device of the arguments, which may be stand-ins on `meta`.
    """

    def device(named: object, line: int, column: int) -> object:
        if not isinstance(named, str):
            return named
        own = sys.modules["torch"].empty(0).device
        if own.type not in {named, "meta"}:
            place = ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=column)
            raise other_device(named, own.type, source.location(place))
        return own

    return device


def makes_tensor(node: ast.Call, source: SourceFunction, local: frozenset[str]) -> bool:
    """Return whether a call is one of torch's that make a tensor, as native host parts know them."""
    found = resolve(node.func, source.captured, local)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return intrinsic(found) in ALLOCATIONS or (found is MISSING and method in NEW_METHODS)


def names_device(source: SourceFunction) -> bool:
    """Return whether a function passes `device=` to anything."""
    return any(isinstance(node, ast.keyword) and node.arg == "device" for node in ast.walk(source.node))
