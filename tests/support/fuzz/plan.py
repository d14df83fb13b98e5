"""Plans of nests with integers that are carried from iteration to iteration, and how far those may go.

A plan is run on intervals of the integers, iteration by iteration, before it is written: sizes and arguments of a case
are known. Each item then has the intervals with which it is reached, so that the writer knows what may leave a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from support.fuzz.scope import Range, hull

State: TypeAlias = dict[str, Range]
"""The intervals of integers at one place of a program."""


@dataclass(slots=True)
class Item:
    """A part of a plan; `seen` holds the intervals with which it is reached, and nothing if it never is."""

    seen: State = field(default_factory=dict[str, Range], init=False)


@dataclass(slots=True)
class Use(Item):
    """A statement that uses an integer as an index."""

    name: str


@dataclass(slots=True)
class Move(Item):
    """A change of integers: what writes it, and the intervals of those that are changed."""

    text: Callable[[], str]
    effect: Callable[[State], State]


@dataclass(slots=True)
class Branch(Item):
    """Blocks under a condition; either may be the one that is run."""

    then: list[Item]
    otherwise: list[Item]


@dataclass(slots=True)
class Leave(Item):
    """A `break` or `continue` under a condition."""

    word: str


class Shape(NamedTuple):
    """What a loop is for the intervals before it: its head, those in an iteration, and how often it runs at most."""

    head: str
    inside: State
    trips: int


@dataclass(slots=True)
class Loop(Item):
    """A loop. In a `while` there may be no index. An `exact` one runs as often as its shape says."""

    index: str
    shape: Callable[[State], Shape]
    body: list[Item]
    exact: bool = False


@dataclass(slots=True)
class Walk:
    """A walk through the blocks of one loop on intervals; it keeps those at each `break` and `continue`."""

    left: list[State] = field(default_factory=list[State])
    skipped: list[State] = field(default_factory=list[State])

    def block(self, items: list[Item], state: State) -> State:
        """Return the intervals after a block."""
        for item in items:
            item.seen = either(item.seen, state) if item.seen else dict(state)
            match item:
                case Move():
                    state = {**state, **item.effect(state)}
                case Branch():
                    state = either(self.block(item.then, state), self.block(item.otherwise, state))
                case Leave(word=word):
                    (self.left if word == "break" else self.skipped).append(state)
                case Loop():
                    state = _after(item, state)
                case _:
                    pass
        return state


def _after(item: Loop, state: State) -> State:
    """Return the intervals after a loop."""
    after, trips, walk = state, item.shape(state).trips, Walk()
    for _ in range(trips):
        begin = item.shape(state)
        if begin.trips <= 0 and not item.exact:
            break
        walk.skipped = []
        end = walk.block(item.body, {**state, **begin.inside})
        for skipped in walk.skipped:
            end = either(end, skipped)
        if end == state:
            break
        state = end
        after = state if item.exact else either(after, state)
    for left in walk.left:
        after = either(after, left)
    return after


def either(one: State, other: State) -> State:
    """Return intervals that hold what either state does."""
    return {name: hull(one.get(name), other.get(name)) for name in (*one, *(other.keys() - one.keys()))}
