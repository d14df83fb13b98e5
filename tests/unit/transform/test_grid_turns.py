"""Loops that accumulate in a thread of a grid: which are unrolled."""

import torch

from brickwork.ir.dtypes import INT64
from support.causal import timex
from support.kernels import matrix_product
from support.kernels_models import bags
from support.lowering import memory
from unit.transform.test_grid import agree, pieces_of


def directives(function, *arguments):
    return [line for item in pieces_of(function, *arguments)[2] for line in str(item.schedule).splitlines()]


def counting(*sizes):
    if len(sizes) == 1:
        return [float(number % 5) for number in range(sizes[0])]
    return [counting(*sizes[1:]) for _ in range(sizes[0])]


def triples(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Products of matrices with rows of three."""
    out = x.new_empty(x.shape[0], w.shape[1])
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            s = 0.0
            for k in range(3):
                s += x[i, k] * w[k, j]
            out[i, j] = s
    return out


def test_turns_that_read_neighbours_are_written_out():
    w, k = memory(counting(2, 8)), memory(counting(5, 2, 8))
    assert directives(timex, w, k, 0.5)[-1] == "unroll(u, 4)"
    agree(timex, w, k, 0.5)
    a, b = memory(counting(5, 8)), memory(counting(8, 8))
    assert "unroll(k, 4)" in directives(matrix_product, a, b)
    agree(matrix_product, a, b)


def test_few_turns_and_those_that_begin_anywhere_are_not():
    ids, starts = memory([0, 2, 1], INT64), memory([0, 2], INT64)
    for case in (
        (bags, memory(counting(3, 8)), ids, starts),
        (triples, memory(counting(5, 3)), memory(counting(3, 8))),
    ):
        assert not [line for line in directives(*case) if line.startswith("unroll")]
