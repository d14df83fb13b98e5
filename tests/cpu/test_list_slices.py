"""Slices of lists and shapes, names unpacked from rows and lists, lists of tuples: compiled, interpreted, Python."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from support.pairs import in_turn

pytestmark = pytest.mark.usefixtures("quick")


def slices(x: torch.Tensor, k: int) -> torch.Tensor:
    """Of lists that grow, lists of known length, tuples and arrays; a slice is a list of its own."""
    out = torch.zeros(12, dtype=torch.int64)
    grown = [v for v in x]
    grown.append(5)
    for j in grown[k:]:
        out[0] += j
    begin = grown[:k]
    begin.append(7)
    out[1], out[2] = len(begin), sum(begin)
    out[3] = sum(grown[::-1][:3])
    out[4] = len(grown[2:5]) + sum(grown[-2:])
    few = [3, 4, 5, 6]
    rest = few[1:]
    rest[0] = 9
    out[5] = sum(rest) + len(rest) + few[1]
    back = few[::-1]
    back.append(2)
    out[6] = back[0] + len(back)
    a, b = (1, 2, 3, 4)[2:]
    out[7] = a * b
    squares = [0] * len(x)
    for i in range(len(x)):
        squares[i] = i * i
    for i in range(len(x)):
        out[8] += max(squares[: i + 1]) - min(squares[i:]) + len(squares[i::2])
    out[9] = sum(squares[k:]) + sum(squares[:-1]) + squares[-2:][0]
    return out


def merged(x: torch.Tensor) -> torch.Tensor:
    """Merge sort of each row."""
    out = torch.zeros_like(x)
    for r in range(len(x)):
        items = [x[r, k] for k in range(6)]
        width = 1
        while width < len(items):
            found = []
            at = 0
            while at < len(items):
                a, b = items[at : at + width], items[at + width : at + 2 * width]
                i = j = 0
                while i < len(a) or j < len(b):
                    if j >= len(b) or (i < len(a) and a[i] <= b[j]):
                        found.append(a[i])
                        i += 1
                    else:
                        found.append(b[j])
                        j += 1
                at += 2 * width
            items = found
            width *= 2
        for k, v in enumerate(items):
            out[r, k] = v
    return out


def halved(x: torch.Tensor) -> torch.Tensor:
    """A list of known length takes over lists that grow."""
    out = torch.zeros(2, dtype=x.dtype)
    for c in range(2):
        items = [x[i, c] for i in range(len(x))]
        while len(items) > 1:
            half = len(items) // 2
            items = [a * b for a, b in zip(items[:half], items[half:], strict=False)] + items[2 * half :]
        out[c] = items[0]
    return out


def beams(x: torch.Tensor, k: int) -> torch.Tensor:
    """A beam search: a list of one tuple takes over slices of lists that grow."""
    kept = [(0.0, 0)]
    for t in range(len(x)):
        found = []
        for total, code in kept:
            found.append((total + x[t], code * 2 + 1))
            found.append((total - 0.5 * x[t], code * 2))
        found = sorted(found, key=lambda pair: pair[0], reverse=True)
        kept = found[:k]
    out = torch.full((4,), -1.0)
    for i, (total, code) in enumerate(kept):
        out[i] = total + code
    return out


def on_the_host(x: torch.Tensor, k: int) -> torch.Tensor:
    """Slices and unpacking outside of loops."""
    a, b, *_ = (3, 4, 5)[1:]
    p, q, r = x
    items = list(range(7))[k:]
    out = torch.zeros(4)
    for i in range(len(x)):
        items.append(x[i])
    del items[0]
    items += [8, 9][:k]
    out[0], out[1] = len(items), sum(items[1:])
    out[2] = p + q * r
    out[3] = a * b
    return out


def sized_by_parts_of_shapes(x: torch.Tensor) -> torch.Tensor:
    """Sizes that are unpacked from shapes, and from slices of them."""
    *lead, last = x.shape
    out, more = torch.zeros(*x.shape[:-1], last + 1), x.new_zeros(*lead, 2)
    whole = torch.ones(*x.shape)
    for i, j, k in bw.indices(x):
        more[i, j, k % 2] += x[i, j, k]
        out[i, j, k] = whole[i, j, k] + more[i, j, 0] * 2
    return out


def unpacked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Rows, parts of rows and lists give names their items."""
    out = torch.zeros(len(x), dtype=x.dtype)
    for i, ((a, b, c), v) in enumerate(zip(x, w, strict=False)):
        out[i] = a * b + c * v
    for i in range(len(x)):
        a, b, c = x[i]
        d, e = x[i, 1:]
        f, g, h = [v * 2 for v in x[i]]
        s, t, u = (x[i, k] - 0.5 for k in range(3))
        out[i] += a - b * c + d * e + f - g * h + s * t - u
    return out


