"""Blocks of threads with shared arrays and waits, on processors; and the table of the profiler."""

import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu, kernel_profiler=True)
    yield
    ti.reset()


def test_rows_turned_by_way_of_a_shared_array():
    @ti.kernel
    def turn(x: ti.types.ndarray(ndim=2), y: ti.types.ndarray(ndim=2)):
        ti.loop_config(block_dim=16)
        for i, j in x:
            row = ti.simt.block.SharedArray((16,), ti.f32)
            value = x[i, j]
            row[j] = value * 2.0
            ti.simt.block.sync()
            y[i, j] = row[15 - j] + value

    x = torch.randn(5, 16)
    y = torch.zeros(5, 16)
    turn(x, y)
    assert torch.equal(y, x.flip(1) * 2 + x)


def test_sums_by_halves_wait_in_a_loop():
    @ti.kernel
    def total(x: ti.types.ndarray(ndim=1), out: ti.types.ndarray(ndim=1)):
        ti.loop_config(block_dim=32)
        for i in range(100):
            part = ti.simt.block.SharedArray((32,), ti.f32)
            thread = i % 32
            part[thread] = x[i]
            for left in range(i // 32 * 32 + 32 - 100, 0):
                if thread < -left:
                    part[thread] += 0.0
            ti.simt.block.sync()
            for step in range(5):
                half = 16 >> step
                if thread < half:
                    part[thread] += part[thread + half]
                ti.simt.block.sync()
            if thread == 0:
                out[i // 32] = part[0]

    x = torch.arange(96.0)
    out = torch.zeros(4)
    padded = torch.cat([x, torch.zeros(4)])
    total(padded, out)
    assert out[:3].tolist() == padded[:96].reshape(3, 32).sum(1).tolist()


def test_tiles_of_a_product_with_registers_across_waits():
    n = 32

    @ti.kernel
    def product(a: ti.types.ndarray(ndim=2), b: ti.types.ndarray(ndim=2), c: ti.types.ndarray(ndim=2)):
        ti.loop_config(block_dim=64)
        for block, row, column in ti.ndrange(16, 8, 8):
            left = ti.simt.block.SharedArray((8, 8), ti.f32)
            right = ti.simt.block.SharedArray((8, 8), ti.f32)
            i, j = block // 4 * 8 + row, block % 4 * 8 + column
            total = 0.0
            for tile in range(n // 8):
                left[row, column] = a[i, tile * 8 + column]
                right[row, column] = b[tile * 8 + row, j]
                ti.simt.block.sync()
                for k in ti.static(range(8)):
                    total += left[row, k] * right[k, column]
                ti.simt.block.sync()
            c[i, j] = total

    a, b = torch.randn(n, n), torch.randn(n, n)
    c = torch.zeros(n, n)
    product(a, b, c)
    assert torch.allclose(c, a @ b, atol=1e-5)


def test_waits_belong_into_the_outermost_loop():
    @ti.kernel
    def wrong():
        ti.simt.block.sync()

    with pytest.raises(ti.TaichiCompilationError, match="outermost loop"):
        wrong()


def test_the_profiler_prints_a_table(capsys):
    @ti.kernel
    def nothing(x: ti.types.ndarray()):
        for i in x:
            x[i] = 0.0

    ti.profiler.clear_kernel_profiler_info()
    nothing(torch.zeros(3))
    nothing(torch.zeros(3))
    ti.profiler.print_kernel_profiler_info()
    table = capsys.readouterr().out
    assert "nothing" in table
    assert "|      2 |" in table


def test_the_size_of_blocks_is_that_of_the_next_loop_alone():
    @ti.kernel
    def run(x: ti.types.ndarray(ndim=1), y: ti.types.ndarray(ndim=1)):
        ti.loop_config(block_dim=16)
        for i in x:
            x[i] += 1.0
        for i in y:
            part = ti.simt.block.SharedArray((128,), ti.f32)
            part[i % 128] = x[i]
            ti.simt.block.sync()
            y[i] = part[127 - i % 128]

    x, y = torch.randn(128), torch.zeros(128)
    run(x, y)
    assert torch.equal(y, x.flip(0))
