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
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from brickwork.frontend import made_row_forms
from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.lift import Splitter
from brickwork.frontend.made_row_forms import (
    CONVERTING,
    is_made,
    turned,
    varying_names,
    without_none,
)
from brickwork.frontend.row_calls import COPY, MEANINGS, PAIRS, ROOT, is_of_row, parts_call, row_call
from brickwork.frontend.row_forms import (
    AXES,
    REDUCED,
    computed_rows,
    goes_along,
    is_inlined,
    is_literal,
    is_slice,
    parameters_of,
    slices_of,
)
from brickwork.frontend.shared_names import shares_stored_rows
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.stores import root
from brickwork.frontend.syntax import all_nodes
from brickwork.language.math import is_pointwise

if TYPE_CHECKING:
    from brickwork.frontend.lift_python import PythonSplitter


def with_functions(splitter: Splitter) -> SourceFunction | None:
    """Return the function with such calls as loops compile them; None if there are none."""
    source, torch = splitter.source, sys.modules["torch"]
    if "torch" in source.local or source.captured.get("torch", torch) is not torch:
        return None
    calls = _Calls(splitter)
    node = copy.deepcopy(source.node)
    for loop in [item for item in ast.walk(node) if isinstance(item, ast.For | ast.While)]:
        loop.body = [calls.visit(item) for item in loop.body]
    if not calls.found or not calls.are_compiled(node):
        return None
    ast.fix_missing_locations(node)
    return replace(
        source, node=node, captured={"torch": torch, **MEANINGS, **made_row_forms.MEANINGS, **source.captured}
    )


def with_functions_where(source: SourceFunction, make: Callable[[SourceFunction], PythonSplitter]) -> SourceFunction:
    """Return a function whose host part runs in Python, with such calls in the statements that are compiled then."""
    splitter = make(source)
    splitter.split()
    spelled = with_functions(splitter)
    if spelled is None:
        return source
    lifted = make(spelled).split().lifted
    node = copy.copy(source.node)
    node.body = _mixed(source.node.body, spelled.node.body, lifted)
    mixed = replace(spelled, node=node)
    lifted = make(mixed).split().lifted
    compiled = {id(item) for each in all_nodes(node) if id(each) in lifted for item in all_nodes(each)}
    left = (item for item in all_nodes(node) if isinstance(item, ast.Name) and id(item) not in compiled)
    names = {*MEANINGS, *made_row_forms.MEANINGS}
    return source if any(item.id in names for item in left) else mixed


def _mixed(before: Sequence[ast.stmt], after: Sequence[ast.stmt], lifted: Container[int]) -> list[ast.stmt]:
    """Return statements with those that are lifted as they are spelled."""
    found: list[ast.stmt] = []
    for old, new in zip(before, after, strict=True):
        if id(new) in lifted:
            found.append(new)
        elif isinstance(old, ast.If | ast.For | ast.While) and isinstance(new, ast.If | ast.For | ast.While):
            made = copy.copy(old)
            made.body, made.orelse = _mixed(old.body, new.body, lifted), _mixed(old.orelse, new.orelse, lifted)
            found.append(made)
        else:
            found.append(old)
    return found


def with_row_calls(source: SourceFunction, classes: Iterable[type]) -> SourceFunction:
    """Return a helper with torch's functions of rows as loops compile them; names of methods of `classes` stay."""
    named = {item.func.attr for item in all_nodes(source.node) if isinstance(item, ast.Call) and _has_name(item.func)}
    named = {name for name in named if not any(hasattr(kind, name) for kind in classes)}
    of_rows = any(is_of_row(name, pair=pair) or is_made(name) for name in named for pair in (False, True))
    of_rows = of_rows or not named.isdisjoint({"chunk", "split", *CONVERTING})
    if not of_rows and not any(map(_has_axes, all_nodes(source.node))):
        return source
    calls = _RowCalls(Splitter(source, (), inside=True), parameters_of(source.node))
    node = copy.deepcopy(source.node)
    node.body = [calls.visit(item) for item in node.body]
    if not calls.found or not calls.are_compiled(node):
        return source
    ast.fix_missing_locations(node)
    known = {"torch": sys.modules["torch"], **MEANINGS, **made_row_forms.MEANINGS}
    return replace(source, node=node, captured={**known, **source.captured})


