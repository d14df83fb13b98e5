"""Writes rows that elements end, windows that they place, literals where they say, and recurrences along a signal."""

from __future__ import annotations

from support.fuzz.patterns import element, over, some
from support.fuzz.scope import Array, Whole, extent, kept
from support.fuzz.writer import Head, Writer, below

_ANY = (-(2**63), 2**63 - 1)


def of_lengths(writer: Writer) -> None:
    """Write one nest; any where no tensor is written along an axis."""
    writer.phrases.readable = list(writer.scope.arrays)
    if any(array.written and array.sizes for array in writer.scope.arrays):
        writer.scope.pick((_padded, _padded, _windows, _literals, _signal))(writer)
        writer.after([array for array in writer.scope.arrays if array.written])
    else:
        writer.nest()


def _padded(writer: Writer) -> None:
    """Rows as long as an element says, or longer, with other loops before, in and behind them."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target, source, data = some(writer, 2, 3, written=True), some(writer, 1, 2, 3), some(writer, 1)
    outer = over(writer, target.sizes[0])
    axis = target.sizes[min(1, len(target.sizes) - 1)]
    length = f"int({element(writer, data, [outer])})"
    scope.guards = []
    as_it_is = data.indices and scope.stray > 0
    writer.line(f"k = {length if as_it_is else f'{length} % ({axis.text} + 1)'}")
    if chance(0.3):
        _beside(writer, outer)
    top = extent(axis)
    row = writer.open(Head(pick(("range(k)", "range(k)", "range(1, k)")), below(top), top))
    if chance(0.3):
        writer.line(f"v = {pick((row.text, outer.text, '1'))}")
        writer.guarded(f"{element(writer, target, [outer, row, scope.loop()])} = v")
    inner = [over(writer, target.sizes[2])] if len(target.sizes) > 2 else []
    if not inner and chance(0.3):
        inner = [over(writer, source.sizes[-1])]
    own, value = (element(writer, array, [outer, row, *inner]) for array in (target, source))
    writer.guarded(f"{own} {pick(('=', '=', '+='))} {value} % 5 + {pick(('1', row.text, 'k'))}")
    writer.close(len(inner))
    if inner and chance(0.4):
        writer.guarded(f"{element(writer, some(writer, 1, 2, written=True), [row, outer])} = 1")
    writer.close(1)
    if chance(0.4):
        _beside(writer, outer)
    writer.close(1)


def _windows(writer: Writer) -> None:
    """Windows of a tensor, one after the other, placed by elements or by what was found before."""
    pick = writer.scope.pick
    target, source, data = some(writer, 1, 2, written=True), some(writer, 1, 2), some(writer, 1)
    outer = over(writer, data.sizes[0])
    writer.line(f"k = int({element(writer, data, [outer])}) % ({target.sizes[0].text} + 1)")
    writer.scope.guards = []
    rows: list[Whole] = []
    for axis in target.sizes:
        top, first = extent(axis), pick(("max(0, k - 1)", "max(k - 2, 0)", "max(1, k)", "0"))
        last = pick((f"min({axis.text}, k + 2)", f"min({axis.text} - 1, k + 1) + 1", axis.text))
        rows.append(writer.open(Head(f"range({first}, {last})", below(top), top)))
    own, value = element(writer, target, rows), element(writer, source, rows)
    writer.guarded(f"{own} {pick(('=', '+=', '-='))} {value} % 5 + {pick(('1', 'k', own))}")
    if writer.scope.chance(0.3):
        writer.line(f"k = {pick(('k', rows[0].text))}")
    writer.close(len(rows) + 1)


def _beside(writer: Writer, outer: Whole) -> None:
    array = some(writer, 1, 2, written=True)
    loop = over(writer, array.sizes[-1])
    places = [outer, loop] if len(array.sizes) > 1 else [loop]
    text = f"{element(writer, array, places)} {writer.scope.pick(('=', '+='))} {writer.scope.pick(('1', '2', 'k'))}"
    writer.guarded(text)
    writer.close(1)


def _literals(writer: Writer) -> None:
    """The same literal, or nearly, where elements say, which may repeat."""
    pick = writer.scope.pick
    target, data = some(writer, 1, 2, written=True), some(writer, 1)
    loop = over(writer, data.sizes[0])
    places = [_told(writer, data, loop, size) for size in target.sizes]
    writer.guarded(f"{target.name}[{', '.join(places)}] = {pick(('1', '1', '0', loop.text, 'h'))}")
    if writer.scope.chance(0.4):
        places = [_told(writer, data, loop, size) for size in target.sizes]
        writer.guarded(f"{target.name}[{', '.join(places)}] = {pick(('1', '2'))}")
    writer.close(1)


def _told(writer: Writer, data: Array, loop: Whole, size: Whole) -> str:
    spread = (0, max(data.limit - 1, 0)) if data.indices and not data.strays else _ANY
    return kept(writer.scope, Whole(f"int({element(writer, data, [loop])})", spread), size)


def _signal(writer: Writer) -> None:
    """A recurrence along one tensor, which may begin anew, with the state told on the way, and what is left of it."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, written=True), some(writer, 1)
    coupled = chance(0.3)
    writer.line(f"s = {pick(('0', '1', '2'))}")
    if coupled:
        writer.line(f"p = {pick(('0', '1', '2'))}")
    loop = over(writer, target.sizes[0], pick((0, 0, 1)), back=chance(0.15))
    value = f"{element(writer, source, [loop])} % 3"
    steps = (f"s += {value}", f"s = s * -1 + {value}", f"s = {value} - s", f"s = max(s, {value})", f"s -= {value}")
    if coupled:
        steps = (f"s, p = -p, s + {value}", f"s, p = p - s + {value}, {value}", f"s, p = {value} - p, s")
    anew = element(writer, source, [loop]) if chance(0.3) else ""
    told = f"{element(writer, target, [loop])} {pick(('=', '=', '+='))} s"
    guards, writer.scope.guards = list(dict.fromkeys(writer.scope.guards)), []
    if guards:
        writer.line(f"if {' and '.join(guards)}:")
        writer.level += 1
    if anew:
        writer.line(f"if {anew} % 4 == 1:")
        writer.level += 1
        writer.line(f"s = {pick(('0', '2'))}")
        writer.level -= 1
    for line in (pick(steps), told) if chance(0.7) else (told, pick(steps)):
        writer.line(line)
    writer.level -= bool(guards)
    writer.close(1)
