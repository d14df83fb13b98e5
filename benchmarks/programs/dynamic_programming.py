"""Dynamic programming: tables that are filled from their neighbours, shortest paths, most probable states."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, floats, integers, loops


def edit_distance(a: torch.Tensor, b: torch.Tensor):
    """Levenshtein's distance between two texts, with the whole table."""
    n = len(a)
    m = len(b)
    D = torch.zeros(n + 1, m + 1, dtype=torch.int64)
    for i in range(n + 1):
        D[i, 0] = i
    for j in range(m + 1):
        D[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            D[i, j] = min(D[i - 1, j] + 1, D[i, j - 1] + 1, D[i - 1, j - 1] + cost)
    return D[n, m]


def edit_distance_rows(texts: torch.Tensor, pattern: torch.Tensor):
    """Levenshtein's distance of each text to a pattern, with a row of the table a text."""
    count, n = texts.shape
    m = len(pattern)
    out = torch.zeros(count, dtype=torch.int64)
    for t in range(count):
        dp = [0] * 33
        for j in range(m + 1):
            dp[j] = j
        for i in range(1, n + 1):
            previous = dp[0]
            dp[0] = i
            for j in range(1, m + 1):
                old = dp[j]
                if texts[t, i - 1] == pattern[j - 1]:
                    dp[j] = previous
                else:
                    dp[j] = 1 + min(previous, dp[j], dp[j - 1])
                previous = old
        out[t] = dp[m]
    return out


def longest_common_subsequence(a: torch.Tensor, b: torch.Tensor):
    """The length of the longest common subsequence, with two rows that change places."""
    n = len(a)
    m = len(b)
    prev = [0] * (m + 1)
    curr = [0] * (m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                curr[j] = prev[j - 1] + 1
            else:
                curr[j] = max(prev[j], curr[j - 1])
        prev, curr = curr, prev
    out = torch.zeros(1, dtype=torch.int64)
    out[0] = prev[m]
    return out


def needleman_wunsch(a: torch.Tensor, b: torch.Tensor, match: int, mismatch: int, gap: int):
    """The global alignment of two sequences: its score, and the number of steps of one best path."""
    n = len(a)
    m = len(b)
    F = torch.zeros(n + 1, m + 1, dtype=torch.int64)
    for i in range(n + 1):
        F[i, 0] = gap * i
    for j in range(m + 1):
        F[0, j] = gap * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            diagonal = F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            F[i, j] = max(diagonal, F[i - 1, j] + gap, F[i, j - 1] + gap)
    result = torch.zeros(2, dtype=torch.int64)
    i = n
    j = m
    steps = 0
    while i > 0 and j > 0:
        if F[i, j] == F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch):
            i -= 1
            j -= 1
        elif F[i, j] == F[i - 1, j] + gap:
            i -= 1
        else:
            j -= 1
        steps += 1
    result[0] = F[n, m]
    result[1] = steps + i + j
    return result


def knapsack(weights: torch.Tensor, values: torch.Tensor, capacity: int):
    """The best value of things that fit, each taken once, with the whole table."""
    n = len(weights)
    K = torch.zeros(n + 1, capacity + 1, dtype=torch.float64)
    for i in range(1, n + 1):
        for w in range(capacity + 1):
            K[i, w] = K[i - 1, w]
            if weights[i - 1] <= w:
                K[i, w] = max(K[i, w], values[i - 1] + K[i - 1, w - weights[i - 1]])
    return K[n, capacity]


def knapsack_row(weights: torch.Tensor, values: torch.Tensor, capacity: int):
    """The best values of all capacities, with one row that is filled from its end."""
    best = torch.zeros(capacity + 1, dtype=torch.float64)
    for i in range(len(weights)):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            best[c] = max(best[c], best[c - w] + values[i])
    return best


def nussinov(seq: torch.Tensor):
    """The largest number of pairs in a folded strand of bases 0 to 3, which pair when they add up to 3."""
    n = len(seq)
    table = torch.zeros(n, n, dtype=torch.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def floyd_warshall(paths: torch.Tensor):
    """The lengths of the shortest paths between all nodes, in place."""
    n = paths.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if paths[i, k] + paths[k, j] < paths[i, j]:
                    paths[i, j] = paths[i, k] + paths[k, j]


def viterbi(log_start: torch.Tensor, log_step: torch.Tensor, log_emit: torch.Tensor, observed: torch.Tensor):
    """The most probable states of a hidden Markov chain."""
    n = len(observed)
    states = len(log_start)
    score = torch.zeros(n, states, dtype=torch.float64)
    back = torch.zeros(n, states, dtype=torch.int64)
    path = torch.zeros(n, dtype=torch.int64)
    for s in range(states):
        score[0, s] = log_start[s] + log_emit[s, observed[0]]
    for t in range(1, n):
        for s in range(states):
            best = score[t - 1, 0] + log_step[0, s]
            arg = 0
            for p in range(1, states):
                candidate = score[t - 1, p] + log_step[p, s]
                if candidate > best:
                    best = candidate
                    arg = p
            score[t, s] = best + log_emit[s, observed[t]]
            back[t, s] = arg
    last = 0
    for s in range(1, states):
        if score[n - 1, s] > score[n - 1, last]:
            last = s
    path[n - 1] = last
    for t in range(n - 2, -1, -1):
        path[t] = back[t + 1, path[t + 1]]
    return path


def matrix_chain(dims: torch.Tensor):
    """The least number of multiplications of a chain of matrices, by the chain's length."""
    n = len(dims) - 1
    cost = torch.zeros(n, n, dtype=torch.float64)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = float("inf")
            for k in range(i, j):
                q = cost[i, k] + cost[k + 1, j] + dims[i] * dims[k + 1] * dims[j + 1]
                if q < best:
                    best = q
            cost[i, j] = best
    return cost


FAMILY = "dynamic programming"
PROGRAMS = (
    LoopProgram(
        function=edit_distance,
        family=FAMILY,
        arguments=lambda n: (integers(4, n), integers(4, n + 2)),
        small=((0,), (1,), (8,)),
        large=(9000,),
        loops=loops("i parallel, j parallel, i wavefront, j wavefront"),
        bound="order",
        device=(1000,),
    ),
    LoopProgram(
        function=edit_distance_rows,
        family=FAMILY,
        arguments=lambda count, n: (integers(4, count, n), integers(4, 32)),
        small=((1, 3), (4, 7)),
        large=(60_000, 64),
        loops=loops("t* parallel, j parallel, i in order, j in order"),
        bound="compute",
    ),
    LoopProgram(
        function=longest_common_subsequence,
        family=FAMILY,
        arguments=lambda n: (integers(4, n), integers(4, n + 2)),
        small=((0,), (1,), (8,)),
        large=(16_000,),
        loops=loops("i in order, j in order"),
        bound="order",
        device=(1000,),
    ),
    LoopProgram(
        function=needleman_wunsch,
        family=FAMILY,
        arguments=lambda n: (integers(4, n), integers(4, n + 1), 1, -1, -2),
        small=((0,), (1,), (8,)),
        large=(9000,),
        loops=loops("i parallel, j parallel, i wavefront, j wavefront"),
        bound="order",
        device=(1000,),
    ),
    LoopProgram(
        function=knapsack,
        family=FAMILY,
        arguments=lambda n, capacity: (integers(9, n) + 1, floats(n), capacity),
        small=((0, 3), (1, 0), (5, 12)),
        large=(600, 200_000),
        loops=loops("i in order, w* parallel"),
        bound="bandwidth",
    ),
    LoopProgram(
        function=knapsack_row,
        family=FAMILY,
        arguments=lambda n, capacity: (integers(9, n) + 1, floats(n), capacity),
        small=((0, 3), (1, 0), (5, 12)),
        large=(3000, 200_000),
        loops=loops("i in order, c in order"),
        bound="order",
        device=(50, 20_000),
    ),
    LoopProgram(
        function=nussinov,
        family=FAMILY,
        arguments=lambda n: (integers(4, n),),
        small=((0,), (1,), (9,)),
        large=(1300,),
        loops=loops("i wavefront, j wavefront, k reduction"),
        bound="compute",
        device=(100,),
    ),
    LoopProgram(
        function=floyd_warshall,
        family=FAMILY,
        arguments=lambda n: (floats(n, n),),
        small=((0,), (1,), (7,)),
        large=(900,),
        loops=loops("k in order, i parallel, j parallel"),
        bound="compute",
        device=(100,),
    ),
    LoopProgram(
        function=viterbi,
        family=FAMILY,
        arguments=lambda n, states: (-floats(states), -floats(states, states), -floats(states, 5), integers(5, n)),
        small=((1, 1), (6, 4)),
        large=(1500, 600),
        loops=loops("s parallel, t in order, s* parallel, p reduction, s reduction, t in order"),
        bound="compute",
    ),
    LoopProgram(
        function=matrix_chain,
        family=FAMILY,
        arguments=lambda n: (floats(n + 1) * 10 + 1,),
        small=((0,), (1,), (7,)),
        large=(1200,),
        loops=loops("length in order, i* parallel, k reduction"),
        bound="compute",
    ),
)
