"""`ord(TEXT[i])` of a captured text, where a function is parsed: an item of a table of numbers."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping


class TextItems(ast.NodeTransformer):
    """Writes items of tables in place of `ord` of items of texts; `tables` are those that it needs."""

    def __init__(self, captured: Mapping[str, object], builtin: Container[str]) -> None:
        """Take what names mean, and the names that mean Python's builtins."""
        self._captured, self._builtin = captured, builtin
        self.tables: dict[str, object] = {}

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
