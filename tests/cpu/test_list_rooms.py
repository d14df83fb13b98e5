"""How much room lists have that get the items of others, and lists that get more items in other ways than `append`."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from support.sweep import sampled

pytestmark = pytest.mark.usefixtures("quick")


def copied(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Lists that get the items of longer lists than one of unknown length has room for."""
    out = torch.zeros(4 + len(k), dtype=torch.int64)
    items = [v for v in x]
    items.append(3)
    copy = items[:]
    copy.append(1)
    more = [1]
    more.extend(copy)
    more += [v for v in copy]
    again = []
    for i in range(len(more)):
        again.append(more[i])
    out[0], out[1], out[2], out[3] = len(copy), len(more), sum(more), sum(again)
    for i in range(len(k)):
        late = []
        for j in range(500):
            if j >= k[i]:
                late.append(j)
        rest = late[:]
        rest.append(i)
        ordered = sorted(sorted(rest), key=lambda v: -v)
        out[4 + i] = sum(rest) + ordered[0]
    return out


def in_turns(x: torch.Tensor) -> torch.Tensor:
    """Lists that get the items of one another."""
    out = torch.zeros(2)
    front = [0]
    for _ in range(3):
        following = []
        for v in front:
            following.append(v + 1)
        for i in range(len(x)):
            following.append(i)
        front = following
    out[0], out[1] = len(front), sum(front)
    return out


def pairs(n: int) -> torch.Tensor:
    """A list of pairs of items of a list that a `while` fills: its room is no product of guesses."""
    out = torch.zeros(1)
    items, found = [], []
    while len(items) < n:
        items.append(len(items))
    for v in items:
        for w in items:
            found.append(v * w)
    out[0] = sum(found)
    return out


def moved(n: int) -> torch.Tensor:
    """A list that gets more items than the guess of its own room says."""
    out = torch.zeros(1)
    items = []
    while len(items) < n:
        items.append(len(items))
    rest = bw.bounded(3)
    rest += items
    out[0] = len(rest)
    return out


def lengthened(x: torch.Tensor) -> torch.Tensor:
    """`+=` of whatever there is, `extend` of a generator; all names of the list see it."""
    out = torch.zeros(len(x) + 2)
    more = [1]
    for i in range(len(x)):
        more.append(i)
    items = []
    also = items
    items += more
    items += (7, 8)
    items += range(3)
    items += x
    items.extend(v * 2 for v in more if v > 1)
    out[0], out[1] = sum(also), len(also)
    for i in range(len(x)):
        short = [2, 3]
        pair = [x[i], x[i]]
        short += pair
        row = [0.5] * 20
        row[i] = 1
        row += pair
        out[i + 2] = sum(short) * len(row) + sum(row)
    return out


def operator(function: Callable[..., Any]) -> bw.Op:
    return bw.op("list_rooms::" + function.__name__)(function)


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (copied, (torch.randint(0, 9, (9000,)), torch.tensor([0, 100, 499]))),
    (in_turns, (torch.rand(1000),)),
    (pairs, (90,)),
    (lengthened, (torch.arange(5.0),)),
    (moved, (3,)),
]


@pytest.mark.parametrize(
    ("function", "arguments", "check"),
    sampled([(*each, check) for check in ("", "interpret") for each in PROGRAMS], 2),
)
def test_compiled_code_agrees_with_python(function: Callable[..., Any], arguments: tuple[Any, ...], check: str) -> None:
    before, config.check = config.check, check
    try:
        made = operator(function)
        torch.testing.assert_close(made(*arguments), function(*arguments))
        torch.testing.assert_close(made.python(*arguments), function(*arguments))
    finally:
        config.check = before


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        (in_turns, (torch.rand(9000),), "list 'following' is full: it has room for 17192 items"),
        (pairs, (91,), "list 'found' is full: it has room for 8192 items; `found = bw.bounded(n)` makes room for n"),
        (moved, (4,), "list 'rest' is full: it has room for 3 items"),
    ],
)
def test_full_lists_are_errors(function: Callable[..., Any], arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(IndexError) as caught:
        operator(function)(*arguments)
    assert text in str(caught.value)


def test_a_bounded_list_is_bounded_in_python() -> None:
    few = bw.bounded(2)
    few += [1, 2]
    for add in (lambda: few.append(3), lambda: few.insert(0, 3), lambda: few.extend([3]), lambda: few.__iadd__([3])):
        with pytest.raises(IndexError, match="at most 2 items is full"):
            add()
