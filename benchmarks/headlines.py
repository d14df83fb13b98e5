"""The headlines of README.md: of a few tables one row each, beside every system's time as a multiple of brickwork's.

They are a table, in which each system has its column, and a picture. Which tables there are is in `questions.py`, what
is written where in `table.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from brickwork.bench.plots import Mark, Standing
from brickwork.bench.question_results import Findings
from brickwork.bench.report import ratio
from brickwork.bench.summary import SCALE, beside, system
from brickwork.bench.table import Table, X

COLUMNS = ("torch", "torch.compile", "numba", "taichi", "quadrants", "warp", "triton", "helion", "CUDA C++", SCALE)
FASTER = 0.97
"""What takes less than this part of brickwork's time is called faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A table of a question, at one x or at its last one; `drawn` says whether it is a row of the picture, too."""

    question: str
    part: str
    words: str
    x: X | None = None
    drawn: bool = True


HEADLINES = (
    Headline(question="pad", part="given", words="a brick wall, into a given image"),
    Headline(question="timex", part="forward-T", words="causal convolution (timex)"),
    Headline(question="timex", part="backward-T", words="both gradients of timex"),
    Headline(question="sin", part="rate", words="sine of 4096 x N floats"),
    Headline(question="sample", part="independent", words="1024 samples of d normal distributions"),
    Headline(question="sample", part="shared", words="the same with one z for all d"),
    Headline(question="streaming", part="loops", words="transpose of a matrix", x="transpose"),
    Headline(question="streaming", part="loops", words="softmax of the rows of a matrix", x="softmax of rows"),
    Headline(question="gradients", part="backward", words="gradient of a softmax of rows", x="softmax"),
    Headline(question="matmul", part="orders", words="matrix product, three plain loops", x="ijk"),
    Headline(question="launch", part="tensors", words="host time of a call, 1 tensor", x=1),
    Headline(question="launch", part="tensors", words="host time of a call, 16 tensors", x=16),
    Headline(question="compile", part="cold", words="first call of timex, cold cache", x="timex", drawn=False),
    Headline(question="compile", part="warm", words="first call of timex, warm cache", x="timex", drawn=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a headline says: brickwork's time, and of each other how many times as long it takes."""

    headline: Headline
    words: str
    ours: str
    others: tuple[tuple[str, float], ...]
    measures: frozenset[str]


def rows(found: Iterable[Findings]) -> Iterator[Row]:
    """Yield the headlines of what was found on a machine, without those that were not asked there."""
    by_name = {each.question: each for each in found}
    for headline in HEADLINES:
        table = by_name[headline.question].tables.get(headline.part) if headline.question in by_name else None
        if table is not None and (row := _row(headline, table)) is not None:
            yield row


def _row(headline: Headline, table: Table) -> Row | None:
    x = table.x_values[-1] if headline.x is None else headline.x
    said = beside(table, x) if x in table.x_values else None
    if said is None:
        return None
    words = f"{headline.words}, {table.x_name} = {x}" if headline.x is None else headline.words
    others = tuple((line, times) for line, times in said.others if not line.startswith("brickwork"))
    return Row(headline=headline, words=words, ours=said.ours, others=others, measures=frozenset(table.measures))


def markdown(said: Sequence[Row]) -> str:
    """Return the headlines as a Markdown table, with a column for each system that is in any of them."""
    cells = [_cells(row) for row in said]
    columns = [name for name in COLUMNS if any(name in each for each in cells)]
    lines = [f"| | brickwork | {' | '.join(columns)} |", "|---|---:|" + "---:|" * len(columns)]
    for row, each in zip(said, cells, strict=True):
        others = " | ".join("<br>".join(each.get(name, [])) for name in columns)
        lines.append(f"| {row.words} | {row.ours} | {others} |")
    return "\n".join(lines)


def _cells(row: Row) -> dict[str, list[str]]:
    """Return what stands in the columns of a row, a line for each variant of a system."""
    found: dict[str, list[str]] = {}
    for line, times in row.others:
        column, variant = system(line, row.measures)
        faster = round(times, 2) < FASTER and column != SCALE
        number = f"**{ratio(times)}**" if faster else ratio(times)
        found.setdefault(column, []).append(f"{variant} {number}".strip())
    return found


def standings(said: Iterable[Row]) -> list[Standing]:
    """Return the rows of the picture."""
    return [
        Standing(f"{row.words}: {row.ours.partition(',')[0]}", tuple(_marks(row))) for row in said if row.headline.drawn
    ]


def _marks(row: Row) -> Iterator[Mark]:
    for line, times in row.others:
        column, variant = system(line, row.measures)
        yield Mark(column, variant, times, measure=column == SCALE)
