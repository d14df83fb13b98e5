"""Writes nests that keep what later iterations read: scratch tensors, lists that grow, states, and stores in order.

    w = torch.zeros(p) in each iteration, or counts          x[place[i]] = ...: the last iteration's value stays
    w = []: w.append(...), w.pop(), w[-1]                   for t: w[i, j] = (w[i, j] * 2 + x[t, j]) % 5
    numbers of the host part as bounds and factors          w = x[i] * 2 % 5: w[j], sum(w), w[1:]
    for j: if i + j >= n: break                             for j: if x[j] < x[k]: k = j
    w = (w * 2 + x[t]) % 5: rows that change

One of them is added to one program in five.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from support.fuzz.patterns import element, over, some
from support.fuzz.scope import Whole, extent, kept
from support.fuzz.writer import ITERATIONS, Head, Writer, below


def keep_values(writer: Writer, seed: int) -> None:
    """Write one of these nests into some programs; the seed's other choices stay as they are."""
    scope = writer.scope
    own = random.Random(f"kept {seed}")
    if own.random() > 0.2 or not any(array.written and array.sizes for array in scope.arrays):
        return
    scope.random = own
    writer.phrases.readable = list(scope.arrays)
    own.choice(_NESTS)(writer)
    writer.after([array for array in scope.arrays if array.written])


def _dtype(writer: Writer) -> str:
    return writer.scope.pick(("int64", "int32") if writer.phrases.integers else ("float32", "float64"))


def _scratch(writer: Writer) -> None:
    """A tensor that each iteration makes, fills, changes in order and reads."""
    scope, pick = writer.scope, writer.scope.pick
    target, source, size = some(writer, 1, 2, written=True), some(writer, 1, 2), pick(scope.wholes[:2])
    name = f"w{next(writer.numbers)}"
    outer = over(writer, target.sizes[0])
    # A loop that is cut short does not fill it, and what is left of an empty one is anything.
    made = ("zeros", "empty", "ones") if writer.trips * extent(size) <= ITERATIONS else ("zeros", "ones")
    writer.line(f"{name} = torch.{pick(made)}({size.text}, dtype=torch.{_dtype(writer)})")
    item = over(writer, size)
    writer.guarded(f"{name}[{item.text}] = {pick(('2', item.text))}")
    writer.guarded(f"{name}[{item.text}] = {element(writer, source, [outer, item])} % 5")
    writer.close(1)
    if scope.chance(0.5):
        writer.open(Head("range(2)", (0, 1), 2))
        item = over(writer, size, 1)
        writer.line(f"{name}[{item.text}] = ({name}[{item.text}] + {name}[{item.text} - 1]) % 7")
        writer.close(2)
    item = over(writer, size)
    writer.guarded(f"{element(writer, target, [outer, item])} {pick(('=', '+='))} {name}[{item.text}]")
    writer.close(len(scope.loops))


def _counted(writer: Writer) -> None:
    """A tensor that each iteration makes, adds to where elements say, and reads."""
    scope, pick = writer.scope, writer.scope.pick
    target, source, size = some(writer, 1, 2, written=True), some(writer, 1, 2), pick(scope.wholes[:2])
    name = f"w{next(writer.numbers)}"
    outer = over(writer, target.sizes[0])
    writer.line(f"{name} = torch.{pick(('zeros', 'ones'))}({size.text}, dtype=torch.{_dtype(writer)})")
    item = over(writer, source.sizes[0], back=scope.chance(0.2))
    if scope.chance(0.3):
        test = f"{element(writer, source, [item, outer])} > {pick('12')}"
        guards, scope.guards = scope.guards, []
        writer.line(f"if {' and '.join((*dict.fromkeys(guards), test))}:")
        writer.line(f"    {pick(('break', 'continue'))}")
    writer.guarded(
        f"{name}[int({element(writer, source, [item, outer])}) % max({size.text}, 1)] += {pick(('1', '2', item.text))}"
    )
    writer.close(1)
    item = over(writer, size)
    writer.guarded(f"{element(writer, target, [outer, item])} {pick(('=', '+='))} {name}[{item.text}]")
    writer.close(len(scope.loops))


