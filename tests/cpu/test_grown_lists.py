"""Lists that grow: compiled code, the interpreter and Python agree, and a full list is an error."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError
from support.pairs import in_turn

pytestmark = pytest.mark.usefixtures("quick")


def kept(x: torch.Tensor, level: float) -> torch.Tensor:
    out = torch.zeros_like(x)
    found = []
    for i in range(len(x)):
        if x[i] > level:
            found.append(i)
    for k in range(len(found)):
        out[k] = x[found[k]]
    return out


def suppressed(boxes: torch.Tensor, level: float) -> torch.Tensor:
    """Non-maximum suppression in one dimension."""
    n = boxes.shape[0]
    out = torch.full((n,), -1, dtype=torch.int64)
    keep = []
    for i in range(n):
        for j in keep:
            if min(boxes[i, 1], boxes[j, 1]) - max(boxes[i, 0], boxes[j, 0]) > level:
                break
        else:
            keep.append(i)
    for k, i in enumerate(keep):
        out[k] = i
    return out


def flooded(grid: torch.Tensor, r: int, c: int) -> torch.Tensor:
    """Fill a region, with a stack of pairs."""
    h, w = grid.shape
    out = torch.zeros_like(grid)
    stack = [(r, c)]
    out[r, c] = 1
    while stack:
        i, j = stack.pop()
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = i + di, j + dj
            if 0 <= a < h and 0 <= b < w and grid[a, b] == grid[r, c] and not out[a, b]:
                out[a, b] = 1
                stack.append((a, b))
    return out


def distances(start: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """Distances in a graph from each of its nodes, with a queue in the loop."""
    n = len(start) - 1
    out = torch.full((n, n), -1, dtype=torch.int64)
    for s in range(n):
        out[s, s] = 0
        queue = bw.bounded(64)
        queue.append(s)
        while len(queue) > 0:
            u = queue.pop(0)
            for e in range(start[u], start[u + 1]):
                if out[s, to[e]] < 0:
                    out[s, to[e]] = out[s, u] + 1
                    queue.append(to[e])
    return out


def by_levels(start: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    """Distances from the first node, with one list for each distance."""
    out = torch.full((len(start) - 1,), -1, dtype=torch.int64)
    out[0] = 0
    frontier = [0]
    far = 0
    while frontier:
        following = []
        far += 1
        for u in frontier:
            for e in range(start[u], start[u + 1]):
                if out[to[e]] < 0:
                    out[to[e]] = far
                    following.append(to[e])
        frontier = following
    return out


def largest(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros(n, 3, dtype=x.dtype)
    for i in range(n):
        best = []
        for j in range(m):
            if len(best) < 3:
                best.append(x[i, j])
                continue
            low = 0
            for k in range(1, 3):
                if best[k] < best[low]:
                    low = k
            if x[i, j] > best[low]:
                best[low] = x[i, j]
        for k in range(len(best)):
            out[i, k] = best[k] * best[k]
    return out


def push(stack: list[Any], item: float) -> None:
    stack.append(item)


def methods(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(8)
    positive = [v for v in x if v > 0]
    pairs = [(i, j) for i in range(3) for j in range(i + 1, 3) if x[i] > x[j]]
    out[0], out[1] = sum(positive), len(pairs)
    out[2] = max(positive) if positive else -1
    for i, j in reversed(pairs):
        out[3] = 10 * out[3] + i + j
    a = [1, 2]
    a.insert(1, 5)
    a.extend([7, 8])
    a += [9]
    a.reverse()
    b = a.pop(1)
    push(a, 3)
    out[4] = a[-1] + 10 * b + 100 * a[0] + 1000 * len(a)
    out[5] = 1 if 7 in a and 12 not in a else 0
    a.clear()
    a.append(len(a))
    rest = list(range(5))
    while len(rest) > 2:
        a.append(rest.pop())
    copy = a[:]
    copy.append(1)
    out[6] = len(copy) * 10 + len(a)
    out[7] = a[1] + sum(w for v, w in zip(a, copy))
    return out


def triangle(n: int, room: int) -> torch.Tensor:
    out = torch.zeros(n)
    for i in range(n):
        few = bw.bounded(room)
        for j in range(i):
            few.append(j)
        out[i] = sum(few) + len(few)
    return out


def emptied(n: int) -> torch.Tensor:
    out = torch.zeros(1)
    items = [0]
    for i in range(n):
        out[0] += items.pop()
    return out


def outside(x: torch.Tensor) -> torch.Tensor:
    items = []
    for i in range(len(x)):
        items.append(x[i])
    out = torch.zeros(1)
    out[0] = items[len(x)]
    return out


def endless(n: int) -> torch.Tensor:
    out = torch.zeros(1)
    items = []
    i = 0
    while i < n:
        items.append(i)
        i += 1
    out[0] = len(items)
    return out


def edits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The edit distance, row by row."""
    before = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        row = [i]
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + cost))
        before = row
    out = torch.zeros(1)
    out[0] = before[-1]
    return out


