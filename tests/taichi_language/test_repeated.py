"""Calls after the first one with arguments of the same types do what the first did."""

import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


@ti.kernel
def _add(x: ti.types.ndarray(), n: ti.i8, w: ti.f32, b: ti.u1):
    for i in x:
        if b:
            x[i] += w * n


def _added(*arguments):
    x = torch.zeros(2, dtype=torch.float64)
    _add(x, *arguments)
    return x[1].item()


def test_numbers_are_those_of_each_call():
    assert [_added(2, 0.5, True) for _ in range(3)] == [1.0] * 3
    assert _added(3, 2, True) == 6.0
    assert _added(3, 0.1, True) == pytest.approx(0.3)
    assert _added(200, 1.0, True) == -56.0
    assert _added(3, 1.0, False) == 0.0
    with pytest.raises(ti.TaichiRuntimeTypeError):
        _added(2.5, 1.0, True)
    with pytest.raises(ti.TaichiSyntaxError, match="Parameter"):
        _added(2, 1.0)


def test_tensors_are_those_of_each_call():
    @ti.kernel
    def copy(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] = x[i]

    for dtype in (torch.float32, torch.int32, torch.float32):
        for size in (3, 5):
            x, y = torch.arange(size, dtype=dtype), torch.zeros(size, dtype=dtype)
            copy(x, y)
            assert torch.equal(x, y)
    with pytest.raises(ti.TaichiAssertionError, match="out of bounds"):
        copy(torch.zeros(3), torch.zeros(2))
    x, y = torch.ones(3, requires_grad=True), torch.zeros(3)
    copy(x, y)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [1, 1, 1]


def test_tensors_that_share_memory_are_checked_for_races():
    @ti.kernel
    def shift(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0] - 1):
            y[i + 1] = x[i]

    x, y = torch.arange(6.0), torch.zeros(6)
    for _ in range(2):
        shift(x, y)
    assert y.tolist() == [0, 0, 1, 2, 3, 4]
    z = torch.arange(6.0)
    shift(z, z)
    assert z.tolist() in ([0] * 6, [0, 0, 1, 2, 3, 4]), "some order of the iterations"


def test_a_tape_records_repeated_calls():
    x = ti.field(ti.f32, shape=3, needs_grad=True)
    loss = ti.field(ti.f32, shape=(), needs_grad=True)

    @ti.kernel
    def total(w: ti.f32):
        for i in x:
            loss[None] += w * x[i]

    for _ in range(3):
        total(2.0)
    with ti.ad.Tape(loss):
        total(3.0)
    assert x.grad.to_numpy().tolist() == [3, 3, 3]


def test_other_settings_compile_again():
    @ti.kernel
    def third(x: ti.types.ndarray()):
        x[0] = 1.0 / 3.0

    x = torch.zeros(1, dtype=torch.float64)
    for _ in range(2):
        third(x)
    assert x.item() == torch.tensor(1 / 3).item()
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    third(x)
    assert x.item() == 1 / 3
