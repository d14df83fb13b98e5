"""The same programs on NumPy's arrays, and compiled by Numba: made of the source of a program, never written again.

Types of arguments are dropped, allocations are NumPy's, and the marked loops run over `prange`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import linecache
import math
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch

from benchmarks.programs.program import LoopProgram

_ALLOCATIONS = frozenset({"zeros", "ones", "empty"})
_TYPES = {"bool": "bool_"}


def numpy_form(program: LoopProgram) -> Callable[..., Any]:
    """Return the program on NumPy's arrays, as Python runs it."""
    return _function(program, {"prange": range})


def numba_form(program: LoopProgram) -> Callable[..., Any]:
    """Return the program compiled by Numba, with its marked loops in parallel; Numba must be installed."""
    numba: Any = importlib.import_module("numba")
    function = _function(program, {"prange": numba.prange})
    return numba.njit(parallel=any(loop.marked for loop in program.loops))(function)


def as_numpy(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments with NumPy's views of the tensors."""
    return tuple(item.numpy() if isinstance(item, torch.Tensor) else item for item in arguments)


def source(program: LoopProgram) -> str:
    """Return the program's text on NumPy's arrays."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(program.function)))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    ordered = sorted(statements, key=lambda node: node.lineno)
    marked = {node.lineno for node, loop in zip(ordered, program.loops, strict=True) if loop.marked}
    return ast.unparse(ast.fix_missing_locations(_OnArrays(marked).visit(tree)))


def _function(program: LoopProgram, names: dict[str, Any]) -> Callable[..., Any]:
    text = source(program)
    file = f"<{program.name} on NumPy's arrays>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"np": np, "math": math, **names}
    exec(compile(text, file, "exec"), scope)  # noqa: S102  # the text is a program of ours
    return cast("types.FunctionType", scope[program.name])


class _OnArrays(ast.NodeTransformer):
    """Rewrites a program over torch's tensors to one over NumPy's arrays."""

    def __init__(self, marked: set[int]) -> None:
        """Take the lines of the loops that run over `prange`."""
        self._marked = marked

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Drop the type of an argument."""
        return ast.arg(arg=node.arg)

    def visit_For(self, node: ast.For) -> ast.AST:
        """Write `prange` where it is asked for, and a range in reverse as one that goes down."""
        marked = node.lineno in self._marked
        self.generic_visit(node)
        match node.iter:
            case ast.Call(func=ast.Name(id="reversed"), args=[ast.Call(func=ast.Name(id="range"), args=[stop])]):
                node.iter = ast.parse(f"range({ast.unparse(stop)} - 1, -1, -1)", mode="eval").body
            case ast.Call(func=ast.Name(id="range") as name) if marked:
                name.id = "prange"
            case _:
                pass
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Write `torch.float64` as `np.float64`."""
        self.generic_visit(node)
        match node:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name):
                return ast.Attribute(value=ast.Name(id="np", ctx=ast.Load()), attr=_TYPES.get(name, name), ctx=node.ctx)
            case _:
                return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Write allocations with their shape as a tuple, and infinity as a number."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name)) if name in _ALLOCATIONS:
                node.args = [ast.Tuple(elts=node.args, ctx=ast.Load())]
                return node
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf")]):
                return ast.parse("np.inf", mode="eval").body
            case _:
                return node
