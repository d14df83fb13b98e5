"""Which arguments a Python host part writes or hands out: names are followed through views, statement by statement.

A name may stand for the memory of an argument for certain (a view), perhaps (what `.contiguous()` gave), or as `x[i]`,
which is an element or a view of lower rank. What is not known to be a view is taken to be new; `pytorch/python_host.py`
looks at the memory itself when the operator runs, and refuses what slipped through.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.frontend.environment import helper, intrinsic, resolve
from brickwork.frontend.lift import VIEW_ATTRIBUTES, has_slice
from brickwork.frontend.source import SourceFunction
from brickwork.records import dataclass

VIEWS = frozenset(
    "view view_as transpose t permute select narrow unsqueeze squeeze expand expand_as diagonal unfold unbind split "
    "chunk tensor_split hsplit vsplit dsplit split_with_sizes swapaxes swapdims movedim moveaxis detach as_strided "
    "view_as_real view_as_complex adjoint requires_grad_ broadcast_to broadcast_tensors atleast_1d "
    "atleast_2d atleast_3d squeeze_ unsqueeze_ transpose_ t_".split()
)
"""Methods and functions whose results share memory with their argument."""
COPIES = frozenset(
    "contiguous reshape reshape_as to flatten unflatten ravel type type_as cpu float double half bfloat16 int long "
    "short char byte bool asarray as_tensor resolve_conj resolve_neg".split()
)
"""Those that give the argument itself, a view or a copy, as it happens."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An argument whose memory a value may be in, and how the value came from it."""

    parameter: str
    how: Literal["view", "copy", "row"]
    via: str = ""


Origins: TypeAlias = frozenset[Origin]
Environment: TypeAlias = dict[str, Origins]

NEW: Origins = frozenset()


@dataclass(frozen=True, slots=True)
class Flow:
    """What a function does with the memory of its parameters."""

    mutated: frozenset[str]
    returned: Origins
    wrong: tuple[Diagnostic, ...]


def follow(
    source: SourceFunction, helpers: Mapping[types.FunctionType, SourceFunction], lifted: frozenset[int]
) -> Flow:
    """Return what the function does with its parameters; `lifted` are the statements in which a name's `+=` rebinds."""
    return _Walk(source, helpers, (), lifted).run()


