"""Writes nests as people write them: what the transforms look for, or nearly.

Searches with places, flags, products, elimination, triangles, diagonals, time steps between two tensors, histograms,
counters, flat matrices, rows with sums beside recurrences. Values stay small, so that every order of a sum gives the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from support.fuzz.scope import Array, Whole, extent, joined, kept
from support.fuzz.writer import Head, Writer, below


def pattern(writer: Writer) -> None:
    """Write one nest, and let a later statement see what it leaves behind."""
    writer.phrases.readable = list(writer.scope.arrays)
    if not any(array.written and array.sizes for array in writer.scope.arrays):
        writer.nest()
        return
    wanted = writer.scope.optional is not None and writer.scope.chance(0.3)
    (_optional if wanted else writer.scope.pick(_PATTERNS))(writer)
    writer.after([array for array in writer.scope.arrays if array.written])


# ---------------------------------------------------------------- parts of nests


def element(writer: Writer, array: Array, loops: Sequence[Whole]) -> str:
    """Return an element of a tensor, by loops in order, or anything where there are none left."""
    scope = writer.scope
    places = [
        kept(scope, loops[axis] if axis < len(loops) else scope.loop(), size) for axis, size in enumerate(array.sizes)
    ]
    return f"{array.name}[{', '.join(places) or '()'}]"


def _arrays(writer: Writer, *ranks: int, written: bool = False) -> list[Array]:
    """Return tensors of these ranks; any of one axis or more where there are none."""
    arrays = [array for array in writer.scope.arrays if array.sizes and (array.written or not written)]
    return [array for array in arrays if len(array.sizes) in ranks] or arrays


def some(writer: Writer, *ranks: int, written: bool = False) -> Array:
    return writer.scope.pick(_arrays(writer, *ranks, written=written))


def over(writer: Writer, size: Whole, low: int = 0, high: int = 0, *, back: bool = False) -> Whole:
    """Open a loop over an axis, without its first `low` and its last `high` places."""
    last = extent(size) - 1 - high
    end = size.shifted(-high).text
    text = f"range({end} - 1, {low - 1}, -1)" if back else f"range({low}, {end})" if low else f"range({end})"
    return writer.open(Head(text, (low, last) if last >= low else None, max(last - low + 1, 0)))


def _from(writer: Writer, outer: Whole, size: Whole, offset: int = 1) -> Whole:
    """Open a loop from an outer index on."""
    low = (outer.range[0] if outer.range else 0) + offset
    last = extent(size) - 1
    spread = (low, last) if outer.range and low <= last else None
    return writer.open(Head(f"range({outer.shifted(offset).text}, {size.text})", spread, max(last - low + 1, 0)))


def _until(writer: Writer, outer: Whole, offset: int = 0) -> Whole:
    """Open a loop that ends at an outer index."""
    high = outer.range[1] + offset if outer.range else 0
    return writer.open(Head(f"range({outer.shifted(offset).text})", below(high), max(high, 0)))


def _own(writer: Writer, loops: Sequence[Whole], value: str, operators: Sequence[str] = ("=", "+=")) -> None:
    array = some(writer, len(loops), written=True)
    writer.guarded(f"{element(writer, array, loops)} {writer.scope.pick(operators)} {value}")


# ---------------------------------------------------------------- searches


def _search(writer: Writer) -> None:
    """The place of an extreme, of a whole tensor or of each row."""
    pick, chance = writer.scope.pick, writer.scope.chance
    array = some(writer, 1, 2)
    order = list(range(len(array.sizes)))
    writer.scope.random.shuffle(order)
    rows = len(order) > 1 and chance(0.4)
    start = [f"s = {pick(('0', '-9', '9', '-2', '2') if writer.phrases.integers else ('0.0', '-9', '9.0', 'h'))}"]
    start += [pick(("k = -1", "k = 0", "k = t"))] if chance(0.7) else []
    loops: dict[int, Whole] = {}
    for position, axis in enumerate(order):
        if position == rows:
            for line in start:
                writer.line(line)
        loops[axis] = over(writer, array.sizes[axis], pick((0, 0, 0, 1)), back=chance(0.15))
    if chance(0.1):
        writer.leave()
    value = element(writer, array, [loops[axis] for axis in sorted(loops)])
    value = pick((value, value, f"abs({value})", f"-{value}", f"({value} * 2)", f"({value} - t)"))
    _note(writer, value, loops[order[-1]])
    if rows:
        writer.close(1)
        _own(writer, [loops[order[0]]], pick(("k", "s", "s + k")))
    writer.close(1 if rows else len(order))


def _note(writer: Writer, value: str, loop: Whole) -> None:
    """Write the comparison with the best so far."""
    pick = writer.scope.pick
    compare = pick(("<", ">", "<=", ">="))
    if not writer.scope.guards and writer.scope.chance(0.5):
        writer.line(f"v = {value}")
        value = "v"
    made = pick(("{0}", "{0}", "{0}", "abs({0})", "({0} * {0})", "(t - {0})"))
    new, best = made.format(value), made.format("s")
    test = pick((f"{new} {compare} {best}", f"{new} {compare} {best}", f"{best} {compare} {new}"))
    guards, writer.scope.guards = writer.scope.guards, []
    writer.line(f"if {' and '.join((*guards, test))}:")
    writer.line(f"    s = {value}")
    writer.line(f"    k = {pick((loop.text, loop.text, loop.text + ' + 1', writer.scope.loops[0].text))}")
    if writer.scope.chance(0.15):
        writer.line(f"    t = {pick((loop.text, '1', 's'))}")


def _flag(writer: Writer) -> None:
    """A flag that some iteration raises."""
    pick, chance = writer.scope.pick, writer.scope.chance
    writer.line(f"k = {pick(('0', 'False', '0', '2'))}")
    array = some(writer, 1, 2)
    loops = [over(writer, size) for size in array.sizes]
    if chance(0.3):
        _own(writer, loops, writer.phrases.number(1), ("=",))
    writer.scope.guardable = False
    test = f"{element(writer, array, loops)} {pick(('>', '==', '!=', '<'))} {writer.phrases.leaf()}"
    writer.scope.guardable = True
    writer.line(f"if {test}:")
    writer.line(f"    k = {pick(('1', '1', 'True', '3', 'n'))}")
    if chance(0.25):
        writer.line("    t = 2")
    if chance(0.2):
        writer.line("    break")
    writer.close(len(loops))
    writer.line(f"if k{pick(('', ' > 0', ' == 1'))}:")
    writer.line(f"    s = {pick(('s + 1', '2', 't'))}")


# ---------------------------------------------------------------- linear algebra


def _product(writer: Writer) -> None:
    """A matrix product, or something like it, with its loops in any order."""
    pick = writer.scope.pick
    target, one, other = some(writer, 2, 1, written=True), some(writer, 2), some(writer, 2, 1)
    sizes = [*target.sizes[:2], pick(one.sizes)]
    order = list(range(len(sizes)))
    writer.scope.random.shuffle(order)
    loops: dict[int, Whole] = {}
    for axis in order:
        loops[axis] = over(writer, sizes[axis])
        if axis == 0 and pick((True, False, False)) and len(order) > 1:
            writer.guarded(f"{element(writer, target, [loops[0]])} = {pick(('0', '1', 's'))}")
    own, last = [loops[axis] for axis in range(len(sizes) - 1)], loops[len(sizes) - 1]
    left, right = element(writer, one, [own[0], last]), element(writer, other, [last, own[-1]])
    value = pick((f"{left} * {right}", f"{left} * {right}", f"min({left}, {right})", f"{left} - {right}"))
    place = element(writer, target, own)
    form = pick(("{0} += {1}", "{0} += {1}", "{0} = {0} + {1}", "{0} = max({0}, {1})", "{0} -= {1}"))
    writer.guarded(form.format(place, value))
    writer.close(len(order))


def _elimination(writer: Writer) -> None:
    """Rows that are changed by the rows before them: imperfect nests in a loop that runs in order."""
    pick, chance = writer.scope.pick, writer.scope.chance
    array = some(writer, 2, written=True)
    rows, columns = array.sizes[0], array.sizes[-1]
    outer = over(writer, rows)
    if chance(0.3):
        writer.guarded(f"s = {element(writer, array, [outer, outer])}")
    if chance(0.4):
        inner = _from(writer, outer, rows)
        writer.guarded(f"{element(writer, array, [inner, outer])} {pick(('//= 2', '%= 5', '-= s', '+= k'))}")
        writer.close(1)
    row = _from(writer, outer, rows, pick((1, 1, 0)))
    if chance(0.5):
        pivot = element(writer, array, [row, outer])
        writer.guarded(f"{pivot} = ({pivot} {pick('+-*')} {element(writer, array, [outer, outer])}) // 1 % 3")
    column = _from(writer, outer, columns, pick((1, 1, 0)))
    own = element(writer, array, [row, column])
    value = f"{own} - {element(writer, array, [row, outer])} * {element(writer, array, [outer, column])}"
    writer.guarded(f"{own} = ({value}) // 1 % 5")
    writer.close(2)
    if chance(0.2):
        swap = over(writer, columns)
        one, other = element(writer, array, [outer, swap]), element(writer, array, [Whole("0", (0, 0)), swap])
        writer.guarded(f"t = {one}")
        writer.guarded(f"{one} = {other}")
        writer.guarded(f"{other} = t % 7")
        writer.close(1)
    writer.close(1)


def _triangle(writer: Writer) -> None:
    """Sums over a triangle, into a variable, an element or a column; substitution where the target is read."""
    pick, chance = writer.scope.pick, writer.scope.chance
    array, other, target = some(writer, 2), some(writer, 1, 2), some(writer, 1, 2, written=True)
    outer = over(writer, pick((array, target)).sizes[0], back=chance(0.15))
    size = array.sizes[-1]
    variable = chance(0.5)
    writer.line("s = 0" if variable or writer.phrases.integers else "s = 0.0")
    inner = _until(writer, outer, pick((0, 1))) if chance(0.6) else _from(writer, outer, size, pick((0, 1)))
    source = pick((other, other, target))
    value = f"{element(writer, array, [outer, inner])} * ({element(writer, source, [inner, outer])} % 3)"
    if variable:
        writer.guarded(f"s {pick(('+=', '-='))} {value}")
    else:
        own = pick(([outer, inner], [inner, outer], [outer, outer]))
        writer.guarded(f"{element(writer, target, own)} {pick(('+=', '-='))} {value}")
    writer.close(1)
    if variable or chance(0.3):
        writer.guarded(f"{element(writer, target, [outer, outer])} = {pick(('s % 7', 't - s % 5', 's % 3'))}")
    writer.close(1)


# ---------------------------------------------------------------- recurrences


def _diagonals(writer: Writer) -> None:
    """A table that is filled from its neighbours above and to the left."""
    pick, chance = writer.scope.pick, writer.scope.chance
    array = some(writer, 2, written=True)
    if len(array.sizes) < 2:
        _beside(writer)
        return
    rows, columns = array.sizes[:2]
    ahead = chance(0.3)
    if chance(0.3):
        border = over(writer, rows)
        writer.guarded(f"{element(writer, array, [border, Whole('0', (0, 0))])} = {border.text} % 5")
        writer.close(1)
    one, two = over(writer, rows, 1, int(ahead)), over(writer, columns, 1, int(ahead))
    steps = [(-1, 0), (0, -1), (-1, -1), (-1, 1), (0, 1), (1, 0)] if ahead else [(-1, 0), (0, -1), (-1, -1)]
    reads = [element(writer, array, [one.shifted(x), two.shifted(y)]) for x, y in steps]
    rest = writer.phrases.number(1)
    value = pick(
        (
            f"max({reads[0]}, {reads[1]}) + {rest}",
            f"min(min({reads[0]}, {reads[1]}), {reads[2]}) + 1",
            f"({' + '.join(reads)}) // 2",
            f"{reads[2]} + 1 if {rest} > 0 else max({reads[0]}, {reads[1]})",
            f"{pick(reads)} - {pick(reads)} + {rest}",
        )
    )
    own = element(writer, array, [one, two])
    writer.guarded(f"{own} = ({value}) % {pick('579')}")
    writer.close(2)


def _beside(writer: Writer) -> None:
    """Independent statements and recurrences in one loop: parts of it may run apart."""
    pick = writer.scope.pick
    first = some(writer, 1, 2, written=True)
    outer = over(writer, first.sizes[0], 1)
    for _ in range(pick((2, 2, 3))):
        array = some(writer, 1, 2, written=True)
        inner = [over(writer, size) for size in array.sizes[1:2]]
        own = element(writer, array, [outer, *inner])
        before = element(writer, pick((array, first)), [outer.shifted(-1), *inner])
        rest = writer.phrases.number(1)
        forms = (f"{own} = {rest}", f"{own} = ({before} + {rest}) % 7", f"{own} += {rest}", f"s += {rest}")
        writer.guarded(pick((*forms, f"{own} = min({before} + 1, {rest})")))
        writer.close(len(inner))
    writer.close(1)


def _through_memory(writer: Writer) -> None:
    """Elements made of those of the last iterations, along an axis, either way, and what stands around that."""
    pick, chance = writer.scope.pick, writer.scope.chance
    array, other = some(writer, 1, 2, written=True), some(writer, 1, 2, written=True)
    axis = pick(range(len(array.sizes)))
    back, loops = chance(0.3), dict[int, Whole]()
    for place in sorted(range(len(array.sizes)), key=lambda each: (each == axis) != chance(0.3)):
        along = place == axis
        loops[place] = over(writer, array.sizes[place], low=pick((1, 1, 0, 2)) if along else 0, back=along and back)
    places = [loops[each] for each in range(len(array.sizes))]
    step = 1 if back else -1
    own, *before = (
        element(writer, array, [*places[:axis], places[axis].shifted(step * late), *places[axis + 1 :]])
        for late in (0, 1, pick((2, 2, 3, -1)))
    )
    rest = writer.phrases.number(1)
    forms = ("{0} = {1} + {3}", "{0} = {3} - {1}", "{0} += {1}", "{0} = {1} - {2} + {3}", "{0} = {3} - {2}")
    writer.guarded(pick(forms * 2 + ("{0} = min({1}, {3})", "{0} = s - {1}")).format(own, *before, rest))
    if chance(0.4):
        left = pick((own, own, before[0], element(writer, array, places)))
        writer.guarded(f"{element(writer, other, places)} {pick(('=', '+='))} {left} {pick('+-')} {rest}")
    writer.close(len(array.sizes))


def _steps(writer: Writer) -> None:
    """Time steps between two tensors that change places."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target = some(writer, 1, 2, written=True)
    sizes = target.sizes[:2]
    dtype = pick(("int64", "int32") if writer.phrases.integers else ("float32", "float64"))
    shape = ", ".join(size.text for size in sizes)
    names = [f"{letter}{next(writer.numbers)}" for letter in "uv"]
    for name in names:
        writer.line(f"{name} = torch.full(({shape},), {pick('0123')}, dtype=torch.{dtype})")
    one, other = (Array(name, dtype, sizes, written=True) for name in names)
    if chance(0.7):
        loops = [over(writer, size) for size in sizes]
        writer.guarded(f"{element(writer, one, loops)} = {writer.phrases.number(1)}")
        writer.close(len(loops))
    writer.open(Head(f"range({pick(('2', '3', 'min(max(m, 0), 3)'))})", (0, 2), 3))
    time = writer.scope.loops[-1]
    loops = [over(writer, size, 1, 1) for size in sizes]
    moved = [loops[0].shifted(-1), *loops[1:]], [*loops[:-1], loops[-1].shifted(1)]
    left, right = (element(writer, one, places) for places in moved)
    writer.guarded(f"{element(writer, other, loops)} = ({left} + {right} - {element(writer, one, loops)}) % 9")
    writer.close(len(loops))
    if chance(0.2):
        writer.line(f"if {time.text} % 2 == {pick('01')}:")
        writer.line(f"    {names[0]}, {names[1]} = {names[1]}, {names[0]}")
    else:
        writer.line(f"{names[0]}, {names[1]} = {names[1]}, {names[0]}")
    writer.close(1)
    loops = [over(writer, size) for size in sizes]
    read = element(writer, pick((one, one, other)), loops)
    writer.guarded(f"{element(writer, target, loops)} {pick(('=', '+='))} {read}")
    writer.close(len(loops))


