"""How the kernels of Taichi and of Quadrants with shared memory divide the convolution: numbers alone."""

from __future__ import annotations

OUTPUTS = 16
"""Elements of the result in a thread."""
LANES = 8
"""Batches of a block, and lanes of a warp along them, in the convolution."""
ROWS = 4
"""The same in the gradient of w, which has two signals in shared memory."""
_SHARED_FLOATS = (48 << 10) // 4


def padded(length: int, tile: int) -> int:
    """Return the length in whole tiles."""
    return -(-length // tile) * tile


def warps_of(tiles: int) -> int:
    """Return the warps of a block: one for two tiles, eight at most."""
    return min(8, (tiles + 1) // 2)


def longest() -> int:
    """Return the greatest length of which all kernels find room."""
    tile = 32 // ROWS * OUTPUTS
    rooms = (_SHARED_FLOATS - ROWS * (tile + 8)) // (2 * ROWS + 1), (_SHARED_FLOATS - 4 * LANES - tile) // (LANES + 1)
    return min(rooms) // tile * tile
