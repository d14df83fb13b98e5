"""What is launched, counted from programs of pieces and sizes."""

import pytest
import torch

from brickwork.codegen.grid import Form
from brickwork.ir.nodes import Launch
from brickwork.ir.parse import parse_program
from brickwork.ir.walk import walk
from brickwork.runtime.launches import LaunchFigures, launch_table, launches
from support.emulated import Emulated

HEAD = """
x_t1 = tensor('x', 1, float32, 1, contiguous=True, unit_axis=0)
out_t2 = tensor('out', 2, float32, 1, contiguous=True, unit_axis=0)
n_3 = symbol('n', 3, int64)
i_4 = symbol('i', 4, int64)
j_5 = symbol('j', 5, int64)
t_6 = symbol('t', 6, int64)
program('op', tensor(x_t1), scalar(n_3), device='cuda')
"""


def found(body, *arguments):
    return launches(parse_program(HEAD + body + "return (out_t2,)\n"), arguments)


SQUARE = """
allocate(out_t2, size(x_t1, 0))
with kernel('k', tensors=(x_t1, out_t2,), scalars=(), facts=()):
    for i_4 in range(0, size(x_t1, 0), role=parallel, width=4):
        out_t2[i_4] = mul((x_t1[i_4] @ 0), (x_t1[i_4] @ 1)) @ 2
"""


@pytest.mark.parametrize(
    ("size", "blocks", "threads"),
    [
        (0, 0, 32),
        (1, 1, 32),
        (1024, 8, 32),
        (1025, 9, 32),
        (1 << 15, 128, 64),
        (1 << 18, 256, 256),
        (10**9, 976563, 256),
    ],
)
def test_threads_take_several_iterations_each(size, blocks, threads):
    assert found(SQUARE, (size,), 0) == [LaunchFigures("k", blocks, threads, 12 * size, size, Form.PARALLEL)]


TRIANGLE = """
allocate(out_t2, size(x_t1, 0))
with kernel('k', tensors=(x_t1, out_t2,), scalars=(n_3,), facts=()):
    for i_4 in range(0, size(x_t1, 0), role=block):
        for j_5 in range(0, n_3, role=thread):
            out_t2[i_4] = (x_t1[j_5] @ 0) @ 1
"""


@pytest.mark.parametrize(
    ("rows", "length", "blocks", "threads"),
    [
        (7, 1, 1, 32),
        (1024, 1, 128, 32),
        (65536, 17, 16384, 128),
        (65536, 16, 2048, 128),
        (65536, 60, 16384, 128),
        (7, 33, 7, 64),
        (7, 512, 7, 512),
        (7, 4000, 7, 512),
        (65536, 256, 16384, 128),
        (65536, 512, 65536, 64),
    ],
)
def test_a_block_has_threads_for_its_longest_loop_or_warps_for_several_short_ones(rows, length, blocks, threads):
    assert found(TRIANGLE, (rows,), length) == [LaunchFigures("k", blocks, threads, rows * length * 8, 0, Form.BLOCK)]


TURNS = """
allocate(out_t2, size(x_t1, 0))
with kernel('k', tensors=(x_t1, out_t2,), scalars=(n_3,), facts=()):
    for i_4 in range(0, size(x_t1, 0), role=block):
        for t_6 in range(0, 3):
            for j_5 in range(0, n_3, role=thread):
                out_t2[j_5] = (x_t1[i_4] @ 0) @ 1
"""


@pytest.mark.parametrize(
    ("rows", "length", "threads"),
    [(1, 40, 64), (1, 1000, 1024), (1, 9000, 1024), (128, 9000, 1024), (200, 9000, 672), (300, 9000, 512)],
)
def test_few_blocks_that_run_turns_have_more_threads(rows, length, threads):
    (figures,) = found(TURNS, (rows,), length)
    (made,) = [
        node.kernel for node in walk(parse_program(HEAD + TURNS + "return (out_t2,)\n")) if isinstance(node, Launch)
    ]
    emulated = Emulated(made)
    empty = torch.empty(rows, device="meta")
    blocks, _, block, teams = emulated.geometry(emulated.context([empty, empty], [length]))
    assert (figures.blocks, figures.threads) == (blocks, block * teams) == (rows, threads)


TABLE = """
x_t3 = tensor('y', 3, float32, 2, contiguous=True, unit_axis=1)
program('op', tensor(x_t3), scalar(n_3), device='cuda')
with kernel('k', tensors=(x_t3,), scalars=(n_3,), facts=()):
    for i_4 in range(0, size(x_t3, 0), role=parallel):
        for j_5 in range(n_3, size(x_t3, 1), role=parallel, width=4, across=ACROSS):
            x_t3[i_4, j_5] = (x_t3[i_4, j_5] @ 0) @ 1
return (x_t3,)
"""


@pytest.mark.parametrize("across", [0, 8])
@pytest.mark.parametrize("rows", [0, 1, 3, 1000, 100_000])
@pytest.mark.parametrize("columns", [0, 1, 4, 16, 17, 130, 1028, 5000, 1 << 20])
def test_the_grid_of_a_table_is_the_one_that_is_launched(rows, columns, across):
    head = HEAD.rpartition("program")[0]
    program = parse_program(head + TABLE.replace("across=ACROSS", f"across={across}" if across else ""))
    (made,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    emulated = Emulated(made)
    x, y, wide, high = emulated.geometry(emulated.context([torch.empty(rows, columns, device="meta")], [-2]))
    assert wide * high == 256
    (figures,) = launches(program, ((rows, columns), -2))
    assert (figures.blocks, figures.threads) == (x * y, 256)


LOOP = """
allocate(out_t2, size(x_t1, 0))
for t_6 in range(0, n_3):
    if eq(mod(t_6, 2), 0):
        with kernel('even', tensors=(out_t2,), scalars=(), facts=()):
            for i_4 in range(0, size(out_t2, 0), role=parallel):
                out_t2[i_4] = to_float32(0) @ 0
    else:
        with kernel('odd', tensors=(out_t2,), scalars=(t_6,), facts=()):
            out_t2[t_6] = to_float32(1) @ 0
"""


def test_loops_and_branches_of_the_host_are_followed():
    names = [each.kernel for each in found(LOOP, (8,), 5)]
    assert names == ["even", "odd", "even", "odd", "even"]
    assert found(LOOP, (8,), 2)[1] == LaunchFigures("odd", 1, 1, 4, 0)
    assert len(found(LOOP, (8,), 10**9)) == 1000


DATA = """
allocate(out_t2, size(x_t1, 0))
with kernel('k', tensors=(x_t1, out_t2,), scalars=(), facts=()):
    for i_4 in range(0, size(x_t1, 0), role=parallel):
        for j_5 in range(0, to_int64((x_t1[i_4] @ 0))):
            out_t2[i_4] = to_float32(1) @ 1
"""


def test_what_depends_on_data_is_not_known():
    (figures,) = found(DATA, (8,), 5)
    assert (figures.blocks, figures.bytes, figures.flops) == (1, None, None)
    assert launch_table([figures])[1] == ("k", "1", "32", "-", "-")
