"""The rules of Tetris and a controller, as functions of one game of many: `play.py` calls them in its loops.

A board is 20 rows of 10 bits, the lowest row first, and four more rows above that stay empty. A controller looks at
every placement of the piece at hand and takes the one whose board has the largest weighted sum of features: those of
the best controllers made by hand (P. Dellacherie's; the last two by C. Thiery and B. Scherrer, "Building controllers
for Tetris", 2009). Hole depth counts the filled cells with a hole below them.
"""

import math

import torch

from examples.tetris.pieces import CELLS, COLUMNS, HEIGHT

ROWS = 20
HIGH = ROWS + 4
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
    """Return how many bits are set; compilers know these lines for the instruction that counts them."""
    pairs = bits - ((bits >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    bytes_of = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((bytes_of * 0x0101010101010101) >> 56) & 127


def landing(boards: torch.Tensor, game: int, placement: int) -> int:
    """Return the row where a piece that falls from above comes to rest."""
    row = ROWS
    while row > 0 and boards[game, row - 1] == 0:
        row -= 1
    falls = True
    while falls and row > 0:
        for y in range(4):
            if CELLS[4 * placement + y] & boards[game, row - 1 + y]:
                falls = False
        if falls:
            row -= 1
    return row


def value(boards: torch.Tensor, weights: torch.Tensor, game: int, placement: int, row: int) -> float:
    """Return what a controller thinks of a piece at rest in a row: minus infinity if it does not fit below the top."""
    if row + HEIGHT[placement] > ROWS:
        return -math.inf
    after = [0] * ROWS
    kept, full, eroded, across, down, depth = 0, 0, 0, 0, 0, 0
    below, hollow = FULL, 0
    for y in range(ROWS):
        cells = 0
        if row <= y < row + 4:
            cells = CELLS[4 * placement + y - row]
        bits = boards[game, y] | cells
        if bits == 0:
            break
        if bits == FULL:
            full += 1
            eroded += count(cells)
        else:
            after[kept] = bits
            across += count((bits << 1 | 1) ^ (bits | 1 << COLUMNS))
            down += count(bits ^ below)
            depth += count(bits & hollow)
            hollow |= ~bits
            below = bits
            kept += 1
    across += 2 * (ROWS - kept)
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
        weights[game, 0] * (row + 0.5 * (HEIGHT[placement] - 1))
        + weights[game, 1] * (full * eroded)
        + weights[game, 2] * across
        + weights[game, 3] * down
        + weights[game, 4] * holes
        + weights[game, 5] * wells
        + weights[game, 6] * depth
        + weights[game, 7] * with_holes
    )


def put(boards: torch.Tensor, game: int, placement: int, row: int) -> int:
    """Put a piece down in a row, take the full rows away, and return how many those were."""
    kept = 0
    for y in range(ROWS):
        bits = boards[game, y]
        if row <= y < row + 4:
            bits |= CELLS[4 * placement + y - row]
        if bits != FULL:
            boards[game, kept] = bits
            kept += 1
    for y in range(kept, ROWS):
        boards[game, y] = 0
    return ROWS - kept
