"""Refuses at definition what the language lacks, all of it at once: a walk over the function and its helpers.

Only syntax and captured values are known here; types and ranks are checked when a signature is lowered.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Container, Iterator
from typing import Any

from brickwork.diagnostics.diagnostic import Diagnostic, in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.element_methods import with_row_calls
from brickwork.frontend.environment import (
    MISSING,
    called_formula,
    draws_elsewhere,
    helper,
    intrinsic,
    is_tensor,
    resolve,
)
from brickwork.frontend.inner_functions import with_inner
from brickwork.frontend.list_forms import CHANGING
from brickwork.frontend.loop_heads import PARTS, is_iterable
from brickwork.frontend.parameters import classify
from brickwork.frontend.raised import is_raised, not_raised
from brickwork.frontend.rules import (
    BUILTINS,
    GENERATOR,
    INSTEAD,
    REDUCTIONS,
    REFUSED_EXPRESSIONS,
    REFUSED_STATEMENTS,
    SUPPORTED,
    unsupported,
)
from brickwork.frontend.source import SourceFunction, parse
from brickwork.frontend.stores import object_name, root
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.value_methods import Values, classes_in, constructors, methods_of, names_in, parsed_method

_METHODS = frozenset({*dir(list)} - {"copy"})
"""The methods of lists."""
_CHANGING = frozenset({*CHANGING, "add", "discard", "popitem", "setdefault", "update"})
"""Methods that change lists, dictionaries and sets."""


def refusals(source: SourceFunction, call_site: Location | None = None) -> Iterator[Diagnostic]:
    """Yield what is wrong in one function, in source order."""
    local = source.local
    reduced = set(map(id, _reduced(source, local)))
    loops = (node for node in all_nodes(source.node) if isinstance(node, ast.For | ast.While))
    looped = {id(node) for loop in loops for node in all_nodes(loop)}
    for statement in source.node.body:
        for node in _in_order(statement):
            loc = source.location(node, call_site)
            refused = _refused(node)
            if refused is not None:
                yield Diagnostic(
                    code="BW002" if isinstance(node, ast.stmt) else "BW003",
                    message=refused[0],
                    loc=loc,
                    help=refused[1],
                )
            if isinstance(node, ast.GeneratorExp) and id(node) not in reduced:
                yield Diagnostic(code="BW003", message=GENERATOR[0], loc=loc, help=GENERATOR[1])
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local:
                yield from _captured(source, node, loc)
            if id(node) in looped:
                yield from _changed(source, node, loc, local)
                yield from _drawn_elsewhere(source, node, loc, local)
            if isinstance(node, ast.For | ast.comprehension):
                yield from _iterator(source, node, local, call_site)


def _reduced(source: SourceFunction, local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the arguments of reductions."""
    for node in all_nodes(source.node):
        if isinstance(node, ast.Call) and intrinsic(resolve(node.func, source.captured, local)) in REDUCTIONS:
            yield from node.args[:1]


def _lists(node: ast.AST) -> Iterator[str]:
    """Yield the names that lists are assigned to."""
    for item in all_nodes(node):
        if isinstance(item, ast.Assign):
            operands = [item.value.left, item.value.right] if isinstance(item.value, ast.BinOp) else [item.value]
            if any(isinstance(operand, ast.List | ast.ListComp) for operand in operands):
                yield from (target.id for target in item.targets if isinstance(target, ast.Name))


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def _refused(node: ast.AST) -> tuple[str, str] | None:
    if isinstance(node, ast.stmt):
        return REFUSED_STATEMENTS.get(type(node))
    if isinstance(node, ast.expr):
        operators = node.ops if isinstance(node, ast.Compare) and len(node.ops) > 1 else []
        if any(isinstance(item, ast.In | ast.NotIn) for item in operators):
            return "`in` in a chain of comparisons is not part of the language", "write `and` between them"
        return REFUSED_EXPRESSIONS.get(type(node))
    return None


