"""Nests as people write them whose gradients need what a loop leaves behind: softmax, recurrences, sums, extremes.

Each is written into the program of a `smooth.SmoothWriter`, over tensors and sizes that the program has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.fuzz.scope import Array, Whole, extent

if TYPE_CHECKING:
    from support.fuzz.smooth import SmoothWriter


def smooth_pattern(writer: SmoothWriter) -> None:
    """Write one pattern; any nest where the program has no tensors for it."""
    planes = [array for array in writer.usable(writer.floats) if len(array.sizes) == 2]
    if not planes or not writer.usable(writer.written):
        writer.nest()
        return
    source = writer.scope.pick(planes)
    writer.scope.guardable = False
    patterns = (_softmax, _online, _recurrence, _scores, _causal, _overwritten, _means, _extremes)
    patterns += (_states, _scratch, _scattered, _sweeps, _buffers, _flat, _flat, _pairs)
    writer.scope.pick(patterns)(writer, source)
    writer.scope.guardable = True


def _softmax(writer: SmoothWriter, source: Array) -> None:
    i, j = writer.name(), writer.name()
    top, total = writer.name(), writer.name()
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{top} = {source.name}[{i}, 0]")
        with writer.loop(j, source.sizes[1], 1):
            writer.line(f"{top} = max({top}, {source.name}[{i}, {j}])")
        writer.line(f"{total} = 0.0")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{total} += math.exp({source.name}[{i}, {j}] - {top})")
        with writer.loop(j, source.sizes[1]):
            writer.add(f"math.exp({source.name}[{i}, {j}] - {top}) / {total}")


def _online(writer: SmoothWriter, source: Array) -> None:
    """A sum that is scaled anew whenever a larger exponent turns up, kept in a local list."""
    i, j, d = writer.name(), writer.name(), writer.name()
    kept, top, total, now, scale = (writer.name() for _ in range(5))
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{kept} = [0.0] * 2")
        writer.line(f"{top}, {total} = -3.0, 0.0")
        with writer.loop(j, source.sizes[1]):
            score = f"{source.name}[{i}, {j}] * {writer.element()}"
            writer.line(f"{now} = max({top}, {score})")
            writer.line(f"{scale} = math.exp({top} - {now})")
            writer.line(f"{total} = {total} * {scale} + math.exp({score} - {now})")
            with writer.loop(d, Whole("2", (2, 2))):
                value = f"math.exp({score} - {now}) * {writer.element()}"
                writer.line(f"{kept}[{d}] = {kept}[{d}] * {scale} + {value}")
            writer.line(f"{top} = {now}")
        writer.add(f"{kept}[0] / {total} - {kept}[1] * {total}")


def _recurrence(writer: SmoothWriter, source: Array) -> None:
    """A state of two numbers that each step makes anew."""
    i, j, one, two = (writer.name() for _ in range(4))
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{one}, {two} = {writer.element()}, 1.0")
        with writer.loop(j, source.sizes[1], backwards=writer.scope.chance(0.4)):
            writer.line(f"{one} = math.tanh({one} + {source.name}[{i}, {j}]) * {two}")
            writer.line(f"{two} = 0.5 * {two} + math.sin({one}) * {writer.element()}")
            writer.add(f"{one} * {two}")


def _scores(writer: SmoothWriter, source: Array) -> None:
    """Attention over what came before, whose scores are kept in a tensor."""
    t, u, total, scores = (writer.name() for _ in range(4))
    rows = source.sizes[0]
    square = writer.scope.chance(0.5)
    shape = (rows, rows) if square else (rows,)
    writer.made.append(f"{scores} = torch.zeros({', '.join(size.text for size in shape)}, dtype=torch.float64)")
    place = f"{scores}[{t}, {u}]" if square else f"{scores}[{u}]"
    with writer.loop(t, rows):
        writer.line(f"{total} = 0.0")
        with writer.triangle(u, t, rows):
            writer.line(f"{place} = math.exp(0.5 * math.sin({source.name}[{t}, 0] * {source.name}[{u}, -1]))")
            writer.line(f"{total} += {place}")
        with writer.triangle(u, t, rows):
            writer.add(f"{place} / {total} * {source.name}[{u}, 0]")


def _causal(writer: SmoothWriter, source: Array) -> None:
    t, u, total = (writer.name() for _ in range(3))
    size = source.sizes[0]
    with writer.loop(t, size):
        writer.line(f"{total} = {writer.scope.pick(('0.0', 'h'))}")
        with writer.triangle(u, t, size):
            writer.line(f"{total} += {source.name}[{t} - {u}, 0] * {writer.element()}")
        writer.add(writer.scope.pick((total, f"math.sin({total})", f"max({total}, 0.1)")))


def _overwritten(writer: SmoothWriter, source: Array) -> None:
    """Elements that are read, replaced and read again."""
    i, j, before = (writer.name() for _ in range(3))
    written = [array for array in writer.usable(writer.written) if len(array.sizes) == 2] or [source]
    array = writer.scope.pick(written)
    place = f"{array.name}[{i}, {j}]" if array.written else None
    with writer.loop(i, array.sizes[0]), writer.loop(j, array.sizes[1]):
        if place is None:
            writer.add(f"{source.name}[{i}, {j}] * {writer.element()}")
            return
        writer.line(f"{before} = {place}")
        writer.line(f"{place} = math.sin({before}) * {writer.element()}")
        writer.line(f"{place} = {place} * {place} + {before}")
        writer.add(f"{before} * {place}")


def _means(writer: SmoothWriter, source: Array) -> None:
    """Rows from which the mean is taken and that are divided by their length."""
    i, j, mean, square = (writer.name() for _ in range(4))
    count = max(extent(source.sizes[1]), 1)
    read = f"{source.name}[{i}, {j}]"
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{mean}, {square} = 0.0, 0.0")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{mean} += {read} / {count}")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{square} += ({read} - {mean}) ** 2")
        with writer.loop(j, source.sizes[1]):
            writer.add(f"({read} - {mean}) / math.sqrt({square} + 0.75)")


def _extremes(writer: SmoothWriter, source: Array) -> None:
    """Least or greatest values of groups of rows, of which one may be left out."""
    i, j, kept = (writer.name() for _ in range(3))
    pick, columns = writer.scope.pick, max(extent(source.sizes[1]), 1)
    start, compare = pick((("-0.5", ">"), ("-0.5", ">="), ("0.5", "<"), ("0.5", "<=")))
    writer.made.append(f"{kept} = torch.full((3, {columns}), {start}, dtype=torch.float64)")
    place = f"{kept}[{pick((f'{i} % 3', f'({i} * 5 + {j}) % 2', f'{i} // 2 % 3 - 1'))}, {pick((j, '0'))}]"
    value = pick((f"{source.name}[{i}, {j}]", f"2.0 * {source.name}[{i}, {j}]", f"-{source.name}[{i}, {j}]"))
    whole = pick((True, False))
    with writer.loop(i, source.sizes[0]), writer.loop(j, source.sizes[1]):
        if whole:
            writer.line(f"{place} = {'max' if start < '0' else 'min'}({place}, {value})")
        else:
            writer.line(f"if {value} {compare} {place}:")
            writer.line(f"    {place} = {value}")
        if pick((True, False)):
            writer.add(f"{value} * {writer.element()}")
    with writer.loop(i, Whole("3", (3, 3))), writer.loop(j, Whole(str(columns), (columns, columns))):
        writer.add(f"{kept}[{i}, {j}] * {kept}[{i}, {j}]")


def _states(writer: SmoothWriter, source: Array) -> None:
    """Rows of states that steps in time change, with a sum over each row."""
    t, i, j, state, total = (writer.name() for _ in range(5))
    rows, columns = writer.scope.pick((("n", "p"), ("p", "n"), ("p", "p")))
    sizes = {size.text: size for size in writer.scope.wholes}
    writer.made.append(f"{state} = torch.zeros({rows}, {columns}, dtype=torch.float64)")
    with writer.loop(t, source.sizes[0]), writer.loop(i, sizes[rows]):
        writer.line(f"{total} = 0.0")
        with writer.loop(j, sizes[columns]):
            place = f"{state}[{i}, {j}]"
            writer.line(f"{place} = 0.5 * {place} + math.sin({source.name}[{t}, -1]) * {writer.element()}")
            writer.line(f"{total} += {place} * {source.name}[{t}, 0]")
        writer.add(total)


def _scratch(writer: SmoothWriter, source: Array) -> None:
    """A tensor that each iteration makes, fills, changes in order and reads."""
    i, j, kept = (writer.name() for _ in range(3))
    size = source.sizes[1]
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{kept} = torch.zeros({size.text}, dtype=torch.float64)")
        with writer.loop(j, size):
            writer.line(f"{kept}[{j}] = math.sin({source.name}[{i}, {j}]) * {writer.element()}")
        with writer.loop(j, size, 1):
            writer.line(f"{kept}[{j}] = {kept}[{j}] + 0.5 * {kept}[{j} - 1] * {kept}[{j}]")
        with writer.loop(j, size):
            writer.add(f"{kept}[{j}] * {source.name}[{i}, {j}]")


def _scattered(writer: SmoothWriter, source: Array) -> None:
    """Stores at places that iterations share: what the last one stores stays."""
    i, j, kept, place = (writer.name() for _ in range(4))
    pick, columns = writer.scope.pick, max(extent(source.sizes[1]), 1)
    writer.made.append(f"{kept} = torch.zeros(3, {columns}, dtype=torch.float64)")
    tables = [array for array in writer.scope.arrays if array.indices and array.sizes[0] == source.sizes[0]]
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{place} = {f'{tables[0].name}[{i}] % 3' if tables else pick((f'{i} % 3', f'{i} * 5 % 3'))}")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{kept}[{place}, {j}] = {source.name}[{i}, {j}] * {writer.element()}")
            if pick((True, False)):
                writer.add(f"{kept}[{place}, {j}] * {source.name}[{i}, {j}]")
    with writer.loop(i, Whole("3", (3, 3))), writer.loop(j, Whole(str(columns), (columns, columns))):
        writer.add(f"{kept}[{i}, {j}] * {kept}[{i}, {j}]")


def _flat(writer: SmoothWriter, source: Array) -> None:
    """One loop over all elements, or over as many planes of them, with the digits of its index."""
    flat, row, column = (writer.name() for _ in range(3))
    pick, (rows, columns) = writer.scope.pick, source.sizes
    planes = pick((1, 1, 2))
    count = planes * extent(rows) * extent(columns)
    size = Whole(f"{planes} * {rows.text} * {columns.text}", (count, count))
    with writer.loop(flat, size):
        writer.line(f"{row} = {flat} // {columns.text} % {rows.text}")
        writer.line(f"{column} = {flat} % {columns.text}")
        value = f"{source.name}[{row}, {column}]"
        if pick((True, False)):
            writer.line(f"if {row} {pick(('<', '!=', '>='))} {column}:")
            writer.line(f"    s += {value} * {writer.element()}")
        writer.add(f"{pick((value, f'math.sin({value})'))} * {writer.element()}")


def _pairs(writer: SmoothWriter, source: Array) -> None:
    """Each two rows once."""
    i, j, k, total = (writer.name() for _ in range(4))
    rows, columns = source.sizes
    writer.line(f"for {i}, {j} in itertools.combinations(range({rows.text}), 2):")
    writer.level += 1
    spread = (0, extent(rows) - 1) if extent(rows) > 1 else None
    writer.scope.loops += [Whole(i, spread), Whole(j, spread)]
    writer.line(f"{total} = {writer.scope.pick(('0.0', '1.0'))}")
    with writer.loop(k, columns):
        writer.line(f"{total} += ({source.name}[{i}, {k}] - {source.name}[{j}, {k}]) ** 2")
    writer.add(writer.scope.pick((total, f"math.exp(-{total})", f"max({total}, 0.5)")))
    writer.scope.loops.pop()
    writer.close()


def _sweeps(writer: SmoothWriter, source: Array) -> None:
    """Rows of eight that are changed in place, pairs as far apart as a level says, which doubles or halves."""
    i, j, h, low, kept, one, two = (writer.name() for _ in range(7))
    pick = writer.scope.pick
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{kept} = torch.zeros(8, dtype=torch.float64)")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{kept}[{j} % 8] += {source.name}[{i}, {j}]")
        begin, test, step = pick((("1", "< 8", "*= 2"), ("4", ">= 1", "//= 2"), ("1", "<= 4", "<<= 1")))
        writer.line(f"{h} = {begin}")
        writer.line(f"while {h} {test}:")
        writer.level += 1
        with writer.loop(j, Whole("4", (4, 4))):
            writer.line(f"{low} = {j} // {h} * 2 * {h} + {j} % {h}")
            writer.line(f"{one}, {two} = {kept}[{low}], {kept}[{low} + {h}]")
            linear = pick((True, False))
            writer.line(f"{kept}[{low}] = {one} + {two} * {writer.element()}")
            writer.line(f"{kept}[{low} + {h}] = {f'{one} - {two}' if linear else f'math.sin({one} * {two})'}")
        writer.line(f"{h} {step}")
        writer.level -= 1
        with writer.loop(j, Whole("8", (8, 8))):
            writer.add(f"{kept}[{j}] * {kept}[{j}]")


def _buffers(writer: SmoothWriter, source: Array) -> None:
    """Two rows, of which each is made of the other in turn."""
    i, j, kept, now, then, far = (writer.name() for _ in range(6))
    pick = writer.scope.pick
    with writer.loop(i, source.sizes[0]):
        writer.line(f"{kept} = torch.zeros((2, 6), dtype=torch.float64)")
        with writer.loop(j, source.sizes[1]):
            writer.line(f"{kept}[0, {j} % 6] += {source.name}[{i}, {j}]")
        writer.line(f"{now}, {then}, {far} = 0, 1, 1")
        writer.line(f"while {far} < {pick((2, 5, 6))}:")
        writer.level += 1
        with writer.loop(j, Whole("6", (6, 6))):
            writer.line(f"{kept}[{then}, {j}] = {kept}[{now}, {j}] * {writer.element()}")
            writer.line(f"if {j} >= {far}:")
            writer.line(f"    {kept}[{then}, {j}] += {kept}[{now}, {j} - {far}]")
        swap, turn = f"{now}, {then} = {then}, {now}", f"{now} = 1 - {now}"
        writer.line(pick((swap, f"{turn}; {then} = 1 - {then}", f"{now} ^= 1; {then} ^= 1")))
        writer.line(f"{far} {pick(('*= 2', '+= 2'))}")
        writer.level -= 1
        with writer.loop(j, Whole("6", (6, 6))):
            writer.add(f"{kept}[{now}, {j}] * {kept}[{now}, {j}]")
