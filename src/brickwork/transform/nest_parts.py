"""Nests in several parts, each a nest with loops and accesses of its own: when that is legal, and what passes between.

    for i in range(n):                            for i in range(n):
        s = ...                                       s = ...
        ... what reads s and stands apart    ->       kept[i] = s
                                                  for i in range(n):
                                                      ... what reads kept[i]

Legal where all iterations of a part may run before all of the next one. Variables that pass from part to part are kept
for each iteration, or computed again where indices and sizes say them. Where to cut is for others to say
(`separate_sums.py`, `free_parts.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from typing import Self

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.races import Facts
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Node,
    Read,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.distribute import may_have_parts, may_run_before
from brickwork.transform.guard import guards
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import Apart, Place, in_branches
from brickwork.transform.scratch import Names, copied


class UncutError(Exception):
    """A nest cannot be cut."""


@dataclass(slots=True)
class NestCutter:
    """Cuts the nests of one kernel. What is worth it, and what is kept, is noted while a nest is cut."""

    kernel: Kernel
    analysis: Analysis
    """Of loops that may be parallel with updates in steps of their own it says which these are."""
    target: Target
    facts: Facts
    live: dict[Symbol, frozenset[Symbol]]
    names: Names
    known: Ranges
    changed: frozenset[Tensor]
    """The tensors that the kernel stores into."""
    kept: list[Allocate] = field(default_factory=list[Allocate])
    worth: list[Expression] = field(default_factory=list[Expression])
    without: dict[Tensor, frozenset[Symbol]] = field(default_factory=dict[Tensor, frozenset[Symbol]])
    """The loops around that what is kept does not go with: it is computed before these."""

    @classmethod
    def of(cls, kernel: Kernel, names: Names, target: Target) -> Self:
        """Return what cuts a kernel's nests."""
        analysis = find_updates(kernel, analyse(kernel))
        known = Ranges(frozenset(kernel.scalars) - assigned_symbols(kernel.body))
        facts = Facts(analysis.model, Solver(), analysis.bounds)
        changed = effects(kernel.body).changes
        return cls(kernel, analysis, target, facts, live_after_loops(kernel.body), names, known, changed)

    def all_cut(self, body: Block) -> list[Apart | None]:
        """Return the nests in place of each statement of a kernel, None for those that stay as they are."""
        held = guards(self.analysis)
        found = [self.cut(item) for item in body]
        return [None if each is None else replace(each, worth=(*held, *each.worth)) for each in found]

    def cut(self, statement: Statement) -> Apart | None:
        """Return the nests in place of one, which may stand in conditions; None if it stays as it is."""
        self.kept, self.worth = [], []
        try:
            nests = in_branches((statement,), self.nests)
        except UncutError:
            return None
        return None if nests == (statement,) else Apart(nests, tuple(self.kept), tuple(self.worth))

    def nests(self, statement: Statement) -> Block:
        """Return a nest as several, each with loops and accesses of its own."""
        parts = self.loops(statement, Place((), self.known)) if isinstance(statement, For) else ()
        return tuple(copied(part, self.names) for part in parts) if len(parts) > 1 else (statement,)

    def loops(self, loop: For, place: Place) -> list[Statement]:
        """Return a loop as one for each part of its body, behind what does not go with it."""
        raise NotImplementedError

    def needless(self, block: Block, place: Place) -> frozenset[Symbol]:
        """Return the loops around that a block, from which something is kept, does not go with."""
        del block, place
        return frozenset()

    # ------------------------------------------------------------ legality

    @legality
    def may_be_parted(self, loop: For, parts: Sequence[Block]) -> bool:
        """Whether all iterations of each part of a loop's body may run before all of the next part."""
        early = assigned_symbols([item for part in parts[:-1] for item in part])
        if not may_have_parts(loop) or self.live[loop.index] & early:
            return False
        cuts = ((parts[:place], parts[place:]) for place in range(1, len(parts)))
        cut_up = (tuple(tuple(item for part in side for item in part) for side in cut) for cut in cuts)
        updated = self.analysis.loops[loop.index].updates
        return all(may_run_before(self.model_of(loop), before, after, self.facts, updated) for before, after in cut_up)

    def model_of(self, loop: For) -> Loop:
        """Return a loop as proofs see it."""
        return next(item for item in self.facts.model.loops if item.node.index == loop.index)

    # ------------------------------------------------------------ what passes between parts

    def parted(self, loop: For, parts: Sequence[Block], condition: Expression | None, inside: Place) -> list[For]:
        """Return a loop as one for each part of its body, all of which stand under a condition, if there is one."""
        *others, last = self.passed(parts, inside)
        parts = [*map(_without_unread, others), last]
        if condition is not None:
            parts = [(If(condition=condition, then=part),) for part in parts]
        return [replace(loop, body=part) for part in parts]

    def passed(self, parts: Sequence[Block], place: Place) -> list[Block]:
        """Return parts that are given what they read of the variables that earlier ones assign."""
        result, known = [*parts], self.known.fixed | {loop.index for loop in place.loops}
        elements = dict[tuple[int, Symbol], tuple[Tensor, list[Expression]]]()
        for number, part in enumerate(parts):
            for symbol in sorted(live_before(part, NONE), key=lambda item: item.number):
                sources = [n for n in range(number) if symbol in assigned_symbols(parts[n])]
                if not sources:
                    continue
                key = sources[-1], symbol
                last = next(item for item in reversed(parts[key[0]]) if symbol in assigned_symbols(item))
                if isinstance(last, Assign) and self.is_known(last.value, known):
                    result[number] = (last, *result[number])
                    continue
                if key not in elements:
                    result[key[0]], elements[key] = self.keeping(symbol, result[key[0]], place)
                result[number] = self.given(symbol, result[number], elements[key], place)
        return result

    def keeping(self, symbol: Symbol, block: Block, place: Place) -> tuple[Block, tuple[Tensor, list[Expression]]]:
        """Return a part that keeps a variable it assigns, and the tensor and the indices of the element."""
        if not _is_assigned(symbol, block):
            raise UncutError
        needless = self.needless(block, place)
        sizes, indices = self.elements(place, needless)
        tensor, made = self.names.tensor(f"{symbol.name}_kept", symbol.dtype, *sizes)
        self.kept.append(made)
        self.without[tensor] = needless
        store = replace(self.names.store(tensor, *indices, build.read(symbol)), loc=place.loops[-1].loc)
        return (*block, store), (tensor, indices)

    def given(self, symbol: Symbol, block: Block, element: tuple[Tensor, Sequence[Expression]], place: Place) -> Block:
        """Return a part that reads an element in place of a variable."""
        tensor, indices = element
        loc = place.loops[-1].loc
        bounds = [bound for node in statements(block) if isinstance(node, For) for bound in (node.start, node.stop)]
        if symbol in assigned_symbols(block) or symbol in read_symbols(bounds):
            value = replace(self.names.load(tensor, *indices), loc=loc)
            return (Assign(symbol=symbol, value=value, loc=loc), *block)

        def visit(node: Node) -> Node:
            if isinstance(node, Read) and node.symbol == symbol:
                return replace(self.names.load(tensor, *indices), loc=loc)
            return node

        return tuple(rewrite(item, visit) for item in block)

    @legality
    def is_known(self, value: Expression, known: Collection[Symbol]) -> bool:
        """Whether a value is the same if it is computed again: what it reads is known, and stored into nowhere."""
        found = effects(value)
        return found.reads <= frozenset(known) and not found.loads & self.changed

    def elements(self, place: Place, needless: frozenset[Symbol]) -> tuple[list[Expression], list[Expression]]:
        """Return the sizes of a tensor with an element for each iteration of some loops, and this one's indices.

        What is kept goes with all of them but those that are `needless`.
        """
        sizes, indices, ranges = list[Expression](), list[Expression](), self.known
        for loop in (loop for loop in place.loops if loop.index not in needless):
            size, least = ranges.iterations(loop), ranges.extreme(loop.start, most=False)
            if size is None or least is None:
                raise UncutError
            sizes.append(size)
            indices.append(build.sub(build.read(loop.index), least))
            ranges = ranges.inside(loop)
        return sizes, indices


def asked(body: Block) -> tuple[Expression | None, Block]:
    """Return the condition around all of a body, which can be asked around each part of it, and what it is around."""
    match body:
        case (If(condition=condition, then=then, otherwise=()),):
            found, read = effects(then), effects(condition)
            if not read.reads & found.assigns and not read.loads & found.changes:
                return condition, then
        case _:
            pass
    return None, body


def _without_unread(block: Block) -> Block:
    """Return a part without assignments for other parts, which have these, too."""
    return tuple(item for item in block if not isinstance(item, Assign) or item.symbol in read_symbols(block))


@legality
def _is_assigned(symbol: Symbol, block: Block) -> bool:
    """Whether a block assigns a variable, whatever conditions in it say."""
    for statement in block:
        match statement:
            case Assign(symbol=assigned) if assigned == symbol:
                return True
            case If(then=then, otherwise=otherwise) if _is_assigned(symbol, then) and _is_assigned(symbol, otherwise):
                return True
            case _:
                pass
    return False