def _captured(source: SourceFunction, node: ast.Name, loc: Location) -> Iterator[Diagnostic]:
    found = source.captured.get(node.id, MISSING)
    if node.id == source.name and (found is MISSING or found is source.function):
        advice = "write a loop instead of the recursion"
        yield Diagnostic(code="BW004", message=f"`{node.id}` calls itself", loc=loc, help=advice)
    elif found is MISSING:
        advice = f"define `{node.id}` before the operator; free names are captured at decoration"
        yield Diagnostic(code="BW005", message=f"`{node.id}` is not defined", loc=loc, help=advice)
    elif is_tensor(found):
        message = f"`{node.id}` is a captured tensor"
        yield Diagnostic(code="BW006", message=message, loc=loc, help="pass it as an argument")


def _changed(source: SourceFunction, node: ast.AST, loc: Location, local: frozenset[str]) -> Iterator[Diagnostic]:
    """Refuse to change captured objects in a loop: stores into attributes, lists, dictionaries and sets that grow."""
    advice = "store into a tensor that is an argument, or return what is new"
    match node:
        case ast.Attribute(ctx=ast.Store()) if object_name(node) not in {None, *local}:
            message = f"`{ast.unparse(node)}` is an attribute of something captured, and cannot be stored into"
            yield Diagnostic(code="BW006", message=message, loc=loc, help=advice)
        case ast.Call(func=ast.Attribute(value=ast.expr() as owner, attr=attr)) if attr in _CHANGING:
            if isinstance(resolve(owner, source.captured, local), list | dict | set):
                name = ast.unparse(owner)
                message = f"`{name}.{attr}` changes `{name}`, which is captured"
                yield Diagnostic(code="BW006", message=message, loc=loc, help=advice)
        case _:
            return


def _drawn_elsewhere(
    source: SourceFunction, node: ast.AST, loc: Location, local: frozenset[str]
) -> Iterator[Diagnostic]:
    """Refuse random numbers of Python and of NumPy in loops: torch's seed does not govern them."""
    found = resolve(node.func, source.captured, local) if isinstance(node, ast.Call) else MISSING
    if isinstance(node, ast.Call) and draws_elsewhere(found):
        name = ast.unparse(node.func)
        message = f"`{name}` draws random numbers that torch's seed does not govern"
        kind = str(getattr(found, "__name__", ""))
        normal = "gauss" in kind or "normal" in kind or kind == "randn"
        whole = kind in {"randint", "randrange", "integers", "choice"}
        instead = "bw.randint(low, high)" if whole else "bw.randn()" if normal else "bw.rand()"
        yield Diagnostic(code="BW004", message=message, loc=loc, help=f"write `{instead}`")


def _iterator(
    source: SourceFunction, node: ast.For | ast.comprehension, local: frozenset[str], call_site: Location | None
) -> Iterator[Diagnostic]:
    if not is_iterable(node.iter, source.captured, local):
        message = f"a `for` cannot run over `{ast.unparse(node.iter)}`"
        advice = "write `range`, a tensor, a tuple, or `enumerate`, `zip` or `reversed` of them"
        called = node.iter.func if isinstance(node.iter, ast.Call) else None
        if isinstance(node.iter, ast.Call):
            advice = _range_for(node.iter, intrinsic(resolve(node.iter.func, source.captured, local)) or "") or advice
        if isinstance(called, ast.Name) and called.id in local:
            message, advice = f"`{called.id}` is a variable of this function", "give the variable another name"
        yield Diagnostic(code="BW008", message=message, loc=source.location(node.iter, call_site), help=advice)


def _range_for(node: ast.Call, name: str) -> str:
    """Return which range to write where a loop runs over a number, or over a tensor of numbers that counts."""
    if ast.unparse(node.func).endswith(".arange"):
        return f"write `range({', '.join(map(ast.unparse, node.args))})`"
    is_number = name in {f"builtins.{each}" for each in ("len", "int", "min", "max", "round", "abs")}
    return f"write `range({ast.unparse(node)})`" if is_number else ""


