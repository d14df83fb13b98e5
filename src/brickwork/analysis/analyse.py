"""All that is asked of a kernel at once: the verdict of each loop and of each access.

Nothing here changes the IR. What isl cannot answer within its limits counts as not proved.
"""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.analysis.bounds import Proofs, bound_access
from brickwork.analysis.formula import Comparison
from brickwork.analysis.isl import Solver
from brickwork.analysis.parameter_expressions import comparison_expression
from brickwork.analysis.polyhedral_model import Loop, Model
from brickwork.analysis.polynomial import SCALAR_LIMIT, Atom, Interval, ScalarAtom, SizeAtom, number, of_atom
from brickwork.analysis.races import Facts, find_race
from brickwork.analysis.scalars import Carried, Symbols, live_after_loops, scalar_verdict
from brickwork.analysis.symbolic import model_kernel
from brickwork.analysis.verdicts import Analysis, BoundVerdict, Conflict, ConflictKind, LoopVerdict, Party
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Expression, Kernel, Read, Rebind, Size, Symbol
from brickwork.ir.walk import statements, walk


def analyse(kernel: Kernel, *, unguarded: bool = False) -> Analysis:
    """Return the facts about a kernel; if `unguarded`, those that rest on no guard, but on the assumptions alone.

    The kernel remembers them: many passes leave it as it is, and the next one asks again.
    """
    known: dict[bool, Analysis] | None = getattr(kernel, "analyses", None)
    if known is None:
        known = {}
        object.__setattr__(kernel, "analyses", known)
    if unguarded not in known:
        known[unguarded] = _analysed(kernel, unguarded=unguarded)
    return known[unguarded]


def _analysed(kernel: Kernel, *, unguarded: bool) -> Analysis:
    model, assumed = model_kernel(kernel)
    solver = Solver()
    bounds: dict[tuple[int, int], BoundVerdict] = {}
    proofs: Proofs = {}
    for access in model.accesses:
        for axis, verdict in bound_access(model, solver, access, proofs, unguarded=unguarded).items():
            bounds[access.number, axis] = verdict
    facts = Facts(model, solver, bounds)
    live = live_after_loops(kernel.body)
    loops: dict[Symbol, LoopVerdict] = {}
    for loop in model.loops:
        verdict = _loop_verdict(facts, loop, live[loop.node.index], may_alias=kernel.may_alias)
        before = loops.get(loop.node.index)
        loops[loop.node.index] = verdict if before is None or before.independent else before
    return Analysis(
        loops=loops,
        bounds=bounds,
        accesses=model.accesses,
        assumptions=(*_scalar_ranges(kernel, model), *_size_ranges(assumed)),
        model=model,
        sizes=frozenset(_computed_sizes(kernel)),
    )


def _computed_sizes(kernel: Kernel) -> Iterator[Symbol]:
    """Yield the scalars of which the kernel knows that they were computed of a size."""
    for fact in kernel.facts:
        match fact:
            case Apply(operator=operator, operands=(Read(symbol=symbol), value)) if operator.name == "eq":
                if any(isinstance(node, Size) for node in walk(value)):
                    yield symbol
            case _:
                pass


def _loop_verdict(facts: Facts, loop: Loop, live_after: Symbols, *, may_alias: bool) -> LoopVerdict:
    claimed = loop.node.claimed
    if loop.leaves:
        sentence = "a 'break' may end it early"
        return LoopVerdict(False, (), Conflict(ConflictKind.EXIT, sentence, (Party("loops", loop.node.loc),)), claimed)
    exchange = next((node for node in statements(loop.node.body) if isinstance(node, Rebind)), None)
    if exchange is not None:
        return LoopVerdict(False, (), _exchange_conflict(exchange), claimed)
    reductions, carried = scalar_verdict(loop.node, live_after)
    if carried is not None:
        return LoopVerdict(False, (), _carried_conflict(carried, loop), claimed)
    conflict = find_race(facts, loop, may_alias=may_alias)
    return LoopVerdict(conflict is None, reductions, conflict, claimed)


def _exchange_conflict(node: Rebind) -> Conflict:
    names = " and ".join(f"'{tensor.name}'" for tensor in node.targets)
    sentence = f"line {node.loc.line} exchanges {names} for the next iteration"
    return Conflict(ConflictKind.VARIABLE, sentence, (Party(f"exchanges {names}", node.loc),), refuted=True)


def _carried_conflict(carried: Carried, loop: Loop) -> Conflict:
    """Return what is in the way, with the first two iterations where their indices are known."""
    name, index = carried.symbol.name, loop.node.index.name
    if carried.after:
        sentence = f"'{name}', assigned at line {carried.loc.line}, is used after the loop"
        return Conflict(ConflictKind.VARIABLE, sentence, (Party(f"assigns '{name}'", carried.loc),), refuted=True)
    if not loop.start.is_constant:
        sentence = f"'{name}', assigned at line {carried.loc.line}, is used by the next iteration"
        return Conflict(ConflictKind.VARIABLE, sentence, (Party(f"assigns '{name}'", carried.loc),), refuted=True)
    first = loop.start.constant
    sentence = (
        f"'{name}', assigned at line {carried.loc.line}, is used by the next iteration:"
        f" with {index}={first}, and then with {index}={first + 1}"
    )
    party = Party(f"assigns '{name}'", carried.loc, {index: first})
    return Conflict(ConflictKind.VARIABLE, sentence, (party,), refuted=True)


def _scalar_ranges(kernel: Kernel, model: Model) -> tuple[Expression, ...]:
    """Return that each integer argument which occurs in the kernel is small enough for proofs about indices."""
    limit = number(SCALAR_LIMIT)
    return tuple(
        comparison_expression(Comparison(polynomial))
        for symbol in kernel.scalars
        if symbol.dtype is INT64 and symbol in model.scalars
        for atom in (ScalarAtom(symbol),)
        for polynomial in (limit - of_atom(atom), limit + of_atom(atom))
    )


def _size_ranges(assumed: dict[Atom, Interval]) -> tuple[Expression, ...]:
    return tuple(
        comparison_expression(Comparison(polynomial))
        for atom, interval in assumed.items()
        if interval.low is not None and interval.high is not None
        for polynomial in (number(interval.high) - of_atom(atom), of_atom(atom) - number(interval.low))
        if not (isinstance(atom, SizeAtom) and polynomial == of_atom(atom))
    )
