"""torch's functions of rows in loops that are no sums: `torch.softmax(x[i], 0)`, `x[i].argmax()`, `torch.sort(x[i])`.

The compiler inlines them as it inlines a user's helpers. A row has one dimension here. NaN counts as greater than any
number, as for torch. A row that is more than a formula is made of a list, by `row_of`.
"""

from __future__ import annotations

import math
from typing import Any

from brickwork.language.formulas import require
from brickwork.language.sequences import accumulate


def row_of(items: Any) -> Any:
    """Return the items of a list, as a row."""
    return items


# ---------------------------------------------------------------- formulas


def softmax(row: Any) -> Any:
    """Return the exponentials, divided by their sum."""
    powers: Any = math.exp(row - max(row))
    return powers / sum(powers)


def log_softmax(row: Any) -> Any:
    """Return the logarithms of `softmax`."""
    shifted = row - max(row)
    powers: Any = math.exp(shifted)
    return shifted - math.log(sum(powers))


def logsumexp(row: Any) -> Any:
    """Return the logarithm of the sum of the exponentials."""
    top = max(row)
    base = top if math.isfinite(top) else 0 * len(row)
    powers: Any = math.exp(row - base)
    return math.log(sum(powers)) + base


def variance(row: Any, less: int) -> Any:
    """Return the sum of the squares of what the items differ from their mean, by their number and `less` fewer."""
    apart = row - sum(row) / len(row)
    return sum(apart * apart) / max(len(row) - less, 0)


# ---------------------------------------------------------------- places


def is_before(one: Any, other: Any, descending: bool) -> bool:
    """Return whether one number stands before another one in a sorted row."""
    if descending:
        return one > other or (math.isnan(one) and not math.isnan(other))
    return one < other or (math.isnan(other) and not math.isnan(one))


def place_of_first(row: Any, greatest: bool) -> int:
    """Return where the greatest or least item lies; a NaN is both."""
    require(len(row) > 0, "the greatest or least of a row without items")
    place, best = 0, row[0]
    for k in range(1, len(row)):
        better = row[k] > best if greatest else row[k] < best
        if better or (math.isnan(row[k]) and not math.isnan(best)):
            place, best = k, row[k]
    return place


def extreme(row: Any, greatest: bool) -> Any:
    """Return the greatest or least item, and its place."""
    place = place_of_first(row, greatest)
    return row[place], place


def order_of(row: Any, descending: bool) -> Any:
    """Return the places of the items in the sorted row; equal ones stay in order."""
    count, width = len(row), 1
    places = list(range(count))
    merged = list(range(count))
    while width < count:
        for start in range(0, count, 2 * width):
            middle, stop = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for k in range(start, stop):
                takes_right = right < stop and (
                    left == middle or is_before(row[places[right]], row[places[left]], descending)
                )
                merged[k] = places[right] if takes_right else places[left]
                if takes_right:
                    right += 1
                else:
                    left += 1
        for k in range(count):
            places[k] = merged[k]
        width *= 2
    return places


def argsort(row: Any, descending: bool) -> Any:
    """Return the places of the items in the sorted row."""
    return row_of(order_of(row, descending))


def ordered(row: Any, descending: bool) -> Any:
    """Return the sorted row, and the places of its items."""
    places = order_of(row, descending)
    return row_of([row[place] for place in places]), row_of(places)


def median(row: Any) -> Any:
    """Return the item in the middle of the sorted row, the lower one of two; NaN if there is one."""
    require(len(row) > 0, "median() of a row without items")
    places = order_of(row, False)
    last = row[places[len(row) - 1]]
    return last if math.isnan(last) else row[places[(len(row) - 1) // 2]]


def first_in_order(row: Any, count: int, descending: bool) -> Any:
    """Return the first items of the sorted row, and their places."""
    require(0 <= count <= len(row), "selected index k out of range")
    places = list(range(count))
    for k in range(len(row)):
        place = min(k, count)
        while place > 0 and is_before(row[k], row[places[place - 1]], descending):
            if place < count:
                places[place] = places[place - 1]
            place -= 1
        if place < count:
            places[place] = k
    return row_of([row[place] for place in places]), row_of(places)


# ---------------------------------------------------------------- parts


def chunks(row: Any, count: int) -> Any:
    """Return as many parts of a row, of which the last one may be shorter."""
    width = (len(row) + count - 1) // count
    require((count - 1) * width < len(row), "the row has too few items for so many parts")
    return tuple(row[k * width : (k + 1) * width] for k in range(count))


def parts(row: Any, width: int, count: int) -> Any:
    """Return the parts of a row with a number of items each, of which the last one may be shorter."""
    require((count - 1) * width < len(row) <= count * width, "the row has not as many parts")
    return tuple(row[k * width : (k + 1) * width] for k in range(count))


# ---------------------------------------------------------------- scans


def cumsum(row: Any) -> Any:
    """Return the sums of the first items."""
    return row_of(accumulate(row))


def cumprod(row: Any) -> Any:
    """Return the products of the first items."""
    return row_of(accumulate(row, lambda one, other: one * other))


def flip(row: Any) -> Any:
    """Return the items from the last to the first."""
    return row_of([row[len(row) - 1 - k] for k in range(len(row))])
