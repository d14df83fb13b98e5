"""Programs as textbooks write them: names of loops read behind them, lists and tuples joined, characters of texts."""

import base64
import heapq
import random

import pytest
import torch

import brickwork as bw

Tensor = torch.Tensor

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@bw.op("bwtextbook::first_positive")
def first_positive(x: Tensor, known: int) -> Tensor:
    out = torch.zeros(4)
    for i in range(6):
        if x[i] > 0:
            break
    out[0] = i
    for k, b in enumerate((1.0, 2.0, 3.0)):
        out[1] += x[k] * b
    out[2] = k * b
    at = 0
    for at in range(known):
        if x[at] > 0:
            break
    out[3] = at
    return out


def plain_first_positive(x, known):
    first = next((i for i, v in enumerate(x) if v > 0), 5)
    after = next((i for i, v in enumerate(x[:known]) if v > 0), max(known - 1, 0))
    return torch.tensor([first, sum(v * (k + 1) for k, v in enumerate(x[:3])), 6.0, after])


@pytest.mark.parametrize("x", [[-1.0] * 6, [1.0] * 6, [-1.0, -1, 2, 1, 1, 1]])
@pytest.mark.parametrize("known", [0, 1, 6])
def test_the_name_of_a_loop_may_be_read_behind_it(x, known):
    expected = plain_first_positive(x, known)
    torch.testing.assert_close(first_positive(torch.tensor(x), known), expected)
    torch.testing.assert_close(first_positive.python(torch.tensor(x), known), expected)


@bw.op("bwtextbook::argmax")
def argmax(x: Tensor) -> Tensor:
    out = torch.zeros(len(x), dtype=torch.int64)
    for r in range(len(x)):
        for j in range(4):
            if x[r, j] > 0.5:
                break
        out[r] = j
    return out


def test_loops_around_stay_parallel():
    x = torch.rand(10, 4)
    assert torch.equal(argmax(x), argmax.python(x))
    assert "in parallel" in argmax.explain(x)


def turn(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


@bw.op("bwtextbook::hull")
def hull(points: Tensor) -> Tensor:
    """Convex hull, by two chains that are joined; -1 behind the last corner."""
    items = sorted((points[i, 0], points[i, 1]) for i in range(len(points)))
    lower, upper = [], []
    for p in items:
        while len(lower) >= 2 and turn(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    for p in reversed(items):
        while len(upper) >= 2 and turn(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    found = lower[:-1] + upper[:-1]
    out = torch.full((len(points), 2), -1.0)
    for i, p in enumerate(found):
        out[i, 0], out[i, 1] = p
    return out


def test_lists_are_joined():
    points = torch.rand(20, 2)
    found = hull(points)
    assert torch.equal(found, hull.python(points))
    corners = found[found[:, 0] >= 0]
    following = corners.roll(-1, 0)
    for p in points:
        sides = (following - corners)[:, 0] * (p[1] - corners[:, 1]) - (following - corners)[:, 1] * (
            p[0] - corners[:, 0]
        )
        assert bool((sides >= -1e-6).all())


@bw.op("bwtextbook::joined")
def joined(x: Tensor) -> Tensor:
    pair = (x[0], x[1]) + (2.0,)  # noqa: RUF005  # as users write it
    low, high = [9.0], []
    for v in x:
        if v > 0:
            high.append(v)
        else:
            low.append(v)
    both = low + high + [pair[2]]
    fixed = [x[0], 1.0] + [x[1]]  # noqa: RUF005  # as users write it
    out = torch.zeros(len(x) + 6)
    for i, v in enumerate(both):
        out[i] = v
    out[len(x) + 3] = len(both)
    out[len(x) + 4] = sum(pair) + len(pair)
    out[len(x) + 5] = fixed[2] + len(fixed)
    return out


@pytest.mark.parametrize("values", [[1.0, -2.0, 3.0, -4.0], [1.0, 2.0], [-1.0, -2.0]])
def test_lists_and_tuples_are_joined(values):
    x = torch.tensor(values)
    low, high = [9.0, *(v for v in values if v <= 0)], [v for v in values if v > 0]
    both = [*low, *high, 2.0]
    expected = torch.tensor([*both, 0.0, len(both), sum(values[:2]) + 2 + 3, values[1] + 3])
    torch.testing.assert_close(joined(x), expected)
    torch.testing.assert_close(joined.python(x), expected)


@bw.op("bwtextbook::encoded")
def encoded(data: Tensor) -> Tensor:
    """Base64."""
    n = len(data)
    out = torch.full(((n + 2) // 3 * 4,), ord("="), dtype=torch.uint8)
    for i in range(0, n, 3):
        chunk = data[i] << 16
        if i + 1 < n:
            chunk |= data[i + 1] << 8
        if i + 2 < n:
            chunk |= data[i + 2]
        for k in range(4):
            if i + k <= n:
                out[i // 3 * 4 + k] = ord(DIGITS[(chunk >> (18 - 6 * k)) & 63])
    return out


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10])
def test_characters_of_texts_are_numbers(count):
    data = bytes(random.Random(count).randrange(256) for _ in range(count))
    x = torch.tensor([*data], dtype=torch.uint8)
    assert bytes(encoded(x).tolist()) == base64.b64encode(data)
    assert bytes(encoded.python(x).tolist()) == base64.b64encode(data)


@bw.op("bwtextbook::code_lengths")
def code_lengths(weights: Tensor) -> Tensor:
    """Huffman's code."""
    n = len(weights)
    heap, above = [], [-1] * (2 * n)
    for i in range(n):
        heapq.heappush(heap, (weights[i], i))
    new = n
    while len(heap) > 1:
        one, a = heapq.heappop(heap)
        other, b = heapq.heappop(heap)
        above[a] = above[b] = new
        heapq.heappush(heap, (one + other, new))
        new += 1
    out = torch.zeros(n, dtype=torch.int64)
    for i in range(n):
        node = i
        while above[node] != -1:
            out[i] += 1
            node = above[node]
    return out


def test_codes_are_full():
    lengths = code_lengths(torch.rand(11))
    assert (2.0 ** -lengths.double()).sum() == 1
