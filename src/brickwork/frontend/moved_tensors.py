"""Tensors that a loop makes for each of its turns: one is made before the loop, and each turn fills it.

    for i in range(n):                        s = torch.zeros(m)
        s = torch.zeros(m)                    for i in range(n):
        for j in range(k):           ->           for s_place in range(m):
            s[j % m] += x[i, j]                       s[s_place] = 0
        y[i] = max(s)                             for j in range(k): ...

So such a loop is compiled whole. Moved are only tensors of which no turn can see that they are one: a single statement
makes them, of sizes that the loop does not change, and their elements are all that is used, in the same turn and below.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.source import SourceFunction
from brickwork.records import dataclass

FILLS = {"zeros": 0, "ones": 1}
KINDS = frozenset({*FILLS, "empty", "full"})


@dataclass(frozen=True, slots=True)
class _Made:
    """A statement that makes a tensor, and the block that it stands in."""

    statement: ast.Assign
    call: ast.Call
    name: str
    block: list[ast.stmt]


def with_tensors_moved(source: SourceFunction, lifted: Collection[int]) -> SourceFunction | None:
    """Return the function with the tensors that its lifted loops make moved before them; None if one cannot be."""
    if "range" in source.local or source.captured.get("range", range) is not range:
        return None
    node = copy.deepcopy(source.node)
    twins = zip(ast.walk(source.node), ast.walk(node), strict=True)
    chosen = {id(twin) for original, twin in twins if id(original) in lifted}
    mover = _Mover(replace(source, node=node))
    if not mover.block(node.body, chosen):
        return None
    ast.fix_missing_locations(node)
    return replace(source, node=node, captured={"range": range, **source.captured})


class _Mover:
    """Moves tensors in a copy of a function."""

    def __init__(self, source: SourceFunction) -> None:
        self.source = source
        self.local = source.local
        arguments = source.node.args
        self.integers = {
            item.arg
            for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if item.annotation is not None and ast.unparse(item.annotation).strip("'\"") == "int"
        }
        stores = [item.id for item in ast.walk(source.node) if isinstance(item, ast.Name) and _is_store(item)]
        self.once = {name for name in stores if stores.count(name) == 1}
        self.lengths = {*unpacked_shapes(source.node)} & self.once
        assigned = (item for item in ast.walk(source.node) if isinstance(item, ast.Assign))
        for item in sorted(assigned, key=lambda item: item.lineno):
            match item.targets:
                case [ast.Name(id=name)] if name in self.once and self._is_length(item.value):
                    self.lengths.add(name)
                case _:
                    pass

    def block(self, block: list[ast.stmt], lifted: Collection[int]) -> bool:
        """Move what the lifted statements of a block make; return whether all of it could be moved."""
        for statement in [*block]:
            if id(statement) not in lifted:
                inner = (statement.body, statement.orelse) if isinstance(statement, ast.If | ast.For) else ()
                if not all(self.block(part, lifted) for part in inner):
                    return False
                continue
            _PairsApart(self._kind).generic_visit(statement)
            found = [*self._made([statement])]
            calls = [item for item in ast.walk(statement) if isinstance(item, ast.Call) and self._kind(item)]
            if len(found) != len(calls) or not all(self._may_move(made, statement) for made in found):
                return False
            for made in found:
                made.block[made.block.index(made.statement)] = self._filling(made)
                block.insert(block.index(statement), made.statement)
        return True

    def _made(self, block: list[ast.stmt]) -> Iterator[_Made]:
        for statement in block:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if self._kind(call):
                    yield _Made(statement, call, name, block)
                case ast.For() | ast.While() | ast.If():
                    yield from self._made(statement.body)
                    yield from self._made(statement.orelse)
                case _:
                    pass

    def _kind(self, call: ast.Call) -> str:
        """Return which function makes a tensor; nothing for a call that makes none."""
        found = resolve(call.func, self.source.captured, self.local)
        name = intrinsic(found)
        if name in ALLOCATIONS:
            return name.removeprefix("torch.")
        is_method = found is MISSING and isinstance(call.func, ast.Attribute) and call.func.attr in NEW_METHODS
        return call.func.attr.removeprefix("new_") if is_method and isinstance(call.func, ast.Attribute) else ""

    def _may_move(self, made: _Made, loop: ast.stmt) -> bool:
        kind = self._kind(made.call)
        if kind not in KINDS or made.name not in self.once:
            return False
        changing = {item.id for item in ast.walk(loop) if isinstance(item, ast.Name) and _is_store(item)}
        if any(isinstance(item, ast.Name) and item.id in changing for item in ast.walk(made.call)):
            return False
        sizes = _sizes(made.call, kind)
        if not sizes or not all(map(self._is_length, sizes)) or _filling_value(made.call, kind) is None:
            return False
        below = made.block[made.block.index(made.statement) + 1 :]
        uses = sum(isinstance(item, ast.Name) and item.id == made.name for item in ast.walk(self.source.node)) - 1
        return uses == sum(_elements(statement, made.name, len(sizes)) for statement in below)

    def _is_length(self, node: ast.expr) -> bool:
        """Return whether an expression is a number that is not negative where arguments are not."""
        match node:
            case ast.Constant(value=int(value)):
                return value >= 0
            case ast.Name(id=name):
                return name in self.lengths or (name in self.integers and name not in self.once)
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant()):
                return True
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult() | ast.FloorDiv(), right=right):
                return self._is_length(left) and self._is_length(right)
            case _:
                return False

    def _filling(self, made: _Made) -> ast.stmt:
        """Return what fills a tensor again: a nest over its elements, or nothing.

        What a turn leaves out of an empty one holds anything: zeros then, not what an earlier turn has stored.
        """
        kind = self._kind(made.call)
        value, sizes = _filling_value(made.call, kind), _sizes(made.call, kind)
        below = made.block[made.block.index(made.statement) + 1 :]
        if value is None or (kind == "empty" and not any(_fills_a_part(item, made.name) for item in below)):
            return ast.copy_location(ast.Pass(), made.statement)
        names = [self._fresh(f"{made.name}_{axis}") for axis in range(len(sizes))]
        index = [ast.Name(id=name, ctx=ast.Load()) for name in names]
        at = index[0] if len(index) == 1 else ast.Tuple(elts=[*index], ctx=ast.Load())
        tensor = ast.Name(id=made.name, ctx=ast.Load())
        target = ast.Subscript(value=tensor, slice=at, ctx=ast.Store())
        result: ast.stmt = ast.Assign(targets=[target], value=value)
        for name, size in reversed([*zip(names, sizes, strict=True)]):
            turns = ast.Call(func=ast.Name(id="range", ctx=ast.Load()), args=[copy.deepcopy(size)], keywords=[])
            result = ast.For(target=ast.Name(id=name, ctx=ast.Store()), iter=turns, body=[result], orelse=[])
        for node in ast.walk(result):
            if isinstance(node, ast.stmt | ast.expr):
                ast.copy_location(node, made.statement)
        return result

    def _fresh(self, name: str) -> str:
        while name in self.local or name in self.source.captured:
            name += "_"
        return name


class _PairsApart(ast.NodeTransformer):
    """Writes `a, b = torch.zeros(2), torch.zeros(2)` as two statements."""

    def __init__(self, makes: Callable[[ast.Call], object]) -> None:
        self.makes = makes

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return pairs_apart(node, self.makes)


def pairs_apart(node: ast.stmt, makes: Callable[[ast.Call], object]) -> list[ast.stmt]:
    """Return an assignment of several values as one of each, if a call among these `makes` a tensor."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            names = {item.id for item in targets if isinstance(item, ast.Name)}
            read = {item.id for value in values for item in ast.walk(value) if isinstance(item, ast.Name)}
            made = any(isinstance(item, ast.Call) and makes(item) for item in values)
            if not made or len(names) != len(values) or len(targets) != len(values) or names & read:
                return [node]
            pairs = zip(targets, values, strict=True)
            return [ast.copy_location(ast.Assign(targets=[one], value=value), node) for one, value in pairs]
        case _:
            return [node]


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def unpacked_shapes(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the names that stand for sizes: of `B, T = x.shape`, `n = x.shape[0]` and `n = len(x)`."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(attr="shape")):
                yield from (part.id for part in parts if isinstance(part, ast.Name))
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant())
                | ast.Call(func=ast.Name(id="len")),
            ):
                yield name
            case _:
                pass


