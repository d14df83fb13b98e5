"""The rules of `rules.py` in Numba: a game is an iteration of `prange`, and its rows are bits in an array.

Numba widens `float32 * int64` to float64, so features are made float32 before they are weighed.
"""

from __future__ import annotations

import numba
import numpy as np

from examples.tetris import pieces

COLUMNS, ROWS = pieces.COLUMNS, 20
FULL = (1 << COLUMNS) - 1
FIRST = np.array(pieces.FIRST)
CELLS = np.array(pieces.CELLS).reshape(-1, 4)
HEIGHT = np.array(pieces.HEIGHT)


def use(threads: int) -> None:
    """Play on as many threads."""
    numba.set_num_threads(threads)


@numba.njit
def count(bits):
    """Return how many of at most 16 bits are set."""
    bits = bits - ((bits >> 1) & 0x5555)
    bits = (bits & 0x3333) + ((bits >> 2) & 0x3333)
    bits = (bits + (bits >> 4)) & 0x0F0F
    return (bits + (bits >> 8)) & 0x1F


@numba.njit
def landing(board, placement):
    """Return the row where a piece that falls from above comes to rest."""
    row = ROWS
    while row > 0 and board[row - 1] == 0:
        row -= 1
    while row > 0:
        for y in range(4):
            if CELLS[placement, y] & board[row - 1 + y]:
                return row
        row -= 1
    return row


@numba.njit
def put(board, placement, row, after):
    """Write the board with a piece into `after`; return how many rows are left, and how many cells of it are gone."""
    kept, eroded = 0, 0
    for y in range(ROWS):
        cells = CELLS[placement, y - row] if row <= y < row + 4 else 0
        bits = board[y] | cells
        if bits == 0:
            break
        if bits == FULL:
            eroded += count(cells)
        else:
            after[kept] = bits
            kept += 1
    return kept, eroded


@numba.njit
def value(weights, board, placement, after):
    """Return what a controller thinks of a placement."""
    row = landing(board, placement)
    if row + HEIGHT[placement] > ROWS:
        return np.float32(-np.inf)
    kept, eroded = put(board, placement, row, after)
    full = max(filled(board), row + HEIGHT[placement]) - kept
    across, down, depth, below, hollow = 2 * (ROWS - kept), 0, 0, FULL, 0
    for y in range(kept):
        bits = after[y]
        across += count((bits << 1 | 1) ^ (bits | 1 << COLUMNS))
        down += count(bits ^ below)
        depth += count(bits & hollow)
        hollow |= ~bits
        below = bits
    down += count(below)
    holes, with_holes, wells, roof = 0, 0, 0, 0
    for y in range(kept - 1, -1, -1):
        bits = after[y]
        roof |= bits
        under = roof & ~bits
        holes += count(under)
        with_holes += under != 0
        well = ~bits & (bits << 1 | 1) & (bits >> 1 | 1 << (COLUMNS - 1)) & FULL
        lower = y
        while well != 0:
            wells += count(well)
            lower -= 1
            well = well & ~after[lower] if lower >= 0 else 0
    return (
        weights[0] * np.float32(row + 0.5 * (HEIGHT[placement] - 1))
        + weights[1] * np.float32(full * eroded)
        + weights[2] * np.float32(across)
        + weights[3] * np.float32(down)
        + weights[4] * np.float32(holes)
        + weights[5] * np.float32(wells)
        + weights[6] * np.float32(depth)
        + weights[7] * np.float32(with_holes)
    )


@numba.njit
def filled(board):
    """Return how many rows have cells."""
    row = 0
    while row < ROWS and board[row] != 0:
        row += 1
    return row


@numba.njit(parallel=True)
def play(boards, lines, moves, over, weights, dealt):
    """Make a move with each of the pieces in every game that is not over; the arrays are those of `play.play`."""
    for game in numba.prange(boards.shape[0]):
        board, after = boards[game], np.zeros(ROWS, np.int32)
        for move in range(dealt.shape[0]):
            if over[game]:
                break
            best, chosen = np.float32(-np.inf), -1
            for placement in range(FIRST[dealt[move, game]], FIRST[dealt[move, game] + 1]):
                found = value(weights[game], board, placement, after)
                if found > best:
                    best, chosen = found, placement
            if chosen < 0:
                over[game] = 1
            else:
                row = landing(board, chosen)
                before = max(filled(board), row + HEIGHT[chosen])
                kept, _ = put(board, chosen, row, board)
                board[kept:ROWS] = 0
                lines[game] += before - kept
                moves[game] += 1
