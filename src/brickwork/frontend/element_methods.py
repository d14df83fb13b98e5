"""Methods of elements as the functions that they are, and functions of rows as methods: as loops compile them.

x[i].exp()           torch.exp(x[i])
torch.sum(x[i])      x[i].sum()
x[i].norm()          `root of`((x[i] * x[i]).sum())
row.max()            row[:].max()         where `row = x[i]`
x[i].argmax()        `place_of_first of`(x[i], True)    and others of `row_calls`
"""

from __future__ import annotations

import ast
import copy
import sys
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.lift import Splitter
from brickwork.frontend.row_calls import COPY, MEANINGS, PAIRS, ROOT, is_of_row, row_call
from brickwork.frontend.row_forms import (
    REDUCED,
    computed_rows,
    goes_along,
    is_inlined,
    is_slice,
    parameters_of,
    slices_of,
)
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.stores import root
from brickwork.frontend.syntax import all_nodes
from brickwork.language.math import is_pointwise


def with_functions(splitter: Splitter) -> SourceFunction | None:
    """Return the function with such calls as loops compile them; None if there are none."""
    source, torch = splitter.source, sys.modules["torch"]
    if "torch" in source.local or source.captured.get("torch", torch) is not torch:
        return None
    calls = _Calls(splitter)
    node = copy.deepcopy(source.node)
    for loop in [item for item in ast.walk(node) if isinstance(item, ast.For | ast.While)]:
        loop.body = [calls.visit(item) for item in loop.body]
    if not calls.found:
        return None
    ast.fix_missing_locations(node)
    return replace(source, node=node, captured={"torch": torch, **MEANINGS, **source.captured})


def with_row_calls(source: SourceFunction, classes: Iterable[type]) -> SourceFunction:
    """Return a helper with torch's functions of rows as loops compile them; names of methods of `classes` stay."""
    named = {item.func.attr for item in all_nodes(source.node) if isinstance(item, ast.Call) and _has_name(item.func)}
    named = {name for name in named if not any(hasattr(kind, name) for kind in classes)}
    if not any(is_of_row(name, pair=pair) for name in named for pair in (False, True)):
        return source
    calls = _RowCalls(Splitter(source, (), inside=True), parameters_of(source.node))
    node = copy.deepcopy(source.node)
    node.body = [calls.visit(item) for item in node.body]
    ast.fix_missing_locations(node)
    return replace(source, node=node, captured={**MEANINGS, **source.captured}) if calls.found else source


def _has_name(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute)


def store_updates(source: SourceFunction, tensors: Container[str]) -> None:
    """Write `y[...] += row` for `y += row` in loops, of parameters and of tensors that the function makes."""
    whole = source.node
    updates = [
        node
        for loop in all_nodes(whole)
        if isinstance(loop, ast.For | ast.While)
        for node in all_nodes(loop)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    ]
    if not updates:
        return
    made = Counter(
        item.id
        for node in all_nodes(whole)
        if isinstance(node, ast.Assign) and _makes_tensor(node.value, source)
        for item in node.targets
        if isinstance(item, ast.Name)
    )
    other = {id(node.target) for node in all_nodes(whole) if isinstance(node, ast.AugAssign)}
    stored = Counter(
        item.id
        for item in all_nodes(whole)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and id(item) not in other
    )
    for node in updates:
        target = node.target
        if (
            isinstance(target, ast.Name)
            and made[target.id] == stored[target.id]
            and (made[target.id] or target.id in tensors)
        ):
            dots = ast.Constant(...)
            node.target = ast.Subscript(ast.copy_location(ast.Name(target.id, ast.Load()), target), dots, ast.Store())
            ast.copy_location(dots, target)
            ast.copy_location(node.target, target)


def _makes_tensor(node: ast.expr, source: SourceFunction) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = intrinsic(resolve(node.func, source.captured, source.local))
    return name in ALLOCATIONS or (isinstance(node.func, ast.Attribute) and node.func.attr in NEW_METHODS)


_PRODUCTS = frozenset({"matmul", "mv", "mm"})


