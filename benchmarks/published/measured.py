"""The table of a record of `compare`: how many times the published kernel's time each operator takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import geometric_mean

from brickwork.bench.record import load_all

RECORD = Path(__file__).parents[1] / "results/nvidia-h200/published.json"
COLUMNS = ("small, forward", "large, forward", "small, gradient", "large, gradient")


def medians(path: Path = RECORD) -> dict[str, dict[str, Mapping[str, float]]]:
    """Return the seconds of each operator, by column and contender: "brickwork", "published" and "base"."""
    found: dict[str, dict[str, Mapping[str, float]]] = {}
    for case in load_all(path)[0].cases:
        name, _, column = case.title.partition(", ")
        found.setdefault(name, {})[column] = {line: timing.median for line, timing in case.timings.items()}
    return found


def rows(path: Path = RECORD) -> Iterator[str]:
    """Yield the lines of the table in Markdown; the last ones are geometric means, beside each contender."""
    yield f"| operator | {' | '.join(COLUMNS)} |"
    yield f"|---|{'---|' * len(COLUMNS)}"
    found = medians(path)
    for name, columns in found.items():
        yield _row(name, [_ratios([columns.get(column, {})], "published") for column in COLUMNS])
    for contender, text in (("published", "geometric mean"), ("base", "the same beside the base")):
        ratios = [_ratios([each.get(column, {}) for each in found.values()], contender) for column in COLUMNS]
        if any(ratios):
            yield _row(text, ratios)


def _row(name: str, columns: Iterable[list[float]]) -> str:
    cells = (f"{geometric_mean(ratios):.2f}" if ratios else "" for ratios in columns)
    return f"| {name} | {' | '.join(cells)} |"


def _ratios(cases: Iterable[Mapping[str, float]], contender: str) -> list[float]:
    return [each["brickwork"] / each[contender] for each in cases if {"brickwork", contender} <= each.keys()]
