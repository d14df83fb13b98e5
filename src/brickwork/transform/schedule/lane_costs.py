"""What lanes cost where they do not run alike: accesses that lie apart, and inner loops that end for each lane alone.

    y[i] = 0.3 * a[i, 0] + 0.6 * a[i, 1]      lanes read one by one, and share the arithmetic alone
    for k in range(n): s += x[i, k]           each reads a row of its own, and all wait for a sum at once
    while v != 1: ...                         lanes wait for the one with the most steps, and for masks in each step

Times are in cycles. What is decided here is what pays; any answer is legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from brickwork.analysis.verdicts import Analysis
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Expression,
    For,
    If,
    Load,
    Node,
    Select,
    Statement,
    Store,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, straight, walk
from brickwork.target.cycles import APART, AT_ONCE, DIVISION, MASK
from brickwork.transform.schedule.planner import DEPTH_WEIGHT, is_apart, is_long_computation, is_strided, trip_count
from brickwork.transform.schedule.recurrence import chain, is_division

ALONG = 4 * DEPTH_WEIGHT
"""Iterations that a loop is taken to have that goes along an axis, beside those of literal lengths.

A row counts for more than six logarithms after it, of 39 cycles each. With 16, counts along rows of 1000 got lanes,
and took four times as long.
"""
_EQUALITY = frozenset({"eq", "ne"})
_COMPARISONS = _EQUALITY | {"lt", "le", "gt", "ge"}


def lanes_pay(loop: For, width: int, analysis: Analysis, innermost: For | None = None) -> bool:
    """Whether so many iterations of a loop take less time in lanes than one after the other.

    With `innermost`, the loop runs inside of those that it stands around now, of which that is the last.
    """
    body = loop.body if innermost is None else innermost.body
    inside = [node for node in statements(body) if isinstance(node, For | While)]
    alone = [node for node in inside if _ends_alone(node)]
    if alone:
        return all(_waits_little(node, width) for node in alone)
    if inside:
        one, lane = _times(innermost or loop, loop, width, analysis)
        return lane < one
    apart = _apart(innermost or loop, loop, analysis)
    masks = MASK * sum(isinstance(node, If) for node in statements(body)) / width
    return not apart or work(body) >= apart + masks


def _times(loop: For, lanes: For, width: int, analysis: Analysis) -> tuple[float, float]:
    """Return how long an iteration of a loop takes alone, and in each of so many lanes of a loop around or of this."""
    own = (*_own(loop.body),)
    in_order = not analysis.loops[loop.index].independent
    waits = chain(own, effects(own).stores if in_order else frozenset())
    one = max(waits, work(own))
    lane = max(waits / width, work(own) / AT_ONCE) + _apart(loop, lanes, analysis)
    for inner in _outermost(loop.body):
        count = trip_count(inner)
        times = ALONG if count is None else count
        alone, beside = _times(inner, lanes, width, analysis)
        one, lane = one + times * alone, lane + times * beside
    return one, lane


def _own(block: Block) -> Iterator[Statement]:
    """Yield the statements of a block without the loops in it."""
    for statement in block:
        match statement:
            case For() | While():
                pass
            case If(then=then, otherwise=otherwise):
                yield replace(statement, then=(*_own(then),), otherwise=(*_own(otherwise),))
            case _:
                yield statement


def _outermost(block: Block) -> Iterator[For]:
    """Yield the loops of a block that stand in no other of its loops."""
    for statement in straight(block):
        if isinstance(statement, For):
            yield statement


def work(nodes: Iterable[Node]) -> float:
    """Return the cycles that statements take in which nothing waits; sums for a place that no data tell are free."""
    told = [*walk(nodes)]
    indices = [index for node in told if isinstance(node, Load | Store) for index in node.indices]
    free = [index for index in indices if not effects(index).loads]
    return sum(map(_work, told)) - sum(_work(node) for node in walk(free) if not is_division(node))


def _work(node: Node) -> float:
    if is_long_computation(node):
        return 3 * DIVISION
    if is_division(node):
        return DIVISION / 2
    return 1 / AT_ONCE if isinstance(node, Apply | Cast | Load | Select | Store) else 0.0


def _apart(loop: For, lanes: For, analysis: Analysis) -> float:
    """Return the cycles that a lane takes for the elements that a loop accesses apart from the next lane's."""
    found = (item for item in analysis.accesses if item.loops and item.loops[-1].node.index == loop.index)
    apart = (item for item in found if is_apart(item, lanes.index) or is_strided(item, lanes.index))
    stores = [store for _, _, store in {(item.tensor, item.axes, item.store) for item in apart}]
    return sum(APART if store else APART / 2 for store in stores)


def _ends_alone(loop: For | While) -> bool:
    """Whether an innermost loop has a test that each lane passes in a step of its own."""
    tested = isinstance(loop, While) or effects(loop.body).breaks
    return tested and not any(isinstance(node, For | While) for node in statements(loop.body))


def _waits_little(loop: For | While, width: int) -> bool:
    """Whether lanes gain more in a loop that ends for each alone than they wait for each other, and for masks.

    Of loops that run up to a limit, the longest of `width` is taken to be as long as that of as many lengths that are
    equally likely. Those that look for one value differ more: half of the lanes are taken to wait.
    """
    body: Block = (*loop.prelude, *loop.body) if isinstance(loop, While) else loop.body
    tests = [*_conditions(loop)]
    time = max(chain(body), work((*body, *tests)))
    compared = [node.operator.name for test in tests for node in walk(test) if isinstance(node, Apply)]
    compared = [name for name in compared if name in _COMPARISONS]
    longest = width / 2 if _EQUALITY.intersection(compared) else 2 * width / (width + 1)
    masks = len(compared) + sum(isinstance(node, If) and not effects(node).breaks for node in statements(body))
    return longest * (time + MASK * masks) < width * time


def _conditions(loop: For | While) -> Iterator[Expression]:
    """Yield the conditions on which a loop ends; parts of one may be computed in statements."""
    if isinstance(loop, While):
        yield loop.condition
        yield from (
            node.value for node in statements(loop.prelude) if isinstance(node, Assign) and node.value.dtype is BOOL
        )
    for node in statements(loop.body):
        if isinstance(node, If) and effects(node).breaks:
            yield node.condition


def strays(loop: While) -> bool:
    """Whether a `while` reads elements at places that it comes to: lanes would go their own ways through memory."""
    changing = assigned_symbols(loop)
    reads = (node for node in walk(loop) if isinstance(node, Load))
    return any(read_symbols(node.indices) & changing for node in reads)