# ---------------------------------------------------------------- places from data, and flat ones


def _histogram(writer: Writer) -> None:
    """Updates of elements or rows whose places are data, of what may take long to compute."""
    pick = writer.scope.pick
    target, source, data = some(writer, 1, 2, written=True), some(writer, 1, 2), some(writer, 1)
    outer = over(writer, data.sizes[0])
    size = target.sizes[0]
    spread = (0, max(data.limit - 1, 0)) if data.indices and not data.strays else (-(2**63), 2**63 - 1)
    place = Whole(f"int({element(writer, data, [outer])})", spread)
    inner = [over(writer, target.sizes[1])] if len(target.sizes) > 1 else []
    own = f"{target.name}[{', '.join([kept(writer.scope, place, size), *(item.text for item in inner)])}]"
    if len(target.sizes) > 2:
        own = element(writer, target, [outer, *inner])
    value = pick(("1", "1", element(writer, source, [outer, *inner]), "s", writer.phrases.number(3)))
    form = pick(("{0} += {1}", "{0} += {1}", "{0} = max({0}, {1})", "{0} = {0} + {1}", "{0} -= {1}", "{0} = {1}"))
    writer.guarded(form.format(own, value))
    writer.close(1 + len(inner))


_ANY = (-(2**63), 2**63 - 1)


