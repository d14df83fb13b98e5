"""Puts the loop over samples (the batch) around the statements of a kernel.

    for t: v[i] = u[i]; Rebind(u, v)     ->     for t: (for sample: v[sample, i] = u[sample, i]); Rebind(u, v)

The loop goes around the whole body, unless tensors change places in it: those of all samples do so at once. Then the
loop goes around the parts between the exchanges, if all samples make the same exchanges and no variable of a sample
lives from one part to another. Else samples exchange elements instead of places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.analysis.scalars import NONE, Symbols, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Load,
    Node,
    Rebind,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
    While,
)
from brickwork.ir.walk import NodeType, assigned_symbols, read_symbols, rewrite, rewrite_statements
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import element_indices, nest, sizes_of


@dataclass(frozen=True, slots=True)
class Key:
    """The variable that a program for one sample draws with, and the keys of all samples."""

    symbol: Symbol
    keys: Tensor


@dataclass(frozen=True, slots=True)
class Samples:
    """What stands for all samples in place of a tensor of one, how many there are, and with which keys they draw."""

    names: Names
    whole: dict[Tensor, Tensor]
    count: Expression
    key: Key | None

    def add(self, tensor: Tensor, kind: TensorType) -> Tensor:
        """Enter a tensor of all samples for one of a sample."""
        self.whole[tensor] = Tensor(tensor.name, next(self.names.tensors), kind)
        return self.whole[tensor]


def exchanges(body: Block) -> bool:
    """Whether tensors change places in the body of a kernel."""
    return any(map(_exchanges, body))


def for_each_sample(body: Block, samples: Samples) -> Block:
    """Return the body of a kernel for all samples; places change in it no more where samples exchange elements."""
    if not exchanges(body):
        return _over(body, samples)
    same = _shared_symbols(body, samples)
    if _is_apart(body, same, samples):
        return _inside(body, samples, same)
    return _over(rewrite_statements(body, lambda node: _with_elements(node, samples)), samples)


def _over(block: Block, samples: Samples) -> Block:
    """Return a block in a loop over the samples."""
    sample = samples.names.symbol("sample", INT64)

    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=tensor) | Store(tensor=tensor) if tensor in samples.whole:
                return replace(node, tensor=samples.whole[tensor], indices=(build.read(sample), *node.indices))
            case Size(tensor=tensor) if tensor in samples.whole:
                return replace(node, tensor=samples.whole[tensor], axis=node.axis + 1)
            case _:
                return node

    inner = tuple(rewrite(statement, visit) for statement in block)
    if samples.key is not None and samples.key.symbol in read_symbols(inner):
        own = samples.names.load(samples.key.keys, build.read(sample))
        inner = (Assign(symbol=samples.key.symbol, value=own), *inner)
    return (For(index=sample, start=build.integer(0), stop=samples.count, body=inner),)


# ---------------------------------------------------------------- exchanges of places


def _with_elements(node: Statement, samples: Samples) -> Block:
    """Return an exchange of elements for one of places."""
    if not isinstance(node, Rebind) or not _exchanges(node):
        return (node,)
    indices = element_indices(node.targets[0].type.rank, samples.names)
    reads = tuple(map(build.read, indices))
    held = [samples.names.symbol("held", value_dtype(tensor.type.dtype)) for tensor in node.sources]
    taken = [
        Assign(symbol=symbol, value=samples.names.load(tensor, *reads), loc=node.loc)
        for symbol, tensor in zip(held, node.sources, strict=True)
    ]
    given = [
        replace(samples.names.store(tensor, *reads, build.read(symbol)), loc=node.loc)
        for symbol, tensor in zip(held, node.targets, strict=True)
    ]
    return nest(indices, sizes_of(node.targets[0]), (*taken, *given))


def _inside(block: Block, samples: Samples, same: Symbols) -> Block:
    """Return a block with the loop over samples around what lies between the exchanges."""
    result: list[Statement] = []
    for part in _parts(block, same):
        match part:
            case Rebind(targets=targets, sources=sources):
                one, other = (tuple(samples.whole[tensor] for tensor in each) for each in (targets, sources))
                result.append(replace(part, targets=one, sources=other))
            case For(body=body):
                result.append(resized(replace(part, body=_inside(body, samples, same)), samples))
            case If(then=then, otherwise=otherwise):
                branches = (_inside(each, samples, same) for each in (then, otherwise))
                result.append(resized(replace(part, then=next(branches), otherwise=next(branches)), samples))
            case tuple():
                result += _over(part, samples)
            case _:
                result.append(resized(part, samples))
    return tuple(result)


def resized(root: NodeType, samples: Samples) -> NodeType:
    """Return a tree with the sizes of one sample in its expressions."""

    def visit(node: Node) -> Node:
        if isinstance(node, Size) and node.tensor in samples.whole:
            return replace(node, tensor=samples.whole[node.tensor], axis=node.axis + 1)
        return node

    return rewrite(root, visit)


def _parts(block: Block, same: Symbols) -> Iterator[Statement | Block]:
    """Yield what all samples share, statement by statement, and what each has, put together."""
    own: list[Statement] = []
    for statement in block:
        if _is_shared(statement, same):
            if own:
                yield tuple(own)
            own = []
            yield statement
        else:
            own.append(statement)
    if own:
        yield tuple(own)


@hazard
def _is_shared(statement: Statement, same: Symbols) -> bool:
    """Whether a statement goes outside of the loop over samples."""
    match statement:
        case Assign(symbol=symbol):
            return symbol in same
        case _:
            return effects(statement).leaves or _exchanges(statement)


@hazard
def _exchanges(statement: Statement) -> bool:
    """Whether tensors change places in a statement; locals, which each sample has, may."""
    return any(not tensor.is_local for tensor in effects(statement).rebinds)


# ---------------------------------------------------------------- what all samples share


def _shared_symbols(body: Block, samples: Samples) -> Symbols:
    """Return the variables outside of the parts that have the same value in all samples at any time."""
    statements = [*_shared_statements(body)]
    inside = assigned_symbols(node for node in statements if not isinstance(node, Assign) and not _exchanges(node))
    assigns = [node for node in statements if isinstance(node, Assign) and node.symbol not in inside]
    same = {node.symbol for node in assigns}
    every = assigned_symbols(body) - {node.index for node in statements if isinstance(node, For) and _exchanges(node)}
    while differing := {node.symbol for node in assigns if not _is_uniform(node.value, every - same, samples)} & same:
        same -= differing
    return frozenset(same)


def _shared_statements(block: Block) -> Iterator[Statement]:
    """Yield the statements between which tensors change places, in whatever loop or branch does that."""
    for statement in block:
        yield statement
        match statement:
            case For(body=body) if _exchanges(statement):
                yield from _shared_statements(body)
            case If(then=then, otherwise=otherwise) if _exchanges(statement) or effects(statement).leaves:
                yield from _shared_statements((*then, *otherwise))
            case _:
                pass


@legality
def _is_uniform(expression: Expression, own: Symbols, samples: Samples) -> bool:
    """Whether an expression has the same value in all samples; `own` are variables that may not."""
    found = effects(expression)
    differing = any(tensor in samples.whole or tensor.is_local for tensor in found.loads)
    return not differing and not found.draws and not found.reads & own


@legality
def _is_apart(body: Block, same: Symbols, samples: Samples) -> bool:
    """Whether all samples make the same exchanges, and nothing of a sample lives from one part to another."""
    shared = [node for node in _shared_statements(body) if _is_shared(node, same)]
    own = assigned_symbols(body) - same - {node.index for node in shared if isinstance(node, For)}
    for node in shared:
        match node:
            case While():
                return False
            case For(start=start, stop=stop):
                if not _is_uniform(start, own, samples) or not _is_uniform(stop, own, samples):
                    return False
            case If(condition=condition):
                if not _is_uniform(condition, own, samples):
                    return False
            case _:
                pass
    seen: set[Tensor] = set()
    for part in _own_parts(body, same):
        found = effects(part)
        mentioned = {tensor for tensor in found.loads | found.stores | found.declares if tensor.is_local}
        if live_before(part, NONE) & own or mentioned & seen:
            return False
        seen |= mentioned
    return True


def _own_parts(block: Block, same: Symbols) -> Iterator[Block]:
    for part in _parts(block, same):
        match part:
            case tuple():
                yield part
            case For(body=body):
                yield from _own_parts(body, same)
            case If(then=then, otherwise=otherwise):
                yield from _own_parts(then, same)
                yield from _own_parts(otherwise, same)
            case _:
                pass
