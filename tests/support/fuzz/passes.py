"""Writes nests that later passes take apart, and what is nearly such a nest.

Packed rows, masked sums of products, loops in order with parts that are free, values between two loops, and rows that
helpers return, which share memory with a tensor that changes. One of them is added to one program in six.
"""

from __future__ import annotations

import random

from support.fuzz.patterns import element, over, some
from support.fuzz.row_functions import UNORDERED
from support.fuzz.scope import Array, Whole, extent
from support.fuzz.writer import Head, Writer, below

SHARE = 0.18
"""How many programs have one."""
ROWS = '''def later(rows, count):
    """A row, which may be another one."""
    row = rows[0]
    for place in range(count):
        row = rows[place]
    return row


def further(rows, count):
    """A row of one helper, or what is computed of it."""
    row = later(rows, count)
    for _ in range(count - 1):
        row = row % 3 + 1
    return row


def both(rows, count):
    """Two rows."""
    return later(rows, count), rows[count - 1]


'''
"""Helpers that return rows."""


def use_passes(writer: Writer, seed: int) -> str:
    """Write one of these nests into some programs, return its helpers; the seed's other choices stay as they are."""
    scope, own = writer.scope, random.Random(f"passes {seed}")
    if own.random() > SHARE or not any(array.written and array.sizes for array in scope.arrays):
        return ""
    before, scope.random = scope.random, own
    writer.phrases.readable = list(scope.arrays)
    kind = scope.pick((_packed, _packed, _products, _products, _in_order, _in_order, _between, _rows, _rows))
    kind(writer)
    writer.after([array for array in scope.arrays if array.written])
    scope.random = before
    return ROWS if kind is _rows else ""


def _value(writer: Writer, loops: list[Whole], *ranks: int) -> str:
    return f"{element(writer, some(writer, *ranks), loops)} % 5"


def _packed(writer: Writer) -> None:
    """Rows that lie one after the other, over what is added to where they begin."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, ends = some(writer, 1, 2, written=True), some(writer, 1)
    outer = over(writer, ends.sizes[0], 0, 1)
    axis = target.sizes[0]
    top = extent(axis)
    bound = f" % ({axis.text} + 1)"
    writer.line(f"k = int({ends.name}[{outer.text}]){bound}")
    last = pick((f"int({ends.name}[{outer.text} + 1]){bound}", f"min(k + 3, {axis.text})", f"{axis.text} - k"))
    writer.line(f"q0 = {last}")
    if chance(0.3):
        writer.line("s = 0")
    inner = writer.open(Head(pick(("range(q0 - k)", "range(q0 - k)", "range(k, q0)")), below(top), top))
    place = inner.text if "range(k," in writer.lines[-1] else pick((f"k + {inner.text}", f"{inner.text} + k"))
    rest = [over(writer, size) for size in target.sizes[1:]]
    at = ", ".join((place, *(loop.text for loop in rest)))
    if chance(0.3):
        writer.line(f"s = (s + {target.name}[{at}]) % 7")
    value = pick((f"{target.name}[{at}] % 3 + 1", "s + 1", f"{inner.text} - {outer.text}"))
    writer.scope.guards = []
    test = f"if 0 <= {place} < {axis.text}:"
    writer.line(test)
    writer.line(f"    {target.name}[{at}] {pick(('=', '+=', '='))} {value}")
    writer.close(2 + len(rest))


def _products(writer: Writer) -> None:
    """Sums of products with masks, of which all terms may fall away, added to elements or stored."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, left, right = some(writer, 2, written=True), some(writer, 2), some(writer, 2)
    loops = [over(writer, size) for size in target.sizes]
    taps = writer.open(Head("range(2)", (0, 1), 2)) if chance(0.4) else None
    if taps is not None and chance(0.5):
        writer.line(f"if {taps.text} + {loops[0].text} != {pick('0123')}:")
        writer.level += 1
    level = writer.level
    start = pick(("0.0", "0.0", "-0.0", "0")) if not writer.phrases.integers else "0"
    writer.line(f"s = {start}")
    total = over(writer, left.sizes[-1])
    mask = pick(("k > 90", f"{total.text} > 1", f"{total.text} != {loops[0].text}", f"{total.text} >= 90"))
    if chance(0.7):
        writer.line(f"if {mask}:")
        writer.level += 1
    one = element(writer, left, [loops[0], total])
    other = element(writer, right, [total, loops[-1]])
    writer.guarded(f"s += {one} % 3 * {pick((f'({other} % 3)', f'{other}', '-1'))}")
    writer.close(1)
    writer.level = level
    own = ", ".join(loop.text for loop in loops) or "()"
    writer.line(f"{target.name}[{own}] {pick(('+=', '+=', '=', '-='))} s")
    writer.scope.loops.clear()
    writer.level, writer.trips = 1, 1


