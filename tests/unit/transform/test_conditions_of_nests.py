"""What splits, copies, exchanges, jams and joins nests refuses each program that it would change, and takes its like.

The loops have the roles that a schedule would have to give them, whatever it does give them.
"""

from dataclasses import replace
from itertools import count

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import with_updates
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Assign, For, If, Launch, Load, Role, Store, Symbol
from brickwork.ir.walk import rewrite, rewrite_statements, statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.interchange import interchange
from brickwork.transform.replicate_reductions import replicate_reductions
from brickwork.transform.schedule.planner import Planner
from brickwork.transform.schedule.schedule import Bind, Level, Schedule, Unroll
from brickwork.transform.scratch import names_of
from brickwork.transform.split_reductions import split_reductions
from brickwork.transform.verbs.apply import apply_schedule
from brickwork.transform.verbs.unroll_jam import may_jam, unroll_jam
from support.lowering import memory, nested, program_of
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
A = memory([[float((3 * k + 5 * j) % 7 - 3) for j in range(6)] for k in range(5)])
C = memory([0.5, 0.25, -1.0, 2.0, 4.0, 8.0])
I6 = memory([3, 1, 4, 1, 5, 2], INT64)
NOTHING = Partition(frozenset())


# ---------------------------------------------------------------- pieces of sums


