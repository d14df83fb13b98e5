"""The loop programs that Numba does not compile as they are written, or compiles to something else: as it takes them.

Each computes the same from NumPy's arrays; what differs from the source stands in its docstring.
"""

from __future__ import annotations

import math

import numba
import numpy as np

_compiled = numba.njit(parallel=True)


@_compiled
def triangle_count(adjacency):
    """A counter for each row, as one that nested loops and branches share is lost."""
    n = adjacency.shape[0]
    counts = np.zeros(n, dtype=np.int64)
    for i in numba.prange(n):
        count = 0
        for j in range(i + 1, n):
            if adjacency[i, j] == 1:
                for k in range(j + 1, n):
                    if adjacency[i, k] == 1 and adjacency[j, k] == 1:
                        count += 1
        counts[i] = count
    result = np.zeros(1, dtype=np.int64)
    result[0] = counts.sum()
    return result


@_compiled
def softmax_rows(x):
    """Loops, where the source has generator expressions."""
    rows, n = x.shape
    out = np.zeros((rows, n), dtype=np.float64)
    for r in numba.prange(rows):
        top = x[r, 0]
        for j in range(1, n):
            top = max(top, x[r, j])
        total = 0.0
        for j in range(n):
            total += math.exp(x[r, j] - top)
        for j in range(n):
            out[r, j] = math.exp(x[r, j] - top) / total
    return out


@_compiled
def fft_radix2(re, im):
    """A loop over the number of blocks, where the source has one with a step, which `prange` does not have."""
    n = len(re)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        angle = -2.0 * math.pi / length
        half = length // 2
        for block in numba.prange(n // length):
            start = block * length
            for k in range(half):
                wr = math.cos(angle * k)
                wi = math.sin(angle * k)
                a = start + k
                b = start + k + half
                tr = re[b] * wr - im[b] * wi
                ti = re[b] * wi + im[b] * wr
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] += tr
                im[a] += ti
        length *= 2


PROGRAMS = {function.__name__: function for function in (triangle_count, softmax_rows, fft_radix2)}
