"""Which nests a grid runs in tiles of contractions, and which conditions forbid it.

Tiles take the terms of a sum in another order, skip what stands around the sum in its loops, and run what follows it
once more where a sum is not finite.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.nodes import For, Kernel, TensorType
from brickwork.ir.signature import ScalarType, Signature
from brickwork.transform.schedule.contract import ContractionPlanner, Nest, contraction_versions
from brickwork.transform.schedule.defaults import flat_conditions
from brickwork.transform.schedule.lengths import lengths_in
from brickwork.transform.schedule.schedule import Unroll
from support.lowering import memory
from support.scheduling import GPU, kernel_of
from support.shared import define, lower, schedule_program

Tensor = torch.Tensor
N = 4
NEVER = build.constant(0, BOOL)


def plain(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def batches(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(2):
        for n in range(2):
            for j in range(2):
                for m in range(2):
                    s = 0.0
                    for k in range(N):
                        for q in range(2):
                            s += a[i * 2 + n, k] * a[i, q] * b[k, j * 2 + m]
                    y[i * 2 + n, j * 2 + m] = s


def three_factors(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(2):
        for j in range(2):
            for m in range(N):
                s = 0.0
                for k in range(N):
                    s += a[i, k] * b[k, j] * a[k, m]
                y[i * 2 + j, m] = s


# ---------------------------------------------------------------- what must happen as written


def a_check_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            assert s > 0.0
            y[i, j] = s


def a_draw_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s * bw.rand()


def a_while_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            t = 1.0
            while t < 9.0:
                t = t * 2.0 + 1.0
            y[i, j] = s + t


def a_break_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            t = 0.0
            for m in range(N):
                if a[i, m] > 2.0:
                    break
                t += a[i, m]
            y[i, j] = s + t


def a_continue_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            t = 0.0
            for m in range(N):
                t += a[i, m]
                if a[i, m] > 2.0:
                    continue
                t += 1.0
            y[i, j] = s + t


def a_list_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            t = [s, 1.0]
            t[j % 2] = 2.0
            y[i, j] = t[0] + t[1]


def tensors_change_places(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s
            a, b = b, a


def an_update_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[0, int(a[i, j])] += s


def an_update_in_range_follows(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[0, (i * j) % N] += s


def an_access_may_fail(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j]
            y[i, j] = s + b[0, int(a[i, j])]


ORDERED = [
    an_update_in_range_follows,
    an_access_may_fail,
    a_check_follows,
    a_draw_follows,
    a_while_follows,
    a_break_follows,
    a_continue_follows,
    a_list_follows,
    tensors_change_places,
    an_update_follows,
]


# ---------------------------------------------------------------- sums that are none, or go with one loop


def a_term_is_read_after(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            t = 0.0
            for k in range(N):
                t = a[i, k]
                s += t * b[k, j]
            y[i, j] = s + t


def a_term_of_an_inner_loop_is_read_after(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            t = 0.0
            for k in range(N):
                for m in range(2):
                    t = a[i, k] + a[i, m]
                    s += t * b[k, j]
            y[i, j] = s + t


def all_go_with_one_loop(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, i]
            y[i, j] = s


def factors_share_all_loops(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, (k + j) % N] * b[(k + i) % N, j]
            y[i, j] = s


def a_factor_is_computed_of_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                s += a[i, k] * b[k, j] * a[k, i] * b[(i + j) % N, k]
            y[i, j] = s


def a_mask_goes_with_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                if i + j < k + 2:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


def a_term_goes_on_from_the_last_one(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            t = 0.0
            for k in range(N):
                for _ in range(1):
                    t = t * 0.5 + a[i, k]
                    s += t * b[k, j]
            y[i, j] = s


def a_term_goes_on_in_the_outer_loop(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            t = 0.0
            for k in range(N):
                t = t * 0.5 + a[i, k]
                for m in range(2):
                    s += t * b[(k + m) % N, j]
            y[i, j] = s


def one_side_is_in_both(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(N):
                for m in range(N):
                    s += a[i, (k + m) % N] * b[k, (i + j) % N]
            y[i, j] = s


def a_bound_is_a_variable(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            p = (i * 3) % N
            s = 0.0
            for k in range(min(p, N)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_factor_is_computed_from_an_element_read_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = a[i, 0]
            s = 0.0
            for k in range(N):
                s += (a[i, k] - t) * b[k, j]
            y[i, j] = s


def a_mask_is_computed_from_an_element_read_before(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            t = a[i, 0]
            s = 0.0
            for k in range(N):
                if a[i, k] > t:
                    s += a[i, k] * b[k, j]
            y[i, j] = s


OTHERS = [
    a_factor_is_computed_from_an_element_read_before,
    a_mask_is_computed_from_an_element_read_before,
    a_term_goes_on_in_the_outer_loop,
    one_side_is_in_both,
    a_bound_is_a_variable,
    a_mask_goes_with_both,
    a_term_goes_on_from_the_last_one,
    a_term_is_read_after,
    a_term_of_an_inner_loop_is_read_after,
    all_go_with_one_loop,
    factors_share_all_loops,
    a_factor_is_computed_of_both,
]


def _planned(function: Callable[..., None]) -> tuple[Kernel, ContractionPlanner, For]:
    square = [memory([[0.5 * i + j for j in range(N)] for i in range(N)]) for _ in range(3)]
    kernel = kernel_of(function, *square)
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    (loop,) = [item for item in kernel.body if isinstance(item, For)]
    return kernel, ContractionPlanner(analysis, GPU, lengths_in(kernel.body)), loop


def _nest(function: Callable[..., None]) -> Nest | None:
    _, planner, loop = _planned(function)
    return planner.contracted(loop)


def test_rows_columns_and_depth() -> None:
    nest = _nest(plain)
    assert nest is not None
    assert [[symbol.name for symbol in part] for part in (nest.rows, nest.columns)] == [["i"], ["j"]]
    nest = _nest(batches)
    assert nest is not None
    assert [[symbol.name for symbol in part] for part in (nest.rows, nest.columns)] == [["i", "n"], ["j", "m"]]
    nest = _nest(three_factors)
    assert nest is not None
    assert [[symbol.name for symbol in part] for part in (nest.rows, nest.columns)] == [["i", "j"], ["m"]]


@pytest.mark.parametrize("function", [plain, *ORDERED], ids=lambda item: item.__name__)
def test_what_must_happen_as_written(function: Callable[..., None]) -> None:
    _, planner, loop = _planned(function)
    (columns,) = loop.body
    assert isinstance(columns, For)
    assert planner.keeps_order((loop, columns)) is (function is not plain)


@pytest.mark.parametrize("function", [*ORDERED, *OTHERS], ids=lambda item: item.__name__)
def test_other_nests_have_no_tiles(function: Callable[..., None]) -> None:
    kernel, planner, loop = _planned(function)
    assert planner.contracted(loop) is None
    assert not [*contraction_versions(kernel.body, planner.analysis, GPU)]


def two_nests(a: Tensor, b: Tensor, y: Tensor, z: Tensor) -> None:
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            t = 0.0
            for k in range(a.shape[1]):
                t += a[i, k] - b[k, j]
            z[i, j] = t


def test_nests_beside_a_contraction_have_register_tiles_where_these_may_be() -> None:
    kernel = kernel_of(two_nests, *[memory([[0.5] * N for _ in range(N)])] * 4)
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    found = [*contraction_versions(kernel.body, analysis, GPU)]
    tiled = [any(isinstance(verb, Unroll) and verb.factor >= 16 for verb in schedule.verbs) for _, schedule, _ in found]
    assert tiled == [False, True] * (len(found) // 2)
    for (_, _, few), (_, _, more) in zip(found[::2], found[1::2], strict=True):
        assert {*few} < {*more}


def without_the_last(a: Tensor, b: Tensor, z: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    y = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    for i in range(z.shape[0]):
        for j in range(z.shape[1] - 1):
            z[i, j] = z[i, j] * 2.0
    return y


def without_some(a: Tensor, b: Tensor, z: Tensor, n: int) -> Tensor:
    assert a.shape[1] == b.shape[0]
    assert z.shape[1] >= n
    y = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    for i in range(z.shape[0]):
        for j in range(n):
            z[i, j] = z[i, j] * 2.0
    return y


@pytest.mark.parametrize(("function", "more"), [(without_the_last, ()), (without_some, (ScalarType(INT64),))])
def test_nests_beside_a_contraction_run_as_one_loop_where_they_may(
    function: Callable[..., None], more: tuple[ScalarType, ...]
) -> None:
    """What must hold for a nest that is one loop is asked for that nest alone."""
    argument = TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)
    signature = Signature((argument, argument, argument, *more), device="cuda", narrow=True, aligned=True)
    _, (found,) = schedule_program(lower(define(function), signature), GPU)
    tiles, beside = ([version for version in found.versions if version.part == part] for part in (0, 1))
    assert any(version.name.startswith("contraction") for version in tiles)
    ways = [(flat_conditions(found.source.body[1:], found.analysis, each.schedule), each) for each in beside]
    assert any(bool(conditions) is bool(more) for conditions, _ in ways)
    assert all({*conditions} <= {*each.conditions} for conditions, each in ways if conditions != (NEVER,))
    assert not {*ways[0][0]} & {item for version in tiles for item in version.conditions}


def a_triangle(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i, N):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def a_short_band(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(N):
        for j in range(N):
            s = 0.0
            for k in range(i, min(i + 2, N)):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def of_two_lengths(a: Tensor, b: Tensor, y: Tensor) -> None:
    for r in range(2):
        for i in range(2):
            for j in range(N):
                s = 0.0
                for k in range(r, N):
                    s += a[i * 2 + r, k] * b[k, j]
                y[i * 2 + r, j] = s


def of_one_length(a: Tensor, b: Tensor, y: Tensor) -> None:
    for r in range(2):
        for i in range(2):
            for j in range(N):
                s = 0.0
                for k in range(N):
                    s += a[i * 2 + r, k] * b[k, j]
                y[i * 2 + r, j] = s


def test_short_outermost_loops_with_sums_of_other_lengths_are_no_rows() -> None:
    several, one = _nest(of_two_lengths), _nest(of_one_length)
    assert several is not None
    assert one is not None
    assert [symbol.name for symbol in several.rows] == ["i"]
    assert [symbol.name for symbol in one.rows] == ["r", "i"]


def test_bounds_may_go_with_rows_that_begin_at_0() -> None:
    nest = _nest(a_triangle)
    assert nest is not None
    assert nest.leans
    assert build.is_constant(nest.terms, N)


def test_the_most_terms_of_a_sum() -> None:
    nest = _nest(a_short_band)
    assert nest is not None
    assert build.is_constant(nest.terms, 2)


def test_another_place_may_fail() -> None:
    _, planner, loop = _planned(plain)
    assert not planner.may_fail(loop)
    _, planner, loop = _planned(an_access_may_fail)
    assert planner.may_fail(loop)