def nearest(points: torch.Tensor, queries: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.zeros(len(queries), 2 * k, dtype=torch.int64)
    for q in range(len(queries)):
        found = []
        for i in range(len(points)):
            found.append(((points[i] - queries[q]) ** 2, i))
        found.sort()
        order = sorted(range(len(points)), key=lambda i: -abs(points[i] - queries[q]))
        for j in range(k):
            out[q, j] = found[j][1]
            out[q, k + j] = order[j]
    return out


def shortest(w: torch.Tensor) -> torch.Tensor:
    """Dijkstra's algorithm."""
    n = w.shape[0]
    out = torch.full((n,), math.inf)
    out[0] = 0.0
    todo = list(range(n))
    while todo:
        u = min(todo, key=lambda v: out[v])
        todo.remove(u)
        for v in range(n):
            if out[u] + w[u, v] < out[v]:
                out[v] = out[u] + w[u, v]
    return out


def steps(grid: torch.Tensor) -> torch.Tensor:
    h, w = grid.shape
    out = torch.full((h, w), -1)
    queue = deque()
    queue.append((0, 0))
    out[0, 0] = 0
    while queue:
        i, j = queue.popleft()
        for a, b in [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]:
            if 0 <= a < h and 0 <= b < w and grid[a, b] and out[a, b] < 0:
                out[a, b] = out[i, j] + 1
                queue.append((a, b))
    return out


def value_of(text: torch.Tensor) -> torch.Tensor:
    """The value of a sum of products, as characters."""
    out = torch.zeros(1, dtype=torch.int64)
    stack = []
    number, operator = 0, ord("+")
    for i in range(len(text) + 1):
        c = text[i] if i < len(text) else 0
        if ord("0") <= c <= ord("9"):
            number = number * 10 + c - ord("0")
            continue
        if operator == ord("+"):
            stack.append(number)
        elif operator == ord("-"):
            stack.append(-number)
        elif operator == ord("*"):
            stack.append(stack.pop() * number)
        else:
            raise ValueError(f"unknown operator {operator}")
        operator, number = c, 0
    out[0] = sum(stack)
    return out


def orders(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(14)
    items = [v for v in x]
    out[0] = items.index(x[4])
    items.remove(x[3])
    items.sort(reverse=True)
    for k in range(len(items)):
        out[k + 1] = items[k]
    pairs = sorted([(v % 2, i) for i, v in enumerate(x)], reverse=True)
    out[11] = pairs[0][1] * 10 + sorted(x)[0]
    out[12] = max(range(len(x)), key=lambda i: x[i])
    out[13] = sum(w * v for w, v in enumerate(sorted(x[i] for i in range(3))))
    return out


def tens(v: float) -> float:
    return v // 10


def stable(x: torch.Tensor, backward: bool, k: int) -> torch.Tensor:
    """Items with one key keep their order, whichever way they are sorted."""
    n = len(x)
    out = torch.zeros(6, n)
    items = [v for v in x]
    up = sorted(items, key=tens, reverse=False)
    down = sorted(items, key=tens, reverse=True)
    said = sorted(items, key=lambda v: v // 10, reverse=backward)
    unsaid = sorted(items, key=tens, reverse=not k > 1)
    places = [max(range(3), key=lambda v: x[v]) + v for v in range(n)]
    for i in range(n):
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = up[i], down[i], said[i], unsaid[i], places[i]
    out[5, 0], out[5, 1] = min(items, key=tens), max(items, key=tens)
    return out


def looked_up(x: torch.Tensor, k: int) -> torch.Tensor:
    """Read an item of a list while it grows: the check cannot move out of the loop."""
    out = torch.zeros_like(x)
    items = [1.0]
    for i in range(len(x)):
        if x[i] > 0:
            items.append(x[i])
        out[i] = items[k]
    return out


def vast(x: torch.Tensor) -> torch.Tensor:
    """Lists in a loop that a stack has no room for."""
    out = torch.zeros(len(x))
    for i in range(len(x)):
        stated = bw.bounded(4000000)
        for j in range(i):
            stated.append((j, x[j]))
        counted = []
        for j in range(1500000):
            if j % 100000 == i:
                counted.append(j)
        out[i] = len(stated) + counted[-1] + sum(v * w for v, w in stated)
    return out


def nothing(n: int) -> torch.Tensor:
    out = torch.zeros(1)
    for i in range(n):
        items = bw.bounded(0)
        items.append(i)
        out[0] = len(items)
    return out


def negative(n: int) -> torch.Tensor:
    out = torch.zeros(1)
    items = bw.bounded(-n)
    for i in range(n):
        items.append(i)
    out[0] = len(items)
    return out


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except bw.CompileError:
        raise
    except IndexError as error:
        return type(error)


def operator(function: Callable[..., Any]) -> bw.Op:
    return bw.op("grown::" + function.__name__)(function)


def graph(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    edges = torch.rand(n, n, generator=torch.Generator().manual_seed(3)) > 0.85
    return torch.cat([torch.zeros(1), edges.sum(1).cumsum(0)]).long(), edges.nonzero()[:, 1]


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (kept, (torch.randn(20), 0.0)),
    (kept, (torch.randn(0), 0.0)),
    (suppressed, (torch.rand(30, 2).sort(1).values, 0.2)),
    (flooded, ((torch.rand(9, 9) > 0.4).int(), 4, 4)),
    (distances, graph(16)),
    (by_levels, graph(16)),
    (largest, (torch.randn(5, 9),)),
    (methods, (torch.randn(6),)),
    (triangle, (4, 4)),
    (endless, (50,)),
    (looked_up, (torch.randn(9), 0)),
    (looked_up, (torch.randn(9), -1)),
    (edits, (torch.randint(0, 3, (8,)), torch.randint(0, 3, (9,)))),
    (nearest, (torch.randn(12), torch.randn(4), 3)),
    (shortest, (torch.rand(6, 6),)),
    (steps, ((torch.rand(7, 7) > 0.3).int(),)),
    (value_of, (torch.tensor([ord(c) for c in "12+34*2-7"]),)),
    (orders, (torch.randint(0, 5, (9,)),)),
    (vast, (torch.rand(3),)),
    (stable, (torch.tensor([11, 12, 3, 1, 25, 21]), False, 1)),
    (stable, (torch.tensor([11, 12, 3, 1, 25, 21]), True, 2)),
    (negative, (0,)),
]


@pytest.mark.parametrize(
    ("function", "arguments", "check"),
    [(*each, check) for each, check in in_turn(PROGRAMS, ["", "interpret", ""], 1)],
    ids=[each[0].__name__ for each in PROGRAMS],
)
def test_compiled_code_agrees_with_python(function: Callable[..., Any], arguments: tuple[Any, ...], check: str) -> None:
    before, config.check = config.check, check
    try:
        made = operator(function)
        torch.testing.assert_close(made(*arguments), function(*arguments))
    finally:
        config.check = before


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (triangle, (7, 4), "list 'few' is full: it has room for 4 items (triangle"),
        (looked_up, (torch.ones(3), 2), "index 2 is out of range for list 'items' of length 2"),
        (emptied, (2,), "pop from empty list 'items'"),
        (nothing, (1,), "list 'items' is full: it has room for 0 items"),
        (negative, (1,), "list 'items' is full: it has room for 0 items"),
        (outside, (torch.rand(3),), "index 3 is out of range for list 'items' of length 3"),
        (
            endless,
            (9000,),
            "list 'items' is full: it has room for 8192 items; `items = bw.bounded(n)` makes",
        ),
    ],
)
def test_full_and_empty_lists_are_errors(function: Callable[..., Any], arguments: tuple[Any, ...], text: str) -> None:
    made = operator(function)
    with pytest.raises(IndexError) as caught:
        made(*arguments)
    assert text in str(caught.value)
    if function is not endless:
        assert outcome(made.python, *arguments) is IndexError


def runs(x: torch.Tensor) -> torch.Tensor:
    """Lengths of runs: a condition reads items before the source has said what they are."""
    found = []
    for v in x:
        if found and found[-1][0] == v:
            found[-1] = (v, found[-1][1] + 1)
        else:
            found.append((v, 1))
    out = torch.zeros(len(x), 2, dtype=x.dtype)
    for k, (v, count) in enumerate(found):
        out[k, 0], out[k, 1] = v, count
    return out


@pytest.mark.parametrize("x", [[0, 0, 1, 1, 1, 0], [2.0, 2.0], [3], []])
def test_items_that_are_read_before_they_are_known(x: list[float]) -> None:
    given = torch.tensor(x)
    operator = bw.op("grown::runs")(runs)
    for call in (operator, operator.python):
        torch.testing.assert_close(call(given), runs(given))


def test_a_function_may_have_the_name_of_a_builtin() -> None:
    def max(v: float, key: float) -> float:  # noqa: A001  # This name is what is tested.
        return v + key

    def named(x: torch.Tensor) -> torch.Tensor:
        def min(v: float, key: float) -> float:  # noqa: A001  # This name is what is tested.
            return v - key

        out = torch.zeros_like(x)
        for i in range(len(x)):
            out[i] = min(x[i], key=2.0) * max(x[i], key=3.0)
        return out

    x = torch.randn(4)
    torch.testing.assert_close(operator(named)(x), named(x))


def test_gradients_flow_through_items() -> None:
    made = operator(largest)
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(made, (x,))
    expected = torch.func.vmap(made)(x[:, None])[:, 0]
    torch.testing.assert_close(expected, made(x))


def test_a_loop_with_lists_of_its_own_runs_in_parallel() -> None:
    def short(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x))
        for i in range(len(x)):
            few = []
            for j in range(4):
                if x[i, j] > 0:
                    few.append(j)
            out[i] = sum(few)
        return out

    made = operator(short)
    x = torch.randn(6, 4)
    torch.testing.assert_close(made(x), made.python(x))
    assert "for i at" in made.explain(x)
    assert "in parallel" in made.explain(x).partition("for i at")[2].partition("\n")[0]


