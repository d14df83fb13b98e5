"""Iterations that run together compute what they compute one by one, also where their number is not a multiple."""

import random
from dataclasses import replace
from itertools import count

import pytest
import torch

from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Launch, Node, Program, Role
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import LANES_LIMIT
from brickwork.transform.verbs.unroll_jam import unroll_jam
from support.causal import timex
from support.lowering import memory, nested, program_of
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
    assert "unroll(b, 4, jam, 2)" in str(scheduled.schedule)
    jammed = [node for node in walk(scheduled.kernel.body) if isinstance(node, For) and node.index.name == "b_block"]
    accumulating = [
        node for each in jammed for node in walk(each.body) if isinstance(node, For) and node.index.name == "u"
    ]
    assert [len(loop.body) for loop in accumulating] == [4, 2]


def drifting(x: torch.Tensor, n: int, a: int, b: int, c: int, d: int):
    """Sum, in an order that counts, over iterations that lie elsewhere for each i."""
    sums = torch.empty(n, dtype=torch.float64)
    for i in range(n):
        s = 1.0
        for u in range(a * i + b, c * i + d):
            s = 0.5 * s + x[u + 60]
        sums[i] = s
    return sums


def wedge(x: torch.Tensor, n: int, a: int, b: int, c: int, d: int):
    """Fill what lies between two lines; each row has a place of its own."""
    y = torch.zeros(n, 120, dtype=torch.float64)
    for i in range(n):
        y[i, 0] = x[i]
        for u in range(a * i + b, c * i + d):
            for v in range(2):
                y[i, u + 60] += x[u + 60] * x[v]
    return y


def jammed(program: Program, factor: int) -> Program:
    """Return the program with the loop over i jammed, whatever a schedule would say."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Launch):
            return node
        numbers = count(1000)
        body = [unroll_jam(item, factor, numbers) if isinstance(item, For) else (item,) for item in node.kernel.body]
        return Launch(kernel=replace(node.kernel, body=sum(body, ())))

    return rewrite(program, visit)


@pytest.mark.parametrize("function", [drifting, wedge])
def test_inner_loops_that_drift_apart_run_as_they_did(function):
    x, source = memory([0.1 * number for number in range(120)], FLOAT64), random.Random(0)
    for number in range(30):
        first, second = ((source.randint(-3, 3), source.randint(-20, 20)) for _ in range(2))
        given = (x, source.randint(0, 10), *first, *second)
        program = program_of(function, *given)
        plain, fast = (run_program(each, given) for each in (program, jammed(program, 2 + number % 3)))
        assert nested(plain[0]) == nested(fast[0]), given[1:]


def test_what_drifting_loops_have_in_common_is_one_loop():
    program = program_of(drifting, memory([0.0], FLOAT64), 8, 1, 0, 1, 9)
    (launch,) = [node for node in walk(jammed(program, 4)) if isinstance(node, Launch)]
    (block,) = [node for node in walk(launch.kernel.body) if isinstance(node, For) and node.index.name == "i_block"]
    assert sorted(len(item.body) for item in block.body if isinstance(item, For)) == [1] * 8 + [4]


def test_heads_without_variables_are_written_once():
    program = program_of(wedge, memory([0.0], FLOAT64), 8, 1, 0, 0, 9)
    (launch,) = [node for node in walk(jammed(program, 4)) if isinstance(node, Launch)]
    (block,) = [node for node in walk(launch.kernel.body) if isinstance(node, For) and node.index.name == "i_block"]
    heads, common, tails = (item for item in block.body if isinstance(item, For))
    for apart in (heads, tails):
        assert [node.index.name for node in walk(apart) if isinstance(node, For)] == ["i", "u", "v"]
    assert len([node for node in walk(common) if isinstance(node, For)]) == 2


def triangular_product(a: torch.Tensor, b: torch.Tensor):
    """The lower half of a, times b."""
    n, m = b.shape
    out = torch.empty(n, m, dtype=torch.float64)
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(i + 1):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def upper_gram(a: torch.Tensor):
    """The products of columns, those on one side of the diagonal."""
    n, m = a.shape
    out = torch.zeros(m, m, dtype=torch.float64)
    for i in range(m):
        for j in range(i, m):
            for k in range(n):
                out[i, j] += a[k, i] * a[k, j]
    return out


@pytest.mark.parametrize("size", [1, 4, 7, 10])
def test_triangles_run_in_jam(size):
    rows = [[float((3 * i + 5 * j) % 7) for j in range(size)] for i in range(size)]
    a, b = memory(rows, FLOAT64), memory(rows[::-1], FLOAT64)
    for function, arguments in ((triangular_product, (a, b)), (upper_gram, (a,))):
        (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
        assert "unroll(i, 4, jam)" in str(schedule_kernel(launch.kernel, AVX2).schedule)
        agree(function, *arguments)


def convolution(x: torch.Tensor, w: torch.Tensor):
    """Slide windows over images of several channels."""
    batch, channels, width = x.shape
    outs, _, columns = w.shape
    out = torch.empty(batch, outs, width, dtype=torch.float64)
    for b in range(batch):
        for o in range(outs):
            for z in range(width):
                s = 0.0
                for c in range(channels):
                    for v in range(columns):
                        j = z + v - 1
                        if 0 <= j < width:
                            s += x[b, c, j] * w[o, c, v]
                out[b, o, z] = s
    return out


@pytest.mark.parametrize("outs", [1, 4, 6])
def test_windows_over_channels_run_in_jam_and_what_is_left_in_parallel(outs):
    x = memory([[[float((3 * i + 5 * j + b) % 7) for j in range(9)] for i in range(2)] for b in range(2)], FLOAT64)
    w = memory([[[float(o + 2 * c - v) for v in range(3)] for c in range(2)] for o in range(outs)], FLOAT64)
    agree(convolution, x, w)
    (launch,) = [node for node in walk(program_of(convolution, x, w)) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    assert "unroll(o, 4, jam)" in str(scheduled.schedule)
    outer = [node for node in walk(scheduled.kernel.body) if isinstance(node, For) and node.index.name == "b"]
    inner = [
        [item.index.name for item in node.body if isinstance(item, For)] for node in outer if node.role is Role.PARALLEL
    ]
    assert inner == [["o_block"], ["o"]]


def product(a: torch.Tensor, b: torch.Tensor):
    """A product of matrices."""
    n, m = a.shape[0], b.shape[1]
    out = torch.empty(n, m, dtype=torch.float64)
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(len(b)):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def test_what_is_left_over_has_more_lanes_unless_they_run_apart():
    a = memory([[0.0]], FLOAT64)
    (plain,) = [node for node in walk(program_of(product, a, a)) if isinstance(node, Launch)]
    (triangle,) = [node for node in walk(program_of(timex, *inputs(4), 0.5)) if isinstance(node, Launch)]
    widths = [
        [node.width for node in walk(schedule_kernel(launch.kernel, AVX2).kernel.body) if isinstance(node, For)]
        for launch in (plain, triangle)
    ]
    assert [[width for width in each if width > 1][-3:] for each in widths] == [[8, 16, 32], [16, 16, 16]]
    scheduled = schedule_kernel(plain.kernel, replace(AVX2, vector_bytes=256))
    assert max(node.width for node in walk(scheduled.kernel.body) if isinstance(node, For)) == LANES_LIMIT
    for rows in (1, 2, 3, 7):
        a = memory([[float(i - j) for j in range(5)] for i in range(rows)], FLOAT64)
        agree(product, a, memory([[float(i * j % 7) for j in range(40)] for i in range(5)], FLOAT64))
