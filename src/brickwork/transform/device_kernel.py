"""Makes an outlined device kernel: its names, the facts it may rely on, which arguments are narrow and aligned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from brickwork.analysis.scalars import NONE, live_before
from brickwork.diagnostics.location import NOWHERE
from brickwork.ir.nodes import Apply, Block, Constant, Expression, Kernel, Load, Read, Size, Store, Symbol, Tensor
from brickwork.ir.walk import read_symbols, rewrite, walk
from brickwork.transform.argument_facts import ArgumentFacts, narrow_conditions


def make_kernel(
    name: str, body: Block, facts: Iterable[Expression], known: ArgumentFacts, source: Kernel | None
) -> Kernel:
    """Return the kernel with this body; of the `facts` it keeps those about its own names."""
    used = dict.fromkeys(node.tensor for node in walk(body) if isinstance(node, Load | Store | Size))
    tensors = tuple(tensor for tensor in used if not tensor.is_local)
    free = live_before(body, NONE)
    reads = (node.symbol for node in walk(body) if isinstance(node, Read))
    scalars = tuple(dict.fromkeys(symbol for symbol in reads if symbol in free))
    facts = tuple(dict.fromkeys(facts))
    kept = [fact for fact in dict.fromkeys((*facts, *_passed_on(facts))) if _speaks_of(fact, tensors, scalars)]
    return Kernel(
        name=name,
        tensors=tensors,
        scalars=scalars,
        facts=tuple(kept),
        body=body,
        may_alias=source is not None and source.may_alias,
        narrow=tuple(item for item in (*tensors, *scalars) if _is_narrow(item, known, kept)),
        aligned=tuple(tensor for tensor in tensors if known.is_aligned(tensor)),
        loc=NOWHERE if source is None else source.loc,
    )


def _passed_on(facts: Sequence[Expression]) -> Iterator[Expression]:
    """Yield what divides a size as a fact about the sizes that are equal to it."""
    equal = dict[Size, set[Size]]()
    divided = list[tuple[Size, Expression]]()
    for fact in facts:
        match fact:
            case Apply(operator=same, operands=(Size() as left, Size() as right)) if same.name == "eq":
                group = equal.get(left, {left}) | equal.get(right, {right})
                equal.update(dict.fromkeys(group, group))
            case Apply(
                operator=same, operands=(Apply(operator=rest, operands=(Size() as size, Constant())), Constant(value=0))
            ) if same.name == "eq" and rest.name == "mod":
                divided.append((size, fact))
            case _:
                pass
    for size, fact in divided:
        for other in sorted(equal.get(size, {size}), key=lambda item: (item.tensor.number, item.axis)):
            yield rewrite(fact, lambda node, size=size, other=other: other if node == size else node)


def _speaks_of(fact: Expression, tensors: tuple[Tensor, ...], scalars: tuple[Symbol, ...]) -> bool:
    sizes = (node.tensor for node in walk(fact) if isinstance(node, Size))
    return all(tensor in tensors for tensor in sizes) and read_symbols(fact) <= frozenset(scalars)


def _is_narrow(item: Tensor | Symbol, known: ArgumentFacts, facts: Sequence[Expression]) -> bool:
    if known.is_narrow(item):
        return True
    conditions = narrow_conditions(item, known) if isinstance(item, Tensor) else ()
    return bool(conditions) and all(condition in facts for condition in conditions)
