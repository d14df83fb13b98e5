"""Draws contractions: nests of sums of products with affine accesses, masks, gathers, types, and sizes around tiles.

Mostly elements are small integers or halves, so that sums are exact in any order; some factors have infinities and NaN,
or any numbers. Tensors are as large as their accesses need.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from support.fuzz.case import NAME, Argument, Case, Data, Layout, TensorArgument

FACTORS = ("float32", "float32", "bfloat16", "bfloat16", "float16", "float64", "int8", "uint8")
RESULTS = ("float32", "float32", "float64", "bfloat16", "float16")
WHOLE = ("int8", "int8", "uint8")
"""What factors are where integers are summed up."""


@dataclass(frozen=True, slots=True)
class Extents:
    """How long loops may be, around the sides of a kind of tile, and how many products a program may have."""

    sides: tuple[int, ...]
    depths: tuple[int, ...]
    most: int


PANELS = Extents((1, 2, 5, 6, 7, 13, 15, 16, 17, 33), (0, 1, 3, 4, 5, 8, 9), 3_000)
"""Around 6 and 16, the sides of a register tile for AVX2, and around 4 terms, which the tests pack at once."""
TILES = Extents((7, 8, 9, 31, 32, 33, 63, 64, 65, 72, 100, 128, 129, 136), (8, 31, 32, 33, 64, 72, 100, 130), 400_000)
"""Around the sides of tiles of 32 to 128, and the terms of a stage: 32 or 64."""


def contraction_of_seed(seed: int, extents: Extents = TILES) -> Case:
    """Return the contraction of a seed."""
    return _Writer(random.Random(f"contraction {seed}"), extents, seed).case()


@dataclass(slots=True)
class _Writer:
    """Writes one program."""

    source: random.Random
    extents: Extents
    seed: int
    data: Data = "small"
    whole: bool = False
    """Whether integers are summed up."""
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    axes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Indices of elements, each with the size of its axis."""
    tensors: list[TensorArgument] = field(default_factory=list[TensorArgument])

    def case(self) -> Case:
        pick, some = self.source.choice, self._some
        self.data = pick(("small", "small", "small", "halves", "infinite", "smooth"))
        self.whole = self.data == "small" and some(0.2)
        batch = ["b"] if some(0.2) else []
        rows = ["g", "i"] if some(0.25) else ["i"]
        columns = ["j", "h"] if some(0.1) else ["j"]
        sums = pick((["k"], ["k"], ["k", "l"], ["l", "k"], ["l", "k", "m"]))
        segments = pick((rows[-1], rows[-1], "k")) if not batch and some(0.15) else ""
        outer = batch or ["b"] * (segments != "")
        self._draw_sizes([*outer, *rows, *columns, *sums])
        left = self._factor("a", [*batch, *rows], sums)
        right = self._factor("c", [*(batch if segments == "k" else outer), *columns], sums)
        batch = outer if segments == "k" else batch
        factors = [left, right]
        far = ["f"] if some(0.1) else []
        if far:
            self.sizes["f"] = pick((1, 2, 3))
            factors.append(self._tensor("e", self._whole(self.source.sample([*far, *sums], 1 + len(sums)))))
            columns = [*far, *columns]
        if some(0.15):
            factors.append(
                self._tensor("d", [(each, self.sizes[each]) for each in pick(([rows[-1]], [sums[0]], ["j"]))])
            )
        self.source.shuffle(factors)
        product = " * ".join(factors)
        heads = {each: f"for {each} in range({self._length(each)}):" for each in self.sizes}
        limited = segments != "k" and some(0.3)
        if limited:
            heads["k"] = self._leaning(rows[-1])
        if segments:
            heads[segments] = self._segment(segments)
        masks = [self._mask(rows, columns)] if some(0.3) else []
        around = [*rows, *columns]
        self.source.shuffle(around)
        element = f"y[{', '.join((*batch, *rows, *columns))}]"
        added = wide = some(0.4)
        if wide:
            order = [*around, *sums]
            if not limited:
                self.source.shuffle(order)
            body = self._wide(order, outer, heads, masks, element, product)
        else:
            added = self._spelled(factors, self._mask(rows, columns).removeprefix("if ").removesuffix(":"))
            if not self.whole and self.data != "smooth" and some(0.1):
                # One more factor is a sum itself.
                terms = self._whole([*self.source.sample(rows, 1), sums[-1]])
                added = ["t = 0.0", "for n in range(33):", f"    t += {self._tensor('o', [*terms, ('n', 33)])}"]
                added += [f"s += {product} * t"]
            inner = _nested([*(heads[each] for each in sums), *masks], added)
            begun = pick(("0", "1", element) if self.whole else ("0.0", "0.0", "1.0", element))
            after = self._after(element, rows)
            if begun != element and self.data != "smooth" and some(0.15):
                self._add("y_at", "int64", [self.sizes[rows[-1]]], "index", limit=self.sizes[rows[-1]])
                added = True
                after = [f"y[{', '.join(self._at(each, rows[-1]) for each in (*batch, *rows, *columns))}] += s"]
            inner = [f"s = {begun}", *inner, *after]
            if some(0.2):
                inner = _nested([f"if {pick(('j <=', 'j >', '2 * j !='))} {rows[-1]}:"], inner)
                inner += _nested(["else:"], [f"{element} = {pick(('2', element))}"]) if some(0.5) else []
            body = self._triangle(_nested([heads[each] for each in (*outer, *around)], inner), rows[-1])
        self._tensor(
            "y",
            [(each, self.sizes[each]) for each in (*batch, *rows, *columns)],
            pick(("int64", "int32") if self.whole else RESULTS[: 3 if added else 5]),
        )
        names = ", ".join(f"{item.name}: torch.Tensor" for item in self.tensors)
        lines = ["import torch", "", "", f"def {NAME}({names}) -> None:", *("    " + line for line in body), ""]
        return Case("\n".join(lines), tuple(map(self._plain, self.tensors)), self.seed)

    def _spelled(self, factors: Sequence[str], asked: str) -> list[str]:
        """Return what adds a product: mostly as it is, or with another sign, a divisor or a choice over zero."""
        product, kind, zero = " * ".join(factors), self.source.random(), self._zero
        if kind < 0.06:
            return [f"s -= {product}"]
        if kind < 0.12:
            return [f"s += {product} if {asked} else {zero}"]
        if kind < 0.18:
            first, *rest = factors
            return [f"v = {first} if {asked} else {zero}", f"s += {' * '.join((*rest, 'v'))}"]
        if kind < 0.24:
            first, *rest = factors
            return [
                f"v = {zero}",
                f"if {asked}:",
                f"    w = {first}",
                "    v = w + w",
                f"s += {' * '.join(('v', *rest))}",
            ]
        if kind < 0.3 and not self.whole:
            return [f"s += {product} / 2.0"]
        # No more choices are drawn: the programs of other seeds stay as they are.
        first, *rest = factors
        others = " * ".join(rest)
        forms: dict[float, list[str]] = {
            0.33: [f"s = s + {product}"],
            0.36: [f"s = {product} + s"],
            0.39: [f"s += {first} * ({others})"],
            0.42: [f"t = {others}", f"s += t * {first}"],
            0.45: [f"t = {product}", "s = t + s"],
            0.48: [f"s -= {first} * (-1 * {others})"],
            0.51: [f"s += -{first} * ({others}) * -1"],
            0.54: [f"s += 2 * {product}", f"s -= {product}"],
        }
        return next((form for most, form in forms.items() if 0.3 <= kind < most), [f"s += {product}"])

    def _wide(
        self,
        order: Sequence[str],
        outer: Sequence[str],
        heads: dict[str, str],
        masks: Sequence[str],
        element: str,
        product: str,
    ) -> list[str]:
        """Return a nest that adds products to elements, maybe with a condition, or a sum, between its loops."""
        inner, rest = [f"{element} += {product}"], [*order]
        if rest[-1] in "klm" and self._some(0.3):
            inner = ["s = 0", *_nested([heads[rest.pop()]], [f"s += {product}"]), f"{element} += s"]
            if not self.whole:
                inner[0] = "s = 0.0"
        lines = [heads[each] for each in rest]
        for mask in masks:
            # As far out as all of its indices are known.
            read = {each for each in order if re.search(rf"\b{each}\b", mask)}
            if read <= {*rest}:
                lines.insert(max((rest.index(each) + 1 for each in read), default=0), mask)
            else:
                inner = _nested([mask], [f"{element} += {product}"])
                lines = [heads[each] for each in order]
        return _nested([*(heads[each] for each in outer), *lines], inner)

    def _some(self, share: float) -> bool:
        return self.source.random() < share

    def _draw_sizes(self, loops: Sequence[str]) -> None:
        """Choose how long loops are: those that there may be several of are short."""
        pick, most = self.source.choice, self.extents.most
        while not self.sizes or _product(self.sizes.values()) * 100 < most or _product(self.sizes.values()) > most:
            for each in loops:
                chosen = self.extents.depths if each == "k" else self.extents.sides
                self.sizes[each] = pick(chosen) if each in "ijk" else pick((1, 2, 3))

    def _triangle(self, body: list[str], row: str) -> list[str]:
        """Return a nest in which maybe the loop of columns, if it is inside that of rows, ends where a row does."""
        head = next(line for line in body if line.strip().startswith("for j in"))
        inside = any(line.strip().startswith(f"for {row} in") for line in body[: body.index(head)])
        if not inside or not self._some(0.2):
            return body
        lower = head.partition("for j")[0] + f"for j in range(min({row} + 1, {self.sizes['j']})):"
        return [lower if line == head else line for line in body]

    def _whole(self, loops: Sequence[str]) -> list[tuple[str, int]]:
        """Return an axis for each of some loops."""
        return [(each, self.sizes[each]) for each in loops]

    def _length(self, loop: str) -> str:
        """Return how long a loop is: a number, or the size of an axis that it alone goes along."""
        found = [text for name, text in self.axes if name == loop]
        return self.source.choice((str(self.sizes[loop]), *found))

    # ------------------------------------------------------------ factors

    def _factor(self, name: str, own: Sequence[str], sums: Sequence[str]) -> str:
        """Return a factor that goes with some loops, and add what it reads."""
        kind = self.source.random()
        if kind < 0.1:
            return self._codes(name, own, sums)
        axes = self._axes(own, sums)
        if kind > 0.9:
            axes = [self._of_group(name, *axis) if axis[0] == own[-1] else axis for axis in axes]
        places = [place for place, (text, _) in enumerate(axes) if text in {own[-1], *sums}]
        if kind < 0.2 and places:
            place = self.source.choice(places)
            text, extent = axes[place]
            self._add(f"{name}_at", "int64", (extent,), "index", limit=extent + 2)
            axes[place] = f"{name}_at[{text}]", extent + 2
        text = self._tensor(name, axes, self.source.choice(WHOLE if self.whole else FACTORS))
        return self.source.choice((text, text, text, text, f"({text} + 1)", self._positive(text), f"2 * {text}"))

    def _of_group(self, name: str, loop: str, extent: int) -> tuple[str, int]:
        """Return which group an index is in, or its place there; an argument says how many members groups have."""
        half, members = self.source.choice((1, 2)), self.source.choice((1, 2, 3, 4, 16, extent))
        self._add(f"{name}_members", "float32", [half * members], "small")
        text = f"({name}_members.shape[0] // {half})"
        return self.source.choice(((f"{loop} // {text}", -(-extent // members)), (f"{loop} % {text}", members)))

    def _positive(self, text: str) -> str:
        """Return what is not below zero; NaN has no order."""
        return text if self.data == "infinite" else f"max({text}, {self._zero})"

    def _codes(self, name: str, own: Sequence[str], sums: Sequence[str]) -> str:
        """Return whole numbers of four bits, two a byte, with scales of groups."""
        rest = self._whole([each for each in (*own, *sums) if each != "k"])
        half, group = (self.sizes["k"] + 1) // 2, self.source.choice((8, 16, 32))
        self._add(f"{name}_codes", "uint8", [half, *(extent for _, extent in rest)], "wide")
        codes = f"{name}_codes[{', '.join(('k // 2', *(each for each, _ in rest)))}]"
        if self.whole:
            return f"((({codes} >> (4 * (k % 2))) & 15) - 8)"
        groups = (self.sizes["k"] + group - 1) // group
        scale = self._tensor(f"{name}_scale", [(f"k // {group}", groups), *rest[:1]], self.source.choice(FACTORS[:5]))
        return f"((({codes} >> (4 * (k % 2))) & 15) - 8) * {scale}"

    def _axes(self, own: Sequence[str], sums: Sequence[str]) -> list[tuple[str, int]]:
        """Return the indices of a factor, each with the extent of its axis: one loop each, in any order, or windows."""
        axes: list[tuple[str, int]] = []
        left = [*sums]
        for each in own:
            if each in "ij" and left and self._some(0.25):
                term, step = left.pop(), self.source.choice((1, 1, 2))
                text = f"{each} + {term}" if step == 1 else f"{step} * {each} + {term}"
                axes.append((text, step * self.sizes[each] + self.sizes[term]))
            else:
                axes.append((each, self.sizes[each]))
        for term in left:
            text = self.source.choice((term, term, term, f"{self.sizes[term]} - 1 - {term}"))
            axes.append((text, self.sizes[term]))
        if self._some(0.4):
            self.source.shuffle(axes)
        return axes

    # ------------------------------------------------------------ bounds, masks, and what follows

    def _leaning(self, row: str) -> str:
        """Return the head of a loop of which the range depends on a row or column."""
        size, end = self.sizes["k"], self.source.choice(("j", row))
        start = self.source.choice(("0", "0", f"max(0, {end} - 2)"))
        stop = self.source.choice((f"min({size}, {end} + 1)", f"max({size} - {end}, 0)"))
        return f"for k in range({start}, {stop}):"

    def _segment(self, loop: str) -> str:
        """Return the head of a loop that neighbouring elements begin and end."""
        self._add(f"{loop}_ends", "int64", [self.sizes["b"] + 1], "rising", limit=self.sizes[loop] + 1)
        return f"for {loop} in range({loop}_ends[b], {loop}_ends[b + 1]):"

    def _mask(self, rows: Sequence[str], columns: Sequence[str]) -> str:
        least, most = self.source.choice((2, 5, 9)), self.source.choice((12, 40))
        own = self.source.choice((*rows, *columns))
        plain = f"if {own} + k {self.source.choice(('<', '>=', '!='))} {least}:"
        return self.source.choice((plain, f"if 0 <= {own} + k - {least} < {most}:", "if k % 3 != 1:"))

    def _at(self, loop: str, row: str) -> str:
        """Return an index of the result: where an element says for a row."""
        return f"y_at[{loop}]" if loop == row else loop

    def _after(self, element: str, rows: Sequence[str]) -> list[str]:
        """Return the statements after a sum."""
        row = rows[-1]
        others = f"{self._positive('s')} + {row}", "-s", f"s if {row} > j else {self._zero}"
        plain = self.source.choice(("s", "s", *others))
        if not self.whole and self._some(0.2):
            return [f"{element} = {plain} + {self._tensor('bias', [('j', self.sizes['j'])], 'float32')}"]
        return [f"if {row} != 3:", f"    {element} = {plain}"] if self._some(0.1) else [f"{element} = {plain}"]

    # ------------------------------------------------------------ tensors

    @property
    def _zero(self) -> str:
        return "0" if self.whole else "0.0"

    def _tensor(self, name: str, axes: Sequence[tuple[str, int]], dtype: str = "") -> str:
        """Add a tensor, of whole numbers or float32 if no type is given; return its element at the indices of axes."""
        self._add(name, dtype or ("int8" if self.whole else "float32"), [extent for _, extent in axes], self.data)
        self.axes += [(text, f"{name}.shape[{place}]") for place, (text, _) in enumerate(axes)]
        return f"{name}[{', '.join(text for text, _ in axes)}]"

    def _add(self, name: str, dtype: str, shape: Sequence[int], data: Data, limit: int = 0) -> None:
        seed = self.source.randrange(1_000_000)
        self.tensors.append(TensorArgument(name, dtype, tuple(shape), data=data, limit=limit, seed=seed))

    def _plain(self, item: TensorArgument) -> Argument:
        """Return a tensor, maybe with another layout, or other numbers."""
        if item.name == "y":
            return replace(item, data="small")
        layout: Layout = self.source.choice(get_args(Layout)) if self._some(0.2) else "dense"
        return replace(item, layout=layout)


def _product(sizes: Iterable[int]) -> int:
    count = 1
    for size in sizes:
        count *= max(size, 1)
    return count


def _nested(heads: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return lines under heads that stand in one another."""
    lines = [*body]
    for head in reversed(heads):
        lines = [head, *("    " + line for line in lines)]
    return lines
