"""Tensors that the host part makes of others, or of numbers, spelled out: an allocation, and what fills it.

    y = x.clone()                  y = torch.empty_like(x);  y[...] = x
    y = torch.eye(n)         ->    y = torch.zeros(n, n);    for k in range(n): y[k, k] = 1
    y = x.float()                  y = x if that has the type, else a copy in it

So such a host part is compiled. What may be the argument itself, as `x.float()`, is spelled out only where nobody could
tell: its elements are read, and it is not returned.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.frontend.computed_numbers import Computed
from brickwork.frontend.environment import (
    ALLOCATIONS,
    MISSING,
    constant_items,
    intrinsic,
    is_number,
    resolve,
    torch_dtype,
)
from brickwork.frontend.lift import Splitter
from brickwork.frontend.moved_tensors import pairs_apart, unpacked_shapes
from brickwork.frontend.results import result_expressions, returns_of
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.stores import Helpers, stored_names
from brickwork.frontend.syntax import all_nodes

FLOATS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
"""The methods that convert to a type of floats."""
NAMES = {"range": range, "min": min, "RuntimeError": RuntimeError}
"""What loops that fill tensors call, besides torch."""
MOST_ITEMS = 64
"""How many items `torch.tensor([...])` may have to be stored one by one: as many statements stand in the code."""


def with_tensors_spelled_out(source: SourceFunction, helpers: Helpers, splitter: Splitter) -> SourceFunction | None:
    """Return the function with new tensors spelled out; None if nothing is."""
    known = {**NAMES, "torch": sys.modules["torch"]}
    if source.local & known.keys() or any(
        source.captured.get(name, found) is not found for name, found in known.items()
    ):
        return None
    node = copy.deepcopy(source.node)
    speller = _Speller(replace(source, node=node), helpers, splitter)
    node.body = speller.block(node.body, is_body=True)
    if not speller.changed:
        return None
    ast.fix_missing_locations(node)
    return replace(source, node=node, captured={**known, **source.captured})


class _Speller:
    """Spells out the statements of a copy of a function."""

    def __init__(self, source: SourceFunction, helpers: Helpers, splitter: Splitter) -> None:
        self.source = source
        self.splitter = splitter
        self.local = source.local
        self.names = {*self.local}
        self.tensors = {*splitter.tensors}
        self.changed = False
        arguments = source.node.args
        declared = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        kinds = {item.arg: ast.unparse(item.annotation).strip("'\"") for item in declared if item.annotation}
        self.integers = {name for name, kind in kinds.items() if kind == "int"} | {*unpacked_shapes(source.node)}
        self.numbers = {name for name, kind in kinds.items() if kind in {"int", "float", "bool"}}
        returned = (item for each in returns_of(source) for item in result_expressions(each))
        names: set[str] = {item.id for item in returned if isinstance(item, ast.Name)}
        self.computed = Computed(source, self.tensors, self.numbers)
        self.seen = {*stored_names(source, helpers), *names}
        """Names of which somebody could tell whether they are arguments."""

    def block(self, block: list[ast.stmt], *, is_body: bool = False, in_loop: bool = False) -> list[ast.stmt]:
        """Return a block with its statements spelled out."""
        made: list[ast.stmt] = []
        block = [item for statement in block for item in pairs_apart(statement, self._is_of_tensors)]
        for place, statement in enumerate(block):
            if isinstance(statement, ast.If | ast.For | ast.While):
                within = in_loop or not isinstance(statement, ast.If)
                statement.body = self.block(statement.body, in_loop=within)
                statement.orelse = self.block(statement.orelse, in_loop=within)
            if isinstance(statement, ast.Return) and not in_loop:
                made += self._returned(statement)
                continue
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name) or len(statement.targets) > 1:
                made.append(statement)
                continue
            name, rest = target.id, block[place + 1 :]
            uses = [item for item in all_nodes(statement.value) if isinstance(item, ast.Name) and item.id == name]
            fresh = self._fresh(name) if uses and is_body else name
            found = [] if uses and not is_body else [*self._spelled(fresh, name in self.seen, statement.value)]
            if not found:
                made.append(statement)
                continue
            self.changed = True
            self.tensors.add(fresh)
            made += [_placed(each, statement.value if number else statement) for number, each in enumerate(found)]
            if fresh != name:
                for item in (item for each in rest for item in ast.walk(each)):
                    if isinstance(item, ast.Name) and item.id == name:
                        item.id = fresh
                self.seen |= {fresh} if name in self.seen else set[str]()
        return made

    def _returned(self, node: ast.Return) -> list[ast.stmt]:
        """Return `return v` for `return torch.tensor(v)`: a number that is returned becomes a tensor."""
        before: list[ast.stmt] = []
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        made = [item if item is None else self._number_of(item, before) for item in parts]
        if made != parts:
            self.changed = True
            if isinstance(node.value, ast.Tuple):
                node.value.elts = [item for item in made if item is not None]
            else:
                node.value = made[0]
        return [*(_placed(each, node) for each in before), _placed(node, node)]

    def _number_of(self, node: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """Return the number of `torch.tensor(v)`, or a tensor of the type that is named, which `before` makes."""
        match node:
            case ast.Call(func=ast.Attribute(value=torch) as function, args=[value], keywords=words):
                found = intrinsic(resolve(function, self.source.captured, self.local))
                if found != "torch.tensor" or not self.computed.is_number(value):
                    return node
                if not self.splitter.touches_elements(value):
                    return _call(torch, "full", [ast.Tuple([], ast.Load()), value], words)
                if not words:
                    return value
                if any(word.arg != "dtype" for word in words):
                    return node
                name = self._fresh("result")
                before.append(_assigned(name, _call(torch, "empty", [ast.Tuple([], ast.Load())], words)))
                target = ast.Subscript(ast.Name(name, ast.Load()), ast.Tuple([], ast.Load()), ast.Store())
                before.append(ast.Assign([target], value))
                return ast.copy_location(ast.Name(name, ast.Load()), node)
            case ast.Call(func=ast.Attribute(attr="clone"), args=[], keywords=[]):
                name = self._fresh("result")
                made = [*self._spelled(name, seen=True, node=node)]
                before += made
                return ast.copy_location(ast.Name(name, ast.Load()), node) if made else node
            case _:
                return node

    def _spelled(self, name: str, seen: bool, node: ast.expr) -> Iterator[ast.stmt]:
        """Yield the statements that give `name` a value; nothing where the source stays as it is."""
        if not isinstance(node, ast.Call):
            return
        found = resolve(node.func, self.source.captured, self.local)
        if found is MISSING and isinstance(node.func, ast.Attribute):
            yield from self._of_owner(name, seen, node.func, node)
            return
        function = intrinsic(found) or ""
        if function == "torch.clone" and len(node.args) == 1 and self._is_tensor(node.args[0]) and not node.keywords:
            yield from self._copy(name, node.args[0], ())
        elif isinstance(node.func, ast.Attribute) and all(word.arg in {"dtype", "device"} for word in node.keywords):
            if any(isinstance(item, ast.Starred) for item in node.args):
                return
            match function:
                case "torch.eye":
                    yield from self._eye(name, node.func.value, node)
                case "torch.arange":
                    yield from self._arange(name, node.func.value, node)
                case "torch.tensor":
                    yield from self._tensor(name, node.func.value, node)
                case _:
                    pass

    def _of_owner(self, name: str, seen: bool, function: ast.Attribute, node: ast.Call) -> Iterator[ast.stmt]:
        """Yield what a method gives, of a tensor that has a name or is made before it."""
        owner = function.value
        if self._is_tensor(owner):
            yield from self._of_tensor(name, seen, owner, function.attr, node)
            return
        if not isinstance(owner, ast.Call):
            return
        fresh, found = self._fresh(name), resolve(owner.func, self.source.captured, self.local)
        before = [*self._spelled(fresh, seen and function.attr != "clone", owner)]
        if not before and intrinsic(found) in ALLOCATIONS:
            before = [_assigned(fresh, copy.deepcopy(owner))]
        if before:
            self.tensors.add(fresh)
            may_be_told = seen and found is MISSING
            after = [*self._of_tensor(name, may_be_told, ast.Name(fresh, ast.Load()), function.attr, node)]
            yield from (_placed(each, owner) for each in before if after)
            yield from after

    def _is_of_tensors(self, call: ast.Call) -> bool:
        """Return whether a call is of a tensor's method or of PyTorch's functions."""
        of_torch = (intrinsic(resolve(call.func, self.source.captured, self.local)) or "").startswith("torch.")
        return of_torch or (isinstance(call.func, ast.Attribute) and self._is_tensor(call.func.value))

    def _is_tensor(self, node: ast.expr) -> bool:
        """Return whether an expression is a tensor, or its first rows."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is None:
            bounds = [item for item in (node.slice.lower, node.slice.upper) if item is not None]
            return self._is_tensor(node.value) and all(map(self._is_integer, bounds))
        return isinstance(node, ast.Name) and node.id in self.tensors

    def _is_integer(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.Name(id=name):
                return name in self.integers
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant() | ast.UnaryOp()):
                return True
            case ast.Call(func=ast.Name(id="len") | ast.Attribute(attr="size" | "numel" | "dim"), keywords=[]):
                return len(node.args) == 1 or not isinstance(node.func, ast.Name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._is_integer(operand)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=right):
                return self._is_integer(left) and self._is_integer(right)
            case _:
                return False

    # ------------------------------------------------------------ of a tensor

    def _of_tensor(self, name: str, seen: bool, owner: ast.expr, method: str, node: ast.Call) -> Iterator[ast.stmt]:
        """Yield what `owner.method(...)` is."""
        words = {word.arg: word.value for word in node.keywords}
        if method == "clone" and not node.args and not words:
            yield from self._copy(name, owner, ())
            return
        dtype: ast.expr | None = None
        if method in FLOATS and not node.args and not words:
            dtype = ast.Attribute(ast.Name("torch", ast.Load()), FLOATS[method], ast.Load())
        elif method == "to" and len(node.args) == 1 and not {*words} - {"copy"} and self._is_float_type(node.args[0]):
            dtype = node.args[0]
        if dtype is not None and isinstance(words.get("copy"), ast.Constant) and ast.unparse(words["copy"]) == "True":
            yield from self._copy(name, owner, [ast.keyword("dtype", dtype)])
            return
        if seen or not isinstance(owner, ast.Name) or words or (dtype is None and method != "contiguous"):
            return
        same = ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(owner))
        if dtype is None:
            yield same
            return
        own = ast.Attribute(copy.deepcopy(owner), "dtype", ast.Load())
        test = ast.Compare(own, [ast.Eq()], [copy.deepcopy(dtype)])
        fresh = self._fresh(name)  # a name that is stored into would say that the owner is
        first, *rest = self._copy(fresh, owner, [ast.keyword("dtype", dtype)])
        rest.append(_assigned(name, ast.Name(fresh, ast.Load())))
        yield ast.If(test, [same], [first, *(_placed(each, node) for each in rest)])

    def _is_float_type(self, node: ast.expr) -> bool:
        """Return whether an expression is a type to which a conversion drops no fraction, or that of a tensor."""
        named = torch_dtype(resolve(node, self.source.captured, self.local))
        is_asked = isinstance(node, ast.Attribute) and node.attr == "dtype" and isinstance(node.value, ast.Name)
        return named in FLOATS.values() or (is_asked and named is None)

    def _copy(self, name: str, owner: ast.expr, words: Sequence[ast.keyword]) -> Iterator[ast.stmt]:
        like = ast.Attribute(ast.Name("torch", ast.Load()), "empty_like", ast.Load())
        yield _assigned(name, ast.Call(like, [copy.deepcopy(owner)], [*words]))
        whole = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(...), ast.Store())
        yield ast.Assign([whole], copy.deepcopy(owner))

    # ------------------------------------------------------------ of numbers

    def _eye(self, name: str, torch: ast.expr, node: ast.Call) -> Iterator[ast.stmt]:
        if not 1 <= len(node.args) <= 2 or not all(map(self._is_integer, node.args)):
            return
        rows, columns = node.args[0], node.args[-1]
        yield _assigned(name, _call(torch, "zeros", [rows, columns], node.keywords))
        index = self._fresh(f"{name}_0")
        both = [rows] if len(node.args) == 1 else [ast.Call(ast.Name("min", ast.Load()), [rows, columns], [])]
        yield _filled(name, index, both[0], [index, index], ast.Constant(1))

    def _arange(self, name: str, torch: ast.expr, node: ast.Call) -> Iterator[ast.stmt]:
        if not 1 <= len(node.args) <= 3 or not all(map(self._is_integer, node.args)):
            return
        index = self._fresh(f"{name}_0")
        value: ast.expr = ast.Name(index, ast.Load())
        start, stop = (node.args[0], node.args[1]) if len(node.args) > 1 else (ast.Constant(0), node.args[0])
        size = stop if len(node.args) == 1 else ast.BinOp(stop, ast.Sub(), start)
        if len(node.args) == 3:
            rounded = ast.BinOp(ast.BinOp(start, ast.Sub(), stop), ast.FloorDiv(), node.args[2])
            size = ast.UnaryOp(ast.USub(), rounded)
            value = ast.BinOp(value, ast.Mult(), node.args[2])
            span = ast.BinOp(ast.BinOp(stop, ast.Sub(), start), ast.Mult(), node.args[2])
            text = ast.Constant("upper bound and lower bound inconsistent with step sign")
            wrong = ast.Raise(ast.Call(ast.Name("RuntimeError", ast.Load()), [text], []))
            yield ast.If(copy.deepcopy(ast.Compare(span, [ast.Lt()], [ast.Constant(0)])), [wrong], [])
        if len(node.args) > 1:
            value = ast.BinOp(start, ast.Add(), value)
        yield _assigned(name, _call(torch, "empty", [size], _typed(torch, node.keywords, "int64")))
        yield _filled(name, index, size, [index], value)

    def _tensor(self, name: str, torch: ast.expr, node: ast.Call) -> Iterator[ast.stmt]:
        if len(node.args) != 1:
            return
        value = node.args[0]
        if self._is_number(value):
            yield _assigned(name, _call(torch, "full", [ast.Tuple([], ast.Load()), value], node.keywords))
            return
        items, sizes = self._items(value)
        if not 0 < len(items) <= MOST_ITEMS or not sizes:
            return
        kinds = {type(item) for item in items}
        dtype = "bool" if kinds == {bool} else "int64"
        words = node.keywords if float in kinds else _typed(torch, node.keywords, dtype)
        shape = ast.Tuple([ast.Constant(size) for size in sizes], ast.Load())
        yield _assigned(name, _call(torch, "empty", [shape], words))
        for place, item in enumerate(items):
            rest, index = place, list[ast.expr]()
            for size in reversed(sizes):
                rest, at = divmod(rest, size)
                index.insert(0, ast.Constant(at))
            at_place = index[0] if len(index) == 1 else ast.Tuple(index, ast.Load())
            target = ast.Subscript(ast.Name(name, ast.Load()), at_place, ast.Store())
            yield ast.Assign([target], ast.Constant(item))

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and self._is_number(node.operand)
        is_constant = isinstance(node, ast.Constant) and is_number(node.value)
        is_argument = isinstance(node, ast.Name) and node.id in self.numbers
        return is_constant or is_argument or is_number(resolve(node, self.source.captured, self.local))

    def _items(self, node: ast.expr) -> tuple[list[float], tuple[int, ...]]:
        """Return the numbers of a list that is written or captured, and its sizes; no sizes if it has other items."""
        try:
            found: object = ast.literal_eval(node)
        except (ValueError, TypeError):
            found = resolve(node, self.source.captured, self.local)
        sizes = list[int]()
        level: list[object] = [constant_items(found)]
        while level and all(isinstance(each, tuple) for each in level):
            rows = [constant_items(each) or () for each in level]
            if len({*map(len, rows)}) != 1:
                return [], ()
            sizes.append(len(rows[0]))
            level = [constant_items(item) or item for row in rows for item in row]
        numbers: list[float] = [item for item in level if isinstance(item, bool | int | float)]
        return (numbers, tuple(sizes)) if len(numbers) == len(level) else ([], ())

    def _fresh(self, name: str) -> str:
        name += "_"
        while name in self.names or name in self.source.captured:
            name += "_"
        self.names.add(name)
        return name


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _call(torch: ast.expr, name: str, arguments: Sequence[ast.expr], words: Sequence[ast.keyword]) -> ast.Call:
    function = ast.Attribute(copy.deepcopy(torch), name, ast.Load())
    return ast.Call(function, [copy.deepcopy(item) for item in arguments], [copy.deepcopy(word) for word in words])