def uncompiled_calls(source: SourceFunction, lifted: Container[int] | None = None) -> Iterator[Diagnostic]:
    """Yield a refusal for each call of a builtin that has no meaning on elements, and for each list that grows.

    `lifted` holds the `id`s of the statements to look into; without it all are.
    """
    local = source.local
    lists = frozenset(_lists(source.node))
    given = frozenset(_list_parameters(source.node))
    statements = [node for node in all_nodes(source.node) if isinstance(node, ast.stmt) and node is not source.node]
    inside = [node for node in statements if lifted is None or id(node) in lifted]
    raised = {id(node) for statement in inside if isinstance(statement, ast.Raise) for node in all_nodes(statement)}
    calls = {id(node): node for statement in inside for node in all_nodes(statement) if isinstance(node, ast.Call)}
    in_heads = set(map(id, _in_heads(source.node)))
    asked = {id(node.func) for node in calls.values() if isinstance(node.func, ast.Call)}
    """Such as `type(self)` in `type(self)(x, y)`."""
    for statement in inside:
        if isinstance(statement, ast.Raise) and not is_raised(statement, source.captured, local):
            message, advice = not_raised(statement)
            yield Diagnostic(code="BW002", message=message, loc=source.location(statement), help=advice)
    for node in (each for number, each in calls.items() if number not in raised | asked):
        name = intrinsic(resolve(node.func, source.captured, local)) or ""
        if name.startswith("builtins.") and name.removeprefix("builtins.") not in BUILTINS:
            message = f"`{name.removeprefix('builtins.')}` cannot be compiled"
            yield Diagnostic(
                code="BW004", message=message, loc=source.location(node), help=INSTEAD.get(name, SUPPORTED)
            )
        elif name in PARTS - {"builtins.tuple", "builtins.list"} and id(node) not in in_heads:
            message = f"`{name.removeprefix('builtins.')}` stands only in the head of a `for`"
            yield Diagnostic(code="BW004", message=message, loc=source.location(node), help="write a loop over it")
        elif isinstance(node.func, ast.Attribute) and _is_list(node.func, lists, given):
            yield _list_method(source, node, node.func)


def _is_list(method: ast.Attribute, lists: frozenset[str], given: frozenset[str]) -> bool:
    """Return whether a method is one of a list: of one that is made here, or of a parameter."""
    if isinstance(method.value, ast.Name) and method.value.id in given and method.attr in _METHODS:
        return True
    if isinstance(method.value, ast.Name) and method.attr in {*CHANGING, "index"}:
        return False
    return method.attr != "copy" and root(method.value) in lists


def _list_parameters(node: ast.FunctionDef) -> Iterator[str]:
    """Yield the parameters that are lists."""
    for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if item.annotation is not None and str(classify(item.annotation)[0]).startswith("list["):
            yield item.arg


def _list_method(source: SourceFunction, node: ast.Call, method: ast.Attribute) -> Diagnostic:
    """Return the refusal of a method of a list."""
    name, what = ast.unparse(method.value), method.attr
    loc = source.location(node)
    if what in CHANGING and root(method.value) in {*_list_parameters(source.node)}:
        advice = f"add the items to a list of your own, which begins as a copy: `own = {name}[:]`"
        return Diagnostic(code="BW011", message=f"`{name}.{what}`: an argument is not changed", loc=loc, help=advice)
    message = f"`{name}.{what}` of a list is not part of the language"
    return Diagnostic(code="BW011", message=message, loc=loc, help="write the loop that does it")


def _in_heads(node: ast.AST) -> Iterator[ast.AST]:
    """Yield everything in the heads of loops and generators."""
    for item in all_nodes(node):
        if isinstance(item, ast.For | ast.comprehension):
            yield from all_nodes(item.iter)


def inner_returns(source: SourceFunction) -> Iterator[Diagnostic]:
    """Yield a refusal for each `return` inside a loop of the operator itself."""
    found: dict[int, ast.Return] = {}
    for loop in all_nodes(source.node):
        if isinstance(loop, ast.For | ast.While):
            found |= {id(node): node for node in all_nodes(loop) if isinstance(node, ast.Return)}
    for node in found.values():
        loc, advice = source.location(node), "set a variable and `break`"
        yield Diagnostic(code="BW012", message="`return` inside a loop", loc=loc, help=advice)


