"""Which axes of an operator's tensors may be shared out among machines, each of which runs it on its share.

An axis is shared out together with all axes and loops that run over the same extent: those that one loop indexes, and
those that the host part makes equal or asserts to be equal. Such a set is a `Sharding` if each share of the results
needs that share of the arguments and nothing of the others (`shard_semantics.py` finds out). A result that iterations
of different shares add to is the sum of what the machines have.

Invariant: a sharding holds for any division of the extent into shares, empty ones too, where all axes of the set are
divided alike. That their extents are equal in a call is for the caller to see: no sizes are known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from brickwork.analysis.shard_semantics import DependentError, Shard, forwarded, partial_tensors
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    For,
    KeyParameter,
    Launch,
    Load,
    Node,
    Program,
    Read,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    parameter_tensors,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import (
    EXPRESSIONS,
    children,
    read_symbols,
    rewrite_expressions,
    rewrite_statements,
    walk,
)
from brickwork.records import dataclass

Member: TypeAlias = tuple[Tensor, int] | Symbol
"""An axis of a tensor, or the index of a loop."""

PARTIAL = -1
"""Stands for the axis of a result that is the sum of what the machines have."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """One way to share out an operator's work.

    `arguments` has for each tensor among the parameters (items of lists too) the axis that is shared out, or None where
    every machine has all of it; `results` the same for what is returned, or PARTIAL.
    """

    arguments: tuple[int | None, ...]
    results: tuple[int | None, ...]


def find_shardings(program: Program) -> tuple[Sharding, ...]:
    """Return the ways to share out a program's work, besides that every machine has and does everything.

    A program that draws random numbers has none: they are numbered by iterations, which a share begins anew.
    """
    draws = effects(program.body).draws
    if program.may_alias or draws or any(isinstance(item, KeyParameter) for item in program.parameters):
        return ()
    body = rewrite_expressions(rewrite_statements(program.body, _plain), _extent)
    relations = _Relations(body)
    arguments = parameter_tensors(program.parameters)
    whole = (members for members in relations.sets() if not any(map(_holds_parts, members)))
    found = (_sharding(body, members, relations.meanings, arguments) for members in whole)
    return tuple(item for item in found if item is not None)


def _holds_parts(member: Member) -> bool:
    """Return whether this is the axis of the parts of complex elements, which torch's tensor has not."""
    return isinstance(member, tuple) and member[0].type.pairs and member[1] == member[0].type.rank - 1


def shardings_text(program: Program) -> str:
    """Return the ways to share out a program's work in words, as torch.distributed.tensor calls them."""
    arguments = [tensor.name for tensor in parameter_tensors(program.parameters)]
    results = [tensor.name for tensor in _results(program.body)]
    none = Sharding((None,) * len(arguments), (None,) * len(results))
    return "\n".join(
        f"{_placements(arguments, item.arguments)} -> {_placements(results, item.results) or 'nothing'}"
        for item in (*find_shardings(program), none)
    )


def _placements(names: Iterable[str], axes: Iterable[int | None]) -> str:
    words = {None: "Replicate()", PARTIAL: "Partial()"}
    return ", ".join(f"{name} {words.get(axis, f'Shard({axis})')}" for name, axis in zip(names, axes, strict=True))


def _results(body: Block) -> tuple[Tensor, ...]:
    return next((node.tensors for node in walk(body) if isinstance(node, Return)), ())


def _plain(statement: Statement) -> Block:
    """Return what a launch runs in its place, and a loop that counts down as one that counts up."""
    match statement:
        case Launch(kernel=kernel):
            return rewrite_statements(kernel.body, _plain)
        case For(index=index, start=Constant(value=0), stop=stop, body=body):
            down = Symbol(index.name, -1 - index.number, index.dtype)
            turned = rewrite_expressions(body, partial(_renamed, _counts_down(index, stop), down))
            return (statement,) if index in read_symbols(turned) else (replace(statement, index=down, body=turned),)
        case _:
            return (statement,)


def _counts_down(index: Symbol, stop: Expression) -> tuple[Expression, ...]:
    """Return the forms of `stop - 1 - index`."""
    last = build.sub(stop, build.integer(1))
    negative = Apply(operator=OPERATORS["mul"], operands=(build.integer(-1), build.read(index)), dtype=INT64)
    return build.sub(last, build.read(index)), build.add(last, negative)


def _renamed(forms: tuple[Expression, ...], name: Symbol, expression: Expression) -> Expression:
    return build.read(name) if expression in forms else expression


def _extent(expression: Expression) -> Expression:
    """Return an extent that is not negative anyway without a word of that."""
    match expression:
        case Apply(operator=operator, operands=(Size() as size, Constant(value=0))) if operator.name == "maximum":
            return size
        case _:
            return expression


def _sharding(
    body: Block, members: frozenset[Member], meanings: Mapping[Symbol, Expression], arguments: tuple[Tensor, ...]
) -> Sharding | None:
    """Return what it means to share out these axes and loops; None if the shares need one another."""
    axes = dict(item for item in members if not isinstance(item, Symbol))
    loops = frozenset(item for item in members if isinstance(item, Symbol))
    if len(axes) + len(loops) < len(members) or not any(tensor in axes for tensor in arguments):
        return None
    try:
        summed = partial_tensors(body, Shard(axes, loops, meanings))
    except DependentError:
        return None
    if any(tensor in summed for tensor in arguments):
        return None
    return Sharding(
        tuple(axes.get(tensor) for tensor in arguments),
        tuple(PARTIAL if tensor in summed else axes.get(tensor) for tensor in _results(body)),
    )


