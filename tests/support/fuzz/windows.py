"""Writes nests over neighbourhoods: of places, of a step's own row, of pairs of elements, and of rows that loops make.

    top = min(max(i - 3, 0), n - 7): x[top + w]      for k: for i: for j: d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    h[bins(a[i] - a[j])] += 1                        r = torch.zeros(p); w = torch.cat([r, x[i]])

One of them is added to one program in six.
"""

from __future__ import annotations

import random

from support.fuzz.patterns import element, over, some
from support.fuzz.row_functions import UNORDERED
from support.fuzz.scope import Whole, extent, kept
from support.fuzz.writer import Head, Writer, below

SHARE = 0.16
"""How many programs have one."""
_ANY = (-(2**63), 2**63 - 1)


def use_windows(writer: Writer, seed: int) -> None:
    """Write one of these nests into some programs; the seed's other choices stay as they are."""
    scope, own = writer.scope, random.Random(f"windows {seed}")
    if own.random() > SHARE or not any(array.written and array.sizes for array in scope.arrays):
        return
    before, scope.random = scope.random, own
    writer.phrases.readable = list(scope.arrays)
    scope.pick((_windows, _windows, _windows, _in_place, _in_place, _pairs, _pairs, _made, _made))(writer)
    writer.after([array for array in scope.arrays if array.written])
    scope.random = before


def _windows(writer: Writer) -> None:
    """Windows whose starts are kept inside of borders, gathered from or added into."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    if chance(0.5):
        target, source = source, target
    scatters = target.written and (not source.written or chance(0.5))
    if not target.written:
        target, source, scatters = source, target, False
    wide, narrow = (target, source) if scatters else (source, target)
    count, step, gap = pick((1, 2, 3, 5)), pick((1, 1, 1, 2)), pick((1, 1, 1, 2))
    axes = wide.sizes[: len(narrow.sizes)]
    loops = [over(writer, size) for size in narrow.sizes]
    starts: list[Whole] = []
    for loop, axis in zip(loops, axes, strict=False):
        name, spread = f"q{next(writer.numbers)}", (count - 1) * gap
        begin = f"{loop.text if step == 1 else f'{step} * {loop.text}'} - {pick((str(spread // 2), '1', '0', '2'))}"
        last = f"{axis.text} - {spread + 1}"
        form = pick(("min(max({0}, 0), {1})", "min(max({0}, 0), {1})", "max(min({0}, {1}), 0)", "max({0}, 0)"))
        writer.line(f"{name} = {form.format(begin, last)}")
        most = extent(axis) - spread - 1
        starts.append(
            Whole(name, (min(most, 0), max(most, 0)) if form != "max({0}, 0)" else (0, 2 * extent(axis) + 99))
        )
    sums = not scatters and chance(0.6)
    if sums:
        writer.line("s = 0")
    taps = [writer.open(Head(f"range({count})", below(count), count)) for _ in starts]
    places = [
        kept(writer.scope, Whole(f"{start.text} + {_times(tap, gap)}", _plus(start, (count - 1) * gap)), axis)
        for start, tap, axis in zip(starts, taps, axes, strict=True)
    ]
    rest = [over(writer, size) for size in wide.sizes[len(places) :]] if scatters else []
    places += [item.text for item in rest]
    places += [kept(writer.scope, loops[-1], size) for size in wide.sizes[len(places) :]]
    own, other = f"{wide.name}[{', '.join(places)}]", f"{narrow.name}[{', '.join(loop.text for loop in loops)}]"
    if scatters:
        weight = pick(("1", f"{taps[0].text}", f"({other} % 3)"))
        writer.guarded(f"{own} {pick(('+=', '+=', '+=', '=', '-='))} {other} % 5 * {weight}")
    elif sums:
        writer.guarded(f"s += {own} % 5 * ({taps[-1].text} + {pick('12')})")
    else:
        writer.guarded(f"{other} {pick(('+=', '=', '+='))} {own} % 7")
    writer.close(len(taps) + len(rest))
    if sums:
        writer.line(f"{other} {pick(('=', '+='))} s % 11")
    writer.close(len(loops))


def _times(tap: Whole, gap: int) -> str:
    return tap.text if gap == 1 else f"{gap} * {tap.text}"


def _plus(start: Whole, most: int) -> tuple[int, int]:
    low, high = start.range or (0, 0)
    return low, high + most


def _in_place(writer: Writer) -> None:
    """Steps in order over a square of a tensor, which read the row and the column of their own step."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target = some(writer, 2, written=True)
    if len(target.sizes) != 2:
        _pairs(writer)
        return
    rows, columns = target.sizes
    name = f"q{next(writer.numbers)}"
    writer.line(f"{name} = min({rows.text}, {columns.text})")
    least = min(extent(rows), extent(columns))
    size = Whole(name, (least, least))
    step = over(writer, size, back=chance(0.1))
    loops = [over(writer, pick((size, rows))), over(writer, pick((size, columns)))]
    i, j, k = (loop.text for loop in (*loops, step))
    if chance(0.3):
        loops.reverse()
    x = target.name
    other = {"row": f"{x}[{k}, {j}]", "column": f"{x}[{i}, {k}]", "corner": f"{x}[{k}, {k}]"}
    if chance(0.25):
        writer.line(f"if {pick((f'{i} != {k}', f'{j} != {k}', f'{i} > {k}', f'{i} != {k} and {j} != {k}'))}:")
        writer.level += 1
        inner = 1
    else:
        inner = 0
    # A column of the step is as it was only if the step's own row leaves it: both kinds are drawn.
    value = pick(
        (
            f"min({x}[{i}, {j}], {other['column']} + {other['row']})",
            f"min({x}[{i}, {j}], {other['column']} + {other['row']})",
            f"max({x}[{i}, {j}], min({other['column']}, {other['row']}))",
            f"({x}[{i}, {j}] * 2 - {other['row']}) % 7",
            f"({x}[{i}, {j}] - {other['column']} * {other['row']}) % 5",
            f"({x}[{i}, {j}] + {other['row']} - {other['corner']}) % 7",
        )
    )
    writer.line(f"{x}[{i}, {j}] = {value}")
    writer.level -= inner
    writer.close(3)


