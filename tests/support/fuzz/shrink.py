"""Makes a case smaller as long as it stays interesting: statements and expressions go, arguments become plain.

    while i0 < n: ...                     x[0] = 1
    x[i0 % n] = max(a[i0], s) + 1   ->    (the least that still fails)

Each step tries one change of the function's syntax tree or of one argument, and keeps it if `interesting` says so. The
result can be made no smaller by one change.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from support.fuzz.case import NAME, Case, TensorArgument


def shrink(case: Case, interesting: Callable[[Case], bool], seconds: float = 60.0) -> Case:
    """Return a case that is still interesting and as small as can be found in the time."""
    end = time.monotonic() + seconds
    best = case
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for smaller in _smaller(best):
            if time.monotonic() > end:
                break
            if interesting(smaller):
                best = smaller
                improved = True
                break
    return best


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases that are a little smaller, those that lose most first."""
    tree = ast.parse(case.source)
    seen = {case.source}
    for change in _changes(tree):
        try:
            source = ast.unparse(ast.fix_missing_locations(change())) + "\n"
            ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        if source not in seen:
            seen.add(source)
            yield replace(case, source=source)
    yield from _plainer(case)


# ---------------------------------------------------------------- the program


def _changes(tree: ast.Module) -> Iterator[Callable[[], ast.Module]]:
    """Yield functions that return changed copies of the tree; types of parameters and results stay."""
    nodes = list(ast.walk(tree))
    types = {id(part) for node in nodes for root in _types(node) for part in ast.walk(root)}
    for place, node in enumerate(nodes):
        inside = isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If)
        for name in ("body", "orelse") if inside else ():
            block = getattr(node, name, [])
            for position, statement in enumerate(block):
                if not (isinstance(node, ast.FunctionDef) and isinstance(statement, ast.Return)):
                    yield _edit(tree, place, name, position, [])
                for replacement in _insides(statement):
                    yield _edit(tree, place, name, position, replacement)
        if isinstance(node, ast.FunctionDef) and node.name != NAME:
            yield _without(tree, place)
    for place, node in enumerate(nodes):
        if id(node) in types:
            continue
        if isinstance(node, ast.expr) and not isinstance(node, ast.Name | ast.Constant):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
                    yield _exchange(tree, place, part)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
            for number in (0, 1):
                if not (isinstance(node, ast.Constant) and node.value in {0, 1}):
                    yield _exchange(tree, place, ast.Constant(value=number))


def _types(node: ast.AST) -> list[ast.expr]:
    """Return the types that a node says of parameters, of a result, or of what a class has."""
    match node:
        case ast.arg(annotation=found) | ast.AnnAssign(annotation=found) | ast.FunctionDef(returns=found):
            return [found] if found is not None else []
        case _:
            return []


def _insides(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks that a statement may be replaced with."""
    if isinstance(statement, ast.If | ast.For | ast.While):
        yield statement.body
        if statement.orelse:
            yield statement.orelse
    if isinstance(statement, ast.AugAssign):
        target: Any = statement.target
        yield [ast.Assign(targets=[target], value=statement.value)]


def _edit(
    tree: ast.Module, place: int, name: str, position: int, replacement: list[ast.stmt]
) -> Callable[[], ast.Module]:
    def change() -> ast.Module:
        made = copy.deepcopy(tree)
        node = list(ast.walk(made))[place]
        block: list[ast.stmt] = list(getattr(node, name))
        block[position : position + 1] = copy.deepcopy(replacement)
        setattr(node, name, block or ([ast.Pass()] if name == "body" else []))
        return made

    return change


def _without(tree: ast.Module, place: int) -> Callable[[], ast.Module]:
    def change() -> ast.Module:
        made = copy.deepcopy(tree)
        node = list(ast.walk(made))[place]
        made.body = [item for item in made.body if item is not node]
        return made

    return change


def _exchange(tree: ast.Module, place: int, replacement: ast.expr) -> Callable[[], ast.Module]:
    def change() -> ast.Module:
        made = copy.deepcopy(tree)
        old = list(ast.walk(made))[place]

        class Exchange(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> Any:
                return copy.deepcopy(replacement) if node is old else self.generic_visit(node)

        return Exchange().visit(made)

    return change


# ---------------------------------------------------------------- the arguments


def _plainer(case: Case) -> Iterator[Case]:
    """Yield cases with one argument made plainer."""
    for place, item in enumerate(case.arguments):
        options: list[Any] = []
        if isinstance(item, TensorArgument):
            options += [replace(item, base=None)] if item.base else []
            options += [replace(item, layout="dense")] if item.layout != "dense" else []
            options += [replace(item, dtype="float64")] if item.dtype not in {"float64", "int64"} else []
            options += [replace(item, data="zeros"), replace(item, data="small")] if item.data != "zeros" else []
            options += [replace(item, shift=0)] if item.shift else []
        elif item.value not in {None, 0, 1} and not isinstance(item.value, str):
            options += [replace(item, value=type(item.value)(value)) for value in (0, 1)]
        for option in options:
            yield replace(case, arguments=(*case.arguments[:place], option, *case.arguments[place + 1 :]))
    for size in {size for item in case.arguments if isinstance(item, TensorArgument) for size in item.shape}:
        for smaller in (size // 2, size - 1):
            if 0 <= smaller < size:
                yield replace(case, arguments=tuple(_resized(item, size, smaller) for item in case.arguments))


def _resized(item: Any, size: int, smaller: int) -> Any:
    """Return an argument whose axes of one size are shorter."""
    if not isinstance(item, TensorArgument):
        return item
    return replace(item, shape=tuple(smaller if extent == size else extent for extent in item.shape))
