"""Scratch tensors of a program, which hold what nests leave for later ones: their names, reads and writes.

Invariant: a name or number that is given out is in use nowhere else in the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import DType, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    KeyParameter,
    ListParameter,
    Load,
    Local,
    Node,
    Program,
    Read,
    Rebind,
    Reduction,
    ScalarParameter,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    joined_together,
    parameter_tensors,
)
from brickwork.ir.tensor_types import type_of
from brickwork.ir.walk import NodeType, assigned_symbols, read_symbols, rewrite, walk
from brickwork.records import dataclass

ONCE = "_once"
"""The name of the index of a loop of one iteration, which a transform has put around something."""


@dataclass(slots=True)
class Names:
    """Numbers and names that are not in use in a program."""

    tensors: Iterator[int]
    symbols: Iterator[int]
    accesses: Iterator[int]

    def tensor(self, name: str, dtype: DType, *sizes: int | Expression) -> tuple[Tensor, Allocate]:
        """Return a new tensor, and what allocates it."""
        tensor = Tensor(name, next(self.tensors), type_of(dtype, len(sizes), dense=True))
        extents = tuple(build.integer(size) if isinstance(size, int) else size for size in sizes)
        return tensor, Allocate(tensor=tensor, sizes=extents)

    def symbol(self, name: str, dtype: DType) -> Symbol:
        """Return a new variable."""
        return Symbol(name, next(self.symbols), dtype)

    def kept(self, value: Expression, name: str, out: list[Statement]) -> Expression:
        """Return a value that may be repeated: itself if it is short, else a variable that is assigned in `out`."""
        if isinstance(value, Constant | Read | Size):
            return value
        symbol = self.symbol(name, value.dtype)
        out.append(Assign(symbol=symbol, value=value, loc=value.loc))
        return build.read(symbol, value.loc)

    def load(self, tensor: Tensor, *indices: Expression) -> Load:
        """Return the read of an element of a scratch tensor."""
        return Load(tensor=tensor, indices=indices, access=next(self.accesses), dtype=value_dtype(tensor.type.dtype))

    def store(self, tensor: Tensor, *indices_and_value: Expression) -> Store:
        """Return the store of an element of a scratch tensor: its indices, and the value."""
        *indices, value = indices_and_value
        return Store(tensor=tensor, indices=tuple(indices), value=value, access=next(self.accesses))


def names_of(root: Node | Iterable[Node], tensor: int = 0) -> Names:
    """Return numbers that nothing in a program, or in a part of one, has; tensors have numbers from `tensor` on."""
    symbols = set(assigned_symbols(root) | read_symbols(root))
    tensors, accesses = set[Tensor](), [-1]
    for node in walk(root):
        match node:
            case Program(parameters=parameters):
                tensors.update(parameter_tensors(parameters))
                for item in parameters:
                    match item:
                        case KeyParameter(symbol=symbol, cell=cell):
                            symbols.add(symbol)
                            tensors.update(() if cell is None else (cell,))
                        case ScalarParameter(symbol=symbol):
                            symbols.add(symbol)
                        case ListParameter(symbols=items):
                            symbols.update(items)
                        case _:
                            pass
            case Kernel(scalars=scalars):
                symbols.update(scalars)
            case Allocate(tensor=made) | Local(tensor=made):
                tensors.add(made)
            case Rebind(targets=targets):
                tensors.update(targets)
            case Load(access=access) | Store(access=access):
                accesses.append(access)
            case _:
                pass
    first_tensor = max((tensor, *(1 + item.number for item in tensors)))
    first_symbol = 1 + max((item.number for item in symbols), default=-1)
    return Names(count(first_tensor), count(first_symbol), count(1 + max(accesses)))


def copied(nest: NodeType, names: Names) -> NodeType:
    """Return a nest once more, with loops and accesses of its own."""
    inside = [node.index for node in walk(nest) if isinstance(node, For)]
    indices = {index: replace(index, number=next(names.symbols)) for index in inside}

    def visit(node: Node) -> Node:
        match node:
            case Load() | Store():
                return replace(node, access=next(names.accesses))
            case Read(symbol=symbol) if symbol in indices:
                return replace(node, symbol=indices[symbol])
            case For(index=index):
                return replace(node, index=indices[index])
            case _:
                return node

    return rewrite(nest, visit)


def with_variables(statement: NodeType, names: Mapping[Symbol, Symbol]) -> NodeType:
    """Return a statement with other variables in place of some."""

    def visit(node: Node) -> Node:
        match node:
            case Read(symbol=symbol) | Assign(symbol=symbol) if symbol in names:
                return replace(node, symbol=names[symbol])
            case For(index=index, reductions=reductions) if index in names or reductions:
                others = tuple(item.renamed(names) for item in reductions)
                return replace(node, index=names.get(index, index), reductions=others)
            case _:
                return node

    return rewrite(statement, visit) if names else statement


def joins(loop: For, partials: Sequence[Expression]) -> Block:
    """Return what joins partial results, of later iterations, with the variables of a loop's reductions."""
    rest = iter(partials)
    groups = joined_together(loop.reductions)
    return tuple(_joined(group, [next(rest) for _ in group], loop.loc) for group in groups)


def _joined(group: Sequence[Reduction], partials: Sequence[Expression], loc: Location) -> Statement:
    first, *others = group
    old, new = build.read(first.symbol), partials[0]
    if not others:
        return Assign(symbol=first.symbol, value=build.apply(first.operator.name, old, new, loc=loc), loc=loc)
    least, last = first.operator.name == "minimum", others[0].operator.name == "maximum"
    better = build.apply(("le" if least else "ge") if last else ("lt" if least else "gt"), new, old)
    if last:  # What is as good as nothing found is not found for that.
        better = build.apply("logical_and", better, build.apply("ne", partials[1], build.identity(others[0])))
    given = (Assign(symbol=item.symbol, value=part, loc=loc) for item, part in zip(group, partials, strict=True))
    return If(condition=better, then=(*given,), loc=loc)