def find_helpers(
    source: SourceFunction,
) -> tuple[dict[types.FunctionType, SourceFunction], Values, list[Diagnostic]]:
    """Return the Python functions that the body calls, and those that they call, with what is wrong in them.

    Between them are the values with parts, whose methods are among the functions.
    """
    found: dict[types.FunctionType, SourceFunction] = {}
    wrong: list[Diagnostic] = []
    _collect(source, found, wrong, (source,), None)
    kinds: dict[type[Any], bool] = {}
    while True:
        before = len(found), len(kinds)
        sources = (source, *found.values())
        for kind in [kind for each in sources for kind in classes_in(each)]:
            if kind not in kinds:
                kinds[kind] = _add_class(kind, found)
        used = [kind for kind, holds in kinds.items() if holds]
        names = frozenset(name for each in sources for name in names_in(each)) if used else frozenset[str]()
        for kind in used:
            for function in methods_of(kind, names):
                if function not in found:
                    _add_method(function, kind, found)
        if before == (len(found), len(kinds)):
            methods = frozenset(inner.name for inner in found.values() if inner.is_method)
            return found, Values(frozenset(used), methods), wrong


def _add_class(kind: type[Any], found: dict[types.FunctionType, SourceFunction]) -> bool:
    """Add the constructor of a class; return whether its instances are values with parts."""
    made = constructors(kind)
    if made is None or made[1]:
        return False
    for inner in made[0].values():
        if not _is_plain(inner):
            return False
    for function, inner in made[0].items():
        found[function] = inner
        _collect(inner, found, [], (inner,), None)
    return True


def why_left_out(function: types.FunctionType, call_site: Location) -> CompileError:
    """Return why a method that is called is not among the helpers."""
    inner, wrong = with_inner(parse(function, lambdas=True))
    found = [*wrong, *refusals(inner, call_site), *uncompiled_calls(inner)]
    return (
        CompileError(in_order(found))
        if found
        else unsupported(
            f"`{function.__name__}` is a method that the operator did not see when it was decorated",
            call_site,
            "define it in its class before the operator, under its own name",
        )
    )


def _is_plain(source: SourceFunction) -> bool:
    return not any(refusals(source)) and not any(uncompiled_calls(source))


def _add_method(function: types.FunctionType, kind: type[Any], found: dict[types.FunctionType, SourceFunction]) -> None:
    """Add a method and what it calls; one that is refused is left out: it may not be meant where its name stands."""
    try:
        inner, wrong = parsed_method(function, kind)
    except CompileError:
        return
    if not wrong and _is_plain(inner):
        found[function] = inner
        _collect(inner, found, wrong, (inner,), None)


def _parsed(source: SourceFunction, called: types.FunctionType) -> tuple[SourceFunction, list[Diagnostic]]:
    """Return a helper's parsed form, be it defined inside the function or elsewhere."""
    return (source.inner[called], []) if called in source.inner else with_inner(parse(called, lambdas=True))


def _collect(
    source: SourceFunction,
    found: dict[types.FunctionType, SourceFunction],
    wrong: list[Diagnostic],
    chain: tuple[SourceFunction, ...],
    call_site: Location | None,
) -> None:
    local = source.local
    for node in (item for statement in source.node.body for item in _in_order(statement)):
        if not isinstance(node, ast.Call):
            continue
        called = called_formula(node) or helper(resolve(node.func, source.captured, local))
        if called is None or source.is_made_of(called):
            continue
        place = source.location(node, call_site)
        if any(item.is_made_of(called) for item in chain):
            message = f"`{called.__name__}` calls itself, by way of `{source.name}`"
            wrong.append(
                Diagnostic(code="BW004", message=message, loc=place, help="write a loop instead of the recursion")
            )
        elif called not in found:
            inner, misused = _parsed(source, called)
            inner = with_row_calls(inner, [kind for each in (*chain, inner) for kind in classes_in(each)])
            found[called] = inner
            wrong.extend((*refusals(inner, place), *misused))
            _collect(inner, found, wrong, (*chain, inner), place)
        else:
            _collect(found[called], found, wrong, (*chain, found[called]), place)
