"""The methods of values with parts, as functions to inline: which ones a source may call, and their parsed forms.

`__init__` and `__post_init__` become functions without `self` that return the attributes: `self.x` is a variable there,
with the name `self.x`. Which class a variable is of is known when a signature is lowered; before that, a method may be
meant wherever its name stands.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.environment import MISSING, helper, resolve
from brickwork.frontend.inner_functions import with_inner
from brickwork.frontend.source import SourceFunction, parse
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_classes import (
    OPERATOR_METHODS,
    attributes_of,
    class_of,
    fields_of,
    getter,
    initialiser,
    is_value,
    is_value_class,
    method,
)
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Values:
    """The classes of the values with parts that a function may have, and what their methods are called."""

    kinds: frozenset[type[Any]] = frozenset()
    methods: frozenset[str] = frozenset()

    def has(self, found: object) -> bool:
        """Return whether something captured is one of the classes."""
        return isinstance(found, type) and found in self.kinds

    def holds(self, found: object) -> bool:
        """Return whether something captured is one of the values."""
        return type(found) in self.kinds


NO_VALUES = Values()


def meant(
    node: ast.Call, source: SourceFunction, helpers: Mapping[types.FunctionType, SourceFunction]
) -> Sequence[SourceFunction]:
    """Return the functions that a call may run: one helper, a constructor, or each method of that name."""
    found = resolve(node.func, source.captured, source.local)
    called = helper(found)
    if called is not None:
        return [helpers[called]] if called in helpers else []
    if isinstance(found, type):
        made = (initialiser(found), method(found, "__post_init__")) if is_value_class(found) else ()
        return [helpers[function] for function in made if function is not None and function in helpers]
    if found is MISSING and isinstance(node.func, ast.Attribute):
        return [inner for inner in helpers.values() if inner.is_method and inner.name == node.func.attr]
    return []


def parameters(inner: SourceFunction) -> list[str]:
    """Return the positional parameters that a call fills: not the object of a method."""
    found = [item.arg for item in (*inner.node.args.posonlyargs, *inner.node.args.args)]
    return found[1:] if inner.is_method else found


def classes_in(source: SourceFunction) -> Iterator[type[Any]]:
    """Yield the classes of values with parts that a function may make, or has captured instances of."""
    for found in source.captured.values():
        if is_value_class(found):
            yield found
        elif is_value(found):
            yield from _classes_of(found, 8)
    defaults = (*(source.function.__defaults__ or ()), *source.keyword_defaults.values())
    for found in filter(is_value, defaults):
        yield from _classes_of(found, 8)


def _classes_of(value: object, depth: int) -> Iterator[type[Any]]:
    if depth and is_value(value):
        yield class_of(value)
        for item in attributes_of(value).values():
            yield from _classes_of(item, depth - 1)


def names_in(source: SourceFunction) -> frozenset[str]:
    """Return the names of the methods that a function may call."""
    nodes = all_nodes(source.node)
    return OPERATOR_METHODS | {item.attr for item in nodes if isinstance(item, ast.Attribute)}


def methods_of(kind: type[Any], names: Iterable[str]) -> Iterator[types.FunctionType]:
    """Yield the methods and the getters of a class with these names."""
    for name in names:
        found = method(kind, name) or getter(kind, name)
        if found is not None:
            yield found


def parsed_method(function: types.FunctionType, kind: type[Any]) -> tuple[SourceFunction, list[Diagnostic]]:
    """Return a method's parsed form."""
    source, wrong = with_inner(parse(function, lambdas=True))
    is_static = isinstance(vars(kind).get(function.__name__), staticmethod)
    return replace(source, is_method=not is_static), wrong


# ---------------------------------------------------------------- constructors


def constructors(kind: type[Any]) -> tuple[dict[types.FunctionType, SourceFunction], list[Diagnostic]] | None:
    """Return `__init__` or `__post_init__` as functions that return the attributes; None where they do more."""
    fields = fields_of(kind)
    function = method(kind, "__post_init__") if fields is not None else initialiser(kind)
    if function is None:
        return {}, []
    try:
        source, wrong = with_inner(parse(function))
    except CompileError:
        return None
    given = [] if fields is None else [each.name for each in fields]
    made = _returning(source.node, given)
    return None if made is None else ({function: replace(source, node=made)}, wrong)


def attribute_names(source: SourceFunction) -> tuple[str, ...]:
    """Return the attributes that a constructor returns."""
    last = source.node.body[-1]
    items = last.value.elts if isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple) else []
    return tuple(item.id.partition(".")[2] for item in items if isinstance(item, ast.Name))


def _returning(node: ast.FunctionDef, given: Sequence[str]) -> ast.FunctionDef | None:
    """Return a constructor without `self`; `given` are the attributes that are set before it runs."""
    positional = [*node.args.posonlyargs, *node.args.args]
    if not positional or any(isinstance(item, ast.Return) for item in all_nodes(node)):
        return None
    owner = positional[0].arg
    rewriter = _Attributes(owner)
    made = rewriter.visit(copy.deepcopy(node))
    left = [item for statement in made.body for item in all_nodes(statement)]
    known = {*(f"{owner}.{name}" for name in given), *rewriter.stored}
    read = {item.id for item in left if isinstance(item, ast.Name) and item.id.partition(".")[0] == owner}
    if not read <= known:
        return None
    if any(isinstance(item, ast.With | ast.Try | ast.Import | ast.ImportFrom | ast.Raise) for item in left):
        return None
    names = list(dict.fromkeys((*(f"{owner}.{name}" for name in given), *rewriter.stored)))
    end = node.body[-1]
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    returned = ast.Return(ast.Tuple(values, ast.Load()))
    for item in ast.walk(returned):
        ast.copy_location(item, end)
    made.body = [*made.body, returned]
    made.args.posonlyargs, made.args.args = [], positional[1:]
    made.args.kwonlyargs = [*made.args.kwonlyargs]
    for name in given:
        made.args.kwonlyargs.append(ast.copy_location(ast.arg(f"{owner}.{name}"), node))
        made.args.kw_defaults.append(None)
    return made


class _Attributes(ast.NodeTransformer):
    """Turns the attributes of an object into variables."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.stored: list[str] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Turn `self.x` into a variable."""
        if not isinstance(node.value, ast.Name) or node.value.id != self.owner:
            return self._inner(node)
        name = f"{self.owner}.{node.attr}"
        if isinstance(node.ctx, ast.Store):
            self.stored.append(name)
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def _inner(self, node: ast.expr) -> ast.expr:
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Turn `object.__setattr__(self, "x", value)` into an assignment."""
        match node.value:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="object"), attr="__setattr__"),
                args=[ast.Name(id=owner), ast.Constant(value=str(name)), value],
            ) if owner == self.owner:
                target = ast.copy_location(ast.Attribute(ast.Name(owner, ast.Load()), name, ast.Store()), node)
                made = ast.copy_location(ast.Assign([target], value), node)
                self.generic_visit(made)
                return made
            case _:
                self.generic_visit(node)
                return node
