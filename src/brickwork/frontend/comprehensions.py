"""Comprehensions where a function is parsed: their names are made unique, and `key=` is written by tuples."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping

from brickwork.frontend.syntax import all_nodes


class Substituted(ast.NodeTransformer):
    """Puts expressions in place of names."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        """Take what each name stands for."""
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return what the name stands for."""
        return self._names.get(node.id, node)


def placed(made: ast.expr, node: ast.expr, known: Container[int]) -> ast.expr:
    """Return an expression whose new parts have the place of a node, each of its own; `known` are those with one."""
    for number, each in enumerate(ast.walk(made)):
        if isinstance(each, ast.expr) and id(each) not in known:
            ast.copy_location(each, node)
            each.end_col_offset = (node.end_col_offset or node.col_offset) + number
    return made


class Unshadowed(ast.NodeTransformer):
    """Gives the names of comprehensions, which are scopes of their own, names that nothing else in the function has."""

    def __init__(self, node: ast.FunctionDef) -> None:
        """Take the names that the function uses outside of comprehensions."""
        self._taken = {item.arg for item in all_nodes(node) if isinstance(item, ast.arg)} | set(_outer_names(node))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Rename what the comprehension binds, if it is used elsewhere."""
        return self._renamed(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """Rename what the comprehension binds, if it is used elsewhere."""
        return self._renamed(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write `tuple(f(i) for i in ...)` and `list(...)` of a generator as those of a list."""
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="sorted" | "min" | "max"), args=[made], keywords=[_, *_]) if self._sorts(
                node
            ):
                return self._sorted(node, made)
            case ast.Call(func=ast.Name(id="tuple" | "list" | "sorted"), args=[ast.GeneratorExp() as made]):
                node.args = [ast.copy_location(ast.ListComp(elt=made.elt, generators=made.generators), made)]
            case ast.Call(func=ast.Name(id="list" | "sorted"), args=[ast.Call(func=ast.Name(id="range"))]):
                node.args = [self._listed(node.args[0])]
            case _:
                pass
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Leave `list(range(n))` in the head of a loop as it is."""
        head, node.iter = node.iter, ast.Constant(None)
        self.generic_visit(node)
        node.iter = head.args[0] if isinstance(head, ast.Call) and _is_listed_range(head) else self.visit(head)
        return node

    def _fresh(self, name: str) -> str:
        """Return a name that nothing else has."""
        fresh, number = name, 1
        while fresh in self._taken:
            number += 1
            fresh = f"{name}_{number}"
        self._taken.add(fresh)
        return fresh

    def _sorts(self, node: ast.Call) -> bool:
        """Return whether a call has a key that is a function of one item."""
        named = {item.arg for item in node.keywords}
        if "key" not in named or not named <= {"key", "reverse"}:
            return False
        return all(
            len(item.value.args.args) == 1
            for item in node.keywords
            if item.arg == "key" and isinstance(item.value, ast.Lambda)
        )

    def _sorted(self, node: ast.Call, made: ast.expr) -> ast.expr:
        """Return `[p[2] for p in sorted([(key, k, v) for k, v in enumerate(items)])]`, and `min` and `max` likewise."""
        known = {item.arg: item.value for item in node.keywords}
        key, backward = known["key"], known.get("reverse")
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        pair, place, item = self._fresh("pair"), self._fresh("place"), self._fresh("item")
        sign = "-" if backward is not None or name == "max" else ""
        text = f"(KEY, {sign}{place}, {item}) for {place}, {item} in enumerate(ITEMS)"
        if name == "sorted":
            options = "" if backward is None else ", reverse=BACKWARD"
            text = f"[{pair}[2] for {pair} in sorted([{text}]{options})]"
        else:
            text = f"{name}({text})[2]"
        read: ast.expr = ast.Name(item, ast.Load())
        if isinstance(key, ast.Lambda):
            value: ast.expr = Substituted({key.args.args[0].arg: read}).visit(key.body)
        else:
            value = ast.Call(key, [read], [])
        parts = {"KEY": value, "ITEMS": made, **({} if backward is None else {"BACKWARD": backward})}
        whole = Substituted(parts).visit(ast.parse(text, mode="eval").body)
        given = {id(each) for part in (key, made) for each in ast.walk(part)}
        return placed(whole, node, given)

    def _listed(self, node: ast.expr) -> ast.expr:
        """Return `[i for i in range(n)]`."""
        name = self._fresh("item")
        target, read = (ast.copy_location(ast.Name(name, context), node) for context in (ast.Store(), ast.Load()))
        return ast.copy_location(ast.ListComp(read, [ast.comprehension(target, node, [], 0)]), node)

    def _renamed(self, node: ast.GeneratorExp | ast.ListComp) -> ast.expr:
        bound = {item.id for part in node.generators for item in all_nodes(part.target) if isinstance(item, ast.Name)}
        first = node.generators[0].iter
        inside = [item for item in all_nodes(node) if isinstance(item, ast.Name)]
        outside = {id(item) for item in all_nodes(first)}
        for name in sorted(bound):
            fresh, number = name, 1
            while fresh in self._taken:
                number += 1
                fresh = f"{name}_{number}"
            self._taken.add(fresh)
            for item in inside:
                if item.id == name and id(item) not in outside:
                    item.id = fresh
        self.generic_visit(node)
        return node


def _is_listed_range(node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="list"), args=[ast.Call(func=ast.Name(id="range"))], keywords=[]):
            return True
        case _:
            return False


def _outer_names(node: ast.AST) -> Iterator[str]:
    """Yield the names outside of comprehensions; the first thing that one runs over is outside."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        yield from _outer_names(node.generators[0].iter)
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _outer_names(child)
