"""What a nest in gather form adds to, inside of a loop whose iterations meet on the elements."""

# pyright: basic
from __future__ import annotations

import torch

from brickwork.ir.nodes import For, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.derive import Backward
from brickwork.transform.pipeline import schedule_kernel
from support.shared import define, derive, lower
from support.tensors import argument_type


def pairs_of_matrices(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Each block of four is multiplied by a matrix from both sides: all iterations add to its gradient, twice."""
    y = torch.empty_like(x)
    for b in range(x.shape[0] // 4):
        inner = [0.0] * 16
        for i in range(4):
            for j in range(4):
                for k in range(4):
                    inner[i * 4 + j] += w[i, k] * x[4 * b + k, j]
        for i in range(4):
            for j in range(4):
                s = 0.0
                for k in range(4):
                    s += inner[i * 4 + k] * w[j, k]
                y[4 * b + i, j] = s
    return y


def test_iterations_around_a_nest_update_an_element_once() -> None:
    x, w = (argument_type(torch.zeros(sizes)) for sizes in ((8, 4), (4, 4)))
    written = lower(define(pairs_of_matrices), Signature((x, w)))
    program = derive(written, Backward((True, True)), Signature((x, w, x), device="cuda", narrow=True, aligned=True))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    scheduled = schedule_kernel(kernel, cuda_target((9, 0)))
    (verdict,) = (scheduled.analysis.loops[loop.index] for loop in scheduled.source.body if isinstance(loop, For))
    assert verdict.independent, verdict.conflict
    assert [tensor.name for tensor in verdict.updates] == ["w_gradient"]
