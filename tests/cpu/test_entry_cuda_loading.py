"""Kernels that an entry for CUDA finds not loaded, with a driver that is played in Python: `support/fake_cuda.py`."""

from __future__ import annotations

import pytest
import torch

from brickwork.pytorch.gate import ArgumentKind
from brickwork.target.cuda import cuda_target
from support.fake_cuda import STREAMS, CudaRig
from support.ptx import program_for_gpu
from support.shared import schedule_program


def pairs(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[i] + 1
    for i in range(x.shape[0]):
        out[i] = out[i] * out[x.shape[0] - 1 - i]
    return out


@pytest.fixture
def rig() -> CudaRig:
    """Two kernels, none of them loaded."""
    made = CudaRig([ArgumentKind.TENSOR])
    made.gpu.loads_late = True
    made.add(schedule_program(program_for_gpu(pairs, torch.empty(3)), cuda_target((9, 0)))[0])
    return made


def test_a_kernel_is_loaded_by_its_first_launch(rig: CudaRig) -> None:
    empty = rig.call(torch.ones(0))
    assert empty is not None
    assert empty[0].shape == (0,)
    launched = len(rig.gpu.loads)
    for _ in range(2):
        found = rig.call(torch.ones(3))
        assert found is not None
        assert rig.gpu.loads == [STREAMS[0]] * len(rig.gpu.kernels)
    assert launched < len(rig.gpu.kernels)


def test_a_kernel_that_cannot_be_loaded_gives_everything_up(rig: CudaRig) -> None:
    rig.gpu.unloadable = True
    rig.gpu.contexts.clear()
    with pytest.raises(RuntimeError, match="error -3 in specialisation 0"):
        rig.call(torch.ones(3))
    assert (rig.gpu.handles, rig.gpu.contexts, rig.gpu.launches) == (0, [], [])
    rig.gpu.unloadable = False
    assert rig.call(torch.ones(3)) is not None
    assert rig.gpu.launches
