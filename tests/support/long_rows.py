"""Functions whose few iterations go along long rows: twice the same one, and a nest with a mean kept up to date."""

from __future__ import annotations

import math

import torch


def soft_least(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of the sum of what points are to each of a few, in two loops over the points."""
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        best = -math.inf
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - y[j, k]) ** 2
            best = max(best, -s)
        total = 0.0
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += (x[i, k] - y[j, k]) ** 2
            total += math.exp(-s - best)
        out[i] = best + math.log(total)
    return out


def standardised(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return each channel less its mean, over its variance, times a weight; by Welford's algorithm."""
    y = torch.empty_like(x)
    for c in range(x.shape[1]):
        mean = 0.0
        m2 = 0.0
        count = 0.0
        for n in range(x.shape[0]):
            for k in range(x.shape[2]):
                count += 1.0
                d = x[n, c, k] - mean
                mean += d / count
                m2 += d * (x[n, c, k] - mean)
        for n in range(x.shape[0]):
            for k in range(x.shape[2]):
                y[n, c, k] = (x[n, c, k] - mean) / (m2 / count + 0.25) * w[c]
    return y
