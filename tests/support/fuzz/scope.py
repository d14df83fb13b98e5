"""What a generated program knows while it is written: its tensors, sizes and open loops, with their values.

Intervals of integer expressions are kept as numbers, as the sizes of a case are known: so the writer chooses how often
an index leaves its tensor. An interval of None belongs to code that is never reached.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

Range: TypeAlias = tuple[int, int] | None
_Item = TypeVar("_Item")
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer expression and the interval of its values, ends included."""

    text: str
    range: Range

    def shifted(self, offset: int) -> Whole:
        """Return the expression plus a number."""
        if offset == 0:
            return self
        text = f"{self.text} {'+' if offset > 0 else '-'} {abs(offset)}"
        return Whole(text, None if self.range is None else (self.range[0] + offset, self.range[1] + offset))


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor of the program. `indices`: it holds indices in [0, limit], or beyond if `strays`."""

    name: str
    dtype: str
    sizes: tuple[Whole, ...]
    written: bool = False
    indices: bool = False
    limit: int = 0
    strays: bool = False

    @property
    def floating(self) -> bool:
        """Whether elements are floats."""
        return self.dtype.startswith(("float", "bfloat"))


@dataclass(slots=True)
class Scope:
    """Names in sight, innermost loops last."""

    random: random.Random
    arrays: list[Array] = field(default_factory=list[Array])
    wholes: list[Whole] = field(default_factory=list[Whole])
    """Sizes and integer arguments."""
    loops: list[Whole] = field(default_factory=list[Whole])
    stray: float = 0.0
    """How often an index may leave its tensor."""
    guards: list[str] = field(default_factory=list[str])
    """Conditions that the statement being written needs."""
    guardable: bool = True
    """Whether a statement is being written that can be guarded."""
    optional: Array | None = None
    """A tensor that may be None in calls."""
    starts: list[Whole] = field(default_factory=list[Whole])
    """Integer arguments that carried integers begin with."""
    carried: list[Whole] = field(default_factory=list[Whole])
    """Integers that loops change, where the statement being written stands."""
    focus: Whole | None = None
    """The one that indices are made of."""

    def pick(self, items: Sequence[_Item]) -> _Item:
        """Return one of several things."""
        return self.random.choice(items)

    def chance(self, share: float) -> bool:
        """Return whether something that happens so often happens."""
        return self.random.random() < share

    def loop(self) -> Whole:
        """Return the index of an open loop, mostly of an inner one."""
        return self.loops[-1] if self.chance(0.5) else self.pick(self.loops)

    def mover(self) -> Whole:
        """Return what an index is made of: a loop's index, a carried integer, or a size outside of loops."""
        if self.focus is not None and self.chance(0.8):
            return self.focus
        if self.carried and self.chance(0.2):
            return self.pick(self.carried)
        return self.loop() if self.loops else self.pick(self.wholes)


def extent(size: Whole) -> int:
    """Return the value of a size."""
    return 0 if size.range is None else max(size.range[0], 0)


def joined(one: Range, other: Range, operator: str) -> Range:
    """Return the interval of `one operator other` for +, - and *."""
    if one is None or other is None:
        return None
    if operator == "-":
        return one[0] - other[1], one[1] - other[0]
    if operator == "+":
        return one[0] + other[0], one[1] + other[1]
    corners = [left * right for left in one for right in other]
    return min(corners), max(corners)


