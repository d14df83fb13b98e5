"""Warnings about programs and scheduled kernels: what is right, but can hardly be meant.

Few and certain: everything else is for `explain.py` to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.analysis.polyhedral_model import Loop
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.ir.nodes import Apply, Cast, Constant, Expression, For, Program, Select, Store
from brickwork.ir.walk import statements, walk
from brickwork.transform.explanation import IN_ORDER, OTHERWISE
from brickwork.transform.pipeline import ScheduledKernel

_WHOLE = frozenset({"floor", "ceil", "trunc", "round"})
_KEEP_WHOLE = frozenset({"add", "sub", "mul", "neg", "abs", "minimum", "maximum", "mod", "floordiv"})
FEW = 1024
"""Iterations in order that a GPU may run without a word."""


def warnings_of(scheduled: ScheduledKernel) -> Iterator[Diagnostic]:
    """Yield a warning for each nest of loops that a single thread of a GPU runs."""
    if scheduled.remark in {OTHERWISE, IN_ORDER}:
        return
    shared = {item.loop for item in scheduled.schedule.verbs}
    for loop in scheduled.analysis.model.loops:
        nest = {loop.node.index, *(node.index for node in statements(loop.node.body) if isinstance(node, For))}
        if scheduled.grid and loop.depth == 0 and not nest & shared and not _is_short(loop):
            yield Diagnostic(
                code="BW402",
                message=f"one thread of the GPU runs the loop over '{loop.node.index.name}' {_reason(loop, scheduled)}",
                loc=loop.node.loc,
                help="make its iterations independent, or call the operator with tensors on the CPU",
            )


def dropped_fractions(program: Program) -> Iterator[Diagnostic]:
    """Yield a warning for each store, as the source has it, of a float into a tensor of integers.

    Such a store converts at its own place, where `int(...)` converts at that of the call.
    """
    for node in walk(program):
        if not isinstance(node, Store) or node.tensor.is_local or not node.tensor.type.dtype.is_integer:
            continue
        stored = node.value
        if isinstance(stored, Cast) and stored.loc == node.loc and not _is_whole(stored.operand):
            name, dtype = node.tensor.name, node.tensor.type.dtype
            yield Diagnostic(
                code="BW404",
                message=f"a float is stored into `{name}`, whose elements are {dtype}: its fraction is dropped",
                loc=node.loc,
                help="write int(...) around it, or make the tensor of a floating-point type",
            )


def _is_whole(value: Expression) -> bool:
    """Return whether a number is seen to have no fraction."""
    match value:
        case Constant():
            return float(value.value).is_integer()
        case Cast(operand=operand):
            return _is_whole(operand)
        case Apply(operator=operator, operands=operands):
            return operator.name in _WHOLE or (operator.name in _KEEP_WHOLE and all(map(_is_whole, operands)))
        case Select(then=then, otherwise=otherwise):
            return _is_whole(then) and _is_whole(otherwise)
        case _:
            return not value.dtype.is_float


def _is_short(loop: Loop) -> bool:
    start, stop = loop.node.start, loop.node.stop
    return isinstance(start, Constant) and isinstance(stop, Constant) and stop.value - start.value <= FEW


def _reason(loop: Loop, scheduled: ScheduledKernel) -> str:
    if scheduled.kernel.may_alias:
        return "in order, as arguments may share memory"
    conflict = scheduled.analysis.loops[loop.node.index].conflict
    return "in order" if conflict is None else f"in order, because {conflict.sentence}"
