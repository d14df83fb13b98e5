"""Rows of groups, as long as an argument or a literal says: blocks of threads share them out on grids."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For, If, Role
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.versions import SHARED
from support.lowering import argument_type, memory
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program


def scales(x: torch.Tensor, group: int):
    """Find the greatest number of each group of half of a row."""
    half = x.shape[1] // 2
    out = torch.zeros(x.shape[0], half // group)
    for t in range(x.shape[0]):
        for g in range(half // group):
            top = 0.0
            for i in range(group):
                top = max(top, abs(x[t, g * group + i] * x[t, half + g * group + i]))
            out[t, g] = top
    return out


def long_literal(x: torch.Tensor):
    out = torch.zeros(x.shape[0], x.shape[1] // 32)
    for t in range(x.shape[0]):
        for g in range(x.shape[1] // 32):
            for i in range(32):
                out[t, g] += x[t, g * 32 + i]
    return out


def computed(x: torch.Tensor):
    """Read one element for all terms: a thread may just as well add them up."""
    out = torch.zeros(x.shape[0])
    for t in range(x.shape[0]):
        for i in range(32):
            out[t] += x[t, 0] / (i + 1)
    return out


def short_literal(x: torch.Tensor):
    out = torch.zeros(x.shape[0], x.shape[1] // 31)
    for t in range(x.shape[0]):
        for g in range(x.shape[1] // 31):
            for i in range(31):
                out[t, g] += x[t, g * 31 + i]
    return out


def far_apart(x: torch.Tensor, at: torch.Tensor, group: int):
    """Sum what elements say, which blocks would read no better."""
    out = torch.zeros(x.shape[0], len(at) // group)
    for t in range(x.shape[0]):
        for g in range(len(at) // group):
            s = 0.0
            for i in range(group):
                s += x[t, at[g * group + i]]
            out[t, g] = s
    return out


X = memory([[float((7 * i + 5 * j) % 13 - 6) for j in range(66)] for i in range(3)])
AT = memory([(5 * i) % 7 for i in range(12)], INT64)


def versions(function: Callable[..., object], *arguments: object) -> tuple[set[Role], set[str]]:
    """Return the roles of the loops over `i` on a grid, and the names of the versions."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    roles = {node.role for node in walk(pieces.body) if isinstance(node, For) and node.index.name == "i"}
    return roles, {node.version for node in walk(pieces.body) if isinstance(node, If)}


@pytest.mark.parametrize(
    ("function", "arguments", "shared"),
    [(scales, (X, 5), True), (long_literal, (X,), True), (short_literal, (X,), False), (computed, (X,), False)],
)
def test_blocks_share_long_groups_out(function, arguments, shared):
    roles, names = versions(function, *arguments)
    assert (Role.THREAD in roles) is shared
    assert not any(name.startswith(SHARED) for name in names) or not shared
    same(function, *arguments)


def test_groups_of_any_length():
    for group in (1, 4, 33, 34):
        same(scales, X, group)


def test_places_that_iterations_share_are_for_one_thread():
    _, names = versions(far_apart, X, AT, 3)
    assert any(name.startswith(SHARED) for name in names)
    same(far_apart, X, AT, 3)
