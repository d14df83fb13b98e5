"""How many dimensions tensors have at least, by what the source does with their names: `x[i, j]`, `x.shape[1]`.

That tells a row from an element where a signature is not known yet. A source that asks for the rank itself says nothing
here, as it may be written for several.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from brickwork.frontend.syntax import all_nodes

ALIKE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like", "clone", "contiguous"})
"""Functions and methods whose results have the rank of their first argument, or of their owner."""


def least_ranks(function: ast.FunctionDef, is_pointwise: Callable[[ast.Call], bool]) -> Mapping[str, int]:
    """Return the ranks that names have at least, if they are tensors."""
    if branches_by_rank(function):
        return {}
    nodes = all_nodes(function)
    ranks: dict[str, int] = {}
    for node in nodes:
        for name, rank in asked(node):
            ranks[name] = max(rank, ranks.get(name, 0))
    links = [link for node in nodes if isinstance(node, ast.Assign) for link in _links(node, is_pointwise)]
    for _ in links:
        before = dict(ranks)
        for name, other, more in links:
            ranks[other] = max(ranks.get(other, 0), ranks[name] + more if ranks.get(name) else 0)
        if before == ranks:
            break
    return ranks


def branches_by_rank(function: ast.FunctionDef) -> bool:
    """Return whether a function does one thing or another, depending on a rank."""
    branches = (node for node in all_nodes(function) if isinstance(node, ast.If | ast.IfExp))
    return any(_asks(item) for node in branches for item in all_nodes(node.test))


def indexed(node: ast.expr) -> tuple[str | None, int]:
    """Return the name under a chain of indices, and how many there are."""
    count = 0
    while isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        count += sum(not (isinstance(part, ast.Constant) and part.value in {..., None}) for part in parts)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), count


def _asks(node: ast.AST) -> bool:
    """Return whether a condition asks for a rank."""
    if isinstance(node, ast.Attribute):
        return node.attr in {"ndim", "dim"}
    return isinstance(node, ast.Call) and ast.unparse(node).startswith("len(") and ".shape" in ast.unparse(node)


def asked(node: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the ranks that a node by itself asks names for, at least."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=position):
            axis = _literal(position)
            yield name, 0 if axis is None else axis + 1 if axis >= 0 else -axis
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[position]):
            axis = _literal(position)
            yield name, 0 if axis is None else axis + 1 if axis >= 0 else -axis
        case ast.Assign(targets=[ast.Tuple(elts=elts)], value=ast.Attribute(value=ast.Name(id=name), attr="shape")):
            yield name, sum(not isinstance(item, ast.Starred) for item in elts)
        case ast.Subscript():
            found, count = indexed(node)
            if found is not None:
                yield found, count
        case _:
            return


def _literal(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _links(node: ast.Assign, is_pointwise: Callable[[ast.Call], bool]) -> Iterator[tuple[str, str, int]]:
    """Yield (name, other, more) where the rank of `other` is that of `name` and so many more."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            for other, more in _like(node.value, is_pointwise):
                if other == target.id:
                    continue
                yield target.id, other, more
                if not more:
                    yield other, target.id, 0


def _like(node: ast.expr, is_pointwise: Callable[[ast.Call], bool]) -> Iterator[tuple[str, int]]:
    """Yield the names that an expression has the rank of, less the number."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ALIKE:
            first = node.args[0] if node.func.attr.endswith("_like") and node.args else node.func.value
            yield from _like(first, is_pointwise)
        elif is_pointwise(node) and node.args and all(isinstance(item, ast.Constant) for item in node.args[1:]):
            yield from _like(node.args[0], is_pointwise)
        return
    name, count = indexed(node)
    slices = [item for item in all_nodes(node) if isinstance(item, ast.Slice)]
    if name is not None and not slices:
        yield name, count
