"""torch's functions that are formulas have torch's derivatives, also where a formula has a branch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from brickwork.transform.derivation import Forward
from support.derivatives import derived, interpreted


def one(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros((x.shape[0], 12), dtype=x.dtype)
    for i in range(x.shape[0]):
        a = x[i]
        out[i, 0] = torch.sigmoid(a)
        out[i, 1] = F.silu(a)
        out[i, 2] = F.logsigmoid(a)
        out[i, 3] = torch.fmod(a, 1.5)
        out[i, 4] = torch.nan_to_num(a)
        out[i, 5] = torch.clamp(a, -2.0, 2.0)
        out[i, 6] = F.hardtanh(a)
        out[i, 7] = F.softplus(a)
        out[i, 8] = F.elu(a)
        out[i, 9] = torch.erfinv(0.25 * torch.tanh(a))
        out[i, 10] = torch.xlogy(a, 3.0)
        out[i, 11] = torch.logaddexp(a, 0.0)
    return out


def in_torch(a):
    three, zero = torch.tensor(3.0, dtype=a.dtype), torch.tensor(0.0, dtype=a.dtype)
    results = [
        *(torch.sigmoid(a), F.silu(a), F.logsigmoid(a), torch.fmod(a, 1.5), torch.nan_to_num(a)),
        *(torch.clamp(a, -2.0, 2.0), F.hardtanh(a), F.softplus(a), F.elu(a), torch.erfinv(0.25 * torch.tanh(a))),
        *(torch.xlogy(a, three), torch.logaddexp(a, zero)),
    ]
    columns = [torch.autograd.grad(item.sum(), a, retain_graph=True)[0] for item in results]
    return torch.stack(columns, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tangents_are_torchs(dtype):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.3, -0.7, 5.0, -100.0, 100.0, -2000.0], dtype=dtype)
    ones = torch.ones_like(x)
    (found,) = interpreted(derived(one, [x, ones], (Forward((True,)), [ones])), [x, ones])
    torch.testing.assert_close(found, in_torch(x.clone().requires_grad_()), rtol=2e-6, atol=1e-7)


def test_what_replaces_an_infinity_does_not_move():
    x = torch.tensor([math.inf, -math.inf])
    ones = torch.ones_like(x)
    (found,) = interpreted(derived(one, [x, ones], (Forward((True,)), [ones])), [x, ones])
    assert found[:, 4].tolist() == [0.0, 0.0]
