"""Lets a program leave its arguments as they are: it writes copies of those that it would store into.

    m[i] = m[i] * 2     ->     now = empty_like(m)
                               for i: now[i] = m[i]
                               now[i] = now[i] * 2

Places that tensors exchange get the types of what fills them now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Allocate,
    Expression,
    For,
    Launch,
    Load,
    Node,
    Parameter,
    Program,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TensorType,
    parameter_tensors,
)
from brickwork.ir.walk import NodeType, rewrite
from brickwork.transform.free import kernel_of
from brickwork.transform.scratch import Names


def unwritten(program: Program, names: Names) -> tuple[Program, dict[Tensor, Tensor]]:
    """Return the program with no argument stored into, and the copy that stands for each that was."""
    copies = {tensor: _copy(tensor, names) for tensor in parameter_tensors(program.parameters, mutated=True)}
    if not copies:
        return program, copies
    host: list[Statement] = [allocate_like(copy, tensor) for tensor, copy in copies.items()]
    replaced = dict(copies)
    for node in program.body:
        match node:
            case Rebind(targets=targets, sources=sources):
                now = tuple(replaced.get(item, item) for item in sources)
                kind = joined_type([item.type for item in now])
                places = tuple(replace(item, number=next(names.tensors), type=kind) for item in targets)
                replaced.update(zip(targets, places, strict=True))
                host.append(replace(node, targets=places, sources=now))
            case Launch(kernel=kernel):
                filled = tuple(copied(tensor, copy, names) for tensor, copy in copies.items())
                body = (*filled, *renamed(kernel.body, replaced))
                same = [fact for tensor, copy in copies.items() for fact in same_sizes(copy, tensor)]
                facts = (*renamed(kernel.facts, replaced), *same)
                host.append(replace(node, kernel=kernel_of(kernel, body, facts)))
            case Return(tensors=tensors):
                host.append(replace(node, tensors=tuple(replaced.get(item, item) for item in tensors)))
            case _:
                host.append(node)
    return replace(program, parameters=tuple(map(_read_only, program.parameters)), body=tuple(host)), copies


def _read_only(parameter: Parameter) -> Parameter:
    if isinstance(parameter, TensorParameter | TensorListParameter):
        return replace(parameter, mutated=False)
    return parameter


def _copy(tensor: Tensor, names: Names) -> Tensor:
    kind = replace(tensor.type, contiguous=tensor.type.contiguous, unit_axis=None)
    dense = kind.rank - 1 if kind.contiguous and kind.rank else None
    return Tensor(f"{tensor.name}_now", next(names.tensors), replace(kind, unit_axis=dense))


def allocate_like(tensor: Tensor, like: Tensor, fill: Expression | None = None) -> Allocate:
    """Return what makes a tensor of the sizes of another one."""
    sizes = tuple(Size(tensor=like, axis=axis) for axis in range(like.type.rank))
    return Allocate(tensor=tensor, sizes=sizes, like=like, fill=fill)


def copied(source: Tensor, target: Tensor, names: Names) -> Statement:
    """Return the loops that copy a tensor into one of the same sizes."""
    indices = [names.symbol(f"i{axis}", INT64) for axis in range(target.type.rank)]
    reads = tuple(map(build.read, indices))
    body: Statement = names.store(target, *reads, names.load(source, *reads))
    for axis, index in reversed([*enumerate(indices)]):
        body = For(index=index, start=build.integer(0), stop=Size(tensor=source, axis=axis), body=(body,))
    return body


def same_sizes(one: Tensor, other: Tensor) -> list[Expression]:
    """Return the facts that two tensors have the same sizes."""
    axes = range(one.type.rank)
    return [build.apply("eq", Size(tensor=one, axis=axis), Size(tensor=other, axis=axis)) for axis in axes]


def joined_type(kinds: list[TensorType]) -> TensorType:
    """Return what holds of tensors of all these types."""
    first = kinds[0]
    contiguous = all(kind.contiguous for kind in kinds)
    unit = first.unit_axis if all(kind.unit_axis == first.unit_axis for kind in kinds) else None
    return TensorType(first.dtype, first.rank, contiguous, unit)


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
