"""Which slices of tensors in loops are compiled as loops of their own; by syntax.

    out[i, 1:] = 2 * x[i, :-1]        stored, and computed with
    s += x[i, a:b].sum()              reduced
    for v in x[a:b]: ...              run over

Anything else that is sliced, such as an argument of a torch function, leaves the loop to Python.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from brickwork.frontend.environment import MADE_ROWS, helper, intrinsic, resolve
from brickwork.frontend.loop_heads import PARTS, head_name, sources
from brickwork.frontend.rules import REDUCTIONS
from brickwork.frontend.syntax import all_nodes
from brickwork.language import vectors
from brickwork.language.math import is_pointwise

REDUCED: Mapping[str, str] = {
    "amin": "min",
    "amax": "max",
    "mean": "sum",
    **{name: name for name in ("sum", "prod", "min", "max", "any", "all")},
}
"""The methods of a row that reduce it, and what their items go through."""
MADE = frozenset(f"{name} of" for name in MADE_ROWS)
"""What rows that loops make are called as."""
AXES = ("dim", "keepdim")
"""What of them takes an axis may be given; `min` and `max` give places, too, then."""


def row_slices(
    function: ast.FunctionDef, captured: Mapping[str, object], local: frozenset[str], *, inside: bool = False
) -> frozenset[int]:
    """Return the slices, and the calls that reduce rows, that loops may compile: by identity.

    `inside`: the function is called in loops, and each of its parameters may be a row.
    """
    computed = computed_rows(function, captured, local, parameters_of(function) if inside else frozenset())
    is_wide = any(is_slice(node) or _is_reduction(node, computed) for node in all_nodes(function))
    loops = [node for node in all_nodes(function) if isinstance(node, ast.For | ast.While)] + [function] * inside
    found: set[int] = set()
    for node in all_nodes(function):
        found |= {id(item) for item in _of_host(node, captured, local) if isinstance(item, ast.Subscript)}
    for node in {id(node): node for loop in loops for node in all_nodes(loop)}.values():
        rows = (item for item in _rows(node, captured, local) if isinstance(item, ast.Subscript | ast.Call))
        found |= {
            id(item)
            for item in rows
            if (
                _is_plain(item)
                if isinstance(item, ast.Subscript)
                else _is_pointwise(item, captured, local) and (is_wide or _has_part(item, computed))
            )
        }
        found |= {id(node)} if _is_reduction(node, computed) else set()
    return frozenset(found)


def _has_part(node: ast.Call, computed: frozenset[str]) -> bool:
    """Return whether a function is called with something of rows, as far as the text says."""
    return any(isinstance(item, ast.Subscript) or _name(item) in computed for item in all_nodes(node))


def parameters_of(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names of the parameters."""
    given = function.args
    return frozenset(item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def computed_rows(
    function: ast.FunctionDef,
    captured: Mapping[str, object],
    local: frozenset[str],
    given: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """Return the names that may stand for rows: `d` after `d = x[i] - y`, in heads of loops, and those `given`."""
    found: set[str] = {*given}
    pairs: list[tuple[str, list[ast.expr]]] = []
    for node in all_nodes(function):
        if isinstance(node, ast.For):
            found |= {_name(target) for target, _ in sources(node.target, node.iter, captured, local)} - {""}
        for name, value in _assigned(node) if isinstance(node, ast.Assign) else ():
            parts = [] if isinstance(value, ast.Subscript | ast.Name) else [*_operands(value, captured, local)]
            parts += [each for item in parts if isinstance(item, ast.Call) for each in _given(item, captured, local)]
            made = any(isinstance(item, ast.Call) and _name(item.func) in MADE for item in parts)
            if made or any(isinstance(item, ast.Subscript) for item in parts):
                found.add(name)
            pairs.append((name, parts))
    while more := {name for name, parts in pairs if any(_name(item) in found for item in parts)} - found:
        found |= more
    return frozenset(found)


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with what they are assigned, also one by one: `d, e = x[i] - y, 2 * y`."""
    for target in node.targets:
        match target, node.value:
            case ast.Name(id=name), value:
                yield name, value
            case ast.Tuple(elts=parts), ast.Tuple(elts=items):
                pairs = zip(parts, items, strict=False)
                yield from ((_name(part), item) for part, item in pairs if isinstance(part, ast.Name))
            case ast.Tuple(elts=parts), ast.Call():
                yield from ((_name(part), node.value) for part in parts if isinstance(part, ast.Name))
            case _:
                pass


def _given(node: ast.Call, captured: Mapping[str, object], local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield what a call is given, its owner, too: what it gives may be a row if one of these is.

    What makes a value, as a class and `bw.vec3` do, is given its parts.
    """
    maker = resolve(node.func, captured, local)
    if isinstance(maker, type) or getattr(getattr(maker, "func", maker), "__module__", "") == vectors.__name__:
        return
    for item in (*([node.func.value] if isinstance(node.func, ast.Attribute) else []), *node.args):
        for part in _operands(item, captured, local):
            yield part
            if isinstance(part, ast.Call):
                yield from _given(part, captured, local)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _of_host(node: ast.AST, captured: Mapping[str, object], local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the rows that stand outside of loops, too: what a whole tensor is made like, and gets."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target]) if is_whole(target):
            yield from _rows(node, captured, local)
        case ast.Call(func=function, args=[row, *_]):
            if str(intrinsic(resolve(function, captured, local))).endswith("_like"):
                yield row
        case _:
            return


def _rows(node: ast.AST, captured: Mapping[str, object], local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield the rows that a statement or an expression takes."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            yield from (target, *_operands(value, captured, local))
        case ast.AugAssign(target=ast.Subscript() as target, value=value):
            yield from (target, *_operands(value, captured, local))
        case ast.AugAssign(value=value):
            yield from _operands(value, captured, local)
        case ast.Assign():
            for _, value in _assigned(node):
                yield from _operands(value, captured, local)
        case ast.Call(func=ast.Attribute(value=row)) if _is_reduction(node, frozenset()):
            yield from _operands(row, captured, local)
        case ast.Call(func=function, args=[row]) if intrinsic(resolve(function, captured, local)) in REDUCTIONS:
            yield row
        case ast.Call(func=function) if (found := resolve(function, captured, local)) and is_inlined(found):
            for item in (*node.args, *(word.value for word in node.keywords)):
                yield from _operands(item, captured, local)
        case ast.Return(value=ast.expr() as row):
            yield from _operands(row, captured, local)
        case ast.For(iter=row) | ast.comprehension(iter=row):
            yield from _run_over(row, captured, local)
        case _:
            return


def is_inlined(found: object) -> bool:
    """Return whether something that is called is a function of the user's."""
    return intrinsic(found) is None and helper(found) is not None


def _run_over(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield what the head of a loop runs over, also inside of `zip` and the like."""
    if isinstance(node, ast.Call) and head_name(node, captured, local) in PARTS:
        for item in node.args:
            yield from _run_over(item, captured, local)
    else:
        yield from _operands(node, captured, local)


def _is_reduction(node: ast.AST, computed: frozenset[str]) -> bool:
    """Return whether a node is `x[i].sum()` or the like."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript() | ast.BinOp() | ast.Compare() | ast.Call() | ast.Name() as row, attr=name
            )
        ) if name in REDUCED and goes_along(node):
            return not isinstance(row, ast.Name) or row.id in computed
        case _:
            return False


def goes_along(node: ast.Call) -> bool:
    """Return whether the arguments of a reduction are an axis, or there are none."""
    words = [*AXES[: len(node.args)], *(item.arg for item in node.keywords)]
    if not isinstance(node.func, ast.Attribute) or len(node.args) > len(AXES) or not {*words} <= {*AXES}:
        return False
    literal = all(is_literal(item) for item in (*node.args, *(word.value for word in node.keywords)))
    return not words or (literal and node.func.attr not in {"min", "max"})


def is_literal(node: ast.expr) -> bool:
    """Return whether an expression is a literal number, which may have a sign."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _operands(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> Iterator[ast.expr]:
    """Yield what a row is computed of: rows, numbers, and functions that are computed item by item."""
    match node:
        case ast.BinOp():
            yield from _operands(node.left, captured, local)
            yield from _operands(node.right, captured, local)
        case ast.UnaryOp():
            yield from _operands(node.operand, captured, local)
        case ast.Subscript(value=ast.Call() as inner):
            yield node
            yield from _operands(inner, captured, local)
        case ast.Compare():
            for item in (node.left, *node.comparators):
                yield from _operands(item, captured, local)
        case ast.Tuple():
            for item in node.elts:
                yield from _operands(item, captured, local)
        case ast.Call(func=ast.Name(id="tuple"), args=[ast.GeneratorExp(elt=item) | ast.ListComp(elt=item)]):
            yield from _operands(item, captured, local)
        case ast.Call(func=ast.Name(id=name)) if name in MADE:
            yield node
            for item in node.args:
                for part in item.elts if isinstance(item, ast.Tuple) else [item]:
                    yield from _operands(part, captured, local)
        case ast.Call() if _is_pointwise(node, captured, local):
            yield node
            for item in (*node.args, *(word.value for word in node.keywords)):
                yield from _operands(item, captured, local)
        case _:
            yield node


def _is_pointwise(node: ast.Call, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    return is_pointwise(intrinsic(resolve(node.func, captured, local)))


def _is_plain(node: ast.Subscript) -> bool:
    """Return whether the steps of slices are known."""
    return not any(isinstance(part, ast.Slice) and step_of(part) is None for part in slices_of(node))


def step_of(part: ast.Slice) -> int | None:
    """Return the step of a slice; None of one that is no positive literal."""
    match part.step:
        case None:
            return 1
        case ast.Constant(value=int(step)) if step > 0:
            return step
        case _:
            return None


def is_sliced(node: ast.Subscript) -> bool:
    """Return whether one of the indices of `x[...]` is a slice, or stands for several."""
    return any(map(is_slice, slices_of(node)))


def is_slice(node: ast.AST) -> bool:
    """Return whether an index is a slice, or the `...` that stands for several."""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and node.value is ...)


def is_whole(node: ast.Subscript) -> bool:
    """Return whether a part of a tensor is `x[...]`, all of it."""
    return isinstance(node.slice, ast.Constant) and node.slice.value is ...


def spelled_out(node: ast.Subscript, rank: int) -> ast.Subscript:
    """Return a part of a tensor with as many slices for `...` as there are dimensions left."""
    parts = slices_of(node)
    dots = [place for place, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is ...]
    if len(dots) != 1:
        return node
    slices = [ast.copy_location(ast.Slice(), parts[dots[0]]) for _ in range(rank - len(parts) + 1)]
    found = ast.Tuple([*parts[: dots[0]], *slices, *parts[dots[0] + 1 :]], ast.Load())
    return ast.copy_location(ast.Subscript(node.value, ast.copy_location(found, node), node.ctx), node)


def slices_of(node: ast.Subscript) -> list[ast.expr]:
    """Return the indices of `x[...]`."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def over_items(node: ast.Call) -> ast.Call:
    """Return the call of a reduction of `x` as one of `(item for item in x)`."""
    name = ast.copy_location(ast.Name(id="item", ctx=ast.Load()), node)
    target = ast.copy_location(ast.Name(id="item", ctx=ast.Store()), node)
    clause = ast.comprehension(target=target, iter=node.args[0], ifs=[], is_async=0)
    made = ast.copy_location(ast.GeneratorExp(elt=name, generators=[clause]), node)
    return ast.copy_location(ast.Call(func=node.func, args=[made, *node.args[1:]], keywords=node.keywords), node)