class _Walk:
    """A walk over one function that follows which names stand for the memory of arguments."""

    def __init__(
        self,
        source: SourceFunction,
        helpers: Mapping[types.FunctionType, SourceFunction],
        chain: tuple[SourceFunction, ...],
        lifted: frozenset[int],
    ) -> None:
        self.source = source
        self.lifted = lifted
        self.helpers = helpers
        self.chain = (*chain, source)
        self.local = source.local
        self.mutated: set[str] = set()
        self.returned: set[Origin] = set()
        self.wrong: dict[tuple[int, int], Diagnostic] = {}

    def run(self) -> Flow:
        arguments = self.source.node.args
        names = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        self.block(self.source.node.body, {name: frozenset({Origin(name, "view")}) for name in names})
        return Flow(frozenset(self.mutated), frozenset(self.returned), tuple(self.wrong.values()))

    # ------------------------------------------------------------ statements

    def block(self, statements: Sequence[ast.stmt], names: Environment) -> None:
        for node in statements:
            self.statement(node, names)

    def statement(self, node: ast.stmt, names: Environment) -> None:
        match node:
            case ast.Assign():
                found = self.origins(node.value, names)
                for target in node.targets:
                    self.assign(target, node.value, found, names)
            case ast.AnnAssign(value=ast.expr() as value):
                self.assign(node.target, value, self.origins(value, names), names)
            case ast.AugAssign():
                self.origins(node.value, names)
                if isinstance(node.target, ast.Name) and id(node) in self.lifted:
                    names[node.target.id] = NEW
                    return
                owner = node.target.value if isinstance(node.target, ast.Subscript) else node.target
                self.write(self.origins(owner, names), node.target)
            case ast.If():
                self.origins(node.test, names)
                other = dict(names)
                self.block(node.body, names)
                self.block(node.orelse, other)
                _join(names, other)
            case ast.For() | ast.While():
                self.loop(node, names)
            case ast.Return(value=ast.expr() as value):
                self.give(value, names)
            case ast.Expr():
                self.origins(node.value, names)
            case _:
                pass

    def loop(self, node: ast.For | ast.While, names: Environment) -> None:
        while True:
            before = dict(names)
            if isinstance(node, ast.For):
                found = self.origins(node.iter, names)
                for name in ast.walk(node.target):
                    if isinstance(name, ast.Name):
                        names[name.id] = found
            self.block(node.body, names)
            _join(names, before)
            if names == before:
                break
        self.block(node.orelse, names)

    def assign(self, target: ast.expr, value: ast.expr, found: Origins, names: Environment) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = (
                value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else []
            )
            origins = [self.origins(part, names) for part in parts] or [found] * len(target.elts)
            for part, origin in zip(target.elts, origins, strict=True):
                self.assign(part, ast.Constant(value=None), origin, names)
        elif isinstance(target, ast.Name):
            names[target.id] = found
        elif isinstance(target, ast.Subscript):
            self.write(self.origins(target.value, names), target)

    def write(self, origins: Origins, place: ast.AST) -> None:
        """Note a write into memory."""
        for origin in origins:
            if origin.how == "copy":
                message = (
                    f"this may write into the argument `{origin.parameter}`, or into a copy that `{origin.via}` made"
                )
                name = ast.unparse(place)
                if isinstance(place, ast.Subscript):
                    name = ast.unparse(_root(place))
                    message = f"`{name}` is what `.{origin.via}()` gave, which may or may not be a copy"
                advice = "store into the argument itself, or into a copy: write .clone() after it"
                where = self.source.location(place)
                self.wrong[where.line, where.column] = Diagnostic(code="BW010", message=message, loc=where, help=advice)
            else:
                self.mutated.add(origin.parameter)

    def give(self, value: ast.expr, names: Environment) -> None:
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        for part in parts:
            found = self.origins(part, names)
            self.returned |= found
            sure = next((origin for origin in found if origin.how != "row"), None)
            if sure is not None:
                where = self.source.location(part)
                text = ast.unparse(part)
                message = f"`{text}` is, or may be, a view of the argument `{sure.parameter}` and cannot be returned"
                advice = "return a tensor of its own: write .clone() after it"
                if text == sure.parameter:
                    message, advice = (
                        f"`{text}` is an argument and cannot be returned",
                        "return nothing, or a new tensor",
                    )
                self.wrong[where.line, where.column] = Diagnostic(code="BW009", message=message, loc=where, help=advice)

    # ------------------------------------------------------------ expressions

    def origins(self, node: ast.expr, names: Environment) -> Origins:
        """Return whose memory a value may be in; writes that the expression makes are noted."""
        match node:
            case ast.Name():
                return names.get(node.id, NEW)
            case ast.Subscript():
                self.origins(node.slice, names)
                found = self.origins(node.value, names)
                return found if has_slice(node) else frozenset(_row(origin) for origin in found)
            case ast.Attribute():
                found = self.origins(node.value, names)
                return found if node.attr in VIEW_ATTRIBUTES | {"data"} else NEW
            case ast.IfExp():
                self.origins(node.test, names)
                return self.origins(node.body, names) | self.origins(node.orelse, names)
            case ast.Tuple() | ast.List():
                return frozenset(origin for item in node.elts for origin in self.origins(item, names))
            case ast.Call():
                return self.call(node, names)
            case _:
                for item in ast.iter_child_nodes(node):
                    if isinstance(item, ast.expr):
                        self.origins(item, names)
                return NEW

    def call(self, node: ast.Call, names: Environment) -> Origins:
        arguments = [self.origins(item, names) for item in node.args]
        keywords = {item.arg or "": self.origins(item.value, names) for item in node.keywords}
        found: Any = resolve(node.func, self.source.captured, self.local)
        called = helper(found) if intrinsic(found) is None else None
        if called is not None and called in self.helpers:
            return self.helper(node, self.helpers[called], arguments, keywords)
        if isinstance(node.func, ast.Attribute) and self.is_local(node.func.value):
            arguments.insert(0, self.origins(node.func.value, names))
        else:
            schema = _schema(found)
            if schema is not None:
                return self.operator(node, schema, arguments, keywords)
        name = _called(node)
        first = arguments[0] if arguments else next(iter(keywords.values()), NEW)
        self.write(keywords.get("out", NEW), node)
        if (name.endswith("_") and not name.endswith("__")) or _says(node, "inplace"):
            self.write(first, node)
            return first
        if name in VIEWS:
            return first
        if name in COPIES:
            return NEW if _says(node, "copy") else frozenset(Origin(origin.parameter, "copy", name) for origin in first)
        return NEW if intrinsic(found) is not None or name else first

    def is_local(self, node: ast.expr) -> bool:
        """Return whether the owner of a method is a value of the function, not a module."""
        root = _root(node)
        return not isinstance(root, ast.Name) or root.id in self.local

    def helper(
        self, node: ast.Call, inner: SourceFunction, arguments: Sequence[Origins], keywords: Mapping[str, Origins]
    ) -> Origins:
        if inner in self.chain:
            return NEW
        flow = _Walk(inner, self.helpers, self.chain, self.lifted).run()
        parameters = [item.arg for item in (*inner.node.args.posonlyargs, *inner.node.args.args)]
        given = dict(zip(parameters, arguments, strict=False)) | dict(keywords)
        for name in flow.mutated:
            self.write(given.get(name, NEW), node)
        returned: set[Origin] = set()
        for origin in flow.returned:
            returned |= {
                Origin(outer.parameter, outer.how if origin.how == "view" else origin.how, outer.via or origin.via)
                for outer in given.get(origin.parameter, NEW)
            }
        return frozenset(returned)

    def operator(
        self, node: ast.Call, schema: Any, arguments: Sequence[Origins], keywords: Mapping[str, Origins]
    ) -> Origins:
        parameters: list[Any] = list(schema.arguments)
        given = dict(zip((item.name for item in parameters), arguments, strict=False)) | dict(keywords)
        shared: set[Origin] = set(keywords.get("out", NEW)) if "out" in keywords else set()
        self.write(keywords.get("out", NEW), node)
        views = any(item.alias_info is not None for item in schema.returns)
        for item in parameters:
            if item.alias_info is not None:
                if item.alias_info.is_write:
                    self.write(given.get(item.name, NEW), node)
                if views:
                    shared |= given.get(item.name, NEW)
        return frozenset(shared)


def _schema(found: Any) -> Any:
    """Return the schema of an operator of torch's dispatcher, or None."""
    overload = getattr(found, "_overload", found)
    schema = getattr(overload, "_schema", None)
    if schema is None and hasattr(overload, "overloads") and hasattr(overload, "default"):
        schema = getattr(overload.default, "_schema", None)
    return schema


def _row(origin: Origin) -> Origin:
    return Origin(origin.parameter, "row" if origin.how == "view" else origin.how, origin.via)


def _join(names: Environment, other: Mapping[str, Origins]) -> None:
    for name, found in other.items():
        names[name] = names.get(name, NEW) | found


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _says(node: ast.Call, keyword: str) -> bool:
    return any(
        item.arg == keyword and not (isinstance(item.value, ast.Constant) and not item.value.value)
        for item in node.keywords
    )
