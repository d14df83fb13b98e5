"""Lists that are made inside compiled code: displays, repetitions, comprehensions, concatenations and copies.

A display that is never stored into stays a tuple of its items (`typing.Items`). Any other list is an array whose items
have one type, the one in which all that is ever stored into it meets: a `Local` of the IR where a loop makes it anew,
else, or where its length is known only at run time, scratch memory that the host part allocates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NoReturn

from brickwork.diagnostics.location import Location
from brickwork.frontend.arithmetic import is_nonnegative
from brickwork.frontend.evaluation_order import kept
from brickwork.frontend.expressions import operand, operands
from brickwork.frontend.grown_forms import grows, listed, make_grown
from brickwork.frontend.indexing import load, scalar, size_of
from brickwork.frontend.iterables import Iterable, Listed, is_listed, item, iterable, trips
from brickwork.frontend.list_forms import copied, is_list, repeated, wrapped
from brickwork.frontend.loops import UNROLLED, AssignTarget, Loop, bind_target, lower_loop
from brickwork.frontend.lowering_state import (
    Frame,
    Growth,
    Key,
    ListArray,
    ListDemanded,
    LoopLevel,
    State,
    describe,
)
from brickwork.frontend.plain_loops import emit_loop
from brickwork.frontend.random_sites import place
from brickwork.frontend.row_arrays import array_of
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import Grown, Items, Operand, Record, Value, View, numbers_of
from brickwork.ir.build import add, apply, cast, integer, mul
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Constant, Expression, Statement, Store, Tensor
from brickwork.records import dataclass

SHORT = 16
"""The most items of a repetition that are written one by one."""


def make_list(state: State, frame: Frame, node: ast.expr, name: str, assign: AssignTarget) -> Operand:
    """Return a new list."""
    loc = frame.loc(node)
    inner = wrapped(node, frame.source.captured, frame.local)
    key = (*frame.path, place(inner or node)), "list"
    if grows(state, frame, inner or node, name, key):
        with state.in_kernel():
            return make_grown(state, frame, inner or node, name, key, assign)
    parts = _Parts(state, frame)
    if key not in state.arrays:
        made = node if inner is None and state.values.kinds else inner
        found = _items(parts, made, key, assign) if isinstance(made, ast.ListComp) else None
        found = found or _plain(parts, inner or node, key)
        if found is not None:
            return found
    holder = inner or node
    if isinstance(holder, ast.ListComp):
        with state.in_kernel():
            over = parts.iterable(holder.generators[0].iter)
            count = trips(over, loc)
            if isinstance(holder.elt, ast.Tuple) or not (isinstance(count, Constant) or state.is_host(count)):
                return listed(state, frame, holder, name, key, assign, over)
    with state.in_kernel():
        maker = _Maker(state, frame, parts, key, name, loc, assign, state.block, len(state.block))
        maker.fill(inner or node, (), ())
        tensor = maker.tensor
        if tensor is None:
            raise unsupported("an empty list that is stored into", loc, "give it its items when it is made")
    state.fresh.add(tensor)
    return View(tensor)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a list is made of, each evaluated once however often it is asked for: by the node of the source."""

    state: State
    frame: Frame
    iterables: dict[int, Iterable] = field(default_factory=dict[int, Iterable])
    operands: dict[int, Operand] = field(default_factory=dict[int, Operand])

    def iterable(self, node: ast.expr) -> Iterable:
        """Return what a comprehension runs over."""
        if id(node) not in self.iterables:
            self.iterables[id(node)] = iterable(self.state, self.frame, node)
        return self.iterables[id(node)]

    def operand(self, node: ast.expr) -> Operand:
        """Return what is copied, or how often a list is repeated."""
        if id(node) not in self.operands:
            self.operands[id(node)] = operand(self.state, self.frame, node)
        return self.operands[id(node)]


