"""The rules of `rules.py` in NumPy: all placements of all games at once, move by move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from examples.tetris import pieces

COLUMNS, ROWS, HIGH = pieces.COLUMNS, 20, 24
FULL = (1 << COLUMNS) - 1
FIRST = np.array(pieces.FIRST)
CELLS = np.array(pieces.CELLS).reshape(-1, 4)
HEIGHT = np.array(pieces.HEIGHT)
COLUMN_BITS = 1 << np.arange(COLUMNS)
BOTTOM = np.where((CELLS[:, :, None] & COLUMN_BITS).any(1), (CELLS[:, :, None] & COLUMN_BITS != 0).argmax(1), -HIGH)
"""The lowest cell of each placement in each column; far below where it has none there."""
COUNT = np.array([bits.bit_count() for bits in range(1 << (COLUMNS + 1))])
"""How many bits are set in a number."""


def play(
    boards: NDArray[np.int32],
    lines: NDArray[np.int64],
    moves: NDArray[np.int64],
    over: NDArray[np.uint8],
    weights: NDArray[np.float32],
    dealt: NDArray[np.uint8],
) -> None:
    """Make a move with each of the pieces in every game that is not over; the arrays are those of `play.play`."""
    for piece in dealt:
        games = np.flatnonzero(over == 0)
        if not len(games):
            return
        placements = FIRST[piece[games], None] + np.arange(pieces.MOST)
        allowed = placements < FIRST[piece[games] + 1, None]
        placements[~allowed] = 0
        rows = landing(boards[games], placements)
        allowed &= rows + HEIGHT[placements] <= ROWS
        after, full, eroded = put(boards[games], placements, rows)
        parts = features(after, rows + 0.5 * (HEIGHT[placements] - 1), full, eroded)
        values = np.zeros(placements.shape, np.float32)
        for number, part in enumerate(parts):
            values += weights[games, number, None] * part.astype(np.float32)
        values[~allowed] = -np.inf
        best, each = values.argmax(1), np.arange(len(games))
        going = allowed[each, best]
        over[games[~going]] = 1
        boards[games[going]] = after[each, best][going]
        lines[games[going]] += full[each, best][going]
        moves[games[going]] += 1


def landing(boards: NDArray[np.int32], placements: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows where pieces that fall from above come to rest."""
    filled = boards[:, :, None] & COLUMN_BITS != 0
    heights = np.where(filled.any(1), HIGH - filled[:, ::-1].argmax(1), 0)
    return (heights[:, None] - BOTTOM[placements])[..., :].max(-1, initial=0, where=BOTTOM[placements] >= 0)


def put(
    boards: NDArray[np.int32], placements: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the boards with pieces and without full rows, how many those were, and how many cells of the piece."""
    games, each = np.ogrid[: placements.shape[0], : placements.shape[1]]
    after = np.repeat(boards[:, None], placements.shape[1], 1)
    for y in range(4):
        after[games, each, np.minimum(rows + y, HIGH - 1)] |= CELLS[placements, y].astype(np.int32)
    gone = after == FULL
    eroded = sum(gone[games, each, rows + y] * COUNT[CELLS[placements, y]] for y in range(4))
    after[gone] = 0
    order = np.argsort(gone, axis=-1, kind="stable")
    return np.take_along_axis(after, order, -1), gone.sum(-1), eroded


def features(
    after: NDArray[np.int32], height: NDArray[np.float64], full: NDArray[np.int64], eroded: NDArray[np.int64]
) -> list[NDArray[np.float64] | NDArray[np.int64]]:
    """Return the features of boards, in the order of `rules.FEATURES`."""
    board = after[..., :ROWS]
    across = COUNT[(board << 1 | 1) ^ (board | 1 << COLUMNS)].sum(-1)
    down = COUNT[board ^ np.concatenate([np.full_like(board[..., :1], FULL), board[..., :-1]], -1)].sum(-1)
    down += COUNT[board[..., -1]]
    roof = np.bitwise_or.accumulate(board[..., ::-1], -1)[..., ::-1]
    under = roof & ~board
    hollow = np.bitwise_or.accumulate(under, -1)
    well = ~board & (board << 1 | 1) & (board >> 1 | 1 << (COLUMNS - 1)) & FULL
    wells = np.zeros_like(across)
    while well.any():
        wells += COUNT[well].sum(-1)
        well = well[..., 1:] & ~board[..., : well.shape[-1] - 1]
    return [
        height,
        full * eroded,
        across,
        down,
        COUNT[under].sum(-1),
        wells,
        COUNT[board & hollow].sum(-1),
        (under != 0).sum(-1),
    ]