def refused(function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(CompileError) as caught:
        operator(function)(*arguments)
    return str(caught.value)


def test_what_is_refused() -> None:
    def changes(x: torch.Tensor) -> None:
        items = [0]
        for i in items:
            items.append(i)
            x[0] = i

    def renamed(x: torch.Tensor) -> None:
        items = [0]
        other = items
        for _, i in zip(range(3), items):
            other.append(i)
            x[0] = i

    def shrinks(x: torch.Tensor) -> None:
        items = [0, 1]
        rest = [items.pop() for _ in items]
        x[0] = len(rest)

    def replaced(x: torch.Tensor) -> None:
        items = [0]
        items.append(1)
        for k, i in enumerate(items):
            items = [i, k]
        x[0] = items[0]

    def mixed(x: torch.Tensor) -> None:
        for i in range(len(x)):
            items = [(i, 1)]
            items.append(2)
            x[i] = len(items)

    def room(x: torch.Tensor) -> None:
        for i in range(len(x)):
            items = bw.bounded(int(x[i]))
            items.append(2)
            x[i] = len(items)

    def aliased(x: torch.Tensor) -> None:
        one, other = [1], [2]
        third = one
        for i in range(len(x)):
            x[i] = len(one)
            one = other
            third.append(i)

    def pairs(x: torch.Tensor) -> None:
        for i in bw.prange(len(x)):
            items = bw.bounded(5000)
            items.append((i, 1))
            x[i] = len(items)

    x = torch.zeros(3)
    assert "a list of more than 64 KiB" in refused(pairs, x)
    for function in (changes, renamed, shrinks, replaced):
        assert "`items` changes while a loop runs over it" in refused(function, x)
    assert "`items` holds items of another form, and gets a Python int" in refused(mixed, x)
    assert "the room of a list depends on what the loops compute" in refused(room, x)
    assert "gets a list that has other names" in refused(aliased, x)
