"""Loop distribution: cuts a loop into several, where a part can then run in parallel or becomes a perfect nest.

    for i in range(n):                            for i in range(n):
        a[i] = b[i] * 2                  ->           a[i] = b[i] * 2
        s[i + 1] = s[i] + a[i]                    for i in range(n):
                                                      s[i + 1] = s[i] + a[i]

Legal between two statements if nothing that comes after the cut touches what an earlier part touches in a later
iteration. The order of the statements stays, and so does the order of the iterations of each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from itertools import count

from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.races import Facts, find_race, may_meet
from brickwork.analysis.scalars import NONE, live_after_loops, live_before, scalar_verdict
from brickwork.analysis.verdicts import Analysis, LoopVerdict
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    For,
    Kernel,
    Load,
    Local,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.scratch import with_variables

DISTRIBUTED_NUMBERS = 3_000_000
"""Numbers of the indices made in here start from this."""


def may_distribute(kernel: Kernel) -> bool:
    """Whether a kernel has a loop that could be cut, so that its analysis as it stands is worth making."""
    return any(_is_candidate(node) for node in statements(kernel.body) if isinstance(node, For))


@legality
def distribute(
    kernel: Kernel,
    analysis: Analysis,
    *,
    grid: bool = False,
    alone: Callable[[Block], bool] | None = None,
    numbers: Iterator[int] | None = None,
) -> Kernel:
    """Return the kernel with loops cut where that is legal and of use, on a `grid` or not; `analysis` is of it.

    Where parts are given that had better stand `alone`, these are all that is cut. `numbers` are for new indices.
    """
    if kernel.may_alias:
        return kernel
    cutter = _Cutter(
        Facts(analysis.model, Solver(), analysis.bounds),
        analysis,
        live_after_loops(kernel.body),
        numbers or count(DISTRIBUTED_NUMBERS),
        grid,
        alone,
    )
    body = rewrite_statements(kernel.body, cutter.statement)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _is_candidate(loop: For) -> bool:
    """Whether a loop has several parts that do something, can be cut, and is not claimed to run at once."""
    effects = [
        statement for statement in loop.body if any(isinstance(node, For | Store) for node in statements(statement))
    ]
    return len(effects) > 1 and not loop.claimed and may_have_parts(loop)


@legality
def may_have_parts(loop: For) -> bool:
    """Whether nothing in an iteration ends it early, may fail, or exchanges tensors."""
    found = effects(loop.body)
    return not (found.fails or found.rebinds or found.leaves)


@dataclass(slots=True)
class _Cutter:
    """Cuts the loops of one kernel, for a `grid` or not; `numbers` yields numbers for new indices."""

    facts: Facts
    analysis: Analysis
    live: dict[Symbol, frozenset[Symbol]]
    numbers: Iterator[int]
    grid: bool
    alone: Callable[[Block], bool] | None
    parts: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])
    """The indices of loops that are parts of others, with those of these."""

    def statement(self, statement: Statement) -> Block:
        """Return a loop as it is, or as several."""
        if not isinstance(statement, For):
            return (statement,)
        named = self.alone is not None and not statement.claimed and any(self.alone((item,)) for item in statement.body)
        if not (named and may_have_parts(statement)) if self.alone else not _is_candidate(statement):
            return (statement,)
        loop = next(item for item in self.analysis.model.loops if item.node.index == statement.index)
        pieces = [(item,) for item in statement.body]
        parts = self.joined(statement, loop, self.legal(loop, pieces))
        if len(parts) < 2:
            return (statement,)
        first, *others = (replace(statement, body=part) for part in parts)
        return (first, *map(self.renamed, others))

    def renamed(self, loop: For) -> For:
        """Return the loop with an index of its own."""
        index = replace(loop.index, number=next(self.numbers))
        self.parts[index] = loop.index
        return with_variables(loop, {loop.index: index})

    def verdict(self, loop: For) -> LoopVerdict:
        """Return the verdict of a loop, for a part that of the whole loop."""
        return self.analysis.loops[self.parts.get(loop.index, loop.index)]

    # ------------------------------------------------------------ legality

    def legal(self, loop: Loop, pieces: Sequence[Block]) -> list[Block]:
        """Return the body in the smallest parts that can stand in loops of their own."""
        parts: list[Block] = [pieces[0]]
        for place, piece in enumerate(pieces[1:], 1):
            before = tuple(item for part in pieces[:place] for item in part)
            after = tuple(item for part in pieces[place:] for item in part)
            if self.can_cut(loop, before, after):
                parts.append(piece)
            else:
                parts[-1] = (*parts[-1], *piece)
        return parts

    @legality
    def can_cut(self, loop: Loop, before: Block, after: Block) -> bool:
        """Whether all iterations of `before` may run before all of `after`."""
        assigned, later = assigned_symbols(before), assigned_symbols(after)
        if live_before(after, NONE) & assigned or assigned & later & self.live.get(loop.node.index, NONE):
            return False
        return may_run_before(loop, before, after, self.facts)

    # ------------------------------------------------------------ use

    def joined(self, statement: For, loop: Loop, parts: Sequence[Block]) -> list[Block]:
        """Return the parts with neighbours put together again that gain nothing from being apart."""
        result: list[Block] = []
        for part in parts:
            if result and not self.gains(statement, loop, result[-1], part):
                result[-1] = (*result[-1], *part)
            else:
                result.append(part)
        return result

    def gains(self, statement: For, loop: Loop, one: Block, other: Block) -> bool:
        """Whether one of two parts is a deep nest, or can run in parallel, and the other keeps it from that.

        A part that does less than the one that has to run in order is not worth it.
        """
        if self.alone is not None:
            return self.alone(one) != self.alone(other)
        if _is_deep(one) or _is_deep(other):
            return True
        if self.grid and (self.frees(statement, (*one, *other)) or self.may_be_skewed(statement, one, other)):
            return True
        first, second = self.independent(statement, loop, one), self.independent(statement, loop, other)
        if first and second:
            return not self.independent(statement, loop, (*one, *other))
        deep, deeper = effects(one).depth, effects(other).depth
        return (first and deep >= deeper) or (second and deeper >= deep)

    def frees(self, statement: For, body: Block) -> bool:
        """Whether a cut lets threads share out an independent loop together with the one around.

        A block of threads for each iteration could do that, too, unless it reads at once what it stores into.
        """
        inner = [item for item in body if any(isinstance(node, For) for node in statements(item))]
        if len(inner) != 1 or not isinstance(loop := inner[0], For) or any(isinstance(item, For) for item in loop.body):
            return False
        verdicts = [self.verdict(each) for each in (statement, loop)]
        free = all(verdict.is_free for verdict in verdicts)
        return free and not runs_in_lockstep(body, frozenset({loop.index}))

    def may_be_skewed(self, statement: For, one: Block, other: Block) -> bool:
        """Whether a part, a loop in order and its bounds, is a nest with the loop around: it may have diagonals."""
        return not self.verdict(statement).independent and any(
            isinstance(loop := part[-1], For)
            and not effects(loop.body).loops
            and not self.verdict(loop).independent
            and all(isinstance(item, Assign) for item in part[:-1])
            for part in (one, other)
        )

    def independent(self, statement: For, loop: Loop, part: Block) -> bool:
        """Whether a loop over a part of the body could run in parallel."""
        return is_independent(replace(statement, body=part), loop, self.facts, self.live.get(statement.index, NONE))


def is_independent(part: For, loop: Loop, facts: Facts, live: frozenset[Symbol]) -> bool:
    """Whether a part of a loop, after which some variables are read, could run in parallel."""
    _, carried = scalar_verdict(part, live)
    accesses = _accesses(part.body, facts)
    return carried is None and find_race(facts, loop, may_alias=False, accesses=accesses) is None


@legality
def may_run_before(
    loop: Loop, before: Block, after: Block, facts: Facts, updated: Collection[Tensor] = frozenset()
) -> bool:
    """Whether no iteration of `before` touches what `after` does in an earlier one.

    What `before` leaves in variables for `after`, in the same iteration, is for the caller to keep. All that the loop
    does with elements that are `updated` is to update them, in any order.
    """
    own = {node.tensor for node in before if isinstance(node, Local)}
    if own & (effects(after).loads | effects(after).stores) or live_before(before, NONE) & assigned_symbols(after):
        return False
    ahead, behind = _accesses(before, facts), _accesses(after, facts)
    return not any(
        (one.store or other.store)
        and one.tensor == other.tensor
        and one.tensor not in updated
        and may_meet(facts, loop, one, other, depth=loop.depth)
        for one in behind
        for other in ahead
    )


@legality
def _accesses(block: Block, facts: Facts) -> list[Access]:
    """Return the accesses in a block."""
    numbers = {node.access for node in walk(block) if isinstance(node, Load | Store)}
    return [access for access in facts.model.accesses if access.number in numbers]


def _is_deep(part: Block) -> bool:
    """Whether a part is a nest of two loops at least, whose order may then be chosen together with the loop around."""
    return len(part) == 1 and isinstance(part[0], For) and len(part[0].body) == 1 and isinstance(part[0].body[0], For)
