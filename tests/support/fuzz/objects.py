"""Writes nests with objects and texts that are arguments, with objects that iterations make, sorted lists and heaps.

    c: Setup, a dataclass with a NamedTuple in it           bisect.insort(w, x[i]); bisect.bisect_left(w, s)
    c: str, compared in branches of a loop                  heapq.heappush(w, x[i]); heapq.heappop(w)

One of them is added to one program in seven.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from support.fuzz.case import NumberArgument
from support.fuzz.patterns import element, over, some
from support.fuzz.writer import Writer

CLASSES = '''
@dataclass(frozen=True)
class Setup:
    """Numbers of a call, two of which are a pair."""

    count: int
    scale: float
    limits: Pair

    @property
    def twice(self):
        return self.count * 2 % 7

    def kept(self, value):
        return clamp(value, self.limits.first, self.limits.second)

    def moved(self, by):
        return Setup(self.count + by, self.scale, Pair(self.limits.first - by, self.limits.second + by))
'''


@dataclass(frozen=True, slots=True)
class Objects:
    """What a nest needs beside its lines: imports and classes, a parameter, and the arguments that are its parts."""

    before: str = ""
    classes: str = ""
    parameter: str = ""
    arguments: tuple[NumberArgument, ...] = ()


def use_objects(writer: Writer, seed: int) -> Objects:
    """Write one of these nests into some programs; the seed's other choices stay as they are."""
    own = random.Random(f"objects {seed}")
    if own.random() > 0.14 or not any(array.written and array.sizes for array in writer.scope.arrays):
        return Objects()
    writer.scope.random = own
    writer.phrases.readable = list(writer.scope.arrays)
    found = own.choice(_NESTS)(writer)
    writer.after([array for array in writer.scope.arrays if array.written])
    return found


def _stored(writer: Writer, value: str) -> None:
    """Store a value into an element of the outermost loop's, and end the loops."""
    scope = writer.scope
    target = element(writer, some(writer, 1, 2, written=True), [scope.loops[0], scope.loops[-1]])
    value = f"int({value})" if writer.phrases.integers else value
    writer.guarded(f"{target} {scope.pick(('=', '+='))} {value}")
    writer.close(len(scope.loops))


def _an_object(writer: Writer) -> Objects:
    """An object that is an argument, and others that iterations make of it."""
    pick, chance, source = writer.scope.pick, writer.scope.chance, some(writer, 1, 2)
    name = f"q{next(writer.numbers)}_"
    changed = chance(0.4)
    if changed:
        writer.line(f"{name} = c.moved({pick(('1', 'm % 3', 'n'))})")
    outer = over(writer, source.sizes[0])
    if chance(0.5):
        writer.line(f"if {outer.text} < c.count:")
        writer.line(f"    s = c.scale + {pick(('c.twice', 'c.limits.first', 'c.limits.least'))}")
    value = f"{element(writer, source, [outer, outer])} % 9"
    if chance(0.5):
        writer.guarded(f"t = c.moved({outer.text} % 3).kept({value})")
    else:
        writer.guarded(f"t = {name if changed else 'c'}.kept({value})")
    _stored(writer, f"(t + s + {name if changed else 'c'}.{pick(('twice', 'count', 'scale', 'limits.least'))}) % 7")
    parts = (
        ("count", (0, 1, 2, -3, 7)),
        ("scale", (0.5, 2.0, -1.0)),
        ("first", (-2.0, 0.0, 3.0)),
        ("second", (4.0, 1.5)),
    )
    return Objects("", CLASSES, "c: Setup", tuple(NumberArgument(f"c_{part}", pick(values)) for part, values in parts))


def _a_text(writer: Writer) -> Objects:
    """A text that is an argument, and decides what a loop does."""
    pick, source = writer.scope.pick, some(writer, 1, 2)
    outer = over(writer, source.sizes[0])
    value = f"{element(writer, source, [outer, outer])} % 5"
    writer.line(f"if c {pick(('==', '!='))} 'low':")
    writer.level += 1
    writer.guarded(f"t = {value}")
    writer.level -= 1
    if writer.scope.chance(0.6):
        writer.line("elif c in ('high', 'both'):")
        writer.line(f"    t = {outer.text} - 2")
    writer.line("else:")
    writer.line(f"    t = {pick(('1', 'm', outer.text))}")
    _stored(writer, f"(t + 4) % 7 if c {pick(('==', '!='))} {pick((repr('low'), repr('both')))} else t % 5")
    return Objects("", "", "c: str", (NumberArgument("c", pick(("low", "high", "both", ""))),))


def _sorted(writer: Writer) -> Objects:
    """A list that is kept in order, and searched."""
    pick, chance = writer.scope.pick, writer.scope.chance
    source, other = some(writer, 1, 2), some(writer, 1, 2)
    name = f"w{next(writer.numbers)}"
    outer = over(writer, other.sizes[0])
    writer.line(f"{name} = {pick(('[]', '[s]'))}")
    item = over(writer, source.sizes[0])
    writer.guarded(f"t = {element(writer, source, [item, outer])} % 5")
    writer.line(f"bisect.{pick(('insort', 'insort_left', 'insort_right'))}({name}, t)")
    if chance(0.4):
        writer.line(f"if len({name}) > {pick('234')}:")
        writer.line(f"    s = (s + {name}.pop({pick(('', '0'))})) % 7")
    writer.close(1)
    writer.guarded(f"t = {element(writer, other, [outer, outer])} % 5")
    search = f"bisect.{pick(('bisect', 'bisect_left', 'bisect_right'))}({name}, t)"
    if chance(0.5):
        writer.line(f"if len({name}) > 1:")
        writer.line(f"    s = (s + {name}[-1] - {name}[0]) % 7")
    _stored(writer, f"{search} + s % 7")
    return Objects("import bisect\n")


def _heap(writer: Writer) -> Objects:
    """A heap, of which the least is taken first."""
    pick, chance = writer.scope.pick, writer.scope.chance
    source, other = some(writer, 1, 2), some(writer, 1, 2)
    name, pairs = f"w{next(writer.numbers)}", chance(0.3)
    outer = over(writer, other.sizes[0])
    writer.line(f"{name} = []")
    item = over(writer, source.sizes[0])
    writer.guarded(f"t = {element(writer, source, [item, outer])} % 5")
    writer.line(f"heapq.heappush({name}, {f'(t, {item.text})' if pairs else 't'})")
    if chance(0.5):
        writer.line(f"if len({name}) > {pick('234')}:")
        writer.line(f"    {'t, _' if pairs else 't'} = heapq.heappop({name})")
        writer.line("    s = (s * 2 + t) % 7")
    writer.close(1)
    writer.line(f"while len({name}) > {pick('01')}:")
    writer.line(f"    {'t, k' if pairs else 't'} = heapq.heappop({name})")
    writer.line(f"    s = (s * 3 + t{' + k' if pairs else ''}) % 11")
    _stored(writer, f"s + len({name})")
    return Objects("import heapq\n")


_NESTS: tuple[Callable[[Writer], Objects], ...] = (_an_object, _a_text, _sorted, _heap)
