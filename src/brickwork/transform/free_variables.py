"""Free variables of a kernel's body: what it needs from outside, in order of first use.

Invariant: a derived kernel declares exactly what its body mentions, as the frontend's kernels do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from brickwork.ir.nodes import (
    Apply,
    Block,
    Expression,
    Kernel,
    Node,
    Size,
    Tensor,
)
from brickwork.ir.walk import free_symbols, free_tensors, is_about, rewrite, walk


def with_body(kernel: Kernel, body: Block, facts: Iterable[Expression]) -> Kernel:
    """Return `kernel` with another body, what that uses, and those of the facts that are about it.

    What facts say of tensors that it does not use is said of those whose sizes are the same.
    """
    tensors, scalars = free_tensors(body), free_symbols(body)
    told = [*facts]
    told += _without_strangers(told, tensors)
    kept = tuple(dict.fromkeys(fact for fact in told if is_about(fact, tensors, scalars)))
    return replace(kernel, tensors=tensors, scalars=scalars, facts=kept, body=body)


def _without_strangers(facts: Sequence[Expression], tensors: Collection[Tensor]) -> Iterator[Expression]:
    """Yield the facts about sizes of other tensors in terms of what these sizes are equal to."""
    values: dict[Node, Expression] = {}

    def visit(node: Node) -> Node:
        return values.get(node, node) if isinstance(node, Size) else node

    for fact in facts:
        match rewrite(fact, visit):
            case Apply(operator=operator, operands=(left, right)) if operator.name == "eq":
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, Size) and one.tensor not in tensors and one not in walk(other):
                        values[one] = other
                        values.update({size: rewrite(value, visit) for size, value in values.items()})
                        break
            case _:
                pass
    for fact in facts:
        match rewrite(fact, visit):
            case Apply(operands=(left, right)) if left == right:
                pass
            case told if told is not fact:
                yield told
            case _:
                pass
