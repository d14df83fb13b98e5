"""Programs that try to leave memory, or to get another answer than Python: aliases, carried indices, ends of integers.

Each runs compiled, as op.python, and as plain Python where torch's own elements mean the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw

pytestmark = pytest.mark.usefixtures("quick")

LEAST, MOST, NAN = -(2**63), 2**63 - 1, float("nan")


def shifted(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        y[i] = x[i] + 1


def backwards(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] = y[i] * 2 + x[i]


def summed(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(y.shape[0]):
            s += y[j]
        x[i] = s


def crossed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> None:
    for i in range(3):
        z[i + 1] += x[i]
        y[i] -= z[5 - i]


def doubled(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 2 + 1


def chased(k: torch.Tensor) -> None:
    for i in range(k.shape[0]):
        k[k[i]] = i


def followed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        p, n = i, 0
        while x[p] != 0 and n < 100:
            p = int(x[p])
            n += 1
        out[i] = n * 10 + p
    return out


def moved(x: torch.Tensor, k: int) -> None:
    for i in range(x.shape[0] - 3):
        x[i + k] = x[i] + 1


def wandered(x: torch.Tensor, s: int) -> None:
    p = s
    for i in range(x.shape[0]):
        x[p] += i
        p = (p * 5 + 1) % x.shape[0] - x.shape[0]


def lagged(x: torch.Tensor, s: int) -> None:
    p = s
    for i in range(x.shape[0]):
        q = p
        p = i
        x[q] = 7.0


def rising(x: torch.Tensor, s: int) -> None:
    p = s
    for i in range(x.shape[0]):
        x[p] = i
        p += 3


def falling(x: torch.Tensor, s: int) -> None:
    i = s
    while i > -9:
        x[i] += i
        i -= 2


def strided(x: torch.Tensor, m: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i * m]
    return out


def ranged(x: torch.Tensor, a: int, b: int, s: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(a, b, s):
        out[i] = x[i] + x[-i - 1]
    return out


def sliced(x: torch.Tensor, a: int, b: int) -> torch.Tensor:
    out = torch.zeros(3, dtype=x.dtype)
    for i in range(3):
        out[i] = x[a:].sum() + x[:b].sum() * i + x[b:a].sum()
    return out


def rows_of_ends(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(p.shape[0] - 1)
    for i in range(p.shape[0] - 1):
        for e in range(p[i], p[i + 1]):
            out[i] += x[e]
    return out


def searched(x: torch.Tensor, most: float) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(i, 100):
            if x[j] > most:
                break
            out[i] += x[j]
    return out


def divided(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] // y[i] + x[i] % y[i]
    return out


def shifts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = (x[i] >> y[i]) + (x[i] << y[i]) * 2
    return out


def wrapped(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i] - 300
    return out


def counted(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(3, dtype=torch.int64)
    for i in range(x.shape[0]):
        out[i % 3] += x[i] * 3
    return out


def truncated(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], dtype=torch.int8)
    for i in range(x.shape[0]):
        out[i] = int(x[i])
    return out


def picked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(y.shape[0]):
        out[i] = x[int(y[i])]
    return out


def compared(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 3)
    for i in range(x.shape[0]):
        best, most, least = 0, x[i, 0], math.inf
        for j in range(x.shape[1]):
            if not x[i, j] <= x[i, best]:
                best = j
            most, least = max(most, x[i, j]), min(least, x[i, j])
        out[i, 0], out[i, 1], out[i, 2] = best, most, least
    return out


def views_of_views(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        rest = x[i][1:]
        for j in range(rest.shape[0]):
            row = rest[j]
            for k in range(row.shape[0]):
                row[k] = row[k] * 10 + i + j + k


def scalars(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(())
    for i in range(y.shape[0]):
        out[()] += y[i] * x[()]
    x[()] = out[()]
    return out


def stacked(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], dtype=torch.int64)
    kept = []
    for i in range(x.shape[0]):
        while len(kept) > 0 and x[kept[-1]] % 3 >= x[i] % 3:
            kept.pop()
        out[i] = kept[-1] if len(kept) > 0 else -1
        kept.append(i)
    return out


def popped(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for i in range(2):
        kept = []
        if x[i] > 0:
            kept.append(x[i])
        out[0] += kept.pop()
    return out


def made(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty(n, n)
    for i in range(2):
        out[i, 0] = x[i]
    return out


def ends(x: torch.Tensor, last: int) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        out[i] = x[i % x.shape[0]] + x[last]
    return out


def base(count: int, *parts: slice) -> tuple[torch.Tensor, ...]:
    whole = torch.arange(float(count))
    return tuple(whole[part] for part in parts)


F, I = torch.arange(10.0), torch.arange(10)
HOLES = torch.tensor([[1.0, NAN, 2.0], [NAN, 1.0, 0.0], [0.0, 1.0, NAN]])
AGREE: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = [
    (shifted, lambda: base(10, slice(9), slice(1, None))),
    (backwards, lambda: base(10, slice(9), slice(1, None))),
    (summed, lambda: base(8, slice(None), slice(None))),
    (summed, lambda: base(8, slice(None), slice(3, 4))),
    (crossed, lambda: base(6, slice(3), slice(2, None), slice(None))),
    (doubled, lambda: (torch.arange(10.0).as_strided((4, 4), (2, 1)),)),
    (chased, lambda: (torch.tensor([4, 3, 2, 1, 0]),)),
    (followed, lambda: (torch.tensor([1, 2, 3, 4, 0, 1]),)),
    *((moved, lambda k=k: (F.clone(), k)) for k in (3, 0, -1, 1)),
    (wandered, lambda: (F.clone(), 3)),
    (ranged, lambda: (F, 7, -3, -2)),
    *((sliced, lambda a=a, b=b: (F, a, b)) for a, b in ((-3, 7), (MOST, LEAST), (LEAST, MOST))),
    (rows_of_ends, lambda: (torch.tensor([0, 2, 1, 3, 3]), F)),
    (searched, lambda: (F, 5.0)),
    (divided, lambda: (torch.tensor([LEAST, 5, -5, 7]), torch.tensor([-1, -1, 3, -3]))),
    (divided, lambda: (torch.tensor([-128, 127], dtype=torch.int8), torch.tensor([-1, -1], dtype=torch.int8))),
    (shifts, lambda: (torch.tensor([1, -1, 7, LEAST]), torch.tensor([64, 70, 63, 1]))),
    (wrapped, lambda: (torch.tensor([200, 100, 0, 255], dtype=torch.uint8),)),
    (counted, lambda: (torch.tensor([True, False, True, True]),)),
    (compared, lambda: (HOLES,)),
    (views_of_views, lambda: (torch.arange(60.0).reshape(3, 4, 5)[1:, ::2].transpose(1, 2)[:, 1:],)),
    (scalars, lambda: (torch.tensor(3.0), F)),
    (stacked, lambda: (I,)),
]
OWN: list[tuple[Callable[..., Any], tuple[Any, ...], list[int]]] = [
    (truncated, (torch.tensor([1e30, -1e30, 300.5, -3.9, NAN]),), [-1, 0, 44, -3, 0]),
    (shifts, (torch.tensor([3], dtype=torch.uint8), torch.tensor([200], dtype=torch.uint8)), [0]),
]
RAISE: list[tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], type[Exception]]] = [
    (chased, lambda: (torch.tensor([1, 2, 3, 4, 9]),), IndexError),
    (followed, lambda: (torch.tensor([1, 2, 3, 50, 0]),), IndexError),
    *((lagged, lambda s=s: (torch.zeros(8), s), IndexError) for s in (8, -9, 5_000_000, LEAST, MOST)),
    (rising, lambda: (torch.zeros(8), -9), IndexError),
    (falling, lambda: (torch.zeros(5), 3), IndexError),
    *((strided, lambda m=m: (F, m), IndexError) for m in (2**31, 2**32, -(2**31), 2)),
    (ranged, lambda: (F, 0, 10, 0), ValueError),
    (ranged, lambda: (F, 2**62, 2**62 + 3, 1), IndexError),
    (rows_of_ends, lambda: (torch.tensor([0, 2, 11]), F), IndexError),
    (rows_of_ends, lambda: (torch.tensor([-11, -9]), F), IndexError),
    (searched, lambda: (F, 15.0), IndexError),
    (divided, lambda: (torch.tensor([1, 2]), torch.tensor([1, 0])), ZeroDivisionError),
    (shifts, lambda: (torch.tensor([1]), torch.tensor([-1])), ValueError),
    *((picked, lambda v=v: (F, torch.tensor([2.0, v])), IndexError) for v in (1e30, -1e30, 10.0, -11.0)),
    (popped, lambda: (torch.tensor([1.0, -1.0]),), IndexError),
    *((made, lambda n=n: (F, n), RuntimeError) for n in (-1, 2**32, 2**62)),
    (ends, lambda: (torch.zeros(0), 0), ZeroDivisionError),
    (ends, lambda: (torch.zeros(2), 2), IndexError),
    (ends, lambda: (torch.zeros(2), -3), IndexError),
]


def operator(function: Callable[..., Any]) -> bw.Op:
    return bw.op(f"hostile::{function.__name__}")(function)


def outcome(run: Callable[..., Any], given: tuple[Any, ...]) -> list[torch.Tensor]:
    returned = run(*given)
    return [item for item in (returned, *given) if isinstance(item, torch.Tensor)]


@pytest.mark.parametrize(("function", "arguments"), AGREE)
def test_answers_are_pythons(function: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]]) -> None:
    op = operator(function)
    expected = outcome(function, arguments())
    for run in (op, op.python):
        torch.testing.assert_close(outcome(run, arguments()), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("function", "arguments", "expected"), OWN)
def test_numbers_beyond_a_type_are_as_described(
    function: Callable[..., Any], arguments: tuple[Any, ...], expected: list[int]
) -> None:
    op = operator(function)
    assert op(*arguments).tolist() == expected
    assert op.python(*arguments).tolist() == expected


@pytest.mark.parametrize(("function", "arguments", "failure"), RAISE)
def test_nothing_outside_is_touched(
    function: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], failure: type[Exception]
) -> None:
    op = operator(function)
    for run in (op, op.python):
        with pytest.raises(failure):
            run(*arguments())
