"""Whatever the order of a nest in the source, the loop along memory runs in lanes and the accumulating one inside."""

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Launch
from brickwork.ir.walk import walk
from brickwork.target.target import Target
from brickwork.transform.pipeline import schedule_kernel
from support.lowering import memory, program_of
from support.scheduling import AVX2, AVX512, agree


def rows_columns(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def rows_sums(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def columns_rows(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for j in range(c.shape[1]):
        for i in range(c.shape[0]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def columns_sums(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for j in range(c.shape[1]):
        for k in range(a.shape[1]):
            for i in range(c.shape[0]):
                c[i, j] += a[i, k] * b[k, j]


def sums_rows(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for k in range(a.shape[1]):
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def sums_columns(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for k in range(a.shape[1]):
        for j in range(c.shape[1]):
            for i in range(c.shape[0]):
                c[i, j] += a[i, k] * b[k, j]


ORDERS = [rows_columns, rows_sums, columns_rows, columns_sums, sums_rows, sums_columns]


def counting(rows: int, columns: int) -> Memory:
    return memory([[float((3 * i + 5 * j) % 7 - 3) for j in range(columns)] for i in range(rows)])


def arguments(rows: int, columns: int, depth: int) -> tuple[Memory, Memory, Memory]:
    return counting(rows, columns), counting(rows, depth), counting(depth, columns)


def schedule_of(function: Callable[..., None], *arguments: Memory | float, target: Target = AVX2) -> list[str]:
    (launch,) = [node for node in walk(program_of(function, *arguments)) if isinstance(node, Launch)]
    return str(schedule_kernel(launch.kernel, target).schedule).splitlines()


@pytest.mark.parametrize("product", ORDERS)
def test_a_product_is_jammed_over_rows_and_has_lanes_along_columns(product: Callable[..., None]) -> None:
    verbs = [line for line in schedule_of(product, *arguments(5, 9, 3)) if not line.startswith("reorder")]
    assert verbs == [
        "split(j, 256)",
        "bind(i, pool)",
        "bind(j_chunk, pool)",
        "bind(j, lane, 16)",
        "unroll(i, 4, jam, 2)",
    ]


@pytest.mark.parametrize("product", ORDERS)
def test_a_product_agrees(product: Callable[..., None]) -> None:
    for sizes in ((5, 9, 3), (4, 260, 2), (1, 1, 1)):
        agree(product, *arguments(*sizes))


def skewed(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(y.shape[1]):
        for j in range(i, y.shape[0]):
            y[j, i] = x[j, i] * 2


def test_a_loop_stays_outside_of_one_whose_bounds_it_sets() -> None:
    given = counting(7, 6), counting(7, 6)
    assert not any(line.startswith("permute") for line in schedule_of(skewed, *given))
    agree(skewed, *given)


def triangular_dots(y: torch.Tensor, a: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(y.shape[0]):
        s = 0.0
        for k in range(i):
            s += a[i, k] * x[k]
        y[i] = s


def ragged_sums(y: torch.Tensor, start: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(y.shape[0]):
        s = 0.0
        for k in range(start[i], start[i + 1]):
            s += x[k]
        y[i] = s


def test_an_accumulating_loop_of_any_length_has_lanes_of_its_own_along_memory() -> None:
    given = counting(9, 1), counting(9, 9), counting(9, 1)
    y, a, x = given[0].data, given[1], given[2].data
    vectors = memory(y), a, memory(x)
    assert schedule_of(triangular_dots, *vectors) == ["bind(i, pool)", "rfactor(k, lane, 32)"]
    agree(triangular_dots, *vectors)


def test_lanes_that_would_begin_at_places_of_their_own_are_given_to_the_inner_loop() -> None:
    vectors = memory([0.0] * 3), memory([0, 2, 2, 7], INT64), memory([float(k) for k in range(7)])
    assert schedule_of(ragged_sums, *vectors) == ["bind(i, pool)", "rfactor(k, lane, 8)"]
    agree(ragged_sums, *vectors)


def scaled_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        factor = a[i, 0]
        for j in range(c.shape[1]):
            c[i, j] *= factor
        for k in range(a.shape[1]):
            for j in range(c.shape[1]):
                c[i, j] += factor * a[i, k] * b[k, j]


def test_rows_run_in_jam_around_several_loops() -> None:
    given = arguments(6, 9, 3)
    assert schedule_of(scaled_product, *given) == [
        "bind(i, pool)",
        "bind(j, lane, 8)",
        "bind(j, lane, 16)",
        "unroll(i, 4, jam, 2)",
    ]
    agree(scaled_product, *given)


def triangular_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i, c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def steep_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(8 * i, c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def test_rows_run_in_jam_where_their_lengths_hardly_differ() -> None:
    given = arguments(6, 9, 3)
    assert schedule_of(triangular_product, *given) == ["bind(i, pool)", "bind(j, lane, 16)", "unroll(i, 4, jam)"]
    agree(triangular_product, *given)
    assert schedule_of(steep_product, *given) == ["bind(i, pool)", "bind(j, lane, 32)"]
    agree(steep_product, *given)


def row_products(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[j, k]
            c[i, j] = s


def row_products_below(c: torch.Tensor, a: torch.Tensor) -> None:
    for i in range(c.shape[0]):
        for j in range(i + 1):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * a[j, k]


def test_rows_that_lanes_run_along_are_shared_as_far_as_registers_go() -> None:
    c, a, b = counting(7, 7), counting(7, 40), counting(7, 40)
    square, below = (
        ["bind(i, pool)", "bind(j, pool)", "rfactor(k, lane, 32)"],
        ["bind(i, pool)", "rfactor(k, lane, 32)"],
    )
    assert schedule_of(row_products, c, a, b) == [*square, "unroll(i, 2, jam)"]
    assert schedule_of(row_products, c, a, b, target=AVX512) == [*square, "unroll(i, 4, jam, 2)"]
    assert schedule_of(row_products_below, c, a, target=AVX512) == [*below, "unroll(i, 4, jam)"]
    for target in (AVX2, AVX512):
        agree(row_products, c, a, b, target=target)
        agree(row_products_below, c, a, target=target)


def first_above(out: torch.Tensor, x: torch.Tensor, limit: float) -> None:
    for i in range(out.shape[0]):
        j = 0
        while j < x.shape[1] and x[i, j] <= limit:
            j += 1
        out[i] = j


def test_iterations_that_search_memory_do_not_share_lanes() -> None:
    given = memory([0.0] * 5), counting(5, 6), 1.0
    assert schedule_of(first_above, *given) == ["bind(i, pool)"]
    agree(first_above, *given)


def close_pairs(out: torch.Tensor, x: torch.Tensor) -> None:
    count = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            distance = 0.0
            for d in range(3):
                distance += (x[i, d] - x[j, d]) * (x[i, d] - x[j, d])
            if distance < 20.0:
                count += 1.0
    out[0] = count


def test_a_sum_over_pairs_has_lanes_around_a_short_loop() -> None:
    given = memory([0.0]), counting(9, 3)
    assert schedule_of(close_pairs, *given) == ["rfactor(i, pool, 256)", "rfactor(j, lane, 32)"]
    agree(close_pairs, *given)


def total_of_rows(out: torch.Tensor, x: torch.Tensor, skip: torch.Tensor) -> None:
    total = 0.0
    for i in range(x.shape[0]):
        if skip[i]:
            continue
        top, row = x[i, 0], 0.0
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        for j in range(x.shape[1]):
            row += top - x[i, j]
        total += row
    out[0] = total


def test_rows_of_a_total_have_lanes_of_their_own() -> None:
    given = memory([0.0]), counting(5, 40), memory([k % 3 == 1 for k in range(5)], BOOL)
    assert schedule_of(total_of_rows, *given) == [
        "rfactor(i, pool, 256)",
        "rfactor(j, lane, 32)",
        "rfactor(j, lane, 32)",
    ]
    agree(total_of_rows, *given)


def weighted_rows(out: torch.Tensor, x: torch.Tensor, index: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        for k in range(index.shape[1]):
            weight = 1.0 / (k + 1)
            for d in range(out.shape[1]):
                out[i, d] += weight * x[index[i, k], d]


def test_updates_of_a_loop_that_runs_in_order_are_plain() -> None:
    index = Memory([k % 3 for k in range(8)], (4, 2), (2, 1), INT64)
    given = counting(4, 9), counting(3, 9), index
    assert not [item for item in schedule_of(weighted_rows, *given) if item.startswith("update")]
    agree(weighted_rows, *given)


def marked_apart(x: torch.Tensor) -> None:
    p = 2
    while p * p < len(x):
        for i in range(p * p, len(x), p):
            x[i] = 0.0
        p += 1


def marked_evenly(x: torch.Tensor) -> None:
    for i in range(0, len(x), 2):
        x[i] = 0.0


def diagonal_read(a: torch.Tensor, x: torch.Tensor) -> None:
    for i in range(min(len(x), a.shape[0], a.shape[1])):
        x[i] = a[i, i]


def diagonal_cleared(a: torch.Tensor) -> None:
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = 0.0


def test_elements_that_lie_apart_are_marked_without_lanes_in_long_pieces() -> None:
    x = memory([1.0, 2.0, 3.0])
    assert schedule_of(marked_apart, x) == ["split(i, 524288)", "bind(i_chunk, pool)"]
    assert schedule_of(diagonal_cleared, counting(3, 3)) == ["split(i, 524288)", "bind(i_chunk, pool)"]
    assert schedule_of(marked_evenly, x) == ["split(i, 4096)", "bind(i_chunk, pool)"]
    assert schedule_of(diagonal_read, counting(3, 3), x) == ["split(i, 4096)", "bind(i_chunk, pool)"]
