"""Fields, arrays, vectors, matrices and structs."""

import copy

import numpy as np
import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


def test_fields_are_captured_and_updated_together():
    x, total = ti.field(ti.i32), ti.field(ti.i32, shape=())
    ti.root.dense(ti.i, 8).dense(ti.i, 4).place(x)

    @ti.kernel
    def run():
        for i in x:
            x[i] = i
            total[None] += i

    run()
    assert total[None] == sum(range(32))
    assert x.to_numpy().tolist() == list(range(32))


def test_an_atomic_update_returns_what_was_before():
    count = ti.field(ti.i32, shape=())

    @ti.kernel
    def compact(x: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in x:
            if x[i] > 0:
                place = ti.atomic_add(count[None], 1)
                out[place] = i

    out = torch.full((6,), -1, dtype=torch.int32)
    compact(torch.tensor([1.0, -1, 1, -1, 1, 1]), out)
    assert count[None] == 4
    assert sorted(out[:4].tolist()) == [0, 2, 4, 5]


def test_a_scatter_in_a_parallel_loop_loses_nothing():
    @ti.kernel
    def histogram(x: ti.types.ndarray(), out: ti.types.ndarray()):
        for i in x:
            out[x[i]] += 1

    x = torch.randint(0, 7, (20000,), dtype=torch.int32)
    out = torch.zeros(7, dtype=torch.int32)
    histogram(x, out)
    assert out.tolist() == torch.bincount(x, minlength=7).tolist()


def test_vectors_are_values_and_fields_of_them_write_through():
    v = ti.Vector.field(3, ti.f32, shape=4)
    v[1] = [1, 2, 3]
    v[1].y = 5
    assert v[1][1] == 5

    @ti.kernel
    def run(k: ti.i32) -> ti.math.vec3:
        w = v[1]
        w[0] = 9.0
        u = v[1].xzy * 2.0
        u[k] += 1.0
        v[2] = u.cross(w)
        return u + v[1]

    assert run(2).to_list() == [3, 11, 14]
    assert v[1].to_list() == [1, 5, 3]
    assert v[2].to_list() == pytest.approx(np.cross([2, 6, 11], [9, 5, 3]).tolist())


def test_algebra_of_matrices():
    @ti.kernel
    def run(x: ti.types.ndarray(dtype=ti.types.matrix(3, 3, ti.f64), ndim=1)) -> ti.f64:
        a = x[0]
        x[1] = a.inverse()
        x[2] = a @ x[1]
        return a.determinant() + a.trace()

    x = torch.randn(3, 3, 3, dtype=torch.float64)
    found = run(x)
    assert found == pytest.approx((torch.det(x[0]) + torch.trace(x[0])).item())
    assert torch.allclose(x[1], torch.inverse(x[0]))
    assert torch.allclose(x[2], torch.eye(3, dtype=torch.float64))


def test_structs_and_objects():
    @ti.dataclass
    class Ball:
        at: ti.math.vec2
        mass: ti.f32

        @ti.func
        def moment(self):
            return self.mass * self.at.norm()

    @ti.data_oriented
    class World:
        def __init__(self, n):
            self.n = n
            self.balls = Ball.field(shape=n)

        @ti.kernel
        def total(self) -> ti.f32:
            s = 0.0
            for i in range(self.n):
                self.balls[i].mass += 1.0
                s += self.balls[i].moment()
            return s

    world = World(3)
    world.balls[0].at = [3, 4]
    world.balls[2] = Ball(at=[0, 2], mass=1)
    assert world.total() == 5 + 4


def test_arrays_of_numpy_and_of_taichi():
    @ti.kernel
    def double(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            y[i] = x[i] * 2

    y = ti.ndarray(ti.f64, 4)
    double(np.arange(4, dtype=np.float64), y)
    assert y.to_numpy().tolist() == [0, 2, 4, 6]


def test_a_vector_is_an_index_and_a_row_of_static_ones():
    @ti.kernel
    def run(x: ti.types.ndarray()) -> ti.f32:
        place = ti.math.ivec2(1, 2)
        i, j = place
        m = ti.Matrix([[1.0, 2.0], [3.0, 4.0]])
        s = x[place] + x[i, j]
        for r in ti.static(range(2)):
            for c in ti.static(range(2)):
                s += m[r, c]
        return s

    assert run(torch.arange(12.0).reshape(3, 4)) == 6 + 6 + 10


def test_a_field_is_filled_with_a_number_of_numpy():
    x = ti.field(ti.f32, shape=3)
    x.fill(np.float32(2))
    v = ti.Vector.field(2, ti.f32, shape=2)
    v.fill(np.float32(3))
    v[1] = np.float32(4)
    assert x.to_numpy().tolist() == [2, 2, 2]
    assert v.to_numpy().tolist() == [[3, 3], [4, 4]]


@pytest.mark.parametrize("make", [ti.field, ti.ndarray])
def test_a_copy_has_gradients_of_its_own(make):
    x = make(ti.f32, shape=2, needs_grad=True)
    x.grad.fill(1)
    y = copy.deepcopy(x)
    assert y.grad.to_numpy().tolist() == [1, 1]
    y.grad.fill(2)
    assert x.grad.to_numpy().tolist() == [1, 1]
    if make is ti.field:
        ti.ad.clear_all_gradients()
        assert y.grad.to_numpy().tolist() == [0, 0]