def hull(one: Range, other: Range) -> Range:
    """Return the least interval that holds two."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def clipped(spread: Range, low: int = _LEAST, high: int = _MOST) -> Range:
    """Return an interval whose values are brought between two bounds."""
    return None if spread is None else (min(max(spread[0], low), high), min(max(spread[1], low), high))


def wrapped(spread: Range) -> Range:
    """Return the interval of an integer of 64 bits, which may be any where it wraps."""
    return spread if spread is None or (_LEAST <= spread[0] and spread[1] <= _MOST) else (_LEAST, _MOST)


def index(scope: Scope, size: Whole) -> str:
    """Return an index of an axis; it stays within it unless the scope says otherwise."""
    found = candidate(scope, size)
    return kept(scope, Whole(found.text, wrapped(found.range)), size)


def kept(scope: Scope, found: Whole, size: Whole) -> str:
    """Return an index, brought into the axis where it leaves it, or guarded, or left as it is."""
    long = extent(size)
    if found.range is None or (-long <= found.range[0] and found.range[1] < long):
        return found.text
    if scope.chance(scope.stray):
        return found.text
    kind = scope.pick(("modulo", "modulo", "clamp", "guard", "guard", "select"))
    text = f"({found.text})" if " " in found.text else found.text
    if kind == "guard" and not (scope.loops and scope.guardable):
        kind = "modulo"
    match kind:
        case "guard":
            low = f"0 <= {text}" if found.range[0] < 0 else ""
            both = f"{low} < {size.text}" if low else f"{text} < {size.text}"
            scope.guards.append(both if found.range[1] >= long else low)
            return found.text
        case "clamp":
            return f"min(max({found.text}, 0), {size.text} - 1)"
        case "select":
            return f"({found.text} if 0 <= {text} < {size.text} else 0)"
        case _:
            return f"{text} % {size.text}"


def candidate(scope: Scope, size: Whole) -> Whole:
    """Return an integer expression that may serve as an index of an axis."""
    loop = scope.mover()
    inner, low_high = scope.random, loop.range
    kind = scope.pick(
        (*("plain",) * 8, *("shift",) * 4, "reverse", "last", "scaled", "halved", "modulo", "sum", "number")
    )
    match kind:
        case "shift":
            return loop.shifted(inner.choice((-2, -1, -1, 1, 1, 2, 3)))
        case "reverse":
            flipped = joined(size.range, low_high, "-")
            return Whole(f"{size.text} - {loop.text}", flipped).shifted(-1)
        case "last":
            return Whole(f"-{loop.text}", None if low_high is None else (-low_high[1], -low_high[0])).shifted(-1)
        case "scaled":
            by, offset = inner.choice((2, 3, 4)), inner.choice((0, 0, 1))
            return Whole(f"{by} * {loop.text}", joined(low_high, (by, by), "*")).shifted(offset)
        case "halved":
            by = inner.choice((2, 3, 4))
            return Whole(f"{loop.text} // {by}", None if low_high is None else (low_high[0] // by, low_high[1] // by))
        case "modulo":
            by = inner.choice((2, 3, 4))
            return Whole(f"{loop.text} % {by}", None if low_high is None else (0, by - 1))
        case "sum" if len(scope.loops) > (not scope.carried):
            other, operator = scope.pick(scope.loops), inner.choice("+-")
            if scope.carried and inner.random() < 0.5:
                loop, other, low_high = other, loop, other.range
            return Whole(f"{loop.text} {operator} {other.text}", joined(low_high, other.range, operator))
        case "number":
            return _number(scope, loop)
        case _:
            return loop


def _number(scope: Scope, loop: Whole) -> Whole:
    """Return an index that comes from an argument, a tensor of indices or a flattened pair."""
    tables = [array for array in scope.arrays if array.indices and len(array.sizes) == 1]
    match scope.pick(("argument", "table", "table", "flat", "constant")):
        case "table" if tables:
            table = scope.pick(tables)
            spread = (-table.limit, table.limit) if table.strays else (0, max(table.limit - 1, 0))
            return Whole(f"{table.name}[{kept(scope, loop, table.sizes[0])}]", spread)
        case "flat" if len(scope.loops) > 1:
            outer, inner = scope.loops[-2:]
            size = scope.pick(scope.wholes)
            product = Whole(f"{outer.text} * {size.text}", joined(outer.range, size.range, "*"))
            return Whole(f"{product.text} + {inner.text}", joined(product.range, inner.range, "+"))
        case "argument":
            whole = scope.pick(scope.wholes)
            return Whole(f"{loop.text} + {whole.text}", joined(loop.range, whole.range, "+"))
        case _:
            number = scope.pick((0, 0, 1, -1, 2))
            return Whole(str(number), (number, number))
