"""Rates: int arguments that places are multiplied or divided by, such as strides, dilations and the width of a window.

Where a rate is known, indices are affine, divisions are by constants and checks can be proved; so on a GPU code is made
for each small one (`ir/signature.py`). What counts as a rate decides what is fast, and never what is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from brickwork.frontend.parameters import ParameterDeclaration
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes

ELEMENT = "."
_SCALING = ast.Mult | ast.FloorDiv | ast.Mod | ast.LShift | ast.RShift


def rates(source: SourceFunction, parameters: Sequence[ParameterDeclaration]) -> frozenset[str]:
    """Return the names of the int parameters that a loop's places are scaled by: `i * stride + j`, `i // up`."""
    ints = {item.name for item in parameters if item.kind == "int"}
    if not ints:
        return frozenset()
    nodes = all_nodes(source.node)
    places = _places(nodes) - ints
    made = _made(nodes, ints, places)
    found = {name for node in nodes for scale, scaled in _scaled(node) if scaled & places for name in scale}
    return frozenset(name for each in found for name in made.get(each, ()))


def _scaled(node: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the names in what scales, and those in what it scales."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _SCALING):
            yield _names(right), _names(left)
            if isinstance(op, ast.Mult):
                yield _names(left), _names(right)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if isinstance(op, _SCALING):
            yield _names(value), {name}
        case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range"), args=[_, _, step])):
            yield _names(step), _names(target)
        case _:
            pass


def _places(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names of loops' indices, and of what is computed of them without looking at elements."""
    found = {name for node in nodes if isinstance(node, ast.For | ast.comprehension) for name in _names(node.target)}
    assignments = [each for node in nodes for each in _assigned(node)]
    before = -1
    while len(found) > before:
        before = len(found)
        found |= {name for targets, read in assignments if read & found for name in targets}
    return found


def _made(nodes: Sequence[ast.AST], ints: set[str], places: set[str]) -> dict[str, set[str]]:
    """Return of which parameters a name is made, for the parameters and what is computed of them alone."""
    made = {name: {name} for name in ints}
    for targets, read in (each for node in nodes for each in _assigned(node)):
        if read and read <= made.keys() and not targets & (ints | places):
            of = {parameter for name in read for parameter in made[name]}
            made.update(dict.fromkeys(targets, of))
    return made


def _assigned(node: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
    """Yield which names a statement assigns, and what is read for that."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            yield from ((_names(name) - {ELEMENT}, _names(value)) for name, value in zip(names, values, strict=True))
        case ast.Assign(targets=targets, value=value):
            yield {name for target in targets for name in _names(target)} - {ELEMENT}, _names(value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield {name}, _names(value)
        case _:
            pass


def _names(tree: ast.AST) -> set[str]:
    """Return the names in an expression; ELEMENT is that of all elements, sizes and attributes."""
    match tree:
        case ast.Name(id=name):
            return {name}
        case ast.Subscript() | ast.Attribute():
            return {ELEMENT}
        case ast.Call(args=args):
            return {name for each in args for name in _names(each)}
        case _:
            return {name for each in ast.iter_child_nodes(tree) for name in _names(each)}
