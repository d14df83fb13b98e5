"""Writes nests over spaces that are spelled otherwise than by a loop for each axis, and with tensors that loops make.

    for i in range(n * p): i % p, i // p % 3        for i, j in itertools.combinations(range(n), 2)
    r = torch.tensor(keep): a list that loops fill   for i in bw.prange(n): w = torch.zeros(p)

One of them is added to one program in seven.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import comb, prod

from support.fuzz.patterns import element, over, some
from support.fuzz.scope import Whole, extent, joined
from support.fuzz.writer import ITERATIONS, Head, Writer, below


def use_spaces(writer: Writer, seed: int) -> str:
    """Write one of these nests into some programs, and return what they import; the seed's other choices stay."""
    scope = writer.scope
    own = random.Random(f"spaces {seed}")
    if own.random() > 0.14 or not any(array.written and array.sizes for array in scope.arrays):
        return ""
    scope.random = own
    writer.phrases.readable = list(scope.arrays)
    own.choice(_NESTS)(writer)
    writer.after([array for array in scope.arrays if array.written])
    return "import itertools\n"


def _number(text: str, value: int) -> Whole:
    return Whole(text, (value, value))


def _size(writer: Writer) -> Whole:
    """Return a size, an argument that is brought to one, or what is computed of such."""
    n, p, m = writer.scope.wholes[:3]
    long, wide, number = extent(n), extent(p), m.range[0] if m.range else 0
    return writer.scope.pick(
        (
            n,
            p,
            p,
            _number("a.shape[1]", wide),
            _number("(abs(m) % 4 + 1)", abs(number) % 4 + 1),
            _number("m", number) if number > 0 else n,
            _number("((n + 1) // 2)", (long + 1) // 2),
            _number("(2 * p + 1)", 2 * wide + 1),
            _number("2", 2),
            _number("3", 3),
        )
    )


def _flat(writer: Writer) -> None:
    """One loop over the product of two sizes or more, with the digits of its index."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    sizes = [_size(writer) for _ in range(pick((2, 2, 3)))]
    if prod(map(extent, sizes)) > ITERATIONS:
        sizes = [scope.wholes[0], _number("2", 2)]
    factors, first = sizes, extent(sizes[0])
    if ends_early := chance(0.25):
        factors = [_size(writer), *sizes[2:]]
        first = -(-extent(factors[0]) // max(extent(sizes[1]), 1))
    total = _number(" * ".join(size.text for size in factors), prod(map(extent, factors)))
    flat = over(writer, total)
    extents = [first, *map(extent, sizes[1:])]
    digits = [Whole(f"q{next(writer.numbers)}", below(each)) for each in extents]
    _digits(writer, flat, digits, sizes, "quotients" if ends_early else "")
    if chance(0.2):
        digits = [*digits[:-1], digits[-1].shifted(pick((-1, 1)))]
    target, source = some(writer, 1, 2, 3, written=True), some(writer, 1, 2, 3)
    where = [flat] if len(target.sizes) == 1 and chance(0.6) else digits
    own, read = element(writer, target, where), element(writer, source, [*digits, flat])
    value = pick((f"{read} % 5 + {pick(digits).text}", f"{read}", f"({read} * 2 - {pick(digits).text}) % 7"))
    if chance(0.2):
        guards, scope.guards = scope.guards, []
        test = f"{pick(digits).text} {pick(('>', '<', '!='))} {pick(('0', '1', digits[0].text))}"
        writer.line(f"if {' and '.join((*dict.fromkeys(guards), test))}:")
        writer.line(f"    {own} {pick(('=', '+='))} {value}")
    else:
        writer.guarded(f"{own} {pick(('=', '=', '+='))} {value}")
    if chance(0.3):
        writer.guarded(f"s += {element(writer, source, digits)} % 3")
    writer.close(1)


def _digits(writer: Writer, flat: Whole, digits: Sequence[Whole], sizes: Sequence[Whole], form: str = "") -> None:
    """Write what gives the digits of a flat index, the last of which goes fastest; the first may have more values."""
    form = form or writer.scope.pick(("quotients", "quotients", "steps", "divmod", "rests"))
    if form == "quotients":
        for place, (digit, size) in enumerate(zip(digits, sizes, strict=True)):
            inner = [each.text for each in sizes[place + 1 :]]
            once = f"{flat.text} // ({' * '.join(inner)})" if inner else flat.text
            again = "".join([flat.text, *(f" // {each}" for each in reversed(inner))])
            rest = f" % {size.text}" if place else ""
            writer.line(f"{digit.text} = {writer.scope.pick((once, again))}{rest}")
        return
    rest = f"q{next(writer.numbers)}"
    writer.line(f"{rest} = {flat.text}")
    for digit, size in reversed([*zip(digits, sizes, strict=True)][1:]):
        match form:
            case "steps":
                writer.line(f"{digit.text} = {rest} % {size.text}")
                writer.line(f"{rest} = {rest} // {size.text}")
            case "divmod":
                writer.line(f"{rest}, {digit.text} = divmod({rest}, {size.text})")
            case _:
                before = f"q{next(writer.numbers)}"
                writer.line(f"{before} = {rest} // {size.text}")
                writer.line(f"{digit.text} = {rest} - {before} * {size.text}")
                rest = before
    writer.line(f"{digits[0].text} = {rest}")


def _together(writer: Writer) -> None:
    """Combinations of indices, or products of ranges."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    names = [f"i{next(writer.numbers)}" for _ in range(pick((2, 2, 3)))]
    size, first = pick(scope.wholes[:2]), pick((0, 0, 1))
    last = extent(size) - 1
    if chance(0.6):
        start = f"{first}, " if first else ""
        trips = comb(max(extent(size) - first, 0), len(names))
        head = f"itertools.combinations(range({start}{size.text}), {len(names)})"
        loops = [Whole(name, (first, last) if trips else None) for name in names]
    else:
        sizes = [pick((*scope.wholes[:2], _number("2", 2))) for _ in names]
        trips = prod(map(extent, sizes))
        head = f"itertools.product({', '.join(f'range({each.text})' for each in sizes)})"
        loops = [Whole(name, below(extent(each))) for name, each in zip(names, sizes, strict=True)]
    if trips > ITERATIONS:
        writer.nest()
        return
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    around = [over(writer, target.sizes[0])] if chance(0.3) and trips * extent(target.sizes[0]) <= ITERATIONS else []
    writer.line(f"for {', '.join(names)} in {head}:")
    writer.level += 1
    scope.loops.extend(loops)
    one, other = element(writer, source, loops[:1]), element(writer, source, loops[-1:])
    match pick(("store", "sum", "least")):
        case "store":
            own = element(writer, target, [*around, *loops])
            writer.guarded(f"{own} {pick(('=', '+=', '+='))} ({one} - {other}) % 5 + {pick((*loops, *around)).text}")
        case "sum":
            writer.guarded(f"s = (s + {one} * {other}) % 7")
        case _:
            writer.guarded(f"s = {pick(('min', 'max'))}(s, {one} - {other})")
    if chance(0.15):
        writer.line(f"if {names[-1]} == {pick('12')}:")
        writer.line(f"    {pick(('break', 'continue'))}")
    writer.level -= 1
    del scope.loops[-len(loops) :]
    writer.trips = max(writer.trips, 1)
    if around:
        writer.guarded(f"{element(writer, target, around)} += s % 5")
    writer.close(len(around))


def _kept(writer: Writer) -> None:
    """A tensor of a list that loops fill, and what reads it."""
    pick, chance = writer.scope.pick, writer.scope.chance
    target, source = some(writer, 1, 2, written=True), some(writer, 1, 2)
    name, made = f"w{next(writer.numbers)}", f"r{next(writer.numbers)}"
    size = source.sizes[0]
    places = chance(0.6) or not writer.phrases.integers
    filled = name
    if chance(0.25) and len(source.sizes) == 1:
        filled, places = f"[e for e in range({size.text}) if {source.name}[e] % 3 > {pick('01')}]", True
    else:
        writer.line(f"{name} = []")
        outer = over(writer, size, back=chance(0.1))
        inner = [over(writer, source.sizes[1])] if len(source.sizes) > 1 and chance(0.4) else []
        writer.guarded(f"t = {element(writer, source, [outer, *inner])} % 5")
        writer.line(f"if t {pick(('>', '!=', '<='))} {pick('012')}:")
        writer.line(f"    {name}.append({outer.text if places else f'int(t) + {outer.text}'})")
        if chance(0.2):
            writer.line(f"    if len({name}) > {pick('246')}:")
            writer.line(f"        {pick(('break', f'{name}.pop()', f'{name}[0] = 0'))}")
        writer.close(1 + len(inner))
    writer.line(f"{made} = torch.tensor({filled}, dtype=torch.int64)")
    longest = extent(size) * max(1, *map(extent, source.sizes))
    count = pick((f"{made}.shape[0]", f"len({made})"))
    item = writer.open(Head(f"range({count})", below(longest), max(extent(size), 1)))
    most = max(extent(size) - 1, 0)
    place = Whole(f"{made}[{item.text}]", (0, most) if places else (0, most + 4))
    own = element(writer, target, [pick((item, place)), item])
    writer.guarded(f"{own} {pick(('=', '+='))} {pick((place.text, f'{element(writer, source, [place])} % 5'))}")
    writer.close(1)


def _claimed(writer: Writer) -> None:
    """Iterations that are claimed to be independent, each with a tensor of its own, and with rows of the results."""
    scope, pick, chance = writer.scope, writer.scope.pick, writer.scope.chance
    target, size = some(writer, 1, 2, written=True), pick(scope.wholes[:2])
    sources = [array for array in scope.arrays if array.sizes and array.name != target.name]
    source = pick(sources) if sources else target
    name, dtype = f"w{next(writer.numbers)}", pick(("int64", "int32") if writer.phrases.integers else ("float32",) * 2)
    rows = target.sizes[0]
    outer = writer.open(Head(f"bw.prange({rows.text})", below(extent(rows)), extent(rows)))
    two = chance(0.3)
    shape = f"{size.text}, 2" if two else size.text
    writer.line(f"{name} = torch.{pick(('zeros', 'ones'))}({shape}, dtype=torch.{dtype})")
    item = over(writer, size)
    cell = f"{name}[{item.text}, {pick(('0', '1', f'{item.text} % 2'))}]" if two else f"{name}[{item.text}]"
    writer.guarded(f"{cell} {pick(('=', '+='))} {element(writer, source, [outer, item])} % 5")
    if chance(0.3):
        writer.line(f"{cell} = {cell} * 2 - {pick(('1', item.text, outer.text))}")
    writer.close(1)
    item = over(writer, size, pick((0, 0, 1)))
    step = f"{name}[{item.text}{pick(('', '', ' - 1'))}{', 1' if two else ''}]"
    place = [outer, Whole(item.text, joined(item.range, (0, 0), "+"))]
    writer.guarded(f"{element(writer, target, place)} {pick(('=', '+='))} {step} + {pick(('1', item.text))}")
    writer.close(len(scope.loops))


_NESTS: tuple[Callable[[Writer], None], ...] = (_flat, _flat, _together, _kept, _claimed)
