"""Outlines device kernels: cuts scheduled kernels into what the host runs and the kernels that it launches.

    s = 0                                     for c in blocks: p = 0; for i in threads: p += x[i]; partial[c] = p
    for c in blocks: for i in threads: ... -> one block: s = 0; for c in threads: s += partial[c]; cell[0] = s
    for j in parallel: y[j] /= s              for j in parallel: s = cell[0]; y[j] /= s

What runs where is in `host_device_partition.py`, what a device kernel is told of its arguments in `device_kernel.py`.
Invariant: nothing on the host waits for the device; variables pass from piece to piece in tensors of one element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import count

from brickwork.analysis.scalars import NONE, live_before
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    TRUE,
    Allocate,
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    Local,
    Node,
    Program,
    Rebind,
    Role,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, operands_of, read_symbols, rewrite, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.argument_facts import ArgumentFacts
from brickwork.transform.carried_rows import with_carried_rows
from brickwork.transform.device_kernel import make_kernel
from brickwork.transform.explanation import GUARDS
from brickwork.transform.fills import Fill, Filler
from brickwork.transform.guard import conjunction
from brickwork.transform.host_device_partition import GRID, Partition, in_order, outlives_check, partition
from brickwork.transform.host_scalars import with_host_scalars
from brickwork.transform.needless_fills import LateFill
from brickwork.transform.predicate import predicate
from brickwork.transform.recurrences import Carrying
from brickwork.transform.register_lists import Literal, literal_lists
from brickwork.transform.replicate_reductions import replicate_reductions
from brickwork.transform.row_updates import with_rows
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.scratch import Names, joins, names_of
from brickwork.transform.shared_locals import share_locals, used_tables
from brickwork.transform.split_recurrences import Chunks, split_recurrences
from brickwork.transform.split_reductions import nested, split_reductions
from brickwork.transform.split_rows import split_rows
from brickwork.transform.verbs.rfactor import MOST_PIECES

Symbols = frozenset[Symbol]
FALSE = build.constant(False, BOOL)
_IN_BLOCK = frozenset({Role.THREAD, Role.WARP, Role.TILE, Role.CHUNKED_TILE, Role.CONTRACT, Role.CONTRACT_GROUPS})
"""The loops that the threads of a block run together."""


def outline_kernels(
    program: Program,
    scheduled: Mapping[str, Kernel],
    known: ArgumentFacts,
    carrying: Mapping[str, Carrying],
    target: Target,
    late: Mapping[str, tuple[LateFill, ...]],
) -> Program:
    """Return the program with each launch replaced by launches of device kernels; `scheduled` are by kernels' names.

    `known` is what `argument_facts_of(program)` says, `carrying` are the recurrences of the fast bodies, and `late` the
    tensors that are filled before a kernel.
    """
    key = next((item for item in program.parameters if isinstance(item, KeyParameter)), None)
    names = names_of((program, *scheduled.values()), known.scratch)
    cell = None
    if key is not None and effects(scheduled.values()).draws:
        cell, _ = names.tensor("key", INT64, 1)
        program = replace(
            program,
            parameters=tuple(replace(item, cell=cell) if item is key else item for item in program.parameters),
        )
    shared = {key.symbol: cell} if key is not None and cell is not None else {}

    filler = Filler(names, known, target)

    def outlined(block: Block) -> Iterator[Statement]:
        waiting: list[Fill] = []
        for statement in block:
            if not isinstance(statement, Allocate | Check):
                yield from filler.together(waiting)
                waiting.clear()
            match statement:
                case Launch(kernel=kernel):
                    whole, given = with_host_scalars(scheduled[kernel.name], names)
                    yield from given
                    yield from filler.unless(late.get(kernel.name, ()))
                    yield from _outline_kernel(whole, names, shared, known, carrying[kernel.name], target)
                case Allocate(fill=fill) if fill is not None:
                    yield replace(statement, fill=None)
                    waiting.append(Fill(statement, fill))
                case If(then=then, otherwise=otherwise):
                    yield replace(statement, then=tuple(outlined(then)), otherwise=tuple(outlined(otherwise)))
                case _:
                    yield statement
        yield from filler.together(waiting)

    return replace(program, body=tuple(outlined(program.body)))


def is_nondeterministic(program: Program) -> bool:
    """Whether results may differ in rounding from call to call: floats are summed or multiplied in no fixed order."""
    return any(
        isinstance(node, Store)
        and node.combine is not None
        and node.tensor.type.dtype.is_float
        and node.combine.name in {"add", "mul"}
        for node in statements(program)
    )


# ---------------------------------------------------------------- kernels


def _outline_kernel(
    kernel: Kernel,
    names: Names,
    shared: Mapping[Symbol, Tensor],
    known: ArgumentFacts,
    carrying: Carrying,
    target: Target,
) -> Iterator[Statement]:
    kernel = replace(kernel, body=predicate(kernel.body, names.symbols, shared))
    places = partition(kernel.body, shared)
    found = share_locals(kernel.body, places, names)
    if found.body != kernel.body:
        kernel = replace(kernel, body=found.body)
        places = partition(kernel.body, shared)
    draft = _Outliner(kernel, places, names, known, dict(shared), count(), None, found.tables, carrying, target)
    draft.block(kernel.body, ())
    cells, made = dict(shared), [*found.made]
    for symbol in sorted(draft.exposed & places.device - shared.keys(), key=lambda item: item.number):
        cells[symbol], allocate = names.tensor(symbol.name, symbol.dtype, 1)
        made.append(allocate)
    flag = None
    if outlives_check(kernel.body, places):
        flag, allocate = names.tensor("passed", BOOL, 1)
        made.append(allocate)
    cutter = _Outliner(kernel, places, names, known, cells, count(), flag, found.tables, carrying, target)
    body = cutter.begun(kernel.body, ())
    yield from _placed((*made, *cutter.made), body)


def _placed(made: tuple[Allocate, ...], body: Block) -> Block:
    """Return the statements with allocations before what uses them: in a branch where only that does."""
    if len(body) == 1 and isinstance(body[0], If):
        choice = body[0]
        then = [item for item in made if _uses(choice.then, item.tensor)]
        otherwise = [item for item in made if _uses(choice.otherwise, item.tensor)]
        both = tuple(item for item in made if item in then and item in otherwise)
        branches = (tuple(item for item in part if item not in both) for part in (then, otherwise))
        first, second = branches
        inner = replace(choice, then=_placed(first, choice.then), otherwise=_placed(second, choice.otherwise))
        return (*both, inner)
    return (*(item for item in made if _uses(body, item.tensor)), *body)


def _uses(block: Block, tensor: Tensor) -> bool:
    return any(isinstance(node, Kernel) and tensor in node.tensors for node in statements(block))


@dataclass(slots=True)
class _Outliner:
    """Outlines the device kernels of one kernel.

    `cells` hold the variables that pass from piece to piece. `flag` is a tensor of one bool, if pieces run after what
    one thread checks: while it is false, because a check has failed, no piece does anything. `in_chunks`: what it
    outlines finds where chunks begin. `careful`: it is for arguments that do not satisfy the guards.
    """

    kernel: Kernel
    places: Partition
    names: Names
    known: ArgumentFacts
    cells: dict[Symbol, Tensor]
    numbers: Iterator[int]
    flag: Tensor | None
    tables: Mapping[Tensor, Local]
    carrying: Carrying
    target: Target
    in_chunks: bool = False
    careful: bool = False
    exposed: set[Symbol] = field(default_factory=set[Symbol])
    made: list[Allocate] = field(default_factory=list[Allocate])

    @property
    def changing(self) -> Symbols:
        """The variables that the kernel gives new values: what is tested of them may not hold later."""
        return assigned_symbols(self.kernel.body)

    def begun(self, block: Block, facts: tuple[Expression, ...]) -> Block:
        """Return what the host runs for all of a kernel, with the flag raised first where pieces run after a check.

        Where a choice is all there is, that is asked of each branch.
        """
        match block:
            case (If() as choice,) if self.places.is_host(choice):
                return (self.host(choice, facts, self.begun),)
            case _ if self.flag is not None and outlives_check(block, self.places):
                raised = self.launch((self.names.store(self.flag, build.integer(0), TRUE),), ())
                return (raised, *self.block(block, facts))
            case _:
                flag, self.flag = self.flag, None
                result = self.block(block, facts)
                self.flag = flag
                return result

    def block(self, block: Block, facts: tuple[Expression, ...]) -> Block:
        """Return what the host runs for a block; `facts` hold in it beside the kernel's."""
        result: list[Statement] = []
        waiting: list[Statement] = []

        def flush() -> None:
            if waiting:
                result.append(self.serial(tuple(waiting), facts))
                waiting.clear()

        for statement in block:
            if self.places.is_host(statement):
                if not isinstance(statement, Assign) or _mentions(waiting, statement.symbol):
                    flush()
                result.append(self.host(statement, facts))
            elif isinstance(statement, For) and self.places.is_nest(statement):
                if not self.can_wait(waiting, statement):
                    flush()
                if statement.reductions:
                    launch, joined = self.reduction(statement, facts)
                    result.append(launch)
                    if waiting and (effects(waiting).fails or not runs_in_lockstep((*waiting, joined))):
                        flush()
                    waiting.append(joined)
                else:
                    flush()
                    result.extend(self.nests(statement, facts))
            else:
                if _joins(waiting) and not _follows(waiting, statement):
                    flush()
                waiting.extend(in_order((statement,)))
        flush()
        return tuple(result)

    def host(
        self,
        statement: Statement,
        facts: tuple[Expression, ...],
        branch: Callable[[Block, tuple[Expression, ...]], Block] | None = None,
    ) -> Statement:
        """Return a statement that the host runs, with what is in it cut too; `branch` cuts those of a choice."""
        branch = branch or self.block
        match statement:
            case If(condition=condition, then=then, otherwise=otherwise):
                parts = operands_of(condition, "logical_and")
                lasting = (item for item in parts if not read_symbols(item) & self.changing)
                then = branch(then, (*facts, *lasting))
                before = self.carrying, self.careful
                if statement.version.startswith(GUARDS):
                    self.carrying, self.careful = {}, True
                otherwise = branch(otherwise, facts)
                self.carrying, self.careful = before
                return replace(statement, then=then, otherwise=otherwise)
            case For(body=body):
                # The host runs it in order, and its iterations share cells, whatever was claimed of them.
                return replace(statement, body=self.block(body, facts), claimed=False)
            case While(body=body):
                return replace(statement, body=self.block(body, facts))
            case _:
                return statement

    def can_wait(self, waiting: Sequence[Statement], nest: For) -> bool:
        """Whether statements that stand before a nest may run after it."""
        ahead, behind = effects(waiting), effects(nest)
        if ahead.fails:
            return False
        exposed = live_before((replace(nest, reductions=()),), NONE) - {item.symbol for item in nest.reductions}
        touched = behind.loads | behind.stores
        return not (ahead.stores & touched or ahead.loads & behind.stores or ahead.assigns & exposed)

    # ------------------------------------------------------------ pieces

    def serial(self, block: Block, facts: tuple[Expression, ...]) -> Launch:
        """Return the launch of what one thread runs, or one block where it joins partial results."""
        _refuse_exchanges(block)
        heads, tails = self.heads(block), self.tails(block)
        if self.flag is not None and effects(block).fails:
            zero = build.integer(0)
            lowered, raised = (self.names.store(self.flag, zero, constant) for constant in (FALSE, TRUE))
            heads, tails = (lowered, *heads), (*tails, raised)
        whole = self.flagged((*heads, *block, *tails))
        if _joins(block):
            index = Symbol("block", next(self.names.symbols), INT64)
            ends = build.integer(0), build.integer(1)
            whole = (For(index=index, start=ends[0], stop=ends[1], body=whole, role=Role.BLOCK, loc=block[0].loc),)
        return self.launch(whole, facts)

    def nest(self, loop: For, facts: tuple[Expression, ...]) -> Launch:
        """Return the launch of a nest."""
        heads = self.heads((loop,))
        levels = self.places.nest(loop)
        body = levels[-1].body
        if loop.role is Role.BLOCK:
            body = tuple(rewrite(node, _in_block) for node in body)
        else:
            body = with_rows(in_order(body), levels[-1].index, self.names)
        result = replace(levels[-1], body=self.flagged((*heads, *body)))
        for level in reversed(levels[:-1]):
            result = replace(level, body=(result,))
        return self.launch((result,), facts)

    def nests(self, loop: For, facts: tuple[Expression, ...]) -> Block:
        """Return the launch of a nest, and several that do as much faster where its sizes say so."""
        levels = self.places.nest(loop)
        if (chunks := self.chunks(levels, facts)) is not None:
            parts = (*chunks.made, *(part for nest in chunks.nests for part in self.of_chunks(nest, chunks, facts)))
            parts = parts if chunks.rest is None else (*parts, *self.nests(chunks.rest, facts))
            whole = self.whole(loop, facts)
            return (If(condition=chunks.condition, then=parts, otherwise=whole, version=chunks.version, loc=loop.loc),)
        return self.whole(loop, facts)

    def of_chunks(self, nest: For, chunks: Chunks, facts: tuple[Expression, ...]) -> Block:
        """Return the launches of one of the nests for chunks; where many begin is found in chunks of them."""
        if nest in chunks.begins and not self.in_chunks:
            return replace(self, carrying={chunks.chunk: frozenset[Tensor]()}, in_chunks=True).nests(nest, facts)
        return self.whole(nest, facts)

    def chunks(self, levels: Sequence[For], facts: tuple[Expression, ...]) -> Chunks | None:
        """Return the nests in place of these levels with a recurrence in chunks."""
        known = (*self.kernel.facts, *facts)
        return split_recurrences(
            levels, self.places, self.carrying, self.names, known, self.target, again=not self.in_chunks
        )

    def whole(self, loop: For, facts: tuple[Expression, ...]) -> Block:
        """Return the launches of a nest whose recurrences stay in order."""
        levels = self.places.nest(loop)
        whole = self.nest(loop, facts)
        if loop.role is Role.PARALLEL:
            body = in_order(levels[-1].body)
            carried = with_carried_rows(body, self.names) if levels[-1].width == 1 else body
            if lists := literal_lists(carried, frozenset(level.index for level in levels)):
                return (self.of_lengths(whole, levels, lists, facts),)
            if carried != body:
                return (self.nest(nested(levels, carried), facts),)
        whole = self.in_copies(whole, levels, facts)
        found = split_reductions(levels, self.places, self.names, careful=self.careful)
        found = found or split_rows(levels, self.places, self.names, self.target, careful=self.careful)
        if found is None:
            return (whole,)
        inside = (*facts, *found.facts)
        parts = (*found.made, *(self.nest(part, inside) for part in found.nests))
        return (If(condition=found.condition, then=parts, otherwise=(whole,), version=found.version, loc=loop.loc),)

    def in_copies(self, whole: Statement, levels: Sequence[For], facts: tuple[Expression, ...]) -> Statement:
        """Return the launch of a nest, or those that update copies where many iterations meet on few elements."""
        found = replicate_reductions(levels, self.names, self.target)
        if found is None:
            return whole
        parts = (found.made, *(self.nest(part, facts) for part in (found.cleared, found.updated, found.joined)))
        return If(condition=found.condition, then=parts, otherwise=(whole,), version=found.version, loc=levels[0].loc)

    def of_lengths(
        self, whole: Statement, levels: Sequence[For], lists: Sequence[Literal], facts: tuple[Expression, ...]
    ) -> Statement:
        """Return the launch of a nest, with those for lists of some lengths where the host can tell these."""
        for each in lists:
            needed = conjunction(each.conditions)
            if self.places.is_known(needed):
                nest = self.nest(nested(levels, each.body), (*facts, *each.facts))
                whole = If(condition=needed, then=(nest,), otherwise=(whole,), version=each.version, loc=nest.loc)
        return whole

    def reduction(self, loop: For, facts: tuple[Expression, ...]) -> tuple[Launch, For]:
        """Return the launch that makes partial results, and the loop that joins them."""
        index = build.read(loop.index)
        starts, stores, parts = list[Statement](), list[Statement](), list[Expression]()
        place = Symbol(loop.index.name, next(self.names.symbols), INT64)
        for item in loop.reductions:
            symbol = item.symbol
            partial, allocate = self.names.tensor(f"{symbol.name}_partial", symbol.dtype, MOST_PIECES)
            self.made.append(allocate)
            starts.append(Assign(symbol=symbol, value=build.identity(item), loc=loop.loc))
            stores.append(self.names.store(partial, index, build.read(symbol)))
            parts.append(self.names.load(partial, build.read(place)))
        body = (*starts, *loop.body, *stores)
        joined = replace(loop, index=place, body=joins(loop, parts), role=Role.THREAD)
        return self.nest(replace(loop, body=body, reductions=()), facts), joined

    def flagged(self, block: Block) -> Block:
        """Return the block as it runs if no check has failed before."""
        if self.flag is None:
            return block
        return (If(condition=self.names.load(self.flag, build.integer(0)), then=block),)

    def heads(self, block: Block) -> Block:
        """Return what declares the tables of a piece, and reads what other pieces, or the caller, left in cells."""
        exposed = live_before(block, NONE)
        self.exposed |= exposed
        assigned = assigned_symbols(block) & self.cells.keys()
        kept = {symbol for symbol in assigned if not _is_nest(block) and not _assigns(block, symbol)}
        wanted = sorted((exposed | kept) & self.cells.keys(), key=lambda symbol: symbol.number)
        cells = (
            Assign(symbol=symbol, value=self.names.load(self.cells[symbol], build.integer(0))) for symbol in wanted
        )
        return (*used_tables(block, self.tables), *cells)

    def tails(self, block: Block) -> Block:
        """Return what leaves variables in cells."""
        assigned = sorted(assigned_symbols(block) & self.cells.keys(), key=lambda symbol: symbol.number)
        return tuple(self.names.store(self.cells[symbol], build.integer(0), build.read(symbol)) for symbol in assigned)

    def launch(self, body: Block, facts: tuple[Expression, ...]) -> Launch:
        """Return the launch of a piece."""
        name = f"{self.kernel.name}_{next(self.numbers)}"
        kernel = make_kernel(name, body, (*self.kernel.facts, *facts), self.known, self.kernel)
        return Launch(kernel=kernel, loc=self.kernel.loc)


