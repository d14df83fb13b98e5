"""Kernels under `torch.compile`: in its graph where they are operators, else beside it."""

import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    torch._dynamo.reset()
    yield
    ti.reset()


def _compiled(function, *, whole=True):
    return torch.compile(function, backend="aot_eager", fullgraph=whole)


@ti.kernel
def _scale(x: ti.types.ndarray(), y: ti.types.ndarray(), w: ti.f32, n: ti.i32, b: ti.u1):
    for i in range(n, x.shape[0]):
        if b:
            y[i] = w * x[i] * x[i]


def test_a_kernel_on_tensors_is_in_the_graph():
    def run(x):
        y = torch.zeros_like(x)
        _scale(x * 2, y, n=1, w=3, b=True)
        return y + 1

    compiled = _compiled(run)
    for size in (10, 7):
        x = torch.randn(size)
        assert torch.equal(compiled(x), run(x))
    x = torch.randn(10, requires_grad=True)
    (wanted,) = torch.autograd.grad(run(x).sum(), x)
    (found,) = torch.autograd.grad(compiled(x).sum(), x)
    assert torch.equal(found, wanted)


def test_parameters_of_modules_are_in_the_graph():
    weight = torch.nn.Parameter(torch.randn(10))

    def run(x):
        y = torch.zeros_like(x)
        _scale(weight, y, w=3, n=1, b=True)
        return (y * x).sum()

    x = torch.randn(10)
    (wanted,) = torch.autograd.grad(run(x), weight)
    (found,) = torch.autograd.grad(_compiled(run)(x), weight)
    assert wanted.abs().sum() > 0
    assert torch.equal(found, wanted)


def test_a_leaf_is_stored_into_beside_the_graph():
    def run(x, y):
        _scale(x, y, w=3, n=1, b=True)
        return y

    x, y = torch.randn(10), torch.zeros(10, requires_grad=True)
    assert torch.equal(_compiled(run, whole=False)(x, y)[1:], (3 * x * x)[1:])


def test_cells_of_tensors_are_in_the_graph():
    @ti.kernel
    def follow(x: ti.types.ndarray(dtype=ti.math.vec3, ndim=1)):
        for i in range(1, x.shape[0]):
            x[i] = x[i].zyx

    def run(x):
        y = x.clone()
        follow(y.view(-1, 3))
        return y.sin()

    x = torch.randn(30)
    assert torch.equal(_compiled(run)(x), run(x))


def test_a_kernel_with_a_race_warns_when_it_is_traced():
    @ti.kernel
    def sums(x: ti.types.ndarray()):
        for i in range(1, x.shape[0]):
            x[i] = x[i] + x[i - 1]

    def run(x):
        y = x * 1
        sums(y)
        return y

    x = torch.randn(20)
    with pytest.warns(UserWarning, match="in order"):
        found = _compiled(run)(x)
    assert torch.allclose(found, x.cumsum(0))


def test_what_is_no_operator_runs_beside_the_graph():
    c = ti.field(ti.f32, shape=())
    c[None] = 3

    @ti.kernel
    def with_field(x: ti.types.ndarray()):
        for i in x:
            x[i] += c[None]

    @ti.kernel
    def total(x: ti.types.ndarray()) -> ti.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    @ti.kernel
    def draw(x: ti.types.ndarray()):
        for i in x:
            x[i] += ti.random()

    def run(x):
        y = x * 1
        with_field(y)
        return y * total(y)

    def drawn(x):
        draw(x)
        return x * 2

    x = torch.randn(10)
    assert torch.equal(_compiled(run, whole=False)(x), run(x))
    first, second = (_compiled(drawn, whole=False)(torch.zeros(4)) for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("arguments", [{"n": 0.5}, {"n": 1 << 40}, {"b": 2.5}, {"w": None}, {"m": 1}])
def test_arguments_that_do_not_fit_are_told_outside_of_the_graph(arguments):
    def run(x):
        _scale(x, x * 1, **({"w": 1.0, "n": 0, "b": True} | arguments))
        return x

    x = torch.randn(3)
    if arguments == {"n": 1 << 40}:  # it wraps
        assert torch.equal(_compiled(run, whole=False)(x), x)
        return
    with pytest.raises((ti.TaichiRuntimeTypeError, ti.TaichiSyntaxError)):
        _compiled(run, whole=False)(x)
