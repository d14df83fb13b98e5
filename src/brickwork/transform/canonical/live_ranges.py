"""A variable that is used anew, for something else, becomes another variable.

    for j in range(m):                      for j in range(m):
        if a[j] > top: at = j                   if a[j] > top: at = j
    x[at] = 1                               x[at] = 1
    at = 0                           ->     other = 0
    for k in range(n):                      for k in range(n):
        if b[k] > top: at = k                   if b[k] > top: other = k
    y[at] = 1                               y[other] = 1

What the analyses know of a variable holds wherever it is assigned: `at` may be as great as `n`, and `x[at]` would have
to be checked. What straight lines assign again is told apart by its place (`analysis/definitions.py`) and stays.
Invariant: no path leads from an assignment of one variable to a read of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field

from brickwork.analysis.scalars import NONE, Ends, Liveness, Symbols
from brickwork.ir.answers import Answers
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Break, For, If, Read, Statement, Symbol, While
from brickwork.ir.walk import assigned_symbols, read_symbols, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.canonical.copies import with_parts
from brickwork.transform.scratch import Names, with_variables


def with_own_ranges(block: Block, names: Names) -> Block:
    """Return the body of a kernel with a variable for each use of one that stands alone."""
    mentions = _mentions(block)
    often = {symbol for symbol in assigned_symbols(block) if mentions[symbol] > 2}
    indices = {node.index for node in walk(block) if isinstance(node, For)}
    splitter = _Splitter(names, frozenset(often - indices), mentions)
    return splitter.block(block, NONE, Ends()) if splitter.candidates else block


def _mentions(block: Statement | Block) -> Counter[Symbol]:
    """Return how often variables are read and assigned."""
    return Counter(node.symbol for node in walk(block) if isinstance(node, Assign | Read))


@dataclass(slots=True)
class _Splitter:
    """Gives uses of `candidates` variables of their own; `mentions` says how often each stands in the kernel."""

    names: Names
    candidates: Symbols
    mentions: Counter[Symbol]
    liveness: Liveness = field(default_factory=lambda: Liveness({}))
    inside: Answers[Statement, Counter[Symbol]] = field(default_factory=Answers["Statement", "Counter[Symbol]"])
    asked: list[Statement] = field(default_factory=list[Statement])
    """Keeps alive what `liveness` remembers by its id."""

    def block(self, block: Block, after: Symbols, ends: Ends) -> Block:
        """Return a block with its uses apart; `after` is live after it, `ends` where its jumps lead to."""
        used = [(assigned_symbols(item) | read_symbols(item)) & self.candidates for item in block]
        if not any(used):
            return block
        live = [after]
        for statement in reversed(block):
            live.append(self.liveness.statement(statement, live[-1], ends, None))
        live.reverse()
        result = list(block)
        for symbol in sorted(NONE.union(*used), key=lambda item: item.number):
            places = [place for place, each in enumerate(used) if symbol in each]
            for first, last in _runs(symbol, places, live):
                part = tuple(result[first : last + 1])
                lines = all(isinstance(item, Assign) or symbol not in assigned_symbols(item) for item in part)
                if not lines and self.is_alone(symbol, part, live[first] | live[last + 1], ends):
                    own = self.names.symbol(symbol.name, symbol.dtype)
                    result[first : last + 1] = [with_variables(item, {symbol: own}) for item in part]
        return tuple(self.statement(item, live[place + 1], ends) for place, item in enumerate(result))

    @legality
    def is_alone(self, symbol: Symbol, part: Block, around: Symbols, ends: Ends) -> bool:
        """Whether a part of a block passes a variable neither on nor in, and others use it elsewhere."""
        if symbol in around:
            return False
        inner = sum(self.inside.of(item, _mentions)[symbol] for item in part)
        if inner == self.mentions[symbol]:
            return False
        leaves = any(effects(item).jumps for item in part)
        if leaves and symbol in ends.continues:  # What is live where a loop is left is so where it goes on.
            return False
        self.mentions[symbol] -= inner
        return True

    def statement(self, node: Statement, after: Symbols, ends: Ends) -> Statement:
        """Return a statement with the uses in its blocks apart."""
        self.asked.append(node)
        match node:
            case If(then=then, otherwise=otherwise):
                return with_parts(
                    node, then=self.block(then, after, ends), otherwise=self.block(otherwise, after, ends)
                )
            case For(index=index, body=body):
                around = after | (self.liveness.read_first(node, body) - {index})
                return with_parts(node, body=self.block(body, around, Ends(after, around)))
            case While(prelude=prelude, condition=condition, body=body):
                choice = If(condition=condition, then=body, otherwise=(Break(),))
                around = after | self.liveness.read_first(node, (*prelude, choice))
                tested = self.liveness.statement(choice, around, Ends(after, around), None)
                inner = self.block(body, around, Ends(after, around))
                return with_parts(node, prelude=self.block(prelude, tested, Ends(after, around)), body=inner)
            case _:
                return node


def _runs(symbol: Symbol, places: list[int], live: list[Symbols]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of statements through which a variable lives; `live` is before each statement."""
    first = places[0]
    for last, place in zip(places, [*places[1:], None], strict=True):
        if place is None or symbol not in live[place]:
            yield first, last
            first = place if place is not None else first
