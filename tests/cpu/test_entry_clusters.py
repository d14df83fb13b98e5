"""Tiles whose sums several blocks add up: how many, the launch as a cluster, and what `explain` says of it."""

import pytest
import torch

from brickwork.codegen.grid import grid_of
from brickwork.host.layout import tensor_type
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.signature import Signature
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.launches import followed
from brickwork.target.cuda import cuda_target
from support import contractions
from support.fake_cuda import CudaRig
from support.shared import define, lower, schedule_program


def launched(function, arguments, capability):
    """Return the launches of a call, and what is said of them."""
    kinds = (tensor_type(DTYPES[str(x.dtype).removeprefix("torch.")], x.shape, x.stride()) for x in arguments)
    signature = Signature(tuple(kinds), device="cuda", narrow=True, aligned=True)
    program, _ = schedule_program(lower(define(function), signature), cuda_target(capability))
    rig = CudaRig([ArgumentKind.TENSOR] * len(arguments), lambda _: None)
    rig.add(program)
    assert rig.call(*arguments) is not None
    return rig.gpu.launches, followed(program, [tuple(x.shape) for x in arguments]).launches


def smoothed(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for _ in range(3):
        for i in range(x.shape[0]):
            y[i] = x[i] / 2
        for i in range(x.shape[0]):
            x[i] = y[x.shape[0] - 1 - i]
    return y


def eliminated(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for k in range(x.shape[0]):
        for i in range(k + 1, x.shape[0]):
            f = x[i, k] / x[k, k]
            y[i, k] = f
            for j in range(k + 1, x.shape[1]):
                y[i, j] -= f * y[k, j]
    return y


@pytest.mark.parametrize(
    ("function", "shapes", "blocks", "threads"),
    [
        (smoothed, [(1000,)], 1, 1000 + 24),
        (smoothed, [(6143,)], 1, 1024),
        (smoothed, [(6144,)], 4, 1024),
        (smoothed, [(8192,)], 8, 1024),
        (smoothed, [(1 << 15,)], 8, 1024),
        (smoothed, [(65000,)], 8, 1024),
        (eliminated, [(8, 8)], 1, 64),
        (eliminated, [(200, 200)], 8, 1024),
    ],
)
def test_blocks_of_a_cluster_share_the_loops_of_a_loop_in_order_out(function, shapes, blocks, threads):
    found, said = launched(function, [torch.empty(shape) for shape in shapes], (9, 0))
    assert [(each.grid[0], each.cluster[0], each.block[0]) for each in found] == [(blocks, blocks, threads)]
    assert [(each.blocks, each.parts, each.threads) for each in said] == [(blocks, blocks, threads)]


def tensors(*shapes):
    return [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes]


@pytest.mark.parametrize(
    ("capability", "sizes", "tiles", "parts"),
    [
        ((9, 0), (256, 8192, 256), 16, 8),
        ((9, 0), (256, 8192, 512), 32, 4),
        ((9, 0), (256, 448, 256), 16, 1),
        ((9, 0), (256, 1024, 256), 16, 4),
        ((9, 0), (256, 960, 256), 16, 1),
        ((9, 0), (512, 512, 512), 64, 1),
        ((9, 0), (64, 1 << 16, 64), 1, 8),
        ((9, 0), (1024, 8192, 1024), 64, 2),
        ((9, 0), (2048, 8192, 2048), 128, 1),
        ((9, 0), (257, 8191, 255), 20, 4),
        ((12, 0), (256, 8192, 256), 16, 2),
        ((8, 0), (256, 8192, 256), 16, 1),
    ],
)
def test_few_tiles_with_long_sums_are_added_up_by_several_blocks(capability, sizes, tiles, parts):
    rows, depth, columns = sizes
    found, said = launched(contractions.product, tensors((rows, depth), (depth, columns)), capability)
    assert [each.grid for each in found] == [(tiles * parts, 1, 1)]
    assert [each.cluster for each in found] == [(parts, 1, 1)]
    assert [(each.blocks, each.parts) for each in said] == [(tiles * parts, parts)]
    assert all(grid_of(each.kernel).tile is not None for each in found)


def test_long_stages_are_divided_where_they_are_fewer():
    """A stage of float32 has half as many terms, and takes longer."""
    for depth, parts in ((256, 2), (224, 1)):
        given = [torch.empty(shape, dtype=torch.float32) for shape in ((256, depth), (depth, 256))]
        found, _ = launched(contractions.product, given, (9, 0))
        assert [each.cluster for each in found] == [(parts, 1, 1)]


def test_ranges_that_lean_on_rows_are_not_divided():
    found, _ = launched(contractions.below_diagonal, tensors((1, 4096, 4096), (1, 4096, 64)), (9, 0))
    assert [each.cluster for each in found] == [(1, 1, 1)]
    assert grid_of(found[0].kernel).tile is not None


def test_stages_of_all_loops_of_a_sum_are_divided():
    found, _ = launched(contractions.convolution, tensors((1, 512, 8, 8), (512, 512, 3, 3)), (9, 0))
    assert [each.cluster for each in found] == [(8, 1, 1)]


@pytest.mark.parametrize(("rows", "height"), [(1, 32), (32, 32), (33, 64)])
def test_few_rows_have_low_tiles(rows, height):
    found, _ = launched(contractions.product, tensors((rows, 4096), (4096, 4096)), (9, 0))
    tile = grid_of(found[0].kernel).tile
    assert tile is not None
    assert tile.left.size == height


def test_few_rows_that_are_no_chunks_have_no_low_tiles():
    found, _ = launched(contractions.product, tensors((16, 4097), (4097, 4097)), (9, 0))
    tile = grid_of(found[0].kernel).tile
    assert tile is not None
    assert tile.left.size == 64


def test_long_sums_of_rows_that_begin_anywhere_are_for_blocks_too():
    for length in (4096, 4097):
        found, _ = launched(contractions.transposed, tensors((1, length), (3, length)), (9, 0))
        assert [each.grid for each in found] == [(3, 1, 1)]
        assert [each.block for each in found] == [(512, 1, 1)]


@pytest.mark.parametrize(
    ("dtype", "depth", "tile", "parts"),
    [
        (torch.bfloat16, 4096, (128, 128), 2),
        (torch.bfloat16, 1024, (128, 64), 1),
        (torch.float32, 4096, (128, 128), 2),
        (torch.float32, 1024, (128, 64), 1),
    ],
)
def test_halves_of_large_tiles_are_as_good_as_small_tiles(dtype, depth, tile, parts):
    given = [torch.empty(shape, dtype=dtype) for shape in ((256, depth), (depth, 4096))]
    found, _ = launched(contractions.product, given, (9, 0))
    form = grid_of(found[0].kernel).tile
    assert form is not None
    assert (form.left.size, form.right.size) == tile
    assert found[0].cluster == (parts, 1, 1)


def test_large_tiles_that_are_not_enough_for_two_blocks_each_are_left_alone():
    found, _ = launched(contractions.product, tensors((256, 4096), (4096, 4608)), (9, 0))
    form = grid_of(found[0].kernel).tile
    assert form is not None
    assert (form.left.size, form.right.size) == (128, 64)
