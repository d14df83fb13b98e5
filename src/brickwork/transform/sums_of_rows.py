"""What loops over rows add to several tensors, as a nest for each, if these are contractions.

    for b ...: for i in range(p[b], p[b + 1]):          for b ...: for i ...: for k ...: for j ...:
        for j ...:                                          x[i, k] += y[i, j] * w[b, k, j]
            a = y[i, j]                         ->      for b ...: for k ...: for j ...: for i ...:
            y[i, j] = 0                                     u[b, k, j] += y[i, j] * v[i, k]
            for k ...:
                x[i, k] += a * w[b, k, j]
                u[b, k, j] += a * v[i, k]

Gradients of products of rows are such loops, which read what was added to an element and set it to zero for an earlier
store. Where rows ascend each is met once, and nobody reads the zero. Invariant: elements get the same terms, in another
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import grouped
from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, may_meet
from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    Kernel,
    Load,
    Node,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    operands_of,
    read_symbols,
    rewrite_statements,
    statements,
    substitute,
    walk,
)
from brickwork.legality import legality
from brickwork.transform.scratch import Names, copied


def with_sums_of_rows(kernel: Kernel, analysis: Analysis, unread: frozenset[Tensor], names: Names) -> Kernel:
    """Return a kernel whose rows ascend with nests for each tensor that is added to; `analysis` is of this kernel.

    Nobody reads the elements of the `unread` tensors after the kernel.
    """
    body: list[Statement] = []
    for place, statement in enumerate(kernel.body):
        later = kernel.body[place + 1 :]
        found = _nests(statement, later, analysis, unread) if isinstance(statement, For) else None
        if found is None or len(effects(statement).stores) < 2:
            body.append(statement)
        else:
            body += (each if number == 0 else copied(each, names) for number, each in enumerate(found))
    return replace(kernel, body=tuple(body))


@legality
def _nests(nest: For, later: Block, analysis: Analysis, unread: frozenset[Tensor]) -> Block | None:
    """Return the nests of a loop's sums; None if it has others, or does anything else, of what is read `later`, too."""
    inside = [*statements(nest)]
    stores = [node for node in inside if isinstance(node, Store)]
    zeros = [store for store in stores if build.is_constant(store.value, 0)]
    sums = [store for store in stores if store not in zeros]
    loads = [node for node in walk(nest) if isinstance(node, Load)]
    symbols = [node.symbol for node in inside if isinstance(node, Assign)]
    if len({*symbols}) < len(symbols) or live_before((nest, *later), NONE) & {*symbols}:
        return None
    if effects(nest).draws or not all(isinstance(node, For | Assign | Store) for node in inside):
        return None
    if any(_reads(loads, store.tensor) != 1 for store in sums):
        return None
    if not all(
        store.tensor in unread - effects(later).loads and _is_met_once(store, nest, analysis) for store in zeros
    ):
        return None
    ends = _read_by_bounds(inside)
    found = [each for store in sums for each in _alone(rewrite_statements((nest,), _forwards), store, ends, {})]
    return tuple(found) if all(map(_is_contraction, found)) else None


def _read_by_bounds(inside: Sequence[Node]) -> frozenset[Symbol]:
    return read_symbols([bound for node in inside if isinstance(node, For) for bound in (node.start, node.stop)])


def _reads(loads: Sequence[Load], tensor: Tensor) -> int:
    return sum(load.tensor == tensor for load in loads)


@legality
def _added(store: Store) -> Expression | None:
    """Return what is added to an element in single precision; None if it is not."""
    match store.value:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "add" and left.dtype is FLOAT32:
            for element, other in ((left, right), (right, left)):
                if isinstance(element, Load) and (element.tensor, element.indices) == (store.tensor, store.indices):
                    return other
        case _:
            pass
    return None


@legality
def _is_met_once(store: Store, nest: For, analysis: Analysis) -> bool:
    """Whether an element that is set to zero is read once before, in the same iteration, and met in no other."""
    met = [node for node in walk(nest) if isinstance(node, Load | Store) and node.tensor == store.tensor]
    (access,) = (item for item in analysis.accesses if item.number == store.access)
    if [(type(node), node.indices) for node in met] != [(Load, store.indices), (Store, store.indices)]:
        return False
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    # Two iterations are in one of all loops around the first in which they differ.
    return not any(may_meet(facts, loop, access, access, depth=loop.depth) for loop in access.loops)


@legality
def _forwards(statement: Statement) -> Block:
    """Return a loop that counts backwards as one that counts forwards: sums alone tell them apart."""
    match statement:
        case For(index=index, start=start, stop=stop, body=(Assign(symbol=symbol, value=value), *rest)):
            backwards = build.sub(build.sub(build.add(start, stop), build.integer(1)), build.read(index))
            if value == backwards and index not in read_symbols(rest):
                return (replace(statement, index=symbol, body=tuple(rest)),)
        case _:
            pass
    return (statement,)


def _alone(
    block: Block, store: Store, ends: frozenset[Symbol], values: dict[Symbol, Expression]
) -> Iterator[Statement]:
    """Yield the statements of a block for one of its stores, with all values in that, but for the ends of loops."""
    for statement in block:
        match statement:
            case Assign(symbol=symbol) if symbol in ends:
                yield substitute(statement, values)
            case Assign(symbol=symbol, value=value):
                values[symbol] = substitute(value, values)
            case For(body=body) if any(
                node.access == store.access for node in statements(body) if isinstance(node, Store)
            ):
                bounds = [substitute(bound, values) for bound in (statement.start, statement.stop)]
                inner = tuple(_alone(body, store, ends, dict(values)))
                yield replace(statement, start=bounds[0], stop=bounds[1], body=inner)
            case Store(access=access) if access == store.access:
                yield substitute(statement, values)
            case _:
                pass


def _is_contraction(nest: Statement) -> bool:
    """Whether a nest adds products of factors of which one goes with some rows and the other with columns."""
    loops = [node for node in statements(nest) if isinstance(node, For)]
    (store,) = (node for node in statements(nest) if isinstance(node, Store))
    own = read_symbols(store.indices)
    added = _added(store)
    if added is None:
        return False
    total = Symbol("sum", -1, FLOAT32)
    body: Block = (Assign(symbol=total, value=build.apply("add", build.read(total), added)),)
    for loop in reversed([loop for loop in loops if loop.index not in own]):
        body = (replace(loop, body=body),)
    rows = [loop.index for loop in loops if loop.index in own]
    return isinstance(body[0], For) and len([*operands_of(added, "mul")]) > 1 and grouped(body, rows) is not None
