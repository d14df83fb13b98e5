"""Recursive filters: each output is made of the ones before it."""

# pyright: basic
from __future__ import annotations

import math

import torch

from benchmarks.programs.program import LoopProgram, floats, loops


def biquad(x: torch.Tensor, b0: float, b1: float, b2: float, a1: float, a2: float):
    """A second-order filter along each channel, in the transposed direct form."""
    channels, n = x.shape
    y = torch.zeros(channels, n, dtype=torch.float64)
    for c in range(channels):
        s1 = 0.0
        s2 = 0.0
        for t in range(n):
            v = x[c, t]
            out = b0 * v + s1
            s1 = b1 * v - a1 * out + s2
            s2 = b2 * v - a2 * out
            y[c, t] = out
    return y


def edge_filter(image: torch.Tensor, alpha: float):
    """Smooth an image by recursive filters, forwards and backwards along rows, then along columns."""
    w, h = image.shape
    y1 = torch.zeros(w, h, dtype=torch.float64)
    y2 = torch.zeros(w, h, dtype=torch.float64)
    out = torch.zeros(w, h, dtype=torch.float64)
    k = (1.0 - math.exp(-alpha)) ** 2 / (1.0 + 2.0 * alpha * math.exp(-alpha) - math.exp(2.0 * alpha))
    a1 = k
    a2 = k * math.exp(-alpha) * (alpha - 1.0)
    b1 = 2.0 ** (-alpha)
    b2 = -math.exp(-2.0 * alpha)
    for i in range(w):
        ym1 = 0.0
        ym2 = 0.0
        xm1 = 0.0
        for j in range(h):
            y1[i, j] = a1 * image[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = image[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for i in range(w):
        yp1 = 0.0
        yp2 = 0.0
        xp1 = 0.0
        for j in range(h - 1, -1, -1):
            y2[i, j] = a2 * xp1 + b1 * yp1 + b2 * yp2
            xp1 = image[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(h):
        tm1 = 0.0
        ym1 = 0.0
        ym2 = 0.0
        for i in range(w):
            y1[i, j] = a1 * out[i, j] + a2 * tm1 + b1 * ym1 + b2 * ym2
            tm1 = out[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for j in range(h):
        tp1 = 0.0
        yp1 = 0.0
        yp2 = 0.0
        for i in reversed(range(w)):
            y2[i, j] = a2 * tp1 + b1 * yp1 + b2 * yp2
            tp1 = out[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    return out


def exponential_smoothing(x: torch.Tensor, alpha: float):
    """Each value is a mixture of its input and the value before it."""
    y = torch.empty_like(x)
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = alpha * x[t] + (1 - alpha) * y[t - 1]
    return y


def holt_winters(x: torch.Tensor, season: int, alpha: float, beta: float, gamma: float):
    """Level, trend and season of each series, smoothed; returns the errors of the forecasts one step ahead."""
    rows, n = x.shape
    seasonal = torch.zeros(rows, season, dtype=torch.float64)
    error = torch.zeros(rows, dtype=torch.float64)
    for r in range(rows):
        level = x[r, 0]
        trend = 0.0
        for t in range(1, n):
            k = t % season
            forecast = level + trend + seasonal[r, k]
            error[r] += (x[r, t] - forecast) ** 2
            last = level
            level = alpha * (x[r, t] - seasonal[r, k]) + (1 - alpha) * (level + trend)
            trend = beta * (level - last) + (1 - beta) * trend
            seasonal[r, k] = gamma * (x[r, t] - level) + (1 - gamma) * seasonal[r, k]
    return error


FAMILY = "filters"
PROGRAMS = (
    LoopProgram(
        function=biquad,
        family=FAMILY,
        arguments=lambda channels, n: (floats(channels, n), 0.2, 0.3, 0.2, -0.5, 0.2),
        small=((0, 4), (1, 1), (3, 7)),
        large=(512, 200_000),
        loops=loops("c* parallel, t in order"),
        bound="compute",
    ),
    LoopProgram(
        function=edge_filter,
        family=FAMILY,
        arguments=lambda w, h: (floats(w, h), 0.25),
        small=((0, 2), (1, 1), (5, 6)),
        large=(3000, 3001),
        loops=loops(
            "i* parallel, j in order, i* parallel, j in order, i* parallel, j parallel,"
            " j* parallel, i in order, j* parallel, i in order, i* parallel, j parallel"
        ),
        bound="bandwidth",
    ),
    LoopProgram(
        function=exponential_smoothing,
        family=FAMILY,
        arguments=lambda n: (floats(n), 0.3),
        small=((1,), (2,), (9,)),
        large=(100_000_000,),
        loops=loops("t in order"),
        bound="order",
        device=(1_000_000,),
    ),
    LoopProgram(
        function=holt_winters,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, n), 4, 0.5, 0.1, 0.2),
        small=((1, 1), (3, 9)),
        large=(2000, 20_000),
        loops=loops("r* parallel, t in order"),
        bound="compute",
    ),
)
