"""Whole functions through `define`, `lower` and the interpreter, beside the same computation in plain Python."""

import math
import math as m
import re
from math import floor

import pytest
import torch
from torch import Tensor

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT8, UINT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import Signature
from brickwork.language.loops import ndrange
from support.causal import timex
from support.lowering import memory, run

SCALE = 3
WEIGHTS = (1.0, 2.0, 4.0)


def test_timex():
    assert run(timex, memory([[1.0, 2.0, 4.0]]), memory([[[1.0, 10.0, 100.0]]]), 0.5) == ([[[4.5, 42.5, 421.5]]],)


def brick_pad(
    tile: torch.Tensor, height: int, width: int, origin: list[int], shift_x: list[int], shift_y: tuple[int, int]
) -> torch.Tensor:
    th, tw = tile.shape
    ox, oy = origin
    assert shift_x[0] == tw, f"shift_x is {shift_x[0]}, the tile {tw} wide"
    image = tile.new_empty((height, width))
    for i in range(height):
        y = height - 1 - i - oy
        v = y // th
        for j in range(width):
            x = j - ox - v * shift_y[0]
            u = x // tw
            image[i, j] = tile[th - 1 - (y - v * th), x - u * tw]
    return image


def test_brick_pad():
    tile = [[1, 2, 3], [4, 5, 6]]
    (image,) = run(brick_pad, memory(tile, UINT8), 5, 7, [1, 2], [3, 0], [1, 2])
    for i in range(5):
        y = 5 - 1 - i - 2
        v = y // 2
        for j in range(7):
            assert image[i][j] == tile[1 - y % 2][(j - 1 - v) % 3]


def test_a_host_assert_names_its_values():
    with pytest.raises(AssertionError, match="shift_x is 5, the tile 3 wide"):
        run(brick_pad, memory([[1, 2, 3], [4, 5, 6]], UINT8), 5, 7, [1, 2], [5, 0], [1, 2])


def row_sums(x: Tensor) -> Tensor:
    out = x.new_zeros(x.shape[0])
    for i in range(len(x)):
        row = x[i]
        for j in range(row.shape[0]):
            out[i] += row[j]
    return out


def total(x: Tensor) -> Tensor:
    s = 0
    for i in range(x.numel()):
        s += x[i]
    return s


def mean_and_spread(x: Tensor) -> tuple[Tensor, Tensor]:
    n = x.size(0)
    s = 0.0
    for i in range(n):
        s += x[i]
    mean = s / n
    spread = 0.0
    for i in range(n):
        spread = max(spread, abs(x[i] - mean))
    return mean, spread


def argmax(x: Tensor) -> Tensor:
    best = 0
    for i in range(1, x.shape[0]):
        if x[i] <= x[best]:
            continue
        best = i
    return best


def collatz(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        n, steps = x[i], 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        out[i] = steps
    return out


def histogram(index: Tensor, bins: int) -> Tensor:
    out = torch.zeros(bins, dtype=torch.int64)
    for i in range(index.shape[0]):
        out[index[i]] += 1
    return out


def prefix(x: Tensor) -> None:
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]


def reverse(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    n = x.shape[0]
    for i in range(n - 1, -1, -1):
        out[n - 1 - i] = x[i]
    return out


def swap_ends(x: Tensor) -> None:
    x[0], x[-1] = x[-1], x[0]


def saxpy(a: float, x: Tensor, y: Tensor) -> None:
    assert x.shape[0] == y.shape[0], "lengths differ"
    for i in range(x.shape[0]):
        y[i] = a * x[i] + y[i]


def stencil(u: Tensor, v: Tensor, steps: int) -> None:
    n = u.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i] = (u[i - 1] + u[i] + u[i + 1]) / 3
        for i in range(1, n - 1):
            u[i] = v[i]


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (row_sums, ([[1.0, 2.0], [3.0, 4.0]],), ([3.0, 7.0],)),
        (total, ([1.0, 2.0, 3.5],), (6.5,)),
        (mean_and_spread, ([1.0, 2.0, 6.0],), (3.0, 3.0)),
        (argmax, ([1.0, 7.0, 3.0, 7.0],), (1,)),
        (reverse, ([1.0, 2.0, 3.0],), ([3.0, 2.0, 1.0],)),
    ],
)
def test_float_kernels(function, arguments, expected):
    assert run(function, *(memory(item) for item in arguments)) == expected


def test_integer_kernels():
    assert run(collatz, memory([1, 2, 3, 27], INT64)) == ([0, 1, 7, 111],)
    assert run(histogram, memory([0, 2, 2, -1], INT32), 4) == ([1, 0, 2, 1],)


def test_in_place():
    x = memory([1.0, 2.0, 3.0])
    assert run(prefix, x) == ()
    assert x.data == [1.0, 3.0, 6.0]
    run(swap_ends, x)
    assert x.data == [6.0, 3.0, 1.0]
    y = memory([1.0, 1.0, 1.0])
    run(saxpy, 2.0, x, y)
    assert y.data == [13.0, 7.0, 3.0]
    u, v = memory([0.0, 3.0, 0.0, 0.0]), memory([0.0] * 4)
    run(stencil, u, v, 1)
    assert u.data == [0.0, 1.0, 1.0, 0.0]
    with pytest.raises(AssertionError, match="lengths differ"):
        run(saxpy, 2.0, u, y)


