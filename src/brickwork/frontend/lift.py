"""Splits a body into host statements and lifted ones, by syntax alone.

Lifted are loops over ranges, statements that read or write elements or draw random numbers, and statements that share a
variable with them. What the host part can be compiled from is decided in here too: the first thing that needs Python
itself is the `reason`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.frontend.environment import (
    ALLOCATIONS,
    DRAWS,
    MISSING,
    NEW_METHODS,
    OF_TYPES,
    helper,
    intrinsic,
    resolve,
)
from brickwork.frontend.loop_heads import is_iterable, jumps, sources
from brickwork.frontend.ranks import indexed, least_ranks
from brickwork.frontend.row_forms import is_slice, row_slices
from brickwork.frontend.rules import REDUCTIONS
from brickwork.frontend.source import SourceFunction, rebound_names
from brickwork.frontend.stores import root
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_methods import NO_VALUES, Values
from brickwork.language.math import METHODS, is_pointwise, is_without_formula
from brickwork.records import dataclass

SHAPE_METHODS = frozenset({"size", "dim", "numel", "is_floating_point", "is_complex"})
"""Methods of a tensor that ask for its shape or its type."""
ALLOCATION_KEYWORDS = frozenset({"dtype", "device", "size", "fill_value", "requires_grad"})
"""Keywords of calls that make a tensor, as far as they are compiled."""
VIEW_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})
"""Attributes of a tensor that are views of it."""
NUMBER_ATTRIBUTES = frozenset({"real", "imag"})
"""Those that an element has, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Lifted statements that follow one another in a host part that runs in Python, and the local names they share."""

    number: int
    statements: tuple[ast.stmt, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Names that the statements assign and that are read after them."""
    repeated: bool
    """Whether a loop of the host part is around it."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Which statements are lifted (by identity), which variables they set, which names are tensors."""

    lifted: frozenset[int]
    device: frozenset[str]
    tensors: frozenset[str]
    reason: str
    """Why the host part needs Python; empty where it is compiled."""
    arrays: frozenset[str] = frozenset()
    """Names of lists of numbers that lifted statements make and store into."""
    pieces: tuple[Piece, ...] = ()
    """The lifted statements of a host part in Python, as they are launched."""


