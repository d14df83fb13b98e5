"""`return` inside a loop of the operator itself: what follows from there on becomes a function, which returns numbers.

    for i in range(n):                    def rest():
        if x[i] > v:                          for i in range(n):
            return i                              if x[i] > v:
    return -1                     ->                  return i
                                              return -1
                                          return rest()

A tensor that each of the returns gives is returned behind it: with `return u, steps` in the loop, `steps = rest()` and
`return u, steps`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.frontend.comprehensions import FreshNames, names_in
from brickwork.frontend.computed_numbers import Computed
from brickwork.frontend.environment import ALLOCATIONS, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.given_functions import own_nodes
from brickwork.frontend.parameters import declare
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes
from brickwork.language.math import is_pointwise


def with_early_returns(source: SourceFunction) -> SourceFunction:
    """Return the function with what returns from a loop in a function of its own, if it returns numbers."""
    body = source.node.body
    if all(item is body[-1] for item in all_nodes(source.node) if isinstance(item, ast.Return)):
        return source
    loops = [place for place, item in enumerate(body) if _returns_from_loop(item)]
    if not loops:
        return source
    returns = [place for place, item in enumerate(body) if any(isinstance(each, ast.Return) for each in _own(item))]
    kinds = {item.name: item.kind for item in declare(source)[0]}
    tensors = {name for name, kind in kinds.items() if kind == "tensor"} | {*_allocated(source)}
    numbers = {name for name, kind in kinds.items() if kind in {"int", "float", "bool"}}
    computed = Computed(source, tensors, numbers)
    known = tensors | computed.lists.keys()
    for first in dict.fromkeys((returns[0], loops[0])):
        rest = body[first:]
        inside = [item for statement in rest for item in _own(statement)]
        touches = any(isinstance(item, ast.Name) and item.id in known for item in inside)
        if not touches or any(_makes_tensors(source, item) for item in inside):
            continue
        returned = [item for item in inside if isinstance(item, ast.Return)]
        kept = _kept(computed, tensors, rest, [_values(item) for item in returned])
        if kept is not None and (_ends(rest[-1]) or not kept):
            _write(source, first, returned, kept, {*kinds})
            return replace(source)
    return source


def _write(
    source: SourceFunction, first: int, returned: Sequence[ast.Return], kept: Sequence[str | None], given: set[str]
) -> None:
    """Write the statements from the first on as a function, its call, and what is returned."""
    node, names = source.node, FreshNames(names_in(source.node))
    before, rest = node.body[:first], node.body[first:]
    name, results = names.fresh("rest"), [names.fresh("result") for at in kept if at is None]
    for item in returned:
        pairs = zip(_values(item), kept, strict=True)
        values = [_number(source, each) for each, at in pairs if at is None]
        item.value = _tuple(values or [ast.copy_location(ast.Constant(0), item)], item)
    ends = [] if _ends(rest[-1]) else [ast.Return(ast.Constant(0))]
    shared = sorted(_stored(rest) & {*_stored(before), *given})
    made = ast.FunctionDef(name=name, args=_arguments(shared), body=[*rest, *ends], decorator_list=[])
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(each, ast.Load()) for each in shared], [])
    stores: list[ast.expr] = [ast.Name(each, ast.Store()) for each in results]
    assigned = ast.Assign([_tuple(stores, rest[0])], call) if stores else ast.Expr(call)
    reads = iter([ast.Name(each, ast.Load()) for each in results])
    parts: list[ast.expr] = [next(reads) if at is None else ast.Name(at, ast.Load()) for at in kept]
    whole: list[ast.stmt] = [made, assigned, *([ast.Return(_tuple(parts, rest[0]))] if kept else [])]
    for item in (each for statement in whole for each in ast.walk(statement) if not hasattr(each, "lineno")):
        ast.copy_location(item, returned[0])
    made.lineno = rest[0].lineno
    node.body = [*before, *whole]


def _returns_from_loop(node: ast.stmt) -> bool:
    loops = [item for item in _own(node) if isinstance(item, ast.For | ast.While)]
    return any(isinstance(item, ast.Return) for loop in loops for item in _own(loop))


def _own(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, without those of functions that it defines."""
    if isinstance(node, ast.FunctionDef):
        return
    yield node
    yield from own_nodes(node)


def _ends(node: ast.stmt) -> bool:
    """Return whether nothing comes behind a statement."""
    endless = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and bool(node.test.value)
    return endless or isinstance(node, ast.Return | ast.Raise)


def _makes_tensors(source: SourceFunction, node: ast.AST) -> bool:
    """Return whether a node calls what makes or takes tensors as a whole: such is no part of a helper."""
    if not isinstance(node, ast.Call):
        return False
    name = intrinsic(resolve(node.func, source.captured, source.local))
    if isinstance(node.func, ast.Attribute) and node.func.attr in NEW_METHODS | {"clone"}:
        return True
    is_torch = name is not None and name.startswith("torch.") and not is_pointwise(name)
    return name in ALLOCATIONS or (is_torch and name != "torch.tensor")


def _values(node: ast.Return) -> list[ast.expr]:
    if isinstance(node.value, ast.Tuple):
        return node.value.elts
    return [] if node.value is None else [node.value]


def _kept(
    computed: Computed, tensors: set[str], rest: Sequence[ast.stmt], values: Sequence[Sequence[ast.expr]]
) -> list[str | None] | None:
    """Return for each result the tensor that it always is, or None for a number; None where it is neither."""
    if len({len(each) for each in values}) != 1:
        return None
    stored, kept = _stored(rest), list[str | None]()
    for column in zip(*values, strict=True):
        names = {item.id if isinstance(item, ast.Name) else "" for item in column}
        name = names.pop()
        if not names and name in tensors and name not in stored:
            kept.append(name)
        elif all(computed.is_number(_number(computed.source, item)) for item in column):
            kept.append(None)
        else:
            return None
    return kept


def _allocated(source: SourceFunction) -> Iterator[str]:
    """Yield the names that new tensors are assigned to."""
    for item in all_nodes(source.node):
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                is_new = isinstance(function, ast.Attribute) and function.attr in NEW_METHODS | {"clone"}
                if is_new or intrinsic(resolve(function, source.captured, source.local)) in ALLOCATIONS:
                    yield name
            case _:
                pass


def _number(source: SourceFunction, node: ast.expr) -> ast.expr:
    """Return the number of `torch.tensor(v)`; anything else as it is."""
    match node:
        case ast.Call(func=function, args=[value], keywords=[]):
            name = intrinsic(resolve(function, source.captured, source.local))
            return value if name == "torch.tensor" else node
        case _:
            return node


def _stored(statements: Sequence[ast.stmt]) -> set[str]:
    nodes = [item for statement in statements for item in _own(statement)]
    return {item.id for item in nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}


def _arguments(names: Sequence[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _tuple(parts: Sequence[ast.expr], place: ast.stmt) -> ast.expr:
    if len(parts) == 1:
        return parts[0]
    is_store = bool(parts) and isinstance(getattr(parts[0], "ctx", None), ast.Store)
    return ast.copy_location(ast.Tuple([*parts], ast.Store() if is_store else ast.Load()), place)
