"""Nests that accumulate, with their launches on an emulated GPU: register tiles, pieces of them, and long sums."""

from itertools import pairwise

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import For, If, Role
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import split_reductions
from brickwork.transform.schedule import long_sums, register_tile
from cpu.test_entry_cuda_emulated import rig_of
from support.kernels import matrix_product
from support.layouts import product_of_rows_by_columns, products_of_rows
from support.pairs import in_turn
from support.ptx import program_for_gpu, ptx_of


def lagged(g: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The gradient of the weights of a causal convolution."""
    B, C, T = k.shape
    out = torch.empty(C, T)
    for c in range(C):
        for p in range(T):
            s = 0.0
            for b in range(B):
                for u in range(p + 1):
                    s += g[b, c, T - 1 - p + u] * k[b, c, u]
            out[c, p] = s
    return out


def loops(rig):
    return [node for launched in rig.gpu.launches for node in walk(launched.kernel.body) if isinstance(node, For)]


def counting(*shape):
    return (torch.arange(torch.Size(shape).numel()) * 7 % 11 - 5).reshape(shape).float()


def summed(g, k):
    """What `lagged` computes, as it is defined."""
    length = k.shape[2]
    return torch.stack([(g[..., length - 1 - p :] * k[..., : p + 1]).sum((0, 2)) for p in range(length)], 1)


@pytest.fixture
def few_are_enough(monkeypatch):
    monkeypatch.setattr(register_tile, "busy_threads", lambda _: 1)


@pytest.mark.parametrize(("length", "batches"), in_turn([16, 20, 32, 48], [1, 9, 32], 2))
def test_register_tiles_and_pieces_of_them(few_are_enough, batches, length):
    g, k = counting(batches, 2, length), counting(batches, 2, length).flip(2)
    rig = rig_of(lagged, g, k)
    assert torch.equal(rig.call(g, k)[0], summed(g, k))
    tiled = not length % 16 and batches >= 8
    assert len(rig.gpu.launches) == 2 or not tiled
    assert {node.unrolled for node in loops(rig) if node.unrolled > 1} >= ({16} if tiled else set())


@pytest.mark.parametrize(
    ("rows", "columns", "length", "function"),
    [
        (*sizes, function)
        for sizes, function in in_turn(
            [(1, 5, 32), (3, 2, 64), (4, 4, 36), (9, 3, 64), (5, 3, 33)],
            [product_of_rows_by_columns, products_of_rows],
            1,
        )
    ],
)
def test_long_sums(monkeypatch, function, rows, columns, length):
    monkeypatch.setattr(long_sums, "LONG", 32)
    x, w = counting(rows, length), counting(columns, length).flip(1)
    if function is products_of_rows:
        x, w = torch.stack((x, x * 2)), torch.stack((w, -w))
    rig = rig_of(function, x, w)
    assert torch.equal(rig.call(x, w)[0], x @ w.mT)
    shared = any(node.role is Role.THREAD and node.width == 4 for node in loops(rig))
    assert shared == (length % 4 == 0)


def of_taps(g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The gradient of the weights of a convolution of each channel, in which a few taps look back."""
    B, C, T = x.shape
    taps = weight.shape[0]
    out = torch.empty(C, taps)
    for c in range(C):
        for k in range(taps):
            s = 0.0
            for b in range(B):
                for t in range(T - k):
                    s += g[b, c, t + k] * x[b, c, t]
            out[c, k] = s
    return out


def of_windows(g: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The same of images, with conditions at all borders."""
    B, C, H, W = x.shape
    width = weight.shape[0]
    out = torch.empty(C, width, width)
    for c in range(C):
        for u in range(width):
            for v in range(width):
                s = 0.0
                for b in range(B):
                    for i in range(H):
                        if i + u >= 1 and i + u - 1 < H:
                            for j in range(W):
                                if j + v >= 1 and j + v - 1 < W:
                                    s += g[b, c, i, j] * x[b, c, i + u - 1, j + v - 1]
                out[c, u, v] = s
    return out


def taps_summed(g, x, taps):
    """What `of_taps` computes, as it is defined."""
    length = x.shape[2]
    return torch.stack([(g[..., k:] * x[..., : max(length - k, 0)]).sum((0, 2)) for k in range(taps)], 1)


def windows_summed(g, x, width):
    """What `of_windows` computes, as it is defined."""
    height, length = x.shape[2:]
    padded = torch.nn.functional.pad(x, (1, width, 1, width))
    parts = [padded[..., u : u + height, v : v + length] for u in range(width) for v in range(width)]
    return torch.stack([(g * part).sum((0, 2, 3)) for part in parts], 1).reshape(-1, width, width)


@pytest.mark.parametrize(
    ("function", "expected", "shape", "width"),
    [
        (of_taps, taps_summed, (3, 2, 20), 4),
        (of_taps, taps_summed, (13, 3, 5), 7),
        (of_windows, windows_summed, (2, 2, 5, 8), 3),
        (of_taps, taps_summed, (1, 2, 40), 8),
        (of_windows, windows_summed, (0, 2, 5, 8), 3),
    ],
)
def test_sums_of_nests_for_few_elements_are_for_blocks(monkeypatch, function, expected, shape, width):
    """The threads of a block share all loops out as one range, but with conditions between them, or for a sector."""
    monkeypatch.setattr(long_sums, "LONG", 32)
    g, x = counting(*shape), counting(*shape).flip(-1) * 2
    weight = torch.empty(width)
    rig = rig_of(function, g, x, weight)
    assert torch.equal(rig.call(g, x, weight)[0], expected(g, x, width))
    levels = [
        node for node in walk(rig.gpu.launches[0].kernel.body) if isinstance(node, For) and node.role is Role.THREAD
    ]
    assert len(levels) == (2 if function is of_taps and width < 8 else 0)
    assert all(node.body == (inner,) for node, inner in pairwise(levels))


def of_triangles(x: torch.Tensor) -> torch.Tensor:
    B, C, T = x.shape
    out = torch.empty(C)
    for c in range(C):
        s = 0.0
        for b in range(B):
            if b + c > 1:
                for t in range(b, T):
                    s += x[b, c, t]
        out[c] = s
    return out


def test_rows_of_triangles_are_no_range(monkeypatch):
    monkeypatch.setattr(long_sums, "LONG", 32)
    x = counting(9, 3, 40)
    rig = rig_of(of_triangles, x)
    assert torch.equal(rig.call(x)[0], of_triangles(x))


def of_channels(x: torch.Tensor) -> torch.Tensor:
    B, C, H, W = x.shape
    out = torch.empty(C)
    for c in range(C):
        s = 0.0
        for b in range(B):
            for i in range(H):
                for j in range(W):
                    s += x[b, c, i, j]
        out[c] = s
    return out


@pytest.mark.parametrize("shape", [(2, 3, 40, 6), (7, 1, 3, 50), (1, 2, 200, 1), (3, 2, 1, 90), (200, 1, 3, 1)])
def test_few_blocks_leave_partial_sums_of_rectangles(monkeypatch, shape):
    limits = split_reductions.Limits(few=16, least=8, unit=16, enough=32, most=12)
    monkeypatch.setattr(split_reductions, "BLOCKS", limits)
    x = counting(*shape)
    rig = rig_of(of_channels, x)
    assert torch.equal(rig.call(x)[0], x.sum((0, 2, 3)))
    parts, joined = rig.gpu.launches
    assert parts.grid[0] > joined.grid[0]
    shared = [node for node in walk(parts.kernel.body) if isinstance(node, For) and node.role is Role.THREAD]
    assert len(shared) == 3


@pytest.mark.parametrize("shape", [(5, 20, 16), (8, 33, 8), (3, 0, 5), (0, 3, 5)])
def test_what_is_added_to_elements_has_register_tiles(few_are_enough, shape):
    """Nothing is written where there is nothing to add: the host asks, once for all elements."""
    rows, length, columns = shape
    a, b = counting(rows, length), counting(length, columns)
    rig = rig_of(matrix_product, a, b)
    assert torch.equal(rig.call(a, b)[0], a @ b)
    assert not any(isinstance(node, If) for launched in rig.gpu.launches for node in walk(launched.kernel.body))
    tiled = length and not length % 4
    assert {8, 16} <= {count for node in loops(rig) for count in (node.width, node.unrolled)} or not tiled


def spread(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Places of elements, each the furthest from all before it."""
    B, N = x.shape
    samples = places.shape[0]
    apart = x.new_full((B, N), 1e10)
    out = torch.zeros(B, samples, dtype=torch.int64)
    for b in range(B):
        last = 0
        for s in range(1, samples):
            best, furthest = -1.0, 0
            for n in range(N):
                d = min(abs(x[b, n] - x[b, last]), apart[b, n])
                apart[b, n] = d
                if d > best:
                    best, furthest = d, n
            last = furthest
            out[b, s] = last
    return out


@pytest.mark.parametrize(("length", "samples", "threads"), [(1001, 1, 1024), (70, 6, 96)])
def test_few_blocks_that_run_turns_have_all_threads(length, samples, threads):
    x = torch.rand(1, length, generator=torch.Generator().manual_seed(1))
    x[:, length - 1] = 2.0
    places = torch.empty(samples)
    rig = rig_of(spread, x, places)
    assert torch.equal(rig.call(x, places)[0], spread(x, places))
    assert threads in {launched.block[0] for launched in rig.gpu.launches}


def test_a_turn_that_joins_results_waits_twice():
    program = program_for_gpu(spread, torch.rand(1, 70), torch.empty(6))
    kernels = ptx_of([program], cuda_target((9, 0))).split(".entry")
    assert {text.count("bar.sync") for text in kernels if ".maxntid 1024" in text} == {2}


def skipped_sums(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        s = -0.0
        for k in range(x.shape[1]):
            if x[i, k] != 0:
                s += x[i, k]
        out[i] = s
    return out


@pytest.mark.parametrize("length", [1, 3, 70, 300, 5000])
def test_a_sum_of_nothing_is_what_it_began_with(length):
    x = torch.zeros(3, length)
    x[1, -1] = 2.0
    for found in (rig_of(skipped_sums, x).call(x)[0], bw.op(skipped_sums)(x)):
        assert [*map(repr, found.tolist())] == ["-0.0", "2.0", "-0.0"]


def of_neighbours(x: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
    """A sum over points, their neighbours and three coordinates."""
    out = x.new_zeros(1)
    for i in range(e.shape[0]):
        for j in range(e.shape[1]):
            for c in range(3):
                out[0] += (x[e[i, j], c] - x[i, c]) ** 2
    return out


def of_features(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A sum over a grid, and over features of which there may be few."""
    out = x.new_zeros(1)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for d in range(x.shape[2]):
                out[0] += x[i, j, d] * w[j]
    return out


def shared_in(rig):
    """The loops of the first launch with loops of threads that threads share out, outermost first."""
    launched = (
        [node.index.name for node in walk(each.kernel.body) if isinstance(node, For) and node.role is Role.THREAD]
        for each in rig.gpu.launches
    )
    return next(names for names in launched if names)


@pytest.mark.parametrize(
    ("points", "neighbours", "shared"), [(1, 1, ["i", "j", "c"]), (7, 4, ["i", "j", "c"]), (40, 9, ["j", "c"])]
)
def test_threads_share_loops_around_short_ones_that_add_up(points, neighbours, shared):
    x, e = counting(points, 3), torch.arange(points * neighbours).reshape(points, neighbours) * 5 % points
    rig = rig_of(of_neighbours, x, e)
    assert rig.call(x, e)[0] == ((x[e] - x[:, None]) ** 2).sum()
    assert shared_in(rig) == shared


@pytest.mark.parametrize(("features", "shared"), [(1, ["j", "d"]), (15, ["j", "d"]), (16, ["d"])])
def test_sizes_say_whether_threads_share_the_loops_around_one(features, shared):
    x, w = counting(9, 5, features), counting(5)
    rig = rig_of(of_features, x, w)
    assert rig.call(x, w)[0] == (x * w[:, None]).sum()
    assert shared_in(rig) == shared
