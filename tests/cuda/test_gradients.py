"""Gradients on GPUs, in double precision: torch's checks pass for generated programs and for the ready operators."""

from collections import Counter

import pytest
import torch

from brickwork import ops
from support.fuzz.check_torch import Limits, examine_through_torch
from support.fuzz.smooth import smooth_case_of_seed
from support.gpu import GPU

pytestmark = [*GPU, pytest.mark.filterwarnings("ignore")]
BATCH, BATCHES = 4, 6


def leaf(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, device="cuda", requires_grad=True)


CALLS = {
    "sin": (ops.sin, lambda: (leaf(2, 3),)),
    "timex": (ops.timex, lambda: (leaf(2, 4), leaf(2, 2, 4), 0.1)),
    "timex_padded": (ops.timex_padded, lambda: (leaf(2, 1, 3), leaf(2, 2, 5), 0.1)),
    "brick_pad": (ops.brick_pad, lambda: (leaf(2, 3), 4, 5, [3, 2], [3, 0], [1, 2])),
    "sample_normal": (lambda *given: ops.sample_normal(*given, key=3), lambda: (leaf(2), leaf(2), 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_ready_operators(name):
    function, make = CALLS[name]
    inputs = make()
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, nondet_tol=1e-9)
    assert torch.autograd.gradgradcheck(function, inputs, nondet_tol=1e-9)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_generated_programs(batch, tmp_path):
    seen = Counter()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        second = 10.0 if seed % BATCH == 0 else 0.0
        seen += examine_through_torch(smooth_case_of_seed(seed, nests=1), tmp_path, "cuda", Limits(second=second))
    assert seen["gradcheck passed"] >= BATCH // 4, seen