def _counted(writer: Writer) -> None:
    """Places that are counted on: of what is kept, or in bins that elements say."""
    pick, chance, scope = writer.scope.pick, writer.scope.chance, writer.scope
    target = some(writer, 1, written=True)
    others = [array for array in _arrays(writer, 1) if array is not target or chance(0.1)]
    bins = [array for array in others if array.written and array.dtype.startswith(("int", "uint"))]
    in_bins, array = bool(bins) and chance(0.6), pick(bins or [target])
    others = [each for each in others if not in_bins or each is not array or chance(0.1)] or [target]
    source, data = pick(others), pick(others)
    if not in_bins:
        writer.line(f"k = {pick(('0', '0', '1', '-1', 't'))}")
    loop = over(writer, data.sizes[0], pick((0, 0, 1)))
    counter = "k"
    if in_bins:
        spread = (0, max(data.limit - 1, 0)) if data.indices and not data.strays else _ANY
        where = Whole(f"int({element(writer, data, [loop])})", spread)
        counter = f"{array.name}[{', '.join(kept(scope, where, size) for size in array.sizes)}]"
    add = f"{counter} += {pick(('1', '1', '1', '2', 'n', f'int({element(writer, data, [loop])})'))}"
    place = Whole(f"int({counter})", _ANY)
    use = f"{target.name}[{', '.join(kept(scope, place, size) for size in target.sizes)}] = "
    use += element(writer, source, [loop])
    guards, scope.guards = list(scope.guards), []
    test = [*guards, *([f"{element(writer, source, [loop])} > 0"] if chance(0.5) else []), *scope.guards]
    scope.guards = []
    if test:
        writer.line(f"if {' and '.join(dict.fromkeys(test))}:")
        writer.level += 1
    for line in (add, use) if chance(0.2) else (use, add):
        writer.line(line)
    writer.level -= bool(test)
    writer.close(1)


