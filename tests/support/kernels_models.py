"""Kernels of the suite as they stand in models: pools, flattened indices, gathers, recurrences over time.

Written as plain loops by someone who thinks of the formula, not of the machine.
"""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false

from __future__ import annotations

import math

import torch

from support.kernels_flow import SUITE
from support.suite import case, floats, integers

__all__ = ["SUITE"]


# ---------------------------------------------------------------- images


@case(lambda n: (floats(2, 3, n % 40, 5), floats(2, 3, 3, 3), 1))
def convolution(x: torch.Tensor, w: torch.Tensor, pad: int) -> torch.Tensor:
    batch, channels, height, width = x.shape
    out = x.new_empty(batch, w.shape[0], height, width)
    for b in range(batch):
        for o in range(w.shape[0]):
            for y in range(height):
                for z in range(width):
                    s = 0.0
                    for c in range(channels):
                        for i in range(w.shape[2]):
                            for j in range(w.shape[3]):
                                if 0 <= y + i - pad < height and 0 <= z + j - pad < width:
                                    s += x[b, c, y + i - pad, z + j - pad] * w[o, c, i, j]
                    out[b, o, y, z] = s
    return out


@case(lambda n: (floats(2, n, 7), 2), exact=True)
def maxima_and_places(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    channels, height, width = x.shape
    out = x.new_empty(channels, height // k, width // k)
    where = torch.empty(channels, height // k, width // k, dtype=torch.int64, device=x.device)
    for c in range(channels):
        for y in range(height // k):
            for z in range(width // k):
                m = x[c, y * k, z * k]
                at = y * k * width + z * k
                for i in range(k):
                    for j in range(k):
                        if x[c, y * k + i, z * k + j] > m:
                            m = x[c, y * k + i, z * k + j]
                            at = (y * k + i) * width + z * k + j
                out[c, y, z] = m
                where[c, y, z] = at
    return out, where


@case(lambda n: (floats(3, n, 4), 2), exact=True)
def repeated_pixels(x: torch.Tensor, k: int) -> torch.Tensor:
    channels, height, width = x.shape
    out = x.new_empty(channels, height * k, width * k)
    for c in range(channels):
        for i in range(height):
            for j in range(width):
                for p in range(k):
                    for q in range(k):
                        out[c, i * k + p, j * k + q] = x[c, i, j]
    return out


@case(lambda n: (floats(2, n + 2, 5), 3), exact=True)
def patches(x: torch.Tensor, k: int) -> torch.Tensor:
    channels, height, width = x.shape
    rows = height - k + 1
    columns = width - k + 1
    out = x.new_empty(channels * k * k, rows * columns)
    for c in range(channels):
        for p in range(k):
            for q in range(k):
                for i in range(rows):
                    for j in range(columns):
                        out[(c * k + p) * k + q, i * columns + j] = x[c, p + i, q + j]
    return out


@case(lambda n: (integers(0, 2, n, 9, dtype=torch.uint8), 3), exact=True)
def life(board: torch.Tensor, steps: int) -> torch.Tensor:
    height, width = board.shape
    state = board.new_zeros(2, height, width)
    for i in range(height):
        for j in range(width):
            state[0, i, j] = board[i, j]
    for s in range(steps):
        for i in range(height):
            for j in range(width):
                n = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if di != 0 or dj != 0:
                            n += state[s % 2, (i + di) % height, (j + dj) % width]
                state[(s + 1) % 2, i, j] = n == 3 or (n == 2 and state[s % 2, i, j] == 1)
    return state


@case(lambda n: (floats(3, 4, 5), floats(n, 2)))
def bilinear(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    channels, height, width = x.shape
    out = x.new_empty(channels, at.shape[0])
    for c in range(channels):
        for i in range(at.shape[0]):
            gx = (at[i, 0] + 1) / 2 * (width - 1)
            gy = (at[i, 1] + 1) / 2 * (height - 1)
            left = math.floor(gx)
            top = math.floor(gy)
            s = 0.0
            for dy in range(2):
                for dx in range(2):
                    if 0 <= top + dy < height and 0 <= left + dx < width:
                        part = x[c, top + dy, left + dx] * (gy - top if dy == 1 else 1 - gy + top)
                        s += part * (gx - left if dx == 1 else 1 - gx + left)
            out[c, i] = s
    return out


# ---------------------------------------------------------------- rows


@case(lambda n: (floats(n, 9), integers(0, 9, n)))
def cross_entropy(x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        m = x[i, 0]
        for j in range(1, x.shape[1]):
            if x[i, j] > m:
                m = x[i, j]
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        out[i] = math.log(s) + m - x[i, label[i]]
    return out


@case(lambda n: (floats(2, n, 6, dtype=torch.bfloat16), floats(6, dtype=torch.bfloat16)))
def root_mean_square(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            s = 0.0
            for j in range(x.shape[2]):
                s += x[b, t, j] ** 2
            r = (s / x.shape[2] + 1e-6) ** -0.5
            for j in range(x.shape[2]):
                out[b, t, j] = x[b, t, j] * r * g[j]
    return out


@case(lambda n: (floats(11, 3), integers(0, 11, 2 * n), torch.arange(0, 2 * n, 2)))
def bags(table: torch.Tensor, ids: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    count = starts.shape[0]
    out = table.new_zeros(count, table.shape[1])
    for n in range(count):
        end = starts[n + 1] if n + 1 < count else ids.shape[0]
        for i in range(starts[n], end):
            for d in range(table.shape[1]):
                out[n, d] += table[ids[i], d]
    return out


# ---------------------------------------------------------------- time


@case(lambda n: (floats(3, n % 100, 4), floats(3, n % 100, 4), floats(3, n % 100, 4)))
def linear_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    heads, length, width = q.shape
    state = q.new_zeros(heads, width, width)
    out = torch.empty_like(q)
    for h in range(heads):
        for t in range(length):
            for j in range(width):
                s = 0.0
                for i in range(width):
                    state[h, i, j] = 0.9 * state[h, i, j] + k[h, t, i] * v[h, t, j]
                    s += q[h, t, i] * state[h, i, j]
                out[h, t, j] = s
    return out


@case(lambda n: (floats(2, n, 6), floats(n, 3), floats(n, 3)))
def rotate_pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for i in range(x.shape[2] // 2):
                re = x[b, t, 2 * i]
                im = x[b, t, 2 * i + 1]
                x[b, t, 2 * i] = re * cos[t, i] - im * sin[t, i]
                x[b, t, 2 * i + 1] = re * sin[t, i] + im * cos[t, i]


# ---------------------------------------------------------------- places and groups


@case(lambda n: (integers(0, 9, 3, n % 300, 2).float(), floats(3, n % 300).abs() + 99.0), exact=True, least=1)
def farthest_points(x: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 5, dtype=torch.int64)
    for b in range(x.shape[0]):
        last = 0
        for s in range(5):
            out[b, s] = last
            best, where = -1.0, 0
            for i in range(x.shape[1]):
                apart = (x[b, i, 0] - x[b, last, 0]) ** 2 + (x[b, i, 1] - x[b, last, 1]) ** 2
                near[b, i] = min(near[b, i], apart)
                if near[b, i] > best:
                    best, where = near[b, i], i
            last = where
    return out


@case(lambda n: (floats(3, 12 * (n % 50)), 4))
def group_means(x: torch.Tensor, groups: int) -> torch.Tensor:
    width = x.shape[1] // groups
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for g in range(groups):
            total = 0.0
            c = 0
            while c < width:
                total += x[i, g * width + c]
                c += 1
            for c in range(width):
                out[i, g * width + c] = x[i, g * width + c] - total / width
    return out
