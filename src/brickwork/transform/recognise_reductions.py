"""Reduction recognition: searches that note no place, loops that raise a flag, and sums that begin with an element.

    for i in range(n):                       i_place = 0
        if x[i] > best:             ->       for i in range(n):
            best = x[i]                          if x[i] > best: best = x[i]; name = names[i]; i_place = i
            name = names[i]

    for i in range(n):                       raised = 0
        if x[i] != y[i]:            ->       for i in range(n):
            changed = True                       if x[i] != y[i]: raised = max(raised, 1)
                                             if raised > 0: changed = True

    s = x[at[i]]                             s = 0
    for j in range(n): s += y[i, j]   ->     for j in range(n): s += y[i, j]
    x[at[i]] = s                             x[at[i]] = x[at[i]] + s

Flags are rewritten only in loops that stand in no parallel one: inside of those, one pass in order is less work. On a
grid a block of threads may run what is in order in a parallel one, and shares out what is in that.
Invariant: every variable has the same value after the loop, bit for bit. Sums are added to elements last only if a
loop around is independent then, by updates in one step, whose order is not fixed either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates, plain
from brickwork.analysis.definitions import Definitions, definitions_in
from brickwork.analysis.polyhedral_model import Access
from brickwork.analysis.polynomial import UnknownAtom
from brickwork.analysis.scalars import NONE, live_after_loops, reduction_of
from brickwork.analysis.searches import PLACE_NUMBERS, with_place
from brickwork.analysis.verdicts import Analysis, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Read,
    Reduction,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import (
    assigned_symbols,
    blocks_in,
    read_symbols,
    rewrite,
    rewrite_blocks,
    rewrite_statements,
    statements,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass

RECOGNISED_NUMBERS = 3_500_000
"""Numbers of the variables made in here start from this."""


def note_places(kernel: Kernel) -> Kernel:
    """Return the kernel with a variable for the place of each search that notes none."""
    live, numbers = live_after_loops(kernel.body), count(PLACE_NUMBERS)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        return with_place(statement, live[statement.index] & assigned_symbols(statement.body), numbers)

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


def recognise_reductions(kernel: Kernel, analysis: Analysis, *, grid: bool = False) -> Kernel:
    """Return the kernel with its disguised reductions as plain ones, for a `grid` or not; `analysis` is of it."""
    blocked = [
        loop.node
        for loop in analysis.model.loops
        if (conflict := analysis.loops[loop.node.index].conflict) is not None
        and conflict.kind is ConflictKind.VARIABLE
        and _is_shared_out(loop.node, analysis, grid=grid)
    ]
    if not blocked:
        return kernel
    finder = _Finder(
        frozenset(loop.index for loop in blocked),
        live_after_loops(kernel.body),
        count(RECOGNISED_NUMBERS),
    )
    body = rewrite_statements(kernel.body, finder.statement)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _is_shared_out(loop: For, analysis: Analysis, *, grid: bool) -> bool:
    """Whether threads could share a loop out, were it independent: none around it is, or a block runs the last one."""
    independent = [analysis.loops[around.index].independent for around in _around(loop, analysis)]
    return not any(independent) or (grid and not independent[-1])


def _around(loop: For, analysis: Analysis) -> list[For]:
    """Return the loops that a loop stands in."""
    return [item.node for item in analysis.model.loops if any(node is loop for node in walk(item.node.body))]


@dataclass(frozen=True, slots=True)
class _Finder:
    """Rewrites the loops of one kernel whose indices are `blocked`."""

    blocked: frozenset[Symbol]
    live: dict[Symbol, frozenset[Symbol]]
    numbers: Iterator[int]

    def statement(self, statement: Statement) -> Block:
        """Return a loop, or what does the same with reductions."""
        if not isinstance(statement, For) or statement.index not in self.blocked:
            return (statement,)
        flags = self.flags(statement)
        return self.raised(statement, flags) if flags else (statement,)

    @legality
    def flags(self, loop: For) -> dict[Symbol, Assign]:
        """Return the variables that a loop does nothing with but give them one fixed value, each with an assignment."""
        changing = assigned_symbols(loop.body) | {loop.index}
        found: dict[Symbol, Assign] = {}
        for symbol in self.live.get(loop.index, NONE) - read_symbols(loop.body):
            assigns = [node for node in statements(loop.body) if isinstance(node, Assign) and node.symbol == symbol]
            values = {item.value for item in assigns}
            fixed = not effects(values).loads
            if len(values) == 1 and fixed and not read_symbols(values) & changing:
                found[symbol] = assigns[0]
        return found

    def raised(self, loop: For, flags: dict[Symbol, Assign]) -> Block:
        """Return the loop with its flags as reductions, and the flags as they are after it."""
        counters = {symbol: Symbol(f"{symbol.name}_raised", next(self.numbers), INT64) for symbol in flags}

        def visit(node: Node) -> Node:
            if not isinstance(node, Assign) or node.symbol not in counters:
                return node
            counter = counters[node.symbol]
            return replace(
                node, symbol=counter, value=build.apply("maximum", build.read(counter), build.integer(1), loc=node.loc)
            )

        starts = [Assign(symbol=counter, value=build.integer(0), loc=loop.loc) for counter in counters.values()]
        ends = [
            If(condition=build.apply("gt", build.read(counters[symbol]), build.integer(0)), then=(item,), loc=loop.loc)
            for symbol, item in flags.items()
        ]
        return (*starts, rewrite(loop, visit), *ends)

    def variable(self, symbol: Symbol) -> Symbol:
        """Return a new variable called and typed as another."""
        return replace(symbol, number=next(self.numbers))


# ---------------------------------------------------------------- sums that begin with an element


Place: TypeAlias = tuple[Tensor, tuple[Expression, ...]]
"""A tensor and indices."""


def with_sums_added(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel for a grid with sums added where elements say, where loops are independent then; by these."""
    accesses = {access.number: access for access in analysis.accesses}
    blocked = {index for index, verdict in analysis.loops.items() if not verdict.independent}
    found = {
        store: load
        for node in statements(kernel.body)
        if isinstance(node, For | If)
        for block in blocks_in(node)
        for store, load in _begun(block, kernel)
        if _is_told(accesses[store]) and any(loop.node.index in blocked for loop in accesses[store].loops)
    }
    if kernel.may_alias or not found:
        return kernel
    before, after = (find_updates(each, analyse(each)).loops for each in (kernel, _added(kernel, found)))
    freed = {index for index, verdict in after.items() if verdict.independent and not before[index].independent}
    kept = {
        store: load for store, load in found.items() if any(loop.node.index in freed for loop in accesses[store].loops)
    }
    return _added(kernel, kept) if kept else kernel