def _flat(writer: Writer) -> None:
    """A matrix that lies in a tensor of one axis, or is walked through by one index."""
    pick = writer.scope.pick
    n, p = writer.scope.wholes[:2]
    rows, columns = pick(((n, p), (n, p), (p, n)))
    target, source = some(writer, 1, written=True), some(writer, 1, 2)
    total = Whole(f"{rows.text} * {columns.text}", joined(rows.range, columns.range, "*"))
    if writer.scope.chance(0.35):
        flat = over(writer, total)
        by, most = columns.text, max(extent(rows) - 1, 0)
        one = Whole(f"({flat.text} // {by})", (0, most) if flat.range else None)
        two = Whole(f"({flat.text} % {by})", below(extent(columns)))
        value = f"{element(writer, source, [one, two])} + {pick((one, two)).text}"
        writer.guarded(f"{element(writer, target, [flat])} {pick(('=', '+='))} {value}")
        writer.close(1)
        return
    one, two = over(writer, rows), over(writer, columns)
    product = Whole(f"{one.text} * {columns.text}", joined(one.range, columns.range, "*"))
    place = Whole(f"{product.text} + {two.text}", joined(product.range, two.range, "+"))
    own, read = element(writer, target, [place]), element(writer, source, [one, two])
    before = element(writer, target, [place.shifted(-1)])
    forms = ("{0} = {1}", "{0} += {1}", "s += {0}", "{0} = ({2} + {1}) % 5", "s = max(s, {0} - {1})")
    writer.guarded(pick(forms).format(own, read, before))
    writer.close(2)


