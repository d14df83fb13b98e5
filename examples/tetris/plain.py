"""The same rules in plain Python, cell by cell: what the loops of `rules.py` are checked against, move by move.

A board is a list of rows of booleans, the lowest row first. Nothing is shared with `rules.py` but the drawings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from examples.tetris.pieces import CELLS, FIRST, HEIGHT

Board: TypeAlias = list[list[bool]]
COLUMNS, ROWS = 10, 20
_CELLS = [
    [(y, x) for y in range(4) for x in range(COLUMNS) if CELLS[4 * placement + y] >> x & 1]
    for placement in range(FIRST[-1])
]
"""The cells of each placement as (row, column), the lowest row 0."""


@dataclass(frozen=True, slots=True)
class Move:
    """A piece put down: its cells as (row, column), the rows that it filled, and the board when these are gone."""

    cells: tuple[tuple[int, int], ...]
    full: tuple[int, ...]
    after: Board


def empty() -> Board:
    """Return a board without cells."""
    return [[False] * COLUMNS for _ in range(ROWS)]


def landing(board: Board, placement: int) -> int:
    """Return the row where a piece comes to rest that falls from above."""

    def is_free(row: int) -> bool:
        return all(row + y >= ROWS or not board[row + y][x] for y, x in _CELLS[placement])

    row = ROWS
    while row > 0 and is_free(row - 1):
        row -= 1
    return row


def placed(board: Board, placement: int, row: int) -> Move:
    """Return the move that puts a piece down with its lowest row at `row`."""
    cells = tuple((row + y, x) for y, x in _CELLS[placement])
    filled = [[cell or (y, x) in cells for x, cell in enumerate(line)] for y, line in enumerate(board)]
    full = tuple(y for y, line in enumerate(filled) if all(line))
    left = [line for y, line in enumerate(filled) if y not in full]
    return Move(cells, full, left + empty()[: len(full)])


def features(move: Move) -> list[float]:
    """Return the features of a move, in the order of `rules.FEATURES`."""
    board = move.after
    columns = [[board[y][x] for y in range(ROWS)] for x in range(COLUMNS)]
    holes = [[not cell and any(column[y + 1 :]) for y, cell in enumerate(column)] for column in columns]
    own = [y for y, _ in move.cells]
    return [
        (min(own) + max(own)) / 2,
        len(move.full) * sum(y in move.full for y in own),
        sum(a != b for line in board for a, b in zip([True, *line], [*line, True], strict=True)),
        sum(a != b for column in columns for a, b in zip([True, *column], [*column, False], strict=True)),
        sum(map(sum, holes)),
        _wells(board),
        sum(cell and any(holes[x][:y]) for x, column in enumerate(columns) for y, cell in enumerate(column)),
        sum(any(holes[x][y] for x in range(COLUMNS)) for y in range(ROWS)),
    ]


def moved(board: Board, piece: int, weights: Sequence[float]) -> Move | None:
    """Return the best move with a piece; None if there is none."""
    best, chosen = float("-inf"), None
    for placement in range(FIRST[piece], FIRST[piece + 1]):
        row = landing(board, placement)
        if row + HEIGHT[placement] <= ROWS:
            move = placed(board, placement, row)
            value = sum(weight * part for weight, part in zip(weights, features(move), strict=True))
            if value > best:
                best, chosen = value, move
    return chosen


def _wells(board: Board) -> int:
    """Return the sum over empty cells between filled ones of their depths: 1, and 1 for each empty cell below."""
    depths = 0
    for y, line in enumerate(board):
        walled = [True, *line, True]
        for x, cell in enumerate(line):
            if walled[x] and walled[x + 2] and not cell:
                below = y
                while below >= 0 and not board[below][x]:
                    depths += 1
                    below -= 1
    return depths
