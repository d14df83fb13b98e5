"""`torch.tensor(keep)` and `torch.stack(rows)` of lists of numbers, and of rows, that the loops of an operator fill.

Here such a list becomes a tensor with as much room, and a count, which the loops leave; the host part takes as many
items of it. A list that Python runs over, or that is made in a loop, stays as it is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.frontend.complex_values import is_complex
from brickwork.frontend.element_stores import store
from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.grown_lists import item_at, length
from brickwork.frontend.lift import Split
from brickwork.frontend.list_forms import is_bounded, made_lists
from brickwork.frontend.lowering_state import State, describe
from brickwork.frontend.made_row_forms import is_number, is_of_host
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.row_forms import parameters_of
from brickwork.frontend.rules import BUILTINS, error
from brickwork.frontend.shared_names import side_by_side
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.typing import Grown, Items, Operand, Value, View, numbers_of
from brickwork.ir.build import integer
from brickwork.ir.dtypes import COMPLEX, COMPLEX64, DType
from brickwork.ir.nodes import Expression
from brickwork.ir.tensor_types import type_of
from brickwork.language.kept import items_of, joined, stacked, taken
from brickwork.language.math import is_pointwise
from brickwork.legality import hazard, legality

_ITEMS_OF, _LENGTH, _TAKEN = "__items_of__", "__length__", "__taken__"
_OF_ROWS = {"torch.stack": "__stacked__", "torch.cat": "__joined__", "torch.concat": "__joined__"}
_MEANINGS = {_ITEMS_OF: items_of, _LENGTH: len, _TAKEN: taken, "__stacked__": stacked, "__joined__": joined}


def with_lists_kept(source: SourceFunction) -> SourceFunction | None:
    """Return a function whose `torch.tensor(keep)` takes items of a tensor; None where there is no such list."""
    calls = [item for item in all_nodes(source.node) if isinstance(item, ast.Call)]
    if not any(_is_made_of_items(source, item) for item in calls):
        return None
    node = copy.deepcopy(source.node)
    node.body = _begun_late([*_spread(source, node)])
    keeper = _Keeper(source, node)
    node.body = [made for item in node.body for made in keeper.taken(item)]
    if not keeper.found:
        return None
    for name, used in keeper.found.items():
        _leave(node.body, name, used, counted=name not in keeper.exact)
    ast.fix_missing_locations(node)
    return replace(source, node=node, captured={**source.captured, **_MEANINGS})


def kept_rows(source: SourceFunction) -> frozenset[str]:
    """Return the tensors that loops leave in place of lists of rows."""
    calls = (item for item in ast.walk(source.node) if isinstance(item, ast.Call) and isinstance(item.func, ast.Name))
    return frozenset(
        item.args[0].id
        for item in calls
        if isinstance(item.func, ast.Name) and item.func.id in _OF_ROWS.values() and isinstance(item.args[0], ast.Name)
    )


def kept_names(source: SourceFunction) -> frozenset[str]:
    """Return the lists that loops leave as tensors, with the names of these and of their counts."""
    names: set[str] = set()
    for node in source.node.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=items)], value=ast.Call(func=ast.Name(id=name), args=[ast.Name(id=of)])
            ):
                names |= {items, of, _count(of)} if name == _ITEMS_OF else set()
            case _:
                pass
    return frozenset(names)


def leaves_lists(split: Split, names: frozenset[str]) -> bool:
    """Return whether all that is done with such lists is in one piece each."""
    lists = {name for name in names if not name.startswith("__")}
    return all(lists.isdisjoint({*piece.inputs, *piece.outputs}) for piece in split.pieces)


def _items(name: str) -> str:
    return f"__items_of_{name}__"


def _count(name: str) -> str:
    return f"__count_of_{name}__"


def _leave(body: list[ast.stmt], name: str, used: ast.stmt, *, counted: bool) -> None:
    """Let a tensor and a count stand for a list, behind the last statement with it before it is used."""
    before = body[: body.index(used)]
    mentions = [any(isinstance(item, ast.Name) and item.id == name for item in ast.walk(node)) for node in before]
    last = len(mentions) - mentions[::-1].index(True)
    texts = f"{_items(name)} = {_ITEMS_OF}({name})", f"{_count(name)} = {_LENGTH}({name})"
    made = [ast.increment_lineno(ast.parse(text), used.lineno - 1).body[0] for text in texts[: 1 + counted]]
    body[last:last] = made


def _is_made_of_items(source: SourceFunction, node: ast.Call) -> bool:
    """Return whether a call is `torch.tensor`, `stack` or `cat` of a name or of a comprehension."""
    if not node.args or not isinstance(node.args[0], ast.Name | ast.ListComp):
        return False
    if _of_rows(source, node) is not None:
        axes = [*node.args[1:], *(word.value for word in node.keywords)]
        named = all(word.arg in {"dim", "axis"} for word in node.keywords)
        return named and len(axes) < 2 and all(map(is_number, axes))
    others = [word for word in node.keywords if word.arg != "dtype" and not _is_own_device(word)]
    if others or len(node.args) != 1:
        return False
    return intrinsic(resolve(node.func, source.captured, source.local)) == "torch.tensor"


def _of_rows(source: SourceFunction, node: ast.Call) -> str | None:
    """Return what is called in place of a function of torch's that joins rows."""
    return _OF_ROWS.get(intrinsic(resolve(node.func, source.captured, source.local)) or "")


