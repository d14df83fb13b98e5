"""Whole numbers of every width, their bits, and random numbers: none is that of another width or turn."""

import pytest
import torch

import brickwork.taichi as ti
from brickwork.taichi import scalars

WHOLE = [ti.i8, ti.u8, ti.i16, ti.u16, ti.i32, ti.u32, ti.i64, ti.u64]


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu, random_seed=1)
    yield
    ti.reset()


@pytest.mark.parametrize("kind", WHOLE, ids=str)
def test_bits_are_counted_by_the_width_of_the_type(kind):
    @ti.kernel
    def run(x: kind, out: ti.types.ndarray()):
        out[0] = ti.math.popcnt(x)
        out[1] = ti.math.clz(x)

    for number in (0, 1, 5, 64, -1):
        out = torch.zeros(2, dtype=torch.int32)
        run(number, out)
        bits = f"{number % (1 << kind.bits):0{kind.bits}b}"
        assert out.tolist() == [bits.count("1"), kind.bits - len(bits.lstrip("0"))]


def test_bits_are_counted_in_the_scope_of_python():
    assert [ti.math.popcnt(each) for each in (5, -1)] == [2, 32]
    assert [ti.math.clz(each) for each in (5, 0, -1)] == [29, 32, 0]


def test_a_difference_of_unsigned_numbers_wraps_before_it_is_compared():
    @ti.kernel
    def run(a: ti.u32, b: ti.u32) -> ti.i32:
        result = 0
        if a - b > ti.u32(5):
            result = 1
        return result

    assert run(3, 5) == 1


def test_a_sum_of_narrow_numbers_wraps_before_it_is_compared_or_negated():
    @ti.kernel
    def run(a: ti.u8, b: ti.i8) -> ti.i32:
        result = 0
        if a + ti.u8(10) < ti.u8(10):
            result += 1
        if -b < ti.i8(0):
            result += 2
        return result

    assert run(250, -128) == 3


def test_a_long_step_of_a_variable_wraps():
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        x = n * 2
        x += 2000000000
        result = 0
        if x < 0:
            result = 1
        return result

    assert run(1000000000) == 1


def test_a_variable_that_is_assigned_again_wraps():
    @ti.kernel
    def run(n: ti.i32) -> ti.i32:
        x = n
        for _ in range(2):
            x = x * 65536
        result = 0
        if x == 0:
            result = 1
        return result

    assert run(3) == 1


def test_an_index_of_a_narrow_type_wraps():
    @ti.kernel
    def run(x: ti.types.ndarray(), a: ti.u8) -> ti.i32:
        return x[a + ti.u8(10)]

    assert run(torch.arange(8, dtype=torch.int32), 250) == 4


def test_draws_in_a_triangle_differ():
    @ti.kernel
    def run(x: ti.types.ndarray()):
        for i in range(8):
            for j in range(i, 8):
                x[i, j] = ti.random(ti.i64)

    x = torch.zeros(8, 8, dtype=torch.int64)
    run(x)
    assert len({*x[x != 0].tolist()}) == 36


def test_draws_of_long_loops_in_loops_differ():
    @ti.kernel
    def run(x: ti.types.ndarray()):
        outer = 0
        while outer < 2:
            inner = 0
            while inner < 65540:
                x[outer, inner] = ti.random(ti.i64)
                inner += 1
            outer += 1

    x = torch.zeros(2, 65540, dtype=torch.int64)
    run(x)
    assert len({*x.reshape(-1).tolist()}) == x.numel()


def test_draws_in_the_condition_of_a_loop_differ():
    @ti.kernel
    def run(x: ti.types.ndarray()):
        for i in x:
            while ti.random() < 0.5 and x[i] < 100:
                x[i] += 1

    x = torch.zeros(1000, dtype=torch.int32)
    run(x)
    assert 0.8 < x.float().mean() < 1.2
    assert x.max() < 30


@pytest.mark.parametrize("kind", [each for each in WHOLE if each.bits >= 32], ids=str)
def test_random_whole_numbers_have_all_bits(kind):
    @ti.kernel
    def fill(x: ti.types.ndarray()):
        for i in x:
            x[i] = ti.random(kind)

    x = torch.zeros(2000, dtype=getattr(torch, kind.element.name))
    fill(x)
    own = [ti.random(kind) for _ in range(2000)]
    for numbers in (x.tolist(), own):
        assert all(kind.holds(each) for each in numbers)
        for bit in range(kind.bits):
            assert 0.4 < sum(each >> bit & 1 for each in numbers) / 2000 < 0.6, bit


def test_operators_of_whole_numbers_in_the_scope_of_python():
    big = (1 << 60) + 1
    assert ti.raw_div(big, 1) == big
    assert ti.raw_div(-7, 2) == -3
    assert ti.raw_mod(big, 10) == big % 10
    assert isinstance(ti.raw_mod(-7, 2), int)
    assert ti.raw_mod(-7, 2) == -1
    assert ti.bit_shr(-7, 1) == 2147483644
    ti.init(arch=ti.cpu, default_ip=ti.i64)
    assert ti.bit_shr(-7, 1) == scalars.u64.number(-7) >> 1
