"""Calls of Python's library as other calls that the language has.

heapq.nlargest(k, h)                     sorted(h, reverse=True)[:k]
min(a, b, key=f)                         min((a, b), key=f)
itertools.product(range(n), range(m))    bw.ndrange(n, m)
for a, b in itertools.combinations(range(n), 2)    for a in range(n): for b in range(a + 1, n)
for a, b in itertools.product(x, y)      for a in x: for b in y
itertools.permutations(range(n), 2)      the same with `if a == b: continue`; product(x, repeat=2) is product(x, x)
itertools.pairwise(x)                    zip(x, x[1:])
functools.reduce(f, (g(v) for v in x))   functools.reduce(f, [g(v) for v in x])
torch.dot(x[i], y)                       x[i] @ y
d = deque(maxlen=n);  d.append(v)        d = bw.bounded(n);  if len(d) == n: d.pop(0);  d.append(v)
bin(k).count("1")                        int(k).bit_count()
h.sort(key=f)                            h = sorted(h, key=f)
min(x, key=d.__getitem__)                min(x, key=lambda place: d[place])
a, b = (c / s for c in h)                parts = [c / s for c in h];  a, b = parts      outside of loops
"""

from __future__ import annotations

import ast
import collections
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.row_forms import parameters_of
from brickwork.frontend.syntax import all_nodes
from brickwork.language.loops import bounded, ndrange

NAMES = frozenset(
    {"nsmallest", "nlargest", "product", "combinations", "combinations_with_replacement", "permutations", "pairwise"}
    | {"accumulate", "reduce", "dot", "inner", "count", "deque"}
)
"""How such functions may be called, besides `min` and `max` with a keyword."""
_KEYED = frozenset({"min", "max", "sort", "sorted"})
"""What may be given a function of one item."""
_COMBINED: tuple[object, ...] = (
    itertools.combinations,
    itertools.combinations_with_replacement,
    itertools.permutations,
)
"""What runs over several items of a range at a time."""
_NDRANGE, _BOUNDED = "__ndrange__", "__bounded__"


def spell_calls(
    node: ast.FunctionDef, captured: Callable[[], Mapping[str, object]], local: frozenset[str]
) -> Mapping[str, object]:
    """Spell such calls out in a function; return what their names mean. `captured` is asked where there may be some."""
    node.body = [part for item in node.body for part in _items_first(item)]
    if not any(isinstance(item, ast.Call) and _may_be_spelled(item) for item in all_nodes(node)):
        return {}
    speller = _Calls(node, captured(), local)
    node.body = [speller.visit(item) for item in node.body]
    ast.fix_missing_locations(node)
    return speller.names


def _may_be_spelled(node: ast.Call) -> bool:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in NAMES or (name in _KEYED and bool(node.keywords))
        case _:
            return False


def _items_first(node: ast.stmt) -> list[ast.stmt]:
    """Return a statement that gives several names the items of a generator, behind one that makes a list of them."""
    match node:
        case ast.Assign(targets=[ast.Tuple()], value=ast.GeneratorExp(elt=item, generators=[clause])) if not clause.ifs:
            name = f"items_{node.lineno}"
            made = ast.Assign([ast.Name(name, ast.Store())], ast.ListComp(item, [clause]))
            node.value = ast.Name(name, ast.Load())
            return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (made, node)]
        case _:
            return [node]


