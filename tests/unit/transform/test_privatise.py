"""Scratch tensors of iterations: which loops get copies of their own, and that results stay bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Allocate, Expression, For, Kernel, Launch, Load, Local, Role, Size, Store
from brickwork.ir.verify import verify_kernel
from brickwork.ir.walk import rewrite, walk
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from brickwork.transform.autodiff.simplify import simplified
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.preconditions import NOTHING
from brickwork.transform.privatise import owned, privatise, scratch_of
from support.gradients import check_gradients, derived, numbers
from support.lowering import memory, program_of
from support.scheduling import AVX2, GPU, agree, loops_of, same, scheduled
from support.shared import schedule_program

Tensor = torch.Tensor


def a_list(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [0.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        for k in range(3):
            tmp[k] += tmp[k + 1]
        y[i] = tmp[0] + tmp[2]


def a_tensor(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, 2, dtype=torch.float64)
    for t in range(3):
        for i in range(x.shape[0]):
            for a in range(2):
                for b in range(2):
                    tmp[a, b] = x[i, 2 * a + b] * t
            y[i] = y[i] + tmp[0, 1] - tmp[1, 0]


def one_by_one(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [0.0] * 4
    for i in range(x.shape[0]):
        tmp[0] = x[i, 0]
        if tmp[0] > 0.0:
            tmp[1] = x[i, 1]
            y[i] = tmp[0] + tmp[1]
    for i in range(x.shape[0]):
        tmp[2] = y[i]
        y[i] = tmp[2] * 2


def filled_on_a_guard(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(s, 4):
            tmp[k] = x[i, k]
        y[i] = tmp[s] + tmp[3]


def one_too_few(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(3):
            tmp[k] = x[i, k]
        y[i] = tmp[0] + tmp[3]
        tmp[3] = y[i]


def read_after(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = tmp[0]
    y[0] = y[0] + tmp[3]


def filled_on_a_path(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        if x[i, 0] > 0.0:
            for k in range(4):
                tmp[k] = x[i, k]
        y[i] = tmp[2]


def filled_up_to_a_break(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            if x[i, k] > 0.5:
                break
            tmp[k] = x[i, k]
        y[i] = tmp[2] + tmp[0]


def carried(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = tmp[k] + x[i, k]
        y[i] = tmp[1]


def in_order_anyway(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(1, x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = y[i - 1] + tmp[3]


def by_an_empty_loop(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for _ in range(s):
            for k in range(4):
                tmp[k] = x[i, k]
        y[i] = tmp[3]


def returned(x: Tensor, y: Tensor, s: int) -> Tensor:
    tmp = torch.zeros(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k] = x[i, k]
        y[i] = tmp[1]
    return tmp


def filled_from_the_end(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            tmp[k - 4] = x[i, k]
        for k in range(3):
            y[i] += tmp[k - 3] * k


def filled_from_where_the_iteration_says(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(2):
        for k in range(i, 4):
            tmp[k] = x[i, k - i]
        tmp[i] += 1.0
        y[i] = tmp[i + 1]
        tmp[i + 1] = y[i] * 2.0
        y[i] += tmp[i + 1]


def read_on_two_ways(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    k = 0
    while k < 2:
        if k < s:
            for i in range(x.shape[0]):
                tmp[0] = x[i, k]
                y[i] += tmp[0]
        else:
            for i in range(x.shape[0]):
                tmp[1] = x[i, k]
                y[i] -= tmp[1]
        k += 1
    for i in range(x.shape[0]):
        y[i] = y[i] * 2.0


def read_in_one_of_two_ways_before_it_is_filled(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for t in range(2):
        if t < s:
            for i in range(x.shape[0]):
                tmp[0] = x[i, t]
                y[i] += tmp[0]
        else:
            y[0] = tmp[0]


def read_in_the_other_of_two_ways_before_it_is_filled(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for t in range(2):
        if t < s:
            y[0] = tmp[0]
        else:
            for i in range(x.shape[0]):
                tmp[0] = x[i, t]
                y[i] += tmp[0]


def asked_for_around(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for _ in range(3):
        if tmp[0] > 0.0:
            for i in range(x.shape[0]):
                tmp[0] = x[i, 0] - 1.0
                y[i] += tmp[0]


def waited_for_around(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    while tmp[0] > 0.0:
        for i in range(x.shape[0]):
            tmp[0] = x[i, 0] - 9.0
            y[i] += tmp[0]


def another_is_filled(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            x[i, k] = x[i, k] + 1.0
        y[i] = tmp[2]
        tmp[2] = y[i] + x[i, 1]


def filled_but_where_it_goes_on(x: Tensor, y: Tensor, s: int) -> None:
    tmp = [1.0] * 4
    for i in range(x.shape[0]):
        for k in range(4):
            if x[i, k] > 0.5:
                continue
            tmp[k] = x[i, k]
        y[i] = tmp[2] + tmp[0]


def filled_below_a_diagonal(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.ones(3, 3, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(3):
            for n in range(k):
                tmp[k, n] = x[i, k] + n
        for k in range(3):
            for n in range(k):
                y[i] = tmp[k, n + 1]
        tmp[1, 1] = y[i] + x[i, 0]


def filled_above_a_diagonal(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.ones(3, 3, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(3):
            for n in range(k, 3):
                tmp[k, n] = x[i, k] + n
        y[i] = tmp[1, 0]
        tmp[1, 0] = y[i] + x[i, 0]


def filled_on_a_diagonal(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.ones(2, 2, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(2):
            tmp[k, k] = x[i, k]
        y[i] = tmp[0, 1]
        tmp[0, 1] = y[i] + x[i, 0]


def narrow(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.zeros(4, dtype=torch.int32)
    for i in range(x.shape[0]):
        tmp[0] = int(x[i, 0] * 1e3) << 29
        y[i] = tmp[0]


def no_row(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.zeros((), dtype=torch.float64)
    for i in range(x.shape[0]):
        tmp[()] = x[i, 0]
        y[i] = tmp[()]


COPIES: dict[Callable[..., object], int | None] = {
    a_list: 1,
    a_tensor: 1,
    one_by_one: 2,
    filled_on_a_guard: None,
    filled_from_the_end: 1,
    filled_from_where_the_iteration_says: 1,
    read_on_two_ways: 2,
}
SHARED = (
    one_too_few,
    read_after,
    filled_on_a_path,
    filled_up_to_a_break,
    carried,
    in_order_anyway,
    by_an_empty_loop,
    returned,
)
REFUSED = (
    read_in_one_of_two_ways_before_it_is_filled,
    read_in_the_other_of_two_ways_before_it_is_filled,
    asked_for_around,
    waited_for_around,
    another_is_filled,
    filled_but_where_it_goes_on,
    filled_below_a_diagonal,
    filled_above_a_diagonal,
    filled_on_a_diagonal,
    narrow,
    no_row,
)


def arguments(rows: int) -> tuple[Memory, Memory]:
    draw = random.Random(rows)
    matrix = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(rows)]
    return memory(matrix, FLOAT64), memory([draw.gauss(0, 1) for _ in range(rows)], FLOAT64)


@pytest.mark.parametrize("function", [*COPIES, *SHARED, *REFUSED], ids=lambda function: function.__name__)
def test_which_loops_get_copies(function: Callable[..., object]) -> None:
    program = program_of(function, *arguments(2), 0)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    scheduled = schedule_kernel(kernel, AVX2, scratch=scratch_of(program))
    found = sum(isinstance(node, Local) for node in walk(scheduled.source.body))
    if (expected := COPIES.get(function, 0)) is not None:
        assert found == expected


@pytest.mark.parametrize("target", [AVX2, cuda_target((9, 0))], ids=["processor", "grid"])
@pytest.mark.parametrize("function", [*COPIES, *SHARED], ids=lambda function: function.__name__)
def test_results_stay(function: Callable[..., object], target: Target) -> None:
    for rows in (2, 5):
        for s in (0, 1, 3, -2) if function in {filled_on_a_guard, by_an_empty_loop} else (0,):
            agree(function, *arguments(rows), s, target=target)


def set_before(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(4, dtype=torch.float64)
    other = torch.empty(5, dtype=torch.float64)
    for k in range(4):
        tmp[k] = 0.0
    tmp[s] = 1.0
    tmp[1] = x[s, 0]
    for i in range(y.shape[0]):
        y[i] = 3.0
    for i in range(x.shape[0]):
        tmp[2] = x[i, 0]
        other[4] = x[i, 1]
        y[i] += tmp[2] * other[4]


def set_in_a_table(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, 2, dtype=torch.float64)
    tmp[1, s] = 1.0
    for i in range(x.shape[0]):
        tmp[0, 1] = x[i, 0]
        y[i] += tmp[0, 1]


def copied(function: Callable[..., object]) -> tuple[Kernel, Kernel]:
    """Return the kernel of a function, and the same with copies of its scratch tensors."""
    program = program_of(function, *arguments(2), 0)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    return kernel, privatise(kernel, analyse(kernel), scratch_of(program))[0]


def test_what_only_fills_a_scratch_tensor_goes_unless_it_may_fail() -> None:
    _, changed = copied(set_before)
    assert [node.tensor.sizes for node in walk(changed) if isinstance(node, Local)] in ([(4,), (5,)], [(5,), (4,)])
    assert loops_of(changed).keys() == {"i"}
    left = [node for node in walk(changed) if isinstance(node, Store) and not node.tensor.is_local]
    assert [node.tensor.name for node in left] == ["tmp", "tmp", "y", "y"]
    _, changed = copied(set_in_a_table)
    left = [node for node in walk(changed) if isinstance(node, Store) and not node.tensor.is_local]
    assert [node.tensor.name for node in left] == ["tmp", "y"]


def a_table(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, 3, dtype=torch.float64)
    for i in range(x.shape[0]):
        for j in range(2):
            for k in range(3):
                tmp[j, k] = x[i, j] + k
        y[i] += tmp[0, 1] - tmp[1, 2]


def wherever(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(3, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(3):
            tmp[k] = x[i, k]
        tmp[int(x[i, 0])] = 1.0
        y[i] += tmp[0]


def beside_one_that_is_checked(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(3, dtype=torch.float64)
    for i in range(x.shape[0]):
        tmp[0] = x[i, int(x[i, 0])]
        y[i] += tmp[0]


def sizes_of_copies(
    function: Callable[..., object], facts: Callable[[Kernel], tuple[Expression, ...]]
) -> list[tuple[int, ...]]:
    """Return the extents of the copies that iterations of a grid get, if only these facts are known."""
    program = program_of(function, *arguments(2), 0)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    known = replace(kernel, facts=facts(kernel))
    changed = privatise(known, analyse(kernel), scratch_of(program), grid=True)[0]
    return [node.tensor.sizes for node in walk(changed) if isinstance(node, Local)]


def test_a_copy_has_the_extents_that_are_certain_and_room_for_others() -> None:
    def bounded(kernel: Kernel) -> tuple[Expression, ...]:
        sizes = [node for fact in kernel.facts for node in walk(fact) if isinstance(node, Size)]
        return tuple(build.apply("ge", size, build.integer(2)) for size in sizes)

    def rows(kernel: Kernel) -> tuple[Expression, ...]:
        facts = [(fact, [node for node in walk(fact) if isinstance(node, Size)]) for fact in kernel.facts]
        return tuple(fact for fact, sizes in facts if any(size.axis == 0 < size.tensor.type.rank - 1 for size in sizes))

    assert sorted(sizes_of_copies(set_before, lambda kernel: kernel.facts)) == [(4,), (5,)]
    for facts in (bounded, lambda _: ()):
        assert sizes_of_copies(set_before, facts) == [(64,), (64,)]
    assert sizes_of_copies(a_table, lambda kernel: kernel.facts) == [(2, 3)]
    assert sizes_of_copies(a_table, rows) == [(2, 32)]
    assert sizes_of_copies(a_table, lambda _: ()) == [(8, 8)]
    # An access that is checked has to see where the tensor ends; one that is guarded is known to.
    assert sizes_of_copies(set_in_a_table, rows) == [(2, 32)]
    assert sizes_of_copies(wherever, lambda kernel: kernel.facts) == [(3,)]
    assert not sizes_of_copies(wherever, rows)
    assert sizes_of_copies(beside_one_that_is_checked, lambda _: ()) == [(64,)]


def a_long_table(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(100, s, dtype=torch.float64)
    for i in range(x.shape[0]):
        tmp[99, 0] = x[i, 0]
        y[i] += tmp[99, 0]


def nothing(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(0, s, dtype=torch.float64)
    for i in range(x.shape[0]):
        for k in range(tmp.shape[0]):
            tmp[k, 0] = x[i, k]
            y[i] += tmp[k, 0]


@pytest.mark.parametrize("function", [a_long_table, nothing])
def test_there_are_no_copies_without_elements(function: Callable[..., object]) -> None:
    assert sizes_of_copies(function, lambda kernel: kernel.facts) == []
    same(function, *arguments(3), 2)


def each_of_two(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, dtype=torch.float64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            tmp[0] = x[i, j]
            x[i, j] = tmp[0] * 2.0


def test_copies_belong_to_the_innermost_loop() -> None:
    _, changed = copied(each_of_two)
    assert isinstance(loops_of(changed)["j"].body[0], Local)


def updates_one_element(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, dtype=torch.float64)
    for i in range(x.shape[0]):
        tmp[0] = x[i, 0]
        y[0] += tmp[0]


def sets_one_element(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, dtype=torch.float64)
    for i in range(x.shape[0]):
        tmp[0] = x[i, 0]
        y[0] = tmp[0]


def updates_a_list(x: Tensor, y: Tensor, s: int) -> None:
    tmp = torch.empty(2, dtype=torch.float64)
    for i in range(x.shape[0]):
        w = [0.0] * 2
        for j in range(x.shape[1]):
            tmp[0] = x[i, j]
            w[j % 2] += tmp[0]
        y[i] = w[0] - w[1]


@pytest.mark.parametrize(
    ("function", "loops"),
    [(updates_one_element, {"i"}), (sets_one_element, set()), (updates_a_list, {"i"}), (in_order_anyway, set())],
)
def test_only_updates_of_tensors_may_meet_where_a_loop_owns_one(
    function: Callable[..., object], loops: set[str]
) -> None:
    program = program_of(function, *arguments(2), 0)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    assert {index.name for index in owned(kernel, analyse(kernel), scratch_of(program))} == loops


def of_any_length(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        state = [0.0] * n
        for t in range(x.shape[1]):
            for k in range(n):
                state[k] = 0.5 * state[k] + x[i, t] * k
                y[i] += state[k]


def past_the_end(x: Tensor, y: Tensor, n: int) -> None:
    for i in range(x.shape[0]):
        state = [0.0] * n
        for k in range(n):
            state[k] = x[i, 0]
        y[i] += state[2]


def test_lists_of_any_length_belong_to_an_iteration() -> None:
    x, y = memory([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0]], FLOAT64), memory([0.0] * 3, FLOAT64)
    for n in (1, 2, 64, 65):
        same(of_any_length, x, y, n)
    for n in (2, 3, 70):
        same(past_the_end, x, y, n)
    program = scheduled(program_of(of_any_length, x, y, 2), GPU)
    shared = [node for node in walk(program) if isinstance(node, For) and node.role is Role.PARALLEL]
    assert [node.index.name for node in shared] == ["i"]


def summed_over_iterations(x: Tensor, a: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        state = [0.0] * a.shape[0]
        for t in range(x.shape[1]):
            s = 0.0
            for k in range(a.shape[0]):
                state[k] = a[k] * state[k] + x[i, t]
                s += state[k] * state[k]
            y[i, t] = s


def test_gradients_of_such_lists_run_as_many_iterations_at_once() -> None:
    given = numbers(3, 4), numbers(2), numbers(3, 4)
    check_gradients(summed_over_iterations, *given)
    pieces, _ = schedule_program(derived(summed_over_iterations, given), GPU)
    loops = [node for node in walk(pieces) if isinstance(node, For) and node.role is Role.PARALLEL]
    (back,) = {node.index.name for node in loops if any(isinstance(item, Local) for item in walk(node.body))}
    assert back == "i"
    assert any(isinstance(item, Store) and item.combine for node in loops for item in walk(node.body))


def exchanges_it(x: Tensor, y: Tensor) -> None:
    tmp = torch.zeros(4, dtype=torch.float64)
    other = torch.zeros(4, dtype=torch.float64)
    for i in range(x.shape[0]):
        y[i] += tmp[0] + other[1]
        tmp, other = other, tmp


def test_scratch_tensors_are_of_one_kernel_and_of_the_program_alone() -> None:
    program = program_of(exchanges_it, *arguments(2))
    (launch,) = [node for node in walk(program) if isinstance(node, Launch)]
    made = tuple(node.tensor for node in walk(program) if isinstance(node, Allocate))
    before = Launch(kernel=replace(launch.kernel, tensors=made, body=()))
    assert scratch_of(replace(program, body=(before, *program.body))) == frozenset()
    program = program_of(set_before, *arguments(2), 0)
    assert {item.name for item in scratch_of(program)} == {"tmp", "other"}
    given = rewrite(program, lambda node: replace(node, given=True) if isinstance(node, Allocate) else node)
    assert scratch_of(given) == frozenset()
    launches = (node for node in walk(program) if isinstance(node, Launch))
    assert scratch_of(replace(program, body=(*program.body, *launches))) == frozenset()


def in_a_bound(x: Tensor, y: Tensor, s: int) -> None:
    lengths = torch.zeros(2, dtype=torch.int64)
    p = s
    for i in range(2):
        lengths[i] = p
        p = 2
    for i in range(2):
        for k in range(lengths[i]):
            y[k] = x[i, k]


def test_what_a_loop_is_as_long_as_is_read_before_its_iterations() -> None:
    program = program_of(in_a_bound, *arguments(2), 1)
    (kernel,) = [node.kernel for node in walk(program) if isinstance(node, Launch)]
    body = simplified(kernel.body, kernel.tensors, NOTHING)
    bounds = [bound for node in walk(body) if isinstance(node, For) for bound in (node.start, node.stop)]
    assert not any(isinstance(node, Load) for node in walk(bounds))
    verify_kernel(schedule_kernel(replace(kernel, body=body), AVX2, scratch=scratch_of(program)).kernel)