def _is_own_device(word: ast.keyword) -> bool:
    """Return whether a keyword is `device=x.device`: what loops leave lies where the arguments do."""
    return word.arg == "device" and isinstance(word.value, ast.Attribute) and word.value.attr == "device"


def _spread(source: SourceFunction, node: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements of a function, with lists that tensors are made of begun empty, and filled then."""
    calls = (item for item in all_nodes(node) if isinstance(item, ast.Call) and _is_made_of_items(source, item))
    wanted = {item.args[0].id for item in calls if isinstance(item.args[0], ast.Name)}
    stores = [item.id for item in all_nodes(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)]
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if _begins_lists(
                names, values
            ):
                pairs = [*zip(names, values, strict=True)]
                yield from (_placed(ast.Assign([name], item), item) for name, item in pairs if _is_empty(item))
                left = [pair for pair in pairs if not _is_empty(pair[1])]
                given = (
                    ast.Tuple([name for name, _ in left], ast.Store()),
                    ast.Tuple([item for _, item in left], ast.Load()),
                )
                target, value = left[0] if len(left) == 1 else given
                yield from [_placed(ast.Assign([target], value), statement.value)] if left else []
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.ListComp() as made) if (
                name in wanted and stores.count(name) == 1 and _is_alone(node, made)
            ):
                yield from _filled(name, made)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.List(elts=[ast.Constant() as item]), op=ast.Mult(), right=count),
            ) if name in wanted and stores.count(name) == 1:
                turns = ast.Call(ast.Name("range", ast.Load()), [count], [])
                clause = ast.comprehension(ast.Name(f"turn_of_{name}", ast.Store()), turns, [], 0)
                yield from _filled(name, ast.copy_location(ast.ListComp(item, [clause]), statement))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[_, *_] as items)) if (
                name in wanted and stores.count(name) == 1 and not any(isinstance(item, ast.Starred) for item in items)
            ):
                yield _empty(name, statement.value)
                yield from (_placed(ast.Expr(ast.Call(_append(name), [item], [])), item) for item in items)
            case _:
                yield statement


def _begins_lists(names: list[ast.expr], values: list[ast.expr]) -> bool:
    """Return whether an assignment of several names makes empty lists, by names that the others do not read."""
    begun = [name for name, value in zip(names, values, strict=False) if _is_empty(value)]
    return len(names) == len(values) and bool(begun) and {*_names_in(*values)}.isdisjoint(_names_in(*begun))


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


def _begun_late(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return statements where each empty list begins right before what mentions it first: one kernel has both then."""
    found: list[ast.stmt] = []
    waiting: dict[str, ast.stmt] = {}
    for node in body:
        begun = [waiting.pop(name) for name in [*waiting] if name in {*_names_in(node)}]
        found += begun
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                waiting[name] = node
            case _:
                found.append(node)
    return [*found, *waiting.values()]


def _append(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(name, ast.Load()), "append", ast.Load())


def _empty(name: str, node: ast.expr) -> ast.stmt:
    return _placed(ast.Assign([ast.Name(name, ast.Store())], ast.List([], ast.Load())), node)


def _filled(name: str, node: ast.ListComp) -> Iterator[ast.stmt]:
    """Yield the loops that a comprehension stands for, behind the empty list that they fill."""
    made: ast.stmt = ast.Expr(ast.Call(_append(name), [node.elt], []))
    for clause in reversed(node.generators):
        for test in reversed(clause.ifs):
            made = ast.If(test, [made], [])
        made = ast.For(clause.target, clause.iter, [made], [])
    yield _empty(name, node)
    yield _placed(made, node)


class _Keeper(ast.NodeTransformer):
    def __init__(self, source: SourceFunction, node: ast.FunctionDef) -> None:
        self._source = source
        self.found: dict[str, ast.stmt] = {}
        """The lists of which tensors are made, with the first statement that does so."""
        self.exact: set[str] = set()
        """Those that hold as many items as they have room for."""
        self._before: list[ast.stmt] = []
        self._node = node
        self._lists = {name for name in _empty_lists(source, node.body) if _holds_numbers(node, name)}

    def taken(self, node: ast.stmt) -> Iterator[ast.stmt]:
        """Yield a statement of the body, behind the loops that its comprehensions have become."""
        self._before, self._statement = [], node
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef):
            node = self.visit(node)
        yield from self._before
        yield node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Take items of a tensor in place of a list's."""
        self.generic_visit(node)
        if not _is_made_of_items(self._source, node):
            return node
        rows = _of_rows(self._source, node)
        name = (
            None if rows and not _is_only_filled(self._source, self._node, node.args[0]) else self._named(node.args[0])
        )
        if name is None:
            return node
        self.found.setdefault(name, self._statement)
        body = [*self._before, *self._node.body]
        if rows and _is_full(self._node, body, name):
            self.exact.add(name)
        known = None if name in self.exact or not rows else _known_count(self._node, body, name)
        count = ast.Constant(None) if name in self.exact else known or ast.Name(_count(name), ast.Load())
        arguments: list[ast.expr] = [ast.Name(_items(name), ast.Load()), count]
        if rows:
            axes = [*node.args[1:], *(word.value for word in node.keywords)]
            return ast.copy_location(ast.Call(ast.Name(rows, ast.Load()), [*arguments, *axes], []), node)
        words = [word for word in node.keywords if not _is_own_device(word)]
        return ast.copy_location(ast.Call(ast.Name(_TAKEN, ast.Load()), arguments, words), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """Leave what may read variables of a comprehension around it."""
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Leave what may read variables of a generator around it."""
        return node

    def _named(self, node: ast.expr) -> str | None:
        """Return the name of the list; a comprehension gets one, and becomes a loop."""
        if isinstance(node, ast.Name):
            return node.id if node.id in self._lists else None
        if not isinstance(node, ast.ListComp) or not _is_alone(self._node, node):
            return None
        name = f"listed_{node.lineno}_{node.col_offset}"
        self._before += _filled(name, node)
        return name


@legality
def _is_full(whole: ast.FunctionDef, body: list[ast.stmt], name: str) -> bool:
    """Return whether each addition to a list takes place in every iteration of a loop whose length the host knows."""
    stores = [item.id for item in ast.walk(whole) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)]
    varying = {*stores}
    for node in whole.body:
        if isinstance(node, ast.Assign) and is_of_host(node.value, frozenset(varying)):
            names = [item.id for target in node.targets for item in ast.walk(target) if isinstance(item, ast.Name)]
            varying -= {item for item in names if stores.count(item) == 1}
    sure = [*body]
    for node in body:
        match node:
            case ast.For(iter=head, orelse=[]) if _turns(whole, head, frozenset(varying)) is not None:
                ends = (ast.Break, ast.Continue, ast.Return, ast.Raise)
                sure += [] if any(isinstance(item, ends) for item in ast.walk(node)) else node.body
            case _:
                pass
    return sum(_adds(item, name) for node in body for item in ast.walk(node)) == sum(
        isinstance(item, ast.Expr) and _adds(item.value, name) for item in sure
    )


@legality
def _turns(whole: ast.FunctionDef, head: ast.expr, varying: frozenset[str]) -> ast.expr | None:
    """Return what is as long as a loop with this head runs: a range of the host's, or a parameter; None of others."""
    match head:
        case ast.Call(func=ast.Name(id="range"), args=given, keywords=[]):
            return head if all(is_of_host(item, varying) for item in given) else None
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return _turns(whole, inner, varying)
        case ast.Name(id=name):
            return head if name in parameters_of(whole) else None
        case _:
            return None


@legality
def _known_count(whole: ast.FunctionDef, body: list[ast.stmt], name: str) -> ast.expr | None:
    """Return how many items a list has, from what the host knows; None where branches or loops decide that."""
    stores = {item.id for item in ast.walk(whole) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    terms: list[str] = []
    for node in body:
        match node:
            case ast.For(iter=head, orelse=[]) if (
                (over := _turns(whole, head, frozenset(stores))) is not None
                and stores.isdisjoint(_names_in(over))
                and not any(isinstance(item, ast.Break | ast.Continue | ast.Return) for item in ast.walk(node))
            ):
                added, turns = _added(node.body, name), f" * len({ast.unparse(over)})"
            case _:
                added, turns = _added([node], name), ""
        if added is None:
            return None
        terms += [f"{added}{turns}"] if added else []
    return ast.parse(" + ".join(terms) or "0", mode="eval").body


@legality
def _added(block: list[ast.stmt], name: str) -> int | None:
    """Return how many items some statements add to a list, whichever way they run; None where that is not known."""
    count = 0
    for node in block:
        match node:
            case ast.Expr(value=value) if _adds(value, name):
                count += 1
            case ast.If(body=then, orelse=other) if (added := _added(then, name)) == _added(other, name):
                if added is None:
                    return None
                count += added
            case _ if any(_adds(item, name) for item in ast.walk(node)):
                return None
            case _:
                pass
    return count


def _adds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="append")):
            return owner == name
        case _:
            return False