class _Calls(ast.NodeTransformer):
    def __init__(self, whole: ast.FunctionDef, captured: Mapping[str, object], local: frozenset[str]) -> None:
        self._whole = whole
        self._captured = captured
        self._local = local
        self.names: dict[str, object] = {}
        self._limits: dict[str, ast.expr] = {}
        self._given = parameters_of(whole)

    def _means(self, node: ast.expr, function: object) -> bool:
        return resolve(node, self._captured, self._local) is function

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Make a deque with a limit a list with room for as many."""
        self.generic_visit(node)
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as made):
                most = _limit(made)
                if most is not None and self._means(made.func, collections.deque):
                    self._limits[name], self.names[_BOUNDED] = most, bounded
                    call = ast.Call(ast.Name(_BOUNDED, ast.Load()), [most], [])
                    node.value = ast.fix_missing_locations(ast.copy_location(call, made))
            case _:
                pass
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        """Take the first item out of a full deque before another one is appended."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")) if name in self._limits:
                most = ast.unparse(self._limits[name])
                made = ast.parse(f"if len({name}) == {most}:\n    {name}.pop(0)").body[0]
                for item in ast.walk(made):
                    ast.copy_location(item, node)
                return [made, node]
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sort"), args=[], keywords=[_, *_] as words):
                if name in self._given or "sorted" in self._local or all(word.arg != "key" for word in words):
                    return node
                ordered = ast.Call(ast.Name("sorted", ast.Load()), [ast.Name(name, ast.Load())], words)
                made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ordered), node)
                return ast.fix_missing_locations(made)
            case _:
                return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Nest a loop for each thing that combinations and products are made of."""
        nested = self._nested(node) if not node.orelse else None
        if nested is None or not _may_be_nested(node, nested):
            self.generic_visit(node)
            return node
        if self._means(node.iter.func if isinstance(node.iter, ast.Call) else node.iter, itertools.permutations):
            pairs = itertools.combinations([name.id for name, _ in nested], 2)
            test = " or ".join(f"{one} == {other}" for one, other in pairs)
            skip = ast.parse(f"if {test}:\n    continue").body[0]
            node.body.insert(0, skip)
            for item in ast.walk(skip):
                ast.copy_location(item, node)
        leaves = any(map(_breaks, node.body))
        copies = [ast.Name(name.id, ast.Load()) for name, _ in nested]
        if ast.unparse(node.target) != ast.unparse(ast.Tuple(list(copies), ast.Load())):
            node.body.insert(0, ast.copy_location(ast.Assign([node.target], ast.Tuple(list(copies), ast.Load())), node))
        for target, source in reversed(nested[1:]):
            inner = ast.copy_location(ast.For(target, source, node.body, [ast.Continue()] if leaves else []), node)
            node.body = [inner, ast.Break()] if leaves else [inner]
        node.target, node.iter = nested[0]
        ast.fix_missing_locations(node)
        return self.visit(node)

    def _are_used_elsewhere(self, node: ast.For, names: set[str]) -> bool:
        """Return whether the variables of a loop are read or stored elsewhere, or stored in its body."""
        own = {id(item) for item in ast.walk(node) if not _is_store(item)} | {
            id(item) for item in ast.walk(node.target)
        }
        others = {item.id for item in ast.walk(self._whole) if isinstance(item, ast.Name) and id(item) not in own}
        return not names.isdisjoint(others)

    def _nested(self, node: ast.For) -> list[tuple[ast.Name, ast.expr]] | None:
        """Return the loops that one over `itertools.combinations` or `product` stands for, with their variables.

        Variables that are used elsewhere, too, get copies: those of outer loops have values where there is no item.
        """
        match node:
            case ast.For(target=ast.Tuple(elts=names), iter=ast.Call() as call):
                found, arguments = resolve(call.func, self._captured, self._local), _repeated(call)
            case _:
                return None
        words = [item.id for item in names if isinstance(item, ast.Name)]
        if len(words) < max(len(names), 2) or len({*words}) < len(words) or "range" in self._local:
            return None
        prefix = "__" if self._are_used_elsewhere(node, {*words}) else ""
        variables = [ast.Name(prefix + word, ast.Store()) for word in words]
        if arguments is None:
            return None
        if found is itertools.product and len(arguments) == len(names):
            return [*zip(variables, arguments, strict=True)]
        match arguments:
            case [ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), ast.Constant(value=count)] if (
                found in _COMBINED and count == len(names) and len(bounds) in {1, 2}
            ):
                first = bounds[0] if len(bounds) == 2 else ast.Constant(0)
                step = ast.Constant(int(found is itertools.combinations))
                starts = [first, *(ast.BinOp(ast.Name(item.id, ast.Load()), ast.Add(), step) for item in variables)]
                starts = [first] * len(names) if found is itertools.permutations else starts
                calls = [ast.Call(ast.Name("range", ast.Load()), [start, bounds[-1]], []) for start in starts]
                return [*zip(variables, calls, strict=False)]
            case _:
                return None

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Put another call in the place of one."""
        self.generic_visit(node)
        found = resolve(node.func, self._captured, self._local)
        counted = _counted_bits(node)
        if (
            counted is not None
            and resolve(counted.func, self._captured, self._local) is bin
            and "int" not in self._local
        ):
            whole = ast.copy_location(ast.Call(ast.Name("int", ast.Load()), counted.args, []), counted)
            node.func, node.args = ast.copy_location(ast.Attribute(whole, "bit_count", ast.Load()), node.func), []
        for word in node.keywords if _name(node.func) in _KEYED or intrinsic(found) is None else []:
            word.value = _read_by(word)
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
            case "itertools.accumulate", [ast.GeneratorExp() as items, *_]:
                node.args[0] = ast.copy_location(ast.ListComp(items.elt, items.generators), items)
            case "itertools.accumulate", [ast.Call(func=ast.Name(id="range")) as items, *_]:
                node.args[0] = ast.copy_location(ast.Call(ast.Name("list", ast.Load()), [items], []), items)
            case "functools.reduce", [_, ast.GeneratorExp() as items, *_]:
                node.args[1] = ast.copy_location(ast.ListComp(items.elt, items.generators), items)
            case "torch.dot" | "torch.inner", [left, right] if isinstance(left, _PART) or isinstance(right, _PART):
                made = ast.BinOp(left, ast.MatMult(), right)
            case _, [ast.Name() | ast.Subscript() as items] if found is itertools.pairwise and "zip" not in self._local:
                rest = ast.Subscript(items, ast.Slice(ast.Constant(1)), ast.Load())
                made = ast.Call(ast.Name("zip", ast.Load()), [items, rest], [])
            case "builtins.list", [ast.Call() as inner] if self._means(inner.func, itertools.accumulate):
                made = inner
            case _ if found is itertools.product and (arguments := _repeated(node)) is not None:
                made = _ranges(arguments)
                self.names |= {} if made is None else {_NDRANGE: ndrange}
            case _:
                pass
        return node if made is None else ast.copy_location(made, node)


