"""Splits the body of an operator whose host part runs in Python into host statements and lifted pieces.

Loops over ranges are lifted where nothing in them needs Python itself; in others the loops inside are looked at.
Neighbouring lifted statements make a piece, which becomes an operator of its own (`outline_pieces.py`).
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard, cast

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.frontend.environment import DRAWS, MADE_ROWS, MISSING, helper, intrinsic, resolve
from brickwork.frontend.kept_lists import kept_names
from brickwork.frontend.lift import (
    SHAPE_METHODS,
    Piece,
    Split,
    Splitter,
    has_slice,
    head_names,
)
from brickwork.frontend.list_forms import CHANGING, made_lists
from brickwork.frontend.liveness import Liveness, inputs
from brickwork.frontend.loop_heads import is_iterable
from brickwork.frontend.row_calls import OF_ROWS
from brickwork.frontend.shared_names import side_by_side
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.stores import root
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_methods import NO_VALUES, Values, meant
from brickwork.language.kept import joined, stacked, taken
from brickwork.language.math import METHODS, is_pointwise

NUMBER_METHODS = frozenset(
    "size dim numel nelement item tolist stride storage_offset element_size is_contiguous is_floating_point get_device "
    "data_ptr".split()
)
"""Methods of a tensor that give no tensor."""
SEQUENCES = frozenset(
    "split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes meshgrid broadcast_tensors topk sort "
    "aminmax frexp".split()
)
"""Methods and functions that give several tensors."""

_OF_KEPT: frozenset[object] = frozenset({joined, stacked, taken})
"""What makes tensors of those that loops leave in place of lists."""
_OF_LISTS = CHANGING - {"sort"} | {"copy", "index"}
"""Methods of lists that tensors lack."""


class PythonSplitter(Splitter):
    """Finds what is lifted when the rest runs in Python."""

    def __init__(
        self,
        source: SourceFunction,
        tensors: Iterable[str],
        lists: Iterable[str],
        helpers: Mapping[types.FunctionType, SourceFunction],
        reason: str,
        values: Values = NO_VALUES,
        *,
        inside: bool = False,
    ) -> None:
        """Take the reason for which the host part needs Python."""
        super().__init__(source, tensors, lists, values=values, inside=inside)
        self._inside = inside
        loops = [loop for loop in all_nodes(source.node) if isinstance(loop, ast.For | ast.While)]
        looped = {id(item): item for loop in loops for item in all_nodes(loop)}
        self._looped = looped.keys()
        self._made_in_loops = {
            item.id for item in looped.values() if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
        }
        self._parameters = frozenset(self.tensors | self.lists)
        self._helpers = helpers
        self._reason = reason
        self._foreign_helpers: dict[tuple[SourceFunction, bool, bool], bool] = {}
        self._effects = {id(node.value) for node in all_nodes(source.node) if isinstance(node, ast.Expr)}
        self.kept = kept_names(source)
        self._around = 0
        """How many loops that Python runs are around the statement that is looked at."""
        self._grown: frozenset[str] | None = frozenset()
        """Lists whose methods are compiled; None: all."""

    @cached_property
    def _liveness(self) -> Liveness:
        """What is wanted after each statement, found where something is split."""
        return Liveness(self.source.node.body)

    def let_lists_grow(self) -> None:
        """Take the methods of all lists for compiled ones, as they are where nothing needs Python."""
        self._grown = None

    def split(self) -> Split:
        """Return the split of the whole body, with its pieces."""
        body = self.source.node.body
        while True:
            before = self.progress()
            self._note_all()
            self._visit(body)
            pieces = tuple(self._pieces())
            self.device = {name for piece in pieces for name in piece.outputs}
            if before == self.progress():
                break
        return Split(
            frozenset(self.lifted), frozenset(self.device), frozenset(self.tensors), self._reason, pieces=tuple(pieces)
        )

    def _note_all(self) -> None:
        """Note the tensors until no name is new: what is lifted once stays lifted."""
        known = -1
        while known < len(self.tensors):
            known = len(self.tensors)
            for node in all_nodes(self.source.node):
                self.note(node)

    # ------------------------------------------------------------ what is lifted

    def _visit(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if id(node) in self.lifted:
                continue
            if self._is_lifted(node):
                self.lifted.add(id(node))
                self.lifted |= {id(item) for item in all_nodes(node) if isinstance(item, ast.stmt)}
            else:
                self._around += isinstance(node, ast.For | ast.While)
                for inner in _bodies(node):
                    self._visit(inner)
                self._around -= isinstance(node, ast.For | ast.While)

    def _is_lifted(self, node: ast.stmt) -> bool:
        self._grown = self._lists_of(node)
        if isinstance(node, ast.Assign) and all(
            isinstance(item, ast.Name) and item.id in self.kept for item in node.targets
        ):
            return True
        foreign = self._is_foreign(node)
        self._grown = frozenset()
        if foreign or self.computes_whole(node) or _leaves_loop(node):
            return False
        match node:
            case ast.For() | ast.If() if any(self._rebinds(node, name) for name in self.wanted(node)):
                return False
            case ast.For():
                captured = self.source.captured
                return is_iterable(node.iter, captured, self.local) and self.touches_elements(node)
            case ast.Assign(value=ast.List() | ast.ListComp()):
                return False
            case ast.Assign() if is_element_read(node.value) or self._gives_rows(node.value):
                return False
            case ast.Assign(value=ast.Call(func=function)) if self._is_function_of_rows(function):
                return False
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() if self._names_row(node):
                return False
            case ast.Assign() | ast.AugAssign() if self._indexes_by_tensor(node):
                return False
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                parts = [part for item in targets for part in getattr(item, "elts", [item])]
                places = [item for item in parts if not isinstance(item, ast.Name)]
                return node.value is not None and any(self.touches_elements(item) for item in (node.value, *places))
            case ast.While() | ast.If() | ast.Expr() | ast.Assert() | ast.AugAssign():
                return self.touches_elements(node)
            case _:
                return False

    def _names_row(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> bool:
        """Return whether a statement gives a name a row: what other statements that Python runs need is a tensor."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        pairs = [] if value is None else [pair for target in targets for pair in side_by_side(target, value)]
        return any(isinstance(target, ast.Name) and self._is_row_there(found) for target, found in pairs)

    def _is_row_there(self, node: ast.expr) -> bool:
        """Return whether an expression has axes left, as far as is known."""
        match node:
            case ast.Subscript():
                part = self._around > 0 and self.is_row(node)
                return has_slice(node) or part or self._is_row_there(node.value)
            case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
                return self._is_row_there(one) or self._is_row_there(other)
            case ast.UnaryOp(operand=one):
                return self._is_row_there(one)
            case ast.Compare():
                return any(map(self._is_row_there, (node.left, *node.comparators)))
            case ast.Call():
                name = intrinsic(resolve(node.func, self.source.captured, self.local)) or ""
                makes = name.removeprefix("brickwork.") in MADE_ROWS
                return makes or (is_pointwise(name) and any(map(self._is_row_there, node.args)))
            case _:
                return False

    def _gives_rows(self, node: ast.expr) -> bool:
        """Return whether an expression calls a helper with functions of rows, which may give a row: Python runs it."""
        found = {
            helper(resolve(item.func, self.source.captured, self.local)) for item in all_nodes(node) if is_call(item)
        }
        inner = [source for item, source in self._helpers.items() if item in found and item not in OF_ROWS]
        names = (item.id for source in inner for item in all_nodes(source.node) if isinstance(item, ast.Name))
        return any(name.endswith(" of") for name in names)

    def _is_function_of_rows(self, node: ast.expr) -> bool:
        return helper(resolve(node, self.source.captured, self.local)) in OF_ROWS

    def _indexes_by_tensor(self, node: ast.stmt) -> bool:
        """Return whether a statement has `x[mask]` in it, which is torch's indexing of many elements at once."""
        whole = self.tensors - self.rows - self.device
        subscripts = [item.slice for item in all_nodes(node) if isinstance(item, ast.Subscript)]
        conditions = [item for item in subscripts if isinstance(item, ast.Compare)]
        names = [*subscripts, *(part for item in conditions for part in (item.left, *item.comparators))]
        return any(isinstance(item, ast.Name) and item.id in whole for item in names)

    def _is_foreign(self, node: ast.AST) -> bool:
        """Return whether something in a tree needs Python itself."""
        return any(self._needs_python(item) for item in all_nodes(node))

    def _lists_of(self, node: ast.stmt) -> frozenset[str]:
        """Return the lists that a statement makes for itself alone."""
        made = made_lists(node, self.source.captured, self.local)
        return (made - self.wanted(node) - inputs([node], frozenset())) | self.kept

    def _needs_python(self, item: ast.AST) -> bool:
        if id(item) in self.row_slices:
            return False
        match item:
            case ast.Return():
                return True
            case ast.Subscript():
                return has_slice(item)
            case ast.Attribute():
                return self.is_view(item) and resolve(item, self.source.captured, self.local) is MISSING
            case ast.Call():
                return self.calls_python(item)
            case _:
                return False

    def calls_python(self, node: ast.Call) -> bool:
        """Return whether a call is one of torch, an operator, a tensor's method, or a helper with such calls."""
        found = resolve(node.func, self.source.captured, self.local)
        if self.values.kinds and self.is_of_values(node):
            return any(self._is_foreign_function(inner) for inner in meant(node, self.source, self._helpers))
        if found is MISSING and isinstance(node.func, ast.Attribute):
            is_list = node.func.attr in _OF_LISTS or (node.func.attr == "sort" and id(node) in self._effects)
            if is_list and self._may_grow(node.func.value):
                return False
            if node.func.attr in METHODS or (node.func.attr == "item" and id(node) in self._looped):
                return self.is_whole(node.func.value)
            return node.func.attr not in SHAPE_METHODS
        if found is MISSING:
            return False
        name = intrinsic(found)
        part = any(isinstance(item, ast.Subscript) for item in node.args)
        known = self.tensors - self.rows - self._made_in_loops
        whole = not part and any(isinstance(item, ast.Name) and item.id in known for item in node.args)
        inside = self._inside or (id(node) in self._looped and not whole)
        if name is not None:
            makes = name.removeprefix("brickwork.") in MADE_ROWS and not (self._inside or id(node) in self._looped)
            return makes or (name.startswith("torch.") and self.is_of_tensors(node, name))
        called = helper(found)
        if called is None or found in _OF_KEPT:
            return callable(found)
        grows = any(map(self._may_grow, node.args))
        if called in OF_ROWS and not inside:
            return True
        return called in self._helpers and self._is_foreign_function(self._helpers[called], grows=grows, inside=inside)

    def _may_grow(self, node: ast.expr) -> bool:
        """Return whether an expression may be a list whose methods are compiled."""
        return self._grown is None or (isinstance(node, ast.Name) and node.id in self._grown)

    def _is_foreign_function(self, inner: SourceFunction, *, grows: bool = False, inside: bool = False) -> bool:
        """Return whether a helper calls torch.

        `grows`: it may be given a list whose methods are compiled; `inside`: loops call it, and may give it rows.
        """
        key = inner, grows, inside
        if key not in self._foreign_helpers:
            self._foreign_helpers[key] = False
            walker = PythonSplitter(inner, (), (), self._helpers, "", self.values, inside=inside)
            walker._foreign_helpers = self._foreign_helpers
            walker._grown = None if grows else frozenset()
            body = [item for item in inner.node.body if not isinstance(item, ast.Return)]
            returned = [item.value for item in all_nodes(inner.node) if isinstance(item, ast.Return)]
            parts = (*body, *(item for item in returned if item is not None))
            self._foreign_helpers[key] = any(walker._is_foreign_in_helper(item) for item in parts)
        return self._foreign_helpers[key]

    def _is_foreign_in_helper(self, node: ast.AST) -> bool:
        return any(not isinstance(item, ast.Return) and self._needs_python(item) for item in all_nodes(node))

    # ------------------------------------------------------------ which names are tensors

    def _note_tensors(self, target: ast.expr, found: ast.expr) -> None:
        super()._note_tensors(target, found)
        several = isinstance(found, ast.Call) and _last_name(found.func) in SEQUENCES and self.calls_python(found)
        shown = isinstance(found, ast.List | ast.Tuple) and any(map(self._gives_tensor, found.elts))
        if isinstance(target, ast.Name) and (shown or several):
            self.lists.add(target.id)
        if isinstance(target, ast.Name) and self._gives_tensor(found):
            self.tensors.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List) and self._is_call_for_tensors(found):
            self.tensors |= {item.id for item in target.elts if isinstance(item, ast.Name)}

    def _gives_tensor(self, node: ast.expr) -> bool:
        match node:
            case ast.Call():
                return self._is_call_for_tensors(node) and _last_name(node.func) not in SEQUENCES
            case ast.Attribute():
                return self._needs_python(node)
            case ast.Subscript():
                return has_slice(node) or self._gives_tensor(node.value)
            case ast.Name():
                return node.id in self.tensors
            case ast.BinOp():
                return self._gives_tensor(node.left) or self._gives_tensor(node.right)
            case ast.UnaryOp():
                return self._gives_tensor(node.operand)
            case ast.Compare():
                return any(
                    isinstance(item, ast.Name) and item.id in self.tensors for item in (node.left, *node.comparators)
                )
            case ast.IfExp():
                return self._gives_tensor(node.body) or self._gives_tensor(node.orelse)
            case _:
                return False

    def _is_call_for_tensors(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.calls_python(node) and _last_name(node.func) not in NUMBER_METHODS

    # ------------------------------------------------------------ pieces

    def _pieces(self) -> Iterator[Piece]:
        for number, (statements, repeated) in enumerate(self._runs(self.source.node.body, repeated=False)):
            written = {name for node in statements for name in self.assigned_names(node)}
            outputs = self._liveness.wanted_after(statements[-1]) & written
            needed = inputs(statements, outputs) & self.local
            yield Piece(number, statements, tuple(sorted(needed)), tuple(sorted(outputs)), repeated)

    def _runs(self, body: Sequence[ast.stmt], *, repeated: bool) -> Iterator[tuple[tuple[ast.stmt, ...], bool]]:
        """Yield the lifted statements that follow one another."""
        run: list[ast.stmt] = []
        for node in body:
            if id(node) in self.lifted:
                run.append(node)
                continue
            if run:
                yield tuple(run), repeated
                run = []
            for inner in _bodies(node):
                yield from self._runs(inner, repeated=repeated or isinstance(node, ast.For | ast.While))
        if run:
            yield tuple(run), repeated

    # ------------------------------------------------------------ what is wrong

    def wrong(self, split: Split) -> Iterator[Diagnostic]:
        """Yield what of the pieces cannot be run."""
        entry = self._liveness.entry - _parameter_names(self.source.node)
        for piece in split.pieces:
            place = self.source.location(piece.statements[0])
            for name in sorted({*piece.inputs} & entry & split.device):
                message = f"`{name}` may be read before it is assigned"
                yield Diagnostic(code="BW005", message=message, loc=place, help=f"give `{name}` a value before")
            written = {name for node in piece.statements for name in self.assigned_names(node)}
            for name in sorted({*piece.inputs} & written & self._begun_as_none()):
                message = f"`{name}` is None before these loops, and the host part runs in Python"
                advice = f"begin with a number that says so, such as `{name} = -1`, and test for that"
                yield Diagnostic(code="BW901", message=message, loc=place, help=advice)
            heads = frozenset(name for node in piece.statements for name in head_names(node))
            for name in sorted(heads & self._liveness.wanted_after(piece.statements[-1]) - {*piece.outputs}):
                message = f"`{name}` may be read before it is assigned"
                yield Diagnostic(code="BW005", message=message, loc=place, help=f"give `{name}` a value before")
            for name in piece.outputs:
                if name in self._parameters or any(self._rebinds(node, name) for node in piece.statements):
                    message = f"`{name}` stands for another tensor after these loops, and the host part runs in Python"
                    advice = "rebind it outside of the loops, or copy the elements"
                    yield Diagnostic(code="BW901", message=message, loc=place, help=advice)
            if piece.repeated and any(self._draws(node) for node in piece.statements):
                message = "random numbers are drawn inside a loop that runs in Python"
                advice = "move the torch calls out of the outer loop, or pass a tensor of random numbers"
                yield Diagnostic(code="BW901", message=message, loc=place, help=advice)

    def _begun_as_none(self) -> frozenset[str]:
        """Return the names that Python gives None."""
        pairs = (pair for node in all_nodes(self.source.node) for pair in _assignments_of(node, self.lifted))
        return frozenset(
            target.id
            for target, value in pairs
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and value.value is None
        )

    def in_python(self, statements: Sequence[ast.stmt]) -> Iterator[Diagnostic]:
        """Yield a warning for each loop that Python runs on elements or rows that it counts."""
        for node in statements:
            if id(node) in self.lifted or not isinstance(node, ast.For | ast.While | ast.If):
                continue
            inner = [*self.in_python(node.body), *self.in_python(node.orelse)]
            if isinstance(node, ast.For) and not inner:
                heads, left = frozenset(_names(node.target)), [*self._left(node.body)]
                is_counted = self._runs_over_tensors(node) or any(
                    self._counts(item, heads) or (isinstance(item, ast.expr) and self.is_allocation(item))
                    for each in left
                    for item in all_nodes(each)
                )
                calls = (item for each in left for item in all_nodes(each) if isinstance(item, ast.Call))
                called = next((item for item in calls if self.calls_python(item)), None)
                inner = [self._left_to_python(called)] if is_counted and called is not None else []
            yield from inner

    def _left(self, statements: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        """Yield the statements of a loop that Python runs, and the conditions of others."""
        for node in statements:
            if id(node) in self.lifted:
                continue
            if isinstance(node, ast.For | ast.While | ast.If):
                yield node.iter if isinstance(node, ast.For) else node.test
                yield from self._left([*node.body, *node.orelse])
            else:
                yield node

    def _counts(self, node: ast.AST, heads: frozenset[str]) -> bool:
        is_indexed = isinstance(node, ast.Subscript) and root(node) in self.tensors
        return is_indexed and not heads.isdisjoint(_names(cast("ast.Subscript", node).slice))

    def _left_to_python(self, node: ast.Call) -> Diagnostic:
        text = ast.unparse(node)
        name = (intrinsic(resolve(node.func, self.source.captured, self.local)) or "").removeprefix("torch.")
        message = f"the loop around `{text}` runs in Python, an iteration at a time: this call is not compiled"
        advice = "write it with `math` and loops, or call it on whole tensors, before or after the loop"
        if name in {"rand", "randn", "randint"}:
            advice = f"write `bw.{name}({'low, high' if name == 'randint' else ''})` for a random number"
        return Diagnostic(code="BW405", message=message, loc=self.source.location(node), help=advice)

    def wanted(self, node: ast.stmt) -> frozenset[str]:
        """Return the names that a statement assigns and that are read after it."""
        return self._liveness.wanted_after(node) & self.assigned_names(node)

    def _rebinds(self, node: ast.stmt, name: str) -> bool:
        """Return whether a statement makes a name stand for another tensor."""
        whole = self.tensors - self.rows - self.device
        return any(
            isinstance(target, ast.Name) and target.id == name and isinstance(found, ast.Name) and found.id in whole
            for target, found in _assignments(node)
        )

    def _draws(self, node: ast.AST) -> bool:
        return any(_draws(call, self.source, self._helpers) for call in all_nodes(node) if isinstance(call, ast.Call))


def _draws(node: ast.Call, source: SourceFunction, helpers: Mapping[types.FunctionType, SourceFunction]) -> bool:
    """Return whether a call draws a random number, itself or by helpers."""
    if intrinsic(resolve(node.func, source.captured, source.local)) in DRAWS:
        return True
    for inner in meant(node, source, helpers):
        rest = {function: item for function, item in helpers.items() if item is not inner}
        if any(_draws(call, inner, rest) for call in all_nodes(inner.node) if isinstance(call, ast.Call)):
            return True
    return False


def foreign_helper(
    source: SourceFunction,
    helpers: Mapping[types.FunctionType, SourceFunction],
    values: Values,
    whole: frozenset[str] = frozenset(),
) -> str:
    """Return why a helper makes the host part need Python; nothing where none does. `whole` are names of tensors."""
    splitter = PythonSplitter(source, whole, (), helpers, "", values)
    splitter.let_lists_grow()
    for node in all_nodes(source.node):
        if isinstance(node, ast.Call):
            called = helper(resolve(node.func, source.captured, splitter.local))
            is_helper = called in helpers if called is not None else splitter.is_of_values(node)
            if is_helper and splitter.calls_python(node):
                return f"line {node.lineno} calls {ast.unparse(node.func)}, which calls torch"
    return ""


def exchanged_names(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names that statements such as `a, b = b, a` make stand for what others stood for."""
    pairs = (pair for node in all_nodes(function) if isinstance(node, ast.Assign) for pair in _assignments(node))
    return frozenset(
        target.id for target, found in pairs if isinstance(target, ast.Name) and isinstance(found, ast.Name)
    )


def is_element_read(node: ast.expr | None) -> bool:
    """Return whether an expression is `x[i]`, which Python itself reads: an element, or a view of lower rank."""
    if not isinstance(node, ast.Subscript) or has_slice(node):
        return False
    while isinstance(node, ast.Subscript):
        if any(isinstance(item, ast.Subscript) for item in all_nodes(node.slice)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


def is_call(node: ast.AST) -> TypeGuard[ast.Call]:
    """Return whether a node is a call."""
    return isinstance(node, ast.Call)


def _assignments(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    for item in all_nodes(node):
        if isinstance(item, ast.Assign):
            for target in item.targets:
                yield from side_by_side(target, item.value)


def _assignments_of(node: ast.AST, lifted: set[int]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a statement that Python runs assigns."""
    return _assignments(node) if isinstance(node, ast.Assign) and id(node) not in lifted else iter(())


def _leaves_loop(node: ast.stmt) -> bool:
    """Return whether a `break` or `continue` in a statement belongs to a loop around it."""
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.For | ast.While):
        return any(map(_leaves_loop, node.orelse))
    return isinstance(node, ast.If) and any(_leaves_loop(item) for item in (*node.body, *node.orelse))


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.If | ast.For | ast.While):
        yield node.body
        yield node.orelse


def _names(node: ast.expr) -> Iterator[str]:
    return (item.id for item in all_nodes(node) if isinstance(item, ast.Name))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _parameter_names(node: ast.FunctionDef) -> frozenset[str]:
    arguments = node.args
    return frozenset(item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
