"""The source of kernels and functions: its tree with true lines and columns, and what its free names mean now."""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import Any, cast

from brickwork.diagnostics.location import Location
from brickwork.frontend.source import span
from brickwork.records import dataclass
from brickwork.taichi.errors import TaichiCompilationError, TaichiNameError, TaichiSyntaxError


@dataclass(eq=False)
class Source:
    """A parsed function."""

    function: Any
    node: ast.FunctionDef
    file: str
    lines: dict[int, str]
    reassigned: frozenset[str] = field(init=False)
    """The names that are assigned more than once, but for steps of a constant."""

    def __post_init__(self) -> None:
        """Count the assignments."""
        self.reassigned = _reassigned(self.node)

    def location(self, node: ast.AST, call_site: Location | None = None) -> Location:
        """Return the place of a node."""
        return span(self.file, self.node.name, node, call_site)

    def annotation(self, name: str) -> Any:
        """Return what a parameter, or `return`, is annotated with; None without one."""
        found = self.function.__annotations__.get(name)
        if not isinstance(found, str):
            return found
        names = {each: self.captured(each) for each in self.function.__code__.co_freevars if each in found}
        try:
            return eval(found, self.function.__globals__, names)  # noqa: S307  # the user's own annotation, postponed
        except NameError as error:
            raise TaichiSyntaxError(f"Invalid type annotation (argument {name}): {error}") from None

    def captured(self, name: str) -> Any:
        """Return what a free name means now."""
        code = self.function.__code__
        if name in code.co_freevars:
            cell: Any = self.function.__closure__[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                raise TaichiNameError(f'Name "{name}" is not defined') from None
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise TaichiNameError(f'Name "{name}" is not defined')


@lru_cache(maxsize=1024)
def parse(function: Callable[..., Any]) -> Source:
    """Return the parsed function; OSError where its source cannot be read."""
    plain = cast("types.FunctionType", inspect.unwrap(function))
    if plain.__name__ == "<lambda>":
        return _parsed_lambda(plain)
    lines, first = inspect.getsourcelines(plain)
    text = "".join(lines)
    indented = text[:1] in {" ", "\t"}
    tree = ast.parse("if True:\n" + text if indented else text)
    ast.increment_lineno(tree, first - (2 if indented else 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == plain.__name__:
            numbered = {first + number: line.rstrip("\n") for number, line in enumerate(lines)}
            file = inspect.getsourcefile(plain) or plain.__code__.co_filename
            return Source(plain, node, file, numbered)
    raise TaichiCompilationError(f"`{plain.__name__}` is not written as a plain `def`")


def _parsed_lambda(function: types.FunctionType) -> Source:
    """Return a lambda as a function that returns its body: the innermost one around the code."""
    lines, _ = inspect.findsource(function)
    places = [((line, first), (end, last)) for line, end, first, last in function.__code__.co_positions() if last]
    around: list[ast.Lambda] = []
    for node in ast.walk(_tree("".join(lines))):
        if isinstance(node, ast.Lambda):
            start, stop = _ends(node.body)
            if all(start <= first and last <= stop for first, last in places):
                around.append(node)
    if not around:
        raise TaichiCompilationError("the source of a `lambda` was not found: write it with `def`")
    found = max(around, key=lambda node: _ends(node.body)[0])
    made = ast.FunctionDef(name="_lambda", args=found.args, body=[ast.Return(found.body)], decorator_list=[])
    ast.fix_missing_locations(ast.copy_location(made, found))
    numbered = {number: line.rstrip("\n") for number, line in enumerate(lines, 1)}
    return Source(function, made, inspect.getsourcefile(function) or function.__code__.co_filename, numbered)


def _ends(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


@lru_cache(maxsize=16)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _reassigned(tree: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are assigned in several places, in parts, or by a call that they are passed to."""
    stepped = {node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign) and _is_step(node)}
    once: set[str] = set()
    more: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in stepped:
            (more if node.id in once else once).add(node.id)
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            more.add(_base(node))
        elif isinstance(node, ast.Call):
            more.update(_base(item) for item in (node.func, *node.args) if isinstance(item, ast.Name | ast.Attribute))
        elif isinstance(node, ast.AugAssign) and node.target not in stepped:
            more.add(_base(node.target))
    return frozenset(more)


def _is_step(node: ast.AugAssign) -> bool:
    """Whether an assignment moves a number by little, as a place is moved: far from the ends of 32 bits it stays."""
    little = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int) and node.value.value <= 16
    return little and isinstance(node.op, ast.Add | ast.Sub)


def _base(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
