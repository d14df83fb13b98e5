"""Draws contractions: nests of sums of products with affine accesses, masks, types, bounds, and sizes around tiles.

Elements are small integers, so that sums are exact in any order. Tensors are as large as their accesses need.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from brickwork.ir.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT8, DType
from brickwork.ir.interpret import Memory
from brickwork.records import dataclass
from support.lowering import strides

SIDES = (1, 2, 5, 6, 7, 13, 15, 16, 17, 33)
"""Rows and columns: around 6 and 16, the sides of a register tile for AVX2."""
DEPTHS = (0, 1, 3, 4, 5, 8, 9)
"""Terms: around 4, which the tests pack at once."""
FACTORS = (FLOAT32, FLOAT32, FLOAT64, BFLOAT16, INT8)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program, as the text of a function `drawn`, and its arguments; the last of these is the result."""

    source: str
    arguments: tuple[Memory, ...]


def draw(seed: int) -> Drawn:
    """Return the contraction of a seed."""
    source = random.Random(f"contraction {seed}")
    pick = source.choice
    batch = ["b"] if source.random() < 0.25 else []
    rows = ["g", "i"] if source.random() < 0.25 else ["i"]
    sums = pick((["k"], ["k"], ["k", "l"], ["l", "k"]))
    sizes = {"i": pick(SIDES), "j": pick(SIDES), "k": pick(DEPTHS), "b": 2, "g": pick((1, 2, 3)), "l": pick((1, 2, 3))}
    left, right = (_axes(source, [*batch, *own], sums, sizes) for own in (rows, ["j"]))
    factors = [f"{name}[{', '.join(text for text, _ in axes)}]" for name, axes in (("a", left), ("c", right))]
    source.shuffle(factors)
    product = pick((" * ".join(factors), f"2 * {factors[0]} * ({factors[1]} + 1)"))
    heads = {each: f"for {each} in range({size}):" for each, size in sizes.items()}
    limited = source.random() < 0.3
    if limited:
        end = pick(("j", rows[-1]))
        start = pick(("0", f"max(0, {end} - 2)"))
        stop = pick((f"min({sizes['k']}, {end} + 1)", f"max({sizes['k']} - {end}, 0)"))
        heads["k"] = f"for k in range({start}, {stop}):"
    mask = f"if {pick(('j', *rows))} + k {pick(('<', '>=', '!='))} {pick((2, 5, 9))}:"
    masks = [mask] if source.random() < 0.3 else []
    around = [*rows, "j"]
    source.shuffle(around)
    element = f"y[{', '.join((*batch, *rows, 'j'))}]"
    if source.random() < 0.4:
        order = [*around, *sums]
        if not limited:
            source.shuffle(order)
        body = _nested([*(heads[each] for each in (*batch, *order)), *masks], [f"{element} += {product}"])
    else:
        inner = _nested([*(heads[each] for each in sums), *masks], [f"s += {product}"])
        after = pick(("s", f"max(s, 0.0) + {rows[-1]}", "-s"))
        inner = [f"s = {pick(('0.0', '1.0', element))}", *inner, f"{element} = {after}"]
        body = _nested([heads[each] for each in (*batch, *around)], inner)
    head = "def drawn(a: torch.Tensor, c: torch.Tensor, y: torch.Tensor) -> None:"
    result = _tensor(source, [sizes[each] for each in (*batch, *rows, "j")], pick((FLOAT32, FLOAT32, FLOAT64)))
    tensors = [_tensor(source, [size for _, size in axes], pick(FACTORS)) for axes in (left, right)]
    return Drawn("\n".join(("import torch", "", "", *_nested([head], body), "")), (*tensors, result))


def _axes(
    source: random.Random, loops: Sequence[str], sums: Sequence[str], sizes: dict[str, int]
) -> list[tuple[str, int]]:
    """Return the indices of a factor, each with the extent of its axis: one loop each, in any order, or windows."""
    axes: list[tuple[str, int]] = []
    left = [*sums]
    for each in loops:
        if each in "ij" and left and source.random() < 0.25:
            term, step = left.pop(), source.choice((1, 1, 2))
            text = f"{each} + {term}" if step == 1 else f"{step} * {each} + {term}"
            axes.append((text, step * sizes[each] + sizes[term]))
        else:
            axes.append((each, sizes[each]))
    for term in left:
        text = source.choice((term, term, f"{sizes[term]} - 1 - {term}"))
        axes.append((text, sizes[term]))
    source.shuffle(axes)
    return axes


def _nested(heads: Sequence[str], body: Sequence[str]) -> list[str]:
    """Return lines under heads that stand in one another."""
    lines = [*body]
    for head in reversed(heads):
        lines = [head, *("    " + line for line in lines)]
    return lines


def _tensor(source: random.Random, sizes: Sequence[int], dtype: DType) -> Memory:
    count = 1
    for size in sizes:
        count *= size
    make = int if dtype.is_integer else float
    data: list[bool | int | float] = [make(source.randint(-3, 3)) for _ in range(count)]
    return Memory(data, tuple(sizes), strides(sizes), dtype)
