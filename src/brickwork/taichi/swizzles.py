"""The letters that stand for the entries of short vectors: `v.x`, `v.zyx`, `colour.rgb`."""

from __future__ import annotations

LETTERS = ("xyzw", "rgba", "stpq")
LONGEST = 4
"""The longest vector whose entries have letters."""


def swizzle(name: str, shape: tuple[int, ...] | None) -> list[int] | None:
    """Return the places that letters stand for in a vector; None if the name is no such letters."""
    if not 1 <= len(name) <= LONGEST:
        return None
    for letters in LETTERS:
        if all(letter in letters for letter in name):
            places = [letters.index(letter) for letter in name]
            size = shape[0] if shape is not None and len(shape) == 1 else 0
            return places if max(places) < size else None
    return None