@legality
def _is_only_filled(source: SourceFunction, whole: ast.FunctionDef, node: ast.expr) -> bool:
    """Return whether a list of rows, if it has a name, is added to and then joined, once, and nothing else.

    Rows that `torch.cat` joins may be of several lengths: they are of one, where one call adds them.
    """
    if not isinstance(node, ast.Name):
        return True
    calls = [item for item in ast.walk(whole) if isinstance(item, ast.Call)]
    made = [item for item in calls if item.args and _of_rows(source, item)]
    joins = [item for item in made if isinstance(item.args[0], ast.Name) and item.args[0].id == node.id]
    adds = [item for item in calls if _adds(item, node.id)]
    if len(joins) != 1 or any(item.lineno >= joins[0].lineno for item in adds):
        return False
    slices = any(isinstance(item, ast.Slice) for item in ast.walk(whole))
    if _of_rows(source, joins[0]) == "__joined__" and (len(adds) > 1 or slices):
        return False
    allowed = {id(item.args[0]) for item in joins}
    allowed |= {id(item.func.value) for item in calls if isinstance(item.func, ast.Attribute) and _adds(item, node.id)}
    loads = (item for item in ast.walk(whole) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load))
    return all(id(item) in allowed for item in loads if item.id == node.id) and not _holds_stored(whole, node.id)


