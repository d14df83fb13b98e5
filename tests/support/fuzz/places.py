"""Draws nests that store at places with several digits, in windows that borders cut, and counts where stores meet.

What the analysis says of such a nest, which loops are independent and which indices are in range, is held against all
iterations for many sizes: of one argument's and of `m`, which may be 0.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType

from brickwork.records import dataclass

SIZES = tuple(itertools.product((1, 2, 3), (1, 2, 4), (0, 1, 2, 3, 5)))
"""What A, B and m are."""
NAMES = ("h", "w", "i", "j")


@dataclass(frozen=True, slots=True)
class Nest:
    """A nest: of each loop the name and the bounds, the sizes of what is stored into, and the indices."""

    loops: tuple[tuple[str, str, str], ...]
    sizes: tuple[str, ...]
    indices: tuple[str, ...]

    @property
    def source(self) -> str:
        """The text of a function `drawn`."""
        lines = [f"y = torch.empty({', '.join(self.sizes)})"]
        for depth, (name, low, high) in enumerate(self.loops):
            lines.append(f"{'    ' * depth}for {name} in range({low}, {high}):")
        lines.append(f"{'    ' * len(self.loops)}y[{', '.join(self.indices)}] = x[0, 0]")
        head = ("import torch", "", "", "def drawn(x: torch.Tensor, m: int) -> torch.Tensor:")
        begin = ("    A, B = x.shape",)
        return "\n".join((*head, *begin, *("    " + line for line in lines), "    return y", ""))


def draw_nest(seed: int) -> Nest:
    """Return the nest of a seed."""
    source = random.Random(f"places {seed}")
    names = NAMES[: source.choice((2, 3, 4, 4, 4, 4))]
    loops = [(name, "0", source.choice("ABm")) for name in names]
    for depth in range(2, len(names)):
        loops[depth] = names[depth], _low(source, names[:depth]), _high(source, names[:depth])
    if len(names) == 4 and source.random() < 0.8:
        place, loops[2:] = _windows(source)
        rest = source.choice((["h", "w"], ["h"], ["w"], [], ["i"], ["j"]))
    elif source.random() < 0.6:
        one, other = source.sample(names, 2)
        offset = source.choice(("", " - m // 2", " + m // 2", f" - {source.choice(names)}"))
        place = f"{one} * {source.choice(('A', 'B', 'm', '(m + 1)', '8', '3'))} + {other}{offset}"
        rest = source.sample(names, source.randint(0, 1))
    else:
        place, rest = _linear(source, names), source.sample(names, source.randint(0, 2))
    size = source.choice(("A * B", "A", "B", "8 * A + m + 2", "A + B", "A * m"))
    sizes = (f"max(0, {size})", *["A + B + max(m, 0)"] * len(rest))
    return Nest(tuple(loops), sizes, (place, *rest))


def _windows(source: random.Random) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a place in windows around (h, w), and the loops over the parts of the windows that borders leave."""
    reach, other = source.choice(("m // 2", "1", "m", "A")), source.choice(("m // 2", "2"))
    odd = source.random() < 0.3
    lows = (f"max(0, {other if odd else reach} - h)", f"max(0, {reach} - {'h' if odd else 'w'})")
    highs = (f"min(m, A + {'1 + ' * odd}{reach} - h)", f"min(m, B + {reach} - w)")
    loops = [("i", source.choice((lows[0], lows[0], "0")), highs[0]), ("j", lows[1], source.choice((highs[1], "m")))]
    step = source.choice(("B", "B", "B", "A", "(B + 1)", "(B - 1)", "m", "-B", "3", "2 * B"))
    place = f"(i + h - {reach}) * {step} + j + w - {reach}"
    return (f"({place}) * 2 + {source.choice('hwij')}" if source.random() < 0.2 else place), loops


def _linear(source: random.Random, names: Sequence[str]) -> str:
    terms = [
        *(f"{by}{name}" for name in names for by in ("", "-", "2 * ", "-2 * ")),
        "A",
        "B",
        "m",
        "-m // 2",
        "-3",
        "2",
    ]
    return " + ".join(source.choice(terms) for _ in range(source.randint(1, 3)))


def _low(source: random.Random, names: Sequence[str]) -> str:
    return source.choice(("0", f"max(0, {_linear(source, names)})", f"min(0, {_linear(source, names)})"))


def _high(source: random.Random, names: Sequence[str]) -> str:
    return source.choice(
        ("A", f"min({source.choice('ABm')}, {_linear(source, names)})", f"max(B, {source.choice(names)})")
    )


def faults(nest: Nest, independent: Sequence[str], proved: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the words that loops are `independent`, and that indices on some axes are in range."""
    code = [(name, _code(low), _code(high)) for name, low, high in nest.loops]
    indices, sizes = [*map(_code, nest.indices)], [*map(_code, nest.sizes)]
    for values in SIZES:
        known = dict(zip("ABm", values, strict=True))
        shape = [_value(size, known) for size in sizes]
        met: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for iteration in _iterations(code, known, ()):
            now = known | dict(zip((name for name, *_ in nest.loops), iteration, strict=True))
            place = tuple(_value(index, now) for index in indices)
            if any(not -shape[axis] <= place[axis] < shape[axis] for axis in proved):
                yield f"index {place} leaves {shape} at {now}"
            if all(0 <= at < size for at, size in zip(place, shape, strict=True)):
                met.setdefault(place, []).append(iteration)
        for place, stores in met.items():
            for depth, (name, *_) in enumerate(nest.loops):
                if name in independent and len({s[:depth] for s in stores}) < len({s[: depth + 1] for s in stores}):
                    yield f"iterations of {name} meet on {place} at {known}: {stores[:4]}"


def _iterations(
    loops: Sequence[tuple[str, CodeType, CodeType]], known: Mapping[str, int], done: tuple[int, ...]
) -> Iterator[tuple[int, ...]]:
    if not loops:
        yield done
        return
    (name, low, high), *rest = loops
    for value in range(_value(low, known), _value(high, known)):
        yield from _iterations(rest, {**known, name: value}, (*done, value))


def _code(text: str) -> CodeType:
    return compile(text, "place", "eval")


def _value(code: CodeType, known: Mapping[str, int]) -> int:
    return eval(code, {"min": min, "max": max}, {**known})
