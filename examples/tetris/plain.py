"""The same rules in plain Python, cell by cell: what the loops of `rules.py` are checked against, move by move.

A board is a list of rows of booleans, the lowest row first. Nothing is shared with `rules.py` but the drawings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from examples.tetris.pieces import CELLS, FIRST, HEIGHT, WIDTH

Board: TypeAlias = list[list[bool]]
COLUMNS, ROWS = 10, 20


def empty() -> Board:
    """Return a board without cells."""
    return [[False] * COLUMNS for _ in range(ROWS)]


def cells_of(rotation: int) -> list[tuple[int, int]]:
    """Return the cells of a rotation as (row, column), from its lower left corner."""
    return [(y, x) for y in range(4) for x in range(4) if CELLS[4 * rotation + y] >> x & 1]


def landing(board: Board, rotation: int, column: int) -> int | None:
    """Return the row where a piece comes to rest that falls from above; None if it does not fit below the top."""

    def is_free(row: int) -> bool:
        return all(row + y >= ROWS or not board[row + y][column + x] for y, x in cells_of(rotation))

    row = ROWS
    while row > 0 and is_free(row - 1):
        row -= 1
    return row if row + HEIGHT[rotation] <= ROWS else None


def placed(board: Board, rotation: int, column: int, row: int) -> tuple[Board, int, int]:
    """Return the board with a piece and without full rows, how many those were, and how many of its cells they had."""
    own = {(row + y, column + x) for y, x in cells_of(rotation)}
    filled = [[cell or (y, x) in own for x, cell in enumerate(line)] for y, line in enumerate(board)]
    full = [y for y, line in enumerate(filled) if all(line)]
    left = [line for y, line in enumerate(filled) if y not in full]
    return left + empty()[: len(full)], len(full), sum(y in full for y, _ in own)


def features(board: Board, rotation: int, row: int, full: int, eroded: int) -> list[float]:
    """Return the features of a placement, in the order of `rules.FEATURES`."""
    columns = [[board[y][x] for y in range(ROWS)] for x in range(COLUMNS)]
    holes = [[not cell and any(column[y + 1 :]) for y, cell in enumerate(column)] for column in columns]
    across = sum(a != b for line in board for a, b in zip([True, *line], [*line, True], strict=True))
    down = sum(a != b for column in columns for a, b in zip([True, *column], [*column, False], strict=True))
    wells = 0
    for x, column in enumerate(columns):
        for y in range(ROWS):
            left = x == 0 or board[y][x - 1]
            right = x == COLUMNS - 1 or board[y][x + 1]
            if left and right and not column[y]:
                below = y
                while below >= 0 and not column[below]:
                    wells += 1
                    below -= 1
    depth = sum(cell and any(holes[x][:y]) for x, column in enumerate(columns) for y, cell in enumerate(column))
    with_holes = sum(any(holes[x][y] for x in range(COLUMNS)) for y in range(ROWS))
    height = row + 0.5 * (HEIGHT[rotation] - 1)
    return [height, full * eroded, across, down, sum(map(sum, holes)), wells, depth, with_holes]


def move(board: Board, piece: int, weights: Sequence[float]) -> tuple[Board, int] | None:
    """Return the board after the best placement of a piece and the rows it cleared; None if there is none."""
    best, chosen = -1e30, None
    for rotation in range(FIRST[piece], FIRST[piece + 1]):
        for column in range(COLUMNS + 1 - WIDTH[rotation]):
            row = landing(board, rotation, column)
            if row is None:
                continue
            after, full, eroded = placed(board, rotation, column, row)
            parts = features(after, rotation, row, full, eroded)
            value = sum(weight * part for weight, part in zip(weights, parts, strict=True))
            if value > best:
                best, chosen = value, (after, full)
    return chosen
