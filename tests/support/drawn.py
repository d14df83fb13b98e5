"""Numbers drawn from a seed: corners and near ones first, then any bits. The same seed draws the same."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator

COUNT = 100
"""Rows that a test takes."""
_FORMATS = {
    32: ("<f", "<I", 2.0**-149, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    64: ("<d", "<Q", 5e-324, 2.0**-1022, 1.7e308),
}


def integers(low: int, high: int, columns: int, *, seed: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield rows of integers in [low, high], of which some are near its ends, near 0 and near powers of two."""
    source = random.Random(seed)
    corners = [low, low + 1, high - 1, high, *(item for item in (-1, 0, 1, 2) if low <= item <= high)]

    def one() -> int:
        pick = source.random()
        if pick < 0.3:
            return source.choice(corners)
        if pick < 0.6:
            near = source.choice((-1, 1)) * (1 << source.randrange(high.bit_length())) + source.randint(-2, 2)
            return min(max(near, low), high)
        return source.randint(low, high)

    for _ in range(COUNT):
        yield tuple(one() for _ in range(columns))


def floats(columns: int, *, width: int = 64, seed: int = 0) -> Iterator[tuple[float, ...]]:
    """Yield rows of floats of 32 or 64 bits, of which some are corners, some are simple and others have any bits."""
    source = random.Random(seed)
    floating, whole, least, normal, greatest = _FORMATS[width]
    corners = (0.0, 1.0, 0.5, 2.0, 3.0, least, normal, greatest, math.inf, math.nan)

    def one() -> float:
        pick = source.random()
        if pick < 0.4:
            return math.copysign(source.choice(corners), source.choice((-1, 1)))
        if pick < 0.6:
            return float(source.randint(-100, 100)) / source.choice((1, 2, 8))
        return struct.unpack(floating, struct.pack(whole, source.getrandbits(width)))[0]

    for _ in range(COUNT):
        yield tuple(one() for _ in range(columns))
