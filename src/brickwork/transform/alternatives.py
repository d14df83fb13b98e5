"""Kernels of which the host runs one: each gets scratch tensors of its own.

    tape = scratch(n, m)                      if few:
    if few: kernel(x, tape)            ->         tape = scratch(n, m); kernel(x, tape)
    else:   other(x, tape)                    else:
                                                  own = scratch(n, m); other(x, own)

So each may lay out in memory what its own threads access (`scratch_layout.py`). A call allocates no more than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.ir.nodes import Allocate, Block, If, Launch, Load, Node, Program, Size, Statement, Store, Tensor
from brickwork.ir.walk import walk
from brickwork.legality import legality
from brickwork.transform.free_variables import fresh_names, with_body
from brickwork.transform.privatise import scratch_of
from brickwork.transform.tensors import renamed


def with_own_scratch(program: Program) -> Program:
    """Return the program with the scratch tensors of kernels in branches allocated there, for each branch anew."""
    scratch = scratch_of(program)
    names = fresh_names(program)
    body = program.body
    for choice in [item for item in program.body if isinstance(item, If)]:
        made = [item for item in body if isinstance(item, Allocate) and _is_inside(item, choice, body, scratch)]
        copies = {item.tensor: replace(item.tensor, number=next(names.tensors)) for item in made}
        then = tuple(_renamed(item, copies) for item in (*made, *choice.then))
        changed = replace(choice, then=then, otherwise=(*made, *choice.otherwise))
        body = tuple(changed if item is choice else item for item in body if item not in made)
    return replace(program, body=body)


@legality
def _is_inside(made: Allocate, choice: If, body: Block, scratch: frozenset[Tensor]) -> bool:
    """Whether both branches launch kernels that use a scratch tensor, and nothing else speaks of it."""
    if made.tensor not in scratch or not all(_launches(part, made.tensor) for part in (choice.then, choice.otherwise)):
        return False
    return not _speaks_of([choice.condition, *(item for item in body if item is not choice)], made.tensor)


def _renamed(statement: Statement, copies: Mapping[Tensor, Tensor]) -> Statement:
    """Return a statement of a branch with copies in place of tensors."""
    (result,) = renamed((statement,), copies)
    match result:
        case Launch(kernel=kernel):
            return replace(result, kernel=with_body(kernel, kernel.body, kernel.facts))
        case Allocate(tensor=tensor, like=like):
            same = None if like is None else copies.get(like, like)
            return replace(result, tensor=copies.get(tensor, tensor), like=same)
        case _:
            return result


def _launches(block: Block, tensor: Tensor) -> bool:
    return any(isinstance(node, Launch) and tensor in node.kernel.tensors for node in walk(block))


def _speaks_of(nodes: Sequence[Node], tensor: Tensor) -> bool:
    """Whether nodes ask for a tensor's size or elements, or make one like it."""
    return any(
        (isinstance(node, Size | Load | Store) and node.tensor == tensor)
        or (isinstance(node, Allocate) and node.like == tensor)
        for node in walk(nodes)
    )
