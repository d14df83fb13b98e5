"""Tensors that the head of a loop makes get a name before it.

for v in x.flatten():          x_flatten = x.flatten();  for v in x_flatten:
for column in zip(*x):         x_zip = x.transpose(0, 1);  for column in x_zip:

Only heads of loops that stand in the body itself: the head is evaluated once, where the name is given.
"""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from brickwork.frontend.syntax import all_nodes

_METHODS = frozenset(
    {"flatten", "ravel", "view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "contiguous"}
    | {"float", "double", "long", "flip", "detach", "clone", "unbind", "nonzero"}
)
"""The methods of a tensor that give one, whose items a loop may run over."""
_AROUND = frozenset({"enumerate", "zip", "reversed"})


def name_heads(node: ast.FunctionDef, builtin: AbstractSet[str]) -> None:
    """Give names to the tensors that heads of loops make; `builtin` are the names that are Python's own."""
    if not any(isinstance(item, ast.For) and isinstance(item.iter, ast.Call) for item in node.body):
        return
    taken = {item.id for item in all_nodes(node) if isinstance(item, ast.Name)}
    body: list[ast.stmt] = []
    for statement in node.body:
        if isinstance(statement, ast.For):
            namer = _Heads(statement, taken, builtin)
            statement.iter = namer.named(statement.iter)
            body += namer.made
        body.append(statement)
    node.body = body


class _Heads:
    def __init__(self, loop: ast.For, taken: set[str], builtin: AbstractSet[str]) -> None:
        self.made: list[ast.stmt] = []
        self._loop = loop
        self._taken = taken
        self._around = _AROUND & builtin

    def named(self, node: ast.expr) -> ast.expr:
        """Return what a loop runs over, with names in it for the tensors that it makes."""
        match node:
            case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=ast.Name() as owner)]) if (
                "zip" in self._around
            ):
                axes = [ast.Constant(0), ast.Constant(1)]
                turned = ast.Call(ast.Attribute(owner, "transpose", ast.Load()), [*axes], [])
                return self._name(owner, "zip", turned)
            case ast.Call(func=ast.Name(id=name)) if name in self._around:
                node.args = [self.named(item) for item in node.args]
                return node
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=method)) if method in _METHODS:
                return self._name(owner, method, node)
            case _:
                return node

    def _columns(self, node: ast.expr, owner: ast.expr) -> ast.expr:
        if not isinstance(owner, ast.Name):
            return node
        turned = ast.Attribute(owner, "transpose", ast.Load())
        return self._name(owner, "zip", ast.Call(turned, [ast.Constant(0), ast.Constant(1)], []))

    def _name(self, owner: ast.Name, method: str, found: ast.expr) -> ast.expr:
        name = f"{owner.id}_{method}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        statement = ast.Assign([ast.Name(name, ast.Store())], found)
        for item in ast.walk(statement):
            ast.copy_location(item, self._loop.iter)
        self.made.append(statement)
        return ast.copy_location(ast.Name(name, ast.Load()), self._loop.iter)
