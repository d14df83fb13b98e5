"""How deeply the text of a function is nested, helpers counted where they are called.

The frontend and the passes are recursive, so that a deep source exhausts Python's stack. This tells such a source from
a recursion of brickwork's own that does not end. Nothing in here is recursive but for the chain of calls.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping

from brickwork.frontend.environment import helper
from brickwork.frontend.source import unbound

FRAMES = 10
"""Frames of the stack for one level of nesting, at most: in lowering an `elif` takes 5, the call of a helper 8."""


def is_deep(function: Callable[..., object]) -> bool:
    """Return whether the text of a function is nested so deeply that this can be what exhausts the stack."""
    return _levels(function, set()) * FRAMES >= sys.getrecursionlimit()


def _levels(function: object, seen: set[object]) -> int:
    """Return how many levels of nodes are inside one another; what even Python cannot parse has no end."""
    plain = unbound(inspect.unwrap(function) if isinstance(function, types.FunctionType) else function)
    if not isinstance(plain, types.FunctionType) or plain.__code__ in seen:
        return 0
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    except (OSError, TypeError, SyntaxError):
        return 0
    except (RecursionError, MemoryError):
        return sys.maxsize
    within = seen | {plain.__code__}
    known = {id(called): _levels(called, within) for _, called in _calls(tree, plain)}
    below = {id(node): known[id(called)] for node, called in _calls(tree, plain)}
    deepest, waiting = 0, [(tree, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level + below.get(id(node), 0))
        waiting += [(child, level + 1) for child in ast.iter_child_nodes(node)]
    return deepest


def _calls(tree: ast.AST, function: types.FunctionType) -> Iterator[tuple[ast.Call, types.FunctionType]]:
    """Yield the calls of Python functions by their names, or as functions of modules."""
    closure = inspect.getclosurevars(function)
    names: Mapping[str, object] = {**closure.globals, **closure.nonlocals}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                called = helper(names.get(name))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
                called = helper(getattr(names.get(name), attribute, None))
            case _:
                continue
        if called is not None:
            yield node, called
