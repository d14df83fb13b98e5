"""Fewer rows than all combinations of parameters: what goes wrong depends on one of them, or on two together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any


def pairwise(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return rows with a value of each axis, in which every two values of different axes stand together somewhere."""
    places = [range(len(axis)) for axis in axes]
    rows = [*itertools.product(*places)]
    left = {pair for row in rows for pair in _pairs(row)}
    chosen: list[tuple[int, ...]] = []
    while left:
        best = max(rows, key=lambda row: len(left & _pairs(row)))
        chosen.append(best)
        left -= _pairs(best)
    return [tuple(axis[place] for axis, place in zip(axes, row, strict=True)) for row in sorted(chosen)]


def _pairs(row: tuple[int, ...]) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    return {*itertools.combinations(enumerate(row), 2)}


def in_turn(first: Sequence[Any], second: Sequence[Any], each: int) -> list[tuple[Any, Any]]:
    """Return every item of `first` with `each` items of `second`, which take turns."""
    turns = itertools.cycle(second)
    return [(item, next(turns)) for item in first for _ in range(each)]
