"""`op.python`: the body of an operator run by Python, under the rulings for numbers, elements and random draws.

Lifted statements and helpers are rewritten so that operators, calls, reads and stores go through
`reference_execution.py`; host statements stay as they are. Nothing is typed or compiled ahead: this is the reference
that compiled code is compared with, so it shares with it only the arithmetic of scalars.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from brickwork.frontend.arithmetic import BINARY, COMPARE
from brickwork.frontend.complex_sources import Helpers
from brickwork.frontend.definition import Definition
from brickwork.frontend.environment import LOOPS, MISSING, is_tensor, resolve
from brickwork.frontend.given_numbers import given_names, is_literal
from brickwork.frontend.loop_heads import PARTS, head_name
from brickwork.frontend.lower import PYTHON_ERRORS, lower, refuse_wrong_ranks
from brickwork.frontend.named_devices import DEVICE, makes_tensor, named_device, with_device
from brickwork.frontend.parameters import NO_DEFAULT
from brickwork.frontend.random_sites import draw_sites, place
from brickwork.frontend.reference_execution import Execution
from brickwork.frontend.reference_results import finish
from brickwork.frontend.reference_scalar import dtype_of, scalar
from brickwork.frontend.regular_loops import changing_names, is_regular
from brickwork.frontend.results import check_results
from brickwork.frontend.row_forms import is_sliced
from brickwork.frontend.source import SourceFunction
from brickwork.ir.dtypes import FLOAT64, INT64, DType
from brickwork.ir.nodes import Allocate, Constant, Return
from brickwork.ir.signature import AbsentType, ArgumentType, ListType, ScalarType, Signature, TensorListType, TextType
from brickwork.ir.tensor_types import type_of
from brickwork.language.kept import Kept

RUN = "__brickwork__"
"""The name of the execution in rewritten functions: their first parameter."""


def python_function(definition: Definition) -> Callable[..., Any]:
    """Return the operator as a Python function; it also takes `out=`, and `key=` or `generator=` if it draws."""
    source = definition.source
    helpers = Compiled(Helpers(definition.helpers))
    ruled = None if definition.host == "native" else definition.split.lifted
    given = given_names(source, definition.split.lifted)
    body = _compiled(source, ruled, definition.split.device, given)
    sites = draw_sites(definition.whole or source, definition.helpers)
    options = {"out", *(("key", "generator") if definition.draws_random else ())}

    def run(*arguments: Any, **named: Any) -> Any:
        given = {name: named.pop(name) for name in options & named.keys() if name not in declared}
        key, generator = given.get("key"), given.get("generator")
        execution = Execution(source.name, helpers, sites, key, generator, definition.values, helpers.sources)
        arguments, named = _with_defaults(definition, arguments, named)

        def types() -> list[tuple[DType, tuple[int, ...]]]:
            rest = (named[item.name] for item in definition.parameters[len(arguments) :])
            return _result_types(definition, [*arguments, *rest])

        try:
            returned = body(execution, *arguments, **named)
            returned = (returned,) if isinstance(returned, Kept) else returned
            if isinstance(returned, list | tuple):
                check_results(source, cast("Sequence[object]", returned), definition.results)
            return finish(returned, given.get("out"), types)
        except PYTHON_ERRORS:
            refuse_wrong_ranks(definition, arguments, named)
            raise

    declared = {item.name for item in definition.parameters}
    run.__name__ = run.__qualname__ = source.name
    run.__doc__ = source.function.__doc__
    return run


def _with_defaults(
    definition: Definition, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with those that are left out; pieces of a function have no defaults."""
    if all(item.default is NO_DEFAULT for item in definition.parameters):
        return arguments, named
    bound = inspect.signature(definition.source.function).bind(*arguments, **named)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _result_types(definition: Definition, values: Sequence[Any]) -> list[tuple[DType, tuple[int, ...]]]:
    """Return the element types that the results have for these arguments, and their sizes that are always the same."""
    types = tuple(map(_argument_type, values))
    program = lower(definition, Signature(types, default_dtype=definition.default_dtype))
    returned = [tensor for node in program.body if isinstance(node, Return) for tensor in node.tensors]
    sizes = {node.tensor: node.sizes for node in program.body if isinstance(node, Allocate)}
    fixed = [tuple(int(size.value) for size in sizes[tensor] if isinstance(size, Constant)) for tensor in returned]
    return [(tensor.type.element, last) for tensor, last in zip(returned, fixed, strict=True)]