def _typed(torch: ast.expr, words: Sequence[ast.keyword], name: str) -> list[ast.keyword]:
    """Return keywords with a dtype: that which is there, or `torch.name`."""
    if any(word.arg == "dtype" for word in words):
        return [*words]
    return [*words, ast.keyword("dtype", ast.Attribute(copy.deepcopy(torch), name, ast.Load()))]


def _filled(name: str, index: str, count: ast.expr, places: Sequence[str], value: ast.expr) -> ast.stmt:
    """Return the loop over `index` that stores a value at some places."""
    at: list[ast.expr] = [ast.Name(place, ast.Load()) for place in places]
    where = at[0] if len(at) == 1 else ast.Tuple(at, ast.Load())
    store = ast.Assign([ast.Subscript(ast.Name(name, ast.Load()), where, ast.Store())], copy.deepcopy(value))
    turns = ast.Call(ast.Name("range", ast.Load()), [copy.deepcopy(count)], [])
    return ast.For(ast.Name(index, ast.Store()), turns, [store], [])


def _placed(statement: ast.stmt, node: ast.AST) -> ast.stmt:
    """Return a statement with its parts placed where `node` stands, but for those that have a place."""
    for item in ast.walk(statement):
        if isinstance(item, ast.stmt | ast.expr | ast.keyword) and not hasattr(item, "lineno"):
            ast.copy_location(item, node)
    return statement
