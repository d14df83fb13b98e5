"""Sweeps over rows in place, one after the other in a `while`: a block of threads shares each of them out."""

import pytest
import torch

from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import walk
from cpu.test_entry_cuda_emulated import rig_of


def butterflies(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[r, i] = x[r, i]
        h = 1
        while h < x.shape[1]:
            for i in range(0, x.shape[1], 2 * h):
                for j in range(i, i + h):
                    u, v = y[r, j] + 0.0, y[r, j + h] + 0.0
                    y[r, j] = u + v
                    y[r, j + h] = u - v
            h *= 2
    return y


def halves(x: torch.Tensor) -> torch.Tensor:
    y, t = torch.empty_like(x), torch.empty_like(x)
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[r, i] = x[r, i]
        m = x.shape[1]
        while m > 1:
            for i in range(m // 2):
                t[r, i] = y[r, 2 * i] + y[r, 2 * i + 1]
                t[r, m // 2 + i] = y[r, 2 * i] - y[r, 2 * i + 1]
            for i in range(m):
                y[r, i] = t[r, i]
            m = m // 2
    return y


@pytest.mark.parametrize("function", [butterflies, halves])
@pytest.mark.parametrize(("rows", "columns"), [(3, 64), (2, 256), (1, 1), (2, 2), (0, 16)])
def test_sweeps_of_rows(function, rows, columns):
    x = (torch.arange(rows * columns) * 7 % 11 - 5).reshape(rows, columns).float()
    rig = rig_of(function, x)
    assert torch.equal(rig.call(x)[0], function(x))
    roles = {node.role for each in rig.gpu.launches for node in walk(each.kernel.body) if isinstance(node, For)}
    assert rows == 0 or Role.THREAD in roles


def test_a_sweep_that_goes_beyond_a_row_says_so():
    x = torch.ones(2, 48)
    rig = rig_of(butterflies, x)
    rig.call(x)
    assert rig.record[0] or any(rig.record)


def twiddles(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            y[r, i] = x[r, i]
        for s in range(w.shape[0]):
            h = 1 << s
            for i in range(x.shape[1] // 2):
                low = i // h * 2 * h + i % h
                p, q = y[r, low] + 0.0, y[r, low + h] + 0.0
                y[r, low] = w[s, i, 0] * p + w[s, i, 1] * q
                y[r, low + h] = p - q
    return y


@pytest.mark.parametrize(("rows", "levels"), [(3, 6), (2, 8), (1, 0), (2, 1), (0, 4)])
def test_sweeps_by_twiddles(rows, levels):
    """Pairs of a level lie a power of two apart: a block shares them out."""
    x = (torch.arange(rows << levels) * 7 % 11 - 5).reshape(rows, 1 << levels).float()
    w = (torch.arange(levels << levels) % 5 - 2).reshape(levels, (1 << levels) // 2, 2).float()
    rig = rig_of(twiddles, x, w)
    assert torch.equal(rig.call(x, w)[0], twiddles(x, w))
    roles = {node.role for each in rig.gpu.launches for node in walk(each.kernel.body) if isinstance(node, For)}
    assert levels < 6 or Role.THREAD in roles
