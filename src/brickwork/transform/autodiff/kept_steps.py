"""Loops that run another loop again from its beginning, one iteration less each time, keep its steps instead.

    for turned in range(n):                        kept[...] = 1.0
        t = n - 1 - turned                         while there are steps that were not gone back through:
        s = 1.0                                        s = the state that was kept last before these steps
        for u in range(t):             ->              for u from there on:
            s = s * x[u]                                   where u is a multiple of 32, and in the last 32: keep s
        g[t] = h[t] * s                                    s = s * x[u]
                                                       for turned in these steps:
                                                           s = kept[...]
                                                           g[t] = h[t] * s

Reverse mode writes the left form where nothing tells a loop's length before it runs. The state is kept in a list that
belongs to the loops around, so that it takes the same room whatever the length is. Positions are counted in the base
`room`: the list has `room` places for each digit. A position is kept at its lowest digit that is not 0, and what stands
there is from the same multiple of the next digit's unit: what has been gone back through is written over. So a step
is computed again as often as the length has digits, less one.

Invariant: each variable has the value that it has in the left form, computed by the same operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.searches import same
from brickwork.frontend.lowering_state import LARGEST
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Local,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_counts, rewrite_statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.locations import with_locations
from brickwork.transform.autodiff.step_lists import (
    digit,
    is_multiple,
    list_of,
    moved,
    over,
    sizes_of,
)
from brickwork.transform.canonical.dead import filled_local
from brickwork.transform.scratch import Names
from brickwork.transform.slopes import Item, dtype_of

_ROOMS = tuple(1 << bits for bits in range(5, 1, -1))
"""Places for each digit, 32 to 4. With more of them a step is computed again less often."""

_BITS = 20
"""Binary digits of the positions that are kept: in a longer loop each 2 ** 20 steps begin at its beginning."""


def keep_steps(block: Block, names: Names) -> Block:
    """Return the block with its loops that run others again from their beginning as ones that keep their steps."""
    counts = read_counts(block)

    def visit(statement: Statement) -> Block:
        again = _again(statement, counts) if isinstance(statement, For) else None
        if again is None:
            return (statement,)
        written = _Writer(again, names).block()
        counts.update(read_counts(written))
        counts.subtract(read_counts((statement,)))
        return written

    return rewrite_statements(block, visit)


# ---------------------------------------------------------------- what is recognised


@dataclass(frozen=True, slots=True)
class _Again:
    """A loop, and what its iterations begin with: `begin` sets the state, which `steps` takes from step to step.

    `rest` is what its iterations do besides. In the last one the state is as at the beginning.
    """

    loop: For
    begin: Block
    steps: For
    rest: Block
    state: tuple[Item, ...]
    room: int

    @property
    def levels(self) -> int:
        """How many digits positions have."""
        return _levels(self.room)


def _levels(room: int) -> int:
    return math.ceil(_BITS / math.log2(room))


def _again(loop: For, counts: Counter[Symbol]) -> _Again | None:
    """Return what a loop runs again in each iteration, if it keeps to the form."""
    for place, steps in enumerate(loop.body):
        if isinstance(steps, For) and _is_shortened(loop, steps, loop.body[:place]):
            before, after = loop.body[:place], loop.body[place + 1 :]
            state = _state(steps, counts)
            parts = _parted(before, {*state})
            room = _room(state)
            if room is not None and state and _may_be_kept(loop, steps, state, parts):
                return _Again(loop, parts[0], steps, (*parts[1], *after), state, room)
    return None


def _room(state: Sequence[Item]) -> int | None:
    """Return how many places a digit has, if the lists are small enough with any."""
    size = sum(dtype_of(item).size * math.prod(sizes_of(item)) for item in state)
    return next((room for room in _ROOMS if size * (room * _levels(room) + 1) <= LARGEST), None)


@legality
def _is_shortened(loop: For, steps: For, before: Block) -> bool:
    """Whether a loop goes from the start of one around it to as many iterations before the end as that one has had."""
    last = build.sub(build.add(loop.start, loop.stop), build.integer(1))
    stop = build.sub(last, build.read(loop.index))
    stops = [stop, *(build.read(node.symbol) for node in before if isinstance(node, Assign) and same(node.value, stop))]
    return same(steps.start, loop.start) and any(same(steps.stop, each) for each in stops)


@legality
def _state(steps: For, counts: Counter[Symbol]) -> tuple[Item, ...]:
    """Return the variables and locals that a loop leaves, or takes from one iteration to the next."""
    inside = read_counts(steps.body)
    carried = live_before(steps.body, NONE)
    assigned = sorted(assigned_symbols(steps.body), key=lambda symbol: symbol.number)
    found = effects(steps.body)
    stored = sorted(found.stores - found.declares, key=lambda tensor: tensor.number)
    return (*(symbol for symbol in assigned if symbol in carried or counts[symbol] > inside[symbol]), *stored)


def _parted(before: Block, state: set[Item]) -> tuple[Block, Block]:
    """Return the statements that set the state, and the others."""
    parts: tuple[list[Statement], list[Statement]] = [], []
    for statement in before:
        found = effects(statement)
        parts[state.isdisjoint(found.assigns | found.stores | found.declares)].append(statement)
    return tuple(parts[0]), tuple(parts[1])


@legality
def _begun(statement: Statement) -> Item | None:
    """Return the variable, or the whole local, that a statement sets and does nothing else."""
    match statement:
        case Assign(symbol=symbol):
            return symbol
        case Local(tensor=tensor):
            return tensor
        case For():
            return filled_local(statement)
        case _:
            return None


@legality
def _may_be_kept(loop: For, steps: For, state: Sequence[Item], parts: tuple[Block, Block]) -> bool:
    """Whether the state after some steps is the same in each iteration, and nothing else comes from the steps.

    Where `steps` begins anew in an iteration all is as at the beginning, and no other iteration leaves anything to it.
    """
    begin, rest = parts
    items = {*state}
    whole, again, before = effects(loop.body), effects((*begin, steps)), effects(rest)
    changed = whole.assigns | {loop.index}
    return (
        not loop.claimed
        and not again.jumps
        and not whole.leaves
        and not whole.rebinds
        and {_begun(node) for node in begin} == items
        and again.loads.isdisjoint(whole.stores - items)
        and live_before((*begin, *steps.body), NONE).isdisjoint(changed - {steps.index})
        and items.isdisjoint(before.reads | before.loads)
    )


# ---------------------------------------------------------------- what is written


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes a loop that keeps steps. `lists` has a list for each part of the state."""

    again: _Again
    names: Names
    lists: dict[Item, Tensor] = field(default_factory=dict[Item, Tensor])

    def block(self) -> Block:
        """Return the loop's statements."""
        again, loop, out = self.again, self.again.loop, list[Statement]()
        start, stop = self.names.kept(loop.start, "start", out), self.names.kept(loop.stop, "stop", out)
        code = [*again.begin]
        for item in again.state:
            sizes = (again.room * again.levels + 1, *sizes_of(item))
            self.lists[item] = list_of(f"{item.name}_kept", dtype_of(item), sizes, self.names)
            code.append(Local(tensor=self.lists[item], loc=loop.loc))
        code += self.moved(self.beginning, keep=True)
        end, low = self.names.symbol("end", INT64), self.names.symbol("low", INT64)
        code.append(Assign(symbol=end, value=build.sub(stop, start)))
        code.append(Assign(symbol=low, value=build.integer(0)))
        inner = tuple(self.stretch(start, stop, end, low))
        positive = build.apply("lt", build.integer(0), build.read(end))
        code.append(While(prelude=(), condition=positive, body=inner, loc=loop.loc))
        out.append(If(condition=build.apply("lt", start, stop), then=tuple(code), loc=loop.loc))
        return with_locations(tuple(out), loop.loc)

    def stretch(self, start: Expression, stop: Expression, end: Symbol, low: Symbol) -> Iterator[Statement]:
        """Yield what goes back through the last steps before `end`; the state of step `low` is kept."""
        loop, steps, room = self.again.loop, self.again.steps, self.again.room
        base = self.names.symbol("base", INT64)
        last = build.sub(build.read(end), build.integer(1))
        yield Assign(symbol=base, value=build.mul(over(last, room), build.integer(room)))
        first = build.apply("eq", build.read(low), build.integer(0))
        place, at = self.names.symbol("place", INT64), self.names.symbol("at", INT64)
        begun = build.select(first, self.beginning, self.place(low))
        yield Assign(symbol=place, value=begun)
        yield from self.moved(build.read(place), keep=False)
        slot = self.names.symbol("place", INT64)
        inside = build.apply("le", build.read(base), build.read(at))
        body: Block = (
            Assign(symbol=at, value=build.sub(build.read(steps.index), start)),
            If(
                condition=is_multiple(build.read(at), room),
                then=(Assign(symbol=slot, value=self.place(at)), *self.moved(build.read(slot), keep=True)),
            ),
            If(condition=inside, then=self.moved(digit(build.read(at), room), keep=True)),
            *steps.body,
        )
        begin = build.add(start, build.read(low))
        yield replace(steps, start=begin, stop=build.add(start, last), body=body)
        yield from self.moved(digit(last, room), keep=True)
        back = build.sub(build.sub(stop, build.integer(1)), build.read(loop.index))
        body = (*self.moved(digit(back, room), keep=False), *self.again.rest)
        # No more than all iterations, which is known so: what stores along rows is in its own then.
        first = build.apply("maximum", start, build.sub(stop, build.read(end)))
        behind = build.apply("minimum", stop, build.sub(stop, build.read(base)))
        yield replace(loop, start=first, stop=behind, body=body)
        yield Assign(symbol=low, value=self.before(base))
        yield Assign(symbol=end, value=build.read(base))

    # ------------------------------------------------------------ positions

    @property
    def beginning(self) -> Expression:
        """Where the state at the beginning is kept: behind all others."""
        return build.integer(self.again.room * self.again.levels)

    def place(self, position: Symbol) -> Expression:
        """Return where the state of a position is kept whose last digit is 0: at its lowest digit that is not."""
        room, levels = self.again.room, self.again.levels
        at, result = build.read(position), build.integer(0)
        for level in range(levels - 1, 0, -1):
            place = build.add(build.integer(level * room), digit(over(at, room**level), room))
            result = place if level == levels - 1 else build.select(is_multiple(at, room * room**level), result, place)
        return result

    def before(self, base: Symbol) -> Expression:
        """Return the last position before those of the stretch that ends at `base`, or its first, that is kept."""
        room, levels = self.again.room, self.again.levels
        begin = build.sub(build.read(base), build.integer(room))
        result = build.integer(0)
        for level in range(levels - 1, 0, -1):
            unit = room**level
            kept = build.mul(over(begin, unit), build.integer(unit))
            result = build.select(is_multiple(build.read(base), unit * room), result, kept)
        return build.select(is_multiple(result, room**levels), build.integer(0), result)

    def moved(self, place: Expression, *, keep: bool) -> Block:
        """Return what keeps the state at a place, or takes it from there."""
        return moved(self.lists, (place,), self.names, keep=keep)
