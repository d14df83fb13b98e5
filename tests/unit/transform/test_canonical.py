"""However a loop counts, it becomes one with an index; what does not count the same in each iteration stays.

Each program means the same as written, for processors and for a GPU: what it leaves, its failure, and what was
written before that.
"""

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.definitions import LARGEST
from brickwork.analysis.scalars import live_after_loops, scalar_verdict
from brickwork.ir import build, nodes
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import Assign, For, If, Launch, Read, Symbol, While
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import statements
from brickwork.transform.canonical.choices import without_choices
from brickwork.transform.canonical.copies import propagate_copies
from brickwork.transform.canonical.form import canonical
from brickwork.transform.spelling import spelled
from support.kernels_ir import KernelBuilder
from support.lowering import memory, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([0.25] * 6)
K = memory([3, 0, 2, 5, 1, 4], INT64)
M = memory([[float(3 * i + 5 * j) for j in range(3)] for i in range(2)])


# ---------------------------------------------------------------- loops that count, and variables that count along


def to_a_limit(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0]:
        y[k] = x[k] + k
        k += 1


def from_an_argument_to_the_last(x: Tensor, y: Tensor, a: int) -> None:
    k = a
    while x.shape[0] - 1 >= k:
        y[k] = x[k]
        k = 1 + k
    y[0] = k


def downwards(x: Tensor, y: Tensor) -> None:
    k = x.shape[0] - 1
    while k >= 0:
        y[k] = x[k] * k
        k -= 1


def by_threes_above(x: Tensor, y: Tensor, a: int) -> None:
    k = x.shape[0]
    while k > a:
        k -= 3
        y[k] = x[k] + k


def by_twos(x: Tensor, y: Tensor, a: int) -> None:
    k = a
    while k <= 4:
        y[k] = x[k]
        k += 2
        y[k - 1] = k


def two_along_in_two_loops(m: Tensor, y: Tensor) -> None:
    p, q = 0, 6
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            q -= 1
            y[p] = m[i, j] + q
            p += 1


def along_a_while(x: Tensor, y: Tensor) -> None:
    p = 5
    k = 0
    while k < x.shape[0]:
        y[p] = x[k]
        k += 1
        p -= 1