def _in_order(writer: Writer) -> None:
    """Steps in order of which a part is free: sums, conditions and formulas that know nothing of the step before."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    writer.line("t = 1")
    outer = over(writer, target.sizes[0], pick((0, 0, 1)))
    for number in range(pick((1, 1, 2))):
        writer.line(f"v{number} = {pick(('0', outer.text, '2'))}")
        if chance(0.6):
            inner = over(writer, source.sizes[-1])
            writer.guarded(f"v{number} {pick(('+=', '-='))} {_value(writer, [outer, inner], 1, 2)}")
            if chance(0.3):
                writer.line(f"if v{number} > 9:")
                writer.line(f"    {pick(('break', 'continue', f'v{number} = 1'))}")
            writer.close(1)
        else:
            writer.guarded(f"v{number} = {_value(writer, [outer], 1)} * 2 + {outer.text}")
    names = [line.split()[0] for line in writer.lines if line.strip().startswith(("v0 =", "v1 ="))]
    free = pick(names)
    step = pick((f"t = (t * 2 + {free}) % 7", f"t = max(t - 1, {free} % 5)", f"if {free} > t:\n    t = {free} % 11"))
    for line in step.split("\n"):
        writer.line(line)
    if chance(0.2):
        writer.line("if t == 3:")
        writer.line(f"    {pick(('break', 'continue'))}")
    rest = [over(writer, size) for size in target.sizes[1:]]
    own = ", ".join(loop.text for loop in (outer, *rest))
    writer.line(f"{target.name}[{own}] {pick(('=', '+='))} {pick(('t', f't + {free}', free))}")
    writer.close(1 + len(rest))


def _between(writer: Writer) -> None:
    """Values that one loop leaves for another in an array of its own, of an iteration or of the whole."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    outer = over(writer, target.sizes[0]) if chance(0.6) else None
    axis = source.sizes[-1]
    count = pick((axis.text, "3", "4")) if outer is None else pick(("3", "4"))
    size = axis if count == axis.text else Whole(count, (int(count), int(count)))
    name = f"u{next(writer.numbers)}"
    writer.line(f"{name} = [{pick(('0', '1', '0.5') if not writer.phrases.integers else ('0', '1'))}] * {count}")
    given = [] if outer is None else [outer]
    for _ in range(pick((1, 1, 2))):
        fill = over(writer, size)
        places = (fill.text, f"{count} - 1 - {fill.text}", f"{fill.text} // 2", fill.text)
        writer.guarded(f"{name}[{pick(places)}] {pick(('=', '=', '+='))} {_value(writer, [*given, fill], 1, 2)}")
        writer.close(1)
    for _ in range(pick((1, 2))):
        if outer is None:
            loops = [over(writer, each) for each in target.sizes]
        else:
            loops = [outer, *(over(writer, each) for each in target.sizes[1:])]
        inner = over(writer, size)
        value = pick((f"{name}[{inner.text}]", f"{name}[{inner.text}] * {name}[0]", f"{name}[-1 - {inner.text}]"))
        own = ", ".join(loop.text for loop in loops)
        writer.line(f"{target.name}[{own}] {pick(('=', '+='))} {value} % 7")
        writer.close(1 + len(target.sizes) - (outer is not None))
    if outer is not None:
        writer.close(1)


def _rows(writer: Writer) -> None:
    """Rows that helpers return, read before or after their tensor changes, or what stands for them."""
    scope = writer.scope
    pick, chance = scope.pick, scope.chance
    sources = [array for array in scope.arrays if len(array.sizes) == 2 and array.dtype not in UNORDERED]
    if not sources:
        _in_order(writer)
        return
    source, target = scope.pick(sources), some(writer, 1, 2, written=True)
    rows, size = source.sizes
    writer.line(f"if {rows.text} > 0 and {size.text} > 0:")
    writer.level += 1
    outer = over(writer, Whole("2", (2, 2)))
    count = f"min({rows.text}, {pick((outer.text, f'{outer.text} + 1', '1', 'abs(k) % 3'))})"
    first, second = f"w{next(writer.numbers)}", f"w{next(writer.numbers)}"
    call = pick((f"{first} = later({source.name}, {count})", f"{first} = further({source.name}, {count})"))
    if chance(0.3):
        call = f"{first}, {second} = both({source.name}, max({count}, 1))"
    writer.line(call)
    changes = f"{source.name}[{pick(('0', '-1', outer.text + ' % ' + rows.text))}, 0] = {pick(('3', outer.text))}"
    if source.written and chance(0.5):
        writer.line(changes)
    if chance(0.4):
        writer.line(f"{first} = {pick((f'{first} % 3', f'{first} + 1', f'{source.name}[-1]'))}")
    _read_row(writer, target, size, first)
    if source.written and chance(0.4):
        writer.line(pick((changes, f"{source.name}[0] = {first}")))
    if second in call and chance(0.7):
        _read_row(writer, target, size, second)
    writer.close(1)
    writer.level -= 1


def _read_row(writer: Writer, target: Array, size: Whole, name: str) -> None:
    item = over(writer, size)
    own = element(writer, target, [item])
    writer.guarded(f"{own} {writer.scope.pick(('=', '+='))} {name}[{item.text}] % 5")
    writer.close(1)
