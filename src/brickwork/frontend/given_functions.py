"""Functions that are given to helpers, `simpson(lambda t: math.exp(-t * t), a, b)`: the helper is compiled for each.

A helper for given functions is the helper without these parameters, in which their names mean the functions. What a
function that was defined inside another one reads there, the helper is passed, and passes on. Lowering meets neither
functions as values nor parameters that are called.

    simpson(g, a, b)  ->  `simpson given g`(a, b, g_c=c)        with  def g(t): return t + c
"""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, cast

from brickwork.frontend.comprehensions import FreshNames, names_in
from brickwork.frontend.environment import MISSING, helper, resolve
from brickwork.frontend.source import SourceFunction, bound_values, local_names, parse, without_parameters
from brickwork.frontend.syntax import all_nodes
from brickwork.records import dataclass

Passed: TypeAlias = Mapping[types.FunctionType, Mapping[str, str]]
"""What calls of functions have to pass that were defined inside others: parameters, and the names of their values."""


_NONE_FOUND = "raise RuntimeError('`next` finds no item')"


def hoist(source: SourceFunction, node: ast.FunctionDef) -> None:
    """Give names to the lambdas that helpers are given, and to searches by `next`: functions of the body's head."""
    if not any(isinstance(item, ast.Lambda | ast.GeneratorExp) for item in all_nodes(node)):
        return
    made: list[ast.stmt] = []
    names, local = FreshNames(names_in(node)), source.local | local_names(node)
    inner = {item.name for item in all_nodes(source.node) if isinstance(item, ast.FunctionDef)}
    for call in [item for item in own_nodes(node) if isinstance(item, ast.Call)]:
        found = resolve(call.func, source.captured, local)
        if found is builtins.next and _is_search(call):
            made.append(_search(call, names.fresh("search")))
            call.func, call.args = ast.copy_location(ast.Name(_name(made[-1]), ast.Load()), call.func), []
        elif helper(found) is not None or (isinstance(call.func, ast.Name) and call.func.id in inner):
            call.args = [_named(item, names, made) for item in call.args]
            for word in call.keywords:
                word.value = _named(word.value, names, made)
    documented = ast.get_docstring(node, clean=False) is not None
    node.body[int(documented) : int(documented)] = made


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in a function or a statement, without those of functions in it."""
    waiting: list[ast.AST] = [*node.body] if isinstance(node, ast.FunctionDef) else [*ast.iter_child_nodes(node)]
    while waiting:
        item = waiting.pop()
        yield item
        if not isinstance(item, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(item)


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else ""


def _is_search(call: ast.Call) -> bool:
    return len(call.args) in {1, 2} and isinstance(call.args[0], ast.GeneratorExp) and not call.keywords


def _search(call: ast.Call, name: str) -> ast.stmt:
    """Return the function that `next((v for v in x if test), default)` calls: loops that return, or raise at last."""
    made, *default = call.args
    body: list[ast.stmt] = [ast.Return(made.elt)] if isinstance(made, ast.GeneratorExp) else []
    for part in reversed(made.generators if isinstance(made, ast.GeneratorExp) else []):
        for test in reversed(part.ifs):
            body = [ast.If(test, body, [])]
        body = [ast.For(part.target, part.iter, body, [])]
    end: list[ast.stmt] = [ast.Return(item) for item in default] or ast.parse(_NONE_FOUND).body
    for item in ast.walk(end[0]) if not default else ():
        ast.copy_location(item, call)
    return _function(name, ast.arguments([], [], None, [], [], None, []), [*body, *end], call)


def _function(name: str, arguments: ast.arguments, body: list[ast.stmt], place: ast.expr) -> ast.stmt:
    made = ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[])
    for item in ast.walk(made):
        if isinstance(item, ast.stmt | ast.expr | ast.arg) and not hasattr(item, "lineno"):
            ast.copy_location(item, place)
    return made


def _named(node: ast.expr, names: FreshNames, made: list[ast.stmt]) -> ast.expr:
    """Return the name of a lambda, and anything else as it is; `i=i` says of a name what holds without it."""
    if not isinstance(node, ast.Lambda):
        return node
    arguments, count = node.args, len(node.args.defaults)
    same = [
        item
        for item, value in zip(arguments.args[len(arguments.args) - count :], arguments.defaults, strict=True)
        if isinstance(value, ast.Name) and value.id == item.arg
    ]
    if len(same) != count or arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        return node
    arguments.args, arguments.defaults = arguments.args[: len(arguments.args) - count], []
    made.append(_function(names.fresh("function"), arguments, [ast.Return(node.body)], node))
    return ast.copy_location(ast.Name(_name(made[-1]), ast.Load()), node)


# ---------------------------------------------------------------- helpers for given functions


@dataclass(eq=False, slots=True)
class Specialised:
    """Makes helpers for given functions; `complete` takes out the functions that such a helper defines."""

    complete: Callable[[SourceFunction, Passed, Specialised], SourceFunction]
    running: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])

    def within(self, source: SourceFunction, passed: Passed) -> SourceFunction:
        """Return a function that calls such helpers in place of those that it gives functions."""
        captured: dict[str, object] = {}
        parsed: dict[types.FunctionType, SourceFunction] = {}
        known: dict[tuple[object, ...], str] = {}
        for call in [item for item in all_nodes(source.node) if isinstance(item, ast.Call)]:
            found = resolve(call.func, source.captured, source.local)
            has_defaults = isinstance(found, types.FunctionType) and (found.__defaults__ or found.__kwdefaults__)
            if not has_defaults and not any(_functions(source, _arguments_of(call))):
                continue
            called = helper(found)
            given = {} if called is None else _given(source, called, call)
            if called is None or not given:
                continue
            key = (id(called), *((name, id(each)) for name, each in given.items()))
            if key in self.running:
                continue
            needs = [(name, need, value) for name, each in given.items() for need, value in _needs(passed, each)]
            if key not in known:
                self.running.add(key)
                made = self._made(source, called, given, [(name, need) for name, need, _ in needs])
                self.running.discard(key)
                names = ", ".join(str(getattr(each, "__name__", each)) for each in given.values())
                name = FreshNames([*captured, *source.captured]).fresh(f"{called.__name__} given {names}")
                known[key], captured[name] = name, made.function
                parsed |= {**made.inner, cast("types.FunctionType", made.function): made}
            _call_made(call, called, given, known[key])
            for name, need, value in needs:
                _add_keyword(call, f"{name}_{need}", value)
        if not captured:
            return source
        return replace(source, captured={**source.captured, **captured}, inner={**source.inner, **parsed})

    def _made(
        self,
        source: SourceFunction,
        called: types.FunctionType,
        given: Mapping[str, object],
        wanted: list[tuple[str, str]],
    ) -> SourceFunction:
        """Return a helper for given functions."""
        inner = source.inner.get(called)
        base = parse(called, lambdas=True) if inner is None else replace(inner, node=copy.deepcopy(inner.node))
        node, known = base.node, default_values(called)
        without_parameters(node, given)
        node.body = [_Present(given).visit(item) for item in node.body]
        passed: dict[types.FunctionType, dict[str, str]] = {}
        for parameter, need in wanted:
            node.args.kwonlyargs.append(ast.copy_location(ast.arg(f"{parameter}_{need}"), node))
            node.args.kw_defaults.append(None)
            passed.setdefault(cast("types.FunctionType", given[parameter]), {})[need] = f"{parameter}_{need}"
        base = replace(base, captured={**base.captured, **given}, inner={**source.inner, **base.inner})
        made = self.complete(base, passed, self)
        function = _function_of(made, base.captured)
        named = called.__kwdefaults__ or {}
        function.__defaults__ = tuple(value for name, value in known.items() if name not in {*given, *named}) or None
        function.__kwdefaults__ = {name: value for name, value in named.items() if name not in given}
        return replace(made, function=function, around=base.around or called)


class _Present(ast.NodeTransformer):
    """Answers whether a function that is given is None: `f is None` is false, and what it guards goes."""

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Compare(ast.Name(id=name), [ast.Is() | ast.IsNot() as operator], [ast.Constant(value=None)]):
                known = ast.Constant(isinstance(operator, ast.IsNot))
                return ast.copy_location(known, node) if name in self._given else node
            case _:
                return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant) and not node.test.value:
            node.body = [ast.copy_location(ast.Pass(), node)]
        return node


def pass_along(source: SourceFunction, passed: Passed) -> None:
    """Let the calls of functions that a helper is given pass what these need."""
    for call in [item for item in all_nodes(source.node) if isinstance(item, ast.Call)] if passed else []:
        found = resolve(call.func, source.captured, source.local)
        for need, value in _needs(passed, found):
            if need not in _positional(cast("types.FunctionType", found))[: len(call.args)]:
                _add_keyword(call, need, value)


def _needs(passed: Passed, function: object) -> list[tuple[str, str]]:
    return [*passed.get(function, {}).items()] if isinstance(function, types.FunctionType) else []


def _call_made(call: ast.Call, called: types.FunctionType, given: Mapping[str, object], name: str) -> None:
    """Call the helper under a name of its own, without the functions."""
    parameters = dict(enumerate(_positional(called)))
    call.func = ast.copy_location(ast.Name(name, ast.Load()), call.func)
    call.args = [item for place, item in enumerate(call.args) if parameters.get(place) not in given]
    call.keywords = [word for word in call.keywords if word.arg not in given]


def _add_keyword(call: ast.Call, name: str, value: str) -> None:
    if all(word.arg != name for word in call.keywords):
        read = ast.copy_location(ast.Name(value, ast.Load()), call.func)
        call.keywords.append(ast.copy_location(ast.keyword(name, read), call.func))


def _arguments_of(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _functions(source: SourceFunction, nodes: Sequence[ast.expr]) -> Iterator[object]:
    """Yield the functions that expressions name."""
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute):
            found = resolve(node, source.captured, source.local)
            if found is not MISSING and callable(found):
                yield found


def _given(source: SourceFunction, called: types.FunctionType, call: ast.Call) -> dict[str, object]:
    """Return the functions that a call gives a helper, by the names of the parameters."""
    found: dict[str, object] = {}
    places: list[tuple[str | None, ast.expr]] = []
    if not any(isinstance(item, ast.Starred) for item in call.args):
        places += zip(_positional(called), call.args, strict=False)
    places += [(word.arg, word.value) for word in call.keywords]
    for name, item in places:
        if name is not None:
            found |= dict.fromkeys([name], each) if (each := next(_functions(source, [item]), None)) else {}
    left_out = {name: each for name, each in default_values(called).items() if callable(each)}
    return found | {name: each for name, each in left_out.items() if all(name != place for place, _ in places)}


def _positional(function: types.FunctionType) -> list[str]:
    bound = bound_values(function)
    return [name for name in function.__code__.co_varnames[: function.__code__.co_argcount] if name not in bound]


def default_values(function: types.FunctionType) -> dict[str, object]:
    """Return the default values of a function's parameters."""
    names, defaults = _positional(function), function.__defaults__ or ()
    return dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | (function.__kwdefaults__ or {})


def _function_of(source: SourceFunction, captured: Mapping[str, object]) -> types.FunctionType:
    """Return the function that a tree is, for a host part that Python runs."""
    node: Any = copy.deepcopy(source.node)
    node.decorator_list, node.returns, node.args.defaults = [], None, []
    node.args.kw_defaults = [None for _ in node.args.kwonlyargs]
    for item in ast.walk(node.args):
        if isinstance(item, ast.arg):
            item.annotation = None
    space: dict[str, Any] = {"__builtins__": builtins, **captured, **source.captured}
    module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
    exec(compile(module, source.file, "exec"), space)  # noqa: S102  # the user's own function, rewritten
    return cast("types.FunctionType", space[source.node.name])
