"""Items of captured texts and arrays, where a function is parsed: those of tables of numbers.

ord(TEXT[i])    `codes of TEXT`[i]
W[i, j]         W[i][j]                 of an array of NumPy's
"""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping

from brickwork.frontend.environment import resolve


class TextItems(ast.NodeTransformer):
    """Writes items of tables in place of `ord` of items of texts; `tables` are those that it needs."""

    def __init__(self, captured: Mapping[str, object], local: frozenset[str], builtin: Container[str]) -> None:
        """Take what names mean, those that the function assigns, and those that mean Python's builtins."""
        self._captured, self._local, self._builtin = captured, local, builtin
        self.tables: dict[str, object] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Write `W[i][j]` for `W[i, j]`, where W is captured."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name() | ast.Attribute() as owner, slice=ast.Tuple(elts=[first, *rest])):
                found = resolve(owner, self._captured, self._local)
                if not isinstance(found, list) or any(isinstance(item, ast.Slice) for item in (first, *rest)):
                    return node
                made = ast.copy_location(ast.Subscript(owner, first, ast.Load()), node)
                for number, item in enumerate(rest, 1):
                    made = ast.copy_location(ast.Subscript(made, item, ast.Load()), node)
                    made.end_col_offset = (node.end_col_offset or 0) + number
                return made
            case _:
                return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write `codes of TEXT[i]` for `ord(TEXT[i])`: names with spaces are nobody's."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="ord"), args=[ast.Subscript(value=ast.Name() as owner) as item]):
                text = self._captured.get(owner.id)
                if not isinstance(text, str) or not text or "ord" not in self._builtin:
                    return node
                if isinstance(item.slice, ast.Slice):
                    return node
                name = f"codes of {owner.id}"
                self.tables[name] = tuple(map(ord, text))
                table = ast.copy_location(ast.Name(name, ast.Load()), owner)
                return ast.copy_location(ast.Subscript(table, item.slice, ast.Load()), node)
            case _:
                return node
