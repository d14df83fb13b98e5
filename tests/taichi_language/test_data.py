"""Fields, arrays, vectors, matrices and structs."""

import copy
import gc
import weakref

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


def test_entries_of_a_value_are_read_before_the_first_is_stored():
    @ti.dataclass
    class Pair:
        a: ti.i32
        b: ti.i32

    vec = ti.types.vector(3, ti.i32)

    @ti.kernel
    def run() -> ti.types.vector(17, ti.i32):
        r = ti.Vector([0 for _ in range(17)])
        u, v, w, x, y = ti.Vector([1, 2, 3]), vec(1, 2, 3), vec(1, 2, 3), vec(1, 2, 3), vec(1, 2, 3)
        u += u.zyx
        v.zxy = [v.z, v.y, v.x]
        w -= w[0]
        x.zxy += [x.z, x.y, x.x]
        ti.atomic_sub(y, y[2])
        p = Pair(1, 2)
        p = Pair(p.b, p.a)
        for i in ti.static(range(3)):
            r[i], r[i + 3], r[i + 6], r[i + 9], r[i + 12] = u[i], v[i], w[i], x[i], y[i]
        r[15], r[16] = p.a, p.b
        return r

    assert run().entries == [4, 4, 4, 2, 1, 3, 0, 1, 2, 3, 3, 6, -2, -1, 0, 2, 1]


def test_fields_and_arrays_are_filled_in_kernels():
    x, m = ti.field(ti.i32, shape=3), ti.Matrix.field(2, 2, ti.i32, shape=2)

    @ti.kernel
    def run(y: ti.types.ndarray(ndim=2), v: ti.i32):
        x.fill(v)
        m.fill(ti.Matrix([[1, 2], [3, v]]))
        y.fill(v)

    y = torch.zeros(2, 3)
    run(y, 7)
    assert x.to_numpy().tolist() == [7] * 3
    assert m[1].to_list() == [[1, 2], [3, 7]]
    assert y.eq(7).all()


def test_rows_and_columns_at_places_known_at_run_time():
    @ti.kernel
    def run(i: ti.i32, x: ti.types.ndarray()):
        m = ti.Matrix([[1, 2, 3], [4, 5, 6]])
        m[i, :] = ti.Vector([7, 8, 9])
        column = m[:, i]
        for j, k in ti.static(ti.ndrange(2, 3)):
            x[j, k] = m[j, k]
        x[2, 0], x[2, 1] = column[0], column[1]
        x[2, 2] = column @ ti.Vector([1, 2])

    x = torch.zeros(3, 3, dtype=torch.int32)
    run(1, x)
    assert x.tolist() == [[1, 2, 3], [7, 8, 9], [2, 8, 18]]


def test_unsigned_vectors_are_as_wide_as_the_default_type():
    ti.init(arch=ti.cpu, default_ip=ti.i64)

    @ti.kernel
    def run() -> ti.u64:
        return ti.math.uvec2(ti.u64(2**63 + 1)).y

    assert run() == 2**63 + 1


def test_code_is_made_anew_when_a_layout_was_destroyed():
    @ti.data_oriented
    class Some:
        def lay_out(self):
            self.x = ti.field(ti.i32)
            builder = ti.FieldsBuilder()
            builder.dense(ti.ij, 2).place(self.x)
            return builder.finalize()

        @ti.kernel
        def run(self, m: ti.i32):
            for i, j in self.x:
                self.x[i, j] = m

    some = Some()
    for m in (1, 2):
        tree = some.lay_out()
        some.run(m)
        assert some.x.to_numpy().tolist() == [[m, m], [m, m]]
        tree.destroy()


def test_kernels_do_not_keep_their_objects():
    @ti.data_oriented
    class Some:
        def __init__(self, m):
            self.m = m

        @ti.kernel
        def run(self) -> ti.i32:
            return self.m

    found = []
    for m in range(3):
        some = Some(m)
        found.append(some.run())
        kept = weakref.ref(some)
        del some
        gc.collect()
        assert kept() is None
    assert found == [0, 1, 2]


def test_a_struct_is_a_member_of_another():
    @ti.dataclass
    class Inner:
        i: int
        j: float

    @ti.dataclass
    class Outer:
        a: Inner
        b: Inner

    made = Outer(Inner(1, 2.0))
    assert [made.a.i, made.a.j, made.b.i] == [1, 2.0, 0]


def test_arrays_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="does not match"):
        ti.field(ti.i32, shape=()).from_numpy(np.zeros(1, dtype=np.int32))
    with pytest.raises(ti.TaichiRuntimeError, match="3 axes"):
        ti.root.dense(ti.ijk, (2, 3))


def test_large_vectors_lie_in_arrays():
    large = ti.types.vector(200, ti.i32)

    @ti.kernel
    def count(n: ti.i32) -> large:
        r = large(1)
        for i in range(n):
            r[i] += i
        for i in range(n):
            r[i] *= 2
        return r

    assert count(150).entries == [*range(2, 302, 2), *[1] * 50]
    with pytest.raises(IndexError, match="index 200 is out of bounds"):
        count(201)


def test_more_numbers_than_an_operator_takes():
    large, some = ti.types.vector(100, ti.i32), ti.types.struct(a=ti.math.mat4, b=ti.f32, c=ti.u1)

    @ti.kernel
    def run(n: ti.i32, v: large, s: some, x: ti.types.ndarray()) -> ti.f32:
        for i in x:
            x[i] = v[i + n] * s.a[1, 2]
        return s.b + ti.cast(s.c, ti.f32)

    v = large([*range(100)])
    for scale in (2.0, 3.0):
        x = torch.zeros(50, dtype=torch.float64, requires_grad=False)
        s = some(a=ti.Matrix([[scale] * 4] * 4), b=scale, c=True)
        assert run(10, v, s, x) == scale + 1
        assert torch.equal(x, torch.arange(10, 60, dtype=torch.float64) * scale)


def test_more_fields_than_an_operator_takes():
    fields = [ti.field(ti.f32, shape=1) for _ in range(61)]

    @ti.kernel
    def run():
        for each in ti.static(fields):
            each[0] = 1.0

    with pytest.raises(ti.TaichiCompilationError, match="61 fields"):
        run()


def test_letters_that_a_vector_has_not():
    @ti.kernel
    def run():
        v = ti.math.vec2(1, 2)
        v.z = 3.0

    with pytest.raises(ti.TaichiSyntaxError, match=r"vec2 only has attributes=\('x', 'y'\), got=\('z',\)"):
        run()
    with pytest.raises(ti.TaichiSyntaxError, match="got="):
        ti.math.vec2(1, 2).xyz = [1, 2, 3]


def test_members_have_names_of_methods():
    @ti.dataclass
    class Some:
        entries: int
        keys: int
        items: int
        methods: int

    @ti.kernel
    def run() -> int:
        x = Some(1, 20, 300, 4000)
        return x.entries + x.keys + x.items + x.methods

    assert run() == 4321
    with pytest.raises(ti.TaichiSyntaxError, match="Default value"):

        @ti.dataclass
        class _Other:
            a: int = 1