def clamp(value, low, high=1.0):
    if value < low:
        return low
    if value > high:
        return high
    return value


def polynomial(x):
    total = 0.0
    x = x * 1
    total += WEIGHTS[0] + WEIGHTS[1] * x + WEIGHTS[2] * x**2
    return total, -total


def put(out, i, value):
    out[i] = value


def helpers(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = torch.empty_like(x), torch.zeros_like(x)
    for i in range(x.shape[0]):
        first, second = polynomial(clamp(x[i], -1))
        put(a, i, first)
        if SCALE > 2:
            put(b, i, second)
    return a, b


def test_helpers_and_captured_constants():
    assert run(helpers, memory([-5.0, 0.5, 3.0])) == ([3.0, 3.0, 7.0], [-3.0, -3.0, -7.0])


def short_circuit(x: Tensor, n: int) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        if (i + n < len(x) and x[i + n] > 0) or not x[i] < 2:
            out[i] = 1
        out[i] += 10 if 0 <= i - n < len(x) and x[i - n] == 1 else 20
    return out


def test_short_circuits_read_only_what_python_reads():
    assert run(short_circuit, memory([1.0, 0.0, 3.0]), 2) == ([21.0, 20.0, 11.0],)


def mixed(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    n = x.shape[0]
    a, b = torch.empty(n), torch.empty(n, dtype=torch.int32)
    for i in range(n):
        a[i] = m.sqrt(x[i]) + floor(x[i] / 2) + divmod(i, 2)[1] + round(x[i]) + min(i, k, 1)
        b[i] = int(x[i]) // -3 + i % 2 - (5 & 3) + (1 << i) + pow(2, 3)
    return a, b


def test_mixed_arithmetic():
    xs = [1.0, 4.0, 9.0]
    a, b = run(mixed, memory(xs), 7)
    for i, x in enumerate(xs):
        assert a[i] == pytest.approx(math.sqrt(x) + math.floor(x / 2) + i % 2 + round(x) + min(i, 7, 1))
        assert b[i] == int(x) // -3 + i % 2 - 1 + (1 << i) + 8


def find(x: Tensor, value: float) -> Tensor:
    place = -1
    for i in range(x.shape[0]):
        if x[i] == value:
            place = i
            break
    return place


def test_break_and_scalar_results():
    assert run(find, memory([1.0, 5.0, 5.0]), 5.0) == (1,)
    assert run(find, memory([1.0]), 5.0) == (-1,)


def steps(x: Tensor, first: int, last: int, step: int) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(first, last, step):
        out[i] += x[i]
        i = 0
    return out


@pytest.mark.parametrize("bounds", [(0, 5, 1), (1, 5, 2), (4, -1, -2), (3, 3, 1), (4, 0, 2), (0, 5, 7)])
def test_run_time_steps(bounds):
    (out,) = run(steps, memory([1.0, 2.0, 3.0, 4.0, 5.0]), *bounds)
    assert out == [x if i in range(*bounds) else 0.0 for i, x in enumerate([1.0, 2.0, 3.0, 4.0, 5.0])]


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("bounds", [(0, 5, LEAST), (4, 0, LEAST), (4, 4, LEAST), (0, 5, MOST), (4, 0, LEAST + 1)])
def test_steps_at_the_limits_of_64_bits(bounds):
    test_run_time_steps(bounds)

    def at_once(x: Tensor, first: int, last: int) -> Tensor:
        out = torch.zeros_like(x)
        for i in range(first, last, -9223372036854775808):
            out[i] += x[i]
        return out

    (out,) = run(at_once, memory([1.0, 2.0, 3.0, 4.0, 5.0]), *bounds[:2])
    assert [*map(bool, out)] == [i in range(*bounds[:2], LEAST) for i in range(5)]


def between_literals() -> tuple[Tensor, Tensor]:
    upward = 0
    downward = 0
    for _ in range(1, -9223372036854775808, 2):
        upward += 1
    for _ in range(-9223372036854775808, 9223372036854775807, 4611686018427387904):
        upward += 1
    for _ in range(-2, 9223372036854775807, -3):
        downward += 1
    for _ in range(9223372036854775807, -9223372036854775808, -4611686018427387904):
        downward += 1
    return upward, downward


def test_ranges_between_literals_at_the_limits_of_64_bits():
    assert run(between_literals) == (4, 4)


def test_a_step_of_zero_is_an_error():
    with pytest.raises(ValueError, match="must not be zero"):
        run(steps, memory([1.0]), 0, 1, 0)


def quotient(a: Tensor, b: Tensor) -> Tensor:
    out = torch.empty_like(a)
    for i in range(a.shape[0]):
        out[i] = a[i] // b[i]
    return out


def test_integer_division_by_zero_is_an_error():
    assert run(quotient, memory([7, -7], INT64), memory([2, 2], INT64)) == ([3, -4],)
    with pytest.raises(ZeroDivisionError):
        run(quotient, memory([7], INT64), memory([0], INT64))


def flags(x: Tensor) -> Tensor:
    out = torch.empty(x.shape[0], dtype=torch.bool)
    for i in range(x.shape[0]):
        out[i] = x[i] > 1 and not x[i] > 3
    return out


def test_bool_results():
    assert run(flags, memory([1.0, 2.0, 4.0])) == ([False, True, False],)


def half(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + 1 / 3
    return out


def test_types_of_elements():
    assert run(half, memory([1.0], FLOAT64)) == ([1.0 + 1 / 3],)
    assert run(half, memory([1.0], FLOAT16))[0][0] == pytest.approx(1.3333, abs=1e-3)
    assert run(half, memory([True], BOOL)) == ([True],)
    assert run(half, memory([5], UINT64)) == ([5],)


def ranks(x: Tensor) -> Tensor:
    if x.ndim == 1:
        out = x.new_zeros(())
        for i in range(x.shape[0]):
            out[()] += x[i]
    else:
        out = x.new_full((x.shape[1],), 0)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[j] += x[i][j]
    return out


def test_branches_on_the_rank_are_decided_at_compile_time():
    assert run(ranks, memory([1.0, 2.0])) == (3.0,)
    assert run(ranks, memory([[1.0, 2.0], [3.0, 5.0]])) == ([4.0, 7.0],)


def limits(x: Tensor, n: int, m: int) -> tuple[Tensor, Tensor]:
    rows = 3
    if n > 2:
        rows = n
    rows += 1
    m = m * 2
    out = torch.full((rows,), 7.0)
    count = 0
    if m > 4:
        for i in range(x.shape[0]):
            count += 1
    while True:
        count += 1
        if count % 5 == 0:
            break
    return out, count


def test_host_branches_and_top_level_loops():
    x = memory([1.0, 2.0, 3.0])
    assert run(limits, x, 1, 1) == ([7.0] * 4, 5)
    assert run(limits, x, 4, 4) == ([7.0] * 5, 5)


def squares(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        assert x[i] >= 0, f"x[{i}] is {x[i]:.1f}"
        out[i] = x[i] ** 2
    return out


def test_the_callers_tensor_is_used_and_asserts_in_loops_name_values():
    x, out = memory([1.0, 3.0]), memory([0.0, 5.0])
    kind = TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)
    program = lower(define(squares), Signature((kind,), out=(kind,)))
    run_program(program, [x], out=[out])
    assert out.data == [1.0, 9.0]
    with pytest.raises(CompileError, match="out"):
        lower(define(squares), Signature((kind,), out=(TensorType(FLOAT64, 1),)))
    with pytest.raises(AssertionError, match=re.escape("x[1] is -2.0")):
        run(squares, memory([1.0, -2.0]))


def first_digit(n):
    while n >= 10:
        n //= 10
    return n


def conditional_pairs(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        a, b = (i, first_digit(x[i])) if i % 2 else (x[i], i)
        out[i] = a * 100 + b
    return out


def test_pairs_and_helpers_with_loops():
    assert run(conditional_pairs, memory([5, 321, 7, 4711], INT64)) == ([500, 103, 702, 304],)


def loop_variable(x: Tensor) -> None:
    for i in range(x.shape[0]):
        n = i
        for i in range(2):
            n += i
        x[n % x.shape[0]] += 1


def test_an_inner_loop_may_take_the_name_of_the_outer():
    x = memory([0.0, 0.0, 0.0])
    run(loop_variable, x)
    assert x.data == [1.0, 1.0, 1.0]


def checked(x: Tensor, y: Tensor) -> Tensor:
    assert x.ndim == 2, f"x has {x.ndim} dimensions, not 2"
    n, m = x.shape
    assert y.shape == (m, n), "y must have the transposed shape"
    out = torch.empty_like(x)
    for i, j in ndrange(n, m):
        out[i, j] = y[j, i]
    return out


def test_asserts_about_shapes():
    x, y = memory([[1.0, 2.0]]), memory([[3.0], [4.0]])
    assert run(checked, x, y) == ([[3.0, 4.0]],)
    with pytest.raises(AssertionError, match="transposed"):
        run(checked, x, x)
    with pytest.raises(AssertionError, match="x has 1 dimensions, not 2"):
        run(checked, memory([1.0]), y)


def increment(x, i):
    x[i] += 1
    return x[i]


def ordered(x: Tensor, out: Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] * 10 + increment(x, i)
        if x[i] == increment(x, i):
            out[i] = -1


def test_operands_are_evaluated_once_and_in_order():
    x, out = memory([1.0, 5.0]), memory([0.0, 0.0])
    run(ordered, x, out)
    assert out.data == [12.0, 56.0]
    assert x.data == [3.0, 7.0]
