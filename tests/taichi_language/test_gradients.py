"""Gradients and tangents of kernels, beside PyTorch's."""

import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu, default_fp=ti.f64)
    yield
    ti.reset()


def test_a_tape_carries_gradients_through_several_kernels():
    x = ti.field(ti.f64, shape=6, needs_grad=True)
    y = ti.field(ti.f64, shape=6, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def square():
        for i in x:
            y[i] = x[i] * x[i] * ti.sin(x[i])

    @ti.kernel
    def total(k: ti.f64):
        for i in y:
            loss[None] += k * y[i] * y[(i + 1) % 6]

    start = torch.linspace(0.5, 2, 6, dtype=torch.float64, requires_grad=True)
    x.from_torch(start)
    with ti.ad.Tape(loss=loss):
        square()
        total(2.0)
    z = start * start * start.sin()
    want = (2 * z * z.roll(-1)).sum()
    want.backward()
    assert loss[None] == pytest.approx(want.item())
    assert torch.allclose(x.grad.to_torch(), start.grad)


def test_the_gradient_of_a_kernel_adds_to_those_of_arrays():
    x = ti.ndarray(ti.f64, 4, needs_grad=True)
    y = ti.ndarray(ti.f64, 4, needs_grad=True)

    @ti.kernel
    def cube(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] ** 3

    for i in range(4):
        x[i] = i
    cube(x, y)
    y.grad.fill(2.0)
    cube.grad(x, y)
    assert x.grad.to_numpy().tolist() == [0, 6, 24, 54]


def test_tensors_with_gradients_go_through_autograd():
    @ti.kernel
    def scale(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = ti.exp(x[i])

    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    y = torch.zeros(5, dtype=torch.float64)
    scale(x, y)
    y.sum().backward()
    assert torch.allclose(x.grad, x.exp())


def test_forward_mode():
    x = ti.field(ti.f64, shape=3, needs_dual=True)
    y = ti.field(ti.f64, shape=(), needs_dual=True)

    @ti.kernel
    def run():
        for i in x:
            y[None] += x[i] * x[i] * i

    for i in range(3):
        x[i] = i + 1
    with ti.ad.FwdMode(loss=y, param=x, seed=[0, 1, 10]):
        run()
    assert y.dual[None] == 2 * 2 * 1 + 10 * 2 * 3 * 2


def test_a_gradient_that_the_user_writes():
    x = ti.field(ti.f64, shape=(), needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def double():
        loss[None] += x[None] * 2

    @ti.kernel
    def other():
        x.grad[None] += 100 * loss.grad[None]

    @ti.ad.grad_replaced
    def run():
        double()

    @ti.ad.grad_for(run)
    def run_grad():
        other()

    x[None] = 4
    with ti.ad.Tape(loss=loss):
        run()
    assert (loss[None], x.grad[None]) == (8, 100)


def test_decompositions_of_small_matrices():
    a = ti.Matrix.field(3, 3, ti.f64, shape=4)

    @ti.kernel
    def run(b: ti.types.ndarray()):
        u, s, v = ti.svd(a[0])
        a[1] = u @ s @ v.transpose()
        w, q = ti.sym_eig(a[0] + a[0].transpose())
        a[2] = q.transpose() @ (a[0] + a[0].transpose()) @ q
        for k in ti.static(range(3)):
            a[2][k, k] -= w[k]
        x = ti.solve(a[0], ti.Vector([1.0, 2.0, 3.0]))
        for k in ti.static(range(3)):
            b[k] = x[k]

    given = torch.tensor([[1.0, 1, 3], [9, -3, 2], [-3, 4, 2]], dtype=torch.float64)
    a[0] = given.tolist()
    b = torch.zeros(3, dtype=torch.float64)
    run(b)
    found = a.to_torch()
    assert torch.allclose(found[1], given)
    assert found[2].abs().max() < 1e-12
    assert torch.allclose(given @ b, torch.tensor([1.0, 2, 3], dtype=torch.float64))


def test_a_tape_records_again_after_a_gradient_that_failed():
    def fail():
        raise ArithmeticError

    loss = ti.field(ti.f32, shape=(), needs_grad=True)
    outer = ti.ad.Tape()
    with outer:
        tape = ti.ad.Tape()
        with tape:
            tape.calls.append(fail)
        with pytest.raises(ArithmeticError):
            tape.grad()
        _raise(loss)
    assert len(outer.calls) == 1


@ti.kernel
def _raise(x: ti.template()):
    x[None] += 1
