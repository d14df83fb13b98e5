"""Slopes of a recurrence: by how much the state after some iterations grows with the state before them.

    for t: h = a[t] * h + x[t]     ->     for t: slope = a[t] * slope
                                                 h = a[t] * h + x[t]

If each iteration is linear in its state, so are all of them together: the state after them is `slope * before + h`,
where h began at 0. A few variables may grow with each other, as those of a filter do: each has a slope for each of the
others that it comes from, which make up a matrix. Each item of a list has to grow with itself alone. Slopes of float32
are of float64: what a product of them loses there is beyond what float32 holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from math import isqrt
from typing import TypeAlias

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64, DType
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Expression,
    For,
    If,
    Load,
    Local,
    Node,
    Read,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.register_lists import MOST
from brickwork.transform.scratch import Names

Item: TypeAlias = Symbol | Tensor
"""A variable, or a list, of which each item is one by itself."""
COUPLED = isqrt(MOST // 2)
"""States that depend on one another: a thread has their matrix in registers, of which each slope takes two."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """What a loop does that computes slopes, too, and those of its variables and lists; none where all are 1.

    A variable has one for each state that it comes from.
    """

    body: Block
    variables: Mapping[Item, Mapping[Symbol, Symbol]]
    lists: Mapping[Tensor, Tensor]

    def of(self, item: Item) -> Mapping[Symbol, Symbol]:
        """Return the slopes of a variable, by the states that it comes from; none of a list, or where all are 1."""
        return self.variables.get(item, {})


def with_slopes(loop: For, states: frozenset[Item], names: Names) -> Slopes | None:
    """Return the body of a loop that computes nothing but states, with their slopes; None if it is not linear."""
    roots = _roots(loop.body, states)
    if roots is None or not _is_itemwise(loop.body, roots):
        return None
    writer = _Writer(roots, names)
    try:
        body = tuple(writer.block(loop.body))
    except _NotLinearError:
        return None
    if not writer.grows:
        return Slopes(loop.body, {}, {})
    exact = all(dtype_of(item) in {FLOAT32, INT64} for item in roots)
    states_alone = (item for item in states if isinstance(item, Symbol))
    slopes: Mapping[Item, Mapping[Symbol, Symbol]] = {
        state: {root: writer.variable(state, root) for root in writer.of_variable(state)} for state in states_alone
    }
    return Slopes(body, slopes, writer.lists) if exact else None


NO_ROOTS = frozenset[Item]()


class _NotLinearError(Exception):
    """Something is no linear function of states."""


def dtype_of(item: Item) -> DType:
    """Return the type of a variable, or of a list's items."""
    return item.dtype if isinstance(item, Symbol) else item.type.dtype


def _slope_dtype(dtype: DType) -> DType:
    return FLOAT64 if dtype.is_float else INT64


_Roots: TypeAlias = Mapping[Item, frozenset[Item]]


@legality
def _roots(block: Block, states: frozenset[Item]) -> _Roots | None:
    """Return the states that each variable and list depends on; None where one has too many."""
    roots: dict[Item, frozenset[Item]] = {item: frozenset({item}) for item in states}
    while True:
        before = dict(roots)
        for node in statements(block):
            if isinstance(node, Assign | Store):
                into = node.symbol if isinstance(node, Assign) else node.tensor
                sources = roots.get(into, NO_ROOTS).union(*(roots.get(item, NO_ROOTS) for item in _items(node.value)))
                if sources:
                    roots[into] = sources
        if roots == before:
            return roots if all(_may_have_slopes(*each) for each in roots.items()) else None


@legality
def _may_have_slopes(item: Item, roots: frozenset[Item]) -> bool:
    """Whether something that depends on states has slopes: on one alone, or a variable on some variables."""
    return len(roots) == 1 or (len(roots) <= COUPLED and all(isinstance(each, Symbol) for each in (item, *roots)))


def _items(root: Node) -> Iterator[Item]:
    for node in walk(root):
        match node:
            case Read(symbol=symbol):
                yield symbol
            case Load(tensor=tensor):
                yield tensor
            case _:
                pass


@legality
def _is_itemwise(block: Block, roots: _Roots) -> bool:
    """Whether what depends on an item of a list is used for this item alone.

    Items are gone through by loops whose index is the list's, and variables that depend on an item are of one
    iteration. What is computed of an item elsewhere comes to no other one then, if it is not stored there.
    """
    of_items = {item for item, found in roots.items() if any(isinstance(root, Tensor) for root in found)}
    loops = [node for node in statements(block) if isinstance(node, For) and _goes_over(node, of_items)]
    inside = {id(node) for loop in loops for node in statements(loop.body)}
    stores = [node for node in statements(block) if isinstance(node, Store) and node.tensor in of_items]
    return all(id(node) in inside for node in stores) and all(_is_of_items(loop, of_items) for loop in loops)


def _goes_over(loop: For, of_items: set[Item]) -> bool:
    index = (build.read(loop.index),)
    return any(
        isinstance(node, Load | Store) and node.tensor in of_items and node.indices == index for node in walk(loop.body)
    )


@legality
def _is_of_items(loop: For, of_items: set[Item]) -> bool:
    """Whether each iteration of a loop over lists does something with the items at its index alone."""
    index = (build.read(loop.index),)
    accesses = [node for node in walk(loop.body) if isinstance(node, Load | Store) and node.tensor in of_items]
    if not all(node.indices == index for node in accesses):
        return False
    return not live_before(loop.body, NONE) & of_items