def plain(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = c[j]
        for i in range(a.shape[0]):
            s += a[i, j]
        c[j] = s


def draws(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = bw.rand()
        for i in range(a.shape[0]):
            s += a[i, j] * bw.rand()
        c[j] = s


def a_store_stands_inside(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        t = a[0, j]
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i, j]
            a[i, j] = 0.0
        c[j] = s + t


def a_store_stands_before(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        c[j] = c[j] + 1.0
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i, j]
        c[j] = s + c[j]


def a_division_may_fail(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = 0
        for i in range(a.shape[0]):
            s += 7 // n[i]
        c[j] = s


def a_bound_is_of_the_iteration(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = 0.0
        for i in range(j):
            s += a[i, 0]
        c[j] = s


def a_start_is_computed(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        k = j * 2
        s = 0.0
        for i in range(k, a.shape[0]):
            s += a[i, 0]
        c[j] = s


def two_sums(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i, j]
        for k in range(a.shape[0]):
            s *= a[k, 0]
        c[j] = s


def what_all_read_is_written(a: Tensor, c: Tensor, n: Tensor) -> None:
    for j in range(a.shape[1]):
        s = 0.0
        for i in range(a.shape[0]):
            s += a[i, j]
        t = c[j]
        if t > 0.0:
            c[j] = s


def sum_of(function, places=NOTHING, role=Role.PARALLEL):
    """What a nest over j is split into, in which loops accumulate that can."""
    kernel = kernel_of(function, A, C, I6)
    loops = analyse(kernel).loops
    outer = loops_of(kernel)["j"]
    accumulating = (
        replace(item, reductions=loops[item.index].reductions) if isinstance(item, For) else item for item in outer.body
    )
    nest = replace(outer, body=tuple(accumulating), role=role)
    return split_reductions([nest], places, names_of((kernel,), 1000))


def test_sums_of_fixed_length_are_split():
    assert sum_of(plain) is not None
    assert sum_of(draws) is not None
    assert sum_of(a_division_may_fail) is not None


@pytest.mark.parametrize(
    "function",
    [
        a_store_stands_inside,
        a_store_stands_before,
        a_bound_is_of_the_iteration,
        a_start_is_computed,
        two_sums,
        what_all_read_is_written,
    ],
)
def test_other_sums_stay_whole(function):
    assert sum_of(function) is None


def as_long_as_says(c: Tensor, n: int) -> None:
    for j in range(c.shape[0]):
        s = 0.0
        for i in range(n):
            s += c[j] * i
        c[j] = s


def test_a_sum_whose_length_the_device_knows_stays_whole():
    kernel = kernel_of(as_long_as_says, C, 9)
    outer, inner = loops_of(kernel).values()
    nest = replace(outer, body=tuple(_accumulating(item, kernel) for item in outer.body), role=Role.PARALLEL)
    assert split_reductions([nest], NOTHING, names_of((kernel,), 1000)) is not None
    known = frozenset(node.symbol for node in walk((inner.stop,)) if hasattr(node, "symbol"))
    assert split_reductions([nest], Partition(known), names_of((kernel,), 1000)) is None


def _accumulating(item, kernel):
    return replace(item, reductions=analyse(kernel).loops[item.index].reductions) if isinstance(item, For) else item


# ---------------------------------------------------------------- copies of counts


def counts(x: Tensor, h: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += 1


def counts_and_copies(x: Tensor, h: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i]] += 1
        y[i] = x[i]


def counts_in_rows(x: Tensor, h: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        h[x[i], 0] += 1


def copies_of(loop):
    return replicate_reductions([replace(loop, role=Role.PARALLEL)], names_of((loop,), 1000), cuda_target((9, 0)))


def stored_by(loop):
    """Return the tensors, and their dimensions, that are stored into where copies begin, in the loop, and after it."""
    copies = copies_of(loop)
    nests = (copies.cleared, copies.updated, copies.joined)
    found = ([node.tensor for node in statements(nest) if isinstance(node, Store)] for nest in nests)
    return tuple([(tensor.name, tensor.type.rank) for tensor in tensors] for tensors in found)


def test_counts_have_copies_where_nothing_reads_them():
    (plain,) = loops_of(kernel_of(counts, I6, I6, I6)).values()
    store = next(node for node in statements(plain) if isinstance(node, Store))
    loop = with_updates(plain, {store.tensor})
    assert copies_of(loop) is not None
    assert copies_of(plain) is None
    element = Load(tensor=store.tensor, indices=(build.integer(0),), access=99, dtype=INT64)
    read = Assign(symbol=Symbol("t", 999, INT64), value=element)
    assert copies_of(replace(loop, body=(*loop.body, read))) is None
    rows = loops_of(kernel_of(counts_in_rows, I6, memory([[1]], INT64), I6))["i"]
    assert stored_by(with_updates(rows, {node.tensor for node in statements(rows) if isinstance(node, Store)})) == (
        [("h_copies", 3)],
        [("h_copies", 3)],
        [("h", 2)],
    )
    other = loops_of(kernel_of(counts_and_copies, I6, I6, I6))["i"]
    assert stored_by(with_updates(other, {store.tensor})) == (
        [("h_copies", 2)],
        [("h_copies", 2), ("y", 1)],
        [("h", 1)],
    )


# ---------------------------------------------------------------- orders


def updates_rows(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j]


def rows_are_claimed(c: Tensor, a: Tensor) -> None:
    for k in bw.prange(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j]


def columns_are_claimed(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in bw.prange(a.shape[1]):
            c[j] += a[k, j]


def has_a_list(c: Tensor, a: Tensor) -> None:
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            w = [a[k, j], 2.0, 3.0]
            w[j % 3] += 1.0
            c[j] += w[k % 3]


def notes_some_of_them(c: Tensor, a: Tensor) -> None:
    last = 0.0
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[k, j] > 1.0:
                last = a[k, j] + j
            c[j] += a[k, j]
    c[0] += last


def updates_what_was_set(c: Tensor, a: Tensor) -> None:
    for i in range(1, c.shape[0]):
        c[i] = c[i - 1]
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[j] += a[k, j]


def exchanged(function):
    kernel = kernel_of(function, C, A)
    return bool(interchange(kernel, analyse(kernel), grid=True)[1])


def test_orders_are_chosen_where_nothing_but_elements_passes_and_nothing_is_claimed():
    assert exchanged(updates_rows)
    assert exchanged(has_a_list)
    assert exchanged(updates_what_was_set)
    assert not exchanged(rows_are_claimed)
    assert not exchanged(columns_are_claimed)


def updates_columns_inside(c: Tensor, a: Tensor) -> None:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            for j in range(a.shape[0]):
                a[i, j] += c[k]


def is_in_order(c: Tensor, a: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = c[j]


def test_a_nest_is_put_in_order_once_and_stays_if_it_has_the_best():
    kernel = kernel_of(updates_columns_inside, C, A)
    (verb,) = interchange(kernel, analyse(kernel), grid=True)[1]
    assert [index.name for index in verb.order] == ["i", "j", "k"]
    kernel = kernel_of(is_in_order, C, A)
    found, orders = interchange(kernel, analyse(kernel), grid=True)
    assert found is kernel
    assert orders == ()


def test_an_order_shows_in_what_is_noted():
    assert not exchanged(notes_some_of_them)


# ---------------------------------------------------------------- iterations that run together


def has_lists(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        w = [a[i, 0], 2.0]
        w[i % 2] += a[i, 1]
        c[i] = w[0] - w[1]


def ends_iterations(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        if a[i, 0] > 0.0:
            continue
        c[i] = a[i, 1]


def ends(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        if a[i, 0] > 0.0:
            break
        c[i] = a[i, 1]


def may_fail(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        c[i] = 5.0
        n[i] = 7 // (n[i] - 1)


def has_a_while(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        k = n[i]
        while k > 0:
            c[i] += a[i, k]
            k -= 2


def outcome(program):
    """What a program leaves in its tensors, and how it fails."""
    given = [Memory([*item.data], item.sizes, item.strides, item.dtype, 0) for item in (A, C, I6)]
    try:
        run_program(program, given)
    except ZeroDivisionError as error:
        return [*map(nested, given)], repr(error)
    return [*map(nested, given)], ""


def with_bodies(program, change):
    """The program with the bodies of its kernels changed."""

    def visit(node):
        return Launch(kernel=replace(node.kernel, body=change(node.kernel))) if isinstance(node, Launch) else node

    return rewrite(program, visit)


def together(kernel):
    """The body of a kernel with three iterations of the loop over i at a time, if its schedule may say so."""
    schedule = Schedule((Unroll(loops_of(kernel)["i"].index, 3, jam=True),))
    return apply_schedule(kernel.body, schedule, analyse(kernel))


@pytest.mark.parametrize("function", [has_lists, ends_iterations, ends, may_fail, has_a_while])
def test_what_runs_together_does_what_the_source_says(function):
    program = program_of(function, A, C, I6)
    jammed = with_bodies(program, together)
    assert outcome(jammed) == outcome(program)
    assert any(loops_of(kernel).keys() >= {"i_block"} for kernel in _kernels(jammed)) is (function is has_a_while)


def test_iterations_of_threads_may_fail_and_run_together():
    bodies = {
        each: loops_of(kernel_of(each, A, C, I6))["i"].body for each in (has_lists, ends_iterations, ends, may_fail)
    }
    assert [each for each, body in bodies.items() if may_jam(body, failing=True)] == [may_fail]
    assert not any(may_jam(body) for body in bodies.values())


def _kernels(program):
    return [node.kernel for node in walk(program) if isinstance(node, Launch)]


def rows_may_fail(a: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 7 // (n[j] - 1)


def test_tiles_are_not_jammed_where_an_iteration_may_fail():
    kernel = kernel_of(rows_may_fail, memory([[0] * 6] * 6, INT64), I6)
    loops = loops_of(kernel)
    schedule = Schedule((Unroll(loops["i"].index, 4, jam=True),))
    parallel = rewrite_statements(
        kernel.body, lambda item: (replace(item, role=Role.PARALLEL) if isinstance(item, For) else item,)
    )
    assert len(apply_schedule(parallel, schedule, analyse(kernel))) == 1


def test_iterations_of_a_grid_run_together_where_they_may_fail():
    kernel = kernel_of(rows_may_fail, memory([[0] * 6] * 6, INT64), I6)
    loop = loops_of(kernel)["i"].index
    for level, parts in ((Level.GRID, 2), (Level.BLOCK, 1), (Level.POOL, 1)):
        schedule = Schedule((Bind(loop, level), Unroll(loop, 4, jam=True)))
        assert len(apply_schedule(kernel.body, schedule, analyse(kernel))) == parts
    inner = Schedule((Bind(loops_of(kernel)["j"].index, Level.GRID), Unroll(loop, 4, jam=True)))
    assert len(apply_schedule(kernel.body, inner, analyse(kernel))) == 1


# ---------------------------------------------------------------- what iterations that run together share


def rows_end_early(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 2.0:
                break
            c[i] += a[i, j]


def rows_skip(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 1.0:
                continue
            c[i] += a[i, j]


def some_rows(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        if n[0] > 1:
            for j in range(a.shape[1]):
                c[i] += a[i, j]
        if n[i] > 1:
            c[i] += 1.0


def triangle(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(i, a.shape[1]):
            s += a[i, j]
        c[i] = s


def in_threes(kernel):
    numbers = count(1000)
    return tuple(
        part for item in kernel.body for part in (unroll_jam(item, 3, numbers) if isinstance(item, For) else (item,))
    )


@pytest.mark.parametrize("function", [rows_end_early, rows_skip, some_rows, triangle])
def test_what_is_shared_does_what_the_source_says(function):
    program = program_of(function, A, C, I6)
    assert outcome(with_bodies(program, in_threes)) == outcome(program)


def test_a_branch_that_all_take_is_one_branch():
    jammed, _ = in_threes(kernel_of(some_rows, A, C, I6))
    assert [isinstance(item, If) for item in jammed.body] == [True] * 4


def shared_parts(function, role):
    """The numbers of statements in the inner loops of three iterations that run together."""
    kernel = kernel_of(function, A, C, I6)
    (outer,) = kernel.body
    inner = (replace(_accumulating(item, kernel), role=role) if isinstance(item, For) else item for item in outer.body)
    jammed, _ = unroll_jam(replace(outer, body=tuple(inner)), 3, count(1000))
    return [len(item.body) for item in jammed.body if isinstance(item, For)]


def square(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        s = 0.0
        for j in range(a.shape[1]):
            s += a[i, j]
        c[i] = s


def test_a_sum_in_lanes_is_shared_whole_or_not_at_all():
    assert shared_parts(triangle, Role.SEQUENTIAL) == [1, 1, 1, 3]
    assert shared_parts(triangle, Role.VECTOR) == [1, 1, 1]
    assert shared_parts(square, Role.VECTOR) == [3]


# ---------------------------------------------------------------- bands


def sums_of_rows(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i] += a[i, j]


def has_more_than_a_loop(a: Tensor, c: Tensor, n: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 1.0
        c[i] = a[i, 0]


def sums_in_a_variable(a: Tensor, c: Tensor, n: Tensor) -> None:
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j]
    c[0] = s


def sums_and_notes(a: Tensor, c: Tensor, n: Tensor) -> None:
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i, j - 1]
            s += a[i, j]
    c[0] = s


def test_bands_are_of_independent_loops_right_inside_one_another():
    for function in (sums_of_rows, has_more_than_a_loop, sums_in_a_variable):
        kernel = kernel_of(function, A, C, I6)
        outer = loops_of(kernel)["i"]
        assert [item.index.name for item in Planner(analyse(kernel)).band(outer)] == ["i"]


def test_a_loop_accumulates_if_it_is_independent_and_has_no_other_sums():
    for function, known, answer in (
        (sums_in_a_variable, True, True),
        (sums_in_a_variable, False, False),
        (sums_and_notes, True, False),
    ):
        kernel = kernel_of(function, A, C, I6)
        planner, inner = Planner(analyse(kernel)), loops_of(kernel)["j"]
        symbols = {node.symbol for node in statements(inner) if isinstance(node, Assign)} if known else set()
        assert planner.accumulates(inner, symbols) is answer
