"""The language of kernels: types, scopes, loops, functions, and Taichi's measured semantics."""

import math

import pytest
import torch

import brickwork.taichi as ti
import brickwork.taichi.math as tm


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


def test_a_kernel_runs_over_the_elements_of_a_tensor():
    @ti.kernel
    def scale(x: ti.types.ndarray(), y: ti.types.ndarray(), k: ti.f32):
        for i, j in x:
            y[i, j] = x[i, j] * k + i

    x = torch.randn(7, 5).t()  # strides are no matter
    y = torch.zeros(5, 7)
    scale(x, y, 2.0)
    assert torch.allclose(y, x * 2 + torch.arange(5)[:, None])


def test_integers_wrap_and_divide_as_measured():
    @ti.kernel
    def run(a: ti.i32, b: ti.i32, f: ti.types.ndarray(), n: ti.types.ndarray()):
        f[0] = a / b
        f[1] = ti.round(2.5)
        f[2] = ti.max(math.nan, 2.5)
        n[0] = a // b
        n[1] = a % b
        n[2] = ti.raw_div(a, b)
        n[3] = ti.raw_mod(a, b)
        n[4] = 100000 * (b * 50000)
        n[5] = ti.cast(ti.cast(300.0 + f[0] - f[0], ti.u8), ti.i32)
        n[6] = a >> 1
        n[7] = ti.bit_shr(a, 1)
        n[8] = (b << 30) << 1
        n[9] = int(-2.7 + f[0] - f[0])

    f, n = torch.zeros(3), torch.zeros(10, dtype=torch.int32)
    run(-7, 2, f, n)
    assert f.tolist() == [-3.5, 3.0, 2.5]
    assert n.tolist() == [-4, 1, -3, -1, 1410065408, 44, -4, 2147483644, 0, -2]


def test_a_comparison_of_a_product_that_has_wrapped_is_that_of_32_bits():
    @ti.kernel
    def run(x: ti.types.ndarray()) -> ti.i32:
        h = x[0]
        h = h * 65536
        h = h * 65536
        result = 0
        if h == 0:
            result = 1
        return result

    assert run(torch.tensor([3], dtype=torch.int32)) == 1


def test_the_first_assignment_gives_the_type():
    @ti.kernel
    def run() -> ti.f32:
        s = 0
        for _ in range(4):
            s += 0.75
        x = 1
        x = 3.99
        return s * 10.0 + x

    assert run() == 3.0


def test_a_variable_of_a_block_is_not_known_after_it():
    @ti.kernel
    def run(a: ti.i32) -> ti.i32:
        if a > 0:
            inside = 1
        return inside

    with pytest.raises(ti.TaichiNameError, match='Name "inside" is not defined'):
        run(1)


def test_static_loops_and_branches():
    flag = True

    @ti.func
    def twice(x):
        return x + x

    @ti.kernel
    def run() -> ti.i32:
        s = 0
        for k in ti.static(range(5)):
            if ti.static(k == 3):
                break
            if ti.static(flag):
                s += twice(k)
        return s

    assert run() == 6


def test_short_circuit_guards_an_access():
    @ti.kernel
    def run(x: ti.types.ndarray(), i: ti.i32) -> ti.i32:
        found = 0
        if i < 4 and x[i] > 0:
            found = 1
        return found

    x = torch.ones(4, dtype=torch.int32)
    assert run(x, 3) == 1
    assert run(x, 4) == 0


def test_products_of_ranges_and_grouped_indices():
    @ti.kernel
    def run(x: ti.types.ndarray()):
        for i, j in ti.ndrange((1, 4), 3):
            x[i, j] = i * 10 + j
        for I in ti.grouped(x):
            x[I] += I[0]

    x = torch.zeros(5, 3, dtype=torch.int64)
    run(x)
    want = torch.arange(5)[:, None].repeat(1, 3)
    want[1:4] += torch.arange(1, 4)[:, None] * 10 + torch.arange(3)
    assert x.tolist() == want.tolist()


def test_a_loop_that_is_left_and_one_with_a_condition():
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        steps = 0
        while n - steps > 5:
            steps += 1
        ti.loop_config(serialize=True)
        for i in range(n):
            if i == 7:
                break
            steps += 100
        return steps

    assert run(10) == 705


def test_functions_take_values_and_templates():
    @ti.func
    def by_value(x):
        x += 1
        return x

    @ti.func
    def by_name(x: ti.template()):
        x += 1

    @ti.kernel
    def run() -> ti.i32:
        a = 5
        b = by_value(a)
        by_name(a)
        return a * 100 + b

    assert run() == 606


def test_a_real_function_returns_early():
    @ti.real_func
    def first_above(n: ti.i32, limit: ti.i32) -> ti.i32:
        for i in range(n):
            if i * i > limit:
                return i
        return -1

    @ti.kernel
    def run(limit: ti.i32) -> ti.i32:
        return first_above(10, limit)

    assert [run(20), run(1000)] == [5, -1]


def test_printing(capsys):
    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            print("i =", i, ti.Vector([i, 2 * i]), sep="|")

    run(2)
    assert capsys.readouterr().out == "i =|0|[0, 0]\ni =|1|[1, 2]\n"


