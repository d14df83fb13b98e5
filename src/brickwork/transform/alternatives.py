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
from itertools import count

from brickwork.ir.nodes import (
    Allocate,
    Block,
    For,
    If,
    Launch,
    Load,
    Node,
    Program,
    Size,
    Statement,
    Store,
    Tensor,
    While,
)
from brickwork.ir.walk import rewrite, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.transform.free_variables import with_body
from brickwork.transform.privatise import scratch_of
from brickwork.transform.scratch import names_of
from brickwork.transform.tensors import renamed


def with_own_scratch(program: Program) -> Program:
    """Return the program with the scratch tensors of kernels in branches allocated there, for each branch anew."""
    scratch = scratch_of(program)
    names = names_of(program)
    body = program.body
    for choice in [item for item in program.body if isinstance(item, If)]:
        made = [item for item in body if isinstance(item, Allocate) and _is_inside(item, choice, body, scratch)]
        copies = {item.tensor: replace(item.tensor, number=next(names.tensors)) for item in made}
        then = tuple(_renamed(item, copies) for item in (*made, *choice.then))
        changed = replace(choice, then=then, otherwise=(*made, *choice.otherwise))
        body = tuple(changed if item is choice else item for item in body if item not in made)
    return replace(program, body=body)


def with_named_branches(program: Program) -> Program:
    """Return the program with a name for each condition that decides which kernels are launched."""
    names = count()

    def named(statement: Statement) -> Block:
        match statement:
            case If(version="") if any(isinstance(node, Launch) for node in statements((statement,))):
                return (replace(statement, version=f"branch {next(names)}"),)
            case _:
                return (statement,)

    return replace(program, body=rewrite_statements(program.body, named))


def branches_of(program: Program) -> dict[str, tuple[tuple[str, bool], ...]]:
    """Return the named conditions around each kernel's launch, outermost first, and whether they hold there."""
    found: dict[str, tuple[tuple[str, bool], ...]] = {}

    def visit(block: Block, around: tuple[tuple[str, bool], ...]) -> None:
        for statement in block:
            match statement:
                case Launch(kernel=kernel):
                    found[kernel.name] = around
                case If(version=version, then=then, otherwise=otherwise):
                    visit(then, (*around, (version, True)))
                    visit(otherwise, (*around, (version, False)))
                case For(body=body):
                    visit(body, around)
                case While(prelude=prelude, body=body):
                    visit((*prelude, *body), around)
                case _:
                    pass

    visit(program.body, ())
    return found


@legality
def _is_inside(made: Allocate, choice: If, body: Block, scratch: frozenset[Tensor]) -> bool:
    """Whether both branches launch kernels that use a scratch tensor, and nothing else speaks of it."""
    if made.tensor not in scratch or not all(_launches(part, made.tensor) for part in (choice.then, choice.otherwise)):
        return False
    return not _speaks_of([choice.condition, *(item for item in body if item is not choice)], made.tensor)


def _renamed(statement: Statement, copies: Mapping[Tensor, Tensor]) -> Statement:
    """Return a statement of a branch with copies in place of tensors, in all that it launches and allocates."""

    def visit(node: Node) -> Node:
        match node:
            case Launch(kernel=kernel):
                return replace(node, kernel=with_body(kernel, kernel.body, kernel.facts))
            case Allocate(tensor=tensor, like=like):
                same = None if like is None else copies.get(like, like)
                return replace(node, tensor=copies.get(tensor, tensor), like=same)
            case _:
                return node

    (result,) = renamed((statement,), copies)
    return rewrite(result, visit)


def _launches(block: Block, tensor: Tensor) -> bool:
    return any(isinstance(node, Launch) and tensor in node.kernel.tensors for node in walk(block))


def _speaks_of(nodes: Sequence[Node], tensor: Tensor) -> bool:
    """Whether nodes ask for a tensor's size or elements, or make one like it."""
    return any(
        (isinstance(node, Size | Load | Store) and node.tensor == tensor)
        or (isinstance(node, Allocate) and node.like == tensor)
        for node in walk(nodes)
    )