@hazard
def _holds_stored(whole: ast.FunctionDef, name: str) -> bool:
    """Return whether a list may hold parts of tensors that are stored into: Python would see them change in it."""
    nodes = [*ast.walk(whole)]
    calls = [item for item in nodes if isinstance(item, ast.Call)]
    shared = {part for item in calls if _adds(item, name) for part in _shown(item.args[0])}
    lists = made_lists(whole, {}, frozenset())
    assigns = [(target, item.value) for item in nodes if isinstance(item, ast.Assign) for target in item.targets]
    shares = [pair for target, value in assigns for pair in side_by_side(target, value)]
    # What is stored into a tensor is copied; a list has the tensor itself.
    copies = [isinstance(target, ast.Subscript) and lists.isdisjoint(_names_in(target.value)) for target, _ in shares]
    pairs = [
        ({*_names_in(target)}, {*_shown(value)})
        for (target, value), is_copy in zip(shares, copies, strict=True)
        if not is_copy
    ]
    for _ in pairs:
        shared |= {part for pair in pairs for part in set[str]().union(*pair) if pair[0] & shared or pair[1] & shared}
    stored = {
        *(part for item in nodes if isinstance(item, ast.AugAssign) for part in _names_in(item.target)),
        *(
            part
            for item in nodes
            if isinstance(item, ast.Subscript) and isinstance(item.ctx, ast.Store)
            for part in _names_in(item.value)
        ),
        *(part for item in calls for part in _given(item)),
        *(part for item in calls for part in _changed(item)),
    }
    given = {item.arg for item in nodes if isinstance(item, ast.arg)}
    return bool(shared & stored) or bool(shared & given and stored & given)


def _names_in(*nodes: ast.AST) -> Iterator[str]:
    return (item.id for node in nodes for item in ast.walk(node) if isinstance(item, ast.Name))


def _given(node: ast.Call) -> Iterator[str]:
    """Yield what a function that is no builtin is given, which it may store into."""
    return _names_in(*node.args) if isinstance(node.func, ast.Name) and node.func.id not in BUILTINS else iter(())


