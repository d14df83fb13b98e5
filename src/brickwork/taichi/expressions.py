"""Expressions of kernels: from the tree to values, those that are known now and those at run time."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from brickwork.ir import build
from brickwork.ir.nodes import Load
from brickwork.ir.walk import walk
from brickwork.taichi import arithmetic, operations
from brickwork.taichi.arithmetic import convert, is_scalar, type_of
from brickwork.taichi.builder import Builder
from brickwork.taichi.cells import Cells
from brickwork.taichi.compound import Struct
from brickwork.taichi.errors import TaichiCompilationError, TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.fields import StructField
from brickwork.taichi.matrix import Matrix, broadcast, mapped, matmul, settled, subscript
from brickwork.taichi.scalars import join, u1
from brickwork.taichi.scope import Scope
from brickwork.taichi.sequences import is_sequence, items_of
from brickwork.taichi.source import Source
from brickwork.taichi.texts import Formatted, Text, percent
from brickwork.taichi.values import Scalar, Value, Variable
from brickwork.taichi.views import View
from brickwork.taichi.views import subscript as cell_of

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor", ast.LShift: "shift_left",
    ast.RShift: "shift_right", ast.MatMult: "matmul",
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_STATIC: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operations.neg,
    ast.UAdd: lambda value: value,
    ast.Not: operations.logical_not,
    ast.Invert: operations.bit_not,
}


def is_taichi(value: Any) -> bool:
    """Return whether something is a value of a kernel."""
    return isinstance(value, Scalar | Matrix | Struct)


class Expressions:
    """One function that is compiled, as far as its expressions go."""

    def __init__(self, builder: Builder, source: Source, names: dict[str, Any]) -> None:
        """Begin with the parameters."""
        self.builder = builder
        self.source = source
        self.scope = Scope(source, names)
        self.static = 0
        """How many `ti.static` are around."""

    def expression(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise TaichiSyntaxError(f'Unsupported node "{type(node).__name__}"')
        before = self.builder.loc
        self.builder.loc = self.source.location(node, self.call_site)
        try:
            return method(node)
        except Exception as error:
            if not hasattr(error, "place"):  # the innermost expression is where it stands
                vars(error)["place"] = self.builder.loc
            raise
        finally:
            self.builder.loc = before

    call_site: Any = None

    # ------------------------------------------------------------ names and literals

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.scope.find(node.id)

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def _list(self, node: ast.List) -> Any:
        return self._items(node.elts)

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += [*self.expression(each.value)]
            else:
                found.append(self.expression(each))
        return found

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found |= self.expression(value)
            else:
                found[self.expression(key)] = self.expression(value)
        return found

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        return Text([self.expression(each) for each in node.values])

    def _formattedvalue(self, node: ast.FormattedValue) -> Any:
        value = self.expression(node.value)
        spec = self.expression(node.format_spec).plain() if node.format_spec is not None else ""
        return Formatted(value, spec)

    def _slice(self, node: ast.Slice) -> Any:
        bounds = [None if each is None else self.expression(each) for each in (node.lower, node.upper, node.step)]
        return slice(*bounds)

    # ------------------------------------------------------------ comprehensions

    def _listcomp(self, node: ast.ListComp) -> Any:
        return [self.expression(node.elt) for _ in self._rounds(node.generators)]

    def _generatorexp(self, node: ast.GeneratorExp) -> Any:
        return [self.expression(node.elt) for _ in self._rounds(node.generators)]

    def _dictcomp(self, node: ast.DictComp) -> Any:
        return {self.expression(node.key): self.expression(node.value) for _ in self._rounds(node.generators)}

    def _rounds(self, generators: list[ast.comprehension]) -> Generator[None]:
        """Yield once for each combination of items, with their names bound."""
        with self.scope.block():
            yield from self._inner_rounds(generators)

    def _inner_rounds(self, generators: list[ast.comprehension]) -> Generator[None]:
        first, *rest = generators
        with self.as_static():
            items = self.expression(first.iter)
        for item in known_items(items):
            self.bind_target(first.target, item)
            if all(self._holds(each) for each in first.ifs):
                if rest:
                    yield from self._inner_rounds(rest)
                else:
                    yield

    def _holds(self, node: ast.expr) -> bool:
        value = self.expression(node)
        if isinstance(value, Scalar):
            raise TaichiSyntaxError("the condition of a comprehension must be known while the kernel is compiled")
        return bool(value)

    def bind_target(self, target: ast.expr, value: Any) -> None:
        """Let the names of a target stand for a value that is known now."""
        if isinstance(target, ast.Name):
            self.scope.bind(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for each, item in zip(target.elts, [*value], strict=True):
                self.bind_target(each, item)
        else:
            raise TaichiSyntaxError("the variable of a loop must be a name")

    @contextmanager
    def as_static(self) -> Generator[None]:
        """Evaluate as in `ti.static`."""
        self.static += 1
        try:
            yield
        finally:
            self.static -= 1

    # ------------------------------------------------------------ parts

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.expression(node.value)
        if isinstance(owner, Scalar) and node.attr != "dtype":
            raise TaichiTypeError(f"a scalar has no attribute `{node.attr}`")
        if isinstance(owner, Struct) and node.attr in owner.__dict__["entries"]:
            return owner[node.attr]
        if isinstance(owner, View | Matrix | Struct) and not hasattr(owner, node.attr):
            raise TaichiCompilationError(f"there is no attribute `{node.attr}` of a {type(owner).__name__} in kernels")
        return getattr(owner, node.attr)

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self.expression(node.value)
        index: Any = self.expression(node.slice)
        indices: list[Any] = items_of(index) if isinstance(index, tuple) else [index]
        if isinstance(owner, View | Cells | StructField):
            return cell_of(owner, indices)
        if isinstance(owner, Matrix):
            return subscript(owner, indices)
        if isinstance(owner, Scalar):
            raise TaichiTypeError("a scalar cannot be indexed")
        if isinstance(index, Scalar) and not isinstance(owner, Struct):
            if isinstance(index.ir, build.Constant):
                return owner[int(index.ir.value)]
            raise TaichiCompilationError("a tuple or a list of Python is indexed by what is known at compile time")
        return cast("Any", owner)[index]

    # ------------------------------------------------------------ operators

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        return self.operate(BINARY[type(node.op)], left, right)

    def operate(self, name: str, left: Any, right: Any) -> Any:
        """Return an operator of two values."""
        if name == "mod" and isinstance(left, str):
            values = items_of(right) if is_sequence(right) else [right]
            return percent(left, values) if any(map(is_taichi, values)) else left % right
        if not (is_taichi(left) or is_taichi(right)):
            return getattr(operator, _OPERATORS.get(name, name))(left, right)
        if name == "matmul":
            return matmul(left, right)
        return broadcast(name, left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.expression(node.operand)
        if not is_taichi(value) and isinstance(node.op, ast.Not):
            return not value
        return _UNARY[type(node.op)](value)

    def _compare(self, node: ast.Compare) -> Any:
        left, result = self.expression(node.left), None
        for place, (kind, item) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = self.expression(item)
            if place + 1 < len(node.ops):
                right = settled(right)
            found = self._compared(kind, left, right)
            result = found if result is None else self._both(result, found)
            left = right
        return result

    def _both(self, one: Any, other: Any) -> Any:
        if isinstance(one, bool) and isinstance(other, bool):
            return one and other
        return broadcast("bit_and", _as_truth(one), _as_truth(other))

    def _compared(self, kind: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(kind, ast.Is | ast.IsNot):
            known = self.static and not (is_scalar(left) and is_scalar(right))
            if not known and left is not None and right is not None:
                name = "is" if isinstance(kind, ast.Is) else "is not"
                raise TaichiSyntaxError(f'Operator "{name}" in Taichi scope is not supported')
            return _STATIC[type(kind)](left, right)
        if isinstance(kind, ast.In | ast.NotIn):
            if not self.static:
                raise TaichiSyntaxError(f'"{type(kind).__name__}" is only supported inside `ti.static`.')
            return _STATIC[type(kind)](left, right)
        if not (is_taichi(left) or is_taichi(right)):
            return getattr(operator, COMPARED[type(kind)])(left, right)
        if not all(is_scalar(each) or isinstance(each, Matrix | list | tuple) for each in (left, right)):
            if self.static and type(kind) in _STATIC:
                return _STATIC[type(kind)](left, right)
            raise TaichiTypeError("only numbers, vectors and matrices can be compared")
        return broadcast(COMPARED[type(kind)], left, right)

    def _boolop(self, node: ast.BoolOp) -> Any:
        result = self.expression(node.values[0])
        for each in node.values[1:]:
            result = self._logical(result, each, is_and=isinstance(node.op, ast.And))
        return result

    def _logical(self, left: Any, node: ast.expr, *, is_and: bool) -> Any:
        if isinstance(left, Matrix):
            return broadcast("bit_and" if is_and else "bit_or", _as_truth(left), _as_truth(self.expression(node)))
        if not isinstance(left, Scalar):
            return self.expression(node) if bool(left) is is_and else left
        left = settled(left)
        condition = Value(arithmetic.truth(left), u1)
        with self.builder.inside() as block:
            right = self.expression(node)
        if isinstance(right, Matrix):
            raise TaichiTypeError("`and` and `or` take scalars")
        if not block and not reads(right):
            return arithmetic.select(condition, *((right, left) if is_and else (left, right)))
        ways: tuple[tuple[list[Any], Any], ...] = ((block, right), ([], left))
        return self._joined(condition, *(ways if is_and else reversed(ways)))

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.expression(node.test)
        if isinstance(test, Matrix):
            raise TaichiSyntaxError('A conditional expression takes a scalar. Please use "ti.select" instead.')
        if not isinstance(test, Scalar):
            return self.expression(node.body if test else node.orelse)
        condition = Value(arithmetic.truth(settled(test)), u1)
        with self.builder.inside() as then:
            first = self.expression(node.body)
        with self.builder.inside() as otherwise:
            second = self.expression(node.orelse)
        if not isinstance(first, Matrix) and not isinstance(second, Matrix) and is_scalar(first) and is_scalar(second):
            if not then and not otherwise and not reads(first) and not reads(second):
                return arithmetic.select(condition, first, second)
            return self._joined(condition, (then, first), (otherwise, second))
        self.builder.block += then + otherwise
        return mapped(arithmetic.select, (condition, first, second))

    def _joined(self, condition: Scalar, *ways: tuple[list[Any], Any]) -> Any:
        """Return the value of the first way where a condition holds, else of the second: only its statements run."""
        kind = join(type_of(ways[0][1]), type_of(ways[1][1]))
        result = self.builder.symbol("either", kind.value)
        before = self.builder.block
        for block, value in ways:
            self.builder.block = block
            self.builder.assign(result, convert(value, kind).value)
        self.builder.block = before
        self.builder.branch(arithmetic.truth(condition), ways[0][0], ways[1][0])
        return Variable(result, kind, fits=True)


_OPERATORS = {
    "bit_and": "and_", "bit_or": "or_", "bit_xor": "xor", "shift_left": "lshift", "shift_right": "rshift",
}  # fmt: skip


def _as_truth(value: Any) -> Any:
    return value.mapped(arithmetic.is_true) if isinstance(value, Matrix) else arithmetic.is_true(value)


def reads(value: Any) -> bool:
    """Return whether a value reads an element, which may be out of range."""
    return isinstance(value, Scalar) and any(isinstance(each, Load) for each in walk(value.ir))


def known_items(items: Any) -> list[Any]:
    """Return what is iterated over while the kernel is compiled."""
    if isinstance(items, Scalar | View | Cells):
        raise TaichiTypeError("what is iterated over here must be known while the kernel is compiled")
    return [*items]
