"""The seven pieces, and all 162 ways to put one down, as the tables that the rules read."""

from __future__ import annotations

COLUMNS = 10
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


def _bits(rows: list[str], column: int) -> list[int]:
    """Return four rows of bits, the lowest row first; the lowest bit is the leftmost column of the board."""
    found = [sum(1 << column + x for x, cell in enumerate(row) if cell == "#") for row in reversed(rows)]
    return found + [0] * (4 - len(found))


_PLACEMENTS = [
    [
        (drawing, column)
        for drawing in (_turned(rows, turn) for turn in range(_ROTATIONS[name]))
        for column in range(COLUMNS + 1 - len(drawing[0]))
    ]
    for name, rows in _DRAWN.items()
]
_ALL = [placement for placements in _PLACEMENTS for placement in placements]
KINDS = len(_DRAWN)
"""How many pieces there are; their numbers follow the order of the drawings."""
FIRST = tuple(sum(map(len, _PLACEMENTS[:number])) for number in range(KINDS + 1))
"""Where the placements of each piece begin in the tables; the last entry is where they all end."""
MOST = max(map(len, _PLACEMENTS))
"""As many placements has a piece at most."""
CELLS = tuple(row for drawing, column in _ALL for row in _bits(drawing, column))
"""The rows of placement p are the entries 4 p to 4 p + 3, as bits of the board's columns."""
HEIGHT = tuple(len(drawing) for drawing, _ in _ALL)
"""How many rows each placement takes."""
