"""The host part as a Python function: the user's body with every lifted statement left out.

It makes the shapes and the allocations, runs the asserts that need no elements, and returns the results uninitialised:
under fake tensors that is the operator's fake implementation. Names keep the values captured at decoration.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from itertools import starmap
from typing import Any, TypeAlias, cast

from brickwork.frontend.definition import Definition
from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.lower import lower
from brickwork.frontend.named_devices import DEVICE, named_device, with_devices
from brickwork.frontend.parameters import argument_type
from brickwork.frontend.source import Frozen
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Cast,
    Constant,
    Expression,
    ListParameter,
    Node,
    Parameter,
    Read,
    Return,
    ScalarParameter,
    Select,
    Size,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite

CELLS = "__brickwork_cell__"

Place: TypeAlias = tuple[int, int, type[ast.AST]]


def host_function(definition: Definition) -> Callable[..., object]:
    """Return the function without its lifted statements."""
    if definition.written is not None:
        return definition.written.host
    tree = copy.deepcopy(definition.source.node)
    lifted = _positions(definition)
    tree.decorator_list = []
    tree.returns = None
    for item in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs):
        item.annotation = None
    names = [item.arg for item in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    tree.body = _without(tree.body, lifted) or [ast.Pass()]
    tree = cast("ast.FunctionDef", _Results(definition, names).visit(tree))
    tree.args.defaults = []
    tree.args.kw_defaults = [None for _ in tree.args.kwonlyargs]
    Frozen(definition.source).visit(tree)
    with_devices(tree, definition.source)
    module = ast.fix_missing_locations(ast.Module(body=[tree], type_ignores=[]))
    namespace: dict[str, object] = {
        "__builtins__": builtins,
        **definition.source.captured,
        CELLS: functools.partial(_cell, definition),
        DEVICE: named_device(definition.source),
    }
    exec(compile(module, definition.source.file, "exec"), namespace)  # noqa: S102 (the user's own source)
    function = cast("types.FunctionType", namespace[definition.name])
    function.__defaults__ = definition.source.function.__defaults__
    function.__kwdefaults__ = definition.source.keyword_defaults or None
    return function


def _cell(definition: Definition, position: int, arguments: tuple[Any, ...]) -> object:
    """Return the tensor for what a loop computes, a number or a list; its type and room follow from the arguments'."""
    items: list[Any] = []
    for item in arguments:
        items += item if isinstance(item, list | tuple) else [item]
    tensors = [item for item in items if hasattr(item, "new_empty")]
    types = tuple(starmap(argument_type, zip(definition.parameters, arguments, strict=True)))
    program = lower(definition, Signature(types, default_dtype=definition.default_dtype))
    returned = next(node for node in program.body if isinstance(node, Return)).tensors[position]
    made = next(node for node in program.body if isinstance(node, Allocate) and node.tensor == returned)
    dtype = getattr(sys.modules["torch"], returned.type.element.name)
    known = dict(zip(program.parameters, arguments, strict=False))
    rooms = {node.tensor: node.sizes for node in program.body if isinstance(node, Allocate)}
    sizes = [_number(_of_arguments(size, rooms), known) for size in made.sizes[: returned.type.axes]]
    return tensors[0].new_empty(sizes, dtype=dtype) if tensors else sys.modules["torch"].empty(sizes, dtype=dtype)


def _of_arguments(found: Expression, rooms: Mapping[Tensor, tuple[Expression, ...]]) -> Expression:
    """Return an expression without the sizes of tensors that the host allocates."""

    def visit(node: Node) -> Node:
        if isinstance(node, Size) and node.tensor in rooms:
            return _of_arguments(rooms[node.tensor][node.axis], rooms)
        return node

    return rewrite(found, visit)