def _argument_type(value: Any) -> ArgumentType:
    if is_tensor(value):
        return type_of(dtype_of(value), value.ndim)
    if value is None:
        return AbsentType()
    if isinstance(value, str):
        return TextType(value)
    if isinstance(value, list | tuple):
        if any(map(is_tensor, cast("Sequence[Any]", value))):
            return TensorListType(tuple(type_of(dtype_of(item), item.ndim) for item in cast("Sequence[Any]", value)))
        items = [scalar(item).dtype for item in cast("Sequence[Any]", value)]
        return ListType(FLOAT64 if FLOAT64 in items else items[0] if items else INT64, len(items))
    return ScalarType(scalar(value).dtype)


# ---------------------------------------------------------------- rewriting


class Compiled(Mapping[types.FunctionType, types.FunctionType]):
    """The rewritten helpers of an operator, and those of complex numbers; each is rewritten when it is first called."""

    def __init__(self, sources: Helpers) -> None:
        """Take their parsed forms."""
        self.sources = sources
        self._made: dict[types.FunctionType, types.FunctionType] = {}

    def __getitem__(self, function: types.FunctionType) -> types.FunctionType:
        """Return the rewritten form of a function."""
        if function not in self._made:
            self._made[function] = _compiled(self.sources[function], None, None)
        return self._made[function]

    def __contains__(self, function: object) -> bool:
        """Return whether a function is a helper."""
        return isinstance(function, types.FunctionType) and function in self.sources

    def __iter__(self) -> Iterator[types.FunctionType]:
        """Run over the operator's own."""
        return iter(self.sources)

    def __len__(self) -> int:
        """Return how many of its own there are."""
        return len(self.sources)


def _compiled(
    source: SourceFunction,
    lifted: frozenset[int] | None,
    device: frozenset[str] | None,
    given: frozenset[str] = frozenset(),
) -> types.FunctionType:
    """Return the function with its lifted statements (all of them for None) rewritten; a helper has no `device`."""
    node = copy.deepcopy(source.node)
    pairs = list(zip(ast.walk(source.node), ast.walk(node), strict=True))
    chosen = None if lifted is None else frozenset(id(twin) for original, twin in pairs if id(original) in lifted)
    rewriter = _Rewriter(source, changing_names(source, device), given)
    node.body = [_rewritten(statement, rewriter, chosen) for statement in node.body]
    node.decorator_list, node.returns = [], None
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    first = node.args.posonlyargs or node.args.args
    first.insert(0, ast.arg(arg=RUN))
    node.args.defaults = [ast.Constant(value=None) for _ in node.args.defaults]
    node.args.kw_defaults = [None if item is None else ast.Constant(value=None) for item in node.args.kw_defaults]
    module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
    space: dict[str, Any] = {**source.captured, DEVICE: named_device(source)}
    exec(compile(module, source.file, "exec"), space)  # noqa: S102  # the user's own function, rewritten
    function: types.FunctionType = space[source.name]
    function.__defaults__ = source.function.__defaults__
    function.__kwdefaults__ = source.keyword_defaults
    if source.captured.get(source.name) is not None:
        space[source.name] = source.captured[source.name]
    return function


def _rewritten(node: ast.stmt, rewriter: _Rewriter, lifted: frozenset[int] | None) -> ast.stmt:
    if lifted is None or id(node) in lifted:
        return rewriter.visit(node)
    if isinstance(node, ast.If | ast.For):
        node.body = [_rewritten(item, rewriter, lifted) for item in node.body]
        node.orelse = [_rewritten(item, rewriter, lifted) for item in node.orelse]
    if isinstance(node, ast.For):
        node.iter = rewriter.loop(node.iter)
    return node


