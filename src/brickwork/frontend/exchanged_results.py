"""Results that change places with arguments: `u, v = v, u` with `u` an argument, and `return u`, which is copied."""

from __future__ import annotations

import ast

from brickwork.frontend.parameters import declare
from brickwork.frontend.results import result_expressions, returns_of
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes


def with_copies_returned(source: SourceFunction) -> SourceFunction:
    """Return the function with copies of tensors that change places with arguments, where they are returned."""
    exchanged = [names for names in map(_exchanged, all_nodes(source.node)) if names]
    if not exchanged:
        return source
    given = {item.name for item in declare(source)[0] if item.kind == "tensor"}
    while more := {name for names in exchanged if names & given for name in names - given}:
        given |= more
    changing = given & {name for names in exchanged for name in names}
    for node in returns_of(source):
        for item in [each for each in result_expressions(node) if isinstance(each, ast.Name) and each.id in changing]:
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