def _number(node: Expression, known: Mapping[Parameter, Any]) -> Any:
    """Return what an expression of shapes and arguments is worth, which may be symbolic."""
    torch = sys.modules["torch"]
    match node:
        case Constant():
            return node.value
        case Size():
            return next(
                tensor.shape[node.axis]
                for item, given in known.items()
                for one, tensor in _tensors(item, given)
                if one == node.tensor
            )
        case Read():
            return next(
                value
                for item, given in known.items()
                for symbol, value in _scalars(item, given)
                if symbol == node.symbol
            )
        case Cast():
            return _number(node.operand, known)
        case Select():
            parts = (_number(part, known) for part in (node.condition, node.then, node.otherwise))
            return torch.sym_ite(*parts)
        case Apply():
            name = _NAMES.get(node.operator.name, node.operator.name)
            operands = [_number(part, known) for part in node.operands]
            return (getattr(torch, name) if name.startswith("sym_") else getattr(operator, name))(*operands)
        case _:
            raise TypeError(f"{type(node).__name__} is not known before a call")


_NAMES = {"maximum": "sym_max", "minimum": "sym_min"}


def _tensors(item: Parameter, given: Any) -> Iterable[tuple[Tensor, Any]]:
    match item:
        case TensorParameter():
            return [(item.tensor, given)]
        case TensorListParameter():
            return zip(item.tensors, given, strict=True)
        case _:
            return ()


def _scalars(item: Parameter, given: Any) -> Iterable[tuple[Symbol, Any]]:
    match item:
        case ScalarParameter():
            return [(item.symbol, given)]
        case ListParameter():
            return zip(item.symbols, given, strict=True)
        case _:
            return ()


def _position(node: ast.stmt) -> Place:
    return node.lineno, node.col_offset, type(node)


def _positions(definition: Definition) -> set[Place]:
    """Return where the lifted statements stand; a copy of the tree has other identities."""
    return {
        _position(node)
        for node in ast.walk(definition.source.node)
        if isinstance(node, ast.stmt) and id(node) in definition.split.lifted
    }


def _without(body: list[ast.stmt], lifted: set[Place]) -> list[ast.stmt]:
    """Return the statements that are not lifted, inner ones too."""
    kept: list[ast.stmt] = []
    for node in body:
        if _position(node) in lifted:
            continue
        if isinstance(node, ast.If | ast.For):
            node.body = _without(node.body, lifted) or [ast.copy_location(ast.Pass(), node)]
            node.orelse = _without(node.orelse, lifted)
        kept.append(node)
    return kept


class _Results(ast.NodeTransformer):
    """Replaces returned numbers by cells."""

    def __init__(self, definition: Definition, parameters: list[str]) -> None:
        self.source = definition.source
        self.local = definition.source.local
        self.split = definition.split
        self.parameters = parameters
        self.count = definition.results

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """Rewrite the results of one return."""
        if isinstance(node.value, ast.Tuple | ast.List):
            node.value = ast.Tuple([self._result(*item) for item in enumerate(node.value.elts)], ast.Load())
        elif node.value is not None and self.count > 1:
            node.value = ast.Tuple([self._cell(place) for place in range(self.count)], ast.Load())
        elif node.value is not None:
            node.value = self._result(0, node.value)
        return node

    def _result(self, position: int, node: ast.expr) -> ast.expr:
        if self._is_tensor(node) or (isinstance(node, ast.Constant) and node.value is None):
            return node
        return self._cell(position)

    def _cell(self, position: int) -> ast.expr:
        arguments = ast.Tuple([ast.Name(name, ast.Load()) for name in self.parameters], ast.Load())
        return ast.Call(ast.Name(CELLS, ast.Load()), [ast.Constant(position), arguments], [])

    def _is_tensor(self, node: ast.expr) -> bool:
        """Return whether a result is a tensor that the host has: under a name, or just made."""
        if isinstance(node, ast.Name):
            return node.id in self.split.tensors - self.split.device - self.split.arrays
        if not isinstance(node, ast.Call):
            return False
        found = resolve(node.func, self.source.captured, self.local)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return intrinsic(found) in ALLOCATIONS or (found is MISSING and method in NEW_METHODS)
