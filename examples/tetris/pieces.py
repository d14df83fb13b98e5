"""The seven pieces: for each rotation the rows of bits from the bottom up, as the tables that the rules read."""

from __future__ import annotations

_DRAWN = {
    "I": ["####"],
    "O": ["##", "##"],
    "T": [".#.", "###"],
    "S": [".##", "##."],
    "Z": ["##.", ".##"],
    "L": ["..#", "###"],
    "J": ["#..", "###"],
}
_ROTATIONS = {"I": 2, "O": 1, "S": 2, "Z": 2, "T": 4, "L": 4, "J": 4}


def _turned(rows: list[str], times: int) -> list[str]:
    """Return a drawing turned by quarters, clockwise."""
    for _ in range(times):
        rows = ["".join(column) for column in zip(*rows[::-1], strict=True)]
    return rows


def _bits(rows: list[str]) -> list[int]:
    """Return four rows of bits, the lowest row first; the lowest bit is the leftmost column."""
    found = [sum(1 << column for column, cell in enumerate(row) if cell == "#") for row in reversed(rows)]
    return found + [0] * (4 - len(found))


_ALL = [_turned(rows, turn) for name, rows in _DRAWN.items() for turn in range(_ROTATIONS[name])]
NAMES = tuple(_DRAWN)
"""The pieces in the order of their numbers."""
FIRST = tuple(sum(_ROTATIONS[name] for name in NAMES[:number]) for number in range(len(NAMES) + 1))
"""Where the rotations of each piece begin in the tables; the last entry is where they all end."""
CELLS = tuple(row for drawing in _ALL for row in _bits(drawing))
"""The rows of rotation r are the entries 4 r to 4 r + 3."""
WIDTH = tuple(len(drawing[0]) for drawing in _ALL)
"""How many columns each rotation takes."""
HEIGHT = tuple(len(drawing) for drawing in _ALL)
"""How many rows each rotation takes."""
