"""Entries of programs for one value of a rate, and for those that have none of their own, with a driver in Python."""

from __future__ import annotations

import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.signature import ScalarType, Signature
from brickwork.pytorch.gate import ArgumentKind
from support.emulated import emulated_target
from support.fake_cuda import CudaRig
from support.shared import define, lower, schedule_program
from support.tensors import argument_type


def every(x: torch.Tensor, step: int, shift: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[(i * step + shift) % x.shape[0]]
    return out


X = torch.arange(16.0)


def program(step: int | None):
    types = (argument_type(X), ScalarType(INT64, step), ScalarType(INT64))
    made = lower(define(every), Signature(types, device="cuda", narrow=True, aligned=True))
    return schedule_program(made, emulated_target())[0]


def test_a_rate_has_code_for_each_small_value_and_one_for_the_others():
    rig = CudaRig([ArgumentKind.TENSOR, ArgumentKind.INT, ArgumentKind.INT])
    rig.add(program(None))
    rig.add(program(2))
    found = {step: rig.call(X, step, 5) for step in (-1, 0, 1, 2, 3, 8, 9, 1 << 20)}
    assert [step for step, results in found.items() if results is None] == [1, 3, 8]
    for step, results in found.items():
        if results is not None:
            assert torch.equal(results[0], X[(torch.arange(16) * step + 5) % 16])
    assert [len(launch.kernel.scalars) for launch in rig.gpu.launches if launch.kernel.tensors[0].name == "x"].count(
        1
    ) == 1
    rig.add(program(3))
    assert rig.call(X, 3, 5) is not None