def _grown(writer: Writer) -> None:
    """A list that each iteration fills as far as elements say, and takes from."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    name = f"w{next(writer.numbers)}"
    outer = over(writer, target.sizes[0])
    writer.line(f"{name} = {pick(('[]', '[s]', '[s, t]'))}")
    item = over(writer, source.sizes[0])
    value = f"{element(writer, source, [item, outer])} % 5"
    writer.guarded(f"t = {value}")
    if chance(0.6):
        writer.line(f"if t {pick(('>', '!=', '<='))} {pick('012')}:")
        writer.line(f"    {name}.append(t)")
    else:
        writer.line(f"{name}.append({pick(('t', 't + 1', item.text))})")
    if chance(0.5):
        writer.line(f"if len({name}) > {pick('123')}:")
        writer.line(f"    s = ({name}.pop() + s) % 7")
    writer.close(1)
    match pick(("while", "for", "ends")):
        case "while":
            writer.line(f"while len({name}) > 0:")
            writer.line(f"    s = (s * 2 + {name}.pop()) % 7")
        case "for":
            writer.line(f"for e in {name}:")
            writer.line("    s = (s + e * 3) % 7")
        case _:
            writer.line(f"if len({name}) > 1:")
            writer.line(f"    s = ({name}[-1] - {name}[0]) % 7")
    writer.guarded(f"{element(writer, target, [outer, outer])} {pick(('=', '+='))} len({name}) + s % 7")
    writer.close(1)


def _states(writer: Writer) -> None:
    """Rows of states that steps in time change, in loops around the time or inside of it."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target, source = some(writer, 2, 1, written=True), some(writer, 2, 1)
    rows, columns = pick(scope.wholes[:2]), pick(scope.wholes[:2])
    name, dtype = f"w{next(writer.numbers)}", _dtype(writer)
    around = chance(0.4)
    if around:
        row = over(writer, rows)
        writer.line(f"{name} = torch.zeros({columns.text}, dtype=torch.{dtype})")
        time = over(writer, source.sizes[0])
    else:
        writer.line(f"{name} = torch.zeros({rows.text}, {columns.text}, dtype=torch.{dtype})")
        time = over(writer, source.sizes[0])
        row = over(writer, rows)
    writer.line("s = 0" if writer.phrases.integers else "s = 0.0")
    column = over(writer, columns)
    state = f"{name}[{column.text}]" if around else f"{name}[{row.text}, {column.text}]"
    read = element(writer, source, [time, pick((column, row))])
    writer.guarded(f"{state} = ({state} * 2 + {read} - {pick(('1', time.text, 's'))}) % 5")
    writer.line(f"s += {state} * {pick(('1', '2', column.text))}")
    writer.close(1)
    writer.guarded(f"{element(writer, target, [pick((time, row)), pick((row, time))])} {pick(('=', '+='))} s % 7")
    writer.close(len(scope.loops))


def _scattered(writer: Writer) -> None:
    """Stores where elements say: the value of the last iteration stays."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target, source, data = some(writer, 1, 2, written=True), some(writer, 1, 2), some(writer, 1)
    outer = over(writer, data.sizes[0], back=chance(0.2))
    spread = (0, max(data.limit - 1, 0)) if data.indices and not data.strays else (-(2**63), 2**63 - 1)
    place = Whole(f"int({element(writer, data, [outer])})", spread)
    own = kept(scope, place, target.sizes[0])
    guards, scope.guards = scope.guards, []
    if chance(0.3):
        guards = [*guards, f"{outer.text} % 3 != {pick('012')}"]
    if guards:
        writer.line(f"if {' and '.join(dict.fromkeys(guards))}:")
        writer.level += 1
    inner = [over(writer, size) for size in target.sizes[1:]]
    where = f"{target.name}[{', '.join([own, *(item.text for item in inner)])}]"
    value = pick((outer.text, f"{element(writer, source, [outer, *inner])} % 7 + {outer.text}", "2"))
    writer.guarded(f"{where} = {value}")
    if chance(0.3):
        writer.guarded(f"s += {where}" if chance(0.5) else f"{where} = {pick(('s', '1'))}")
    writer.close(len(inner))
    writer.level -= bool(guards)
    writer.close(1)


def _host_numbers(writer: Writer) -> None:
    """Numbers that the host part computes of sizes and arguments, as bounds, offsets and factors."""
    scope, pick = writer.scope, writer.scope.pick
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    count, factor = (f"q{next(writer.numbers)}_" for _ in range(2))
    size = target.sizes[0]
    writer.line(f"{count} = {pick(('n // 2 + 1', 'max(n, p)', 'abs(m) % 5', 'n - p', 'min(n, p) * 2 - 1', 'int(h)'))}")
    writer.line(f"{factor} = {pick(('m % 3', 'n % 4', 'int(flag) + 1', '-(n // 3)', 'int(h * 2)'))}")
    if scope.chance(0.4):
        writer.line(f"if {pick(('n > p', 'flag', 'm > 2', f'{count} > {factor}'))}:")
        writer.line(f"    {factor} = {pick(('3', f'{factor} + 1', 'p % 3'))}")
    head = pick((f"range(min({count}, {size.text}))", f"range({size.text} - 1, max({count}, 0) - 1, -1)"))
    outer = writer.open(Head(head, below(extent(size)), extent(size)))
    inner = [over(writer, size) for size in target.sizes[1:2]]
    read = element(writer, source, [outer, *inner])
    value = pick((f"{read} * {factor} % 7", f"{factor}", f"{read} + {factor} * {outer.text} % 5"))
    writer.guarded(f"{element(writer, target, [outer, *inner])} {pick(('=', '+='))} {value}")
    writer.close(1 + len(inner))


def _rows(writer: Writer) -> None:
    """Rows that are computed and get names, their items, parts and sums."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target = some(writer, 1, 2, written=True)
    sources = [array for array in scope.arrays if len(array.sizes) == 2 and not array.indices]
    source, name = pick(sources or scope.arrays), f"w{next(writer.numbers)}"
    if len(source.sizes) != 2:
        return
    outer, size = over(writer, source.sizes[0]), source.sizes[1]
    writer.line(f"{name} = {source.name}[{outer.text}] % 5 {pick(('+', '-', '*'))} {pick(('1', '2', outer.text))}")
    if chance(0.4):
        writer.line(f"{name} {pick(('+=', '*='))} {pick((f'{source.name}[{outer.text}] % 3', '2'))}")
    if chance(0.4):
        value = pick((f"sum({name})", f"sum({name}[1:])", f"{name}[:2].sum()", f"({name} * {name}).sum()"))
        writer.line(f"s = (s + {value} % 7) % 7")
    item = over(writer, size)
    writer.line(f"s = (s * 2 + {name}[{pick((item.text, f'{item.text} - {size.text}'))}]) % 7")
    writer.line(f"t = (t + len({name}) + {name}.shape[0]) % 5")
    writer.close(2)
    inner = [over(writer, each) for each in target.sizes]
    writer.guarded(f"{element(writer, target, inner)} {pick(('=', '+='))} s % 7 + t")
    writer.close(len(inner))


