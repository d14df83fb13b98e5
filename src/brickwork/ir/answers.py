"""Answers about nodes that are asked for again and again, each found once.

Things are told apart by identity: equal ones take long to compare, and places in the source are no part of a node's
value. An answer stays right since nothing about a node changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")


class Answers(Generic[Thing, Answer]):
    """Answers to one question; each is kept with what it is about, so that nothing else takes that identity."""

    def __init__(self) -> None:
        """Begin without answers."""
        self._known: dict[int, tuple[Thing, Answer]] = {}

    def of(self, thing: Thing, ask: Callable[[Thing], Answer]) -> Answer:
        """Return the answer about a thing, which `ask` gives the first time."""
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (thing, ask(thing))
        return known[1]