def _refuse_exchanges(block: Block) -> None:
    """Refuse tensors that change places where only the device knows whether: the host holds their addresses."""
    for node in statements(block):
        if isinstance(node, Rebind):
            names = " and ".join(f"`{tensor.name}`" for tensor in node.targets)
            message = f"elements decide whether {names} are exchanged, and nothing on a GPU may wait for them"
            advice = "count the iterations with a number, or copy the elements instead"
            raise CompileError(Diagnostic(code="BW901", message=message, loc=node.loc, help=advice))


def _in_block(node: Node) -> Node:
    if isinstance(node, For) and node.role not in _IN_BLOCK:
        return replace(node, role=Role.SEQUENTIAL, width=1, across=0, reductions=())
    return node


def _is_nest(block: Block) -> bool:
    return len(block) == 1 and isinstance(block[0], For) and block[0].role in GRID


def _assigns(block: Block, symbol: Symbol) -> bool:
    """Whether a block always gives a variable a value."""
    return any(isinstance(statement, Assign) and statement.symbol == symbol for statement in block)


def _mentions(block: Sequence[Statement], symbol: Symbol) -> bool:
    return symbol in read_symbols(block) | assigned_symbols(block)


def _joins(block: Sequence[Statement]) -> bool:
    return any(isinstance(statement, For) and statement.role is Role.THREAD for statement in block)


@legality
def _follows(waiting: Sequence[Statement], statement: Statement) -> bool:
    """Whether a statement can be run in lockstep after a loop that joins partial results."""
    found = effects(statement)
    return not found.loops and not found.fails and runs_in_lockstep((*waiting, statement))