def by_a_size(m: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            y[p + j] = m[i, j]
        p += m.shape[1]


def read_after(m: Tensor, y: Tensor, a: int) -> None:
    p = a
    for i in range(m.shape[0]):
        p += 2
    for j in range(p, 6):
        y[j] = p + 0.5


def left_and_not_read_after(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if x[i] < -2.0:
            break
        y[p] = x[i]
        p += 1


COUNTING = [
    (to_a_limit, (X, Y)),
    (from_an_argument_to_the_last, (X, Y, 2)),
    (from_an_argument_to_the_last, (X, Y, 9)),
    (downwards, (X, Y)),
    (by_threes_above, (X, Y, 0)),
    (by_threes_above, (X, Y, 1)),
    (by_threes_above, (X, Y, 7)),
    (by_twos, (X, Y, 0)),
    (by_twos, (X, Y, 1)),
    (by_twos, (X, Y, 5)),
    (two_along_in_two_loops, (M, Y)),
    (along_a_while, (X, Y)),
    (by_a_size, (M, Y)),
    (read_after, (M, Y, -1)),
    (left_and_not_read_after, (X, Y)),
]


@pytest.mark.parametrize(("function", "arguments"), COUNTING)
def test_what_counts_is_written_with_an_index(function, arguments):
    kernel = kernel_of(function, arguments)
    assert not [node for node in statements(kernel) if isinstance(node, While)]
    live = live_after_loops(kernel.body)
    for loop in (node for node in statements(kernel) if isinstance(node, For)):
        assert scalar_verdict(loop, live[loop.index]) == ((), None)
    same(function, *arguments)


@pytest.mark.parametrize(("function", "arguments"), [(two_along_in_two_loops, (M, Y)), (to_a_limit, (X, Y))])
def test_loops_that_count_are_independent(function, arguments):
    analysis = analyse(kernel_of(function, arguments))
    assert all(verdict.independent for verdict in analysis.loops.values())


def kernel_of(function, arguments):
    """Return the kernel of a function in canonical form."""
    return next(node.kernel for node in canonical(program_of(function, *arguments)).body if isinstance(node, Launch))


# ---------------------------------------------------------------- what does not


def some_iterations_do_not_step(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            continue
        y[p] = x[i]
        p += 1


def a_step_under_a_condition(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] = x[i]
        if x[i] > 0.0:
            p += 1


def two_steps(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(2):
        y[p] = x[i]
        p += 1
        y[p] = x[i] * 2.0
        p += 2


def a_step_that_grows(x: Tensor, y: Tensor) -> None:
    p, step = 0, 1
    for i in range(3):
        y[p] = x[i]
        p += step
        step += i


def a_step_that_is_an_element(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(2):
        y[p] = x[i]
        p += k[i]


def it_is_multiplied(x: Tensor, y: Tensor) -> None:
    p = 1
    for i in range(3):
        y[p] = x[i]
        p = p * 2 - 1 + i


def it_is_set_in_an_inner_loop(m: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            p = j
        y[p + i] = m[i, p]
        p += 1


def left_and_read_after(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if x[i] < -2.0:
            break
        p += 1
    y[0] = p


def the_limit_changes(x: Tensor, y: Tensor) -> None:
    k, limit = 0, 3
    while k < limit:
        y[k] = x[k]
        k += 1
        if x[k] > 2.0:
            limit = 5


def the_limit_is_an_element(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    while p < k[0]:
        y[p] = x[p]
        k[0] = 5 if x[p] < 0.0 else k[0]
        p += 1


def a_while_is_left(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0]:
        if x[k] < -2.0:
            break
        k += 1
    y[0] = k


def a_while_goes_on(x: Tensor, y: Tensor) -> None:
    k, t = 0, 0
    while k < x.shape[0]:
        t += 1
        if t % 2 == 0:
            continue
        y[k] = t
        k += 1


def two_conditions(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0] and x[k] > -2.0:
        y[k] = x[k]
        k += 1


def a_float_that_grows(x: Tensor, y: Tensor) -> None:
    s = 0.5
    p = 0
    for i in range(x.shape[0]):
        s += 0.25
        p += i
        y[i] = x[i] * s + p


def a_while_steps_sometimes(x: Tensor, y: Tensor) -> None:
    k, t = 0, 0
    while k < x.shape[0]:
        y[k] = t
        t += 1
        if t % 2 == 0:
            k += 1


def a_while_steps_by_an_argument(x: Tensor, y: Tensor, a: int) -> None:
    k = 0
    while k < x.shape[0]:
        y[k] = x[k]
        k += a


def the_limit_may_fail(x: Tensor, y: Tensor, a: int) -> None:
    k = 0
    while k < x.shape[0] // a:
        y[k] = x[k]
        k += 1


STAYING = [
    (a_float_that_grows, (X, Y)),
    (a_while_steps_sometimes, (X, Y)),
    (a_while_steps_by_an_argument, (X, Y, 4)),
    (the_limit_may_fail, (X, Y, 0)),
    (the_limit_may_fail, (X, Y, 2)),
    (some_iterations_do_not_step, (X, Y)),
    (a_step_under_a_condition, (X, Y)),
    (two_steps, (X, Y)),
    (a_step_that_grows, (X, Y)),
    (a_step_that_is_an_element, (X, Y, K)),
    (it_is_multiplied, (X, Y)),
    (it_is_set_in_an_inner_loop, (M, Y)),
    (left_and_read_after, (X, Y)),
    (the_limit_changes, (X, Y)),
    (the_limit_is_an_element, (X, Y, K)),
    (a_while_is_left, (X, Y)),
    (a_while_goes_on, (X, Y)),
    (two_conditions, (X, Y)),
]


@pytest.mark.parametrize(("function", "arguments"), STAYING)
def test_what_does_not_count_means_the_same(function, arguments):
    kernel = kernel_of(function, arguments)
    assert any(isinstance(node, Assign) and node.symbol.dtype is INT64 for node in statements(kernel))
    same(function, *arguments)


def away_from_the_limit(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0]:
        y[0] = x[0]
        k -= 1


def nowhere(x: Tensor, y: Tensor) -> None:
    k = 0
    while k < x.shape[0]:
        y[0] = x[0]
        k += 0


@pytest.mark.parametrize("function", [away_from_the_limit, nowhere])
def test_a_loop_that_never_ends_stays_one(function):
    assert any(isinstance(node, While) for node in statements(kernel_of(function, (X, Y))))


def test_claimed_loops_keep_what_their_iterations_share():
    def claimed(x: Tensor, y: Tensor) -> None:
        p = 0
        for i in bw.prange(x.shape[0]):
            y[p] = x[i]
            p += 1

    assert any(isinstance(node, Assign) for node in statements(kernel_of(claimed, (X, Y)).body[-1]))


# ---------------------------------------------------------------- copies, temporaries, what is dead


def best_and_where(x: Tensor, y: Tensor) -> None:
    best, where = x[0], 0
    for p in range(x.shape[0]):
        if x[p] > best:
            best, where = x[p], p
    y[0] = best
    y[1] = where


def exchanged(x: Tensor, y: Tensor) -> None:
    a, b = x[0], x[1]
    for i in range(3):
        a, b = b, a + x[i]
        y[i] = a - b
    y[5] = a


def a_copy_of_what_changes(x: Tensor, y: Tensor) -> None:
    p = 1
    for i in range(4):
        q = p
        p = i
        y[q] = x[p] + q


def copies_of_one_in_each_branch(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        q = 0
        if x[i] > 0.0:
            q = i
        y[i] = x[q]


def a_copy_before_a_loop_that_changes_it(x: Tensor, y: Tensor) -> None:
    p = 3
    q = p
    for i in range(q):
        p = i
        y[i + q] = x[p]


def a_copy_in_a_while(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    while k[p] != 1:
        q = p
        p = k[p]
        y[q] = x[p]
    y[p] = 9.0


def nothing_reads_it_but_it_fails(x: Tensor, y: Tensor, a: int) -> None:
    _p = 0
    for i in range(x.shape[0]):
        y[i] = x[i]
        _t = x[i + a]  # may be out of range
        _u = i * 2
        _p = i - _p


def read_where_the_loop_is_left(x: Tensor, y: Tensor) -> None:
    t = 0
    for i in range(x.shape[0]):
        if x[i] < -2.0:
            t = i
            break
        t = 7
    y[0] = t


def read_in_the_next_turn(x: Tensor, y: Tensor, k: Tensor) -> None:
    t, p = 0.5, 0
    while k[p] != 1:
        y[p] = t
        t = x[p]
        p = k[p]


OTHERS = [
    (best_and_where, (X, Y)),
    (exchanged, (X, Y)),
    (a_copy_of_what_changes, (X, Y)),
    (copies_of_one_in_each_branch, (X, Y)),
    (a_copy_before_a_loop_that_changes_it, (X, Y)),
    (a_copy_in_a_while, (X, Y, K)),
    (nothing_reads_it_but_it_fails, (X, Y, 0)),
    (nothing_reads_it_but_it_fails, (X, Y, 1)),
    (read_where_the_loop_is_left, (X, Y)),
    (read_in_the_next_turn, (X, Y, K)),
]


@pytest.mark.parametrize(("function", "arguments"), OTHERS)
def test_copies_and_dead_assignments_do_not_show(function, arguments):
    same(function, *arguments)


def test_a_pair_is_assigned_as_two_variables_are():
    choice = next(node for node in statements(kernel_of(best_and_where, (X, Y))) if isinstance(node, If))
    best, where = choice.then
    assert (best.symbol.name, where.symbol.name) == ("best", "where")
    assert isinstance(where.value, Read)


V, S, T = (Symbol(name, number, INT64) for number, name in enumerate("vst"))
U = Symbol("u", 4, INT64)
FLAG = Symbol("flag", 3, BOOL)


def assign(symbol, value):
    return Assign(symbol=symbol, value=build.integer(value) if isinstance(value, int) else build.read(value))


@pytest.mark.parametrize(("divisor", "moves"), [(2, True), (-2, True), (0, False)])
def test_a_size_by_a_literal_is_copied_where_that_can_be_computed(divisor, moves):
    size = build.size(KernelBuilder().tensor("x", 1), 0)
    quotient = nodes.Apply(operator=OPERATORS["floordiv"], operands=(size, build.integer(divisor)), dtype=INT64)
    block = (Assign(symbol=V, value=quotient), assign(S, V))
    assert propagate_copies(block)[-1] == (Assign(symbol=S, value=quotient) if moves else assign(S, V))


def test_copies_outlive_the_assignment_of_others():
    for value in (3, U):
        block = (assign(V, value), assign(T, 4), assign(S, V))
        assert propagate_copies(block)[-1] == assign(S, value)


# ---------------------------------------------------------------- sizes that are computed


def groups(x: Tensor, y: Tensor, parts: int) -> None:
    m = x.shape[0] // parts
    for g in range(parts):
        for c in range(m):
            y[g * m + c] = x[g * m + c] + g


def butterflies(x: Tensor, y: Tensor, level: int) -> None:
    half = 2**level
    for i in range(x.shape[0] // (2 * half)):
        for j in range(half):
            y[i * 2 * half + j] = x[i * 2 * half + j + half]


def padded_rows(x: Tensor, y: Tensor, k: int) -> None:
    width = (1 << k) - 1
    for i in range(2):
        for j in range(2):
            y[i * width + j] = x[i + j]


def a_remainder_moves_nothing(x: Tensor, y: Tensor, k: int) -> None:
    for i in range(k % x.shape[0]):
        y[i] = x[i + x.shape[0] // 2]


SIZES = [
    (groups, (X, Y, 2), ["x.shape[0] // parts"]),
    (groups, (X, Y, 3), ["x.shape[0] // parts"]),
    (groups, (X, Y, 7), ["x.shape[0] // parts"]),
    (groups, (X, Y, -2), ["x.shape[0] // parts"]),
    (groups, (X, Y, 0), ["x.shape[0] // parts"]),
    (groups, (X, memory([1.0]), 2), ["x.shape[0] // parts"]),
    (butterflies, (X, Y, 0), ["pow(2, level)"]),
    (butterflies, (X, Y, 1), ["pow(2, level)"]),
    (butterflies, (X, Y, 70), ["pow(2, level)"]),
    (padded_rows, (X, Y, 1), ["shift_left(1, k)"]),
    (padded_rows, (X, Y, 3), ["shift_left(1, k)"]),
    (padded_rows, (X, Y, 0), ["shift_left(1, k)"]),
    (a_remainder_moves_nothing, (X, Y, 3), []),
]


@pytest.mark.parametrize(("function", "arguments", "names"), SIZES)
def test_computed_sizes_that_loops_multiply_by_are_given_to_the_kernel(function, arguments, names):
    program = canonical(program_of(function, *arguments), sizes=True)
    assert [spelled(node.value) for node in program.body if isinstance(node, Assign)] == names
    same(function, *arguments)


@pytest.mark.parametrize("function", [groups, butterflies])
def test_flat_places_of_computed_sizes_are_proved_apart(function):
    program = canonical(program_of(function, X, Y, 2), sizes=True)
    kernel = next(node.kernel for node in program.body if isinstance(node, Launch))
    assert all(verdict.independent for verdict in analyse(kernel).loops.values())


# ---------------------------------------------------------------- branches that choose a value


def test_branches_of_cheap_values_are_values() -> None:
    a, b = (build.read(Symbol(name, place, BOOL)) for place, name in enumerate("ab"))
    i = build.read(Symbol("i", 2, INT64))
    c, n = Symbol("c", 3, BOOL), Symbol("n", 4, INT64)

    def chosen(symbol: Symbol, one: nodes.Expression, other: nodes.Expression) -> nodes.Block:
        then, otherwise = ((Assign(symbol=symbol, value=value),) for value in (one, other))
        return without_choices((If(condition=a, then=then, otherwise=otherwise),))

    def value(block: nodes.Block) -> nodes.Expression:
        (only,) = block
        assert isinstance(only, Assign)
        return only.value

    even = build.apply("eq", build.apply("mod", i, build.integer(2)), build.integer(0))
    assert value(chosen(c, even, a)) == build.apply("logical_and", a, even)
    assert value(chosen(c, even, build.constant(False, BOOL))) == build.apply("logical_and", a, even)
    assert value(chosen(c, build.constant(True, BOOL), b)) == build.apply("logical_or", a, b)
    assert value(chosen(n, i, build.integer(3))) == build.select(a, i, build.integer(3))
    for divisor in (i, build.integer(0), build.integer(-2)):
        kept = nodes.Apply(operator=OPERATORS["floordiv"], operands=(i, divisor), dtype=INT64)
        assert isinstance(chosen(n, kept, i)[0], If)
    long = i
    for _ in range(LARGEST):
        long = build.mul(long, i)
    assert isinstance(chosen(n, long, i)[0], If)


def test_branches_that_assign_different_variables_or_more_than_one_stay() -> None:
    a = build.read(Symbol("a", 0, BOOL))
    c, d = (Symbol(name, place, BOOL) for place, name in ((1, "c"), (2, "d")))
    one, other = Assign(symbol=c, value=a), Assign(symbol=d, value=a)
    for then, otherwise in (((one,), (other,)), ((one, other), (one,)), ((one,), ()), ((one,), (one, other))):
        block = (If(condition=a, then=then, otherwise=otherwise),)
        assert without_choices(block) == block
