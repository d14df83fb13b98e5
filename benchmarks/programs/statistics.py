"""Statistics of samples: moments, counts, order, clusters, densities."""

# pyright: basic, reportCallIssue=false, reportArgumentType=false
from __future__ import annotations

import math

import torch

from benchmarks.programs.program import LoopProgram, floats, integers, loops


def covariance(data: torch.Tensor):
    """The covariance of the columns, which are centred in place."""
    n, m = data.shape
    mean = torch.zeros(m, dtype=torch.float64)
    cov = torch.zeros(m, m, dtype=torch.float64)
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]
    return cov


def correlation(data: torch.Tensor):
    """The correlation of the columns, with constant ones kept from division by nothing."""
    n, m = data.shape
    mean = torch.zeros(m, dtype=torch.float64)
    std = torch.zeros(m, dtype=torch.float64)
    corr = torch.zeros(m, m, dtype=torch.float64)
    eps = 0.1
    for j in range(m):
        for i in range(n):
            mean[j] += data[i, j]
        mean[j] = mean[j] / n
    for j in range(m):
        for i in range(n):
            std[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        std[j] = math.sqrt(std[j] / n)
        std[j] = 1.0 if std[j] <= eps else std[j]
    for i in range(n):
        for j in range(m):
            data[i, j] = (data[i, j] - mean[j]) / (math.sqrt(n) * std[j])
    for i in range(m - 1):
        corr[i, i] = 1.0
        for j in range(i + 1, m):
            corr[i, j] = 0.0
            for k in range(n):
                corr[i, j] += data[k, i] * data[k, j]
            corr[j, i] = corr[i, j]
    corr[m - 1, m - 1] = 1.0
    return corr


def histogram(x: torch.Tensor, bins: int, low: float, high: float):
    """How many values fall into each of equal intervals; those outside are left out."""
    counts = torch.zeros(bins, dtype=torch.int64)
    for i in range(len(x)):
        if low <= x[i] and x[i] <= high:
            b = int((x[i] - low) / (high - low) * bins)
            if b == bins:
                b = bins - 1
            counts[b] += 1
    return counts


def running_median(x: torch.Tensor):
    """The median of each nine neighbours, which are sorted by insertion."""
    n = len(x)
    out = torch.zeros(n - 8, dtype=torch.float64)
    for i in range(n - 8):
        window = [0.0] * 9
        for k in range(9):
            v = x[i + k]
            p = k
            while p > 0 and window[p - 1] > v:
                window[p] = window[p - 1]
                p -= 1
            window[p] = v
        out[i] = window[4]
    return out


def kmeans_step(points: torch.Tensor, centres: torch.Tensor):
    """One step of Lloyd's algorithm: the nearest centre of each point, and the centres' new places."""
    n, d = points.shape
    k = centres.shape[0]
    label = torch.zeros(n, dtype=torch.int64)
    sums = torch.zeros(k, d, dtype=torch.float64)
    counts = torch.zeros(k, dtype=torch.int64)
    for i in range(n):
        best = float("inf")
        for c in range(k):
            dist = 0.0
            for j in range(d):
                diff = points[i, j] - centres[c, j]
                dist += diff * diff
            if dist < best:
                best = dist
                label[i] = c
    for i in range(n):
        counts[label[i]] += 1
        for j in range(d):
            sums[label[i], j] += points[i, j]
    for c in range(k):
        if counts[c] > 0:
            for j in range(d):
                centres[c, j] = sums[c, j] / counts[c]
    return label


def kernel_density(sample: torch.Tensor, at: torch.Tensor, h: float):
    """The density of a sample at some places, with a normal kernel of width h."""
    n = len(sample)
    out = torch.zeros(len(at), dtype=torch.float64)
    norm = 1.0 / (n * h * math.sqrt(2.0 * math.pi))
    for q in range(len(at)):
        total = 0.0
        for i in range(n):
            z = (at[q] - sample[i]) / h
            total += math.exp(-0.5 * z * z)
        out[q] = total * norm
    return out


def bootstrap_mean(x: torch.Tensor, picks: torch.Tensor):
    """The means of samples that were drawn again from x, and the deviation of those means."""
    times, n = picks.shape
    means = torch.zeros(times, dtype=torch.float64)
    for b in range(times):
        s = 0.0
        for i in range(n):
            s += x[picks[b, i]]
        means[b] = s / n
    mean = 0.0
    for b in range(times):
        mean += means[b] / times
    var = 0.0
    for b in range(times):
        var += (means[b] - mean) ** 2
    spread = torch.zeros(1, dtype=torch.float64)
    spread[0] = math.sqrt(var / times)
    return means, spread


def median_of_rows(x: torch.Tensor):
    """The median of each row of odd length by Hoare's selection, which reorders the row."""
    rows, n = x.shape
    out = torch.zeros(rows, dtype=torch.float64)
    for r in range(rows):
        lo = 0
        hi = n - 1
        k = n // 2
        while lo < hi:
            pivot = x[r, k]
            i = lo
            j = hi
            while i <= j:
                while x[r, i] < pivot:
                    i += 1
                while x[r, j] > pivot:
                    j -= 1
                if i <= j:
                    x[r, i], x[r, j] = x[r, j], x[r, i]
                    i += 1
                    j -= 1
            if j < k:
                lo = i
            if k < i:
                hi = j
        out[r] = x[r, k]
    return out


def softmax_rows(x: torch.Tensor):
    """The softmax of each row, with Python's `max` and `sum` over its elements."""
    rows, n = x.shape
    out = torch.zeros(rows, n, dtype=torch.float64)
    for r in range(rows):
        top = max(x[r, j] for j in range(n))
        total = sum(math.exp(x[r, j] - top) for j in range(n))
        for j in range(n):
            out[r, j] = math.exp(x[r, j] - top) / total
    return out


def weighted_moments(x: torch.Tensor, w: torch.Tensor):
    """The weighted mean and variance of a sample, over its values and weights side by side."""
    total = 0.0
    mean = 0.0
    for v, u in zip(x, w):
        total += u
        mean += u * v
    mean /= total
    var = 0.0
    for i, v in enumerate(x):
        var += w[i] * (v - mean) ** 2
    out = torch.zeros(2, dtype=torch.float64)
    out[0] = mean
    out[1] = var / total
    return out


FAMILY = "statistics"
PROGRAMS = (
    LoopProgram(
        function=covariance,
        family=FAMILY,
        arguments=lambda n, m: (floats(n, m),),
        small=((2, 1), (5, 4)),
        large=(1200, 1000),
        loops=loops("j* parallel, i reduction, i* parallel, j parallel, i* parallel, j parallel, k reduction"),
        bound="compute",
        reference=lambda data: data.T.cov().reshape(data.shape[1], data.shape[1]),
    ),
    LoopProgram(
        function=correlation,
        family=FAMILY,
        arguments=lambda n, m: (floats(n, m) * 3,),
        small=((2, 1), (5, 4)),
        large=(1200, 1000),
        loops=loops(
            "j* parallel, i reduction, j* parallel, i reduction, i* parallel, j parallel,"
            " i* parallel, j parallel, k reduction"
        ),
        bound="compute",
    ),
    LoopProgram(
        function=histogram,
        family=FAMILY,
        arguments=lambda n: (floats(n) * 1.2 - 0.1, 10, 0.0, 1.0),
        small=((0,), (1,), (50,)),
        large=(50_000_000,),
        loops=loops("i copies"),
        bound="order",
        reference=lambda x, bins, low, high: torch.histc(x, bins, low, high).to(torch.int64),
    ),
    LoopProgram(
        function=running_median,
        family=FAMILY,
        arguments=lambda n: (floats(n),),
        small=((9,), (15,)),
        large=(10_000_000,),
        loops=loops("i* parallel, k in order"),
        bound="compute",
        reference=lambda x: x.unfold(0, 9, 1).median(dim=1).values,
    ),
    LoopProgram(
        function=kmeans_step,
        family=FAMILY,
        arguments=lambda n, k: (floats(n, 3), floats(k, 3)),
        small=((1, 1), (9, 3)),
        large=(1_000_000, 64),
        loops=loops("i* parallel, c in order, j reduction, i copies, j parallel, c* parallel, j parallel"),
        bound="compute",
        device=(100_000, 64),
    ),
    LoopProgram(
        function=kernel_density,
        family=FAMILY,
        arguments=lambda n, places: (floats(n), floats(places), 0.1),
        small=((1, 1), (7, 4)),
        large=(20_000, 10_000),
        loops=loops("q* parallel, i reduction"),
        bound="compute",
    ),
    LoopProgram(
        function=bootstrap_mean,
        family=FAMILY,
        arguments=lambda n, times: (floats(n), integers(n, times, n)),
        small=((1, 1), (7, 4)),
        large=(20_000, 10_000),
        loops=loops("b* parallel, i reduction, b reduction, b reduction"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=median_of_rows,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, 2 * n + 1),),
        small=((1, 0), (3, 4)),
        large=(50_000, 500),
        loops=loops("r* parallel"),
        bound="compute",
        reference=lambda x: x.median(dim=1).values,
    ),
    LoopProgram(
        function=softmax_rows,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, n) * 4,),
        small=((0, 3), (1, 1), (4, 6)),
        large=(20_000, 2000),
        loops=loops("r* parallel, j parallel"),
        bound="compute",
        reference=lambda x: x.softmax(dim=1),
    ),
    LoopProgram(
        function=weighted_moments,
        family=FAMILY,
        arguments=lambda n: (floats(n), floats(n + 1)[:n] * 1.0),
        small=((1,), (7,)),
        large=(50_000_000,),
        loops=loops("v/u reduction, i/v reduction"),
        bound="bandwidth",
    ),
)