def asks_for_functions(source: SourceFunction) -> bool:
    """Return whether loops may have calls that are compiled only as such functions, though nothing needs Python."""
    loops = (node for node in all_nodes(source.node) if isinstance(node, ast.For | ast.While))
    return any(_has_axes(item) or _may_be_of_row(item) for loop in loops for item in all_nodes(loop))


def _has_axes(node: ast.AST) -> bool:
    """Return whether an expression gives a row other axes: `d[:, None]`, `W.T`."""
    return (isinstance(node, ast.Subscript) and without_none(node) is not None) or (
        isinstance(node, ast.Attribute) and turned(node) is not None
    )


def _may_be_of_row(node: ast.AST) -> bool:
    """Return whether a call may be a method of a row that has a name."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() | ast.BinOp() | ast.Call(), attr=name)):
            return (
                is_of_row(name, pair=False)
                or is_of_row(name, pair=True)
                or name in {"norm", "clone", "unsqueeze", *CONVERTING}
            )
        case _:
            return False


def _is_made_row(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made_row_forms.NAMES


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


_PRODUCTS = frozenset({"matmul", "mv", "mm", "dot", "inner"})
_OF_MADE = frozenset({*REDUCED, "shape", "ndim", "size", "dim", "numel", "device"})
"""What a row that a loop makes is asked for, besides functions of its items."""


class _RowCalls(ast.NodeTransformer):
    """Puts the functions of `language/rows` in the place of torch's."""

    def __init__(self, splitter: Splitter, given: frozenset[str] = frozenset()) -> None:
        self.splitter = splitter
        source = splitter.source
        self.made = frozenset(self._made_names())
        self.computed = computed_rows(source.node, source.captured, splitter.local, given | self.made)
        self.found = False
        self._varying = varying_names(source.node)
        self._claims = any(map(self._is_claimed, all_nodes(source.node)))
        self._shares = shares_stored_rows(source.node, self._makes)

    def _is_claimed(self, node: ast.AST) -> bool:
        """Return whether a loop is called parallel by the source: there an array has a length that is a number."""
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
            return False
        return self._function(node.iter) == "brickwork.prange" or any(
            word.arg == "parallel" for word in node.iter.keywords
        )

    def _function(self, node: ast.Call) -> str:
        return intrinsic(resolve(node.func, self.splitter.source.captured, self.splitter.local)) or ""

    def _made_names(self) -> Iterator[str]:
        """Yield the names that loops let stand for rows which they make."""
        whole = self.splitter.source.node
        inner = [node for node in all_nodes(whole) if isinstance(node, ast.For | ast.While)]
        for loop in inner or [whole]:
            for node in all_nodes(loop):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and self._makes(node.value):
                    yield from (item.id for item in node.targets if isinstance(item, ast.Name))

    def _makes(self, node: ast.Call) -> bool:
        home, _, name = self._function(node).rpartition(".")
        if home == "torch":
            return is_made(name)
        return isinstance(node.func, ast.Attribute) and node.func.attr in {*NEW_METHODS, "unsqueeze"}

    def _made(self, node: ast.Call) -> ast.expr | None:
        """Return the call of a function that makes rows, as it is compiled."""
        home, _, name = self._function(node).rpartition(".")
        owner = None
        if not home and isinstance(node.func, ast.Attribute):
            owner, name = node.func.value, node.func.attr
            if name in CONVERTING and (self._is_of_tensor(owner) or self.splitter.is_of_elements(owner)):
                return self._placed(made_row_forms.converted(name, owner, node), node)
            if not self._is_of_tensor(owner) or not (name in NEW_METHODS or name in {"unsqueeze", "t", "transpose"}):
                return None
        elif home != "torch" or not is_made(name):
            return None
        if self._shares or (self._claims and not made_row_forms.has_known_length(name, node)):
            return None
        return self._placed(made_row_forms.made(name, owner, node, self._varying), node)

    def _is_of_tensor(self, node: ast.expr) -> bool:
        return root(node) in self.splitter.tensors or self._may_be_part(node)

    def _placed(self, made: ast.expr | None, node: ast.expr) -> ast.expr | None:
        if made is not None:
            self.found = True
            ast.copy_location(made, node)
        return made

    def are_compiled(self, node: ast.FunctionDef) -> bool:
        """Return whether all that is asked of rows which loops make has a meaning there."""
        for item in all_nodes(node):
            match item:
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self.made:
                    if attr not in _OF_MADE and not is_pointwise(f"torch.{attr}"):
                        return False
                case ast.Subscript(slice=index):
                    parts = index.elts if isinstance(index, ast.Tuple) else [index]
                    if any(isinstance(part, ast.Name) and part.id in self.made for part in parts):
                        return False
                case _:
                    pass
        return True

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Let `v, k = torch.sort(x[i])` be the pair of a function that loops compile."""
        self.generic_visit(node)
        counts = {len(target.elts) for target in node.targets if isinstance(target, ast.Tuple | ast.List)}
        if 2 in counts:
            node.value = self._pair(node.value) or node.value
        if len(counts) == 1:
            node.value = self._in_parts(node.value, *counts) or node.value
        return node

    def _in_parts(self, node: ast.expr, count: int) -> ast.expr | None:
        """Return the parts of `a, b = x[i].chunk(2)`, and of `split`."""
        if not isinstance(node, ast.Call):
            return None
        home, _, name = self._function(node).rpartition(".")
        row, given = (node.args[0], node.args[1:]) if home == "torch" and node.args else (None, node.args)
        if row is None and not home and isinstance(node.func, ast.Attribute):
            row, name = node.func.value, node.func.attr
        if row is None or name not in {"chunk", "split"} or not self._may_be_part(row):
            return None
        return self._placed(parts_call(name, row, node, given, count), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Take one of such a pair; exchange the axes of a matrix."""
        self.generic_visit(node)
        flat = turned(node) if self._is_of_tensor(node.value) else None
        if flat is not None:
            return self._placed(flat, node) or node
        pair = self._pair(node.value) if node.attr in PAIRS else None
        if pair is None:
            return node
        return ast.copy_location(ast.Subscript(pair, ast.Constant(PAIRS[node.attr]), ast.Load()), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Take one of such a pair by its number; give a row axes of one item."""
        self.generic_visit(node)
        wide = without_none(node) if isinstance(node.ctx, ast.Load) else None
        if wide is not None:
            return self._placed(wide, node) or node
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
            if isinstance(node.func, ast.Name) and node.func.id in made_row_forms.NAMES:
                return True
            found = resolve(node.func, self.splitter.source.captured, self.splitter.local)
            computed = is_pointwise(intrinsic(found)) or (found is not MISSING and is_inlined(found))
            return computed and any(map(self._may_be_part, node.args))
        if isinstance(node, ast.Compare):
            return any(map(self._may_be_part, (node.left, *node.comparators)))
        return self._is_part(node) or (isinstance(node, ast.UnaryOp) and self._may_be_part(node.operand))

    def _is_part(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Subscript | ast.BinOp) or self._is_row(node)

    def _is_row(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and (node.id in self.splitter.rows or node.id in self.computed)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put a call in the place of one that means the same."""
        self.generic_visit(node)
        return self._of_row(node) or self._made(node) or node


class _Calls(_RowCalls):
    """Does so, and writes methods of elements as functions, and functions that reduce rows as methods."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put a call in the place of one that means the same."""
        self.generic_visit(node)
        made = self._of_row(node) or self._made(node)
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
        if name == "norm" and self._is_part(owner) and (axis := _axis_of_norm(node.args, node.keywords)) is not None:
            return _norm(owner, axis)
        is_known = self._is_part(owner) or self.splitter.is_of_elements(owner) or _is_made_row(owner)
        if not is_pointwise(f"torch.{name}") or not is_known:
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
        is_norm = name in {"norm", "linalg_norm", "linalg_vector_norm"}
        if is_norm and (axis := _axis_of_norm(more, node.keywords)) is not None:
            return _norm(row, axis)
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


def _axis_of_norm(given: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[ast.keyword] | None:
    """Return the axis that a norm goes along, as the sum has it; None of another norm than the root of the squares."""
    words = {word.arg: word.value for word in keywords}
    order = given[0] if given else words.pop("p", words.pop("ord", None))
    if len(given) > 1 or not (order is None or (isinstance(order, ast.Constant) and order.value in {2, None})):
        return None
    axes = [ast.keyword(key, value) for key, value in words.items()]
    return axes if words.keys() <= {*AXES} and all(is_literal(word.value) for word in axes) else None


def _norm(row: ast.expr, axis: Sequence[ast.keyword] = ()) -> ast.Call:
    """Return the norm of a row: the root of the sum of its squares, of which the slope at 0 is 0."""
    squares = ast.BinOp(row, ast.Mult(), copy.deepcopy(row))
    squares = ast.Call(ast.Attribute(squares, "sum", ast.Load()), [], [*axis])
    return ast.Call(ast.Name(ROOT, ast.Load()), [squares], [])
