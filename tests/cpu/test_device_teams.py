"""Teams of threads: warps of a block, or parts of them, that each run iterations, and join what they sum up."""

import pytest
import torch

from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import walk
from cpu.test_entry_cuda_emulated import rig_of
from support import emulated


def roles(rig):
    nodes = (node for each in rig.gpu.launches for node in walk(each.kernel.body))
    return {node.role for node in nodes if isinstance(node, For)}


def cell(z: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(z.shape[0], z.shape[1] + 1, z.shape[2])
    for b in range(z.shape[0]):
        for t in range(z.shape[1]):
            for d in range(z.shape[2]):
                s = z[b, t, d]
                for e in range(z.shape[2]):
                    s += r[d, e] * h[b, t, e]
                h[b, t + 1, d] = s % 8.0
    return h


def run_cell(z, r):
    h = [torch.zeros(z.shape[0], z.shape[2])]
    for t in range(z.shape[1]):
        h.append((z[:, t] + h[-1] @ r.T) % 8.0)
    return torch.stack(h, 1)


@pytest.mark.parametrize("size", [32, 37, 48])
def test_parts_of_warps_take_rows_of_a_matrix_step_after_step(size):
    z = (torch.arange(2.0 * 3 * size) % 5 - 2).reshape(2, 3, size)
    r = (torch.arange(float(size * size)) * 7 % 3 - 1).reshape(size, size)
    rig = rig_of(cell, z, r)
    assert torch.equal(rig.call(z, r)[0], run_cell(z, r))
    assert Role.WARP in roles(rig)


def nearest(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 2)
    for i in range(x.shape[0]):
        best, found, total = 1e9, -1, 0.0
        for j in range(c.shape[0]):
            far = 0.0
            for d in range(x.shape[1]):
                far += (x[i, d] - c[j, d]) * (x[i, d] - c[j, d])
            total += far
            if far < best:
                best, found = far, j
        out[i, 0], out[i, 1] = found, best + total
    return out


@pytest.mark.parametrize(("rows", "columns"), [(3, 33), (20, 40), (9, 300)])
def test_parts_of_warps_search_in_rows(rows, columns):
    x = (torch.arange(3.0 * columns) % 5 - 2).reshape(3, columns)
    c = (torch.arange(float(rows * columns)) * 7 % 4 - 1).reshape(rows, columns)
    rig = rig_of(nearest, x, c)
    where, least = rig.call(x, c)[0].unbind(1)
    far = ((x[:, None] - c) ** 2).sum(-1)
    assert torch.equal(least, far.min(1)[0] + far.sum(1))
    assert torch.equal(where, (far == far.min(1)[0][:, None]).int().argmax(1))
    assert Role.WARP in roles(rig)


def rows(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(q.shape[0], q.shape[1], 4)
    for b in range(q.shape[0]):
        for i in range(q.shape[1]):
            for j in range(4):
                s = 0.0
                for d in range(q.shape[2]):
                    s += q[b, i, d] * k[b, i + j, d]
                out[b, i, j] = s
    return out


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("length", [16, 20, 64])
def test_rows_are_summed_up_by_parts_of_warps(monkeypatch, length, together):
    monkeypatch.setattr(emulated, "WHOLE_WARPS", together)
    q = (torch.arange(2.0 * 8 * length) % 5 - 2).reshape(2, 8, length)
    k = (torch.arange(2.0 * 11 * length) * 7 % 3 - 1).reshape(2, 11, length)
    rig = rig_of(rows, q, k)
    expected = torch.stack([(q * k[:, j : j + 8]).sum(-1) for j in range(4)], -1)
    assert torch.equal(rig.call(q, k)[0], expected)


def edges(ptr: torch.Tensor, col: torch.Tensor, x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, total = torch.zeros_like(x), torch.zeros(g.shape[0])
    for i in range(g.shape[0]):
        for e in range(ptr[i], ptr[i + 1]):
            s = 0.0
            for f in range(x.shape[1]):
                s += x[col[e], f] * g[i, f]
                out[col[e], f] += g[i, f]
            total[i] += s
    return out, total


def halves(ptr: torch.Tensor, col: torch.Tensor, x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    total = torch.ones(g.shape[0])
    for i in range(g.shape[0]):
        h = total[i]
        for e in range(ptr[i], ptr[i + 1]):
            s = 0.0
            for f in range(x.shape[1]):
                s += x[col[e], f] * h
            h = s % 4.0
        total[i] = h + 1
    return total


def run_edges(ptr, col, x, g):
    row = torch.repeat_interleave(torch.arange(len(g)), ptr.diff())
    total = torch.zeros(len(g)).index_add(0, row, (x[col] * g[row]).sum(1))
    return torch.zeros_like(x).index_add(0, col, g[row]), total


def run_halves(ptr, col, x, g):
    total = torch.ones(len(g))
    for i in range(len(g)):
        for e in range(int(ptr[i]), int(ptr[i + 1])):
            total[i] = x[col[e]].sum() * total[i] % 4.0
    return (total + 1,)


@pytest.mark.parametrize(("function", "expected"), [(edges, run_edges), (halves, run_halves)])
@pytest.mark.parametrize("width", [1, 33, 40])
def test_rows_of_edges_are_shared_out(function, expected, width):
    ptr = torch.tensor([0, 0, 3, 4, 4, 9])
    col = torch.arange(9) * 5 % 4
    x, g = (torch.arange(n * width).reshape(n, width) * 7.0 % 5 - 2 for n in (4, 5))
    rig = rig_of(function, ptr, col, x, g)
    assert all(map(torch.equal, rig.call(ptr, col, x, g), expected(ptr, col, x, g)))
    assert Role.BLOCK in roles(rig) or width == 1
