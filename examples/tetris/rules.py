"""The rules of Tetris and a controller, as loops: each iteration of the outermost one plays a game of its own.

A board is 20 rows of 10 bits, the lowest row first. A controller looks at every placement of the piece at hand and
takes the one whose board has the largest weighted sum of features: those of the best controllers made by hand
(P. Dellacherie's; the last two by C. Thiery and B. Scherrer, "Building controllers for Tetris", 2009). Hole depth
counts the filled cells with a hole below them.
"""

import torch

import brickwork as bw
from examples.tetris.pieces import CELLS, FIRST, HEIGHT, WIDTH

COLUMNS = 10
ROWS = 20
FULL = (1 << COLUMNS) - 1
FEATURES = (
    "landing height",
    "eroded cells",
    "row transitions",
    "column transitions",
    "holes",
    "wells",
    "hole depth",
    "rows with holes",
)
"""What the weights of a controller are for, in their order."""


def count(bits: int) -> int:
    """Return how many of twelve bits are set."""
    pairs = bits - ((bits >> 1) & 0b010101010101)
    fours = (pairs & 0b001100110011) + ((pairs >> 2) & 0b001100110011)
    return (fours & 15) + ((fours >> 4) & 15) + (fours >> 8)


@bw.op("tetris::play")
def play(  # noqa: PLR0915  # one loop nest, as it is run
    boards: torch.Tensor, lines: torch.Tensor, moves: torch.Tensor, over: torch.Tensor, weights: torch.Tensor, most: int
) -> None:
    """Play up to `most` moves of every game that is not over.

    boards int32 (games, 20); lines int64 (games,) cleared and moves int64 (games,) made so far; over uint8 (games,);
    weights float32 (games, 8), a controller for each game.
    """
    for game in range(boards.shape[0]):
        board = [0] * 24
        after = [0] * 24
        for y in range(ROWS):
            board[y] = boards[game, y]
        cleared_here = 0
        made = 0
        lost = over[game] != 0
        for _ in range(most):
            piece = bw.randint(0, 7)
            if lost:
                break
            top = 0
            for y in range(ROWS):
                if board[y] != 0:
                    top = y + 1
            best = -1e30
            best_rotation = -1
            best_column = 0
            best_row = 0
            for rotation in range(FIRST[piece], FIRST[piece + 1]):
                for column in range(COLUMNS + 1 - WIDTH[rotation]):
                    row = top
                    falls = True
                    while falls and row > 0:
                        for y in range(4):
                            if (CELLS[4 * rotation + y] << column) & board[row - 1 + y]:
                                falls = False
                        if falls:
                            row -= 1
                    if row + HEIGHT[rotation] <= ROWS:
                        kept = 0
                        eroded = 0
                        for y in range(ROWS):
                            bits = board[y]
                            part = 0
                            if row <= y < row + 4:
                                part = CELLS[4 * rotation + y - row] << column
                                bits |= part
                            if bits == FULL:
                                eroded += count(part)
                            else:
                                after[kept] = bits
                                kept += 1
                        full = ROWS - kept
                        while kept < ROWS:
                            after[kept] = 0
                            kept += 1
                        across = 0
                        down = 0
                        holes = 0
                        with_holes = 0
                        wells = 0
                        roof = 0
                        above = 0
                        for up in range(ROWS):
                            bits = after[ROWS - 1 - up]
                            walled = (bits << 1) | 1 | (1 << 11)
                            across += count((walled ^ (walled >> 1)) & 2047)
                            down += count(bits ^ above)
                            roof |= bits
                            under = roof & ~bits
                            holes += count(under)
                            if under != 0:
                                with_holes += 1
                            well = ~bits & ((bits << 1) | 1) & ((bits >> 1) | (1 << (COLUMNS - 1))) & FULL
                            above = bits
                            y = ROWS - 1 - up
                            while well != 0:
                                wells += count(well)
                                y -= 1
                                well = well & ~after[y] if y >= 0 else 0
                        down += count(above ^ FULL)
                        buried = 0
                        depth = 0
                        for y in range(ROWS):
                            depth += count(after[y] & buried)
                            higher = 0
                            if y + 1 < ROWS:
                                higher = after[y + 1]
                            buried |= ~after[y] & higher
                        value = (
                            weights[game, 0] * (row + 0.5 * (HEIGHT[rotation] - 1))
                            + weights[game, 1] * (full * eroded)
                            + weights[game, 2] * across
                            + weights[game, 3] * down
                            + weights[game, 4] * holes
                            + weights[game, 5] * wells
                            + weights[game, 6] * depth
                            + weights[game, 7] * with_holes
                        )
                        if value > best:
                            best = value
                            best_rotation = rotation
                            best_column = column
                            best_row = row
            if best_rotation < 0:
                lost = True
            else:
                kept = 0
                for y in range(ROWS):
                    bits = board[y]
                    if best_row <= y < best_row + 4:
                        bits |= CELLS[4 * best_rotation + y - best_row] << best_column
                    if bits == FULL:
                        cleared_here += 1
                    else:
                        board[kept] = bits
                        kept += 1
                while kept < ROWS:
                    board[kept] = 0
                    kept += 1
                made += 1
        for y in range(ROWS):
            boards[game, y] = board[y]
        lines[game] += cleared_here
        moves[game] += made
        over[game] = lost