def _sizes(call: ast.Call, kind: str) -> list[ast.expr]:
    """Return the sizes of what a call makes, if they are written one by one."""
    match call.args:
        case [ast.Tuple(elts=sizes) | ast.List(elts=sizes), *rest] if len(rest) == (kind == "full"):
            return sizes
        case sizes if kind != "full":
            return sizes
        case _:
            return []


def _filling_value(call: ast.Call, kind: str) -> ast.expr | None:
    """Return what each element is at first; None if it is not a plain number or name."""
    if kind != "full":
        return ast.Constant(value=FILLS.get(kind, 0))
    value = call.args[1]
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    return copy.deepcopy(value) if isinstance(inner, ast.Constant | ast.Name | ast.Attribute) else None


def _fills_a_part(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement stores an element of a tensor in some of its turns or ways alone."""
    parts = [node for node in ast.walk(statement) if isinstance(node, ast.If | ast.While)]
    jumps = any(isinstance(node, ast.Continue | ast.Break) for node in ast.walk(statement))
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for part in ([statement] if jumps else parts)
        for node in ast.walk(part)
    )


def _elements(statement: ast.stmt, name: str, rank: int) -> int:
    """Return how often an element of a tensor is used, or its shape."""
    count = 0
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(value=ast.Name(id=used), slice=index) if used == name:
                axes = index.elts if isinstance(index, ast.Tuple) else [index]
                count += len(axes) == rank and not any(isinstance(axis, ast.Slice | ast.Starred) for axis in axes)
            case ast.Attribute(value=ast.Name(id=used), attr="shape") if used == name:
                count += 1
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=used)]) if used == name:
                count += 1
            case _:
                pass
    return count