def _plain(made_of: _Parts, node: ast.expr, key: Key) -> Items | None:
    """Return a short display, repetition or copy as a tuple of its items; it may turn out to be an array."""
    state, frame = made_of.state, made_of.frame
    if isinstance(node, ast.List):
        items = operands(state, frame, node.elts)
        state.fresh -= {item.tensor for item in items if isinstance(item, View)}
        return Items(items, key)
    if (parts := repeated(node)) is not None and isinstance(parts[0], ast.List):
        count = scalar(state, made_of.operand(parts[1]), frame.loc(parts[1])).expression
        if isinstance(count, Constant) and int(count.value) * len(parts[0].elts) <= SHORT:
            return Items(operands(state, frame, parts[0].elts) * max(int(count.value), 0), key)
    if (source := copied(node, frame.source.captured, frame.local)) is not None:
        found = made_of.operand(source)
        if isinstance(found, Items):
            return Items(found.items, key)
    return None


def _items(made_of: _Parts, node: ast.ListComp, key: Key, assign: AssignTarget) -> Items | None:
    """Return what a generator of few items makes as a tuple of them."""
    state, frame = made_of.state, made_of.frame
    loc, clause = frame.loc(node), node.generators[0]
    if len(node.generators) != 1 or clause.ifs:
        return None
    over = made_of.iterable(clause.iter)
    count = trips(over, loc)
    most = UNROLLED if is_listed(over) and state.values.kinds else SHORT
    if not isinstance(count, Constant) or count.value > most:
        return None
    bindings, local = dict(frame.bindings), frame.local
    frame.local |= {item.id for item in ast.walk(clause.target) if isinstance(item, ast.Name)}
    found: list[Operand] = []
    for turn in range(int(count.value)):
        state.loops.append(LoopLevel(integer(turn, loc), count, frame.is_regular(clause.iter), {}, frame.path))
        bind_target(state, frame, clause.target, item(state, over, integer(turn, loc), loc), assign)
        position = len(state.block)
        latest = operands(state, frame, [node.elt])
        found = [*(kept(state, one, position, loc) for one in found), *latest]
        state.loops.pop()
    frame.bindings, frame.local = bindings, local
    return Items(tuple(found), key)


