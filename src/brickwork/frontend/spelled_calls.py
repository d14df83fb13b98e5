"""Calls of Python's library as other calls that the language has.

heapq.nlargest(k, h)                     sorted(h, reverse=True)[:k]
min(a, b, key=f)                         min((a, b), key=f)
itertools.product(range(n), range(m))    bw.ndrange(n, m)
functools.reduce(f, (g(v) for v in x))   functools.reduce(f, [g(v) for v in x])
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping

from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.syntax import all_nodes
from brickwork.language.loops import ndrange

NAMES = frozenset({"nsmallest", "nlargest", "product", "reduce"})
"""How such functions may be called, besides `min` and `max` with a keyword."""
_NDRANGE = "__ndrange__"


def spell_calls(
    node: ast.FunctionDef, captured: Callable[[], Mapping[str, object]], local: frozenset[str]
) -> Mapping[str, object]:
    """Spell such calls out in a function; return what their names mean. `captured` is asked where there may be some."""
    if not any(isinstance(item, ast.Call) and _may_be_spelled(item) for item in all_nodes(node)):
        return {}
    speller = _Calls(captured(), local)
    node.body = [speller.visit(item) for item in node.body]
    ast.fix_missing_locations(node)
    return speller.names


def _may_be_spelled(node: ast.Call) -> bool:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in NAMES or (name in {"min", "max"} and bool(node.keywords))
        case _:
            return False


class _Calls(ast.NodeTransformer):
    def __init__(self, captured: Mapping[str, object], local: frozenset[str]) -> None:
        self._captured = captured
        self._local = local
        self.names: dict[str, object] = {}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put another call in the place of one."""
        self.generic_visit(node)
        found = resolve(node.func, self._captured, self._local)
        made: ast.expr | None = None
        match intrinsic(found), node.args:
            case "builtins.min" | "builtins.max", [_, _, *_] if any(word.arg == "key" for word in node.keywords):
                made = ast.Call(node.func, [ast.Tuple(node.args, ast.Load())], node.keywords)
            case "heapq.nsmallest" | "heapq.nlargest" as name, [count, items] if not self._local & {"sorted", "max"}:
                order = [ast.keyword("reverse", ast.Constant(True))] if name == "heapq.nlargest" else []
                ordered = ast.Call(ast.Name("sorted", ast.Load()), [items], [*node.keywords, *order])
                if not isinstance(count, ast.Constant):  # of a negative number there are none
                    count = ast.Call(ast.Name("max", ast.Load()), [count, ast.Constant(0)], [])
                made = ast.Subscript(ordered, ast.Slice(upper=count), ast.Load())
            case "functools.reduce", [_, ast.GeneratorExp() as items, *_]:
                node.args[1] = ast.copy_location(ast.ListComp(items.elt, items.generators), items)
            case _ if found is itertools.product:
                made = _ranges(node)
                self.names |= {} if made is None else {_NDRANGE: ndrange}
            case _:
                pass
        return node if made is None else ast.copy_location(made, node)


def _ranges(node: ast.Call) -> ast.expr | None:
    """Return `bw.ndrange` of as many ranges; None if something else is run over."""
    sizes: list[ast.expr] = []
    for item in node.args:
        match item:
            case ast.Call(func=ast.Name(id="range"), args=[size], keywords=[]):
                sizes.append(size)
            case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
                sizes.append(ast.Tuple([start, stop], ast.Load()))
            case _:
                return None
    return ast.Call(ast.Name(_NDRANGE, ast.Load()), sizes, []) if sizes and not node.keywords else None
