"""Cases that break compilers of loops: odd layouts, enormous offsets, integers at their edges, orders that matter."""

import math
import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

import brickwork as bw
from support.gpu import only_cpu, settle, settled

OPTIMISED = True

NO_RESERVE = 0x4000
"""Linux's flag of a mapping that may be larger than memory; Python has no name for it."""


def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for place in bw.indices(x):
        out[place] = x[place] * 2
    return out


double_op = bw.op("hard_cases::double")(double)


def odd_strides(shape):
    """Return a tensor whose axes of size 1 have strides that mean nothing."""
    plain = torch.arange(math.prod(shape), dtype=torch.float32)
    strides = [step if size > 1 else 7919 for size, step in zip(shape, torch.empty(shape).stride(), strict=True)]
    return plain.as_strided(shape, strides)


LAYOUTS = {
    "empty": lambda: torch.empty(0),
    "empty within": lambda: torch.empty(3, 0, 2),
    "size 1": lambda: torch.ones(1),
    "zero-dimensional": lambda: torch.tensor(3.5),
    "transposed": lambda: torch.arange(15.0).reshape(3, 5).t(),
    "step 2": lambda: torch.arange(31.0)[1::2],
    "expanded": lambda: torch.arange(5.0).expand(4, 5),
    "expanded within": lambda: torch.arange(3.0)[:, None].expand(3, 40),
    "channels last": lambda: torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "odd strides of size 1": lambda: odd_strides((1, 6, 1, 4)).to(torch.get_default_device()),
    "all of size 1": lambda: odd_strides((1, 1)).to(torch.get_default_device()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name, device):
    x = LAYOUTS[name]()
    found = double_op(x)
    settle(device)
    assert torch.equal(found, x * 2)
    assert found.shape == x.shape


def add_one(out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += 1


add_one_op = bw.op("hard_cases::add_one")(add_one)


@pytest.mark.parametrize(
    "part", [(slice(2, 7), slice(1, 9)), (slice(0, 10, 3), slice(1, 10, 2)), (slice(9, 10), slice(0, 0))]
)
def test_outputs_that_are_slices(part, device):
    whole = torch.zeros(10, 10)
    expected = torch.zeros(10, 10)
    expected[part] += 1
    add_one_op(whole[part])
    settle(device)
    assert torch.equal(whole, expected)


@only_cpu
@pytest.mark.parametrize("stride", [2**29 + 3, 2**31 + 11])
def test_a_small_tensor_whose_index_times_stride_passes_32_bits(device, stride):
    # Pages that nobody touches take no memory.
    with mmap.mmap(-1, 4 * (4 * stride + 64), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE) as sparse:
        block = torch.from_numpy(np.frombuffer(sparse, dtype=np.float32))
        x = block.as_strided((5, 8), (stride, 1))
        add_one_op(x)
        assert torch.equal(x, torch.ones(5, 8))
        add_one_op(x.t())
        assert torch.equal(x, torch.full((5, 8), 2.0))
        del x, block


@only_cpu
def test_more_elements_than_32_bits_count(device):
    count = 2**31 + 17
    available = (
        int(next(line for line in Path("/proc/meminfo").open() if line.startswith("MemAvailable")).split()[1]) * 1024
    )
    if available < 4 * count:
        pytest.skip(f"needs {4 * count >> 30} GiB of free memory; there are {available >> 30}")

    def count_up(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] += i % 7 + 1

    x = torch.zeros(count, dtype=torch.int8)
    bw.op("hard_cases::count_up")(count_up)(x)
    for place in (0, 1, 2**31 - 1, 2**31, 2**31 + 1, count - 1):
        assert x[place] == place % 7 + 1
    assert int(x[-1000:].long().sum()) == sum(i % 7 + 1 for i in range(count - 1000, count))


def row_sums(x: torch.Tensor, begin: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        s = 0.0
        for k in range(begin[i], begin[i + 1]):
            s += x[k]
        out[i] = s


row_sums_op = bw.op("hard_cases::row_sums")(row_sums)


def test_loop_bounds_from_data(device):
    out = torch.full((4,), -1.0)
    row_sums_op(torch.arange(10.0), torch.tensor([0, 3, 3, 7, 10]), out)
    settle(device)
    assert out.tolist() == [3.0, 0.0, 18.0, 24.0]
    with pytest.raises(IndexError):
        settled(device, row_sums_op, torch.arange(10.0), torch.tensor([0, 3, 3, 7, 11]), out)


def scatter(out: torch.Tensor, where: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[where[i]] = x[i]


def claimed_scatter(out: torch.Tensor, where: torch.Tensor, x: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        out[where[i]] = x[i]


scatter_op = bw.op("hard_cases::scatter")(scatter)
claimed_scatter_op = bw.op("hard_cases::claimed_scatter")(claimed_scatter)


def test_a_scatter_in_order_keeps_the_last(device):
    out = torch.zeros(3)
    scatter_op(out, torch.arange(3000) % 3, torch.arange(3000.0))
    settle(device)
    assert out.tolist() == [2997.0, 2998.0, 2999.0]


def test_a_scatter_under_prange(device):
    where, out = torch.randperm(3000), torch.zeros(3000)
    claimed_scatter_op(out, where, torch.arange(3000.0))
    settle(device)
    assert torch.equal(out[where], torch.arange(3000.0))


def claimed_updates(out: torch.Tensor, where: torch.Tensor, x: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0]):
        out[where[i]] += x[i]


claimed_updates_op = bw.op("hard_cases::claimed_updates")(claimed_updates)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float64, torch.float32])
def test_updates_under_prange_lose_nothing(device, dtype):
    where, out = torch.arange(200_000) % 7, torch.zeros(7, dtype=dtype)
    claimed_updates_op(out, where, torch.ones(200_000, dtype=dtype))
    settle(device)
    assert torch.equal(out, torch.bincount(where).to(dtype))


def first_beyond(x: torch.Tensor, limit: float, end: int, step: int) -> torch.Tensor:
    found = -1
    for i in range(0, end, step):
        if x[i] > limit:
            found = i
            break
    return found


first_beyond_op = bw.op("hard_cases::first_beyond")(first_beyond)


@pytest.mark.parametrize("step", [2, 3, 2**61])
def test_a_range_without_an_end(device, step):
    found = first_beyond_op(torch.arange(2.0**4), -1.0 if step > 3 else 5.0, 2**63 - 1, step)
    settle(device)
    assert found == (0 if step > 3 else 6)


def running(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] + y[i]


running_op = bw.op("hard_cases::running")(running)


def test_a_running_sum_in_place(device):
    x, y = torch.zeros(1000), torch.arange(1000.0)
    running_op(x, y)
    settle(device)
    assert torch.equal(x, torch.cumsum(torch.arange(1000.0), 0))
    running_op(y, y)
    settle(device)
    assert y[:5].tolist() == [0.0, 1.0, 3.0, 6.0, 10.0]


def argmax(x: torch.Tensor) -> torch.Tensor:
    best = -math.inf
    where = -1
    for i in range(x.shape[0]):
        if x[i] != x[i]:
            continue
        if x[i] > best:
            best = x[i]
            where = i
    return where


argmax_op = bw.op("hard_cases::argmax")(argmax)


def test_an_argmax_with_continue(device):
    x = torch.arange(1000.0)
    x[500] = x[700] = 5000.0
    x[999] = math.nan
    assert int(argmax_op(x)) == 500
    assert int(argmax_op(torch.full((5,), math.nan))) == -1


def value(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = x[i]
        s += 1
        out[i] = s


def test_a_local_leaves_the_element_alone(device):
    x, out = torch.arange(9.0), torch.zeros(9)
    bw.op("hard_cases::value")(value)(x, out)
    settle(device)
    assert torch.equal(x, torch.arange(9.0))
    assert torch.equal(out, x + 1)


def divide(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] // y[i] + x[i] % y[i]


divide_op = bw.op("hard_cases::divide")(divide)


def test_integer_division_by_zero_and_the_one_that_overflows(device):
    least = -(2**63)
    x, y = torch.tensor([least, least, -7, 7, 7]), torch.tensor([-1, 1, 2, -2, 3])
    out = torch.zeros(5, dtype=torch.int64)
    divide_op(x, y, out)
    settle(device)
    assert out.tolist() == [least, least, -3, -5, 3]
    with pytest.raises(ZeroDivisionError):
        settled(device, divide_op, x, torch.tensor([1, 1, 0, 1, 1]), out)


def shift(x: torch.Tensor, by: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        left[i] = x[i] << by[i]
        right[i] = x[i] >> by[i]


def test_shifts_past_the_width(device):
    x, by = torch.tensor([1, -1, 5, -5, 3, -3]), torch.tensor([63, 64, 64, 65, 1000, 2**40])
    left, right = torch.zeros(6, dtype=torch.int64), torch.zeros(6, dtype=torch.int64)
    bw.op("hard_cases::shift")(shift)(x, by, left, right)
    settle(device)
    assert left.tolist() == [-(2**63), 0, 0, 0, 0, 0]
    assert right.tolist() == [0, -1, 0, -1, 0, -1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_infinities_and_denormals(dtype, device):
    kind = getattr(torch, dtype)
    tiny = torch.finfo(kind).smallest_normal
    x = torch.tensor(
        [math.nan, math.inf, -math.inf, -0.0, tiny, tiny / 4, -tiny / 4, torch.finfo(kind).max], dtype=kind
    )
    found = double_op(x)
    settle(device)
    assert torch.equal(found.isnan(), (x * 2).isnan())
    assert torch.equal(found.nan_to_num(7.0, 8.0, 9.0), (x * 2).nan_to_num(7.0, 8.0, 9.0))
    assert torch.equal(found.signbit(), (x * 2).signbit())
    assert float(found[5]) != 0.0


def weak(x: torch.Tensor, by: float) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * by + 0.1
    return out


def test_python_floats_do_not_widen_float32(device):
    x = torch.rand(1000)
    found = bw.op("hard_cases::weak")(weak)(x, 0.1)
    settle(device)
    fused = (x.double() * torch.tensor(0.1).double() + torch.tensor(0.1).double()).float()
    assert torch.equal(found, fused) or torch.equal(found, x * 0.1 + 0.1)


def far(x: torch.Tensor, n: int, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        k = n * 3 + x[i]
        out[i] = k - n


@pytest.mark.parametrize("n", [2**31 + 5, -(2**33), 2**61])
def test_integers_beyond_32_bits_are_not_truncated(n, device):
    x, out = torch.arange(20), torch.zeros(20, dtype=torch.int64)
    bw.op("hard_cases::far")(far)(x, n, out)
    settle(device)
    assert out.tolist() == [(2 * n + i + 2**63) % 2**64 - 2**63 for i in range(20)]


def counted(out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = j
            j += 1
            out[i, j - 1] += j


def test_adding_to_a_loop_variable_does_not_move_the_loop(device):
    out = torch.zeros(4, 70)
    bw.op("hard_cases::counted")(counted)(out)
    settle(device)
    assert torch.equal(out, (2 * torch.arange(70.0) + 1).expand(4, 70))


def racy(x: torch.Tensor) -> None:
    for i in bw.prange(x.shape[0] - 1):
        x[i] = x[i + 1] * 2


def test_a_racy_prange_is_refuted_with_two_iterations(device):
    with pytest.raises(bw.RaceError) as caught:
        bw.op("hard_cases::racy")(racy)(torch.zeros(10))
    assert "i=0" in str(caught.value)
    assert "i=1" in str(caught.value)
    assert "x[1]" in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cubes_are_products_as_in_torch(dtype: torch.dtype) -> None:
    @bw.op
    def cubes(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] ** 3
        return out

    x = torch.linspace(-3.0, 7.0, 1001, dtype=dtype)
    assert torch.equal(cubes(x), x * x * x)
    assert torch.equal(cubes.python(x), x * x * x)
    assert torch.equal(x**3, x * x * x)