@dataclass(slots=True)
class _Maker:
    """A list that is being filled; its tensor is made when its sizes are known, and declared where it begins."""

    state: State
    frame: Frame
    parts: _Parts
    key: Key
    name: str
    loc: Location
    assign: AssignTarget
    outside: list[Statement]
    position: int
    tensor: Tensor | None = None
    sizes: tuple[Expression, ...] = ()

    def fill(self, node: ast.expr, sizes: tuple[Expression, ...], indices: tuple[Expression, ...]) -> None:
        """Store what a node makes at these indices; `sizes` are those of the lists around it."""
        frame = self.frame
        node = wrapped(node, frame.source.captured, frame.local) or node
        if not is_list(node, frame.source.captured, frame.local):
            self.item(node, sizes, indices)
            return
        self.part(node, self.length(node), sizes, indices)

    def length(self, node: ast.expr) -> Expression:
        """Return how many items a list has."""
        state, loc = self.state, self.frame.loc(node)
        if isinstance(node, ast.List):
            return integer(len(node.elts), loc)
        if (parts := repeated(node)) is not None:
            count = scalar(state, self.parts.operand(parts[1]), loc)
            if not count.dtype.is_integer and count.dtype is not BOOL:
                raise error("BW101", f"a list is repeated {count.type} times", loc, "write int(...) around it")
            times = self.natural(cast(count.expression, INT64, loc), loc)
            return mul(self.length(parts[0]), times, loc)
        if isinstance(node, ast.BinOp):
            left, right = self.length(node.left), self.length(node.right)
            return add(right, left, loc) if isinstance(left, Constant) else add(left, right, loc)
        if isinstance(node, ast.ListComp):
            return self.natural(trips(self.run_over(node), loc), loc)
        return self.copied(node)[1]

    def natural(self, count: Expression, loc: Location) -> Expression:
        """Return a length: 0 for a negative one."""
        if is_nonnegative(self.state, count):
            return count
        return apply("maximum", count, integer(0, loc), loc=loc)

    def run_over(self, node: ast.ListComp) -> Iterable:
        """Return what a comprehension runs over."""
        loc = self.frame.loc(node)
        if len(node.generators) != 1 or node.generators[0].ifs:
            advice = "write a `for` loop that stores into `[0] * n`"
            raise error("BW003", "a list comprehension has one `for` and no `if` here", loc, advice)
        return self.parts.iterable(node.generators[0].iter)

    def copied(self, node: ast.expr) -> tuple[View | Items, Expression]:
        """Return what is copied, and its length."""
        loc = self.frame.loc(node)
        source = copied(node, self.frame.source.captured, self.frame.local)
        found = self.parts.operand(source if source is not None else node)
        if isinstance(found, Grown):
            self.grow()
        if isinstance(found, Items):
            return found, integer(len(found.items), loc)
        if not isinstance(found, View) or found.rank == 0:
            raise error("BW101", f"{describe(found)} cannot be copied into a list", loc, "copy a list")
        if found.rank > 1:
            advice = "write `[row[:] for row in a]`, which copies the rows too"
            raise unsupported("a copy of a nested list, which shares its rows", loc, advice)
        return found, size_of(found, 0, loc).expression

    # ------------------------------------------------------------ parts

    def part(
        self,
        node: ast.expr,
        size: Expression,
        sizes: tuple[Expression, ...],
        indices: tuple[Expression, ...],
        offset: Expression | None = None,
    ) -> None:
        """Store the items of a list from `offset` on, into one of `size` items."""
        inner, loc = (*sizes, size), self.frame.loc(node)
        start = integer(0, loc) if offset is None else offset
        parts = repeated(node)
        if isinstance(node, ast.List):
            for number, element in enumerate(node.elts):
                self.fill(element, inner, (*indices, add(start, integer(number, loc), loc)))
        elif parts is not None:
            self.repetition(parts[0], self.length(node), inner, (*indices, start))
        elif isinstance(node, ast.BinOp):
            self.part(node.left, size, sizes, indices, start)
            self.part(node.right, size, sizes, indices, add(start, self.length(node.left), loc))
        elif isinstance(node, ast.ListComp):
            self.comprehension(node, inner, (*indices, start))
        else:
            self.copy(node, inner, (*indices, start))

    def repetition(
        self, node: ast.expr, count: Expression, sizes: tuple[Expression, ...], indices: tuple[Expression, ...]
    ) -> None:
        """Store the items of a display `count` times in all; they are evaluated once."""
        loc, captured, local = self.frame.loc(node), self.frame.source.captured, self.frame.local
        if not isinstance(node, ast.List) or not node.elts:
            raise unsupported("a repetition of this", loc, "repeat a list of items: `[0] * n`")
        if any(is_list(element, captured, local) for element in node.elts):
            advice = "write `[[0] * m for _ in range(n)]`"
            raise error("BW003", "all rows of this list are one and the same list", loc, advice)
        items = [self.number(operand(self.state, self.frame, element), sizes, loc) for element in node.elts]
        values = [Value(self.state.fix(item.expression, "item"), item.weak) for item in items]
        several = integer(len(values), loc)
        trips = count if len(values) == 1 else apply("floordiv", count, several, loc=loc)
        if isinstance(count, Constant) and count.value <= len(values):
            for number, item in enumerate(values[: int(count.value)]):
                self.store(item, sizes, (*indices[:-1], add(indices[-1], integer(number, loc), loc)), loc)
            return

        def body(turn: Expression) -> None:
            for number, item in enumerate(values):
                at = add(indices[-1], add(mul(turn, several, loc), integer(number, loc), loc), loc)
                self.store(item, sizes, (*indices[:-1], at), loc)

        self.loop(trips, body, loc)

    def comprehension(self, node: ast.ListComp, sizes: tuple[Expression, ...], indices: tuple[Expression, ...]) -> None:
        """Store the items of a comprehension; its names are of no one else."""
        state, frame, loc = self.state, self.frame, self.frame.loc(node)
        clause = node.generators[0]
        bindings, local = dict(frame.bindings), frame.local
        frame.local |= {item.id for item in ast.walk(clause.target) if isinstance(item, ast.Name)}

        over = self.run_over(node)

        def at(turn: Expression) -> None:
            self.fill(node.elt, sizes, (*indices[:-1], add(indices[-1], turn, loc)))

        items = over.items if isinstance(over, Listed) else ()
        if (same := _same(items)) is not None:
            bind_target(state, frame, clause.target, same, self.assign)
            self.loop(integer(len(items), loc), at, loc)
        else:
            loop = Loop(clause.target, (over,), loc, frame.is_regular(clause.iter))
            lower_loop(state, frame, loop, lambda: at(state.loops[-1].iteration or integer(0, loc)), self.assign)
        frame.bindings, frame.local = bindings, local

    def copy(self, node: ast.expr, sizes: tuple[Expression, ...], indices: tuple[Expression, ...]) -> None:
        """Store the items of another list."""
        loc = self.frame.loc(node)
        found, count = self.copied(node)
        if isinstance(found, Items) and isinstance(same := _same(found.items), Value):
            self.loop(
                count, lambda turn: self.store(same, sizes, (*indices[:-1], add(indices[-1], turn, loc)), loc), loc
            )
            return
        if isinstance(found, Items):
            for number, item in enumerate(found.items):
                at = add(indices[-1], integer(number, loc), loc)
                self.store(self.number(item, sizes, loc), sizes, (*indices[:-1], at), loc)
            return

        def body(turn: Expression) -> None:
            item = load(self.state, View(found.tensor, (*found.indices, turn), indexed=True), loc)
            self.store(self.number(item, sizes, loc), sizes, (*indices[:-1], add(indices[-1], turn, loc)), loc)

        self.loop(count, body, loc)

    def loop(self, count: Expression, body: Callable[[Expression], None], loc: Location) -> None:
        """Emit a loop of `count` iterations."""
        emit_loop(self.state, count, body, loc)

    # ------------------------------------------------------------ items

    def item(self, node: ast.expr, sizes: tuple[Expression, ...], indices: tuple[Expression, ...]) -> None:
        """Store one item."""
        loc = self.frame.loc(node)
        found = operand(self.state, self.frame, node)
        if isinstance(found, View) and found.rank and found.tensor in self.state.lists:
            advice = f"write a copy: `{ast.unparse(node)}[:]`"
            raise unsupported("a list inside a list that is indexed by a variable or stored into", loc, advice)
        self.store(self.number(found, sizes, loc), sizes, indices, loc)

    def number(self, found: Operand, sizes: tuple[Expression, ...], loc: Location) -> Value:
        """Return an item as a number; a list of tuples or of values with parts is one that grows."""
        if len(sizes) == 1 and isinstance(found, Items | Record):
            self.grow()
        return scalar(self.state, found, loc)

    def grow(self) -> NoReturn:
        """Begin anew, with a list that grows."""
        self.state.growth.setdefault(self.key, Growth())
        raise ListDemanded

    def store(self, item: Value, sizes: tuple[Expression, ...], indices: tuple[Expression, ...], loc: Location) -> None:
        """Store a value."""
        state = self.state
        state.widen(self.key, item.type, self.name, loc)
        if self.tensor is None:
            self.sizes = sizes
            self.tensor = self.make(sizes)
        elif len(sizes) != len(self.sizes):
            raise error("BW102", "numbers and lists are mixed in a list", loc, "give all rows the same form")
        elif sizes != self.sizes:
            raise error(
                "BW102", "the rows of a list differ in length", loc, "make them of one length, or separate lists"
            )
        dtype = self.tensor.type.dtype
        expression = cast(item.expression, dtype, loc)
        state.emit(Store(tensor=self.tensor, indices=indices, value=expression, access=state.access(), loc=loc))

    def make(self, sizes: tuple[Expression, ...]) -> Tensor:
        """Declare the array where the list begins."""
        tensor = array_of(self.state, self.key, self.name, sizes, (self.outside, self.position), self.loc)
        if tensor is None:
            if len(sizes) == 1:
                self.grow()
            message = "the length of a list depends on what the loops compute"
            raise unsupported(message, self.loc, "make it of a length that is known before the loops")
        self.state.lists[tensor] = ListArray(self.key, self.state.types[self.key], sizes)
        return tensor


def _same(items: Sequence[Operand]) -> Operand | None:
    """Return the one constant, or list of constants, that all items of a list are, where a loop can store them."""
    first = items[0] if len(items) > 1 and all(item == items[0] for item in items) else None
    known = first is not None and all(isinstance(item.expression, Constant) for item in numbers_of(first))
    return first if known else None
