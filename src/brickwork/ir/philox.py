"""The counter-based random numbers that `nodes.Random` stands for, exactly; every execution follows this text.

Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) maps a 128-bit counter and a 64-bit key to a block of four 32-bit
words w0..w3. A draw has a `key`, a `counter` n >= 0, an `extra` word and a `site`. Its block is

    philox(counter = (low 32 bits of n // 4, high 32 bits of n // 4, low 32 bits of extra, site),
           key     = (low 32 bits of key, high 32 bits of key)),        sites are below 2**31

and its word is w = w[n % 4]. From it come

UNIFORM, float32 in [0, 1):
    (w >> 8) * 2**-24, which is exact.

NORMAL, float32, by Box and Muller's method on the pair of words 2p = n % 4 & 2 and 2p + 1 of the block:
    u1 = ((w[2p] >> 8) + 1) * 2**-24      in (0, 1], exact
    u2 = (w[2p + 1] >> 8) * 2**-24        in [0, 1), exact
    r = sqrt(-2 * log(u1)),  a = 6.2831855 * u2      (6.2831855 is 2 pi rounded to float32)
    r * cos(a) where n is even, r * sin(a) where it is odd;
    every operation is one of float32, its functions to a few units in the last place.

INTEGER, int64 in [low, high); a Check that high > low stands before. With high - low as an unsigned 64-bit `range`:
    below 2**32:  low + (w * range >> 32)
    else:         low + ((w * 2**32 + v) * range >> 64), the product having 128 bits, where v is the word n % 4 of the
                  block with the same key and counter but with site + 2**31 for its last counter word.

Not in here: where keys, counters and sites come from (`frontend/`, `pytorch/random_keys.py`).
"""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

Words: TypeAlias = tuple[int, int, int, int]

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
SECOND_SITE = 1 << 31
"""Added to the site for the low half of a 64-bit draw."""
TWO_PI = 6.2831854820251465
"""2 pi rounded to float32."""

_WORD = 0xFFFFFFFF
_LONG = 0xFFFFFFFFFFFFFFFF
_UNIT = 2.0**-24


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Return the block of four words for a counter and a key, all of 32 bits.

    >>> [f"{word:08x}" for word in philox((0, 0, 0, 0), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = second >> 32 ^ c1 ^ k0, second & _WORD, first >> 32 ^ c3 ^ k1, first & _WORD
        k0, k1 = k0 + WEYL[0] & _WORD, k1 + WEYL[1] & _WORD
    return c0, c1, c2, c3


def block(key: int, counter: int, extra: int, site: int) -> Words:
    """Return the block that holds the draw number `counter`."""
    number = counter >> 2
    words = (number & _WORD, number >> 32 & _WORD, extra & _WORD, site & _WORD)
    return philox(words, (key & _WORD, key >> 32 & _WORD))


def uniform(key: int, counter: int, extra: int, site: int) -> float:
    """Return the UNIFORM draw."""
    return (block(key, counter, extra, site)[counter & 3] >> 8) * _UNIT


def normal(key: int, counter: int, extra: int, site: int) -> float:
    """Return the NORMAL draw, each operation rounded to float32."""
    words = block(key, counter, extra, site)
    pair = counter & 2
    first, second = ((words[pair] >> 8) + 1) * _UNIT, (words[pair + 1] >> 8) * _UNIT
    radius = _single(math.sqrt(-2.0 * _single(math.log(first))))
    angle = _single(TWO_PI * second)
    return _single(radius * _single(math.sin(angle) if counter & 1 else math.cos(angle)))


def integer(key: int, counter: int, extra: int, site: int, bounds: tuple[int, int]) -> int:
    """Return the INTEGER draw in [low, high) for `bounds` (low, high)."""
    low, high = bounds
    span = high - low & _LONG
    word = block(key, counter, extra, site)[counter & 3]
    if span < 1 << 32:
        return low + (word * span >> 32)
    bits = word << 32 | block(key, counter, extra, site + SECOND_SITE)[counter & 3]
    return low + (bits * span >> 64)


def _single(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]
