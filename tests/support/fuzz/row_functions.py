"""Writes nests over rows: torch's functions of them, masks, and names that are bound to one row after another.

    w = torch.softmax(x[i], 0)             w = x[i] % 5
    v, w = torch.topk(x[i] % 3, 2)         for r in range(2): w = w * 2 - x[r]

One of them is added to one program in eight. Numbers that rounding may tell apart are stored in steps that are far
coarser; of equal items only functions that keep their order name places.
"""

from __future__ import annotations

import random

from support.fuzz.patterns import element, over
from support.fuzz.scope import Array, Whole
from support.fuzz.writer import Head, Writer

UNORDERED = ("bool", "uint16", "uint32", "uint64")
"""What torch cannot compare, or take the remainder of."""
ROUGH = ("torch.softmax({0}, 0)", "torch.log_softmax({0}, -1)", "torch.exp({0} - {0}.max())", "({0} - {0}.mean()) / 2")
"""Formulas of rows that are rounded."""
FORMULAS = ("{0} * 2 - 1", "torch.where({0} > 0, {0}, 1)", "({0} > 1) * {0}", "({0} - 1).abs()", "-{0} + {0}[0]")
MADE = (
    *("torch.cumsum({0}, 0)", "torch.cumprod({0} % 3 - 1, 0)", "torch.flip({0}, [0])", "torch.topk({0}, {1}).values"),
    *("torch.sort({0}, stable=True)[{2}]", "torch.sort({0}, descending=True).values"),
    "torch.argsort({0}, stable=True)",
)
"""Rows that are lists: functions of such are Python's."""
ROUGH_NUMBERS = ("torch.logsumexp({0}, 0)", "torch.var({0}, unbiased=False)", "torch.std({0}, correction=0)")
NUMBERS = (
    *("torch.argmax({0})", "torch.argmin({0})", "torch.max({0}, 0).indices", "torch.min({0}, 0)[0]"),
    "torch.median({0})",
)
SUMS = (
    *("sum({0})", "({0} > 0).sum()", "({0} == {0}[0]).all()", "({0} < 0).any()", "({0} * {0}).sum()"),
    *("{0}.max()", "len({0})"),
)


def use_row_functions(writer: Writer, seed: int) -> None:
    """Write one of these nests into some programs; the seed's other choices stay as they are."""
    scope = writer.scope
    own = random.Random(f"row functions {seed}")
    written = [array for array in scope.arrays if array.written and array.sizes]
    sources = [array for array in scope.arrays if len(array.sizes) == 2 and array.dtype not in UNORDERED]
    if own.random() > 0.12 or not sources or not written:
        return
    scope.random = own
    writer.phrases.readable = list(scope.arrays)
    # A row that is kept while its tensor is stored into is refused: most sources are others.
    source = scope.pick([array for array in sources if not array.written] or sources)
    target = scope.pick([array for array in written if array.name != source.name] or written)
    _functions(writer, source, target)
    writer.after([array for array in scope.arrays if array.written])


def _functions(writer: Writer, source: Array, target: Array) -> None:
    pick, chance = writer.scope.pick, writer.scope.chance
    rough = source.dtype in {"float32", "float64"} and chance(0.3)
    outer, size = over(writer, source.sizes[0]), source.sizes[1]
    row, name = f"{source.name}[{outer.text}]", f"w{next(writer.numbers)}"
    start = (row, f"{row} % 5", f"{row} % 3 {pick('+-')} {outer.text}", f"{row}[1:] - {row}[:-1]")
    first = pick(start)
    alike = f"{row}[1:]" if first == start[-1] else row
    writer.line(f"{name} = {first}")
    for _ in range(pick((0, 1, 1, 2))):
        before, name = name, name if chance(0.2) else f"w{next(writer.numbers)}"
        writer.line(f"{name} = {pick((*ROUGH, *FORMULAS) if rough else FORMULAS).format(before)}")
    if made := chance(0.4):
        before, name = name, f"w{next(writer.numbers)}"
        form = pick(MADE)
        alike = name if "topk" in form else alike
        writer.line(f"{name} = {form.format(before, pick(('1', '2', 'min(2, n)')), pick('01'))}")
    _bind_again(writer, name, alike, outer)
    forms = SUMS if made else (*ROUGH_NUMBERS, *NUMBERS, *SUMS) if rough else (*NUMBERS, *SUMS)
    for _ in range(pick((0, 1, 2))):
        writer.line(f"if len({name}) > {pick(('0', '0', '1'))}:")
        writer.line(f"    s = (s + {_step(pick(forms).format(name), rough=rough)}) % 7")
    item = over(writer, Whole(f"len({name})", size.range))
    value = _step(f"{name}[{item.text}]", rough=rough)
    writer.line(f"s = (s * 2 + {value}) % 7")
    writer.guarded(f"{element(writer, target, [outer, item])} {pick(('=', '+='))} {value} % 7 + s")
    writer.close(2)


def _bind_again(writer: Writer, name: str, row: str, outer: Whole) -> None:
    """Bind a row's name to other rows of its length, such as `row`, in a loop or in a branch."""
    pick = writer.scope.pick
    match pick(("loop", "branch", *["no"] * 8)):
        case "loop":
            writer.open(Head("range(2)", (0, 1), 2))
            writer.line(f"{name} = ({name} * 2 {pick('+-')} {pick((row, name, '1'))}) % 5")
            writer.close(1)
        case "branch":
            writer.line(f"if {pick(('flag', f'{outer.text} % 2 == 0', f'{name}.max() > 1'))}:")
            writer.line(f"    {name} = {pick((f'-{name}', f'{name} * 2', row))}")
        case _:
            pass


def _step(value: str, *, rough: bool) -> str:
    """Return a number in steps of which sums are exact; no quotient of small numbers lies between two of them."""
    return f"math.floor({value} * 64 + 0.2137)" if rough else value
