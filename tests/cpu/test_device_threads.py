"""How many threads of a block share rows out whose lengths depend on the row."""

import pytest
import torch

from cpu.test_entry_cuda_emulated import rig_of


def sums_of_triangles(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], x.shape[1])
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            total = 0.0
            for j in range(i + 1):
                total += x[b, i, j]
            for j in range(i + 1):
                total += x[b, i, j] * total
            out[b, i] = total
    return out


@pytest.mark.parametrize(("size", "threads"), [(17, 32), (33, 64)])
def test_rows_of_a_triangle_have_no_more_threads_than_elements(size, threads):
    x = torch.zeros(1, size, size)
    x[0, size - 1, size - 1] = 2.0
    rig = rig_of(sums_of_triangles, x)
    out = rig.call(x)[0]
    assert out[0, -1] == 6.0
    assert not out[:, :-1].any()
    shared, apart = rig.gpu.launches  # the recurrence is for a thread each
    assert shared.block[0] == threads
    assert apart.grid[0] * apart.block[0] >= size
