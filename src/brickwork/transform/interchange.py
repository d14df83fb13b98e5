"""Puts an independent loop outside of one that depends on earlier iterations: there are iterations to share out then.

    for i in range(n):                        for j in range(m):
        for j in range(m):            ->          for i in range(n):
            out[j] += x[i, j]                         out[j] += x[i, j]

What accumulates is innermost then, so that `promote` can keep it in a variable. Legal where iterations of the loop that
moves out touch different elements whatever the other loop's iteration is: each element sees the same updates in order.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.analysis.model import Access
from brickwork.analysis.polynomial import of_atom
from brickwork.analysis.verdicts import Analysis, ConflictKind
from brickwork.ir.nodes import Break, Check, Continue, For, Kernel, Load, Statement, Symbol, While
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, walk


def interchange(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel with loops exchanged where that makes the outer one independent."""
    if kernel.may_alias:
        return kernel
    body = rewrite_statements(kernel.body, lambda statement: (_exchanged(statement, analysis),))
    return kernel if body == kernel.body else replace(kernel, body=body)


def _exchanged(statement: Statement, analysis: Analysis) -> Statement:
    if not isinstance(statement, For) or len(statement.body) != 1:
        return statement
    inner = statement.body[0]
    if not isinstance(inner, For) or not _can_exchange(statement, inner, analysis):
        return statement
    return replace(inner, body=(_exchanged(replace(statement, body=inner.body), analysis),))


def _can_exchange(outer: For, inner: For, analysis: Analysis) -> bool:
    verdict, within = analysis.loops[outer.index], analysis.loops[inner.index]
    blocked = verdict.conflict is not None and verdict.conflict.kind is ConflictKind.ELEMENTS
    if not blocked or verdict.independent or outer.claimed or not within.independent or within.reductions:
        return False
    bounds = (inner.start, inner.stop)
    if outer.index in read_symbols(bounds) or any(isinstance(node, Load) for node in walk(bounds)):
        return False
    if read_symbols(bounds) & assigned_symbols(inner.body):
        return False
    if any(isinstance(node, Break | Continue | Check | While) for node in walk(inner.body)):
        return False
    accesses = [
        item for item in analysis.accesses if any(loop.node.index == inner.index for loop in item.loops[item.private :])
    ]
    stored = {access.tensor for access in accesses if access.store}
    return bool(stored) and all(
        _apart([access for access in accesses if access.tensor == tensor], inner.index) for tensor in stored
    )


def _apart(accesses: list[Access], loop: Symbol) -> bool:
    """Whether one and the same index of all accesses to a tensor is the loop's index."""
    return any(all(_is_index(access, place, loop) for access in accesses) for place in range(len(accesses[0].axes)))


def _is_index(access: Access, place: int, loop: Symbol) -> bool:
    atom = next(around.atom for around in access.loops if around.node.index == loop)
    axis = access.axes[place]
    return axis.value == of_atom(atom) and not axis.wraps
