"""Which names and expressions of a function are numbers, whatever it is called with, by syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from brickwork.frontend.environment import helper, intrinsic, is_number, resolve
from brickwork.frontend.loop_heads import sources
from brickwork.frontend.row_forms import is_sliced
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.stores import root
from brickwork.frontend.syntax import all_nodes
from brickwork.language.math import FORMULAS, FUNCTIONS

_BUILTINS = frozenset(f"builtins.{name}" for name in "int float bool abs min max sum round len any all pow ord".split())


class Computed:
    """The numbers of a function: parameters, what loops over ranges count, and what is computed of numbers."""

    def __init__(self, source: SourceFunction, tensors: AbstractSet[str], numbers: AbstractSet[str]) -> None:
        """Take the names of tensors, whose items count as numbers, and the parameters that are numbers."""
        self.source, self._tensors = source, tensors
        values: dict[str, list[ast.expr | None]] = {}
        for name, value in self._assigned():
            values.setdefault(name, []).append(value)
        depths = {name: {0 if value is None else _depth(value) for value in given} for name, given in values.items()}
        found = ((name, next(iter(each))) for name, each in depths.items() if len(each) == 1)
        self.lists = {name: depth for name, depth in found if depth}
        self._known = {*numbers, *values}
        while wrong := {name for name in values if name in self._known and not self._are_numbers(values[name])}:
            self._known -= wrong

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression is a number."""
        match node:
            case ast.Constant(value=value):
                return is_number(value)
            case ast.Name(id=name) if name in self.source.local:
                return name in self._known
            case ast.Name() | ast.Attribute():
                return is_number(resolve(node, self.source.captured, self.source.local))
            case ast.Subscript():
                owner, depth = root(node) or "", self.lists.get(root(node) or "", 0)
                return not is_sliced(node) and (owner in self._tensors or 0 < depth <= _indices(node))
            case ast.Compare():
                return all(map(self.is_number, (node.left, *node.comparators)))
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.IfExp():
                parts = (item for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr))
                return all(map(self.is_number, parts))
            case ast.Call(func=function, args=arguments):
                name = intrinsic(resolve(function, self.source.captured, self.source.local)) or ""
                if name in _BUILTINS:
                    return len(arguments) == 1 or all(map(self.is_number, arguments))
                return (name in FUNCTIONS or name in FORMULAS) and all(map(self.is_number, arguments))
            case _:
                return False

    def _are_numbers(self, values: list[ast.expr | None]) -> bool:
        return all(value is not None and self.is_number(value) for value in values)

    def _assigned(self) -> Iterator[tuple[str, ast.expr | None]]:
        """Yield the names that the function assigns, with what; None where that is not seen."""
        seen: set[int] = set()
        for item in all_nodes(self.source.node):
            for part, value in self._pairs(item):
                if isinstance(part, ast.Name):
                    seen.add(id(part))
                    yield part.id, value
        for item in all_nodes(self.source.node):
            if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and id(item) not in seen:
                yield item.id, None

    def _pairs(self, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=items)) if len(parts) == len(items):
                yield from zip(parts, items, strict=True)
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                yield target, value
            case ast.For(target=target, iter=head) | ast.comprehension(target=target, iter=head):
                of_items = [*sources(target, head, self.source.captured, self.source.local)]
                yield from ((part, ast.Subscript(found, ast.Constant(0), ast.Load())) for part, found in of_items)
                inside = {id(item) for part, _ in of_items for item in ast.walk(part)}
                counted = (item for item in ast.walk(target) if isinstance(item, ast.Name) and id(item) not in inside)
                is_known = (
                    isinstance(head, ast.Call)
                    and helper(resolve(head.func, self.source.captured, self.source.local)) is None
                )
                yield from ((item, ast.Constant(0)) for item in counted if is_known)
            case _:
                pass


def _depth(node: ast.expr) -> int:
    """Return how many lists are in one another in what makes a list of numbers; 0 of anything else."""
    match node:
        case ast.List(elts=[first, *_]):
            return 1 + _depth(first)
        case ast.ListComp(elt=item):
            return 1 + _depth(item)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add()):
            return _depth(left)
        case _:
            return 0


def _indices(node: ast.expr) -> int:
    return 1 + _indices(node.value) if isinstance(node, ast.Subscript) else 0
