"""Calls in kernels: functions of `ti`, of Python and of the user, which are compiled where they are called."""

from __future__ import annotations

import ast
import inspect
import operator
import re
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

from brickwork.taichi import access, loops, operations, printing, state
from brickwork.taichi.annotations import NdarrayType, Ref, is_template
from brickwork.taichi.arithmetic import is_number, literal
from brickwork.taichi.cells import Cells
from brickwork.taichi.compound import MatrixType, Struct, StructType, fitted
from brickwork.taichi.errors import TaichiCompilationError, TaichiSyntaxError, TaichiTypeError, unsupported
from brickwork.taichi.expressions import Expressions, is_taichi
from brickwork.taichi.functions import Func
from brickwork.taichi.matrix import Matrix, settled
from brickwork.taichi.scalars import ScalarType, u1
from brickwork.taichi.scope import variable
from brickwork.taichi.sequences import is_sequence, items_of
from brickwork.taichi.source import parse
from brickwork.taichi.texts import Formatter
from brickwork.taichi.values import Scalar
from brickwork.taichi.views import View

MOST_CALLS = 40
"""Calls of functions in functions: more would end in Python's own limit of 1000 frames, of which each call takes 20."""


def _round(*_: Any) -> Any:
    raise TaichiTypeError("builtin `round` has no meaning in kernels: use ti.round")


def _length(value: Any) -> int:
    if isinstance(value, Scalar | View):
        raise TaichiTypeError("`len` of a value that is known only at run time: use `.shape`")
    return len(value)


def _number(default: str, python: Callable[..., Any]) -> Callable[..., Any]:
    def convert(value: Any = 0) -> Any:
        if is_taichi(value):
            return operations.cast(value, getattr(state.settings(), default))
        return python(value)

    return convert


def _truth(value: Any = False) -> Any:
    return operations.cast(value, u1) if is_taichi(value) else bool(value)


def _isinstance(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds)


def _all_of(items: Any) -> Any:
    return items.all() if isinstance(items, Matrix) else operations.fold_bits("bit_and", items_of(items))


def _any_of(items: Any) -> Any:
    return items.any() if isinstance(items, Matrix) else operations.fold_bits("bit_or", items_of(items))


def _summed(items: Any, start: Any = 0) -> Any:
    result = start
    for each in items:
        result = operations.broadcast("add", result, each)
    return result


