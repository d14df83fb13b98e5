"""Iterations that run together compute what they compute one by one, also where their number is not a multiple."""

import pytest

from brickwork.ir.nodes import For, Launch
from brickwork.ir.walk import walk
from brickwork.transform.pipeline import schedule_kernel
from support.causal import timex
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree


def inputs(batch, steps=3):
    w = [[float(u + 1) for u in range(steps)] for _ in range(2)]
    k = [[[float(b * 7 + c * 3 + t) for t in range(steps)] for c in range(2)] for b in range(batch)]
    return memory(w), memory(k)


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 9])
def test_every_batch_size_is_computed_once(batch):
    w, k = inputs(batch)
    expected = [
        0.5 + sum(w.data[c * 3 + 2 - t + u] * k.data[(b * 2 + c) * 3 + u] for u in range(t + 1))
        for b in range(batch)
        for c in range(2)
        for t in range(3)
    ]
    found = [value for rows in agree(timex, w, k, 0.5) for row in rows for value in row]
    assert found == expected


def test_the_copies_share_one_accumulating_loop():
    (launch,) = [node for node in walk(program_of(timex, *inputs(4), 0.5)) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    assert "jam(b, 4)" in str(scheduled.schedule)
    (jammed,) = [node for node in walk(scheduled.kernel.body) if isinstance(node, For) and node.index.name == "b_block"]
    (accumulating,) = [node for node in walk(jammed.body) if isinstance(node, For) and node.index.name == "u"]
    assert len(accumulating.body) == 4