class Splitter:
    """Looks at a function's statements until nothing changes any more."""

    def __init__(
        self,
        source: SourceFunction,
        tensors: Iterable[str],
        lists: Iterable[str] = (),
        arrays: frozenset[str] = frozenset(),
        values: Values = NO_VALUES,
        *,
        inside: bool = False,
    ) -> None:
        """Begin with the parameters that are tensors, those that are lists of tensors, and the lists of numbers.

        `inside`: this is a helper that loops call.
        """
        self.values = values
        self.row_slices = row_slices(source.node, source.captured, source.local, inside=inside)
        """The slices, and the calls that reduce rows, that are compiled."""
        self.source = source
        self.local = source.local
        self.rebound = rebound_names(source.node)
        self.tensors: set[str] = set(tensors)
        self.lists: set[str] = set(lists)
        self.arrays = arrays
        self.takes_tensors = bool(self.tensors or self.lists)
        self.ranks = least_ranks(source.node, self._is_pointwise_call)
        self.rows: set[str] = set()
        """Names that `x[i]` was assigned to: elements, or views of lower rank."""
        self.device: set[str] = set()
        self.lifted: set[int] = set()

    def split(self) -> Split:
        """Return the split of the whole body."""
        while True:
            before = self.progress()
            for node in all_nodes(self.source.node):
                self.note(node)
            self._visit(self.source.node.body)
            if before == self.progress():
                break
        reason = next(self._reasons(self.source.node.body), "")
        return Split(frozenset(self.lifted), frozenset(self.device), frozenset(self.tensors), reason, self.arrays)

    def progress(self) -> tuple[int, ...]:
        """Return what grows as long as statements tell more."""
        return len(self.tensors), len(self.rows), len(self.device), len(self.lifted)

    def note(self, node: ast.AST) -> None:
        """Note which names a statement lets stand for tensors or their rows."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._note_tensors(target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            for target, found in sources(node.target, node.iter, self.source.captured, self.local):
                if isinstance(target, ast.Name) and root(found) in self.tensors:
                    self.tensors.add(target.id)
                    self.rows.add(target.id)
                elif isinstance(target, ast.Name) and isinstance(found, ast.Name) and found.id in self.lists:
                    self.tensors.add(target.id)

    def _note_tensors(self, target: ast.expr, found: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(found, ast.Tuple) and len(target.elts) == len(found.elts):
            for part, item in zip(target.elts, found.elts, strict=True):
                self._note_tensors(part, item)
        elif isinstance(target, ast.Name) and (self.is_allocation(found) or root(found) in self.tensors):
            self.tensors.add(target.id)
            if isinstance(found, ast.Subscript) or root(found) in self.rows:
                self.rows.add(target.id)
        elif isinstance(target, ast.Name) and isinstance(found, ast.Subscript) and root(found) in self.lists:
            self.tensors.add(target.id)
            if isinstance(found.value, ast.Subscript):
                self.rows.add(target.id)
        elif isinstance(target, ast.Name) and isinstance(found, ast.Name) and found.id in self.lists:
            self.lists.add(target.id)

    def runs_over_lists(self, node: ast.For) -> bool:
        """Return whether a `for` runs over lists of tensors, item by item."""
        found = sources(node.target, node.iter, self.source.captured, self.local)
        return any(isinstance(item, ast.Name) and item.id in self.lists for _, item in found)

    def reads_element(self, node: ast.Subscript) -> bool:
        """Return whether `x[i]` is an element or a row: of a tensor, or of a tensor in a list."""
        name = root(node)
        inside = name in self.lists and isinstance(node.value, ast.Subscript)
        return (name in self.tensors or inside) and (not has_slice(node) or id(node) in self.row_slices)

    def computes_whole(self, node: ast.stmt) -> bool:
        """Return whether a statement computes with a tensor as a whole, as `x * 2` does."""
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return) or node.value is None:
            return False
        operands: list[ast.expr] = [node.target] if isinstance(node, ast.AugAssign) else []
        for item in all_nodes(node.value):
            if isinstance(item, ast.BinOp):
                operands += (item.left, item.right)
            elif isinstance(item, ast.UnaryOp):
                operands.append(item.operand)
            elif isinstance(item, ast.Compare):
                operands += (item.left, *item.comparators)
        whole = self.tensors - self.rows
        names = any(isinstance(item, ast.Name) and item.id in whole for item in operands)
        return names or any(isinstance(item, ast.Subscript) and self.is_row(item) for item in operands)

    def name_of(self, node: ast.expr) -> str | None:
        """Return `module.function` of a known function."""
        return intrinsic(resolve(node, self.source.captured, self.local))

    def is_allocation(self, node: ast.expr) -> bool:
        """Return whether the expression makes a tensor."""
        if not isinstance(node, ast.Call):
            return False
        if self.name_of(node.func) in ALLOCATIONS:
            return True
        return isinstance(node.func, ast.Attribute) and node.func.attr in NEW_METHODS

    def touches_elements(self, node: ast.AST) -> bool:
        """Return whether evaluating the tree needs elements, random numbers or variables of lifted statements."""
        for item in all_nodes(node):
            if isinstance(item, ast.Subscript) and self.reads_element(item):
                return True
            if isinstance(item, ast.Name) and (item.id in self.device or item.id in self.arrays):
                return True
            if isinstance(item, ast.comprehension) and self._runs_over_tensors(item):
                return True
            if isinstance(item, ast.Call):
                name = self.name_of(item.func)
                if name in DRAWS:
                    return True
                if name in REDUCTIONS and len(item.args) == 1 and root(item.args[0]) in self.tensors:
                    return True
                called = helper(resolve(item.func, self.source.captured, self.local))
                known = self.tensors | self.lists
                given = (*item.args, *(word.value for word in item.keywords))
                is_known = called is not None or self.is_of_values(item)
                if is_known and any(root(argument) in known for argument in given):
                    return True
        return False

    def _runs_over_tensors(self, node: ast.comprehension | ast.For) -> bool:
        found = sources(node.target, node.iter, self.source.captured, self.local)
        return any(root(item) in self.tensors for _, item in found)

    def is_of_tensors(self, node: ast.Call, name: str | None) -> bool:
        """Return whether a call of one of torch's functions is not one of a number."""
        if not is_pointwise(name) or id(node) in self.row_slices:
            return name not in OF_TYPES and id(node) not in self.row_slices
        return any(self.is_whole(item) for item in (*node.args, *(word.value for word in node.keywords)))

    def is_row(self, node: ast.expr) -> bool:
        """Return whether `x[i]` is known to leave dimensions of a tensor."""
        name, count = indexed(node)
        return name in self.tensors and count < self.ranks.get(name or "", 0)

    def without_formula(self) -> Iterator[Diagnostic]:
        """Yield a refusal for each of torch's and NumPy's functions that is called on an element without a meaning."""
        loops = [node for node in all_nodes(self.source.node) if isinstance(node, ast.For | ast.While)]
        calls = {id(node): node for loop in loops for node in all_nodes(loop) if isinstance(node, ast.Call)}
        for node in calls.values():
            if is_without_formula(self.name_of(node.func)) and any(map(self._is_element, node.args)):
                name = ast.unparse(node.func)
                message = f"`{name}` of an element is not part of the language"
                advice = f"call it on the whole tensor before the loop, `y = {name}(...)`, and read `y`"
                yield Diagnostic(code="BW004", message=message, loc=self.source.location(node), help=advice)
            elif self._is_numpys(node) and any(map(self._holds_element, node.args)):
                message = f"`{ast.unparse(node.func)}` of an element is not part of the language"
                advice = "write the function of `math` or `torch` that does it, such as `math.exp` or `torch.clamp`"
                yield Diagnostic(code="BW004", message=message, loc=self.source.location(node), help=advice)

    def _is_numpys(self, node: ast.Call) -> bool:
        found = resolve(node.func, self.source.captured, self.local)
        if intrinsic(found) is not None:
            return False
        return "numpy" in {str(getattr(item, "__module__", "")).split(".")[0] for item in (found, type(found))}

    def _holds_element(self, node: ast.expr) -> bool:
        return any(isinstance(item, ast.expr) and self._is_element(item) for item in all_nodes(node))

    def _is_pointwise_call(self, node: ast.Call) -> bool:
        name = self.name_of(node.func)
        return is_pointwise(name) or is_without_formula(name)

    def _is_element(self, node: ast.expr) -> bool:
        """Return whether an expression is an element of a tensor, as far as is known, or a variable of a loop."""
        if isinstance(node, ast.Subscript):
            return root(node) in self.tensors and not has_slice(node) and not self.is_row(node)
        return isinstance(node, ast.Name) and node.id in self.rows and not self.ranks.get(node.id)

    def is_of_elements(self, node: ast.expr) -> bool:
        """Return whether an expression is computed of elements, as far as is known, and is a number."""
        known = any(isinstance(item, ast.Name) and item.id in self.device for item in all_nodes(node))
        return (known or self._holds_element(node)) and not self.is_whole(node)

    def is_whole(self, node: ast.expr) -> bool:
        """Return whether an expression is a tensor, and not an element or a number."""
        match node:
            case ast.Name():
                return node.id in self.tensors and (node.id not in self.rows or self.ranks.get(node.id, 0) > 0)
            case ast.Subscript():
                return has_slice(node) or self.is_row(node) or (self.is_whole(node.value) and root(node) is None)
            case ast.BinOp():
                return self.is_whole(node.left) or self.is_whole(node.right)
            case ast.UnaryOp():
                return self.is_whole(node.operand)
            case ast.IfExp():
                return self.is_whole(node.body) or self.is_whole(node.orelse)
            case ast.Compare():
                return self.is_whole(node.left) or any(map(self.is_whole, node.comparators))
            case ast.Attribute():
                return self.is_view(node)
            case ast.Call() if id(node) in self.row_slices:
                return False
            case ast.Call():
                name = self.name_of(node.func)
                if name is not None:
                    return name.startswith("torch.") and self.is_of_tensors(node, name)
                if self.values.methods and self.is_of_values(node):
                    return False
                if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                    return self.is_whole(node.func.value)
                method = isinstance(node.func, ast.Attribute) and node.func.attr not in SHAPE_METHODS | {"item"}
                return method and resolve(node.func, self.source.captured, self.local) is MISSING
            case _:
                return False

    def is_view(self, node: ast.Attribute) -> bool:
        """Return whether an attribute is a view of a tensor: of an element it is a number."""
        return node.attr in VIEW_ATTRIBUTES and (node.attr not in NUMBER_ATTRIBUTES or self.is_whole(node.value))

    def is_of_values(self, node: ast.Call) -> bool:
        """Return whether a call makes a value with parts, or may be one of its methods."""
        found = resolve(node.func, self.source.captured, self.local)
        if found is MISSING and isinstance(node.func, ast.Attribute) and node.func.attr in self.values.methods:
            return root(node.func.value) not in self.tensors and not self.is_whole(node.func.value)
        return self.values.has(found) or self.values.holds(found)

    def is_operator(self, node: ast.Call) -> bool:
        """Return whether a captured object is called that is neither known nor a Python function to inline."""
        found = resolve(node.func, self.source.captured, self.local)
        if found is MISSING or not callable(found) or intrinsic(found) is not None or helper(found) is not None:
            return False
        return not self.is_of_values(node)

    def _visit(self, statements: Sequence[ast.stmt]) -> None:
        for node in statements:
            if self._is_lifted(node):
                self.lifted.add(id(node))
                self.device |= self.assigned_names(node) - (self.tensors - self.rows) - self.arrays
            elif isinstance(node, ast.If):
                self._visit(node.body)
                self._visit(node.orelse)
            elif isinstance(node, ast.For) and self.runs_over_lists(node):
                self._visit(node.body)

    def assigned_names(self, node: ast.stmt) -> frozenset[str]:
        """Return the names that a statement assigns; of those in the heads of loops the ones that outlive the loop."""
        return frozenset(stored_names(node)) | (head_names(node) & self.rebound)

    def _is_lifted(self, node: ast.stmt) -> bool:
        match node:
            case ast.For() if self.runs_over_lists(node):
                return bool(jumps(node.body)) or bool(node.orelse)
            case ast.For():
                return is_iterable(node.iter, self.source.captured, self.local)
            case ast.While():
                return True
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                if node.value is None or self.is_allocation(node.value):
                    return False
                stored = set(stored_names(node))
                of_loops = bool(stored & (self.device | self.arrays)) or self._unpacks(node)
                return of_loops or self.touches_elements(node)
            case ast.If():
                whole = [*all_nodes(node)]
                if any(isinstance(item, ast.Return) or self._allocates(item) for item in whole):
                    return False
                inner = any(self._is_lifted(item) or self._exchanges(item) for item in (*node.body, *node.orelse))
                return inner or self.touches_elements(node.test)
            case ast.Delete():
                return any(root(item) in self.device | self.arrays for item in node.targets)
            case ast.Expr() | ast.Assert() | ast.Raise():
                return self.touches_elements(node)
            case _:
                return False

    def _unpacks(self, node: ast.stmt) -> bool:
        """Return whether a statement gives names the items of a tensor."""
        match node:
            case ast.Assign(targets=[ast.Tuple() | ast.List()], value=ast.Name(id=name)):
                return name in self.tensors
            case _:
                return False

    def _exchanges(self, node: ast.stmt) -> bool:
        """Return whether a statement lets a name that stands for a tensor stand for another one."""
        whole = self.tensors - self.rows
        values = node.value.elts if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) else []
        if isinstance(node, ast.Assign) and not values:
            values = [node.value]
        return any(isinstance(item, ast.Name) and item.id in whole for item in values)

    def _allocates(self, node: ast.AST) -> bool:
        return isinstance(node, ast.expr) and self.is_allocation(node)

    def _reasons(self, statements: Sequence[ast.stmt]) -> Iterator[str]:
        """Yield what of a body cannot be compiled and so is left to Python."""
        for node in statements:
            if self.computes_whole(node):
                yield f"line {node.lineno} computes with a tensor as a whole"
            if id(node) in self.lifted:
                made = next((item for item in all_nodes(node) if self._allocates(item)), None)
                if made is not None:
                    yield f"line {getattr(made, 'lineno', 0)} makes a tensor inside a loop"
                yield from self._foreign(node)
                continue
            if isinstance(node, ast.If):
                yield from self._foreign(node.test)
                if self._decides(node):
                    yield f"line {node.lineno} decides by a value what is allocated or returned"
                yield from self._reasons(node.body)
                yield from self._reasons(node.orelse)
            elif isinstance(node, ast.For) and self.runs_over_lists(node):
                yield from self._foreign(node.iter)
                yield from self._reasons(node.body)
            else:
                yield from self._foreign(node)

    def _decides(self, node: ast.If) -> bool:
        """Return whether what an `if` allocates or returns depends on more than types and ranks."""
        inner = [item for statement in (*node.body, *node.orelse) for item in all_nodes(statement)]
        if not any(isinstance(item, ast.Return) or self._allocates(item) for item in inner):
            return False
        return any(self._is_value(item) for item in _leaves(node.test))

    def _is_value(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return False
            case ast.Name():
                return node.id in self.local
            case ast.Attribute():
                return node.attr not in {"ndim", "dtype"} and resolve(node, self.source.captured, self.local) is MISSING
            case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(attr="shape")]):
                return False
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name in self.lists:
                return False
            case ast.Call(func=ast.Attribute(attr="dim" | "is_floating_point" | "is_complex")):
                return False
            case _:
                return True

    def _foreign(self, node: ast.AST) -> Iterator[str]:
        known = self.tensors | self.lists
        raised = {id(item.exc) for item in all_nodes(node) if isinstance(item, ast.Raise)}
        for item in all_nodes(node):
            line = getattr(item, "lineno", 0)
            if id(item) in self.row_slices or (id(node) in self.lifted and id(item) in raised):
                continue
            if isinstance(item, ast.Subscript) and root(item) in self.tensors and has_slice(item):
                yield f"line {line} takes a slice of a tensor"
            if isinstance(item, ast.Attribute) and root(item.value) in known and self.is_view(item):
                yield f"line {line} takes `.{item.attr}` of a tensor"
            if isinstance(item, ast.Call) and self.is_allocation(item):
                for word in item.keywords:
                    if word.arg not in ALLOCATION_KEYWORDS:
                        yield f"line {line} passes `{word.arg}` to {ast.unparse(item.func)}"
                    elif word.arg == "device" and (device := self._foreign_device(word.value)):
                        yield f"line {line} makes a tensor on {device!r}"
                given = (each.slice if self._is_part(each) else each for each in item.args)
                if any(map(self.touches_elements, (*given, *(word.value for word in item.keywords)))):
                    yield f"line {line} makes a tensor of what loops compute"
                continue
            if not isinstance(item, ast.Call):
                continue
            name = self.name_of(item.func)
            if self.is_operator(item):
                yield f"line {line} calls {ast.unparse(item.func)}"
            if name is not None and name.startswith("torch.") and self.is_of_tensors(item, name):
                yield f"line {line} calls {name}"
            if name is None and isinstance(item.func, ast.Attribute) and self._has_methods(item.func.value):
                if item.func.attr in SHAPE_METHODS | {"item"}:
                    continue
                if item.func.attr in METHODS and not self.is_whole(item.func.value):
                    continue
                yield f"line {line} calls the method `{item.func.attr}` of a tensor"

    def _is_part(self, node: ast.expr) -> TypeGuard[ast.Subscript]:
        """Return whether an expression is a part of a tensor that a new one is made like."""
        return isinstance(node, ast.Subscript) and id(node) in self.row_slices

    def _has_methods(self, node: ast.expr) -> bool:
        """Return whether an expression is a tensor, under a name or just made, or a list of them."""
        return root(node) in self.tensors | self.lists or self.is_allocation(node)

    def _foreign_device(self, node: ast.expr) -> str:
        """Return the device that is named where native code makes no tensors; empty if it may be the arguments'."""
        found = node.value if isinstance(node, ast.Constant) else resolve(node, self.source.captured, self.local)
        if not isinstance(found, str) and type(found).__name__ != "device":
            return ""
        own = {"cpu", "cuda"} if self.takes_tensors else {"cpu"}
        return "" if str(found) in own else str(found)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    """Yield what a condition compares."""
    match node:
        case ast.BoolOp():
            for item in node.values:
                yield from _leaves(item)
        case ast.UnaryOp():
            yield from _leaves(node.operand)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return
        case ast.Compare():
            for item in (node.left, *node.comparators):
                yield from _leaves(item)
        case _:
            yield node


def has_slice(node: ast.Subscript) -> bool:
    """Return whether an index holds a slice."""
    return any(map(is_slice, all_nodes(node.slice)))


def head_names(node: ast.stmt) -> frozenset[str]:
    """Return the names in the heads of loops."""
    heads = [item.target for item in all_nodes(node) if isinstance(item, ast.For)]
    return frozenset(item.id for head in heads for item in all_nodes(head) if isinstance(item, ast.Name))


def stored_names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement assigns, but for those in the heads of loops."""
    heads = {id(name) for item in all_nodes(node) if isinstance(item, ast.For) for name in all_nodes(item.target)}
    for item in all_nodes(node):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and id(item) not in heads:
            yield item.id