def _is_told(access: Access) -> bool:
    """Whether elements say where an access is made, or how long loops that move it are."""
    moving = {atom for axis in access.axes for atom in axis.value.atoms()}
    ends = (bound for loop in access.loops if loop.atom in moving for bound in (loop.start, loop.stop))
    return any(isinstance(atom, UnknownAtom) for atom in (*moving, *(each for end in ends for each in end.atoms())))


def _begun(block: Block, kernel: Kernel) -> Iterator[tuple[int, int]]:
    """Yield the store of each sum of a block that begins with the element that it is stored into, and its load."""
    starts, known = dict[Symbol, tuple[int, Load, Place]](), definitions_in(block)
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=symbol, value=Load(tensor=tensor) as load) if not tensor.is_local:
                starts[symbol] = place, load, _place(load, known)
            case Store(value=Read(symbol=symbol)) if symbol in starts:
                first, load, where = starts.pop(symbol)
                part = block[first : place + 1]
                if _place(statement, known) == where and _is_sum(part, where, symbol, kernel):
                    yield statement.access, load.access
            case _:
                pass
        known = known.after(statement)


def _place(access: Load | Store, known: Definitions) -> Place:
    """Return where an access is made, in terms of what is known, with all reads of an element alike."""
    return access.tensor, tuple(plain(index, known.values) for index in access.indices)


@legality
def _is_sum(part: Block, where: Place, symbol: Symbol, kernel: Kernel) -> bool:
    """Whether statements do nothing with a variable but accumulate into it, and nothing else has it.

    The first one reads the element, and the last one stores it; `where` they do is the same meanwhile. Others may read
    the tensor, if it is proved that they read other elements.
    """
    inner, (tensor, indices) = part[1:-1], where
    operator, does, asks = reduction_of(inner, symbol), effects(inner), effects(indices)
    if operator is None or tensor in does.stores or asks.reads & does.assigns or asks.loads & does.changes:
        return False
    if symbol.dtype.is_float and operator in {"minimum", "maximum"}:
        return False
    return _mentions(kernel.body, symbol) == _mentions(part, symbol)


def _mentions(block: Block, symbol: Symbol) -> int:
    return sum(isinstance(node, Assign | Read) and node.symbol == symbol for node in walk(block))


def _added(kernel: Kernel, sums: Mapping[int, int]) -> Kernel:
    """Return a kernel with some sums, by the stores and loads of them, begun with nothing and added to elements."""
    loads = {node.access: node for node in walk(kernel.body) if isinstance(node, Load)}

    def visit(block: Block) -> Block:
        result = list[Statement]()
        for place, statement in enumerate(block):
            match statement:
                case Store(value=Read(symbol=symbol), access=access, indices=indices) if access in sums:
                    first = next(at for at in range(place) if _is_load(block[at], sums[access]))
                    name = reduction_of(block[first + 1 : place], symbol) or ""
                    nothing = build.identity(Reduction(symbol, OPERATORS[name]))
                    result[first] = Assign(symbol=symbol, value=nothing, loc=block[first].loc)
                    element = replace(loads[sums[access]], indices=indices)
                    result.append(replace(statement, value=build.apply(name, element, statement.value)))
                case _:
                    result.append(statement)
        return tuple(result)

    return replace(kernel, body=rewrite_blocks(kernel.body, visit))


def _is_load(statement: Statement, access: int) -> bool:
    return isinstance(statement, Assign) and isinstance(statement.value, Load) and statement.value.access == access
