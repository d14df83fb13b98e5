"""Early reads: a turn of a loop that is written out asks for what the steps of the next turn read.

    for t in range(T):                             k0, k1 = k[0], k[1]
        s = f(s, k[t])               ->            for t in range(0, T, 2):
        y[t] = s / g(s)                                now0, now1, k0, k1 = k0, k1, k[t + 2], k[t + 3]
                                                       s = f(s, now0); y[t] = s / g(s)
                                                       s = f(s, now1); y[t + 1] = s / g(s)

The assembler moves no load across a branch, and a division has one in it, as has a step with an `if`. Each step would
wait for its own loads then. Legal where a turn runs to its end, and the loop stores nothing into what is read early.
The last turn reads its own elements again, so that none is read that no step reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from brickwork.codegen import memory
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_all, emit_expression
from brickwork.codegen.lane_values import memory_type
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Expression, For, If, Load, Node, Statement, Symbol
from brickwork.ir.walk import EXPRESSIONS, assigned_symbols, children, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass

_BRANCHING = frozenset({"truediv", "floordiv", "mod"})
"""Operators whose code has a branch in it, for operands that hardly occur."""


@dataclass(frozen=True, slots=True)
class EarlyReads:
    """What the steps of a turn read early, in memory that becomes registers.

    `loads` are those of a step, each with others of the same element, and `indices` the variables that say where.
    """

    loads: Mapping[Load, tuple[Load, ...]]
    indices: tuple[tuple[Symbol, Expression], ...]
    slots: tuple[Mapping[Load, str], ...]

    def begin(self, at: Callable[[int], State]) -> None:
        """Ask for what the first turn reads; `at` gives the state of each of its steps."""
        for number, slots in enumerate(self.slots):
            state = at(number)
            for load, text in self._read(state).items():
                state.writer.store(memory_type(load.tensor.type.dtype), text, slots[load])

    def turn(self, state: State, following: Callable[[int], State]) -> list[dict[Load, tuple[str, ...]]]:
        """Return what the steps of a turn read, and ask for what those of the one after do."""
        kept = [
            {load: state.writer.load(memory_type(load.tensor.type.dtype), slot) for load, slot in slots.items()}
            for slots in self.slots
        ]
        self.begin(following)
        return [{each: (text,) for load, text in step.items() for each in self.loads[load]} for step in kept]

    def _read(self, state: State) -> dict[Load, str]:
        for symbol, value in self.indices:
            state.values[symbol] = emit_expression(state, value)
        return {load: memory.raw_element(state, load.tensor, emit_all(state, load.indices)) for load in self.loads}


def early_reads(state: State, loop: For) -> EarlyReads | None:
    """Return what a loop reads early, if it is one of one lane that the assembler would have wait."""
    if not state.target.grid or state.width > 1 or state.mask is not None:
        return None
    if _may_end_early(loop) or not any(map(_holds_back, walk(loop.body))):
        return None
    known = _known(loop)
    early = (load for each in loop.body for load in _loads(each) if _is_early(load, loop, known))
    found = dict.fromkeys(load for load in early if load.tensor not in state.rows)
    same: dict[object, list[Load]] = {}
    for load in dict.fromkeys(node for node in walk(loop.body) if isinstance(node, Load)):
        same.setdefault((load.tensor, load.indices), []).append(load)
    groups = [tuple(same[place]) for place in dict.fromkeys((load.tensor, load.indices) for load in found)]
    loads = {group[0]: group for group in groups}
    if not loads:
        return None
    slots = [
        {load: state.writer.alloca(memory_type(load.tensor.type.dtype)) for load in loads} for _ in range(loop.unrolled)
    ]
    return EarlyReads(loads, tuple(known.items()), tuple(slots))


@hazard
def _may_end_early(loop: For) -> bool:
    """Whether a step may leave the loop or the thread, so that what comes after is not read in any case."""
    found = effects(loop.body)
    return found.jumps or bool(found.fails) or found.whiles or bool(found.rebinds)


def _holds_back(node: Node) -> bool:
    """Whether the assembler moves no load across a node."""
    return isinstance(node, If | For) or (isinstance(node, Apply) and node.operator.name in _BRANCHING)


def _known(loop: For) -> dict[Symbol, Expression]:
    """Return the integers that a step computes, to what can be computed before the turn."""
    known: dict[Symbol, Expression] = {}
    for place, statement in enumerate(loop.body):
        match statement:
            case Assign(symbol=symbol, value=value) if symbol.dtype.is_integer and _is_given(loop, place, symbol):
                if _are_fixed((value,), loop, known):
                    known[symbol] = value
            case _:
                pass
    return known


@legality
def _is_given(loop: For, place: int, symbol: Symbol) -> bool:
    """Whether all that reads a variable in a step reads what the statement at a place assigns."""
    return symbol not in effects(loop.body[: place + 1]).reads | assigned_symbols(loop.body[place + 1 :])


def _loads(statement: Statement) -> Sequence[Load]:
    """Return what a statement reads in any case: not what blocks in it do."""
    roots = [each for each in children(statement) if isinstance(each, EXPRESSIONS)]
    return [node for node in walk(roots) if isinstance(node, Load)]


@legality
def _is_early(load: Load, loop: For, known: Mapping[Symbol, Expression]) -> bool:
    """Whether a load is of the same element before the turn as in its step."""
    stored = effects(loop.body).stores
    return not load.tensor.is_local and load.tensor not in stored and _are_fixed(load.indices, loop, known)


@legality
def _are_fixed(values: Sequence[Expression], loop: For, known: Mapping[Symbol, Expression]) -> bool:
    """Whether values depend on nothing that a step computes, but on the loop's index and what is `known`."""
    found = effects(values)
    return found.plain and not (found.reads & assigned_symbols(loop.body)) - known.keys()
