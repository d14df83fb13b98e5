"""Says in words how a derived program sums each gradient: element by element, in place, or scattered, and why.

Only reads the source and what was derived; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import ConflictKind, LoopVerdict
from brickwork.ir.nodes import (
    Assign,
    Break,
    Cast,
    Continue,
    Expression,
    For,
    Launch,
    Load,
    Node,
    Program,
    Read,
    Rebind,
    Return,
    Store,
    Symbol,
    Tensor,
    While,
    parameter_tensors,
)
from brickwork.ir.walk import children, statements, walk
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Update:
    """An addition to an element, and the loops around it, outermost first."""

    store: Store
    loops: tuple[For, ...]


def ways_of_summing(source: Program, derived: Program, names: tuple[str, ...], *, grid: bool) -> Iterator[str]:
    """Yield for each gradient of a program how it is made; `names` are the tensors of `source` that it is for."""
    results = next(node.tensors for node in derived.body if isinstance(node, Return))
    kernels = [node.kernel for node in derived.body if isinstance(node, Launch)]
    verdicts = {index: verdict for kernel in kernels for index, verdict in analyse(kernel).loops.items()}
    stores = [update for kernel in kernels for update in _stores(kernel, ())]
    tensors = {tensor.name: tensor for tensor in parameter_tensors(source.parameters)}
    for name, result in zip(names, results, strict=True):
        summed = _summed(result, stores)
        written = [update for update in stores if update.store.tensor in summed]
        updates = [update for update in written if _adds(update.store)]
        met = [(update, loop) for update in updates for loop in update.loops if _meets(update, verdicts[loop.index])]
        if not written:
            yield f"{name}: zero, since no result depends on its elements"
        elif not updates:
            yield f"{name}: gather, each element is written once"
        elif not met:
            yield f"{name}: in place, additions to one element never meet"
        else:
            scattered = [(update, loop) for update, loop in met if not _is_fixed(update, loop)]
            update, loop = (scattered or met)[0]
            how = f"iterations of '{loop.index.name}' in order"
            if not scattered:
                yield f"{name}: in place, {how}{' or atomic' if grid else ''}"
                continue
            how = "atomic additions" if grid else how
            yield f"{name}: scatter, {how}, since {_reason(source, tensors[name], update)}"


def _stores(node: Node, loops: tuple[For, ...]) -> Iterator[_Update]:
    for child in children(node):
        if isinstance(child, Store):
            yield _Update(child, loops)
        yield from _stores(child, (*loops, child) if isinstance(child, For) else loops)


def _summed(result: Tensor, stores: list[_Update]) -> set[Tensor]:
    """Return a result and what it is rounded from."""
    found = {result}
    for update in reversed(stores):
        value = update.store.value
        value = value.operand if isinstance(value, Cast) else value
        if update.store.tensor in found and isinstance(value, Load):
            found.add(value.tensor)
    return found


def _adds(store: Store) -> bool:
    return store.combine is not None or any(
        isinstance(node, Load) and node.tensor == store.tensor for node in walk(store.value)
    )


def _meets(update: _Update, verdict: LoopVerdict) -> bool:
    """Whether iterations of a loop may add to one element."""
    conflict, tensor = verdict.conflict, update.store.tensor
    if conflict is None or conflict.kind is not ConflictKind.ELEMENTS:
        return tensor in verdict.updates
    about = f"'{tensor.name}'" in conflict.sentence or (conflict.element or "").startswith(f"{tensor.name}[")
    return about or tensor in verdict.updates


def _is_fixed(update: _Update, loop: For) -> bool:
    """Whether all iterations of a loop add to the same elements."""
    values = {node.symbol: node.value for node in statements(loop.body) if isinstance(node, Assign)}
    nodes = [*_origins(update.store.indices, values)]
    return not any(isinstance(node, Load) or (isinstance(node, Read) and node.symbol == loop.index) for node in nodes)


# ---------------------------------------------------------------- why not a gather


def _reason(source: Program, tensor: Tensor, update: _Update) -> str:
    """Return why additions to the gradient of a tensor stay where they are."""
    kernels = [node.kernel for node in source.body if isinstance(node, Launch)]
    values = {node.symbol: node.value for node in statements(kernels) if isinstance(node, Assign)}
    loads = [node for node in walk(kernels) if isinstance(node, Load) and node.tensor == tensor]
    for load in loads:
        for node in _origins(load.indices, values):
            if isinstance(node, Load):
                return f"its index at {load.loc} comes from the elements of '{node.tensor.name}'"
            if isinstance(node, Cast) and node.operand.dtype.is_float:
                return f"its index at {load.loc} comes from a float"
    inside = [*walk(update.loops[0])]
    if any(isinstance(node, While | Break | Continue) for node in [*inside, *walk(kernels)]):
        return "the loops around it have a `while`, `break` or `continue`"
    if any(isinstance(node, Rebind) for node in inside):
        return "tensors change places in the loops around it"
    stored = {node.tensor for node in inside if isinstance(node, Store)} - {update.store.tensor}
    within = {node.symbol: node.value for node in inside if isinstance(node, Assign)}
    for node in _origins((update.store.value,), within):
        if isinstance(node, Load) and node.tensor in stored:
            return f"what is added depends on '{node.tensor.name}', which the same loops store into"
    place = f"its index at {loads[0].loc}" if loads else "its index"
    return f"{place} cannot be solved for the loops"


def _origins(expressions: tuple[Expression, ...], values: Mapping[Symbol, Expression]) -> Iterator[Node]:
    """Yield the nodes of expressions, and of what the variables in them were computed from."""
    seen: set[Symbol] = set()
    todo = [*expressions]
    while todo:
        for node in walk(todo.pop()):
            yield node
            if isinstance(node, Read) and node.symbol in values and node.symbol not in seen:
                seen.add(node.symbol)
                todo.append(values[node.symbol])
