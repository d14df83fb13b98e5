"""Persistent blocks: a loop in order around small parallel ones is one launch, of one block that runs all its turns.

Several blocks run them as a cluster where there is more to do, and no sum of all threads.

    for k in range(n):                       if n <= FEW: block: for k in range(n):
        for i in range(k): y[i] = ...   ->                    for i in threads(k): y[i] = ...
                                             else: for k in range(n): for i in parallel(k): y[i] = ...

A launch takes some microseconds, a barrier of a block less than a tenth of one. So a block is for loops whose turns it
is done with before a launch would be; sizes tell, before the loop. Where nothing would be launched in a loop, since
elements decide how it goes on, it is for a block in any case: one thread would run it else. Invariant: only shared
loops differ between threads, so that all of them meet at each barrier; no check stands in a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain, count

from brickwork.analysis.atomic_updates import with_updates
from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Kernel,
    Local,
    Rebind,
    Reduction,
    Role,
    Statement,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import (
    assigned_symbols,
    rewrite_loops,
    rewrite_statements,
    statements,
    unused_number,
    with_blocks,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.guard import conjunction
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.schedule.lockstep import may_run_in_lockstep, with_barriers
from brickwork.transform.schedule.long_sums import LONG
from brickwork.transform.schedule.planner import has_fixed_bounds
from brickwork.transform.schedule.shared_loops import are_short
from brickwork.transform.scratch import with_variables
from brickwork.transform.skipped_turns import with_skipped_turns

Symbols = frozenset[Symbol]
LONGEST_INSIDE = LONG
"""Iterations of loops inside that one thread runs at most, where their length is known."""
FEW_UNKNOWN = 2 * LONGEST_INSIDE
"""The same where there are loops inside whose length is not known."""
MANY = 1 << 30
"""Where numbers of iterations are no longer told apart, so that sums and products of them do not wrap."""
NUMBERS = 5_000_000
"""Numbers of the variables made in here start so far above those of the kernel."""


@dataclass(frozen=True, slots=True)
class Persistent:
    """A kernel's body in which assignments to new variables stand for loops that a block runs: the `blocks`.

    If the body is one loop, which a block runs under a condition, it stands as it was, and that is the `choice`, whose
    name is the `version`.
    """

    body: Block
    blocks: Mapping[Symbol, For]
    choice: tuple[Expression, For] | None = None
    version: str = ""

    @property
    def all(self) -> tuple[For, ...]:
        """All blocks."""
        return (*self.blocks.values(), *(() if self.choice is None else self.choice[1:]))

    def chosen(self, scheduled: Block) -> Block:
        """Return the choice between a block and all other schedules of the body."""
        if self.choice is None:
            return scheduled
        condition, block = self.choice
        return (If(condition=condition, then=(block,), otherwise=scheduled, version=self.version, loc=block.loc),)

    def restored(self, block: Block) -> Block:
        """Return a scheduled copy of the body with its blocks."""

        def visit(statement: Statement) -> Block:
            if isinstance(statement, Assign) and statement.symbol in self.blocks:
                return (self.blocks[statement.symbol],)
            return (statement,)

        return rewrite_statements(block, visit) if self.blocks else block


def block_version(loop: For | While) -> str:
    """Return the name of the version in which a block runs a loop in order."""
    return f"block {loop.index.name} {loop.index.number}" if isinstance(loop, For) else "block"


def few_iterations(target: Target) -> int:
    """Return the iterations that the threads of a block are done with before a launch would be."""
    return target.launch_ns * target.block_threads // target.block_step_ns


def few_terms(target: Target) -> int:
    """Return the iterations of a reduction that a block is done with before the two launches of one would be."""
    return 2 * target.launch_ns * target.block_threads // target.block_term_ns


def persistent_blocks(kernel: Kernel, body: Block, launched: Symbols, analysis: Analysis, target: Target) -> Persistent:
    """Return where loops in order are for a block.

    `body` is the kernel's without the checks that guards make needless, and `launched` are the indices of the loops
    that are launched where none is for a block.
    """
    assigned = assigned_symbols(kernel.body)
    numbers = count(unused_number(kernel.body) + NUMBERS)
    finder = _Finder(kernel, analysis, launched, numbers, target)
    found = tuple(finder.block(body, NONE, Ranges(frozenset(kernel.scalars) - assigned)))
    match found:
        case (If(condition=condition, then=(Assign(symbol=mark),), version=version),) if mark in finder.blocks:
            return Persistent(body, {}, (condition, finder.blocks[mark]), version)
        case _:
            return Persistent(found if finder.blocks else body, finder.blocks)


@dataclass(slots=True)
class _Finder:
    """Finds the outermost loops in order that may be for a block, and makes the blocks."""

    kernel: Kernel
    analysis: Analysis
    launched: Symbols
    numbers: Iterator[int]
    target: Target
    blocks: dict[Symbol, For] = field(default_factory=dict[Symbol, For])

    def block(self, block: Block, after: Symbols, ranges: Ranges) -> Iterator[Statement]:
        """Yield the statements of a block that stands in loops in order; variables `after` are read later."""
        for place, statement in enumerate(block):
            yield self.statement(statement, live_before(block[place + 1 :], after), ranges)

    def statement(self, statement: Statement, after: Symbols, ranges: Ranges) -> Statement:
        """Return a statement with its loops for a block, where that is good for some sizes."""
        match statement:
            case If():
                return with_blocks(statement, lambda part: self.block(part, after, ranges))
            case For(index=index) if self.analysis.loops[index].independent:
                return statement
            case For() | While():
                return self.loop(statement, after, ranges)
            case _:
                return statement

    def loop(self, loop: For | While, after: Symbols, ranges: Ranges) -> Statement:
        """Return a loop in order; or what stands for its block, or chooses one of the two."""
        launches = any(isinstance(node, For) and node.index in self.launched for node in statements(loop))
        sharing = _Sharing(self.analysis, launches, self.target, self.numbers)
        block = None
        if not isinstance(loop, For) or loop.index not in self.kernel.launched:
            with suppress(_RefusedError):
                block = self.made(loop, sharing.statement(loop, ranges, build.integer(1)), after)
        if block is not None and sharing.few:
            mark = Symbol("block", next(self.numbers), INT64)
            self.blocks[mark] = block
            chosen = Assign(symbol=mark, value=build.integer(0), loc=loop.loc)
            if not launches:
                return chosen
            sharing.limit(sharing.iterations, sharing.most(block.across))
            condition, version = conjunction(sharing.conditions), block_version(loop)
            return If(condition=condition, then=(chosen,), otherwise=(loop,), version=version, loc=loop.loc)
        if not launches:
            return loop
        again = after | live_before((loop,), after)
        inside = replace(ranges, fixed=ranges.fixed | {loop.index}) if isinstance(loop, For) else ranges
        return replace(loop, body=tuple(self.block(loop.body, again, inside)))

    def made(self, loop: For | While, shared: Statement, after: Symbols) -> For | None:
        """Return the block that runs a loop, or None if variables outlive it.

        A block has copies of the variables that go on from before.
        """
        assigned = assigned_symbols(loop)
        carried = sorted(assigned & live_before((loop,), NONE), key=lambda symbol: symbol.number)
        if assigned & after or any(not self.is_given_outside(symbol, loop) for symbol in carried):
            return None
        own = {symbol: replace(symbol, number=next(self.numbers)) for symbol in carried}
        copies = (Assign(symbol=copy, value=build.read(symbol), loc=loop.loc) for symbol, copy in own.items())
        turns = with_skipped_turns((with_variables(shared, own),), self.numbers, self.target.block_threads)
        body = (*copies, *with_barriers(turns, self.numbers))
        index = Symbol("block", next(self.numbers), INT64)
        ends = build.integer(0), build.integer(1)
        # What several blocks have of a sum would be joined through memory.
        blocks = 0 if self.target.cluster == 1 or _joins(body) else self.target.cluster
        return For(index=index, start=ends[0], stop=ends[1], body=body, role=Role.BLOCK, across=blocks, loc=loop.loc)

    def is_given_outside(self, symbol: Symbol, loop: Statement) -> bool:
        """Whether something outside of a loop gives a variable its value."""

        def given(root: Block) -> int:
            return sum(isinstance(node, Assign) and node.symbol == symbol for node in statements(root))

        return symbol in self.kernel.scalars or given(self.kernel.body) > given((loop,))


class _RefusedError(Exception):
    """A loop is not for a block."""


@dataclass(slots=True)
class _Sharing:
    """Shares the parallel loops of one loop in order out among the threads of a block.

    `launches` says that otherwise these are launched, and `few` for how many `iterations` of a turn a block is done
    sooner than that. What one thread does before and after a launch is one, too: it is `waiting`
    for the next. `conditions` say when a block is better, as far as that is not a matter of these two.
    """

    analysis: Analysis
    launches: bool
    target: Target
    numbers: Iterator[int]
    conditions: list[Expression] = field(default_factory=list[Expression])
    iterations: Expression = field(default_factory=lambda: build.integer(0))
    few: int = 0
    waiting: bool = False

    def block(self, block: Block, ranges: Ranges, turns: Expression) -> Block:
        """Return a block that all threads run in lockstep, `turns` times at most, its parallel loops shared out."""
        return tuple(self.statement(statement, ranges, turns) for statement in block)

    def statement(self, statement: Statement, ranges: Ranges, turns: Expression) -> Statement:
        """Return a statement of such a block."""
        match statement:
            case Check() | Local() | Rebind():
                raise _RefusedError
            case If():
                return self.branch(statement, ranges, turns)
            case While(prelude=prelude, body=body):
                first, second = (self.block(part, ranges, turns) for part in (prelude, body))
                return replace(statement, prelude=first, body=second)
            case For():
                return self.loop(statement, ranges, turns)
            case _:
                found = effects(statement)
                self.waiting |= bool(found.loads or found.stores)
                return statement

    def branch(self, choice: If, ranges: Ranges, turns: Expression) -> If:
        """Return a branch. Where elements decide it, it is launched in any case, and a block runs half of them."""
        before, self.iterations = self.iterations, build.integer(0)
        decided = bool(effects(choice.condition).loads)
        self.waiting |= decided
        first, second = (self.block(part, ranges, turns) for part in (choice.then, choice.otherwise))
        inside = self.iterations
        if decided:
            inside = build.apply("floordiv", build.add(inside, build.integer(1)), build.integer(2))
        self.iterations = build.add(before, inside)
        return replace(choice, then=first, otherwise=second)

    def launch(self, few: int) -> None:
        """Count a launch, and that of what waits for it."""
        self.few += few + (few_iterations(self.target) if self.waiting else 0)
        self.waiting = False

    def loop(self, loop: For, ranges: Ranges, turns: Expression) -> For:
        """Return a loop: shared out, or in order."""
        verdict = self.analysis.loops[loop.index]
        levels = self.levels(loop) if verdict.independent else []
        total, inside = _total(levels, ranges)
        if not levels or are_short(levels) or (total is None and not self.launches):
            times = ranges.iterations(loop)
            around = turns if times is None else _times(turns, times, self.target.launch_turns)
            self.limit(around, self.target.launch_turns)
            before = self.few
            alone = replace(loop, body=self.block(loop.body, ranges.inside(loop), around))
            if self.waiting and self.few > before:
                self.launch(0)
            if not are_short([loop]) and _stores_alone(alone):
                raise _RefusedError
            return alone
        if total is None or effects(loop).fails or effects(loop).rebinds:
            raise _RefusedError
        body = levels[-1].body
        rows = NONE if verdict.reductions else self.rows(body, levels)
        if rows and (longest := _longest(body, inside, MANY)) is not None:
            self.iterations = build.add(self.iterations, _times(total, longest, MANY))
            body = with_barriers(rewrite_loops(body, rows, self.of_warp), self.numbers)
        else:
            rows = NONE
            self.bound(body, total, inside)
        self.launch((few_terms if verdict.reductions else few_iterations)(self.target))
        shared, role = loop, Role.WARP if rows else Role.THREAD
        for level in reversed(levels):
            shared = replace(level, body=body, role=role, reductions=verdict.reductions)
            body = (shared,)
        return shared

    @legality
    def rows(self, body: Block, levels: Sequence[For]) -> Symbols:
        """Return the loops that an iteration is made of, if the threads of a part of a warp may share these out."""
        found = [loop for loop in statements(body) if isinstance(loop, For) and not effects(loop.body).loops]
        if any(not self.analysis.loops[loop.index].independent or are_short([loop]) for loop in found):
            return NONE
        if any(self.goes_along(found, level) for level in levels) or not all(self.goes_along([x], x) for x in found):
            return NONE  # Threads that take an iteration each read neighbours.
        rows = frozenset(loop.index for loop in found)
        return rows if may_run_in_lockstep(body, rows) else NONE

    def goes_along(self, inside: Sequence[For], loop: For) -> bool:
        """Whether some access in loops goes along memory with the index of one."""
        for access in chain.from_iterable(self.analysis.inside(each.index) for each in inside):
            unit = access.tensor.type.neighbours
            atoms = [around.atom for around in access.loops if around.node.index == loop.index]
            if unit is not None and any(atom in access.axes[unit].value.atoms() for atom in atoms):
                return True
        return False

    def of_warp(self, loop: For) -> Block:
        """Return a loop that the threads of a warp share out."""
        return (replace(loop, role=Role.THREAD, reductions=self.analysis.loops[loop.index].reductions),)

    def levels(self, loop: For) -> list[For]:
        """Return the perfectly nested loops, from an independent one inwards, that are one range of iterations."""
        found = [loop]
        reductions: tuple[Reduction, ...] = self.analysis.loops[loop.index].reductions
        while len(found[-1].body) == 1 and isinstance(inner := found[-1].body[0], For):
            verdict = self.analysis.loops[inner.index]
            if not verdict.independent or verdict.reductions != reductions or not has_fixed_bounds(inner, found):
                break
            found.append(inner)
        tensors = {tensor for level in found for tensor in self.analysis.loops[level.index].updates}
        if not tensors:
            return found
        updated = [with_updates(loop, tensors)]
        while len(updated) < len(found) and isinstance(inner := updated[-1].body[0], For):
            updated.append(inner)
        return updated

    def bound(self, body: Block, total: Expression, inside: Ranges) -> None:
        """Note for how many iterations with this body a block is better."""
        if not effects(body).loops:
            self.iterations = build.add(self.iterations, total)
        elif (longest := _longest(body, inside, LONGEST_INSIDE)) is None:
            self.limit(total, FEW_UNKNOWN)
        else:
            self.limit(longest, LONGEST_INSIDE)
            most = few_terms(self.target) // 2
            self.limit(_times(total, longest, most), most)

    def most(self, blocks: int) -> int:
        """Return the iterations of a turn that so many blocks, if they are several, are done with before launches.

        In a block's time the blocks of a cluster meet for each launch, too.
        """
        launch, meeting = self.target.launch_ns, self.target.meeting_ns
        return self.few if blocks < 2 else max(self.few, self.few * blocks * (launch - meeting) // launch)

    def limit(self, value: Expression, most: int) -> None:
        """Note that a number is to be no greater than another."""
        condition = build.apply("le", value, build.integer(most))
        if condition not in self.conditions:
            self.conditions.append(condition)


def saturated(left: Expression | None, right: Expression | None) -> Expression | None:
    """Return a product of numbers of iterations, or something greater than `MANY`; None where one is not known."""
    return None if left is None or right is None else _times(left, right, MANY)


def _total(levels: list[For], ranges: Ranges) -> tuple[Expression | None, Ranges]:
    """Return the iterations of nested loops at most, if that is known, and the ranges inside of them."""
    total: Expression | None = build.integer(1)
    for level in levels:
        times = ranges.iterations(level)
        total = saturated(total, times)
        ranges = ranges.inside(level)
    return total, ranges


def _longest(block: Block, ranges: Ranges, most: int) -> Expression | None:
    """Return how many iterations a thread has in the loops of a block, or more than `most`, if that is known."""
    longest: Expression = build.integer(1)
    for statement in block:
        match statement:
            case If(then=then, otherwise=otherwise):
                inside = _longest((*then, *otherwise), ranges, most)
            case For(body=body):
                times, inner = ranges.iterations(statement), _longest(body, ranges.inside(statement), most)
                inside = None if times is None or inner is None else _times(times, inner, most)
            case While():
                inside = None
            case _:
                continue
        if inside is None:
            return None
        longest = build.apply("maximum", longest, inside)
    return longest


def _times(left: Expression, right: Expression, most: int) -> Expression:
    """Return a product of numbers that are not negative, or something greater than `most` where it is, too."""
    limit = build.integer(most + 1)
    left, right = (build.apply("minimum", side, limit) for side in (left, right))
    return build.mul(left, right)


def _joins(block: Block) -> bool:
    """Whether all threads that run a block join what each of them has: not those of a warp."""
    for node in block:
        match node:
            case For(role=Role.THREAD, reductions=reductions) if reductions:
                return True
            case For(role=Role.SEQUENTIAL, body=body) if _joins(body):
                return True
            case While(prelude=first, body=second) | If(then=first, otherwise=second) if _joins((*first, *second)):
                return True
            case _:
                pass
    return False


def _stores_alone(loop: For) -> bool:
    """Whether a loop in order stores and shares nothing out: each store of a block waits for all of its threads."""
    inside = (*statements(loop.body),)
    shares = any(isinstance(node, For) and node.role is Role.THREAD for node in inside)
    return not shares and any(isinstance(node, Store) for node in inside)