_PART = ast.Subscript
"""What is a row in a loop: of tensors as a whole torch's function is called."""


def _read_by(node: ast.keyword) -> ast.expr:
    """Return the function that `key=` says, `d.__getitem__` as a lambda."""
    match node:
        case ast.keyword(arg="key", value=ast.Attribute(value=ast.Name() as items, attr="__getitem__") as method):
            made = ast.parse(f"lambda at_{items.id}: {items.id}[at_{items.id}]", mode="eval").body
            for item in ast.walk(made):
                ast.copy_location(item, method)
            return made
        case _:
            return node.value


def _repeated(node: ast.Call) -> list[ast.expr] | None:
    """Return the arguments of a call, as often as `repeat` says; None if there are other keywords."""
    match node.keywords:
        case []:
            return node.args
        case [ast.keyword(arg="repeat", value=ast.Constant(value=int(count)))] if 0 < count < 8:
            return node.args * count
        case _:
            return None


def _breaks(node: ast.AST) -> bool:
    """Return whether a statement leaves the loop around it."""
    if isinstance(node, ast.For | ast.While):
        return any(map(_breaks, node.orelse))
    return isinstance(node, ast.Break) or any(map(_breaks, ast.iter_child_nodes(node)))


def _may_be_nested(node: ast.For, nested: Sequence[tuple[ast.Name, ast.expr]]) -> bool:
    """Return whether the body changes no name of what the loops run over, which is asked for more often then."""
    sources = {item.id for _, source in nested for item in ast.walk(source) if isinstance(item, ast.Name)}
    sources -= {name.id for name, _ in nested}
    stored = {item.id for part in (node.target, *node.body) for item in all_nodes(part) if _is_store(item)}
    calls = [item for _, source in nested for item in ast.walk(source) if isinstance(item, ast.Call)]
    return stored.isdisjoint(sources) and all(_name(item.func) in {"range", "len"} for item in calls)


def _is_store(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _counted_bits(node: ast.Call) -> ast.Call | None:
    """Return the `bin(k)` of `bin(k).count("1")`."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="count"), args=[ast.Constant(value="1")], keywords=[]):
            return inner if isinstance(inner, ast.Call) and len(inner.args) == 1 else None
        case _:
            return None


def _limit(node: ast.Call) -> ast.expr | None:
    """Return the `n` of `deque(maxlen=n)`, which is a number or a name."""
    match node:
        case ast.Call(args=[] | [ast.List(elts=[])], keywords=[ast.keyword(arg="maxlen", value=most)]):
            return most if isinstance(most, ast.Name | ast.Constant | ast.Attribute) else None
        case _:
            return None


def _ranges(arguments: Sequence[ast.expr]) -> ast.expr | None:
    """Return `bw.ndrange` of as many ranges; None if something else is run over."""
    sizes: list[ast.expr] = []
    for item in arguments:
        match item:
            case ast.Call(func=ast.Name(id="range"), args=[size], keywords=[]):
                sizes.append(size)
            case ast.Call(func=ast.Name(id="range"), args=[start, stop], keywords=[]):
                sizes.append(ast.Tuple([start, stop], ast.Load()))
            case _:
                return None
    return ast.Call(ast.Name(_NDRANGE, ast.Load()), sizes, []) if sizes else None
