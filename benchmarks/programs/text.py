"""Text as arrays of numbers: search, runs, n-grams, suffixes."""

# pyright: basic
from __future__ import annotations

import torch

from benchmarks.programs.program import LoopProgram, integers, loops


def naive_search(text: torch.Tensor, pattern: torch.Tensor):
    """Where a pattern begins in a text."""
    n = len(text)
    m = len(pattern)
    found = torch.zeros(n, dtype=torch.bool)
    for i in range(n - m + 1):
        ok = True
        for j in range(m):
            if text[i + j] != pattern[j]:
                ok = False
                break
        found[i] = ok
    return found


def search_with_else(text: torch.Tensor, pattern: torch.Tensor):
    """Where a pattern begins in a text, with the `else` of a loop."""
    n = len(text)
    m = len(pattern)
    found = torch.zeros(n, dtype=torch.bool)
    for i in range(n - m + 1):
        for j in range(m):
            if text[i + j] != pattern[j]:
                break
        else:
            found[i] = True
    return found


def kmp_search(text: torch.Tensor, pattern: torch.Tensor):
    """Where a pattern begins in a text, by Knuth, Morris and Pratt's automaton."""
    n = len(text)
    m = len(pattern)
    fail = torch.zeros(m, dtype=torch.int64)
    found = torch.zeros(n, dtype=torch.bool)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[k] != pattern[i]:
            k = fail[k - 1]
        if pattern[k] == pattern[i]:
            k += 1
        fail[i] = k
    k = 0
    for i in range(n):
        while k > 0 and pattern[k] != text[i]:
            k = fail[k - 1]
        if pattern[k] == text[i]:
            k += 1
        if k == m:
            found[i - m + 1] = True
            k = fail[k - 1]
    return found


def run_length(x: torch.Tensor):
    """The runs of equal values: values, lengths, and how many there are."""
    n = len(x)
    values = torch.zeros(n, dtype=torch.int64)
    lengths = torch.zeros(n, dtype=torch.int64)
    runs = 0
    i = 0
    while i < n:
        j = i
        while j < n and x[j] == x[i]:
            j += 1
        values[runs] = x[i]
        lengths[runs] = j - i
        runs += 1
        i = j
    count = torch.zeros(1, dtype=torch.int64)
    count[0] = runs
    return values, lengths, count


def ngram_counts(text: torch.Tensor, letters: int):
    """How often each three letters follow one another, in a flat table."""
    counts = torch.zeros(letters * letters * letters, dtype=torch.int64)
    for i in range(len(text) - 2):
        code = (text[i] * letters + text[i + 1]) * letters + text[i + 2]
        counts[code] += 1
    return counts


def common_prefixes(text: torch.Tensor, suffixes: torch.Tensor):
    """How many letters each suffix of a sorted list shares with the one before it."""
    n = len(text)
    lcp = torch.zeros(len(suffixes), dtype=torch.int64)
    for r in range(1, len(suffixes)):
        a = suffixes[r - 1]
        b = suffixes[r]
        length = 0
        while a + length < n and b + length < n and text[a + length] == text[b + length]:
            length += 1
        lcp[r] = length
    return lcp


def palindromes(text: torch.Tensor):
    """The longest palindrome about each letter, by growing it."""
    n = len(text)
    radius = torch.zeros(n, dtype=torch.int64)
    for c in range(n):
        left = c - 1
        right = c + 1
        while left >= 0 and right < n and text[left] == text[right]:
            left -= 1
            right += 1
        radius[c] = right - c - 1
    return radius


def _suffixes(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    text = integers(2, n)
    keys = sum(text.roll(-place) * 2 ** (40 - place) for place in range(min(n, 40)))
    return text, torch.argsort(torch.as_tensor(keys))


FAMILY = "text"
PROGRAMS = (
    LoopProgram(
        function=naive_search,
        family=FAMILY,
        arguments=lambda n, m: (integers(2, n), integers(2, m + 1)[:m].clone()),
        small=((1, 1), (9, 2)),
        large=(40_000_000, 12),
        loops=loops("i* parallel, j in order"),
        bound="compute",
    ),
    LoopProgram(
        function=search_with_else,
        family=FAMILY,
        arguments=lambda n, m: (integers(2, n), integers(2, m + 1)[:m].clone()),
        small=((1, 1), (9, 2)),
        large=(40_000_000, 12),
        loops=loops("i* parallel, j in order"),
        bound="compute",
    ),
    LoopProgram(
        function=kmp_search,
        family=FAMILY,
        arguments=lambda n, m: (integers(2, n), integers(2, m + 1)[:m].clone()),
        small=((1, 1), (15, 3)),
        large=(50_000_000, 12),
        loops=loops("i in order, i in order"),
        bound="order",
        device=(1_000_000, 12),
    ),
    LoopProgram(
        function=run_length,
        family=FAMILY,
        arguments=lambda n: (integers(2, n),),
        small=((0,), (1,), (12,)),
        large=(50_000_000,),
        loops=(),
        bound="order",
        device=(1_000_000,),
    ),
    LoopProgram(
        function=ngram_counts,
        family=FAMILY,
        arguments=lambda n: (integers(26, n), 26),
        small=((2,), (3,), (30,)),
        large=(100_000_000,),
        loops=loops("i copies"),
        bound="order",
    ),
    LoopProgram(
        function=common_prefixes,
        family=FAMILY,
        arguments=_suffixes,
        small=((1,), (2,), (12,)),
        large=(3_000_000,),
        loops=loops("r* parallel"),
        bound="compute",
    ),
    LoopProgram(
        function=palindromes,
        family=FAMILY,
        arguments=lambda n: (integers(2, n),),
        small=((0,), (1,), (12,)),
        large=(50_000_000,),
        loops=loops("c* parallel"),
        bound="compute",
    ),
)
