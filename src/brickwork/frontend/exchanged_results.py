"""Results that may be arguments, which are copied: of `u, v = v, u` with `u` an argument, and of `h = h0` before loops.

A loop gives `h` something new, unless it has no iterations. Where nothing needs Python, such a row is an array anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from brickwork.frontend.parameters import declare
from brickwork.frontend.results import result_expressions, returns_of
from brickwork.frontend.shared_names import side_by_side
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes


def with_copies_returned(source: SourceFunction) -> SourceFunction:
    """Return the function with copies of tensors that change places with arguments, where they are returned."""
    exchanged = [names for names in map(_exchanged, all_nodes(source.node)) if names]
    given = _tensors(source) if exchanged else set[str]()
    while more := {name for names in exchanged if names & given for name in names - given}:
        given |= more
    return _with_copies(source, given & {name for names in exchanged for name in names})


def with_begun_copied(source: SourceFunction) -> SourceFunction:
    """Return the function with copies of names that begin as arguments and get something else in loops."""
    given = _tensors(source)
    assigns = [node for node in all_nodes(source.node) if isinstance(node, ast.Assign)]
    pairs = [pair for node in assigns for target in node.targets for pair in side_by_side(target, node.value)]
    begun = {
        target.id
        for target, value in pairs
        if isinstance(target, ast.Name) and isinstance(value, ast.Name) and value.id in given
    }
    looped = [
        item for node in all_nodes(source.node) if isinstance(node, ast.For | ast.While) for item in all_nodes(node)
    ]
    stored = {item.id for item in looped if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return _with_copies(source, (begun & stored) - given)


def _tensors(source: SourceFunction) -> set[str]:
    return {item.name for item in declare(source)[0] if item.kind == "tensor"}


def _with_copies(source: SourceFunction, names: Iterable[str]) -> SourceFunction:
    for node in returns_of(source):
        for item in [each for each in result_expressions(node) if isinstance(each, ast.Name) and each.id in names]:
            copied: ast.expr = ast.parse(f"{item.id}.clone()", mode="eval").body
            for each in ast.walk(copied):
                ast.copy_location(each, item)
            if isinstance(node.value, ast.Tuple | ast.List):
                node.value.elts = [copied if each is item else each for each in node.value.elts]
            else:
                node.value = copied
    return source


def _exchanged(node: ast.AST) -> set[str]:
    """Return the names that `u, v = v, u` exchanges; none of another node."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=items)):
            names = [item.id for item in parts if isinstance(item, ast.Name)]
            values = [item.id for item in items if isinstance(item, ast.Name)]
            return {*names} if len(names) == len(parts) and sorted(names) == sorted(values) else set()
        case _:
            return set()
