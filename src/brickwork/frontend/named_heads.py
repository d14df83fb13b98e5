"""Tensors that the head of a loop makes get a name before it.

for v in x.flatten():          x_flatten = x.flatten();  for v in x_flatten:
for column in zip(*x):         x_zip = x.transpose(0, 1);  if len(x): for column in x_zip:

Only heads of loops that stand in the body itself: the head is evaluated once, where the name is given. `zip(*x)` only
of a parameter that is annotated as a tensor, and only where its columns do what the tuples that Python makes would do.
"""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from brickwork.frontend.syntax import all_nodes
from brickwork.legality import legality

_METHODS = frozenset(
    {"flatten", "ravel", "view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "contiguous"}
    | {"float", "double", "long", "flip", "detach", "clone", "unbind", "nonzero"}
)
"""The methods of a tensor that give one, whose items a loop may run over."""
_AROUND = frozenset({"enumerate", "zip", "reversed"})
_OF_ITEMS = frozenset({"len", "sum", "min", "max"})
"""What may be asked of a tuple of items, and has the same answer of a tensor with them."""


def name_heads(node: ast.FunctionDef, builtin: AbstractSet[str]) -> None:
    """Give names to the tensors that heads of loops make; `builtin` are the names that are Python's own."""
    if not any(isinstance(item, ast.For) and isinstance(item.iter, ast.Call) for item in node.body):
        return
    taken = {item.id for item in all_nodes(node) if isinstance(item, ast.Name)}
    body: list[ast.stmt] = []
    for statement in node.body:
        if isinstance(statement, ast.For):
            namer = _Heads(statement, node, taken, builtin)
            statement.iter = namer.named(statement.iter)
            if namer.turned is not None:
                rows = ast.Call(ast.Name("len", ast.Load()), [namer.turned], [])
                some = ast.If(ast.Compare(rows, [ast.Gt()], [ast.Constant(0)]), [*namer.made, statement], [])
                body.append(_placed(some, statement.iter))
                continue
            body += namer.made
        body.append(statement)
    node.body = body


class _Heads:
    """`turned`: the tensor of which the loop runs over columns, of which there are none if it has no rows."""

    def __init__(self, loop: ast.For, function: ast.FunctionDef, taken: set[str], builtin: AbstractSet[str]) -> None:
        self.made: list[ast.stmt] = []
        self.turned: ast.expr | None = None
        self._loop = loop
        self._function = function
        self._taken = taken
        self._builtin = builtin

    def named(self, node: ast.expr) -> ast.expr:
        """Return what a loop runs over, with names in it for the tensors that it makes."""
        around = _AROUND & self._builtin
        match node:
            case ast.Call(func=ast.Name(id="zip"), args=[ast.Starred(value=ast.Name() as owner)]) if "zip" in around:
                if not self._is_turned(owner.id, node):
                    return node
                self.turned = owner
                axes = [ast.Constant(0), ast.Constant(1)]
                turned = ast.Call(ast.Attribute(owner, "transpose", ast.Load()), [*axes], [])
                return self._name(owner, "zip", turned)
            case ast.Call(func=ast.Name(id=name)) if name in around:
                node.args = [self.named(item) for item in node.args]
                return node
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=method)) if method in _METHODS:
                return self._name(owner, method, node)
            case _:
                return node

    @legality
    def _is_turned(self, name: str, call: ast.Call) -> bool:
        """Return whether columns of a tensor may stand for the tuples of `zip(*x)`: nobody can tell them apart.

        Of a tensor without rows there are none, so that the loop stands in a branch then.
        """
        loop = self._loop
        counted = _only(loop.iter) is call
        if call.keywords or loop.orelse or not self._builtin >= _OF_ITEMS or not (loop.iter is call or counted):
            return False
        column = _column(loop.target, counted=counted)
        return column is not None and _is_tensor(self._function, name) and _items_alone(self._function, column)

    def _name(self, owner: ast.Name, method: str, found: ast.expr) -> ast.expr:
        name = f"{owner.id}_{method}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        statement = ast.Assign([ast.Name(name, ast.Store())], found)
        self.made.append(_placed(statement, self._loop.iter))
        return ast.copy_location(ast.Name(name, ast.Load()), self._loop.iter)


def _only(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[found], keywords=[]):
            return found
        case _:
            return None


def _column(target: ast.expr, *, counted: bool) -> ast.expr | None:
    match target:
        case ast.Tuple(elts=[_, found]) if counted:
            return found
        case _:
            return None if counted else target


@legality
def _is_tensor(function: ast.FunctionDef, name: str) -> bool:
    given = function.args
    declared = {item.arg: item.annotation for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    kind = declared.get(name)
    stored = any(
        isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Store)
        for item in all_nodes(function)
    )
    return kind is not None and not stored and ast.unparse(kind).strip("'\"").rpartition(".")[2] == "Tensor"


@legality
def _items_alone(function: ast.FunctionDef, column: ast.expr) -> bool:
    """Return whether only items of a tuple are read: its arithmetic and slices mean other things."""
    if not isinstance(column, ast.Name):
        return isinstance(column, ast.Tuple)
    nodes = all_nodes(function)
    apart = {id(item.iter) for item in nodes if isinstance(item, ast.For | ast.comprehension)}
    for item in nodes:
        match item:
            case ast.Subscript(value=ast.Name() as found, slice=at, ctx=ast.Load()) if not isinstance(
                at, ast.Slice | ast.Tuple
            ):
                apart.add(id(found))
            case ast.Call(func=ast.Name(id=called), args=[found], keywords=[]) if called in _OF_ITEMS:
                apart.add(id(found))
            case _:
                pass
    loads = (item for item in nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load))
    return all(id(item) in apart for item in loads if item.id == column.id)


def _placed(statement: ast.stmt, node: ast.expr) -> ast.stmt:
    """Return a statement with its parts placed where a head stands, but for those that have a place."""
    for item in ast.walk(statement):
        if isinstance(item, ast.stmt | ast.expr) and not hasattr(item, "lineno"):
            ast.copy_location(item, node)
    return statement
