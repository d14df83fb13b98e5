"""Statements of kernels and functions: assignments, branches, loops, returns, assertions."""

from __future__ import annotations

import ast
import types
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, Break, Continue, FailureKind, Symbol, While
from brickwork.taichi import access, arithmetic
from brickwork.taichi.access import snapshot
from brickwork.taichi.annotations import kind_of
from brickwork.taichi.arithmetic import is_number, is_scalar
from brickwork.taichi.builder import Builder
from brickwork.taichi.calls import Calls
from brickwork.taichi.compound import MatrixType, Struct, StructType, fitted
from brickwork.taichi.errors import (
    TaichiCompilationError,
    TaichiNameError,
    TaichiSyntaxError,
    TaichiTypeError,
    placed,
)
from brickwork.taichi.expressions import BINARY, is_taichi
from brickwork.taichi.loops import static
from brickwork.taichi.matrix import Matrix
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.scope import variable
from brickwork.taichi.source import Source
from brickwork.taichi.texts import Text
from brickwork.taichi.values import Scalar, Value


class _StaticBreak(Exception):
    """Leaves an unrolled loop."""


class _StaticContinue(Exception):
    """Ends a turn of an unrolled loop."""


class _Returned(Exception):
    """Ends a function while it is compiled."""


class Early:
    """How a function returns from inside of branches and loops: by a flag, and a break of each loop around."""

    def __init__(self, done: Symbol, depth: int) -> None:
        """Begin without a result; `depth` is that of the function's body."""
        self.done, self.depth = done, depth
        self.result: Any = None