class _Rewriter(ast.NodeTransformer):
    """Turns Python's operators on elements into calls of the execution."""

    def __init__(self, source: SourceFunction, changing: frozenset[str], given: frozenset[str]) -> None:
        """Take what names mean, those that may change from iteration to iteration, and those that no loop assigns.

        What a helper is given is known where it is called.
        """
        self.source, self.changing = source, changing
        self.captured = source.captured
        self.local = source.local
        self.given = given
        self.temporaries = 0

    def _run(self, method: str, node: ast.AST, *arguments: ast.expr) -> ast.Call:
        function = ast.Attribute(value=ast.Name(id=RUN, ctx=ast.Load()), attr=method, ctx=ast.Load())
        made = ast.Call(func=function, args=list(arguments), keywords=[])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def _visited(self, node: ast.expr) -> ast.expr:
        return self.visit(node)

    def _marked(self, node: ast.expr) -> ast.expr:
        """Return an expression that is rewritten, marked where it is a number as the operator was given it."""
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self._marked(item) for item in node.elts], ast.Load()), node)
        named = isinstance(node, ast.Name) and node.id in self.given
        found = self._visited(node)
        return self._run("given", node, found) if named or is_literal(node, self.captured, self.local) else found

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        stores = any(isinstance(item, ast.Subscript) for target in node.targets for item in ast.walk(target))
        node.value = self._marked(node.value) if stores else self._visited(node.value)
        node.targets = [self._visited(target) for target in node.targets]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self.captured.get(ast.unparse(node))
        if isinstance(found, types.FunctionType | int | float | tuple) and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Name(id=ast.unparse(node), ctx=ast.Load()), node)
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and resolve(node.value, self.captured, self.local) is MISSING:
            return self._run("attribute", node, node.value, ast.Constant(value=node.attr))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        name = ast.Constant(value=BINARY.get(type(node.op), "matmul"))
        return self._run("binary", node, name, self._visited(node.left), self._visited(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self._visited(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(ast.UnaryOp(op=node.op, operand=self._run("truth", node, operand)), node)
        names: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "bit_not"}
        return self._run("unary", node, ast.Constant(value=names[type(node.op)]), operand)

    def visit_If(self, node: ast.If) -> ast.stmt:
        node.test = self._tested(node.test)
        node.body, node.orelse = [self.visit(item) for item in node.body], [self.visit(item) for item in node.orelse]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test, node.body = self._tested(node.test), self._visited(node.body)
        node.orelse = self._visited(node.orelse)
        return node

    def _tested(self, node: ast.expr) -> ast.expr:
        """Return a condition; values with parts are asked by their methods."""
        if isinstance(node, ast.BoolOp):
            node.values = [self._tested(item) for item in node.values]
            return node
        return self._run("truth", node, self._visited(node))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            found = self._run("contains", node, self._visited(node.left), self._visited(node.comparators[0]))
            inverted = ast.UnaryOp(op=ast.Not(), operand=found)
            return found if isinstance(node.ops[0], ast.In) else ast.copy_location(inverted, node)
        if not all(type(operator) in COMPARE for operator in node.ops):
            self.generic_visit(node)
            return node
        parts: list[ast.expr] = []
        left = self._visited(node.left)
        for position, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            following = self._visited(right)
            after: ast.expr = following
            if position < len(node.ops) - 1:
                self.temporaries += 1
                name = f"{RUN}{self.temporaries}"
                following = ast.NamedExpr(target=ast.Name(id=name, ctx=ast.Store()), value=following)
                after = ast.Name(id=name, ctx=ast.Load())
            parts.append(self._run("compare", node, ast.Constant(value=COMPARE[type(operator)]), left, following))
            left = after
        if len(parts) == 1:
            return parts[0]
        return ast.fix_missing_locations(ast.copy_location(ast.BoolOp(op=ast.And(), values=parts), node))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = ast.Constant(value=_root(node))
        owner, index = self._visited(node.value), self._visited(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self._run("get", node, owner, index, name)
        if isinstance(node.ctx, ast.Del):
            deleted = ast.Subscript(value=owner, slice=index, ctx=ast.Del())
            return ast.fix_missing_locations(ast.copy_location(deleted, node))
        element = self._run("place", node, owner, index, name)
        made = ast.Subscript(value=element, slice=ast.Constant(value=0), ctx=ast.Store())
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        name, value = ast.Constant(value=BINARY.get(type(node.op), "matmul")), self._visited(node.value)
        if isinstance(node.target, ast.Name):
            before = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node)
            combined = self._run("binary", node, name, before, value)
            combined.keywords = [ast.keyword("stored", ast.Constant(True))]
            made: ast.stmt = ast.Assign(targets=[node.target], value=combined)
        elif isinstance(node.target, ast.Subscript):
            owner, index = self._visited(node.target.value), self._visited(node.target.slice)
            held = self._run("held", node, owner, index, ast.Constant(value=_root(node.target)))
            update = ast.Attribute(value=held, attr="update", ctx=ast.Load())
            made = ast.Expr(value=ast.Call(func=update, args=[name, value], keywords=[]))
        else:
            return node
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            return self._run("item", node, self._visited(node.func.value))
        position = ast.Tuple(elts=[ast.Constant(value=number) for number in place(node)], ctx=ast.Load())
        makes = makes_tensor(node, self.source, self.local)
        arguments = map(self._like if makes else self._marked, node.args)
        made = self._run("call", node, self._visited(node.func), position, *arguments)
        made.keywords = [ast.keyword(arg=item.arg, value=self._marked(item.value)) for item in node.keywords]
        return with_device(made, node) if makes else made

    def _like(self, node: ast.expr) -> ast.expr:
        """Return an argument of a call that makes a tensor: a part of another one stays a tensor."""
        if isinstance(node, ast.Subscript) and is_sliced(node):
            return self._run("part", node, self._visited(node.value), self._visited(node.slice))
        return self._marked(node)

    def visit_For(self, node: ast.For) -> ast.stmt:
        node.iter = self.loop(node.iter)
        target: ast.AST = self.visit(node.target)
        assert isinstance(target, ast.expr)  # noqa: S101  # an expression stays one
        node.target = target
        node.body = [self.visit(item) for item in node.body]
        node.orelse = [self.visit(item) for item in node.orelse]
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.loop(node.iter)
        node.ifs = [self._run("truth", item, self._visited(item)) for item in node.ifs]
        return node

    def loop(self, node: ast.expr) -> ast.expr:
        """Return what is run over, counting the iterations."""
        return self._run(
            "loop", node, ast.Constant(value=is_regular(node, self.source, self.changing)), self._iterable(node)
        )

    def _iterable(self, node: ast.expr) -> ast.expr:
        """Return what has the items that a loop runs over."""
        if not isinstance(node, ast.Call):
            return self._run("items", node, self._visited(node))
        name = head_name(node, self.captured, self.local)
        if name not in LOOPS | PARTS:
            return self._run("items", node, self._visited(node))
        inner = 0 if name in LOOPS else 1 if name == "builtins.enumerate" else len(node.args)
        arguments = [self._iterable(item) for item in node.args[:inner]]
        made = self._run("head", node, self._visited(node.func), *arguments, *map(self._visited, node.args[inner:]))
        made.keywords = [ast.keyword(arg=item.arg, value=self._visited(item.value)) for item in node.keywords]
        return made

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self._run("truth", node.test, self._tested(node.test))
        turn = ast.Expr(value=self._run("turn", node))
        body: list[ast.stmt] = [self.visit(item) for item in node.body]
        node.body = [ast.fix_missing_locations(ast.copy_location(turn, node)), *body]
        node.orelse = [self.visit(item) for item in node.orelse]
        enter = ast.withitem(context_expr=self._run("turns", node))
        return ast.fix_missing_locations(ast.copy_location(ast.With(items=[enter], body=[node]), node))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node)
