"""Functions that are defined inside a function: taken out, so that they are helpers like those from elsewhere.

What such a function reads of the functions around it becomes parameters, which each call passes: so it sees the values
at the time of the call, as in Python. Its defaults are evaluated where it is defined, and passed as well.
"""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from brickwork.diagnostics.diagnostic import Diagnostic, in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.environment import helper, resolve
from brickwork.frontend.given_functions import Passed, Specialised, hoist, own_nodes, pass_along
from brickwork.frontend.rules import REFUSED_STATEMENTS
from brickwork.frontend.source import SourceFunction, capture, local_names
from brickwork.records import dataclass


@dataclass(eq=False, slots=True)
class _Scope:
    """A function and those that are defined in it."""

    node: ast.FunctionDef
    outer: _Scope | None = None
    inner: dict[str, _Scope] = field(default_factory=dict["str", "_Scope"])
    defaults: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    """What a parameter is that a call leaves out: a literal, or a name of the function around."""
    needs: set[str] = field(default_factory=set[str])
    """Names of the functions around that each call passes."""
    local: frozenset[str] = frozenset()

    def every(self) -> Iterator[_Scope]:
        """Yield this function and all that are defined in it."""
        yield self
        for item in self.inner.values():
            yield from item.every()

    def function(self, name: str) -> _Scope | None:
        """Return the inner function that a name means here."""
        if name in self.inner:
            return self.inner[name]
        return None if name in self.local or self.outer is None else self.outer.function(name)

    def owner(self, name: str) -> _Scope | None:
        """Return the function that a variable belongs to."""
        return self if name in self.local else None if self.outer is None else self.outer.owner(name)

    def names(self) -> Iterator[ast.Name]:
        """Yield the names that the body reads."""
        for node in (item for statement in self.node.body for item in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node

    def wanted(self) -> set[str]:
        """Return the names that a call has to know."""
        return self.needs | {item.id for item in self.defaults.values() if isinstance(item, ast.Name)}


def with_inner(source: SourceFunction) -> tuple[SourceFunction, list[Diagnostic]]:
    """Return the function without those that it defines, which its calls find as helpers; and what is wrong."""
    wrong: list[Diagnostic] = []

    def complete(inner: SourceFunction, passed: Passed, specialised: Specialised) -> SourceFunction:
        found, misused = _completed(inner, passed, specialised)
        wrong.extend(misused)
        return found

    return complete(source, {}, Specialised(complete)), wrong


def _completed(
    source: SourceFunction, passed: Passed, specialised: Specialised
) -> tuple[SourceFunction, list[Diagnostic]]:
    pass_along(source, passed)
    whole = _Scope(source.node)
    _take_out(source, whole)
    if not whole.inner:
        return specialised.within(source, passed), []
    _refuse_outer_stores(source, whole)
    scopes = [*whole.every()]
    wrong = [diagnostic for scope in scopes for diagnostic in _misused(source, scope)]
    while sum(len(scope.needs) for scope in scopes) < sum(len(_needed(scope)) for scope in scopes):
        for scope in scopes:
            scope.needs = _needed(scope)
    wrong += [diagnostic for scope in scopes for diagnostic in _mistaken(source, scope)]
    for scope in scopes:
        _pass(scope)
        if scope is not whole:
            scope.node.args.kwonlyargs += [_at(ast.arg(name), scope.node) for name in sorted(scope.needs)]
            scope.node.args.kw_defaults += [None for _ in scope.needs]
    parsed: dict[types.FunctionType, SourceFunction] = dict(source.inner)
    functions = _made(source, whole, {}, parsed)
    own = {function: scope for function, inner in parsed.items() for scope in scopes if inner.node is scope.node}
    needed = {**passed, **{function: {name: name for name in scope.needs} for function, scope in own.items()}}
    for function in own:
        parsed[function] = specialised.within(replace(parsed[function], inner=parsed), needed)
        parsed |= {key: item for key, item in parsed[function].inner.items() if key not in parsed}
    captured = {**source.captured, **_captured(source, source.node), **functions}
    found = specialised.within(replace(source, captured=captured, inner=parsed), needed)
    parsed |= {key: item for key, item in found.inner.items() if key not in parsed}
    for function, inner in parsed.items():
        parsed[function] = replace(inner, inner=parsed)
    return replace(found, inner=parsed), wrong


# ---------------------------------------------------------------- taking functions out


def _take_out(source: SourceFunction, scope: _Scope) -> None:
    """Take the functions out of a body that are defined once, and not under a condition."""
    hoist(source, scope.node)
    stored = [
        item.id for item in own_nodes(scope.node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    ]
    stored += [item.name for item in own_nodes(scope.node) if isinstance(item, ast.FunctionDef)]
    stored += [item.arg for item in ast.walk(scope.node.args) if isinstance(item, ast.arg)]
    taken = frozenset(item.id for item in ast.walk(scope.node) if isinstance(item, ast.Name))
    scope.node.body = _without(scope, scope.node.body, {name for name in stored if stored.count(name) == 1}, taken)
    scope.local = local_names(scope.node)
    for item in scope.inner.values():
        _take_out(source, item)


def _without(scope: _Scope, body: Sequence[ast.stmt], once: set[str], taken: frozenset[str]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for node in body:
        found = _defined(node)
        if found is not None and found.name in once:
            inner = scope.inner[found.name] = _Scope(found, scope)
            kept += _defaults(inner, taken)
            continue
        if isinstance(node, ast.For | ast.While):
            node.body = _without(scope, node.body, once, taken) or [_at(ast.Pass(), node)]
        kept.append(node)
    return kept or [_at(ast.Pass(), scope.node)]


def _defined(node: ast.stmt) -> ast.FunctionDef | None:
    """Return the function that a statement defines, if it is a plain one."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Name):
            return None
        body: list[ast.stmt] = [_at(ast.Return(value.body), value.body)]
        found = _at(ast.FunctionDef(name=target.id, args=value.args, body=body, decorator_list=[]), node)
    elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
        found = node
    else:
        return None
    found.returns = None
    for item in ast.walk(found.args):
        if isinstance(item, ast.arg):
            item.annotation = None
    return found if found.args.kwarg is None else None


def _defaults(scope: _Scope, taken: frozenset[str]) -> Iterator[ast.stmt]:
    """Take the defaults of a function, and yield the assignments of those that are no literals."""
    arguments, name = scope.node.args, scope.node.name
    arguments.args, arguments.posonlyargs = [*arguments.posonlyargs, *arguments.args], []
    first = len(arguments.args) - len(arguments.defaults)
    pairs = [*zip(arguments.args[first:], arguments.defaults, strict=True)]
    pairs += [(item, value) for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    arguments.defaults, arguments.kw_defaults = [], [None for _ in arguments.kwonlyargs]
    for item, value in pairs:
        scope.defaults[item.arg] = value
        if isinstance(value, ast.Constant):
            continue
        variable = f"{name}_{item.arg}"
        while variable in taken:
            variable += "_"
        scope.defaults[item.arg] = _at(ast.Name(variable, ast.Load()), value)
        yield _at(ast.Assign([_at(ast.Name(variable, ast.Store()), value)], value), scope.node)


# ---------------------------------------------------------------- what a call passes


def _needed(scope: _Scope) -> set[str]:
    """Return the names of the functions around that a function reads, or those that it calls."""
    if scope.outer is None:
        return set()
    names = {name.id for name in scope.names()}
    called = [found for name in names if (found := scope.function(name)) is not None]
    names |= {name for item in called for name in item.wanted()}
    return {name for name in names - scope.local if scope.function(name) is None and scope.owner(name) is not None}


def _pass(scope: _Scope) -> None:
    """Let the calls of inner functions pass what these need."""
    for node in (item for statement in scope.node.body for item in ast.walk(statement)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        called = scope.function(node.func.id)
        if called is None:
            continue
        given = {item.arg for item in called.node.args.args[: len(node.args)]} | {item.arg for item in node.keywords}
        starred = any(isinstance(item, ast.Starred) for item in node.args)
        values: dict[str, ast.expr] = {name: ast.Name(name, ast.Load()) for name in sorted(called.needs)}
        by_place = {item.arg for item in called.node.args.args} if starred else set[str]()
        values |= {name: item for name, item in called.defaults.items() if name not in given | by_place}
        for name, value in values.items():
            node.keywords.append(_at(ast.keyword(name, _at(copy.copy(value), node.func)), node.func))


def _refuse_outer_stores(source: SourceFunction, whole: _Scope) -> None:
    """Refuse functions that assign to what is not theirs; they cannot be made objects."""
    nodes = (item for scope in whole.every() if scope is not whole for item in ast.walk(scope.node))
    found = [node for node in nodes if isinstance(node, ast.Nonlocal | ast.Global)]
    if found:
        wrong = [(source.location(node), *REFUSED_STATEMENTS[type(node)]) for node in found]
        raise CompileError(
            in_order(Diagnostic(code="BW002", message=message, loc=loc, help=text) for loc, message, text in wrong)
        )


def _misused(source: SourceFunction, scope: _Scope) -> Iterator[Diagnostic]:
    """Yield a refusal for each inner function that is not called where it is named, or called too early."""
    calls = [node for node in ast.walk(scope.node) if isinstance(node, ast.Call)]
    used = {id(node.func) for node in calls} | {id(item) for node in calls for item in _handed(source, scope, node)}
    for name in scope.names():
        found = scope.function(name.id)
        if found is not None and id(name) not in used:
            message = f"`{name.id}`, a function that is defined inside, is used as a value"
            advice = "call it here, or give it to a Python function that calls it"
            yield Diagnostic(code="BW004", message=message, loc=source.location(name), help=advice)
        elif found is not None and found.outer is scope and name.lineno < found.node.lineno:
            message, advice = f"`{name.id}` may be called before it is defined", "define it before the call"
            yield Diagnostic(code="BW005", message=message, loc=source.location(name), help=advice)


def _handed(source: SourceFunction, scope: _Scope, node: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call gives a helper, which is compiled for the functions among it."""
    is_inner = isinstance(node.func, ast.Name) and scope.function(node.func.id) is not None
    if is_inner or helper(resolve(node.func, source.captured, source.local)) is not None:
        yield from node.args
        yield from (word.value for word in node.keywords)


def _mistaken(source: SourceFunction, scope: _Scope) -> Iterator[Diagnostic]:
    """Yield a refusal for each call that would pass another variable of the same name."""
    for name in scope.names():
        found = scope.function(name.id)
        for need in sorted(found.wanted()) if found is not None else ():
            if found is not None and found.outer is not None and found.outer.owner(need) is not scope.owner(need):
                message = f"`{need}` is one variable here, and another in `{found.node.name}`, which is called"
                advice = "give one of them another name"
                yield Diagnostic(code="BW004", message=message, loc=source.location(name), help=advice)


# ---------------------------------------------------------------- the functions as objects


def _made(
    source: SourceFunction,
    scope: _Scope,
    around: Mapping[str, types.FunctionType],
    parsed: dict[types.FunctionType, SourceFunction],
) -> dict[str, types.FunctionType]:
    """Return the functions that are defined in one, by name; note the parsed form of each."""
    functions: dict[str, types.FunctionType] = {}
    for name, item in scope.inner.items():
        space: dict[str, Any] = {"__builtins__": builtins}
        module = ast.fix_missing_locations(ast.Module(body=[item.node], type_ignores=[]))
        exec(compile(module, source.file, "exec"), space)  # noqa: S102  # the user's own function
        functions[name] = cast("types.FunctionType", space.pop(name))
    known = {**{name: item for name, item in around.items() if name not in scope.local}, **functions}
    for name, item in scope.inner.items():
        inner = _made(source, item, known, parsed)
        captured = {**_captured(source, item.node), **known, **inner}
        captured = {key: value for key, value in captured.items() if key not in local_names(item.node)}
        functions[name].__globals__.update(captured)
        parsed[functions[name]] = SourceFunction(
            item.node, source.file, "", captured, functions[name], parsed, _object(source)
        )
    return functions


def _captured(source: SourceFunction, node: ast.FunctionDef) -> dict[str, object]:
    """Return the values of free names; what the function around was given or captured for a name stays."""
    found = capture(_object(source), node)
    return {name: source.captured.get(name, value) for name, value in found.items()} | {
        item.id: source.captured[item.id]
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and item.id in source.captured
    }


def _object(source: SourceFunction) -> types.FunctionType:
    return cast("types.FunctionType", source.function)


def _at(node: Any, place: ast.AST) -> Any:
    """Return a made node at the place of the user's own."""
    return ast.copy_location(node, place)
