"""Contractions in packed panels compute what the source computes, bit for bit where sums are exact."""

import math
from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import FLAT_ACCESS, For, Kernel, Launch, Load, Local, Symbol, Tensor, TensorType
from brickwork.ir.verify import verify_kernel
from brickwork.ir.walk import substitute, walk
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule import panel_loops, panels
from brickwork.transform.schedule.panels import extreme
from brickwork.transform.schedule.text import Names, UnreadableError
from support.lowering import memory, nested, program_of
from support.scheduling import AVX2, agree, scheduled


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Pack whatever is a contraction, in tiles of 6 x 16 and blocks of 4 terms."""
    monkeypatch.setattr(panels, "LEAST", 0)
    monkeypatch.setattr(panels, "STAGED_BYTES", 16)
    monkeypatch.setattr(panels, "STRIPS", 1)
    monkeypatch.setattr(panels, "WIDTH_BYTES", 64)


def grid(n, m, seed=0, dtype=FLOAT32):
    values = [float((7 * i + 5 * j + 3 * seed + i * j) % 9 - 4) for i in range(n) for j in range(m)]
    return Memory(values, (n, m), (m, 1), dtype)


def is_packed(function, *arguments):
    """Whether a version of the kernel packs panels."""
    (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    packed = any(item.name == "panels" for item in scheduled.versions)
    assert packed == any(isinstance(node, Local) and node.tensor.name == "sums" for node in walk(scheduled.kernel))
    return packed


def check(function, *arguments):
    """Run a function as written and in panels, with races watched for; return the third tensor."""
    assert is_packed(function, *arguments)
    program, results = program_of(function, *arguments), []
    for way in (program, scheduled(program)):
        given = [replace(item, data=[*item.data]) if isinstance(item, Memory) else item for item in arguments]
        run_program(way, given, check=way is not program)
        results.append(nested(given[2]))
    assert results[0] == results[1]
    return results[1]


def clamped_columns(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    for i in range(n):
        for k in range(p):
            for j in range(y.shape[1]):
                y[i, j] += a[i, k] * b[k, max(j - 1, 0)]


def test_interiors_of_packed_factors_are_copies_of_one_store():
    arguments = (grid(5, 4), grid(4, 20), grid(5, 20))
    check(clamped_columns, *arguments)
    for node in walk(scheduled(program_of(clamped_columns, *arguments))):
        if isinstance(node, Kernel):
            verify_kernel(node)


# ---------------------------------------------------------------- orders and sizes


def local_sum(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def ikj(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for i in range(n):
        for k in range(p):
            for j in range(m):
                y[i, j] += a[i, k] * b[k, j]


def kji(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for k in range(p):
        for j in range(m):
            for i in range(n):
                y[i, j] += a[i, k] * b[k, j]


def jik(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for j in range(m):
        for i in range(n):
            for k in range(p):
                y[i, j] += a[i, k] * b[k, j]


SIZES = [
    *((n, 17, 5) for n in (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 13)),
    *((7, m, 5) for m in (0, 1, 15, 16, 31, 32, 33, 37)),
    *((7, 17, p) for p in (0, 1, 3, 4, 8, 9, 11)),
]


@pytest.mark.parametrize(("n", "m", "p"), SIZES)
def test_every_size_is_computed(n, m, p):
    check(local_sum, grid(n, p), grid(p, m, 1), grid(n, m, 2))


@pytest.mark.parametrize("function", [ikj, kji, jik])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_every_order_of_loops_is_packed(function, dtype):
    for n, m, p in [(7, 17, 9), (0, 4, 4), (4, 4, 0), (13, 33, 4)]:
        check(function, grid(n, p, 0, dtype), grid(p, m, 1, dtype), grid(n, m, 2, dtype))


def test_sums_round_in_the_order_of_the_source():
    a, b = ([[0.1 * (i * 3 + k) + 1e4 * (k % 3) for k in range(11)] for i in range(7)] for _ in range(2))
    check(local_sum, memory(a, FLOAT64), memory([*zip(*b, strict=True)], FLOAT64), grid(7, 7, 2, FLOAT64))


# ---------------------------------------------------------------- what is multiplied, before and after


def transposed(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[0]
    assert b.shape[1] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p):
                s += a[i, k] * b[j, k]
            y[i, j] = s


def rows_in_memory(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    p, n = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    for i in range(n):
        for j in range(m):
            s = 1.0
            for k in range(p):
                s += a[k, i] * b[k, j]
            y[i, j] = s


def around(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert b.shape[0] == p
    assert y.shape[0] == n
    assert y.shape[1] == m
    assert bias.shape[0] == m
    assert bias.shape[1] == n
    for i in range(n):
        for j in range(m):
            s = bias[j, i]
            t = bias[j, i] + 1.0
            for k in range(p):
                s += 2.0 * a[i, k] * (b[k, j] + 1.0)
            if s > 0.0:
                y[i, j] = s * t
            else:
                y[i, j] = -t


def gathered(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, place: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert y.shape[0] == n
    assert y.shape[1] == m
    assert place.shape[1] == p
    assert place.shape[0] == 1
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p):
                s += a[i, k] * b[place[0, k], j]
            y[i, j] = s


@pytest.mark.parametrize(("n", "m", "p"), [(7, 17, 9), (6, 16, 4), (1, 33, 5), (13, 1, 3)])
def test_layouts_of_the_factors(n, m, p):
    check(transposed, grid(n, p), grid(m, p, 1), grid(n, m, 2))
    check(rows_in_memory, grid(p, n), grid(p, m, 1), grid(n, m, 2))
    check(around, grid(n, p), grid(p, m, 1), grid(n, m, 2), grid(m, n, 3))


def batched(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    assert p == 9
    assert b.shape[0] == 9
    assert y.shape[0] == 3 * n
    assert y.shape[1] == m
    for i in range(n):
        for j in range(m):
            for g in range(3):
                s = 0.0
                for k in range(3):
                    s += a[i, 3 * k + g] * b[3 * k + g, j]
                y[3 * i + g, j] = s


def test_a_loop_of_both_factors_makes_a_batch():
    check(batched, grid(7, 9), grid(9, 17, 1), grid(21, 17, 2))


def test_accesses_that_are_checked_are_not_packed():
    arguments = grid(7, 9), grid(9, 17, 1), grid(7, 17, 2), memory([[k for k in range(9)]], INT64)
    assert not is_packed(gathered, *arguments)
    agree(gathered, *arguments)


def image(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, h: int, v: int) -> None:
    """Convolve channels (rows of x, an image of h x v each) with w, 3 x 2 each, without borders."""
    c = x.shape[0]
    o = w.shape[0]
    for f in range(o):
        for i in range(h - 2):
            for j in range(v - 1):
                s = 0.0
                for d in range(c):
                    for a in range(3):
                        for b in range(2):
                            s += x[d, (i + a) * v + j + b] * w[f, (d * 3 + a) * 2 + b]
                y[f, i * (v - 1) + j] = s


def padded_image(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, h: int, v: int) -> None:
    c = x.shape[0]
    o = w.shape[0]
    for f in range(o):
        for i in range(h):
            for j in range(v):
                s = 0.0
                for d in range(c):
                    for a in range(3):
                        for b in range(3):
                            if 0 <= i + a - 1 < h and 0 <= j + b - 1 < v:
                                s += x[d, (i + a - 1) * v + j + b - 1] * w[f, (d * 3 + a) * 3 + b]
                y[f, i * v + j] = s


@pytest.mark.parametrize(("h", "v"), [(3, 2), (4, 5), (6, 9)])
def test_several_loops_sum(h, v):
    check(image, grid(2, h * v), grid(7, 12, 1), grid(7, (h - 2) * (v - 1), 2), h, v)
    check(padded_image, grid(2, h * v), grid(7, 18, 1), grid(7, h * v, 2), h, v)


def positive(n, m):
    return memory([[float((5 * i + 3 * j) % 4 + 1) for j in range(m)] for i in range(n)])


def test_no_product_with_what_a_condition_leaves_out():
    x, w = positive(2, 20), positive(7, 18)
    w.data[0] = math.inf
    found = check(padded_image, x, w, positive(7, 20), 4, 5)
    first = [math.isinf(value) for value in found[0]]
    assert any(first)
    assert not all(first)


# ---------------------------------------------------------------- bounds that go with rows or columns


def causal(w: torch.Tensor, k: torch.Tensor, y: torch.Tensor) -> None:
    n, t = k.shape
    assert w.shape[1] == t
    assert y.shape[0] == n
    assert y.shape[1] == t
    for b in range(n):
        for i in range(t):
            s = 0.5
            for u in range(i + 1):
                s += w[0, t - 1 - i + u] * k[b, u]
            y[b, i] = s


def band(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(max(0, i - 2), min(p, i + 4)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def falling(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p - min(j, p)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


@pytest.mark.parametrize("t", [0, 1, 2, 15, 16, 17, 35])
def test_triangles(t, monkeypatch):
    monkeypatch.setattr(panels, "_slides", lambda nest: False)
    check(causal, grid(1, t), grid(7, t, 1), grid(7, t, 2))
    check(band, grid(t, t), grid(t, 17, 1), grid(t, 17, 2))
    check(falling, grid(7, t), grid(t, t + 3, 1), grid(7, t + 3, 2))


def test_a_row_that_a_sum_slides_along_stays_in_lanes():
    assert not is_packed(causal, grid(1, 9), grid(7, 9, 1), grid(7, 9, 2))


def test_no_product_with_what_is_beyond_a_bound():
    a, b = positive(9, 9), positive(9, 17)
    b.data[8 * 17 : 9 * 17] = [math.inf] * 17
    rows = check(band, a, b, positive(9, 17))
    assert [math.isinf(row[0]) for row in rows] == [i + 4 > 8 for i in range(9)]


def late_band(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, p = a.shape
    m = b.shape[1]
    for i in range(n):
        for j in range(m):
            s = y[i, j]
            for k in range(max(0, i - 2), min(p, i - 1)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def test_what_is_beyond_a_bound_leaves_a_zero_its_sign():
    a, b, y = positive(9, 9), positive(9, 17), positive(9, 17)
    y.data[:] = [-0.0] * len(y.data)
    rows = check(late_band, a, b, y)
    assert [repr(row[0]) == "-0.0" for row in rows] == [i < 2 for i in range(9)]


def narrow(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    n, q = a.shape
    p, m = b.shape
    assert y.shape[0] == n
    assert y.shape[1] == m
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k in range(p):
                if k < q - j:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def scaled(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> None:
    n, p = a.shape
    for i in range(n):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(p):
                s += a[i, k] * columns[j] * b[k, j] * rows[i] * 2
            y[i, j] = s


def scaled_by_elements(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor, both: torch.Tensor) -> None:
    n, p = a.shape
    for i in range(n):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(p):
                s += a[i, k] * b[k, j] * both[i, j]
            y[i, j] = s


def test_what_is_the_same_in_a_sum_belongs_to_its_factor():
    n, m, p = 7, 18, 5
    given = grid(n, p), grid(p, m, 1), grid(n, m)
    rows, columns = (memory([float(each % 5 - 2) for each in range(size)], FLOAT32) for size in (n, m))
    check(scaled, *given, rows, columns)
    assert not is_packed(scaled_by_elements, *given, grid(n, m, 3))


def whole_rows(a: torch.Tensor, b: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[2]):
            s = 0.0
            for k in range(a.shape[1]):
                for v in range(a.shape[2]):
                    s += a[i, k, v] * b[k, v, j]
            y[i, j] = s


def test_rows_of_several_axes_are_one_run_in_each():
    a, b = (Memory(grid(*sizes).data, shape, strides, FLOAT32) for sizes, shape, strides in WHOLE_ROWS)
    check(whole_rows, a, b, grid(3, 7))


WHOLE_ROWS = ((3, 8), (3, 4, 2), (8, 2, 1)), ((8, 7), (4, 2, 7), (14, 7, 1))
"""Rows and columns of data, and the sizes and strides of the tensors."""


def test_elements_that_are_not_there_are_not_read():
    check(narrow, grid(7, 5), grid(11, 17, 1), grid(7, 17, 2))


# ---------------------------------------------------------------- conditions one by one


def squares(n):
    return grid(n, n), grid(n, n, 1), grid(n, n, 2)


I, J = (Symbol(name, number, INT64) for number, name in enumerate("ij"))


@pytest.mark.parametrize(
    ("bound", "least"),
    [
        (build.add(build.read(I), build.integer(2)), (0, 0)),
        (build.sub(build.integer(20), build.read(I)), (1, 0)),
        (build.apply("minimum", build.read(I), build.integer(6)), (0, 0)),
        (build.apply("maximum", build.mul(build.read(I), build.integer(3)), build.read(J)), (0, 0)),
        (build.apply("floordiv", build.read(I), build.integer(4)), (0, 0)),
        (build.sub(build.read(J), build.read(I)), (1, 0)),
    ],
)
def test_extremes_of_bounds(bound, least):
    """`least` says at which ends of the ranges of i and j a bound is least."""
    ranges = {I: (build.integer(3), build.integer(9)), J: (build.integer(1), build.integer(4))}
    ends = [
        {each: ranges[each][end] for each, end in zip((I, J), way, strict=True)}
        for way in (least, [1 - end for end in least])
    ]
    assert [extreme(bound, ranges, greatest=way) for way in (False, True)] == [substitute(bound, end) for end in ends]


@pytest.mark.parametrize(
    "bound",
    [
        build.apply("minimum", build.read(I), build.sub(build.integer(9), build.read(I))),
        build.mul(build.read(I), build.read(I)),
        build.mul(build.read(I), build.integer(-2)),
        build.apply("floordiv", build.read(I), build.integer(-2)),
        build.apply("mod", build.read(I), build.integer(4)),
        build.apply("sub", build.read(I), build.mul(build.read(I), build.integer(2))),
    ],
)
def test_bounds_whose_extremes_are_not_at_ends(bound):
    assert extreme(bound, {I: (build.integer(3), build.integer(9))}, greatest=True) is None


def test_a_schedule_with_panels_can_be_written_and_read():
    (launch,) = [node for node in walk(program_of(local_sum, *squares(4))) if isinstance(node, Launch)]
    scheduled = schedule_kernel(launch.kernel, AVX2)
    names, schedule = Names(scheduled.source), scheduled.versions[0].schedule
    assert names.read(names.text(schedule)) == schedule
    assert "contract(i, j, k, 6 x 16 x 4 x 6 x 16)" in names.text(schedule)
    with pytest.raises(UnreadableError):
        names.read("contract(i, j, k, 6 x 16 x 4 x 6)")


def test_small_products_are_not_packed(monkeypatch):
    monkeypatch.setattr(panels, "LEAST", 64)
    (launch,) = [node for node in walk(program_of(local_sum, *squares(4))) if isinstance(node, Launch)]
    version = next(item for item in schedule_kernel(launch.kernel, AVX2).versions if item.name == "panels")
    assert len(version.conditions) == 3


# ---------------------------------------------------------------- loops that run along memory as one


BLOCK = TensorType(FLOAT32, 3, contiguous=True, unit_axis=2)
WHOLE = Tensor("x", 1, BLOCK)
PLACE = Symbol("place", 7, INT64)


def in_a_row(tensor=WHOLE, start=0, stop=None, order=(I, J)):
    """Return the element x[2, i, j] as it is read by the number of an iteration of i and j."""
    node = Load(tensor=tensor, indices=(build.integer(2), *map(build.read, order)), access=0, dtype=FLOAT32)
    first = For(index=I, start=build.integer(start), stop=build.integer(3), body=())
    last = For(index=J, start=build.integer(0), stop=stop or build.size(tensor, 2), body=())
    found = panel_loops._in_a_row(node, ((first, last), build.read(PLACE)))
    return None if found == node else found


def test_loops_over_whole_axes_are_one_run():
    found = in_a_row()
    assert (found.indices, found.access) == ((build.integer(2), build.integer(0), build.read(PLACE)), FLAT_ACCESS)


def test_other_loops_are_no_run():
    assert in_a_row(tensor=Tensor("x", 1, replace(BLOCK, contiguous=False))) is None
    assert in_a_row(start=1) is None
    assert in_a_row(stop=build.integer(4)) is None
    assert in_a_row(order=(J, I)) is None
    sizes = build.size(WHOLE, 1), build.size(WHOLE, 2)
    for stops, is_one in ((sizes, True), ((sizes[0], build.integer(4)), False), ((build.integer(2), sizes[1]), False)):
        assert (in_all_axes(*stops) is not None) == is_one


def in_all_axes(*stops):
    """Return the element x[k, i, j] as it is read by the number of an iteration of k, i and j."""
    indices = (Symbol("k", 8, INT64), I, J)
    node = Load(tensor=WHOLE, indices=tuple(map(build.read, indices)), access=0, dtype=FLOAT32)
    ends = zip(indices, (build.integer(3), *stops), strict=True)
    loops = [For(index=index, start=build.integer(0), stop=stop, body=()) for index, stop in ends]
    found = panel_loops._in_a_row(node, (loops, build.read(PLACE)))
    return None if found == node else found
