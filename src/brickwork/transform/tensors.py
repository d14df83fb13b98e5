"""Tensors of derived programs: their types, what makes and copies them, and other tensors in their place.

Invariant: a type says no more of a tensor than holds of whatever it can stand for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64, DType
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Block,
    Check,
    Expression,
    For,
    Kernel,
    Load,
    Node,
    Parameter,
    Program,
    Rebind,
    Size,
    Store,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TensorType,
)
from brickwork.ir.signature import ArgumentType, TensorListType
from brickwork.ir.walk import NodeType, rewrite, statements, walk
from brickwork.legality import legality
from brickwork.transform.scratch import Names


def dense_type(dtype: DType, rank: int, *, pairs: bool = False) -> TensorType:
    """Return the type of a row-major tensor."""
    return TensorType(dtype, rank, contiguous=True, unit_axis=rank - 1 if rank else None, pairs=pairs)


def like_type(kind: TensorType) -> TensorType:
    """Return the type of what `torch.empty_like` makes of a tensor."""
    return kind if kind.contiguous or kind.pairs else TensorType(kind.dtype, kind.rank)


def sizes_of(tensor: Tensor) -> tuple[Expression, ...]:
    """Return the sizes of a tensor."""
    return tuple(build.size(tensor, axis) for axis in range(tensor.type.rank))


def same_sizes(one: Tensor, other: Tensor) -> list[Expression]:
    """Return the facts that two tensors have the same sizes."""
    return [build.apply("eq", left, right) for left, right in zip(sizes_of(one), sizes_of(other), strict=True)]


def allocate_like(tensor: Tensor, like: Tensor, fill: Expression | None = None) -> Allocate:
    """Return what makes a tensor of the sizes of another one."""
    return Allocate(tensor=tensor, sizes=sizes_of(like), like=like, fill=fill)


def nest(indices: Sequence[Symbol], sizes: Sequence[Expression], body: Block) -> Block:
    """Return loops over all elements of a tensor of these sizes."""
    for index, size in reversed([*zip(indices, sizes, strict=True)]):
        body = (For(index=index, start=build.integer(0), stop=size, body=body),)
    return body


def element_indices(rank: int, names: Names) -> tuple[Symbol, ...]:
    """Return new variables for the indices of an element."""
    return tuple(names.symbol(f"i{axis}", INT64) for axis in range(rank))


def copied(source: Tensor, target: Tensor, names: Names) -> Block:
    """Return the loops that copy a tensor into one of the same sizes."""
    indices = element_indices(source.type.rank, names)
    reads = tuple(map(build.read, indices))
    return nest(indices, sizes_of(source), (names.store(target, *reads, names.load(source, *reads)),))


def filled(target: Tensor, value: Expression, names: Names) -> Block:
    """Return the loops that give all elements of a tensor one value."""
    indices = element_indices(target.type.rank, names)
    return nest(indices, sizes_of(target), (names.store(target, *map(build.read, indices), value),))


def renamed(nodes: tuple[NodeType, ...], tensors: Mapping[Tensor, Tensor]) -> tuple[NodeType, ...]:
    """Return the trees with other tensors in place of some."""

    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=tensor) | Store(tensor=tensor) | Size(tensor=tensor) if tensor in tensors:
                return replace(node, tensor=tensors[tensor])
            case Rebind(targets=targets, sources=sources):
                one, other = (tuple(tensors.get(item, item) for item in part) for part in (targets, sources))
                return replace(node, targets=one, sources=other)
            case _:
                return node

    return tuple(rewrite(node, visit) for node in nodes)


def relaid(program: Program, arguments: Sequence[ArgumentType]) -> Program | None:
    """Return the program for arguments of these types, which lie in memory in other ways; None where it exchanges them.

    What was made like one of them is made row-major.
    """
    moved = dict(_relaid(program.parameters, arguments))
    if any(isinstance(node, Rebind) and moved.keys() & {*node.sources} for node in statements(program)):
        return None

    def visit(node: Node) -> Node:
        match node:
            case Load() | Store() | Size() if node.tensor in moved:
                return replace(node, tensor=moved[node.tensor])
            case Allocate(like=like) if like in moved:
                return replace(node, like=None)
            case Kernel(tensors=tensors):
                return replace(node, tensors=tuple(moved.get(tensor, tensor) for tensor in tensors))
            case _:
                return node

    def taken(parameter: Parameter) -> Parameter:
        match parameter:
            case TensorParameter(tensor=tensor):
                return replace(parameter, tensor=moved.get(tensor, tensor))
            case TensorListParameter(tensors=tensors):
                return replace(parameter, tensors=tuple(moved.get(tensor, tensor) for tensor in tensors))
            case _:
                return parameter

    return replace(rewrite(program, visit), parameters=tuple(map(taken, program.parameters)))


@legality
def without_tensors(program: Program, tensors: Collection[Tensor]) -> Program | None:
    """Return the program without tensors that it takes; None where it asks more of them than what sizes they have."""

    def asks(condition: Expression) -> bool:
        match condition:
            case Apply(operator=operator, operands=(Size(tensor=tensor), size)) if tensor in tensors:
                return operator.name == "eq" and not any(map(names, walk(size)))
            case _:
                return False

    def names(node: Node) -> bool:
        match node:
            case Rebind(sources=sources):
                return any(tensor in tensors for tensor in sources)
            case Allocate(like=like):
                return like in tensors
            case _:
                return getattr(node, "tensor", None) in tensors

    taken = (item for item in program.parameters if not isinstance(item, TensorParameter) or item.tensor not in tensors)
    kept = (node for node in program.body if not (isinstance(node, Check) and asks(node.condition)))
    made = replace(program, parameters=tuple(taken), body=tuple(kept))
    return None if any(map(names, walk(made))) else made


def _relaid(parameters: Sequence[Parameter], arguments: Sequence[ArgumentType]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the tensors among parameters, each with itself of the type of the argument."""
    for parameter, argument in zip(parameters, arguments, strict=False):
        match parameter, argument:
            case TensorParameter(tensor=tensor), TensorType() if tensor.type != argument:
                yield tensor, replace(tensor, type=argument)
            case TensorListParameter(tensors=tensors), TensorListType(items=items):
                yield from ((tensor, replace(tensor, type=kind)) for tensor, kind in zip(tensors, items, strict=True))
            case _:
                pass