class Statements(Calls):
    """One function that is compiled."""

    result: Any = None
    early: Early | None = None
    returns: Any = None
    """The type of the result, where it is declared."""

    def __init__(self, builder: Builder, source: Source, names: dict[str, Any]) -> None:
        """Begin outside of all loops."""
        super().__init__(builder, source, names)
        self.loops: list[tuple[str, int]] = []
        """The loops around, each with how deep it stands."""
        self.entry_depth = builder.depth

    def body(self, nodes: list[ast.stmt]) -> None:
        """Compile statements in order."""
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Compile a statement; an error says where it stands."""
        self.builder.loc = self.source.location(node, self.call_site)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        try:
            (method or _refuse)(node)
        except (_StaticBreak, _StaticContinue, _Returned):
            raise
        except Exception as error:  # whatever is wrong in the user's code is told with its place
            if getattr(error, "is_placed", False):
                raise
            told = placed(error, getattr(error, "place", None) or self.source.location(node, self.call_site))
            vars(told)["is_placed"] = True
            raise told from error

    # ------------------------------------------------------------ assignments

    def _assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        alias = self._is_static(node.value)
        if len(node.targets) > 1 and not alias:
            value = snapshot(value)
        for target in node.targets:
            self._set(target, value, alias=alias)

    def _is_static(self, node: ast.expr) -> bool:
        """Return whether a value is `ti.static(...)`, so that a name stands for it as it is."""
        with suppress(TaichiNameError):
            return isinstance(node, ast.Call) and self._named(node.func) is static
        return False

    def _named(self, node: ast.expr) -> Any:
        """Return what a name, or one of a module, stands for; None for what would have to be compiled."""
        if isinstance(node, ast.Name):
            return self.scope.find(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        owner = self._named(node.value)
        return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None

    def _set(self, target: ast.expr, value: Any, *, alias: bool = False) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, alias=alias)
        elif isinstance(target, ast.Name):
            self._set_name(target.id, value, alias=alias)
        elif alias:
            raise TaichiSyntaxError("Static assign cannot be used on elements in arrays")
        elif isinstance(target, ast.Attribute | ast.Subscript):
            self._set_part(target, value)
        else:
            raise TaichiSyntaxError(f"a kernel cannot assign to `{ast.unparse(target)}`")

    def _namedexpr(self, node: ast.NamedExpr) -> Any:
        self._set_name(node.target.id, self.expression(node.value), alias=False)
        return snapshot(self.scope.find(node.target.id))

    def _unpack(self, targets: list[ast.expr], value: Any, *, alias: bool) -> None:
        if isinstance(value, Scalar | Struct) or is_number(value):
            raise TaichiSyntaxError("a scalar cannot be unpacked")
        items = [*value]
        if len(items) != len(targets):
            what = "Matrix with matrix.n" if isinstance(value, Matrix) else "tuple of length"
            raise TaichiSyntaxError(f"cannot unpack a {what} {len(items)} into {len(targets)} targets")
        values = items if alias else [snapshot(each) for each in items]
        for target, each in zip(targets, values, strict=True):
            self._set(target, each, alias=alias)

    def _set_name(self, name: str, value: Any, *, alias: bool) -> None:
        if alias and not isinstance(value, Scalar):
            if self.scope.holds(name) and is_taichi(self.scope.find(name)):
                raise TaichiSyntaxError(f"Recreating variables is not allowed: `{name}` is one already")
            self.scope.bind(name, value)
            return
        if not self.scope.holds(name):
            if value is None:
                raise TaichiTypeError(f"`{name}` is given no value: the function returns nothing")
            self.scope.declare(name, value)
            return
        known = self.scope.find(name)
        self._refuse_argument(name, known)
        if is_taichi(known):
            access.store(known, value)
        elif is_scalar(known):
            raise TaichiSyntaxError(f"`{name}` is known while the kernel is compiled, and cannot be assigned to")
        else:
            self.scope.rebind(name, value)

    def _refuse_argument(self, name: str, known: Any) -> None:
        entries = known.entries if isinstance(known, Matrix) else [known]
        is_template = is_number(known) and any(each.arg == name for each in self.source.node.args.args)
        if is_template or any(type(each) is Value for each in entries):
            raise TaichiSyntaxError(
                f'Kernel argument "{name}" is immutable in the kernel. If you want to change its value, please create a'
                " new variable."
            )

    def _set_part(self, target: ast.Attribute | ast.Subscript, value: Any) -> None:
        if isinstance(target, ast.Attribute):
            owner = self.expression(target.value)
            if isinstance(owner, Matrix) and not hasattr(owner, target.attr):
                owner.refuse_letters(target.attr)
            if not isinstance(owner, Matrix | Struct):
                raise TaichiSyntaxError(f"`{ast.unparse(target)}` cannot be assigned to in a kernel")
        access.store(self.expression(target), value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise TaichiSyntaxError("an annotated assignment names a variable and gives it a value")
        if self.scope.holds(node.target.id):
            self._refuse_argument(node.target.id, self.scope.find(node.target.id))
            raise TaichiSyntaxError(f"`{node.target.id}` has a type already")
        kind = self.expression(node.annotation)
        if not isinstance(kind, MatrixType | StructType):
            kind = kind_of(kind, node.target.id)
        self.scope.declare(node.target.id, fitted(self.expression(node.value), kind))

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and not self.scope.holds(node.target.id):
            raise TaichiNameError(f'Name "{node.target.id}" is not defined')
        name = BINARY[type(node.op)]
        if name == "matmul":
            self._set(node.target, self.operate(name, self.expression(node.target), self.expression(node.value)))
            return
        target, value = self.expression(node.target), self.expression(node.value)
        if isinstance(node.target, ast.Name):
            self._refuse_argument(node.target.id, target)
        if not is_taichi(target):
            if not isinstance(node.target, ast.Name) or is_scalar(target):
                raise TaichiSyntaxError(f"`{ast.unparse(node.target)}` cannot be assigned to in a kernel")
            self.scope.rebind(node.target.id, self.operate(name, target, value))
            return
        access.augmented(name, target, value)

    def _expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        self.builder.wants_value = False
        self.expression(node.value)
        self.builder.wants_value = True

    def _functiondef(self, node: ast.FunctionDef) -> None:
        where = "ti.func" if self.call_site else "ti.kernel"
        raise TaichiSyntaxError(f"Function definition is not allowed in '{where}': define `{node.name}` outside")

    def _pass(self, node: ast.Pass) -> None:
        """Do nothing."""

    # ------------------------------------------------------------ branches

    def _if(self, node: ast.If) -> None:
        test = self.expression(node.test)
        if not is_taichi(test):
            chosen = node.body if test else node.orelse
            if self._is_static(node.test):
                self.body(chosen)
            else:
                self.builder.depth += 1
                with self.scope.block():
                    self.body(chosen)
                self.builder.depth -= 1
            return
        if self._is_static(node.test):
            raise TaichiSyntaxError("the conditions of `ti.static` must be compile-time constants")
        condition = arithmetic.truth(test)
        loc = self.builder.loc
        with self.builder.inside() as then, self.scope.block():
            self.body(node.body)
        with self.builder.inside() as otherwise, self.scope.block():
            self.body(node.orelse)
        self.builder.loc = loc
        self.builder.branch(condition, then, otherwise)

    def _assert(self, node: ast.Assert) -> None:
        condition = self.expression(node.test)
        message = ast.unparse(node.test)
        said = None if node.msg is None else self.expression(node.msg)
        values: list[Any] = []
        if said is not None:
            message = _template(said, values)
        if not is_taichi(condition):
            condition = arithmetic.literal(bool(condition), arithmetic.u1)
        self.builder.check(arithmetic.truth(condition), FailureKind.ASSERTION, message, *values)

    # ------------------------------------------------------------ loops

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise TaichiSyntaxError("'else' clause for 'while' not supported in Taichi kernels")
        loc = self.builder.loc
        counter, drawn = self.builder.symbol("turns", INT64), self.builder.draws
        self.builder.loops.append(build.read(counter))
        with self.builder.inside() as prelude:
            test = self.expression(node.test)
            condition = arithmetic.truth(test)
        with self.builder.inside() as block, self.scope.block(), self._loop("while"):
            self.body(node.body)
        self.builder.loops.pop()
        if self.builder.draws != drawn:  # Draws are numbered by the turns around them.
            self.builder.assign(counter, build.integer(0))
            step = build.add(build.read(counter), build.integer(1))
            block.insert(0, Assign(symbol=counter, value=step, loc=loc))
        self.builder.emit(While(prelude=tuple(prelude), condition=condition, body=tuple(block), loc=loc))
        self._leave_further()

    @contextmanager
    def _loop(self, kind: str) -> Generator[None]:
        self.loops.append((kind, self.builder.depth))
        try:
            yield
        finally:
            self.loops.pop()

    def unrolled(self, node: ast.For, items: list[Any]) -> None:
        """Compile the body once for each item."""
        for item in items:
            with self.scope.block():
                self.bind_target(node.target, item)
                try:
                    with self._loop("static"):
                        self.body(node.body)
                except _StaticBreak:
                    return
                except _StaticContinue:
                    continue

    def _break(self, node: ast.Break) -> None:
        self._jump(node, "break")

    def _continue(self, node: ast.Continue) -> None:
        self._jump(node, "continue")

    def _jump(self, node: ast.Break | ast.Continue, what: str) -> None:
        kind, depth = self.loops[-1] if self.loops else ("", 0)
        if kind == "static":
            if self.builder.depth > depth:
                raise TaichiSyntaxError(f"You are trying to `{what}` a static `for` loop inside non-static `if`")
            raise _StaticBreak if what == "break" else _StaticContinue
        if not kind:
            raise TaichiSyntaxError(f"`{what}` outside of a loop")
        if kind == "parallel" and what == "break":
            raise TaichiSyntaxError("Cannot break in the outermost loop: it runs in parallel")
        leaves: type[Break | Continue] = Break if what == "break" else Continue
        self.builder.emit(leaves(loc=self.source.location(node)))

    # ------------------------------------------------------------ returns

    def run_function(self, *, real: bool) -> Any:
        """Compile the body of a function that is called, and return its result."""
        self.returns = self.source.annotation("return")
        if real and _returns_inside(self.source.node):
            return self._run_early()
        inside = int(real)  # the loops of a real function run in order
        self.builder.depth += inside
        self.entry_depth += inside
        with suppress(_Returned):
            self.body(self.source.node.body)
        self.builder.depth -= inside
        if self.result is None and self.returns is not None and self.call_site is not None:
            raise TaichiSyntaxError("Function has a return type but does not have a return statement")
        return self.result

    def _run_early(self) -> Any:
        builder = self.builder
        done = builder.symbol("done", BOOL)
        builder.assign(done, build.constant(False, BOOL))
        self.early = Early(done, builder.depth + 1)
        if self.returns is not None:
            zero = fitted(self._zero(self.returns), self.returns)
            self.early.result = variable("result", zero, steady=False)
        loc = builder.loc
        with builder.inside() as block:
            with suppress(_Returned):
                self.body(self.source.node.body)
            if not block or not isinstance(block[-1], Break):
                builder.emit(Break(loc=loc))
        builder.emit(While(prelude=(), condition=build.constant(True, BOOL), body=tuple(block), loc=loc))
        return self.early.result

    @staticmethod
    def _zero(kind: Any) -> Any:
        return {} if isinstance(kind, StructType) else 0

    def _return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.expression(node.value)
        if self.early is not None:
            self._return_early(value)
            return
        if self.builder.depth > self.entry_depth:
            raise TaichiSyntaxError("Return inside non-static if/for is not supported")
        self.give(value)
        raise _Returned

    def give(self, value: Any) -> None:
        """Make a value the function's result."""
        declared = isinstance(self.returns, ScalarType | MatrixType | StructType) or self.returns in {int, float, bool}
        if declared and is_taichi(value):
            value = fitted(value, self.returns)
        self.result = snapshot(value)

    def _return_early(self, value: Any) -> None:
        early = self.early
        assert early is not None
        if early.result is not None:
            access.store(early.result, fitted(value, self.returns))
        self.builder.assign(early.done, build.constant(True, BOOL))
        self.builder.emit(Break(loc=self.builder.loc))

    def _leave_further(self) -> None:
        """After a loop in a function that returns early: leave the next loop, too, where it has returned."""
        if self.early is not None:
            with self.builder.inside() as block:
                self.builder.emit(Break(loc=self.builder.loc))
            self.builder.branch(build.read(self.early.done), block, [])


def _refuse(node: ast.stmt) -> None:
    raise TaichiSyntaxError(f'Unsupported node "{type(node).__name__}"')


def _returns_inside(tree: ast.FunctionDef) -> bool:
    inner = (ast.If, ast.For, ast.While)
    return any(
        isinstance(node, ast.Return)
        for statement in tree.body
        if isinstance(statement, inner)
        for node in ast.walk(statement)
    )


def _template(said: Any, values: list[Any]) -> str:
    """Return the message of an assertion as a template over numbers."""
    if isinstance(said, str):
        return said.replace("{", "{{").replace("}", "}}") if values else said
    if not isinstance(said, Text):
        raise TaichiCompilationError("the message of an assertion must be a text")
    text = ""
    for each in said.parts:
        value = getattr(each, "value", each)
        if isinstance(value, Scalar):
            values.append(value.value)
            text += f"{{:{each.spec}}}" if getattr(each, "spec", "") else "{}"
        else:
            text += str(value).replace("{", "{{").replace("}", "}}")
    return text
