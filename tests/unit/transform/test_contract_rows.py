"""What the rows of a tile may say of a factor: nothing that has to be read where a row is not there."""

from collections.abc import Callable

import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir.dtypes import INT64
from brickwork.transform.schedule.contract import contraction_versions
from support.lowering import memory
from support.scheduling import GPU, kernel_of

Tensor = torch.Tensor
N = 4


def computed_rows(a: Tensor, b: Tensor, p: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            row = min(i, N - 1)
            s = 0.0
            for k in range(N):
                s += a[row, k] * b[k, j]
            y[i, j] = s


def read_rows(a: Tensor, b: Tensor, p: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            row = min(max(p[i], 0), N - 1)
            s = 0.0
            for k in range(N):
                s += a[row, k] * b[k, j]
            y[i, j] = s


def read_masks(a: Tensor, b: Tensor, p: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            last = p[i]
            s = 0.0
            for k in range(N):
                if k < last:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def computed_masks(a: Tensor, b: Tensor, p: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            last = i * 2 - 1
            s = 0.0
            for k in range(N):
                if k < last:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def read_for_the_sum(a: Tensor, b: Tensor, p: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = b[0, j]
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def is_staged(function: Callable[..., None]) -> bool:
    square = [[0.5 * i + j for j in range(N)] for i in range(N)]
    kernel = kernel_of(function, memory(square), memory(square), memory([*range(N)], INT64), memory(square))
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    return any(True for _ in contraction_versions(kernel.body, analysis, GPU))


def test_rows_that_are_read_for_are_not_staged():
    assert is_staged(computed_rows)
    assert is_staged(read_for_the_sum)
    assert not is_staged(read_rows)
    assert is_staged(computed_masks)
    assert not is_staged(read_masks)
