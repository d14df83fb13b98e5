"""Scheduled kernels mean what the source says, and have the shape that code generation expects."""

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.diagnostics.errors import RaceError
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT64, INT8, INT64, value_dtype
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import FLAT_ACCESS, Check, For, If, Launch, Role, Select, Store
from brickwork.ir.walk import walk
from brickwork.target.target import Target
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import Bind, Level, Schedule, Unroll
from brickwork.transform.schedule.text import Names
from brickwork.transform.verbs.apply import apply_schedule
from support.causal import timex as conv
from support.kernels_ir import KernelBuilder, apply, size, timex
from support.lowering import memory, program_of
from support.scheduling import AVX2, agree, scheduled


def loops(kernel):
    return {node.index.name: node for node in walk(kernel.body) if isinstance(node, For)}


def fast_loops(kernel):
    body = kernel.body
    if len(body) == 1 and isinstance(body[0], If):
        body = body[0].then
    return {node.index.name: node for node in walk(body) if isinstance(node, For)}


def row_sum(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros((n,), dtype=torch.float32)
    for i in range(n):
        for j in range(m):
            out[i] += x[i, j]
    return out


def total(x: torch.Tensor) -> torch.Tensor:
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


def double(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.empty_like(x)
    for i in range(n):
        for j in range(m):
            out[i, j] = x[i, j] * 2
    return out


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.empty_like(x)
    for i in range(n):
        for j in range(m):
            out[i, j] = x[i, j] + y[i, j]
    return out


def histogram(x: torch.Tensor, n: int) -> torch.Tensor:
    h = torch.zeros((n,), dtype=torch.int64)
    for i in range(len(x)):
        h[x[i]] += 1
    return h


def roll(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i - k]
    return out


def column_sum(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros((m,), dtype=torch.float32)
    for i in range(n):
        for j in range(m):
            out[j] += x[i, j]
    return out


def distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n, d = x.shape
    out = torch.zeros((n,), dtype=torch.float64)
    least = 1e9
    for i in range(n):
        s = 0.0
        for j in range(d):
            s += (x[i, j] - y[j]) ** 2
        least = min(least, s) + 0.5
        out[i] = least
        for k in range(d):
            y[k] = y[k] + x[i, k]
    return out


MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_conv():
    w = memory([[1.0, 2.0, 3.0, 4.0]])
    k = memory([[[1.0, 2.0, 3.0, 4.0]]])
    (row,) = agree(conv, w, k, 0.5)[0]
    assert row[0] == 4.5


def test_conv_with_a_short_weight_fails_where_python_does():
    w, k = memory([[1.0, 2.0]]), memory([[[1.0, 2.0, 3.0]]])
    program = program_of(conv, w, k, 0.5)
    with pytest.raises(IndexError, match=r"index 2 is out of bounds for dimension 1 of tensor 'w' with size 2"):
        run_program(scheduled(program), (w, k, 0.5))


def test_sums():
    assert agree(row_sum, memory(MATRIX)) == [6.0, 15.0]
    assert agree(row_sum, memory([[], []])) == [0.0, 0.0]
    assert agree(column_sum, memory(MATRIX)) == [5.0, 7.0, 9.0]
    assert agree(total, memory([1.0, 2.0, 4.0])) == 7.0


def test_elementwise():
    assert agree(double, memory(MATRIX)) == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
    assert agree(add, memory(MATRIX), memory(MATRIX))[1] == [8.0, 10.0, 12.0]


def test_a_larger_second_operand_takes_the_nested_loops():
    larger = memory([[1.0, 1.0, 1.0, 9.0], [1.0, 1.0, 1.0, 9.0], [9.0, 9.0, 9.0, 9.0]])
    assert agree(add, memory(MATRIX), larger) == [[2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]


def test_data_dependent_indices():
    assert agree(histogram, memory([0, 1, -1, 1], INT64), 3) == [1, 2, 1]
    program = program_of(histogram, memory([0], INT64), 3)
    with pytest.raises(IndexError, match=r"index -4 .* of tensor 'h' with size 3 \(shape \(3,\)\)"):
        run_program(scheduled(program), (memory([0, -4], INT64), 3))


@pytest.mark.parametrize("k", [-1, 0, 1, 3])
def test_rolling(k):
    x = memory([1.0, 2.0, 3.0])
    if k < 0:
        with pytest.raises(IndexError, match="index 3 "):
            run_program(scheduled(program_of(roll, x, k)), (x, k))
    else:
        values = [1.0, 2.0, 3.0]
        assert agree(roll, x, k) == [values[i - k] for i in range(3)]


def clamp(x: torch.Tensor, k: int) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.shape[0]
    for i in range(n):
        if k >= 0:
            out[i] = x[min(i + k, n - 1)]
    return out


def test_proofs_that_assume_small_arguments_do_not_hold_for_large_ones():
    """`i + k` wraps for the second element, so that the index is negative and far out of range."""
    x = memory([1.0, 2.0])
    assert agree(clamp, x, 1) == [2.0, 2.0]
    huge = 2**63 - 1
    with pytest.raises(IndexError, match="is out of bounds for dimension 0 of tensor 'x'"):
        run_program(scheduled(program_of(clamp, x, huge)), (x, huge))


# ---------------------------------------------------------------- shape


def test_timex_is_parallel_outside_and_in_lanes_along_time():
    found = fast_loops(schedule_kernel(timex(), AVX2).kernel)
    roles = {name: node.role for name, node in found.items()}
    assert roles == {
        "b_block": Role.PARALLEL,
        "b": Role.PARALLEL,
        "c": Role.PARALLEL,
        "t_chunk": Role.PARALLEL,
        "t": Role.VECTOR,
        "u": Role.SEQUENTIAL,
    }
    assert found["t"].width == 16


def test_timex_has_a_fast_body_without_checks_and_a_careful_one_in_order():
    (choice,) = schedule_kernel(timex(), AVX2).kernel.body
    assert not any(isinstance(node, Check | Select) for node in walk(choice.then))
    assert sum(isinstance(node, Check) for node in walk(choice.otherwise)) == 2
    assert all(node.role is Role.SEQUENTIAL for node in walk(choice.otherwise) if isinstance(node, For))


def test_elementwise_loops_become_one():
    (launch,) = [node for node in walk(program_of(double, memory(MATRIX))) if isinstance(node, Launch)]
    kernel = schedule_kernel(launch.kernel, AVX2).kernel
    assert set(loops(kernel)) == {"i_chunk", "i"}
    assert [node.access for node in walk(kernel.body) if isinstance(node, Store)] == [FLAT_ACCESS]


def test_a_reduction_runs_in_chunks_and_lanes_of_a_fixed_number():
    (launch,) = [node for node in walk(program_of(total, memory([1.0]))) if isinstance(node, Launch)]
    wide = Target(name="cpu", identity="test", vector_bytes=64, vector_registers=32, vector_library="none")
    first, second = (schedule_kernel(launch.kernel, target).kernel for target in (AVX2, wide))
    assert first == second
    assert all(node.reductions for node in loops(first).values())


@pytest.mark.parametrize(("dtype", "promoted"), [(INT64, True), (INT8, True), (FLOAT16, False)])
def test_an_accumulated_element_is_a_reduction_unless_each_store_rounds(dtype, promoted):
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1, dtype), make.symbol("i")
    three = build.constant(3, value_dtype(dtype))
    kernel = make.kernel(make.loop(i, size(x, 0), make.store(y, (0,), apply("mul", make.load(y, 0), three))))
    assert bool(schedule_kernel(kernel, AVX2).analysis.loops[i].reductions) is promoted


def test_the_users_word_is_taken_unless_refuted():
    make = KernelBuilder()
    x, index, i = make.tensor("x", 1), make.tensor("index", 1, INT64), make.symbol("i")
    store = make.store(x, (make.load(index, i),), make.load(x, i))
    kernel = make.kernel(make.loop(i, size(index, 0), store, claimed=True))
    assert fast_loops(schedule_kernel(kernel, AVX2).kernel)["i_chunk"].role is Role.PARALLEL

    shifted = make.store(x, (i,), make.load(x, apply("add", i, 1)))
    kernel = make.kernel(make.loop(i, apply("sub", size(x, 0), 1), shifted, claimed=True))
    with pytest.raises(RaceError, match=r"stores into x\[1\] with i=1, and line \d+ reads the same element with i=0"):
        schedule_kernel(kernel, AVX2)


def test_explain_names_what_is_in_the_way():
    (launch,) = [node for node in walk(program_of(histogram, memory([0], INT64), 3)) if isinstance(node, Launch)]
    text = explain(schedule_kernel(launch.kernel, AVX2)).text()
    assert "in order" in text
    assert "stores into 'h'" in text
    assert "checked at each execution" in text
    text = explain(schedule_kernel(timex(), AVX2)).text()
    assert "vectorised by 16" in text
    assert "w.shape[1] >= k.shape[2]" in text
    assert "accumulates" in text


def versions(kernel, name):
    """Return the lanes of the two versions of a loop that may be short, one for few iterations and one for many."""
    choices = [node for node in walk(kernel.body) if isinstance(node, If) and isinstance(node.then[0], For)]
    (few, many) = next((node.then[0], node.otherwise[0]) for node in choices if node.then[0].index.name == name)
    return few.width, max(node.width for node in walk(many) if isinstance(node, For))


def test_repeated_loops_have_a_version_for_few_iterations():
    program = program_of(distances, memory([[1.0]], FLOAT64), memory([1.0], FLOAT64))
    (launch,) = [node for node in walk(program) if isinstance(node, Launch)]
    kernel = schedule_kernel(launch.kernel, AVX2).kernel
    assert versions(kernel, "j") == (1, 32)
    assert versions(kernel, "k") == (1, 4)
    once = next(node for node in walk(program_of(total, memory([1.0]))) if isinstance(node, Launch))
    assert not [node for node in walk(schedule_kernel(once.kernel, AVX2).kernel.body) if isinstance(node, If)]


@pytest.mark.parametrize("d", [0, 1, 7, 8, 40])
def test_both_versions_compute_the_same(d):
    x = torch.arange(3 * d, dtype=torch.float64).reshape(3, d).sin()
    given, expected = torch.ones(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    torch.testing.assert_close(bw.op(distances)(x, given), distances(x, expected))
    torch.testing.assert_close(given, expected)


def test_schedules_can_be_stored():
    schedule = schedule_kernel(timex(), AVX2).schedule
    names = Names(timex())
    assert names.read(names.text(schedule)) == schedule
    assert "bind(t, lane, 16)" in str(schedule)
    unrolled = Schedule((*schedule.verbs, Unroll(names.loops["u"], 4)))
    assert names.read(names.text(unrolled)) == unrolled
    assert "unroll(u, 4)" in str(unrolled)


def test_loops_in_order_are_unrolled_as_the_schedule_says():
    kernel = timex()
    verbs = tuple(Unroll(node.index, 4) for node in walk(kernel.body) if isinstance(node, For))
    found = apply_schedule(kernel.body, Schedule((Bind(verbs[0].loop, Level.POOL), *verbs)), analyse(kernel))
    assert [node.unrolled for node in walk(found) if isinstance(node, For)] == [1, 4, 4, 4]