def _pairs(writer: Writer) -> None:
    """Histograms of pairs of elements, or of those near one another, by what the two are."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, data = some(writer, 1, 2, written=True), some(writer, 1, 2)
    axis = data.sizes[0]
    one = over(writer, axis)
    if chance(0.5):
        low, last = pick((0, 1)), extent(axis) - 1
        first = one.shifted(low).text
        spread = (low, last) if last >= low else None
        two = writer.open(Head(f"range({first}, {axis.text})", spread, max(last + 1, 0)))
    else:
        two = over(writer, axis)
    left, right = element(writer, data, [one]), element(writer, data, [two])
    if chance(0.3):
        writer.line(f"if {pick((f'{one.text} != {two.text}', f'{left} > {right}', f'{two.text} - {one.text} < 3'))}:")
        writer.level += 1
        inner = 1
    else:
        inner = 0
    place = pick((f"int({left} - {right})", f"int({left}) + int({right})", f"abs({one.text} - {two.text})"))
    bins = [kept(writer.scope, Whole(place, _ANY), target.sizes[0])]
    bins += [kept(writer.scope, Whole(f"int({left})", _ANY), size) for size in target.sizes[1:]]
    value = pick(("1", "1", f"{right} % 3", f"({left} - {right}) % 3"))
    form = pick(("{0} += {1}", "{0} += {1}", "{0} -= {1}", "{0} = max({0}, {1})"))
    writer.guarded(form.format(f"{target.name}[{', '.join(bins)}]", value))
    writer.level -= inner
    writer.close(2)


def _made(writer: Writer) -> None:
    """Rows that a loop makes, fills and puts together."""
    scope = writer.scope
    pick, chance = scope.pick, scope.chance
    sources = [
        each for each in scope.arrays if len(each.sizes) == 2 and each.dtype not in UNORDERED and not each.written
    ]
    if not sources:
        _windows(writer)
        return
    source, target = pick(sources), some(writer, 1, 2, written=True)
    rows, size = source.sizes
    outer = over(writer, rows)
    row, name = f"{source.name}[{outer.text}]", f"w{next(writer.numbers)}"
    writer.line(f"{name} = {_first_row(writer, row, size)}")
    if chance(0.5):
        item = over(writer, Whole(f"{name}.shape[0]", size.range))
        value = pick((f"{row}[{item.text}] % 5", item.text, f"{name}[{item.text}] * 2 % 7"))
        forms = ("{0}[{1}] = {2}", "{0}[{1}] += {2}", "{0}[-1 - {1}] = {2}")
        writer.line(pick(forms).format(name, item.text, value))
        writer.close(1)
    before, name = name, f"w{next(writer.numbers)}"
    joined = (
        *("torch.cat([{0}, {1}])", "torch.cat(({1}, {0} * 2))", "torch.stack([{0}, {0} % 3])[1]", "{0}.float()"),
        *("torch.chunk({0}, 2)[0]", "{0}[:, None][:, 0]", "torch.stack(({1}, {0}))[-1]", "{0} * 2 - 1"),
    )
    writer.line(f"{name} = {pick(joined).format(before, f'{row} % 3')}")
    item = over(writer, Whole(f"{name}.shape[0]", size.range))
    writer.guarded(f"{element(writer, target, [outer, item])} {pick(('=', '+='))} {name}[{item.text}] % 7")
    writer.close(2)


def _first_row(writer: Writer, row: str, size: Whole) -> str:
    """Return a row that a loop makes: a new one, or one of a row, with its length."""
    dtype = "int64" if writer.phrases.integers else "float64"
    return writer.scope.pick(
        (
            f"torch.zeros({size.text}, dtype=torch.{dtype})",
            f"torch.ones({size.text}, dtype=torch.{dtype})",
            f"torch.zeros_like({row})",
            f"{row}.clone()",
            f"{row} % 5",
            f"torch.full(({size.text},), 2, dtype=torch.{dtype})",
        )
    )
