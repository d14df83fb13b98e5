"""Lists in operators do what Python's lists do: on the CPU, in the interpreter, and in pieces for a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.codegen.llvm import optimised_ir
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Kernel, Local
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_program
from support.tensors import argument_type, to_memory, to_tensor

COEFFICIENTS = [1.0, -0.5, 0.25]


def histogram(x: torch.Tensor, out: torch.Tensor):
    for i in range(x.shape[0]):
        h = [0] * 16
        for j in range(x.shape[1]):
            h[x[i, j]] += 1
        for k, count in enumerate(h):
            out[i, k] = count


def median(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            w = [0.0] * 25
            c = 0
            for a in range(-2, 3):
                for b in range(-2, 3):
                    w[c] = x[min(max(i + a, 0), n - 1), min(max(j + b, 0), m - 1)]
                    c += 1
            for p in range(1, 25):
                v = w[p]
                q = p - 1
                while q >= 0 and w[q] > v:
                    w[q + 1] = w[q]
                    q -= 1
                w[q + 1] = v
            out[i, j] = w[12]
    return out


def inverse(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        m = [[x[b, i, j] for j in range(3)] for i in range(3)]
        e = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        for c in range(3):
            p = c
            for r in range(c + 1, 3):
                if abs(m[r][c]) > abs(m[p][c]):
                    p = r
            m[c], m[p] = m[p], m[c]
            e[c], e[p] = e[p], e[c]
            d = 1.0 / m[c][c]
            for k in range(3):
                m[c][k] *= d
                e[c][k] *= d
            for r in range(3):
                if r != c:
                    f = m[r][c]
                    for k in range(3):
                        m[r][k] -= f * m[c][k]
                        e[r][k] -= f * e[c][k]
        for i in range(3):
            for j in range(3):
                out[b, i, j] = e[i][j]
    return out


def knapsack(w: torch.Tensor, v: torch.Tensor, limit: int) -> torch.Tensor:
    dp = [0] * (limit + 1)
    for i in range(w.shape[0]):
        for c in range(limit, w[i] - 1, -1):
            dp[c] = max(dp[c], dp[c - w[i]] + v[i])
    return dp[limit]


def edit_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, m = a.shape[0], b.shape[0]
    prev = [j for j in range(m + 1)]
    cur = [0] * (m + 1)
    for i in range(1, n + 1):
        cur[0] = i
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            cur[j] = min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost)
        prev, cur = cur, prev
    return prev[m]


def edit_distance_of_new_rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, m = a.shape[0], b.shape[0]
    prev = [j for j in range(m + 1)]
    for i in range(1, n + 1):
        cur = [i] + [0] * m
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            cur[j] = min(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + cost)
        prev = cur
    return prev[-1]


def shortest_paths(g: torch.Tensor, out: torch.Tensor):
    n = g.shape[0]
    d = [[g[i, j] for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i][k] + d[k][j] < d[i][j]:
                    d[i][j] = d[i][k] + d[k][j]
    for i in range(n):
        for j in range(n):
            out[i, j] = d[i][j]


def insert(h, n):
    for p in range(1, n):
        v = h[p]
        q = p - 1
        while q >= 0 and h[q] > v:
            h[q + 1] = h[q]
            q -= 1
        h[q + 1] = v
    return h


def by_helpers(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        h = [x[i, 0], x[i, 1], x[i, 2]]
        g = insert(h, len(h))
        g[0], g[-1] = g[-1], g[0]
        s = 0.0
        for v in h:
            s = s * 10 + v
        out[i] = s + sum(h) + max(g) - h[-1]
    return out


def polynomial(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        c = COEFFICIENTS[:]
        c[1] = x[i]
        d = c.copy()
        d[0] = 2.0
        s = 0.0
        for k in range(len(c) - 1, -1, -1):
            s = s * x[i] + c[k] * d[k]
        out[i] = s
    return out


def filled(x: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
    """Counts the cells that hang together with a seed in a grid of 6 by 6, with a stack of a fixed size."""
    out = torch.zeros(seeds.shape[0], dtype=torch.int64)
    for s in range(seeds.shape[0]):
        stack = [0] * 36
        seen = [[False] * 6 for _ in range(6)]
        stack[0] = seeds[s]
        seen[seeds[s] // 6][seeds[s] % 6] = True
        top = 1
        count = 0
        while top > 0:
            top -= 1
            at = stack[top]
            count += 1
            for di, dj in [(-1, 0), (1, 0), (0, -1), (0, 1)]:
                i, j = at // 6 + di, at % 6 + dj
                if i >= 0 and i < 6 and j >= 0 and j < 6:
                    if not seen[i][j] and x[i, j] > 0:
                        seen[i][j] = True
                        stack[top] = i * 6 + j
                        top += 1
        out[s] = count
    return out


def time_steps(x: torch.Tensor, steps: int):
    """A list in a loop that runs in order, which a loop over many elements reads and another one writes."""
    for t in range(steps):
        sums = [0.0, 0.0]
        weights = [1.0 / (k + t + 1) for k in range(4)]
        for i in range(x.shape[0]):
            x[i] = x[i] * weights[i % 4] + weights[3]
        for i in range(x.shape[0]):
            sums[i % 2] += x[i]
        for i in range(x.shape[0]):
            x[i] -= sums[(i + 1) % 2]


def chosen(x: torch.Tensor) -> torch.Tensor:
    """Lists that get other lists in branches and turns."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        a = [x[i], 1.0]
        b = [2.0, x[i] * 2]
        if x[i] > 0:
            a, b = b, a
        for _ in range(3):
            b = [a[1] + 1, b[0]]
            if b[0] > 3:
                a = [b[1] * 0.5, b[0]]
        out[i] = a[0] + 10 * a[1] + 100 * b[0] + 1000 * b[1]
    return out


