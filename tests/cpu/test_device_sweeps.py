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
