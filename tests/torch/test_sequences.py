"""`heapq` and `bisect` on lists, tensors and rows: the results, and the layout of heaps, are the standard library's."""

import bisect
import heapq
from heapq import heappop, heappush

import pytest
import torch

import brickwork as bw

Tensor = torch.Tensor


@bw.op("bwsequences::heaps")
def heaps(x: Tensor, most: int) -> Tensor:
    """What each function of `heapq` gives; the heap as it is laid out comes last."""
    heap = bw.bounded(len(x) + 1)
    out = torch.zeros(5, len(x))
    for i in range(len(x)):
        heapq.heappush(heap, x[i])
        out[0, i] = heap[len(heap) // 2]
        if len(heap) > most:
            out[1, i] = heapq.heapreplace(heap, -x[i])
        out[2, i] = heapq.heappushpop(heap, 2 * x[i])
    for i in range(len(x) // 2):
        out[3, i] = heapq.heappop(heap)
    again = [v for v in x if v != 0]
    heapq.heapify(again)
    for i in range(len(again)):
        out[4, i] = again[i]
    return out


def plain_heaps(x, most):
    heap, out, values = [], torch.zeros(5, len(x)), x.tolist()
    for i, v in enumerate(values):
        heapq.heappush(heap, v)
        out[0, i] = heap[len(heap) // 2]
        if len(heap) > most:
            out[1, i] = heapq.heapreplace(heap, -v)
        out[2, i] = heapq.heappushpop(heap, 2 * v)
    for i in range(len(x) // 2):
        out[3, i] = heapq.heappop(heap)
    again = [v for v in values if v != 0]
    heapq.heapify(again)
    out[4, : len(again)] = torch.tensor(again)
    return out


@bw.op("bwsequences::shortest")
def shortest(w: Tensor, start: int) -> Tensor:
    """Shortest paths, by a heap of pairs."""
    n = len(w)
    out = torch.full((n,), float("inf"))
    out[start] = 0
    waiting = [(0.0, start)]
    while waiting:
        length, u = heappop(waiting)
        if length > out[u]:
            continue
        for v in range(n):
            if length + w[u, v] < out[v]:
                out[v] = length + w[u, v]
                heappush(waiting, (length + w[u, v], v))
    return out


@bw.op("bwsequences::places")
def places(rows: Tensor, values: Tensor) -> Tensor:
    n = len(values)
    out = torch.zeros(4, n, dtype=torch.int64)
    for i in range(n):
        out[0, i] = bisect.bisect_left(rows[i], values[i])
        out[1, i] = bisect.bisect_right(rows[i], values[i])
        out[2, i] = bisect.bisect(rows[0], values[i], 2)
        out[3, i] = bisect.bisect_left(rows[0], values[i], hi=5, lo=1)
    return out


@bw.op("bwsequences::inserted")
def inserted(x: Tensor) -> Tensor:
    left, right = [], []
    for i, v in enumerate(x):
        bisect.insort_left(left, (v, i), hi=len(left))
        bisect.insort(right, v)
    out = torch.zeros(3, len(x))
    for i in range(len(x)):
        out[0, i], out[1, i] = left[i]
        out[2, i] = right[i]
    return out


@pytest.mark.parametrize("count", [0, 1, 2, 9, 40])
def test_heaps_are_those_of_the_standard_library(count):
    x = torch.randint(-8, 9, (count,)).float()
    torch.testing.assert_close(heaps(x, 4), plain_heaps(x, 4), rtol=0, atol=0)
    torch.testing.assert_close(heaps.python(x, 4), plain_heaps(x, 4), rtol=0, atol=0)


def test_a_heap_of_pairs_finds_shortest_paths():
    w = torch.rand(12, 12) + 0.01
    expected = w.clone().fill_diagonal_(0)
    for k in range(12):
        expected = torch.minimum(expected, expected[:, k : k + 1] + expected[k])
    torch.testing.assert_close(shortest(w, 3), expected[3])
    torch.testing.assert_close(shortest.python(w, 3), expected[3])


def test_places_in_rows_are_those_of_the_standard_library():
    rows = torch.randint(0, 9, (6, 7)).float().sort(1)[0]
    values = torch.randint(-1, 10, (6,)).float()
    listed, first = rows.tolist(), rows[0].tolist()
    expected = torch.tensor(
        [
            [bisect.bisect_left(row, v) for row, v in zip(listed, values.tolist(), strict=True)],
            [bisect.bisect_right(row, v) for row, v in zip(listed, values.tolist(), strict=True)],
            [bisect.bisect(first, v, 2) for v in values.tolist()],
            [bisect.bisect_left(first, v, 1, 5) for v in values.tolist()],
        ]
    )
    assert torch.equal(places(rows, values), expected)
    places.check(rows, values)
    assert "for i at" in (said := places.explain(rows, values))
    assert "in parallel" in said


def test_lists_are_kept_sorted():
    x = torch.randint(0, 5, (20,)).float()
    values, order = x.sort(stable=True)
    expected = torch.stack([values, order.float(), values])
    torch.testing.assert_close(inserted(x), expected)
    torch.testing.assert_close(inserted.python(x), expected)


@bw.op("bwsequences::emptied")
def emptied(x: Tensor) -> Tensor:
    heap = [x[0]]
    out = torch.zeros(2)
    for i in range(len(x)):
        out[i] = heappop(heap)
    return out


@bw.op("bwsequences::behind")
def behind(x: Tensor, low: int) -> Tensor:
    out = torch.zeros(1, dtype=torch.int64)
    out[0] = bisect.bisect_left(x, 1.0, low)
    return out


def test_failures_are_those_of_the_standard_library():
    with pytest.raises(IndexError, match="pop from empty list"):
        emptied(torch.ones(2))
    with pytest.raises(ValueError, match="lo must be non-negative"):
        behind(torch.ones(2), -1)