def exchanged(x: torch.Tensor) -> torch.Tensor:
    """Displays that change places, beside and in loops."""
    out = torch.empty_like(x)
    p = [1.0, 2.0]
    q = [3.0, 4.0]
    for i in range(x.shape[0]):
        a = [1.0, x[i]]
        b = [3.0, 4.0]
        for k in range(3):
            a, b = b, a
            a[k % 2] += x[i]
        p[0] += x[i]
        p, q = q, p
        out[i] = a[0] + 10 * a[1] + 100 * b[0] + 1000 * b[1] + p[0] - p[1] * q[0]
    return out


def arguments(name: str) -> list[object]:
    make = torch.Generator().manual_seed(0)
    whole = {
        "histogram": [torch.randint(0, 16, (9, 50), generator=make), torch.zeros(9, 16, dtype=torch.int64)],
        "median": [torch.randn(6, 21, generator=make)],
        "inverse": [torch.randn(21, 3, 3, dtype=torch.float64, generator=make)],
        "knapsack": [torch.randint(1, 10, (12,), generator=make), torch.randint(1, 100, (12,), generator=make), 40],
        "shortest_paths": [torch.rand(9, 9, generator=make), torch.zeros(9, 9)],
        "by_helpers": [torch.randn(21, 3, generator=make)],
        "filled": [torch.randint(0, 3, (6, 6), generator=make), torch.arange(36)],
        "time_steps": [torch.randn(37, generator=make, dtype=torch.float64), 3],
    }
    words: list[object] = [torch.randint(0, 3, (12,), generator=make), torch.randint(0, 3, (17,), generator=make)]
    return whole.get(name) or (words if name.startswith("edit") else [torch.randn(37, generator=make)])


PROGRAMS: list[Callable[..., object]] = [
    histogram,
    median,
    inverse,
    knapsack,
    edit_distance,
    edit_distance_of_new_rows,
    shortest_paths,
    by_helpers,
    polynomial,
    filled,
    time_steps,
    chosen,
    exchanged,
]


def copies(given: list[object]) -> list[object]:
    return [item.clone() if isinstance(item, torch.Tensor) else item for item in given]


def outcome(found: object, after: list[object]) -> list[torch.Tensor]:
    results = [found] if isinstance(found, torch.Tensor) else []
    return [*results, *(item for item in after if isinstance(item, torch.Tensor))]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_programs_with_lists(function: Callable[..., object]):
    name, given = function.__name__, arguments(function.__name__)
    operator = bw.op(f"lists::{name}")(function)
    wanted, found = copies(given), copies(given)
    expected = outcome(operator.python(*wanted), wanted)
    for one, other in zip(outcome(operator(*found), found), expected, strict=True):
        torch.testing.assert_close(one, other)
    types = tuple(map(argument_type, given))
    program = lower(define(function), Signature(types))
    pieces = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
    pieces = schedule_program(pieces, cuda_target((9, 0)))[0]
    for made, check in ((program, False), (pieces, True)):
        verify_program(made)
        memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in copies(given)]
        results = run_program(made, memories, check=check)
        after = [to_tensor(item) for item in memories if not isinstance(item, int)]
        for one, other in zip([*map(to_tensor, results), *after], expected, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("function", "loops"), [(median, "ij"), (inverse, "b"), (histogram, "i"), (filled, "s")])
def test_loops_around_a_list_are_independent(function: Callable[..., object], loops: str):
    types = tuple(map(argument_type, arguments(function.__name__)))
    program = lower(define(function), Signature(types))
    kernel = next(node for node in walk(program) if isinstance(node, Kernel))
    verdicts = {symbol.name: verdict.independent for symbol, verdict in analyse(kernel).loops.items()}
    assert all(verdicts[name] for name in loops)