@dataclass(slots=True)
class _Writer:
    """Writes the slopes of what depends on states, whose `roots` are known."""

    roots: _Roots
    names: Names
    variables: dict[tuple[Symbol, Item], Symbol] = field(default_factory=dict["tuple[Symbol, Item]", Symbol])
    lists: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    grows: bool = False
    """Whether some slope is not that of another one."""

    def variable(self, symbol: Symbol, root: Item) -> Symbol:
        """Return the slope of a variable, by a state."""
        if (symbol, root) not in self.variables:
            self.variables[symbol, root] = self.names.symbol(f"{symbol.name}_slope", _slope_dtype(symbol.dtype))
        return self.variables[symbol, root]

    def of_variable(self, symbol: Symbol) -> list[Symbol]:
        """Return the variables that one depends on, in an order."""
        found = (root for root in self.roots.get(symbol, NO_ROOTS) if isinstance(root, Symbol))
        return sorted(found, key=lambda item: item.number)

    def list(self, tensor: Tensor) -> Tensor:
        """Return the slopes of a list."""
        if tensor not in self.lists:
            kind = replace(tensor.type, dtype=_slope_dtype(tensor.type.dtype))
            number = next(self.names.tensors)
            self.lists[tensor] = replace(tensor, name=f"{tensor.name}_slope", number=number, type=kind)
        return self.lists[tensor]

    def block(self, block: Block) -> Iterator[Statement]:
        """Yield the statements, the slope of what each gives a value before it."""
        for statement in block:
            match statement:
                case Assign(symbol=symbol, value=value) if symbol in self.roots:
                    yield from self.assigned(symbol, value, statement)
                case Store(tensor=tensor, indices=indices, value=value) if tensor in self.roots:
                    self.refuse(*indices)
                    slope, (root,) = self.list(tensor), self.roots[tensor]
                    moved = self.moved(value, slope.type.dtype, root)
                    yield replace(self.names.store(slope, *indices, moved), loc=statement.loc)
                case Local(tensor=tensor) if tensor in self.roots:
                    yield Local(tensor=self.list(tensor), loc=statement.loc)
                case If(condition=condition, then=then, otherwise=otherwise):
                    self.refuse(condition)
                    first, second = (tuple(self.block(part)) for part in (then, otherwise))
                    yield replace(statement, then=first, otherwise=second)
                    continue
                case For(start=start, stop=stop, body=body):
                    self.refuse(start, stop)
                    yield replace(statement, body=tuple(self.block(body)))
                    continue
                case Assign() | Store() | Local():
                    pass
                case _:
                    raise _NotLinearError
            yield statement

    def assigned(self, symbol: Symbol, value: Expression, statement: Statement) -> Iterator[Statement]:
        """Yield what gives the slopes of a variable their values: at once, as they may be of each other."""
        roots = sorted(self.roots[symbol], key=lambda item: item.number)
        slopes = [self.variable(symbol, root) for root in roots]
        self.grows = self.grows or len(roots) > 1
        for slope, root in zip(slopes, roots, strict=True):
            yield Assign(symbol=slope, value=self.moved(value, slope.dtype, root), loc=statement.loc)

    def moved(self, value: Expression, dtype: DType, root: Item) -> Expression:
        """Return the slope of a value that is given to something with a slope."""
        found = self.of(value, root)
        self.grows = self.grows or not isinstance(found, Read | Load)
        return build.constant(0, dtype) if found is None else found

    @legality
    def refuse(self, *expressions: Expression) -> None:
        """Refuse what depends on a state where that is not linear."""
        if any(item in self.roots for each in expressions for item in _items(each)):
            raise _NotLinearError

    @legality
    def of(self, value: Expression, root: Item) -> Expression | None:
        """Return the slope of an expression by a state, None for what depends on no state."""
        if not any(item in self.roots for item in _items(value)):
            return None
        match value:
            case Read(symbol=symbol):
                zero = build.constant(0, _slope_dtype(symbol.dtype))
                return build.read(self.variable(symbol, root)) if root in self.roots[symbol] else zero
            case Load(tensor=tensor, indices=indices):
                self.refuse(*indices)
                return self.names.load(self.list(tensor), *indices)
            case Cast(operand=operand, dtype=dtype) if dtype.is_float and operand.dtype.is_float:
                return self.of(operand, root)
            case Apply(operator=operator, operands=operands):
                return self.applied(operator.name, operands, root)
            case Select(condition=condition, then=then, otherwise=otherwise):
                self.refuse(condition)
                first, second = self.of(then, root), self.of(otherwise, root)
                zero = build.constant(0, _slope_dtype(value.dtype))
                return build.select(condition, first or zero, second or zero)
            case _:
                raise _NotLinearError

    @legality
    def applied(self, name: str, operands: tuple[Expression, ...], root: Item) -> Expression:
        """Return the slope of an operator's result, of which some operand depends on a state."""
        found = tuple(self.of(operand, root) for operand in operands)
        match name, found:
            case (("add" | "sub"), (Node() as one, Node() as other)):
                return build.apply(name, one, other)
            case (("add" | "sub"), (Node() as one, None)):
                return one
            case "add", (None, Node() as other):
                return other
            case "sub", (None, Node() as other):
                return build.apply("neg", other)
            case "neg", (Node() as one,):
                return build.apply("neg", one)
            case (("mul" | "truediv"), (Node() as one, None)):
                return build.apply(name, one, build.cast(operands[1], one.dtype))
            case "mul", (None, Node() as other):
                return build.mul(build.cast(operands[0], other.dtype), other)
            case _:
                raise _NotLinearError
