"""Sorting, sieving and sums of prefixes."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, integers, loops


def insertion_sort(x: torch.Tensor):
    """Sort each row by insertion."""
    rows, n = x.shape
    for r in range(rows):
        for i in range(1, n):
            key = x[r, i]
            j = i - 1
            while j >= 0 and x[r, j] > key:
                x[r, j + 1] = x[r, j]
                j -= 1
            x[r, j + 1] = key


def bubble_sort(x: torch.Tensor):
    """Sort each row by exchanges of neighbours, until nothing changes."""
    rows, n = x.shape
    for r in range(rows):
        for i in range(n):
            swapped = False
            for j in range(n - 1 - i):
                if x[r, j] > x[r, j + 1]:
                    x[r, j], x[r, j + 1] = x[r, j + 1], x[r, j]
                    swapped = True
            if not swapped:
                break


def bitonic_sort(x: torch.Tensor):
    """Sort in place by Batcher's network; the length is a power of two."""
    n = len(x)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            for i in range(n):
                partner = i ^ j
                if partner > i:
                    up = (i & k) == 0
                    if (up and x[i] > x[partner]) or (not up and x[i] < x[partner]):
                        tmp = x[i]
                        x[i] = x[partner]
                        x[partner] = tmp
            j //= 2
        k *= 2


def counting_sort(x: torch.Tensor, high: int):
    """Sort integers below a bound by their counts."""
    n = len(x)
    count = torch.zeros(high + 1, dtype=torch.int64)
    out = torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        count[x[i] + 1] += 1
    for v in range(high):
        count[v + 1] += count[v]
    for i in range(n):
        out[count[x[i]]] = x[i]
        count[x[i]] += 1
    return out


def heap_sort(x: torch.Tensor):
    """Sort each row with a heap."""

    def sift(x, r, root, end):
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and x[r, child] < x[r, child + 1]:
                child += 1
            if x[r, root] >= x[r, child]:
                return
            x[r, root], x[r, child] = x[r, child], x[r, root]
            root = child

    rows, n = x.shape
    for r in range(rows):
        for start in range(n // 2 - 1, -1, -1):
            sift(x, r, start, n)
        for end in range(n - 1, 0, -1):
            x[r, 0], x[r, end] = x[r, end], x[r, 0]
            sift(x, r, 0, end)


def sieve(n: int):
    """Which numbers below n are prime, by Eratosthenes's sieve."""
    prime = torch.ones(n, dtype=torch.bool)
    for i in range(min(2, n)):
        prime[i] = False
    p = 2
    while p * p < n:
        if prime[p]:
            for m in range(p * p, n, p):
                prime[m] = False
        p += 1
    return prime


def prefix_sum(x: torch.Tensor):
    """The sums of all beginnings."""
    out = torch.zeros(len(x), dtype=torch.float64)
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total
    return out


def two_level_sum(x: torch.Tensor, block: int):
    """The sums of all beginnings, by blocks: sums of blocks, their sums, and sums inside each."""
    n = len(x)
    blocks = (n + block - 1) // block
    sums = torch.zeros(blocks + 1, dtype=torch.float64)
    out = torch.zeros(n, dtype=torch.float64)
    for b in range(blocks):
        s = 0.0
        for i in range(b * block, min((b + 1) * block, n)):
            s += x[i]
        sums[b + 1] = s
    for b in range(blocks):
        sums[b + 1] += sums[b]
    for b in range(blocks):
        s = sums[b]
        for i in range(b * block, min((b + 1) * block, n)):
            s += x[i]
            out[i] = s
    return out


def binary_search(table: torch.Tensor, wanted: torch.Tensor):
    """Where each number belongs in a sorted table."""
    out = torch.zeros(len(wanted), dtype=torch.int64)
    for q in range(len(wanted)):
        lo = 0
        hi = len(table)
        while lo < hi:
            mid = (lo + hi) // 2
            if table[mid] < wanted[q]:
                lo = mid + 1
            else:
                hi = mid
        out[q] = lo
    return out


FAMILY = "sorting"
ROWS = ((0, 3), (1, 1), (3, 7))
PROGRAMS = (
    LoopProgram(
        function=insertion_sort,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, n),),
        small=ROWS,
        large=(30_000, 200),
        loops=loops("r* parallel, i in order"),
        bound="compute",
        reference=lambda x: x.sort(dim=1).values,
    ),
    LoopProgram(
        function=bubble_sort,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, n),),
        small=ROWS,
        large=(10_000, 200),
        loops=loops("r* parallel, i in order, j in order"),
        bound="compute",
        reference=lambda x: x.sort(dim=1).values,
    ),
    LoopProgram(
        function=bitonic_sort,
        family=FAMILY,
        arguments=lambda log: (floats(2**log),),
        small=((0,), (1,), (4,)),
        large=(21,),
        loops=loops("i* parallel"),
        bound="compute",
        device=(10,),
        reference=lambda x: x.sort().values,
    ),
    LoopProgram(
        function=counting_sort,
        family=FAMILY,
        arguments=lambda n: (integers(50, n), 50),
        small=((0,), (1,), (20,)),
        large=(50_000_000,),
        loops=loops("i copies, v in order, i in order"),
        bound="order",
        device=(1_000_000,),
        reference=lambda x, _: x.sort().values,
    ),
    LoopProgram(
        function=heap_sort,
        family=FAMILY,
        arguments=lambda rows, n: (floats(rows, n),),
        small=ROWS,
        large=(5000, 2000),
        loops=loops("r* parallel, start in order, end in order"),
        bound="compute",
        reference=lambda x: x.sort(dim=1).values,
    ),
    LoopProgram(
        function=sieve,
        family=FAMILY,
        arguments=lambda n: (n,),
        small=((1,), (2,), (40,)),
        large=(100_000_000,),
        loops=loops("i parallel, m parallel"),
        bound="bandwidth",
        device=(1_000_000,),
    ),
    LoopProgram(
        function=prefix_sum,
        family=FAMILY,
        arguments=lambda n: (floats(n),),
        small=((0,), (1,), (9,)),
        large=(100_000_000,),
        loops=loops("i in order"),
        bound="order",
        device=(1_000_000,),
        reference=lambda x: x.cumsum(0),
    ),
    LoopProgram(
        function=two_level_sum,
        family=FAMILY,
        arguments=lambda n, block: (floats(n), block),
        small=((0, 4), (1, 1), (11, 4)),
        large=(100_000_000, 4096),
        loops=loops("b* parallel, i reduction, b in order, b* parallel, i in order"),
        bound="bandwidth",
        device=(1_000_000, 4096),
        reference=lambda x, _: x.cumsum(0),
    ),
    LoopProgram(
        function=binary_search,
        family=FAMILY,
        arguments=lambda n, count: (floats(n).sort().values, floats(count)),
        small=((0, 2), (1, 1), (7, 5)),
        large=(1_000_000, 3_000_000),
        loops=loops("q* parallel"),
        bound="compute",
        reference=lambda table, wanted: torch.searchsorted(table, wanted),
    ),
)