def ragged(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = [[0.0], [1.0, 2.0]]
        h[i][0] = x[i]


def same_rows(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = [[0.0] * 3] * 4
        h[i][0] = x[i]


def of_unknown_length(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = [[0.0] * int(x[i]) for _ in range(2)]
        x[i] = h[0][0]


def returned(x: torch.Tensor):
    h = [0.0] * x.shape[0]
    for i in range(x.shape[0]):
        h[i] = x[i]
    return h


def with_other_names(x: torch.Tensor):
    for i in range(x.shape[0]):
        a = [0.0, 1.0]
        b = [2.0, 3.0]
        c = a
        for _ in range(3):
            a, b = b, a
            a[0] += 1
        x[i] = a[0] + c[1]


def read_after_it_was_given_away(x: torch.Tensor):
    for i in range(x.shape[0]):
        a = [0.0, 1.0]
        for _ in range(3):
            b = [2.0, x[i]]
            a = b
            b[0] = a[1]
        x[i] = a[0]


def given_away_in_turns(x: torch.Tensor):
    for i in range(x.shape[0]):
        a = [0.0, 1.0]
        b = [2.0, x[i]]
        for _ in range(3):
            a = b
            a[1] += 1
        x[i] = a[0] + b[0]


def tuple_stored(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = (0.0, 1.0)
        h[0] = x[i]


def too_large(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = [0.0] * 10000
        h[0] = x[i]


def sliced(x: torch.Tensor):
    for i in range(x.shape[0]):
        h = [[0.0] * 3 for _ in range(4)]
        h[i][0] = x[i]
        x[i] = h[1:3][0][0]


def of_two_branches(x: torch.Tensor):
    for i in range(x.shape[0]):
        if x[i] > 0:
            h = [1.0, x[i]]
        else:
            h = [x[i], 2.0]
        h[i % 2] += 1
        x[i] = h[0]


REFUSED = [
    (of_two_branches, "`h` stands for one list or another here"),
    (ragged, "the rows of a list differ in length"),
    (same_rows, "all rows of this list are one and the same list"),
    (of_unknown_length, "the length of a list depends on what the loops compute"),
    (returned, "`h` is a list, and operators return tensors"),
    (with_other_names, "`a` gets another list here, but is not the only name of the one that it stands for"),
    (read_after_it_was_given_away, "`b` is read, but line"),
    (given_away_in_turns, "`b` stands for no list in the next iteration, as its list got another name"),
    (tuple_stored, "`h` is a tuple, or a list from outside of the loops: it is not stored into"),
    (too_large, "a list of 10000 items in a loop takes more than 64 KiB an iteration"),
    (sliced, "a slice of a nested list"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=lambda item: getattr(item, "__name__", ""))
def test_what_lists_cannot_do_is_refused_by_name(function: Callable[..., object], message: str):
    with pytest.raises(CompileError) as caught:
        lower(define(function), Signature((argument_type(torch.zeros(3)),)))
    assert caught.value.diagnostics[0].message.startswith(message)


def solved(x: torch.Tensor, out: torch.Tensor):
    for b in range(x.shape[0]):
        m = [[0.0] * 4 for _ in range(3)]
        for i in range(3):
            for j in range(4):
                m[i][j] = x[b, i, j]
        for c in range(3):
            d = 1.0 / m[c][c]
            for k in range(4):
                m[c][k] *= d
            for r in range(3):
                if r != c:
                    f = m[r][c]
                    for k in range(4):
                        m[r][k] -= f * m[c][k]
        for i in range(3):
            out[b, i] = m[i][3]


def test_short_lists_take_no_memory():
    operator = bw.op("lists::solved")(solved)
    given = (torch.randn(50, 3, 4), torch.zeros(50, 3))
    text, of_floats = operator.inspect("llvm", *given), re.compile(r"alloca .*float")
    assert of_floats.search(text)
    assert not of_floats.search(optimised_ir(text, host_target()))
    code = operator.inspect("ptx", *given, device="sm_90")
    assert "ld.global" in code
    assert ".local" not in code


def typed(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        c = COEFFICIENTS[:]
        c[1] = x[i]
        d = c.copy()
        out[i] = d[0] * x[i]
    return out


def test_items_are_of_the_type_that_all_of_them_meet_in():
    for dtype in (torch.float32, torch.float64):
        program = lower(define(typed), Signature((argument_type(torch.zeros(3, dtype=dtype)),)))
        made = [node.tensor for node in walk(program) if isinstance(node, Local)]
        assert [str(tensor.type.dtype) for tensor in made] == [str(dtype).removeprefix("torch.")] * 2


def test_lists_of_one_length_change_places_without_moving_items() -> None:
    @bw.op
    def rows(x: torch.Tensor, turns: int) -> torch.Tensor:
        n = len(x)
        prev = [0.0] * n
        cur = [1.0] * n
        for t in range(turns):
            for j in range(1, n):
                cur[j] = prev[j - 1] + cur[j - 1] * x[j]
            if x[0] > t:
                prev, cur = cur, prev
        out = torch.zeros(2, n, dtype=torch.float64)
        for j in range(n):
            out[0, j] = prev[j]
            out[1, j] = cur[j]
        return out

    x = torch.arange(5.0, dtype=torch.float64)
    for first in (0.0, 2.0, 9.0):
        x[0] = first
        assert torch.equal(rows(x, 4), rows.python(x, 4))
    assert "rebind" in rows.inspect("ir", x, 4)
