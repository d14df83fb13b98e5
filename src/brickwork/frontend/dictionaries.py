"""Dictionaries whose keys are written, where a function is parsed: tuples of their values, and functions that choose.

    COST[k]                      `COST at`(k, `values of COST`)
    COST.get(k, 0.0)             `COST get`(k, `values of COST`, 0.0)
    k in COST                    k in (0, 1, 2)
    for k, v in COST.items()     for k, v in ((0, `values of COST`[0]), (1, `values of COST`[1]), ...)
    ACTIVATIONS[kind](v)         `ACTIVATIONS call`(kind, v)

So do dictionaries that the function makes, once and whole. Lowering meets none: one that is changed is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard, cast

from brickwork.frontend.environment import MISSING, constant_items, is_number, resolve
from brickwork.frontend.syntax import all_nodes
from brickwork.records import dataclass

_MOST = 64
"""The most keys among which one is looked for."""


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """The keys, and the names of the tuple of the values or, of functions, of each value."""

    name: str
    keys: tuple[object, ...]
    values: str
    functions: tuple[str, ...] = ()


class Dictionaries(ast.NodeTransformer):
    """Writes tuples and choices in place of dictionaries; `tables` are the captured values that they need."""

    def __init__(self, node: ast.FunctionDef, captured: Mapping[str, object], local: frozenset[str]) -> None:
        """Take the function, what names mean, and those that it assigns."""
        self._captured, self._local = captured, local
        self.tables: dict[str, object] = {}
        self._made: dict[str, ast.stmt] = {}
        self._known: dict[str, _Dictionary | None] = {}
        self._own = dict(_own(node))

    def write(self, node: ast.FunctionDef) -> None:
        """Write the dictionaries of a function, and the functions that choose at the head of its body."""
        node.body = [self.visit(item) for item in node.body]
        made = [*self._made.values()]
        documented = ast.get_docstring(node, clean=False) is not None
        node.body[int(documented) : int(documented)] = made

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Write the values of a dictionary as a tuple."""
        self.generic_visit(node)
        if (
            isinstance(node.value, ast.Dict)
            and isinstance(target := node.targets[0], ast.Name)
            and target.id in self._own
        ):
            node.value = ast.copy_location(ast.Tuple(node.value.values, ast.Load()), node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Choose the value of a key."""
        found = self._dictionary(node.value)
        key = self.visit(node.slice)
        if found is not None and found.functions and isinstance(key, ast.Constant) and key.value in found.keys:
            return ast.copy_location(ast.Name(found.functions[found.keys.index(key.value)], ast.Load()), node)
        if found is None or found.functions or not isinstance(node.ctx, ast.Load):
            node.value, node.slice = self.visit(node.value), key
            return node
        return self._call(node, self._at(node, found), [key, self._values(found, node.value)])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write methods of dictionaries, and calls of their values."""
        function = node.func
        owner = function.value if isinstance(function, ast.Attribute | ast.Subscript) else None
        found = None if owner is None else self._dictionary(owner)
        if isinstance(owner, ast.Dict) and isinstance(function, ast.Attribute) and function.attr != "get":
            found = None
        if found is None or node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
            self.generic_visit(node)
            return node
        arguments = [self.visit(item) for item in node.args]
        if isinstance(function, ast.Subscript) and found.functions:
            key = self.visit(function.slice)
            return self._call(node, self._choice(node, found, len(arguments)), [key, *arguments])
        if isinstance(function, ast.Attribute) and not found.functions:
            if function.attr == "get" and len(arguments) in {1, 2}:
                default = arguments[1:] or [ast.Constant(None)]
                values = self._values(found, function.value)
                return self._call(node, self._get(node, found), [arguments[0], values, *default])
            if not arguments and function.attr in {"keys", "values", "items"}:
                return self._listed(node, found, function.attr)
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Look for a key among those that there are."""
        found = self._dictionary(node.comparators[0]) if isinstance(node.ops[0], ast.In | ast.NotIn) else None
        if found is not None:
            node.comparators[0] = self._listed(node.comparators[0], found, "keys")
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Read the tuple of the values: what is left asks for the length."""
        found = self._dictionary(node) if isinstance(node.ctx, ast.Load) else None
        return node if found is None or found.functions else self._values(found, node)

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Run over the keys."""
        found = None if isinstance(node.iter, ast.Dict) else self._dictionary(node.iter)
        if found is not None:
            node.iter = self._listed(node.iter, found, "keys")
        self.generic_visit(node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Run over the keys."""
        found = None if isinstance(node.iter, ast.Dict) else self._dictionary(node.iter)
        if found is not None:
            node.iter = self._listed(node.iter, found, "keys")
        self.generic_visit(node)
        return node

    # ------------------------------------------------------------ what is written

    def _call(self, node: ast.expr, name: str, arguments: Sequence[ast.expr]) -> ast.expr:
        made = ast.Call(ast.Name(name, ast.Load()), [*arguments], [])
        for item in (made, made.func, *arguments):
            if not hasattr(item, "lineno"):
                ast.copy_location(item, node)
        return made

    def _values(self, found: _Dictionary, node: ast.expr) -> ast.expr:
        """Return the values of a dictionary, which stands there."""
        if isinstance(node, ast.Dict):
            return ast.copy_location(ast.Tuple([self.visit(item) for item in node.values], ast.Load()), node)
        return ast.copy_location(ast.Name(found.values, ast.Load()), node)

    def _listed(self, node: ast.expr, found: _Dictionary, what: str) -> ast.expr:
        """Return the keys, the values, or pairs of them, as a tuple."""
        keys: list[ast.expr] = [_constant(key) for key in found.keys]
        values: list[ast.expr] = [
            ast.Subscript(self._values(found, node), ast.Constant(place), ast.Load()) for place, _ in enumerate(keys)
        ]
        pairs = [ast.Tuple([key, value], ast.Load()) for key, value in zip(keys, values, strict=True)]
        if what == "values":
            return self._values(found, node)
        made = ast.Tuple(keys if what == "keys" else [*pairs], ast.Load())
        for item in ast.walk(made):
            ast.copy_location(item, node)
        return made

    def _at(self, node: ast.expr, found: _Dictionary) -> str:
        """Return the name of the function that gives the value of a key."""
        known = range(len(found.keys))
        if len(known) > 1 and sorted(map(repr, found.keys)) == sorted(map(repr, known)):
            values = ", ".join(f"values[{found.keys.index(key)}]" for key in known)
            return self._function(node, found, "at", "key, values", f"({values})[key]")
        *rest, last = enumerate(found.keys)
        text = "".join(f"values[{place}] if key == {key!r} else " for place, key in rest)
        return self._function(node, found, "at", "key, values", f"{text}values[{last[0]}]")

    def _get(self, node: ast.expr, found: _Dictionary) -> str:
        text = "".join(f"values[{place}] if key == {key!r} else " for place, key in enumerate(found.keys))
        return self._function(node, found, "get", "key, values, default", f"{text}default", checked=False)

    def _choice(self, node: ast.expr, found: _Dictionary, count: int) -> str:
        """Return the name of the function that calls the function of a key."""
        given = [f"given_{place}" for place in range(count)]
        called = [f"call_{place}({', '.join(given)})" for place, _ in enumerate(found.functions)]
        *rest, last = zip(called, found.keys, strict=True)
        text = "".join(f"{each} if key == {key!r} else " for each, key in rest)
        name = self._function(node, found, f"call {count}", ", ".join(("key", *given)), f"{text}{last[0]}")
        names = {f"call_{place}": each for place, each in enumerate(found.functions)}
        for item in ast.walk(self._made[name]):
            if isinstance(item, ast.Name):
                item.id = names.get(item.id, item.id)
        return name

    def _function(
        self, node: ast.expr, found: _Dictionary, what: str, parameters: str, result: str, *, checked: bool = True
    ) -> str:
        """Make a function, at the place of the first expression that calls it; return its name."""
        name = f"{found.name} {what}"
        if name in self._made and not found.values and not found.functions:
            name = f"{name} {node.col_offset}"
        test = f"    if key not in {found.keys!r}:\n        raise KeyError('this key is not in {found.name}')\n"
        made = ast.parse(f"def made({parameters}):\n{test if checked else ''}    return {result}").body[0]
        if isinstance(made, ast.FunctionDef) and name not in self._made:
            made.name, self._made[name] = name, made
            for item in ast.walk(made):
                ast.copy_location(item, node)
        return name

    # ------------------------------------------------------------ which are known

    def _dictionary(self, node: ast.expr) -> _Dictionary | None:
        """Return the dictionary that an expression is, if its keys are written and its values are known."""
        if isinstance(node, ast.Dict):
            keys = tuple(map(_key, node.keys))
            is_known = 0 < len(keys) <= _MOST and None not in keys and len({*keys}) == len(keys)
            return _Dictionary(f"the dictionary of line {node.lineno}", keys, "") if is_known else None
        if isinstance(node, ast.Name) and node.id in self._own:
            return _Dictionary(node.id, self._own[node.id], node.id)
        found = resolve(node, self._captured, self._local) if isinstance(node, ast.Name | ast.Attribute) else MISSING
        if not isinstance(found, dict):
            return None
        name = ast.unparse(node)
        if name not in self._known:
            self._known[name] = self._captured_one(name, cast("dict[object, object]", found))
        return self._known[name]

    def _captured_one(self, name: str, found: Mapping[object, object]) -> _Dictionary | None:
        keys, values = tuple(found), tuple(found.values())
        if not 0 < len(keys) <= _MOST or not all(map(_is_key, keys)):
            return None
        if all(map(callable, values)):
            functions = tuple(f"{name}[{key!r}]" for key in keys)
            self.tables |= dict(zip(functions, values, strict=True))
            return _Dictionary(name, keys, "", functions)
        if constant_items(values) is None:
            return None
        self.tables |= {f"values of {name}": values, f"keys of {name}": keys}
        return _Dictionary(name, keys, f"values of {name}")


def _is_key(found: object) -> TypeGuard[int | float | str | tuple[object, ...]]:
    if isinstance(found, tuple):
        return all(map(_is_key, cast("tuple[object, ...]", found)))
    return is_number(found) or isinstance(found, str)


def _constant(key: object) -> ast.expr:
    return ast.parse(repr(key), mode="eval").body


def _own(node: ast.FunctionDef) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the names of the dictionaries that a function makes once and never changes, with the keys."""
    nodes = all_nodes(node)
    if not any(isinstance(item, ast.Dict) for item in nodes):
        return
    names = [item for item in nodes if isinstance(item, ast.Name)]
    stored = [item.id for item in names if isinstance(item.ctx, ast.Store)]
    stored += [item.arg for item in nodes if isinstance(item, ast.arg)]
    read = {id(item) for each in nodes for item in _readers(each)}
    for item in nodes:
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys)) if stored.count(name) == 1:
                uses = [use for use in names if use.id == name and not isinstance(use.ctx, ast.Store)]
                known = [_key(key) for key in keys]
                if known and None not in known and len({*known}) == len(known) and all(id(use) in read for use in uses):
                    yield name, tuple(known)
            case _:
                pass


def _key(node: ast.expr | None) -> object:
    try:
        found = None if node is None else ast.literal_eval(node)
    except ValueError:
        return None
    return found if _is_key(found) else None


def _readers(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what an expression may take for a dictionary that it reads."""
    match node:
        case ast.Subscript(value=value, ctx=ast.Load()):
            yield value
        case ast.Call(func=ast.Attribute(value=value, attr="get" | "keys" | "values" | "items")):
            yield value
        case ast.Call(func=ast.Name(id="len"), args=[value]):
            yield value
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]):
            yield value
        case ast.For(iter=value) | ast.comprehension(iter=value):
            yield value
        case _:
            pass