@pytest.mark.parametrize("room", [65535, 65536])
def test_a_full_log_ends_with_what_fits(capsys, room):
    @ti.kernel
    def run(n: ti.i32):
        for i in range(n):
            print(i)
        print("a", n, n, n)
        print("end")

    run(room // 2)
    said = capsys.readouterr().out.splitlines()
    ends = [str(room // 2 - 1), "end", "..."] if room % 2 else [str(room // 2 - 2), str(room // 2 - 1), "..."]
    assert said[-3:] == ends
    run(1)
    assert capsys.readouterr().out == "0\na 1 1 1\nend\n"


def test_random_numbers_repeat_by_seed():
    @ti.kernel
    def fill(x: ti.types.ndarray()):
        for i in x:
            x[i] = ti.random()

    def draw():
        ti.init(arch=ti.cpu, random_seed=3)
        x = torch.zeros(1000)
        fill(x)
        return x

    before = torch.get_rng_state()
    x = draw()
    assert torch.equal(x, draw())
    assert 0.4 < x.mean() < 0.6
    assert x.min() >= 0
    assert x.max() < 1
    assert torch.equal(torch.get_rng_state(), before)


def test_one_tensor_that_is_passed_twice_is_two_arguments():
    @ti.kernel
    def add(x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in x:
            x[i] += y[i]

    x, y, z = torch.ones(3), torch.full((3,), 2.0), torch.full((3,), 10.0)
    add(x, x)
    add(z, y)
    assert x.tolist() == [2.0] * 3
    assert z.tolist() == [12.0] * 3


def test_what_is_called_in_an_assignment_is_compiled_once():
    @ti.func
    def counted(x: ti.template()):
        x[0] += 1
        return ti.Vector([3.0, 4.0])

    @ti.kernel
    def run(x: ti.types.ndarray()) -> ti.f32:
        n = counted(x).norm()
        return n

    x = torch.zeros(1)
    assert run(x) == 5.0
    assert x.item() == 1.0


def test_static_is_known_by_other_names():
    known = ti.static

    @ti.kernel
    def run() -> ti.i32:
        s = 0
        for k in known(range(3)):
            t = k
            s += t
        return s

    assert run() == 3
    with pytest.raises(ti.TaichiNameError, match="unknown"):
        _unknown()


def _unknown():
    @ti.kernel
    def run():
        for _ in unknown(3):  # noqa: F821
            pass

    run()


def test_templates_of_equal_numbers_and_other_types_are_compiled_each():
    @ti.kernel
    def half(v: ti.template(), x: ti.types.ndarray()):
        a = v[0]
        a /= 2
        x[0] = a

    @ti.kernel
    def inverse(v: ti.template(), x: ti.types.ndarray()):
        x[0] = 1.0 / (x[0] + v)

    x = torch.zeros(1)
    half(ti.Vector([1, 2]), x)
    assert x.item() == 0.0
    half(ti.Vector([1.0, 2.0]), x)
    assert x.item() == 0.5
    for zero in (0.0, -0.0):
        x.fill_(-0.0)
        inverse(zero, x)
        assert x.item() == math.copysign(math.inf, zero)


def test_a_field_without_axes_is_no_number():
    x, y = ti.field(ti.i32, shape=()), ti.field(ti.i32, shape=())

    @ti.kernel
    def add(f: ti.template()):
        f[None] += 1

    @ti.kernel
    def multiply():
        _ = ti.Vector([1, 2]) * x

    add(x)
    add(y)
    add(y)
    assert [x[None], y[None]] == [1, 2]
    with pytest.raises(ti.TaichiTypeError, match="unsupported operand type"):
        multiply()


def test_a_real_function_returns_from_a_product_of_ranges():
    @ti.real_func
    def first(n: ti.i32) -> ti.i32:
        for i, j in ti.ndrange(n, n):
            if i + j >= 1:
                return i * 10 + j
        return -1

    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        return first(n)

    assert [run(3), run(1)] == [1, -1]


def test_a_walrus_assigns_a_variable_that_is_there():
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        x = n
        turns = 0
        while (x := x - 1) > 0 and turns < 100:
            turns += 1
        return turns * 1000 + (y := x + 7) + (y := 20) + y

    assert run(5) == 4047


def test_lambdas_are_inlined():
    several = [lambda x: x * x, lambda x: (
        x + 1), lambda x, y=2: x**y if x > 0 else y]  # fmt: skip
    inner = next(map(lambda k: lambda x: k * x, [2]))
    found = []
    for function in (*several, inner):

        @ti.kernel
        def run(x: ti.f32) -> ti.f32:
            return function(x)

        found.append(run(3.0))
    assert found == [9, 4, 9, 6]


def test_the_room_of_mathematics_is_imported_by_its_own_name():
    from brickwork.taichi.math import pi, vec2  # as published programs do

    x = torch.zeros(2)

    @ti.kernel
    def turned(out: ti.types.ndarray()):
        v = tm.rotation2d(pi / 2) @ vec2(1.0, 0.0)
        out[0] = tm.fract(v.x + 0.25)
        out[1] = v.y

    turned(x)
    torch.testing.assert_close(x, torch.tensor([0.25, 1.0]))


def test_vectors_are_complex_numbers_to_functions_that_say_so():
    x = torch.zeros(8, 2)

    @ti.kernel
    def computed(out: ti.types.ndarray()):
        a, b = tm.vec2(1.0, 2.0), tm.vec2(-0.5, 3.0)
        out[0, 0], out[0, 1] = tm.cmul(a, b)
        out[1, 0], out[1, 1] = tm.cdiv(a, b)
        out[2, 0], out[2, 1] = tm.cconj(a)
        out[3, 0], out[3, 1] = tm.cinv(a)
        out[4, 0], out[4, 1] = tm.cexp(a)
        out[5, 0], out[5, 1] = tm.clog(a)
        out[6, 0], out[6, 1] = tm.csqrt(a)
        out[7, 0], out[7, 1] = tm.cpow(a, 3.0)

    computed(x)
    a, b = torch.tensor(1 + 2j), torch.tensor(-0.5 + 3j)
    wanted = torch.stack((a * b, a / b, a.conj().resolve_conj(), 1 / a, a.exp(), a.log(), a.sqrt(), a**3))
    torch.testing.assert_close(torch.view_as_complex(x), wanted)
