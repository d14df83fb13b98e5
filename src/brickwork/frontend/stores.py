"""Which parameters of a function are stored into, directly, through a view, or by a helper; by syntax alone."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Iterator, Mapping

from brickwork.frontend.list_forms import grown_names
from brickwork.frontend.loop_heads import sources
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_methods import meant, parameters

Helpers = Mapping[types.FunctionType, SourceFunction]
Written = Callable[[SourceFunction], Iterable[str]]
"""Gives the names that a function writes itself."""


def stored_parameters(source: SourceFunction, helpers: Helpers) -> frozenset[str]:
    """Return the names of the parameters whose elements the function or its helpers write."""
    arguments = source.node.args
    names = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    return _names(source, helpers, _direct) & names


def stored_names(source: SourceFunction, helpers: Helpers) -> frozenset[str]:
    """Return the names of the tensors and lists that the function or its helpers write, or change in length."""
    return _names(source, helpers, lambda each: (*_direct(each), *grown_names(each.node)))


def grown_in(source: SourceFunction, helpers: Helpers) -> frozenset[str]:
    """Return the names of the lists that the function or its helpers change in length."""
    return _names(source, helpers, lambda each: grown_names(each.node))


def _names(
    source: SourceFunction, helpers: Helpers, direct: Written, chain: tuple[SourceFunction, ...] = ()
) -> frozenset[str]:
    if source in chain:
        return frozenset()
    stored = {*direct(source), *_by_helpers(source, helpers, direct, (*chain, source))}
    flows = set(_flows(source))
    while True:
        more = {origin for target, origin in flows if target in stored} - stored
        if not more:
            break
        stored |= more
    return frozenset(stored)


def object_name(node: ast.expr) -> str | None:
    """Return the name of what an attribute, or an item of one, is a part of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def root(node: ast.expr) -> str | None:
    """Return the name under a chain of indices."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _direct(source: SourceFunction) -> Iterator[str]:
    for node in all_nodes(source.node):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            name = root(node)
            if name is not None:
                yield name


def _by_helpers(
    source: SourceFunction, helpers: Helpers, direct: Written, chain: tuple[SourceFunction, ...]
) -> Iterator[str]:
    for node in all_nodes(source.node):
        if not isinstance(node, ast.Call):
            continue
        for inner in meant(node, source, helpers):
            names = parameters(inner)
            pairs = [*zip(names, node.args, strict=False), *((item.arg, item.value) for item in node.keywords)]
            written = _names(inner, helpers, direct, chain)
            for name, argument in pairs:
                found = root(argument)
                if name in written and found is not None:
                    yield found


def _flows(source: SourceFunction) -> Iterator[tuple[str, str]]:
    """Yield (target, origin) for each assignment that may make one name stand for another's tensor."""
    local = source.local
    for node in all_nodes(source.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.For):
            for target, found in sources(node.target, node.iter, source.captured, local):
                yield from _pairs(target, found)


def _pairs(target: ast.expr, found: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Tuple) and isinstance(found, ast.Tuple):
        for part, item in zip(target.elts, found.elts, strict=False):
            yield from _pairs(part, item)
    elif isinstance(found, ast.IfExp):
        yield from _pairs(target, found.body)
        yield from _pairs(target, found.orelse)
    elif isinstance(target, ast.Name):
        origin = root(found)
        if origin is not None:
            yield target.id, origin