def _row_states(writer: Writer) -> None:
    """Rows that steps in time change: all items at once, with names for those of the step before."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target = some(writer, 1, 2, written=True)
    sources = [array for array in scope.arrays if len(array.sizes) == 2 and not array.indices]
    source, name = pick(sources or scope.arrays), f"w{next(writer.numbers)}"
    if len(source.sizes) != 2:
        return
    size = source.sizes[1]
    kind = pick(("zeros", "ones"))
    writer.line(f"{name} = torch.{kind}({source.name}.shape[1], dtype=torch.{_dtype(writer)})")
    time = over(writer, source.sizes[0])
    row = f"{source.name}[{time.text}]"
    keeps = chance(0.3)
    if keeps:
        writer.line(f"{name}b = {name}")
    step = pick(("1", "2", time.text, f"{name}.sum()", f"{row}[:1].sum()"))
    if chance(0.3):
        writer.line(f"if {time.text} % 2 == {pick('01')}:")
        writer.line(f"    {name} = {row} % {pick('34')}")
    writer.line(f"{name} = ({name} * {pick('23')} {pick('+-')} {row} % 3 - {step}) % 5")
    if keeps:
        writer.line(f"{name} = ({name} + {name}b) % 7")
    if chance(0.3):
        writer.line(f"{name} = ({name} + {name}.{pick(('amax', 'sum'))}(0, keepdim=True)) % 7")
    item = over(writer, size)
    writer.line(f"s = (s * 2 + {name}[{item.text}]) % 7")
    writer.close(2)
    inner = [over(writer, each) for each in target.sizes]
    writer.guarded(f"{element(writer, target, inner)} {pick(('=', '+='))} s % 7")
    writer.close(len(inner))


def _ended(writer: Writer) -> None:
    """Loops that begin by leaving at some index, counts of short integers, and places of extremes without these."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target, source, name = some(writer, 1, 2, written=True), some(writer, 1, 2), f"w{next(writer.numbers)}"
    size, dtype = target.sizes[0], pick(("int8", "int16", "int32", "uint8"))
    writer.line(f"{name} = torch.full(({size.text},), {pick(('0', '3', '120'))}, dtype=torch.{dtype})")
    outer = over(writer, size)
    writer.line("k = 0")
    along = source.sizes[-1]
    item = over(writer, along, pick((0, 0, 1)))
    writer.line(f"t = {pick(('', '2 * '))}{item.text} {pick('+-')} {outer.text}")
    for _ in range(pick((0, 1, 1, 2))):
        end = pick((f"t >= {size.text}", f"{size.text} - {item.text} < {pick('123')}", f"t > 3 or {item.text} >= n"))
        writer.line(f"if {pick((end, end, f't < {item.text}', f'{outer.text} > 1'))}:")
        writer.line("    break")
    value = element(writer, source, [outer, item] if len(source.sizes) > 1 else [item])
    if chance(0.7):
        place = Whole("k", (0, max(extent(along) - 1, 0)))
        kept_at = element(writer, source, [outer, place] if len(source.sizes) > 1 else [place])
        test = pick((f"{value} {pick(('<', '>', '<=', '>='))} {kept_at}", f"{kept_at} < {value}"))
        guards, scope.guards = scope.guards, []
        writer.line(f"if {' and '.join((*dict.fromkeys(guards), test))}:")
        writer.line(f"    k = {item.text}")
    writer.guarded(f"{name}[{outer.text}] {pick(('+=', '+=', '-=', '*='))} {pick(('1', '2', f'int({value}) % 5'))}")
    writer.close(1)
    writer.guarded(f"{element(writer, target, [outer, outer])} {pick(('=', '+='))} k + {name}[{outer.text}]")
    writer.close(1)


_NESTS: tuple[Callable[[Writer], None], ...] = (
    *(_scratch, _counted, _grown, _states, _scattered, _host_numbers, _rows, _row_states, _ended),
)
