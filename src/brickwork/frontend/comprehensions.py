"""Comprehensions where a function is parsed: their names are made unique, and `key=` is written by them."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

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


_ONCE = ast.Call | ast.NamedExpr | ast.comprehension | ast.Lambda
"""What may mean another thing where it is evaluated again."""


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names in a function, and those of its parameters."""
    for item in all_nodes(node):
        if isinstance(item, ast.Name | ast.arg):
            yield item.id if isinstance(item, ast.Name) else item.arg


_PARTS = frozenset({"enumerate", "reversed", "zip"})
"""Builtins that give what is run over."""


class FreshNames:
    """Gives names that nothing else has."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Take the names that there are."""
        self._taken = set(taken)

    def fresh(self, name: str) -> str:
        """Return a name like this one, or the name itself."""
        fresh, number = name, 1
        while fresh in self._taken:
            number += 1
            fresh = f"{name}_{number}"
        self._taken.add(fresh)
        return fresh


class Unshadowed(ast.NodeTransformer):
    """Gives the names of comprehensions, which are scopes of their own, names that nothing else in the function has."""

    def __init__(self, node: ast.FunctionDef) -> None:
        """Take the names that the function uses outside of comprehensions."""
        self._names = FreshNames([*(item.arg for item in all_nodes(node) if isinstance(item, ast.arg)), *_outer(node)])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Rename what the comprehension binds, if it is used elsewhere."""
        return self._renamed(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """Rename what the comprehension binds, if it is used elsewhere."""
        return self._renamed(node)

    def _renamed(self, node: ast.GeneratorExp | ast.ListComp) -> ast.expr:
        bound = {item.id for part in node.generators for item in all_nodes(part.target) if isinstance(item, ast.Name)}
        names = {name: self._names.fresh(name) for name in sorted(bound)}
        outside = {id(item) for item in all_nodes(node.generators[0].iter)}
        for item in all_nodes(node):
            if isinstance(item, ast.Name) and id(item) not in outside:
                item.id = names.get(item.id, item.id)
            elif isinstance(item, ast.arg) and id(item) not in outside:
                item.arg = names.get(item.arg, item.arg)
        self.generic_visit(node)
        return node


class Listed(ast.NodeTransformer):
    """Writes what builtins make of generators, ranges and `key=` by list comprehensions."""

    def __init__(self, node: ast.FunctionDef, builtin: Container[str]) -> None:
        """Take the function, and the names that mean Python's builtins in it."""
        self._names = FreshNames(names_in(node))
        self._builtin = builtin

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Write `x in {a, b}` as `x in (a, b)`."""
        self.generic_visit(node)
        for place, (sign, item) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(sign, ast.In | ast.NotIn) and isinstance(item, ast.Set):
                node.comparators[place] = ast.copy_location(ast.Tuple(item.elts, ast.Load()), item)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Write `tuple(f(i) for i in ...)` and `list(...)` of a generator as those of a list."""
        self.generic_visit(node)
        name = self._called(node)
        match node.args:
            case [made] if name in {"sorted", "min", "max"} and self._sorts(node, name):
                return self._sorted(node, name, made)
            case [function, *made] if name in {"map", "filter"} and made and not node.keywords:
                return self._mapped(node, name, function, made)
            case [ast.GeneratorExp() as made] if name in {"tuple", "list", "sorted"} or _is_extend(node.func):
                node.args = [_as_list(made)]
            case [made] if name in {"list", "sorted"} and self._called(made) == "range":
                node.args = [self._listed(made)]
            case [made] if name == "list" and self._called(made) in _PARTS:
                return self._listed(made)
            case [*items] if name in _PARTS:
                node.args = [_as_list(item) if isinstance(item, ast.GeneratorExp) else item for item in items]
            case [made] if name in {"sorted", "tuple"} and self._called(made) in _PARTS:
                node.args = [self._listed(made)]
            case [made] if name in {"max", "min"} and self._called(made) in _PARTS:
                items = self._listed(made)
                node.args = [ast.copy_location(ast.GeneratorExp(items.elt, items.generators), items)]
            case _:
                pass
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Write a generator that names are unpacked from as a list."""
        self.generic_visit(node)
        if isinstance(node.value, ast.GeneratorExp) and isinstance(node.targets[0], ast.Tuple | ast.List):
            node.value = _as_list(node.value)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Leave `list(range(n))` in the head of a loop as it is."""
        head, node.iter = node.iter, ast.Constant(None)
        self.generic_visit(node)
        match head:
            case ast.Call(args=[made]) if self._called(head) == "list" and self._called(made) == "range":
                node.iter = made
            case _:
                found = self.visit(head)
                node.iter = _as_list(found) if isinstance(found, ast.GeneratorExp) else found
        return node

    def _called(self, node: ast.expr) -> str:
        """Return the name of the builtin that is called; empty where none is."""
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in self._builtin:
                return name
            case _:
                return ""

    def _sorts(self, node: ast.Call, name: str) -> bool:
        """Return whether a call has a key that is a function of one item; what may be written twice says the order."""
        known = {item.arg: item.value for item in node.keywords}
        if "key" not in known or known.keys() - {"key", "reverse"} or "enumerate" not in self._builtin:
            return False
        order = all_nodes(known["reverse"]) if "reverse" in known else []
        if order and (name != "sorted" or any(isinstance(item, _ONCE) for item in order)):
            return False
        return not isinstance(known["key"], ast.Lambda) or len(known["key"].args.args) == 1

    def _sorted(self, node: ast.Call, name: str, made: ast.expr) -> ast.expr:
        """Return `[p[2] for p in sorted([(key, k, v) for k, v in enumerate(items)])]`, and `min` and `max` likewise.

        `max` and `reverse=True` have `-k` instead, as the first of equal items comes first with these, too.
        """
        known = {item.arg: item.value for item in node.keywords}
        key, backward = known["key"], ast.unparse(known.get("reverse", ast.Constant(name == "max")))
        pair, place, item = self._names.fresh("pair"), self._names.fresh("place"), self._names.fresh("item")
        signed = {"True": f"-{place}", "False": place}.get(backward, f"-{place} if {backward} else {place}")
        text = f"(KEY, {signed}, {item}) for {place}, {item} in enumerate(ITEMS)"
        if name == "sorted":
            text = f"[{pair}[2] for {pair} in sorted([{text}], reverse={backward})]"
        else:
            text = f"{name}({text})[2]"
        read: ast.expr = ast.Name(item, ast.Load())
        if isinstance(key, ast.Lambda):
            value: ast.expr = Substituted({key.args.args[0].arg: read}).visit(key.body)
        else:
            value = ast.Call(key, [read], [])
        whole = Substituted({"KEY": value, "ITEMS": made}).visit(ast.parse(text, mode="eval").body)
        given = {id(each) for part in (key, made) for each in ast.walk(part)}
        return placed(whole, node, given)

    def _mapped(self, node: ast.Call, name: str, function: ast.expr, made: Sequence[ast.expr]) -> ast.expr:
        """Return `(f(p, q) for p, q in zip(x, y))` for `map(f, x, y)`, and `(p for p in x if f(p))` for `filter`."""
        if any(isinstance(item, ast.Starred) for item in made) or (name == "filter" and len(made) != 1):
            return node
        names = [self._names.fresh("item") for _ in made]
        items = [f"ITEMS{place}" for place, _ in enumerate(made)]
        source = items[0] if len(items) == 1 else f"zip({', '.join(items)})"
        reads: list[ast.expr] = [ast.Name(each, ast.Load()) for each in names]
        if isinstance(function, ast.Lambda) and len(function.args.args) == len(made) and not function.args.defaults:
            pairs = zip(function.args.args, reads, strict=True)
            value: ast.expr = Substituted({item.arg: read for item, read in pairs}).visit(function.body)
        elif isinstance(function, ast.Constant) and function.value is None and name == "filter":
            value = reads[0]
        else:
            value = ast.Call(function, reads, [])
        taken, tested = ("VALUE", "") if name == "map" else (names[0], " if VALUE")
        text = f"({taken} for {', '.join(names)} in {source}{tested})"
        known = {"VALUE": value, **dict(zip(items, made, strict=True))}
        whole = Substituted(known).visit(ast.parse(text, mode="eval").body)
        return placed(whole, node, {id(each) for part in (function, *made) for each in ast.walk(part)})

    def _listed(self, node: ast.expr) -> ast.ListComp:
        """Return `[i for i in range(n)]`."""
        name = self._names.fresh("item")
        target, read = (ast.copy_location(ast.Name(name, context), node) for context in (ast.Store(), ast.Load()))
        return ast.copy_location(ast.ListComp(read, [ast.comprehension(target, node, [], 0)]), node)


def _as_list(node: ast.GeneratorExp) -> ast.expr:
    return ast.copy_location(ast.ListComp(elt=node.elt, generators=node.generators), node)


def _is_extend(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "extend"


def _outer(node: ast.AST) -> Iterator[str]:
    """Yield the names outside of comprehensions; the first thing that one runs over is outside."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        yield from _outer(node.generators[0].iter)
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _outer(child)