class _RowCalls(ast.NodeTransformer):
    """Puts the functions of `language/rows` in the place of torch's."""

    def __init__(self, splitter: Splitter, given: frozenset[str] = frozenset()) -> None:
        self.splitter = splitter
        self.computed = computed_rows(splitter.source.node, splitter.source.captured, splitter.local, given)
        self.found = False

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Let `v, k = torch.sort(x[i])` be the pair of a function that loops compile."""
        self.generic_visit(node)
        if any(isinstance(target, ast.Tuple) and len(target.elts) == 2 for target in node.targets):
            node.value = self._pair(node.value) or node.value
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Take one of such a pair."""
        self.generic_visit(node)
        pair = self._pair(node.value) if node.attr in PAIRS else None
        if pair is None:
            return node
        return ast.copy_location(ast.Subscript(pair, ast.Constant(PAIRS[node.attr]), ast.Load()), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Take one of such a pair by its number."""
        self.generic_visit(node)
        node.value = (self._pair(node.value) if isinstance(node.slice, ast.Constant) else None) or node.value
        return node

    def _pair(self, node: ast.expr) -> ast.Call | None:
        return self._of_row(node, pair=True) if isinstance(node, ast.Call) else None

    def _of_row(self, node: ast.Call, *, pair: bool = False) -> ast.Call | None:
        """Return the call of a function of rows that `x[i].argmax()` or `torch.argmax(x[i])` is."""
        function = intrinsic(resolve(node.func, self.splitter.source.captured, self.splitter.local)) or ""
        home, _, name = function.rpartition(".")
        row, given = (node.args[0], node.args[1:]) if home == "torch" and node.args else (None, node.args)
        if row is None and not function and isinstance(node.func, ast.Attribute):
            row, name = node.func.value, node.func.attr
        if row is None or not is_of_row(name, pair=pair) or not self._may_be_part(row):
            return None
        made = row_call(name, row, given, node.keywords)
        if made is None or (not _is_along(made) and not self._is_computed_part(row)):
            return None
        self.found = True
        return ast.copy_location(made, node)

    def _is_computed_part(self, node: ast.expr) -> bool:
        """Return whether an expression may be a row of one dimension."""
        if isinstance(node, ast.Subscript):
            count = len(slices_of(node)) - sum(map(is_slice, slices_of(node)))
            return self._may_be_part(node) and self.splitter.ranks.get(root(node) or "", 0) <= count + 1
        return self._may_be_part(node)

    def _may_be_part(self, node: ast.expr) -> bool:
        """Return whether an expression may be a part of a tensor with dimensions."""
        if isinstance(node, ast.Subscript):
            return root(node) in self.splitter.tensors
        if isinstance(node, ast.Call):
            found = resolve(node.func, self.splitter.source.captured, self.splitter.local)
            computed = is_pointwise(intrinsic(found)) or (found is not MISSING and is_inlined(found))
            return computed and any(map(self._may_be_part, node.args))
        return self._is_part(node) or (isinstance(node, ast.UnaryOp) and self._may_be_part(node.operand))

    def _is_part(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript | ast.BinOp) or self._is_row(node)

    def _is_row(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and (node.id in self.splitter.rows or node.id in self.computed)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put a call in the place of one that means the same."""
        self.generic_visit(node)
        return self._of_row(node) or node


class _Calls(_RowCalls):
    """Does so, and writes methods of elements as functions, and functions that reduce rows as methods."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put a call in the place of one that means the same."""
        self.generic_visit(node)
        made = self._of_row(node)
        if made is not None:
            return made
        source = self.splitter.source
        found = resolve(node.func, source.captured, source.local)
        made = self._of_method(node) if found is MISSING else self._of_function(node, intrinsic(found) or "")
        if made is None:
            return node
        self.found = True
        for item in (made, *([made.func] if isinstance(made, ast.Call) else [])):
            ast.copy_location(item, node)
        return made

    def _of_method(self, node: ast.Call) -> ast.Call | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        owner, name = node.func.value, node.func.attr
        if name in REDUCED and goes_along(node) and self._is_row(owner):
            return _reduced(owner, name, node.args, node.keywords)
        if name == "clone" and not node.args and not node.keywords and self._is_part(owner):
            return ast.Call(ast.Name(COPY, ast.Load()), [owner], [])
        if name == "norm" and not node.args and not node.keywords and self._is_part(owner):
            return _norm(owner)
        if not is_pointwise(f"torch.{name}") or not self.splitter.is_of_elements(owner):
            return None
        return ast.Call(
            ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load()), [owner, *node.args], node.keywords
        )

    def _of_function(self, node: ast.Call, function: str) -> ast.expr | None:
        home, _, name = function.rpartition(".")
        if home == "torch" and name in _PRODUCTS and len(node.args) == 2 and any(map(self._is_part, node.args)):
            return ast.BinOp(node.args[0], ast.MatMult(), node.args[1])
        if home != "torch" or not node.args or not self._is_part(node.args[0]):
            return None
        row, more = node.args[0], node.args[1:]
        if name in {"norm", "linalg_norm", "linalg_vector_norm"} and not more and not node.keywords:
            return _norm(row)
        method = _reduced(row, name, more, node.keywords)
        return method if name in REDUCED and goes_along(method) else None


def _is_along(node: ast.Call) -> bool:
    """Return whether a function of rows has been told the axis that rows lie along."""
    inner = node.args[0] if isinstance(node.func, ast.Name) and node.func.id == ROOT else node
    return isinstance(inner, ast.Call) and any(word.arg == "dim" for word in inner.keywords)


def _reduced(
    row: ast.expr, name: str, given: Sequence[ast.expr] = (), keywords: Sequence[ast.keyword] = ()
) -> ast.Call:
    """Return `row.sum()`: of a name, of all its items, which tells it from a method of a whole tensor."""
    items = ast.Subscript(row, ast.Slice(), ast.Load()) if isinstance(row, ast.Name) else row
    return ast.Call(ast.Attribute(items, name, ast.Load()), [*given], [*keywords])


def _norm(row: ast.expr) -> ast.Call:
    """Return the norm of a row: the root of the sum of its squares, of which the slope at 0 is 0."""
    squares = ast.Call(ast.Attribute(ast.BinOp(row, ast.Mult(), copy.deepcopy(row)), "sum", ast.Load()), [], [])
    return ast.Call(ast.Name(ROOT, ast.Load()), [squares], [])