def _packed(writer: Writer) -> None:
    """Rows of a triangle one after the other in an axis, as far as it goes; some have elements in common."""
    pick = writer.scope.pick
    target, source = some(writer, 1, written=True), some(writer, 1, 2)
    if len(target.sizes) != 1:
        writer.nest()
        return
    one = over(writer, source.sizes[0])
    two = _until(writer, one, pick((0, 1, 1, 2)))
    place = f"{one.text} * ({one.text} + 1) // {pick('2223')} + {two.text}"
    writer.line(f"if {place} < {target.sizes[0].text}:")
    writer.line(f"    {target.name}[{place}] {pick(('=', '+='))} {element(writer, source, [one, two])}")
    writer.close(2)


def _sweeps(writer: Writer) -> None:
    """Pairs along a row, as far apart as a level says, which doubles or halves; not all such pairs are apart."""
    pick, scope = writer.scope.pick, writer.scope
    array = some(writer, 2, 1, written=True)
    size, most = array.sizes[-1], max(extent(array.sizes[-1]), 1)
    loops = [over(writer, each) for each in array.sizes[:-1]]
    form = pick(("for", "up", "down"))
    writer.line({"for": f"for u in range({most.bit_length()}):", "up": "far = 1"}.get(form, f"far = {size.text} // 2"))
    if form != "for":
        writer.line(f"while far {pick(('< ' + size.text, '<= 3')) if form == 'up' else '> 0'}:")
    writer.level += 1
    if form == "for":
        writer.line("far = 1 << u")
    bits = pick((True, False))
    end, last = (size.text, most) if bits else (f"{size.text} // 2", most // 2)
    pair = writer.open(Head(f"range({end})", below(last), last))
    low = pick(
        (f"{pair.text} // far * 2 * far + {pair.text} % far",) * 3
        + (f"{pair.text} // far * far + {pair.text} % far", f"{pair.text} ^ far")
    )
    low, way = (pair.text, pick("|+^")) if bits else (low, "+")
    place, other = Whole(f"({low})", _ANY), Whole(f"({low} {way} {pick(('far', 'far', 'far', '1'))})", _ANY)
    one, two = (element(writer, array, [*loops, each]) for each in (place, other))
    asked = (f"{pair.text} & far == 0", f"not {pair.text} & far", f"{pair.text} & 2 == 0")
    guards, scope.guards = [*scope.guards, *((pick(asked),) if bits else ())], []
    if guards:
        writer.line(f"if {' and '.join(dict.fromkeys(guards))}:")
        writer.level += 1
    writer.line(f"lower, upper = {one}, {two}")
    writer.line(f"{one} = (lower + upper) % 7")
    writer.line(f"{two} = (lower {pick('-*')} upper) % 5")
    writer.level -= bool(guards)
    writer.close(1)
    if form != "for":
        writer.line(pick(("far *= 2", "far = far << 1") if form == "up" else ("far //= 2", "far = far >> 1")))
    writer.level -= 1
    writer.close(len(loops))


def _buffers(writer: Writer) -> None:
    """Rows that are read and written in turn; not all that change in a loop have two values."""
    pick = writer.scope.pick
    array = some(writer, 2, 2, written=True)
    loops = [over(writer, each) for each in array.sizes[:-2]]
    writer.line(pick(("p, q = 0, 1", "p, q = 1, 0", "p, q = 0, 0")))
    turns = pick((2, 3, 4))
    turn = writer.open(Head(f"range({turns})", (0, turns - 1), turns))
    column = over(writer, array.sizes[-1])
    row, other = Whole("p", _ANY), Whole(pick(("q", "(1 - p)", "(p ^ 1)")), _ANY)
    one, two = (element(writer, array, [*loops, each, column]) for each in (row, other))
    near = element(writer, array, [*loops, row, column.shifted(-1)])
    writer.guarded(f"{two} {pick(('=', '+='))} ({one} + {near}) % 7")
    writer.close(1)
    step = pick(("p, q = q, p", "p, q = q, p", "p = 1 - p", "p ^= 1", "q = 1 - p; p = q", "p, q = q, p + 0", "p = q"))
    writer.line(pick((step, step, step, f"if {turn.text} > 0: {step}") if ";" not in step else (step,)))
    writer.close(1 + len(loops))


def _optional(writer: Writer) -> None:
    """An argument that may be None."""
    if writer.scope.optional is None:
        _histogram(writer)
        return
    target, given = some(writer, 1, 2, written=True), writer.scope.optional
    loops = [over(writer, size) for size in target.sizes]
    own, read = element(writer, target, loops), element(writer, given, loops)
    value = writer.phrases.number(1)
    guards, writer.scope.guards = writer.scope.guards, []
    if guards:
        writer.line(f"if {' and '.join(dict.fromkeys(guards))}:")
        writer.level += 1
    if writer.scope.chance(0.5):
        writer.line(f"{own} = {value} + {read} if {given.name} is not None else {value}")
    else:
        writer.line(f"{own} = {value}")
        writer.line(f"if {given.name} is not None:")
        writer.line(f"    {own} {writer.scope.pick(('+=', '-='))} {read}")
    writer.level -= bool(guards)
    writer.close(len(loops))


# ---------------------------------------------------------------- borders, and lists of a size


def _borders(writer: Writer) -> None:
    """Conditions of an index that hold in the middle of an axis, or beyond a place that an argument says."""
    scope, pick = writer.scope, writer.scope.pick
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    loops = [over(writer, size, back=scope.chance(0.1)) for size in target.sizes]
    index, size = loops[-1], target.sizes[-1]
    step = pick((Whole("1", (1, 1)), Whole("2", (2, 2)), scope.wholes[2]))
    near = Whole(f"{index.text} - {step.text}", joined(index.range, step.range, "-"))
    far = Whole(f"{index.text} + {step.text}", joined(index.range, step.range, "+"))
    tests = (
        f"{near.text} >= 0",
        f"{index.text} > 0",
        f"{index.text} != {size.text} - 1",
        f"{far.text} < {size.text}",
        f"0 <= {near.text} < {size.text}",
        f"{index.text} == 0 or {far.text} >= {size.text}",
        f"not {loops[0].text} * 2 <= {step.text}",
        f"{loops[0].text} <= {index.text}",
    )
    own = element(writer, target, loops)
    for place in (near, far)[: 1 + scope.chance(0.4)]:
        writer.line(f"if {pick(tests)}:")
        writer.level += 1
        read = element(writer, source, [*loops[:-1], place])
        writer.guarded(f"{own} {pick(('=', '+=', '-='))} {read} % 3 + {pick(('1', index.text))}")
        writer.level -= 1
        if scope.chance(0.4):
            writer.line("else:")
            writer.line(f"    {own} {pick(('=', '+='))} {pick(('1', '2', index.text))}")
    writer.close(len(loops))


def _lists(writer: Writer) -> None:
    """A list of a size, or of one for each iteration, which makes it and steps through it again and again."""
    scope, pick = writer.scope, writer.scope.pick
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    outer = over(writer, target.sizes[0])
    grown = Whole(f"{outer.text} + 1", joined(outer.range, (1, 1), "+"))
    size = pick((*scope.wholes[:2], grown))
    writer.line(f"own = [{'0' if writer.phrases.integers else '0.0'}] * ({size.text})")
    turns = over(writer, source.sizes[0])
    item = over(writer, size)
    writer.guarded(f"own[{item.text}] = (own[{item.text}] + {element(writer, source, [turns, item])} % 3) % 7")
    writer.close(1 + scope.chance(0.5))
    item = over(writer, size)
    writer.guarded(f"{element(writer, target, [outer, item])} += own[{item.text}]")
    writer.close(len(scope.loops))


_PATTERNS: tuple[Callable[[Writer], None], ...] = (
    _search,
    _search,
    _flag,
    _product,
    _product,
    _elimination,
    _triangle,
    _triangle,
    _diagonals,
    _diagonals,
    _beside,
    _beside,
    _through_memory,
    _through_memory,
    _through_memory,
    _steps,
    _histogram,
    _counted,
    _counted,
    _flat,
    _packed,
    _sweeps,
    _buffers,
    _borders,
    _borders,
    _lists,
    _optional,
)