BUILTINS: dict[Any, Callable[..., Any]] = {
    range: loops.Range,
    abs: operations.abs,
    min: operations.min,
    max: operations.max,
    pow: operations.pow,
    round: _round,
    len: _length,
    int: _number("default_ip", int),
    float: _number("default_fp", float),
    bool: _truth,
    isinstance: _isinstance,
    all: _all_of,
    any: _any_of,
    sum: _summed,
}
"""What functions of Python are in kernels."""
_OPERATORS: dict[Any, str] = {
    getattr(operator, name): ours
    for name, ours in {
        "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod",
        "pow": "pow", "and_": "bit_and", "or_": "bit_or", "xor": "bit_xor", "lshift": "shift_left",
        "rshift": "shift_right", "matmul": "matmul",
        "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    }.items()
}  # fmt: skip
"""What functions of the module `operator` are in kernels."""
_COLLECTORS = frozenset[Any]({tuple, list, dict, zip, enumerate})
_STATICALLY = frozenset[Any]({
    range, int, float, bool, list, tuple, set, dict, enumerate, zip, reversed, map, filter, sorted, isinstance, getattr,
    hasattr, type, len,
})  # fmt: skip


class Calls(Expressions, ABC):
    """One function that is compiled, as far as its expressions and calls go."""

    def _call(self, node: ast.Call) -> Any:
        function = self._callee(node.func)
        if function is loops.static or function in {loops.static_assert, loops.static_print}:
            if self.static and function is loops.static and self.in_static_call:
                raise TaichiSyntaxError("`ti.static` inside of `ti.static` has no meaning")
            before, self.in_static_call = self.in_static_call, function is loops.static
            with self.as_static():
                args, named = self._arguments(node)
            self.in_static_call = before
            return function(*args, **named)
        args, named = self._arguments(node)
        if function is print:
            printing.emit(args, named.get("sep", " "), named.get("end", "\n"))
            return None
        return self.call(function, args, named)

    def _callee(self, node: ast.expr) -> Any:
        """Return what is called; a method of a text, or one that sets entries, is made one of ours."""
        if isinstance(node, ast.Attribute):
            owner = self.expression(node.value)
            if isinstance(owner, Matrix | Cells | View) and node.attr == "fill":
                return Filler(owner)
            if isinstance(owner, str) and node.attr == "format":
                return Formatter(owner)
            if isinstance(owner, Scalar):
                raise TaichiTypeError(f"a scalar has no method `{node.attr}`")
            if not hasattr(owner, node.attr):
                raise TaichiCompilationError(f"`{ast.unparse(node)}` is not known: there is no `{node.attr}`")
            return getattr(owner, node.attr)
        return self.expression(node)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        named: dict[str, Any] = {}
        self.builder.wants_value = True
        args = self._items(node.args)
        for each in node.keywords:
            value = self.expression(each.value)
            named |= {each.arg: value} if each.arg else value
        self.builder.wants_value = node is not self.unused
        return args, named

    in_static_call = False
    """Whether a call of `ti.static` is around."""
    unused: ast.expr | None = None
    """The call whose value nobody wants, of the statement that is compiled."""

    def call(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """Return what a call returns."""
        if self.static and function in _STATICALLY:
            return function(*args, **named)
        if isinstance(function, types.BuiltinFunctionType | type) and function in BUILTINS:
            return BUILTINS[function](*args, **named)
        if isinstance(function, Filler) and not isinstance(function.target, Matrix):
            return self.inlined(_fill, None, [function.target, *args], named)
        if isinstance(function, Func):
            return self.inlined(function.function, function.bound, args, named, real=function.real)
        if isinstance(function, ScalarType):
            return _literal(function, args, named)
        if isinstance(function, MatrixType | StructType):
            return function(*args, **named)
        if getattr(function, "is_taichi_kernel", False):
            raise TaichiSyntaxError("Kernels cannot call other kernels. Use @ti.func for what a kernel calls.")
        return self._of_python(function, args, named)

    def _of_python(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        plain = function.__func__ if isinstance(function, types.MethodType) else function
        module = getattr(plain, "__module__", None) or ""
        at_run_time = any(_has_scalars(each) for each in (*args, *named.values()))
        ours = module.startswith("brickwork.taichi") and not module.endswith((".math", ".linear"))
        own = getattr(function, "__self__", None)
        if ours or isinstance(own, Matrix | Struct) or isinstance(function, Filler | Formatter):
            return function(*args, **named)
        if isinstance(plain, types.FunctionType) and (at_run_time or module.startswith("brickwork.taichi")):
            bound = function.__self__ if isinstance(function, types.MethodType) else None
            return self.inlined(plain, bound, args, named)
        if at_run_time and module == "_operator":
            return self.operate(_OPERATORS[function], *args)
        if at_run_time and function not in _COLLECTORS:
            said = getattr(function, "__name__", str(function))
            advice = f"Did you mean ti.{said}?" if hasattr(operations, said) else "use a function of ti, or a ti.func"
            raise TaichiTypeError(f"`{said}` of {module or 'Python'} takes no values of kernels. {advice}")
        return function(*args, **named)

    # ------------------------------------------------------------ functions of the user

    def inlined(
        self, function: Callable[..., Any], bound: Any, args: list[Any], named: dict[str, Any], *, real: bool = False
    ) -> Any:
        """Compile a function here; return its result."""
        depth = self.depth + 1
        if depth > MOST_CALLS:
            raise unsupported(f"recursion of `{function.__name__}`", "write a loop, or end it by `ti.static`")
        source = parse(function)
        signature = inspect.signature(function)
        own = () if bound is None else (bound,)
        given = bound_arguments(signature, (*own, *args), named)
        given.apply_defaults()
        names: dict[str, Any] = {}
        for name, value in given.arguments.items():
            annotation = source.annotation(name)
            names[name] = _passed(name, value, annotation, steady=name not in source.reassigned)
        inner = type(self)(self.builder, source, names)
        inner.depth, inner.call_site = depth, self.builder.loc
        before = self.builder.loc, self.builder.serialize, self.builder.block_dim
        self.builder.serialize, self.builder.block_dim = False, 0
        result = inner.run_function(real=real)
        self.builder.loc, self.builder.serialize, self.builder.block_dim = before
        return result

    depth = 0

    @abstractmethod
    def run_function(self, *, real: bool) -> Any:
        """Compile the body and return the result."""


def bound_arguments(signature: inspect.Signature, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return the arguments of a call by parameter; say in Taichi's words what is wrong with them."""
    try:
        return signature.bind(*args, **named)
    except TypeError as error:
        said = str(error)
    found = re.search(r"'(\w+)'", said)
    name = found[1] if found else ""
    if "missing" in said:
        parameter = signature.parameters[name]
        annotation = "" if parameter.annotation is inspect.Parameter.empty else f" : {parameter.annotation}"
        raise TaichiSyntaxError(f"Parameter `{name}{annotation}` missing")
    if "unexpected" in said:
        raise TaichiSyntaxError(f"Unexpected argument '{name}'")
    raise TaichiSyntaxError("Too many arguments" if "too many" in said else f"Multiple values for argument '{name}'")


def _passed(name: str, value: Any, annotation: Any, *, steady: bool) -> Any:
    """Return what a parameter stands for: the value by reference where that is declared, else a copy."""
    if isinstance(annotation, NdarrayType) and isinstance(value, View):
        same = annotation.element_shape in {None, value.element_shape} and annotation.dtype in {None, value.dtype}
        if not same or annotation.ndim not in {None, value.ndim}:
            raise TaichiTypeError(f"Invalid value for argument {name} - it is no array of {annotation}")
    if isinstance(annotation, NdarrayType) and not isinstance(value, View):
        raise TaichiTypeError(f"Expected ndarray in the kernel argument for argument {name}")
    if isinstance(annotation, MatrixType) and isinstance(value, Matrix) and value.shape != annotation.shape:
        wanted = f"n {annotation.n}" if value.n != annotation.n else f"m {annotation.m}"
        given = value.n if value.n != annotation.n else value.m
        raise TaichiSyntaxError(f"Argument {name} is expected to be a Matrix with {wanted}, but got {given}")
    if is_template(annotation) or isinstance(annotation, NdarrayType | Ref):
        return value
    if isinstance(annotation, ScalarType | MatrixType | StructType) or annotation in {int, float, bool}:
        value = fitted(value, annotation)
    if is_taichi(value):
        return variable(name, value, steady=steady)
    return value


def _literal(kind: ScalarType, args: list[Any], named: dict[str, Any]) -> Any:
    """Return a number, or a value, in a type that is written around it."""
    if len(args) != 1 or named:
        raise TaichiSyntaxError("A primitive type can only decorate a single expression.")
    value = args[0]
    if isinstance(value, Scalar):
        return operations.cast(value, kind)
    if not is_number(value):
        raise TaichiSyntaxError("A primitive type cannot decorate an expression with a compound type.")
    if isinstance(value, int) and kind.is_real:
        said = "Integer literals must be annotated with a integer type. For type casting, use `ti.cast`."
        raise TaichiTypeError(said)
    if isinstance(value, float) and not kind.is_real:
        said = "Floating-point literals must be annotated with a floating-point type. For type casting, use `ti.cast`."
        raise TaichiTypeError(said)
    if isinstance(value, int) and not isinstance(value, bool) and not kind.holds(value):
        raise TaichiTypeError(f"Integer literal {value} exceeded the range of specified dtype: {kind}")
    return literal(value, kind)


def _has_scalars(value: Any) -> bool:
    if is_sequence(value):
        return any(_has_scalars(each) for each in value)
    if isinstance(value, dict):
        return any(map(_has_scalars, items_of(cast("Any", value).values())))
    return is_taichi(value) or isinstance(value, View)


class Filler:
    """The method `fill` of a matrix, or of a field or an array, in a kernel."""

    def __init__(self, target: Matrix | Cells | View) -> None:
        """Be that of an object."""
        self.target = target

    def __call__(self, value: Any) -> None:
        """Set all entries of a matrix."""
        access.store(self.target, settled(value))


def _fill(cells: Any, val: Any) -> None:
    """Set all cells: it is compiled into the kernel."""
    for place in loops.grouped(cells):
        cells[place] = val
