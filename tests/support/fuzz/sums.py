"""Draws nests with sums: of one remainder, between quotients, several beside each other, scatters; and what is around.

Elements are small integers, so that sums are exact in any order. Some nests carry something from one iteration to
another, which a nest for each remainder, or for each sum, must not lose.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from brickwork.ir.dtypes import FLOAT32, INT64
from support.fuzz.rows import Drawn
from support.lowering import memory

BEFORE = (
    "t = y * 2 - 1",
    "t = (y + 3) // {step} + y % {step}",
    "t = at[y]",
    "t = len(at) - 1 - y\nt = at[t] + t",
    "v = out[b, o, y]",
    "v = out[b, o, 0] - 1.0",
    "v = x[b, 0, 0] * y",
)
AFTER = (
    "out[b, o, y] = s",
    "out[b, o, y] = s + t * {step} - (y + t) // {step} + y % {step}",
    "out[b, o, y] += s * v",
    "if s > v:\n    out[b, o, y] = s\nelse:\n    out[b, o, y] = y - v",
)
CARRIED = (
    "out[b, o, 0] = s - out[b, o, 0]",
    "if s > 1.0:\n    out[b, 0, 0] = s",
    "out[b, o, y] = s + out[b, o, max(y - 1, 0)]",
    "last = s - last\nout[b, o, y] = last",
    "out[b, o, y] = s\nif s < -20.0:\n    break",
    "if s > 3.0:\n    continue\nout[b, o, y] = s",
)


def draw_sums(seed: int) -> Drawn:
    """Return the program of a seed."""
    source = random.Random(f"sums {seed}")
    pick = source.choice
    names = {
        "step": pick((2, 2, 3)),
        "terms": pick((1, 2, 3, 4, 5)),
        "length": pick((1, 2, 4, 5)),
        "ahead": pick((0, 1, 2)),
    }
    before = ["t = 1", "v = 2.0", *(pick(BEFORE) for _ in range(pick((0, 0, 0, 1, 2))))]
    kinds = (_of_remainder, _of_remainder, _between, _several, _several)
    sums = [line for _ in range(pick((1, 1, 1, 2))) for line in pick(kinds)(source)]
    after = [pick(CARRIED if source.random() < 0.15 else AFTER)]
    begin = ["m = 0.0", f"s = {pick(('0.0', '0.0', 'v', 't'))}", f"r = {pick(('0.0', '1.0'))}"]
    if any("r +=" in line or "r -=" in line for line in sums):
        after = ["s = max(s, 1.0) * r", *after] if source.random() < 0.5 else ["s += 2 * r", *after]
    rows = pick(("len(at)", "len(at)", "1, len(at)", "o, len(at)") if source.random() < 0.5 else ("len(at)",))
    kind = source.random()
    if kind < 0.15:
        lines = _scatter(source)
    elif kind < 0.3:
        lines = _steps(source)
    else:
        sums = _norm(source, sums) if source.random() < 0.3 else sums
        lines = [f"for y in range({rows}):", *_indented([*before, *begin, *sums, *after])]
        lines = _row(source, lines) if source.random() < 0.3 else lines
    lines = [
        "last = 1.0",
        "most = 2.0",
        "for b in range(x.shape[0]):",
        *_indented(["for o in range(w.shape[1]):", *_indented(lines)]),
    ]
    text = "\n".join(lines).format(**names)
    head = "def drawn(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:"
    text = "\n".join(("import torch", "", "", head, *_indented(text.split("\n")), ""))

    def numbers(*sizes: int) -> Sequence[Sequence[Sequence[float]]]:
        first, second, third = sizes
        return [[[float(source.randint(-3, 3)) for _ in range(third)] for _ in range(second)] for _ in range(first)]

    count = pick((1, 2, 7, 8, 9))
    x, w = numbers(2, 3, names["length"]), numbers(3, 2, names["terms"])
    at = [source.randint(0, 3) for _ in range(count)]
    if "at[" in text and source.random() < 0.2:
        at[source.randrange(count)] = pick((2**63 - 1, -(2**63), 2**62))
    out = numbers(2, 2, max(count, names["step"] * names["length"] + names["terms"]))
    return Drawn(text, (memory(x, FLOAT32), memory(w, FLOAT32), memory(at, INT64), memory(out, FLOAT32)))


def _of_remainder(source: random.Random) -> list[str]:
    """Return a sum whose terms ask for a remainder of the index and the place in the sum."""
    pick = source.choice
    usual = ("y + {ahead} - k", "y - k", "y + k")
    value = pick(usual if source.random() < 0.7 else ("y - k + t", "2 * y + 1 - k", "y - k + c"))
    masks = [f"({value}) % {{step}} == {pick((0, 0, 0, 1, 2))}", f"0 <= ({value}) // {{step}} < x.shape[2]"]
    if source.random() < 0.2:
        masks.append(pick(("k != 1", "y > 1", "v < 2.5")))
    source.shuffle(masks)
    add = f"s += x[b, c, ({value}) // {{step}}] * w[c, o, k]"
    condition = [f"if {' and '.join(masks)}:", f"    {add}"]
    loops = ["for c in range(w.shape[0]):", f"for k in range({'y % 2, ' * (source.random() < 0.1)}w.shape[2]):"]
    if " c" not in value:
        source.shuffle(loops)
    return [loops[0], *_indented([loops[1], *_indented(condition)])]


def _between(source: random.Random) -> list[str]:
    """Return a sum that begins and ends at quotients of the index."""
    pick = source.choice
    first, last = "(y + {ahead} + {step} - w.shape[2]) // {step}", "(y + {ahead}) // {step} + 1"
    start, stop = (
        pick((f"max(0, {first})", f"max({first}, 0, b)")),
        pick((f"min(x.shape[2], {last})", f"min({last}, 4, x.shape[2])")),
    )
    loops = ["for c in range(w.shape[0]):", f"for i in range({start}, {stop}):"]
    source.shuffle(loops)
    place = "y + {ahead} - {step} * i"
    return [
        loops[0],
        *_indented([loops[1], f"    if 0 <= {place} < w.shape[2]:", f"        s += x[b, c, i] * w[c, o, {place}]"]),
    ]


def _several(source: random.Random) -> list[str]:
    """Return a loop that adds to two variables, or several products to one."""
    pick = source.choice
    one, other = (
        "x[b, c, 0] * w[c, o, 0]",
        pick(("x[b, c, 0] * w[c, o, {terms} - 1]", "f * w[c, o, 0]", "x[b, c, 0] * s", "t * w[c, o, 0]")),
    )
    ahead = ["f = x[b, c, {length} - 1] + 1.0"]
    adds = pick(
        (
            [f"s += {one}", f"r += {other}"],
            [f"s = s - {one}", f"r = {other} + r"],
            [f"s += {one} - {other}", f"r -= {one}"],
            [f"s += {one}", "f = f - 1.0", f"r += {other}"],
            [f"s += {one}", f"s = {other} - s"],
            ["s = 1.0", f"s += {one}", f"r += {other}"],
        )
    )
    if source.random() < 0.3:
        adds = [f"if {pick(('c != 1', 'f > 0.0', 's < 4.0', 'v > 1.0'))}:", *_indented(adds)]
    loop = ["for c in range(w.shape[0]):", *_indented([*ahead, *adds])]
    return [f"if {pick(('s < 2.0', 'v > 1.0', 'y > 0'))}:", *_indented(loop)] if source.random() < 0.3 else loop


def _norm(source: random.Random, sums: list[str]) -> list[str]:
    """Return sums with one beside them that goes with some of the loops around alone, or with what they come to."""
    pick = source.choice
    of = pick(("x[b, c, 0]", "w[c, o, 0]", "w[c, 0, 0]", "x[b, c, 0] * at[y]", "x[0, c, 0] * (o + 1)", "out[b, o, 0]"))
    norm = [pick(("m = 0.0", "m = 0.0", "m = 1.0 * o", "m = v")), "for c in range(w.shape[0]):", f"    m += {of}"]
    lines = [*norm, *sums] if source.random() < 0.5 else [*sums, *norm]
    if source.random() < 0.4:
        inner = ["s = 0.0", *lines, f"q += s * {pick(('w[0, o, e]', 'x[b, 0, 0]', 'm'))}"]
        lines = ["q = 0.0", "for e in range(w.shape[2]):", *_indented(inner), "s = q"]
    return [*lines, pick(("s = s - m", "s += m", "if m > s:\n    s = m"))]


def _row(source: random.Random, lines: list[str]) -> list[str]:
    """Return a loop over a row of sums with what it passes from one of them to the next, and what is done with that."""
    pick = source.choice
    passed = pick(("most = max(most, s)", "most += s", "if s > most:\n    most = s\n    best = y", "most = s - most"))
    more = ["for y in range(len(at)):", *_indented([pick(("out[b, o, y] -= most", "most += out[b, o, y]"))])]
    ends = ["out[b, o, 0] += most", "out[b, o, 0] = best + most"]
    after = [*(more if source.random() < 0.5 else ()), *([pick(ends)] if source.random() < 0.8 else ())]
    begin = pick((["most = -50.0"], ["most = x[b, 0, 0]"], ["most = 1.0 * o"], []))
    place = source.random() < 0.5
    own = [*lines, *_indented([passed])] if place else [lines[0], *_indented(["most = most + 1.0"]), *lines[1:]]
    return ["best = 0", *begin, *own, *after]


def _scatter(source: random.Random) -> list[str]:
    """Return a nest that adds to places which two loops say together."""
    pick = source.choice
    place = pick(("{step} * y + k", "y + k", "y + {terms} - 1 - k"))
    value = pick(("x[b, 0, y] * w[0, o, k]", "x[b, 0, y] - out[b, o, 0]", "x[b, 0, y] * w[0, o, k] + y"))
    add = pick((f"out[b, o, {place}] += {value}", f"out[b, o, {place}] = {value} - out[b, o, {place}]"))
    add = f"if x[b, 1, y] > 0.0:\n    {add}" if source.random() < 0.3 else add
    after = pick(([], [], ["out[b, o, 0] -= x[b, 0, y]"]))
    return ["for y in range(x.shape[2]):", *_indented(["for k in range(w.shape[2]):", *_indented([add]), *after])]


def _steps(source: random.Random) -> list[str]:
    """Return a loop in order with parts that do not depend on the steps before, and what comes of it."""
    pick = source.choice
    ahead = pick(
        (
            ["s = 0.0", "for c in range(w.shape[0]):", "    s += x[b, c, 0] * w[c, o, 0] * y"],
            ["s = 1.0", "for c in range(y):", "    if x[b, c % 3, 0] > 0.0:", "        s = s - c"],
            ["s = x[b, 0, 0] - y", "if s > 1.0:", "    s = 2.0"],
            ["s = 0.0", "for c in range(y):", "    s += out[b, o, c]"],
            ["s = 0.0", "for c in range(w.shape[0]):", "    s += max(x[b, c, 0], h)"],
        )
    )
    state = pick(("h = s - h", "h += s", "h = max(h, s)", "if s > 0.0:\n    h = s", "h = s\nif h > 9.0:\n    continue"))
    stores = pick(
        (
            "out[b, o, y] = h",
            "out[b, o, y] = out[b, o, max(y - 1, 0)] + h",
            "out[b, 1 - o, y] = h - s",
            "for c in range(len(at)):\n    out[b, o, c] += h * c",
        )
    )
    start = pick(("len(at)", "len(at)", "1, len(at)", "o, len(at)"))
    lines = ["h = 1.0", f"for y in range({start}):", *_indented([*ahead, state, stores])]
    if source.random() < 0.4:
        row = [
            *pick((["h += x[b, 0, 0] + z"], ["h = z - h"])),
            f"out[b, y, z] = out[b, {pick(('max(y - 1, 0)', 'y'))}, z] + h",
        ]
        lines = ["for y in range(out.shape[1]):", *_indented(["h = 0.0", "for z in range(len(at)):", *_indented(row)])]
    more = ["for y in range(len(at)):", f"    out[b, o, y] {pick(('-=', '*='))} {pick(('2.0', 'y', 'v'))}"]
    return ["v = x[b, 0, 0]", "h = 0.0", *lines, *(more if source.random() < 0.4 else ()), "out[b, o, 0] += h"]


def _indented(lines: Sequence[str]) -> list[str]:
    return ["    " + line for part in lines for line in part.split("\n")]