def _changed(node: ast.Call) -> Iterator[str]:
    """Yield what a method changes in place, and what `out=` names."""
    if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        yield from _names_in(node.func.value, *node.args)
    yield from (part for word in node.keywords if word.arg == "out" for part in _names_in(word.value))


def _shown(node: ast.expr) -> Iterator[str]:
    """Yield the names of tensors of which an expression may be a part, and not a new tensor."""
    match node:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Constant() | ast.Call(func=ast.Attribute(attr="clone")):
            return iter(())
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=attr)) if is_pointwise(f"torch.{attr}"):
            return iter(())
        case _:
            return _names_in(node)


def _is_alone(whole: ast.FunctionDef, node: ast.ListComp) -> bool:
    """Return whether a comprehension gives numbers, and nothing else has the names of its variables."""
    targets = {part.id for clause in node.generators for part in ast.walk(clause.target) if isinstance(part, ast.Name)}
    inside = {id(part) for part in ast.walk(node)}
    others = {part.id for part in ast.walk(whole) if isinstance(part, ast.Name) and id(part) not in inside}
    return targets.isdisjoint(others) and not isinstance(node.elt, ast.List | ast.ListComp)


def _empty_lists(source: SourceFunction, body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=made) if is_bounded(made, source.captured, source.local):
                yield name
            case _:
                pass


def _holds_numbers(node: ast.FunctionDef, name: str) -> bool:
    """Return whether a name stands for one list, into which no lists are put."""
    stores = (item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store))
    names = [item.id for item in stores]
    others = made_lists(node, {}, frozenset())
    for item in ast.walk(node):
        match item:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner)), args=[*_, added]) if owner == name:
                if isinstance(added, ast.List | ast.ListComp) or (isinstance(added, ast.Name) and added.id in others):
                    return False
            case _:
                pass
    loads = (item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load))
    return names.count(name) == 1 and [item.id for item in loads].count(name) > 1


def _placed(statement: ast.stmt, place: ast.expr) -> ast.stmt:
    """Return a statement whose parts that were not in the source are at a place."""
    for item in ast.walk(statement):
        if not hasattr(item, "lineno"):
            ast.copy_location(item, place)
    return statement


# ---------------------------------------------------------------- lowering


def tensor_of_items(state: State, found: Operand, loc: Location) -> Operand:
    """Return a new tensor with the items of a list, and as much room; Python's floats are of torch's default dtype."""
    if not isinstance(found, Grown):
        raise error("BW101", f"{describe(found)} is no list of numbers", loc, "begin with an empty list")
    if found.axes:
        return View(found.tensors[0])
    first = item_at(state, found, integer(0, loc), loc)
    columns = first.items if isinstance(first, Items) else (first,)
    types = {_stored_type(state, item) for item in columns}
    dtype = types.pop() if types else None
    if dtype is None:
        advice = "make a tensor with a column for each number, and store into it"
        raise error("BW101", f"the items of `{found.name}` are not numbers, or tuples of them", loc, advice)
    if types:
        message = f"the items of `{found.name}` are tuples of numbers of several types"
        raise error("BW101", message, loc, "write `float(...)` or `int(...)` around some, or make a tensor of each")
    sizes = (len(columns),) if isinstance(first, Items) else ()
    kind = type_of(dtype, 1 + len(sizes), dense=True)
    tensor = state.tensor(f"items_of_{found.name}", kind)
    others = tuple(integer(size, loc) for size in (*sizes, *((2,) if kind.pairs else ())))
    state.pending.append((tensor, found.site, loc, others))

    def put(turn: Expression) -> None:
        item = item_at(state, found, turn, loc)
        for place, number in enumerate(item.items if isinstance(item, Items) else (item,)):
            at = (turn, integer(place, loc)) if sizes else (turn,)
            store(state, View(tensor, at), number, loc)

    emit_loop(state, state.pin(length(state, found, loc), "length"), put, loc)
    return View(tensor)


def _stored_type(state: State, item: Operand) -> DType | None:
    """Return the type of elements that hold a number; None for anything else."""
    if is_complex(item):
        part = _stored_type(state, next(numbers_of(item)))
        return COMPLEX64 if part is None else COMPLEX.get(part, COMPLEX64)
    if not isinstance(item, Value):
        return None
    return state.default_dtype if item.weak and item.dtype.is_float else item.dtype