def corners(i: int, j: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (i, j), (i + 1, j + 1)


def neighbours(i: int, j: int, height: int, width: int) -> list[tuple[int, int]]:
    found = []
    for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
        if 0 <= a < height and 0 <= b < width:
            found.append((a, b))
    return found


def over_calls(x: torch.Tensor) -> torch.Tensor:
    """Loops over what helpers and comprehensions give."""
    height, width = x.shape
    out = torch.zeros_like(x)
    for i in range(height):
        for j in range(width):
            for a, b in neighbours(i, j, height, width):
                out[i, j] += x[a, b] - x[i, j]
            for k, (a, b) in enumerate(corners(i, j)):
                out[i, j] += x[a % height, b % width] * k
            for v in [x[i, j], x[i, -j]]:
                out[i, j] += v
            for v in [x[i, k] * 2 for k in range(width) if k != j]:
                out[i, j] += v
    return out


def pairs(x: torch.Tensor) -> torch.Tensor:
    """Lists of tuples by `zip`, `enumerate`, `reversed`, repetition and helpers; their extremes."""
    out = torch.zeros(len(x), 8)
    for n in range(len(x)):
        items = [x[n] % 3, 1, x[0]]
        out[n, 0] = list(reversed(items))[n % 3] * sorted(zip(items, range(3), strict=False))[0][1]
        for a, (b, c) in enumerate(list(zip(items, x, strict=False))):
            out[n, 1] += a * b * c
        out[n, 2] = tuple(enumerate(items))[1][1] + max(zip(items, range(3), strict=False))[0]
        grown = []
        for i in range(n + 1):
            grown.append((x[i] % 3, -i))
        best, least = max(grown), min(grown)
        out[n, 3] = best[0] - best[1] * 10 + least[0] * 100 - least[1] * 1000
        repeated = [(0, 3)] * 3
        repeated[1] = (5, n)
        for a, b in repeated:
            out[n, 4] += a * b
        made = [corners(i, n) for i in range(2)]
        out[n, 5] = made[n % 2][1][0]
        k = x[n] + 1
        sized, mixed, none = [1, 2] * k, [0.0] + [i * 0.5 for i in range(k)], [0] * (k - 9)
        sized[-1] = 7
        mixed[-1] += 1
        out[n, 6], out[n, 7] = sum(sized) + len(none), sum(mixed)
    return out


def operator(function: Callable[..., Any]) -> bw.Op:
    return bw.op("list_slices::" + function.__name__)(function)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((slices, (torch.arange(9), k)) for k in (2, -3, 70)),
    (slices, (torch.arange(3), 1)),
    (merged, (torch.randint(0, 9, (3, 6)),)),
    (halved, (torch.randn(7, 2),)),
    (beams, (torch.randn(6), 2)),
    (beams, (torch.randn(6), 0)),
    (on_the_host, (torch.randn(3), 2)),
    (sized_by_parts_of_shapes, (torch.randn(2, 3, 4),)),
    (unpacked, (torch.randn(5, 3), torch.randn(5))),
    (over_calls, (torch.randn(4, 5),)),
    (pairs, (torch.randint(0, 5, (6,)),)),
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
        torch.testing.assert_close(made.python(*arguments), function(*arguments))
    finally:
        config.check = before


def test_names_want_as_many_items() -> None:
    with pytest.raises(ValueError, match="3 names are assigned, but there are 2 values"):
        operator(unpacked)(torch.randn(5, 2), torch.randn(5))


def test_gradients_flow_through_unpacked_rows() -> None:
    arguments = torch.randn(4, 3, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64)
    assert torch.autograd.gradcheck(operator(unpacked), arguments)


def test_a_slice_is_not_stored_into() -> None:
    def changed(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(len(x))
        for i in range(len(x)):
            items = [1, 2]
            items.append(i)
            items[1:] = [5]
            out[i] = items[1]
        return out

    with pytest.raises(bw.CompileError, match="a slice of a list is stored into"):
        operator(changed)(torch.randn(3))