def _meanings(block: Block, indices: Collection[Symbol]) -> dict[Symbol, Expression]:
    """Return what variables stand for that only name a size or an index."""
    assigns = [node for node in walk(block) if isinstance(node, Assign)]
    counts = Counter(node.symbol for node in assigns)
    found: dict[Symbol, Expression] = {}
    for node in assigns:
        value = forwarded(node.value, found)
        names = isinstance(value, Size) or (isinstance(value, Read) and value.symbol in indices)
        if names and counts[node.symbol] == 1:
            found[node.symbol] = value
    return found


class _Relations:
    """Axes and loops of one extent, as sets, and which of them are used in a way in which a share is not the whole."""

    def __init__(self, block: Block) -> None:
        self._indices = frozenset(node.index for node in walk(block) if isinstance(node, For))
        self.meanings = _meanings(block, self._indices)
        self._parents: dict[Member, Member] = {}
        self._spoilt: set[Member] = set()
        for node in walk(block):
            self._enter(node)

    def sets(self) -> tuple[frozenset[Member], ...]:
        """Return the sets that nothing spoils, in the order in which they were met."""
        spoilt = {self._root(member) for member in self._spoilt}
        found: dict[Member, set[Member]] = {}
        for member in self._parents:
            found.setdefault(self._root(member), set()).add(member)
        return tuple(frozenset(members) for root, members in found.items() if root not in spoilt)

    def _enter(self, node: Node) -> None:
        """Enter what a statement says, without the statements in it; expressions say nothing of their own."""
        match node:
            case For(index=index, start=start, stop=stop):
                extent = forwarded(stop, self.meanings)
                if isinstance(start, Constant) and start.value == 0 and isinstance(extent, Size):
                    self._unite(index, (extent.tensor, extent.axis))
                else:
                    self._spoil(index)
                    self._use((start, stop))
            case Allocate(tensor=tensor, sizes=sizes):
                for axis, size in enumerate(sizes):
                    self._extend((tensor, axis), size)
            case Check(condition=condition):
                self._assume(condition)
            case Store(tensor=tensor, indices=indices, value=value):
                self._access(tensor, indices)
                self._use((value,))
            case Rebind(targets=targets, sources=sources):
                for target, source in zip(targets, sources, strict=True):
                    for axis in range(target.type.rank):
                        self._unite((target, axis), (source, axis))
            case Assign(symbol=symbol) if symbol in self.meanings:
                pass
            case _ if not isinstance(node, EXPRESSIONS):
                self._use(child for child in children(node) if isinstance(child, EXPRESSIONS))
            case _:
                pass

    def _assume(self, condition: Expression) -> None:
        """Enter an assertion: sizes may be compared with one another."""
        match condition:
            case Apply(operator=operator, operands=operands) if operator.name == "logical_and":
                for operand in operands:
                    self._assume(operand)
            case Apply(operator=operator, operands=(left, right)) if operator.name == "eq":
                one, other = forwarded(left, self.meanings), forwarded(right, self.meanings)
                if isinstance(one, Size) and isinstance(other, Size):
                    self._unite((one.tensor, one.axis), (other.tensor, other.axis))
                else:
                    self._use((one, other))
            case _:
                self._use((condition,))

    def _extend(self, axis: Member, size: Expression) -> None:
        """Enter the extent of an axis."""
        extent = forwarded(size, self.meanings)
        if isinstance(extent, Size):
            self._unite(axis, (extent.tensor, extent.axis))
        else:
            self._spoil(axis)
            self._use((size,))

    def _access(self, tensor: Tensor, indices: tuple[Expression, ...]) -> None:
        """Enter that an element is read or written."""
        for axis, index in enumerate(indices):
            named = forwarded(index, self.meanings)
            if isinstance(named, Read) and named.symbol in self._indices and not tensor.is_local:
                self._unite((tensor, axis), named.symbol)
            else:
                self._spoil((tensor, axis))
                self._use((index,))

    def _use(self, expressions: Iterable[Expression | Node]) -> None:
        """Enter that expressions are used as numbers."""
        for expression in expressions:
            match expression:
                case Load(tensor=tensor, indices=indices):
                    self._access(tensor, indices)
                case Size(tensor=tensor, axis=axis):
                    self._spoil((tensor, axis))
                case Read(symbol=symbol) if symbol in self.meanings:
                    self._use((self.meanings[symbol],))
                case Read(symbol=symbol):
                    self._spoil(symbol)
                case _:
                    self._use(children(expression))

    def _root(self, member: Member) -> Member:
        while (parent := self._parents.setdefault(member, member)) != member:
            member = parent
        return member

    def _unite(self, left: Member, right: Member) -> None:
        self._parents[self._root(left)] = self._root(right)

    def _spoil(self, member: Member) -> None:
        self._root(member)
        self._spoilt.add(member)
