"""Draws loops over rows that elements begin and end, which ascend or do not: what is stored along rows, and how.

Elements are small integers, so that sums are exact in any order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import Memory
from brickwork.records import dataclass
from support.lowering import memory

PLACES = 9
"""Elements that rows go along."""
USUAL = ("i", "i + 1")
UNUSUAL = (
    ("i", "i + 1"),
    ("0", "1"),
    ("2 * i", "2 * i + 1"),
    ("i", "i + 2"),
    ("i + 1", "i"),
    ("len(p) - 2 - i", "len(p) - 1 - i"),
)
STORES = (
    "x[e] = x[e] * 2 + i",
    "x[e] += i + 1",
    "y[e, h] = x[e] - i",
    "y[e, h] = y[e, h] * 2 + x[e] + i",
    "s += x[e]",
    "y[e, h] += s",
    "y[{first} + {last} - 1 - e, h] = x[e] + i",
    "x[e] = x[e + 1 - len(x)] + i",
    "x[i] = x[e] + 1",
    "x[q[i] % len(x)] += y[e, h]",
    "y[q[i] % len(y), h] += x[e]",
    "y[q[e % len(q)] % len(y), h] = x[e] + i",
    "x[q[e % len(q)] % len(x)] = y[e, h] + i",
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program, as the text of a function `drawn`, and its arguments; the last of these is the result."""

    source: str
    arguments: tuple[Memory, ...]


def draw_rows(seed: int) -> Drawn:
    """Return the program of a seed."""
    source = random.Random(f"rows {seed}")
    pick = source.choice
    body = ["s = 0.0"]
    for _ in range(pick((1, 1, 2, 3))):
        tensor = "q" if source.random() < 0.1 else "p"
        first, last = (f"{tensor}[{place}]" for place in (pick(UNUSUAL) if source.random() < 0.2 else USUAL))
        if source.random() < 0.3:
            first, last = "p[i]", pick(("q[i]", "q[i]", "q[i + 1]", "p[i] + q[i] % 3", "p[i] + 2", "p[i] + q[i]"))
        stores = [pick(STORES).format(first=first, last=last) for _ in range(pick((1, 1, 2)))]
        body.append(f"for e in range({first}, {last}):")
        inside = "if e < len(x): " if " + " in last else ""
        body += [f"    {inside}{store}" for store in stores]
    heads = ["for i in range((len(p) - 1) // 2):", "for h in range(2):"]
    if "2 * i" not in "".join(body) and "i + 2" not in "".join(body):
        heads[0] = "for i in range(len(p) - 1):"
    if source.random() < 0.3:
        heads.reverse()
    for head in reversed(heads):
        body = [head, *("    " + line for line in body)]
    head = "def drawn(p: torch.Tensor, q: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:"
    text = "\n".join(("import torch", "", "", head, *("    " + line for line in body), ""))
    x = memory([float(source.randint(-3, 3)) for _ in range(PLACES)], FLOAT64)
    y = memory([[float(source.randint(-3, 3)) for _ in range(2)] for _ in range(PLACES)], FLOAT64)
    count = pick((1, 2, 4, 5, 7))
    return Drawn(text, (*(memory(_ends(source, count), INT64) for _ in range(2)), x, y))


def _ends(source: random.Random, count: int) -> Sequence[int]:
    """Return what rows end by: it ascends, or nearly does, or is anything."""
    kind = source.random()
    ends = sorted(source.randint(0, PLACES) for _ in range(count))
    if kind < 0.5:
        return ends
    place = source.randrange(count)
    if kind < 0.8:
        ends[place] = source.choice((-1, 0, PLACES, PLACES + 1, source.randint(0, PLACES)))
        return ends
    return [source.randint(-PLACES, PLACES) for _ in range(count)]
