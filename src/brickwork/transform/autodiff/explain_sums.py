"""Says in words how a derived program sums each gradient: element by element, in place, or scattered, and why.

Only reads the source and what was derived; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import apart
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.verdicts import Analysis
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Cast,
    Expression,
    For,
    Launch,
    Load,
    Node,
    Program,
    Read,
    Return,
    Store,
    Symbol,
    Tensor,
    parameter_tensors,
)
from brickwork.ir.walk import children, walk
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.pipeline import ScheduledKernel, schedule_program
from brickwork.transform.privatise_reductions import copied_version
from brickwork.transform.schedule.schedule import Level, Rfactor


@dataclass(frozen=True, slots=True)
class _Update:
    """An addition to an element, and the loops around it, outermost first."""

    store: Store
    loops: tuple[For, ...]


def ways_of_summing(source: Program, derived: Program, names: tuple[str, ...], target: Target) -> Iterator[str]:
    """Yield for each gradient of a program how it is made; `names` are the tensors of `source` that it is for."""
    results = next(node.tensors for node in derived.body if isinstance(node, Return))
    sums = _Sums(source, derived, *schedule_program(derived, target))
    tensors = {tensor.name: tensor for tensor in parameter_tensors(source.parameters)}
    for name, result in zip(names, results, strict=True):
        yield f"{name}: {sums.way(tensors[name], result)}"


@dataclass(slots=True)
class _Sums:
    """What is known of the sums in a derived program: as it was derived, and as it is scheduled and emitted."""

    source: Program
    derived: Program
    emitted: Program
    scheduled: Sequence[ScheduledKernel]
    updates: list[_Update] = field(default_factory=list[_Update])
    analyses: dict[Symbol, tuple[Analysis, Loop]] = field(default_factory=dict[Symbol, "tuple[Analysis, Loop]"])
    atomic: set[Tensor] = field(default_factory=set[Tensor])

    def __post_init__(self) -> None:
        for node in self.derived.body:
            if isinstance(node, Launch):
                analysis = analyse(node.kernel)
                self.updates += _stores(node.kernel, ())
                self.analyses |= {loop.node.index: (analysis, loop) for loop in analysis.model.loops}
        self.atomic |= {node.tensor for node in walk(self.emitted) if isinstance(node, Store) and node.combine}

    def way(self, tensor: Tensor, result: Tensor) -> str:
        """Return how the gradient `result` of a tensor is made."""
        summed = _summed(result, self.updates)
        written = [update for update in self.updates if update.store.tensor in summed]
        if not written:
            return "zero, since no result depends on its elements"
        adding = [update for update in written if _adds(update.store)]
        met = [(update, loop) for update in adding or written for loop in update.loops if self.meets(update, loop)]
        if not met:
            way = "in place, additions to one element never meet" if adding else "gather, each element is written once"
            return f"{way}{self.behind(summed)}"
        scattered = [(update, loop) for update, loop in met if adding and not _is_fixed(update, loop)]
        update, loop = (scattered or met)[0]
        how = self.runs(update.store.tensor, loop)
        if scattered:
            return f"scatter, {how}, since {_reason(self.source, tensor, update)}"
        return f"in place, {how}{self.behind(summed)}"

    def meets(self, update: _Update, loop: For) -> bool:
        """Whether iterations of a loop may add to one element, or write it."""
        analysis, around = self.analyses[loop.index]
        return not apart(around, analysis, Solver(), {update.store.tensor})

    def runs(self, tensor: Tensor, loop: For) -> str:
        """Return how additions of a loop's iterations to the same elements of a tensor come about."""
        if tensor in self.atomic:
            return "atomic additions"
        name = f"iterations of '{loop.index.name}'"
        for kernel in self.scheduled:
            verdict = kernel.analysis.loops.get(loop.index)
            if verdict is not None and any(item.symbol.name == tensor.name for item in verdict.reductions):
                shared = any(
                    isinstance(verb, Rfactor) and verb.loop == loop.index and verb.level is not Level.GRID
                    for verb in kernel.schedule.verbs
                )
                return f"partial sums of {name}" if shared else f"{name} in order"
            if kernel.schedule.copies(loop.index) and copied_version(loop.index) in kernel.choices:
                return f"{name} in order, or in pieces with copies of it if they are many"
        return f"{name} in order"

    def behind(self, summed: set[Tensor]) -> str:
        """Return that what is added, or written, was itself summed by atomic additions, if it was."""
        values = _assigned(self.derived)
        found, todo = set[Tensor](), [*summed]
        while todo:
            tensor = todo.pop()
            found.add(tensor)
            stored = (update.store.value for update in self.updates if update.store.tensor == tensor)
            loads = (node.tensor for node in _origins(tuple(stored), values) if isinstance(node, Load))
            todo += [item for item in dict.fromkeys(loads) if item not in found]
        names = ", ".join(f"'{name}'" for name in sorted({tensor.name for tensor in found & self.atomic}))
        return f"; it is made of {names}, summed by atomic additions" if names else ""


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
    return store.combine is not None or store.tensor in effects(store.value).loads


def _is_fixed(update: _Update, loop: For) -> bool:
    """Whether all iterations of a loop add to the same elements."""
    values = _assigned(*loop.body)
    nodes = [*_origins(update.store.indices, values)]
    return not any(isinstance(node, Load) or (isinstance(node, Read) and node.symbol == loop.index) for node in nodes)


# ---------------------------------------------------------------- why not a gather


def _reason(source: Program, tensor: Tensor, update: _Update) -> str:
    """Return why additions to the gradient of a tensor stay where they are."""
    kernels = [node.kernel for node in source.body if isinstance(node, Launch)]
    values = _assigned(*kernels)
    loads = [node for node in walk(kernels) if isinstance(node, Load) and node.tensor == tensor]
    for load in loads:
        for node in _origins(load.indices, values):
            if isinstance(node, Load):
                return f"its index at {load.loc} comes from the elements of '{node.tensor.name}'"
            if isinstance(node, Cast) and node.operand.dtype.is_float:
                return f"its index at {load.loc} comes from a float"
    inside, around = effects(update.loops[0]), effects((update.loops[0], *kernels))
    if around.whiles or around.jumps:
        return "the loops around it have a `while`, `break` or `continue`"
    if inside.rebinds:
        return "tensors change places in the loops around it"
    stored = inside.stores - {update.store.tensor}
    within = _assigned(update.loops[0])
    for node in _origins((update.store.value,), within):
        if isinstance(node, Load) and node.tensor in stored:
            return f"what is added depends on '{node.tensor.name}', which the same loops store into"
    place = f"its index at {loads[0].loc}" if loads else "its index"
    return f"{place} cannot be solved for the loops"


def _assigned(*roots: Node) -> Mapping[Symbol, Sequence[Expression]]:
    """Return all that variables are assigned."""
    found: dict[Symbol, list[Expression]] = {}
    for node in walk(roots):
        if isinstance(node, Assign):
            found.setdefault(node.symbol, []).append(node.value)
    return found


def _origins(expressions: tuple[Expression, ...], values: Mapping[Symbol, Sequence[Expression]]) -> Iterator[Node]:
    """Yield the nodes of expressions, and of what the variables in them were computed from."""
    seen: set[Symbol] = set()
    todo = [*expressions]
    while todo:
        for node in walk(todo.pop()):
            yield node
            if isinstance(node, Read) and node.symbol in values and node.symbol not in seen:
                seen.add(node.symbol)
                todo.extend(values[node.symbol])
